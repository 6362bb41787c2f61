"""OpenAI Agents SDK: exported spans, run items, and the two of one run as one trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from counterpoint.adapters import read
from counterpoint.trace import Trace

ANSWER = "You get your 35 euro back."


def span(id: str, parent: str | None, start: int, data: dict[str, Any], trace: str = "t1") -> dict[str, Any]:
    times = {"started_at": f"2026-03-01T10:00:{start:02}Z", "ended_at": f"2026-03-01T10:00:{start + 1:02}Z"}
    return {
        "object": "trace.span",
        "id": id,
        "trace_id": trace,
        "parent_id": parent,
        "span_data": data,
    } | times


def exported(trace: str = "t1") -> dict[str, Any]:
    """A clerk calls a tool; over the Responses API, so without any text."""
    spans = [
        span(f"{trace}-1", None, 1, {"type": "agent", "name": "Clerk"}, trace),
        span(f"{trace}-2", f"{trace}-1", 2, {"type": "response", "usage": {"input_tokens": 9}}, trace),
        span(f"{trace}-3", f"{trace}-1", 3, {"type": "function", "name": "pay", "output": "paid"}, trace),
    ]
    return {"data": [{"object": "trace", "id": trace, "workflow_name": "desk"}, *spans]}


def items(**more: Any) -> dict[str, Any]:
    """The same run, as its items tell it."""
    call = {"type": "function_call", "call_id": "c1", "name": "pay", "arguments": ""}
    message = {"type": "message", "content": [{"type": "output_text", "text": ANSWER}]}
    new = [
        {"type": "tool_call_item", "agent": "Clerk", "raw_item": call},
        {"type": "tool_call_output_item", "agent": "Clerk", "raw_item": {"call_id": "c1", "output": "paid"}},
        {"type": "message_output_item", "agent": "Clerk", "raw_item": message},
    ]
    return {"input_list": [{"role": "user", "content": "My 35 euro!"}], "new_items": new} | more


def saved(folder: Path, **documents: dict[str, Any]) -> list[Trace]:
    for name, document in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(document))
    return list(read(folder, on_error="raise"))


@pytest.mark.parametrize("more", [{}, {"trace_id": "t1"}])
def test_spans_and_items_of_one_run_become_one_trace(tmp_path: Path, more: dict[str, Any]) -> None:
    (trace,) = saved(tmp_path, spans=exported(), items=items(**more))
    (step,) = trace.steps
    assert (trace.id, trace.task, trace.warnings) == ("spans.json", "My 35 euro!", ())
    assert (step.text, [call.tool for call in step.calls]) == (ANSWER, ["pay"])
    assert step.usage is not None
    assert (step.usage.tokens_in, step.started_at) == (9, 1772359201.0)


def test_items_that_fit_two_traces_are_joined_with_neither(tmp_path: Path) -> None:
    traces = saved(tmp_path, first=exported("t1"), second=exported("t2"), items=items())
    assert [trace.id for trace in traces] == ["first.json", "second.json", "items.json"]
    assert [trace.steps[0].text for trace in traces] == ["", "", ANSWER]


def test_items_that_name_another_trace_stay_apart(tmp_path: Path) -> None:
    assert len(saved(tmp_path, spans=exported(), items=items(trace_id="t9"))) == 2


def test_one_half_alone_is_read_as_it_is(tmp_path: Path) -> None:
    (trace,) = saved(tmp_path, spans=exported())
    assert trace.warnings == ("1 of 1 model calls have no reply text",)


def test_spans_one_a_line_are_one_trace(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text("".join(json.dumps(item) + "\n" for item in exported()["data"]))
    (trace,) = read(file, on_error="raise")
    assert trace.labels["workflow_name"] == "desk"
