"""Connections that only read: any number at once, each within one moment of the file."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from counterpoint.store.database import StoreFault
from counterpoint.store.place import Place

__all__ = ["Readers"]


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
