"""ForestBench: how closely a run's collaboration follows runs of the same task that are known to have worked.

Conventions
-----------
* A run is a `RoleGraph`: actions with canonical roles, and directed transfers between them; always acyclic.
* Similarities lie in [0, 1], are symmetric, and are 1 for a graph with itself. Two empty parts are alike
  (1), an empty and a non-empty one are not (0).
* References are weighted by quality (`counterpoint.metrics.weighting`); one that is not verified never
  counts.
* Texts are not looked at: only who acted, in which role, and who read whom.

What counts
-----------
sim = α s_node + β s_edge + γ s_topo with weights (.4, .4, .2):

* node: multiset Jaccard of role counts, Σ_r min / Σ_r max (equation 2);
* edge: Jaccard of role-typed edges (φ(u), φ(v)), a multiset (``strict``) or a set (``paper``) (equation 3);
* topo: ``shape``, the mean of min/max for nodes, edges, depth and width of the fullest level (``strict``), or
  ``nodes``, min/max of the number of nodes (``paper``) (equation 4).

Forest Match is the quality-weighted mean of a run's similarities to its references (equations 5 and 6), Best
Similarity the largest of them: BS >= FM >= min sim on the same references, whatever the weights.

Differences from the paper
--------------------------
* By default, references made by the candidate's own framework are dropped (``leave_out="generator"``): a
  framework is not rewarded for resembling itself. Both values are given.
* The paper's quality formula is not published; ours is printed, and ``low`` and ``high`` bound the value over
  every weighting whose ratio is at most ρ = 2.
* Profile ``strict`` counts edges as often as they occur and compares shape beyond the number of nodes.

Source: ForestBench, equations 2 to 7. The panel beside Forest Match is in `counterpoint.metrics.panel`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterpoint.errors import UsageError
from counterpoint.metrics.panel import content_redundancy, efficiency, mean_uptake, node_validity
from counterpoint.metrics.rolegraph import RoleGraph
from counterpoint.metrics.weighting import (
    RHO,
    Floats,
    Quality,
    aggregate,
    family_weights,
    intervals,
    match_interval,
    quality_weights,
    weighted_means,
)
from counterpoint.score import Score

__all__ = [
    "ReferenceSet",
    "RoleGraph",
    "aggregate",
    "content_redundancy",
    "efficiency",
    "forest_match",
    "match_interval",
    "match_many",
    "mean_uptake",
    "node_validity",
    "quality_weights",
    "similarity",
]

Counts = NDArray[np.int64]

WEIGHTS = (0.4, 0.4, 0.2)
PARTS = {"strict": ("multiset", "shape"), "paper": ("set", "nodes")}
"""Profile to how edges and topology are compared."""


def similarity(
    graph_a: RoleGraph,
    graph_b: RoleGraph,
    *,
    weights: Sequence[float] = WEIGHTS,
    profile: str = "strict",
    edges: str | None = None,
    topo: str | None = None,
) -> Score:
    """Similarity of two role graphs (equations 2 to 4): α s_node + β s_edge + γ s_topo.

    Parameters
    ----------
    weights: α, β, γ >= 0 that add up to 1.
    profile: ``strict`` (edges as a multiset, topology by shape) or ``paper`` (a set, by nodes).
    edges: ``multiset`` or ``set``; None: as the profile says.
    topo: ``shape`` or ``nodes``; None: as the profile says.

    Returns
    -------
    Score in [0, 1], symmetric, 1 for a graph with itself, always defined; parts ``node``, ``edge``, ``topo``.

    Raises
    ------
    UsageError: an unknown profile or way to compare; weights that do not add up to 1. GraphError: a cycle.

    >>> one = RoleGraph(["planner", "solver", "solver", "critic"], [(0, 1), (0, 2), (1, 3), (2, 3)])
    >>> other = RoleGraph(["planner", "solver", "verifier"], [(0, 1), (1, 2)])
    >>> round(similarity(one, other).value, 6), round(similarity(one, other, profile="paper").value, 6)
    (0.3775, 0.443333)
    """
    blend = tuple(float(weight) for weight in weights)
    if len(blend) != 3 or min(blend) < 0 or not math.isclose(sum(blend), 1, abs_tol=1e-9):
        raise UsageError(f"weights are three numbers >= 0 that add up to 1, found {weights}")
    parts = ReferenceSet([graph_b]).components([graph_a], profile=profile, edges=edges, topo=topo)
    node, edge, shape = (float(part[0, 0]) for part in parts)
    return Score(
        math.fsum(w * s for w, s in zip(blend, (node, edge, shape), strict=True)),
        {"node": node, "edge": edge, "topo": shape},
    )


class ReferenceSet(Sequence[RoleGraph]):
    """References of one task, with all that does not depend on the candidate computed once."""

    def __init__(self, references: Iterable[RoleGraph]) -> None:
        self.references = tuple(references)
        self.unknown = np.array([not graph.tokens for graph in self.references], dtype=bool)
        self.correct = np.array([graph.correct for graph in self.references], dtype=np.float64)
        self.generators = np.array([graph.generator for graph in self.references], dtype=object)
        roles = dict.fromkeys(role for graph in self.references for role in graph.roles)
        self._role_index = {role: index for index, role in enumerate(roles)}
        pairs = {pair for graph in self.references for pair in graph.edge_counts}
        side = len(roles) + 1
        self._pair_index = np.full((side, side), len(pairs), dtype=np.int64)
        for index, (source, target) in enumerate(sorted(pairs)):
            self._pair_index[self._role_index[source], self._role_index[target]] = index
        self._roles, self._edges = self._counts(self.references)
        self._shapes = _shapes(self.references)
        self._weights: dict[tuple[str, bytes], Floats] = {}
        self._traces: dict[str, list[int]] = {}
        for index, graph in enumerate(self.references):
            for trace in graph.origin.traces:
                self._traces.setdefault(trace, []).append(index)

    def __len__(self) -> int:
        return len(self.references)

    def __getitem__(self, index: Any) -> Any:
        return self.references[index]

    def components(
        self,
        graphs: Sequence[RoleGraph],
        *,
        profile: str = "strict",
        edges: str | None = None,
        topo: str | None = None,
    ) -> tuple[Floats, Floats, Floats]:
        """s_node, s_edge and s_topo of every graph with every reference, (graphs, references) each."""
        counted, shaped = _comparison(profile, edges, topo)
        roles, pairs = self._counts(graphs)
        shapes = _shapes(graphs)
        reference_pairs, sizes, reference_sizes = self._edges, shapes[:, 1], self._shapes[:, 1]
        if counted == "set":
            pairs, reference_pairs = np.minimum(pairs, 1), np.minimum(reference_pairs, 1)
            sizes, reference_sizes = _kinds_of_edges(graphs), _kinds_of_edges(self.references)
        node = _jaccard(roles, self._roles, shapes[:, 0], self._shapes[:, 0])
        edge = _jaccard(pairs, reference_pairs, sizes, reference_sizes)
        columns = 1 if shaped == "nodes" else 4
        ratios = _ratio(shapes[:, None, :columns], self._shapes[None, :, :columns])
        return node, edge, ratios.mean(axis=2)

    def _counts(self, graphs: Sequence[RoleGraph]) -> tuple[Counts, Counts]:
        """How often each role of the references, and each of their pairs along an edge, occurs in each graph."""
        known = len(self._role_index)
        role = np.fromiter(
            (self._role_index.get(role, known) for graph in graphs for role in graph.roles), dtype=np.int64
        )
        nodes = np.array([graph.n for graph in graphs], dtype=np.int64)
        edges = np.array([len(graph.edges) for graph in graphs], dtype=np.int64)
        first = np.repeat(np.cumsum(nodes) - nodes, edges)
        ends = np.concatenate([np.empty((0, 2), np.int64), *(graph.edges for graph in graphs)])
        pair = self._pair_index[role[first + ends[:, 0]], role[first + ends[:, 1]]]
        return _tally(role, nodes, known), _tally(pair, edges, int(self._pair_index[-1, -1]))

    def similarities(
        self, graphs: Sequence[RoleGraph], *, weights: Sequence[float] = WEIGHTS, profile: str = "strict"
    ) -> Floats:
        """sim of every graph with every reference, (graphs, references)."""
        parts = self.components(graphs, profile=profile)
        return sum((weight * part for weight, part in zip(weights, parts, strict=True)), np.zeros(()))

    def quality(self, quality: Quality, kept: NDArray[np.bool_]) -> Floats:
        """q_k of the references that are kept, 0 of the others; minima are over the kept ones."""
        key = (quality if isinstance(quality, str) else repr(list(quality)), kept.tobytes())
        if key not in self._weights:
            self._weights[key] = family_weights(
                quality,
                [graph.size for graph in self.references],
                [graph.tokens for graph in self.references],
                np.where(kept, self.correct, 0),
            )
        return self._weights[key]

    def own(self, graph: RoleGraph) -> NDArray[np.bool_]:
        """Which references are the very run that ``graph`` was made from."""
        same = np.zeros(len(self.references), dtype=bool)
        for trace in graph.origin.traces:
            same[self._traces.get(trace, [])] = True
        return same


def forest_match(
    graph: RoleGraph,
    references: Sequence[RoleGraph],
    *,
    quality: Quality = "default",
    leave_out: str | None = "generator",
    profile: str = "strict",
) -> Score:
    """Forest Match of a run (equations 5 and 6): FM = Σ q_k sim_k / Σ q_k over its task's references.

    Parameters
    ----------
    graph: the candidate.
    references: role graphs of verified runs of the same task, or a `ReferenceSet` of them.
    quality: a family of `counterpoint.metrics.weighting.FAMILIES`, or one number >= 0 a reference.
    leave_out: ``generator`` drops references of the candidate's own generator (an empty generator equals
        none); ``trace`` drops the candidate's own run only; None drops nothing; anything else names a
        generator to drop.
    profile: ``strict`` or ``paper``, as in `similarity`.

    Returns
    -------
    Score in [0, 1], higher is closer. Parts: ``best`` (Best Similarity), ``references`` (how many count),
    ``low`` and ``high`` (exact range over all weightings with ratio <= ``rho``: 2, or the ratio in use where
    that is larger), ``full`` (nothing left out but the run itself), ``loo`` (own generator left out);
    ``tokens_unknown`` references.
    Undefined without references, without a verified one, where leaving out leaves none, and where the very
    run is among the references that would count.

    >>> own = RoleGraph(["solver"], [], generator="ours")
    >>> other = RoleGraph(["solver", "critic"], [(0, 1)], generator="theirs")
    >>> score = forest_match(own, [own, other])
    >>> round(score.value, 6), round(score.parts["full"], 6)
    (0.3, 0.688889)
    """
    return match_many([graph], references, quality=quality, leave_out=leave_out, profile=profile)[0]


def match_many(
    graphs: Sequence[RoleGraph],
    references: Sequence[RoleGraph],
    *,
    quality: Quality = "default",
    leave_out: str | None = "generator",
    profile: str = "strict",
) -> list[Score]:
    """`forest_match` of many candidates of one task: the same numbers, computed together."""
    forest = references if isinstance(references, ReferenceSet) else ReferenceSet(references)
    sims = forest.similarities(graphs, profile=profile)
    scores: list[Score | None] = [None] * len(graphs)
    groups: dict[tuple[str, bytes], list[int]] = {}
    for index, graph in enumerate(graphs):
        groups.setdefault((graph.generator, forest.own(graph).tobytes()), []).append(index)
    for (generator, own), members in groups.items():
        candidate = _Candidate(generator, np.frombuffer(own, dtype=bool))
        folded = _fold(forest, sims[members], candidate, quality, leave_out)
        for index, score in zip(members, folded, strict=True):
            scores[index] = score
    return [score for score in scores if score is not None]


def _fold(
    forest: ReferenceSet,
    sims: Floats,
    candidate: _Candidate,
    quality: Quality,
    leave_out: str | None,
) -> list[Score]:
    """Scores of candidates that share their generator and their own runs among the references."""
    own, foreign = candidate.own, candidate.foreign(forest)
    kept = {None: np.ones_like(own), "trace": ~own, "generator": foreign}.get(
        leave_out, forest.generators != leave_out
    )
    parts = {}
    for name, mask in (("full", ~own), ("loo", foreign & ~own)):
        q = forest.quality(quality, mask)
        if q.any():
            parts[name] = weighted_means(sims[:, q > 0], q[q > 0]).tolist()
    q = forest.quality(quality, kept)
    used = q > 0
    weighted = bool(used.any() or forest.quality(quality, np.ones_like(own)).any())
    reason = _why_undefined(forest, candidate, used, leave_out, weighted)
    if reason:
        rows = [{name: values[row] for name, values in parts.items()} for row in range(len(sims))]
        return [Score.undefined(reason, parts=row) for row in rows]
    weights, sims = q[used], sims[:, used]
    rho = max(RHO, float(weights.max() / weights.min()))
    means = weighted_means(sims, weights)
    low, high = intervals(sims, rho)
    columns = {
        "best": sims.max(axis=1).tolist(),
        "low": np.minimum(low, means).tolist(),
        "high": np.maximum(high, means).tolist(),
        **parts,
    }
    fixed = {
        "references": int(used.sum()),
        "rho": rho,
        "tokens_unknown": int(forest.unknown[used].sum()),
    }
    return [
        Score(mean, {**{name: values[row] for name, values in columns.items()}, **fixed})
        for row, mean in enumerate(means.tolist())
    ]


@dataclass(frozen=True)
class _Candidate:
    """What decides which references a candidate is compared with."""

    generator: str
    own: NDArray[np.bool_]
    """Which references are its very run."""

    def foreign(self, forest: ReferenceSet) -> NDArray[np.bool_]:
        """Which references another generator made; an empty generator equals none."""
        if not self.generator:
            return np.ones_like(self.own)
        return np.asarray(forest.generators != self.generator, dtype=bool)


def _why_undefined(
    forest: ReferenceSet,
    candidate: _Candidate,
    used: NDArray[np.bool_],
    leave_out: str | None,
    weighted: bool,
) -> str:
    """Why Forest Match is undefined on the references in use, and what to do; empty where it is defined.

    ``weighted``: some reference has a weight before any is left out.
    """
    if not len(forest):
        return "no references for this task: add verified runs of it to the forest"
    if not forest.correct.any():
        return f"no verified reference: none of the {len(forest)} runs in the forest for this task was right"
    if (used & candidate.own).any():
        return (
            "the forest holds this very run, which would be compared with itself: "
            "score another run, or leave out its own runs (leave_out=trace)"
        )
    if used.any():
        return ""
    if leave_out is None or not weighted:
        return "no verified reference has a quality above 0"
    if leave_out == "generator":
        return (
            f"every verified reference was made by {candidate.generator!r}, the run's own framework: add "
            "runs of another one to the forest, or compare with its own other runs (leave_out=trace)"
        )
    if leave_out == "trace":
        return "the only verified reference is this very run: add other runs of this task to the forest"
    return f"every verified reference was made by {leave_out!r}, which is left out"


def _comparison(profile: str, edges: str | None, topo: str | None) -> tuple[str, str]:
    """How edges and topology are compared under a profile, unless said otherwise."""
    if profile not in PARTS:
        raise UsageError(f"profile {profile!r} is none of {', '.join(PARTS)}")
    counted, shaped = edges or PARTS[profile][0], topo or PARTS[profile][1]
    if counted not in ("multiset", "set"):
        raise UsageError(f"edges {counted!r} is neither multiset nor set")
    if shaped not in ("shape", "nodes"):
        raise UsageError(f"topo {shaped!r} is neither shape nor nodes")
    return counted, shaped


def _tally(values: Counts, lengths: Counts, kinds: int) -> Counts:
    """How often each of 0..kinds-1 occurs in each run of ``values``, (runs, kinds); others do not count."""
    run = np.repeat(np.arange(len(lengths)), lengths)
    counts = np.bincount(run * (kinds + 1) + values, minlength=len(lengths) * (kinds + 1))
    return counts.reshape(len(lengths), kinds + 1)[:, :kinds]


def _kinds_of_edges(graphs: Sequence[RoleGraph]) -> Counts:
    return np.array([len(graph.edge_counts) for graph in graphs], dtype=np.int64)


def _shapes(graphs: Sequence[RoleGraph]) -> Counts:
    """Nodes, edges, depth and width of each graph, (graphs, 4)."""
    rows = [(graph.n, len(graph.edges), graph.depth, graph.width) for graph in graphs]
    return np.array(rows, dtype=np.int64).reshape(len(rows), 4)


def _jaccard(counts: Counts, table: Counts, sizes: Counts, reference_sizes: Counts) -> Floats:
    """Σ min / Σ max of every row of ``counts`` with every row of ``table``; sizes are over all keys."""
    if len(counts) < len(table):  # the loop below is over the shorter side
        return _jaccard(table, counts, reference_sizes, sizes).T
    shared = np.empty((len(counts), len(table)), dtype=np.int64)
    for column, row in enumerate(table):
        np.minimum(counts, row).sum(axis=1, out=shared[:, column])
    return _ratio(shared, sizes[:, None] + reference_sizes[None] - shared)


def _ratio(one: Counts, other: Counts) -> Floats:
    """min / max, 1 where both are 0."""
    largest = np.maximum(one, other)
    return np.where(largest == 0, 1.0, np.minimum(one, other) / np.maximum(largest, 1))
