"""Counterpoint's own format: JSONL, one trace a line (`counterpoint.trace`), or Parquet, one trace a row.

Sample line::

    {"schema": "counterpoint.trace/1", "id": "q1", "task": "2+2?", "gold": "4", "steps": [
       {"id": "s1", "agent": "solver", "text": "The answer is 4."},
       {"id": "s2", "agent": "critic", "text": "Agreed: 4.", "heard": [{"source": "s1"}]}]}

Ids, source and labels stay as they are, so that what `write` wrote reads back as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from counterpoint.adapters._source import each, listed, opening
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import SCHEMA, Step, Trace, decode

__all__ = ["read", "sniff"]

_PARQUET = b"PAR1"


def sniff(source: Source) -> bool:
    """Is the first record a trace: does it carry our schema, or an id and steps with agents?"""
    if source.head.startswith(_PARQUET):
        return SCHEMA.encode() in source.tail
    record = opening(source).record
    if str(record.get("schema", "")).startswith("counterpoint.trace/"):
        return True
    steps = record.get("steps")
    if "id" not in record or not isinstance(steps, list):
        return False
    return not steps or any(isinstance(step, dict) and "agent" in step for step in steps)


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every line or row as a trace."""
    if source.head.startswith(_PARQUET):
        from counterpoint.adapters import _parquet

        yield from _parquet.read(source)
    else:
        yield from each(source, _decode, split=listed)


def _decode(record: Any, *, source: str = "", number: int | None = None) -> Trace:
    """As `decode`; a 0 among points in time is one that was not set."""
    trace = decode(record, source=source, number=number)
    latest = max(
        (time for step in trace.steps for time in (step.started_at or 0, step.ended_at or 0)), default=0
    )
    steps = tuple(_without_zeros(step) for step in trace.steps) if latest > _YEAR_S else trace.steps
    if steps == trace.steps:
        return trace
    unset = sum(step != other for step, other in zip(steps, trace.steps, strict=True))
    return replace(
        trace, steps=steps, warnings=(*trace.warnings, f"{unset} steps have a time of 0: taken for unknown")
    )


_YEAR_S = 365 * 86_400
"""Longer than any run: times up to it are counted from the run's begin, and 0 is one of them."""


def _without_zeros(step: Step) -> Step:
    return replace(step, started_at=step.started_at or None, ended_at=step.ended_at or None)
