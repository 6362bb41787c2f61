"""Trace suitability: can a team show its structure on a task, and does the choice of tasks move a ranking.

Conventions
-----------
* Structural scores come from a task's verified references: d the median depth, w the median width of the
  fullest level, δ the median of 1 - the largest share of tokens that one agent used.
* δ is None where tokens by action are unknown. A task passes a threshold on δ only with a known δ.
* Judged scores (1 to 5, two passes) may stand in for them: give their means, and the agreement of the passes.

Differences from the paper
--------------------------
The paper has a model score depth, width and decomposability; another version of it takes δ as the gain over a
single agent. The structural scores are ours; either of the paper's can be given instead.

Source: ForestBench, suitability d >= θ_d, w >= θ_w, δ >= θ_δ, swept over 36 thresholds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np
from msgspec import Struct

from counterpoint.errors import UsageError
from counterpoint.metrics.ranking import Match, shared_means
from counterpoint.metrics.rolegraph import RoleGraph
from counterpoint.score import Score
from counterpoint.stats import cohen_kappa, kendall_tau

__all__ = [
    "THRESHOLDS",
    "Suitability",
    "Sweep",
    "decomposability",
    "structural_suitability",
    "sweep",
    "two_pass_kappa",
]

Thresholds = tuple[float, float, float]

THRESHOLDS: tuple[Thresholds, ...] = tuple(product((2, 3, 4, 5), (1, 2, 3), (0.2, 0.4, 0.6)))
"""36 thresholds (θ_d, θ_w, θ_δ) for structural scores."""


class Suitability(Struct, frozen=True):
    """How much team structure a task calls for."""

    task: str
    depth: float
    width: float
    decomposability: float | None
    source: str = "structure"
    """``structure``, ``judge`` or ``gain``."""

    def passes(self, thresholds: Thresholds) -> bool:
        """d >= θ_d, w >= θ_w and δ >= θ_δ; an unknown δ passes no θ_δ above 0."""
        depth, width, delta = thresholds
        return self.depth >= depth and self.width >= width and (self.decomposability or 0) >= delta


class Sweep(Struct, frozen=True):
    """The ranking on the tasks that pass one choice of thresholds."""

    thresholds: Thresholds
    tasks: int
    tau: float | None
    """Kendall's tau-b with the ranking on all tasks; None where fewer than two systems are left."""


def decomposability(graph: RoleGraph) -> float | None:
    """δ of one run: 1 - the largest share of its tokens that one agent used; None where they are unknown.

    >>> decomposability(RoleGraph(["planner", "coder"], [(0, 1)], tokens=[100, 300], agents="ab"))
    0.25
    """
    if graph.agents is None or graph.node_tokens is None or not graph.tokens:
        return None
    spent: dict[str, float] = {}
    for agent, amount in zip(graph.agents, graph.node_tokens, strict=True):
        spent[agent] = spent.get(agent, 0) + (amount or 0)
    return 1 - max(spent.values()) / graph.tokens


def structural_suitability(task: str, references: Sequence[RoleGraph]) -> Suitability:
    """d, w and δ of a task, from its verified references.

    Raises UsageError where there is none.
    """
    verified = [graph for graph in references if graph.correct and graph.n]
    if not verified:
        raise UsageError(f"task {task!r} has no verified reference to read its structure from")
    shares = [share for graph in verified if (share := decomposability(graph)) is not None]
    return Suitability(
        task,
        float(np.median([graph.depth for graph in verified])),
        float(np.median([graph.width for graph in verified])),
        float(np.median(shares)) if shares else None,
    )


def sweep(
    suitable: Sequence[Suitability],
    matches: Iterable[Match],
    thresholds: Sequence[Thresholds] = THRESHOLDS,
) -> list[Sweep]:
    """Does the ranking of systems hang on which tasks are called suitable: one row a choice of thresholds."""
    runs = list(matches)
    everywhere = shared_means(runs)
    systems = sorted(everywhere)
    rows = []
    for chosen in thresholds:
        tasks = {score.task for score in suitable if score.passes(chosen)}
        means = shared_means(match for match in runs if match.task in tasks) if tasks else {}
        tau = None
        if len(systems) > 1 and set(means) == set(systems):
            tau = kendall_tau(
                [everywhere[system] for system in systems], [means[system] for system in systems]
            ).value
        rows.append(Sweep(chosen, len(tasks), tau))
    return rows


def two_pass_kappa(first: Sequence[int], second: Sequence[int], *, highest: int = 5) -> Score:
    """Agreement of a judge's two passes over the same tasks: Cohen's kappa with quadratic weights.

    Parameters
    ----------
    first, second: scores from 1 to ``highest``, one a task.

    >>> two_pass_kappa([1, 2, 5, 4], [1, 2, 5, 4]).value
    1.0
    """
    if len(first) != len(second):
        raise UsageError(f"two passes over the same tasks are needed, found {len(first)} and {len(second)}")
    table = np.zeros((highest, highest))
    for a, b in zip(first, second, strict=True):
        if not (1 <= a <= highest and 1 <= b <= highest):
            raise UsageError(f"scores lie between 1 and {highest}, found {a} and {b}")
        table[int(a) - 1, int(b) - 1] += 1
    return cohen_kappa(table, weights="quadratic")
