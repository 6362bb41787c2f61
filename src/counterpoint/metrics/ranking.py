"""Systems ranked by Forest Match: who is ahead, who only within noise, and whether the weights decide it.

Conventions
-----------
* The unit is the task: runs of one system on one task are averaged first. Systems are compared on the tasks
  that all of them share.
* Two systems tie unless the sign-flip test over their shared tasks, Holm-corrected over all pairs, says
  otherwise at 5 %.
* ``low`` and ``high`` of a system are the mean of its exact bounds over all weightings with ratio <= 2; those
  of a pair bound the difference: where they do not cross 0, no such weighting changes the order.

Source: ForestBench never varies its quality weights; the panel of families and the bounds are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from counterpoint.metrics.references import ReferenceSet
from counterpoint.metrics.rolegraph import RoleGraph
from counterpoint.metrics.weighting import FAMILIES, RHO, Floats, match_interval, weighted_means
from counterpoint.score import Score
from counterpoint.stats import (
    holm,
    interval,
    kendall_tau,
    minimum_detectable_difference,
    sign_flip_test,
)

__all__ = [
    "Family",
    "Match",
    "Pair",
    "Standing",
    "dirichlet_agreement",
    "families",
    "match_runs",
    "pairs",
    "shared_means",
    "standings",
    "system_means",
]

LEVEL = 0.05
"""Holm-corrected p above which two systems tie."""


class Match(Struct, frozen=True):
    """One run's similarities to the references of its task, and those that it may be compared with."""

    system: str
    task: str
    references: ReferenceSet
    similarities: Floats
    """(K,)"""
    kept: NDArray[np.bool_]
    """(K,) not left out."""

    @property
    def used(self) -> NDArray[np.bool_]:
        """(K,) kept and verified."""
        return self.kept & (self.references.correct > 0)

    def value(self, quality: str = "default") -> float:
        """Forest Match under a family of weights; NaN where undefined."""
        q = self.references.quality(quality, self.kept)
        used = q > 0
        if not used.any():
            return float("nan")
        return float(weighted_means(self.similarities[None, used], q[used])[0])

    def bounds(self, rho: float = RHO) -> tuple[float, float]:
        """`match_interval` of the similarities in use."""
        return match_interval(self.similarities[self.used], rho)


def match_runs(
    graphs: Sequence[RoleGraph],
    references: ReferenceSet,
    *,
    leave_out: str | None = "generator",
    profile: str = "strict",
) -> list[Match]:
    """What `standings` and its kin compare, from runs of one task; runs without a defined match are left out.

    A run's system is its graph's generator.
    """
    found = []
    similarities = references.similarities(graphs, profile=profile)
    for graph, row in zip(graphs, similarities, strict=True):
        own = references.own(graph)
        kept = references.kept(graph, own, leave_out)
        match = Match(graph.generator, graph.origin.task, references, row, kept)
        if match.used.any() and not (match.used & own).any():
            found.append(match)
    return found


class Standing(Struct, frozen=True):
    """One system's Forest Match over its tasks."""

    system: str
    tasks: int
    mean: float
    low: float
    high: float
    """Mean of the exact bounds over the weights."""
    ci_low: float | None
    ci_high: float | None
    """95 % interval over tasks."""
    tied: tuple[str, ...]
    """Systems that it differs from within noise only."""


class Pair(Struct, frozen=True):
    """Two systems on the tasks that both have."""

    a: str
    b: str
    tasks: int
    difference: float
    """Mean of a less that of b."""
    low: float
    high: float
    """Bounds of the difference over the weights."""
    p: float | None
    p_holm: float | None
    detectable: float | None
    """The smallest true difference that so many tasks would show; None where they show none."""
    tie: bool
    """Within noise."""

    @property
    def settled(self) -> bool:
        """No weighting with ratio <= 2 changes the order."""
        return self.low > 0 or self.high < 0


class Family(Struct, frozen=True):
    """The ranking under one family of weights."""

    name: str
    means: Mapping[str, float]
    """System to mean Forest Match, the best first."""
    tau: float | None
    """Kendall's tau-b with the ranking by ``default``; None where undefined."""


def system_means(matches: Iterable[Match]) -> dict[str, float]:
    """System to its mean Forest Match over tasks."""
    return {
        system: _mean(_mean(match.value() for match in found) for found in tasks.values())
        for system, tasks in _by_system(matches).items()
    }


def shared_means(matches: Iterable[Match]) -> dict[str, float]:
    """System to its mean Forest Match over the tasks that all systems share; empty where there is none."""
    runs = _common(_by_system(matches))
    table = _table(runs)
    return dict(zip(runs, table.mean(axis=0).tolist(), strict=True)) if table.size else {}


def standings(matches: Iterable[Match]) -> list[Standing]:
    """Every system with its bounds, its interval over tasks, and whom it ties with; the best first."""
    runs = _by_system(matches)
    tied: dict[str, list[str]] = {system: [] for system in runs}
    for pair in pairs(match for tasks in runs.values() for found in tasks.values() for match in found):
        if pair.tie:
            tied[pair.a].append(pair.b)
            tied[pair.b].append(pair.a)
    rows = []
    for system, tasks in runs.items():
        values = [_mean(match.value() for match in found) for found in tasks.values()]
        bounds = np.array([_bounds(found) for found in tasks.values()]).mean(axis=0)
        over = interval(values)
        rows.append(
            Standing(
                system=system,
                tasks=len(tasks),
                mean=_mean(values),
                low=float(bounds[0]),
                high=float(bounds[1]),
                ci_low=over.low,
                ci_high=over.high,
                tied=tuple(sorted(tied[system])),
            )
        )
    return sorted(rows, key=lambda row: (-row.mean, row.system))


def pairs(matches: Iterable[Match]) -> list[Pair]:
    """Every two systems compared on the tasks that both have, Holm-corrected over all of them."""
    runs = _by_system(matches)
    rows: list[Pair] = []
    for a, b in combinations(runs, 2):
        shared = [task for task in runs[a] if task in runs[b]]
        differences = [
            _mean(match.value() for match in runs[a][task]) - _mean(match.value() for match in runs[b][task])
            for task in shared
        ]
        if not shared:
            continue
        bounds = np.array([_difference_bounds(runs[a][task], runs[b][task]) for task in shared]).mean(axis=0)
        p = detectable = None
        if len(shared) > 1:
            p = sign_flip_test(differences).value
            detectable = minimum_detectable_difference(float(np.std(differences, ddof=1)), len(shared))
        low, high = map(float, bounds)
        rows.append(Pair(a, b, len(shared), _mean(differences), low, high, p, None, detectable, True))
    corrected = holm([row.p for row in rows])
    return [
        row if np.isnan(p) else replace(row, p_holm=float(p), tie=bool(p > LEVEL))
        for row, p in zip(rows, corrected, strict=True)
    ]


def families(matches: Iterable[Match]) -> list[Family]:
    """The ranking under every family of weights on the tasks that all systems share, and its agreement."""
    runs = _common(_by_system(matches))
    tables = {name: _table(runs, name) for name in FAMILIES}
    rows = []
    for name, table in tables.items():
        means = dict(zip(runs, table.mean(axis=0).tolist(), strict=True)) if table.size else {}
        tau = kendall_tau(tables["default"], table).value if len(means) > 1 else None
        order = sorted(means, key=lambda system: (-means[system], system))
        rows.append(Family(name, {system: means[system] for system in order}, tau))
    return rows


def dirichlet_agreement(matches: Iterable[Match], *, draws: int = 1000, seed: int = 0) -> Score:
    """How often the order of the systems survives weights drawn from Dirichlet(1), one a verified reference.

    Returns
    -------
    Score: share of draws with the order of ``default``; parts ``tau`` (mean Kendall's tau-b) and ``draws``.
    Undefined below two systems with a task in common.
    """
    runs = _common(_by_system(matches))
    table = _table(runs)
    if len(runs) < 2 or not table.size:
        return Score.undefined("a ranking needs two systems with a task in common")
    rng = np.random.default_rng(seed)
    drawn: dict[str, Floats] = {}
    means = np.zeros((draws, len(runs)))
    for column, tasks in enumerate(runs.values()):
        for task, found in tasks.items():
            if task not in drawn:
                drawn[task] = rng.standard_exponential((draws, len(found[0].references)))
            for match in found:
                weights = drawn[task][:, match.used]
                values = weights @ match.similarities[match.used] / weights.sum(axis=1)
                means[:, column] += values / len(found) / len(tasks)
    reference = table.mean(axis=0)
    taus = [kendall_tau(reference, row).value for row in means]
    same = np.mean([np.array_equal(np.argsort(-row), np.argsort(-reference)) for row in means])
    defined = [tau for tau in taus if tau is not None]
    parts: dict[str, int | float] = {"draws": draws}
    if defined:
        parts["tau"] = _mean(defined)
    return Score(float(same), parts)


Runs = dict[str, dict[str, list[Match]]]
"""System to task to its runs."""


def _by_system(matches: Iterable[Match]) -> Runs:
    """The matches that are defined, by system and task, both sorted."""
    runs: Runs = {}
    for match in matches:
        if match.used.any():
            runs.setdefault(match.system, {}).setdefault(match.task, []).append(match)
    return {system: dict(sorted(tasks.items())) for system, tasks in sorted(runs.items())}


def _common(runs: Runs) -> Runs:
    shared = set.intersection(*(set(tasks) for tasks in runs.values())) if runs else set()
    return {
        system: {task: found for task, found in tasks.items() if task in shared}
        for system, tasks in runs.items()
    }


def _table(runs: Runs, quality: str = "default") -> Floats:
    """(tasks, systems) means over runs."""
    columns = [
        [_mean(match.value(quality) for match in found) for found in tasks.values()]
        for tasks in runs.values()
    ]
    return np.array(columns, dtype=np.float64).T


def _bounds(found: Sequence[Match]) -> tuple[float, float]:
    low, high = zip(*(match.bounds() for match in found), strict=True)
    return _mean(low), _mean(high)


def _difference_bounds(a: Sequence[Match], b: Sequence[Match]) -> tuple[float, float]:
    """Bounds of FM_a - FM_b on one task over the weights: exact where both use the same references.

    Where own references are left out the two sets differ, and the bounds are those of each side apart: never
    too narrow.
    """
    used = a[0].used
    if all(np.array_equal(match.used, used) for match in (*a, *b)):
        mean_a, mean_b = (np.mean([match.similarities[used] for match in side], axis=0) for side in (a, b))
        return match_interval(mean_a - mean_b)
    (low_a, high_a), (low_b, high_b) = _bounds(a), _bounds(b)
    return low_a - high_b, high_a - low_b


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
