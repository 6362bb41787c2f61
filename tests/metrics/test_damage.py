"""Damage on purpose: closed forms, must-not-change operators, and what Forest Match hides."""

import numpy as np
import pytest

from counterpoint.errors import UsageError
from counterpoint.metrics.damage import damage_curve, deletion_similarity, effect_ratio, self_damage
from counterpoint.metrics.forestbench import RoleGraph, similarity
from counterpoint.metrics.perturbations import OPERATORS, UNCHANGING
from counterpoint.metrics.references import ReferenceSet
from counterpoint.metrics.role_sensitivity import MODES, recast, role_sensitivity
from counterpoint.metrics.rolegraph import Origin

RNG = np.random.default_rng(0)
TEN = RoleGraph(
    ["planner", "solver", "solver", "coder", "critic", "solver", "tester", "critic", "coder", "decision"],
    [(i, j) for i in range(10) for j in range(i + 1, 10) if (i + j) % 3],
    agents=list("abcdefghij"),
    names=list("ABCDEFGHIJ"),
)
CHAIN = RoleGraph(["planner", "solver", "critic"], [(0, 1), (1, 2)], generator="a", origin=Origin("q"))


def test_the_closed_form_of_deletion_is_the_worked_one():
    node, edge, topo = deletion_similarity(10, 5)
    assert (node, edge, topo) == pytest.approx((0.5, 0.222222, 0.5), abs=5e-7)
    assert 0.4 * node + 0.4 * edge + 0.2 * topo == pytest.approx(0.388889, abs=5e-7)
    assert deletion_similarity(1, 1) == (1, 1, 1)
    with pytest.raises(UsageError, match="between 1 and 3"):
        deletion_similarity(3, 0)


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.8])
def test_measured_deletion_damage_is_within_three_standard_errors_of_the_closed_form(p):
    damage = self_damage(TEN, "delete nodes", p, replicates=400, edges="multiset", topo="nodes")
    expected = 1 - np.array(deletion_similarity(10, 10 - round(10 * p)))
    assert damage[:, 0] == pytest.approx(np.full(400, expected[0]))
    assert damage[:, 2] == pytest.approx(np.full(400, expected[2]))
    error = damage[:, 1].std(ddof=1) / 20
    assert abs(damage[:, 1].mean() - expected[1]) <= 3 * error


@pytest.mark.parametrize("name", UNCHANGING)
def test_renaming_agents_and_reordering_actions_do_no_damage(name):
    curve = damage_curve([TEN, CHAIN], name, [ReferenceSet([CHAIN]), ReferenceSet([TEN])], replicates=5)
    assert all(damage == pytest.approx(0) for point in curve.points for damage in point.damage.values())
    assert set(curve.area) == {"node", "edge", "topo", "sim", "forest"}


@pytest.mark.parametrize("name", OPERATORS)
def test_self_damage_grows_with_its_level(name):
    curve = damage_curve([TEN], name, replicates=60)
    assert curve.spearman["sim"] >= 0.95
    assert all(0 <= point.damage["sim"] <= 1 for point in curve.points)


@pytest.mark.parametrize("name", {**OPERATORS, **UNCHANGING})
@pytest.mark.parametrize("graph", [RoleGraph([], []), RoleGraph(["solver"], []), CHAIN, TEN])
def test_every_operator_gives_an_acyclic_graph_whatever_it_is_given(name, graph):
    for p in (0.0, 0.5, 1.0):
        damaged = {**OPERATORS, **UNCHANGING}[name](graph, p, RNG)
        assert damaged.depth <= damaged.n
        if p == 0:
            assert similarity(damaged, graph).value == pytest.approx(1)


def test_operators_do_what_they_say():
    rng = np.random.default_rng(1)
    assert OPERATORS["delete nodes"](TEN, 0.3, rng).n == 7
    assert len(OPERATORS["delete edges"](TEN, 1, rng).edges) == 0
    rewired = OPERATORS["rewire edges"](TEN, 1, rng)
    assert len(rewired.edges) == len(TEN.edges)
    assert rewired.edges.tolist() != TEN.edges.tolist()
    relabeled = OPERATORS["relabel nodes"](TEN, 0.5, rng)
    assert sum(a != b for a, b in zip(relabeled.roles, TEN.roles, strict=True)) == 5
    assert set(OPERATORS["merge roles"](TEN, 1, rng).roles) <= {*TEN.roles}
    assert len(set(OPERATORS["merge roles"](TEN, 1, rng).roles)) == 1
    double = OPERATORS["duplicate nodes"](CHAIN, 1, rng)
    assert (double.n, len(double.edges), double.depth) == (6, 6, 3)


def test_bridging_keeps_what_flowed_through_a_deleted_node():
    for seed in range(10):
        bridged = OPERATORS["delete nodes, bridged"](CHAIN, 1 / 3, np.random.default_rng(seed))
        assert len(bridged.edges) == 1


def test_a_run_larger_than_its_references_gains_by_deletion():
    # eight solvers against four: node similarity .5, and 1 when half of them are gone
    large, small = RoleGraph(["solver"] * 8, []), RoleGraph(["solver"] * 4, [], generator="b")
    curve = damage_curve([large], "delete nodes", [ReferenceSet([small])], levels=(0.5,), replicates=3)
    (point,) = curve.points
    assert point.damage["node"] == pytest.approx(0.5)
    assert point.damage["forest"] < 0
    assert similarity(large, small).parts["node"] == 0.5
    halved = OPERATORS["delete nodes"](large, 0.5, np.random.default_rng(0))
    assert similarity(halved, small).parts["node"] == 1


def test_the_same_seed_gives_the_same_curve():
    assert damage_curve([TEN], "rewire edges", replicates=4) == damage_curve(
        [TEN], "rewire edges", replicates=4
    )


def test_the_area_is_the_mean_damage_over_the_levels():
    curve = damage_curve([RoleGraph(["solver"] * 4, [])], "delete nodes", levels=(0.5, 1.0), replicates=2)
    assert curve.area["node"] == pytest.approx(0.5)


def test_an_effect_is_told_against_the_spread_of_frameworks():
    references = [ReferenceSet([RoleGraph(CHAIN.roles, CHAIN.edges, generator="b")])]
    curve = damage_curve([CHAIN], "delete edges", references, levels=(0.5,), replicates=3)
    drop = curve.points[0].damage["forest"]
    score = effect_ratio(curve, [0.4, 0.6])
    assert score.value == pytest.approx(drop / np.std([0.4, 0.6], ddof=1))
    for means, reason in (([0.5], "at least two"), ([0.5, 0.5], "no spread")):
        assert reason in effect_ratio(curve, means).reason
    assert "no forest damage" in effect_ratio(damage_curve([CHAIN], "delete edges"), [1, 2]).reason


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: damage_curve([], "delete nodes"), "at least one graph"),
        (lambda: damage_curve([TEN], "delete nodez"), "did you mean 'delete nodes'"),
        (lambda: damage_curve([TEN], "delete nodes", levels=(0,)), "lie in"),
    ],
)
def test_a_curve_of_nothing_is_refused(call, message):
    with pytest.raises(UsageError, match=message):
        call()


# --- the role table ------------------------------------------------------------------------------

RUNS = [
    RoleGraph(
        ["planner", "solver", "critic"], [(0, 1), (1, 2)], generator="a", origin=Origin("q"), names="PSC"
    ),
    RoleGraph(["debater", "debater"], [(0, 1)], generator="b", origin=Origin("q"), names="XY"),
]
FOREST = {"q": [RoleGraph(["planner", "solver"], [(0, 1)], generator="c", origin=Origin("q"), names="PS")]}


def test_the_given_table_changes_nothing():
    result = role_sensitivity(RUNS, FOREST, p=0, draws=5)
    assert (result.change, result.order_changes) == (0, 0)


@pytest.mark.parametrize("mode", MODES)
def test_every_change_of_roles_is_measured(mode):
    result = role_sensitivity(RUNS, FOREST, mode=mode, p=0.5, draws=20)
    assert 0 <= result.change <= 1
    assert 0 <= result.order_changes <= 1


def test_a_name_has_one_role_in_all_graphs_of_a_draw():
    for seed in range(20):
        first, _, reference = recast([*RUNS, *FOREST["q"]], "reassign", 0.5, np.random.default_rng(seed))
        assert first.roles[:2] == reference.roles


def test_merging_leaves_one_role_less_and_splitting_one_more_at_most():
    rng = np.random.default_rng(0)
    count = len({role for graph in RUNS for role in graph.roles})
    merged = recast(RUNS, "merge", 0, rng)
    assert len({role for graph in merged for role in graph.roles}) == count - 1
    split = recast(RUNS, "split", 0, rng)
    assert len({role for graph in split for role in graph.roles}) in (count, count + 1)


def test_without_a_match_there_is_nothing_to_change():
    with pytest.raises(UsageError, match="no run has a defined"):
        role_sensitivity(RUNS, {})
    with pytest.raises(UsageError, match="mode 'swap'"):
        recast(RUNS, "swap", 0, np.random.default_rng(0))
