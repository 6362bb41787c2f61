"""Systems by Forest Match: ties within noise, orders that the weights cannot change."""

import numpy as np
import pytest

from counterpoint.metrics.ranking import Match, dirichlet_agreement, families, match_runs, pairs, standings
from counterpoint.metrics.references import ReferenceSet
from counterpoint.metrics.rolegraph import Origin, RoleGraph
from counterpoint.metrics.weighting import FAMILIES, aggregate


def references(count=2, **labels):
    return ReferenceSet(
        RoleGraph(["solver"] * (k + 1), [], tokens=10.0 * (k + 1), **labels) for k in range(count)
    )


def match(system, task, similarities, kept=None):
    sims = np.array(similarities, dtype=float)
    return Match(
        system, task, references(len(sims)), sims, np.ones(len(sims), bool) if kept is None else kept
    )


STEADY = [match(system, f"q{k}", sims) for k in range(8) for system, sims in
          (("good", [0.9, 0.8]), ("poor", [0.2, 0.1]), ("poor too", [0.1, 0.2]))]  # fmt: skip


def test_systems_stand_in_order_with_both_sorts_of_bounds():
    rows = standings(STEADY)
    assert [row.system for row in rows] == ["good", "poor", "poor too"]
    assert rows[0].tasks == 8
    assert all(row.low <= row.mean <= row.high for row in rows)
    assert (rows[0].low, rows[0].high) == pytest.approx((0.8 + 0.1 / 3, 0.9 - 0.1 / 3))


def test_systems_that_differ_within_noise_only_tie():
    noisy = [match("a", f"q{k}", [0.5]) for k in range(8)]
    noisy += [match("b", f"q{k}", [0.5 + 0.1 * (-1) ** k]) for k in range(8)]
    noisy += [match("c", f"q{k}", [0.9]) for k in range(8)]
    assert {row.system: row.tied for row in standings(noisy)} == {"a": ("b",), "b": ("a",), "c": ()}


def test_one_task_is_no_evidence():
    (row,) = pairs([match("a", "q", [0.9]), match("b", "q", [0.1])])
    assert (row.p, row.tie, row.settled) == (None, True, True)


def test_a_pair_is_settled_where_no_weighting_changes_its_order():
    rows = {(row.a, row.b): row for row in pairs(STEADY)}
    assert rows["good", "poor"].settled
    assert not rows["poor", "poor too"].settled
    assert rows["poor", "poor too"].low == pytest.approx(-rows["poor", "poor too"].high)


def test_the_bounds_of_a_pair_hold_every_weighting_of_the_references():
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b = rng.random(4), rng.random(4)
        (row,) = pairs([match("a", "q", a), match("b", "q", b)])
        weights = rng.uniform(1, 2, 4)
        assert row.low - 1e-12 <= aggregate(a - b, weights).value <= row.high + 1e-12


def test_left_out_references_make_the_bounds_of_a_pair_wider_never_narrower():
    kept = np.array([False, True])
    (row,) = pairs([match("a", "q", [0.9, 0.5]), match("b", "q", [0.9, 0.5], kept)])
    assert (row.low, row.high) == pytest.approx((0.5 + 0.4 / 3 - 0.5, 0.9 - 0.4 / 3 - 0.5))


def test_every_family_has_its_ranking_and_its_agreement():
    rows = families(STEADY)
    assert [row.name for row in rows] == list(FAMILIES)
    assert rows[0].tau == pytest.approx(1)
    assert all(next(iter(row.means)) == "good" for row in rows)
    uniform = next(row for row in rows if row.name == "uniform")
    assert uniform.means["poor"] == pytest.approx(uniform.means["poor too"])


def test_only_shared_tasks_are_ranked():
    rows = families([match("a", "q1", [0.9]), match("a", "q2", [0.1]), match("b", "q1", [0.5])])
    assert rows[0].means == pytest.approx({"a": 0.9, "b": 0.5})
    assert families([match("a", "q1", [0.9]), match("b", "q2", [0.5])])[0].means == {}


def test_random_weights_keep_an_order_that_is_settled_and_break_one_that_is_not():
    clear = [one for one in STEADY if one.system != "poor too"]
    assert dirichlet_agreement(clear, draws=50).value == 1
    close = [match("poor", "q", [0.2, 0.1]), match("poor too", "q", [0.1, 0.2])]
    assert 0.2 < dirichlet_agreement(close, draws=300).value < 0.8
    assert dirichlet_agreement(close[:1]).value is None


def test_runs_of_a_task_become_matches_without_their_own_references():
    own = RoleGraph(["solver"], [], generator="a", origin=Origin("q", "", ("run",)))
    other = RoleGraph(["critic"], [], generator="b", origin=Origin("q"))
    forest = ReferenceSet([own, other])
    (first,) = match_runs([own], forest)
    assert (first.system, first.task, first.kept.tolist()) == ("a", "q", [False, True])
    assert match_runs([own], forest, leave_out=None) == []
