"""LangChain and LangGraph event streams: what ``astream_events(..., version="v2")`` yields, an event a line.

::

    {"event": "on_chat_model_start", "name": "ChatOpenAI", "run_id": "01a2...", "parent_ids": ["01a1..."],
     "data": {"input": {"messages": [[{"type": "human", "data": {"content": "2+2?"}}]]}},
     "metadata": {"langgraph_node": "planner", "langgraph_step": 1, "thread_id": "t1"}, "tags": []}
    {"event": "on_chat_model_stream", "run_id": "01a2...", "data": {"chunk": {...}}, ...}
    {"event": "on_chat_model_end", "run_id": "01a2...", "data": {"output": {...}, "input": {...}}, ...}

What counts
-----------
* Start and end of a run are one span. Chunks repeat its output, at each level of nesting anew, and are
  dropped; those of a model call that never ended are put together to its reply.
* Agents are LangGraph nodes; texts of others in a model's prompt are heard (context).
* **Not in the file**: times. Order is that of the events. Version 1 has no parents either: its runs are one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from counterpoint.adapters._items import Items
from counterpoint.adapters._langgraph import message_usage
from counterpoint.adapters._messages import as_json, chats
from counterpoint.adapters._runs import Dialect, traces
from counterpoint.adapters._source import opening
from counterpoint.adapters._spans import Reading, Span, Tree
from counterpoint.adapters._transcript import without_times
from counterpoint.adapters.dialects import langgraph
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace, Usage

__all__ = ["read", "sniff"]


def sniff(source: Source) -> bool:
    """Events ``on_..._start`` with a ``run_id`` and ``data``."""
    return _is_event(opening(source).record)


def _is_event(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("run_id"), str):
        return False
    event = value.get("event")
    return isinstance(event, str) and event.startswith("on_") and isinstance(value.get("data"), dict)


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every run among the events; a TraceError in place of each record that is no event."""
    runs = _Runs()

    def take(event: Any) -> bool:
        if found := _is_event(event):
            runs.add(event)
        return found

    items = Items(source, "not an event of astream_events")
    yield from items.give(take)
    runs.close()
    if runs.spans or not items.broken:
        dialect = Dialect(_read, facts=_facts)
        found = list(runs.spans.values())
        for trace in traces(
            found, dialect, source=source.name, format="langchain_events", warnings=items.warnings
        ):
            yield trace if isinstance(trace, TraceError) else without_times(trace)


class _Runs:
    """The spans while their events come in; the number of an event stands for its time."""

    def __init__(self) -> None:
        self.spans: dict[str, Span] = {}
        self._chunks: dict[str, list[str]] = {}
        self._now = 0

    def add(self, event: dict[str, Any]) -> None:
        self._now += 1
        kind, _, moment = event["event"].removeprefix("on_").rpartition("_")
        span = self.spans.get(event["run_id"])
        if span is None:
            span = self.spans[event["run_id"]] = _span(event, kind, self._now)
        data = event["data"]
        if moment == "stream":
            self._keep(span, data.get("chunk"))
            return
        span.attributes |= {key: data[key] for key in ("input", "output") if data.get(key) is not None}
        if moment in ("end", "error"):
            span.end = self._now
            self._chunks.pop(span.id, None)
        if moment == "error":
            span.error = str(data.get("error") or "error")

    def _keep(self, span: Span, chunk: Any) -> None:
        if span.attributes["kind"] in ("chat_model", "llm"):
            texts = self._chunks.setdefault(span.id, [])
            texts += [chat.text for chat in chats(chunk)]

    def close(self) -> None:
        """What was streamed of model calls that never ended stands for their output."""
        for run, texts in self._chunks.items():
            self.spans[run].attributes["output"] = "".join(texts)
        if not any(span.parent for span in self.spans.values()):
            first = next(iter(self.spans), "")
            for span in self.spans.values():  # Version 1 tells no parents: all that was streamed is one run.
                span.trace = first


def _span(event: dict[str, Any], kind: str, now: int) -> Span:
    given = event.get("parent_ids")
    parents = [parent for parent in given if isinstance(parent, str)] if isinstance(given, list) else []
    metadata = event.get("metadata")
    return Span(
        id=event["run_id"],
        name=str(event.get("name") or ""),
        trace=parents[0] if parents else event["run_id"],
        parent=parents[-1] if parents else "",
        start=now,
        attributes={"kind": kind, "metadata": metadata if isinstance(metadata, dict) else {}},
    )


# --- what a run says -----------------------------------------------------------------------------


def _read(span: Span) -> Reading | None:
    run = span.attributes
    given, gave = run.get("input"), run.get("output")
    reading: Reading | None = None
    if run["kind"] in ("chat_model", "llm"):
        said = chats(gave, "assistant")
        usage = _usage(gave, run["metadata"].get("ls_model_name"))
        reading = Reading("model", shown=chats(given, "user"), said=said, usage=usage)
    elif run["kind"] == "tool":
        reading = _tool(span, given, gave)
    reading = langgraph.placed(reading, run["metadata"], given, gave)
    if reading is None and not span.parent:
        return Reading(input=given, output=gave)
    return reading


def _tool(span: Span, given: Any, gave: Any) -> Reading:
    messages = chats(gave, "tool")
    result = messages[-1].text if messages else as_json(gave)
    return Reading(
        "tool",
        tool=span.name,
        arguments=as_json(given),
        result=result if gave is not None else None,
        call=messages[-1].answers if messages else "",
    )


def _usage(output: Any, model: Any) -> Usage | None:
    """Tokens on the reply; of older shapes, on the first reply among the generations."""
    while isinstance(output, dict) and ("generations" in output or "message" in output):
        output = output.get("message", output.get("generations"))
        while isinstance(output, list) and output:
            output = output[0]
    usage = message_usage(output)
    if usage is not None and usage.model is None and isinstance(model, str):
        usage = replace(usage, model=model)
    return usage


def _facts(tree: Tree, *_: Any) -> dict[str, Any]:
    metadata = [span.attributes["metadata"] for span in tree.spans]
    graph = any("langgraph_node" in each for each in metadata)
    thread = next((each["thread_id"] for each in metadata if each.get("thread_id")), None)
    labels = {"session.id": str(thread), "thread_id": str(thread)} if thread else {}
    return {"system": "langgraph" if graph else "langchain", "labels": labels}
