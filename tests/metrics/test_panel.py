"""ForestBench's panel: every worked number of its definitions."""

import numpy as np
import pytest

from counterpoint.errors import GraphError, UsageError
from counterpoint.metrics.panel import (
    content_redundancy,
    efficiency,
    mean_uptake,
    near_clusters,
    node_validity,
    uptake_threshold,
)


@pytest.mark.parametrize(
    ("cosines", "hard", "soft"), [([0.9, 0.6, 0.4, 0.2], 0.5, 0.525), ([0.5, 0.49], 0.5, 0.495)]
)
def test_mean_uptake_counts_cosines_at_or_above_one_half(cosines, hard, soft):
    score = mean_uptake(cosines)
    assert (score.value, score.parts["soft"]) == pytest.approx((hard, soft))


def test_negative_cosines_are_no_soft_uptake():
    assert mean_uptake([-0.4, 0.8]).parts["soft"] == pytest.approx(0.4)


def test_uptake_without_edges_is_undefined_and_a_nan_is_refused():
    assert mean_uptake([]).value is None
    with pytest.raises(UsageError, match="cosine 1"):
        mean_uptake([0.5, float("nan")])


def test_the_threshold_from_the_data_is_the_95th_percentile_of_unrelated_pairs():
    assert uptake_threshold(np.arange(101) / 100) == pytest.approx(0.95)
    with pytest.raises(UsageError, match="give a threshold"):
        uptake_threshold([])


@pytest.mark.parametrize(
    ("n", "edges", "terminal", "expected"),
    [
        (5, [(0, 1), (1, 4), (2, 4)], {4}, 0.75),  # A -> B -> F, C -> F, D unused
        (5, [(0, 1), (1, 4), (2, 4)], None, 0.75),
        (3, [(0, 1), (1, 2)], None, 1),
        (32, [(k, 31) for k in range(30)], {31}, 0.967742),
    ],
)
def test_node_validity_is_the_share_of_work_that_was_read(n, edges, terminal, expected):
    assert node_validity(n, edges, terminal).value == pytest.approx(expected, abs=5e-7)


def test_node_validity_is_undefined_where_every_node_is_terminal():
    assert node_validity(1, []).value is None
    assert node_validity(0, []).value is None
    with pytest.raises(UsageError, match="terminal node 7"):
        node_validity(2, [(0, 1)], {7})


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (list("aabccc"), 0.5),
        (list("abc"), 0),
        (["Hello, World!", "hello   world"], 0.5),
        (["-5", "5"], 0),
        (["3.14", "314", "3 14"], 0),
        (["?!", "..."], 0),
        (["ﬁne", "FINE", ""], 0.5),
    ],
)
def test_content_redundancy_is_the_share_of_repeated_contents(texts, expected):
    assert content_redundancy(texts).value == pytest.approx(expected)


def test_content_redundancy_without_content_is_undefined():
    assert content_redundancy([]).value is None
    assert content_redundancy([" ", ""]).value is None


def test_near_duplicates_are_chained_by_a_cosine_above_the_threshold():
    vectors = np.array([[1, 0], [1, 0], [0, 1]])
    assert near_clusters(vectors) == 2
    assert content_redundancy(["a", "b", "c"], vectors).parts["near"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("n", "edges", "agents", "expected"),
    [
        (3, [(0, 1), (1, 2)], "abc", 1 / 3),
        (5, [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)], "pxyza", 1 / 3),
        (6, [(i, j) for i in range(3) for j in range(3, 6)], "abcabc", 1),
        (4, [(0, 3), (1, 3), (2, 3)], "aaaa", 2),
    ],
)
def test_efficiency_is_parallelism_by_agent(n, edges, agents, expected):
    assert efficiency(n, edges, agents).value == pytest.approx(expected)


def test_efficiency_of_nobody_is_undefined_and_a_cycle_is_refused():
    assert efficiency(0, [], []).value is None
    with pytest.raises(GraphError, match="cycle"):
        efficiency(2, [(0, 1), (1, 0)], "ab")
    with pytest.raises(UsageError, match="one a node"):
        efficiency(2, [(0, 1)], "a")
