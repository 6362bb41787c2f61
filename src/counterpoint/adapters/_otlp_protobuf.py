"""OTLP as protobuf, decoded by the classes of opentelemetry-proto."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from counterpoint.adapters._spans import Span
from counterpoint.errors import MissingExtra

try:
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
except ImportError as error:
    raise MissingExtra("OTLP as protobuf", "otlp") from error

__all__ = ["decode"]


def decode(data: bytes) -> list[Span]:
    """The spans of one message (``ExportTraceServiceRequest`` and ``TracesData`` are written alike).

    Raises ValueError where the bytes are no such message.
    """
    message = TracesData()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise ValueError(str(error)) from None
    return [
        _span(span, part.scope.name)
        for group in message.resource_spans
        for part in group.scope_spans
        for span in part.spans
    ]


def _span(span: Any, scope: str) -> Span:
    events = [(event.name, _attributes(event.attributes)) for event in span.events] if span.events else ()
    status = span.status
    return Span(
        id=span.span_id.hex(),
        name=span.name,
        trace=span.trace_id.hex(),
        parent=span.parent_span_id.hex(),
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        attributes=_attributes(span.attributes),
        events=events,
        links=[link.span_id.hex() for link in span.links] if span.links else (),
        scope=scope,
        error=(status.message or "error") if status.code == 2 else None,
    )


def _attributes(pairs: Iterable[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        value = pair.value
        # Most values are texts or numbers, and asking for these costs less than asking what a value is.
        found[pair.key] = value.string_value or value.int_value or _plain(value)
    return found


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    plain = getattr(value, kind)
    if kind == "array_value":
        return [_plain(item) for item in plain.values]
    if kind == "kvlist_value":
        return _attributes(plain.values)
    return plain
