"""From positions to cases to conditions: the means and correlations of claim dynamics [1]_.

Conventions
-----------
* A case is one discussion: a metric's name to its values by position (by transition for ``SR``, in the order
  of positions), None where it is undefined; ``SL`` holds one value. A condition is a list of cases.
* The case is the statistical unit: positions are averaged inside it first, and agents never count.

What counts
-----------
Correlations are computed inside each condition and then averaged over conditions, not pooled. Pairs among U,
CC, ER and OR: over positions, at each the mean over cases. With SR: over transitions, the other metric taken
where the transition ends. With SL: over cases.

Differences from the paper
--------------------------
That the other metric is taken at the target of a transition is ours. A constant series has no correlation:
its condition is left out and counted.

.. [1] RIVER, section 4: aggregation and correlations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from counterpoint.errors import UsageError
from counterpoint.score import Score

__all__ = ["Case", "correlate", "falls", "fold_cases"]

Case = Mapping[str, Sequence[float | None]]


def fold_cases(cases: Sequence[Sequence[float | None]]) -> Score:
    """One metric over cases: the mean over the defined positions of each, then the mean over cases.

    Returns
    -------
    Score; undefined where no case has a value. Parts ``cases`` (those that have one) and ``undefined``.

    >>> fold_cases([[0.2, None, 0.4], [0.5], [None]]).value
    0.4
    """
    means = [value for case in cases if (value := _mean(case)) is not None]
    parts = {"cases": len(means), "undefined": len(cases) - len(means)}
    if not means:
        return Score.undefined("no case has a value at any position", parts=parts)
    return Score(sum(means) / len(means), parts)


def falls(counts: Sequence[float]) -> list[float]:
    """How much is lost from each stage to the next, as shares of the *first* stage's count.

    >>> [round(fall, 3) for fall in falls([20, 17.3, 15.1, 13.0])]
    [0.135, 0.11, 0.105]
    """
    if len(counts) < 2:
        return []
    if not counts[0]:
        raise UsageError("the first stage counts nothing: there is no base for a fall")
    return [(before - after) / counts[0] for before, after in pairwise(counts)]


def correlate(
    conditions: Mapping[str, Sequence[Case]],
    first: str,
    second: str,
    *,
    targets: Sequence[int] | None = None,
) -> Score:
    """Pearson correlation of two metrics, computed in each condition and averaged over conditions.

    Parameters
    ----------
    conditions: name to cases.
    first, second: names of metrics in the cases; one of them may be ``SR`` or ``SL``.
    targets: for SR: of each transition, the index of the position where it ends.

    Returns
    -------
    Score in [-1, 1]; undefined where no condition has one. Parts ``conditions`` and ``undefined`` (those left
    out), and ``points``, the number of points behind the coefficients.

    >>> case = {"U": [0.2, 0.4, 0.6], "CC": [9, 8, 7]}
    >>> correlate({"free": [case]}, "U", "CC").value
    -1.0
    """
    coefficients, points = [], 0
    for cases in conditions.values():
        x, y = _series(cases, first, second, targets)
        coefficient = _pearson(x, y)
        if coefficient is not None:
            coefficients.append(coefficient)
            points += int((np.isfinite(x) & np.isfinite(y)).sum())
    parts = {
        "conditions": len(coefficients),
        "undefined": len(conditions) - len(coefficients),
        "points": points,
    }
    if not coefficients:
        return Score.undefined(
            f"{first} or {second} is constant or undefined in every condition", parts=parts
        )
    return Score(sum(coefficients) / len(coefficients), parts)


def _series(
    cases: Sequence[Case], first: str, second: str, targets: Sequence[int] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both metrics, point by point; NaN where undefined."""
    if "SL" in (first, second):
        values = [[_mean(case[name]) for case in cases] for name in (first, second)]
        return np.array(values[0], dtype=np.float64), np.array(values[1], dtype=np.float64)
    x, y = (_by_position([case[name] for case in cases]) for name in (first, second))
    if "SR" in (first, second) and first != second:
        if targets is None:
            raise UsageError("correlations with SR need targets: the position where each transition ends")
        ends = np.asarray(targets, dtype=np.int64)
        x, y = (x, y[ends]) if first == "SR" else (x[ends], y)
    if len(x) != len(y):
        raise UsageError(f"{first} has {len(x)} points and {second} {len(y)}: they have to align")
    return x, y


def _by_position(rows: Sequence[Sequence[float | None]]) -> NDArray[np.float64]:
    """At each position, the mean over the cases that are defined there."""
    if len({len(row) for row in rows}) > 1:
        raise UsageError("cases of one condition have different numbers of positions")
    table = np.array(rows, dtype=np.float64)
    defined = np.isfinite(table)
    counts = defined.sum(axis=0)
    sums = np.where(defined, table, 0.0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _pearson(x: NDArray[np.float64], y: NDArray[np.float64]) -> float | None:
    both = np.isfinite(x) & np.isfinite(y)
    x, y = x[both], y[both]
    if len(x) < 2:
        return None
    x, y = x - x.mean(), y - y.mean()
    scale = float(np.sqrt((x @ x) * (y @ y)))
    if np.abs(x).max() < 1e-12 or np.abs(y).max() < 1e-12:
        return None
    return float(np.clip(x @ y / scale, -1, 1))


def _mean(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined) if defined else None
