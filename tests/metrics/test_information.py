"""Information in bits: the worked gates, what chance alone gives, and what is too little to say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.errors import UsageError
from counterpoint.metrics.information import (
    discrete,
    emergence,
    mutual_information,
    partial_information,
    transfer_entropy,
)

TIMES = 50
A, B = [0, 0, 1, 1] * TIMES, [0, 1, 0, 1] * TIMES
XOR = [a ^ b for a, b in zip(A, B, strict=True)]
AND = [a & b for a, b in zip(A, B, strict=True)]
PLAIN = {"corrected": False, "permutations": 0}


@pytest.mark.parametrize(
    ("x", "y", "bits"),
    [(A, A, 1), (A, B, 0), (A, XOR, 0), (A, [0] * len(A), 0), (list("abcd"), list("wxyz"), 2)],
)
def test_mutual_information_is_what_one_says_about_the_other(x, y, bits):
    assert mutual_information(x, y, corrected=False) == pytest.approx(bits)


def test_the_correction_adds_outcomes_less_one_by_twice_the_observations():
    plain, corrected = (mutual_information(A[:20], B[:20], corrected=on) for on in (False, True))
    assert corrected - plain == pytest.approx((1 + 1 - 3) / (2 * 20 * np.log(2)))


def test_emergence_is_one_for_parity_and_minus_one_for_copies():
    assert emergence(XOR, XOR, [A, B], **PLAIN).value == pytest.approx(1)
    assert emergence(A, A, [A, A], **PLAIN).value == pytest.approx(-1)


def test_the_corrected_values_are_near_and_parity_is_no_chance():
    parity = emergence(XOR, XOR, [A, B])
    assert parity.value == pytest.approx(1, abs=0.02)
    assert parity.parts["p"] == 1 / 201
    assert emergence(A, A, [A, A]).value == pytest.approx(-1, abs=0.02)


@pytest.mark.parametrize(
    ("target", "synergy", "redundancy", "unique"),
    [(XOR, 1, 0, 0), (AND, 0.5, 0.311278, 0), (A, 0, 0, 1)],
    ids=["xor", "and", "first"],
)
def test_partial_information_of_the_gates(target, synergy, redundancy, unique):
    score = partial_information(A, B, target, **PLAIN)
    assert score.value == pytest.approx(synergy, abs=5e-7)
    assert score.parts["redundancy"] == pytest.approx(redundancy, abs=5e-7)
    assert score.parts["unique_first"] == pytest.approx(unique, abs=5e-7)
    assert score.parts["unique_second"] == pytest.approx(0, abs=5e-7)


def test_synergy_by_chance_is_subtracted_and_not_significant():
    random = np.random.default_rng(0)
    x, y, target = random.integers(0, 2, (3, 60)).tolist()
    score = partial_information(x, y, target)
    assert score.parts["p"] > 0.05
    assert abs(score.value) < 0.1
    assert score.value == score.parts["estimate"] - score.parts["null"]
    assert score == partial_information(x, y, target)  # the same seed, the same shuffles


def test_transfer_entropy_goes_from_the_leader_to_the_follower():
    random = np.random.default_rng(1)
    leader = random.integers(0, 2, 301).tolist()
    follower = [0, *leader[:-1]]
    forward = transfer_entropy(leader[:-1], follower[:-1], follower[1:])
    backward = transfer_entropy(follower[:-1], leader[:-1], leader[1:])
    assert forward.value == pytest.approx(1, abs=0.05)
    assert forward.parts["p"] == 1 / 201
    assert abs(backward.value) < 0.05
    assert backward.parts["p"] > 0.05


def test_what_the_target_knew_already_is_no_transfer():
    """The source copies the target's past, so shuffling within equal pasts changes nothing."""
    score = transfer_entropy(A, A, A)
    assert score.value == pytest.approx(0)
    assert score.parts["p"] == 1


@pytest.mark.parametrize(
    "score",
    [
        emergence(A[:8], A[:8], [A[:8], B[:8]]),
        partial_information(A[:19], B[:19], XOR[:19]),
        transfer_entropy(range(30), range(30), range(30)),
    ],
)
def test_too_few_observations_are_refused_with_their_number(score):
    assert score.value is None
    assert str(score.parts["n"]) in score.reason
    assert "pool more runs" in score.reason


def test_five_observations_an_outcome_are_enough():
    assert partial_information(A[:20], B[:20], XOR[:20]).value is not None


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: mutual_information([1, 2], [1]),
        lambda: mutual_information([], []),
        lambda: emergence(A, A, []),
        lambda: partial_information(A, B, XOR, permutations=-1),
    ],
)
def test_observations_that_do_not_belong_together_are_refused(wrong):
    with pytest.raises(UsageError):
        wrong()


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=30))
def test_parts_of_the_decomposition_add_up_and_are_not_negative(observed):
    x, y, target = zip(*observed * 30, strict=True)
    score = partial_information(x, y, target, **PLAIN)
    if score.value is None:
        return
    parts = score.parts
    both = mutual_information(list(zip(x, y, strict=True)), target, corrected=False)
    whole = score.value + parts["redundancy"] + parts["unique_first"] + parts["unique_second"]
    assert whole == pytest.approx(both, abs=1e-9)
    assert min(score.value, parts["redundancy"], parts["unique_first"], parts["unique_second"]) > -1e-9


def test_renaming_outcomes_changes_nothing():
    names = {0: "no", 1: "yes"}
    assert emergence([names[v] for v in XOR], XOR, [A, B]) == emergence(XOR, XOR, [A, B])


def test_answers_become_labels_by_what_they_mean():
    assert discrete(["7", "7.0", None, "$7", "eight"]) == ["7", "7", "", "7", "eight"]
    assert discrete(["(b)", "B", "b."], kind="choice") == ["(b)"] * 3
