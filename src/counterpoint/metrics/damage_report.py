"""Every operator on a set of runs and their forest, and what the role table has to do with it.

Conventions
-----------
* The first ``limit`` runs that have actions are damaged, in the order given; each against the references of
  its own task, or of every task where the forest does not know it.
* ``effect``: forest damage by each operator at p = .5 over the spread between the systems' Forest Match.

Source: see `counterpoint.metrics.damage` and `counterpoint.metrics.role_sensitivity`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from counterpoint.contracts import Context
from counterpoint.errors import UsageError
from counterpoint.metrics.damage import Curve, damage_curve, effect_ratio
from counterpoint.metrics.forests import Forest, read_forest
from counterpoint.metrics.perturbations import OPERATORS
from counterpoint.metrics.ranking import match_runs, system_means
from counterpoint.metrics.role_sensitivity import RoleSensitivity, role_sensitivity
from counterpoint.metrics.rolegraph import RoleGraph, role_graph
from counterpoint.metrics.roles import role_table

__all__ = ["DamageReport", "damage_report"]

SCHEMA = "counterpoint.damage/1"
SHARES = (0.05, 0.1, 0.2)


class DamageReport(Struct, frozen=True):
    """Damage curves of every operator, and the effect of changed role tables."""

    forest: str
    curves: tuple[Curve, ...]
    effect: Mapping[str, float | None]
    """Operator to ΔFM(.5) / SD between systems; None below two systems, or without spread."""
    roles: tuple[RoleSensitivity, ...]
    schema: str = SCHEMA


def damage_report(
    contexts: Sequence[Context],
    forest: str,
    *,
    roles: str = "default",
    leave_out: str | None = "generator",
    replicates: int = 100,
    limit: int = 10,
    draws: int = 200,
    seed: int = 0,
) -> DamageReport:
    """Damage curves of runs against their forest, and role tables changed ``draws`` times each.

    Raises UsageError where no run has an action, or forest and runs were read with different role tables.
    """
    known, table = read_forest(forest), role_table(roles)
    if known.header.roles_sha256 != table.sha256:
        raise UsageError(
            f"forest {forest} was made with another role table ({known.header.roles}): give the same one "
            "(--roles FILE), or build the forest again"
        )
    graphs = [graph for context in contexts if (graph := role_graph(context, table)).n]
    if not graphs:
        raise UsageError("no run with an action to damage")
    profile = contexts[0].profile
    chosen = graphs[:limit]
    sets = [known.of(graph.origin.task if graph.origin.task in known.by_task else None) for graph in chosen]
    curves = tuple(
        damage_curve(
            chosen, name, sets, replicates=replicates, seed=seed, profile=profile, leave_out=leave_out
        )
        for name in OPERATORS
    )
    means = _system_means(graphs, known, profile, leave_out)
    effect = {curve.operator: effect_ratio(curve, list(means.values())).value for curve in curves}
    tables = _role_tables(graphs, known, leave_out, draws, seed) if draws and means else ()
    return DamageReport(forest, curves, effect, tables)


def _system_means(
    graphs: Sequence[RoleGraph], forest: Forest, profile: str, leave_out: str | None
) -> dict[str, float]:
    matches = []
    for task in forest.by_task:
        runs = [graph for graph in graphs if graph.origin.task == task]
        if runs:
            matches += match_runs(runs, forest.of(task), leave_out=leave_out, profile=profile)
    return system_means(matches)


def _role_tables(
    graphs: Sequence[RoleGraph], forest: Forest, leave_out: str | None, draws: int, seed: int
) -> tuple[RoleSensitivity, ...]:
    tasks = {graph.origin.task for graph in graphs}
    references = {task: list(forest.of(task)) for task in forest.by_task if task in tasks}
    return (
        *(
            role_sensitivity(graphs, references, p=p, draws=draws, seed=seed, leave_out=leave_out)
            for p in SHARES
        ),
        *(
            role_sensitivity(graphs, references, mode=mode, draws=draws, seed=seed, leave_out=leave_out)
            for mode in ("merge", "split", "role_free")
        ),
    )
