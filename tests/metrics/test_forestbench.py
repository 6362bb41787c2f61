"""Forest Match: every worked number of its definition, and what must hold for all graphs."""

import itertools

import numpy as np
import pytest

from counterpoint.errors import GraphError, UsageError
from counterpoint.metrics import forestbench
from counterpoint.metrics.forestbench import (
    ReferenceSet,
    RoleGraph,
    aggregate,
    forest_match,
    match_interval,
    match_many,
    quality_weights,
    similarity,
)
from counterpoint.metrics.rolegraph import Origin
from counterpoint.metrics.weighting import FAMILIES, family_weights

DIAMOND = RoleGraph(["planner", "solver", "solver", "critic"], [(0, 1), (0, 2), (1, 3), (2, 3)])
CHAIN = RoleGraph(["planner", "solver", "verifier"], [(0, 1), (1, 2)])


def random_graph(rng, **labels):
    n = int(rng.integers(1, 9))
    roles = rng.choice(["planner", "solver", "critic", "tool"], n).tolist()
    edges = [(i, j) for i, j in itertools.combinations(range(n), 2) if rng.random() < 0.4]
    return RoleGraph(roles, edges, **labels)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"profile": "paper"}, 0.443333),
        ({}, 0.3775),
        ({"profile": "strict"}, 0.3775),
        ({"edges": "multiset", "topo": "nodes"}, 0.39),
        ({"profile": "paper", "edges": "multiset"}, 0.39),
        ({"edges": "set", "topo": "nodes"}, 0.443333),
    ],
)
def test_the_worked_pair_has_its_similarity_under_every_reading(options, expected):
    assert similarity(DIAMOND, CHAIN, **options).value == pytest.approx(expected, abs=5e-7)


def test_all_parts_of_a_similarity_are_given():
    assert similarity(DIAMOND, CHAIN).parts == pytest.approx({"node": 0.4, "edge": 0.2, "topo": 0.6875})
    paper = similarity(DIAMOND, CHAIN, profile="paper").parts
    assert paper == pytest.approx({"node": 0.4, "edge": 1 / 3, "topo": 0.75})


def test_empty_parts_are_alike_and_an_empty_graph_is_unlike_any_other():
    empty, lone = RoleGraph([], []), RoleGraph(["solver"], [])
    assert similarity(empty, empty).value == 1
    assert similarity(empty, lone).parts == {"node": 0, "edge": 1, "topo": 0.25}
    assert similarity(lone, lone).value == 1


@pytest.mark.parametrize("profile", ["strict", "paper"])
def test_similarity_is_symmetric_bounded_and_one_on_itself(profile):
    rng = np.random.default_rng(1)
    for _ in range(100):
        a, b = random_graph(rng), random_graph(rng)
        there, back = (similarity(*pair, profile=profile).value for pair in ((a, b), (b, a)))
        assert there == pytest.approx(back)
        assert 0 <= there <= 1
        assert similarity(a, a, profile=profile).value == pytest.approx(1)


def test_renaming_agents_and_reordering_nodes_changes_no_similarity():
    rng = np.random.default_rng(2)
    for _ in range(50):
        a, b = random_graph(rng), random_graph(rng)
        order = rng.permutation(a.n)
        place = np.argsort(order)
        shuffled = RoleGraph(
            [a.roles[k] for k in order],
            [(int(place[i]), int(place[j])) for i, j in a.edges.tolist()],
            agents=[f"x{k}" for k in order],
        )
        assert similarity(shuffled, b).value == pytest.approx(similarity(a, b).value)
        assert shuffled.structure == a.structure


def test_weights_of_the_parts_must_add_up_to_one():
    assert similarity(DIAMOND, CHAIN, weights=(1, 0, 0)).value == pytest.approx(0.4)
    for weights in [(1, 1, 1), (0.5, 0.5), (1.5, -0.5, 0)]:
        with pytest.raises(UsageError, match="weights are three numbers"):
            similarity(DIAMOND, CHAIN, weights=weights)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"profile": "loose"}, "profile 'loose' is none of strict, paper"),
        ({"edges": "bag"}, "edges 'bag' is neither"),
        ({"topo": "size"}, "topo 'size' is neither"),
    ],
)
def test_an_unknown_way_to_compare_is_named(options, message):
    with pytest.raises(UsageError, match=message):
        similarity(DIAMOND, CHAIN, **options)


def test_a_role_graph_refuses_what_is_no_acyclic_graph():
    with pytest.raises(GraphError, match="cycle"):
        RoleGraph(["solver", "critic"], [(0, 1), (1, 0)])
    with pytest.raises(GraphError, match="itself"):
        RoleGraph(["solver"], [(0, 0)])
    with pytest.raises(GraphError, match="node 2"):
        RoleGraph(["solver", "critic"], [(0, 2)])
    with pytest.raises(UsageError, match="one a node"):
        RoleGraph(["solver"], [], tokens=[1, 2])
    with pytest.raises(UsageError, match="correct"):
        RoleGraph(["solver"], [], correct=2)
    with pytest.raises(UsageError, match="roles are a list"):
        RoleGraph("solver", [])


def test_duplicate_edges_are_one_edge_and_shape_is_read_off_the_graph():
    graph = RoleGraph(["a", "b", "c"], [(0, 1), (0, 1), (0, 2)])
    assert (len(graph.edges), graph.depth, graph.width, graph.size) == (2, 2, 2, 5)
    backward = RoleGraph(["a", "b", "c"], [(2, 1), (1, 0)])
    assert (backward.depth, backward.width) == (3, 1)


# --- aggregation ---------------------------------------------------------------------------------

SIMS = [0.8, 0.5, 0.2]
SIZES, TOKENS, RIGHT = [10, 20, 40], [1000, 1000, 4000], [True, True, True]


def test_quality_weights_follow_the_published_formula():
    assert quality_weights(SIZES, TOKENS, RIGHT) == pytest.approx([1, 0.85, 0.625])


@pytest.mark.parametrize(("family", "expected"), [("default", 0.545455), ("uniform", 0.5), ("tokens", 0.6)])
def test_the_worked_forest_has_its_match_under_each_family(family, expected):
    weights = family_weights(family, SIZES, TOKENS, RIGHT)
    assert aggregate(SIMS, weights).value == pytest.approx(expected, abs=5e-7)
    assert aggregate(SIMS, 7 * weights).value == pytest.approx(expected, abs=5e-7)
    assert aggregate(SIMS, weights).parts["best"] == 0.8


def test_unknown_tokens_get_the_mean_of_the_known_ones_and_one_where_none_is_known():
    assert quality_weights([10, 10, 10], [1000, 2000, None], RIGHT) == pytest.approx([1, 0.9, 0.95])
    assert quality_weights([10, 10], [None, None], [True, True]) == pytest.approx([1, 1])


def test_a_reference_that_is_not_verified_has_no_weight_and_sets_no_minimum():
    assert quality_weights([1, 10], [1, 10], [False, True]) == pytest.approx([0, 1])
    assert quality_weights([10, 10], [10, 10], [0.5, 1]) == pytest.approx([0.5, 1])
    assert quality_weights([10], [10], [False]).tolist() == [0]


def test_a_verified_reference_never_weighs_less_than_half_another():
    rng = np.random.default_rng(3)
    for _ in range(100):
        weights = quality_weights(rng.integers(1, 999, 6), rng.integers(1, 10**6, 6).tolist(), [True] * 6)
        assert weights.max() <= 2 * weights.min()


def test_the_worked_interval_is_exact():
    assert match_interval(SIMS) == pytest.approx((0.425, 0.575))
    assert match_interval(SIMS, rho=1) == pytest.approx((0.5, 0.5))
    assert match_interval([0.3]) == pytest.approx((0.3, 0.3))
    assert match_interval([-0.1, 0.4], rho=3) == pytest.approx((0.025, 0.275))


def test_every_weighting_with_the_ratio_stays_inside_the_interval_and_some_reach_its_ends():
    rng = np.random.default_rng(4)
    for _ in range(200):
        sims, rho = rng.random(int(rng.integers(1, 7))), float(rng.uniform(1, 5))
        low, high = match_interval(sims, rho)
        values = [aggregate(sims, rng.uniform(1, rho, len(sims))).value for _ in range(20)]
        assert low - 1e-12 <= min(values)
        assert max(values) <= high + 1e-12
        corners = [aggregate(sims, w).value for w in itertools.product([1, rho], repeat=len(sims))]
        assert (low, high) == pytest.approx((min(corners), max(corners)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: match_interval([]), "at least one similarity"),
        (lambda: match_interval([0.5], rho=0.5), "rho is the largest ratio"),
        (lambda: aggregate([0.5], [1, 1]), "one weight a similarity"),
        (lambda: aggregate([0.5], [-1]), "weights are finite numbers >= 0"),
        (lambda: family_weights("best", SIZES, TOKENS, RIGHT), "no family"),
        (lambda: family_weights([1, 2], SIZES, TOKENS, RIGHT), "3 are needed"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(call, message):
    with pytest.raises(UsageError, match=message):
        call()


def test_without_a_verified_reference_the_match_is_undefined():
    assert aggregate([0.5], [0]).reason.startswith("no verified reference")
    assert aggregate([], []).value is None


# --- forest match --------------------------------------------------------------------------------


def solvers(n, generator="", **labels):
    """n solvers that do not speak: node similarity with m of them is min/max."""
    return RoleGraph(["solver"] * n, [], generator=generator, **labels)


def by_nodes(graph, references, **options):
    return forest_match(graph, references, quality="uniform", profile="paper", **options)


def test_references_of_the_own_generator_are_left_out():
    # sims by the paper's reading: .4 node + .4 (no edges on either side) + .2 nodes
    graph = solvers(1, "ours")
    references = [solvers(1, "ours"), solvers(2, "theirs"), solvers(4, "others")]
    score = by_nodes(graph, references)
    assert score.value == score.parts["loo"] == pytest.approx((0.7 + 0.55) / 2)
    assert score.parts["full"] == pytest.approx((1 + 0.7 + 0.55) / 3)
    assert score.parts["references"] == 2
    assert score.parts["best"] == pytest.approx(0.7)
    assert by_nodes(graph, references, leave_out=None).value == pytest.approx(0.75)
    assert by_nodes(graph, references, leave_out="theirs").value == pytest.approx((1 + 0.55) / 2)


def test_the_worked_leave_one_out_is_three_tenths_against_one_half():
    sims, own = [0.9, 0.4, 0.2], [True, False, False]
    assert aggregate(sims, [1, 1, 1]).value == pytest.approx(0.5)
    assert aggregate(sims, np.where(own, 0, 1)).value == pytest.approx(0.3)


def test_an_empty_generator_equals_none_itself_included():
    assert by_nodes(solvers(1), [solvers(1), solvers(2)]).parts["references"] == 2


def test_a_left_out_reference_never_enters_the_headline():
    graph, others = solvers(3, "ours"), [solvers(2, "theirs"), CHAIN]
    without = forest_match(graph, others)
    for own in (solvers(1, "ours", tokens=1), solvers(9, "ours", tokens=1)):
        score = forest_match(graph, [own, *others])
        assert (score.value, score.parts["low"], score.parts["high"]) == (
            without.value, without.parts["low"], without.parts["high"],
        )  # fmt: skip


@pytest.mark.parametrize(
    ("references", "options", "reason"),
    [
        ([], {}, "no references for this task"),
        ([solvers(1, correct=False)], {}, "no verified reference: none of the 1 runs"),
        ([solvers(1, "ours")], {}, "every verified reference was made by 'ours'"),
        ([solvers(1, "theirs")], {"leave_out": "theirs"}, "made by 'theirs', which is left out"),
        ([solvers(1)], {"quality": [0.0]}, "no verified reference has a quality above 0"),
        ([solvers(1, origin=Origin(traces=("t1",)))], {}, "this very run"),
        ([solvers(1, origin=Origin(dataset="sums"))], {"leave_out": "dataset"}, "own data set 'sums'"),
        ([solvers(1, origin=Origin(traces=("t1",)))], {"leave_out": "trace"}, "only verified reference"),
    ],
)
def test_a_bad_forest_gives_a_reason_and_no_number(references, options, reason):
    graph = solvers(1, "ours", origin=Origin(dataset="sums", traces=("t1",)))
    score = forest_match(graph, references, **options)
    assert score.value is None
    assert reason in score.reason


def test_the_own_data_set_can_be_left_out():
    graph = solvers(1, origin=Origin(dataset="sums"))
    references = [solvers(1, origin=Origin(dataset="sums")), solvers(2, origin=Origin(dataset="words"))]
    assert by_nodes(graph, references, leave_out="dataset").value == pytest.approx(0.7)
    assert by_nodes(solvers(1), references, leave_out="dataset").parts["references"] == 2


def test_the_own_run_can_be_left_out_and_is_never_part_of_the_full_match():
    graph = solvers(1, origin=Origin(traces=("t1",)))
    references = [graph, solvers(2)]
    assert forest_match(graph, references).value is None
    score = by_nodes(graph, references, leave_out="trace")
    assert score.value == score.parts["full"] == pytest.approx(0.7)


@pytest.mark.parametrize("quality", [*FAMILIES, "random"])
def test_the_match_lies_between_its_bounds_and_below_the_best(quality):
    rng = np.random.default_rng(5)
    for _ in range(50):
        graph = random_graph(rng)
        tokens = [None, 100, 5000]
        references = [
            random_graph(rng, tokens=tokens[int(rng.integers(3))]) for _ in range(int(rng.integers(1, 6)))
        ]
        chosen = rng.random(len(references)).tolist() if quality == "random" else quality
        score = forest_match(graph, references, quality=chosen)
        sims = [similarity(graph, reference).value for reference in references]
        assert score.parts["low"] <= score.value <= score.parts["high"]
        assert min(sims) - 1e-12 <= score.value <= score.parts["best"] <= max(sims) + 1e-12


def test_many_candidates_together_get_the_numbers_that_each_gets_alone():
    rng = np.random.default_rng(6)
    names = ["", "a", "b"]
    references = ReferenceSet(
        random_graph(rng, generator=names[k % 3], tokens=100 * (k + 1)) for k in range(7)
    )
    graphs = [random_graph(rng, generator=names[k % 3]) for k in range(30)]
    for graph, score in zip(graphs, match_many(graphs, references), strict=True):
        alone = forest_match(graph, list(references))
        assert score.value == pytest.approx(alone.value, abs=1e-15)
        assert score.parts == pytest.approx(alone.parts)


def test_unknown_tokens_of_references_are_counted():
    assert forest_match(CHAIN, [DIAMOND, CHAIN]).parts["tokens_unknown"] == 2


def test_the_fixed_names_are_there():
    for name in ("mean_uptake", "node_validity", "content_redundancy", "efficiency", "aggregate"):
        assert callable(getattr(forestbench, name))
