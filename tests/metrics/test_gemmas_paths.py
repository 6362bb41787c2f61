"""UPR, residual and path loads against hand-made graphs and against listing every path."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array

from counterpoint.errors import CounterpointError, GraphError, UsageError
from counterpoint.metrics.gemmas import path_load, residual_path_ratio, unnecessary_path_ratio
from counterpoint.metrics.paths import PathQuestion, unnecessary_subsets

Graph = tuple[int, list[tuple[int, int]]]

CHAIN: Graph = (3, [(0, 1), (1, 2)])
DIAMOND: Graph = (4, [(0, 1), (0, 2), (1, 3), (2, 3)])


def complete(n: int) -> Graph:
    return n, list(itertools.combinations(range(n), 2))


def right(n: int, *nodes: int) -> list[bool]:
    return [node in nodes for node in range(n)]


def listed(graph: Graph, kind: str) -> list[list[int]]:
    """Every path that counts, one by one: the oracle."""
    n, edges = graph
    sources, targets = {i for i, _ in edges}, {j for _, j in edges}

    def extended(path: list[int]) -> list[list[int]]:
        return [path, *(longer for i, j in edges if i == path[-1] for longer in extended([*path, j]))]

    found = [path for start in range(n) for path in extended([start])]
    if kind == "maximal":
        found = [path for path in found if path[0] not in targets and path[-1] not in sources]
    return found if kind == "subpath1" else [path for path in found if len(path) > 1]


def is_necessary(path: Sequence[int], correct: Sequence[bool], threshold: Fraction) -> bool:
    return sum(correct[node] for node in path) >= threshold * len(path)


@st.composite
def questions(draw: Callable[..., Any], most: int = 7) -> tuple[Graph, list[bool], Fraction]:
    """A DAG on shuffled nodes, who is correct, and a threshold."""
    n = draw(st.integers(1, most))
    place = draw(st.permutations(range(n)))
    pairs = list(itertools.combinations(range(n), 2))
    chosen = draw(st.integers(0, 2 ** len(pairs) - 1))
    edges = sorted((place[i], place[j]) for bit, (i, j) in enumerate(pairs) if chosen >> bit & 1)
    correct = draw(st.integers(0, 2**n - 1))
    below = draw(st.sampled_from([1, 2, 2, 3, 7, 1000]))
    return (n, edges), [bool(correct >> node & 1) for node in range(n)], Fraction(
        draw(st.integers(0, below)), below
    )  # fmt: skip


# --- worked by hand ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("graph", "correct", "paths", "expected", "counted"),
    [
        (complete(4), right(4, 0, 1), "subpath", Fraction(3, 11), 11),
        (complete(4), right(4, 0, 1), "subpath1", Fraction(5, 15), 15),
        (complete(4), right(4, 0), "subpath", Fraction(8, 11), 11),
        (complete(4), right(4, 0), "subpath1", Fraction(11, 15), 15),
        (complete(4), right(4, 0, 1, 2), "subpath", Fraction(0), 11),
        (complete(4), right(4, 0, 1, 2), "subpath1", Fraction(1, 15), 15),
        (CHAIN, right(3, 0), "subpath", Fraction(2, 3), 3),
        (CHAIN, right(3, 0), "maximal", Fraction(1), 1),
        (CHAIN, right(3, 0, 2), "subpath", Fraction(0), 3),
        (DIAMOND, right(4, 0, 1), "subpath", Fraction(1, 3), 6),
        (DIAMOND, right(4, 0, 1), "maximal", Fraction(1, 2), 2),
    ],
)
def test_worked_graphs(graph: Graph, correct: list[bool], paths: str, expected: Fraction, counted: int):
    score = unnecessary_path_ratio(graph, correct, paths=paths)
    assert score.value == float(expected)
    assert score.parts == {"paths": counted, "necessary": counted - int(expected * counted)}


@pytest.mark.parametrize(
    ("n", "paths", "expected"),
    [
        (4, "subpath", [0, 0, 3 / 11, 8 / 11, 1]),
        (4, "subpath1", [0, 1 / 15, 5 / 15, 11 / 15, 1]),
        (5, "subpath", [0, 0, 4 / 26, 13 / 26, 22 / 26, 1]),
        (5, "subpath1", [0, 1 / 31, 6 / 31, 16 / 31, 26 / 31, 1]),
    ],
)
def test_on_a_complete_dag_only_the_number_of_wrong_nodes_counts(n: int, paths: str, expected: list[float]):
    for wrong, value in enumerate(expected):
        for nodes in itertools.combinations(range(n), n - wrong):
            correct = right(n, *nodes)
            assert unnecessary_path_ratio(complete(n), correct, paths=paths).value == value
            assert residual_path_ratio(complete(n), correct, paths=paths).value == 0


def test_one_right_and_one_wrong_is_necessary_at_a_half():
    assert unnecessary_path_ratio((2, [(0, 1)]), [True, False], threshold=0.5).value == 0
    assert unnecessary_path_ratio((2, [(0, 1)]), [True, False], threshold="0.501").value == 1


@pytest.mark.parametrize("threshold", [0.1, "0.1", "1/10", Fraction(1, 10), np.float64(0.1)])
def test_a_threshold_is_the_fraction_that_it_is_written_as(threshold: Any):
    chain = (10, [(node, node + 1) for node in range(9)])
    assert unnecessary_path_ratio(chain, right(10, 0), threshold=threshold, paths="maximal").value == 0
    assert unnecessary_path_ratio(chain, right(10, 0), threshold=0.1000001, paths="maximal").value == 1


@pytest.mark.parametrize("paths", ["subpath", "subpath1", "maximal"])
def test_all_paths_are_necessary_at_threshold_0_and_only_all_right_ones_at_1(paths: str):
    assert unnecessary_path_ratio(DIAMOND, right(4), threshold=0, paths=paths).value == 0
    assert residual_path_ratio(DIAMOND, right(4, 2), threshold=0, paths=paths).value == 0
    assert unnecessary_path_ratio(DIAMOND, right(4, 0, 1, 2, 3), threshold=1, paths=paths).value == 0
    assert unnecessary_path_ratio(DIAMOND, right(4), threshold=1, paths=paths).value == 1


def test_every_form_of_a_graph_gives_the_same():
    n, edges = DIAMOND
    array = np.zeros((n, n), dtype=int)
    array[tuple(zip(*edges, strict=True))] = 1
    forms = [DIAMOND, (n, np.array(edges)), (n, edges * 2), array, array.tolist(), coo_array(array)]
    scores = [unnecessary_path_ratio(form, np.array(right(n, 0, 1))) for form in forms]
    assert all(score == scores[0] for score in scores)


@pytest.mark.parametrize("graph", [(0, []), (1, []), (3, []), [[0]], np.zeros((2, 2))])
def test_a_graph_without_a_path_is_undefined(graph: Any):
    correct = [True] * (graph[0] if isinstance(graph, tuple) else len(graph))
    for score in (unnecessary_path_ratio(graph, correct), residual_path_ratio(graph, correct)):
        assert score.value is None
        assert "no path of two nodes" in score.reason
    assert path_load(graph, correct).shape == (0, 2)


def test_a_single_node_is_a_path_only_where_asked_for():
    assert unnecessary_path_ratio((1, []), [False], paths="subpath1").value == 1


# --- against listing every path ------------------------------------------------------------------


def check_against_listing(question: tuple[Graph, list[bool], Fraction]) -> None:
    graph, correct, threshold = question
    for kind in ("subpath", "subpath1", "maximal"):
        paths = listed(graph, kind)
        necessary = [path for path in paths if is_necessary(path, correct, threshold)]
        score = unnecessary_path_ratio(graph, correct, threshold=threshold, paths=kind)
        assert score.parts == {"paths": len(paths), "necessary": len(necessary)}
        assert score.value == ((len(paths) - len(necessary)) / len(paths) if paths else None)


@settings(max_examples=1000)
@given(questions())
def test_counting_equals_listing_every_path(question: tuple[Graph, list[bool], Fraction]):
    check_against_listing(question)


@pytest.mark.slow
@settings(max_examples=5000)
@given(questions(most=8))
def test_counting_equals_listing_every_path_of_thousands_of_graphs(
    question: tuple[Graph, list[bool], Fraction],
):
    check_against_listing(question)


@settings(max_examples=100)
@given(questions())
def test_loads_equal_listing_every_path(question: tuple[Graph, list[bool], Fraction]):
    graph, correct, threshold = question
    for kind in ("subpath", "subpath1", "maximal"):
        paths = listed(graph, kind)
        through = [[path for path in paths if edge in itertools.pairwise(path)] for edge in graph[1]]
        wasted = [[path for path in some if not is_necessary(path, correct, threshold)] for some in through]
        expected = [[len(some), len(waste)] for some, waste in zip(through, wasted, strict=True)]
        for mode in ("exact", "float"):
            loads = path_load(graph, correct, threshold=threshold, paths=kind, mode=mode)
            assert loads.tolist() == expected


@settings(max_examples=100)
@given(questions(most=5))
def test_the_residual_is_ratio_less_mean_over_all_ways_to_hand_out_correctness(
    question: tuple[Graph, list[bool], Fraction],
):
    graph, correct, threshold = question
    n = graph[0]
    for kind in ("subpath", "subpath1", "maximal"):
        score = residual_path_ratio(graph, correct, threshold=threshold, paths=kind)
        ratios = [
            unnecessary_path_ratio(graph, right(n, *nodes), threshold=threshold, paths=kind).value
            for nodes in itertools.combinations(range(n), sum(correct))
        ]
        if score.value is None:
            assert ratios == [None] * len(ratios)
            continue
        mean = math.fsum(ratio for ratio in ratios if ratio is not None) / len(ratios)
        own = unnecessary_path_ratio(graph, correct, threshold=threshold, paths=kind).value
        assert own is not None
        assert score.parts == pytest.approx({"upr": own, "expected": mean}, abs=1e-12)
        assert score.value == pytest.approx(own - mean, abs=1e-12)


@given(st.integers(1, 8), st.data())
def test_sets_of_nodes_with_too_few_correct_ones_are_counted_without_listing(n: int, data: st.DataObject):
    correct, below = data.draw(st.integers(0, n)), data.draw(st.integers(1, 8))
    share = Fraction(data.draw(st.integers(0, below)), below)
    weights = share.denominator - share.numerator, share.numerator
    expected = [
        sum(
            sum(node < correct for node in some) < share * size
            for some in itertools.combinations(range(n), size)
        )
        for size in range(1, n + 1)
    ]
    assert list(unnecessary_subsets(n, correct, weights)) == expected


@given(questions(), st.data())
def test_renaming_nodes_changes_nothing(question: tuple[Graph, list[bool], Fraction], data: st.DataObject):
    (n, edges), correct, threshold = question
    new = data.draw(st.permutations(range(n)))
    renamed = n, [(new[i], new[j]) for i, j in edges]
    moved = [correct[new.index(node)] for node in range(n)]
    for measure in (unnecessary_path_ratio, residual_path_ratio):
        assert measure(renamed, moved, threshold=threshold) == measure(
            (n, edges), correct, threshold=threshold
        )
    loads = path_load((n, edges), correct, threshold=threshold)
    assert path_load(renamed, moved, threshold=threshold).tolist() == loads.tolist()


# --- exact and floating --------------------------------------------------------------------------


@settings(max_examples=100)
@given(questions(), st.sampled_from(["subpath", "subpath1", "maximal"]))
def test_floating_mode_equals_exact_mode_on_small_graphs(
    question: tuple[Graph, list[bool], Fraction], paths: str
):
    graph, correct, threshold = question
    exact = unnecessary_path_ratio(graph, correct, threshold=threshold, paths=paths, mode="exact")
    floating = unnecessary_path_ratio(graph, correct, threshold=threshold, paths=paths, mode="float")
    if exact.value is None:
        assert floating.value is None
        return
    assert floating.value == pytest.approx(exact.value, rel=1e-12, abs=0)
    assert floating.parts["log10_paths"] == math.log10(exact.parts["paths"])
    assert ("log10_necessary" in floating.parts) == (exact.parts["necessary"] > 0)
    if exact.parts["necessary"]:
        assert floating.parts["log10_necessary"] == pytest.approx(math.log10(exact.parts["necessary"]))


def band(n: int, reach: int) -> Graph:
    return n, [(i, j) for i in range(n) for j in range(i + 1, min(n, i + 1 + reach))]


@pytest.mark.parametrize(
    ("graph", "threshold"),
    [
        (band(1100, 4), 0.5),
        pytest.param(band(1100, 4), 0.3, marks=pytest.mark.slow),
        (complete(150), 0.3),
        (complete(150), 0.9),
    ],
)
def test_floating_mode_keeps_its_bound_where_counts_exceed_any_float(graph: Graph, threshold: float):
    correct = [node * node % 7 in (1, 2) for node in range(graph[0])]
    exact = unnecessary_path_ratio(graph, correct, threshold=threshold, mode="exact")
    floating = unnecessary_path_ratio(graph, correct, threshold=threshold, mode="float")
    assert exact.value is not None
    assert floating.value is not None
    assert 0 < floating.parts["relative_error"] <= 1e-9
    assert abs(floating.value - exact.value) <= floating.parts["relative_error"] * exact.value
    assert floating.parts["log10_necessary"] == pytest.approx(math.log10(exact.parts["necessary"]), rel=1e-12)
    assert (exact.detail, floating.detail) == ({"mode": "exact"}, {"mode": "float"})


@pytest.mark.slow
def test_floating_loads_are_close_to_exact_ones_where_counts_exceed_any_float():
    graph = band(1200, 3)
    correct = [node % 5 < 2 for node in range(1200)]
    exact, floating = (path_load(graph, correct, mode=mode) for mode in ("exact", "float"))
    assert exact[:, 0].max() > 10**308
    assert exact[:, 0].tolist() == floating[:, 0].tolist()
    for known, found in zip(exact[:, 1], floating[:, 1], strict=True):
        assert abs(found - known) * 10**9 <= known


def test_auto_mode_is_exact_while_that_is_quick():
    assert unnecessary_path_ratio(complete(100), right(100, 7)).detail == {"mode": "exact"}
    score = unnecessary_path_ratio(band(3000, 2), [node % 2 == 0 for node in range(3000)])
    assert score.detail == {"mode": "float"}


def test_a_large_residual_is_floating_and_says_how_close():
    score = residual_path_ratio(band(3000, 2), [node % 3 == 0 for node in range(3000)])
    assert score.value == score.parts["upr"] - score.parts["expected"]
    assert score.detail == {"mode": "float"}
    assert score.parts["absolute_error"] < 1e-9


def test_a_floating_residual_equals_the_exact_one(monkeypatch: pytest.MonkeyPatch):
    correct = [node % 3 == 0 for node in range(40)]
    exact = residual_path_ratio(band(40, 3), correct, threshold="2/5")
    monkeypatch.setattr(PathQuestion, "is_exact_quick", False)
    floating = residual_path_ratio(band(40, 3), correct, threshold="2/5")
    assert (exact.detail, floating.detail) == ({"mode": "exact"}, {"mode": "float"})
    assert floating.value == pytest.approx(exact.value, abs=1e-12)


def test_no_unnecessary_path_is_exactly_0_in_floating_mode():
    score = unnecessary_path_ratio(band(1500, 4), [True] * 1500, mode="float", threshold=1)
    assert score.value == 0
    assert score.parts["log10_necessary"] == pytest.approx(score.parts["log10_paths"], rel=1e-12)


def test_loads_too_large_for_memory_are_refused():
    chain = 20_000, [(node, node + 1) for node in range(19_999)]
    with pytest.raises(GraphError, match="GB of memory: ask about fewer nodes"):
        path_load(chain, [False] * 20_000)


# --- loads ---------------------------------------------------------------------------------------


def test_loads_come_in_the_order_of_the_edge_list_or_row_major():
    n, edges = DIAMOND
    array = np.zeros((n, n), dtype=int)
    array[tuple(zip(*edges, strict=True))] = 1
    correct = right(n, 0, 1)
    by_row = path_load(array, correct)
    assert by_row.dtype == object
    assert by_row.tolist() == [[2, 0], [2, 1], [2, 0], [2, 2]]
    assert path_load((n, edges[::-1]), correct).tolist() == by_row[::-1].tolist()


def test_loads_of_edges_out_of_sources_add_up_to_all_maximal_paths():
    loads = path_load(DIAMOND, right(4, 0, 1), paths="maximal")
    assert loads[:2].sum(axis=0).tolist() == loads[2:].sum(axis=0).tolist() == [2, 1]


# --- what a user can get wrong -------------------------------------------------------------------


@pytest.mark.parametrize("measure", [unnecessary_path_ratio, residual_path_ratio, path_load])
@pytest.mark.parametrize(
    ("graph", "correct", "options", "error", "message"),
    [
        ([[0, 1], [1, 0]], [True, True], {}, GraphError, r"cycle \(0 -> 1 -> 0\)|cycle \(1 -> 0 -> 1\)"),
        (np.eye(2), [True, True], {}, GraphError, "node 0 has an edge to itself"),
        ([[0, 0], [0, 1]], [True, True], {}, GraphError, "node 1 has an edge to itself"),
        (coo_array(np.eye(2)), [True, True], {}, GraphError, "node 0 has an edge to itself"),
        ((2, [(1, 1)]), [True, True], {}, GraphError, "node 1 has an edge to itself"),
        ((2, [(0, 2)]), [True, True], {}, GraphError, "an edge names node 2"),
        ((2, [(0, 1, 1)]), [True, True], {}, GraphError, "an edge list holds pairs"),
        ([[0, 1]], [True], {}, GraphError, "found shape"),
        (CHAIN, [True], {}, GraphError, "found 1 for 3 nodes"),
        (CHAIN, [0.4, 1, 1], {}, GraphError, r"found 0\.4"),
        (CHAIN, ["A", "B", "A"], {}, GraphError, "one of True and False a node"),
        (CHAIN, [[True], [True], [False]], {}, GraphError, "found another list"),
        (CHAIN, None, {}, GraphError, "found another NoneType"),
        (((1, 1), (0, 0)), [True, True], {}, GraphError, "node 0 has an edge to itself"),
        (CHAIN, right(3), {"threshold": 1.5}, UsageError, "outside"),
        (CHAIN, right(3), {"threshold": float("nan")}, UsageError, "no number"),
        (CHAIN, right(3), {"threshold": "half"}, UsageError, "no number"),
        (CHAIN, right(3), {"threshold": "1/0"}, UsageError, "no number"),
        (CHAIN, right(3), {"paths": "subpaths"}, UsageError, "did you mean 'subpath'"),
    ],
)
def test_bad_arguments_are_named(
    measure: Callable[..., Any],
    graph: Any,
    correct: Any,
    options: dict[str, Any],
    error: type[CounterpointError],
    message: str,
):
    with pytest.raises(error, match=message):
        measure(graph, correct, **options)


def test_an_unknown_mode_is_named():
    for measure in (unnecessary_path_ratio, path_load):
        with pytest.raises(UsageError, match="did you mean 'exact'"):
            measure(CHAIN, right(3), mode="exakt")


def test_loads_of_an_edge_listed_twice_are_refused():
    with pytest.raises(GraphError, match="edge 0 -> 1 stands twice"):
        path_load((2, [(0, 1), (0, 1)]), [True, True])
