"""Statistics: oracles by hand, agreement with scipy, and what is refused or undefined."""

import math
import tracemalloc
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference
from sklearn.metrics import cohen_kappa_score

from counterpoint import stats
from counterpoint.errors import UsageError
from counterpoint.stats import intervals, significance

SAMPLES = {
    "normal": np.random.default_rng(1).normal(size=40),
    "skewed": np.random.default_rng(2).exponential(size=25),
    "tied": np.random.default_rng(3).integers(0, 4, 60),
    "tiny": np.array([1.0, 2.0, 4.0]),
}


def close(value, expected):
    return value == pytest.approx(expected, abs=1e-12, rel=1e-12)


# Bootstrap


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_the_bootstrap_interval_is_that_of_scipy_on_the_same_resamples(name, method):
    expected = reference.bootstrap(
        (SAMPLES[name],),
        np.mean,
        n_resamples=10_000,
        method={"bca": "BCa", "percentile": "percentile"}[method],
        random_state=np.random.default_rng(7),
    ).confidence_interval
    assert close(stats.bootstrap_interval(SAMPLES[name], method=method, seed=7), tuple(expected))


def test_an_unpaired_difference_interval_is_that_of_scipy_on_the_same_resamples():
    a, b = SAMPLES["skewed"], SAMPLES["normal"]
    expected = reference.bootstrap(
        (a, b),
        lambda x, y, axis: x.mean(axis) - y.mean(axis),
        n_resamples=10_000,
        method="BCa",
        random_state=np.random.default_rng(0),
    ).confidence_interval
    found = stats.difference_interval(a, b, paired=False)
    assert close((found.low, found.high), tuple(expected))


def test_a_paired_difference_interval_is_the_interval_of_the_differences():
    a, b = np.arange(12.0) ** 2, np.arange(12.0)
    assert stats.difference_interval(a, b) == stats.interval(a - b)


def test_the_chunks_of_the_index_matrix_do_not_change_the_interval(monkeypatch):
    whole = stats.bootstrap_interval(SAMPLES["normal"])
    monkeypatch.setattr("counterpoint.stats.sample.CHUNK", 999)
    assert stats.bootstrap_interval(SAMPLES["normal"]) == whole


@pytest.mark.parametrize(
    ("values", "reason"),
    [([], "found 0"), ([3.0], "found 1"), ([0.1 + 0.2, 0.3], "all 2 values are equal"), ([5] * 30, "all 30")],
)
def test_there_is_no_interval_below_two_values_or_without_variation(values, reason):
    found = stats.interval(values)
    assert (found.low, found.high, found.n) == (None, None, len(values))
    assert reason in found.reason
    assert stats.bootstrap_interval(values) == (None, None)


@pytest.mark.parametrize(
    ("n", "method", "rough"), [(9, "percentile", True), (10, "bca", False), (300, "bca", False)]
)
def test_the_interval_is_rough_below_ten_values(n, method, rough):
    found = stats.interval(np.arange(n) % 7)
    assert (found.method, found.rough, found.n) == (method, rough, n)


@pytest.mark.parametrize(("n", "rough"), [(5, True), (20, False)])
def test_a_proportion_gets_the_wilson_interval_even_where_all_are_right(n, rough):
    found = stats.interval([1] * n, proportion=True)
    assert (found.method, found.rough) == ("wilson", rough)
    assert (found.low, found.high) == stats.wilson_interval(n, n)


def test_a_proportion_averaged_over_seeds_is_no_proportion():
    assert stats.interval([0, 0.5, 1], proportion=True).method == "percentile"


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.normal(size=2_000),
        lambda rng: rng.exponential(size=2_000),
        lambda rng: rng.beta(0.5, 3, size=2_000),
        lambda rng: (rng.random(2_000) < 0.05) * rng.random(2_000),
    ],
)
def test_the_expansion_of_large_samples_is_within_the_noise_of_the_resamples_it_replaces(draw):
    sample = np.asarray(draw(np.random.default_rng(5)), dtype=float)
    error = sample.std() / math.sqrt(len(sample))
    expanded = intervals._expanded([sample], 0.95)
    resampled = stats.bootstrap_interval(sample, resamples=20_000)
    assert expanded == pytest.approx(resampled, abs=4 * 0.019 * error)


def test_large_samples_with_one_wild_value_are_resampled_all_the_same():
    wild = np.append(np.arange(299) % 5, 10_000.0)
    assert intervals._expanded([wild], 0.95) is None
    found = stats.interval(wild)
    assert (found.low, found.high) == stats.bootstrap_interval(wild)


def test_the_bootstrap_sd_is_that_of_all_resamples():
    values = [0.1, 0.2, 0.3]
    means = [np.mean(resample) for resample in product(values, repeat=3)]
    assert len(means) == 27
    assert close(stats.bootstrap_sd(values, exact=True), np.std(means))
    assert stats.bootstrap_sd(values, exact=True) == pytest.approx(0.0471405, abs=5e-8)
    assert stats.bootstrap_sd(values) == pytest.approx(0.0471405, rel=0.03)


def test_two_levels_with_one_seed_a_task_are_one_level():
    values = np.arange(30.0)
    found = stats.two_level_interval([[value] for value in values])
    low, high = stats.bootstrap_interval(values, method="percentile")
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.25)


def test_two_levels_weigh_tasks_alike_however_many_seeds_they_have():
    found = stats.two_level_interval([[0.0] * 9, [1.0]] * 20)
    assert (found.low + found.high) / 2 == pytest.approx(0.5, abs=0.02)


def test_seeds_that_disagree_widen_the_two_level_interval():
    steady = stats.two_level_interval([[k, k] for k in range(20)])
    shaky = stats.two_level_interval([[k - 9, k + 9] for k in range(20)])
    assert shaky.high - shaky.low > steady.high - steady.low


@pytest.mark.parametrize(
    ("groups", "reason"), [([], "2 tasks"), ([[1, 2]], "2 tasks"), ([[1, 1], [1]], "equal")]
)
def test_two_levels_need_two_tasks_and_variation(groups, reason):
    assert reason in stats.two_level_interval(groups).reason


def test_a_task_without_seeds_is_refused():
    with pytest.raises(UsageError, match="task 1 has no values"):
        stats.two_level_interval([[1.0], []])


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (10, 10), (3, 7), (37, 400), (1, 1)])
def test_the_wilson_interval_is_that_of_scipy(successes, n):
    expected = reference.binomtest(successes, n).proportion_ci(method="wilson")
    assert close(stats.wilson_interval(successes, n), tuple(expected))


@pytest.mark.parametrize(("successes", "n"), [(-1, 3), (4, 3), (0, 0)])
def test_a_proportion_above_one_or_of_nothing_is_refused(successes, n):
    with pytest.raises(UsageError, match=f"found {successes} of {n}"):
        stats.wilson_interval(successes, n)


def test_ten_thousand_values_are_resampled_in_little_memory():
    tracemalloc.start()
    stats.bootstrap_interval(np.random.default_rng(0).random(10_000), resamples=2_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6


# Tests


def test_three_differences_of_one_sign_have_p_one_quarter():
    found = stats.sign_flip_test([0.1, 0.2, 0.3])
    assert found.value == 0.25
    assert found.parts == {"mean": pytest.approx(0.2), "n": 3, "exact": 1}


@pytest.mark.parametrize(
    "differences",
    [[1.0], [0, 0, 0], [1, -1], [0.1, 0.2, -0.3], [0.3, 0.1, 0.2, 0.0], [-2, 1, 1, 5, 3, 0.5, -0.5, 0.1]],
)
def test_exact_sign_flips_are_the_share_of_all_patterns(differences):
    d = np.array(differences, dtype=float)
    totals = np.array([np.dot(signs, d) for signs in product((1, -1), repeat=len(d))])
    assert stats.sign_flip_test(d).value == np.mean(np.abs(totals) >= abs(d.sum()) - 1e-9)


def test_exact_sign_flips_agree_with_scipy():
    d = np.random.default_rng(4).normal(0.3, 1, 12)
    expected = reference.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert close(stats.sign_flip_test(d).value, expected.pvalue)


def test_many_sign_flips_are_sampled_and_agree_with_the_exact_ones(monkeypatch):
    d = np.random.default_rng(4).normal(0.3, 1, 20)
    exact = stats.sign_flip_test(d)
    monkeypatch.setattr(significance, "EXACT_UP_TO", 0)
    sampled = stats.sign_flip_test(d)
    assert (exact.parts["exact"], sampled.parts["exact"]) == (1, 0)
    assert sampled.value == pytest.approx(exact.value, abs=4 * math.sqrt(exact.value / 10_000))


def test_a_sampled_p_is_never_zero():
    assert stats.sign_flip_test(np.ones(100), resamples=999).value == 0.001


def test_columns_are_tested_as_each_would_be_alone():
    table = np.random.default_rng(6).normal(0.2, 1, (60, 3))
    table[5:, 2] = 0
    p, exact = stats.sign_flip_tests(table)
    assert p.tolist() == [stats.sign_flip_test(table[:, column]).value for column in range(3)]
    assert exact.tolist() == [False, False, True]


def test_welch_agrees_with_scipy():
    a, b = SAMPLES["skewed"], SAMPLES["tied"]
    expected = reference.ttest_ind(a, b, equal_var=False)
    found = stats.welch_test(a, b)
    assert close(
        (found.value, found.parts["t"], found.parts["df"]), (expected.pvalue, expected.statistic, expected.df)
    )


def test_equivalence_agrees_with_two_one_sided_tests_of_scipy():
    d = SAMPLES["normal"] / 10
    low = reference.ttest_1samp(d, -0.05, alternative="greater").pvalue
    high = reference.ttest_1samp(d, 0.05, alternative="less").pvalue
    found = stats.equivalence_test(d, 0.05)
    assert close((found.parts["p_low"], found.parts["p_high"], found.value), (low, high, max(low, high)))


def test_equivalence_of_unpaired_samples_is_two_one_sided_welch_tests():
    a, b = SAMPLES["normal"], SAMPLES["skewed"] - 1
    low = reference.ttest_ind(a + 0.5, b, equal_var=False, alternative="greater").pvalue
    high = reference.ttest_ind(a - 0.5, b, equal_var=False, alternative="less").pvalue
    found = stats.equivalence_test(a, 0.5, minus=b)
    assert close((found.parts["p_low"], found.parts["p_high"]), (low, high))


@pytest.mark.parametrize("delta", [0, -1, math.nan, math.inf])
def test_equivalence_needs_a_delta_above_zero(delta):
    with pytest.raises(UsageError, match="delta"):
        stats.equivalence_test([1, 2, 3], delta)


def test_holm_multiplies_the_smallest_p_by_all_and_never_descends():
    assert stats.holm([0.01, 0.04, 0.03, 0.005]).tolist() == [0.03, 0.06, 0.06, 0.02]
    assert stats.holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    assert stats.holm([]).tolist() == []


def test_holm_does_not_count_tests_that_were_not_made():
    adjusted = stats.holm([None, 0.02, math.nan, 0.03])
    assert np.isnan(adjusted).tolist() == [True, False, True, False]
    assert adjusted[[1, 3]].tolist() == [0.04, 0.04]


def test_holm_refuses_what_is_no_probability():
    with pytest.raises(UsageError, match="p-value 1 is"):
        stats.holm([0.5, 1.5])


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_only_raises_p_values_and_keeps_their_order(p_values):
    adjusted = stats.holm(p_values)
    assert (adjusted >= np.array(p_values)).all()
    assert (np.diff(adjusted[np.argsort(p_values, kind="stable")]) >= 0).all()


# Effects


def test_cliffs_delta_is_the_rescaled_mann_whitney_statistic():
    a, b = SAMPLES["tied"], np.random.default_rng(9).integers(1, 5, 30)
    u = reference.mannwhitneyu(a, b).statistic
    assert close(stats.cliffs_delta(a, b).value, 2 * u / (len(a) * len(b)) - 1)


@pytest.mark.parametrize(
    ("a", "b", "delta"), [([5, 6], [1, 2], 1), ([1, 2], [5, 6], -1), ([1, 2], [1, 2], 0)]
)
def test_cliffs_delta_is_one_where_every_value_of_a_is_larger(a, b, delta):
    assert stats.cliffs_delta(a, b).value == delta


def test_standardized_differences_are_in_standard_deviations():
    # pooled variance (4 + 1) / 2, correction 1 - 3 / 15
    assert close(stats.standardized_difference([2, 4, 6], [1, 2, 3]).value, 2 / math.sqrt(2.5) * 0.8)
    assert close(stats.standardized_difference([2, 4, 6], [1, 2, 3], paired=True).value, 2.0)


def test_the_detectable_difference_needs_as_many_tasks_as_were_used():
    smallest = stats.minimum_detectable_difference(2.0, 50)
    assert stats.n_to_decide(smallest * (1 + 1e-9), 2.0) == 50
    assert stats.n_to_decide(-0.5, 1.0) == stats.n_to_decide(0.5, 1.0) == 34


def test_the_power_of_the_n_to_decide_is_eighty_percent_by_the_noncentral_t():
    n = stats.n_to_decide(0.3, 1.0)
    edge = reference.t.ppf(0.975, n - 1)
    assert reference.nct.sf(edge, n - 1, 0.3 * math.sqrt(n)) == pytest.approx(0.8, abs=0.005)


def test_no_number_of_tasks_decides_about_no_difference():
    assert stats.n_to_decide(0.0, 1.0) is None
    assert stats.minimum_detectable_difference(1.0, 1) is None


# Agreement


@pytest.mark.parametrize(
    ("x", "y"), [([1, 2, 3, 4], [1, 2, 4, 3]), ([1, 1, 2, 3], [3, 1, 1, 2]), ([2, 1], [1, 2])]
)
def test_kendalls_tau_is_that_of_scipy(x, y):
    assert close(stats.kendall_tau(x, y).value, reference.kendalltau(x, y).statistic)


def test_a_ranking_that_every_task_gives_is_certain():
    found = stats.kendall_tau([[1, 2, 3]] * 10, [3, 2, 1])
    assert found.value == -1
    assert found.parts == {"methods": 3, "tasks": 10, "low": -1, "high": -1}


def test_rankings_that_hang_on_few_tasks_get_a_wide_interval():
    x = np.random.default_rng(0).normal([0.0, 0.1, 0.2, 0.3], 2.0, (25, 4))
    found = stats.kendall_tau(x, x + np.random.default_rng(1).normal(size=x.shape))
    assert found.parts["low"] <= found.value <= found.parts["high"]
    assert found.parts["high"] - found.parts["low"] > 0.5


@pytest.mark.parametrize(("x", "y"), [([1], [2]), ([1, 1, 1], [1, 2, 3])])
def test_a_ranking_needs_two_methods_that_do_not_tie(x, y):
    assert stats.kendall_tau(x, y).value is None


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [([1, 2], [1, 2, 3], "2 methods"), ([[1, 2]] * 3, [[1, 2]] * 4, "3 tasks"), ([], [], "shape")],
)
def test_rankings_of_other_methods_or_tasks_are_refused(x, y, message):
    with pytest.raises(UsageError, match=message):
        stats.kendall_tau(x, y)


def test_kappa_is_four_tenths_on_the_textbook_table():
    assert close(stats.cohen_kappa([[20, 5], [10, 15]]).value, 0.4)


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
def test_kappa_is_that_of_scikit_learn(weights):
    rng = np.random.default_rng(8)
    a = rng.integers(0, 4, 200)
    b = np.where(rng.random(200) < 0.6, a, rng.integers(0, 4, 200))
    table = np.zeros((4, 4), dtype=int)
    np.add.at(table, (a, b), 1)
    assert close(stats.cohen_kappa(table, weights=weights).value, cohen_kappa_score(a, b, weights=weights))


@pytest.mark.parametrize(
    ("table", "reason"), [([[0, 0], [0, 0]], "empty"), ([[7, 0], [0, 0]], "one category")]
)
def test_kappa_is_undefined_where_chance_alone_agrees(table, reason):
    assert reason in stats.cohen_kappa(table).reason


@pytest.mark.parametrize(
    ("table", "weights", "message"),
    [([[1, 2, 3]], None, "shape"), ([[1, -1], [0, 1]], None, "counts"), ([[1]], "cubic", "cubic")],
)
def test_what_is_no_table_of_agreement_is_refused(table, weights, message):
    with pytest.raises(UsageError, match=message):
        stats.cohen_kappa(table, weights=weights)


# All of them

ON_VALUES = [
    stats.bootstrap_interval,
    stats.interval,
    stats.bootstrap_sd,
    stats.sign_flip_test,
    lambda values: stats.equivalence_test(values, 1.0),
    lambda values: stats.cliffs_delta(values, [1.0]),
    lambda values: stats.difference_interval([1.0, 2.0, 3.0], values),
    lambda values: stats.kendall_tau(values, [1, 2, 3]),
]


@pytest.mark.parametrize("function", ON_VALUES)
@pytest.mark.parametrize("bad", [None, math.nan, math.inf, "x"])
def test_a_value_that_is_no_number_is_refused_by_its_index(function, bad):
    with pytest.raises(UsageError, match=r"\[1\] is " + str(bad).replace("x", "'x'")):
        function([0.5, bad, 0.7])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stats.bootstrap_interval([1, 2], method="bayes"), "bayes"),
        (lambda: stats.interval([1, 2], level=95), "0.95 means 95 %"),
        (lambda: stats.sign_flip_test([1, 2], resamples=0), "at least 1 resample"),
        (lambda: stats.interval([[1, 2], [3, 4]]), "shape"),
        (lambda: stats.difference_interval([1, 2], [1]), "found 2 and 1"),
        (lambda: stats.n_to_decide(1, 1, power=1), "power"),
        (lambda: stats.minimum_detectable_difference(-1, 5), "standard deviation"),
        (lambda: stats.bootstrap_sd([]), "at least one value"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_in_one_line(call, message):
    with pytest.raises(UsageError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "score",
    [
        stats.sign_flip_test([]),
        stats.equivalence_test([1.0], 1.0),
        stats.equivalence_test([2.0, 2.0], 1.0),
        stats.welch_test([1.0], [1.0, 2.0]),
        stats.welch_test([1.0, 1.0], [2.0, 2.0]),
        stats.cliffs_delta([], [1.0]),
        stats.standardized_difference([1.0, 1.0], [2.0, 2.0]),
    ],
)
def test_what_cannot_be_tested_is_undefined_with_a_reason(score):
    assert score.value is None
    assert score.reason


@pytest.mark.parametrize("n", [30, 500])
def test_the_same_seed_gives_the_same_bytes(n):
    values = np.random.default_rng(n).random(n)
    assert stats.interval(values) == stats.interval(values.tolist())
    assert stats.sign_flip_test(values - 0.5) == stats.sign_flip_test(values - 0.5)
    assert stats.bootstrap_interval(values, seed=1) != stats.bootstrap_interval(values, seed=2)
