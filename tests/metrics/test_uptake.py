"""Uptake: which transfer was used, which step is useful, and UPR without a gold answer."""

from __future__ import annotations

import numpy as np
import pytest
from small_worlds import Vectors, context_of, judged, turn

from counterpoint.errors import UsageError
from counterpoint.metrics.influence import (
    answer_classes,
    uptake_cosines,
    uptake_edges,
    uptake_shares,
    useful_steps,
)
from counterpoint.metrics.uptake import uptake


def edges_of(steps, **fields) -> dict[tuple[str, str], bool]:
    found = uptake(context_of(steps, **fields))
    names = [step.id for step in found.steps]
    return {(names[i], names[j]): bool(taken) for (i, j), taken in zip(found.pairs, found.taken, strict=True)}


def useful(steps, **fields) -> set[str]:
    return {name for name, flag in uptake(context_of(steps, **fields)).useful.items() if flag}


# --- pure ----------------------------------------------------------------------------------------


def test_the_share_counts_only_what_the_source_brought_new_to_the_reader():
    texts = ["apples are red", "pears", "apples are red and pears"]
    assert uptake_shares(texts, [(0, 2)]).tolist() == [1.0]
    assert uptake_shares(texts, [(0, 2)], given="apples are red").tolist() == [0.0]
    assert uptake_shares(texts, [(1, 2)], speakers=["A", "B", "C"]).tolist() == [1.0]


def test_what_the_reader_said_in_its_last_turn_is_not_new_to_it():
    texts = ["blue cars", "blue cars", "blue cars"]  # B said it itself before A's text came again
    assert uptake_shares(texts, [(0, 2)], speakers=["A", "B", "B"]).tolist() == [0.0]
    assert uptake_shares(texts, [(1, 2)], speakers=["A", "B", "B"]).tolist() == [1.0]  # its own memory


def test_a_rare_word_weighs_more_than_one_that_all_say():
    texts = ["the fjord", "the sea and you", "a fjord and me", "the the"]
    common, rare = uptake_shares(texts, [(0, 1), (0, 2)]).tolist()
    assert 0 < common < 0.5 < rare < 1


def test_one_fact_out_of_a_long_page_is_used_if_it_is_most_of_what_the_reader_says():
    page = " ".join(f"word{number}" for number in range(50))
    first, second = uptake_shares(
        [page, "word7", "word7 among these other eight words of my own"], [(0, 1), (0, 2)]
    )
    assert first == 0.5
    assert second < 0.25


def test_the_direction_of_the_task_counts_as_nothing():
    vectors = [[1, 0.1, 0], [1, 0, 0.1], [1, 0.2, 0]]
    assert uptake_cosines(vectors, [(0, 1), (0, 2)], given=[1, 0, 0]) == pytest.approx([0, 1])
    assert uptake_cosines([[1, 0], [0, 0]], [(0, 1)], given=[0, 1]).tolist() == [0]


@pytest.mark.parametrize(
    ("answers", "likeness", "expected"),
    [
        ([7, 7], 0.0, True),  # adopted
        ([7, 8], 1.0, False),  # ended with another answer
        ([7, -1], 1.0, True),  # no answer: the text decides
        ([-1, 7], 0.1, False),
    ],
)
def test_answers_decide_where_both_ends_commit_to_one(answers, likeness, expected):
    pairs = np.array([[0, 1]])
    assert uptake_edges(pairs, np.array([likeness]), threshold=0.25, answers=answers).tolist() == [expected]


def test_an_answer_that_the_reader_had_given_before_is_not_taken_up():
    pairs = np.array([[1, 2]])
    found = uptake_edges(pairs, np.zeros(1), threshold=0.25, answers=[7, 7, 7], speakers="BAB")
    assert found.tolist() == [False]


def test_useful_is_what_leads_to_the_end():
    assert useful_steps(5, [(0, 1), (1, 4), (2, 3)], [4]).tolist() == [True, True, False, False, True]


def test_answers_that_are_equal_as_numbers_are_one_class():
    assert answer_classes(["145", "145.0", None, "$145", "Paris", "paris."]) == [0, 0, -1, 0, 1, 1]


# --- on traces -----------------------------------------------------------------------------------

CHAIN = [
    turn("a", "A", "six trees with eight apples give 48"),
    turn("b", "B", "48 apples from six trees with eight, less 13. The answer is 35.", "a"),
    turn("c", "C", "eating is healthy", "a"),
    turn("end", "judge", "The answer is 35.", "b", "c", kind="decision"),
]


def test_a_chain_of_uptake_makes_useful_and_a_remark_that_nobody_uses_is_not():
    assert edges_of(CHAIN)["a", "b"]
    assert edges_of(CHAIN)["b", "end"]
    assert not edges_of(CHAIN)["c", "end"]
    assert useful(CHAIN) == {"a", "b", "end"}


def test_an_agents_own_next_turn_carries_on_what_it_took_up():
    steps = [
        turn("a", "A", "The answer is 7."),
        turn("b", "B", "The answer is 7.", "a"),
        turn("b2", "B", "I stay with it. The answer is 7."),
        turn("end", "judge", "The answer is 7.", "b2", kind="decision"),
    ]
    assert useful(steps) == {"a", "b", "b2", "end"}


def test_the_final_answer_is_the_last_turn_that_commits_to_the_runs_and_a_closing_word_says_nothing():
    steps = [
        turn("a", "A", "The answer is 7."),
        turn("b", "B", "Fine by me.", "a"),
        turn("c", "A", "TERMINATE"),
    ]
    final = uptake(context_of(steps, answer="7")).final
    assert final is not None
    assert final.id == "a"
    final = uptake(context_of(steps[1:])).final
    assert final is not None
    assert final.id == "b"


def test_upr_uptake_is_upr_with_useful_in_place_of_correct():
    score = judged("upr_uptake", CHAIN)  # paths ab, ac: one useful of two is enough
    assert score.value == 0
    assert (score.parts["paths"], score.parts["useful"], score.parts["steps"]) == (2, 2, 3)
    assert score.detail["final"] == "end"
    strict = judged("upr_uptake(threshold=1)", CHAIN)
    assert strict.value == 0.5


def test_it_needs_no_gold_answer_and_an_embedder_only_where_it_is_asked_for_one():
    assert judged("upr_uptake", CHAIN).value is not None
    assert "embedder" in judged("upr_uptake(by=embedding)", CHAIN).reason
    texts = {step.text: [1.0, float(number), 1.0] for number, step in enumerate(CHAIN)}
    assert judged("upr_uptake(by=either)", CHAIN, embed=Vectors(texts)).value is not None


@pytest.mark.parametrize("words", ["by=guess", "level=high", "by=either, level=.3"])
def test_what_it_cannot_compare_by_is_refused(words):
    with pytest.raises(UsageError):
        judged(f"upr_uptake({words})", CHAIN, embed=lambda texts: np.ones((len(texts), 2)))


def test_who_ends_right_and_uses_everything_has_no_unnecessary_path_and_who_is_wrong_by_all_has_none_either():
    steps = [turn("a", "A", "The answer is 8."), turn("b", "B", "The answer is 8.", "a")]
    assert judged("upr_uptake", steps, gold="7").value == 0
    assert judged("upr", steps, gold="7").value == 1
