"""Comparisons of runs: what is paired, what is concluded, what is refused."""

import json
import math

import numpy as np
import pytest

from counterpoint import stats
from counterpoint.compare import compare
from counterpoint.errors import UsageError
from counterpoint.evaluate import evaluate
from counterpoint.score import Row
from counterpoint.scores import Scores, TraceInfo
from counterpoint.trace import Step, Trace

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def run(name, *, system="team", tasks=None, seeds=None, traces=None, signature=None, **columns):
    """Scores of one system: a column of values a metric, a trace a value."""
    size = len(next(iter(columns.values())))
    tasks, seeds = tasks or LETTERS[:size], seeds or [""] * size
    infos = [
        TraceInfo(name, traces[index] if traces else f"{system}-{index}", system, tasks[index], seeds[index])
        for index in range(size)
    ]
    rows = [
        Row(name, info.trace, system, metric, values[index], "" if values[index] is not None else "no texts",
            signature={"metric": metric, "version": 1, **(signature or {})})
        for index, info in enumerate(infos)
        for metric, values in columns.items()
    ]  # fmt: skip
    return Scores(rows, infos)


def only_row(comparison):
    (row,) = comparison.rows
    return row


# Verdicts


def test_a_difference_is_b_minus_a_over_tasks_whatever_their_order():
    a = run("old", ids=[0.1, 0.2, 0.6], tasks="abc")
    b = run("new", ids=[0.9, 0.2, 0.4], tasks="cab")
    row = only_row(compare(a, b))
    assert (row.a, row.b, row.difference) == pytest.approx((0.3, 0.5, 0.2))
    assert (row.ci_low, row.ci_high) == pytest.approx((0.1, 0.3))
    assert (row.n, row.p, row.rough) == (3, 0.25, True)


@pytest.mark.parametrize(
    ("metric", "up", "down"),
    [("accuracy", "better", "worse"), ("tokens_in", "worse", "better"), ("agents", "higher", "lower"),
     ("nobody_knows_it", "higher", "lower")],
)  # fmt: skip
def test_the_metric_says_which_way_is_better(metric, up, down):
    low, high = run("low", **{metric: [0.0] * 8}), run("high", **{metric: [1.0] * 8})
    assert only_row(compare(low, high)).verdict == up
    assert only_row(compare(high, low)).verdict == down


def test_few_tasks_cannot_decide_and_the_number_that_would_is_told():
    row = only_row(compare(run("a", accuracy=[0.0] * 5), run("b", accuracy=[1.0] * 5)))
    assert (row.verdict, row.p, row.n_to_decide) == ("not decided", 2 / 2**5, 6)


def test_the_number_that_would_decide_does_so_at_the_level_that_holm_leaves():
    d = np.tile([0.3, -0.2, 0.1, -0.1, 0.2], 4)
    noise = [float(index % 3) for index in range(20)]
    a = run("a", ids=[0.0] * 20, upr=[0.0] * 20)
    b = run("b", ids=d.tolist(), upr=noise)
    row = compare(a, b).rows[0]
    sd = d.std(ddof=1)
    assert row.verdict == "not decided"
    assert row.n_to_decide == stats.n_to_decide(d.mean(), sd, level=0.975)
    assert row.detectable == stats.minimum_detectable_difference(sd, 20, level=0.975)


def test_the_p_of_a_row_is_that_of_the_sign_flip_test():
    b = [0.3, 0.1, -0.2, 0.5, 0.4, 0.2]
    row = only_row(compare(run("a", ids=[0.0] * 6), run("b", ids=b)))
    assert row.p == stats.sign_flip_test(b).value


def test_holm_answers_for_all_metrics_of_all_pairs():
    levels = {"a": 0.1, "b": 0.2, "c": 0.3}
    found = compare(*(run(name, ids=[level] * 8, upr=[level] * 8) for name, level in levels.items()))
    assert [(pair.a, pair.b) for pair in found.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert found.tests == len(found.rows) == 6
    assert {row.p_holm for row in found.rows} == {6 * 2 / 2**8}


def test_a_metric_that_never_differs_makes_no_test():
    a = run("a", accuracy=[0.0] * 8, agents=[4.0] * 8)
    b = run("b", accuracy=[1.0] * 8, agents=[4.0] * 8)
    found = compare(a, b)
    assert found.tests == 1
    assert [row.verdict for row in found.rows] == ["better", "same on all 8 tasks"]
    assert (found.rows[1].p, found.rows[1].p_holm, found.rows[1].ci_low) == (1.0, 1.0, None)


def test_rounding_is_no_difference():
    a, b = run("a", ids=[0.1 + 0.2] * 8), run("b", ids=[0.3] * 8)
    assert only_row(compare(a, b)).verdict == "same on all 8 tasks"


def test_a_run_against_itself_is_the_same():
    a = run("a", ids=[0.1, 0.5, 0.9], accuracy=[0.0, 1.0, 1.0])
    assert {row.verdict for row in compare(a, a).rows} == {"same on all 3 tasks"}


WOBBLE = [0.01, -0.01, 0.02, -0.02, 0.0, 0.01, -0.02, 0.01, 0.0, 0.0, 0.01, -0.01]


def test_with_a_delta_the_same_can_be_concluded():
    a, b = run("a", ids=[0.5] * 12), run("b", ids=[0.5 + gap for gap in WOBBLE])
    assert only_row(compare(a, b)).verdict == "not decided"
    row = only_row(compare(a, b, delta={"ids": 0.05}))
    assert row.verdict == "same within ±0.05"
    assert row.p_same == pytest.approx(stats.equivalence_test(WOBBLE, 0.05).value)


def test_a_sure_difference_within_delta_is_still_the_same():
    a, b = run("a", accuracy=[0.5] * 12), run("b", accuracy=[0.53 + gap for gap in WOBBLE])
    assert only_row(compare(a, b)).verdict == "better"
    assert only_row(compare(a, b, delta=0.1)).verdict == "same within ±0.1"


def test_a_steady_difference_within_delta_is_the_same_once_there_are_ten_tasks():
    for n, verdict in ((9, "worse"), (10, "same within ±2")):
        a, b = run("a", tokens_in=[4.0] * n), run("b", tokens_in=[5.0] * n)
        assert only_row(compare(a, b, delta=2)).verdict == verdict


def test_the_number_of_tasks_that_would_show_the_same_is_told():
    b = [0.2, -0.2] * 5
    row = only_row(compare(run("a", ids=[0.0] * 10), run("b", ids=b), delta=0.1))
    assert row.verdict == "not decided"
    assert row.n_to_decide == stats.n_to_decide(0.1, np.std(b, ddof=1), level=0.9)


@pytest.mark.parametrize(
    ("delta", "message"),
    [({"idz": 0.1}, "did you mean 'ids'"), (0, "above 0"), ({"ids": -1}, "above 0"), (math.nan, "above 0")],
)
def test_a_delta_that_makes_no_sense_is_refused(delta, message):
    with pytest.raises(UsageError, match=message):
        compare(run("a", ids=[0.1, 0.2]), run("b", ids=[0.1, 0.3]), delta=delta)


# Pairing


def test_tasks_of_one_side_only_are_told():
    a = run("a", ids=[0.1, 0.2, 0.3, 0.4], tasks="abcx")
    b = run("b", ids=[0.3, 0.2, 0.1], tasks="yab")
    found = compare(a, b)
    (pair,) = found.pairs
    assert (pair.tasks, pair.only_a, pair.only_b) == (2, ["c", "x"], ["y"])
    assert "not paired: 2 tasks of A only (c, x)" in str(found)


def test_seeds_on_both_sides_are_paired_and_tasks_weigh_alike():
    a = run("a", ids=[0.0, 0.0, 0.0], tasks="aab", seeds="010")
    b = run("b", ids=[0.2, 0.4, 0.7, 99.0], tasks="aaba", seeds="0109")
    found = compare(a, b)
    assert only_row(found).difference == pytest.approx((0.3 + 0.7) / 2)
    assert (found.pairs[0].tasks, found.pairs[0].by_seed) == (2, 2)
    assert found.warnings == []


def test_tasks_without_a_common_seed_are_compared_by_their_means():
    a = run("a", ids=[0.1, 0.3, 0.0], tasks="aab", seeds="120")
    b = run("b", ids=[0.6, 0.8, 0.0], tasks="aab", seeds="340")
    assert only_row(compare(a, b)).difference == pytest.approx((0.5 + 0) / 2)


def test_a_seed_that_is_undefined_on_one_side_takes_its_partner_with_it():
    a = run("a", ids=[0.0, 0.0, 0.1], tasks="aab", seeds="010")
    b = run("b", ids=[0.4, None, 0.1], tasks="aab", seeds="010")
    row = only_row(compare(a, b))
    assert (row.b, row.n, row.undefined) == (0.25, 2, 0)


def test_a_task_that_is_undefined_on_one_side_is_left_out_and_told():
    found = compare(run("a", ids=[0.1, None, 0.3]), run("b", ids=[0.2, 0.2, 0.2]))
    assert (only_row(found).n, only_row(found).undefined) == (2, 1)
    assert found.warnings == ["ids: 1 of 3 tasks left out, undefined in a: no texts"]


def test_a_metric_that_is_undefined_everywhere_is_not_decided_and_says_why():
    row = only_row(compare(run("a", ids=[0.1, 0.2]), run("b", ids=[None, None])))
    assert (row.verdict, row.n, row.difference, row.p) == ("not decided", 0, None, None)
    assert row.reason == "undefined in b: no texts"


def test_several_traces_of_one_task_and_seed_are_averaged_and_told():
    found = compare(run("a", ids=[0.0, 0.4, 0.1], tasks="aab"), run("b", ids=[0.2, 0.1], tasks="ab"))
    assert only_row(found).difference == 0
    assert found.warnings == ["a and b: 1 tasks have several traces of one seed: averaged"]


def test_one_task_decides_nothing():
    row = only_row(compare(run("a", ids=[0.1]), run("b", ids=[0.9])))
    assert (row.verdict, row.p, row.ci_low) == ("not decided", 1.0, None)
    assert "found 1" in row.reason


def test_runs_without_a_task_in_common_are_refused():
    with pytest.raises(UsageError, match=r"share no task \(such as 'a' and 'x'\).*paired=False"):
        compare(run("a", ids=[0.1, 0.2]), run("b", ids=[0.1, 0.2], tasks="xy"))


def test_traces_without_task_text_are_paired_with_nothing():
    a, b = (run(name, ids=[0.1], tasks=["trace:t"], traces=["t"]) for name in "ab")
    with pytest.raises(UsageError, match="share no task"):
        compare(a, b)


def test_independent_samples_are_compared_by_their_means():
    a = run("a", accuracy=[0.1, 0.2, 0.3, 0.2])
    b = run("b", accuracy=[0.7, 0.9, 0.8, None], tasks="uvwx")
    row = only_row(compare(a, b, paired=False))
    assert row.p == stats.welch_test([0.7, 0.9, 0.8], [0.1, 0.2, 0.3, 0.2]).value
    assert (row.verdict, row.n, row.undefined) == ("better", 3, 1)


def test_independent_samples_can_be_the_same_too():
    a = run("a", ids=WOBBLE)
    b = run("b", ids=WOBBLE[::-1], tasks=LETTERS[13:25])
    assert only_row(compare(a, b, paired=False, delta=0.1)).verdict == "same within ±0.1"


def test_traces_that_nobody_named_are_told_apart_by_their_order():
    a = run("a", ids=[0.1, 0.2], upr=[0.5, 0.7], traces=["", ""])
    b = run("b", ids=[0.2, 0.4], upr=[0.5, 0.7], traces=["", ""])
    assert [row.difference for row in compare(a, b).rows] == pytest.approx([0.15, 0])


def test_metrics_of_one_side_only_are_told():
    found = compare(run("a", ids=[0.1, 0.2], upr=[0.1, 0.2]), run("b", ids=[0.1, 0.2]))
    assert [row.metric for row in found.rows] == ["ids"]
    assert found.warnings == ["only in a, so not compared with b: upr"]


# Systems and baselines


def test_systems_are_paired_by_name_and_one_without_a_partner_is_told():
    a = run("a", system="x", ids=[0.1, 0.2]) + run("a", system="y", ids=[0.3, 0.4])
    b = run("b", system="y", ids=[0.3, 0.5])
    found = compare(a, b)
    assert [(row.label_a, row.label_b) for row in found.rows] == [("a: y", "b: y")]
    assert found.warnings == ["a: x is compared with nothing: no other input holds a system of that name"]


def test_one_system_meets_each_system_of_the_other_input():
    a = run("a", system="solo", ids=[0.1, 0.2])
    b = run("b", system="x", ids=[0.1, 0.2]) + run("b", system="y", ids=[0.3, 0.4])
    assert [(pair.a, pair.b) for pair in compare(a, b).pairs] == [("a: solo", "b: x"), ("a: solo", "b: y")]


def test_one_input_alone_is_compared_within():
    found = compare(run("a", system="x", ids=[0.1, 0.2]) + run("a", system="y", ids=[0.3, 0.5]))
    assert [(pair.a, pair.b) for pair in found.pairs] == [("x", "y")]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([run("a", ids=[0.1])], "one system only"),
        (
            [
                run("a", system="u", ids=[0.1]) + run("a", system="v", ids=[0.1]),
                run("b", system="x", ids=[0.1]) + run("b", system="y", ids=[0.1]),
            ],
            "no system in common: a holds 'u', 'v', b 'x', 'y'",
        ),
    ],
)
def test_systems_that_cannot_be_paired_are_refused(inputs, message):
    with pytest.raises(UsageError, match=message):
        compare(*inputs)


def budget(name, system, agents, tokens, accuracy):
    size = len(accuracy)
    return run(
        name, system=system, accuracy=accuracy, agents=[agents] * size, tokens_in=[tokens] * size,
        tokens_out=[0.0] * size,
    )  # fmt: skip


def test_the_single_agent_system_with_the_nearest_budget_stands_beside_the_teams():
    a = budget("a", "team", 4.0, 900.0, [0.0, 1.0, 0.0])
    b = budget("b", "team", 4.0, 1000.0, [1.0, 1.0, 0.0])
    once = budget("c", "once", 1.0, 100.0, [0.0, 0.0, 0.0])
    vote = budget("c", "vote", 1.0, 950.0, [1.0, 0.0, 0.0])
    found = compare(a, b, once + vote)
    baseline = found.pairs[0].baseline
    assert (baseline.label, baseline.team, baseline.tasks) == ("c: vote", "b: team", 3)
    assert (baseline.tokens_ratio, baseline.matched) == (0.95, True)
    assert found.rows[0].baseline == pytest.approx(1 / 3)
    line = "single-agent baseline: D, on 3 of these tasks, with 0.95 times the tokens of B: budgets match"
    assert line in str(found).splitlines()


def test_a_single_agent_side_is_the_baseline_of_the_other():
    team, solo = budget("team", "t", 3.0, 500.0, [1.0, 1.0]), budget("solo", "s", 1.0, 100.0, [1.0, 0.0])
    for inputs in ((solo, team), (team, solo)):
        found = compare(*inputs)
        assert found.pairs[0].baseline.label == "solo"
        assert (found.pairs[0].baseline.tokens_ratio, found.pairs[0].baseline.matched) == (0.2, False)
        assert str(found).count("budgets do not match") == 1


def test_a_baseline_whose_tokens_are_not_known_is_shown_with_a_warning():
    found = compare(
        run("a", accuracy=[0.0, 1.0], agents=[3.0, 3.0]),
        run("b", accuracy=[1.0, 1.0], agents=[3.0, 3.0]),
        run("c", accuracy=[1.0, 0.0], agents=[1.0, 1.0]),
    )
    assert found.pairs[0].baseline.matched is None
    assert "a and b: the token budget of c is unknown (tokens_in, tokens_out)" in found.warnings


def test_without_a_single_agent_system_there_is_no_baseline():
    found = compare(budget("a", "t", 2.0, 1.0, [1.0, 0.0]), budget("b", "t", 2.0, 1.0, [1.0, 0.0]))
    assert found.pairs[0].baseline is None
    assert "single-agent" not in str(found)


# Refusals


def test_numbers_made_in_different_ways_are_not_compared_and_the_field_is_named():
    a = run("a", ids=[0.1, 0.2], signature={"embedder": "default"})
    b = run("b", ids=[0.1, 0.2], signature={"embedder": "hashing"})
    with pytest.raises(UsageError, match=r"ids: embedder differs \('default' in a, 'hashing' in b\)"):
        compare(a, b)


def test_a_field_on_one_side_only_is_a_difference_too():
    with pytest.raises(UsageError, match=r"regrade differs \(None in a, True in b\)"):
        compare(run("a", ids=[0.1]), run("b", ids=[0.1], signature={"regrade": True}))


def test_signatures_may_differ_in_the_run():
    a, b = (run(name, ids=[0.1, 0.2], signature={"run": name}) for name in "ab")
    assert len(compare(a, b).rows) == 1


def test_one_input_made_in_two_ways_is_refused():
    mixed = run("a", ids=[0.1]) + run("a", system="other", ids=[0.1], signature={"profile": "paper"})
    with pytest.raises(UsageError, match="profile differs"):
        compare(mixed, run("b", ids=[0.1]))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_value_that_is_no_number_is_refused_by_its_trace(value):
    with pytest.raises(UsageError, match=f"a: trace 'team-1': ids is {value}"):
        compare(run("a", ids=[0.1, value]), run("b", ids=[0.1, 0.2]))


def test_nothing_is_not_compared():
    with pytest.raises(UsageError, match="B holds no traces"):
        compare(run("", ids=[0.1]), Scores([], []))


def test_a_row_of_a_trace_that_is_not_there_is_refused():
    stray = run("a", ids=[0.1, 0.2])
    stray.traces.pop()
    with pytest.raises(UsageError, match="trace 'team-1', which is not among"):
        compare(stray, run("b", ids=[0.1]))


@pytest.mark.parametrize("names", [["x"], ["x", "x"]])
def test_inputs_need_as_many_different_names(names):
    with pytest.raises(UsageError, match="2 inputs need as many different names"):
        compare(run("a", ids=[0.1]), run("b", ids=[0.1]), names=names)


@pytest.mark.parametrize("level", [0.3, 1, 95])
def test_a_level_is_a_share(level):
    with pytest.raises(UsageError, match=r"0\.95 means 95 %"):
        compare(run("a", ids=[0.1]), run("b", ids=[0.1]), level=level)


# Text


def test_the_text_says_what_was_compared_and_what_that_means():
    a = run("old.jsonl", accuracy=[0.0] * 8, ids=[0.1, 0.2] * 4)
    b = run("new.jsonl", accuracy=[1.0] * 8, ids=[0.2, 0.1, 0.2, 0.2] * 2)
    lines = str(compare(a, b)).splitlines()
    assert lines[:2] == ["A = old.jsonl: 8 traces, 8 tasks", "B = new.jsonl: 8 traces, 8 tasks"]
    assert lines[3] == "B against A: 8 tasks paired"
    assert " ".join(lines[5].split()) == "metric A B B - A 95 % interval p p Holm n detects B is"
    assert lines[6].split()[-1] == "better"
    assert "tasks would)" in lines[7]
    assert "Not decided does not mean the same: it means that these tasks cannot tell." in lines


def test_inputs_are_named_by_their_runs_or_by_letters():
    a, b = run("same", ids=[0.1, 0.2]), run("same", ids=[0.1, 0.2])
    assert [side.label for side in compare(a, b).sides] == ["A", "B"]
    assert [side.label for side in compare(a, b, names=["old", "new"]).sides] == ["old", "new"]


def test_hostile_names_stay_text():
    a = run("<script>\x1b[31m\nA</script>", ids=[0.1, 0.2], tasks=["a", "<b>"])
    b = run("b", ids=[0.1, 0.2], tasks=["a", "c"])
    found = compare(a, b)
    assert "\x1b" not in str(found)
    assert "A = <script>[31m A</script>: 2 traces" in str(found)
    assert "<script>" not in found._repr_html_()
    assert "<b>" not in found._repr_html_()


def test_the_json_holds_the_rows_and_no_nan():
    a = run("a", ids=[0.1, None, 0.3], upr=[None] * 3)
    b = run("b", ids=[0.2, 0.2, 0.2], upr=[0.1] * 3)
    text = compare(a, b, delta=0.1).to_json()
    document = json.loads(text, parse_constant=pytest.fail)
    assert document["schema"] == "counterpoint.comparison/1"
    assert [row["metric"] for row in document["rows"]] == ["ids", "upr"]
    assert document["pairs"][0]["baseline"] is None


def test_the_same_scores_give_the_same_bytes():
    rng = np.random.default_rng(0)
    tasks = [f"q{index}" for index in range(40)]
    a, b = (run(name, ids=rng.random(40).tolist(), tasks=tasks) for name in "ab")
    assert compare(a, b).to_json() == compare(a, b).to_json()


def test_evaluations_are_compared_as_they_come():
    def answers(right):
        step = Step("s", "solver", "x")
        return [Trace(f"{i}", (step,), task=f"What is {i}?", correct=i < right) for i in range(12)]

    old = evaluate(answers(0), ["accuracy", "steps"], run="old")
    new = evaluate(answers(12), ["accuracy", "steps"], run="new")
    assert [row.verdict for row in compare(old, new).rows] == ["better", "same on all 12 tasks"]


def test_swapping_the_sides_swaps_the_verdict_and_nothing_else():
    rng = np.random.default_rng(3)
    a, b = (run(name, accuracy=(rng.random(26) + shift).tolist()) for name, shift in (("a", 0.0), ("b", 0.5)))
    there, back = only_row(compare(a, b)), only_row(compare(b, a))
    assert (there.verdict, back.verdict) == ("better", "worse")
    assert (there.p, there.n, there.difference) == (back.p, back.n, -back.difference)
