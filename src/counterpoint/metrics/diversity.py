"""Information Diversity Score: how little connected nodes repeat each other; the first half of `gemmas`.

Conventions, what counts, and the differences from the paper: see `gemmas`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterpoint.contracts import Embedder
from counterpoint.errors import GraphError, UsageError
from counterpoint.graph import index_edges
from counterpoint.metrics.similarity import Floats, Indices, embedded_cosines, same_texts, tfidf_cosines
from counterpoint.score import Score

__all__ = ["diversity_curve", "information_diversity"]

LAMS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

DENSE_NODES = 256
"""Up to so many nodes, pairs are found in a dense matrix."""


def information_diversity(
    texts: Sequence[str | None],
    spatial: object,
    temporal: object,
    *,
    embed: Embedder | None,
    lam: float = 0.5,
    tokenizer: str = "words",
) -> Score:
    """Information Diversity Score, eq. 1-2: how little connected nodes repeat each other.

    ``IDS = sum_{i<j} w_ij (1 - SS_ij) / sum_{i<j} w_ij``, where ``w_ij = max(S_ij, S_ji) + max(T_ij, T_ji)``
    and ``SS_ij = lam * cos_tfidf + (1 - lam) * cos_embedding``. So ``IDS = lam * D_syn + (1 - lam) * D_sem``
    with the weighted means of ``1 - cos`` of either kind.

    Parameters
    ----------
    texts: one text a node, (n,); None or white space where it is missing.
    spatial, temporal: S and T; see the module's conventions. Diagonals of arrays are ignored.
    embed: texts to (n, d) vectors; called once, with the texts of the pairs.
    lam: share of the syntactic half, in [0, 1].
    tokenizer: ``words`` (digits, letters and operators count) or ``sklearn``; see `similarity`.

    Returns
    -------
    Score in [0, 1], higher is more diverse. Parts: ``syntactic`` and ``semantic`` (D_syn, D_sem), ``pairs``
    (with weight > 0 and both texts), ``weight`` (their sum), ``clipped`` (pairs with a semantic cosine below
    0), ``missing`` (texts), and ``invalid`` if any vector was zero or not finite. Undefined without such a
    pair, or without an embedder.

    Raises
    ------
    UsageError for a bad ``lam`` or ``tokenizer``, GraphError for a bad S or T, ModelError for bad vectors.

    >>> import numpy as np
    >>> def embed(texts):
    ...     return np.array([[1.0, 0.0], [0.8, 0.6]])
    >>> score = information_diversity(["alpha beta", "alpha gamma"], (2, [(0, 1)]), (2, []), embed=embed)
    >>> score.value, score.parts["syntactic"], score.parts["semantic"]
    (0.431952, 0.663903, 0.2)
    """
    lam = _fraction_of(lam)
    there = [text is not None and bool(text.strip()) for text in texts]
    said = [text for text in texts if text is not None and text.strip()]
    first, second, weight = _pairs(len(there), spatial, temporal)
    if len(said) < len(there):
        first, second, weight = _without_missing(np.array(there), first, second, weight)
    total = float(weight.sum())
    counts: dict[str, int | float] = {
        "pairs": len(first),
        "weight": int(total),
        "missing": len(there) - len(said),
    }
    if not total:
        return Score.undefined(_why_no_pair(there), parts=counts)
    same = same_texts(said, first, second)
    cosines = tfidf_cosines(said, first, second, tokenizer)
    syntactic = _distance(cosines, same, weight, total)
    if embed is None:
        return Score.undefined("no embedder was given", parts={"syntactic": syntactic, **counts})
    cosines, invalid = embedded_cosines(embed, said, first, second)
    semantic = _distance(np.maximum(cosines, 0.0), same, weight, total)
    clipped = int(np.count_nonzero(cosines < -1e-9))
    parts = {"syntactic": syntactic, "semantic": semantic, **counts, "clipped": clipped}
    if invalid:
        parts["invalid"] = invalid
    return Score(lam * syntactic + (1.0 - lam) * semantic, parts)


def _distance(cosines: Floats, same: Indices, weight: Floats, total: float) -> float:
    """Weighted mean of ``1 - cos``; pairs of the ``same`` text have cosine 1."""
    if len(same):
        cosines[same] = 1.0
    return min(max(0.0, (total - float(weight @ cosines)) / total), 1.0)


def _without_missing(
    there: NDArray[np.bool_], first: Indices, second: Indices, weight: Floats
) -> tuple[Indices, Indices, Floats]:
    """The pairs with both texts, as indices among the texts that are there."""
    both = there[first] & there[second]
    position = there.cumsum() - 1
    return position[first[both]], position[second[both]], weight[both]


def diversity_curve(score: Score, lams: ArrayLike = LAMS) -> Floats:
    """IDS at every ``lam``, from one score: the straight line between D_sem (at 0) and D_syn (at 1).

    Parameters
    ----------
    score: what `information_diversity` gave, at whatever ``lam``.
    lams: shares of the syntactic half, (k,), each in [0, 1].

    Returns
    -------
    IDS, (k,).

    Raises
    ------
    UsageError if the score is undefined or a share is outside [0, 1].

    >>> diversity_curve(Score(0.4, {"syntactic": 0.6, "semantic": 0.2}), [0, 0.5, 1]).tolist()
    [0.2, 0.4, 0.6]
    """
    if score.value is None:
        raise UsageError(f"an undefined score has no curve: {score.reason}")
    shares = np.array([_fraction_of(lam) for lam in np.atleast_1d(lams).tolist()])
    return shares * score.parts["syntactic"] + (1.0 - shares) * score.parts["semantic"]


def _fraction_of(lam: Any) -> float:
    try:
        share = float(lam)
    except (TypeError, ValueError):
        share = math.nan
    if not 0 <= share <= 1:
        raise UsageError(f"lam {lam!r} is no number in [0, 1]")
    return share


def _why_no_pair(there: list[bool]) -> str:
    if len(there) < 2:
        return "fewer than two texts: diversity is between two"
    if all(there):
        return "no two texts are connected: S and T are empty"
    missing = ", ".join([str(node) for node, is_there in enumerate(there) if not is_there][:5])
    return f"no two texts that are there are connected (missing: {missing})"


def _pairs(n: int, spatial: object, temporal: object) -> tuple[Indices, Indices, Floats]:
    """First and second node (first < second) and weight of every pair with a weight above 0."""
    if n <= DENSE_NODES:
        weights = np.add(_linked(n, spatial), _linked(n, temporal), dtype=np.float64)
        first, second = weights.nonzero()
        upper = first < second
        first, second = first[upper], second[upper]
        return first, second, weights[first, second]
    ranks = []
    for adjacency in (spatial, temporal):
        ends = np.sort(_edges(n, adjacency), axis=1)
        ranks.append(np.unique(ends[:, 0] * n + ends[:, 1]))
    rank, weight = np.unique(np.concatenate(ranks), return_counts=True)
    return rank // n, rank % n, weight.astype(np.float64)


def _linked(n: int, adjacency: object) -> NDArray[np.bool_]:
    """(n, n) True where there is an edge either way."""
    if isinstance(adjacency, np.ndarray) and adjacency.shape == (n, n):
        linked = adjacency != 0
    else:
        edges = _edges(n, adjacency)
        linked = np.zeros((n, n), dtype=bool)
        linked[edges[:, 0], edges[:, 1]] = True
    either: NDArray[np.bool_] = linked | linked.T
    return either


def _edges(n: int, adjacency: object) -> NDArray[np.int64]:
    size, edges = index_edges(adjacency)
    if size != n:
        raise GraphError(f"S and T are about the {n} texts, found a graph of {size} nodes")
    return edges
