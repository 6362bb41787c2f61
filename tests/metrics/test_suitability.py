"""Trace suitability: d, w and δ from references, swept over thresholds, two passes of a judge."""

import numpy as np
import pytest

from counterpoint.errors import UsageError
from counterpoint.metrics.ranking import Match
from counterpoint.metrics.references import ReferenceSet
from counterpoint.metrics.rolegraph import RoleGraph
from counterpoint.metrics.suitability import (
    THRESHOLDS,
    Suitability,
    decomposability,
    structural_suitability,
    sweep,
    two_pass_kappa,
)


def fork(width, tokens=None):
    """A planner, ``width`` workers, an aggregator."""
    roles = ["planner", *["solver"] * width, "aggregator"]
    edges = [(0, k) for k in range(1, width + 1)] + [(k, width + 1) for k in range(1, width + 1)]
    return RoleGraph(roles, edges, tokens=tokens, agents=[str(k) for k in range(width + 2)])


def test_structure_is_the_median_over_verified_references():
    graphs = [fork(1), fork(2), fork(5), RoleGraph(["solver"], [], correct=False)]
    found = structural_suitability("q", graphs)
    assert (found.depth, found.width, found.decomposability) == (3, 2, None)


def test_decomposability_is_what_the_busiest_agent_leaves_to_others():
    assert decomposability(fork(2, [10, 10, 10, 10])) == 0.75
    assert decomposability(fork(1, [0, 10, 0])) == 0
    assert decomposability(RoleGraph(["a"], [], tokens=5)) is None
    found = structural_suitability("q", [fork(2, [10, 10, 10, 10]), fork(1, [0, 10, 0]), fork(1)])
    assert found.decomposability == 0.375


def test_there_are_36_thresholds_and_an_unknown_share_passes_none_of_them():
    assert len(set(THRESHOLDS)) == 36
    assert Suitability("q", 9, 9, 0.9).passes((5, 3, 0.6))
    assert not Suitability("q", 9, 9, None).passes((5, 3, 0.2))
    assert Suitability("q", 9, 9, None).passes((5, 3, 0))


def test_a_sweep_tells_where_the_ranking_hangs_on_the_choice_of_tasks():
    def match(system, task, value):
        references = ReferenceSet([fork(1)])
        return Match(system, task, references, np.array([value]), np.ones(1, bool))

    matches = [
        match("a", "deep", 0.9),
        match("b", "deep", 0.1),
        match("a", "flat", 0.2),
        match("b", "flat", 0.3),
    ]
    tasks = [Suitability("deep", 6, 3, 0.8), Suitability("flat", 1, 3, 0.8)]
    rows = sweep(tasks, matches, [(0, 0, 0), (5, 0, 0), (9, 0, 0)])
    assert [(row.tasks, row.tau) for row in rows] == [(2, pytest.approx(1)), (1, pytest.approx(1)), (0, None)]
    flat = sweep([Suitability("flat", 1, 3, 0.8)], matches, [(0, 0, 0)])
    assert flat[0].tau == pytest.approx(-1)


def test_two_passes_agree_by_weighted_kappa():
    assert two_pass_kappa([1, 5, 3], [1, 5, 3]).value == pytest.approx(1)
    near, far = two_pass_kappa([1, 5, 3, 2], [2, 5, 3, 2]), two_pass_kappa([1, 5, 3, 2], [5, 5, 3, 2])
    assert near.value > far.value
    with pytest.raises(UsageError, match="between 1 and 5"):
        two_pass_kappa([0], [1])
    with pytest.raises(UsageError, match="same tasks"):
        two_pass_kappa([1], [1, 2])


def test_a_task_without_verified_references_has_no_structure():
    with pytest.raises(UsageError, match="no verified reference"):
        structural_suitability("q", [])
