"""GEMMAS [1]_: is the team diverse (IDS), and is its communication needed (UPR)?

Conventions
-----------
* ``spatial[i, j]`` (S) is 1 iff i's text of the same round reached j, ``temporal[i, j]`` (T) iff one of an
  earlier round did; ``adjacency[i, j]`` is 1 iff i -> j. Each is an (n, n) array, ``(n, edge list)`` or a
  scipy sparse matrix.
* IDS is in [0, 1], higher is more diverse. UPR is in [0, 1], lower is less waste.
* Nothing to divide by is undefined, never 0 or 1: silence is neither diverse nor efficient.

What counts
-----------
* IDS looks at pairs that hear each other directly. A missing text takes its pairs with it.
* A path is a chain of at least two nodes along edges, wherever it starts and ends; see `paths` for others.
* A node is correct if it commits to the gold answer; one that commits to none is not, and is counted apart.

Differences from the paper
--------------------------
The profile ``strict``, the default, takes steps as nodes and their transfers as edges: all that was said, and
never a cycle. The profile ``paper`` takes agents, their last outputs and the last round's S and T, UPR on S
alone, and scikit-learn's tokens. Both clip semantic cosines to [0, 1], without which the paper's range does
not hold. Paths are counted, never listed. `residual_path_ratio` is ours.

.. [1] Lee et al. GEMMAS: Graph-based Evaluation Metrics for Multi Agent Systems. EMNLP 2025, Industry Track
   (arXiv:2507.13190), eq. 1-3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from counterpoint.contracts import Context, Metric
from counterpoint.errors import GraphError, UsageError
from counterpoint.graph import Edges, View
from counterpoint.metrics import paths as exact
from counterpoint.metrics import paths_float as floating
from counterpoint.metrics.correctness import step_correctness
from counterpoint.metrics.diversity import diversity_curve, information_diversity
from counterpoint.metrics.paths import PathQuestion, is_edge_list
from counterpoint.registry import suggest
from counterpoint.score import Score

__all__ = [
    "IDS",
    "UPR",
    "UPR_RESIDUAL",
    "diversity_curve",
    "information_diversity",
    "path_graph",
    "path_load",
    "residual_path_ratio",
    "unnecessary_path_ratio",
]

MODES = ("auto", "exact", "float")


def unnecessary_path_ratio(
    adjacency: object,
    correct: Sequence[bool] | NDArray[Any],
    *,
    threshold: Any = 0.5,
    paths: str = "subpath",
    mode: str = "auto",
) -> Score:
    """Unnecessary Path Ratio, eq. 3: the share of paths on which too few nodes are correct.

    ``UPR = 1 - necessary / paths``; a path is necessary iff ``correct nodes / nodes >= threshold``.

    Parameters
    ----------
    adjacency: a directed acyclic graph; see the module's conventions. Duplicates in an edge list are merged.
    correct: whether each node is correct, (n,) of True and False.
    threshold: a number in [0, 1], read as the fraction it is written as: 0.1 is 1/10.
    paths: ``subpath`` (every path of two nodes or more), ``subpath1`` (single nodes too) or ``maximal`` (from
        a node without predecessors to one without successors).
    mode: ``exact`` counts in integers, ``float`` in floating point with a relative error of at most 1e-9 (for
        graphs of up to 8 million edges); ``auto`` is exact unless that is slow.

    Returns
    -------
    Score in [0, 1], lower is less waste; undefined without a path. Parts: ``paths`` and ``necessary``, exact
    integers; in floating mode ``log10_paths``, ``log10_necessary`` (unless fewer than one path in 1e300 is
    necessary) and ``relative_error``, a bound. Detail: ``mode``, the one used.

    Raises
    ------
    GraphError for a cycle, a self-loop or a wrong length of ``correct``; UsageError for the other arguments.

    >>> unnecessary_path_ratio((3, [(0, 1), (1, 2)]), [True, False, False]).value  # 0-1 is necessary
    0.666667
    """
    question = PathQuestion.read(adjacency, correct, threshold, paths)
    is_exact = _is_exact(mode, question.is_exact_quick)
    total = question.paths
    if not total:
        return Score.undefined(NO_PATH, parts={"paths": 0, "necessary": 0})
    if is_exact:
        necessary = exact.count(question)
        return Score((total - necessary) / total, {"paths": total, "necessary": necessary}, detail=EXACT)
    share, log10_necessary = floating.count(question)
    parts = {"log10_paths": math.log10(total), "relative_error": floating.relative_error(question)}
    if math.isfinite(log10_necessary):
        parts["log10_necessary"] = log10_necessary
    return Score(share, parts, detail=FLOAT)


def residual_path_ratio(
    adjacency: object,
    correct: Sequence[bool] | NDArray[Any],
    *,
    threshold: Any = 0.5,
    paths: str = "subpath",
) -> Score:
    """UPR less what the number of correct nodes alone explains; ours.

    ``UPR - E[UPR]``, the mean over all ways to hand out the same correctness to the nodes of the graph: on a
    path of l nodes out of n, K of them correct, it is hypergeometric how many are.

    Parameters
    ----------
    adjacency, correct, threshold, paths: as in `unnecessary_path_ratio`.

    Returns
    -------
    Score in [-1, 1]: above 0 if wrong nodes stand where more paths run than by chance, and 0 on a graph with
    an edge between any two nodes, whoever is wrong. Undefined without a path. Parts: ``upr``, ``expected``.
    Exact; where that is slow in floating point, with part ``absolute_error``, a bound.

    Raises
    ------
    As `unnecessary_path_ratio`.

    >>> residual_path_ratio((3, [(0, 1), (1, 2)]), [True, False, False]).value  # 2/3 - (2/3 + 1/3 + 2/3) / 3
    0.111111
    """
    question = PathQuestion.read(adjacency, correct, threshold, paths)
    total = question.paths
    if not total:
        return Score.undefined(NO_PATH)
    if not question.is_exact_quick:
        upr, expected = floating.count(question)[0], floating.expected_share(question)
        error = 2 * floating.relative_error(question)
        parts = {"upr": upr, "expected": expected, "absolute_error": error}
        return Score(upr - expected, parts, detail=FLOAT)
    unnecessary = total - exact.count(question)
    mean, whole = exact.expected_unnecessary(question)
    parts = {"upr": unnecessary / total, "expected": mean / (total * whole)}
    return Score((unnecessary * whole - mean) / (total * whole), parts, detail=EXACT)


def path_load(
    adjacency: object,
    correct: Sequence[bool] | NDArray[Any],
    *,
    threshold: Any = 0.5,
    paths: str = "subpath",
    mode: str = "auto",
) -> NDArray[np.object_]:
    """How many paths run through each edge, and how many unnecessary ones: where the waste of eq. 3 flows.

    Through u -> v runs every path that ends in u followed by every path that starts in v.

    Parameters
    ----------
    adjacency, correct, threshold, paths, mode: as in `unnecessary_path_ratio`.

    Returns
    -------
    (m, 2) Python integers: paths, unnecessary paths. Rows in the order of the edge list, or row-major. In
    floating mode the second column is rounded to about 15 digits.

    Raises
    ------
    As `unnecessary_path_ratio`, and GraphError for an edge that stands twice in an edge list.

    >>> path_load((3, [(1, 2), (0, 1)]), [True, False, False]).tolist()
    [[2, 2], [2, 1]]
    """
    question = PathQuestion.read(adjacency, correct, threshold, paths)
    is_exact = _is_exact(mode, question.is_load_quick)
    loads = (exact if is_exact else floating).load(question)
    table = np.empty((len(loads), 2), dtype=object)
    if loads:
        table[:] = loads
    if not is_edge_list(adjacency):
        return table
    row = {(source, target): at for at, (source, target) in enumerate(question.edges.tolist())}
    listed = [tuple(edge) for edge in np.asarray(adjacency[1]).reshape(-1, 2).tolist()]
    if len(listed) > len(row):
        source, target = next(edge for edge in listed if listed.count(edge) > 1)
        raise GraphError(f"edge {source} -> {target} stands twice in the edge list: list it once")
    return table[[row[edge] for edge in listed]] if listed else table


NO_PATH = "the graph has no path of two nodes or more: no node hears another"
EXACT, FLOAT = {"mode": "exact"}, {"mode": "float"}


def _is_exact(mode: str, quick: bool) -> bool:
    if mode not in MODES:
        raise UsageError(f"mode {mode!r}{suggest(mode, MODES)} is none of {', '.join(MODES)}")
    return mode == "exact" or (mode == "auto" and quick)


# --- the metrics of a trace ----------------------------------------------------------------------


def _ids(context: Context, *, lam: Any, tokenizer: str) -> Score:
    view = _view(context)
    if reason := _why_unconnected(context, view):
        return Score.undefined(reason)
    n = len(view.names)
    spatial, temporal = (n, view.spatial_edges), (n, view.temporal_edges)
    score = information_diversity(
        view.texts, spatial, temporal, embed=context.embed, lam=lam, tokenizer=tokenizer
    )
    if score.value is not None:
        return replace(score, parts={**score.parts, **_truncated(context.embed, _compared(view))})
    if score.parts["pairs"]:
        return Score.undefined(context.embed_missing, parts=score.parts)
    silent = [
        step.agent if context.profile == "paper" else f"{step.id} ({step.agent})"
        for step in view.steps
        if not step.text.strip()
    ]
    reason = f"no text from {_listed(silent)}, and every transfer is from or to them: record what they said"
    return Score.undefined(reason, parts=score.parts)


def _truncated(embed: object, texts: list[str]) -> dict[str, int]:
    """Part ``truncated``, the texts that were cut to the model's length, where the embedder can tell."""
    count = getattr(embed, "truncated", None)
    return {"truncated": count(texts)} if callable(count) else {}


def _compared(view: View) -> list[str]:
    """The texts of connected nodes that both say something: what IDS embeds."""
    texts = view.texts
    there = np.array([bool(text.strip()) for text in texts], dtype=bool)
    edges = view.edge_array
    return [texts[node] for node in np.unique(edges[there[edges].all(axis=1)]).tolist()]


def _embeds(context: Context) -> list[str]:
    return _compared(_view(context))


def _upr(context: Context, *, threshold: Any, paths: str, mode: str) -> Score:
    return _on_paths(context, unnecessary_path_ratio, threshold=threshold, paths=paths, mode=mode)


def _upr_residual(context: Context, *, threshold: Any, paths: str) -> Score:
    return _on_paths(context, residual_path_ratio, threshold=threshold, paths=paths)


def _on_paths(context: Context, measure: Callable[..., Score], **parameters: Any) -> Score:
    """``measure`` of the trace's graph and the correctness of its nodes."""
    correctness = step_correctness(context)
    if correctness.reason:
        return Score.undefined(correctness.reason)
    view, edges, reason = path_graph(context)
    if reason:
        return Score.undefined(reason)
    ids = [step.id for step in view.steps]
    abstained = sum(correctness.answers[name] is None for name in ids)
    if abstained == len(ids):
        return Score.undefined(
            "no agent commits to an answer in its last step: have agents end with a line 'The answer is X', "
            "or try --profile strict"
        )
    correct = [correctness.correct[name] for name in ids]
    score = measure((len(ids), edges), correct, **parameters)
    return replace(score, parts={**score.parts, "abstained": abstained})


def path_graph(context: Context) -> tuple[View, Edges, str]:
    """The nodes and edges that the profile counts a trace's paths on; and why there are none, or empty."""
    view = _view(context)
    if reason := _why_unconnected(context, view):
        return view, view.edge_array, reason
    if context.profile == "paper":
        return view, view.spatial_edges, _why_not_spatial(view)
    return view, view.edge_array, ""


def _view(context: Context) -> View:
    """Steps; in the paper's profile agents, as of their last step in the last round."""
    return context.graph.agents("last_round") if context.profile == "paper" else context.graph.unrolled


def _why_unconnected(context: Context, view: View) -> str:
    if reason := context.graph.why_no_edges:
        return reason
    if not len(view.edge_array):
        return (
            f"in the last round ({_listed(view.names)}) nobody hears anybody, and the paper profile looks at "
            "no other: try --profile strict"
        )
    return ""


def _why_not_spatial(view: View) -> str:
    """Why S does not make the graph that the paper counts paths on."""
    if not len(view.spatial_edges):
        return (
            "no agent's last step hears another of the same round, and the paper profile counts paths within "
            "a round only: try --profile strict"
        )
    import networkx as nx

    try:
        cycle = [source for source, _ in nx.find_cycle(nx.DiGraph(view.spatial_edges.tolist()))]
    except nx.NetworkXNoCycle:
        return ""
    loop = " -> ".join(view.names[node] for node in [*cycle, cycle[0]])
    return f"agents hear each other in a cycle within the last round ({loop}): try --profile strict"


def _listed(names: Sequence[str]) -> str:
    """At most five names, and how many more there are."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


IDS = Metric(
    "ids", 1, "how little connected agents repeat each other, in words and in meaning", _ids,
    (0, 1), "higher", "", "GEMMAS (arXiv:2507.13190), eq. 1-2", ("texts", "transfers", "embedder"),
    parameters={"lam": 0.5, "tokenizer": "words"},
    profiles={"paper": {"tokenizer": "sklearn"}},
    settings=("evidence", "embedder", "profile"), embeds=_embeds,
)  # fmt: skip
UPR = Metric(
    "upr", 1, "share of communication paths on which too few steps are correct", _upr,
    (0, 1), "lower", "share of paths", "GEMMAS (arXiv:2507.13190), eq. 3", ("transfers", "gold"),
    parameters={"threshold": 0.5, "paths": "subpath", "mode": "auto"},
    settings=("evidence", "answers", "profile"),
)  # fmt: skip
UPR_RESIDUAL = Metric(
    "upr_residual", 1, "UPR less what the number of correct steps alone explains", _upr_residual,
    (-1, 1), "lower", "share of paths", "ours: UPR less its mean over permuted correctness",
    ("transfers", "gold"),
    parameters={"threshold": 0.5, "paths": "subpath"},
    settings=("evidence", "answers", "profile"),
)  # fmt: skip
