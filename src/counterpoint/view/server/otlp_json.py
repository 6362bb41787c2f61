"""OTLP as JSON, span by span to protobuf, so that the store keeps one form only.

Conventions
-----------
Ids are hex, enums numbers (their names are read, too), 64-bit integers numbers or text; unknown fields and
nulls are passed over. Each span is decoded by itself: one that is wrong does not take the others with it.
Exporters cut texts at a length and so through the middle of an emoji; what is left of it becomes U+FFFD.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Status
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Sent

from counterpoint.view.server.limits import Limits, TooLarge
from counterpoint.view.server.wire import Extent, Refused

__all__ = ["split_json"]


class _Struct(Struct, gc=False, rename="camel"):
    pass


class _Value(_Struct):
    string_value: str | None = None
    int_value: int | str | None = None
    double_value: float | str | None = None
    bool_value: bool | None = None
    bytes_value: str | None = None
    array_value: _Array | None = None
    kvlist_value: _List | None = None


class _Pair(_Struct):
    key: str = ""
    value: _Value | None = None


class _Array(_Struct):
    values: list[_Value] | None = None


class _List(_Struct):
    values: list[_Pair] | None = None


class _Event(_Struct):
    time_unix_nano: int | str | None = None
    name: str | None = None
    attributes: list[_Pair] | None = None
    dropped_attributes_count: int | None = None


class _Link(_Struct):
    trace_id: str | None = None
    span_id: str | None = None
    trace_state: str | None = None
    attributes: list[_Pair] | None = None
    dropped_attributes_count: int | None = None
    flags: int | None = None


class _Status(_Struct):
    code: int | str | None = None
    message: str | None = None


class _Span(_Struct):
    trace_id: str | None = None
    span_id: str | None = None
    trace_state: str | None = None
    parent_span_id: str | None = None
    flags: int | None = None
    name: str | None = None
    kind: int | str | None = None
    start_time_unix_nano: int | str | None = None
    end_time_unix_nano: int | str | None = None
    attributes: list[_Pair] | None = None
    dropped_attributes_count: int | None = None
    events: list[_Event] | None = None
    dropped_events_count: int | None = None
    links: list[_Link] | None = None
    dropped_links_count: int | None = None
    status: _Status | None = None


class _Scope(_Struct):
    name: str | None = None
    version: str | None = None
    attributes: list[_Pair] | None = None
    dropped_attributes_count: int | None = None


class _Resource(_Struct):
    attributes: list[_Pair] | None = None
    dropped_attributes_count: int | None = None


class _ScopeSpans(_Struct):
    scope: _Scope | None = None
    spans: list[Raw] | None = None
    schema_url: str | None = None


class _ResourceSpans(_Struct):
    resource: _Resource | None = None
    scope_spans: list[_ScopeSpans] | None = None
    schema_url: str | None = None


class _Request(_Struct):
    resource_spans: list[_ResourceSpans] | None = None


def split_json(body: bytes, limits: Limits) -> Iterator[tuple[bytes, bytes | Refused]]:
    """Envelope and span of every span of a request, both as protobuf; a span that is wrong as its reason.

    Raises ValueError where the body is no JSON or no request, and TooLarge where it holds too much.
    """
    if not body.strip():
        return
    if body.count(b",") > limits.json_values:
        raise TooLarge(f"JSON of more than {limits.json_values} values in one request: send fewer at once")
    try:
        groups = _request(body).resource_spans or ()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    extent = Extent(limits)
    for group in groups:
        extent.items(1)
        resource = None
        for part in group.scope_spans or ():
            spans = part.spans or ()
            extent.items(1 + len(spans))
            if not spans:
                continue
            if resource is None:
                resource = _resource(group)
            scope = _scope(part)
            extent.envelope(len(resource) + len(scope))
            envelope = resource + scope
            for span in spans:
                try:
                    yield envelope, _payload(_decoded(span))
                except Refused as error:
                    yield envelope, error


def _request(body: bytes) -> _Request:
    try:
        return msgspec.json.decode(body, type=_Request)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        if b"\\u" not in body:
            raise
        return msgspec.json.decode(_ESCAPE.sub(_whole, body), type=_Request)


_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""A whole escape: two halves of a surrogate pair, one half alone (the group), or anything else."""


def _whole(found: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if found[1] else found[0]


def _decoded(text: Raw) -> _Span:
    """Raises Refused where the text has another shape."""
    try:
        return msgspec.json.decode(text, type=_Span)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"a span that is not OTLP's JSON: {error}") from None


def _resource(group: _ResourceSpans) -> bytes:
    """``ResourceSpans`` without its scopes."""
    message = ResourceSpans(schema_url=group.schema_url or "")
    if group.resource is not None:
        message.resource.SetInParent()
        _fill(message.resource, group.resource, "dropped_attributes_count")
        _attributes(message.resource.attributes, group.resource.attributes)
    return bytes(message.SerializeToString())


def _scope(part: _ScopeSpans) -> bytes:
    """``ResourceSpans`` with this scope only, without its spans."""
    message = ResourceSpans()
    scope = message.scope_spans.add(schema_url=part.schema_url or "")
    if part.scope is not None:
        scope.scope.SetInParent()
        _fill(scope.scope, part.scope, "name", "version", "dropped_attributes_count")
        _attributes(scope.scope.attributes, part.scope.attributes)
    return bytes(message.SerializeToString())


_PLAIN = (
    "trace_state", "flags", "name", "dropped_attributes_count", "dropped_events_count", "dropped_links_count",
)  # fmt: skip


def _payload(span: _Span) -> bytes:
    """The span as protobuf. Raises Refused where a value is out of its range."""
    try:
        sent = Sent(
            trace_id=bytes.fromhex(span.trace_id or ""),
            span_id=bytes.fromhex(span.span_id or ""),
            parent_span_id=bytes.fromhex(span.parent_span_id or ""),
            kind=_enum(Sent.SpanKind, span.kind),
            start_time_unix_nano=int(span.start_time_unix_nano or 0),
            end_time_unix_nano=int(span.end_time_unix_nano or 0),
        )
        _fill(sent, span, *_PLAIN)
        _attributes(sent.attributes, span.attributes)
        for event in span.events or ():
            made = sent.events.add(time_unix_nano=int(event.time_unix_nano or 0))
            _fill(made, event, "name", "dropped_attributes_count")
            _attributes(made.attributes, event.attributes)
        for link in span.links or ():
            linked = sent.links.add(
                trace_id=bytes.fromhex(link.trace_id or ""), span_id=bytes.fromhex(link.span_id or "")
            )
            _fill(linked, link, "trace_state", "dropped_attributes_count", "flags")
            _attributes(linked.attributes, link.attributes)
        if span.status is not None:
            sent.status.code = _enum(Status.StatusCode, span.status.code)
            _fill(sent.status, span.status, "message")
    except (ValueError, TypeError) as error:
        raise Refused(f"a span that is not OTLP's JSON: {error}") from None
    return bytes(sent.SerializeToString())


def _enum(kind: Any, value: int | str | None) -> Any:
    if isinstance(value, str) and not value.isdecimal():
        return int(kind.Value(value))
    return int(value or 0)


def _fill(message: Any, source: Struct, *names: str) -> None:
    for name in names:
        value = getattr(source, name)
        if value:
            setattr(message, name, value)


def _attributes(into: Any, pairs: list[_Pair] | None) -> None:
    for pair in pairs or ():
        made: KeyValue = into.add(key=pair.key)
        if pair.value is not None:
            _value(made.value, pair.value)


def _value(into: AnyValue, value: _Value) -> None:
    if value.string_value is not None:
        into.string_value = value.string_value
    elif value.int_value is not None:
        into.int_value = int(value.int_value)
    elif value.bool_value is not None:
        into.bool_value = value.bool_value
    elif value.double_value is not None:
        into.double_value = float(value.double_value)
    elif value.array_value is not None:
        into.array_value.SetInParent()
        for item in value.array_value.values or ():
            _value(into.array_value.values.add(), item)
    elif value.kvlist_value is not None:
        into.kvlist_value.SetInParent()
        _attributes(into.kvlist_value.values, value.kvlist_value.values)
    elif value.bytes_value is not None:
        into.bytes_value = base64.b64decode(value.bytes_value, validate=True)
    else:
        into.SetInParent()
