"""The redundancy of traces: what counts as an item, a step, a task and a claim."""

from __future__ import annotations

import re

import pytest
from small_worlds import Vectors, chain, judged, turn

from counterpoint.errors import UsageError
from counterpoint.metrics import near
from counterpoint.metrics.layers import sentences
from counterpoint.trace import Call


def call(tool: str, result: str | None, arguments: str = "{}") -> Call:
    return Call("c", tool, arguments, result)


# --- memory --------------------------------------------------------------------------------------


def test_items_are_the_entries_of_what_retrieval_tools_return():
    steps = [
        turn("1", "ann", "", calls=(call("search_notes", '["one fact", "two facts", "three"]'),)),
        turn("2", "bob", "", calls=(call("search_notes", '{"total": 2, "hits": ["Three", "four"]}'),)),
        turn("3", "bob", "", calls=(call("multiply", "three"),)),
    ]
    assert judged("memory_redundancy", steps).value == 0.25


def test_what_is_no_list_is_one_item():
    steps = [turn(name, name, "", calls=(call("lookup", "A page on bridges."),)) for name in ("ann", "bob")]
    assert judged("memory_redundancy", steps).value == 1


@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        ((), "no tool call is recorded"),
        ((call("multiply", "4"),), r"tools: multiply.*tools=REGEX"),
        ((call("search", None),), "have no result"),
    ],
)
def test_without_retrieved_items_the_reason_says_what_to_record(calls, reason):
    score = judged("memory_redundancy", [turn("1", "ann", "hm", calls=calls)])
    assert score.value is None
    assert re.search(reason, score.reason)


def test_tools_that_retrieve_can_be_named():
    steps = [turn(name, name, "", calls=(call("kb", "A page."),)) for name in ("ann", "bob")]
    assert judged("memory_redundancy(tools=kb)", steps).value == 1
    with pytest.raises(UsageError, match="no regular expression"):
        judged("memory_redundancy(tools=[)", steps)


# --- reasoning -----------------------------------------------------------------------------------


HALF = Vectors({"east": [1, 0], "nearly east": [0.9, 0.43], "north": [0, 1], "EAST ": [0, -1]})


def test_a_step_near_an_earlier_one_of_another_agent_is_redundant():
    steps = chain(("ann", "east"), ("bob", "nearly east"), ("bob", "nearly east"), ("cat", "north"))
    score = judged("reasoning_redundancy", steps, embed=HALF)
    assert score.value == 0.5
    assert (score.parts["near_pairs"], score.parts["pairs"], score.parts["missing"]) == (2, 5, 0)
    assert score.detail == {"first": "bob1 (bob) repeats ann0 (ann)"}
    assert judged("reasoning_redundancy(threshold=.95)", steps, embed=HALF).value == 0


def test_equal_texts_are_near_whatever_the_embedder_says():
    steps = chain(("ann", "east"), ("bob", "EAST "), ("cat", ""))
    score = judged("reasoning_redundancy", steps, embed=HALF)
    assert (score.value, score.parts["missing"], score.parts["pair_rate"]) == (0.5, 1, 1)


def test_long_traces_are_compared_within_a_window_and_say_so(monkeypatch):
    monkeypatch.setattr(near, "_BLOCK", 2)
    steps = chain(("ann", "east"), *[("ann", "north")] * 4, ("bob", "nearly east"), ("cat", "east"))
    short = judged("reasoning_redundancy(window=3)", steps, embed=HALF)
    assert (short.parts["duplicates"], short.parts["window"]) == (1, 3)  # cat, who says what ann said
    whole = judged("reasoning_redundancy", steps, embed=HALF)
    assert whole.parts["duplicates"] == 2
    assert "window" not in whole.parts


def test_reasoning_redundancy_needs_two_agents_texts_and_an_embedder():
    assert "two agents" in judged("reasoning_redundancy", chain(("ann", "east")), embed=HALF).reason
    assert "embedder" in judged("reasoning_redundancy", chain(("ann", "x"), ("bob", "y"))).reason
    silent = judged("reasoning_redundancy", chain(("ann", ""), ("bob", " ")), embed=HALF)
    assert "no step says anything" in silent.reason


# --- tasks ---------------------------------------------------------------------------------------


def test_recorded_assignments_come_first():
    labels = {"assignments": {"t1": ["ann"], "t2": "bob", "t3": ["ann", "bob"]}}
    assert judged("task_redundancy", chain(("ann", "x")), labels=labels).value == pytest.approx(1 / 3)


def test_task_steps_that_agents_hear_are_assignments():
    steps = [
        turn("t1", "user", "east", kind="task"),
        turn("t2", "user", "north", kind="task"),
        turn("1", "ann", "going", "t1"),
        turn("2", "bob", "going", "t2"),
        turn("3", "cat", "going", "t1"),
    ]
    assert judged("task_redundancy", steps).value == 0.5


def test_the_task_of_the_run_itself_is_no_assignment():
    steps = [
        turn("t1", "user", "east", kind="task"),
        *(turn(name, name, "on it", "t1") for name in ("a", "b")),
    ]
    score = judged("task_redundancy", steps, task="east")
    assert score.value is None
    assert "assignments" in score.reason


def test_requests_to_called_agents_are_assignments_and_their_returns_are_not():
    boss = Vectors({"east": [1, 0], "nearly east": [0.9, 0.43], "done": [0, 1], "also done": [-1, 0]})
    steps = [
        turn("b1", "boss", "east"),
        turn("w1", "ann", "done", "b1", evidence="call"),
        turn("b2", "boss", "nearly east", "w1", evidence="call"),
        turn("w2", "bob", "also done", "b2", evidence="call"),
        turn("b3", "boss", "done", "w2", evidence="call"),
    ]
    score = judged("task_redundancy", steps, embed=boss)
    assert score.value == 1  # the two requests are one task, and two agents got it
    assert judged("task_redundancy(threshold=.95)", steps, embed=boss).value == 0
    assert score.parts["count"] == 1


def test_a_step_that_calls_two_agents_at_once_is_unclear():
    steps = [
        turn("b1", "boss", "you this, you that"),
        turn("w1", "ann", "done", "b1", evidence="call"),
        turn("w2", "bob", "done", "b1", evidence="call"),
    ]
    score = judged("task_redundancy", steps)
    assert (score.value, score.parts["unclear"]) == (None, 1)


# --- knowledge -----------------------------------------------------------------------------------

P, Q, R = "We need four tins.", "The wall is 45 square meters.", "Paint dries in two hours."


def test_knowledge_duplication_of_a_trace_counts_delivered_sentences():
    """A -> B {p, q}, C -> B {q, r}, B -> D {p}: the worked example."""
    steps = [
        turn("a", "A", f"{P} {Q}"),
        turn("c", "C", f"{Q}\n{R} Ok."),
        turn("b", "B", P.upper(), "a", "c"),
        turn("d", "D", "", "b"),
    ]
    score = judged("knowledge_duplication", steps)
    assert (score.value, score.parts["receiver"]) == pytest.approx((0.4, 0.2))


def test_a_sentence_of_two_words_is_no_claim():
    assert sentences("Very well. I agree!") == []
    assert "three words" in judged("knowledge_duplication", chain(("A", "Yes."), ("B", "No."))).reason
    assert judged("knowledge_duplication", [turn("a", "A", P), turn("b", "B", P)]).value is None
