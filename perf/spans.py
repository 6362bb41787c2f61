"""How fast spans become traces: OTLP as JSON and as protobuf, from bytes to Trace, context matching included.

::

    python perf/spans.py [SPANS]

Spans have 12 attributes and about 1.3 KB as JSON: agents in turns, each with a model call and a tool call,
each prompt quoting the replies before it. Prints spans a second of processor time (the work is on
one core), the time against half as many spans, and peak memory.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from counterpoint.adapters import otlp
from counterpoint.contracts import Source

WORDS = [
    f"{head}{tail}"
    for head in ("bri", "fer", "riv", "har", "tun", "sig")
    for tail in ("dge", "ry", "er", "bor")
]


def main(count: int = 33_000) -> None:
    for form, encode in (("JSON", as_json), ("protobuf", as_protobuf)):
        half, whole = encode(spans(count // 2)), encode(spans(count))
        first = best_of(3, lambda data=half: read(data))
        second = best_of(3, lambda data=whole: read(data))
        print(
            f"{form:9} {count:,} spans of {len(whole) / count:,.0f} bytes: {count / second:,.0f} spans/s "
            f"({second:.2f} s, {second / first:.2f} times the time of half as many)"
        )
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


def best_of(rounds: int, work: Callable[[], Any]) -> float:
    times = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


def read(data: bytes) -> list[Any]:
    """The traces in ``data``, as an adapter gives them."""
    import io

    source = Source(name="perf", head=data[:65536], tail=data[-65536:], open=lambda: io.BytesIO(data))
    return list(otlp.read(source))


_VALUES = 180
"""Bytes of attribute values that a span has at least: with them its JSON has 1.3 KB on average."""

# --- made-up spans -------------------------------------------------------------------------------


def spans(count: int, agents: int = 6) -> list[dict[str, Any]]:
    """One run: a root, and turns of an agent span, a model span and a tool span each."""
    rng = random.Random(5)
    made = [span(0, None, "workflow", 0, {"gen_ai.operation.name": "invoke_workflow"})]
    replies: list[str] = ["Where should the new bridge be built, and what will it cost?"]
    turn = 0
    while len(made) < count:
        number, agent = len(made), f"agent_{turn % agents}"
        reply = f"Turn {turn}: " + sentence(rng, 36)
        shared = {
            "gen_ai.agent.name": agent,
            "gen_ai.agent.id": f"a{turn % agents}",
            "gen_ai.system": "openai",
        }
        made.append(
            span(
                number, 0, f"invoke_agent {agent}", turn, {"gen_ai.operation.name": "invoke_agent", **shared}
            )
        )
        prompt = [{"role": "system", "parts": [text(f"You are {agent}.")]}]
        prompt += [{"role": "user", "parts": [text("\n".join(replies[-2:]))]}]
        model = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "m",
            "gen_ai.usage.input_tokens": 120 + turn % 50,
            "gen_ai.usage.output_tokens": 60,
            "gen_ai.input.messages": json.dumps(prompt),
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [text(reply)]}]),
            **shared,
        }
        made.append(span(number + 1, number, "chat m", turn, model))
        tool = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "lookup",
            "gen_ai.tool.call.id": f"c{turn}",
        }
        tool["gen_ai.tool.call.result"] = sentence(rng, 36)
        made.append(span(number + 2, number, "execute_tool lookup", turn, {**tool, **shared}))
        replies.append(reply)
        turn += 1
    return made[:count]


def text(content: str) -> dict[str, str]:
    return {"type": "text", "content": content}


def sentence(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(WORDS, k=words)).capitalize() + "."


def span(number: int, parent: int | None, name: str, turn: int, attributes: dict[str, Any]) -> dict[str, Any]:
    filler = 12 - len(attributes)
    size = sum(len(str(value)) for value in attributes.values())
    pad = max(0, (_VALUES - size) // filler) if filler > 0 else 0
    start = 1_700_000_000_000_000_000 + turn * 10_000_000 + number * 1000
    return {
        "traceId": "5b8efff798038103d269b633813fc60c",
        "spanId": f"{number + 1:016x}",
        "parentSpanId": "" if parent is None else f"{parent + 1:016x}",
        "name": name,
        "start": start,
        "end": start + (10_000_000 if "agent" in name else 900),
        "attributes": {**attributes, **{f"app.detail.{each}": "x" * pad for each in range(max(filler, 0))}},
    }


def as_json(made: list[dict[str, Any]]) -> bytes:
    items = []
    for item in made:
        attributes = [
            {
                "key": key,
                "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value},
            }
            for key, value in item["attributes"].items()
        ]
        times = {"startTimeUnixNano": str(item["start"]), "endTimeUnixNano": str(item["end"])}
        kept = {key: item[key] for key in ("traceId", "spanId", "parentSpanId", "name")}
        items.append({**kept, **times, "kind": 1, "attributes": attributes, "status": {}})
    return json.dumps(
        {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "perf"}, "spans": items}]}]}
    ).encode()


def as_protobuf(made: list[dict[str, Any]]) -> bytes:
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    data = TracesData()
    part = data.resource_spans.add().scope_spans.add()
    part.scope.name = "perf"
    for item in made:
        one = part.spans.add(
            name=item["name"],
            trace_id=bytes.fromhex(item["traceId"]),
            span_id=bytes.fromhex(item["spanId"]),
            parent_span_id=bytes.fromhex(item["parentSpanId"]),
            start_time_unix_nano=item["start"],
            end_time_unix_nano=item["end"],
        )
        for key, value in item["attributes"].items():
            field = "int_value" if isinstance(value, int) else "string_value"
            setattr(one.attributes.add(key=key).value, field, value)
    serialized: bytes = data.SerializeToString()
    return serialized


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
