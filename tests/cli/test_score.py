import csv
import gzip
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import lines, native

Run = Callable[..., Any]
METRICS = ("-m", "accuracy", "-m", "upr")


def test_the_table_shows_means_counts_directions_and_reasons(run: Run, traces: Path):
    told = run("score", traces, *METRICS)
    assert told.code == 0
    assert "metric" in told.out
    assert "s  n=2" in told.out
    assert "upr ↓" in told.out
    assert "1 undefined" in told.out
    assert "upr: 1 undefined: no gold answer: record one with the trace, or give --gold FILE" in told.out
    assert "profile strict · evidence broadcast" in told.out


def test_json_is_the_published_document(run: Run, traces: Path):
    told = run("score", traces, *METRICS, "--format", "json")
    found = json.loads(told.out)
    assert found["schema"] == "counterpoint.scores/1"
    assert set(found["rows"][0]) == {
        "run", "trace", "system", "metric", "value", "reason", "parts", "detail", "signature",
    }  # fmt: skip
    assert found["rows"][0]["run"] == str(traces)
    assert {"system", "metric", "mean", "ci_low", "ci_high", "n", "undefined", "micro"} <= set(
        found["summary"][0]
    )
    assert found["summary"][-1]["system"] is None
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(found, json.loads(run("schema", "scores").out))


def test_jsonl_and_csv_have_a_line_a_row_and_markdown_a_table(run: Run, traces: Path):
    rows = [json.loads(line) for line in run("score", traces, *METRICS, "--format", "jsonl").out.splitlines()]
    table = list(csv.DictReader(io.StringIO(run("score", traces, *METRICS, "--format", "csv").out)))
    assert len(rows) == len(table) == 4
    assert [row["trace"] for row in table] == [row["trace"] for row in rows]
    assert (rows[3]["value"], table[3]["value"]) == (None, "")
    markdown, _, reasons = run("score", traces, *METRICS, "--format", "md").out.partition("\n\n")
    table = markdown.splitlines()
    assert table[0] == "| system | metric | mean | 95 % interval | n | undefined |"
    assert len({line.count("|") for line in table}) == 1
    why = "1 undefined: no gold answer: record one with the trace, or give --gold FILE"
    assert reasons.split("\n\n")[0] == f"accuracy: {why}"


def test_hostile_names_are_text_in_every_format(run: Run, tmp_path: Path):
    path = tmp_path / "t.jsonl"
    path.write_text(lines(native("=1+1", system="[red]x|\x1b[31m<b>\u202e")))
    assert "\x1b" not in run("score", path, "-m", "steps").out
    assert "[red]x|" in run("score", path, "-m", "steps").out
    assert "'=1+1" in run("score", path, "-m", "steps", "--format", "csv").out
    assert r"\[red\]x\|" in run("score", path, "-m", "steps", "--format", "md").out


def test_secrets_are_masked_unless_asked_for(run: Run, tmp_path: Path):
    key = "sk-" + "proj-" + "a1B2" * 12
    path = tmp_path / "t.jsonl"
    path.write_text(lines(native("t", system=f"team {key}")))
    for form in ("table", "json", "jsonl", "csv", "md"):
        assert key not in run("score", path, "-m", "steps", "--format", form).out
    assert key in run("score", path, "-m", "steps", "--format", "json", "--keep-secrets").out
    assert key not in run("convert", path).out
    assert key in run("convert", path, "--keep-secrets").out


def test_a_file_is_written_whole_and_stdout_stays_empty(run: Run, traces: Path, tmp_path: Path):
    out = tmp_path / "scores.json"
    told = run("score", traces, *METRICS, "--format", "json", "-o", out)
    assert told.out == ""
    assert len(json.loads(out.read_text())["rows"]) == 4
    assert run("score", traces, *METRICS, "-o", tmp_path / "no" / "where").code == 2


def test_agents_can_be_left_out_renamed_and_systems_named(run: Run, traces: Path):
    told = run(
        "score", traces, "-m", "agents", "--format", "json", "--exclude-agent", "B",
        "--rename-agent", "A=Ada", "--system", "mine",
    )  # fmt: skip
    rows = json.loads(told.out)["rows"]
    assert {(row["system"], row["value"]) for row in rows} == {("mine", 1.0)}


def test_gzip_is_read_as_it_is(run: Run, traces: Path, tmp_path: Path):
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(traces.read_bytes()))
    assert len(json.loads(run("score", packed, "-m", "steps", "--format", "json").out)["rows"]) == 2


def test_ids_that_clash_between_arguments_get_the_argument_as_prefix(run: Run, traces: Path, tmp_path: Path):
    twin = tmp_path / "twin.jsonl"
    twin.write_text(traces.read_text())
    rows = json.loads(run("score", traces, twin, "-m", "steps", "--format", "json").out)["rows"]
    assert [row["trace"] for row in rows] == ["t1", "t2", f"{twin}:t1", f"{twin}:t2"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "bad.jsonl"),
        (b'{"id": "t", "steps": [{"id": "a"', "bad.jsonl"),
        (b"\x00\x01\x02\xff\xfe", "bad.jsonl"),
        (b'{"id": "t", "steps": [{"id": "a", "agent": "A"}]}\n', 'record 1: step 1 has no "text"'),
    ],
)
def test_bad_input_is_one_line_with_exit_code_2(run: Run, tmp_path: Path, content: bytes, expected: str):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    told = run("score", path, "-m", "steps")
    assert told.code == 2
    (line,) = [line for line in told.err.splitlines() if line.startswith("error")]
    assert expected in line


def test_one_bad_record_costs_no_good_one(run: Run, tmp_path: Path):
    path = tmp_path / "mixed.jsonl"
    path.write_text(
        lines(native("t1"), "{broken\n", native("t3", steps=[{"id": "a", "text": ""}]), native("t4"))
    )
    told = run("score", path, "-m", "steps", "--format", "json")
    assert told.code == 2
    assert [row["trace"] for row in json.loads(told.out)["rows"]] == ["t1", "t4"]
    assert "mixed.jsonl: record 2" in told.err
    assert "mixed.jsonl: record 3" in told.err


def test_repairable_faults_warn_and_end_well(run: Run, tmp_path: Path):
    steps = [
        {"id": "a", "agent": "A", "text": "ok \ud83d", "heard": ["b", "nowhere"]},
        {"id": "a", "agent": "B", "text": "7", "heard": ["a"]},
        {"id": "b", "agent": "A", "text": "7"},
    ]
    path = tmp_path / "t.jsonl"
    path.write_text(lines(native("t", steps=steps)))
    told = run("score", path, "-m", "steps", "--format", "json")
    assert told.code == 0
    warnings = " ".join(json.loads(told.out)["warnings"])
    for word in ("later than it", "not in the trace", "stands twice", "lone surrogates"):
        assert word in warnings


@pytest.mark.parametrize("steps", [[], [{"id": "a", "agent": "A", "text": "7"}]])
def test_no_steps_and_one_agent_have_rows_with_reasons(run: Run, tmp_path: Path, steps: list[Any]):
    path = tmp_path / "t.jsonl"
    path.write_text(lines(native("t", steps=steps)))
    told = run("score", path, "--format", "json", "--embedder", "hashing")
    rows = json.loads(told.out)["rows"]
    assert (told.code, len(rows)) == (0, 14)
    assert all((row["value"] is None) == bool(row["reason"]) for row in rows)


def test_a_folder_with_one_bad_file_among_good_ones_is_still_scored(run: Run, traces: Path):
    (traces.parent / "notes.txt").write_text("hello")
    (traces.parent / "cut.jsonl").write_text(lines(native("t9"))[:-20])
    told = run("score", traces.parent, "-m", "steps", "--format", "json")
    assert told.code == 2
    assert {row["trace"] for row in json.loads(told.out)["rows"]} == {"t1", "t2"}
    assert "cut.jsonl" in told.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-m", "urp"], "no metric 'urp' (did you mean 'upr'?)"),
        (["-m", "upr(threshold=2)"], "threshold"),
        (["--format", "xlsx"], "--format 'xlsx' is none of table"),
        (["--profile", "loose"], "profile 'loose' is none of strict, paper"),
        (["--profile", "strict", "-m", "upr(profile=paper)"], "profiles are never mixed in one table"),
        (["--evidence", "rumor"], "evidence 'rumor' is none of explicit"),
        (["--from", "natve"], "native"),
        (["--rename-agent", "A"], "--rename-agent 'A' is not of the form A=B"),
        (["--gold", "nowhere.csv"], "nowhere.csv: the gold file could not be read"),
        (["--answers", "essay"], "kind of answer 'essay'"),
        (["--answer-pattern", "(("], "pattern"),
    ],
)
def test_bad_usage_is_one_line_with_exit_code_2(run: Run, traces: Path, words: list[str], expected: str):
    told = run("score", traces, *(words if "-m" in words else ["-m", "accuracy", *words]))
    assert told.code == 2
    assert expected in told.err
    assert "Traceback" not in told.err


def test_list_names_ranges_and_directions(run: Run):
    entries = {entry["name"]: entry for entry in json.loads(run("list", "metrics", "--format", "json").out)}
    assert (entries["upr"]["range"], entries["upr"]["better"]) == ([0, 1], "lower")
    assert "native" in run("list", "adapters").out
    assert run("list", "metrix").code == 2


def test_help_and_version_and_the_module_form():
    for words in (["--version"], ["--help"], ["score", "--help"]):
        done = subprocess.run(
            [sys.executable, "-m", "counterpoint", *words], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip()
        assert not done.stderr


def test_the_same_input_gives_the_same_bytes(run: Run, traces: Path):
    words = ("score", traces, "--format", "json", "--embedder", "hashing")
    assert run(*words).out == run(*words).out


def test_the_demo_shows_equal_accuracy_and_unequal_waste(run: Run):
    told = run("demo", "--format", "json")
    means = {
        (entry["system"], entry["metric"]): entry["mean"]
        for entry in json.loads(told.out)["summary"]
        if entry["system"]
    }
    assert means["panel", "accuracy"] == means["echo", "accuracy"]
    assert means["panel", "ids"] > means["echo", "ids"] + 0.1
    assert means["panel", "upr"] < means["echo", "upr"] - 0.3


def test_answers_that_nobody_could_read_stand_beside_the_accuracy(run: Run, tmp_path: Path):
    said = {"read": ("The answer is 7.", "The answer is 8."), "lost": ("The answer is 7.", "I give up.")}
    for name, texts in said.items():
        told = [
            {
                "id": f"q{n}",
                "system": "s",
                "gold": "7",
                "task": f"q{n}?",
                "steps": [{"id": "a", "agent": "A", "text": text}],
            }
            for n, text in enumerate(texts)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in told))
    read, lost = tmp_path / "read.jsonl", tmp_path / "lost.jsonl"
    assert re.search(r"accuracy ↑ +0\.500.* 1 of 2 unread", run("score", lost, "-m", "accuracy").out)
    assert "| 0.500 (1 of 2 unread) |" in run("score", lost, "-m", "accuracy", "--format", "md").out
    assert "unread" not in run("score", read, "-m", "accuracy").out
    compared = run("compare", read, lost, "-m", "accuracy").out
    assert (
        f"warning: {lost}: accuracy counts final answers that could not be read as wrong: 1 of 2" in compared
    )
    assert compared.count("could not be read") == 1
