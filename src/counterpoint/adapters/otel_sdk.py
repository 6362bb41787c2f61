"""Spans as the OpenTelemetry SDK's console exporter prints them (``span.to_json()``).

One JSON object a span: a line each, indented one after the other, or in a list::

    {"name": "chat gpt-4o", "context": {"trace_id": "0x5b8e...", "span_id": "0xeee1..."}, "parent_id": null,
     "kind": "SpanKind.CLIENT", "start_time": "2026-01-01T00:00:00.000000Z", "end_time": "...",
     "status": {"status_code": "OK"}, "attributes": {"gen_ai.operation.name": "chat"}, "events": [],
     "links": [], "resource": {...}}
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from counterpoint.adapters._items import Items
from counterpoint.adapters._otlp import nanoseconds, span_id, trace_id
from counterpoint.adapters._runs import traces
from counterpoint.adapters._source import opening, records
from counterpoint.adapters._spans import Span, service_name
from counterpoint.adapters.dialects import ATTRIBUTES
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.json_text import decode, mend, parse_json
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]


def sniff(source: Source) -> bool:
    """Is this what the console exporter prints?"""
    return _is_span(opening(source).record)


def _is_span(item: Any) -> bool:
    if not isinstance(item, dict) or not isinstance(item.get("context"), dict):
        return False
    return "trace_id" in item["context"] and str(item.get("kind", "")).startswith("SpanKind.")


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every run among the spans of the file; a TraceError in place of each record that is no span."""
    spans: list[Span] = []

    def take(item: Any) -> bool:
        if fits := _is_span(item):
            spans.append(_span(item))
        return fits

    items = Items(source, "not a span of the OpenTelemetry SDK", documents=partial(records, parse=_parse))
    yield from items.give(take)
    if spans or not items.broken:
        linked = bool(source.options.get("linked"))
        yield from traces(
            spans, ATTRIBUTES, source=source.name, format="otel_sdk", warnings=items.warnings, linked=linked
        )


def _parse(text: bytes) -> tuple[Any, list[str]]:
    try:
        return parse_json(text)
    except ValueError:
        mended: set[str] = set()
        values = mend(_parse_several(decode(text, mended)), mended)
        return values, sorted(mended)


def _parse_several(text: str) -> list[Any]:
    """JSON values that stand one after the other."""
    decoder = json.JSONDecoder()
    values = []
    at = 0
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        values.append(value)
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
    return values


def _span(item: dict[str, Any]) -> Span:
    context, status = item["context"], item.get("status")
    code = status.get("status_code") if isinstance(status, dict) else None
    error = (
        str(status.get("description") or "error") if code == "ERROR" and isinstance(status, dict) else None
    )
    scope = item.get("instrumentation_scope") or item.get("instrumentation_info")
    of_process = _object(_object(item.get("resource")).get("attributes"))
    session = {key: value for key, value in of_process.items() if key == "session.id"}
    return Span(
        id=span_id(str(context.get("span_id") or "")),
        name=str(item.get("name") or ""),
        trace=trace_id(str(context.get("trace_id") or "")),
        parent=span_id(str(item.get("parent_id") or "")),
        start=nanoseconds(item.get("start_time")),
        end=nanoseconds(item.get("end_time")),
        attributes={**session, **_object(item.get("attributes"))},
        events=[
            (str(event.get("name") or ""), _object(event.get("attributes")))
            for event in _objects(item.get("events"))
        ],
        links=[
            span_id(str(_object(link.get("context")).get("span_id") or ""))
            for link in _objects(item.get("links"))
        ],
        scope=str(scope.get("name") or "") if isinstance(scope, dict) else "",
        service=service_name(of_process),
        error=error,
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
