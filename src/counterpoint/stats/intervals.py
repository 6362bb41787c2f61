"""Intervals of a mean over tasks: bootstrap, Wilson, and the one that a table shows.

What counts
-----------
An interval is undefined below two values and without variation; below ten values it is rough, because the
resamples of so few values are not yet spread like the means of so many tasks.

Differences from the paper
--------------------------
`interval` resamples while that is cheap. From 200 values on, where the Cornish-Fisher expansion [2]_ of the
resampling distribution is closer to it than 10,000 resamples are, the expansion stands in for them: BCa
without noise and in one pass.

.. [1] Efron, Tibshirani. An Introduction to the Bootstrap, 1993: 13.3 percentile, 14.3 BCa.
.. [2] Hall. The Bootstrap and Edgeworth Expansion, 1992: 2.5 and 3.10.
.. [3] Davison, Hinkley. Bootstrap Methods and their Application, 1997: 3.8 hierarchical data.
.. [4] Wilson. Probable inference, the law of succession, and statistical inference. JASA 22, 1927.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike

from counterpoint.errors import UsageError
from counterpoint.stats.sample import (
    NORMAL,
    TIE,
    Floats,
    check,
    chunks,
    differences_of,
    no_variation,
    quantile_z,
    sample_of,
)

__all__ = [
    "Interval",
    "bootstrap_interval",
    "bootstrap_sd",
    "difference_interval",
    "interval",
    "two_level_interval",
    "wilson_interval",
]

Method = Literal["bca", "percentile"]

ROUGH_BELOW = 10
EXPAND_FROM = 200
EXPANSION_ERROR = 0.005
"""Largest third-order term (in standard errors) that the expansion may have: a fifth of the Monte Carlo error
of a 2.5 % point from 10,000 resamples."""


class Interval(Struct, frozen=True):
    """A confidence interval, or why there is none."""

    low: float | None
    high: float | None
    method: str = ""
    """``bca``, ``percentile`` or ``wilson``."""
    n: int = 0
    """Values (tasks) behind it; of two samples the smaller one."""
    reason: str = ""
    """Why there is no interval; empty where there is one."""
    rough: bool = False
    """Fewer than ten values: take it as an order of magnitude."""


def bootstrap_interval(
    values: ArrayLike,
    *,
    method: Method = "bca",
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> tuple[float | None, float | None]:
    """Bootstrap interval of the mean [1]_.

    With G the distribution of means of resamples, ``percentile`` is ``G^-1(alpha), G^-1(1 - alpha)`` for
    ``alpha = (1 - level) / 2``; ``bca`` moves both points to ``Phi(z0 + (z0 + z) / (1 - a (z0 + z)))`` with
    ``z0 = Phi^-1(G(mean))``, ``a = sum d^3 / (6 (sum d^2)^1.5)``, d the deviations from the mean.

    Parameters
    ----------
    values: (n,) one value a task. level: in (0, 1). resamples: at least 1. seed: any integer >= 0.

    Returns
    -------
    low, high: in the unit of the values; ``(None, None)`` below two values or without variation.

    Raises
    ------
    UsageError: a value that is no finite number, another method or level.

    >>> bootstrap_interval([2, 4, 6], method="percentile")
    (2.0, 6.0)
    >>> bootstrap_interval([5, 5, 5])
    (None, None)
    """
    check(level, resamples)
    if method not in ("bca", "percentile"):
        raise UsageError(f"bootstrap method {method!r} is neither 'bca' nor 'percentile'")
    sample = sample_of(values)
    if no_variation([sample]):
        return None, None
    return _resampled([sample], method, level, resamples, seed)


def interval(values: ArrayLike, *, proportion: bool = False, level: float = 0.95, seed: int = 0) -> Interval:
    """The interval that a mean of ``values`` is shown with: Wilson, BCa or a rough percentile interval.

    Parameters
    ----------
    values: (n,) one value a task. proportion: Wilson's interval where all values are 0 or 1.

    Returns
    -------
    Interval: without bounds below two values, and without variation unless it is a proportion.

    Raises
    ------
    UsageError: a value that is no finite number.

    >>> interval([1, 1, 0, 1], proportion=True).method
    'wilson'
    >>> interval([0.5]).reason
    'at least 2 values are needed to see variation, found 1'
    """
    check(level)
    sample = sample_of(values)
    if proportion and len(sample) > 1 and np.isin(sample, (0.0, 1.0)).all():
        low, high = wilson_interval(int(sample.sum()), len(sample), level=level)
        return Interval(low, high, "wilson", len(sample), rough=len(sample) < ROUGH_BELOW)
    return _interval([sample], level, seed)


def difference_interval(
    a: ArrayLike, b: ArrayLike, *, paired: bool = True, level: float = 0.95, seed: int = 0
) -> Interval:
    """Interval of ``mean(a) - mean(b)``: of the differences where ``paired``, else of two samples.

    Two samples are resampled apart; their BCa acceleration is ``sum U^3 / n^3`` over both, divided by
    ``6 (sum U^2 / n^2)^1.5``, U the deviations from the sample's own mean, negated in b.

    Raises
    ------
    UsageError: paired samples of unequal length, or a value that is no finite number.

    >>> difference_interval([3, 5, 9], [1, 2, 3], paired=True)
    Interval(low=2.0, high=6.0, method='percentile', n=3, reason='', rough=True)
    """
    check(level)
    first, second = sample_of(a, "a"), sample_of(b, "b")
    if paired:
        return _interval([differences_of(first, second)], level, seed)
    return _interval([first, second], level, seed)


def two_level_interval(
    groups: Sequence[ArrayLike], *, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Interval:
    """Percentile interval of the mean of task means, seeds resampled inside resampled tasks [3]_.

    Slightly wide: the spread between seeds enters through the task means and once more through the resampling
    inside a task.

    Parameters
    ----------
    groups: for each task the values of its seeds; as many or as few as there are.

    Raises
    ------
    UsageError: a task without values, or a value that is no finite number.

    >>> two_level_interval([[1, 1], [3, 3]])
    Interval(low=1.0, high=3.0, method='percentile', n=2, reason='', rough=True)
    """
    check(level, resamples)
    samples = [sample_of(group, f"task {index}") for index, group in enumerate(groups)]
    if empty := [index for index, sample in enumerate(samples) if not len(sample)]:
        raise UsageError(f"task {empty[0]} has no values: leave it out")
    if len(samples) < 2:
        return Interval(
            None, None, n=len(samples), reason=f"at least 2 tasks are needed, found {len(samples)}"
        )
    if reason := no_variation([np.concatenate(samples)]):
        return Interval(None, None, n=len(samples), reason=reason)
    sizes = np.array([len(sample) for sample in samples])
    starts = np.cumsum(sizes) - sizes
    pool, slots, rng = np.concatenate(samples), np.arange(sizes.max()), np.random.default_rng(seed)
    means = []
    for rows in chunks(resamples, len(samples) * int(sizes.max())):
        task = rng.integers(0, len(samples), (rows, len(samples)))
        drawn = (rng.random((*task.shape, len(slots))) * sizes[task][..., None]).astype(np.int64)
        used = slots < sizes[task][..., None]
        totals = np.where(used, pool[starts[task][..., None] + drawn], 0.0).sum(axis=2)
        means.append((totals / sizes[task]).mean(axis=1))
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), "percentile", len(samples), rough=len(samples) < ROUGH_BELOW)


def bootstrap_sd(values: ArrayLike, *, exact: bool = False, resamples: int = 10_000, seed: int = 0) -> float:
    """Standard deviation of the mean over resamples (population SD, ddof 0).

    ``exact`` is over all n^n resamples, which is ``sqrt(sum d^2) / n``, d the deviations from the mean.

    Raises
    ------
    UsageError: no values, or a value that is no finite number.

    >>> round(bootstrap_sd([0.1, 0.2, 0.3], exact=True), 7)
    0.0471405
    """
    check(0.95, resamples)
    sample = sample_of(values)
    if not len(sample):
        raise UsageError("a bootstrap needs at least one value, found none")
    if exact:
        return float(sample.std() / math.sqrt(len(sample)))
    return float(_resampled_means(sample, resamples, np.random.default_rng(seed)).std())


def wilson_interval(successes: int, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a proportion [4]_.

    ``(p + z^2 / 2n +- z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)`` for ``p = successes / n``.

    >>> [round(bound, 3) for bound in wilson_interval(10, 10)]
    [0.722, 1.0]
    """
    check(level)
    if not 0 <= successes <= n or n < 1:
        raise UsageError(f"a proportion needs 0 <= successes <= n and n >= 1, found {successes} of {n}")
    z, p = quantile_z(level), successes / n
    middle = p + z * z / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if successes == 0 else (middle - half) / scale
    high = 1.0 if successes == n else (middle + half) / scale
    return low, high


def _interval(samples: Sequence[Floats], level: float, seed: int) -> Interval:
    """Of the mean of one sample, or of the first mean minus the second."""
    n = min(map(len, samples))
    if reason := no_variation(samples):
        return Interval(None, None, n=n, reason=reason)
    method: Method = "percentile" if n < ROUGH_BELOW else "bca"
    bounds = _expanded(samples, level) if n >= EXPAND_FROM else None
    low, high = bounds or _resampled(samples, method, level, 10_000, seed)
    return Interval(low, high, method, n, rough=n < ROUGH_BELOW)


def _resampled(
    samples: Sequence[Floats], method: Method, level: float, resamples: int, seed: int
) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    means = _resampled_means(samples[0], resamples, rng)
    if len(samples) > 1:
        means -= _resampled_means(samples[1], resamples, rng)
    observed = _difference(samples)
    at = ((1 - level) / 2, (1 + level) / 2)
    if method == "bca":
        tie = TIE * float(np.abs(means).max())
        below = np.count_nonzero(means < observed - tie) + np.count_nonzero(means <= observed + tie)
        k2, k3, _ = _cumulants(samples)
        if 0 < below < 2 * resamples:  # else the mean is outside its own resamples: too few to correct by
            at = _corrected(below / (2 * resamples), k3 / (6 * k2**1.5), level)
    low, high = np.percentile(means, [100 * at[0], 100 * at[1]])
    return float(low), float(high)


def _resampled_means(sample: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    n = len(sample)
    # An index matrix drawn row by row is the same stream whatever the size of a chunk.
    return np.concatenate(
        [sample[rng.integers(0, n, (rows, n))].mean(axis=1) for rows in chunks(resamples, n)]
    )


def _corrected(share_below: float, acceleration: float, level: float) -> tuple[float, float]:
    """Where BCa reads the resampling distribution instead of at alpha and 1 - alpha."""
    bias = NORMAL.inv_cdf(share_below)
    low, high = (
        NORMAL.cdf(bias + (bias + z) / (1 - acceleration * (bias + z)))
        for z in (-quantile_z(level), quantile_z(level))
    )
    return low, high


def _expanded(samples: Sequence[Floats], level: float) -> tuple[float, float] | None:
    """BCa from the Cornish-Fisher expansion of the resampling distribution [2]_; None where it is too coarse.

    ``x(p) = z + g (z^2 - 1) / 6 + k (z^3 - 3z) / 24 - g^2 (2z^3 - 5z) / 36`` in standard errors with
    ``z = Phi^-1(p)``, g and k the skewness and excess kurtosis of the resampled mean;
    ``G(mean) = 1/2 + phi(0) g / 6``.
    """
    k2, k3, k4 = _cumulants(samples)
    g, k, error = k3 / k2**1.5, k4 / k2**2, math.sqrt(k2)
    observed = _difference(samples)
    bounds = []
    for p in _corrected(0.5 + g / 6 / math.sqrt(2 * math.pi), g / 6, level):
        z = NORMAL.inv_cdf(p)
        third = abs(k * (z**3 - 3 * z) / 24) + abs(g * g * (2 * z**3 - 5 * z) / 36)
        if third > EXPANSION_ERROR:
            return None
        x = z + g * (z * z - 1) / 6 + k * (z**3 - 3 * z) / 24 - g * g * (2 * z**3 - 5 * z) / 36
        bounds.append(observed + error * x)
    return bounds[0], bounds[1]


def _difference(samples: Sequence[Floats]) -> float:
    return float(samples[0].mean()) - (float(samples[1].mean()) if len(samples) > 1 else 0.0)


def _cumulants(samples: Sequence[Floats]) -> tuple[float, float, float]:
    """Second to fourth cumulant of the resampled mean (of the first minus the second)."""
    k2 = k3 = k4 = 0.0
    for sign, sample in zip((1, -1), samples, strict=False):
        n, d = len(sample), sample - sample.mean()
        square = d * d
        variance = float(square.mean())
        k2 += variance / n
        k3 += sign * float((square * d).mean()) / n**2
        k4 += (float((square * square).mean()) - 3 * variance**2) / n**3
    return k2, k3, k4
