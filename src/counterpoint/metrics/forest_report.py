"""All that a forest says about runs: each run's match, the systems in order, what the weights can change.

Conventions
-----------
* Systems are ranked on runs with a defined match; the others are counted, with their reasons.
* A run that was right and still matches less than three quarters of the right runs do is listed as a novel
  success, with its best similarity: it is not averaged away.
* Where the references were made under several conditions, each condition has its own standing too.

Source: ForestBench; ranking, bounds and diagnosis are described in their own modules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from counterpoint.contracts import Context
from counterpoint.errors import UsageError
from counterpoint.metrics.correctness import run_correct, step_correctness
from counterpoint.metrics.diagnosis import Symptoms, diagnose, structural_threshold
from counterpoint.metrics.forest_match import match_trace
from counterpoint.metrics.forests import Forest, read_forest
from counterpoint.metrics.panel import CONTENT_REDUNDANCY, NODE_VALIDITY
from counterpoint.metrics.ranking import (
    Family,
    Match,
    Pair,
    Standing,
    dirichlet_agreement,
    families,
    match_runs,
    pairs,
    standings,
)
from counterpoint.metrics.references import ReferenceSet
from counterpoint.metrics.rolegraph import RoleGraph, role_graph
from counterpoint.metrics.roles import role_table
from counterpoint.metrics.suitability import Sweep, structural_suitability, sweep
from counterpoint.score import Score

__all__ = ["Association", "ForestReport", "Run", "forest_report", "unmapped_names"]

SCHEMA = "counterpoint.forest_report/1"
NO_SPREAD = 1e-12


class Run(Struct, frozen=True):
    """One run against its references."""

    trace: str
    system: str
    task: str
    correct: bool | None
    match: float | None
    """Never shown without ``parts["low"]`` and ``parts["high"]``."""
    parts: Mapping[str, int | float]
    reason: str = ""
    diagnosis: str = ""
    """Why a failed run failed; empty where that was not asked for."""


class Association(Struct, frozen=True):
    """How Forest Match goes with another metric over the same runs."""

    metric: str
    runs: int
    correlation: float | None
    """Pearson's r; None below three runs, or where either does not vary."""
    partial: float | None
    """With accuracy held fixed; None where that is not known for all, or explains one of them fully."""


class ForestReport(Struct, frozen=True):
    """Runs against a forest."""

    forest: str
    """Path of the forest file."""
    signature: Mapping[str, Any]
    runs: tuple[Run, ...]
    systems: tuple[Standing, ...]
    """The best first; each with its bounds over the weights, its interval over tasks, and its ties."""
    pairs: tuple[Pair, ...]
    families: tuple[Family, ...]
    order_kept: float | None
    """Share of 1,000 random weightings (Dirichlet) that keep the order; None below two systems."""
    strata: Mapping[str, tuple[Standing, ...]]
    """Condition of the references to the standing under it; empty where there is one condition only."""
    novel: tuple[str, ...]
    """Ids of runs that were right and matched low."""
    sweep: tuple[Sweep, ...]
    """The order of the systems on the tasks that pass each of 36 thresholds of suitability."""
    beside: tuple[Association, ...]
    unmapped: Mapping[str, int]
    """Names without a role, with how many actions they did."""
    schema: str = SCHEMA


def forest_report(
    contexts: Iterable[Context],
    forest: str,
    *,
    roles: str = "default",
    quality: str = "default",
    leave_out: str | None = "generator",
    scope: str = "task",
    others: int = 0,
    why: bool = False,
    beside: Mapping[str, Mapping[str, float]] | None = None,
) -> ForestReport:
    """Every run matched, the systems ranked; with ``why``, failed runs diagnosed.

    Parameters are those of the metric ``forest_match``; ``beside`` holds other metrics' values by trace id.
    Raises UsageError for a forest or role table that cannot be used.
    """
    known, table = read_forest(forest), role_table(roles)
    how: dict[str, Any] = {
        "forest": forest, "roles": roles, "quality": quality, "leave_out": leave_out,
        "scope": scope, "others": others,
    }  # fmt: skip
    judged: list[tuple[Context, RoleGraph, bool | None, Score]] = []
    for context in contexts:
        graph = role_graph(context, table)
        judged.append((context, graph, run_correct(context), match_trace(context, **how)))
    low = _low_threshold(judged)
    matched = [(context, graph) for context, graph, _, score in judged if score.value is not None]
    profile = judged[0][0].profile if judged else "strict"
    matches = _matches([graph for _, graph in matched], known, scope, leave_out, profile)
    runs = tuple(
        Run(
            context.trace.id,
            context.trace.system,
            graph.origin.task,
            correct,
            score.value,
            score.parts,
            score.reason,
            _why(context, graph, known, score, low, scope) if why and correct is False else "",
        )
        for context, graph, correct, score in judged
    )
    return ForestReport(
        forest=forest,
        signature={
            "profile": profile,
            **how,
            "roles_sha256": table.sha256,
            "forest_sha256": known.sha256,
        },
        runs=runs,
        systems=tuple(standings(matches)),
        pairs=tuple(pairs(matches)),
        families=tuple(families(matches)),
        order_kept=dirichlet_agreement(matches).value,
        strata=_strata([graph for _, graph in matched], known, scope, leave_out, profile),
        novel=tuple(
            run.trace
            for run in runs
            if run.correct and run.match is not None and low is not None and run.match < low
        ),
        sweep=_sweep(matches, known),
        beside=tuple(_association(name, values, runs) for name, values in (beside or {}).items()),
        unmapped=unmapped_names(graph for _, graph, _, _ in judged),
    )


def unmapped_names(graphs: Iterable[RoleGraph]) -> dict[str, int]:
    """Names whose role is ``other``, with how many actions they did, the most frequent first."""
    found: Counter[str] = Counter()
    for graph in graphs:
        found.update(
            name for name, role in zip(graph.names or (), graph.roles, strict=False) if role == "other"
        )
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _sweep(matches: Sequence[Match], forest: Forest) -> tuple[Sweep, ...]:
    tasks = sorted({match.task for match in matches} & set(forest.by_task))
    suitable = [
        structural_suitability(task, list(forest.of(task))) for task in tasks if forest.of(task).correct.any()
    ]
    return tuple(sweep(suitable, matches)) if suitable else ()


def _association(name: str, values: Mapping[str, float], runs: Sequence[Run]) -> Association:
    both = [run for run in runs if run.match is not None and run.trace in values]
    x, y = [run.match or 0.0 for run in both], [values[run.trace] for run in both]
    partial = None
    if all(run.correct is not None for run in both):
        partial = _partial(x, y, [float(bool(run.correct)) for run in both])
    return Association(name, len(both), _correlation(x, y), partial)


def _correlation(x: Sequence[float], y: Sequence[float]) -> float | None:
    if len(x) < 3 or min(np.ptp(x), np.ptp(y)) < NO_SPREAD:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def _partial(x: Sequence[float], y: Sequence[float], z: Sequence[float]) -> float | None:
    """(r_xy - r_xz r_yz) / sqrt((1 - r_xz²) (1 - r_yz²)); with a constant z nothing has to be held fixed."""
    xy, xz, yz = _correlation(x, y), _correlation(x, z), _correlation(y, z)
    if xy is None or not z or np.ptp(z) < NO_SPREAD:
        return xy
    if xz is None or yz is None or max(abs(xz), abs(yz)) > 1 - NO_SPREAD:
        return None
    return float((xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2)))


def _low_threshold(judged: Sequence[tuple[Context, RoleGraph, bool | None, Score]]) -> float | None:
    """The 25th percentile of the right runs' match; None without any."""
    values = [score.value for _, _, correct, score in judged if correct and score.value is not None]
    return structural_threshold(values) if values else None


def _matches(
    graphs: Sequence[RoleGraph], forest: Forest, scope: str, leave_out: str | None, profile: str
) -> list[Match]:
    tasks: dict[str, list[RoleGraph]] = {}
    for graph in graphs:
        tasks.setdefault(graph.origin.task, []).append(graph)
    found = []
    for task, members in tasks.items():
        references = forest.of(task if scope == "task" else None)
        if len(references):
            found += match_runs(members, references, leave_out=leave_out, profile=profile)
    return found


def _strata(
    graphs: Sequence[RoleGraph], forest: Forest, scope: str, leave_out: str | None, profile: str
) -> dict[str, tuple[Standing, ...]]:
    conditions = sorted({reference.conditioning for reference in forest.references})
    if len(conditions) < 2:
        return {}
    strata = {}
    for condition in conditions:
        rest = forest
        for other in conditions:
            if other != condition:
                rest = rest.without(conditioning=other)
        strata[condition or "open"] = tuple(standings(_matches(graphs, rest, scope, leave_out, profile)))
    return strata


def _why(
    context: Context, graph: RoleGraph, forest: Forest, score: Score, low: float | None, scope: str
) -> str:
    """Why a failed run failed, in one line."""
    if low is None:
        return "undetermined: no successful run with a match to compare with"
    references = [
        reference
        for reference in forest.of(graph.origin.task if scope == "task" else None)
        if not graph.generator or reference.generator != graph.generator
    ]
    known = step_correctness(context)
    symptoms = Symptoms(
        match=score.value,
        validity=NODE_VALIDITY.compute(context).value,
        redundancy=CONTENT_REDUNDANCY.compute(context).value,
        answer_held=None if known.reason else any(known.correct.values()),
    )
    try:
        return diagnose(graph, ReferenceSet(references), low, symptoms).text
    except UsageError as error:
        return f"undetermined: {error}"
