"""How long what is new lasts: survival rate, survival length, and what becomes of a claim [1]_.

Conventions
-----------
* Only extensions, claims that go beyond the source, are followed. ``p(x -> y)`` says how far y still carries
  what x says, directed, in [0, 1]; it holds from a threshold on.
* A unit is one case and cycle, with positions 1..D: its stages, and the private summary if there is one. A
  link joins two instances that correspond at one position, or the earlier of which survives at the next.

What counts
-----------
* Survival rate is micro: all extensions of the group, whatever agent they are of.
* A lineage is what links join. Its length is the number of *different* positions it covers.

Differences from the paper
--------------------------
The paper does not give its normalization of survival length; ours is by D. ``opportunity`` does not punish a
claim for being born late. The method ``greedy`` never merges two lineages: set beside ``components``, it
shows how much of a length comes from merging. The fate ``weakened`` is ours.

.. [1] RIVER, retention: survival rate and survival length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from counterpoint.errors import UsageError
from counterpoint.metrics.clusters import THRESHOLD
from counterpoint.registry import suggest
from counterpoint.score import Score

__all__ = ["Fate", "fates", "lineages", "survival_length", "survival_rate", "weakened_rate"]

Fate = Literal["preserved", "weakened", "lost"]
Link = tuple[int, int]

METHODS = ("components", "greedy")


def survival_rate(groups: Sequence[Sequence[bool]]) -> Score:
    """Survival rate of one transition: extensions that a successor still carries / extensions.

    ``SR = sum_u #{x in Ext(u): max_y p(x -> y) >= threshold} / sum_u #Ext(u)``, y of u's successor.

    Parameters
    ----------
    groups: for each unit (an agent, or a sheet) one boolean an extension: did it survive?

    Returns
    -------
    Score in [0, 1], higher keeps more; undefined without extensions. Parts ``survived``, ``extensions`` and
    ``agent_mean``, the mean over units that have extensions.

    >>> score = survival_rate([[True, False], [], [True]])
    >>> score.value, score.parts["agent_mean"]
    (0.666667, 0.75)
    """
    for value in (value for group in groups for value in group):
        if not isinstance(value, bool | np.bool_) and value not in (0, 1):
            raise UsageError(f"whether an extension survived is True or False, found {value!r}")
    survived = sum(sum(map(bool, group)) for group in groups)
    total = sum(map(len, groups))
    parts: dict[str, int | float] = {"survived": survived, "extensions": total}
    if not total:
        return Score.undefined("no claim goes beyond the source: there is nothing to survive", parts=parts)
    shares = [sum(map(bool, group)) / len(group) for group in groups if len(group)]
    return Score(survived / total, {**parts, "agent_mean": sum(shares) / len(shares)})


def survival_length(
    instances: Sequence[int],
    links: Sequence[Link],
    positions: int,
    *,
    method: str = "components",
    scores: Sequence[float] | None = None,
) -> Score:
    """Survival length of one unit: the share of positions that a lineage of extensions covers.

    ``P(d) = #{L: d(L) >= d} / #L``, ``mean = sum_{d=1}^{D} P(d)``, ``SL = mean / D``.

    Parameters
    ----------
    instances: the position of each extension claim, 1..D.
    links: pairs of instances that correspond (same position) or survive (from one position to the next).
    positions: D.
    method: ``components`` joins all that is linked. ``greedy``: the claims of one position that are linked
        inherit the lineage of *one* earlier group: that of most links, then highest sum of scores, then
        oldest.
    scores: p of each link, for ``greedy``; None: all equal.

    Returns
    -------
    Score in [0, 1], higher lasts longer; undefined without instances. Parts ``mean`` (in positions),
    ``normalized``, ``opportunity`` (the mean of d / (D - birth + 1)), ``lineages`` and ``P1`` to ``PD``.

    Raises
    ------
    UsageError for a position outside 1..D, a link to an instance that is not there or past the next position,
    or an unknown method.

    >>> links = [(0, 1), (0, 2), (3, 4)]  # x, y at 1 and x' at 2; z at 2 and z' at 3; w at 3
    >>> score = survival_length([1, 1, 2, 2, 3, 3], links, 3)
    >>> score.value, score.parts["mean"], score.parts["opportunity"]
    (0.555556, 1.666667, 0.888889)
    """
    found = lineages(instances, links, positions, method=method, scores=scores)
    return length_of([[instances[index] for index in lineage] for lineage in found], positions)


def length_of(lineages: Sequence[Sequence[int]], positions: int) -> Score:
    """Survival length of lineages given by the positions of their claims, pooled over units."""
    if not lineages:
        return Score.undefined("no claim goes beyond the source: there is no lineage to follow")
    covered = [sorted(set(lineage)) for lineage in lineages]
    lengths = np.array([len(lineage) for lineage in covered])
    births = np.array([lineage[0] for lineage in covered])
    tail = {f"P{d}": float((lengths >= d).mean()) for d in range(1, positions + 1)}
    mean = float(lengths.mean())
    parts: Mapping[str, int | float] = {
        "mean": mean,
        "normalized": mean / positions,
        "opportunity": float((lengths / (positions - births + 1)).mean()),
        "lineages": len(covered),
        **tail,
    }
    return Score(mean / positions, parts)


def lineages(
    instances: Sequence[int],
    links: Sequence[Link],
    positions: int,
    *,
    method: str = "components",
    scores: Sequence[float] | None = None,
) -> list[list[int]]:
    """The lineages themselves, as ascending instance indices, by their first one; see `survival_length`."""
    _check(instances, links, positions, method)
    if scores is not None and len(scores) != len(links):
        raise UsageError(f"{len(scores)} scores for {len(links)} links: give one a link")
    if method == "components":
        label = _components(len(instances), links)
    else:
        weights = [1.0] * len(links) if scores is None else [float(score) for score in scores]
        label = _inherited(instances, links, weights)
    groups: dict[int, list[int]] = {}
    for index, lineage in enumerate(label):
        groups.setdefault(lineage, []).append(index)
    return list(groups.values())


def _check(instances: Sequence[int], links: Sequence[Link], positions: int, method: str) -> None:
    if method not in METHODS:
        raise UsageError(f"method {method!r}{suggest(method, METHODS)} is none of {', '.join(METHODS)}")
    wrong = next((position for position in instances if not 1 <= position <= positions), None)
    if positions < 1 or wrong is not None:
        raise UsageError(f"positions are 1 to {positions}, found {wrong}")
    for link in links:
        if not all(0 <= end < len(instances) for end in link):
            raise UsageError(f"link {tuple(link)} names an instance that is not among the {len(instances)}")
        first, second = sorted(instances[end] for end in link)
        if second - first > 1:
            raise UsageError(
                f"link {tuple(link)} goes from position {first} to {second}: "
                "a claim survives from one position to the next only"
            )


def _components(n: int, links: Sequence[Link]) -> list[int]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = np.asarray(links, dtype=np.int64).reshape(-1, 2)
    joined = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    label: list[int] = connected_components(joined, directed=False)[1].tolist()
    return label


def _inherited(instances: Sequence[int], links: Sequence[Link], weights: Sequence[float]) -> list[int]:
    """Lineage of each instance where every group of a position has one parent group at most."""
    group = _components(
        len(instances), [link for link in links if len({instances[end] for end in link}) == 1]
    )
    votes: dict[int, Counter[int]] = {}
    strength: Counter[Link] = Counter()
    for (first, second), weight in zip(links, weights, strict=True):
        if instances[first] == instances[second]:
            continue
        source, target = sorted((first, second), key=lambda index: instances[index])
        votes.setdefault(group[target], Counter())[group[source]] += 1
        strength[group[source], group[target]] += weight  # type: ignore[assignment]  # sums of floats
    position: dict[int, int] = {}
    first_of: dict[int, int] = {}
    for index, name in enumerate(group):
        position[name] = instances[index]
        first_of.setdefault(name, index)
    lineage: dict[int, int] = {}
    birth: dict[int, int] = {}
    for name in sorted(position, key=lambda name: (position[name], first_of[name])):
        parents = votes.get(name)
        if not parents:
            lineage[name], birth[name] = name, position[name]
            continue
        parent = min(
            parents,
            key=lambda at: (-parents[at], -round(strength[at, name], 12), birth[at], first_of[at]),
        )
        lineage[name], birth[name] = lineage[parent], birth[parent]
    return [lineage[name] for name in group]


def fates(forward: ArrayLike, backward: ArrayLike, *, threshold: float = THRESHOLD) -> list[Fate]:
    """What becomes of each claim at its successor; ours.

    ``preserved``: some y carries all of it, p(x -> y) >= threshold. ``weakened``: none does, but some y says
    a part of it and nothing else, p(y -> x) >= threshold. ``lost``: neither.

    Parameters
    ----------
    forward, backward: p(x -> y) and p(y -> x), both (claims x, the successor's claims y).

    >>> fates([[0.9], [0.2], [0.1]], [[0.9], [0.8], [0.3]])
    ['preserved', 'weakened', 'lost']
    """
    ahead, back = np.asarray(forward, dtype=np.float64), np.asarray(backward, dtype=np.float64)
    if ahead.ndim != 2 or ahead.shape != back.shape:
        raise UsageError(f"forward has shape {ahead.shape} and backward {back.shape}: both are (x, y)")
    kept = np.any(ahead >= threshold, axis=1).tolist()
    partly = np.any(back >= threshold, axis=1).tolist()
    return ["preserved" if k else "weakened" if p else "lost" for k, p in zip(kept, partly, strict=True)]


def weakened_rate(ends: Sequence[Fate]) -> Score:
    """The share of claims that live on in a weaker form only; ours.

    ``WR = weakened / (preserved + weakened + lost)``

    Parameters
    ----------
    ends: what became of each claim, as `fates` tells.

    Returns
    -------
    Score in [0, 1], lower is better; undefined without claims. Parts ``preserved``, ``weakened``, ``lost``.

    >>> weakened_rate(["preserved", "weakened", "lost", "lost"]).value
    0.25
    """
    counts = Counter(ends)
    parts = {fate: counts[fate] for fate in ("preserved", "weakened", "lost")}
    if not ends:
        return Score.undefined("no claim goes beyond the source: there is nothing to weaken", parts=parts)
    return Score(parts["weakened"] / len(ends), parts)
