"""The database file: how it is opened, shared and read, and what its faults are called.

Conventions
-----------
* WAL: readers and the one writer of a moment never wait for each other, in any number of processes.
* ``synchronous=FULL``: what was committed is on the disk. Freed pages go back to the file system in small
  pieces (``auto_vacuum=INCREMENTAL``), so that pruning never locks the file for long.
* The file is readable by its owner only: it holds prompts.
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import platformdirs

from counterpoint.errors import UsageError
from counterpoint.store.migrations import migrate, version

__all__ = ["BUSY_S", "Readers", "begin_writing", "connect", "default_path", "open_database", "told"]

BUSY_S = 30.0
"""How long a write waits for another process's to end."""
CHECKPOINT_PAGES = 4000
"""A checkpoint, which costs a commit some more, comes after so much: 32 MB."""
PAGE_BYTES = 8192


def default_path() -> Path:
    """``$COUNTERPOINT_STORE``, or ``store.db`` in the platform's folder for data of this user."""
    named = os.environ.get("COUNTERPOINT_STORE")
    return Path(named) if named else Path(platformdirs.user_data_dir("counterpoint")) / "store.db"


def open_database(path: str) -> sqlite3.Connection:
    """A connection that may write, to a file that is created and migrated where need be."""
    with told(path):
        _create(path)
        database = connect(path)
        try:
            database.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            database.execute("PRAGMA auto_vacuum = INCREMENTAL")
            version(database, path)  # before anything of another program's file is changed
            database.execute("PRAGMA journal_mode = WAL")
            migrate(database, path)
        except BaseException:
            database.close()
            raise
        return database


def _create(path: str) -> None:
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise UsageError(f"{path}: could not be created: {error.strerror or error}") from None


def connect(path: str) -> sqlite3.Connection:
    """A connection that any thread may use, one at a time; transactions are begun by hand."""
    database = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
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
    ("no such module", "needs an SQLite with FTS5, which this Python lacks"),
    ("closed database", "the store is closed"),
    ("unable to open", "could not be opened: it is no file, or its folder cannot be written"),
)


@contextmanager
def told(path: str) -> Iterator[None]:
    """A fault of the database as one line that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        for sign, meaning in _FAULTS:
            if sign in str(error):
                raise UsageError(f"{path}: {meaning}") from None
        raise UsageError(f"{path}: the database failed: {error}") from None


def begin_writing(database: sqlite3.Connection) -> None:
    """Begin a transaction as soon as no other process is in one; gives up after BUSY_S.

    SQLite by itself would ask ten times a second, and between two commits of a process that has much to write
    there is no such long gap.
    """
    database.execute("PRAGMA busy_timeout = 0")
    patience = time.monotonic() + BUSY_S
    while True:
        try:
            database.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > patience:
                raise
        time.sleep(random.uniform(0.5e-3, 3e-3))


class Readers:
    """Connections that only read, each used by one thread at a time and kept for the next."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._idle: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """A connection within one transaction: all that it reads is of one moment."""
        with told(self._path):
            database = self._take()
            try:
                database.execute("BEGIN")
                yield database
            finally:
                if database.in_transaction:
                    database.execute("ROLLBACK")
                self._give_back(database)

    def _take(self) -> sqlite3.Connection:
        with self._lock:
            if self._closed:
                raise UsageError(f"{self._path}: the store is closed")
            if self._idle:
                return self._idle.pop()
        database = connect(self._path)
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
