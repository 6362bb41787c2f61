"""RIVER [1]_: what of a discussion is shared (U), what is new (CC, ER), what is kept (OR, SR, SL).

Conventions
-----------
* A claim is one unit of information that an agent puts forward, with a stance in [0, 1]: 0 rejects it, .5 is
  neutral or uncertain, 1 supports it. A position is a moment of the discussion, a round say.
* ``owners`` names the agent of each claim, (n,); ``match`` is the symmetric correspondence m in [0, 1], (n,
  n): ``m(x, y) = min(p(x -> y), p(y -> x))``, so that whatever one claim says beyond the other blocks it.
* ``preservation`` is the directed p. A relation holds iff its score is at least the threshold, .75.

What counts
-----------
* Unity is coverage: several claims may be answered by one. ``kind="one_to_one"`` assigns each at most once.
* Claims of one agent are never compared with each other, except to find repetitions.

Differences from the paper
--------------------------
The paper names the measures and most thresholds; the formula of unity, the mean over agents in source
retention, and survival length's normalization are ours. Judgments are an argument here: see `judges`.

.. [1] RIVER: informational unity, claim count, extension rate, source retention, survival. Section 3 and
   appendix B.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterpoint.errors import UsageError
from counterpoint.metrics.clusters import (
    THRESHOLD,
    cluster_claims,
    deduplicate_claims,
    extension_rate,
    read_match,
    unique_claims,
)
from counterpoint.metrics.dynamics import correlate, falls, fold_cases
from counterpoint.metrics.survival import fates, lineages, survival_length, survival_rate, weakened_rate
from counterpoint.registry import suggest
from counterpoint.score import Score

__all__ = [
    "KINDS",
    "THRESHOLD",
    "cluster_claims",
    "correlate",
    "deduplicate_claims",
    "extension_rate",
    "falls",
    "fates",
    "fold_cases",
    "informational_unity",
    "lineages",
    "source_retention",
    "survival_length",
    "survival_rate",
    "unique_claims",
    "weakened_rate",
]

KINDS = ("hard", "soft", "one_to_one")

Floats = NDArray[np.float64]


def informational_unity(
    owners: Sequence[Hashable],
    stances: Sequence[float] | Floats,
    match: ArrayLike,
    *,
    agents: Sequence[Hashable] | None = None,
    kind: str = "hard",
    threshold: float = THRESHOLD,
) -> Score:
    """Informational unity of one position: how far agents make the same claims and take the same stance.

    ``u(i -> j) = 1/#C_i * sum_{x in C_i} max_{y in C_j} k(x, y) * (1 - abs(stance_x - stance_y))``, 0 where j
    claims nothing; ``U`` is its mean over ordered pairs i != j of which i claims something.

    Parameters
    ----------
    owners: agent of each claim, (n,).
    stances: of each claim, (n,), in [0, 1].
    match: symmetric correspondence m, (n, n), in [0, 1].
    agents: all agents, those who claim nothing included; None: the owners.
    kind: ``hard``: k = 1 iff m >= threshold; ``soft``: m if so, else 0; ``one_to_one``: hard, and each claim
        of j answers one claim of i at most (the assignment of the highest sum).
    threshold: inclusive.

    Returns
    -------
    Score in [0, 1], higher is more shared: 1 iff every claim is matched by every agent with the same stance.
    Undefined without a pair. Parts ``pairs``, ``claims``, ``agents``.

    Raises
    ------
    UsageError for arrays of other shapes or ranges, an owner that is not among ``agents``, or another kind.

    >>> match = [[1, 0, 0.9], [0, 1, 0], [0.9, 0, 1]]  # A: x1, x2; B: y1, which is x1
    >>> informational_unity(["A", "A", "B"], [1, 1, 0.6], match).value
    0.45
    """
    if kind not in KINDS:
        raise UsageError(f"kind {kind!r}{suggest(kind, KINDS)} is none of {', '.join(KINDS)}")
    m = read_match(len(owners), match)
    shared = _shared(m, _stances(stances, len(owners)), kind, threshold)
    everyone = list(dict.fromkeys(owners if agents is None else agents))
    if strangers := set(owners) - set(everyone):
        raise UsageError(f"{min(map(str, strangers))!r} owns a claim and is not among the agents")
    own = {
        agent: np.array([i for i, owner in enumerate(owners) if owner == agent], int) for agent in everyone
    }
    speakers = [agent for agent in everyone if len(own[agent])]
    counts = {"pairs": len(speakers) * (len(everyone) - 1), "claims": len(owners), "agents": len(everyone)}
    if not counts["pairs"]:
        reason = "nobody makes a claim" if len(everyone) > 1 else "fewer than two agents: nothing is shared"
        return Score.undefined(reason, parts=counts)
    # Sorted, so that the order of agents and claims changes no bit of the sum.
    values = sorted(
        _covered(shared[np.ix_(own[i], own[j])], kind) for i in speakers for j in everyone if i != j
    )
    return Score(sum(values) / len(values), counts)


def _shared(m: Floats, stances: Floats, kind: str, threshold: float) -> Floats:
    """k times agreement in stance, of every pair of claims."""
    holds = m >= threshold
    strength = np.where(holds, m, 0.0) if kind == "soft" else holds.astype(np.float64)
    product: Floats = strength * (1 - np.abs(stances[:, None] - stances[None, :]))
    return product


def _covered(shared: Floats, kind: str) -> float:
    """u(i -> j) from the claims of i (rows) and j (columns)."""
    if not shared.size:
        return 0.0
    if kind == "one_to_one":
        from scipy.optimize import linear_sum_assignment  # as dear as all other imports together

        best = shared[linear_sum_assignment(shared, maximize=True)]
    else:
        best = shared.max(axis=1)
    return float(np.sort(best).sum()) / len(shared)


def _stances(stances: Sequence[float] | Floats, n: int) -> Floats:
    array = np.asarray(stances, dtype=np.float64)
    if array.shape != (n,):
        raise UsageError(f"stances has shape {array.shape}; it has to be ({n},), one a claim")
    if n and not (array.min() >= 0 and array.max() <= 1):
        raise UsageError("stances holds numbers outside [0, 1], or NaN: 0 rejects, .5 is neutral, 1 supports")
    return array


def source_retention(
    owners: Sequence[Hashable],
    preservation: ArrayLike,
    agents: Sequence[Hashable],
    *,
    threshold: float = THRESHOLD,
) -> Score:
    """Source retention of one position: the share of source facts that an agent's claims still carry.

    ``OR = mean_a 1/#F * sum_g 1[max_{x in C_a} p(g -> x) >= threshold]``

    Parameters
    ----------
    owners: agent of each claim, (n,).
    preservation: p(g -> x), (facts, n), in [0, 1].
    agents: all agents; one without claims retains nothing.

    Returns
    -------
    Score in [0, 1], higher keeps more; undefined without facts or agents. Parts ``agent_mean`` (the value),
    ``union`` (the share that the agents carry together, at least as high) and ``facts``.

    >>> score = source_retention(["A", "A", "B"], [[0.9, 0, 0], [0, 0.8, 0.8], [0, 0, 0]], ["A", "B"])
    >>> score.value, score.parts["union"]
    (0.5, 0.666667)
    """
    p = np.asarray(preservation, dtype=np.float64)
    if p.size == 0:
        p = p.reshape(len(p) if p.ndim else 0, len(owners)) if not len(owners) or not len(p) else p
    if p.ndim != 2 or p.shape[1] != len(owners):
        raise UsageError(f"preservation has shape {p.shape}; it has to be (facts, {len(owners)})")
    if p.size and not (p.min() >= 0 and p.max() <= 1):
        raise UsageError("preservation holds numbers outside [0, 1], or NaN")
    everyone = list(dict.fromkeys(agents))
    if strangers := set(owners) - set(everyone):
        raise UsageError(f"{min(map(str, strangers))!r} owns a claim and is not among the agents")
    facts = len(p)
    if not facts:
        return Score.undefined("the source states no fact: give the trace a task text", parts={"facts": 0})
    if not everyone:
        return Score.undefined("no agents", parts={"facts": facts})
    carried = p >= threshold
    held = [carried[:, [owner == agent for owner in owners]].any(axis=1) for agent in everyone]
    mean = sum(sorted(float(of_agent.mean()) for of_agent in held)) / len(everyone)
    parts = {"agent_mean": mean, "union": float(np.logical_or.reduce(held).mean()), "facts": facts}
    return Score(mean, parts)
