"""Native exports of frameworks: hard cases, each in the smallest file that shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from counterpoint.adapters import read
from counterpoint.trace import Trace


def only(folder: Path, *lines: Any) -> Trace:
    """The one trace in a file of these lines."""
    (folder / "run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (trace,) = read(folder, on_error="raise")
    return trace


def heard(trace: Trace) -> dict[str, list[str]]:
    """Agent and number of the turn -> agents heard in it."""
    agents = {step.id: step.agent for step in trace.steps}
    return {
        f"{step.agent} {number}": [agents[transfer.source] for transfer in step.heard]
        for number, step in enumerate(trace.steps, 1)
    }


def test_tokens_that_streamed_and_their_sum_are_one_text(tmp_path: Path) -> None:
    run: dict[str, Any] = {
        "run_id": "m",
        "name": "Chat",
        "parent_ids": [],
        "metadata": {"langgraph_node": "poet"},
    }
    reply = {"type": "ai", "data": {"content": "the sea", "usage_metadata": {"output_tokens": 2}}}
    chunks = [{"chunk": {"type": "AIMessageChunk", "data": {"content": text}}} for text in ("the ", "sea")]
    events = [
        {"event": "on_chat_model_start", "data": {"input": {"messages": [[]]}}},
        *({"event": "on_chat_model_stream", "data": chunk} for chunk in chunks),
        {"event": "on_chat_model_end", "data": {"output": reply}},
    ]
    (step,) = only(tmp_path, *(event | run for event in events)).steps
    assert (step.agent, step.text) == ("poet", "the sea")
    assert step.usage is not None
    assert step.usage.tokens_out == 2


def snapshot(step: int, said: dict[str, str], *tasks: tuple[str, str, str]) -> dict[str, Any]:
    messages = [{"type": "ai", "id": key, "content": text} for key, text in said.items()]
    return {
        "values": {"messages": messages},
        "next": [name for _, name, _ in tasks],
        "config": {"configurable": {"thread_id": "t", "checkpoint_id": str(step)}},
        "parent_config": {"configurable": {"checkpoint_id": str(step - 1)}} if step else None,
        "metadata": {"step": step},
        "created_at": f"2026-03-01T10:00:0{step}Z",
        "tasks": [
            {"id": key, "name": name, "result": {"messages": [{"type": "ai", "id": key, "content": text}]}}
            for key, name, text in tasks
        ],
    }


def test_two_runs_of_one_node_in_one_step_hear_the_step_before_and_not_each_other(tmp_path: Path) -> None:
    said = {"a": "split it", "b": "left", "c": "right"}
    trace = only(
        tmp_path,
        snapshot(3, said),
        snapshot(2, said, ("d", "sum", "both")),
        snapshot(1, {"a": "split it"}, ("b", "half", "left"), ("c", "half", "right")),
        snapshot(0, {}, ("a", "plan", "split it")),
    )
    assert heard(trace) == {
        "plan 1": [],
        "half 2": ["plan"],
        "half 3": ["plan"],
        "sum 4": ["plan", "half", "half"],
    }


def test_of_a_forked_history_the_branch_of_the_newest_snapshot_is_read(tmp_path: Path) -> None:
    newest = snapshot(1, {"a": "first", "b": "kept"}) | {"created_at": "2026-03-01T10:00:09Z"}
    left = snapshot(1, {"a": "first", "x": "dropped"}, ("x2", "ghost", "never"))
    left["config"] = {"configurable": {"thread_id": "t", "checkpoint_id": "other"}}
    trace = only(tmp_path, newest, left, snapshot(0, {"a": "first"}, ("b", "writer", "kept")))
    assert [(step.agent, step.text) for step in trace.steps] == [("writer", "kept")]


def test_a_message_that_is_delivered_to_many_is_said_once(tmp_path: Path) -> None:
    message = {"id": "m1", "source": "a", "type": "TextMessage", "content": "hello"}
    payload = json.dumps({"response": {"chat_message": message}})
    event = {"type": "Message", "sender": "a/1", "delivery_stage": "SEND", "payload": payload}
    assert [step.text for step in only(tmp_path, event, event, event).steps] == ["hello"]


def test_partial_events_and_thoughts_are_no_text(tmp_path: Path) -> None:
    event: dict[str, Any] = {"author": "a", "invocation_id": "e"}
    parts = [{"text": "hm", "thought": True}, {"text": "sunny"}]
    trace = only(
        tmp_path,
        event | {"partial": True, "content": {"parts": [{"text": "sun"}]}},
        event | {"partial": False, "content": {"parts": parts}},
    )
    assert [step.text for step in trace.steps] == ["sunny"]


def reply(id: str, block: dict[str, Any], tokens: int) -> dict[str, Any]:
    message = {"id": id, "role": "assistant", "content": [block], "usage": {"input_tokens": tokens}}
    return {
        "type": "assistant",
        "uuid": f"{id}{tokens}",
        "parentUuid": None,
        "sessionId": "s",
        "message": message,
    }


def test_tokens_of_a_reply_on_many_lines_count_once(tmp_path: Path) -> None:
    done = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]}
    result = {"type": "user", "uuid": "r", "parentUuid": None, "sessionId": "s", "message": done}
    first = reply("m", {"type": "tool_use", "id": "c1", "name": "f", "input": {}}, 7)
    second = reply("m", {"type": "text", "text": "so"}, 8)
    (step,) = only(tmp_path, first, result, second).steps
    assert step.usage is not None
    assert step.usage.tokens_in == 8


def test_two_agents_of_one_name_stay_two(tmp_path: Path) -> None:
    runs = [
        {"run_id": key, "agent_id": key, "agent_name": "Expert", "content": text}
        for key, text in (("law", "Allowed."), ("tax", "Costly."))
    ]
    trace = only(tmp_path, {"run_id": "r", "team_id": "t", "content": "Do it.", "member_responses": runs})
    assert {step.agent for step in trace.steps} == {"t", "Expert (law)", "Expert (tax)"}


def test_a_sub_agent_that_refers_to_its_caller_ends(tmp_path: Path) -> None:
    def trajectory(own: str, other: str) -> dict[str, Any]:
        result = {"source_call_id": "c", "content": "x", "subagent_trajectory_ref": [{"session_id": other}]}
        step = {"source": "agent", "message": own, "observation": {"results": [result]}}
        return {"schema_version": "ATIF-v1.6", "session_id": own, "agent": {"name": own}, "steps": [step]}

    (tmp_path / "x.json").write_text(json.dumps([trajectory("a", "b"), trajectory("b", "a")]))
    traces = list(read(tmp_path, on_error="raise"))
    assert [sorted(step.agent for step in trace.steps) for trace in traces] == [["a", "b"], ["a", "b"]]


def test_a_megabyte_of_one_word_is_compared_in_seconds(tmp_path: Path, takes_at_most: Any) -> None:
    def item(agent: str, text: str) -> dict[str, Any]:
        raw = {"type": "message", "content": [{"type": "output_text", "text": text}]}
        return {"type": "message_output_item", "agent": agent, "raw_item": raw}

    word = "word " * 200_000
    items = [item("a", word), item("b", f"You said {word}?"), item("c", "Yes.")]

    def compare() -> None:
        assert heard(only(tmp_path, {"new_items": items}))["b 2"] == ["a"]

    assert takes_at_most(10, compare)


def test_events_of_crewai_out_of_order_are_read_as_in_order(tmp_path: Path) -> None:
    golden = Path(__file__).parents[1] / "golden" / "crewai_events" / "lighthouse.jsonl"
    (tmp_path / "lighthouse.jsonl").write_text("\n".join(golden.read_text().splitlines()[::-1]))
    (backward,), (forward,) = read(tmp_path / "lighthouse.jsonl"), read(golden)
    assert [(step.agent, step.text, step.heard) for step in backward.steps] == [
        (step.agent, step.text, step.heard) for step in forward.steps
    ]
