"""Shapley values and leave-one-out: what each player adds to what all reach together; half of `attribution`.

Conventions
-----------
* A value function takes a frozenset of players and gives a finite number. It is asked once a set.
* Players are distinct and hashable; results keep their order.

What counts
-----------
The Shapley value is the mean of what a player adds, over all orders in which the players may join.
Leave-one-out is what is lost without it. Of two players that do the same each has half the value, and
leave-one-out 0.

.. [1] Shapley. A value for n-person games. Contributions to the Theory of Games II, 1953.
.. [2] Castro, Gómez, Tejada. Polynomial calculation of the Shapley value based on sampling. Computers and
   Operations Research 36, 2009.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import cache
from itertools import combinations
from typing import TypeVar

import numpy as np
from msgspec import Struct

from counterpoint.errors import UsageError
from counterpoint.stats import interval

__all__ = ["MOST_EXACT", "Estimate", "leave_one_out", "shapley", "shapley_intervals"]

Player = TypeVar("Player", bound=Hashable)

MOST_EXACT = 12
"""Players up to which all 2^n sets are looked at."""


class Estimate(Struct, frozen=True):
    """A sampled Shapley value and its 95 % interval."""

    value: float
    low: float | None
    high: float | None
    """None where all samples are alike; ``reason`` says so."""
    samples: int
    reason: str = ""


def shapley(players: Sequence[Player], value: Callable[[frozenset[Player]], float]) -> dict[Player, float]:
    """Shapley values, exactly [1]_.

    ``φ_i = sum over S without i of s! (n - s - 1)! / n! · (v(S ∪ i) - v(S))``, s the size of S.

    Parameters
    ----------
    players: at most 12, distinct.
    value: v, a number for a set of players.

    Returns
    -------
    Player to its value, in the unit of v. They sum to ``v(all) - v(none)``.

    Raises
    ------
    UsageError: more players than 12 (use `shapley_intervals`), one twice, a value that is no finite number.

    >>> shapley([0, 1, 2], lambda team: float(0 in team and len(team) > 1))
    {0: 0.666667, 1: 0.166667, 2: 0.166667}
    """
    worth = _worth(players, value)
    n = len(players)
    if n > MOST_EXACT:
        raise UsageError(
            f"{n} players are {2**n:,} sets: exact up to {MOST_EXACT}, use shapley_intervals beyond"
        )
    terms: dict[Player, list[float]] = {player: [] for player in players}
    for size in range(n):
        weight = 1 / (n * math.comb(n - 1, size))
        for chosen in combinations(players, size):
            team = frozenset(chosen)
            for player in players:
                if player not in team:
                    terms[player].append(weight * (worth(team | {player}) - worth(team)))
    return {player: math.fsum(added) for player, added in terms.items()}


def shapley_intervals(
    players: Sequence[Player],
    value: Callable[[frozenset[Player]], float],
    *,
    samples: int = 1000,
    seed: int = 0,
) -> dict[Player, Estimate]:
    """Shapley values of any number of players, from sampled orders of joining [2]_.

    Parameters
    ----------
    players, value: as in `shapley`.
    samples: orders drawn, at least 2; each asks v for as many sets as there are players.
    seed: any integer >= 0.

    Returns
    -------
    Player to `Estimate`; the values sum to ``v(all) - v(none)``, whatever the sample.

    Raises
    ------
    UsageError: a player twice, fewer than 2 samples, or a value that is no finite number.

    >>> shapley_intervals(["a", "b"], lambda team: float(len(team)), samples=2)["a"].value
    1.0
    """
    if samples < 2:
        raise UsageError(f"{samples} samples show no variation: 2 at least")
    worth, rng = _worth(players, value), np.random.default_rng(seed)
    added = np.zeros((samples, len(players)))
    for row in range(samples):
        team: frozenset[Player] = frozenset()
        before = worth(team)
        for number in rng.permutation(len(players)).tolist():
            team |= {players[number]}
            after = worth(team)
            added[row, number] = after - before
            before = after
    estimates = {}
    for number, player in enumerate(players):
        bounds = interval(added[:, number], seed=seed)
        mean = math.fsum(added[:, number].tolist()) / samples
        estimates[player] = Estimate(mean, bounds.low, bounds.high, samples, bounds.reason)
    return estimates


def leave_one_out(
    players: Sequence[Player], value: Callable[[frozenset[Player]], float]
) -> dict[Player, float]:
    """What is lost without each player: ``v(all) - v(all without i)``.

    >>> leave_one_out(["a", "twin of a"], lambda team: float(bool(team)))
    {'a': 0.0, 'twin of a': 0.0}
    """
    worth = _worth(players, value)
    everyone = frozenset(players)
    return {player: worth(everyone) - worth(everyone - {player}) for player in players}


def _worth(
    players: Sequence[Player], value: Callable[[frozenset[Player]], float]
) -> Callable[[frozenset[Player]], float]:
    """``value``, checked and asked once a set."""
    if len(set(players)) < len(players):
        twice = next(player for player in players if list(players).count(player) > 1)
        raise UsageError(f"player {twice!r} stands twice: name each one once")

    @cache
    def worth(team: frozenset[Player]) -> float:
        given = value(team)
        number = float(given) if isinstance(given, int | float | np.number) else math.nan
        if not math.isfinite(number):
            raise UsageError(f"the value of {sorted(map(str, team))} is {given}: a finite number is needed")
        return number

    return worth
