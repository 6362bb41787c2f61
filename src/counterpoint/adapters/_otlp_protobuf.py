"""OTLP as protobuf, decoded by protobuf's own parser; each attribute by itself.

The messages here are OTLP's, with the fields that are read and with attributes left as bytes. So an attribute
that cannot be read costs nothing but itself, and the many that are a plain text are cut out of their bytes
without an object of protobuf's for each; all others are decoded by the classes of opentelemetry-proto.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from counterpoint.adapters._spans import Span, service_name
from counterpoint.errors import MissingExtra

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from opentelemetry.proto.common.v1.common_pb2 import KeyValue
except ImportError as error:
    raise MissingExtra("OTLP as protobuf", "otlp") from error

__all__ = ["decode"]

_PACKAGE = "counterpoint.otlp"
_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "Data": {"resource_spans": (1, "ResourceSpans*")},
    "ResourceSpans": {"resource": (1, "Resource"), "scope_spans": (2, "ScopeSpans*")},
    "Resource": {"attributes": (1, "bytes*")},
    "ScopeSpans": {"scope": (1, "Scope"), "spans": (2, "Span*")},
    "Scope": {"name": (1, "bytes")},
    "Span": {
        "trace_id": (1, "bytes"), "span_id": (2, "bytes"), "parent_span_id": (4, "bytes"),
        "name": (5, "bytes"), "start": (7, "fixed64"), "end": (8, "fixed64"), "attributes": (9, "bytes*"),
        "events": (11, "Event*"), "links": (13, "Link*"), "status": (15, "Status"),
    },
    "Event": {"name": (2, "bytes"), "attributes": (3, "bytes*")},
    "Link": {"span_id": (2, "bytes")},
    "Status": {"message": (2, "bytes"), "code": (3, "int32")},
}  # fmt: skip
"""Message to its fields: number and type, with a star where it is repeated. Texts may be wrong: bytes."""


def _class_of(name: str) -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="otlp", package=_PACKAGE, syntax="proto3")
    for message, fields in _MESSAGES.items():
        made = file.message_type.add(name=message)
        for field, (number, kind) in fields.items():
            one = made.field.add(name=field, number=number, label=3 if kind.endswith("*") else 1)
            kind = kind.rstrip("*")
            if kind in _MESSAGES:
                one.type_name = f".{_PACKAGE}.{kind}"
            one.type = one.TYPE_MESSAGE if kind in _MESSAGES else getattr(one, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


_DATA = _class_of("Data")
_SHORT = 80
"""Bytes of the longest pair that is looked up before it is read."""
_MOST_KNOWN = 10_000
"""Pairs that are kept to be looked up."""


def decode(data: bytes) -> tuple[list[Span], int]:
    """The spans of one message, and how many of their attributes could not be read and were left out.

    ``ExportTraceServiceRequest`` and ``TracesData`` are written alike. Raises ValueError where the bytes are
    no such message.
    """
    message = _DATA()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise ValueError(str(error)) from None
    reader = _Reader()
    spans = []
    for group in message.resource_spans:
        held = reader.attributes(group.resource.attributes)
        session = {key: held[key] for key in ("session.id",) if key in held}
        service = service_name(held)
        for part in group.scope_spans:
            scope = _text(part.scope.name)
            made = [reader.span(span, scope, service) for span in part.spans]
            if session:
                for span in made:
                    span.attributes = {**session, **span.attributes}
            spans += made
    return spans, reader.wrong


class _Reader:
    """Reads the spans of one message, and counts what cannot be read."""

    def __init__(self) -> None:
        self.wrong = 0
        self.known: dict[bytes, tuple[str, Any]] = {}
        """Short pairs, and what they say."""

    def span(self, span: Any, scope: str, service: str) -> Span:
        status = span.status
        events = span.events
        links = span.links
        return Span(
            id=_id(span.span_id),
            name=_text(span.name),
            trace=_id(span.trace_id),
            parent=_id(span.parent_span_id),
            start=span.start,
            end=span.end,
            attributes=self.attributes(span.attributes),
            events=[(_text(event.name), self.attributes(event.attributes)) for event in events]
            if events
            else (),
            links=[_id(link.span_id) for link in links] if links else (),
            scope=scope,
            error=(_text(status.message) or "error") if status.code == 2 else None,
            service=service,
        )

    def attributes(self, pairs: Iterable[bytes]) -> dict[str, Any]:
        """Key to value. Most short pairs stand in many spans (of which model, agent, program): read once."""
        found: dict[str, Any] = {}
        known = self.known
        for pair in pairs:
            read = known.get(pair) if len(pair) <= _SHORT else None
            if read is None:
                read = _text_pair(pair) or self._other(pair)
                if read is None:
                    continue
                if len(pair) <= _SHORT and len(known) < _MOST_KNOWN and not isinstance(read[1], list | dict):
                    known[pair] = read
            found[read[0]] = read[1]
        return found

    def _other(self, pair: bytes) -> tuple[str, Any] | None:
        try:
            decoded = KeyValue.FromString(pair)
        except DecodeError:
            self.wrong += 1
            return None
        return decoded.key, _plain(decoded.value)


def _text_pair(pair: bytes) -> tuple[str, str] | None:
    r"""Key and value where the value is a text, as of most pairs; None where it may be anything else.

    Such a pair is ``\n``, size, key; ``\x12``, size, and in it ``\n``, size, text. Sizes under 128 are one
    byte, those under 16,384 two. Where the sizes add up to the whole, that is what a pair is.
    """
    try:
        at, end = pair[1] + 2, len(pair)
        outer, inner = pair[at + 1], pair[at + 3]
        if pair[0] != 10 or at > 129 or pair[at] != 18:
            return None
        if outer < 128:
            if inner == outer - 2 and outer == end - at - 2 and pair[at + 2] == 10:
                return pair[2:at].decode(), pair[at + 4 :].decode()
        elif inner == 10 and (outer & 127 | pair[at + 2] << 7) == end - at - 3:
            size, text = pair[at + 4], at + 5
            if size >= 128:
                size, text = size & 127 | pair[text] << 7, text + 1
            if size == end - text:
                return pair[2:at].decode(), pair[text:].decode()
    except (IndexError, UnicodeDecodeError):
        pass
    return None


def _id(data: bytes) -> str:
    return data.hex() if data.strip(b"\0") else ""  # an id of zeros is no id


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    plain = getattr(value, kind)
    if kind == "array_value":
        return [_plain(item) for item in plain.values]
    if kind == "kvlist_value":
        return {pair.key: _plain(pair.value) for pair in plain.values}
    return plain
