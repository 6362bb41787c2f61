"""How many different claims a team makes, and what share of them goes beyond the source [1]_.

Conventions
-----------
* ``owners`` names the agent of each claim, (n,); ``match`` is the correspondence m in [0, 1], (n, n) and
  symmetric. Entries between claims of one owner, the diagonal included, are ignored but by
  `deduplicate_claims`.
* Claims are those of one position (a round, say). ``R(x, y)`` holds iff m >= threshold and the owners differ.

What counts
-----------
A cluster holds claims that correspond *pairwise* and never two of one agent, so that claims do not drift
together over a chain of near matches. The price: an agent that repeats itself counts anew each time, which is
what `deduplicate_claims` is for.

Differences from the paper
--------------------------
The order and the choice of a cluster are the paper's; where they tie, this decides: the mean of m, the
agent's name, the claim's index; for clusters the higher mean and the older. Means are compared at 12
decimals, so that the order of the input changes nothing.

.. [1] RIVER, appendix B.2.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterpoint.errors import UsageError
from counterpoint.score import Score

__all__ = [
    "THRESHOLD",
    "cluster_claims",
    "deduplicate_claims",
    "extension_rate",
    "owner_indices",
    "read_match",
    "unique_claims",
]

THRESHOLD = 0.75
"""A relation between claims holds from this score on."""

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def cluster_claims(
    owners: Sequence[Hashable], match: ArrayLike, *, threshold: float = THRESHOLD
) -> list[list[int]]:
    """Clusters of corresponding claims of one position and kind (appendix B.2).

    Claims come in the order of how many others they correspond to, descending. Each joins a cluster that
    holds no claim of its owner and *all* of whose members it corresponds to: the largest, then that of the
    highest minimum, then mean of m. Where there is none it begins one. Clusters are never merged.

    Parameters
    ----------
    owners, match: as in the module's conventions.
    threshold: m at which two claims correspond, inclusive.

    Returns
    -------
    Claim indices, ascending within a cluster; clusters by their first index.

    Raises
    ------
    UsageError for a match of another shape, outside [0, 1] or not symmetric.

    >>> match = [[1, 0.8, 0.3], [0.8, 1, 0.9], [0.3, 0.9, 1]]  # a chain: no transitivity
    >>> cluster_claims(["A", "B", "C"], match)
    [[0], [1, 2]]
    """
    labels = owner_indices(owners)
    m = read_match(len(labels), match)
    related = (m >= threshold) & (labels[:, None] != labels[None, :])
    place = np.full(len(labels), -1, dtype=np.int64)
    sizes: list[int] = []
    for claim in _order(labels, m, related):
        neighbors = np.flatnonzero(related[claim] & (place >= 0))
        chosen = _eligible(neighbors, place, sizes, m[claim])
        if chosen < 0:
            chosen = len(sizes)
            sizes.append(0)
        place[claim] = chosen
        sizes[chosen] += 1
    clusters: dict[int, list[int]] = {}
    for claim, cluster in enumerate(place.tolist()):
        clusters.setdefault(cluster, []).append(claim)
    return list(clusters.values())


def _order(labels: NDArray[np.int64], m: Floats, related: Flags) -> list[int]:
    """Claims by number of related ones, then by mean m of these, both descending; then by agent and index."""
    degree = related.sum(axis=1)
    total = np.einsum("ij,ij->i", m, related)
    mean = np.round(total / np.maximum(degree, 1), 12)
    order: list[int] = np.lexsort((np.arange(len(labels)), labels, -mean, -degree)).tolist()
    return order


def _eligible(neighbors: NDArray[np.int64], place: NDArray[np.int64], sizes: list[int], row: Floats) -> int:
    """The best cluster all of whose members are neighbors; -1 where there is none."""
    best, chosen = (0, 0.0, 0.0, 0), -1
    if not len(neighbors):
        return chosen
    homes = place[neighbors]
    counts = np.bincount(homes)
    for cluster in np.flatnonzero(counts).tolist():
        if counts[cluster] != sizes[cluster] or sizes[cluster] < best[0]:
            continue
        scores = row[neighbors[homes == cluster]]
        rank = (sizes[cluster], float(scores.min()), round(float(scores.mean()), 12), -cluster)
        if rank > best:
            best, chosen = rank, cluster
    return chosen


def deduplicate_claims(
    owners: Sequence[Hashable], match: ArrayLike, *, threshold: float = THRESHOLD
) -> list[int]:
    """Indices of the claims that are left when an agent's repetitions of its own claims are dropped; ours.

    A claim goes iff it corresponds to an earlier claim of its owner that stays.

    >>> deduplicate_claims(["A", "A", "B"], [[1, 0.9, 0.9], [0.9, 1, 0.9], [0.9, 0.9, 1]])
    [0, 2]
    """
    labels = owner_indices(owners)
    m = read_match(len(labels), match)
    kept: list[int] = []
    by_owner: dict[int, list[int]] = {}
    for claim, owner in enumerate(labels.tolist()):
        own = by_owner.setdefault(owner, [])
        if not own or float(m[claim, own].max()) < threshold:
            own.append(claim)
            kept.append(claim)
    return kept


def unique_claims(
    owners: Sequence[Hashable],
    match: ArrayLike,
    is_extension: Sequence[bool] | Flags,
    *,
    threshold: float = THRESHOLD,
) -> Score:
    """Claim count: ``CC = clusters of source-supported claims + clusters of extensions``.

    Parameters
    ----------
    owners, match: as in the module's conventions.
    is_extension: whether each claim goes beyond the source, (n,).

    Returns
    -------
    Score >= 0, neither end better; 0 for no claims. Parts ``source``, ``extension`` (clusters of each kind)
    and ``claims``.

    >>> unique_claims(["A", "B"], [[1, 0.9], [0.9, 1]], [False, True]).value  # kinds never share a cluster
    2.0
    """
    m = read_match(len(owners), match)
    kinds = np.asarray(is_extension, dtype=bool)
    if kinds.shape != (len(owners),):
        raise UsageError(f"is_extension has shape {kinds.shape}; it has to be ({len(owners)},), one a claim")
    counts = []
    for kind in (False, True):
        of_kind = np.flatnonzero(kinds == kind)
        labels = [owners[index] for index in of_kind.tolist()]
        counts.append(len(cluster_claims(labels, m[np.ix_(of_kind, of_kind)], threshold=threshold)))
    parts = {"source": counts[0], "extension": counts[1], "claims": len(owners)}
    return Score(sum(counts), parts)


def extension_rate(n_source_clusters: int, n_extension_clusters: int) -> Score:
    """Extension rate: ``ER = extension clusters / all clusters``.

    Returns
    -------
    Score in [0, 1], neither end better; undefined without clusters. Parts ``source``, ``extension``.

    >>> extension_rate(2, 3).value
    0.6
    """
    if n_source_clusters < 0 or n_extension_clusters < 0:
        raise UsageError("a number of clusters is not negative")
    parts = {"source": n_source_clusters, "extension": n_extension_clusters}
    total = n_source_clusters + n_extension_clusters
    if not total:
        return Score.undefined("nobody makes a claim", parts=parts)
    return Score(n_extension_clusters / total, parts)


def owner_indices(owners: Sequence[Hashable]) -> NDArray[np.int64]:
    """The owner of each claim as the rank of its name, so that the order of the input does not matter."""
    names = set(owners)
    try:
        ranked = sorted(names)  # type: ignore[type-var]  # where names have no order, their text decides
    except TypeError:
        ranked = sorted(names, key=lambda name: (type(name).__name__, str(name)))
    rank = {name: number for number, name in enumerate(ranked)}
    return np.array([rank[name] for name in owners], dtype=np.int64)


def read_match(n: int, match: ArrayLike) -> Floats:
    """A correspondence as an (n, n) array; a UsageError says what is wrong with it."""
    m = np.asarray(match, dtype=np.float64)
    if m.size == 0 and n == 0:
        return np.zeros((0, 0))
    if m.shape != (n, n):
        raise UsageError(f"match has shape {m.shape}; it has to be ({n}, {n}), a row and a column a claim")
    if not (m.min() >= 0 and m.max() <= 1):
        raise UsageError("match holds numbers outside [0, 1], or NaN: correspondence is a share")
    if not np.array_equal(m, m.T) and not np.allclose(m, m.T, rtol=0, atol=1e-9):
        raise UsageError("match is not symmetric: m(x, y) is the lower of p(x -> y) and p(y -> x)")
    return m
