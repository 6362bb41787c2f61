"""Information survival: facts on their way to the output."""

from __future__ import annotations

import pytest
from small_worlds import judged, turn

from counterpoint.errors import UsageError
from counterpoint.metrics.planted import information_survival

CHAIN = [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("carried", "edges", "value", "shares"),
    [
        ([[1, 1, 1]], CHAIN, 1, {"hop_1": 1, "hop_2": 1, "heard_1": 1}),
        ([[1, 1, 0]], CHAIN, 0, {"hop_1": 1, "hop_2": 0, "heard_1": 0.5}),
        ([[1, 0, 0]], CHAIN, 0, {"hop_1": 0, "heard_1": 0}),
        ([[1, 0, 1]], CHAIN, 1, {"hop_1": 0, "heard_1": 0}),  # found again at the end, but not handed on
        ([[1, 0, 1], [0, 1, 0]], [(0, 2), (1, 2)], 0.5, {"hop_1": 0.5, "heard_2": 0.5}),
        ([[0, 0, 0]], CHAIN, 0, {}),
    ],
)
def test_survival_by_hop_and_by_texts_heard(carried, edges, value, shares):
    score = information_survival(carried, edges, {2})
    assert score.value == value
    assert {name: part for name, part in score.parts.items() if name.startswith(("hop_", "heard_"))} == shares


def test_distant_hops_are_counted_together():
    n = 20
    parts = information_survival([[True] * n], [(k, k + 1) for k in range(n - 1)], {n - 1}).parts
    assert max(int(name[4:]) for name in parts if name.startswith("hop_")) == 8
    assert (parts["handovers"], parts["kept"]) == (19, 19)


def test_no_facts_or_no_output_is_undefined_and_edges_go_forward():
    assert information_survival([], [], {0}).value is None
    assert information_survival([[1, 1]], [(0, 1)], set()).value is None
    with pytest.raises(UsageError, match="back in time"):
        information_survival([[1, 1]], [(1, 0)], {1})


FACTS = {"planted": ["limit: 40 tonnes", "closed on Mondays"]}


def test_facts_of_a_trace_are_sought_by_their_words_in_order():
    steps = [
        turn("a", "ann", "The LIMIT, 40 tonnes, holds. It is closed on Mondays."),
        turn("b", "bob", "On Mondays it is closed; limit 40 tonnes!", "a"),
    ]
    score = judged("information_survival", steps, labels=FACTS)
    assert (score.value, score.parts["hop_1"]) == (0.5, 0.5)
    assert judged("information_survival", steps, labels={"planted": "40"}).value == 1
    assert judged("information_survival", steps, labels={"planted": {"x": "140"}}).value == 0


def test_the_output_is_the_decision_and_the_recorded_answer():
    steps = [
        turn("a", "ann", "The limit: 40 tonnes."),
        turn("b", "bob", "Fine.", "a"),
        turn("d", "judge", "Limit 40 tonnes.", "b", kind="decision"),
    ]
    assert judged("information_survival", steps, labels=FACTS, answer="closed on Mondays").value == 1
    assert judged("information_survival", steps[:2], labels=FACTS).value == 0


def test_without_planted_facts_the_reason_says_what_to_record():
    for labels in ({}, {"planted": []}, {"planted": 4}):
        assert "planted" in judged("information_survival", [turn("a", "ann", "x")], labels=labels).reason
