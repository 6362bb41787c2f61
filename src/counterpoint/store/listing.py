"""The list of runs: searched, filtered, ordered, a page at a time.

Conventions
-----------
* A search is for text that stands somewhere in a run: in its id, system, task, agents and answer, and from
  three characters on in its steps too. Case does not matter; no character has a meaning of its own.
* Conditions on metrics are gates (`counterpoint.gates`); of several, all have to hold. A run without a value
  matches none.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from counterpoint.errors import UsageError
from counterpoint.gates import Gate, parse_gates
from counterpoint.registry import suggest
from counterpoint.store.records import STATES, Run, Runs, State, clean, searched
from counterpoint.store.searching import LEAST, match

__all__ = ["CORRECT", "ORDERS", "Query", "find", "list_runs"]

CORRECT = {"right": "correct = 1", "wrong": "correct = 0", "ungraded": "correct IS NULL"}
ORDERS = {
    "received": "received_at DESC, key DESC",
    "started": "started_at DESC, key DESC",
    "system": "system, key",
    "task": "task, key",
    "steps": "steps DESC, key",
    "spans": "spans DESC, key",
}
QUIET_S = 10.0
"""A run that is not scored is waiting for it, and no longer receiving, after so long without a span."""
_STATE = {
    "receiving": "revision > scored_revision AND origin = 'otlp' AND updated_at > ?",
    "waiting": "revision > scored_revision AND (origin <> 'otlp' OR updated_at <= ?)",
    "scored": "revision <= scored_revision AND error = ''",
    "unreadable": "revision <= scored_revision AND error <> ''",
}
_FOLDS = {"mean": "AVG", "min": "MIN", "max": "MAX"}
_COLUMNS = """key, id, origin, system, task, agents, answer, correct, started_at, ended_at, received_at,
    spans, steps, traces, revision, scored_revision, error, updated_at"""


class Query:
    """What of the list is asked for, as SQL."""

    def __init__(self) -> None:
        self.conditions: list[str] = []
        self.values: list[Any] = []

    def add(self, condition: str, *values: Any) -> None:
        """A further condition that has to hold."""
        self.conditions.append(condition)
        self.values += values

    @property
    def where(self) -> str:
        """The conditions as a clause."""
        return f"WHERE {' AND '.join(self.conditions)}" if self.conditions else ""

    def search(self, database: sqlite3.Connection, text: str) -> None:
        """Runs in which the text stands."""
        wanted = searched(text).strip()
        if not wanted:
            return
        if len(wanted) < LEAST:
            self.add("(instr(id, ?) OR instr(head, ?))", wanted, wanted)
            return
        # Looked through once, for the list and for its total.
        runs = database.execute(
            """SELECT run FROM texts WHERE instr(content, ?)
                AND run IN (SELECT rowid FROM search WHERE search MATCH ?)""",
            (wanted, match(wanted)),
        )
        found = msgspec.json.encode([run for (run,) in runs]).decode()
        self.add("(instr(id, ?) OR key IN (SELECT value FROM json_each(?)))", wanted, found)

    def gate(self, database: sqlite3.Connection, gate: Gate) -> None:
        """Runs whose value of a metric is as stated."""
        fold = _FOLDS.get(gate.fold)
        if fold is None:
            raise UsageError(f"{gate.text!r}: of one run there are no intervals: write mean, min or max")
        if not _is_metric(database, gate.metric):
            raise UsageError(f"no run has {gate.metric!r}{suggest(gate.metric, _metrics(database))}")
        self.add(
            f"""key IN (SELECT run FROM scores WHERE metric = ? AND value IS NOT NULL
                GROUP BY run HAVING {fold}(value) {gate.comparison} ?)""",
            gate.metric, gate.threshold,
        )  # fmt: skip


def list_runs(
    database: sqlite3.Connection,
    *,
    search: str,
    system: str | None,
    state: str,
    correct: str,
    where: str,
    order: str,
    limit: int,
    offset: int,
) -> Runs:
    """One page of the runs that match; a UsageError where a filter makes no sense."""
    query = Query()
    query.search(database, search)
    if system is not None:
        query.add("system = ?", clean(system))
    if state:
        condition = _STATE[_among(state, STATES, "state")]
        query.add(condition, *[time.time() - QUIET_S] * condition.count("?"))
    if correct:
        query.add(CORRECT[_among(correct, tuple(CORRECT), "correct")])
    for gate in parse_gates(where) if where.strip() else ():
        query.gate(database, gate)
    order_by, ordered = _order(database, order)
    (total,) = database.execute(f"SELECT COUNT(*) FROM runs {query.where}", query.values).fetchone()
    rows = database.execute(
        f"SELECT {_COLUMNS} FROM runs {query.where} ORDER BY {order_by} LIMIT ? OFFSET ?",
        [*query.values, *ordered, max(limit, 0), max(offset, 0)],
    ).fetchall()
    systems = database.execute("SELECT DISTINCT system FROM runs WHERE system <> '' ORDER BY system")
    return Runs(_runs(database, rows), total, tuple(name for (name,) in systems))


def find(database: sqlite3.Connection, run_id: str) -> Run | None:
    """The run of that id, or the one that the trace of that id was joined into."""
    rows = database.execute(f"SELECT {_COLUMNS} FROM runs WHERE id = ?", (clean(run_id),)).fetchall()
    if not rows:
        rows = database.execute(
            f"""SELECT {_COLUMNS} FROM runs
                WHERE key = (SELECT run FROM trace_ids WHERE id = ? AND seen)""",
            (_trace_id(run_id),),
        ).fetchall()
    return next(iter(_runs(database, rows)), None)


def _trace_id(run_id: str) -> bytes:
    try:
        return bytes.fromhex(run_id)
    except ValueError:
        return b""


def _among(value: str, choices: Sequence[str], what: str) -> str:
    if value not in choices:
        raise UsageError(f"{what} {value!r} is none of {', '.join(choices)}{suggest(value, choices)}")
    return value


def _order(database: sqlite3.Connection, order: str) -> tuple[str, list[Any]]:
    """ORDER BY, and its values: a column or a metric; ``-`` in front turns it round."""
    name, backward = order.removeprefix("-"), order.startswith("-")
    if name in ORDERS:
        clause = ORDERS[name]
        if backward:
            swapped = [
                part.removesuffix(" DESC") if part.endswith(" DESC") else f"{part} DESC"
                for part in clause.split(", ")
            ]
            clause = ", ".join(swapped)
        return clause, []
    if not _is_metric(database, name):
        choices = [*ORDERS, *_metrics(database)]
        raise UsageError(f"order {name!r} is none of {', '.join(choices)}{suggest(name, choices)}")
    value = "(SELECT AVG(value) FROM scores WHERE metric = ? AND run = runs.key)"
    return f"{value} {'ASC' if backward else 'DESC'} NULLS LAST, key DESC", [name]


def _is_metric(database: sqlite3.Connection, name: str) -> bool:
    """Whether a run was scored by the metric; before the first was, whatever is a metric."""
    query = "SELECT EXISTS (SELECT 1 FROM scores WHERE metric = ?) OR NOT EXISTS (SELECT 1 FROM scores)"
    return bool(database.execute(query, (clean(name),)).fetchone()[0])


def _metrics(database: sqlite3.Connection) -> list[str]:
    return [name for (name,) in database.execute("SELECT DISTINCT metric FROM scores ORDER BY metric")]


def _runs(database: sqlite3.Connection, rows: list[Any]) -> tuple[Run, ...]:
    values: dict[int, dict[str, float | None]] = {row[0]: {} for row in rows}
    keys = list(values)
    for at in range(0, len(keys), 500):  # as many as any SQLite takes
        some = keys[at : at + 500]
        marks = ", ".join("?" * len(some))
        for run, metric, value in database.execute(
            f"""SELECT run, metric, AVG(value) FROM scores WHERE run IN ({marks})
                GROUP BY run, metric ORDER BY MIN(key)""",
            some,
        ):
            values[run][metric] = value
    return tuple(_run(row, values[row[0]]) for row in rows)


def _run(row: Any, values: dict[str, float | None]) -> Run:
    _, run_id, origin, system, task, agents, answer, correct, *times, spans, steps, traces = row[:14]
    revision, scored, error, updated = row[14:]
    state: State = "unreadable" if error else "scored"
    if revision > scored:
        state = "receiving" if origin == "otlp" and updated > time.time() - QUIET_S else "waiting"
    return Run(
        id=run_id,
        origin=origin,
        system=system,
        task=task,
        agents=tuple(msgspec.json.decode(agents)),
        answer=answer,
        correct=None if correct is None else bool(correct),
        started_at=times[0],
        ended_at=times[1],
        received_at=times[2],
        spans=spans,
        steps=steps,
        traces=traces,
        revision=revision,
        scored_revision=scored,
        error=error,
        values=values,
        state=state,
    )
