"""What `counterpoint.record` writes: an event a line, of one run or of several at once.

Sample, three lines::

    {"schema": "counterpoint.recording/1", "event": "begin", "run": "5f0c", "name": "my-run", "at": 1.0,
     "task": "2+2?", "gold": "4", "system": "pair"}
    {"schema": "counterpoint.recording/1", "event": "step", "run": "5f0c",
     "step": {"id": "s1", "agent": "solver", "text": "The answer is 4.", "ended_at": 2.0}}
    {"schema": "counterpoint.recording/1", "event": "end", "run": "5f0c", "at": 3.0, "answer": "4"}

A step is one of the native format. A run is given after its last event; one without an end, and one with
events after its end, with a warning.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from counterpoint.adapters._recorded import assembled
from counterpoint.adapters._source import opening, records
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]


def sniff(source: Source) -> bool:
    """Does the first event carry our schema?"""
    return str(opening(source).record.get("schema", "")).startswith("counterpoint.recording/")


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every run in the file; a TraceError in place of each event that cannot be read."""
    yield from assembled(partial(records, source), source.name)
