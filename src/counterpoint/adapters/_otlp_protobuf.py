"""OTLP as protobuf, decoded by the classes of opentelemetry-proto."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from counterpoint.adapters._spans import Span
from counterpoint.errors import MissingExtra

try:
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
except ImportError as error:
    raise MissingExtra("OTLP as protobuf", "otlp") from error

__all__ = ["decode"]


def decode(data: bytes) -> tuple[list[Span], int]:
    """The spans of one message, and how many of their fields could not be read and were left out.

    ``ExportTraceServiceRequest`` and ``TracesData`` are written alike. Raises ValueError where the bytes are
    no such message.
    """
    message = TracesData()
    wrong = 0
    try:
        message.ParseFromString(data)
    except DecodeError:
        kept, wrong = _readable(TracesData, data)
        message.ParseFromString(kept)
    spans = []
    for group in message.resource_spans:
        session = _attributes(pair for pair in group.resource.attributes if pair.key == "session.id")
        for part in group.scope_spans:
            name = part.scope.name
            made = [_span(span, name) for span in part.spans]
            if session:
                for span in made:
                    span.attributes = {**session, **span.attributes}
            spans += made
    return spans, wrong


def _span(span: Any, scope: str) -> Span:
    events = [(event.name, _attributes(event.attributes)) for event in span.events] if span.events else ()
    status = span.status
    return Span(
        id=_id(span.span_id),
        name=span.name,
        trace=_id(span.trace_id),
        parent=_id(span.parent_span_id),
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        attributes=_attributes(span.attributes),
        events=events,
        links=[_id(link.span_id) for link in span.links] if span.links else (),
        scope=scope,
        error=(status.message or "error") if status.code == 2 else None,
    )


def _id(data: bytes) -> str:
    return data.hex() if data.strip(b"\0") else ""  # an id of zeros is no id


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


# --- messages of which a part cannot be read -----------------------------------------------------


def _readable(kind: Any, data: bytes) -> tuple[bytes, int]:
    """A message without the fields in it that cannot be read, and their number; ValueError if it is none.

    What holds such a field is kept without it, down to the single attributes.
    """
    kept: list[bytes] = []
    wrong = 0
    for number, start, content, end in _fields(data):
        piece = data[start:end]
        try:
            kind.FromString(piece)
        except DecodeError:
            field = kind.DESCRIPTOR.fields_by_number.get(number)
            inner = field.message_type if field is not None else None
            if inner is None or inner.name == "KeyValue" or data[start] & 7 != _SIZED:
                wrong += 1
                continue
            rest, left_out = _readable(inner._concrete_class, data[content:end])
            wrong += left_out
            piece = data[start : start + 1] + _varint(len(rest)) + rest
        kept.append(piece)
    return b"".join(kept), wrong


_SIZED = 2
_FIXED = {1: 8, 5: 4}
"""Wire types: texts and messages come after their size; numbers of a fixed size."""


def _fields(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Number of each field of a message, where it starts, where its content starts, and where it ends."""
    at = 0
    while at < len(data):
        start = at
        tag, at = _read_varint(data, at)
        kind = tag & 7
        if kind == _SIZED:
            size, at = _read_varint(data, at)
        elif kind == 0:
            size = _read_varint(data, at)[1] - at
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            raise ValueError(f"there is no wire type {kind}")
        if at + size > len(data):
            raise ValueError("the message is cut off")
        yield tag >> 3, start, at, at + size
        at += size


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise ValueError("the message is cut off")
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
    raise ValueError("a number is longer than 64 bits")


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])
