"""Which traces of two sides belong together: those of one task and seed.

A *unit* is a task that both sides ran. Inside it, traces are paired by seed where the sides share seeds, else
all traces of the task stand against all; several traces of one task and seed are averaged. A pair counts only
where both of its values are defined, and the unit is the mean of its pairs: tasks weigh alike. A trace
without task text is its own task, which no other trace can be of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from counterpoint.compare.sides import Side
from counterpoint.stats.sample import Floats

__all__ = ["Groups", "Pairing", "pair", "task_means"]

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Groups:
    """Groups of items, to be averaged column after column."""

    items: Indices
    group: Indices
    """(items,) the group of each item."""
    n: int

    @classmethod
    def of(cls, groups: Sequence[Sequence[int]]) -> Groups:
        """From a list of items a group."""
        sizes = np.fromiter(map(len, groups), np.int64, len(groups))
        items = np.fromiter((item for group in groups for item in group), np.int64, int(sizes.sum()))
        return cls(items, np.repeat(np.arange(len(groups)), sizes), len(groups))

    def means(self, values: Floats) -> Floats:
        """Mean of the defined values of each group; NaN where none is defined."""
        taken = values[self.items]
        defined = ~np.isnan(taken)
        counts = np.bincount(self.group[defined], minlength=self.n).astype(np.float64)
        counts[counts == 0] = np.nan
        means: Floats = np.bincount(self.group[defined], weights=taken[defined], minlength=self.n) / counts
        return means


@dataclass(frozen=True)
class Pairing:
    """The traces of two sides, gathered into pairs, and pairs into tasks."""

    tasks: list[str]
    """Tasks on both sides, in the order of the first."""
    only_a: list[str]
    only_b: list[str]
    by_seed: int
    """Tasks whose traces are paired by seed."""
    repeated: int
    """Pairs with several traces of one task and seed on a side."""
    a: Groups
    """Traces of the first side, by pair."""
    b: Groups
    units: Groups
    """Pairs, by task."""

    def values(self, a: Floats, b: Floats) -> tuple[Floats, Floats]:
        """A value a task on both sides, NaN where no pair of the task is defined on both."""
        first, second = self.a.means(a), self.b.means(b)
        undefined = np.isnan(first) | np.isnan(second)
        first[undefined] = second[undefined] = np.nan
        return self.units.means(first), self.units.means(second)


def pair(a: Side, b: Side) -> Pairing:
    """Tasks of both sides, paired by seed where seeds are shared."""
    in_a, in_b = a.by_task, b.by_task
    alone = a.unpaired_tasks | b.unpaired_tasks
    tasks = [task for task in in_a if task in in_b and task not in alone]
    traces_a: list[list[int]] = []
    traces_b: list[list[int]] = []
    units: list[list[int]] = []
    by_seed = repeated = 0
    for task in tasks:
        seeds = [seed for seed in in_a[task] if seed in in_b[task]]
        if seeds:
            by_seed += any(seeds)
            pairs = [(in_a[task][seed], in_b[task][seed]) for seed in seeds]
            repeated += sum(len(first) > 1 or len(second) > 1 for first, second in pairs)
        else:
            pairs = [(list(chain(*in_a[task].values())), list(chain(*in_b[task].values())))]
        units.append(list(range(len(traces_a), len(traces_a) + len(pairs))))
        traces_a += [first for first, _ in pairs]
        traces_b += [second for _, second in pairs]
    paired = set(tasks)
    return Pairing(
        tasks=tasks,
        only_a=[task for task in in_a if task not in paired],
        only_b=[task for task in in_b if task not in paired],
        by_seed=by_seed,
        repeated=repeated,
        a=Groups.of(traces_a),
        b=Groups.of(traces_b),
        units=Groups.of(units),
    )


def task_means(side: Side, values: Floats) -> Floats:
    """Means over the defined traces of each task; tasks without any are left out."""
    means = Groups.of([list(chain(*seeds.values())) for seeds in side.by_task.values()]).means(values)
    return means[~np.isnan(means)]
