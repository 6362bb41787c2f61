"""What is wrong in the file of a store, a line each."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator

from counterpoint.errors import TraceError
from counterpoint.json_text import parse_json
from counterpoint.protobuf import fields
from counterpoint.store.wire import resource_spans
from counterpoint.trace import decode

__all__ = ["problems", "search_problem"]

SHOWN = 5
"""Problems of one sort that are told before the rest is only counted."""


def problems(database: sqlite3.Connection) -> Iterator[str]:
    """Everything that is wrong in the file, a line each; of each sort the first few."""
    try:
        damage = [text for (text,) in database.execute("PRAGMA integrity_check(20)") if text != "ok"]
    except sqlite3.DatabaseError as error:
        damage = [str(error)]
    if damage:
        yield from (f"the file is damaged: {' '.join(text.split())}" for text in damage)
        return
    for check in (_orphans, _envelopes, _spans, _runs, _traces):
        yield from _some(check(database), check.__name__.strip("_"))


def _some(found: Iterator[str], what: str) -> Iterator[str]:
    more = 0
    for number, problem in enumerate(found):
        if number < SHOWN:
            yield problem
        else:
            more += 1
    if more:
        yield f"... and {more} more problems of {what}"


_ORPHANS = {
    "a trace id of no run": "SELECT hex(id) FROM trace_ids WHERE run NOT IN (SELECT key FROM runs)",
    "a span of no trace": "SELECT hex(id) FROM spans WHERE trace NOT IN (SELECT key FROM trace_ids)",
    "a span without its envelope": """SELECT hex(id) FROM spans
        WHERE envelope NOT IN (SELECT key FROM envelopes)""",
    "a trace of no run": "SELECT id FROM traces WHERE run NOT IN (SELECT key FROM runs)",
    "claims of no run": "SELECT DISTINCT run FROM claims WHERE run NOT IN (SELECT key FROM runs)",
    "text of no run": "SELECT run FROM texts WHERE run NOT IN (SELECT key FROM runs)",
    "a text that the search index lacks": "SELECT run FROM texts WHERE run NOT IN (SELECT rowid FROM search)",
    "scores without their trace": """SELECT DISTINCT scores.trace FROM scores WHERE NOT EXISTS (
        SELECT 1 FROM traces WHERE traces.run = scores.run AND traces.id = scores.trace)""",
}


def _orphans(database: sqlite3.Connection) -> Iterator[str]:
    for what, query in _ORPHANS.items():
        for (name,) in database.execute(query):
            yield f"{what}: {str(name).lower()}"


def _envelopes(database: sqlite3.Connection) -> Iterator[str]:
    parse = _parser("TracesData")
    for key, content in database.execute("SELECT key, content FROM envelopes"):
        try:
            parse(resource_spans(content, ()))
        except ValueError as error:
            yield f"envelope {key} does not parse: {error}"


def _spans(database: sqlite3.Connection) -> Iterator[str]:
    parse = _parser("Span")
    for trace, span, payload in database.execute(
        "SELECT trace_ids.id, spans.id, payload FROM spans JOIN trace_ids ON trace_ids.key = trace"
    ):
        try:
            parse(payload)
            ids = {number: payload[body:end] for number, kind, _, body, end in fields(payload) if kind == 2}
            if (ids.get(1), ids.get(2)) != (trace, span):
                raise ValueError("its ids are not those it was stored under")
        except ValueError as error:
            yield f"run of trace {trace.hex()}: span {span.hex()} does not parse: {error}"


def _parser(message: str) -> Callable[[bytes], object]:
    """Reads a message of OTLP in full; without the extra ``otlp`` its outermost fields only."""
    try:
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
        from opentelemetry.proto.trace.v1 import trace_pb2
    except ImportError:
        return lambda content: list(fields(content))
    read = getattr(trace_pb2, message).FromString

    def parse(content: bytes) -> object:
        try:
            return read(content)
        except DecodeError as error:
            raise ValueError(str(error)) from None

    return parse


def _runs(database: sqlite3.Connection) -> Iterator[str]:
    for run, told, found in database.execute(
        """SELECT runs.id, runs.spans, (SELECT COUNT(*) FROM spans JOIN trace_ids ON trace_ids.key = trace
            WHERE trace_ids.run = runs.key) AS found FROM runs
            WHERE found <> runs.spans OR (found = 0 AND origin = 'otlp')"""
    ):
        yield f"run {run}: has {found} spans, {told} were counted" if found else f"run {run}: has no spans"
    for (run,) in database.execute(
        """SELECT id FROM runs WHERE origin <> 'otlp' AND error = ''
            AND NOT EXISTS (SELECT 1 FROM traces WHERE run = runs.key)"""
    ):
        yield f"run {run}: has no trace"


def _traces(database: sqlite3.Connection) -> Iterator[str]:
    for run, content in database.execute(
        "SELECT runs.id, content FROM traces JOIN runs ON runs.key = traces.run"
    ):
        try:
            decode(parse_json(content)[0])
        except (TraceError, ValueError) as error:
            yield f"run {run}: its trace cannot be read: {error}"


def search_problem(database: sqlite3.Connection) -> list[str]:
    """What is wrong with the search index: nothing, or one line."""
    try:
        database.execute("INSERT INTO search(search) VALUES ('integrity-check')")
    except sqlite3.DatabaseError as error:
        return [f"the search index does not fit the texts: {error}"]
    return []
