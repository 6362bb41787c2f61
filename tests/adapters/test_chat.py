"""Chat lists: a name or a role speaks, calls and results are one step, the chat is shared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from counterpoint.adapters import from_messages, read, source
from counterpoint.adapters.chat import sniff
from counterpoint.errors import TraceError
from counterpoint.trace import Call, Step


def call(id: str, tool: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": tool, "arguments": "{}"}}


def heard(step: Step) -> dict[str, str]:
    return {transfer.source: transfer.evidence for transfer in step.heard}


@pytest.mark.parametrize(
    ("message", "agent", "kind"),
    [
        ({"role": "user"}, "user", "task"),
        ({"role": "user", "name": "Admin"}, "Admin", "agent"),
        ({"role": "assistant", "name": "user_proxy"}, "user_proxy", "task"),
        ({"role": "human"}, "human", "task"),
        ({"role": "assistant"}, "assistant", "agent"),
        ({"role": "assistant", "name": " solver "}, "solver", "agent"),
        ({"name": "solver"}, "solver", "agent"),
        ({"role": "tool", "name": "clock"}, "clock", "tool"),
    ],
)
def test_the_name_speaks_else_the_role(message: dict[str, Any], agent: str, kind: str) -> None:
    (step,) = from_messages([{**message, "content": "hi"}]).steps
    assert (step.agent, step.kind, step.text) == (agent, kind, "hi")


def test_calls_results_and_the_next_message_of_an_agent_are_one_step() -> None:
    trace = from_messages(
        [
            {"role": "assistant", "name": "a", "content": "I look.", "tool_calls": [call("1", "look")]},
            {"role": "tool", "tool_call_id": "1", "content": "blue"},
            {"role": "assistant", "name": "A", "content": "Blue."},
            {"role": "assistant", "name": "a", "content": "Really."},
        ]
    )
    assert [step.text for step in trace.steps] == ["I look.\n\nBlue.", "Really."]
    assert trace.steps[0].calls == (Call("1", "look", "{}", "blue"),)


def test_a_result_finds_its_call_however_late_it_comes() -> None:
    trace = from_messages(
        [
            {"role": "assistant", "name": "a", "tool_calls": [call("1", "look"), call("2", "look")]},
            {"role": "assistant", "name": "b", "content": "Wait."},
            {"role": "tool", "tool_call_id": "2", "content": "second"},
            {"role": "tool", "tool_call_id": "1", "content": "first"},
            {"role": "tool", "tool_call_id": "9", "content": "whose?"},
        ]
    )
    assert [c.result for c in trace.steps[0].calls] == ["first", "second"]
    assert [(step.agent, step.kind) for step in trace.steps[1:]] == [("b", "agent"), ("tool", "tool")]


def test_everyone_hears_what_was_said_since_their_last_turn() -> None:
    trace = from_messages(
        [{"role": "user", "content": "?"}]
        + [{"role": "assistant", "name": name, "content": "hi"} for name in ("a", "b", "a")]
    )
    assert [heard(step) for step in trace.steps] == [
        {},
        {"0": "broadcast"},
        {"0": "broadcast", "1": "broadcast"},
        {"2": "broadcast"},
    ]


def test_a_transfer_tool_is_explicit_for_the_agent_that_it_names() -> None:
    trace = from_messages(
        [
            {"role": "assistant", "name": "Triage", "tool_calls": [call("1", "transfer_to_refund_agent")]},
            {"role": "tool", "tool_call_id": "1", "content": "ok"},
            {"role": "assistant", "name": "Refund Agent", "content": "Refunded."},
        ]
    )
    assert heard(trace.steps[1]) == {"0": "explicit"}


def test_name_and_role_may_stand_under_other_keys(tmp_path: Path) -> None:
    messages = [
        {"who": "ann", "type": "ai", "content": "1"},
        {"who": "bob", "type": "ai", "content": "2"},
    ]
    (tmp_path / "x.json").write_text(json.dumps(messages))
    trace = from_messages(messages, name_key="who", role_key="type", task="Count.", gold="2", id="count")
    assert [step.agent for step in trace.steps] == ["ann", "bob"]
    assert (trace.id, trace.task, trace.gold) == ("count", "Count.", "2")
    (found,) = read(tmp_path, name_key="who", role_key="type")
    assert found.steps == trace.steps
    with pytest.raises(TraceError, match=r'no message has a "speaker" \(found: who, type, content\)'):
        from_messages(messages, name_key="speaker")


def test_messages_of_a_client_library_are_read_as_they_are() -> None:
    class Message:
        def model_dump(self, **how: Any) -> dict[str, Any]:
            return {"role": "assistant", "content": "hi"}

    assert from_messages([Message()]).steps[0].text == "hi"


def test_contents_of_several_parts_give_their_texts() -> None:
    content = [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "data:"}}]
    assert from_messages([{"role": "user", "content": content}]).task == "Look:"


def test_an_id_is_made_of_the_messages() -> None:
    one, two = ([{"role": "user", "content": text}] for text in ("a", "\ud83d"))
    assert from_messages(one).id == from_messages(one).id != from_messages(two).id


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        (["hi"], "a conversation: item 1 is not an object but str"),
        ([{"content": "hi"}], 'message 1 has neither "name" nor "role" (found: content)'),
    ],
)
def test_what_is_no_message_is_named(messages: list[Any], error: str) -> None:
    with pytest.raises(TraceError) as caught:
        from_messages(messages)
    assert str(caught.value) == error


@pytest.mark.parametrize(
    "document",
    [
        [],
        [{"content": "a", "role": "Orchestrator (thought)"}],
        {"messages": [{"role": "user", "content": "a"}], "run_id": 1},
        {"messages": [{"source": "user", "content": "a"}]},
        {"messages": "a"},
        [{"role": "user"}],
        [[]],
        [1],
    ],
)
def test_other_lists_are_not_taken_for_chats(tmp_path: Path, document: Any) -> None:
    (tmp_path / "x.json").write_text(json.dumps(document))
    assert not sniff(source(tmp_path / "x.json"))
