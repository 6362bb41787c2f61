"""The command `run` against a scripted endpoint on loopback: real requests, no model."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counterpoint.adapters import read
from counterpoint.contracts import Reply
from counterpoint.models.scripted import Fault, Turn, scripted_server
from counterpoint.registry import names
from counterpoint.runtime.systems import system
from counterpoint.trace import Trace

Run = Callable[..., Any]


def questions(count: int) -> str:
    """GSM8K's form: n + 7."""
    asked = ({"question": f"What is {n} + 7?", "answer": f"Add.\n#### {n + 7}"} for n in range(count))
    return "".join(json.dumps(one) + "\n" for one in asked)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "gsm8k_test.jsonl"
    path.write_text(questions(4))
    return path


def reply(messages: Any) -> str:
    """Says 7, and as many words as there are messages to hear."""
    return "I heard. " * messages[-1]["content"].count("\n[") + "The answer is 7."


def sent(server: Any, data: Path, folder: Path, *more: object) -> list[object]:
    return [
        "run", "gsm8k", "--data", data, "--model", "m", "--base-url", server.base_url, "-o", folder,
        "--embedder", "hashing", *more,
    ]  # fmt: skip


def used(traces: list[Trace]) -> tuple[int, int]:
    usages = [step.usage for trace in traces for step in trace.steps if step.usage is not None]
    return sum(one.tokens_in or 0 for one in usages), sum(one.tokens_out or 0 for one in usages)


def test_a_run_prints_the_row_of_table_1_and_leaves_a_folder(run: Run, data: Path, tmp_path: Path):
    with scripted_server(reply) as server:
        told = run(*sent(server, data, tmp_path / "r", "--system", "vanilla"))
    assert told.code == 0
    for head in ("accuracy", "Ptok", "Ctok", "IDS", "UPR", "unread", "profile paper", "hashing-384"):
        assert head in told.out
    assert "36 calls" in told.err
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == [
        "config.json", "log.jsonl", "scores.json", "traces.jsonl",
    ]  # fmt: skip
    traces = list(read(tmp_path / "r" / "traces.jsonl"))
    assert used(traces) == (server.tokens_in, server.tokens_out)
    assert [trace.correct for trace in traces] == [True, False, False, False]
    assert run("score", tmp_path / "r" / "traces.jsonl", "-m", "accuracy").code == 0


def test_what_was_set_is_sent_and_what_was_not_is_left_out(run: Run, data: Path, tmp_path: Path):
    with scripted_server(reply) as server:
        run(*sent(server, data, tmp_path / "a", "--system", "single", "--limit", "1"))
        run(*sent(server, data, tmp_path / "b", "--system", "single", "--limit", "1",
                  "--temperature", "0", "--top-p", "0.9", "--max-tokens", "64", "--seeds", "2",
                  "--threads", "1"))  # fmt: skip
    bodies = [{name: value for name, value in request.body.items() if name != "messages"}
              for request in server.requests]  # fmt: skip
    assert bodies == [
        {"model": "m", "seed": 0},
        {"model": "m", "seed": 0, "temperature": 0.0, "top_p": 0.9, "max_tokens": 64},
        {"model": "m", "seed": 1, "temperature": 0.0, "top_p": 0.9, "max_tokens": 64},
    ]


def test_a_narrow_terminal_shows_the_row_as_lines(run: Run, data: Path, tmp_path: Path, monkeypatch: Any):
    monkeypatch.setenv("COLUMNS", "60")
    told = run("run", "gsm8k", "--data", data, "--model", "simulated(accuracy=1)", "--system", "debate",
               "--embedder", "hashing", "-o", tmp_path / "r")  # fmt: skip
    assert told.out.splitlines()[0].split() == ["system", "debate"]
    assert "accuracy    1.000" in told.out


@pytest.mark.parametrize("format", ["json", "jsonl", "csv", "md"])
def test_every_form_of_the_output_can_be_read(run: Run, data: Path, tmp_path: Path, format: str):
    with scripted_server(reply) as server:
        told = run(*sent(server, data, tmp_path / "r", "--system", "single", "--format", format))
    if format == "json":
        found = json.loads(told.out)
        assert found["schema"] == "counterpoint.scores/1"
        assert {row["signature"]["profile"] for row in found["rows"]} == {"paper"}
        assert json.loads((tmp_path / "r" / "scores.json").read_text()) == found
    elif format == "jsonl":
        assert {json.loads(line)["metric"] for line in told.out.splitlines()} >= {"accuracy", "ids", "upr"}
    elif format == "csv":
        assert len(list(csv.DictReader(io.StringIO(told.out)))) == 4 * 6
    else:
        table = [line for line in told.out.splitlines() if line.startswith("|")]
        assert len(table) == 3
        assert len({line.count("|") for line in table}) == 1


def test_metrics_that_are_asked_for_follow_the_row_in_their_own_profile(run: Run, data: Path, tmp_path: Path):
    with scripted_server(reply) as server:
        told = run(*sent(server, data, tmp_path / "r", "-m", "steps", "-m", "upr", "--limit", "2"))
    assert "profile paper" in told.out
    assert "profile strict" in told.out
    found = json.loads((tmp_path / "r" / "scores.json").read_text())
    assert {row["metric"] for row in found["rows"]} == {"steps", "upr"}


def test_a_dry_run_asks_nothing_and_says_what_it_would_take(run: Run, data: Path):
    told = run("run", "gsm8k", "--data", data, "--model", "gpt-4o-mini", "--dry-run")
    assert told.code == 0
    assert "4 questions, 36 calls" in told.out
    assert "USD" in told.out
    shown = run("run", "gsm8k", "--data", data, "--model", "x", "--dry-run", "--format", "json")
    assert json.loads(shown.out)["cost_usd"] is None


def test_a_learned_wiring_takes_the_place_of_the_topology(run: Run, data: Path, tmp_path: Path):
    file = tmp_path / "learned.json"
    nobody = [[0] * 4] * 4
    wiring = {"schema": "counterpoint.wiring/1", "speaks": [[1, 0, 1, 0]], "within": [nobody], "across": []}
    file.write_text(json.dumps(wiring))
    with scripted_server(reply) as server:
        told = run(*sent(server, data, tmp_path / "r", "--wiring", file))
    assert told.code == 0
    (first, *_) = read(tmp_path / "r" / "traces.jsonl")
    assert first.system == "vanilla+learned"
    assert [step.agent for step in first.steps] == ["analyst", "math_solver", "FinalRefer"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gsm9k"], "did you mean 'gsm8k'"),
        (["gsm8k", "--system", "vanila"], "did you mean 'vanilla'"),
        (["gsm8k", "-m", "updr"], "did you mean 'upr'"),
        (["gsm8k", "--budget-usd", "0"], "--budget-usd is a number above 0"),
        (["gsm8k", "--requests-per-minute", "-1"], "--requests-per-minute is a number above 0"),
        (["gsm8k", "--tokens-per-minute", "nan"], "--tokens-per-minute is a number above 0"),
        (["gsm8k", "--timeout", "0"], "--timeout is a number of seconds"),
        (["gsm8k", "--timeout", "nan", "--dry-run"], "--timeout is a number of seconds"),
        (["gsm8k", "--budget-usd", "0", "--dry-run"], "--budget-usd is a number above 0"),
        (["gsm8k", "--model", "simulated(speed=1)"], "simulated has no parameter 'speed'"),
        (["gsm8k", "--model", "simulated(acuracy=1)"], "did you mean 'accuracy'"),
        (["gsm8k", "--model", "simulated(accuracy=high)"], "accuracy of a simulated model is a share"),
        (["gsm8k", "--model", "simulated(verbosity=1.5)"], "verbosity of a simulated model"),
        (["gsm8k", "--model", "simulated(seed=1)"], "--seeds"),
        (["gsm8k", "--model", "simulated(accuracy=1"], "not of the form"),
        (["gsm8k", "--model", "simulate(accuracy=1)"], "did you mean 'simulated'"),
        (["gsm8k", "--model", " "], "--model is empty"),
        (["gsm8k", "--temperature", "nan"], "--temperature is a number from 0"),
        (["gsm8k", "--top-p", "0"], "--top-p is a share above 0 and up to 1, not 0"),
        (["gsm8k", "--model", "simulated", "--top-p", "0.9"], "--top-p: no model in this process has it"),
        (["gsm8k", "--requests-per-minute", "1e-9"], "--requests-per-minute is at least 0.001, not 1e-09"),
        (["gsm8k", "--temperature", "-1"], "--temperature is a number from 0"),
        (["gsm8k", "-o", "never-made", "--profile", "fancy"], "--profile 'fancy' is none of"),
        (["gsm8k", "-o", "never-made", "--embedder", "hashin"], "did you mean 'hashing'"),
        (["gsm8k", "--format", "html"], "--format"),
        (["gsm8k", "--wiring", "none.json"], "none.json"),
        (["gsm8k", "--base-url", "ftp://x"], "base URL"),
        (["gsm8k", "-o", "never-made", "--api-key-env", "sk-proj-abc"], "not repeated here"),
        (["gsm8k", "-o", "never-made", "--api-key-env", "NOT_SET"], "variable NOT_SET that was named"),
        (
            ["gsm8k", "-o", "never-made", "--model", "simulated", "--api-key-env", "a/b=="],
            "not repeated here",
        ),
        (["gsm8k"], "-o FOLDER"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(run: Run, data: Path, words: list[str], message: str):
    name, *more = words
    url = [] if "--base-url" in more else ["--base-url", "http://127.0.0.1:9/v1"]
    model = [] if "--model" in more else ["--model", "m"]
    told = run("run", name, "--data", data, *model, *url, *more)
    assert told.code == 2
    assert message in told.err
    assert len(told.err.splitlines()) == 1
    assert not {"sk-proj-abc", "a/b=="} & set(told.err.split())
    assert not Path("never-made").exists()


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("ALL_PROXY", "socks5://me:hunter2@proxy:1", "ALL_PROXY: SOCKS proxies need the package socksio"),
        ("HTTP_PROXY", "weird://me:hunter2@proxy:1", "HTTP_PROXY: Unknown scheme for proxy URL"),
        ("SSL_CERT_FILE", "/nope", "SSL_CERT_FILE=/nope cannot be used for connections: No such file"),
    ],
)
@pytest.mark.parametrize("command", ["run", "claims", "score"])
def test_an_environment_that_lets_no_connection_be_made_is_one_line(
    run: Run,
    data: Path,
    tmp_path: Path,
    monkeypatch: Any,
    variable: str,
    value: str,
    message: str,
    command: str,
):
    monkeypatch.setenv(variable, value)
    url = "http://127.0.0.1:9/v1"
    traces = tmp_path / "traces.jsonl"
    traces.write_text('{"id": "t", "steps": [{"id": "s", "agent": "a", "text": "Two claims. And a third."}]}')
    words = {
        "run": ["run", "gsm8k", "--data", data, "--model", "m", "--base-url", url, "-o", tmp_path / "r"],
        "claims": ["claims", traces, "--judge", "llm", "--model", "m", "--base-url", url],
        "score": ["score", traces, "-m", f"unique_claims(judge=llm, model=m, base_url={url})"],
    }[command]
    told = run(*words)
    assert (told.code, told.out, len(told.err.splitlines())) == (2, "", 1)
    assert message in told.err
    assert "hunter2" not in told.err


def test_a_run_without_one_reply_is_no_success(run: Run, data: Path, tmp_path: Path):
    with scripted_server(Fault(status=401)) as server:
        told = run(*sent(server, data, tmp_path / "r", "--system", "single"))
    assert told.code == 2
    assert told.err.splitlines()[-1].startswith("counterpoint: stopped after 0 of 4 questions: the endpoint")
    assert "HTTP 401" in told.err


def test_the_key_is_sent_and_written_nowhere(run: Run, data: Path, tmp_path: Path, monkeypatch: Any):
    key = "my-own-kind-of-key-8471"
    monkeypatch.setenv("MY_KEY", key)
    quoting = [
        Turn(f"Your key is {key}. The answer is 7.", model=f"m-{key}", finish_reason=key, cost_usd=0.1),
        Turn(refusal=f"Not with {key}."),
        Fault(status=400, body=json.dumps({"error": {"message": f"{key} is wrong", "code": key}})),
        Fault.garbage(f"{key}?"),
    ]
    with scripted_server([*quoting, *["The answer is 7."] * 4]) as server:
        words = ["--system", "single", "--api-key-env", "MY_KEY", "--threads", "1"]
        told = run(*sent(server, data, tmp_path / "r", *words))
    assert "[secret:key]" in told.err
    assert server.requests[0].headers["authorization"] == "(hidden)"
    page = tmp_path / "page.html"
    assert run("report", tmp_path / "r", "-o", page, "--embedder", "hashing").code == 0
    written = [path.read_text() for path in [page, *(tmp_path / "r").iterdir()]]
    assert not any(key in text for text in [told.out, told.err, *written])
    assert "Your key is [secret:key]." in page.read_text()


def test_failures_are_named_on_stderr_and_the_rest_is_scored(run: Run, data: Path, tmp_path: Path):
    def partly(messages: Any) -> str:
        if "What is 2 + 7?" in messages[-1]["content"]:
            raise ValueError("broken script")  # the server answers HTTP 400, which is not tried again
        return "The answer is 7."

    with scripted_server(partly) as server:
        told = run(*sent(server, data, tmp_path / "r", "--system", "single"))
    assert told.code == 0
    assert "HTTP 400" in told.err
    assert "direct" in told.err
    assert len(list(read(tmp_path / "r" / "traces.jsonl"))) == 4


def test_a_simulated_team_runs_without_an_endpoint(run: Run, data: Path, tmp_path: Path):
    words = ["run", "gsm8k", "--data", data, "--model", "simulated(accuracy=1.0)", "--system", "debate",
             "--embedder", "hashing"]  # fmt: skip
    told = run(*words, "-o", tmp_path / "r")
    assert told.code == 0
    assert all(trace.correct for trace in read(tmp_path / "r" / "traces.jsonl"))


def test_every_parameter_of_a_simulated_team_is_heard(run: Run, data: Path, tmp_path: Path):
    model = "simulated(accuracy=0.5, copying=1, stubbornness=0, verbosity=3)"
    told = run("run", "gsm8k", "--data", data, "--model", model, "--system", "chain(rounds=1)",
               "--temperature", "0", "--embedder", "hashing", "-o", tmp_path / "r")  # fmt: skip
    assert told.code == 0
    assert "warning: a simulated model has no temperature: left out" in told.err
    for trace in read(tmp_path / "r" / "traces.jsonl"):
        first, second, *_ = trace.steps
        assert second.answer == first.answer, "who copies takes the answer of the one that it hears"
        assert len(first.text.split("\n")[0].split()) == 3


def test_a_budget_in_tokens_stops_between_two_calls_and_resume_goes_on(run: Run, data: Path, tmp_path: Path):
    with scripted_server(lambda _: Reply("The answer is 7.", 90, 10)) as server:
        words = sent(server, data, tmp_path / "r", "--system", "debate", "--threads", "1")
        told = run(*words, "--budget-tokens", "700")
        assert told.code == 2
        assert told.err.splitlines()[-1] == (
            "counterpoint: stopped after 1 of 4 questions: the budget of 700 tokens is used up: 700 spent, "
            "and a further call may take 100 (to go on: --resume)"
        )
        assert len(server.requests) == 7
        again = run(*words, "--budget-tokens", "5000", "--resume")
        assert again.code == 0
        assert len(server.requests) == 24
    assert len(list(read(tmp_path / "r" / "traces.jsonl"))) == 4


def test_a_budget_in_dollars_goes_by_what_the_endpoint_charges(run: Run, data: Path, tmp_path: Path):
    with scripted_server(lambda _: Reply("The answer is 7.", 90, 10, cost_usd=0.25)) as server:
        words = sent(server, data, tmp_path / "r", "--system", "single", "--threads", "1")
        told = run(*words, "--budget-usd", "0.6", "-m", "cost_usd", "--format", "json")
    assert told.code == 2
    assert "warning: no public price for model 'm'" in told.err
    assert "0.50 USD" in told.err
    assert len(server.requests) == 2
    found = json.loads((tmp_path / "r" / "scores.json").read_text())
    assert [row["value"] for row in found["rows"]] == [0.25, 0.25]


def test_calls_a_minute_are_kept_to(run: Run, data: Path, tmp_path: Path):
    with scripted_server(reply) as server:
        run(*sent(server, data, tmp_path / "r", "--system", "single", "--requests-per-minute", "120"))
    starts = sorted(request.started_at for request in server.requests)
    assert len(starts) == 4
    assert starts[-1] - starts[0] >= 3 * 0.5 - 0.75  # the first may have come late


def test_samples_of_one_prompt_are_asked_for_under_seeds_of_their_own(run: Run, data: Path, tmp_path: Path):
    words = ["--system", "cot-sc(agents=3)", "--temperature", "0.7", "--seeds", "2", "--limit", "2"]
    with scripted_server(reply) as server:
        run(*sent(server, data, tmp_path / "r", *words))
        first = sorted(json.dumps(request.body) for request in server.requests)
        run(*sent(server, data, tmp_path / "again", *words))
        second = sorted(json.dumps(request.body) for request in server.requests[len(first) :])
    assert len(set(first)) == len(first) == 2 * 2 * 3, "no two requests are the same"
    assert {json.loads(body)["seed"] for body in first} == {0, 1, 1000, 1001, 2000, 2001}
    assert second == first


def test_temperature_0_and_a_seed_give_the_same_traces_twice(run: Run, data: Path, tmp_path: Path):
    with scripted_server(reply) as server:
        for name, threads in (("a", 1), ("b", 8)):
            words = ["--temperature", "0", "--seeds", "2", "--threads", threads]
            assert run(*sent(server, data, tmp_path / name, *words)).code == 0
    first, second = (
        re.sub(rb'"(started|ended)_at":[0-9.]+', b"", (tmp_path / name / "traces.jsonl").read_bytes())
        for name in ("a", "b")
    )
    assert first == second
    assert {request.body["temperature"] for request in server.requests} == {0.0}


def falsify(traces: Path) -> None:
    """Every answer and grade that is recorded becomes a wrong one; the texts stay."""
    told = re.sub(r'"answer":(null|"[^"]*")', '"answer":"-999"', traces.read_text())
    traces.write_text(re.sub(r'"correct":(true|false)', '"correct":false', told))


@pytest.mark.parametrize("name", ["single", "debate", "vanilla"])
def test_grading_anew_reads_every_answer_from_the_texts(run: Run, data: Path, tmp_path: Path, name: str):
    folder = tmp_path / "r"
    said = iter(["The answer is 7.", "So it is 8 in all.", "I cannot tell."] * 40)
    asked = ["-m", "accuracy", "-m", "unparsed", "-m", "upr", "-m", "blame", "-m", "upr_uptake", "--format"]
    with scripted_server(lambda messages: next(said)) as server:
        run(*sent(server, data, folder, "--system", name, "--threads", 1, *asked, "json"))
    before = run("score", folder, *asked, "csv", "-q").out
    falsify(folder / "traces.jsonl")
    changed = run("score", folder, *asked, "csv", "-q").out
    after = run("score", folder, "--regrade", *asked, "csv", "-q").out
    rows = [
        [
            [row[key] for key in ("trace", "metric", "value", "parts")]
            for row in csv.DictReader(io.StringIO(text))
        ]
        for text in (before, changed, after)
    ]
    assert rows[0] == rows[2] != rows[1]


def test_run_folders_are_scored_anew_compared_and_shown_as_they_are(run: Run, data: Path, tmp_path: Path):
    for name, accuracy in (("worse", 0.0), ("better", 1.0)):
        model = f"simulated(accuracy={accuracy})"
        run("run", "gsm8k", "--data", data, "--model", model, "--system", "debate", "--embedder", "hashing",
            "-o", tmp_path / name)  # fmt: skip
    falsify(tmp_path / "better" / "traces.jsonl")
    shown = run("score", tmp_path / "better", "-m", "accuracy", "--format", "json")
    again = run("score", tmp_path / "better", "--regrade", "-m", "accuracy", "--format", "json")
    assert [row["value"] for row in json.loads(shown.out)["rows"]] == [0.0] * 4
    assert [row["value"] for row in json.loads(again.out)["rows"]] == [1.0] * 4
    both = run("compare", tmp_path / "worse", tmp_path / "better", "-m", "accuracy")
    assert "4 tasks paired, 4 of them by seed too" in both.out
    page = run(
        "report", tmp_path / "worse", tmp_path / "better", "-o", tmp_path / "report.html", "-m", "steps"
    )
    assert (again.err, both.err, page.code) == ("", "", 0)
    assert "skipped" not in page.err


@pytest.mark.parametrize("kind", ["systems", "topologies", "protocols", "benchmarks"])
def test_what_can_be_run_is_listed_with_a_summary(run: Run, kind: str):
    found = json.loads(run("list", kind, "--format", "json").out)
    assert all(entry["summary"] for entry in found)


# --- slow: everything with everything, and a process that is killed -----------------------------------

FOLDERS = {"gsm8k": "gsm8k", "aqua": "AQuA", "multiarith": "MultiArith", "svamp": "SVAMP", "mmlu": "MMLU"}


def data_of(benchmark: str, root: Path, folder: Path) -> Path:
    """The published files where they are at hand, else 20 small questions of our own in their form."""
    known = Path(os.environ.get("COUNTERPOINT_DATA", root.parent / "shared" / "data"))
    published = known / "benchmarks" / FOLDERS[benchmark]
    return published if published.is_dir() else miniature(benchmark, folder)


def miniature(benchmark: str, folder: Path) -> Path:
    """Twenty times one question, each with a number of its own in it, so that ids differ."""
    options = ["5", "7", "9", "11"]
    records: dict[str, list[dict[str, Any]]] = {
        "gsm8k": [{"question": f"Case {n}: 3 + 4?", "answer": "#### 7"} for n in range(20)],
        "aqua": [
            {"question": f"Case {n}: 3 + 4?", "options": ["A)5", "B)7", "C)9", "D)1", "E)2"], "correct": "B"}
            for n in range(20)
        ],
        "multiarith": [{"question": f"Case {n}: 3 + 4?", "final_ans": "7"} for n in range(20)],
        "svamp": [
            {"ID": f"chal-{n}", "Body": f"Case {n}.", "Question": "3 + 4?", "Answer": 7.0} for n in range(20)
        ],
        "mmlu": [
            {"question": f"Case {n}: 3 + 4?", "choices": options, "answer": 1,
             "subject": "elementary_mathematics"} for n in range(20)
        ],
    }  # fmt: skip
    path = folder / "test.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records[benchmark]))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("dataset", names("benchmark"))
@pytest.mark.parametrize("name", names("system"))
def test_every_system_runs_on_every_benchmark(run: Run, root: Path, tmp_path: Path, dataset: str, name: str):
    def answers(messages: Any) -> str:
        text = messages[-1]["content"]
        said = "B" if "<letter>" in text else str(sum(map(ord, messages[0]["content"])) % 3)
        return f"Seen {len(text)}. The answer is {said}"

    with scripted_server(answers) as server:
        told = run(
            "run", dataset, "--data", data_of(dataset, root, tmp_path), "--system", name, "--model", "m",
            "--base-url", server.base_url, "--limit", "20", "-o", tmp_path / "r", "--format", "md",
            "--embedder", "hashing", "--threads", "16",
        )  # fmt: skip
    assert told.code == 0, told.err
    table = [line for line in told.out.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1
    assert len(table) == 3
    traces = list(read(tmp_path / "r" / "traces.jsonl"))
    assert len(traces) == 20
    assert used(traces) == (server.tokens_in, server.tokens_out)
    assert not [step.error for trace in traces for step in trace.steps if step.error]
    chosen = system(name)
    kind = "choice" if dataset in ("aqua", "mmlu") else "number"
    agents = [agent.name for agent in chosen.agents(kind)]
    wiring = chosen.wiring(0)
    expected = {(f"{t}.{agents[i]}", f"{t}.{agents[j]}") for t, i, j in np.argwhere(wiring.within)}
    expected |= {(f"{t}.{agents[i]}", f"{t + 1}.{agents[j]}") for t, i, j in np.argwhere(wiring.across)}
    for trace in traces:
        found = {(one.source, step.id) for step in trace.steps if step.kind == "agent" for one in step.heard}
        assert found == expected
        decisions = [step for step in trace.steps if step.kind == "decision"]
        last = {f"{len(wiring.speaks) - 1}.{agent}" for agent in agents}
        assert [{one.source for one in step.heard} for step in decisions] == (
            [] if chosen.protocol == "last" else [last]
        )


@pytest.mark.slow
@pytest.mark.parametrize("script", ["gemmas_table1.sh", "gemmas_table2.sh"])
def test_the_commands_behind_the_tables_are_ones_that_run(root: Path, tmp_path: Path, script: str):
    for benchmark, folder in FOLDERS.items():
        (tmp_path / folder).mkdir()
        miniature(benchmark, tmp_path / folder)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", root / "runs" / script, "--dry-run"], capture_output=True, text=True, check=False,
        env={**os.environ, "DATA": str(tmp_path), "OUT": str(tmp_path), "PATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("20 questions, 180 calls") == 10


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_and_pays_for_nothing_twice(tmp_path: Path, data: Path):
    data.write_text(questions(30))
    threads = 4
    with scripted_server(reply, latency_s=0.02) as server:
        command = [sys.executable, "-m", "counterpoint", *map(str, sent(
            server, data, tmp_path / "r", "--system", "vanilla", "--threads", threads, "--resume",
        ))]  # fmt: skip
        for upto in (60, 150):
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            deadline = time.monotonic() + 300
            while len(server.requests) < upto and time.monotonic() < deadline:
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        whole = (tmp_path / "r" / "log.jsonl").read_text().rpartition("\n")[0]
        before = [json.loads(line) for line in whole.splitlines()]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    calls = [json.loads(line) for line in (tmp_path / "r" / "log.jsonl").read_text().splitlines()]
    kept = [(one["job"], one["call"]) for one in calls if one["event"] == "call"]
    assert len(kept) == len(set(kept)) == 30 * 9
    assert next(one for one in before if one["event"] == "call") in calls
    complete = sum(request.complete for request in server.requests)
    assert 270 <= complete <= 270 + 2 * threads
    traces = list(read(tmp_path / "r" / "traces.jsonl"))
    assert len(traces) == 30
    replies = [one["reply"] for one in calls if one["event"] == "call"]
    assert used(traces)[0] == sum(one["tokens_in"] for one in replies)


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_leaves_a_folder_that_goes_on(tmp_path: Path, data: Path):
    data.write_text(questions(20))
    asked, stopping = itertools.count(1), threading.Event()

    def held(messages: Any) -> Any:
        """The first are answered; the others when the run has said that it stops."""
        assert next(asked) <= 20 or stopping.wait(300)
        return reply(messages)

    with scripted_server(held) as server:
        command = [sys.executable, "-m", "counterpoint", *map(str, sent(server, data, tmp_path / "r"))]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while len(server.requests) < 21:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert process.stderr.readline().startswith("stopping: ")
        stopping.set()
        _, told = process.communicate(timeout=300)
        assert process.returncode == 130
        assert "--resume" in told
        assert "Traceback" not in told
        done = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=False)
        assert done.returncode == 0
    assert sum(request.complete for request in server.requests) == 20 * 9
    assert len(list(read(tmp_path / "r" / "traces.jsonl"))) == 20
