from __future__ import annotations

import contextlib
import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("opentelemetry.proto")

from google.protobuf.message import DecodeError
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, TracesData

from counterpoint.view.server.limits import Budget, Limits, Share, TooBusy, TooLarge
from counterpoint.view.server.otlp import unpack
from counterpoint.view.server.spans import decode
from counterpoint.view.server.wire import split


def world(resources: int, scopes: int, spans: int) -> TracesData:
    data = TracesData()
    for resource in range(resources):
        group = data.resource_spans.add(schema_url=f"r{resource}")
        group.resource.attributes.add(key="n").value.int_value = resource
        for scope in range(scopes):
            part = group.scope_spans.add(schema_url=f"s{scope}")
            part.scope.name = f"scope {scope}"
            for span in range(spans):
                part.spans.add(
                    trace_id=b"t" * 16, span_id=(span + 1).to_bytes(8, "big"), name="x" * (span * 50)
                )
    return data


@pytest.mark.parametrize("size", [(0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1), (2, 3, 4), (1, 1, 300)])
def test_what_is_cut_is_what_was_sent(size: tuple[int, int, int]):
    data = world(*size)
    rebuilt = TracesData()
    for envelope, span in split(data.SerializeToString(), 10_000):
        group = ResourceSpans.FromString(envelope)
        group.scope_spans[0].spans.add().ParseFromString(span)
        if rebuilt.resource_spans and rebuilt.resource_spans[-1].resource == group.resource:
            last = rebuilt.resource_spans[-1]
            if last.scope_spans[-1].scope == group.scope_spans[0].scope:
                last.scope_spans[-1].spans.extend(group.scope_spans[0].spans)
            else:
                last.scope_spans.extend(group.scope_spans)
        else:
            rebuilt.resource_spans.append(group)
    assert rebuilt == data or not size[2]


def test_fields_that_nobody_knows_stay():
    unknown = bytes.fromhex("a80605")  # field 101, a varint
    scope = b"\x12\x02\x0a\x00" + unknown
    group = b"\x12" + bytes([len(scope)]) + scope + unknown
    ((envelope, span),) = split(b"\x0a" + bytes([len(group)]) + group + unknown, 100)
    assert span == b"\x0a\x00"
    assert envelope == unknown + b"\x12\x03" + unknown


@given(st.binary(max_size=300))
def test_any_bytes_are_spans_or_a_reason(data: bytes):
    try:
        decode(data, json=False, limits=Limits())
    except ValueError as error:
        if "wire type" not in str(error):  # groups, which protobuf gave up before OTLP began
            with pytest.raises(DecodeError):
                TracesData.FromString(data)


@given(st.data())
def test_a_damaged_message_is_spans_or_a_reason(data: st.DataObject):
    body = bytearray(world(2, 2, 2).SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = decode(bytes(body), json=False, limits=Limits())
    except ValueError:
        return
    assert len(found.spans) + found.rejected <= 16


KEYS = st.sampled_from(
    ["resourceSpans", "resource", "scopeSpans", "scope", "spans", "attributes", "key", "value", "stringValue",
     "intValue", "arrayValue", "kvlistValue", "values", "traceId", "spanId", "links", "events", "status"]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_any_json_is_spans_or_a_reason(document: object):
    for made in (document, {"resourceSpans": [{"scopeSpans": [{"spans": document}]}]}):
        with contextlib.suppress(ValueError):
            decode(json.dumps(made).encode(), json=True, limits=Limits())


def test_more_items_than_the_limit_are_too_large():
    body = world(1, 1, 50).SerializeToString()
    assert len(list(split(body, 56))) == 50
    with pytest.raises(TooLarge, match="more than 55 "):
        list(split(body, 55))


def test_a_share_of_a_budget_is_given_back():
    budget = Budget(100)
    with Share(budget) as one, Share(budget) as other:
        one.take(60)
        with pytest.raises(TooBusy):
            other.take(50)
        other.take(40)
        assert budget.used == 100
    assert budget.used == 0


def test_what_is_unpacked_is_taken_from_the_budget():
    packed = gzip.compress(bytes(5000))
    with Share(Budget(10_000)) as share:
        assert unpack(packed, share, 5000) == bytes(5000)
        assert share.held == 5000
        with pytest.raises(TooLarge):
            unpack(packed, share, 4999)
    with Share(Budget(4999)) as share, pytest.raises(TooBusy):
        unpack(packed, share, 10_000)
