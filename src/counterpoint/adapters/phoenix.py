"""Arize Phoenix: spans from its REST interface as JSON, or its data frame of spans as Parquet.

The answer of ``GET /v1/projects/{project}/spans``, the list in it, or a span a line::

    {"data": [{"id": "...", "name": "planner", "context": {"trace_id": "cb19...", "span_id": "2564..."},
      "span_kind": "CHAIN", "parent_id": null, "start_time": "2026-01-01T00:00:00+00:00", "end_time": "...",
      "status_code": "OK", "status_message": "", "attributes": {"input.value": "..."}, "events": []}],
     "next_cursor": null}

In Parquet (extra ``parquet``) each attribute is a column ``attributes.<key>``; lists of messages are nested.
The attributes are OpenInference.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from counterpoint.adapters._items import Items, paged
from counterpoint.adapters._otlp import nanoseconds, span_id, trace_id
from counterpoint.adapters._runs import traces
from counterpoint.adapters._source import Record, opening, records
from counterpoint.adapters._spans import Span
from counterpoint.adapters.dialects import ATTRIBUTES
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]


def sniff(source: Source) -> bool:
    """Is this Phoenix's JSON, or its Parquet?"""
    if source.head[:4] == b"PAR1":
        return b"context.span_id" in source.tail
    record = opening(source).record
    data = record.get("data")
    return _is_span(data[0] if isinstance(data, list) and data else record)


def _is_span(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and isinstance(item.get("context"), dict)
        and "span_id" in item["context"]
        and "span_kind" in item
    )


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every run among the spans of the file; a TraceError in place of each record that is no span."""
    spans: list[Span] = []
    parquet = source.head[:4] == b"PAR1"

    def take(item: Any) -> bool:
        if fits := parquet or _is_span(item):
            spans.append(span(item))
        return fits

    items = Items(source, "not a span of Phoenix", split=paged, documents=_rows if parquet else records)
    yield from items.give(take)
    if spans or not items.broken:
        yield from traces(spans, ATTRIBUTES, source=source.name, format="phoenix", warnings=items.warnings)


def _rows(source: Source) -> Iterator[Record | TraceError]:
    from counterpoint.adapters import _phoenix_parquet

    return _phoenix_parquet.rows(source)


def span(item: dict[str, Any]) -> Span:
    """A span from a row or object of Phoenix."""
    context = item["context"]
    attributes = item.get("attributes")
    attributes = dict(attributes) if isinstance(attributes, dict) else {}
    if item.get("span_kind"):
        attributes.setdefault("openinference.span.kind", item["span_kind"])
    if "metadata" not in attributes:
        # The REST interface flattens what the Parquet file has as one object.
        flat = {key[9:]: value for key, value in attributes.items() if key.startswith("metadata.")}
        attributes |= {"metadata": flat} if flat else {}
    events = item.get("events")
    return Span(
        id=span_id(str(context.get("span_id") or "")),
        name=str(item.get("name") or ""),
        trace=trace_id(str(context.get("trace_id") or "")),
        parent=span_id(str(item.get("parent_id") or "")),
        start=nanoseconds(item.get("start_time")),
        end=nanoseconds(item.get("end_time")),
        attributes=attributes,
        events=[
            (str(event.get("name") or ""), event.get("attributes") or {})
            for event in (events if isinstance(events, list) else ())
            if isinstance(event, dict)
        ],
        error=str(item.get("status_message") or "error") if item.get("status_code") == "ERROR" else None,
    )
