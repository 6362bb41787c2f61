import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

import counterpoint as cp
from counterpoint.contracts import Context, Metric
from counterpoint.errors import UsageError
from counterpoint.metrics import DEFAULT
from counterpoint.score import Score
from counterpoint.scores import json_schema, read_scores
from counterpoint.trace import Step, Trace, Transfer, Usage


def embed(texts: list[str]) -> np.ndarray:
    return np.array([[1.0, 0.0] if "7" in text else [0.6, 0.8] for text in texts])


def team(name: str = "t", **fields: object) -> Trace:
    steps = (
        Step("a", "A", "The answer is 7."),
        Step("b", "B", "The answer is 8.", heard=(Transfer("a"),)),
        Step("c", "C", "The answer is 7.", heard=(Transfer("a"), Transfer("b"))),
    )
    return Trace(name, steps, **{"task": "3+4?", "gold": "7", "system": "s", **fields})  # type: ignore[arg-type]


def values(scores: cp.Scores) -> dict[str, float | None]:
    return {row.metric: row.value for row in scores.rows}


def test_a_row_a_trace_and_metric_in_that_order():
    scores = cp.evaluate([team("t1"), team("t2")], ["steps", "agents"])
    assert [(row.trace, row.metric) for row in scores.rows] == [
        ("t1", "steps"), ("t1", "agents"), ("t2", "steps"), ("t2", "agents"),
    ]  # fmt: skip


def test_the_default_metrics_are_the_fourteen_of_score():
    scores = cp.evaluate([team()], embedder=embed)
    assert list(values(scores)) == list(DEFAULT)
    assert len(DEFAULT) == 14
    assert values(scores)["accuracy"] == 1
    assert values(scores)["upr"] == 0


def test_every_undefined_value_has_a_reason_and_no_number():
    scores = cp.evaluate([Trace("t", (Step("a", "A", "hi"),))], embedder=embed)
    for row in scores.rows:
        assert (row.value is None) == bool(row.reason)
    assert {row.metric for row in scores.rows if row.value is not None} == {
        "steps", "agents", "rounds", "depth", "parallelism",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("metrics", "embedded"),
    [
        (["ids"], {"one", "two"}),
        (["steps"], set()),
        (["ids(profile=paper)"], set()),  # in the last round nobody hears anybody
        (["ids", "reasoning_redundancy"], {"one", "two", "alone", "later"}),
    ],
)
def test_no_text_is_embedded_that_no_metric_needs(metrics: list[str], embedded: set[str]):
    seen: set[str] = set()

    def noting(texts: list[str]) -> np.ndarray:
        seen.update(texts)
        return embed(texts)

    two = Step("b", "B", "two", heard=(Transfer("a"),))
    steps = (Step("a", "A", "one"), two, Step("c", "C", "alone"), Step("d", "D", "later", round=3))
    silent = Trace("silent", (Step("x", "X", "heard by nobody"), Step("y", "Y", "hears nobody")))
    cp.evaluate([Trace("t", steps)], metrics, embedder=noting)
    assert seen == embedded
    seen.clear()
    cp.evaluate([silent], ["ids"], embedder=noting)
    assert not seen


def broken(context: Context) -> Score:
    raise ZeroDivisionError("boom\nboom")


def test_a_metric_that_fails_costs_no_other_row():
    bug = Metric("bug", 1, "", broken, (0, 1), "", "", "")
    scores = cp.evaluate([team()], [bug, "steps"])
    assert scores.rows[0].value is None
    assert scores.rows[0].reason == "the metric failed: ZeroDivisionError: boom boom"
    assert scores.rows[1].value == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cp.evaluate([], ["urp"]), r"no metric 'urp' \(did you mean 'upr'\?\)"),
        (
            lambda: cp.evaluate([], ["upr(treshold=1)"]),
            r"no parameter 'treshold' \(did you mean 'threshold'\?\)",
        ),
        (lambda: cp.evaluate([], ["upr("]), "is not of the form"),
        (lambda: cp.evaluate([], ["upr"], profile="loose"), "profile 'loose' is none of strict, paper"),
        (lambda: cp.evaluate([], ["upr"], evidence="gossip"), "evidence 'gossip' is none of explicit"),
        (lambda: cp.evaluate([], ["upr"], answers="essay"), "kind of answer 'essay' is none of number"),
        (lambda: cp.evaluate([], ["upr(profile=paper)", "ids(profile=strict)"]), "never mixed"),
        (lambda: cp.evaluate([], ["upr(profile=strict)"], profile="paper"), "never mixed"),
        (lambda: cp.evaluate([], ["upr(profile=paper)"], profile="strict"), "never mixed"),
        (lambda: cp.evaluate([], ["upr(profile=paper)", "ids"]), "never mixed"),
    ],
)
def test_bad_usage_is_one_line_that_suggests(make: Callable[[], object], message: str):
    with pytest.raises(UsageError, match=message):
        make()


def test_a_profile_bound_in_the_metric_holds_for_the_request():
    scores = cp.evaluate([team()], ["upr(profile=paper)"])
    assert scores.rows[0].signature["profile"] == "paper"


def test_a_signature_names_all_that_could_change_the_number():
    ids, upr, steps = (
        row.signature for row in cp.evaluate([team()], ["ids", "upr", "steps"], embedder=embed).rows
    )
    assert ids == {
        "metric": "ids", "version": 1, "profile": "strict", "lam": 0.5, "tokenizer": "words",
        "evidence": "broadcast", "embedder": "embed",
    }  # fmt: skip
    assert (upr["threshold"], upr["paths"], upr["answers"]) == (0.5, "subpath", "inferred")
    assert "embedder" not in steps


def test_gold_answers_can_be_given_by_trace_task_id_or_task_text(tmp_path: Path):
    traces = [
        team("t1", gold=None),
        team("t2", gold=None, labels={"task_id": "q2"}),
        team("t3", gold=None, task="x"),
    ]
    gold = {"t1": "7", "q2": "8", "x": "7"}
    assert [row.value for row in cp.evaluate(traces, ["accuracy"], gold=gold).rows] == [1, 0, 1]
    table = tmp_path / "gold.csv"
    table.write_text("trace,task,gold\nt1,,7\n,q2,8\n,x,7\n")
    assert [row.value for row in cp.evaluate(traces, ["accuracy"], gold=table).rows] == [1, 0, 1]
    lines = tmp_path / "gold.jsonl"
    lines.write_text('{"trace": "t1", "gold": 7}\n\n{"task": "q2", "gold": 8.0}\n')
    scores = cp.evaluate(traces, ["accuracy"], gold=lines)
    assert [row.value for row in scores.rows] == [1, 0, None]
    assert scores.warnings == ["1 of 3 traces found no gold answer in the one given"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"trace": "t"}\n', 'record 1: needs "trace" or "task", and "gold"'),
        ('{"trace": "t", "gold": 1}\n{', "line 2 is not JSON"),
        ("", "holds no record"),
        ("[1]", "line 1 is not a JSON object"),
    ],
)
def test_a_faulty_gold_file_is_one_line(tmp_path: Path, text: str, message: str):
    path = tmp_path / "gold.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        cp.evaluate([], ["steps"], gold=path)


def test_the_recorded_grade_counts_unless_graded_anew():
    trace = team(correct=False)
    assert values(cp.evaluate([trace], ["accuracy"])) == {"accuracy": 0}
    assert values(cp.evaluate([trace], ["accuracy"], regrade=True)) == {"accuracy": 1}
    assert values(cp.evaluate([trace], ["accuracy"], gold={"t": "7"})) == {"accuracy": 1}


@pytest.mark.parametrize(
    ("text", "recorded", "labels", "value"),
    [
        ("The answer is 7.", "9", {}, 1),
        ("I counted 3 cases.", "7", {}, 1),  # what a system records outweighs a number in passing
        ("Done.", "7", {}, 1),
        ("Done: 7 in all.", "9", {"job": "1"}, 1),  # in a run of ours all answers come from texts
        ("Done.", "7", {"job": "1"}, 0),
    ],
)
def test_grading_anew_reads_the_text_and_keeps_what_only_the_system_recorded(
    text: str, recorded: str, labels: dict[str, str], value: int
):
    steps = (Step("s", "a", text, answer=recorded),)
    for answer in (recorded, None):
        trace = Trace("t", steps, gold="7", answer=answer, correct=not value, labels=labels)
        assert values(cp.evaluate([trace], ["accuracy"], regrade=True)) == {"accuracy": value}


def test_the_runs_answer_is_recorded_or_the_decisions_or_the_last_agents():
    def accuracy(trace: Trace) -> float | None:
        return cp.evaluate([trace], ["accuracy"]).rows[0].value

    decided = replace(team(), steps=(*team().steps, Step("d", "D", "We settle on 8", kind="decision")))
    assert accuracy(team(answer="8")) == 0
    assert accuracy(decided) == 0
    assert accuracy(team(gold="7.0")) == 1


def test_tokens_are_summed_over_steps_and_unknown_ones_are_counted():
    steps = (
        Step("a", "A", "x", usage=Usage(10, 2, model="gpt-4o-mini")),
        Step("r", "R", "x", kind="control", usage=Usage(5, 1, model="gpt-4o-mini")),
        Step("b", "B", "x"),
    )
    scores = cp.evaluate([Trace("t", steps)], ["tokens_in", "tokens_out", "cost_usd"])
    tokens_in, tokens_out, cost = scores.rows
    assert (tokens_in.value, tokens_in.parts) == (15, {"counted": 2, "unknown": 1})
    assert tokens_out.value == 3
    assert cost.value == pytest.approx(15 * 0.15e-6 + 3 * 0.6e-6)


def test_totals_of_the_whole_run_count_where_no_step_has_any():
    trace = Trace("t", (Step("a", "A", "x"),), labels={"run_usage": {"tokens_in": 7, "cost_usd": 0.5}})
    assert values(cp.evaluate([trace], ["tokens_in", "cost_usd"])) == {"tokens_in": 7, "cost_usd": 0.5}


def test_an_unknown_model_has_no_price_and_the_reason_names_it():
    trace = Trace("t", (Step("a", "A", "x", usage=Usage(1, 1, model="nobody/knows-9b")),))
    (row,) = cp.evaluate([trace], ["cost_usd"]).rows
    assert row.value is None
    assert "no public price for model 'nobody/knows-9b' (1 of 1 steps)" in row.reason


def test_a_summary_folds_by_system_and_over_all_and_counts_what_it_left_out():
    traces = [
        team(str(n), task=f"{n}?", system="s" if n < 12 else "u", gold="7" if n % 3 else None)
        for n in range(20)
    ]
    scores = cp.evaluate(traces, ["accuracy", "upr"])
    entries = {(entry.system, entry.metric): entry for entry in scores.summary()}
    assert list(entries) == [(system, name) for system in ("s", "u", None) for name in ("accuracy", "upr")]
    over_all = entries[None, "accuracy"]
    assert (over_all.mean, over_all.n, over_all.undefined) == (1, 13, 7)
    assert sum(over_all.reasons.values()) == 7
    assert over_all.ci_low is not None
    assert entries["s", "accuracy"].micro is None


def test_seeds_of_a_task_are_averaged_before_tasks_are():
    answers = [("easy", "7"), ("easy", "7"), ("easy", "8"), ("hard", "8")]
    traces = [
        team(str(n), answer=answer, labels={"task_id": name, "seed": n})
        for n, (name, answer) in enumerate(answers)
    ]
    (entry, _) = cp.evaluate(traces, ["accuracy"]).summary()
    assert entry.mean == pytest.approx((2 / 3 + 0) / 2)
    assert entry.n == 4


def test_the_pooled_upr_weighs_traces_by_their_paths():
    lone = replace(
        team("u"),
        steps=(
            Step("a", "A", "The answer is 8."),
            Step("b", "B", "The answer is 7. no: 8", answer="8", heard=(Transfer("a"),)),
        ),
    )
    (entry, _) = cp.evaluate([team("t"), lone], ["upr"]).summary()
    assert entry.mean == 0.5
    assert entry.micro == pytest.approx(1 / 5)


def test_json_round_trips_and_follows_its_schema(tmp_path: Path):
    jsonschema = pytest.importorskip("jsonschema")
    scores = cp.evaluate([team("t1"), team("t2", gold=None)], embedder=embed, run="r")
    text = scores.to_json()
    jsonschema.validate(json.loads(text), json_schema())
    assert "NaN" not in text
    path = tmp_path / "scores.json"
    path.write_text(text)
    assert read_scores(path).to_json() == text


def test_the_same_input_gives_the_same_bytes_alone_or_among_others_and_in_processes():
    traces = [team(str(n), gold="7" if n % 3 else None) for n in range(5)]
    text = cp.evaluate(traces, ["upr", "steps"]).to_json()
    assert cp.evaluate(iter(traces), ["upr", "steps"]).to_json() == text
    assert cp.evaluate(traces, ["upr", "steps"], workers=2).to_json() == text


def test_settings_that_cannot_be_sent_to_processes_are_refused():
    with pytest.raises(UsageError, match="use workers=1"):
        cp.evaluate([team()], ["ids"], embedder=lambda texts: embed(texts), workers=2)


@pytest.mark.parametrize("texts", [["7", "7"], ["", ""], ["!!!", "???"], ["a", "I"], ["\x00", "\u202e"]])
def test_agents_that_hardly_say_anything_give_a_value_or_a_reason(texts: list[str]):
    steps = (Step("a", "A", texts[0]), Step("b", "B", texts[1], heard=(Transfer("a"),)))
    for vector in ([0.0, 0.0], [float("nan"), 1.0], [1.0, 0.0]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            scores = cp.evaluate(
                [Trace("t", steps, gold="7")], embedder=lambda found, v=vector: np.array([v] * len(found))
            )
        assert not any("metric failed" in row.reason for row in scores.rows)
        assert "NaN" not in scores.to_json()


def test_an_embedder_of_the_wrong_shape_is_named():
    (row,) = cp.evaluate([team()], ["ids"], embedder=lambda texts: np.zeros(3)).rows
    assert row.value is None
    assert "of shape (3,) for 2 texts" in row.reason
