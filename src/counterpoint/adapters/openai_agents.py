"""OpenAI Agents SDK: the traces that it exports, as bodies of ``POST .../traces/ingest`` or an item a line.

::

    {"data": [
       {"object": "trace", "id": "trace_1", "workflow_name": "support", "group_id": "thread_4"},
       {"object": "trace.span", "id": "span_2", "trace_id": "trace_1", "parent_id": "span_1",
        "started_at": "2026-11-30T14:18:00.01+00:00", "ended_at": "...", "error": null,
        "span_data": {"type": "agent", "name": "Triage", "handoffs": ["Refunds"], "tools": []}},
       {"object": "trace.span", "id": "span_3", "trace_id": "trace_1", "parent_id": "span_2", ...,
        "span_data": {"type": "handoff", "from_agent": "Triage", "to_agent": "Refunds"}}]}

What counts
-----------
* The agent is the nearest agent span around, else the ``agent_name`` of a turn.
* A handoff span is an explicit transfer, an agent inside a function span a call and its return. Runs that
  share a trace only are known by their texts.
* An agent inside a guardrail guards: it hands no text on, and is a root of its own.
* **Without text**: over the Responses API spans hold a ``response_id`` and token counts, but no message. The
  run's items (see `openai_agents_items`) have the text; where both are read, the two become one trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from counterpoint.adapters._items import Items, paged
from counterpoint.adapters._messages import as_json, chats
from counterpoint.adapters._otlp import nanoseconds
from counterpoint.adapters._runs import Dialect, traces
from counterpoint.adapters._source import opening
from counterpoint.adapters._spans import Reading, Span, Tree
from counterpoint.adapters._usage import usage_of
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]

_OBJECTS = ("trace", "trace.span")


def sniff(source: Source) -> bool:
    """Objects ``trace`` and ``trace.span``, bare or in ``data``."""
    record = opening(source).record
    data = record.get("data")
    return _is_item(record) or (isinstance(data, list) and bool(data) and _is_item(data[0]))


def _is_item(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("id"), str):
        return False
    return value.get("object") == "trace" or (
        value.get("object") == "trace.span" and isinstance(value.get("span_data"), dict)
    )


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every trace; a TraceError in place of each record that is neither trace nor span."""
    spans: list[Span] = []
    heads: dict[str, dict[str, Any]] = {}

    def take(item: Any) -> bool:
        if not _is_item(item):
            return False
        if item["object"] == "trace":
            heads[item["id"]] = item
        else:
            spans.append(_span(item))
        return True

    items = Items(source, "neither a trace nor a trace.span of the OpenAI Agents SDK", split=paged)
    yield from items.give(take)
    _lift_errors(spans)
    if spans or not items.broken:
        dialect = Dialect(_read, facts=partial(_facts, heads))
        yield from traces(spans, dialect, source=source.name, format="openai_agents", warnings=items.warnings)


def _span(item: dict[str, Any]) -> Span:
    data, error = item["span_data"], item.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    kind = data.get("type")
    return Span(
        id=item["id"],
        name=str(data.get("name") or kind or ""),
        trace=str(item.get("trace_id") or ""),
        parent="" if kind == "guardrail" else str(item.get("parent_id") or ""),
        start=nanoseconds(item.get("started_at")),
        end=nanoseconds(item.get("ended_at")),
        attributes=data,
        error=str(message) if message else None,
    )


def _lift_errors(spans: list[Span]) -> None:
    """Errors of turns and tasks, which are wrappers, to the agent around or inside them."""
    by_id = {span.id: span for span in spans}
    for span in spans:
        around = by_id.get(span.parent)
        if span.error and around is not None and _is_wrapper(span) and not around.error:
            around.error = span.error


def _is_wrapper(span: Span) -> bool:
    return span.attributes.get("type") in ("custom", "turn", "task")


# --- what a span says ----------------------------------------------------------------------------


def _read(span: Span) -> Reading | None:
    data = span.attributes
    reader = _KINDS.get(str(data.get("type")))
    if reader is not None:
        made: Reading = reader(data)
        return made
    inner = data.get("data") if isinstance(data.get("data"), dict) else data
    name = inner.get("agent_name") if isinstance(inner, dict) else None
    return Reading(agent=name, rule="turn.agent_name") if isinstance(name, str) else None


def _agent(data: dict[str, Any]) -> Reading:
    return Reading("agent", str(data.get("name") or "agent"), rule="agent span")


def _model(data: dict[str, Any]) -> Reading:
    return Reading(
        "model",
        shown=chats(data.get("input"), "user"),
        said=chats(data.get("output"), "assistant"),
        usage=usage_of(data.get("usage"), model=data.get("model")),
    )


def _function(data: dict[str, Any]) -> Reading:
    output = data.get("output")
    return Reading(
        "tool",
        tool=str(data.get("name") or ""),
        arguments=as_json(data.get("input")),
        result=None if output is None else as_json(output),
    )


def _handoff(data: dict[str, Any]) -> Reading:
    return Reading("tool", tool="handoff", target=str(data.get("to_agent") or ""))


_KINDS: Mapping[str, Any] = {
    "agent": _agent,
    "generation": _model,
    "response": _model,
    "function": _function,
    "handoff": _handoff,
}


def _facts(heads: Mapping[str, dict[str, Any]], tree: Tree, *_: Any) -> dict[str, Any]:
    head = heads.get(tree.spans[0].trace, {})
    labels: dict[str, Any] = {}
    if head.get("workflow_name"):
        labels["workflow_name"] = head["workflow_name"]
    if head.get("group_id"):
        labels |= {"group_id": head["group_id"], "session.id": head["group_id"]}
    if isinstance(head.get("metadata"), dict):
        labels |= {f"metadata.{key}": value for key, value in head["metadata"].items()}
    triggered = [span.name for span in tree.spans if span.attributes.get("triggered") is True]
    if triggered:
        labels["guardrails_triggered"] = triggered
    return {"system": "openai-agents", "labels": labels}
