"""Redundancy: every worked number of its definitions, and what must hold whatever the numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.errors import UsageError
from counterpoint.metrics import redundancy
from counterpoint.score import Score

NEAR = {("A1", "B1"): 0.9, ("A1", "C1"): 0.86, ("B1", "C1"): 0.8}
STEPS = ["A1", "B1", "B2", "C1"]


def cosines(steps: list[str], near: dict[tuple[str, str], float]) -> np.ndarray:
    matrix = np.eye(len(steps))
    for (one, two), value in near.items():
        matrix[steps.index(one), steps.index(two)] = matrix[steps.index(two), steps.index(one)] = value
    return matrix


@pytest.mark.parametrize(
    ("retrieved", "expected"),
    [
        ({"A": {1, 2, 3}, "B": {3, 4}}, 0.25),
        ({"A": {1, 2}, "B": {1, 2}, "C": {2}}, 1),
        ({"A": {1}, "B": {2}}, 0),
        ({"A": [1, 1]}, 0),
    ],
)
def test_memory_redundancy_is_the_share_of_items_that_two_agents_retrieved(retrieved, expected):
    assert redundancy.memory(retrieved).value == expected


def test_reasoning_redundancy_counts_steps_that_another_agent_said_earlier():
    score = redundancy.reasoning(["A", "B", "B", "C"], cosines(STEPS, NEAR))
    assert score.value == 0.5
    assert score.parts["pair_rate"] == 2 / 5
    assert score.parts == {"duplicates": 2, "count": 4, "near_pairs": 2, "pairs": 5, "pair_rate": 0.4}


def test_repeating_oneself_is_no_redundancy_across_agents():
    score = redundancy.reasoning(["A", "A"], [[1, 0.99], [0.99, 1]])
    assert score.value == 0
    assert "pair_rate" not in score.parts


def test_one_triangle_of_cosines_is_enough():
    full = cosines(STEPS, NEAR)
    for half in (np.triu(full, 1), np.tril(full, -1)):
        assert redundancy.reasoning("ABBC", half) == redundancy.reasoning("ABBC", full)


def test_the_threshold_is_strict():
    at, above = [[1, 0.85], [0.85, 1]], [[1, 0.8501], [0.8501, 1]]
    assert redundancy.reasoning("AB", at).value == 0
    assert redundancy.reasoning("AB", above).value == 0.5
    assert redundancy.reasoning("AB", at, threshold=0.8).value == 0.5


@pytest.mark.parametrize("wrong", [[[1, 0]], [[1], [1, 2]], np.ones((3, 3)), [[1, np.nan], [0, 1]], "no"])
def test_cosines_that_are_no_square_of_numbers_are_refused(wrong):
    with pytest.raises(UsageError, match="cosine"):
        redundancy.reasoning(["A", "B"], wrong)


@pytest.mark.parametrize(
    ("assignments", "expected"),
    [
        ({"t1": {"A"}, "t2": {"B"}, "t3": {"A", "B"}}, 1 / 3),
        ({"t1": {"A", "B"}, "t2": {"A", "C"}}, 1),
        ({"t1": ["A", "A"], "t2": []}, 0),
    ],
)
def test_task_redundancy_is_the_share_of_tasks_that_two_agents_were_given(assignments, expected):
    assert redundancy.task(assignments).value == pytest.approx(expected)


def test_total_redundancy_adds_up_duplicates_and_counts():
    score = redundancy.total(
        redundancy.memory({"A": {1, 2, 3}, "B": {3, 4}}),
        redundancy.reasoning("ABBC", cosines(STEPS, NEAR)),
        redundancy.task({"t1": {"A"}, "t2": {"B"}, "t3": {"A", "B"}}),
    )
    assert score.value == pytest.approx(0.363636, abs=5e-7)
    assert (score.parts["duplicates"], score.parts["count"]) == (4, 11)
    assert sum(score.parts[layer] for layer in ("memory", "reasoning", "task")) == pytest.approx(score.value)


def test_an_empty_layer_adds_nothing_to_the_total_and_an_unknown_one_undefines_it():
    memory, nothing = redundancy.memory({"A": {1}, "B": {1, 2}}), redundancy.task({})
    assert redundancy.total(memory, redundancy.reasoning([], []), nothing).value == 0.5
    assert redundancy.total(redundancy.memory({}), redundancy.reasoning([], []), nothing).value is None
    unknown = redundancy.total(memory, Score.undefined("no embedder"), nothing)
    assert unknown.value is None
    assert "no embedder" in unknown.reason


@given(
    st.dictionaries(st.sampled_from("ABC"), st.sets(st.integers(0, 5))),
    st.dictionaries(st.integers(0, 5), st.sets(st.sampled_from("ABC"))),
    st.lists(st.sampled_from("ABC"), max_size=6),
    st.integers(0, 99),
)
def test_total_redundancy_lies_between_the_smallest_and_the_largest_layer(retrieved, assigned, agents, seed):
    matrix = np.random.default_rng(seed).uniform(0.5, 1, (len(agents), len(agents)))
    layers = [
        redundancy.memory(retrieved),
        redundancy.reasoning(agents, matrix),
        redundancy.task(assigned),
    ]
    values = [layer.value for layer in layers if layer.value is not None]
    whole = redundancy.total(*layers).value
    if not values:
        assert whole is None
    else:
        assert whole is not None
        assert min(values) - 1e-12 <= whole <= max(values) + 1e-12


@pytest.mark.parametrize(
    ("deliveries", "plain", "receiver"),
    [
        (["ABp", "ABq", "CBq", "CBr", "BDp"], 0.4, 0.2),
        (["ABp", "ACp"], 0.5, 0),
        (["ABp", "BAp"], 0.5, 0.5),
        (["ABp", "ABp"], 0.5, 0.5),
    ],
)
def test_knowledge_duplication_in_both_forms(deliveries, plain, receiver):
    score = redundancy.knowledge_duplication(deliveries)
    assert (score.value, score.parts["receiver"]) == pytest.approx((plain, receiver))


@given(st.lists(st.tuples(*[st.sampled_from("ABC")] * 2, st.sampled_from("pqr")), min_size=1))
def test_what_the_receiver_holds_was_sent_before_or_is_its_own(deliveries):
    score = redundancy.knowledge_duplication(deliveries)
    assert score.value is not None
    assert 0 <= score.value < 1
    assert 0 <= score.parts["receiver"] <= 1


@pytest.mark.parametrize(
    ("required", "held", "index", "sufficiency", "minimality"),
    [
        ({1, 2}, {1, 2}, 1, 1, 1),
        ({1, 2}, {2, 3, 4}, 0.4, 0.5, 1 / 3),
        ({1, 2}, {1, 2, 3, 4}, 2 / 3, 1, 0.5),
        ({1}, set(), 0, 0, None),
    ],
)
def test_minimal_sufficiency_is_a_harmonic_mean(required, held, index, sufficiency, minimality):
    score = redundancy.minimal_sufficiency(required, held)
    assert score.value == pytest.approx(index)
    assert score.parts["sufficiency"] == pytest.approx(sufficiency)
    assert score.parts.get("minimality") == (None if minimality is None else pytest.approx(minimality))


@pytest.mark.parametrize(
    "score",
    [
        redundancy.memory({}),
        redundancy.memory({"A": set()}),
        redundancy.reasoning([], []),
        redundancy.task({}),
        redundancy.task({"t": set()}),
        redundancy.knowledge_duplication([]),
        redundancy.minimal_sufficiency(set(), {1}),
        redundancy.duplicate_work([]),
        redundancy.duplicated_tokens([]),
    ],
)
def test_nothing_to_divide_by_is_undefined_with_a_reason(score):
    assert score.value is None
    assert score.reason


def test_names_of_agents_do_not_matter():
    assert redundancy.reasoning("ABBC", cosines(STEPS, NEAR)) == redundancy.reasoning(
        "xyyz", cosines(STEPS, NEAR)
    )
    assert redundancy.memory({"A": {1, 2}, "B": {2}}) == redundancy.memory({"q": {1, 2}, "p": {2}})
    assert redundancy.knowledge_duplication(["ABp", "CBp"]) == redundancy.knowledge_duplication(
        ["BAp", "CAp"]
    )
