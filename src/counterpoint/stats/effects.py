"""How large is a difference, and how many tasks would show it.

.. [1] Cliff. Dominance statistics: ordinal analyses to answer ordinal questions. Psychol. Bull. 114, 1993.
.. [2] Hedges. Distribution theory for Glass's estimator of effect size. J. Educ. Stat. 6, 1981.
.. [3] Guenther. Sample size formulas for normal theory t tests. Am. Stat. 35, 1981.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from counterpoint.errors import UsageError
from counterpoint.score import Score
from counterpoint.stats.sample import NORMAL, differences_of, no_variation, quantile_z, sample_of

__all__ = ["cliffs_delta", "minimum_detectable_difference", "n_to_decide", "standardized_difference"]


def cliffs_delta(a: ArrayLike, b: ArrayLike) -> Score:
    """Cliff's delta ``P(a > b) - P(a < b)`` over all pairs of a value of a and one of b [1]_.

    Returns
    -------
    Score: in [-1, 1], 0 where neither side tends to be larger. Undefined where a side is empty.

    >>> cliffs_delta([1, 2, 3], [2, 3, 4]).value.__round__(4)
    -0.5556
    """
    first, second = sample_of(a, "a"), np.sort(sample_of(b, "b"))
    if not len(first) or not len(second):
        return Score.undefined("Cliff's delta needs values on both sides")
    above = int(np.searchsorted(second, first, side="left").sum())
    below = len(first) * len(second) - int(np.searchsorted(second, first, side="right").sum())
    return Score((above - below) / (len(first) * len(second)), {"above": above, "below": below})


def standardized_difference(a: ArrayLike, b: ArrayLike, *, paired: bool = False) -> Score:
    """Difference of means in standard deviations: Hedges' g [2]_, or d_z where ``paired``.

    ``g = (1 - 3 / (4 (na + nb) - 9)) (mean(a) - mean(b)) / s``, s the pooled standard deviation;
    ``d_z = mean(a - b) / sd(a - b)``.

    Returns
    -------
    Score: 0 is no difference, 0.2 small, 0.8 large by custom; part uncorrected (d). Undefined below two
    values a side and without variation.

    Raises
    ------
    UsageError: paired samples of unequal length, or a value that is no finite number.

    >>> round(standardized_difference([2, 4, 6], [1, 2, 3]).value, 4)
    1.0119
    >>> standardized_difference([2, 4, 6], [1, 2, 3], paired=True).value
    2.0
    """
    first, second = sample_of(a, "a"), sample_of(b, "b")
    samples = [differences_of(first, second)] if paired else [first, second]
    if reason := no_variation(samples):
        return Score.undefined(reason)
    freedom = sum(map(len, samples)) - len(samples)
    spread = math.sqrt(sum(float(((sample - sample.mean()) ** 2).sum()) for sample in samples) / freedom)
    d = float(first.mean() - second.mean()) / spread
    correction = 1.0 if paired else 1 - 3 / (4 * freedom - 1)
    return Score(d * correction, {"uncorrected": d})


def minimum_detectable_difference(
    sd: float, n: int, *, power: float = 0.8, level: float = 0.95
) -> float | None:
    """The smallest true mean difference that n pairs show with probability ``power`` [3]_.

    ``(z_{1 - alpha / 2} + z_power) sd / sqrt(n - z_{1 - alpha / 2}^2 / 2)`` with ``alpha = 1 - level``; the
    last term makes up for the t distribution. None where n is too small for any.

    >>> round(minimum_detectable_difference(1.0, 34), 3)
    0.495
    """
    if not sd >= 0:
        raise UsageError(f"a standard deviation is at least 0, found {sd}")
    z = quantile_z(level)
    left = n - z * z / 2
    return (z + _power(power)) * sd / math.sqrt(left) if left > 0 else None


def n_to_decide(mean: float, sd: float, *, power: float = 0.8, level: float = 0.95) -> int | None:
    """Pairs needed to show a true mean difference with probability ``power``: the inverse of the above.

    None where the mean is 0: no number of pairs shows a difference that is not there.

    >>> n_to_decide(0.5, 1.0)
    34
    """
    if not mean:
        return None
    z = quantile_z(level)
    return max(2, math.ceil(((z + _power(power)) * sd / mean) ** 2 + z * z / 2))


def _power(power: float) -> float:
    if not 0 < power < 1:
        raise UsageError(f"power {power} is not between 0 and 1")
    return NORMAL.inv_cdf(power)
