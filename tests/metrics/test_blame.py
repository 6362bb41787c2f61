"""Blame: which step is named by which rule, and on labeled runs how often it is the right one."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_worlds import context_of, judged, turn

import counterpoint as cp
from counterpoint.contracts import Context
from counterpoint.metrics.blame import blame
from counterpoint.trace import Call


def says(name: str, agent: str, answer: int, *heard: str, **fields):
    return turn(name, agent, f"The answer is {answer}.", *heard, **fields)


def named(steps, **fields) -> tuple[str, str, float]:
    score = judged("blame", steps, **fields)
    assert score.value is not None
    assert steps[int(score.parts["step"])].id == score.detail["step_id"]
    return score.detail["step_id"], score.detail["rule"], score.value


def test_the_wrong_answer_is_traced_back_to_where_it_begins():
    steps = [says("a", "A", 8), says("b", "B", 8, "a"), says("c", "C", 8, "b")]
    assert named(steps, gold="7") == ("a", "origin", 0.7)


def test_who_had_heard_the_right_answer_turned():
    steps = [says("a", "A", 7), says("b", "B", 8, "a"), says("end", "J", 8, "b", kind="decision")]
    assert named(steps, gold="7") == ("b", "turned", 0.9)


def test_a_decision_for_what_nobody_said_is_the_decisions():
    steps = [says("a", "A", 7), says("end", "J", 9, "a", kind="decision")]
    assert named(steps, gold="7") == ("end", "decision", 0.7)


def test_the_first_turn_that_asked_for_a_call_that_failed():
    steps = [
        turn("a", "A", "Let us begin."),
        turn("b", "B", "Please run this.", "a"),
        turn("x", "terminal", "exitcode: 1 (execution failed)", "b", kind="tool"),
        turn("c", "A", "That went well.", "b"),
    ]
    assert named(steps, correct=False) == ("b", "failure", 0.5)


@pytest.mark.parametrize(
    "fields", [{"error": "rate limit"}, {"calls": (Call("c", "search", error="timeout"),)}]
)
def test_a_turn_with_an_error_of_its_own(fields):
    steps = [turn("a", "A", "Let us begin."), turn("b", "B", "Well.", "a", **fields)]
    assert named(steps, correct=False)[:2] == ("b", "failure")


def test_the_first_turn_that_says_what_the_run_ended_with():
    steps = [
        turn("a", "A", "Let us see."),
        turn("b", "B", "It bites, they sing.", "a"),
        turn("c", "A", "Bites."),
    ]
    assert named(steps, correct=False, answer="bites") == ("b", "claim", 0.4)


def test_the_first_turn_that_brings_a_number_which_the_last_still_holds():
    steps = [
        turn("o", "A", "The task is: how much are 4 visits to the museum?"),
        turn("b", "B", "A visit is **$20.00**.", "o"),
        turn("c", "A", "4 visits of 20 are 80.", "b"),
        turn("d", "A", "TERMINATE"),
    ]
    assert named(steps, correct=False, task="how much are 4 visits to the museum?")[:2] == ("b", "claim")


def test_without_any_mark_it_is_the_turn_that_most_was_taken_up_from():
    steps = [
        turn("a", "A", "yellow submarine anchors quietly"),
        turn("b", "B", "yellow submarine anchors noisily", "a"),
        turn("c", "C", "nothing new", "b"),
    ]
    assert named(steps, correct=False)[1:] == ("source", 0.2)


def test_a_run_that_is_right_has_no_one_to_blame_and_one_of_unknown_outcome_says_so():
    steps = [says("a", "A", 7), says("b", "B", 7, "a")]
    assert "the run is right" in judged("blame", steps, gold="7").reason
    assert judged("blame", steps).detail["outcome"] == "unknown"


def test_failure_labels_are_not_looked_at():
    steps = [says("a", "A", 8), says("b", "B", 8, "a")]
    labels = {"mistake_agent": "B", "mistake_step": 1}
    assert named(steps, gold="7", labels=labels) == named(steps, gold="7")


def test_on_labeled_runs_it_names_as_many_as_the_parity_page_says(data: Path):
    agents = steps = runs = 0
    for file in sorted((data / "traces" / "who_and_when").glob("*.json")):
        for trace in cp.read(str(file)):
            found = blame(Context(trace=trace, graph=cp.graph(trace)))
            assert found is not None
            runs += 1
            agents += trace.steps[found.step].agent == trace.labels["mistake_agent"]
            steps += found.step == trace.labels["mistake_step"]
    if runs != 8:
        pytest.skip(f"{runs} of the 8 labeled runs are here")
    assert (agents, steps) == (8, 4)


def test_a_long_trace_is_blamed_in_linear_time():
    steps = [turn(f"s{number}", "AB"[number % 2], f"word{number % 50} again") for number in range(3000)]
    assert blame(context_of(steps, correct=False)) is not None
