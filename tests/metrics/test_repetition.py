"""Repeated calls and repeated text in prompts."""

from __future__ import annotations

import pytest
from small_worlds import judged, turn

from counterpoint.metrics.repetition import Turn, duplicate_work, duplicated_tokens
from counterpoint.trace import Call

BODIES = {
    "words": "the bridge carries forty tonnes " * 12,
    "one word": "x" * 400,
    "sentences": "The bridge carries forty tonnes. " * 12,
    "paragraphs": "The bridge carries forty tonnes.\n\n- It is closed on Mondays for repairs.\n",
}


@pytest.mark.parametrize(
    ("calls", "value", "repeated"),
    [
        ([("A", "find", "{}"), ("B", "find", "{}")], 1, 1),
        ([("A", "find", "{}"), ("A", "find", "{}")], 0, 1),
        ([("A", "find", '{"a": 1, "b": 2}'), ("B", "find", '{"b":2,"a":1}'), ("B", "open", "{}")], 0.5, 1),
        ([("A", "find", '"1"'), ("B", "find", "1")], 0, 0),
        ([("A", "find", '{"q": [1]}'), ("B", "find", '{"q": [1.0]}')], 1, 1),
        ([("A", "find", "true"), ("B", "find", "1")], 0, 0),
        ([("A", "find", "[" * 900 + "]" * 900), ("B", "find", "[" * 900 + "]" * 900)], 1, 1),
        ([("A", "find", "not  JSON"), ("B", "find", "not JSON")], 1, 1),
        ([("A", "find", "{}"), ("B", "open", "{}")], 0, 0),
    ],
)
def test_duplicate_work_is_the_share_of_distinct_calls_that_two_agents_made(calls, value, repeated):
    score = duplicate_work(calls)
    assert score.value == value
    assert score.parts["repeated"] == repeated


def test_duplicate_work_of_a_trace_takes_the_calls_of_agents():
    calls = (Call("1", "find", '{"q": 1}'),)
    steps = [turn("1", "ann", "", calls=calls), turn("2", "bob", "", calls=calls)]
    assert judged("duplicate_work", steps).value == 1
    assert "no tool call" in judged("duplicate_work", [turn("1", "ann", "hm")]).reason


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_body_that_is_delivered_again_counts_once_each_time(body):
    """A -> C, B -> C, and echoed C -> A: of three deliveries the second and the third are repeats."""
    steps = [
        turn("a", "A", body),
        turn("b", "B", body),
        turn("c", "C", body, "a", "b"),
        turn("a2", "A", "Thank you.", "c"),
    ]
    score = judged("duplicated_tokens", steps)
    assert score.value == pytest.approx(2 / 3)
    assert score.parts["duplicated"] == pytest.approx(score.parts["tokens"] * 2 / 3, abs=1)
    assert (score.parts["recorded"], score.parts["implied"]) == (0, 2)


@pytest.mark.parametrize("body", [BODIES["words"], BODIES["one word"]], ids=["words", "one word"])
def test_the_same_body_twice_in_a_recorded_prompt_is_a_repeat_whoever_it_is_ascribed_to(body):
    prompt = f"Critic: {body}\nSolver: {body}"
    score = judged("duplicated_tokens", [turn("c", "C", "Fine.", prompt=prompt)])
    assert score.value == pytest.approx(0.5, abs=0.01)
    assert score.parts["recorded"] == 1


def test_what_one_was_shown_or_said_before_is_a_repeat_and_what_others_were_shown_is_not():
    text = "A sentence that is long enough to matter."
    assert duplicated_tokens([Turn("A", (text,)), Turn("B", (text,))]).value == 0
    assert duplicated_tokens([Turn("A", (text,)), Turn("A", (text,))]).value == 0.5
    assert duplicated_tokens([Turn("A", (), text), Turn("A", (text,))]).value == 1


def test_short_passages_are_never_repeats():
    assert duplicated_tokens([Turn("A", ("Yes.",)), Turn("A", ("Yes.",))]).value == 0
    assert duplicated_tokens([Turn("A", ("Chief executive officer: ok",)), Turn("A", ("ok",))]).value == 0


def test_without_transfers_or_prompts_the_reason_says_so():
    steps = [turn("a", "A", "one"), turn("b", "B", "two")]
    assert "heard" in judged("duplicated_tokens", steps).reason
