"""The interval of a paired change: by hand, with McNemar's test, and by coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest

from counterpoint.errors import UsageError
from counterpoint.stats import paired_proportion_interval

Z = 1.959963984540054


def test_without_any_change_the_interval_is_that_of_the_closed_form():
    bound = Z**2 / (40 + Z**2)
    assert paired_proportion_interval(0, 0, 40) == pytest.approx((-bound, bound), abs=1e-12)


@pytest.mark.parametrize(("gained", "lost", "n"), [(12, 2, 50), (5, 0, 20), (20, 0, 20), (3, 4, 10)])
def test_swapping_gains_and_losses_turns_the_interval_around(gained, lost, n):
    low, high = paired_proportion_interval(gained, lost, n)
    assert paired_proportion_interval(lost, gained, n) == pytest.approx((-high, -low), abs=1e-9)
    assert low <= (gained - lost) / n <= high


@pytest.mark.parametrize("lost", range(12))
@pytest.mark.parametrize("gained", [0, 1, 4, 9, 15])
def test_zero_is_outside_iff_mcnemars_test_rejects(gained, lost):
    low, high = paired_proportion_interval(gained, lost, 60)
    rejects = gained + lost > 0 and abs(gained - lost) / math.sqrt(gained + lost) > Z
    assert (low > 0 or high < 0) == rejects


def test_it_holds_the_true_change_in_about_95_percent_of_samples():
    rng, held = np.random.default_rng(0), 0
    for gained, lost, _ in rng.multinomial(40, [0.1, 0.05, 0.85], size=2000):
        low, high = paired_proportion_interval(int(gained), int(lost), 40)
        held += low <= 0.05 <= high
    assert 0.93 <= held / 2000 <= 0.98


@pytest.mark.parametrize(("gained", "lost", "n"), [(-1, 0, 5), (3, 3, 5), (0, 0, 0)])
def test_counts_that_cannot_be_are_refused(gained, lost, n):
    with pytest.raises(UsageError, match="at most all can change"):
        paired_proportion_interval(gained, lost, n)
