"""wall_time_s: which times count, and when there are too few."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import counterpoint as cp
from counterpoint.contracts import Context
from counterpoint.graph import graph
from counterpoint.metrics.outcome import WALL_TIME_S
from counterpoint.trace import Step, Trace

NOW = 1.7e9

Times = tuple[float | None, float | None]


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        ([(NOW, NOW + 2), (NOW + 3, NOW + 7)], 7),
        ([(NOW, None), (NOW + 3, None)], 3),
        ([(0.0, 1.0), (1.0, 3.0)], 3),  # counted from the run's begin
        ([(NOW, NOW)], 0),
        ([(NOW + 1000, NOW), (NOW + 1001, NOW + 1005)], 5),  # an end before its start
        ([(NOW + 1000, NOW)], None),
        ([(NOW, None)], None),
        ([(None, None)], None),
        ([(float("nan"), NOW)], None),
    ],
)
def test_wall_time_is_between_times_that_are_known(times: list[Times], seconds: float | None) -> None:
    steps = tuple(
        Step(f"s{number}", "ann", "Hi.", started_at=start, ended_at=end)
        for number, (start, end) in enumerate(times)
    )
    trace = Trace("t", steps)
    score = WALL_TIME_S.compute(Context(trace, graph(trace)))
    assert score.value == seconds
    assert ("`ended_at`" in score.reason) == (seconds is None)


@pytest.mark.parametrize(("start", "read"), [(NOW, None), (2.0, 0.0)])
def test_a_zero_in_a_native_file_is_unset_unless_times_count_from_the_begin(
    tmp_path: Path, start: float, read: float | None
) -> None:
    said = {"agent": "ann", "text": "Hi."}
    steps = [{"id": "a", "started_at": 0, **said}, {"id": "b", "started_at": start, **said}]
    (tmp_path / "run.jsonl").write_text(json.dumps({"id": "t", "steps": steps}))
    (trace,) = cp.read(tmp_path / "run.jsonl")
    assert [step.started_at for step in trace.steps] == [read, start]
    warned = "1 steps have a time of 0: taken for unknown" in trace.warnings
    assert warned == (read is None)
