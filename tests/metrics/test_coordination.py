"""Coordination: every worked number of its definitions, alone and on traces."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_worlds import Vectors, chain, context_of, judged, turn

from counterpoint.errors import UsageError
from counterpoint.metrics import coordination, metric
from counterpoint.trace import Call, Usage

# --- the panel -----------------------------------------------------------------------------------


def test_low_rank_is_the_sum_of_singular_values():
    assert coordination.low_rank([[0, 1], [0, 0]]).value == pytest.approx(1)
    assert coordination.low_rank(np.ones((2, 2))).value == pytest.approx(2)
    assert coordination.low_rank(np.empty((0, 0))).value is None
    with pytest.raises(UsageError, match=r"found shape \(1, 2\)"):
        coordination.low_rank([[0, 1]])


def test_overhead_is_a_ratio_and_no_percentage():
    score = coordination.overhead(57, 20)
    assert score.value == pytest.approx(1.85)
    assert score.parts == {"turns_mas": 57, "turns_single": 20}
    assert coordination.overhead(10, 20).value == -0.5


def test_efficiency_is_success_by_turns():
    assert coordination.efficiency(0.6, 57, 20).value == pytest.approx(0.210526, abs=5e-7)


def test_error_amplification_is_a_quotient_of_error_rates():
    assert coordination.error_amplification(0.4, 0.2).value == pytest.approx(2)


def test_message_density_is_messages_a_turn():
    assert coordination.message_density(6, 4).value == 1.5


@pytest.mark.parametrize(
    ("vectors", "mean"),
    [
        ([[1, 0], [5, 0]], 1),
        ([[1, 0], [0, 1]], 0),
        ([[1, 0], [-1, 0]], -1),
        ([[1, 0], [1, 0], [0, 1]], 1 / 3),
    ],
)
def test_output_redundancy_is_the_mean_cosine_of_pairs(vectors, mean):
    assert coordination.output_redundancy(vectors).value == pytest.approx(mean)


def test_output_redundancy_equals_the_mean_over_all_pairs():
    rows = np.random.default_rng(0).normal(size=(9, 4))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    pairs = (unit @ unit.T)[np.triu_indices(9, 1)]
    assert coordination.output_redundancy(rows).value == pytest.approx(pairs.mean())


def test_communication_tax_is_a_share_of_all_tokens():
    assert coordination.communication_tax(30, 120).value == 0.25


@pytest.mark.parametrize(
    "score",
    [
        coordination.overhead(5, 0),
        coordination.efficiency(0.5, 0, 1),
        coordination.efficiency(0.5, 1, 0),
        coordination.error_amplification(0.5, 0),
        coordination.message_density(0, 0),
        coordination.output_redundancy([[1, 0]]),
        coordination.output_redundancy([]),
        coordination.effective_channels([]),
        coordination.effective_channels([[0, 0]]),
        coordination.participation_gini([]),
        coordination.participation_gini([0, 0]),
        coordination.communication_tax(0, 0),
    ],
)
def test_nothing_to_divide_by_is_undefined_with_a_reason(score):
    assert score.value is None
    assert score.reason


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (coordination.overhead, (-1, 2)),
        (coordination.overhead, ("5", 2)),
        (coordination.efficiency, (1.5, 1, 1)),
        (coordination.error_amplification, (math.nan, 0.2)),
        (coordination.communication_tax, (5, 4)),
        (coordination.participation_gini, ([1, -1],)),
        (coordination.effective_channels, ([1, 2],)),
        (coordination.effective_channels, ([[1, 2]], [True, False])),
    ],
)
def test_what_is_no_amount_is_refused(function, arguments):
    with pytest.raises(UsageError):
        function(*arguments)


# --- effective channels --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vectors", "channels"),
    [
        ([[1, 0], [1, 0]], 1),
        ([[1, 0], [0, 1]], 2),
        ([[1, 0], [0.5, math.sqrt(0.75)]], 1.754765),
        ([[2, 0], [0, 0.1]], 2),
        (np.eye(5), 5),
        (np.ones((9, 2)), 1),
    ],
)
def test_effective_channels_counts_independent_voices(vectors, channels):
    assert coordination.effective_channels(vectors).value == pytest.approx(channels, abs=5e-7)


def test_wrong_channels_count_against_right_ones_by_half():
    parts = coordination.effective_channels(np.eye(5), [True, True, True, False, False]).parts
    assert (parts["correct"], parts["wrong"], parts["effective"]) == pytest.approx((3, 2, 2))
    assert coordination.effective_channels(np.eye(2), [True, True]).parts["wrong"] == 0


def test_vectors_without_direction_are_left_out_and_counted():
    score = coordination.effective_channels([[1, 0], [0, 0], [math.nan, 1], [1e200, 1e200]])
    assert score.value == pytest.approx(2 ** _entropy(1 / 2 + math.sqrt(1 / 8)))
    assert score.parts["invalid"] == 2


def _entropy(share: float) -> float:
    return -share * math.log2(share) - (1 - share) * math.log2(1 - share)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 99))
def test_there_are_at_least_one_and_at_most_as_many_channels_as_agents(agents, size, seed):
    vectors = np.random.default_rng(seed).normal(size=(agents, size))
    value = coordination.effective_channels(vectors).value
    assert value is not None
    assert 1 <= value <= min(agents, size) + 1e-9
    again = coordination.effective_channels(vectors[::-1] * 3).value
    assert again == pytest.approx(value)


# --- participation -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("amounts", "gini"), [([1, 1, 4], 1 / 3), ([2, 2, 2], 0), ([0, 0, 0, 8], 0.75), ([5], 0), ([0, 1], 0.5)]
)
def test_participation_is_the_gini_coefficient(amounts, gini):
    assert coordination.participation_gini(amounts).value == pytest.approx(gini)


@given(st.lists(st.integers(0, 50), min_size=1).filter(any))
def test_gini_is_below_one_and_that_of_all_pairs(amounts):
    value = coordination.participation_gini(amounts).value
    pairs = sum(abs(one - two) for one in amounts for two in amounts)
    assert value is not None
    assert value < 1
    assert value == pytest.approx(pairs / (2 * len(amounts) * sum(amounts)))


# --- on traces -----------------------------------------------------------------------------------

DEBATE = chain(("ann", "east"), ("bob", "north"), ("ann", "north"), ("cat", "east"))
EMBED = Vectors({"east": [1, 0], "north": [0, 1]})


def test_overhead_of_a_trace_takes_its_baseline_from_the_parameter_or_a_label():
    assert judged("overhead(turns_single=2)", DEBATE).value == 1
    assert judged("overhead", DEBATE, labels={"turns_single": 8}).value == -0.5
    assert judged("overhead(turns_single=2)", DEBATE, labels={"turns_single": 8}).value == 1
    assert "overhead(turns_single=N)" in judged("overhead", DEBATE).reason
    assert judged("overhead(turns_single=2)", []).value is None


def test_error_amplification_of_a_trace_is_its_error_by_that_of_one_agent():
    assert judged("error_amplification(error_single=.25)", DEBATE, correct=False).value == 4
    assert judged("error_amplification", DEBATE, correct=True, labels={"error_single": 0.5}).value == 0
    assert "error_single=E" in judged("error_amplification", DEBATE, correct=True).reason
    assert "gold" in judged("error_amplification(error_single=.25)", DEBATE).reason


def test_a_text_that_two_read_is_two_messages():
    steps = [turn("a", "A", "x"), turn("b", "B", "y", "a"), turn("c", "C", "z", "a")]
    assert judged("message_density", steps).value == pytest.approx(2 / 3)
    assert judged("message_density", [turn("a", "A", "x"), turn("b", "B", "y")]).value is None


def test_effective_channels_of_a_trace_takes_the_last_text_of_each_agent():
    score = judged("effective_channels", DEBATE, embed=EMBED)
    assert score.value == pytest.approx(2 ** _entropy(1 / 3))  # north, north, east
    assert score.parts["outputs"] == 3
    steps = chain(("ann", "east"), ("bob", "east"), ("ann", "north"))
    assert judged("effective_channels", steps, embed=EMBED).value == pytest.approx(2)
    mean = judged("effective_channels(outputs=mean)", steps, embed=EMBED)
    assert mean.value == pytest.approx(2 ** _entropy(1 / 2 + math.sqrt(1 / 8)))  # northeast and east
    with pytest.raises(UsageError, match="last, mean"):
        judged("effective_channels(outputs=first)", DEBATE, embed=EMBED)


def test_right_and_wrong_channels_are_told_apart_where_there_is_a_gold_answer():
    right, wrong = "The answer is 7.", "The answer is 8."
    steps = chain(("ann", right), ("bob", wrong), ("cat", right))
    embed = Vectors({right: [1, 0], wrong: [0, 1]})
    assert judged("effective_channels", steps, embed=embed, gold="7").parts["effective"] == 0.5
    assert "effective" not in judged("effective_channels", steps, embed=embed).parts


def test_channels_and_participation_are_among_several():
    assert judged("effective_channels", chain(("ann", "east")), embed=EMBED).value is None
    assert judged("participation_gini", chain(("ann", "east"))).value is None


def test_participation_of_a_trace_is_by_text_tokens_or_turns():
    used = {"ann": 1, "bob": 1, "cat": 4}
    steps = [turn(name, name, "x" * 3, usage=Usage(tokens_out=tokens)) for name, tokens in used.items()]
    assert judged("participation_gini", steps).value == 0
    score = judged("participation_gini(of=tokens)", steps)
    assert score.value == pytest.approx(1 / 3)
    assert score.detail == {"most": "cat"}
    assert judged("participation_gini(of=turns)", DEBATE).value == pytest.approx(1 / 6)
    assert "of=text" in judged("participation_gini(of=tokens)", DEBATE).reason


# --- communication tax ---------------------------------------------------------------------------


def test_the_tax_is_what_others_wrote_in_the_prompts_by_all_tokens():
    steps = [
        turn("a", "A", "x", usage=Usage(tokens_in=10, tokens_out=20)),
        turn("b", "B", "y", "a", usage=Usage(tokens_in=40, tokens_out=10, tokens_reasoning=4)),
        turn("f", "F", "z", "a", "b", kind="decision", usage=Usage(tokens_in=50, tokens_out=20)),
    ]
    score = judged("communication_tax", steps)
    assert score.value == pytest.approx((20 + 20 + 6) / 150)  # hidden reasoning is handed to nobody
    assert score.parts == {"copied": 46, "tokens": 150, "unknown": 0}


def test_a_step_is_given_no_more_than_its_prompt_holds():
    steps = [
        turn("a", "A", "x", usage=Usage(tokens_in=10, tokens_out=500)),
        turn("b", "B", "y", "a", usage=Usage(tokens_in=40, tokens_out=10)),
    ]
    assert judged("communication_tax", steps).parts["copied"] == 40


def test_tokens_that_tool_calls_took_are_not_handed_on():
    calling = turn("a", "A", "x" * 40, usage=Usage(tokens_in=10, tokens_out=500), calls=(Call("1", "find"),))
    steps = [calling, turn("b", "B", "y", "a", usage=Usage(tokens_in=90, tokens_out=10))]
    assert judged("communication_tax", steps).parts["copied"] == 10


def test_the_tax_without_token_counts_can_be_estimated_from_the_texts():
    steps = [
        turn("a", "A", "x" * 40),
        turn("b", "B", "y" * 40, "a"),
        turn("c", "C", "z" * 80, "b", prompt="p" * 80),
    ]
    assert "tokens=estimated" in judged("communication_tax", steps).reason
    assert judged("communication_tax(tokens=estimated)", steps).value == pytest.approx(20 / (40 + 10 + 20))


def test_names_of_agents_do_not_matter():
    renamed = chain(("x", "east"), ("y", "north"), ("x", "north"), ("z", "east"))
    names = [
        "effective_channels",
        "participation_gini",
        "message_density",
        "communication_tax(tokens=estimated)",
    ]
    for name in names:
        one, two = (judged(name, steps, embed=EMBED) for steps in (DEBATE, renamed))
        assert (one.value, one.parts) == (two.value, two.parts)


@pytest.mark.parametrize("name", ["overhead", "message_density", "effective_channels", "participation_gini"])
def test_an_empty_trace_has_no_coordination(name):
    chosen = metric(name)
    assert chosen.compute(context_of([], embed=EMBED), **chosen.values("strict")).value is None
