from __future__ import annotations

import base64
import gzip
import json
import socket
import sqlite3
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.proto")

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, TracesData
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Sent

from counterpoint.errors import UsageError
from counterpoint.store import Span, Store, StoreFull
from counterpoint.view.server.limits import Limits
from counterpoint.view.server.spans import decode

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
HANGS_S = 300.0
"""So long a test waits for what has to come, however slow or busy the machine is."""
KEY = "sk-" + "proj-aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3hJ5kL7nP9"
SPAN = {
    "traceId": "5B8EFFF798038103D269B633813FC60C",
    "spanId": "EEE19B7EC3C1B174",
    "parentSpanId": "EEE19B7EC3C1B173",
    "name": "plan",
    "startTimeUnixNano": "1544712660000000000",
    "endTimeUnixNano": 1544712661000000000,
    "kind": 2,
    "unknown": {"deep": [1, None]},
    "attributes": [
        {"key": "text", "value": {"stringValue": "hello"}},
        {"key": "count", "value": {"intValue": "7"}},
        {"key": "rank", "value": {"intValue": 8}},
        {"key": "ratio", "value": {"doubleValue": "NaN"}},
        {"key": "flag", "value": {"boolValue": False}},
        {"key": "list", "value": {"arrayValue": {"values": [{"stringValue": "a"}, {}]}}},
        {"key": "map", "value": {"kvlistValue": {"values": [{"key": "k", "value": {"doubleValue": 1}}]}}},
        {"key": "raw", "value": {"bytesValue": base64.b64encode(b"\x00\x01").decode()}},
        {"key": "none", "value": None},
    ],
    "events": [{"timeUnixNano": "5", "name": "e", "attributes": [{"key": "a", "value": {"intValue": 1}}]}],
    "links": [{"traceId": "ab" * 16, "spanId": "cd" * 8}],
    "status": {"code": 2, "message": "bad"},
}


def message(*spans: Sent) -> bytes:
    data = TracesData()
    group = data.resource_spans.add(schema_url="r")
    group.resource.attributes.add(key="service.name").value.string_value = "team"
    scope = group.scope_spans.add(schema_url="s")
    scope.scope.name = "tests"
    scope.spans.extend(spans)
    return data.SerializeToString()


def span(number: int = 1, trace: int = 1, name: str = "say", **more: Any) -> Sent:
    return Sent(trace_id=trace.to_bytes(16, "big"), span_id=number.to_bytes(8, "big"), name=name, **more)


def document(*spans: Any) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


def told(answer: Any) -> str:
    """The message of a google.rpc.Status in either encoding."""
    if answer.headers["content-type"] == JSON:
        return json.loads(answer.body)["message"]
    assert answer.headers["content-type"] == PROTOBUF
    assert answer.body[0] == 0x08
    assert answer.body[2] == 0x12
    return answer.body[4 if answer.body[3] < 0x80 else 5 :].decode()


def test_a_span_of_protobuf_is_kept_byte_by_byte_with_its_envelope(receiver):
    store = receiver.store
    sent = span(links=[Sent.Link(trace_id=b"l" * 16)])
    answer = receiver.ask("POST", "/v1/traces", message(sent), content_type=PROTOBUF)
    assert (answer.status, answer.body, answer.headers["content-type"]) == (200, b"", PROTOBUF)
    (kept,) = store.spans
    assert kept.payload == sent.SerializeToString()
    assert (kept.trace_id, kept.span_id, kept.name) == (f"{1:032x}", f"{1:016x}", "say")
    assert kept.links == ((b"l" * 16).hex(),)
    envelope = ResourceSpans.FromString(kept.envelope)
    assert envelope.resource.attributes[0].value.string_value == "team"
    assert (envelope.schema_url, envelope.scope_spans[0].schema_url) == ("r", "s")
    assert envelope.scope_spans[0].scope.name == "tests"
    assert not envelope.scope_spans[0].spans


def test_a_span_of_json_is_kept_as_the_same_protobuf(receiver):
    store = receiver.store
    answer = receiver.ask("POST", "/v1/traces", document(SPAN), content_type=f"{JSON}; charset=utf-8")
    assert (answer.status, answer.body, answer.headers["content-type"]) == (200, b"{}", JSON)
    kept = Sent.FromString(store.spans[0].payload)
    values = {pair.key: pair.value for pair in kept.attributes}
    assert kept.trace_id.hex() == SPAN["traceId"].lower()
    assert kept.parent_span_id.hex() == SPAN["parentSpanId"].lower()
    assert kept.start_time_unix_nano + 10**9 == kept.end_time_unix_nano == 1544712661 * 10**9
    assert (values["text"].string_value, values["count"].int_value, values["rank"].int_value) == (
        "hello",
        7,
        8,
    )
    assert values["ratio"].double_value != values["ratio"].double_value
    assert values["flag"].WhichOneof("value") == "bool_value"
    assert values["list"].array_value.values[0].string_value == "a"
    assert values["map"].kvlist_value.values[0].value.double_value == 1
    assert values["raw"].bytes_value == b"\x00\x01"
    assert values["none"].WhichOneof("value") is None
    assert (kept.kind, kept.status.code, kept.status.message) == (2, 2, "bad")
    assert (kept.events[0].name, kept.events[0].time_unix_nano) == ("e", 5)
    assert store.spans[0].links == ("ab" * 16,)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (PROTOBUF, b""),
        (PROTOBUF, message()),
        (PROTOBUF, gzip.compress(b"")),
        (JSON, b""),
        (JSON, b"{}"),
        (JSON, b'{"resourceSpans": null}'),
        (JSON, document()),
    ],
)
def test_a_request_without_spans_is_fine(receiver, kind: str, body: bytes):
    more = {"content_encoding": "gzip"} if body[:2] == b"\x1f\x8b" else {}
    answer = receiver.ask("POST", "/v1/traces", body, content_type=kind, **more)
    assert answer.status == 200


@pytest.mark.parametrize("coding", ["gzip", "GZIP"])
def test_gzipped_bodies_are_unpacked_also_in_several_members(receiver, coding: str):
    store = receiver.store
    body = message(span())
    packed = gzip.compress(body[:9]) + gzip.compress(body[9:])
    answer = receiver.ask("POST", "/v1/traces", packed, content_type=PROTOBUF, content_encoding=coding)
    assert (answer.status, len(store.spans)) == (200, 1)


def test_a_body_in_chunks_is_read(receiver):
    store = receiver.store
    body = message(span())
    answer = receiver.ask("POST", "/v1/traces", iter([body[:7], body[7:]]), content_type=PROTOBUF)
    assert (answer.status, len(store.spans)) == (200, 1)


def test_half_a_surrogate_pair_in_json_costs_one_character(receiver):
    store = receiver.store
    body = document({**SPAN, "name": "NAME"}).replace(b"NAME", rb"a\ud83d\ud83d\ude00 \\ud83d")
    assert receiver.ask("POST", "/v1/traces", body, content_type=JSON).status == 200
    assert store.spans[0].name == "a\ufffd\U0001f600 \\ud83d"


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (Sent(span_id=b"s" * 8), "trace id"),
        (Sent(trace_id=b"t" * 15, span_id=b"s" * 8), "trace id"),
        (Sent(trace_id=bytes(16), span_id=b"s" * 8), "trace id"),
        (Sent(trace_id=b"t" * 16), "span id"),
        (Sent(trace_id=b"t" * 16, span_id=bytes(8)), "span id"),
        (span(name="x" * 5000), "more than 4000 bytes"),
    ],
)
def test_of_protobuf_a_wrong_span_is_refused_and_the_rest_is_kept(serving, kept, wrong: Sent, reason: str):
    server = serving(kept, limits=Limits(span_bytes=4000))
    answer = server.ask("POST", "/v1/traces", message(span(1), wrong, span(2)), content_type=PROTOBUF)
    found = ExportTraceServiceResponse.FromString(answer.body).partial_success
    assert (answer.status, found.rejected_spans, len(kept.spans)) == (200, 1, 2)
    assert reason in found.error_message


@pytest.mark.parametrize(
    "wrong",
    [
        {**SPAN, "traceId": "W47/95gDgQPSabYzgT/GDA=="},
        {**SPAN, "spanId": ""},
        {**SPAN, "name": 5},
        {**SPAN, "startTimeUnixNano": "soon"},
        {**SPAN, "startTimeUnixNano": -1},
        {**SPAN, "attributes": [{"key": "a", "value": {"bytesValue": "?"}}]},
        {**SPAN, "kind": "SPAN_KIND_OF_NO_KIND"},
        None,
        7,
    ],
)
def test_of_json_a_wrong_span_is_refused_and_the_rest_is_kept(receiver, wrong: Any):
    store = receiver.store
    answer = receiver.ask("POST", "/v1/traces", document(SPAN, wrong), content_type=JSON)
    found = json.loads(answer.body)["partialSuccess"]
    assert (answer.status, found["rejectedSpans"], len(store.spans)) == (200, "1", 1)
    assert found["errorMessage"]


@pytest.mark.parametrize(
    ("kind", "body", "coding"),
    [
        (PROTOBUF, b"\x0a\xff\xff", ""),
        (PROTOBUF, b"not protobuf at all", ""),
        (PROTOBUF, b"\x0a" + b"\xff" * 11, ""),
        (PROTOBUF, message(span())[:-1], ""),
        (PROTOBUF, b"no gzip", "gzip"),
        (PROTOBUF, gzip.compress(message(span()))[:-9], "gzip"),
        (JSON, b"{", ""),
        (JSON, b"[]", ""),
        (JSON, b'{"resourceSpans": 5}', ""),
        (JSON, b'{"resourceSpans": [{"resource": 5, "scopeSpans": [{"spans": [{}]}]}]}', ""),
        (JSON, b"\xff\xfe", ""),
        (JSON, b"[" * 100_000, ""),
        (JSON, document(SPAN)[:-1], ""),
    ],
)
def test_what_is_no_request_of_otlp_is_400_with_a_reason(receiver, kind: str, body: bytes, coding: str):
    store = receiver.store
    more = {"content_encoding": coding} if coding else {}
    answer = receiver.ask("POST", "/v1/traces", body, content_type=kind, **more)
    assert (answer.status, store.spans) == (400, [])
    assert told(answer).startswith("no request of OTLP: ")
    assert receiver.ask("GET", "/healthz").status == 200


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "words"),
    [
        ("GET", "/v1/traces", {}, 405, "by POST"),
        ("PUT", "/v1/traces", {"content_type": JSON}, 405, "by POST"),
        ("POST", "/v1/metrics", {"content_type": PROTOBUF}, 404, "only traces"),
        ("POST", "/v1/logs", {"content_type": JSON}, 404, "only traces"),
        ("POST", "/v1/traces/", {"content_type": JSON}, 404, "only traces"),
        ("POST", "/v1/traces", {}, 415, PROTOBUF),
        ("POST", "/v1/traces", {"content_type": "text/plain"}, 415, PROTOBUF),
        ("POST", "/v1/traces", {"content_type": JSON, "content_encoding": "br"}, 415, "gzip"),
        ("POST", "/v1/traces", {"content_type": JSON, "content_encoding": "gzip, gzip"}, 415, "gzip"),
    ],
)
def test_requests_of_another_kind_say_what_is_taken(
    receiver, method: str, path: str, headers: dict[str, str], status: int, words: str
):
    answer = receiver.ask(method, path, b"{}", **headers)
    assert answer.status == status
    assert words in told(answer)
    assert status != 405 or answer.headers["allow"] == "POST"


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_over_the_limit_is_413_before_it_is_read(serving, kept, declared: bool):
    server = serving(kept, limits=Limits(body_bytes=1000))
    body: Any = b"x" * 200_000 if declared else iter([b"x" * 10_000] * 20)
    answer = server.ask("POST", "/v1/traces", body, content_type=PROTOBUF)
    assert (answer.status, answer.headers["connection"], kept.spans) == (413, "close", [])
    assert "1000 bytes" in told(answer)


def test_a_body_that_is_only_announced_to_be_huge_is_413_at_once(receiver):
    with socket.create_connection(("127.0.0.1", receiver.port), timeout=HANGS_S) as connection:
        connection.sendall(
            b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 10000000000\r\n\r\n"
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("limits", [Limits(items=10), Limits(json_values=10)])
def test_json_of_too_many_parts_is_413(serving, kept, limits: Limits):
    answer = serving(kept, limits=limits).ask("POST", "/v1/traces", document(*[SPAN] * 11), content_type=JSON)
    assert (answer.status, kept.spans) == (413, [])


@pytest.mark.parametrize("limits", [Limits(items=10), Limits(body_bytes=3000)])
def test_a_small_body_that_becomes_much_is_413(serving, kept, limits: Limits):
    server = serving(kept, limits=limits)
    body = gzip.compress(message(*(span(number + 1, name="x" * 50) for number in range(100))))
    answer = server.ask("POST", "/v1/traces", body, content_type=PROTOBUF, content_encoding="gzip")
    assert (answer.status, kept.spans) == (413, [])


def test_a_large_resource_does_not_multiply_by_its_scopes():
    data = TracesData()
    group = data.resource_spans.add()
    group.resource.attributes.add(key="k").value.string_value = "x" * 10_000
    for number in range(100):
        group.scope_spans.add(schema_url=str(number)).spans.add().CopyFrom(span(number + 1))
    with pytest.raises(Exception, match="so many scopes"):
        decode(data.SerializeToString(), json=False, limits=Limits(body_bytes=100_000))


def test_a_body_that_never_comes_is_408(serving, kept):
    server = serving(kept, limits=Limits(body_s=0.2))
    with socket.create_connection(("127.0.0.1", server.port), timeout=HANGS_S) as connection:
        connection.sendall(
            b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100\r\n\r\n{"
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 408 ")


def test_a_sender_who_hangs_up_leaves_nothing_behind(serving, kept):
    server = serving(kept, limits=Limits(requests=1, queue=0))
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", server.port), timeout=HANGS_S) as connection:
            connection.sendall(
                b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 100\r\n\r\n{"
            )
    until = time.monotonic() + HANGS_S
    while (answer := server.ask("POST", "/v1/traces", message(span()), content_type=PROTOBUF)).status == 429:
        assert time.monotonic() < until
    assert (answer.status, len(kept.spans)) == (200, 1)


def test_reasons_stay_few_and_short_however_many_spans_are_refused(receiver):
    wrong = [{**SPAN, "startTimeUnixNano": f"{number}" + "x" * 10_000} for number in range(50)]
    answer = receiver.ask("POST", "/v1/traces", document(*wrong), content_type=JSON)
    found = json.loads(answer.body)["partialSuccess"]
    assert (answer.status, found["rejectedSpans"]) == (200, "50")
    assert len(found["errorMessage"]) < 1100


def test_a_store_that_is_full_for_a_moment_is_waited_for(serving, kept):
    server = serving(kept, limits=Limits(wait_s=HANGS_S))
    kept.fault, kept.faults = StoreFull("full"), 3
    assert server.ask("POST", "/v1/traces", message(span()), content_type=PROTOBUF).status == 200
    assert len(kept.spans) == 1


def test_a_store_that_stays_full_is_429_with_retry_after(serving, kept):
    server = serving(kept, limits=Limits(wait_s=0.2))
    kept.fault, kept.faults = StoreFull("full"), 10**6
    answer = server.ask("POST", "/v1/traces", message(span()), content_type=PROTOBUF)
    assert (answer.status, answer.headers["retry-after"]) == (429, "1")
    assert "try again" in told(answer)


@pytest.mark.parametrize(
    "fault",
    [sqlite3.OperationalError("database or disk is full"), OSError(28, "full"), UsageError("x: full")],
)
def test_a_store_that_cannot_write_is_503_with_the_reason_and_comes_back(receiver, fault: Exception):
    store = receiver.store
    store.fault, store.faults = fault, 1
    answer = receiver.ask("POST", "/v1/traces", message(span()), content_type=PROTOBUF)
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert "full" in told(answer)
    assert receiver.ask("POST", "/v1/traces", message(span()), content_type=PROTOBUF).status == 200


@pytest.mark.parametrize("limits", [Limits(requests=1, wait_s=0.2), Limits(flight_bytes=1500, threads=1)])
def test_more_at_one_time_than_fits_is_429_and_later_fits(serving, kept, limits: Limits):
    server = serving(kept, limits=limits)
    kept.gate.clear()
    body = message(span(name="x" * 1000))
    first = threading.Thread(
        target=server.ask, args=("POST", "/v1/traces", body), kwargs={"content_type": PROTOBUF}
    )
    first.start()
    assert kept.is_at_it()
    answer = server.ask("POST", "/v1/traces", body, content_type=PROTOBUF)
    kept.gate.set()
    first.join()
    assert (answer.status, answer.headers["retry-after"], len(kept.spans)) == (429, "1", 1)
    assert server.ask("POST", "/v1/traces", body, content_type=PROTOBUF).status == 200


def test_200_comes_after_the_store_has_the_spans_and_not_before(receiver):
    store = receiver.store
    store.gate.clear()
    answers: list[int] = []
    sender = threading.Thread(
        target=lambda: answers.append(
            receiver.ask("POST", "/v1/traces", message(span()), content_type=PROTOBUF).status
        )
    )
    sender.start()
    assert store.is_at_it()
    assert receiver.ask("GET", "/healthz").status == 200  # by now a hasty answer would be here
    assert not answers
    store.gate.set()
    sender.join()
    assert answers == [200]


def test_a_request_that_waits_for_a_thread_is_sent_away_in_time(serving, kept):
    server = serving(kept, limits=Limits(threads=1, wait_s=0.2))
    kept.gate.clear()
    answers: list[int] = []

    def send() -> Any:
        return server.ask("POST", "/v1/traces", message(span()), content_type=PROTOBUF)

    sender = threading.Thread(target=lambda: answers.append(send().status))
    sender.start()
    assert kept.is_at_it()  # and holds the only thread
    refused = send()
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    assert not answers
    kept.gate.set()
    sender.join()
    assert answers == [200]
    assert send().status == 200


def test_a_server_that_stops_answers_what_is_under_way(serving, kept, monkeypatch):
    monkeypatch.setattr("counterpoint.view.server.listening.STOP_S", HANGS_S)
    server = serving(kept)
    kept.gate.clear()
    answers: list[int] = []
    sender = threading.Thread(
        target=lambda: answers.append(
            server.ask("POST", "/v1/traces", message(span()), content_type=PROTOBUF).status
        )
    )
    sender.start()
    assert kept.is_at_it()
    server.stop()
    with suppress(ConnectionError):
        while True:  # until it stops: then nobody is let in
            socket.create_connection(("127.0.0.1", server.port)).close()
    kept.gate.set()
    sender.join()
    assert (answers, len(kept.spans)) == ([200], 1)


def test_what_cannot_be_stored_before_the_server_has_to_stop_is_503(serving, kept, monkeypatch, caplog):
    monkeypatch.setattr("counterpoint.view.server.listening.STOP_S", 1)
    server = serving(kept)
    kept.gate.clear()
    answers: list[Any] = []
    sender = threading.Thread(
        target=lambda: answers.append(
            server.ask("POST", "/v1/traces", message(span()), content_type=PROTOBUF)
        )
    )
    sender.start()
    assert kept.is_at_it()
    server.stop()
    sender.join()
    kept.gate.set()
    assert (answers[0].status, answers[0].headers["retry-after"]) == (503, "1")
    assert "the server stops" in told(answers[0])
    assert "Traceback" not in caplog.text


def test_a_bug_of_ours_is_500_with_all_headers_and_the_server_stays_up(receiver, caplog):
    store = receiver.store
    store.fault, store.faults = ZeroDivisionError("ours"), 1
    answer = receiver.ask("POST", "/v1/traces", message(span()), content_type=PROTOBUF)
    assert (answer.status, answer.headers["x-content-type-options"]) == (500, "nosniff")
    assert "ours" not in told(answer)
    assert "ZeroDivisionError" in caplog.text
    assert receiver.ask("GET", "/healthz").status == 200


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
def test_secrets_are_masked_before_the_store_unless_they_are_to_be_kept(serving, kept, kind: str, keep: bool):
    server = serving(kept, keep_secrets=keep)
    if kind == JSON:
        pair = {"key": "deep", "value": {"arrayValue": {"values": [{"stringValue": f"use {KEY} now"}]}}}
        group = {
            "resource": {"attributes": [pair]},
            "scopeSpans": [{"spans": [{**SPAN, "attributes": [pair]}]}],
        }
        body = json.dumps({"resourceSpans": [group]}).encode()
    else:
        sent = span()
        sent.attributes.add(key="deep").value.array_value.values.add().string_value = f"use {KEY} now"
        data = TracesData.FromString(message(sent))
        data.resource_spans[0].resource.attributes[0].value.string_value = KEY
        body = data.SerializeToString()
    assert server.ask("POST", "/v1/traces", body, content_type=kind).status == 200
    (kept,) = kept.spans
    assert (KEY.encode() in kept.payload) == (KEY.encode() in kept.envelope) == keep
    assert keep or b"use [secret:openai] now" in kept.payload


def test_values_known_by_their_attribute_are_masked_in_spans_and_resources():
    sent = span(events=[Sent.Event(name="asked")])
    sent.attributes.add(key="db.password").value.string_value = "s3cretpw"
    sent.attributes.add(key="http.request.header.set-cookie").value.array_value.values.add(
        string_value="sid=s3cretpw; HttpOnly"
    )
    login = sent.events[0].attributes.add(key="login").value.kvlist_value
    login.values.add(key="Authorization").value.string_value = "Basic s3cretpw"
    login.values.add(key="user.id").value.string_value = "ann-1234567890"
    keys = sent.attributes.add(key="api_keys").value.kvlist_value
    keys.values.add(key="openai").value.string_value = "s3cretpw"
    keys.values.add(key="others").value.array_value.values.add(string_value="s3cretpw")
    keys.values.add(key="description").value.string_value = "what they are for"
    sent.attributes.add(key="raw").value.bytes_value = b"\xff" + KEY.encode()
    sent.attributes.add(key="llm.token_count.prompt").value.int_value = 300
    data = TracesData.FromString(message(sent))
    data.resource_spans[0].resource.attributes.add(key="api_key").value.string_value = "s3cretpw"
    (kept,) = decode(data.SerializeToString(), json=False, limits=Limits()).spans
    assert b"s3cretpw" not in kept.payload + kept.envelope
    assert KEY.encode() not in kept.payload
    assert b"[secret:api-key]" in kept.envelope
    for told in (
        b"[secret:password]",
        b"[secret:cookie]",
        b"Basic [secret:authorization]",
        b"\xff[secret:openai]",
    ):
        assert told in kept.payload
    assert b"ann-1234567890" in kept.payload
    assert b"what they are for" in kept.payload
    assert kept.payload.count(b"[secret:api-key]") == 2
    (again,) = decode(document_of(kept), json=False, limits=Limits()).spans
    assert again.payload == kept.payload
    assert ResourceSpans.FromString(again.envelope) == ResourceSpans.FromString(kept.envelope)


def document_of(kept: Any) -> bytes:
    """A body of one span that the store holds."""
    group = ResourceSpans.FromString(kept.envelope)
    group.scope_spans[0].spans.append(Sent.FromString(kept.payload))
    return TracesData(resource_spans=[group]).SerializeToString()


def test_ids_of_spans_are_never_masked():
    sent = Sent(trace_id=b"password=hunter2", span_id=b"api_key:", name="say")
    (kept,) = decode(message(sent), json=False, limits=Limits()).spans
    assert kept.payload == sent.SerializeToString()


def test_what_was_taken_over_http_is_in_the_store(serving, tmp_path: Path):
    server = serving()
    server.ask("POST", "/v1/traces", message(span(1), span(2), span(3, trace=2)), content_type=PROTOBUF)
    assert server.store.runs().total == 2
    kept = TracesData.FromString(server.store.otlp(f"{1:032x}"))
    assert [
        one.span_id for group in kept.resource_spans for part in group.scope_spans for one in part.spans
    ] == [number.to_bytes(8, "big") for number in (1, 2)]


def test_a_store_that_another_program_keeps_locked_is_503_after_a_while_and_comes_back(
    serving, tmp_path: Path, monkeypatch
):
    monkeypatch.setattr("counterpoint.store.database.BUSY_S", 10 * HANGS_S)  # too long for whoever waits so
    server = serving(limits=Limits(wait_s=0.3))
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        answer = server.ask("POST", "/v1/traces", message(span()), content_type=PROTOBUF)
        assert time.monotonic() - began > 0.2
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert "is locked by another program" in told(answer)
    assert server.ask("POST", "/v1/traces", message(span()), content_type=PROTOBUF).status == 200


def test_a_server_is_not_healthy_once_its_store_was_found_damaged(serving, tmp_path: Path):
    path = tmp_path / "store.db"
    with Store(path) as store:
        store.add_spans(
            [Span(f"{n:032x}", "b" * 16, envelope=b"", payload=bytes(9000)) for n in range(1, 50)]
        )
    content = bytearray(path.read_bytes())
    content[3 * 8192 :] = b"\xff" * (len(content) - 3 * 8192)
    path.write_bytes(content)
    with Store(path) as store:
        server = serving(store)
        server.ask("GET", "/")
        server.ask("POST", "/v1/traces", message(span()), content_type=PROTOBUF)
        health = server.ask("GET", "/healthz")
        assert health.status == 503
        assert "is damaged" in health.text


def test_a_store_that_was_deleted_is_503_with_the_reason_until_it_is_back(serving, tmp_path: Path):
    server = serving()
    path, away = tmp_path / "store.db", tmp_path / "away.db"
    for number, (there, code) in enumerate([(True, 200), (False, 503), (True, 200)], 1):
        if number > 1:
            (away if there else path).rename(path if there else away)
        sent = server.ask("POST", "/v1/traces", message(span(number)), content_type=PROTOBUF)
        health = server.ask("GET", "/healthz")
        assert (sent.status, health.status, server.ask("GET", "/").status) == (code, code, code)
        assert there or "was deleted or moved" in told(sent)
        assert there or "was deleted or moved" in health.text
    assert server.store.runs().rows[0].spans == 2
