"""Tests of a difference: sign flips, Welch's t, equivalence, and Holm's correction for many at once.

Differences from the paper
--------------------------
Sign flips are enumerated by meeting in the middle, every half pattern with every other half, so that 24
differences cost two sorted arrays of 4,096 sums instead of 16 million patterns.

.. [1] Efron, Tibshirani. An Introduction to the Bootstrap, 1993: 15.2 permutation.
.. [2] Holm. A simple sequentially rejective multiple test procedure. Scand. J. Statist. 6, 1979.
.. [3] Welch. The generalization of Student's problem. Biometrika 34, 1947.
.. [4] Schuirmann. A comparison of the two one-sided tests procedure. J. Pharmacokinet. Biopharm. 15, 1987.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterpoint.errors import UsageError
from counterpoint.score import Score
from counterpoint.stats.sample import TIE, Floats, check, chunks, no_variation, sample_of

__all__ = ["equivalence_test", "holm", "sign_flip_test", "sign_flip_tests", "welch_test"]

EXACT_UP_TO = 24
"""Differences other than 0 whose sign flips are all enumerated."""


def sign_flip_test(differences: ArrayLike, *, resamples: int = 10_000, seed: int = 0) -> Score:
    """Paired permutation test: could the mean be this far from 0 if each difference's sign were a coin toss?

    ``p = #{signs s: |sum s_i d_i| >= |sum d_i|} / 2^n`` [1]_, exact up to 24 differences other than 0; above
    that ``(1 + hits) / (1 + resamples)`` from random signs.

    Parameters
    ----------
    differences: (n,) one a task, in the order a minus b.

    Returns
    -------
    Score: p in (0, 1]; parts mean, n, exact (1 or 0). Undefined without differences.

    Raises
    ------
    UsageError: a difference that is no finite number.

    >>> sign_flip_test([0.1, 0.2, 0.3]).value
    0.25
    """
    sample = sample_of(differences)
    if not len(sample):
        return Score.undefined("a sign-flip test needs at least one pair, found none")
    p, exact = sign_flip_tests(sample[:, None], resamples=resamples, seed=seed)
    return Score(float(p[0]), {"mean": float(sample.mean()), "n": len(sample), "exact": int(exact[0])})


def sign_flip_tests(
    columns: ArrayLike, *, resamples: int = 10_000, seed: int = 0
) -> tuple[Floats, NDArray[np.bool_]]:
    """`sign_flip_test` of every column of ``(n, m)`` at once, the random signs shared; a missing pair is 0.

    Returns
    -------
    p, exact: (m,) each. A difference of 0 keeps its sign whatever the coin says, so that it changes no p.

    >>> p, exact = sign_flip_tests([[0.1, 1], [0.2, 0], [0.3, 0]])
    >>> p.tolist(), exact.tolist()
    ([0.25, 1.0], [True, True])
    """
    check(0.95, resamples)
    table = np.asarray(columns, dtype=np.float64)
    n, width = table.shape
    edges = np.abs(table.sum(axis=0)) - TIE * np.abs(table).sum(axis=0)
    exact = np.count_nonzero(table, axis=0) <= EXACT_UP_TO
    p = np.ones(width)
    for column in np.flatnonzero(exact):
        p[column] = _exact_sign_flips(table[table[:, column] != 0, column], edges[column])
    sampled = np.flatnonzero(~exact)
    if len(sampled):
        rng, chosen, hits = np.random.default_rng(seed), table[:, sampled], np.zeros(len(sampled), np.int64)
        totals = chosen.sum(axis=0)
        for rows in chunks(resamples, n // 4):  # taller than elsewhere: the threads of a product share them
            heads = np.unpackbits(rng.integers(0, 256, (rows, -(-n // 8)), dtype=np.uint8), axis=1, count=n)
            hits += (np.abs(2 * (heads.astype(np.float64) @ chosen) - totals) >= edges[sampled]).sum(axis=0)
        p[sampled] = (1 + hits) / (1 + resamples)
    return p, exact


def welch_test(a: ArrayLike, b: ArrayLike) -> Score:
    """Welch's t-test of two independent samples with unequal variances [3]_.

    ``t = (mean(a) - mean(b)) / sqrt(va / na + vb / nb)``, degrees of freedom by Welch and Satterthwaite.

    Returns
    -------
    Score: two-sided p; parts mean (of a minus b), t, df. Undefined below two values a side and without
    variation.

    >>> round(welch_test([1, 2, 3], [2, 3, 4]).value, 3)
    0.288
    """
    samples = [sample_of(a, "a"), sample_of(b, "b")]
    if reason := no_variation(samples):
        return Score.undefined(reason)
    mean, error, df = _mean_and_error(samples)
    t = mean / error
    return Score(min(2 * _student(df, -abs(t)), 1.0), {"mean": mean, "t": t, "df": df})


def equivalence_test(differences: ArrayLike, delta: float, *, minus: ArrayLike | None = None) -> Score:
    """Two one-sided t-tests (TOST) [4]_: is the mean difference inside ``(-delta, delta)``?

    ``p = max(P(T >= (mean + delta) / se), P(T <= (mean - delta) / se))`` with ``se = sd / sqrt(n)`` and
    n - 1 degrees of freedom. A small p says that the two sides are the same for all that matters.

    Parameters
    ----------
    differences: (n,) one a task. delta: the largest difference that does not matter, above 0.
    minus: an independent sample to subtract, for sides that are not paired; se and df are then Welch's.

    Returns
    -------
    Score: p; parts mean, n, p_low, p_high, delta. Undefined below two values and without variation.

    Raises
    ------
    UsageError: a delta that is not above 0, or a difference that is no finite number.

    >>> round(equivalence_test([-0.1, 0.0, 0.1], 0.5).value, 4)
    0.0065
    """
    if not (delta > 0 and math.isfinite(delta)):
        raise UsageError(f"delta is the largest difference that does not matter, above 0: found {delta}")
    samples = [sample_of(differences)] + ([] if minus is None else [sample_of(minus, "minus")])
    if reason := no_variation(samples):
        return Score.undefined(reason)
    mean, error, df = _mean_and_error(samples)
    low, high = _student(df, -(mean + delta) / error), _student(df, (mean - delta) / error)
    n = min(map(len, samples))
    return Score(max(low, high), {"mean": mean, "n": n, "p_low": low, "p_high": high, "delta": delta})


def holm(p_values: Iterable[float | None]) -> Floats:
    """Holm's step-down adjustment: the family-wise error of ``adjusted <= alpha`` is at most alpha [2]_.

    ``adjusted_(i) = max_{j <= i} min(1, (m - j + 1) p_(j))`` over the m sorted p-values.

    Parameters
    ----------
    p_values: in [0, 1]; None or NaN is a test that was not made: not counted, NaN in the result.

    >>> holm([0.01, None, 0.04, 0.03]).tolist()
    [0.03, nan, 0.06, 0.06]
    """
    p = np.array([math.nan if value is None else value for value in p_values], dtype=np.float64)
    if len(bad := np.flatnonzero((p < 0) | (p > 1))):
        raise UsageError(f"p-value {bad[0]} is {p[bad[0]]}: p-values lie in [0, 1]")
    made = np.flatnonzero(~np.isnan(p))
    order = made[np.argsort(p[made], kind="stable")]
    steps = np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1))
    adjusted = np.full(len(p), math.nan)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def _exact_sign_flips(differences: Floats, edge: float) -> float:
    """Share of the 2^n sign patterns whose absolute sum reaches ``edge``."""
    left, right = (np.zeros(1), np.zeros(1))
    for index, value in enumerate(differences.tolist()):
        if index % 2:
            right = np.concatenate([right + value, right - value])
        else:
            left = np.concatenate([left + value, left - value])
    right.sort()
    above = right.size - np.searchsorted(right, edge - left, side="left")
    below = np.searchsorted(right, -edge - left, side="right")
    # Where the edge is 0 or less every pattern reaches it, those on both sides twice.
    return min(1.0, float((above + below).sum()) / 2.0 ** len(differences))


def _mean_and_error(samples: Sequence[Floats]) -> tuple[float, float, float]:
    """Mean (of the first minus the second), its standard error and degrees of freedom."""
    shares = [float(sample.var(ddof=1)) / len(sample) for sample in samples]
    mean = float(samples[0].mean()) - sum(float(sample.mean()) for sample in samples[1:])
    freedom = sum(share**2 / (len(sample) - 1) for share, sample in zip(shares, samples, strict=True))
    return mean, math.sqrt(sum(shares)), sum(shares) ** 2 / freedom


def _student(df: float, t: float) -> float:
    """P(T <= t)."""
    from scipy.special import stdtr

    return float(stdtr(df, t))
