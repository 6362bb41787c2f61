"""DyLAN and MAD: replies by rounds, and chat memories that tell who heard whom only by their texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from counterpoint.adapters import read, source
from counterpoint.adapters.dylan import sniff
from counterpoint.errors import TraceError
from counterpoint.trace import Trace


def told(trace: Trace) -> dict[str, list[str]]:
    return {step.id: [transfer.source for transfer in step.heard] for step in trace.steps}


def matrices(path: Path, *rows: Any) -> list[Trace]:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return list(read(path, on_error="raise"))


def test_whoever_speaks_in_a_round_heard_all_of_the_round_before(tmp_path: Path) -> None:
    (trace,) = matrices(tmp_path / "x.json", [["a", "d"], ["b", None], ["c", "e"]])
    assert [(step.id, step.agent, step.round, step.text) for step in trace.steps] == [
        ("1.1", "agent 1", 0, "a"),
        ("1.2", "agent 2", 0, "b"),
        ("1.3", "agent 3", 0, "c"),
        ("2.1", "agent 1", 1, "d"),
        ("2.3", "agent 3", 1, "e"),
    ]
    assert told(trace)["2.1"] == told(trace)["2.3"] == ["1.1", "1.2", "1.3"]
    assert {t.evidence for step in trace.steps for t in step.heard} == {"broadcast"}


def test_a_round_without_replies_hands_nothing_over_and_is_passed(tmp_path: Path) -> None:
    (trace,) = matrices(tmp_path / "x.json", [["a", None, "c"], ["b", None, None]])
    assert told(trace)["3.1"] == ["1.1", "1.2"]


@pytest.mark.parametrize(
    ("content", "correct", "importance"),
    [
        ("[True, False] 0.5\n9 4.5\n[[0.4, 0.6], [1, 0]]\n", [True, False], [[0.4, 0.6], [1, 0]]),
        ("[True]", [True, None], [None, None]),
        ("[True, False]\n\n[[", [True, False], [None, None]),
        ("0.5", [None, None], [None, None]),
        (None, [None, None], [None, None]),
    ],
)
def test_the_text_file_beside_says_what_was_right(
    tmp_path: Path, content: str | None, correct: list[Any], importance: list[Any]
) -> None:
    if content is not None:
        (tmp_path / "x.txt").write_text(content)
    traces = matrices(tmp_path / "x.json", [["a"], ["b"]], [["c"], [None]])
    assert [trace.correct for trace in traces] == correct
    assert [trace.labels.get("importance") for trace in traces] == importance


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([["a"], 3], "record 1: agent 2 is not a list of replies but int"),
        ([["a", 3], ["b", None]], "record 1: reply 2 of agent 1 is no text but int"),
        ({"Why?": []}, "record 1: question 'Why[?]' has no list of memories"),
        ({"Why?": [[[{"content": "x"}]]]}, "record 1: message 1 of 'agent 1' has no \"role\""),
    ],
)
def test_what_is_no_matrix_and_no_memory_is_named(tmp_path: Path, document: Any, problem: str) -> None:
    (tmp_path / "x").write_text(f"{json.dumps(document)}\n[]\n")
    with pytest.raises(TraceError, match=problem):
        list(read(tmp_path / "x", format="dylan", on_error="raise"))


@pytest.mark.parametrize(
    "document", [[], [[]], [["a"], ["b", "c"], ["d"]], [[None]], {}, {"a": []}, {"a": 1}]
)
def test_other_lists_and_objects_are_left_alone(tmp_path: Path, document: Any) -> None:
    (tmp_path / "x").write_text(json.dumps(document))
    assert not sniff(source(tmp_path / "x"))


A = "Seven times six is forty-two, as everyone knows."
B = "No, seven times six is forty-three, I have counted it."


def memory(*texts: str) -> list[dict[str, str]]:
    """Prompts and replies by turns."""
    return [
        {"role": "assistant" if number % 2 else "user", "content": text} for number, text in enumerate(texts)
    ]


def test_a_repeated_reply_is_that_of_the_round_before(tmp_path: Path) -> None:
    debate = {"7*6?": [[memory("7*6?", A, f"Other: {B}", A), memory("7*6?", B, f"Other: {A}", B)], 42]}
    (trace,) = matrices(tmp_path / "x", debate)
    assert (trace.task, trace.gold) == ("7*6?", "42")
    assert told(trace) == {
        "agent 1 1": [],
        "agent 2 1": [],
        "agent 1 2": ["agent 2 1"],
        "agent 2 2": ["agent 1 1"],
    }


def mad(path: Path, **players: Any) -> Trace:
    path.write_text(
        json.dumps({"players": {name.replace("_", " "): value for name, value in players.items()}})
    )
    (trace,) = read(path, on_error="raise")
    return trace


def test_the_opener_has_a_turn_more_and_the_judge_speaks_last(tmp_path: Path) -> None:
    trace = mad(
        tmp_path / "x",
        Side_A=memory("Go", "a1", "Again", "a2", "And", "a3"),
        Side_B=memory("?", "b1", "?", "b2"),
        Judge=memory("?", "j1", "?", "j2"),
        Moderator=memory("?", "m1", "?", "m2"),
    )
    assert [step.text for step in trace.steps] == ["a1", "a2", "b1", "m1", "a3", "b2", "j1", "j2", "m2"]
    assert [step.round for step in trace.steps] == [0, 0, 0, 0, 1, 1, 1, 1, 1]
    assert trace.task == "Go"


def test_a_text_quoted_in_a_longer_one_came_with_that(tmp_path: Path) -> None:
    trace = mad(
        tmp_path / "x",
        A=memory("Go", A, "Again", f"I said: {A} So it is."),
        B=memory(f"I said: {A} So it is.", B),
    )
    assert told(trace)["B 1"] == ["A 2"]


def test_real_debates_follow_their_protocol(data: Path) -> None:
    for trace in read(data / "traces" / "mad_debate", on_error="raise"):
        for step in trace.steps:
            heard = {transfer.source.rpartition(" ")[0] for transfer in step.heard}
            if step.agent == "Affirmative side":
                assert heard == ({"Negative side"} if step.round else set())
            elif step.agent == "Negative side":
                assert heard == {"Affirmative side"}
            elif step.id != "Judge 2":
                assert heard == {"Affirmative side", "Negative side"}
        assert trace.gold
        assert trace.answer
