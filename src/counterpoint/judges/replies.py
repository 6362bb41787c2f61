"""A chat model's parsed replies on disk, so that a run that was killed asks nothing twice.

Conventions
-----------
One SQLite file; a key is the SHA-256 of all that a reply depends on, a value is JSON text. Every batch is
written when it arrives. A cache that fails costs one line on stderr, and the run goes on without it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

__all__ = ["ReplyCache"]

PATIENCE_S = 30
MANY = 500
"""Keys looked up at once; SQLite takes 999 at least."""


class ReplyCache:
    """Keys to JSON texts, shared by threads and processes."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "judgments.sqlite3"
        self._broken = False

    def get(self, keys: Sequence[str]) -> dict[str, str]:
        """The values that are kept of ``keys``."""
        found: dict[str, str] = {}
        if not self.path.exists():
            return found
        for start in range(0, len(keys), MANY):
            chunk = list(keys[start : start + MANY])
            marks = ",".join("?" * len(chunk))
            select = f"SELECT key, value FROM replies WHERE key IN ({marks})"
            found.update(self._run(select, [chunk]))
        return found

    def put(self, values: Mapping[str, str]) -> None:
        """Keep ``values``, all or none."""
        insert = "INSERT OR REPLACE INTO replies VALUES (?, ?)"
        self._run(insert, list(values.items()))

    def _run(self, statement: str, rows: Sequence[Sequence[str]]) -> dict[str, str]:
        """The statement with each of ``rows``, in a transaction on a connection of its own."""
        if self._broken:
            return {}
        try:
            import sqlite3
        except ImportError as error:  # some Pythons are built without it
            self._give_up(error)
            return {}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=PATIENCE_S)) as connection, connection:
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, value TEXT NOT NULL)"
                )
                return {key: value for row in rows for key, value in connection.execute(statement, row)}
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)
            return {}

    def _give_up(self, error: Exception) -> None:
        self._broken = True
        print(
            f"counterpoint: cache of judgments {self.path}: {error}; going on without it "
            "(delete the file, or set COUNTERPOINT_CACHE to another folder)",
            file=sys.stderr,
        )
