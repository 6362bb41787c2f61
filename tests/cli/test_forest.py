"""``counterpoint forest``: build, show, match, damage, from files to tables and back."""

import json

import pytest
from typer.testing import CliRunner

import counterpoint as cp
from counterpoint.cli.forest import app
from counterpoint.errors import UsageError
from counterpoint.trace import Step, Trace, Transfer


def chain(system, task, *agents, correct=True, answer="4", labels=None):
    steps = tuple(
        Step(str(k), agent, f"The answer is {answer}.", heard=(Transfer(str(k - 1)),) if k else ())
        for k, agent in enumerate(agents)
    )
    name = f"{system}/{task}/{'-'.join(agents)}"
    return Trace(name, steps, task=task, gold="4", system=system, correct=correct,
                 labels={"task_id": task, **(labels or {})})  # fmt: skip


RUNS = [
    run
    for task in ("q1", "q2", "q3")
    for run in (
        chain("a", task, "planner", "solver", "critic"),
        chain("b", task, "planner", "coder"),
        chain("c", task, "debater", "mystery", correct=False, answer="5"),
    )
]


@pytest.fixture
def runs(tmp_path):
    path = tmp_path / "runs.jsonl"
    cp.write(RUNS, str(path))
    return path


@pytest.fixture
def forest(tmp_path, runs):
    path = tmp_path / "forest.jsonl"
    call("build", runs, "-o", path)
    return path


def call(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_build_takes_the_runs_that_were_right_and_tells_what_it_made(runs, tmp_path):
    result = call("build", runs, "-o", tmp_path / "f.jsonl")
    assert "6 references of 3 tasks from 6 of 9 runs" in result.stderr
    assert len((tmp_path / "f.jsonl").read_text().splitlines()) == 7


def test_build_writes_to_stdout_without_a_file_and_names_what_has_no_role(runs):
    result = call("build", runs, "--rename-agent", "critic=Zed")
    assert json.loads(result.stdout.splitlines()[0])["references"] == 6
    assert "names without a role: Zed (3)" in result.stderr


def test_build_grades_by_a_gold_file(runs, tmp_path):
    gold = tmp_path / "gold.csv"
    gold.write_text("task,gold\nq1,5\nq2,4\nq3,9\n")
    result = call("build", runs, "--gold", gold)
    # q1 has only the wrong answer's run, q2 both right ones, q3 none
    assert [json.loads(line)["generator"] for line in result.stdout.splitlines()[1:]] == ["c", "a", "b"]


def test_build_takes_further_conditions(runs):
    result = call("build", runs, "--where", "correct, steps<=2")
    assert {json.loads(line)["generator"] for line in result.stdout.splitlines()[1:]} == {"b"}
    assert json.loads(result.stdout.splitlines()[0])["where"] == "correct, steps<=2"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--where", "upr<1"], "does not begin with correct"),
        (["--where", "correct, steps"], "expected one of"),
        (["--exclude-agent", "planner", "--exclude-agent", "solver", "--exclude-agent", "critic",
          "--exclude-agent", "coder"], "no verified run among 9"),
        (["--roles", "nowhere.json"], "role table nowhere.json"),
    ],
)  # fmt: skip
def test_build_refuses_what_makes_no_forest(runs, arguments, message):
    with pytest.raises(UsageError, match=message):
        call("build", runs, *arguments)


def test_match_never_shows_a_number_without_its_bounds(runs, forest):
    result = call("match", runs, "--forest", forest, "--each")
    assert "forest match [bounds]" in result.stdout
    assert "] " in result.stdout
    told = json.loads(call("match", runs, "--forest", forest, "--format", "json").stdout)
    for system in told["systems"]:
        assert system["low"] <= system["mean"] <= system["high"]
    for run in told["runs"]:
        assert (run["match"] is None) == bool(run["reason"])
        assert run["match"] is None or {"low", "high"} <= set(run["parts"])


def test_match_marks_ties_and_says_what_weights_decide(runs, forest):
    told = json.loads(call("match", runs, "--forest", forest, "--format", "json").stdout)
    assert {pair["tie"] for pair in told["pairs"]} == {True}  # three tasks cannot tell them apart
    assert told["families"][0]["name"] == "default"
    assert told["order_kept"] is not None
    assert "within noise of" in call("match", runs, "--forest", forest, "--format", "md").stdout


def test_match_tells_why_failed_runs_failed_and_which_names_have_no_role(runs, forest):
    out = call("match", runs, "--forest", forest, "--diagnose").stdout
    assert "structural: missing role (coder, planner); loops" in out
    assert "mystery (3)" in out


def test_match_stands_beside_other_metrics_with_accuracy_held_fixed(runs, forest):
    how = ("match", runs, "--forest", forest, "--beside", "steps", "--beside", "upr")
    told = json.loads(call(*how, "--format", "json").stdout)
    steps, upr = told["beside"]
    assert (steps["metric"], steps["runs"], upr["metric"]) == ("steps", 9, "upr")
    assert -1 <= steps["correlation"] <= 1
    assert "with accuracy held fixed" in call(*how).stdout


def test_match_tells_whether_the_choice_of_tasks_moves_the_order(runs, forest):
    told = json.loads(call("match", runs, "--forest", forest, "--format", "json").stdout)
    assert len(told["sweep"]) == 36
    assert {row["tasks"] for row in told["sweep"]} == {0}  # without tokens no share is known


def test_match_contrasts_with_other_tasks(runs, forest):
    told = json.loads(call("match", runs, "--forest", forest, "--others", 2, "--format", "json").stdout)
    assert {run["parts"]["specificity"] for run in told["runs"] if run["match"] is not None} == {0}


def test_match_shows_each_condition_of_the_references_apart(runs, tmp_path):
    given = [chain("d", task, "planner", "tester", labels={"conditioning": "gold"}) for task in ("q1", "q2")]
    cp.write([*RUNS, *given], str(tmp_path / "more.jsonl"))
    call("build", tmp_path / "more.jsonl", "-o", tmp_path / "f.jsonl")
    out = call("match", runs, "--forest", tmp_path / "f.jsonl").stdout
    assert "references: open" in out
    assert "references: gold" in out


def test_match_lists_right_runs_that_match_low(runs, forest):
    told = json.loads(call("match", runs, "--forest", forest, "--scope", "all", "--format", "json").stdout)
    right = {run["trace"]: run["match"] for run in told["runs"] if run["correct"]}
    assert all(right[name] < max(right.values()) for name in told["novel"])


def test_match_without_a_match_says_why(runs, tmp_path):
    call("build", runs, "-o", tmp_path / "f.jsonl", "--system", "one")
    result = call("match", runs, "--forest", tmp_path / "f.jsonl", "--system", "one")
    assert "every verified reference was made by 'one'" in " ".join(result.stdout.split())


def test_show_lists_tasks_and_the_references_of_one(forest):
    assert "6 references of 3 tasks" in call("show", forest).stdout
    assert "1 coder, 1 planner" in call("show", forest, "--task", "q1").stdout
    told = json.loads(call("show", forest, "--task", "q1", "--format", "json").stdout)
    assert (told["runs"], [line["generator"] for line in told["references"]]) == (6, ["a", "b"])
    with pytest.raises(UsageError, match="no task 'q9'"):
        call("show", forest, "--task", "q9")


def test_damage_writes_the_table_and_the_picture_twice_the_same(runs, forest, tmp_path):
    how = ("damage", runs, "--forest", forest, "--limit", 1, "--replicates", 2, "--draws", 2)
    first = call(*how, "--svg", tmp_path / "one.svg")
    second = call(*how, "--svg", tmp_path / "two.svg")
    assert first.stdout == second.stdout
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert "delete nodes, bridged" in first.stdout
    assert "role-free" in first.stdout
    told = json.loads(call(*how, "--svg", tmp_path / "one.svg", "--format", "json").stdout)
    assert told["curves"][0]["operator"] == "delete nodes"
    assert set(told["effect"]) == {curve["operator"] for curve in told["curves"]}


def test_damage_refuses_another_role_table(runs, forest, tmp_path):
    roles = tmp_path / "roles.json"
    roles.write_text('{"planner": "router"}')
    with pytest.raises(UsageError, match="another role table"):
        call("damage", runs, "--forest", forest, "--roles", roles, "--svg", tmp_path / "x.svg")


def test_a_table_can_go_to_a_file(runs, forest, tmp_path):
    call("match", runs, "--forest", forest, "-o", tmp_path / "out.txt")
    assert "forest match [bounds]" in (tmp_path / "out.txt").read_text()
