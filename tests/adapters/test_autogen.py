"""AutoGen AgentChat: what an agent does and says is one step, and everyone hears it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from counterpoint.adapters import read
from counterpoint.errors import TraceError
from counterpoint.trace import Call, Step, Trace


def message(source: str, kind: str, content: Any = None, **rest: Any) -> dict[str, Any]:
    return {"source": source, "type": kind, "content": content, "models_usage": None, **rest}


def tokens(prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion}


def run(*messages: dict[str, Any], path: Path) -> Trace:
    path.write_text(json.dumps({"messages": messages, "stop_reason": None}))
    (trace,) = read(path, on_error="raise")
    return trace


def said(trace: Trace) -> list[tuple[str, str, str]]:
    return [(step.agent, step.kind, step.text) for step in trace.steps]


def heard(step: Step) -> dict[str, str]:
    return {transfer.source: transfer.evidence for transfer in step.heard}


CALL = {"id": "c", "name": "look", "arguments": "{}"}
FOUND = {"call_id": "c", "name": "look", "content": "blue", "is_error": False}


def test_request_execution_and_summary_are_one_step(tmp_path: Path) -> None:
    trace = run(
        message("a", "ToolCallRequestEvent", [CALL], models_usage=tokens(3, 1)),
        message("a", "ToolCallExecutionEvent", [FOUND]),
        message("a", "TextMessage", "It is blue.", models_usage=tokens(5, 2)),
        message("a", "TextMessage", "Anything else?"),
        path=tmp_path / "x",
    )
    assert said(trace) == [("a", "agent", "It is blue."), ("a", "agent", "Anything else?")]
    assert trace.steps[0].calls == (Call("c", "look", "{}", "blue"),)
    assert (trace.steps[0].usage.tokens_in, trace.steps[0].usage.tokens_out) == (8, 3)  # type: ignore[union-attr]
    assert trace.steps[1].usage is None


def test_a_thought_is_said_only_where_nothing_else_is(tmp_path: Path) -> None:
    trace = run(
        message("a", "ThoughtEvent", "Hm."),
        message("a", "TextMessage", "Blue."),
        message("b", "ThoughtEvent", "Hm?"),
        message("b", "ToolCallRequestEvent", [CALL]),
        path=tmp_path / "x",
    )
    assert said(trace) == [("a", "agent", "Blue."), ("b", "agent", "Hm?")]
    assert trace.steps[1].calls == (Call("c", "look", "{}"),)


def test_agents_that_work_at_the_same_time_keep_their_own_calls(tmp_path: Path) -> None:
    trace = run(
        message("a", "ToolCallRequestEvent", [CALL]),
        message("b", "ToolCallRequestEvent", [CALL]),
        message("b", "ToolCallExecutionEvent", [FOUND]),
        message("a", "ToolCallExecutionEvent", [{**FOUND, "is_error": True}]),
        message("b", "TextMessage", "Blue."),
        message("a", "ToolCallSummaryMessage", "blue"),
        path=tmp_path / "x",
    )
    assert said(trace) == [("a", "agent", "blue"), ("b", "agent", "Blue.")]
    assert [step.calls[0].error for step in trace.steps] == ["blue", None]


def test_a_handoff_is_explicit_for_its_target_and_broadcast_for_others(tmp_path: Path) -> None:
    trace = run(
        message("user", "TextMessage", "Why?"),
        message("a", "HandoffMessage", "To c, please.", target="c"),
        message("b", "TextMessage", "Me?"),
        message("c", "TextMessage", "So."),
        path=tmp_path / "x",
    )
    assert trace.task == "Why?"
    assert heard(trace.steps[2]) == {"0": "broadcast", "1": "broadcast"}
    assert heard(trace.steps[3]) == {"0": "broadcast", "1": "explicit", "2": "broadcast"}


def test_chunks_are_dropped_and_choices_of_a_speaker_are_control(tmp_path: Path) -> None:
    trace = run(
        message("SelectorGroupChatManager", "SelectSpeakerEvent", ["a"]),
        message("a", "ModelClientStreamingChunkEvent", "Bl"),
        message("a", "TextMessage", "Blue."),
        message("DiGraphStopAgent", "StopMessage", "Digraph execution is complete"),
        path=tmp_path / "x",
    )
    assert [kind for _, kind, _ in said(trace)] == ["control", "agent", "control"]
    assert heard(trace.steps[1]) == {}


def test_plan_and_instruction_of_the_orchestrator_are_one_turn(tmp_path: Path) -> None:
    trace = run(
        message("MagenticOneOrchestrator", "TextMessage", "The plan."),
        message("MagenticOneOrchestrator", "TextMessage", "Begin."),
        message("Coder", "TextMessage", "Done."),
        message("MagenticOneOrchestrator", "TextMessage", "Good."),
        path=tmp_path / "x",
    )
    assert [text for _, _, text in said(trace)] == ["The plan.\n\nBegin.", "Done.", "Good."]


def test_code_that_an_agent_runs_is_a_call(tmp_path: Path) -> None:
    trace = run(
        message("a", "CodeGenerationEvent", "```python\n1/0\n```"),
        message("a", "CodeExecutionEvent", result={"exit_code": 1, "output": "ZeroDivisionError"}),
        message("a", "TextMessage", "That fails."),
        path=tmp_path / "x",
    )
    (call,) = trace.steps[0].calls
    assert (call.tool, call.arguments, call.error) == ("code", "```python\n1/0\n```", "ZeroDivisionError")


def test_a_message_is_done_at_its_time_and_begun_at_an_unknown_one(tmp_path: Path) -> None:
    at = [f"1970-01-01T00:00:0{second}Z" for second in range(1, 5)]
    trace = run(
        message("user", "TextMessage", "Why?", created_at=at[0]),
        message("a", "ToolCallRequestEvent", [CALL], created_at=at[1]),
        message("a", "TextMessage", "So.", created_at=at[2]),
        message("b", "TextMessage", "I see.", created_at=at[3]),
        path=tmp_path / "x",
    )
    assert [(step.started_at, step.ended_at) for step in trace.steps] == [(1, 1), (2, 3), (None, 4)]


def test_a_message_without_a_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match='record 1: message 2 has no "source" \\(found: type\\)'):
        run(message("a", "TextMessage", "x"), {"type": "TextMessage"}, path=tmp_path / "x")
