"""Langfuse's API: a trace with its observations, or observations in a list or one a line.

::

    {"id": "t1", "name": "report", "sessionId": "s1", "input": {...}, "output": {...}, "observations": [
      {"id": "o1", "traceId": "t1", "parentObservationId": null, "type": "GENERATION", "name": "ChatOpenAI",
       "startTime": "2026-01-01T00:00:00.000Z", "endTime": "...", "model": "gpt-4o",
       "input": [{"role": "user", "content": "Hi"}], "output": {"role": "assistant", "content": "Hi!"},
       "metadata": {}, "level": "DEFAULT", "usageDetails": {"input": 5, "output": 2}}]}

Exports to files write the same fields in snake case. Spans that Langfuse's SDK sends as OpenTelemetry are
read by `otlp`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from counterpoint.adapters._items import Items
from counterpoint.adapters._otlp import nanoseconds
from counterpoint.adapters._runs import traces
from counterpoint.adapters._source import opening
from counterpoint.adapters._spans import Span
from counterpoint.adapters.dialects import ATTRIBUTES
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]

_TYPES = {
    "SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "GUARDRAIL",
    "EMBEDDING",
}  # fmt: skip


def sniff(source: Source) -> bool:
    """Is this an answer or an export of Langfuse?"""
    record = opening(source).record
    items = record.get("observations", record.get("data"))
    return _is_observation(items[0] if isinstance(items, list) and items else record)


def _is_observation(item: Any) -> bool:
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        return False
    return item["type"] in _TYPES and bool({"traceId", "trace_id"} & set(item))


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every trace among the observations of the file; a TraceError in place of each record that is none."""
    spans: list[Span] = []
    sessions: dict[str, str] = {}

    def take(item: Any) -> bool:
        if found := _is_observation(item):
            spans.append(_span(item))
        return found

    items = Items(
        source, "not an observation of Langfuse", split=lambda value: _observations(value, sessions)
    )
    yield from items.give(take)
    if spans or not items.broken:
        found = traces(spans, ATTRIBUTES, source=source.name, format="langfuse", warnings=items.warnings)
        for trace in found:
            if isinstance(trace, Trace):
                session = sessions.get(str(trace.labels.get("trace_id")))
                labels = {**trace.labels, **({"session.id": session} if session else {})}
                trace = replace(trace, system=trace.system or "langfuse", labels=labels)
            yield trace


def _observations(value: Any, sessions: dict[str, str]) -> list[Any]:
    """The observations in a document; what it says about sessions goes to ``sessions``."""
    if isinstance(value, list):
        return [item for each in value for item in _observations(each, sessions)]
    if isinstance(value, dict) and isinstance(value.get("observations"), list):
        session = value.get("sessionId", value.get("session_id"))
        if session:
            sessions[str(value.get("id"))] = str(session)
        return list(value["observations"])
    if isinstance(value, dict) and isinstance(value.get("data"), list):
        return _observations(value["data"], sessions)
    return [value]


def _span(item: dict[str, Any]) -> Span:
    def get(camel: str, snake: str) -> Any:
        return item.get(camel, item.get(snake))

    usage = get("usageDetails", "usage_details") or item.get("usage")
    cost = get("costDetails", "cost_details") or {"total": get("calculatedTotalCost", "total_cost")}
    attributes = {
        "langfuse.observation.type": str(item["type"]).lower(),
        "langfuse.observation.input": item.get("input"),
        "langfuse.observation.output": item.get("output"),
        "langfuse.observation.metadata": item.get("metadata"),
        "langfuse.observation.usage_details": usage,
        "langfuse.observation.cost_details": cost,
        "langfuse.observation.model.name": get("model", "provided_model_name"),
    }
    session = get("sessionId", "session_id")
    if session:
        attributes["session.id"] = str(session)
    error = item.get("level") == "ERROR"
    return Span(
        id=str(item.get("id") or ""),
        name=str(item.get("name") or ""),
        trace=str(get("traceId", "trace_id")),
        parent=str(get("parentObservationId", "parent_observation_id") or ""),
        start=nanoseconds(get("startTime", "start_time")),
        end=nanoseconds(get("endTime", "end_time")),
        attributes={key: value for key, value in attributes.items() if value is not None},
        error=str(get("statusMessage", "status_message") or "error") if error else None,
    )
