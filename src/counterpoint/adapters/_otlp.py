"""OTLP as JSON: typed decoding of documents, and what their values mean.

Exporters differ: ids in hex, in hex with 0x, or in base64; 64-bit integers as text or as numbers; camel or
snake case; attributes whose value is empty. All of them are read; an attribute that is none is left out.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct

from counterpoint.adapters._spans import Span, service_name
from counterpoint.adapters._times import seconds

__all__ = ["decode", "nanoseconds", "span_id", "trace_id"]


class _Value(Struct, gc=False):
    stringValue: str | None = None  # noqa: N815
    intValue: int | str | float | None = None  # noqa: N815
    doubleValue: float | str | None = None  # noqa: N815
    boolValue: bool | None = None  # noqa: N815
    bytesValue: str | None = None  # noqa: N815
    arrayValue: _Array | None = None  # noqa: N815
    kvlistValue: _List | None = None  # noqa: N815


class _Pair(Struct, gc=False):
    key: str = ""
    value: _Value | None = None


class _Array(Struct, gc=False):
    values: list[_Value] | None = None


class _List(Struct, gc=False):
    values: list[_Pair] | None = None


class _Event(Struct, gc=False):
    name: str = ""
    attributes: list[_Pair] | None = None


class _Link(Struct, gc=False):
    spanId: str = ""  # noqa: N815


class _Status(Struct, gc=False):
    code: int | str | None = None
    message: str | None = None


class _Span(Struct, gc=False):
    spanId: str  # noqa: N815
    traceId: str = ""  # noqa: N815
    parentSpanId: str | None = None  # noqa: N815
    name: str = ""
    startTimeUnixNano: int | str | float | None = None  # noqa: N815
    endTimeUnixNano: int | str | float | None = None  # noqa: N815
    attributes: list[_Pair] | None = None
    events: list[_Event] | None = None
    links: list[_Link] | None = None
    status: _Status | None = None


class _Named(Struct, gc=False):
    name: str | None = None


class _ScopeSpans(Struct, gc=False):
    scope: _Named | None = None
    spans: list[_Span] | None = None


class _Resource(Struct, gc=False):
    attributes: list[_Pair] | None = None


class _ResourceSpans(Struct, gc=False):
    resource: _Resource | None = None
    scopeSpans: list[_ScopeSpans] | None = None  # noqa: N815
    instrumentationLibrarySpans: list[_ScopeSpans] | None = None  # noqa: N815


class _Document(Struct, gc=False):
    resourceSpans: list[_ResourceSpans] | None = None  # noqa: N815


_DECODER = msgspec.json.Decoder(_Document)


def decode(text: bytes) -> list[Span]:
    """The spans of one OTLP/JSON document, in the order of the file.

    Raises msgspec.DecodeError or UnicodeDecodeError where the text is not JSON or not of OTLP's shape.
    """
    groups = _DECODER.decode(text).resourceSpans
    if groups is None:
        raise msgspec.DecodeError('no "resourceSpans"')
    return [span for group in groups for span in _spans(group)]


def convert(document: Any) -> tuple[list[Span], int]:
    """The spans of a document in another case or shape, and how many of them had to be left out."""
    spans: list[Span] = []
    wrong = 0
    for group in _groups(_camel(document)):
        session, service = _resource_of(group)
        for part in (*_items(group, "scopeSpans"), *_items(group, "instrumentationLibrarySpans")):
            scope = part.get("scope", part.get("instrumentationLibrary"))
            name = scope.get("name") if isinstance(scope, dict) else None
            for item in _items(part, "spans"):
                try:
                    if not isinstance(item.get("status"), dict):
                        item = {**item, "status": None}  # says nothing, and is no reason to lose the span
                    made = _span(msgspec.convert(_without_nulls(item), _Span), str(name or ""), service)
                    made.attributes = {**session, **made.attributes} if session else made.attributes
                    spans.append(made)
                except msgspec.ValidationError:
                    wrong += 1
    return spans, wrong


def _resource_of(group: dict[str, Any]) -> tuple[dict[str, Any], str]:
    try:
        return _told(msgspec.convert(_without_nulls(group.get("resource")), _Resource))
    except msgspec.ValidationError:
        return {}, ""


def _groups(document: Any) -> list[dict[str, Any]]:
    """The groups of a document, of a list of documents, or of an answer of Grafana Tempo."""
    if isinstance(document, list):
        return [group for each in document for group in _groups(each)]
    if isinstance(document, dict) and isinstance(document.get("trace"), dict):
        return _groups(document["trace"])
    return _items(document, "resourceSpans") or _items(document, "batches")


def _items(value: Any, key: str) -> list[dict[str, Any]]:
    items = value.get(key) if isinstance(value, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


_SNAKE = re.compile(r"_([a-z])")


def _camel(value: Any) -> Any:
    """Keys of OTLP in camel case; keys of attributes are values there and stay as they are."""
    if isinstance(value, dict):
        return {_SNAKE.sub(lambda found: found[1].upper(), key): _camel(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_camel(item) for item in value]
    return value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value


def _spans(group: _ResourceSpans) -> Iterator[Span]:
    session, service = _told(group.resource)
    for part in (*(group.scopeSpans or ()), *(group.instrumentationLibrarySpans or ())):
        name = (part.scope.name or "") if part.scope is not None else ""
        for span in part.spans or ():
            made = _span(span, name, service)
            made.attributes = {**session, **made.attributes} if session else made.attributes
            yield made


def _told(resource: _Resource | None) -> tuple[dict[str, Any], str]:
    """What a process says once for all of its spans: the session, where it is one, and its own name."""
    held = _attributes(resource.attributes) if resource is not None else {}
    return {key: held[key] for key in ("session.id",) if key in held}, service_name(held)


def _span(span: _Span, scope: str, service: str) -> Span:
    status = span.status
    error = None
    if status is not None and status.code in (2, "STATUS_CODE_ERROR", "ERROR"):
        error = status.message or "error"
    events: Sequence[tuple[str, dict[str, Any]]] = ()
    if span.events:
        events = [(event.name, _attributes(event.attributes)) for event in span.events]
    return Span(
        id=span_id(span.spanId),
        name=span.name,
        trace=trace_id(span.traceId),
        parent=span_id(span.parentSpanId) if span.parentSpanId else "",
        start=nanoseconds(span.startTimeUnixNano),
        end=nanoseconds(span.endTimeUnixNano),
        attributes=_attributes(span.attributes),
        events=events,
        links=[span_id(link.spanId) for link in span.links] if span.links else (),
        scope=scope,
        error=error,
        service=service,
    )


def _attributes(pairs: list[_Pair] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs or ():
        value = pair.value
        if value is not None:
            text = value.stringValue
            found[pair.key] = text if text is not None else _plain(value)
    return found


def _plain(value: _Value) -> Any:
    if value.stringValue is not None:
        return value.stringValue
    if value.intValue is not None:
        return int(value.intValue) if _is_number(value.intValue) else value.intValue
    if value.boolValue is not None:
        return value.boolValue
    if value.doubleValue is not None:
        return float(value.doubleValue) if _is_number(value.doubleValue) else value.doubleValue
    if value.arrayValue is not None:
        return [_plain(item) for item in value.arrayValue.values or ()]
    if value.kvlistValue is not None:
        return _attributes(value.kvlistValue.values)
    if value.bytesValue is not None:
        try:
            return base64.b64decode(value.bytesValue, validate=True)
        except binascii.Error:
            return value.bytesValue
    return None


def _is_number(value: int | float | str) -> bool:
    try:
        return float(value) - float(value) == 0  # neither text nor infinite
    except ValueError:
        return False


# --- ids and times -------------------------------------------------------------------------------

_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_NONE = "0" * 32
"""An id of zeros is no id."""


def span_id(text: str) -> str:
    """A span's id in lower-case hex, from hex, 0x-hex or base64 of 8 bytes; any other text as it is."""
    return _id(text, 16, 12)


def trace_id(text: str) -> str:
    """A trace's id in lower-case hex, from hex, 0x-hex or base64 of 16 bytes; any other text as it is."""
    return _id(text, 32, 24)


def _id(text: str, digits: int, base64_length: int) -> str:
    if len(text) == digits and text != _NONE[:digits]:
        return text.lower()
    if text[:2] in ("0x", "0X"):
        return text[2:].lower().zfill(digits)
    if len(text) == base64_length and not _HEX.fullmatch(text):
        try:
            return base64.b64decode(text, altchars=b"-_", validate=True).hex()
        except binascii.Error:
            try:
                return base64.b64decode(text, validate=True).hex()
            except binascii.Error:
                return text
    return "" if text.strip("0") == "" else text


def nanoseconds(value: Any) -> int:
    """Nanoseconds since the epoch from their number or its text, or from a time in any other form; else 0.

    >>> nanoseconds("1700000000000000001"), nanoseconds("1970-01-01T00:00:01.000002Z"), nanoseconds(None)
    (1700000000000000001, 1000002000, 0)
    """
    if type(value) is int and (value <= 0 or value >= 10**17):
        return max(value, 0)
    if isinstance(value, str):
        if value.isdecimal() and len(value) > 17:
            return int(value)
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            pass
        else:
            zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return max((zoned - _EPOCH) // timedelta(microseconds=1) * 1000, 0)
    in_seconds = seconds(value)
    return 0 if in_seconds is None else round(in_seconds * 1e9)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
