from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import lines, native

Run = Callable[..., Any]


def test_one_trace_is_told_in_words(run: Run, traces: Path):
    told = run("explain", traces, "--embedder", "hashing")
    assert told.code == 0
    assert told.out.startswith("trace     t1  (system s)")
    for words in ("answer    7, right (gold 7)", "agents", "diversity", "paths", "repeated text"):
        assert words in told.out
    assert "the right answer was kept; first given by a (A)" in told.out
    assert "note: 1 of 2 traces; name another by --trace ID" in told.err


def test_a_trace_is_named_and_a_wrong_name_gets_a_suggestion(run: Run, traces: Path):
    assert run("explain", traces, "--trace", "t2", "--embedder", "hashing").out.startswith("trace     t2")
    told = run("explain", traces, "--trace", "tt1")
    assert told.code == 2
    assert "no trace 'tt1' (did you mean" in told.err
    assert "there are: t1, t2" in told.err


def test_a_trace_whose_calls_failed_is_not_explained_and_the_reason_is_told(run: Run, tmp_path: Path):
    path = tmp_path / "traces.jsonl"
    path.write_text(lines(native("t1"), native("t2", labels={"failed_calls": 1, "calls": 3})))
    told = run("explain", path, "--trace", "t2", "--embedder", "hashing")
    assert (told.code, told.out) == (2, "")
    assert told.err.splitlines() == [
        f"counterpoint: {path}: trace 't2' cannot be explained: 1 of 3 calls of this question failed: "
        "run it again with --resume"
    ]
    assert run("explain", path, "--embedder", "hashing").code == 0


def test_json_holds_all_of_it(run: Run, traces: Path):
    found = json.loads(run("explain", traces, "--format", "json", "--embedder", "hashing").out)
    assert found["schema"] == "counterpoint.explain/1"
    assert (found["trace"], found["correct"], found["shares"]["paths"]) == ("t1", True, 1)
    assert [event["what"] for event in found["events"]] == ["begins", "takes over", "final"]


def test_it_is_written_to_a_file_and_gold_can_be_given_beside(run: Run, traces: Path, tmp_path: Path):
    gold, out = tmp_path / "gold.csv", tmp_path / "out.txt"
    gold.write_text("trace,gold\nt1,8\n")
    told = run("explain", traces, "--gold", gold, "-o", out, "-q", "--embedder", "hashing")
    assert (told.out, told.err) == ("", "")
    assert "7, wrong (gold 8)" in out.read_text()
    assert "first decisive error, by the rule 'origin': a (A)" in out.read_text()


def test_secrets_are_masked_even_where_a_text_is_cut_and_control_characters_dropped(run: Run, tmp_path: Path):
    key = "sk-" + "proj-" + "a1B2" * 12
    path = tmp_path / "t.jsonl"
    task = "x" * 70 + f" {key} and so on"
    steps = [
        {"id": "a\n\x1b[31m", "agent": "A\u202e", "text": f"Use {key} for all of it."},
        {"id": "b", "agent": "B", "text": f"Use {key} for all of it.", "heard": ["a\n\x1b[31m"]},
        {"id": "c", "agent": "C", "text": "Well.", "heard": ["a\n\x1b[31m", "b"]},
    ]
    path.write_text(lines(native("t", task=task, steps=steps)))
    told = run("explain", path, "--embedder", "hashing")
    assert "sk-proj" not in told.out
    assert "\x1b" not in told.out
    assert "\u202e" not in told.out
    assert key not in run("explain", path, "--embedder", "hashing", "--format", "json").out
    assert key in run("explain", path, "--embedder", "hashing", "--format", "json", "--keep-secrets").out


@pytest.mark.parametrize("content", ["", "{broken\n"])
def test_nothing_to_explain_is_one_line_with_exit_code_2(run: Run, tmp_path: Path, content: str):
    path = tmp_path / "bad.jsonl"
    path.write_text(content)
    told = run("explain", path, "--from", "native")
    assert told.code == 2
    assert "Traceback" not in told.err


def test_a_trace_without_agents_is_explained_too(run: Run, tmp_path: Path):
    path = tmp_path / "t.jsonl"
    path.write_text(lines(native("t", steps=[])))
    told = run("explain", path, "--embedder", "hashing")
    assert told.code == 0
    assert "no transfer connects two steps" in told.out
