"""The database file: how it is made, opened and shared, and what its faults are called.

Conventions
-----------
* WAL: readers and the one writer of a moment never wait for each other, in any number of processes.
* ``synchronous=FULL``: what was committed is on the disk. Freed pages go back to the file system in small
  pieces (``auto_vacuum=INCREMENTAL``), so that pruning never locks the file for long.
* The file is readable by its owner only: it holds prompts. Only `open_database` makes one.
* Nothing of another program's database is changed, nor is a log played into another file than it is of: both
  are looked at before SQLite opens the file.
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import platformdirs

from counterpoint.errors import UsageError
from counterpoint.store.log import belongs, first_pages
from counterpoint.store.migrations import APPLICATION_ID, FOREIGN, migrate, version

__all__ = [
    "BUSY_S",
    "Damaged",
    "DiskFull",
    "StoreFault",
    "StoreLocked",
    "begin_writing",
    "connect",
    "default_path",
    "files_beside",
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


def files_beside(path: str) -> tuple[str, str]:
    """The log and its index; SQLite puts them beside the file that a link leads to."""
    real = os.path.realpath(path)
    return f"{real}-wal", f"{real}-shm"


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
        _refuse_mixing(path)
        database = connect(path)
        try:
            if not version(database, path):  # asked before anything of another program's file is changed
                database.execute(f"PRAGMA page_size = {PAGE_BYTES}")
                database.execute("PRAGMA auto_vacuum = INCREMENTAL")  # writes: a full disk is still read
            _insist(database, "PRAGMA journal_mode = WAL", patience(None))  # waits for nobody by itself
            migrate(database, path)
        except BaseException:
            database.close()
            raise
        return database


def _refuse_foreign(path: str) -> None:
    """A UsageError of another program's database, also where all that is in it stands in its log."""
    log, _ = files_beside(path)
    with suppress(sqlite3.Error), closing(connect(path, immutable=True)) as database:
        if not version(database, path):
            for page in first_pages(log)[-1:]:
                if page.application != APPLICATION_ID and (page.application or page.changes):
                    raise UsageError(f"{path}: {FOREIGN}")


def _refuse_mixing(path: str) -> None:
    log, index = files_beside(path)
    if belongs(log, lambda: connect(path, immutable=True)) is False:
        raise StoreFault(
            f"{path}: {log} is of another file, and opening would mix the two: stop every program that has "
            f"the store open; where a copy was put in its place, delete {log} and {index}, then start again"
        )


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


_FAULTS = (
    ("not a database", "is no database of counterpoint: give another file with --store"),
    ("malformed", "is damaged: `counterpoint store verify` says where; a copy may help"),
    ("locked", "is locked by another program: end it, or try again"),
    ("readonly", "cannot be written: the file or its folder is read-only"),
    ("is full", "could not be written: the disk is full"),
    ("disk I/O", "could not be read or written: the disk fails or is full, or its -wal was emptied: restart"),
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
    _insist(database, "BEGIN IMMEDIATE", until)


def _insist(database: sqlite3.Connection, statement: str, until: float) -> None:
    while True:
        try:
            database.execute(statement)
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(random.uniform(0.5e-3, 3e-3))
