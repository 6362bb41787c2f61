"""Inspect's events of a sample as spans, whatever year they are from.

Newer logs have spans (``span_begin``, ``span_end``); those up to about spring 2025 have steps that begin and
end, and put the events of a tool or subtask inside it; all of them have model and tool events. A tool's span
and its event are one thing in two records.

Long texts stand in ``attachments`` and are referred to; newer logs also pool the messages of all prompts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from counterpoint.adapters._messages import Chat, as_json, as_text, chats, json_or_text
from counterpoint.adapters._otlp import nanoseconds
from counterpoint.adapters._spans import Reading, Span
from counterpoint.adapters._transcript import READING
from counterpoint.adapters._usage import usage_of

__all__ = ["SampleSpans"]

_REFERENCES = ("attachment://", "tc://")


class SampleSpans:
    """The spans of a sample while its events come in."""

    def __init__(self, sample: Mapping[str, Any]) -> None:
        self.spans: list[Span] = []
        transcript = sample.get("transcript")
        texts = sample.get("attachments")
        if not isinstance(texts, dict):
            texts = transcript.get("content") if isinstance(transcript, dict) else {}
        self._texts = texts if isinstance(texts, dict) else {}
        pooled = sample.get("events_data")
        messages = pooled.get("messages") if isinstance(pooled, dict) else None
        self._pool = messages if isinstance(messages, list) else []
        self._by_id: dict[str, Span] = {}
        self._unmatched: list[Span] = []
        """Spans of tools whose event has not come yet."""
        self._latest = 0

    def add_all(self, events: Any, parent: str = "") -> None:
        """Adds events, in order; ``parent`` is the span around those that name none."""
        steps = [parent]
        for event in events if isinstance(events, list) else ():
            if not isinstance(event, dict):
                continue
            kind = event.get("event")
            at = nanoseconds(event.get("timestamp"))
            self._latest = max(self._latest, at)
            if kind == "step":
                self._step(event, steps, at)
                continue
            around = event.get("span_id")
            around = around if isinstance(around, str) and around in self._by_id else steps[-1]
            if kind == "span_begin":
                self._begin(event, around, at)
            elif kind == "span_end" and (span := self._by_id.get(str(event.get("id")))):
                span.end = at
            elif kind == "model":
                self._model(event, around, at)
            elif kind == "tool":
                self._tool(event, around, at)
            elif kind == "subtask":
                span = self._open(str(event.get("name") or kind), around, at, None)
                self.add_all(event.get("events"), span.id)
                span.end = nanoseconds(event.get("completed")) or self._latest

    def _open(self, name: str, parent: str, at: int, reading: Reading | None, *, id: str = "") -> Span:
        span = Span(id or f"event {len(self.spans)}", name, parent=parent, start=at)
        span.attributes = {READING: reading}
        self.spans.append(span)
        self._by_id[span.id] = span
        return span

    def _begin(self, event: dict[str, Any], around: str, at: int) -> None:
        name, kind = str(event.get("name") or ""), event.get("type")
        parent = event.get("parent_id")
        span = self._open(
            name, str(parent) if parent else "", at, _scope(kind, name), id=str(event.get("id"))
        )
        if kind == "tool":
            self._unmatched.append(span)

    def _step(self, event: dict[str, Any], steps: list[str], at: int) -> None:
        name, kind = str(event.get("name") or ""), event.get("type")
        if event.get("action") == "begin":
            steps.append(self._open(name, steps[-1], at, _scope(kind, name)).id)
        elif len(steps) > 1:
            self._by_id[steps.pop()].end = at

    def _model(self, event: dict[str, Any], around: str, at: int) -> None:
        output = event.get("output")
        output = self._whole(output) if isinstance(output, dict) else {}
        error = event.get("error") or output.get("error")
        choices = output.get("choices")
        said = chats({"choices": choices[:1]}, "assistant") if isinstance(choices, list) else []
        took = output.get("time")
        model = output.get("model") or event.get("model")
        reading = Reading(
            "model",
            shown=self._shown(event),
            said=list(map(_submitted, said)),
            usage=usage_of(output.get("usage"), model=model),
        )
        span = self._open("model", around, at, reading)
        span.end = nanoseconds(event.get("completed")) or (0 if event.get("pending") else at)
        if span.end == at and isinstance(took, int | float) and took > 0:
            span.end += int(took * 1e9)
        span.error = as_json(error) if error else None

    def _shown(self, event: dict[str, Any]) -> list[Chat]:
        """The prompt: its messages, or the ranges of the pool that it refers to."""
        messages = event.get("input")
        messages = list(messages) if isinstance(messages, list) else []
        ranges = event.get("input_refs")
        for item in ranges if isinstance(ranges, list) else ():
            if isinstance(item, list) and len(item) == 2 and all(type(end) is int for end in item):
                messages += self._pool[max(item[0], 0) : max(item[1], 0)]
        return chats(self._whole(messages), "user")

    def _tool(self, event: dict[str, Any], around: str, at: int) -> None:
        name = str(event.get("function") or "")
        reading = Reading(
            "tool",
            tool=name,
            arguments=as_json(self._whole(event.get("arguments"))),
            call=str(event.get("id") or ""),
            target=str(event.get("agent") or "") if event.get("agent_span_id") is None else "",
        )
        error = event.get("error")
        if not error and event.get("result") is not None:
            result = self._whole(event["result"])
            reading.result = result if isinstance(result, str) else as_text(result)
        span = self._span_of(name, around)
        if span is None:
            span = self._open(name, around, at, None)
            self.add_all(event.get("events"), span.id)
            span.end = nanoseconds(event.get("completed")) or self._latest
        span.attributes = {READING: reading}
        span.error = as_text(error.get("message") if isinstance(error, dict) else error) if error else None

    def _span_of(self, name: str, around: str) -> Span | None:
        """The span of the tool that was called in ``around``, directly or by a hand-over."""
        for span in reversed(self._unmatched):
            above = self._by_id.get(span.parent)
            if span.name == name and around in (span.parent, above.parent if above else None):
                self._unmatched.remove(span)
                return span
        return None

    def _whole(self, value: Any) -> Any:
        """``value`` with its references to attachments followed."""
        if isinstance(value, str):
            for mark in _REFERENCES:
                if value.startswith(mark):
                    return self._texts.get(value.removeprefix(mark), value)
            return value
        if isinstance(value, list):
            return [self._whole(item) for item in value]
        if isinstance(value, dict):
            return {key: self._whole(item) for key, item in value.items()}
        return value


def _submitted(reply: Chat) -> Chat:
    """The reply with the answer that it submits as its text, as Inspect writes it into the messages."""
    for call in reply.calls:
        answer = json_or_text(call.arguments) if call.name == "submit" and not reply.text else None
        if isinstance(answer, dict) and isinstance(answer.get("answer"), str):
            return Chat(answer["answer"], reply.role, reply.keys, reply.name, reply.calls)
    return reply


def _scope(kind: Any, name: str) -> Reading | None:
    """What opens a turn: an agent, or a judge; solvers are turns only if no agent is in them."""
    if kind == "agent":
        return Reading("agent", name, rule="agent span")
    if kind == "scorer":
        return Reading("agent", name, rule="span name", control=True)
    return None
