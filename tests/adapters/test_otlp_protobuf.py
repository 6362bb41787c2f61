"""OTLP as protobuf: the same as OTLP as JSON, and what happens to a part that cannot be read."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import counterpoint as cp
from counterpoint.adapters import _otlp

pytest.importorskip("opentelemetry.proto")

TRACE, SPAN = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174"
VALUES: dict[str, Any] = {
    "text": {"stringValue": "x"},
    "empty": {"stringValue": ""},
    "count": {"intValue": "3"},
    "zero": {"intValue": "0"},
    "no": {"boolValue": False},
    "share": {"doubleValue": 0.5},
    "bytes": {"bytesValue": base64.b64encode(b"\x00\xff").decode()},
    "list": {"arrayValue": {"values": [{"stringValue": "a"}, {"intValue": "1"}]}},
    "object": {"kvlistValue": {"values": [{"key": "k", "value": {"boolValue": True}}]}},
    "session.id": {"stringValue": "own"},
}


def pairs(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in values.items()]


def document(**more: Any) -> dict[str, Any]:
    """One span that has all that a span can have, of a process that says its session."""
    one = {
        "traceId": TRACE,
        "spanId": SPAN,
        "parentSpanId": "0" * 16,
        "name": "invoke_agent a",
        "startTimeUnixNano": "1700000000000000001",
        "endTimeUnixNano": "1700000000000000009",
        "attributes": pairs(VALUES),
        "events": [{"name": "gen_ai.choice", "attributes": pairs({"message": {"stringValue": "Hi."}})}],
        "links": [{"traceId": TRACE, "spanId": "aaa19b7ec3c1b174"}],
        "status": {"code": 2, "message": "out of memory"},
    }
    plain = {
        **one,
        "spanId": "bbb19b7ec3c1b174",
        "parentSpanId": SPAN,
        "attributes": [],
        "status": {"code": 2},
    }
    scope = {"name": "openinference.instrumentation.agno", "version": "1"}
    of_process = pairs(
        {"service.name": {"stringValue": "s"}, "session.id": {"stringValue": "of the process"}}
    )
    spans = {"scope": scope, "spans": [one, plain]}
    return {"resourceSpans": [{"resource": {"attributes": of_process}, "scopeSpans": [spans]}]}


def as_protobuf(value: Any) -> bytes:
    from google.protobuf.json_format import ParseDict  # type: ignore[import-untyped]
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    data: bytes = ParseDict(_in_base64(value), TracesData()).SerializeToString()
    return data


def _in_base64(value: Any) -> Any:
    """Ids as protobuf's own JSON has them, where OTLP's has hex."""
    if isinstance(value, dict):
        ids = {"traceId", "spanId", "parentSpanId"}
        return {
            key: base64.b64encode(bytes.fromhex(item)).decode() if key in ids else _in_base64(item)
            for key, item in value.items()
        }
    return [_in_base64(item) for item in value] if isinstance(value, list) else value


def test_protobuf_says_all_that_json_says() -> None:
    from counterpoint.adapters import _otlp_protobuf

    spans = _otlp.decode(json.dumps(document()).encode())
    assert _otlp_protobuf.decode(as_protobuf(document())) == (spans, 0)
    assert [span.attributes["session.id"] for span in spans] == ["own", "of the process"]
    assert [span.parent for span in spans] == ["", SPAN]
    assert {span.service for span in spans} == {"s"}


def nested(depth: int) -> bytes:
    """An attribute ``deep`` whose value is a list in a list in a list..."""
    value = b"\x0a\x01x"
    for _ in range(depth):
        value = sized(0x2A, sized(0x0A, value))
    return sized(0x4A, sized(0x0A, b"deep") + sized(0x12, value))


def sized(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = bytes([size]) if size < 0x80 else bytes([size & 0x7F | 0x80, size >> 7])
    return bytes([tag]) + length + content


@pytest.mark.parametrize("depth", [1, 900])
def test_an_attribute_nested_too_deeply_costs_neither_its_span_nor_the_message(
    tmp_path: Path, depth: int
) -> None:
    said = {"gen_ai.operation.name": "chat", "gen_ai.completion.0.content": "Hi."}
    attributes = b"".join(
        sized(0x4A, sized(0x0A, key.encode()) + sized(0x12, sized(0x0A, text.encode())))
        for key, text in said.items()
    )
    span = sized(0x0A, bytes.fromhex(TRACE)) + sized(0x12, bytes.fromhex(SPAN)) + sized(0x2A, b"a")
    message = sized(0x0A, sized(0x12, sized(0x12, span + nested(depth) + attributes)))
    (tmp_path / "spans.binpb").write_bytes(message)
    (trace,) = cp.read(tmp_path / "spans.binpb", on_error="raise")
    assert [(step.agent, step.text) for step in trace.steps] == [("a", "Hi.")]
    assert ("1 attributes could not be read and were left out" in trace.warnings) == (depth == 900)


def test_a_message_that_is_cut_off_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "spans.binpb").write_bytes(as_protobuf(document())[:-9])
    reading = cp.read(tmp_path / "spans.binpb", on_error=lambda error: None)
    assert list(reading) == []
    assert reading.errors[0].message.startswith("not OTLP protobuf: ")


def test_a_session_of_the_resource_is_known_from_printed_spans_too(tmp_path: Path) -> None:
    printed = json.loads(
        (Path(__file__).parents[1] / "golden/otel_sdk/graph.json").read_text().partition("\n}\n")[0] + "}"
    )
    printed["resource"] = {"attributes": {"session.id": "S"}}
    printed["attributes"] = {"gen_ai.operation.name": "chat", "gen_ai.completion.0.content": "Hi."}
    (tmp_path / "spans.json").write_text(json.dumps(printed))
    (trace,) = cp.read(tmp_path / "spans.json", on_error="raise")
    assert trace.labels["session.id"] == "S"
