"""Spans into the tables: each kept once, in order of arrival, and under the run that its trace belongs to.

Conventions
-----------
* A span that came before replaces the first where it differs, and changes nothing where it does not.
* A run begins with the first span of its trace. Links join runs: the earlier one takes in the later.
* What is known of traces and envelopes is remembered between transactions, and forgotten as soon as another
  connection may have changed it.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from counterpoint.errors import UsageError
from counterpoint.store.records import Span, clean
from counterpoint.store.searching import drop_text

__all__ = ["Arrival", "Receiver", "arrivals", "drop_kept", "fresh_id"]

REMEMBERED = 50_000
MOST_ID = 200
"""Characters of a run's id: ids stand in addresses, commands and tables. Of a longer one so many are kept."""
LATEST_NS = 2**63 - 1

_INSERT = (
    "INSERT OR IGNORE INTO spans (trace, id, envelope, name, start_ns, payload) VALUES (?, ?, ?, ?, ?, ?)"
)
_REPLACE = """UPDATE spans SET envelope = ?3, name = ?4, start_ns = ?5, payload = ?6
    WHERE trace = ?1 AND id = ?2 AND (payload <> ?6 OR envelope <> ?3)"""


class Arrival(NamedTuple):
    """A span, ready to be written."""

    trace: bytes
    span: bytes
    envelope: bytes
    name: str
    start_ns: int
    payload: bytes
    links: tuple[bytes, ...]


def arrivals(spans: Iterable[Span]) -> list[Arrival]:
    """The spans with their ids as bytes; a UsageError names the first whose ids are none."""
    return [
        Arrival(
            _id(span.trace_id, 16),
            _id(span.span_id, 8),
            span.envelope,
            span.name if span.name.isascii() else clean(span.name),
            min(max(span.start_ns, 0), LATEST_NS),
            span.payload,
            tuple(_id(link, 16) for link in span.links),
        )
        for span in spans
    ]


def _id(text: str, size: int) -> bytes:
    try:
        value = bytes.fromhex(text)
    except ValueError:
        value = b""
    if len(value) != size:
        raise UsageError(f"a span's id is {2 * size} hex digits, found {text[:40]!r}")
    return value


class _Trace(NamedTuple):
    key: int
    run: int


class Receiver:
    """Writes arrivals; used by one thread at a time, the one that writes."""

    def __init__(self) -> None:
        self._traces: dict[bytes, _Trace] = {}
        self._envelopes: dict[bytes, int] = {}

    def forget(self) -> None:
        """Ask the database again for what was known."""
        self._traces.clear()
        self._envelopes.clear()

    def write(self, database: sqlite3.Connection, batch: Sequence[Arrival]) -> None:
        """All of the batch, within the caller's transaction."""
        now = time.time()
        traces = {one: self._trace(database, one, now) for one in dict.fromkeys(one.trace for one in batch)}
        envelopes = {
            content: self._envelope(database, content)
            for content in dict.fromkeys(one.envelope for one in batch)
        }
        rows = [
            (traces[one.trace].key, one.span, envelopes[one.envelope], one.name, one.start_ns, one.payload)
            for one in batch
        ]
        new, changed = _insert(database, rows)
        starts: dict[int, int] = {}
        for row in rows:
            if row[4] and row[4] < starts.get(row[0], LATEST_NS):
                starts[row[0]] = row[4]
        for trace in traces.values():
            count, start = new[trace.key], starts.get(trace.key)
            if count or changed[trace.key]:
                _grow(database, trace.run, count, changed[trace.key], start, now)
        for one in batch:
            for link in one.links:
                if link != one.trace:
                    self._join(database, one.trace, link)

    def _trace(self, database: sqlite3.Connection, id: bytes, now: float) -> _Trace:
        """The trace, of which a span came; its run begins with it where it is new."""
        known = self._traces.get(id)
        if known is None:
            row = database.execute("SELECT key, run, seen FROM trace_ids WHERE id = ?", (id,)).fetchone()
            if row is None:
                run = _begin_run(database, fresh_id(database, id.hex()), now)
                key = database.execute(
                    "INSERT INTO trace_ids (id, run, seen) VALUES (?, ?, 1)", (id, run)
                ).lastrowid
                row = (key, run, 1)
            if not row[2]:  # a link named it before
                database.execute("UPDATE trace_ids SET seen = 1 WHERE key = ?", (row[0],))
                database.execute("UPDATE runs SET traces = traces + 1 WHERE key = ?", (row[1],))
            known = _Trace(row[0], row[1])
            if len(self._traces) >= REMEMBERED:
                self._traces.clear()
            self._traces[id] = known
        return known

    def _envelope(self, database: sqlite3.Connection, content: bytes) -> int:
        digest = hashlib.blake2b(content, digest_size=16).digest()
        known = self._envelopes.get(digest)
        if known is None:
            database.execute(
                "INSERT OR IGNORE INTO envelopes (digest, content) VALUES (?, ?)", (digest, content)
            )
            (known,) = database.execute("SELECT key FROM envelopes WHERE digest = ?", (digest,)).fetchone()
            if len(self._envelopes) >= REMEMBERED:
                self._envelopes.clear()
            self._envelopes[digest] = int(known)
        return int(known)

    def _join(self, database: sqlite3.Connection, trace: bytes, link: bytes) -> None:
        """Make the runs of both traces one; a trace that is not there yet will belong to the other's run."""
        (own,) = database.execute("SELECT run FROM trace_ids WHERE id = ?", (trace,)).fetchone()
        other = database.execute("SELECT run FROM trace_ids WHERE id = ?", (link,)).fetchone()
        if other is None:
            database.execute("INSERT INTO trace_ids (id, run, seen) VALUES (?, ?, 0)", (link, own))
        elif other[0] != own:
            first, second = sorted((own, other[0]))
            database.execute("UPDATE trace_ids SET run = ? WHERE run = ?", (first, second))
            database.execute(
                """UPDATE runs SET spans = runs.spans + later.spans, traces = runs.traces + later.traces,
                    revision = runs.revision + later.revision,
                    updated_at = MAX(runs.updated_at, later.updated_at),
                    started_at = COALESCE(MIN(runs.started_at, later.started_at), runs.started_at,
                        later.started_at)
                FROM runs AS later WHERE runs.key = ? AND later.key = ?""",
                (first, second),
            )
            drop_kept(database, second)
            drop_text(database, second)
            database.execute("DELETE FROM runs WHERE key = ?", (second,))
            self._traces.clear()


def _insert(
    database: sqlite3.Connection, rows: list[tuple[int, bytes, int, str, int, bytes]]
) -> tuple[Counter[int], Counter[int]]:
    """Write the spans; how many are new in each trace, and how many changed."""
    (last,) = database.execute("SELECT COALESCE(MAX(key), 0) FROM spans").fetchone()
    changed: Counter[int] = Counter()
    if database.executemany(_INSERT, rows).rowcount == len(rows):
        return Counter(row[0] for row in rows), changed
    new = Counter(
        dict(database.execute("SELECT trace, COUNT(*) FROM spans WHERE key > ? GROUP BY trace", (last,)))
    )
    for row in rows:
        changed[row[0]] += database.execute(_REPLACE, row).rowcount
    return new, changed


def _begin_run(database: sqlite3.Connection, id: str, now: float) -> int:
    cursor = database.execute(
        "INSERT INTO runs (id, origin, received_at, updated_at, traces) VALUES (?, 'otlp', ?, ?, 1)",
        (id, now, now),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def _grow(
    database: sqlite3.Connection, run: int, new: int, changed: int, start_ns: int | None, now: float
) -> None:
    start = None if start_ns is None else start_ns / 1e9
    database.execute(
        """UPDATE runs SET spans = spans + ?1, revision = revision + ?2, updated_at = ?3,
            started_at = COALESCE(MIN(started_at, ?4), started_at, ?4) WHERE key = ?5""",
        (new, new + changed, now, start, run),
    )


def fresh_id(database: sqlite3.Connection, wanted: str) -> str:
    """``wanted``, or ``wanted~2`` and so on where a run has that id; a long one is cut."""
    if len(wanted) > MOST_ID:
        digest = hashlib.blake2b(wanted.encode(), digest_size=8).hexdigest()
        wanted = f"{wanted[:MOST_ID]}~{digest}"
    run_id, count = wanted, 1
    while database.execute("SELECT 1 FROM runs WHERE id = ?", (run_id,)).fetchone():
        count += 1
        run_id = f"{wanted}~{count}"
    return run_id


def drop_kept(database: sqlite3.Connection, run: int) -> None:
    """Delete what was made of the run: traces, scores, claims."""
    for table in ("traces", "scores", "claims"):
        database.execute(f"DELETE FROM {table} WHERE run = ?", (run,))
