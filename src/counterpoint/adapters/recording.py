"""What `counterpoint.record` writes: an event a line, of one run or of several at once.

Sample, three lines::

    {"schema": "counterpoint.recording/1", "event": "begin", "run": "5f0c", "name": "my-run", "at": 1.0,
     "task": "2+2?", "gold": "4", "system": "pair"}
    {"schema": "counterpoint.recording/1", "event": "step", "run": "5f0c",
     "step": {"id": "s1", "agent": "solver", "text": "The answer is 4.", "ended_at": 2.0}}
    {"schema": "counterpoint.recording/1", "event": "end", "run": "5f0c", "at": 3.0, "answer": "4"}

A step is one of the native format. A run is given when it ends; one without an end last, with a
warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from counterpoint.adapters._source import Record, opening, records
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Step, Trace

__all__ = ["read", "sniff"]

SCHEMA = "counterpoint.recording/1"

_ABOUT = ("task", "gold", "system", "labels", "answer", "correct")


def sniff(source: Source) -> bool:
    """Does the first event carry our schema?"""
    return str(opening(source).record.get("schema", "")).startswith("counterpoint.recording/")


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every run in the file; a TraceError in place of each event that cannot be read."""
    runs: dict[str, _Run] = {}
    ended: set[str] = set()
    names: Counter[str] = Counter()
    for record in records(source):
        if isinstance(record, TraceError):
            yield record
            continue
        try:
            event, key = _event(record.value)
            if key in ended:
                raise TraceError("the run of this event has ended before")
            if key not in runs:
                name = str(record.value.get("name", key)) if event == "begin" else key
                names[name] += 1
                runs[key] = _Run(name if names[name] == 1 else f"{name}#{names[name]}")
            runs[key].take(event, record)
        except TraceError as error:
            yield TraceError(error.message, source=source.name, record=record.number)
            continue
        if event == "end":
            ended.add(key)
            yield runs.pop(key).trace()
    for run in runs.values():
        run.warnings.append("the recording has no end: the run was cut off or is still going on")
        yield run.trace()


def _event(value: Any) -> tuple[str, str]:
    """Kind of the event, and the key of its run."""
    if not isinstance(value, dict):
        raise TraceError(f"an event is a JSON object, found {type(value).__name__}")
    if value.get("schema") != SCHEMA:
        raise TraceError(f"schema {value.get('schema')!r} is not {SCHEMA!r}: written by another version?")
    event, key = value.get("event"), value.get("run")
    if event not in ("begin", "step", "end"):
        raise TraceError(f"event {event!r} is none of begin, step, end")
    if not isinstance(key, str):
        raise TraceError('an event has no "run" that says which run it is of')
    return event, key


class _Run:
    """One run, as far as its events have come."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.begun = False
        self.about: dict[str, Any] = {}
        self.steps: list[Step] = []
        self.warnings: list[str] = []

    def take(self, event: str, record: Record) -> None:
        """Adds one event; raises TraceError, and is as it was, where it is not of the format's shape."""
        try:
            if event == "step":
                self.steps.append(msgspec.convert(record.value.get("step"), Step))
            else:
                told = {key: value for key in _ABOUT if (value := record.value.get(key)) is not None}
                msgspec.convert({"id": "", "steps": [], **told}, Trace)
                self.about.update(told)
        except msgspec.ValidationError as error:
            raise TraceError(f"not an event of a recording: {error}") from None
        finally:
            self.begun = self.begun or event == "begin"
            self.warnings += record.warnings
            if event == "end" and (wrong := record.value.get("error")) is not None:
                self.warnings.append(f"the run ended with an error: {str(wrong)[:500]}")

    def trace(self) -> Trace:
        """The run as far as it is known."""
        if not self.begun:
            self.warnings.append("the begin of the recording is missing: name, task and gold are not known")
        plain = {"id": self.name, "steps": [], **self.about}
        trace = msgspec.convert(plain, Trace)
        return msgspec.structs.replace(trace, steps=tuple(self.steps), warnings=tuple(self.warnings))
