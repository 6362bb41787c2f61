"""AgentRx: bare lists of directed messages, and the labels that lie beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from counterpoint.adapters import read
from counterpoint.trace import Trace

RUN = [("human", "Go."), ("Orchestrator (-> Surfer)", "Look."), ("Surfer", "Found."), ("Coder", "Done.")]


def failure(step: Any, agent: str = "surfer", id: int = 1) -> dict[str, Any]:
    return {
        "failure_id": id,
        "step_number": step,
        "failed_agent": agent,
        "failure_category": "slip",
        "step_reason": f"slip {id}",
    }


def labeled(
    folder: Path, id: str, *failures: dict[str, Any], file: str = "run_12345678.json", **rest: Any
) -> Trace:
    items = [{"content": content, "role": role} for role, content in RUN]
    (folder / file).write_text(json.dumps(items))
    runs = [{"trajectory_id": id, "failures": list(failures), **rest}]
    (folder / "my_failure_labels.json").write_text(json.dumps(runs))
    (trace,) = read(folder / file, on_error="raise")
    return trace


def test_the_step_to_blame_counts_from_zero_and_the_agent_is_spelled_as_in_the_run(tmp_path: Path) -> None:
    trace = labeled(tmp_path, "12345678-9abc", failure(3))
    assert (trace.labels["mistake_agent"], trace.labels["mistake_step"]) == ("Surfer", 2)
    assert (trace.labels["mistake_type"], trace.labels["mistake_reason"]) == ("slip", "slip 1")
    assert trace.steps[trace.labels["mistake_step"]].agent == trace.labels["mistake_agent"]


def test_the_root_cause_is_the_mistake_and_every_failure_is_kept(tmp_path: Path) -> None:
    cause = {"failure_id": 2, "reason_for_root_cause": "It was the other."}
    trace = labeled(tmp_path, "12345678-9abc", failure(3), failure("4", "Coder", 2), root_cause=cause)
    assert (trace.labels["mistake_agent"], trace.labels["mistake_step"]) == ("Coder", 3)
    assert trace.labels["mistake_reason"] == "It was the other."
    told = [(one["agent"], one["step"]) for one in trace.labels["failures"]]
    assert told == [("Surfer", 2), ("Coder", 3)]


@pytest.mark.parametrize(
    ("id", "file", "joined"),
    [
        ("12345678-9abc", "run_12345678.json", True),
        ("run_12345678", "run_12345678.json", True),
        ("34", "34.json", True),
        ("345", "34.json", False),
        ("12345679", "run_12345678.json", False),
    ],
)
def test_a_run_is_known_by_its_name_or_the_beginning_of_its_id(
    tmp_path: Path, id: str, file: str, joined: bool
) -> None:
    assert ("mistake_step" in labeled(tmp_path, id, failure(3), file=file).labels) is joined


@pytest.mark.parametrize("step", [None, 0, -1, "x", [3]])
def test_a_failure_without_a_step_is_left_out(tmp_path: Path, step: Any) -> None:
    assert "failures" not in labeled(tmp_path, "12345678", failure(step)).labels


@pytest.mark.parametrize("labels", ["", "[", "{}", "[1]", '[{"failures": 1}]', '[{"failures": [null]}]'])
def test_a_file_of_labels_that_is_none_says_nothing(tmp_path: Path, labels: str) -> None:
    (tmp_path / "x.json").write_text(json.dumps([{"content": "x", "role": "a (thought)"}] * 2))
    (tmp_path / "ground_truth.json").write_text(labels)
    (trace,) = read(tmp_path / "x.json", on_error="raise")
    assert set(trace.labels) == {"format"}


def test_the_file_of_labels_is_passed_over_in_a_folder(data: Path) -> None:
    reading = read(data / "traces" / "agentrx", on_error="raise")
    runs = {trace.id: trace for trace in reading if trace.system == "Magentic-One"}
    assert [note.rpartition("/")[2] for note in reading.notes] == [
        "magentic_failure_labels.json: skipped: no trace format is recognized"
    ]
    assert {name: run.labels["mistake_step"] for name, run in runs.items()} == {
        "magentic_1f975693-876.json": 3,
        "magentic_b816bfce-3d8.json": 16,
        "magentic_ebbc1f13-d24.json": 16,
    }
    for run in runs.values():
        for failed in run.labels["failures"]:
            assert run.steps[failed["step"]].agent == failed["agent"]
