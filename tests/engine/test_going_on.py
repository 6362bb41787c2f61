"""A run that goes on: only as the same one, with all that is there, and with no question in it twice."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from counterpoint.benchmarks import gsm8k
from counterpoint.contracts import Example, Reply
from counterpoint.engine.folder import RunFolder
from counterpoint.engine.jobs import Plan
from counterpoint.engine.local import Report, run
from counterpoint.errors import ModelError, UsageError
from counterpoint.runtime.systems import system
from counterpoint.runtime.topologies import topology

SEVEN = Reply("The answer is 7.", 10, 5, "m")
SIX = [Example(f"q{number}", f"What is {number} + 7?", "7") for number in range(6)]


def plan(examples: list[Example] = SIX, seeds: int = 1, wiring: str = "") -> Plan:
    learned = topology(wiring)(4, 2, 0) if wiring else None
    name = "vanilla" if wiring else "single"
    return Plan(gsm8k, "gsm8k", examples, system(name), {"model": "m"}, seeds, None, learned, "mine")


def sit(path: Path, chosen: Plan, model: Any = lambda messages: SEVEN, *, resume: bool = True) -> Report:
    folder = RunFolder(path, chosen.config(), resume=resume)
    try:
        return run(chosen, folder, lambda seed, wait: model, threads=1)
    finally:
        folder.close()


def ids(path: Path) -> list[str]:
    return [json.loads(line)["id"] for line in (path / "traces.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (plan(wiring="chain"), plan(wiring="star"), "another wiring"),
        (plan(), plan(SIX[1:]), r"other questions \(number 1 is another one\)"),
        (plan(), plan([*SIX[:4], Example("q4", "What is 9 + 9?", "18")]), r"\(number 5 is another one\)"),
        (plan(), plan([*SIX[:4], Example("new", "What is 4 + 7?", "7")]), r"\(number 5 is another one\)"),
    ],
)
def test_other_wirings_and_questions_are_another_run(tmp_path, first, second, told):
    sit(tmp_path, first)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(UsageError, match=told):
        sit(tmp_path, second)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_fewer_questions_and_seeds_leave_all_traces_where_they_are(tmp_path):
    sit(tmp_path, plan(seeds=2))
    report = sit(tmp_path, plan(SIX[:2]))
    assert [trace.id for trace in report.traces] == ["q0", "q1"]
    assert report.others == 10
    assert len(ids(tmp_path)) == 12
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["questions"], config["seeds"]) == (6, 2)
    with pytest.raises(UsageError, match="number 6 is another one"):
        sit(tmp_path, plan([*SIX[:5], Example("q5", "What else?", "7")]))
    asked: list[Any] = []
    sit(tmp_path, plan(seeds=2), asked.append)
    assert (asked, len(ids(tmp_path))) == ([], 12)


def test_the_commands_of_all_sittings_are_kept(tmp_path):
    for word in ("first", "second", "third"):
        folder = RunFolder(tmp_path, {**plan().config(), "command": [word]}, resume=True)
        folder.close()
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["command"] == ["third"]
    assert [sitting["command"] for sitting in config["sittings"]] == [["first"], ["second"], ["third"]]


def fail(messages: Any) -> Reply:
    raise ModelError("HTTP 500")


def sitting(path: Path) -> None:
    """Answers three questions, and thinks about the fourth one for ever."""
    answered = itertools.count()

    def model(messages: Any) -> Reply:
        if next(answered) == 3:
            time.sleep(6000)
        return SEVEN

    sit(path, plan(), model)


def test_a_run_that_is_killed_while_it_mends_has_no_question_twice(tmp_path):
    sit(tmp_path, plan(), fail)
    assert len(ids(tmp_path)) == 6
    process = multiprocessing.get_context("spawn").Process(target=sitting, args=(tmp_path,))
    process.start()
    deadline = time.monotonic() + 300
    while (tmp_path / "log.jsonl").read_text().count('"event":"call"') < 3 and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    assert max(Counter(ids(tmp_path)).values()) == 1
    assert 2 <= len(ids(tmp_path)) <= 3, "of the third one, the trace may not have been written yet"
    asked: list[Any] = []
    report = sit(tmp_path, plan(), lambda messages: asked.append(messages) or SEVEN)
    assert ids(tmp_path) == [trace.id for trace in report.traces] == [f"q{n}" for n in range(6)]
    assert len(asked) == 3


def test_of_two_traces_of_one_question_the_newer_counts(tmp_path):
    sit(tmp_path, plan(), fail)
    flawed = (tmp_path / "traces.jsonl").read_text()
    sit(tmp_path, plan())
    (tmp_path / "traces.jsonl").write_text(flawed + (tmp_path / "traces.jsonl").read_text())
    report = sit(tmp_path, plan(), fail)
    assert report.failures == ()
    assert ids(tmp_path) == [f"q{number}" for number in range(6)]
