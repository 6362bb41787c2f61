"""The database file: how it is opened, shared and read, and what its faults are called.

Conventions
-----------
* WAL: readers and the one writer of a moment never wait for each other, in any number of processes.
* ``synchronous=FULL``: what was committed is on the disk. Freed pages go back to the file system in small
  pieces (``auto_vacuum=INCREMENTAL``), so that pruning never locks the file for long.
* The file is readable by its owner only: it holds prompts. Only `open_database` makes one.
* A file that is deleted, replaced or emptied under an open store is noticed before anything is acknowledged
  (`Place`): on the disk, what is written to a deleted file is nowhere. The log of a file that was replaced is
  taken away, for SQLite would write it into the new one.
* Where the file cannot be written and was closed, it is read as it is, without a log (``immutable``).
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import platformdirs

from counterpoint.errors import UsageError
from counterpoint.store.migrations import FOREIGN, MIGRATIONS, foreign, migrate, version

__all__ = [
    "BUSY_S",
    "Damaged",
    "DiskFull",
    "Place",
    "Readers",
    "StoreFault",
    "StoreLocked",
    "begin_writing",
    "connect",
    "default_path",
    "open_database",
    "patience",
    "told",
]

BUSY_S = 30.0
"""How long a write waits for another process's to end, if it is not told otherwise."""
CHECKPOINT_PAGES = 4000
"""A checkpoint, which costs a commit some more, comes after so much: 32 MB."""
PAGE_BYTES = 8192


def default_path() -> Path:
    """``$COUNTERPOINT_STORE``, or ``store.db`` in the platform's folder for data of this user."""
    named = os.environ.get("COUNTERPOINT_STORE")
    return Path(named) if named else Path(platformdirs.user_data_dir("counterpoint")) / "store.db"


class StoreFault(UsageError):
    """The file cannot be read or written, now or at all: no fault of what was to be read or written."""


class DiskFull(StoreFault):
    """There is no room on the disk."""


class Damaged(StoreFault):
    """What stands in the file is not what was written to it."""


class StoreLocked(StoreFault):
    """Another program writes, and has done so for as long as was waited."""


def open_database(path: str, *, create: bool = True) -> sqlite3.Connection:
    """A connection that may write, to a file that is created and migrated where need be."""
    try:
        return _open(path, create)
    except Damaged as error:
        raise Damaged(
            f"{path}: is damaged in its first pages, and cannot be opened ({error.__context__}): stop every "
            f"program that has it open, then put a copy in place of it, its -wal and its -shm; "
            "`sqlite3 FILE .recover` may save some of it"
        ) from None


def _open(path: str, create: bool) -> sqlite3.Connection:
    with told(path):
        _create(path, create)
        _refuse_foreign(path)
        database = connect(path)
        try:
            if not version(database, path):  # asked before anything of another program's file is changed
                database.execute(f"PRAGMA page_size = {PAGE_BYTES}")
                database.execute("PRAGMA auto_vacuum = INCREMENTAL")  # writes: a full disk is still read
            database.execute("PRAGMA journal_mode = WAL")
            migrate(database, path)
        except BaseException:
            database.close()
            raise
        return database


def _refuse_foreign(path: str) -> None:
    """A UsageError of another program's database, before its log is played into it by opening it."""
    with suppress(sqlite3.Error), closing(connect(path, immutable=True)) as database:
        if foreign(database):
            raise UsageError(f"{path}: {FOREIGN}")


def _create(path: str, create: bool) -> None:
    try:
        if not create:
            os.stat(path)
            return
        real = os.path.realpath(path)  # of a link that leads nowhere, where it leads
        Path(real).parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(real, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileNotFoundError:
        raise StoreFault(f"{path}: is not there") from None
    except OSError as error:
        raise StoreFault(f"{path}: could not be created: {error.strerror or error}") from None


def connect(path: str, *, immutable: bool = False) -> sqlite3.Connection:
    """A connection that any thread may use, one at a time; transactions are begun by hand.

    The file has to be there. ``immutable``: it is read without looking for those who write to it.
    """
    uri = Path(os.path.abspath(path)).as_uri() + ("?mode=ro&immutable=1" if immutable else "?mode=rw")
    database = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    if immutable:
        return database
    database.execute("PRAGMA synchronous = FULL")
    database.execute("PRAGMA secure_delete = FAST")  # pruned pages are given back, not written with zeros
    database.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    database.execute(f"PRAGMA journal_size_limit = {CHECKPOINT_PAGES * PAGE_BYTES}")
    return database


class Place:
    """The file of an open store: whether it may be written, and is still the one that was opened."""

    def __init__(self, path: str) -> None:
        """Before the file is opened; a StoreFault where it cannot be written and not be read either."""
        self.path = path
        real = os.path.realpath(path)  # SQLite puts its other files beside the one that a link leads to
        self._log, self._index = f"{real}-wal", f"{real}-shm"
        self.immutable = _sealed(path, self._log)
        self._opened: dict[str, tuple[int, int] | None] = {}
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
            self._leave_emptied()
            raise StoreFault(self._lost)
        if database is not None and not _size(self._log) and self._lacks_frames(database):
            raise StoreFault(
                f"{self._log}: was emptied by another program, and what was written last with it: restart to "
                "go on with the rest"
            )

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

    def _leave_emptied(self) -> None:
        self._lost = (
            f"{self.path}: was emptied by another program: stop every program that has it open, delete "
            f"{self._log} and {self._index} if they are there, put a copy in place, and restart"
        )
        if _identity(self._log) == self._opened[self._log]:
            with suppress(OSError):
                os.truncate(self._log, 0)  # else it is written, on closing, into what is copied there
        self._delete_log()

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


_FAULTS = (
    ("not a database", "is no database of counterpoint: give another file with --store"),
    ("malformed", "is damaged: `counterpoint store verify` says where; a copy may help"),
    ("locked", "is locked by another program: end it, or try again"),
    ("readonly", "cannot be written: the file or its folder is read-only"),
    ("is full", "could not be written: the disk is full"),
    ("disk I/O", "could not be read or written: the disk fails, or its -wal was emptied by another: restart"),
    ("no such module", "needs an SQLite with FTS5, which this Python lacks"),
    ("closed database", "the store is closed"),
    ("unable to open", "could not be opened: it is no file, or its folder cannot be written"),
)
_KINDS = {"is full": DiskFull, "malformed": Damaged, "locked": StoreLocked}


@contextmanager
def told(path: str) -> Iterator[None]:
    """A fault of the database as one line that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        for sign, meaning in _FAULTS:
            if sign in str(error):
                raise _KINDS.get(sign, StoreFault)(f"{path}: {meaning}") from None
        raise StoreFault(f"{path}: the database failed: {error}") from None


def patience(wait_s: float | None) -> float:
    """Until when to wait (monotonic seconds) if it may take ``wait_s`` seconds; BUSY_S if None."""
    return time.monotonic() + (BUSY_S if wait_s is None else wait_s)


def begin_writing(database: sqlite3.Connection, until: float) -> None:
    """Begin a transaction as soon as no other process is in one; gives up at ``until`` (monotonic seconds).

    SQLite by itself would ask ten times a second, and between two commits of a process that has much to write
    there is no such long gap.
    """
    database.execute("PRAGMA busy_timeout = 0")
    while True:
        try:
            database.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(random.uniform(0.5e-3, 3e-3))


class Readers:
    """Connections that only read, each used by one thread at a time and kept for the next."""

    def __init__(self, place: Place) -> None:
        self._place, self._path = place, place.path
        self._idle: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """A connection within one transaction: all that it reads is of one moment."""
        with self._place.told():
            database = self._take()
            try:
                self._place.check(database)
                database.execute("BEGIN")
                yield database
            finally:
                if database.in_transaction:
                    database.execute("ROLLBACK")
                self._give_back(database)

    def _take(self) -> sqlite3.Connection:
        with self._lock:
            if self._closed:
                raise StoreFault(f"{self._path}: the store is closed")
            if self._idle:
                return self._idle.pop()
        self._place.check()
        database = self._place.connect()
        database.execute("PRAGMA query_only = ON")
        return database

    def _give_back(self, database: sqlite3.Connection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(database)
                return
        database.close()

    def close(self) -> None:
        """Close what is idle now, and the rest as it comes back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for database in idle:
            database.close()
