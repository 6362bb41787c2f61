"""The report of a forest: correlations beside Forest Match, with accuracy held fixed."""

import numpy as np
import pytest

from counterpoint.metrics.forest_report import Run, _association


def runs(matches, correct):
    return [Run(str(k), "a", "q", right, match, {}) for k, (match, right) in
            enumerate(zip(matches, correct, strict=True))]  # fmt: skip


def association(matches, others, correct):
    values = {str(k): other for k, other in enumerate(others)}
    return _association("upr", values, runs(matches, correct))


def test_a_metric_that_is_accuracy_again_tells_nothing_beside_it():
    rng = np.random.default_rng(0)
    right = [bool(k % 2) for k in range(400)]
    matches = [0.5 * r + 0.1 * rng.random() for r in right]
    others = [0.5 * r + 0.1 * rng.random() for r in right]
    found = association(matches, others, right)
    assert found.correlation > 0.9
    assert abs(found.partial) < 0.15


def test_the_partial_correlation_is_that_of_the_residuals():
    rng = np.random.default_rng(1)
    right = rng.random(50) < 0.5
    x, y = rng.random(50) + right, rng.random(50) - right
    z = np.column_stack([np.ones(50), right])
    left = [v - z @ np.linalg.lstsq(z, v, rcond=None)[0] for v in (x, y)]
    found = association(x.tolist(), y.tolist(), right.tolist())
    assert found.partial == pytest.approx(np.corrcoef(*left)[0, 1])


@pytest.mark.parametrize(
    ("matches", "others", "correct", "correlation", "partial"),
    [
        ([0.1, 0.2], [1, 2], [True, False], None, None),
        ([0.1, 0.1, 0.1], [1, 2, 3], [True, False, True], None, None),
        ([0.1, 0.2, 0.3], [1, 2, 3], [True, True, True], 1, 1),
        ([0.1, 0.2, 0.3], [1, 2, 3], [True, None, True], 1, None),
        ([0.1, 0.1, 0.3], [1, 2, 3], [False, False, True], 0.866025, None),
        ([None, None, None], [1, 2, 3], [True, True, True], None, None),
    ],
)
def test_where_nothing_varies_or_accuracy_explains_all_there_is_no_number(
    matches, others, correct, correlation, partial
):
    found = association(matches, others, correct)
    assert found.correlation == (None if correlation is None else pytest.approx(correlation, abs=1e-6))
    assert found.partial == (None if partial is None else pytest.approx(partial, abs=1e-6))
