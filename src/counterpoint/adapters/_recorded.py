"""Events of a recording (`counterpoint.record`) to traces: lines of a file, or attributes of spans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace

from counterpoint.adapters._source import Record
from counterpoint.adapters._spans import Span
from counterpoint.errors import TraceError
from counterpoint.json_text import parse_json
from counterpoint.trace import Step, Trace

__all__ = ["ATTRIBUTE", "SCHEMA", "assembled", "from_spans"]

SCHEMA = "counterpoint.recording/1"
ATTRIBUTE = "counterpoint.recording"
"""The attribute of a span that holds an event."""

_ABOUT = ("task", "gold", "system", "labels", "answer", "correct")


def from_spans(spans: Iterable[Span], source: str, warnings: Sequence[str]) -> Iterator[Trace | TraceError]:
    """Every run that was recorded and sent as spans, one a trace id; each with the source's ``warnings``."""
    runs: dict[str, list[Span]] = {}
    for span in spans:
        runs.setdefault(span.trace, []).append(span)
    for trace_id, sent in runs.items():
        for item in assembled(partial(_events, sent), source):
            if isinstance(item, Trace):
                labels = {**item.labels, "trace_id": trace_id, "run": item.id}
                told = tuple(dict.fromkeys((*warnings, *item.warnings)))
                item = replace(item, labels=labels, warnings=told)
            yield item


def _events(spans: list[Span]) -> Iterator[Record | TraceError]:
    """The events that the spans of one run hold, in the order in which they were recorded."""
    for number, span in enumerate(sorted(spans, key=lambda span: span.id), 1):
        try:
            yield Record(number, *parse_json(str(span.attributes[ATTRIBUTE])))
        except ValueError as error:
            yield TraceError(f"the event in a span is not valid JSON: {error}", record=number)


def assembled(
    records: Callable[[], Iterable[Record | TraceError]], source: str
) -> Iterator[Trace | TraceError]:
    """Every run among the events, after its last event; a TraceError in place of each event that is none.

    The events are gone through twice, so that a run is held no longer than needed, and yet has what was said
    after its end: a forked process may have ended it.
    """
    last, count = _last_events(records())
    runs: dict[str, _Run] = {}
    names: Counter[str] = Counter()
    for index, record in enumerate(islice(records(), count)):  # the file may have grown
        if isinstance(record, TraceError):
            yield TraceError(record.message, source=source, record=record.record)
            continue
        try:
            event, key = _event(record.value)
        except TraceError as error:
            yield TraceError(error.message, source=source, record=record.number)
            continue
        if key not in runs:
            name = str(record.value.get("name", key)) if event == "begin" else key
            names[name] += 1
            runs[key] = _Run(name if names[name] == 1 else f"{name}#{names[name]}")
        try:
            runs[key].take(event, record)
        except TraceError as error:
            yield TraceError(error.message, source=source, record=record.number)
        if last.get(key) == index:
            yield runs.pop(key).trace()
    for run in runs.values():  # of a file that was cut meanwhile
        yield run.trace()


def _last_events(records: Iterable[Record | TraceError]) -> tuple[dict[str, int], int]:
    """Where the last event of each run stands, and how many records there are."""
    last: dict[str, int] = {}
    count = 0
    for record in records:
        if isinstance(record, Record):
            with suppress(TraceError):
                _, key = _event(record.value)
                last[key] = count
        count += 1
    return last, count


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
        self.begun = self.ended = False
        self.late = 0
        """Events after the first end."""
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
            self.late += self.ended
            self.ended = self.ended or event == "end"
            self.begun = self.begun or event == "begin"
            self.warnings += record.warnings
            if event == "end" and (wrong := record.value.get("error")) is not None:
                self.warnings.append(f"the run ended with an error: {str(wrong)[:500]}")

    def trace(self) -> Trace:
        """The run as far as it is known."""
        if not self.begun:
            self.warnings.append("the begin of the recording is missing: name, task and gold are not known")
        if not self.ended:
            self.warnings.append("the recording has no end: the run was cut off or is still going on")
        if self.late:
            stand = f"{self.late} events stand" if self.late > 1 else "an event stands"
            self.warnings.append(f"{stand} after the end of the run: another process may have ended it")
        plain = {"id": self.name, "steps": [], **self.about}
        trace = msgspec.convert(plain, Trace)
        return replace(trace, steps=tuple(self.steps), warnings=tuple(dict.fromkeys(self.warnings)))
