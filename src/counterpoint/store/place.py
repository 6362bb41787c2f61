"""The file of an open store: whether it may be written, and is still the one that was opened.

Conventions
-----------
* A file that is deleted, replaced, emptied or written over under an open store is noticed before anything is
  acknowledged: on the disk, what is written to a deleted file is nowhere.
* The log of a file that another has taken the place of is taken away, for SQLite would write it into the new
  one.
* Where the file cannot be written and was closed, it is read as it is, without a log (``immutable``).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from counterpoint.store.database import Damaged, StoreFault, connect, files_beside, open_database, told
from counterpoint.store.log import belongs
from counterpoint.store.migrations import MIGRATIONS, version

__all__ = ["Place"]


class Place:
    """The file of an open store: whether it may be written, and is still the one that was opened."""

    def __init__(self, path: str) -> None:
        """Before the file is opened; a StoreFault where it cannot be written and not be read either."""
        self.path = path
        self._log, self._index = files_beside(path)
        self.immutable = _sealed(path, self._log)
        self._opened: dict[str, tuple[int, int] | None] = {}
        self._written_at = -1
        """When the file was last written, in nanoseconds, as of the last look at its content."""
        self._lost = ""
        self.damage = ""
        """What was found damaged; what is to be read may still be whole elsewhere."""

    def open(self, *, create: bool) -> sqlite3.Connection:
        """The connection that writes, where that may be; the first to be opened."""
        if not self.immutable:
            database = open_database(self.path, create=create)
            self._opened = {name: _identity(name) for name in (self.path, self._log, self._index)}
            return database
        with told(self.path), closing(self.connect()) as database:
            if version(database, self.path) < len(MIGRATIONS):
                raise StoreFault(
                    f"{self.path}: was written by an older counterpoint: make the file and its folder "
                    "writable once, so that it is brought up to date"
                )
        return self.connect()

    def connect(self) -> sqlite3.Connection:
        """A further connection."""
        return connect(self.path, immutable=self.immutable)

    @contextmanager
    def told(self) -> Iterator[None]:
        """`told`, which remembers damage."""
        try:
            with told(self.path):
                yield
        except Damaged as error:
            self.damage = str(error)
            raise

    def check(self, database: sqlite3.Connection | None = None) -> None:
        """A StoreFault where the path is not the file that was opened: what is written now would be lost.

        ``database``, a connection to the file that was opened, is in no transaction.
        """
        if self.immutable:
            return
        if self._lost:
            raise StoreFault(self._lost)
        for name in (self.path, self._log):
            found = _identity(name)
            if found == self._opened[name]:
                continue
            if found is None:
                raise StoreFault(
                    f"{name}: was deleted or moved while the store was open: put it back, or restart to "
                    "begin a new one"
                )
            self._lost = f"{name}: another file took its place: restart to use that one"
            if name == self.path:
                self._leave_replaced(database)
            raise StoreFault(self._lost)
        if not _size(self.path):
            raise self._overwritten("emptied", "put a copy in place, and restart")
        self._check_content()
        if database is not None and not _size(self._log) and self._lacks_frames(database):
            raise StoreFault(
                f"{self._log}: was emptied by another program, and what was written last with it: restart to "
                "go on with the rest"
            )

    def _check_content(self) -> None:
        """A StoreFault where other content was written into the file, as ``cp`` does."""
        written_at = _written_at(self.path)
        if written_at == self._written_at:
            return
        ours = belongs(self._log, lambda: connect(self.path, immutable=True))
        if ours is False:
            raise self._overwritten("written over", "and restart to use what is there now")
        if ours:
            self._written_at = written_at

    def leave(self, database: sqlite3.Connection) -> None:
        """Before closing: no log stays beside another file, or where another may be put."""
        with suppress(StoreFault):
            self.check(database)
        if not self.immutable and _identity(self.path) is None:
            self._leave_replaced(database)

    def _leave_replaced(self, database: sqlite3.Connection | None) -> None:
        """What is in the log goes to the file that was opened, wherever that is now."""
        if database is not None:
            with suppress(sqlite3.Error):
                database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        self._delete_log()

    def _overwritten(self, how: str, then: str) -> StoreFault:
        """What to say of a file whose content is another's; its log, which is of the old content, goes."""
        self._lost = (
            f"{self.path}: was {how} by another program: stop every program that has it open, delete "
            f"{self._log} and {self._index} if they are there, {then}"
        )
        if _identity(self._log) == self._opened[self._log]:
            with suppress(OSError):
                os.truncate(self._log, 0)  # else it is written, on closing, into what is there by then
        self._delete_log()
        return StoreFault(self._lost)

    def _delete_log(self) -> None:
        """The log and its index, where they are still ours: to another file they are poison."""
        for name in (self._log, self._index):
            if _identity(name) == self._opened[name]:
                with suppress(OSError):
                    os.unlink(name)

    def _lacks_frames(self, database: sqlite3.Connection) -> bool:
        """Is there more in an empty log than nothing? Its index counts what was written to it."""
        try:
            ((_, frames, _),) = database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except sqlite3.OperationalError:
            frames = 1
        return frames > 0 and not _size(self._log)


def _identity(name: str) -> tuple[int, int] | None:
    try:
        found = os.stat(name)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _size(name: str) -> int:
    try:
        return os.stat(name).st_size
    except OSError:
        return 0


def _written_at(name: str) -> int:
    try:
        return os.stat(name).st_mtime_ns
    except OSError:
        return 0


def _sealed(path: str, log: str) -> bool:
    """Can the file only be read? A StoreFault where not even that, since others may be writing to it."""
    folder = os.path.dirname(log)
    if not os.path.isfile(path) or (_writable(path) and _writable(folder)):
        return False
    if os.path.exists(log) and os.path.getsize(log):
        raise StoreFault(
            f"{path}: the folder {folder}, and the file, has to be writable, also to read it, while there is "
            f"{os.path.basename(log)}: a program has the store open, or did not end as it should"
        )
    return True


def _writable(name: str) -> bool:
    return os.access(name, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
