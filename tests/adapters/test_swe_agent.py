"""SWE-agent: one agent, one step a command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from counterpoint.adapters import read
from counterpoint.trace import Trace

ITEM = {"action": "ls -l\n", "observation": "a", "response": "Look.", "thought": "Look."}


def only(path: Path, **rest: Any) -> Trace:
    path.write_text(json.dumps({"trajectory": [ITEM], **rest}))
    (trace,) = read(path, on_error="raise")
    return trace


def test_a_command_is_a_call_and_its_observation_the_result(tmp_path: Path) -> None:
    (step,) = only(tmp_path / "x").steps
    assert (step.agent, step.text) == ("primary", "Look.")
    assert [(call.tool, call.arguments, call.result) for call in step.calls] == [("ls", "ls -l", "a")]


@pytest.mark.parametrize(
    ("stats", "usage"),
    [
        (
            {"api_calls": 1, "tokens_sent": 5, "tokens_received": 2, "instance_cost": 0.5},
            {"tokens_in": 5, "tokens_out": 2, "cost_usd": 0.5},
        ),
        ({"api_calls": 0, "tokens_sent": 0, "tokens_received": 0, "instance_cost": 0}, None),
        (None, None),
    ],
)
def test_tokens_are_known_for_the_run_where_calls_were_counted(
    tmp_path: Path, stats: Any, usage: dict[str, Any] | None
) -> None:
    assert only(tmp_path / "x", info={"model_stats": stats}).labels.get("run_usage") == usage


def test_the_agent_is_called_as_in_the_history(tmp_path: Path) -> None:
    history = [{"role": "user", "content": "Go."}, {"role": "assistant", "agent": "main"}]
    trace = only(tmp_path / "x", history=history)
    assert [(step.agent, step.kind) for step in trace.steps] == [("user", "task"), ("main", "agent")]
    assert trace.task == "Go."


def test_real_trajectories_end_with_their_submission(data: Path) -> None:
    traces = list(read(data / "traces" / "swe_agent", on_error="raise"))
    assert [len(trace.steps) for trace in traces] == [10, 8]
    assert [trace.answer for trace in traces] == [
        "HTB{t3h_FuTUr3_15_bR1ghT_1_H0p3_y0uR3_W34r1nG_5h4d35!}",
        "FLAG{LET_US_BEGIN_CSAW_2016}",
    ]
    assert all(trace.labels["exit_status"] == "submitted" for trace in traces)
