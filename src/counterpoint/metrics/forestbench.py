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
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from counterpoint.errors import UsageError
from counterpoint.metrics.panel import content_redundancy, efficiency, mean_uptake, node_validity
from counterpoint.metrics.references import WEIGHTS, ReferenceSet
from counterpoint.metrics.rolegraph import RoleGraph
from counterpoint.metrics.weighting import (
    RHO,
    Floats,
    Quality,
    aggregate,
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
        none); ``trace`` drops the candidate's own run only, ``dataset`` all of its data set; None drops
        nothing; anything else names a generator to drop.
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
    groups: dict[tuple[str, str, bytes], list[int]] = {}
    for index, graph in enumerate(graphs):
        key = graph.generator, graph.origin.dataset, forest.own(graph).tobytes()
        groups.setdefault(key, []).append(index)
    for (*_, own), members in groups.items():
        same = np.frombuffer(own, dtype=bool)
        folded = _fold(forest, sims[members], graphs[members[0]], same, quality, leave_out)
        for index, score in zip(members, folded, strict=True):
            scores[index] = score
    return [score for score in scores if score is not None]


def _fold(
    forest: ReferenceSet,
    sims: Floats,
    graph: RoleGraph,
    own: NDArray[np.bool_],
    quality: Quality,
    leave_out: str | None,
) -> list[Score]:
    """Scores of candidates that share generator and data set with ``graph``, and their ``own`` references."""
    parts = {}
    for name, mask in (("full", ~own), ("loo", forest.foreign(graph.generator) & ~own)):
        q = forest.quality(quality, mask)
        if q.any():
            parts[name] = weighted_means(sims[:, q > 0], q[q > 0]).tolist()
    q = forest.quality(quality, forest.kept(graph, own, leave_out))
    used = q > 0
    reason = _why_undefined(forest, graph, used, quality, leave_out)
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


def _why_undefined(
    forest: ReferenceSet,
    graph: RoleGraph,
    used: NDArray[np.bool_],
    quality: Quality,
    leave_out: str | None,
) -> str:
    """Why Forest Match is undefined on the references in use, and what to do; empty where it is defined."""
    own = forest.own(graph)
    if not len(forest):
        return "no references for this task: add verified runs of it to the forest"
    if not forest.correct.any():
        return f"no verified reference: none of the {len(forest)} runs in the forest for this task was right"
    if (used & own).any():
        return (
            "the forest holds this very run, which would be compared with itself: "
            "score another run, or leave out its own runs (leave_out=trace)"
        )
    if used.any():
        return ""
    if leave_out is None or not forest.quality(quality, np.ones_like(own)).any():
        return "no verified reference has a quality above 0"
    if leave_out == "generator":
        return (
            f"every verified reference was made by {graph.generator!r}, the run's own framework: add "
            "runs of another one to the forest, or compare with its own other runs (leave_out=trace)"
        )
    if leave_out == "dataset":
        return (
            f"every verified reference is of the run's own data set {graph.origin.dataset!r}: use scope=all"
        )
    if leave_out == "trace":
        return "the only verified reference is this very run: add other runs of this task to the forest"
    return f"every verified reference was made by {leave_out!r}, which is left out"
