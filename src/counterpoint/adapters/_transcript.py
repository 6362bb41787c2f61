"""Logs of messages as spans: who said what, called which tool, and which agent ran inside the call.

Formats that record messages, not spans, make spans of them here, so that turns are split, merged and joined
by the same rules as everywhere (`_turns`, `_runs`)::

    transcript = Transcript()
    lead = transcript.speaker("lead")
    lead.hear(Chat("What is the population of Lyon?", "user"))
    lead.say(Chat("", "assistant", calls=(ToolCall("c1", "searcher", '{"task": "Lyon"}'),)))
    searcher = transcript.speaker("searcher", inside=lead.call("c1"))
    searcher.say(Chat("520,000", "assistant"))
    searcher.done()
    lead.result("c1", "520,000")
    lead.say(Chat("About half a million.", "assistant"))
    lead.done()
    transcript.trace(source="run.json", format="mine")

Events come in their order. Where times are known they are kept, pushed apart by a nanosecond where they are
equal or run backward; where none is known the trace has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from counterpoint.adapters._messages import Chat
from counterpoint.adapters._runs import Dialect, traces
from counterpoint.adapters._spans import Reading, Span
from counterpoint.errors import TraceError
from counterpoint.trace import Trace, Usage

__all__ = ["READING", "Speaker", "Transcript", "reading_of", "without_times"]

READING = "reading"
"""Attribute under which a span that an adapter made carries what it means."""


def reading_of(span: Span) -> Reading | None:
    """What a span means that was made together with its meaning."""
    reading: Reading | None = span.attributes[READING]
    return reading


class Transcript:
    """The spans of one run, made from its messages in order."""

    def __init__(self) -> None:
        self._spans: list[Span] = []
        self._turns = 0
        self.hosts: set[str] = set()
        """Ids of the spans of tool calls in which an agent ran."""
        self._now = 0
        self._first = 0
        """The first known time; 0: none is known."""
        self._untimed = 0
        """How many events came before it."""

    def speaker(
        self,
        agent: str,
        *,
        id: str = "",
        agent_id: str = "",
        inside: Span | None = None,
        at: float | None = None,
    ) -> Speaker:
        """Begins a turn of ``agent``; ``inside``: the tool call that runs it. ``at``: seconds."""
        self._turns += 1
        if inside is not None:
            self.hosts.add(inside.id)
        reading = Reading("agent", agent, agent_id, rule="the format's agent name")
        return Speaker(self, self.begin(reading, inside, id=id or str(self._turns), at=at))

    def begin(self, reading: Reading, parent: Span | None, *, id: str = "", at: float | None = None) -> Span:
        """A span that begins now; it has no end before `end`."""
        span = Span(
            id=id or f"span {len(self._spans)}",
            name=reading.agent or reading.tool or reading.role,
            parent=parent.id if parent is not None else "",
            start=self._tick(at),
            attributes={READING: reading},
        )
        self._spans.append(span)
        return span

    def end(self, span: Span, at: float | None = None) -> None:
        """Ends a span now."""
        span.end = self._tick(at)

    def _tick(self, at: float | None) -> int:
        if at is not None and not self._first:
            self._untimed, self._first = self._now, int(at * 1e9)
        self._now = max(self._now + 1, int((at or 0) * 1e9))
        return self._now

    def _backdate(self) -> None:
        """Puts what came before the first known time right before it."""
        later = self._first - self._untimed - 1
        for span in self._spans:
            span.start += later if span.start <= self._untimed else 0
            span.end += later if 0 < span.end <= self._untimed else 0

    def trace(self, *, source: str, format: str, warnings: Sequence[str] = (), **facts: Any) -> Trace:
        """The trace; ``facts`` are fields of it. Raises TraceError where nobody said anything."""
        labels = facts.pop("labels", {})
        if self._first:
            self._backdate()
        dialect = Dialect(reading_of, facts=lambda *_: {**facts, "labels": labels})
        trace = next(traces(self._spans, dialect, source=source, format=format, warnings=warnings))
        if isinstance(trace, TraceError):
            raise trace
        trace = replace(trace, labels=labels)  # Without those that tell of spans: the file has none.
        return trace if self._first else without_times(trace)


class Speaker:
    """One agent at work, from the begin of its turn to its end."""

    def __init__(self, transcript: Transcript, span: Span) -> None:
        self.span = span
        self._transcript = transcript
        self._history: list[Chat] = []
        self._tools: dict[str, Span] = {}
        """Tool spans that are not ended, by call id."""
        self._news = 0
        """Where that part of the history begins which the last prompt of this turn did not hold."""

    def hear(self, *messages: Chat) -> None:
        """Messages that the agent is shown from now on."""
        self._history += messages

    def say(
        self,
        reply: Chat,
        usage: Usage | None = None,
        *,
        at: float | None = None,
        until: float | None = None,
        shown: list[Chat] | None = None,
        error: str | None = None,
    ) -> None:
        """One model call and its reply; ``shown`` where its prompt is not simply all that came before."""
        prompt = self._history[self._news :] if shown is None else shown
        reading = Reading("model", shown=prompt, said=[reply], usage=usage)
        span = self._transcript.begin(reading, self.span, at=at)
        span.error = error
        self._transcript.end(span, until)
        self._news = len(self._history)
        self._history.append(reply)
        for call in reply.calls:
            self.call(call.id, call.name, call.arguments)

    def call(self, id: str, name: str = "", arguments: str = "") -> Span:
        """The span of a tool call, begun now if it was not before: what runs in it is put inside."""
        if id not in self._tools:
            reading = Reading("tool", tool=name, arguments=arguments, call=id)
            self._tools[id] = self._transcript.begin(reading, self.span)
        return self._tools[id]

    def result(
        self,
        id: str,
        text: str,
        *,
        name: str = "",
        arguments: str = "",
        failed: bool = False,
        at: float | None = None,
    ) -> None:
        """Ends a tool call with its result, which the agent is shown from now on."""
        span = self.call(id, name, arguments)
        self._transcript.end(self._tools.pop(id), at)
        if failed:
            span.error = text or "error"
        else:
            span.attributes[READING].result = text
        self.hear(Chat(text, "tool", answers=id))
        if span.id in self._transcript.hosts:
            self._news = 0  # A new part of the turn begins: its prompt is told in full.

    def done(self, at: float | None = None) -> None:
        """Ends the turn; calls still open have no result."""
        for span in self._tools.values():
            self._transcript.end(span)
        self._tools.clear()
        self._transcript.end(self.span, at)


def without_times(trace: Trace) -> Trace:
    """The trace without the made-up times that put its events in order."""
    steps = tuple(
        replace(
            step,
            started_at=None,
            ended_at=None,
            calls=tuple(replace(call, started_at=None, ended_at=None) for call in step.calls),
        )
        for step in trace.steps
    )
    return replace(trace, steps=steps)
