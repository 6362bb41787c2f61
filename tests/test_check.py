import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

import counterpoint as cp
from counterpoint.check import GateFailed
from counterpoint.errors import UsageError
from counterpoint.trace import Step, Trace, Transfer
from counterpoint.view import ci

from .cli.conftest import lines, native


def team(number: int, answer: object = 7) -> Trace:
    steps = (
        Step("a", "A", f"The answer is {answer}."),
        Step("b", "B", f"Sure: the answer is {answer}.", heard=(Transfer("a"),)),
    )
    return Trace(f"t{number}", steps, task=f"{number}?", gold="7", system="s")


MIXED = [team(0), team(1), team(2), team(3, 8)]
MUTE = [team(0, "unclear")]


@pytest.mark.parametrize(
    ("fail_on", "state", "observed"),
    [
        ("upr>0.2", "failed", 0.25),
        ("upr>0.25", "passed", 0.25),
        ("upr>=25%", "failed", 0.25),
        ("max(upr)>0.9", "failed", 1),
        ("min(accuracy)<0.5", "failed", 0),
        ("min(steps)<2", "passed", 2),
        ("ci_high(accuracy)<0.5", "passed", None),
    ],
)
def test_a_gate_tests_a_fold_over_the_defined_traces(fail_on: str, state: str, observed: float | None):
    (gate,) = cp.check(MIXED, fail_on=fail_on).gates
    assert gate.state == state
    if observed is not None:
        assert gate.observed == observed


@pytest.mark.parametrize(
    ("traces", "fail_on", "code"),
    [
        (MIXED, "upr>0.5", 0),
        (MIXED, "upr>0.1", 1),
        (MUTE, "upr>0.1", 3),
        (MUTE, "upr>0.1, steps>1", 1),
        (MUTE, "upr>0.1, steps>5", 3),
        ([*MIXED, *MUTE], "upr>0.5", 0),
        ([], "steps>5", 3),
        (MIXED, "ci_low(steps)>1", 3),
    ],
)
def test_a_failed_gate_beats_one_that_cannot_be_evaluated(traces: list[Trace], fail_on: str, code: int):
    assert cp.check(traces, fail_on=fail_on).exit_code == code


def test_undefined_traces_are_always_counted():
    (gate,) = cp.check([*MIXED, *MUTE], "upr<=0.5").gates
    assert (gate.n, gate.undefined) == (4, 1)
    assert "1 undefined" in str(gate)


def test_a_requirement_that_does_not_hold_raises_with_value_and_worst_traces():
    result = cp.check(MIXED, require="upr<=0.1")
    with pytest.raises(
        GateFailed, match=r"upr<=0\.1: 0\.25 over 4 traces.*worst: t3 \(1\), t0 \(0\), t1 \(0\)"
    ):
        result.require()
    with pytest.raises(AssertionError):
        result.require()
    assert "worst steps of t3: a by A (1 unnecessary paths), b by B (1 unnecessary paths)" in str(result)


def test_a_path_can_be_checked(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    path.write_text(lines(native()))
    assert cp.check(path, "steps<=2").passed


def test_an_unknown_metric_is_bad_usage_with_the_nearest_name():
    with pytest.raises(UsageError, match="did you mean 'upr'"):
        cp.check(MIXED, "urp<=0.1")


def baseline(wrong: int, size: int = 20) -> cp.Scores:
    return cp.evaluate([team(n, 8 if n < wrong else 7) for n in range(size)], ["accuracy", "upr"])


def states(traces: list[Trace], earlier: cp.Scores, tolerance: float = 0.0) -> dict[str, str]:
    result = cp.check(traces, baseline=earlier, tolerance=tolerance)
    return {gate.metric: gate.state for gate in result.gates}


def test_a_regression_is_what_a_paired_test_shows_and_not_a_raw_difference():
    slightly = [team(n, 8 if n < 2 else 7) for n in range(20)]
    much = [team(n, 8 if n < 15 else 7) for n in range(20)]
    assert states(slightly, baseline(0)) == {"accuracy": "passed", "upr": "passed"}
    assert states(much, baseline(0)) == {"accuracy": "failed", "upr": "failed"}
    assert states(much, baseline(0), tolerance=0.9) == {"accuracy": "passed", "upr": "passed"}
    assert states(much, baseline(20)) == {"accuracy": "passed", "upr": "passed"}


def test_too_few_tasks_are_not_evaluable():
    assert states([team(n) for n in range(3)], baseline(0, size=3)) == {
        "accuracy": "not evaluable", "upr": "not evaluable",
    }  # fmt: skip


def test_junit_tells_failures_from_what_could_not_be_evaluated():
    result = cp.check(MUTE, fail_on="upr>0.1, steps>1, agents>5")
    suite = ElementTree.fromstring(ci.junit(result)).find("testsuite")
    assert suite is not None
    assert [suite.get(name) for name in ("tests", "failures", "errors")] == ["3", "1", "1"]


def test_sarif_names_rules_levels_and_the_file():
    document = json.loads(ci.sarif(cp.check(MUTE, fail_on="upr>0.1, steps>1, agents>5"), "runs/"))
    (found,) = document["runs"]
    assert document["version"] == "2.1.0"
    assert [entry["level"] for entry in found["results"]] == ["warning", "error", "note"]
    assert {rule["id"] for rule in found["tool"]["driver"]["rules"]} == {"upr", "steps", "agents"}


def test_markdown_is_a_table_that_hostile_names_cannot_break():
    hostile = [Trace("x|y\n# z", team(0).steps, gold="8")]
    text = ci.markdown(cp.check(hostile, "upr<=0.1"))
    assert "❌ a gate failed" in text
    assert r"x\|y \# z (1)" in text


def test_a_check_of_nothing_is_not_green():
    result = cp.check(MIXED, baseline=cp.evaluate(MIXED, ["steps"]))
    assert (result.exit_code, str(result)) == (
        3,
        "not evaluable: no condition, and no metric of the baseline has a direction",
    )
