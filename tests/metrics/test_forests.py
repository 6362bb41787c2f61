"""Forest files, and the metrics that match a trace against one."""

import json

import pytest
from msgspec.structs import replace

import counterpoint as cp
from counterpoint.errors import UsageError
from counterpoint.metrics import forests
from counterpoint.metrics.forest_match import chance_adjusted, specificity
from counterpoint.metrics.forests import build_forest, read_forest
from counterpoint.metrics.rolegraph import RoleGraph
from counterpoint.trace import Step, Trace, Transfer, Usage
from counterpoint.view.table import interval_text


def chain(system, *agents, task="2+2?", correct=True, tokens=None, **more):
    """A run in which each agent hears the one before."""
    usage = None if tokens is None else Usage(tokens_in=tokens, tokens_out=0)
    steps = tuple(
        Step(str(k), agent, f"{agent} of {system}", heard=(Transfer(str(k - 1)),) if k else (), usage=usage)
        for k, agent in enumerate(agents)
    )
    return Trace(f"{system}/{'-'.join(agents)}", steps, task=task, system=system, correct=correct, **more)


RUNS = [
    chain("ours", "planner", "solver", "critic"),
    chain("theirs", "planner", "solver"),
    chain("theirs", "solver", "critic", "solver", correct=False),
    chain("others", "planner", "coder", "critic"),
]


def saved(tmp_path, traces=RUNS, name="forest.jsonl", **how):
    path = tmp_path / name
    path.write_text(build_forest(traces, **how).to_jsonl())
    return path


def row(trace, metric, **how):
    (found,) = cp.evaluate([trace], [metric], **how).rows
    return found


def test_a_forest_holds_the_runs_that_were_right_and_says_what_it_is(tmp_path):
    forest = read_forest(saved(tmp_path))
    assert (forest.header.references, forest.header.runs, forest.header.where) == (3, 3, "correct")
    assert {reference.generator for reference in forest.references} == {"ours", "theirs", "others"}
    assert len(forest.header.roles_sha256) == 64


def test_equal_structures_of_one_system_are_one_reference_with_the_fewest_tokens(tmp_path):
    runs = [chain("a", "planner", "solver", tokens=tokens) for tokens in (30, 10, 20)]
    runs = [replace(run, answer=str(k), steps=(replace(run.steps[0], text=str(k)), *run.steps[1:]))
            for k, run in enumerate(runs)]  # fmt: skip
    forest = build_forest([*runs, chain("b", "planner", "solver")])
    assert [(r.generator, len(r.traces)) for r in forest.references] == [("a", 3), ("b", 1)]
    assert forest.references[0].graph().tokens == 20
    assert forest.header.runs == 4


def test_the_order_of_the_runs_changes_no_byte():
    assert build_forest(RUNS).to_jsonl() == build_forest(RUNS[::-1]).to_jsonl()


def test_texts_are_kept_only_where_asked_for_and_secrets_never(monkeypatch):
    secret = "sk-" + "a1B2" * 12
    monkeypatch.setattr(forests, "mask", lambda text: text.replace(secret, "[masked]"))
    run = replace(RUNS[0], steps=(replace(RUNS[0].steps[0], text=f"use {secret}"), *RUNS[0].steps[1:]))
    assert "planner of ours" not in build_forest(RUNS).to_jsonl()
    kept = build_forest([run], texts=True).to_jsonl()
    assert "solver of ours" in kept
    assert secret not in kept


def test_without_a_verified_run_no_forest_is_made():
    with pytest.raises(UsageError, match="no verified run among 1"):
        build_forest([chain("a", "solver", correct=None)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [], "first line is not that of a forest"),
        (lambda lines: ['{"schema": "counterpoint.trace/1", "id": "x", "steps": []}'], "not a forest"),
        (lambda lines: [lines[0].replace("forest/1", "forest/9"), *lines[1:]], "written by another version"),
        (lambda lines: lines[:-1], "cut off"),
        (lambda lines: [*lines[:-1], lines[-1][:-9]], "line 4"),
        (lambda lines: [*lines[:-1], lines[-1].replace("[0,1]", "[0,9]")], "line 4: an edge names node 9"),
        (lambda lines: [lines[0].replace('"where"', '"wear"'), *lines[1:]], "line 1"),
    ],
)
def test_a_bad_file_gives_a_reason_and_no_number(tmp_path, change, message):
    path = saved(tmp_path)
    path.write_text("\n".join(change(path.read_text().splitlines())))
    with pytest.raises(UsageError, match=message):
        read_forest(path)
    found = row(RUNS[0], f"forest_match(forest={path})")
    assert found.value is None
    assert str(path) in found.reason


def test_no_forest_gives_a_reason_and_a_mistyped_one_stops_at_once(tmp_path):
    assert "no forest was given" in row(RUNS[0], "forest_match").reason
    with pytest.raises(UsageError, match=r"nowhere\.jsonl"):
        row(RUNS[0], f"forest_match(forest={tmp_path / 'nowhere.jsonl'})")


@pytest.mark.parametrize(
    ("parameter", "message"), [("scope=some", "scope 'some'"), ("quality=best", "no family")]
)
def test_a_parameter_that_means_nothing_stops_at_once(tmp_path, parameter, message):
    with pytest.raises(UsageError, match=message):
        row(RUNS[0], f"forest_match(forest={saved(tmp_path)}, {parameter})")


def test_a_run_is_matched_with_the_runs_of_other_systems_by_default(tmp_path):
    path = saved(tmp_path)
    found = row(chain("ours", "planner", "solver", "verifier"), f"forest_match(forest={path})")
    assert found.parts["references"] == 2
    assert found.parts["low"] <= found.value <= found.parts["high"]
    assert found.parts["self_advantage"] == pytest.approx(found.parts["full"] - found.parts["loo"])
    assert found.parts["coverage"] == 1
    best = row(chain("ours", "planner", "solver", "verifier"), f"best_similarity(forest={path})")
    assert best.value == found.parts["best"] >= found.value


def test_a_table_of_scores_never_shows_a_match_without_its_bounds(tmp_path):
    scores = cp.evaluate(RUNS[:2], [f"forest_match(forest={saved(tmp_path)})"])
    for entry in scores.summary():
        assert entry.low <= entry.mean <= entry.high
        assert "weights [" in interval_text(entry)
    one = cp.evaluate(RUNS[:1], [f"forest_match(forest={saved(tmp_path)})"]).summary()[0]
    assert (one.ci_low, interval_text(one)[:9]) == (None, "weights [")


def test_editing_texts_changes_no_match(tmp_path):
    metric = f"forest_match(forest={saved(tmp_path)})"
    run = chain("x", "planner", "solver", "critic")
    edited = replace(run, steps=tuple(replace(step, text="quite other words") for step in run.steps))
    assert row(edited, metric).value == row(run, metric).value


def test_the_signature_names_role_table_and_forest(tmp_path):
    path = saved(tmp_path)
    signature = row(RUNS[0], f"forest_match(forest={path})").signature
    forest = read_forest(path)
    assert signature["roles_sha256"] == forest.header.roles_sha256
    assert signature["forest_sha256"] == forest.sha256


def test_the_very_run_is_never_its_own_reference(tmp_path):
    path = saved(tmp_path, [chain("", "planner", "solver"), chain("", "planner", "coder")])
    run = replace(chain("", "planner", "solver"), id="copied elsewhere")
    assert "this very run" in row(run, f"forest_match(forest={path})").reason
    assert row(run, f"forest_match(forest={path}, leave_out=trace)").parts["references"] == 1


@pytest.mark.parametrize(
    ("run", "how", "reason"),
    [
        (chain("x", "solver", "critic", task="3+3?"), {}, "no reference for task"),
        (chain("x", "solver", "critic"), {"evidence": "call"}, "use --evidence broadcast"),
        (Trace("t", (), task="2+2?"), {}, "no turn of an agent"),
        (Trace("t", (Step("1", "a", "x"), Step("2", "b", "y")), task="2+2?"), {}, "record `heard`"),
    ],
)
def test_what_cannot_be_compared_gives_a_reason(tmp_path, run, how, reason):
    path = saved(tmp_path)
    found = row(run, f"forest_match(forest={path})", **how)
    assert found.value is None
    assert reason in found.reason


def test_another_role_table_gives_a_reason(tmp_path):
    roles = tmp_path / "roles.json"
    roles.write_text(json.dumps({"solver": "coder"}))
    path = saved(tmp_path)
    found = row(RUNS[1], f"forest_match(forest={path}, roles={roles})")
    assert "made with role table default" in found.reason
    again = saved(tmp_path, name="again.jsonl", aliases=roles)
    assert row(RUNS[1], f"forest_match(forest={again}, roles={roles})").value is not None


def test_a_run_can_be_matched_with_the_references_of_every_task(tmp_path):
    run = chain("x", "planner", "solver", task="3+3?")
    assert row(run, f"forest_match(forest={saved(tmp_path)}, scope=all)").parts["references"] == 3


def test_a_forest_of_one_style_for_all_tasks_has_no_specificity(tmp_path):
    runs = [chain("a", "planner", "solver", task=f"{k}+{k}?") for k in range(4)]
    same = build_forest(runs)
    graph = RoleGraph.from_trace(chain("b", "planner", "solver", task="0+0?"))
    score = specificity(graph, same, graph.origin.task, others=2)
    assert (score.value, score.parts["others"]) == (0, 2)
    own = build_forest([runs[0], chain("a", "debater", "debater", "debater", task="1+1?")])
    assert specificity(graph, own, graph.origin.task).value > 0.5
    found = row(
        chain("b", "planner", "solver", task="0+0?"),
        f"forest_match(forest={saved(tmp_path, runs)}, others=3)",
    )
    assert found.parts["specificity"] == 0


def test_one_data_set_or_one_conditioning_can_be_left_out():
    runs = [chain("a", "planner", "solver", task=name, benchmark=name) for name in ("sums", "words")]
    left = build_forest(runs).without(dataset="sums")
    assert [reference.dataset for reference in left.references] == ["words"]
    assert left.header.references == 1
    gold = chain("b", "planner", "solver", labels={"conditioning": "gold"})
    assert len(build_forest([*RUNS, gold]).without(conditioning="gold").references) == 3


def test_chance_is_taken_off():
    assert chance_adjusted(0.75, 0.5).value == pytest.approx(0.5)
    assert chance_adjusted(0.9, 1).value is None


def test_renaming_agents_that_declare_their_roles_changes_nothing(tmp_path):
    path = saved(tmp_path)
    run = chain("x", "planner", "solver")
    named = replace(
        run, steps=tuple(replace(step, role=step.agent, agent=f"n{step.id}") for step in run.steps)
    )
    metric = f"forest_match(forest={path})"
    assert row(named, metric).value == row(run, metric).value


# --- the panel on traces -------------------------------------------------------------------------


def test_the_panel_reads_a_chain_of_three():
    run = chain("x", "planner", "solver", "critic")
    values = {name: row(run, name).value for name in ("node_validity", "efficiency", "content_redundancy")}
    assert values == pytest.approx({"node_validity": 1, "efficiency": 1 / 3, "content_redundancy": 0})


def test_uptake_reads_words_vectors_and_thresholds():
    run = chain("x", "planner", "solver")
    assert row(run, "mean_uptake(kind=containment)").value == pytest.approx(2 / 3)
    hashed = row(run, "mean_uptake", embedder="hashing")
    assert hashed.parts["edges"] == 1
    assert row(run, "mean_uptake(kind=soft)", embedder="hashing").value == pytest.approx(hashed.parts["soft"])
    with pytest.raises(UsageError, match="kind 'x'"):
        row(run, "mean_uptake(kind=x)", embedder="hashing")
    longer = chain("x", "planner", "solver", "critic")
    assert row(longer, "mean_uptake(threshold=calibrated)", embedder="hashing").value is not None


def test_near_redundancy_counts_what_content_redundancy_does_not():
    run = chain("x", "planner", "solver")
    assert row(run, "near_redundancy(threshold=-2)", embedder="hashing").value == pytest.approx(0.5)


def test_an_agent_alone_has_no_node_validity_and_takes_one_turn_at_a_time():
    alone = Trace("t", (Step("1", "a", "x"), Step("2", "a", "y")))
    assert "acts alone" in row(alone, "node_validity").reason
    assert row(alone, "efficiency").value == 1


@pytest.mark.parametrize(
    "name", ["mean_uptake", "node_validity", "content_redundancy", "near_redundancy", "efficiency"]
)
def test_an_empty_trace_has_no_panel(name):
    found = row(Trace("t", ()), name, embedder="hashing")
    assert found.value is None
    assert found.reason
