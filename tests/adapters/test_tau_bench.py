"""tau-bench and tau2-bench: one agent with tools; the simulated user gives the task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from counterpoint.adapters import read
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

CHAT = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]


def only(path: Path, document: Any) -> Trace:
    path.write_text(json.dumps(document))
    (trace,) = read(path, on_error="raise")
    return trace


@pytest.mark.parametrize(
    ("reward", "correct"), [(1, True), (1.0, True), (0.0, False), (0.5, False), (None, None), ("1", None)]
)
def test_a_run_is_correct_if_its_reward_is_one(tmp_path: Path, reward: Any, correct: bool | None) -> None:
    assert only(tmp_path / "x", {"task_id": 1, "reward": reward, "traj": CHAT}).correct is correct
    simulation = {"task_id": 1, "termination_reason": "", "messages": CHAT, "reward_info": {"reward": reward}}
    assert only(tmp_path / "x", simulation).correct is correct


@pytest.mark.parametrize(("outputs", "gold"), [(["12"], "12"), ([], None), (["1", "2"], None), (None, None)])
def test_a_single_output_is_the_gold_answer(tmp_path: Path, outputs: Any, gold: str | None) -> None:
    run = {"task_id": 1, "traj": CHAT, "info": {"task": {"outputs": outputs, "instruction": "Ask why."}}}
    trace = only(tmp_path / "x", run)
    assert (trace.task, trace.gold, trace.labels["task_id"]) == ("Ask why.", gold, 1)


def test_failure_labels_beside_a_run_of_agentrx_are_its_labels(tmp_path: Path) -> None:
    failure = {"step_number": 2, "failed_agent": "assistant"}
    labels = [{"trajectory_id": "34", "failures": [failure]}]
    (tmp_path / "ground_truth.json").write_text(json.dumps(labels))
    trace = only(tmp_path / "34.json", {"task_id": 34, "traj": CHAT})
    assert (trace.labels["mistake_agent"], trace.labels["mistake_step"]) == ("assistant", 1)
    assert trace.steps[1].id == "1"


def test_trials_of_one_task_differ_by_their_seed(data: Path) -> None:
    traces = list(read(data / "traces" / "tau_bench", on_error="raise"))
    assert len(traces) == 6
    assert {trace.labels["seed"] for trace in traces} == {0}
    assert {step.agent for trace in traces for step in trace.steps if step.kind == "agent"} == {"assistant"}
    assert not any(trace.warnings for trace in traces)


def test_the_tau_half_of_agentrx_is_read(data: Path) -> None:
    traces = list(read(str(data / "traces" / "agentrx" / "tau_*.json"), on_error="raise"))
    assert [trace.correct for trace in traces] == [False, False]
    assert [trace.gold for trace in traces] == ["1093.34", None]
    assert all(call.result is not None for trace in traces for step in trace.steps for call in step.calls)


def test_a_call_that_failed_is_an_error(tmp_path: Path) -> None:
    messages = [
        {"role": "assistant", "tool_calls": [{"id": "a", "name": "f"}, {"id": "b", "name": "f"}]},
        {"role": "tool", "id": "b", "content": "no", "error": True},
        {"role": "tool", "id": "a", "content": "yes", "error": False},
    ]
    trace = only(tmp_path / "x", {"task_id": 1, "termination_reason": "", "messages": messages})
    assert [(call.result, call.error) for call in trace.steps[0].calls] == [("yes", None), (None, "no")]


def ticks(pattern: str) -> dict[str, Any]:
    """A voice simulation: ``a``, ``u`` and ``b``: who speaks in a tick, the agent, the user or both."""
    chunks = [
        {
            "agent_chunk": {"contains_speech": who in "ab"},
            "user_chunk": {"contains_speech": who in "ub"},
            "timestamp": f"1970-01-01T00:01:{number:02}",
        }
        for number, who in enumerate(pattern)
    ]
    return {"task_id": 1, "termination_reason": "", "ticks": chunks}


@pytest.mark.parametrize(
    ("pattern", "turns"),
    [
        ("uu-u", [("user", 0, 3)]),
        ("u-aa-a", [("user", 0, 0), ("assistant", 2, 5)]),
        ("aab-u", [("assistant", 0, 2), ("user", 2, 4)]),
        ("abaa", [("assistant", 0, 3), ("user", 1, 1)]),
        ("aua", [("assistant", 0, 0), ("user", 1, 1), ("assistant", 2, 2)]),
    ],
)
def test_a_spoken_turn_ends_where_the_other_party_has_begun(
    tmp_path: Path, pattern: str, turns: list[tuple[str, int, int]]
) -> None:
    trace = only(tmp_path / "x", ticks(pattern))
    assert [(step.agent, step.started_at, step.ended_at) for step in trace.steps] == [
        (who, start + 60, end + 60) for who, start, end in turns
    ]
    assert trace.warnings == ("the file keeps no text: it says only when each party spoke",)


def test_a_voice_simulation_has_turns_and_times(data: Path) -> None:
    (trace,) = read(data / "traces" / "tau2_bench", on_error="raise")
    assert len(trace.steps) == 21
    assert {step.agent for step in trace.steps} == {"user", "assistant"}


def test_a_simulation_that_is_no_object_is_named(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(json.dumps({"info": {}, "tasks": [], "simulations": [3]}))
    with pytest.raises(TraceError, match="record 1: a simulation is a JSON object, found int"):
        list(read(tmp_path / "x", format="tau2_bench", on_error="raise"))
