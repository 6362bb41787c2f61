"""Refusals of single requests: they keep nobody else from being asked, and are no outage."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from counterpoint.benchmarks import gsm8k
from counterpoint.contracts import Example, Reply
from counterpoint.engine.folder import RunFolder
from counterpoint.engine.jobs import Plan
from counterpoint.engine.local import Report, run
from counterpoint.errors import AccessRefused, ModelError, RequestRefused
from counterpoint.runtime.systems import system

SEVEN = Reply("The answer is 7.", 10, 5, "m")
MANY = [Example(f"q{number}", f"Case {number}: 3 + 4?", "7") for number in range(30)]


class Refuses:
    """Answers 7 but to these cases, whose every call is refused."""

    def __init__(self, cases: Collection[int], error: type[ModelError]) -> None:
        self.cases, self.error = cases, error
        self.asked: list[int] = []

    def __call__(self, messages: Any, /) -> Reply:
        case = int(messages[-1]["content"].rpartition("Case ")[2].partition(":")[0])
        self.asked.append(case)
        if case in self.cases:
            raise self.error("HTTP 4xx")
        return SEVEN


def sit(path: Path, model: Refuses, name: str = "single", *, count: int = 30, resume: bool = False) -> Report:
    """One sitting."""
    plan = Plan(gsm8k, "gsm8k", MANY[:count], system(name), {"model": "m"})
    folder = RunFolder(path, plan.config(), resume=resume)
    try:
        return run(plan, folder, lambda seed, wait: model, threads=1)
    finally:
        folder.close()


@pytest.mark.parametrize("error", [AccessRefused, RequestRefused])
@pytest.mark.parametrize("case", [0, 2])
def test_a_question_all_of_whose_calls_are_refused_keeps_no_other_from_being_asked(tmp_path, error, case):
    report = sit(tmp_path, Refuses([case], error), "debate(agents=6, rounds=2)", count=4)
    assert report.stopped == ""
    assert (report.progress.done, report.progress.failed) == (3, 1)
    assert len(report.traces) == 4


@pytest.mark.parametrize("error", [AccessRefused, RequestRefused])
def test_refused_questions_are_played_last_and_starve_nobody_when_a_run_goes_on(tmp_path, error):
    refused = range(0, 30, 2)
    first = sit(tmp_path, Refuses(refused, error))
    assert (first.stopped, first.progress.failed) == ("", 15)
    mended = Refuses(range(0, 28, 2), error)
    again = sit(tmp_path, mended, resume=True)
    assert mended.asked == list(refused)
    assert (again.stopped, again.progress.done, again.progress.failed) == ("", 16, 14)


def test_access_that_two_questions_are_refused_in_a_row_ends_the_run(tmp_path):
    model = Refuses(range(5, 30), AccessRefused)
    report = sit(tmp_path, model)
    assert report.stopped == "the endpoint answers no further call: HTTP 4xx"
    assert model.asked == [0, 1, 2, 3, 4, 5, 6]


def test_two_neighbors_that_are_refused_access_block_no_run(tmp_path):
    model = Refuses([0, 1], AccessRefused)
    assert sit(tmp_path, model, "debate(rounds=1)", count=5).stopped
    again = sit(tmp_path, model, "debate(rounds=1)", count=5, resume=True)
    assert again.stopped == ""
    assert (again.progress.done, again.progress.failed) == (3, 2)


def test_ten_questions_that_are_refused_in_a_row_end_a_run_whatever_their_calls(tmp_path):
    model = Refuses(range(30), RequestRefused)
    report = sit(tmp_path, model, "debate(agents=3, rounds=1)")
    assert report.stopped == "10 questions in a row were refused, the last one: HTTP 4xx"
    assert len(report.traces) == 9
