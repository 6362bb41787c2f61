"""Vectors kept on disk between runs: one SQLite file a model, keyed by the SHA-256 of the text.

Conventions
-----------
A vector is stored as whole millionths (int32), so only rows that `millionths` rounded may be given; they
come back to the last bit. Connections live for one call: nothing has to survive a fork, a thread or a pickle.
Writers wait for each other; a text that two processes embed at once is stored once.

A cache is a convenience: whatever goes wrong with it costs one line on stderr and the rest of the run does
without.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import platformdirs
from numpy.typing import NDArray

if TYPE_CHECKING:
    import sqlite3

__all__ = ["Row", "VectorCache", "cache_folder", "millionths"]

Row = tuple[NDArray[np.float64], bool]
"""A text's vector, and whether the text was truncated for it."""

PATIENCE_S = 30.0
"""How long to wait for another process that is writing."""
_CHUNK = 500
"""Texts looked up in one statement: below SQLite's smallest limit on variables (999)."""


def cache_folder() -> Path:
    """``$COUNTERPOINT_CACHE``, else the platform's cache folder; it need not exist."""
    named = os.environ.get("COUNTERPOINT_CACHE")
    return Path(named) if named else platformdirs.user_cache_path("counterpoint", appauthor=False)


def millionths(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """``vectors`` rounded to 6 decimals, in the one way that a stored vector is restored.

    >>> millionths(np.array([[0.12345649, -0.0000001]])).tolist()
    [[0.123456, 0.0]]
    """
    return _restored(_stored(vectors))


def _stored(vectors: NDArray[np.floating]) -> NDArray[np.int32]:
    return np.rint(np.asarray(vectors, np.float64) * 1e6).astype("<i4")


def _restored(whole: NDArray[np.int32]) -> NDArray[np.float64]:
    return whole.astype(np.float64) / 1e6


class VectorCache:
    """The vectors of one model on disk."""

    def __init__(self, path: Path, dimensions: int) -> None:
        self.path = path
        self.dimensions = dimensions
        self._broken = False

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Row]:
        """The rows that are known, by key; an entry of the wrong size counts as unknown."""
        rows: dict[bytes, Row] = {}

        def read(connection: sqlite3.Connection) -> None:
            for start in range(0, len(keys), _CHUNK):
                chunk = keys[start : start + _CHUNK]
                marks = ",".join("?" * len(chunk))
                query = f"SELECT text, vector, truncated FROM vectors WHERE text IN ({marks})"
                for key, blob, truncated in connection.execute(query, chunk):
                    if isinstance(blob, bytes) and len(blob) == 4 * self.dimensions:
                        rows[key] = _restored(np.frombuffer(blob, "<i4")), bool(truncated)

        if keys and self.path.exists():
            self._attempt(read)
        return rows

    def put(self, rows: Mapping[bytes, Row]) -> None:
        """Keep ``rows``, all or none."""
        values = [(key, _stored(vector).tobytes(), truncated) for key, (vector, truncated) in rows.items()]

        def write(connection: sqlite3.Connection) -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", values)
            connection.execute("COMMIT")

        if values:
            self._attempt(write)

    def _attempt(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """``work`` on a connection of its own; any failure ends the use of this cache, not the run."""
        if self._broken:
            return
        try:
            import sqlite3
        except ImportError as error:  # some Pythons are built without it
            self._give_up(error)
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=PATIENCE_S, isolation_level=None)) as connection:
                _make_table(connection)
                work(connection)
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._broken = True
        print(
            f"counterpoint: embedding cache {self.path}: {error}; going on without it "
            "(delete the file, set COUNTERPOINT_CACHE to another folder, or switch the cache off)",
            file=sys.stderr,
        )


def _make_table(connection: sqlite3.Connection) -> None:
    # Asked first, so that readers of a finished file never ask for the write lock.
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'vectors'").fetchone():
        return
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS vectors "
        "(text BLOB PRIMARY KEY, vector BLOB NOT NULL, truncated INTEGER NOT NULL)"
    )
    connection.execute("COMMIT")
