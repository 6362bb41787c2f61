"""How much Forest Match owes to the role table: names mapped elsewhere, roles merged, split, or permuted.

Conventions
-----------
* A change is consistent: one name has one role in every run and reference of a draw.
* ``reassign``: each name's role is replaced, with probability p, by another one of the vocabulary.
* ``merge``: two roles become one; ``split``: one role becomes two, by name; p is not used.
* ``role_free``: roles are permuted over the nodes of each graph by itself: what is left is shape.

Source: ForestBench's alias tables are not validated there; this panel is ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from counterpoint.errors import UsageError
from counterpoint.metrics.ranking import match_runs, system_means
from counterpoint.metrics.references import ReferenceSet
from counterpoint.metrics.rolegraph import RoleGraph
from counterpoint.metrics.roles import ROLES

__all__ = ["MODES", "RoleSensitivity", "recast", "role_sensitivity"]

Mode = Literal["reassign", "merge", "split", "role_free"]
MODES: tuple[Mode, ...] = ("reassign", "merge", "split", "role_free")


class RoleSensitivity(Struct, frozen=True):
    """What a change of roles does to the systems' Forest Match."""

    mode: str
    p: float
    draws: int
    change: float
    """Mean absolute change of a system's Forest Match."""
    order_changes: float
    """Share of draws in which the order of the systems is another one."""


def role_sensitivity(
    runs: Sequence[RoleGraph],
    references: Mapping[str, Sequence[RoleGraph]],
    *,
    mode: Mode = "reassign",
    p: float = 0.1,
    draws: int = 200,
    seed: int = 0,
    leave_out: str | None = "generator",
) -> RoleSensitivity:
    """Forest Match of every system under changed roles, against that under the given ones.

    Parameters
    ----------
    runs: candidates; a run's system is its generator.
    references: task to its references.

    Raises UsageError where no run has a defined match.
    """
    tasks = {task: list(graphs) for task, graphs in references.items()}
    before = _means(list(runs), tasks, leave_out)
    if not before:
        raise UsageError("no run has a defined Forest Match: there is nothing that roles could change")
    rng = np.random.default_rng(seed)
    changes, reordered = [], 0
    for _ in range(draws):
        changed = recast([*runs, *(graph for graphs in tasks.values() for graph in graphs)], mode, p, rng)
        candidates, rest = changed[: len(runs)], iter(changed[len(runs) :])
        after = _means(
            candidates, {task: [next(rest) for _ in old] for task, old in tasks.items()}, leave_out
        )
        changes += [abs(after[system] - value) for system, value in before.items()]
        reordered += sorted(before, key=before.__getitem__) != sorted(before, key=after.__getitem__)
    return RoleSensitivity(mode, p, draws, float(np.mean(changes)), reordered / draws)


def recast(graphs: Sequence[RoleGraph], mode: Mode, p: float, rng: np.random.Generator) -> list[RoleGraph]:
    """The graphs with their roles changed in one consistent way."""
    if mode == "role_free":
        roles = [[graph.roles[node] for node in rng.permutation(graph.n)] for graph in graphs]
    else:
        named = [list(zip(graph.names or graph.roles, graph.roles, strict=True)) for graph in graphs]
        table = _changed({pair for pairs in named for pair in pairs}, mode, p, rng)
        roles = [[table[pair] for pair in pairs] for pairs in named]
    return [_with_roles(graph, new) for graph, new in zip(graphs, roles, strict=True)]


def _changed(
    known: set[tuple[str, str]], mode: Mode, p: float, rng: np.random.Generator
) -> dict[tuple[str, str], str]:
    """(name, role) to another role."""
    pairs = sorted(known)
    present = sorted({role for _, role in pairs})
    if mode == "reassign":
        hit = rng.random(len(pairs)) < p
        return {
            pair: _other(pair[1], rng) if changes else pair[1]
            for pair, changes in zip(pairs, hit, strict=True)
        }
    if mode == "merge":
        chosen = [present[index] for index in rng.permutation(len(present))[:2]]
        return {pair: chosen[0] if pair[1] in chosen else pair[1] for pair in pairs}
    if mode == "split":
        role = present[int(rng.integers(len(present)))]
        side = dict(zip(pairs, rng.integers(1, 3, len(pairs)).tolist(), strict=True))
        return {pair: f"{role}/{side[pair]}" if pair[1] == role else pair[1] for pair in pairs}
    raise UsageError(f"mode {mode!r} is none of {', '.join(MODES)}")


def _other(role: str, rng: np.random.Generator) -> str:
    others = [name for name in ROLES if name != role]
    return others[int(rng.integers(len(others)))]


def _with_roles(graph: RoleGraph, roles: Sequence[str]) -> RoleGraph:
    """The same run with other roles: tokens stay, for they weigh references."""
    return RoleGraph(
        roles,
        graph.edges,
        tokens=graph.tokens,
        correct=graph.correct,
        generator=graph.generator,
        conditioning=graph.conditioning,
        origin=graph.origin,
    )


def _means(
    runs: Sequence[RoleGraph], references: Mapping[str, Sequence[RoleGraph]], leave_out: str | None
) -> dict[str, float]:
    """System to its mean Forest Match over tasks."""
    matches = []
    for task, graphs in references.items():
        candidates = [run for run in runs if run.origin.task == task]
        if candidates:
            matches += match_runs(candidates, ReferenceSet(graphs), leave_out=leave_out)
    return system_means(matches)
