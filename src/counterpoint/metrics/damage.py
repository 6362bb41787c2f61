"""Damage curves: how far similarity and Forest Match fall when a graph is damaged on purpose.

Conventions
-----------
* Self-damage is 1 - s(G_p, G), for each part of the similarity; forest damage is FM(G) - FM(G_p).
* A point is the mean over graphs and replicates, with its standard error.
* The area under a curve is over p from 0 (no damage) to its last level, divided by that level: a mean damage.
* The same graphs, operator and seed give the same curve; each operator and level has its own random stream.

What counts
-----------
Forest damage can be small, or negative, where self-damage is large: a run larger than its references gains by
deletion, and a drop of a similarity that was low to begin with is small. So both are shown.

Source: ForestBench's perturbation test (p = .5); the curves, the closed form and the ratio are ours.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from counterpoint.errors import UsageError
from counterpoint.metrics.forestbench import match_many
from counterpoint.metrics.perturbations import OPERATORS, UNCHANGING
from counterpoint.metrics.references import WEIGHTS, ReferenceSet
from counterpoint.metrics.rolegraph import RoleGraph
from counterpoint.metrics.weighting import Floats
from counterpoint.registry import suggest
from counterpoint.score import Score

__all__ = ["LEVELS", "Curve", "Point", "damage_curve", "deletion_similarity", "effect_ratio", "self_damage"]

LEVELS = tuple(k / 10 for k in range(1, 10))
COMPONENTS = ("node", "edge", "topo", "sim")


class Point(Struct, frozen=True):
    """Mean damage at one level."""

    p: float
    damage: Mapping[str, float]
    """``node``, ``edge``, ``topo`` and ``sim`` (self-damage); ``forest`` where references were given."""
    error: Mapping[str, float]
    """Standard errors of the means."""


class Curve(Struct, frozen=True):
    """Damage by one operator over its levels."""

    operator: str
    points: tuple[Point, ...]
    area: Mapping[str, float]
    """Mean damage over the levels, by component."""
    spearman: Mapping[str, float | None]
    """Rank correlation of level and damage, by component; None where the damage does not vary."""
    graphs: int
    replicates: int


def deletion_similarity(n: int, kept: int) -> tuple[float, float, float]:
    """Expected s_node, s_edge (multiset) and s_topo (nodes) of a graph with itself after node deletion.

    s_node = s_topo = m / n exactly; E[s_edge] = m (m - 1) / (n (n - 1)), for an edge stays iff both ends do.

    Parameters
    ----------
    n, kept: nodes before and after, 1 <= kept <= n.

    >>> [round(part, 6) for part in deletion_similarity(10, 5)]
    [0.5, 0.222222, 0.5]
    """
    if not 1 <= kept <= n:
        raise UsageError(f"nodes kept lie between 1 and {n}, found {kept}")
    share = kept / n
    return share, share * (kept - 1) / (n - 1) if n > 1 else 1.0, share


def self_damage(
    graph: RoleGraph,
    operator: str,
    p: float,
    *,
    replicates: int = 100,
    seed: int = 0,
    profile: str = "strict",
    edges: str | None = None,
    topo: str | None = None,
) -> Floats:
    """1 - s_node, s_edge, s_topo and sim of a graph with damaged copies of itself, (replicates, 4)."""
    copies = _copies(graph, operator, p, replicates, seed)
    parts = ReferenceSet([graph]).components(copies, profile=profile, edges=edges, topo=topo)
    return 1 - _with_similarity(parts)


def damage_curve(
    graphs: Sequence[RoleGraph],
    operator: str,
    references: Sequence[ReferenceSet] | None = None,
    *,
    levels: Sequence[float] = LEVELS,
    replicates: int = 100,
    seed: int = 0,
    profile: str = "strict",
    leave_out: str | None = "generator",
) -> Curve:
    """The damage that an operator does to graphs, at every level.

    Parameters
    ----------
    graphs: undamaged runs.
    operator: a name in `counterpoint.metrics.perturbations.OPERATORS` or ``UNCHANGING``.
    references: one set a graph; with them the drop of Forest Match is given too, over the graphs whose match
        is defined.
    levels: shares that are hit, in (0, 1].
    profile, leave_out: as in `forest_match`.

    Raises UsageError for an unknown operator, no graphs, or a level outside (0, 1].
    """
    if not graphs:
        raise UsageError("a damage curve needs at least one graph")
    if bad := [p for p in levels if not 0 < p <= 1]:
        raise UsageError(f"levels of damage lie in (0, 1], found {bad[0]}")
    points = []
    for p in levels:
        own: list[Floats] = []
        drops: list[float] = []
        for index, graph in enumerate(graphs):
            copies = _copies(graph, operator, p, replicates, seed + index)
            own.append(1 - _with_similarity(ReferenceSet([graph]).components(copies, profile=profile)))
            if references is not None:
                before, *after = match_many(
                    [graph, *copies], references[index], profile=profile, leave_out=leave_out
                )
                if before.value is not None:
                    drops += [before.value - score.value for score in after if score.value is not None]
        columns = dict(zip(COMPONENTS, np.concatenate(own).T, strict=True))
        if drops:
            columns["forest"] = np.array(drops)
        points.append(
            Point(
                p,
                {name: float(values.mean()) for name, values in columns.items()},
                {name: _error(values) for name, values in columns.items()},
            )
        )
    names = [name for name in (*COMPONENTS, "forest") if all(name in point.damage for point in points)]
    return Curve(
        operator,
        tuple(points),
        {name: _area(points, name) for name in names},
        {name: _spearman(points, name) for name in names},
        len(graphs),
        replicates,
    )


def effect_ratio(curve: Curve, means: Sequence[float], *, p: float = 0.5) -> Score:
    """Forest damage at p against the spread of frameworks: ΔFM(p) / SD of their mean Forest Match (ours).

    Returns
    -------
    Score: below 1, differences between frameworks are larger than the damage; parts ``sd``, ``drop``.
    Undefined below two frameworks, without spread, or where the curve has no forest damage at p.
    """
    drop = next((point.damage.get("forest") for point in curve.points if point.p == p), None)
    if drop is None:
        return Score.undefined(
            f"the curve has no forest damage at p = {p}: give references, and a level there"
        )
    if len(means) < 2:
        return Score.undefined("the spread between frameworks needs at least two of them")
    spread = float(np.std(means, ddof=1))
    if not spread:
        return Score.undefined(
            "the frameworks have the same Forest Match: there is no spread to compare with"
        )
    return Score(drop / spread, {"sd": spread, "drop": drop})


def _copies(graph: RoleGraph, operator: str, p: float, replicates: int, seed: int) -> list[RoleGraph]:
    known = {**OPERATORS, **UNCHANGING}
    if operator not in known:
        raise UsageError(
            f"operator {operator!r} is not known{suggest(operator, known)}; there are {', '.join(known)}"
        )
    rng = np.random.default_rng([seed, zlib.crc32(operator.encode()), round(p * 1e6)])
    return [known[operator](graph, p, rng) for _ in range(replicates)]


def _with_similarity(parts: tuple[Floats, Floats, Floats]) -> Floats:
    """Parts against one reference, and their weighted sum, (graphs, 4)."""
    columns = np.concatenate(parts, axis=1)
    return np.column_stack([columns, columns @ np.array(WEIGHTS)])


def _error(values: Floats) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _area(points: Sequence[Point], name: str) -> float:
    p = np.array([0.0, *(point.p for point in points)])
    damage = np.array([0.0, *(point.damage[name] for point in points)])
    return float((np.diff(p) * (damage[1:] + damage[:-1]) / 2).sum() / p[-1])


def _spearman(points: Sequence[Point], name: str) -> float | None:
    from scipy.stats import spearmanr

    damage = [point.damage[name] for point in points]
    if len(set(damage)) < 2:
        return None
    return float(spearmanr([point.p for point in points], damage).statistic)
