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

from counterpoint.view.server import otlp
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
    for envelope, span in split(data.SerializeToString(), Limits()):
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
    ((envelope, span),) = split(b"\x0a" + bytes([len(group)]) + group + unknown, Limits())
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
    assert len(list(split(body, Limits(items=56)))) == 50
    with pytest.raises(TooLarge, match="more than 55 "):
        list(split(body, Limits(items=55)))


def as_json(data: TracesData) -> bytes:
    """In OTLP's JSON, of which `world` uses little."""
    groups = []
    for group in data.resource_spans:
        scopes = [
            {
                "scope": {"name": part.scope.name},
                "schemaUrl": part.schema_url,
                "spans": [
                    {"traceId": one.trace_id.hex(), "spanId": one.span_id.hex(), "name": one.name}
                    for one in part.spans
                ],
            }
            for part in group.scope_spans
        ]
        resource = {"attributes": [{"key": "n", "value": {"stringValue": "x" * 1000}}]}
        groups.append({"resource": resource, "schemaUrl": group.schema_url, "scopeSpans": scopes})
    return json.dumps({"resourceSpans": groups}).encode()


@pytest.mark.parametrize("spans", [0, 1])
@pytest.mark.parametrize("form", ["protobuf", "json"])
def test_a_large_resource_costs_what_its_scopes_with_spans_keep_of_it(form: str, spans: int):
    """The same scope again and again, so that no two envelopes differ."""
    data = world(1, 1, spans)
    data.resource_spans[0].resource.attributes[0].value.string_value = "x" * 1000
    part = data.resource_spans[0].scope_spans[0]
    for _ in range(99):
        data.resource_spans[0].scope_spans.add().CopyFrom(part)
    body = as_json(data) if form == "json" else data.SerializeToString()
    limits = Limits(body_bytes=50_000)
    if spans:
        with pytest.raises(TooLarge, match="so many scopes"):
            decode(body, json=form == "json", limits=limits)
    else:
        assert decode(body, json=form == "json", limits=limits).spans == []
    kept = decode(body, json=form == "json", limits=Limits()).spans
    assert len(kept) == 100 * spans
    assert all(ResourceSpans.FromString(span.envelope).schema_url == "r0" for span in kept)


def test_an_envelope_that_is_no_message_is_looked_at_once(monkeypatch: pytest.MonkeyPatch):
    from counterpoint.view.server import spans

    looks = []
    monkeypatch.setattr(spans, "may_hold_secret", lambda data: False)

    class Watched:
        @staticmethod
        def FromString(data: bytes) -> ResourceSpans:  # noqa: N802
            looks.append(data)
            return ResourceSpans.FromString(data)

    monkeypatch.setattr(spans, "ResourceSpans", Watched)
    data = world(1, 1, 30)
    data.resource_spans[0].resource.attributes[0].key = "name"
    body = data.SerializeToString().replace(b"name", b"nam\xff")
    found = decode(body, json=False, limits=Limits())
    assert (found.spans, found.rejected, len(looks)) == ([], 30, 1)


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


@pytest.mark.parametrize("slice_bytes", [1, 7, 64, 2**16])
def test_members_of_gzip_are_unpacked_wherever_they_are_cut(
    slice_bytes: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(otlp, "_SLICE", slice_bytes)
    monkeypatch.setattr(otlp, "_CHUNK", 50)
    texts = [b"", b"one", bytes(1000), b"", b"two" * 100]
    packed = b"".join(map(gzip.compress, texts))
    with Share(Budget(10**6)) as share:
        assert unpack(packed, share, 5000) == b"".join(texts)
        for cut in range(1, len(gzip.compress(texts[-1]))):
            with pytest.raises(ValueError, match="cut off"):
                unpack(packed[:-cut], share, 5000)


def test_a_body_of_very_many_empty_members_is_refused_soon():
    most = otlp._MEMBERS
    with Share(Budget(10_000)) as share:
        assert unpack(gzip.compress(b"") * most, share, 5000) == b""
        with pytest.raises(ValueError, match=f"more than {most} files of gzip"):
            unpack(gzip.compress(b"") * 100_000, share, 5000)
