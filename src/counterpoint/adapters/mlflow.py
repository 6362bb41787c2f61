"""MLflow traces as JSON: one trace, a list of them, or one a line (``trace.to_json()``).

::

    {"info": {"trace_id": "tr-a9d6...", "request_time": "...", "trace_metadata": {"mlflow.user": "root"}},
     "data": {"spans": [{"trace_id": "qdbf...==", "span_id": "ktmS...=", "parent_span_id": null,
       "name": "optimist", "start_time_unix_nano": 1796048916824058985, "end_time_unix_nano": ...,
       "status": {"code": "STATUS_CODE_OK"}, "attributes": {"mlflow.spanType": "\\"AGENT\\"", ...}}]}}

Traces of MLflow 2 differ in names only: ``context.span_id``, ``parent_id``, ``start_time``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from msgspec.structs import replace

from counterpoint.adapters._otlp import nanoseconds, span_id, trace_id
from counterpoint.adapters._runs import traces
from counterpoint.adapters._source import each, listed, opening
from counterpoint.adapters._spans import Span
from counterpoint.adapters.dialects import ATTRIBUTES
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]


def sniff(source: Source) -> bool:
    """Is this a trace of MLflow?"""
    return _is_trace(opening(source).record)


def _is_trace(item: Any) -> bool:
    if not isinstance(item, dict) or not isinstance(item.get("info"), dict):
        return False
    return isinstance(item.get("data"), dict) and isinstance(item["data"].get("spans", []), list)


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every trace of the file; a TraceError in place of each record that is none."""
    yield from each(source, partial(_trace, source=source.name), split=listed)


def _trace(item: Any, *, source: str) -> Trace:
    if not _is_trace(item):
        raise TraceError("not a trace of MLflow")
    info = item["info"]
    name = str(info.get("trace_id") or info.get("request_id") or "")
    spans = [_span(span, name) for span in item["data"].get("spans", ()) if isinstance(span, dict)]
    metadata = info.get("trace_metadata") or info.get("request_metadata")
    session = metadata.get("mlflow.trace.session") if isinstance(metadata, dict) else None
    trace = next(traces(spans, ATTRIBUTES, source=source, format="mlflow"))
    if isinstance(trace, TraceError):
        raise trace
    labels = {**trace.labels, **({"session.id": session} if session else {})}
    return replace(trace, system=trace.system or "mlflow", labels=labels)


def _span(item: dict[str, Any], trace: str) -> Span:
    context, status = _object(item.get("context")), _object(item.get("status"))
    code = str(status.get("code") or item.get("status_code") or "")
    message = status.get("message") or item.get("status_message")
    start = item.get("start_time_unix_nano", item.get("start_time"))
    end = item.get("end_time_unix_nano", item.get("end_time"))
    return Span(
        id=span_id(str(item.get("span_id") or context.get("span_id") or "")),
        name=str(item.get("name") or ""),
        trace=trace_id(trace),
        parent=span_id(str(item.get("parent_span_id") or item.get("parent_id") or "")),
        start=nanoseconds(start),
        end=nanoseconds(end),
        attributes=_object(item.get("attributes")),
        error=str(message or "error") if code.endswith("ERROR") else None,
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
