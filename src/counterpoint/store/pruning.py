"""Old runs go, and the space they took is given back.

Conventions
-----------
* Runs are deleted a few at a time and pages are given back in pieces, so that spans still come in meanwhile.
* A full disk is what many prune for, and deleting writes to the log before it frees: the log is emptied into
  the file first, and where there is no room the pieces are small.
* What a run's age is counted from is its last span.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from counterpoint.store.receiving import drop_kept
from counterpoint.store.searching import drop_text

__all__ = [
    "FEW_PAGES",
    "Outdated",
    "Pruned",
    "compact_search",
    "delete_envelopes",
    "delete_runs",
    "free_pages",
    "outdated",
]

PAGES = 2000
FEW_PAGES = 50
"""So many at a time where the disk is full: what is moved needs room in the log first."""
MERGED_PAGES = 1000


class Pruned(NamedTuple):
    """What pruning took away."""

    runs: int
    spans: int
    freed_bytes: int
    """By how much the files shrank."""


class Outdated(NamedTuple):
    """A run that is to go, unless a span comes in before."""

    key: int
    updated_at: float
    spans: int


def outdated(database: sqlite3.Connection, before: float | None, keep: int | None) -> list[Outdated]:
    """Runs that are older than ``before``, and those beyond the ``keep`` newest; the oldest first."""
    rows = [
        Outdated(*row)
        for row in database.execute(
            "SELECT key, updated_at, spans FROM runs ORDER BY updated_at DESC, key DESC"
        )
    ]
    beyond = len(rows) if keep is None else keep
    old = [
        one
        for place, one in enumerate(rows)
        if place >= beyond or (before is not None and one.updated_at < before)
    ]
    return old[::-1]


def delete_runs(database: sqlite3.Connection, batch: Iterable[Outdated]) -> Pruned:
    """Delete the runs with all that belongs to them, but for those that grew meanwhile."""
    runs = spans = 0
    for one in batch:
        if not database.execute(
            "SELECT 1 FROM runs WHERE key = ? AND updated_at <= ?", (one.key, one.updated_at)
        ).fetchone():
            continue
        spans += database.execute(
            "DELETE FROM spans WHERE trace IN (SELECT key FROM trace_ids WHERE run = ?)", (one.key,)
        ).rowcount
        database.execute("DELETE FROM trace_ids WHERE run = ?", (one.key,))
        drop_kept(database, one.key)
        drop_text(database, one.key)
        database.execute("DELETE FROM runs WHERE key = ?", (one.key,))
        runs += 1
    return Pruned(runs, spans, 0)


def delete_envelopes(database: sqlite3.Connection) -> None:
    """Delete the envelopes that no span came in any more."""
    database.execute(
        "DELETE FROM envelopes WHERE NOT EXISTS (SELECT 1 FROM spans WHERE envelope = envelopes.key)"
    )


def compact_search(database: sqlite3.Connection, *, begin: bool) -> bool:
    """One piece of the work that takes deleted texts out of the index; False where nothing is left to do."""
    before = database.total_changes
    pages = -MERGED_PAGES if begin else MERGED_PAGES
    database.execute("INSERT INTO search(search, rank) VALUES ('merge', ?)", (pages,))
    return database.total_changes - before >= 2


def free_pages(database: sqlite3.Connection, most: int = PAGES) -> bool:
    """Give some free pages back to the file system; False where none is left."""
    (left,) = database.execute("PRAGMA freelist_count").fetchone()
    for _ in range(min(left, most)):
        database.execute("PRAGMA incremental_vacuum(1)")  # one a call: sqlite3 takes one step of a pragma
    return bool(left > most)
