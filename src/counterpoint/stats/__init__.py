"""Is it a difference? Intervals, tests and effect sizes for the mean of a metric over tasks.

Conventions
-----------
* The unit is the task. Seeds of one task are averaged first, or resampled inside it (`two_level_interval`).
* A value is a finite number: None and NaN are refused, for only the caller knows why a value is missing.
* Differences are ``a - b``. Every p-value is two-sided unless said otherwise; ``level`` is 0.95 for 95 %.
* The same values and seed give the same bytes.
"""

from counterpoint.stats.agreement import cohen_kappa, kendall_tau
from counterpoint.stats.changes import paired_proportion_interval
from counterpoint.stats.effects import (
    cliffs_delta,
    minimum_detectable_difference,
    n_to_decide,
    standardized_difference,
)
from counterpoint.stats.intervals import (
    Interval,
    bootstrap_interval,
    bootstrap_sd,
    difference_interval,
    interval,
    two_level_interval,
    wilson_interval,
)
from counterpoint.stats.significance import (
    equivalence_test,
    holm,
    sign_flip_test,
    sign_flip_tests,
    welch_test,
)

__all__ = [
    "Interval",
    "bootstrap_interval",
    "bootstrap_sd",
    "cliffs_delta",
    "cohen_kappa",
    "difference_interval",
    "equivalence_test",
    "holm",
    "interval",
    "kendall_tau",
    "minimum_detectable_difference",
    "n_to_decide",
    "paired_proportion_interval",
    "sign_flip_test",
    "sign_flip_tests",
    "standardized_difference",
    "two_level_interval",
    "welch_test",
    "wilson_interval",
]
