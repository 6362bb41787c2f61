"""Puppeteer: a path is a shared chat of chosen agents; its log says what was asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from counterpoint.adapters import read
from counterpoint.errors import TraceError
from counterpoint.trace import Trace


def item(agent: str, text: Any = None, action: str = "reason", **rest: Any) -> dict[str, Any]:
    result = {"step_data": text, "answer": None}
    return {"agent": agent, "action": {"action": action, "parameter": ""}, "result": result, **rest}


def path(file: Path, *items: Any) -> Trace:
    file.write_text(json.dumps(list(items), indent=4))
    (trace,) = read(file, format="puppeteer", on_error="raise")
    return trace


def test_everyone_hears_who_spoke_before_and_the_end_is_control(tmp_path: Path) -> None:
    trace = path(tmp_path / "x", item("A", "a"), item("B", "b"), item("T", action="terminate"))
    assert [(step.agent, step.kind) for step in trace.steps] == [
        ("A", "agent"),
        ("B", "agent"),
        ("T", "control"),
    ]
    assert [[t.source for t in step.heard] for step in trace.steps] == [[], ["0"], ["0", "1"]]


def test_tokens_are_known_as_one_sum(tmp_path: Path) -> None:
    trace = path(tmp_path / "x", item("A", tokens=3), item("B", tokens=4), item("C"))
    assert trace.labels["run_usage"] == {"tokens": 7}


def test_the_log_beside_a_path_tells_the_task(tmp_path: Path) -> None:
    facts = r"{'task': {'type': 'M', 'Question': 'It\'s \xe9\n\\ \"so\"', 'Answer': 'B', 'id': 7}}"
    (tmp_path / "path3.log").write_text(f"[1:02:03 INFO]\nUpdated global_info: {facts}\n")
    trace = path(tmp_path / "path_3.jsonl", item("A", "a"))
    assert (trace.task, trace.gold, trace.benchmark) == ('It\'s é\n\\ "so"', "B", "M")
    assert trace.labels["task_id"] == "7"
    assert path(tmp_path / "path_4.jsonl", item("A", "a")).task == ""


@pytest.mark.parametrize(
    "rest", ["", "Previous Agent sequence: A->B", "Updated global_info: {'task': {'Quest"]
)
def test_a_log_whose_last_line_is_cut_off_is_an_error(tmp_path: Path, rest: str) -> None:
    head = "[1:02:03 INFO]\n-----[Reasoning Path0 Start]-----\n[1:02:03 INFO]\nStart agent: B"
    (tmp_path / "path0.log").write_text(head + "\n" * bool(rest) + rest)
    with pytest.raises(TraceError, match="record 1: the log is cut off"):
        list(read(tmp_path / "path0.log", on_error="raise"))


def test_a_log_that_is_cut_off_is_read_up_to_its_last_line(tmp_path: Path) -> None:
    head = "[1:02:03 INFO]\n-----[Reasoning Path0 Start]-----\n[1:02:03 INFO]\n"
    (tmp_path / "path0.log").write_text(f"{head}Previous Agent sequence: A->B\nUpdated glob")
    reading = read(tmp_path / "path0.log", on_error=lambda error: None)
    assert [[step.agent for step in trace.steps] for trace in reading] == [["A", "B"]]
    assert len(reading.errors) == 1


def test_an_item_without_an_action_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match='item 2 has no "agent" with an "action" \\(found: agent\\)'):
        path(tmp_path / "x", item("A"), {"agent": "B"})


def test_real_paths_have_the_question_of_their_log(data: Path) -> None:
    traces = {trace.id: trace for trace in read(data / "traces" / "puppeteer", on_error="raise")}
    assert {name: len(trace.steps) for name, trace in traces.items()} == {
        "path0.log": 1,
        "path_0.jsonl": 1,
        "path_2.jsonl": 2,
        "path_4.jsonl": 2,
    }
    assert traces["path_0.jsonl"].gold == traces["path0.log"].gold == "I"
    assert traces["path_0.jsonl"].task.startswith("The following are multiple choice questions")
    assert traces["path_4.jsonl"].gold is None
    assert [step.answer is not None for step in traces["path_2.jsonl"].steps] == [True, True]
