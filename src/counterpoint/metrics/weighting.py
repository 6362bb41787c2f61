"""How references are weighted, and how far a weighted mean of similarities can move with the weights.

Conventions
-----------
* One entry a reference. ``correct`` is the gate: a reference that is not verified has weight 0.
* Only ratios of weights matter: a mean is unchanged when all weights are multiplied by one number.
* Tokens None or 0 are unknown: that reference gets the mean of the known κ; all unknown: κ = 1.

Differences from the paper
--------------------------
The paper says that q "combines verified correctness, structural parsimony, token cost" and gives no formula:
``default`` is ours. So is the exact interval, which says how much that choice can matter.

Source: ForestBench, equations 5 and 6 (aggregation); the quality families and the interval are ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterpoint.errors import UsageError
from counterpoint.registry import suggest
from counterpoint.score import Score

__all__ = [
    "FAMILIES",
    "RHO",
    "Floats",
    "Quality",
    "aggregate",
    "family_weights",
    "intervals",
    "match_interval",
    "quality_weights",
    "weighted_means",
]

Floats = NDArray[np.float64]
Quality = str | Sequence[float] | Floats
"""The name of a family in `FAMILIES`, or one weight a reference."""

RHO = 2.0
"""The largest ratio of two verified references' weights under ``default``; that of the interval too."""

FAMILIES: dict[str, Callable[[Floats, Floats], Floats]] = {
    "default": lambda parsimony, cost: 0.5 + 0.3 * parsimony + 0.2 * cost,
    "uniform": lambda parsimony, cost: np.ones_like(parsimony),
    "tokens": lambda parsimony, cost: cost,
    "size": lambda parsimony, cost: parsimony,
    "product": lambda parsimony, cost: parsimony * cost,
    "softmax": lambda parsimony, cost: np.exp((parsimony + cost) / 2),
}
"""Name to f(π, κ); q_k = c_k · f(π_k, κ_k). ``tokens`` is 1/tokens and ``size`` is 1/size up to a factor."""


def quality_weights(
    sizes: Sequence[float], tokens: Sequence[float | None], correct: Sequence[bool | float]
) -> Floats:
    """Quality q_k of each reference (weights of equation 6; the formula is ours).

    q_k = c_k (0.5 + 0.3 π_k + 0.2 κ_k), π_k = min_j size_j / size_k, κ_k = min_j tokens_j / tokens_k, minima
    over verified references.

    Parameters
    ----------
    sizes: (K,) nodes plus edges.
    tokens: (K,) tokens of the run; None where unknown.
    correct: (K,) bool, or partial credit in [0, 1].

    Returns
    -------
    (K,) array in [0, 1]; all 0 where no reference is verified.

    >>> quality_weights([10, 20, 40], [1000, 1000, 4000], [True, True, True]).tolist()
    [1.0, 0.85, 0.625]
    """
    return family_weights("default", sizes, tokens, correct)


def family_weights(
    quality: Quality,
    sizes: Sequence[float],
    tokens: Sequence[float | None],
    correct: Sequence[bool | float] | Floats,
) -> Floats:
    """q_k = c_k · f(π_k, κ_k) for a family of `FAMILIES`, or c_k times the numbers given.

    Raises UsageError for an unknown family, or numbers that are negative, infinite or not one a reference.
    """
    credit = np.asarray(correct, dtype=np.float64)
    if not len(sizes) == len(tokens) == len(credit):
        raise UsageError(
            f"one entry a reference is needed: {len(sizes)} sizes, {len(tokens)} tokens, "
            f"{len(credit)} correct"
        )
    if not isinstance(quality, str):
        given = np.asarray(quality, dtype=np.float64)
        if given.shape != credit.shape or not np.isfinite(given).all() or (given < 0).any():
            raise UsageError(
                f"quality is one finite number >= 0 a reference: {len(credit)} are needed, found {quality!r}"
            )
        scaled: Floats = credit * given
        return scaled
    if quality not in FAMILIES:
        raise UsageError(
            f"quality {quality!r} is no family{suggest(quality, FAMILIES)}; there are {', '.join(FAMILIES)}"
        )
    verified = credit > 0
    if not verified.any():
        return np.zeros_like(credit)
    size = np.maximum(np.asarray(sizes, dtype=np.float64), 1)
    parsimony = size[verified].min() / size
    family = FAMILIES[quality]
    weighted: Floats = credit * family(np.minimum(parsimony, 1), _cost(tokens, verified))
    return weighted


def _cost(tokens: Sequence[float | None], verified: NDArray[np.bool_]) -> Floats:
    """κ of each reference."""
    spent = np.array([amount or np.nan for amount in tokens], dtype=np.float64)
    known = ~np.isnan(spent)
    if not (known & verified).any():
        return np.ones_like(spent)
    cost: Floats = np.minimum(spent[known & verified].min() / spent, 1)
    cost[~known] = cost[known & verified].mean()
    return cost


def aggregate(similarities: ArrayLike, weights: ArrayLike) -> Score:
    """Forest Match from similarities (equations 5 and 6): Σ q_k sim_k / Σ q_k.

    Parameters
    ----------
    similarities: (K,) in [0, 1].
    weights: (K,) >= 0; those of references that are not verified are 0.

    Returns
    -------
    Score in [0, 1], higher is closer; parts ``best`` (largest similarity with a weight above 0) and
    ``references``. Undefined where no weight is above 0.

    >>> round(aggregate([.8, .5, .2], [1, .85, .625]).value, 6)
    0.545455
    """
    sims = np.asarray(similarities, dtype=np.float64)
    q = np.asarray(weights, dtype=np.float64)
    if sims.shape != q.shape or sims.ndim != 1:
        raise UsageError(f"one weight a similarity is needed, found shapes {sims.shape} and {q.shape}")
    if not np.isfinite(q).all() or (q < 0).any():
        raise UsageError("weights are finite numbers >= 0")
    used = q > 0
    if not used.any():
        return Score.undefined("no verified reference: every weight is 0")
    sims = sims[used]
    return Score(
        float(weighted_means(sims[None], q[used])[0]),
        {"best": float(sims.max()), "references": len(sims)},
    )


def weighted_means(similarities: Floats, weights: Floats) -> Floats:
    """Weighted mean of each row of an (n, K) array; weights are above 0."""
    share = weights / weights.max()  # first: tiny weights must not underflow in the sum
    means = similarities @ share / share.sum()
    # rounding must not carry a mean past the values that it is a mean of
    bounded: Floats = np.clip(means, similarities.min(axis=1), similarities.max(axis=1))
    return bounded


def match_interval(similarities: ArrayLike, rho: float = RHO) -> tuple[float, float]:
    """The exact range of Forest Match over all weightings with ratio of largest to smallest weight <= ρ.

    The extreme gives weight ρ to the k largest (smallest) similarities and 1 to the others, for some k. Works
    for any real numbers: applied to the differences of two candidates it says whether their order can depend
    on the weights.

    >>> [round(bound, 6) for bound in match_interval([.8, .5, .2])]
    [0.425, 0.575]
    """
    values = np.asarray(similarities, dtype=np.float64).reshape(1, -1)
    if not values.size:
        raise UsageError("an interval needs at least one similarity")
    if not (math.isfinite(rho) and rho >= 1):
        raise UsageError(f"rho is the largest ratio of two weights, a number >= 1, found {rho}")
    low, high = intervals(values, rho)
    return float(low[0]), float(high[0])


def intervals(similarities: Floats, rho: float = RHO) -> tuple[Floats, Floats]:
    """`match_interval` of every row of an (n, K) array: the lower and the upper bounds, (n,) each."""
    return -_highest(-similarities, rho), _highest(similarities, rho)


def _highest(values: Floats, rho: float) -> Floats:
    """Largest weighted mean of each row: weight ρ on its k largest values, 1 on the others, over all k."""
    descending = -np.sort(-values, axis=1)
    count = values.shape[1]
    k = np.arange(1, count + 1)
    top = np.cumsum(descending, axis=1)
    means = (top[:, -1:] + (rho - 1) * top) / (count + (rho - 1) * k)
    highest: Floats = means.max(axis=1)
    return highest
