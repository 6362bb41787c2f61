"""What every statistic takes: a sample of finite numbers, or a message that names the one that is not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterpoint.errors import UsageError

__all__ = [
    "NORMAL",
    "TIE",
    "Floats",
    "check",
    "chunks",
    "differences_of",
    "no_variation",
    "quantile_z",
    "sample_of",
]

Floats = NDArray[np.float64]

NORMAL = NormalDist()
CHUNK = 1_000_000
"""Numbers drawn at a time: memory stays flat however many values and resamples there are."""
TIE = 1e-12
"""Numbers closer than this share of their scale are equal: sums in another order differ by rounding."""


def sample_of(values: ArrayLike, name: str = "values") -> Floats:
    """A flat array of finite floats; a UsageError names the first index that holds none."""
    array: NDArray[Any] = np.asarray(values)
    if array.ndim != 1:
        raise UsageError(f"{name} has shape {array.shape}: one number a task is expected")
    try:
        floats = array.astype(np.float64)
    except (TypeError, ValueError):
        floats = np.array([_float(value) for value in array.tolist()])
    if len(bad := np.flatnonzero(~np.isfinite(floats))):
        raise UsageError(
            f"{name}[{bad[0]}] is {array.tolist()[bad[0]]!r}: leave out what is undefined before testing"
        )
    return floats


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def differences_of(a: Floats, b: Floats) -> Floats:
    """``a - b``, task by task."""
    if len(a) != len(b):
        raise UsageError(f"paired samples have one value a task each, found {len(a)} and {len(b)}")
    return a - b


def check(level: float, resamples: int = 1) -> None:
    """A UsageError for a level outside (0, 1) or no resamples."""
    if not 0 < level < 1:
        raise UsageError(f"level {level} is not between 0 and 1: 0.95 means 95 %")
    if resamples < 1:
        raise UsageError(f"at least 1 resample is needed, found {resamples}")


def quantile_z(level: float) -> float:
    """The normal quantile z that ``level`` of the distribution lies within: 1.96 for 0.95."""
    check(level)
    return NORMAL.inv_cdf((1 + level) / 2)


def no_variation(samples: Sequence[Floats]) -> str:
    """Why nothing can be said about the means of ``samples``; empty where one of them varies."""
    n = min(map(len, samples))
    if n < 2:
        return f"at least 2 values are needed to see variation, found {n}"
    if all(np.ptp(sample) <= TIE * np.abs(sample).max() for sample in samples):
        return f"all {n} values are equal: without variation there is nothing to go by"
    return ""


def chunks(rows: int, width: int) -> Iterator[int]:
    """``rows`` in pieces of at most CHUNK numbers of ``width`` a row."""
    size = max(1, CHUNK // max(1, width))
    for start in range(0, rows, size):
        yield min(size, rows - start)
