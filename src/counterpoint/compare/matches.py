"""Who is compared with whom, and which single-agent system a pair is held against.

* Systems of two inputs are paired by name; where an input holds one system only, it meets each of the other.
* One input alone is compared within: each of its systems with each.
* A baseline is a system whose every trace has one agent. Of several it is the one whose tokens on the same
  tasks are closest to the team's: more agents spend more tokens, and tokens alone buy accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from counterpoint.compare.pairing import Pairing, pair
from counterpoint.compare.result import Baseline, ComparedPair
from counterpoint.compare.sides import Side
from counterpoint.errors import UsageError
from counterpoint.stats.sample import Floats

__all__ = ["Match", "matches"]


@dataclass(frozen=True)
class SingleAgent:
    """A baseline and where its tasks meet those of the pair."""

    side: Side
    team: Side
    pairing: Pairing
    """Of the team and the baseline."""
    kept: list[int]
    """Tasks of ``pairing`` that the pair compares too."""

    def mean(self, name: str) -> float | None:
        """The baseline's mean over tasks where it and the team are defined; None where there are none."""
        if name not in self.side.values or name not in self.team.values:
            return None
        return _mean(self._values(self.team.values[name], self.side.values[name])[1])

    @property
    def tokens_ratio(self) -> float | None:
        """The baseline's tokens over the team's."""
        if self.team.tokens is None or self.side.tokens is None:
            return None
        team, own = map(_mean, self._values(self.team.tokens, self.side.tokens))
        return own / team if team and own is not None else None

    @property
    def distance(self) -> float:
        """How far the budgets are apart: 0 where they match, infinite where they are not known."""
        return abs(math.log(self.tokens_ratio)) if self.tokens_ratio else math.inf

    def _values(self, team: Floats, own: Floats) -> tuple[Floats, Floats]:
        first, second = self.pairing.values(team, own)
        return first[self.kept], second[self.kept]


@dataclass(frozen=True)
class Match:
    """Two sides; ``pairing`` is None where they are independent samples."""

    a: Side
    b: Side
    pairing: Pairing | None
    single: SingleAgent | None

    @property
    def metrics(self) -> list[str]:
        """Metrics of both sides, in the order of the first."""
        return [name for name in self.a.values if name in self.b.values]

    def described(self) -> ComparedPair:
        """The match as the result names it."""
        found, single = self.pairing, self.single
        return ComparedPair(
            a=self.a.label,
            b=self.b.label,
            paired=found is not None,
            tasks=len(found.tasks) if found else min(len(self.a.by_task), len(self.b.by_task)),
            by_seed=found.by_seed if found else 0,
            only_a=found.only_a if found else [],
            only_b=found.only_b if found else [],
            baseline=None
            if single is None
            else Baseline(single.side.label, single.team.label, len(single.kept), single.tokens_ratio),
        )


def matches(sides: Sequence[Side], *, paired: bool) -> list[Match]:
    """Every pair of sides that is compared.

    Raises
    ------
    UsageError: nothing to pair: one system only, no system in common, no task in common.
    """
    found = []
    for a, b in _opponents(sides):
        pairing = pair(a, b) if paired else None
        if pairing is not None and not pairing.tasks:
            raise UsageError(_nothing_paired(a, b, pairing))
        found.append(Match(a, b, pairing, _baseline(a, b, pairing, sides) if pairing else None))
    return found


def _opponents(sides: Sequence[Side]) -> Iterator[tuple[Side, Side]]:
    inputs: dict[str, dict[str, Side]] = {}
    for side in sides:
        inputs.setdefault(side.source, {})[side.system] = side
    if len(inputs) == 1:
        if len(sides) < 2:
            raise UsageError(
                f"{sides[0].source} holds one system only: name a second input to compare it with"
            )
        yield from combinations(sides, 2)
    for (name_a, in_a), (name_b, in_b) in combinations(inputs.items(), 2):
        common = [system for system in in_a if system in in_b]
        if common:
            yield from ((in_a[system], in_b[system]) for system in common)
        elif len(in_a) == 1 or len(in_b) == 1:
            yield from ((a, b) for a in in_a.values() for b in in_b.values())
        else:
            raise UsageError(
                f"no system in common: {name_a} holds {', '.join(map(repr, in_a))}, "
                f"{name_b} {', '.join(map(repr, in_b))}; systems are paired by name"
            )


def _baseline(a: Side, b: Side, pairing: Pairing, sides: Sequence[Side]) -> SingleAgent | None:
    if a.single_agent and b.single_agent:
        return None
    team = a if b.single_agent else b
    known = [side for side in (a, b) if side.single_agent] or [side for side in sides if side.single_agent]
    tasks = set(pairing.tasks)
    found = []
    for side in known:
        shared = pair(team, side)
        if kept := [index for index, task in enumerate(shared.tasks) if task in tasks]:
            found.append(SingleAgent(side, team, shared, kept))
    return min(found, key=lambda single: single.distance, default=None)


def _nothing_paired(a: Side, b: Side, pairing: Pairing) -> str:
    return (
        f"{a.label} and {b.label} share no task (such as {pairing.only_a[0]!r} and {pairing.only_b[0]!r}): "
        "pairing needs the same task text or label task_id on both sides; "
        "paired=False (--unpaired) compares them as independent samples"
    )


def _mean(values: Floats) -> float | None:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else None
