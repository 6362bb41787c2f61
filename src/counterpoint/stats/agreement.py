"""Do two judges agree: on categories (Cohen's kappa), on a ranking of methods (Kendall's tau).

.. [1] Kendall. The treatment of ties in ranking problems. Biometrika 33, 1945.
.. [2] Cohen. Weighted kappa. Psychol. Bull. 70, 1968.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterpoint.errors import UsageError
from counterpoint.score import Score
from counterpoint.stats.sample import TIE, Floats, check, chunks, sample_of

__all__ = ["cohen_kappa", "kendall_tau"]


def kendall_tau(
    x: ArrayLike, y: ArrayLike, *, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Score:
    """Kendall's tau-b [1]_ between two rankings of m methods, with an interval over tasks.

    ``tau_b = sum_{i<j} s_ij t_ij / sqrt(sum s_ij^2 sum t_ij^2)``, s and t the signs of the differences
    between methods i and j. With (tasks, m) values methods are ranked by their means, and tasks are
    resampled: the same ones in x and y where both have tasks.

    Parameters
    ----------
    x, y: (m,) one value a method, or (tasks, m).

    Returns
    -------
    Score: in [-1, 1]; parts methods, and with tasks: tasks, low, high (percentile). Undefined below two
    methods and where all methods of a side tie.

    Raises
    ------
    UsageError: other numbers of methods or tasks in x and y, or a value that is no finite number.

    >>> round(kendall_tau([1, 2, 3], [1, 3, 2]).value, 4)
    0.3333
    """
    check(level, resamples)
    sides = [_methods(x, "x"), _methods(y, "y")]
    methods = sides[0].shape[1]
    if sides[1].shape[1] != methods:
        raise UsageError(
            f"x ranks {methods} methods and y {sides[1].shape[1]}: they have to be the same ones"
        )
    tau = float(_tau(*(side.mean(axis=0, keepdims=True) for side in sides))[0])
    if math.isnan(tau):
        return Score.undefined("a ranking needs two methods that do not tie")
    tasks = sorted({len(side) for side in sides if len(side) > 1})
    if len(tasks) > 1:
        raise UsageError(f"x has {len(sides[0])} tasks and y {len(sides[1])}: they have to be the same ones")
    parts: dict[str, int | float] = {"methods": methods}
    if tasks:
        n, rng, taus = tasks[0], np.random.default_rng(seed), []
        for rows in chunks(resamples, n * methods):
            drawn = rng.integers(0, n, (rows, n))
            counts = np.stack([np.bincount(row, minlength=n) for row in drawn]) / n
            means = [counts @ side if len(side) > 1 else np.repeat(side, rows, axis=0) for side in sides]
            taus.append(_tau(*means))
        low, high = np.nanquantile(np.concatenate(taus), [(1 - level) / 2, (1 + level) / 2])
        parts.update(tasks=n, low=float(low), high=float(high))
    return Score(tau, parts)


def cohen_kappa(table: ArrayLike, *, weights: Literal["linear", "quadratic"] | None = None) -> Score:
    """Cohen's kappa [2]_: agreement of two raters beyond chance, 1 if perfect, 0 if as by chance.

    ``1 - sum w_ij o_ij / sum w_ij e_ij``, o the shares of ``table``, e the products of its margins, w_ij = 1
    off the diagonal, or ``|i - j|`` (linear), or ``(i - j)^2`` (quadratic).

    Parameters
    ----------
    table: (k, k) counts; rows are the first rater's categories, columns the second's.

    Returns
    -------
    Score: at most 1; parts observed, expected (disagreement, weighted), n. Undefined for an empty table and
    where both raters use one and the same category only.

    Raises
    ------
    UsageError: a table that is not square, or holds no counts.

    >>> round(cohen_kappa([[20, 5], [10, 15]]).value, 12)
    0.4
    """
    counts = np.asarray(table, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise UsageError(f"a table of agreement is (k, k), found shape {counts.shape}")
    if not np.isfinite(counts).all() or (counts < 0).any():
        raise UsageError("a table of agreement holds counts, finite and at least 0")
    if weights not in (None, "linear", "quadratic"):
        raise UsageError(f"weights {weights!r} are neither 'linear' nor 'quadratic'")
    n = float(counts.sum())
    if not n:
        return Score.undefined("the table is empty: nothing was rated by both")
    shares, steps = counts / n, np.arange(len(counts))
    distance = np.abs(steps[:, None] - steps)
    weight = {None: distance > 0, "linear": distance, "quadratic": distance**2}[weights]
    observed = float((weight * shares).sum())
    expected = float((weight * np.outer(shares.sum(axis=1), shares.sum(axis=0))).sum())
    if not expected:
        return Score.undefined("both raters use one category only: chance alone agrees fully")
    return Score(1 - observed / expected, {"observed": observed, "expected": expected, "n": n})


def _methods(values: ArrayLike, name: str) -> Floats:
    array: NDArray[Any] = np.asarray(values)
    flat = sample_of(array.reshape(-1), name)
    if array.ndim not in (1, 2) or not flat.size:
        raise UsageError(f"{name} has shape {array.shape}: (methods,) or (tasks, methods) is expected")
    return flat.reshape(-1, array.shape[-1])


def _tau(x: Floats, y: Floats) -> Floats:
    """tau-b of every row of two (rows, methods) arrays; NaN where a row ties throughout."""
    signs = []
    for side in (x, y):
        pairs = list(combinations(range(side.shape[1]), 2))
        i, j = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        gap, scale = side[:, i] - side[:, j], np.abs(side).max(axis=1, keepdims=True)
        signs.append(np.where(np.abs(gap) <= TIE * scale, 0.0, np.sign(gap)))
    s, t = signs
    with np.errstate(invalid="ignore"):
        tau: Floats = (s * t).sum(axis=1) / np.sqrt((s * s).sum(axis=1) * (t * t).sum(axis=1))
    return tau
