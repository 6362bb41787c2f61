"""Graph edit similarity: exact, symmetric, and blind to names."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from counterpoint.metrics.edit_similarity import edit_similarity
from counterpoint.metrics.rolegraph import RoleGraph


def graph(roles: str, *edges: str) -> RoleGraph:
    return RoleGraph(list(roles), [(int(edge[0]), int(edge[1])) for edge in edges])


@pytest.mark.parametrize(
    ("one", "two", "distance", "similarity"),
    [
        (graph("AB", "01"), graph("ABC", "01", "12"), 2, 0.75),
        (graph("AB", "01"), graph("AB", "01"), 0, 1),
        (graph("AB", "01"), graph("BA", "10"), 0, 1),
        (graph("AB", "01"), graph("AB", "10"), 2, 2 / 3),
        (graph("AB", "01"), graph("AC", "01"), 1, 5 / 6),
        (graph("A"), graph(""), 1, 0),
        (graph(""), graph(""), 0, 1),
        (graph("ABC", "01", "02"), graph("ABC", "02", "12"), 2, 0.8),
    ],
)
def test_the_distance_is_the_fewest_changes(one, two, distance, similarity):
    for score in (edit_similarity(one, two), edit_similarity(two, one)):
        assert score.parts["distance"] == distance
        assert score.value == pytest.approx(similarity)


def some_graph(random: np.random.Generator, n: int, roles: str) -> RoleGraph:
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if random.random() < 0.5]
    return RoleGraph([str(role) for role in random.choice(list(roles), n)], edges)


def peer(graph: RoleGraph) -> nx.DiGraph:
    made: nx.DiGraph = nx.DiGraph()
    made.add_nodes_from((node, {"role": role}) for node, role in enumerate(graph.roles))
    made.add_edges_from(graph.edges.tolist())
    return made


@pytest.mark.parametrize("seed", range(20))
def test_the_distance_is_that_of_networkx(seed):
    random = np.random.default_rng(seed)
    one, two = (some_graph(random, int(random.integers(0, 5)), "ab") for _ in range(2))
    expected = nx.graph_edit_distance(peer(one), peer(two), node_match=lambda a, b: a["role"] == b["role"])
    assert edit_similarity(one, two).parts["distance"] == expected


def test_ten_nodes_in_another_order_are_the_same_graph():
    random = np.random.default_rng(3)
    one = some_graph(random, 10, "a")
    place = random.permutation(10)
    other = RoleGraph(list(one.roles), [(int(place[i]), int(place[j])) for i, j in one.edges.tolist()])
    assert edit_similarity(one, other).parts["distance"] == 0
    assert edit_similarity(one, some_graph(random, 10, "a")).value < 1


def test_larger_graphs_are_left_to_another_measure():
    score = edit_similarity(RoleGraph(["a"] * 11, []), graph("A"))
    assert score.value is None
    assert "forestbench.similarity" in score.reason
