"""Intervals of a change between two gradings of the same tasks, each right or wrong.

What counts
-----------
Where nothing changed there is still an interval: 40 tasks without a change may well have missed what happens
to a few in a hundred. A bootstrap of forty zeros cannot know that.

.. [1] Tango. Equivalence test and confidence interval for the difference in proportions for the paired-sample
   design. Statistics in Medicine 17, 1998.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from counterpoint.errors import UsageError
from counterpoint.stats.sample import check, quantile_z

__all__ = ["paired_proportion_interval"]

HALVINGS = 60


def paired_proportion_interval(gained: int, lost: int, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Tango's score interval of ``(gained - lost) / n`` [1]_.

    All d for which ``|gained - lost - n d| <= z sqrt(n (2 q + d (1 - d)))``, q the most likely probability of
    a loss if the difference is d. It excludes 0 iff McNemar's test rejects.

    Parameters
    ----------
    gained, lost: tasks that became right, and wrong. n: all tasks, at least 1.

    Returns
    -------
    low, high: in [-1, 1]; without any change ``± z² / (n + z²)``.

    Raises
    ------
    UsageError: counts that are negative or more than n.

    >>> [round(bound, 3) for bound in paired_proportion_interval(0, 0, 40)]
    [-0.088, 0.088]
    """
    check(level)
    if min(gained, lost) < 0 or n < 1 or gained + lost > n:
        raise UsageError(f"of {n} tasks {gained} gained and {lost} lost: at most all can change")
    z = quantile_z(level)

    def statistic(d: float) -> float:
        linear = -gained - lost + (2 * n - gained + lost) * d
        root = math.sqrt(max(0.0, linear * linear + 8 * n * lost * d * (1 - d)))
        variance = n * (2 * (root - linear) / (4 * n) + d * (1 - d))
        distance = gained - lost - n * d
        return distance / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, distance)

    observed = (gained - lost) / n
    low = _crossing(lambda d: statistic(d) > z, -1.0, observed)
    high = _crossing(lambda d: statistic(d) >= -z, observed, 1.0)
    return low, high


def _crossing(holds: Callable[[float], bool], start: float, stop: float) -> float:
    """Where ``holds`` ends between ``start``, where it holds, and ``stop``."""
    for _ in range(HALVINGS):
        middle = (start + stop) / 2
        if holds(middle):
            start = middle
        else:
            stop = middle
    return (start + stop) / 2
