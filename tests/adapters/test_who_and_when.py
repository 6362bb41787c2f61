"""Who&When: one history item is one step, roles say who speaks to whom, labels say who failed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from counterpoint.adapters import read
from counterpoint.errors import TraceError
from counterpoint.trace import Trace


def run(*history: tuple[str, str], path: Path, **rest: Any) -> Trace:
    items = [{"role": role, "content": content} for role, content in history]
    path.write_text(json.dumps({"history": items, "mistake_agent": None, "mistake_step": None, **rest}))
    (trace,) = read(path, on_error="raise")
    return trace


def heard(trace: Trace) -> dict[str, list[tuple[str, str]]]:
    return {step.id: [(t.source, t.evidence) for t in step.heard] for step in trace.steps if step.heard}


def test_an_instruction_is_explicit_for_whom_it_names_and_broadcast_for_others(tmp_path: Path) -> None:
    trace = run(
        ("human", "Go."),
        ("Orchestrator (-> Surfer)", "Look."),
        ("Orchestrator (-> Surfer)", "Look again."),
        ("SURFER ", "Found."),
        ("Coder", "Done."),
        path=tmp_path / "x",
    )
    assert [(step.agent, step.kind) for step in trace.steps] == [
        ("human", "task"),
        ("Orchestrator", "agent"),
        ("Orchestrator", "agent"),
        ("Surfer", "agent"),
        ("Coder", "agent"),
    ]
    assert heard(trace) == {
        "1": [("0", "broadcast")],
        "3": [("1", "explicit"), ("2", "explicit"), ("0", "broadcast")],
        "4": [("0", "broadcast"), ("1", "broadcast"), ("2", "broadcast"), ("3", "broadcast")],
    }


def test_thoughts_are_control_and_hand_nothing_on(tmp_path: Path) -> None:
    trace = run(
        ("Surfer", "Found."),
        ("Orchestrator (thought)", "Next speaker Coder"),
        ("Orchestrator (-> Coder)", "Code it."),
        ("Coder", "Done."),
        path=tmp_path / "x",
    )
    assert trace.steps[1].kind == "control"
    assert heard(trace) == {
        "1": [("0", "broadcast")],
        "2": [("0", "broadcast")],
        "3": [("2", "explicit"), ("0", "broadcast")],
    }


@pytest.mark.parametrize(
    ("raw", "read_as"),
    [("1", 1), (1, 1), (" 2 ", 2), ("?", "?"), (None, None)],
)
def test_the_step_to_blame_is_a_number_from_zero(tmp_path: Path, raw: Any, read_as: Any) -> None:
    trace = run(("a", "x"), path=tmp_path / "x", mistake_step=raw, mistake_agent="A")
    assert trace.labels.get("mistake_step") == read_as
    assert trace.labels["mistake_agent"] == "a"


def test_gold_and_verdict_keep_their_kind(tmp_path: Path) -> None:
    trace = run(("a", "x"), path=tmp_path / "x", ground_truth=5, is_correct="no", question_ID=7)
    assert (trace.gold, trace.correct, trace.labels["task_id"]) == ("5", None, "7")


def test_a_long_compressed_run_is_known_by_its_beginning(tmp_path: Path) -> None:
    history = [{"role": "Orchestrator (thought)", "content": str(list(range(20_000)))}] * 2
    file = tmp_path / "x.json.gz"
    file.write_bytes(gzip.compress(json.dumps({"history": history, "mistake_agent": "x"}).encode()))
    reading = read(file, on_error="raise")
    assert [len(trace.steps) for trace in reading] == [2]
    assert list(reading.detected.values()) == ["who_and_when"]


def test_a_message_without_a_speaker_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match='record 1: history item 1 has neither "name" nor "role"'):
        run(("a", "x"), (" ", "y"), path=tmp_path / "x")


@pytest.mark.parametrize(
    ("file", "last_agent", "answer"),
    [
        ("hand_5", "Orchestrator", "bite"),
        ("hand_37", "Orchestrator", "3"),
        ("algo_41", "Verification_Expert", None),
    ],
)
def test_real_runs_end_with_the_answer_that_was_printed(
    data: Path, file: str, last_agent: str, answer: str | None
) -> None:
    (trace,) = read(data / "traces" / "who_and_when" / f"{file}.json", on_error="raise")
    assert (trace.steps[-1].agent, trace.answer, trace.correct) == (last_agent, answer, False)
    assert trace.warnings == ()
    # The step to blame is one of the agent to blame.
    assert trace.steps[trace.labels["mistake_step"]].agent == trace.labels["mistake_agent"]
