"""What was made of a run into the tables, and traces of files as runs of their own.

Conventions
-----------
* What is kept of a run is replaced as a whole, in one transaction, and never by something older.
* A trace that was added before, from the same file under the same id, is the same run: nothing is done where
  it did not change, else it takes the old one's place and is due for scoring again.
* The same trace under the same id from another place (a copy, the folder in place of the file) is there
  already. Another trace whose id is taken gets ``~2`` behind it.
* An id is masked like any text. What tells two ids apart that are one when masked is a hash of a few bits.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from counterpoint.secrets import mask
from counterpoint.store.receiving import drop_kept, fresh_id
from counterpoint.store.records import Kept, clean, kept
from counterpoint.store.searching import put_text
from counterpoint.trace import Trace

__all__ = ["Added", "FileTrace", "add", "file_trace", "keep"]

_KEPT_STEP = """UPDATE runs SET system = ?, task = ?, agents = ?, answer = ?, correct = ?,
    started_at = COALESCE(?, started_at), ended_at = ?, steps = ?, head = ?, error = ? WHERE key = ?"""


class Added(NamedTuple):
    """What became of a trace that was added."""

    run: str
    """Id of its run."""
    outcome: Literal["new", "changed", "unchanged"]


class FileTrace(NamedTuple):
    """A trace of a file, ready to be written."""

    trace: Trace
    """Its id is masked."""
    name: str
    """What it is known by, of all traces of its file."""
    kept: Kept
    digest: bytes
    """Of all but where it was read from."""


def file_trace(trace: Trace, *, keep_secrets: bool) -> FileTrace:
    """The trace with what tells whether it changed."""
    name = written = clean(trace.id)
    if not keep_secrets and (masked := mask(written)) != written:
        # So few bits that many a value has them: whoever guesses the masked one learns next to nothing.
        name = f"{masked}~{hashlib.blake2b(written.encode(), digest_size=3).hexdigest()}"
        trace = replace(trace, id=masked)
    what = kept([trace], (), (), "", keep_secrets=keep_secrets)
    ((_, text),) = what.traces
    same = msgspec.json.encode(replace(msgspec.json.decode(text, type=Trace), source=""))
    return FileTrace(trace, name, what, hashlib.blake2b(same, digest_size=16).digest())


def add(database: sqlite3.Connection, one: FileTrace, origin: str, *, keep_secrets: bool) -> Added:
    """A trace of a file as a run of its own, due for scoring."""
    now, name, origin = time.time(), one.name, clean(origin)
    known = database.execute(
        "SELECT key, id, digest FROM runs WHERE origin = ? AND name = ?", (origin, name)
    ).fetchone()
    same = (
        known
        or database.execute(
            "SELECT key, id, digest FROM runs WHERE digest = ? AND name = ?", (one.digest, name)
        ).fetchone()
    )
    if same is not None and same[2] == one.digest:
        return Added(same[1], "unchanged")
    if known is None:
        run_id = fresh_id(database, clean(one.trace.id))
        run = database.execute(
            "INSERT INTO runs (id, origin, name, received_at, updated_at, traces) VALUES (?, ?, ?, ?, ?, 1)",
            (run_id, origin, name, now, now),
        ).lastrowid
        assert run is not None
    else:
        run, run_id, _ = known
    database.execute(
        "UPDATE runs SET digest = ?, revision = revision + 1, updated_at = ? WHERE key = ?",
        (one.digest, now, run),
    )
    what = one.kept
    if run_id != one.trace.id:
        what = kept([replace(one.trace, id=run_id)], (), (), "", keep_secrets=keep_secrets)
    _replace(database, run, what)
    return Added(run_id, "new" if known is None else "changed")


def keep(database: sqlite3.Connection, run_id: str, revision: int, what: Kept) -> None:
    """What was made of the run's ``revision``; nothing where the run is gone or a newer one is kept."""
    row = database.execute("SELECT key, scored_revision FROM runs WHERE id = ?", (clean(run_id),)).fetchone()
    if row is None or revision < row[1]:
        return
    _replace(database, row[0], what)
    database.execute("UPDATE runs SET scored_revision = ? WHERE key = ?", (revision, row[0]))


def _replace(database: sqlite3.Connection, run: int, what: Kept) -> None:
    drop_kept(database, run)
    database.executemany(
        "INSERT INTO traces (run, id, content) VALUES (?, ?, ?)", [(run, *one) for one in what.traces]
    )
    database.executemany(
        "INSERT INTO scores (run, trace, metric, value, content) VALUES (?, ?, ?, ?, ?)",
        [(run, *row) for row in what.rows],
    )
    database.executemany(
        "INSERT INTO claims (run, content) VALUES (?, ?)", [(run, claim) for claim in what.claims]
    )
    *columns, text = what.summary
    database.execute(_KEPT_STEP, (*columns, what.error, run))
    put_text(database, run, text)
