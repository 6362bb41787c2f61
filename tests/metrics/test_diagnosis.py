"""Failures by rule: each rule fires on the smallest run that breaks it."""

import pytest

from counterpoint.errors import UsageError
from counterpoint.metrics.diagnosis import Diagnosis, Symptoms, agreement, diagnose, structural_threshold
from counterpoint.metrics.rolegraph import RoleGraph


def chain(*roles, **labels):
    return RoleGraph(roles, [(k, k + 1) for k in range(len(roles) - 1)], **labels)


GOOD = [chain("planner", "solver", "critic", "decision") for _ in range(3)]
LOW = Symptoms(match=0.1)


@pytest.mark.parametrize(
    ("run", "symptoms", "rules"),
    [
        (chain("planner", "solver", "decision"), LOW, {"missing role": "critic"}),
        (chain("planner", "solver", "critic"), LOW, {"truncated": "no decision"}),
        (RoleGraph(["planner", "solver", "critic", "decision"], []), LOW,
         {"truncated": "depth 1, median 4", "wrong motif": "roles 1.00, joints 0.00"}),
        (chain("decision", "critic", "solver", "planner"), LOW, {"wrong motif": "roles 1.00, joints 0.00"}),
        (GOOD[0], Symptoms(match=0.1, validity=0.75), {"ignored work": "25% of actions read by nobody"}),
        (GOOD[0], Symptoms(match=0.1, redundancy=0.5), {"loops": "50% of actions repeated"}),
        (chain(*["planner", "solver", "critic"] * 3, "decision"), LOW,
         {"over-provision": "10 actions, median 4"}),
        (GOOD[0], LOW, {}),
    ],
)  # fmt: skip
def test_each_structural_rule_fires_on_what_breaks_it(run, symptoms, rules):
    found = diagnose(run, GOOD, 0.5, symptoms)
    assert (found.level, found.rules) == ("structural", rules)


@pytest.mark.parametrize(
    ("held", "rules"),
    [(True, {"wrong aggregation": ""}), (False, {"no action right": ""}), (None, {})],
)
def test_a_failure_with_a_usual_structure_is_one_of_content(held, rules):
    found = diagnose(GOOD[0], GOOD, 0.5, Symptoms(match=0.5, answer_held=held))
    assert (found.level, found.rules) == ("content", rules)


def test_a_role_is_missing_only_where_half_of_the_weight_has_it():
    rare = [chain("planner", "solver", "decision"), chain("planner", "solver", "decision"), GOOD[0]]
    assert diagnose(chain("planner", "solver", "decision"), rare, 0.5, LOW).rules == {}


def test_a_reference_that_is_not_verified_sets_no_rule():
    references = [chain("solver", "decision"), chain("debater", "debater", "debater", correct=False)]
    assert diagnose(chain("solver", "decision"), references, 0.5, LOW).rules == {}


def test_without_a_match_nothing_is_determined():
    assert diagnose(GOOD[0], GOOD, 0.5, Symptoms()).level == "undetermined"
    assert diagnose(GOOD[0], [], 0.5, LOW).level == "undetermined"


def test_the_threshold_is_the_25th_percentile_of_the_successful():
    assert structural_threshold([0.2, 0.4, 0.6, 0.8, 1.0]) == pytest.approx(0.4)
    with pytest.raises(UsageError, match="no successful run"):
        structural_threshold([])


def test_a_diagnosis_is_one_line():
    found = Diagnosis("structural", {"loops": "50% of actions repeated", "truncated": "no decision"})
    assert found.text == "structural: loops (50% of actions repeated); truncated (no decision)"
    assert Diagnosis("content", {}).text == "content"


def test_agreement_with_labels_is_the_worked_kappa():
    found = ["structural"] * 25 + ["content"] * 25
    labels = ["structural"] * 20 + ["content"] * 5 + ["structural"] * 10 + ["content"] * 15
    assert agreement(found, labels).value == pytest.approx(0.4)
    with pytest.raises(UsageError, match="one label a diagnosis"):
        agreement(["content"], [])
