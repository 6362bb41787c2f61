"""An endpoint that goes bad in mid-run: it ends, says why, and nobody's answer is called wrong."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from counterpoint.benchmarks import gsm8k
from counterpoint.contracts import ChatModel, Context, Example, Reply
from counterpoint.engine.folder import RunFolder
from counterpoint.engine.jobs import Plan
from counterpoint.engine.local import Report, run
from counterpoint.engine.progress import Progress
from counterpoint.errors import ModelError, ModelUnavailable, UsageError
from counterpoint.evaluate import FAILED, evaluate
from counterpoint.graph import CollaborationGraph
from counterpoint.metrics.correctness import run_correct
from counterpoint.models.limits import Limits
from counterpoint.models.scripted import Scripted
from counterpoint.runtime.systems import system

SEVEN = Reply("The answer is 7.", 10, 5, "m")
ALWAYS_SEVEN = Scripted(SEVEN)
MANY = [Example(f"q{number}", f"What is {number} + 7?", "7") for number in range(60)]


def sit(
    path: Path, model: ChatModel, name: str = "single", *, resume: bool = False, count: int = 60, **how: Any
) -> Report:
    """One sitting."""
    plan = Plan(gsm8k, "gsm8k", MANY[:count], system(name), {"model": "m"})
    folder = RunFolder(path, plan.config(), resume=resume)
    try:
        return run(plan, folder, lambda seed, wait: model, **{"threads": 1, **how})
    finally:
        folder.close()


class Endpoint:
    """Answers 7 but for the calls of these numbers, from 1, which fail."""

    def __init__(self, fails: Callable[[int], bool], error: type[ModelError] = ModelError) -> None:
        self.fails, self.error = fails, error
        self.numbers = itertools.count(1)
        self.asked = 0

    def __call__(self, messages: Any, /) -> Reply:
        self.asked = number = next(self.numbers)
        if self.fails(number):
            raise self.error("HTTP 503")
        return SEVEN


@pytest.mark.parametrize(("threads", "most"), [(1, 10), (4, 10 + 8), (16, 32 + 32)])
def test_failures_in_a_row_end_a_run_that_was_answered_before(tmp_path, threads, most):
    answered = threading.Event()  # a reply that comes in between two failures would count anew
    endpoint = Endpoint(lambda number: number > 5 and answered.wait(60))

    def watch(progress: Progress) -> None:
        if progress.asked_now == 5:
            answered.set()

    report = sit(tmp_path, endpoint, threads=threads, watch=watch)
    assert f"{max(10, 2 * threads)} calls in a row were not answered" in report.stopped
    assert endpoint.asked <= 5 + most
    assert report.progress.done == 5


def test_failures_between_replies_end_no_run(tmp_path):
    report = sit(tmp_path, Endpoint(lambda number: number % 10 > 0))
    assert report.stopped == ""
    assert (report.progress.done, report.progress.failed) == (6, 54)


def test_an_endpoint_that_is_closed_ends_the_run_at_once(tmp_path):
    endpoint = Endpoint(lambda number: number > 5, ModelUnavailable)
    report = sit(tmp_path, endpoint)
    assert report.stopped == "the endpoint answers no further call: HTTP 503"
    assert endpoint.asked == 6


def test_patience_begins_anew_when_a_run_goes_on(tmp_path):
    sit(tmp_path, Endpoint(lambda number: False), count=20)
    endpoint = Endpoint(lambda number: True)
    report = sit(tmp_path, endpoint, resume=True)
    assert "10 calls in a row" in report.stopped
    assert endpoint.asked == 10


def test_a_run_that_goes_on_leaves_what_failed_to_the_end(tmp_path):
    sit(tmp_path, Endpoint(lambda number: number > 5))
    told: list[str] = []

    def model(messages: Any, /) -> Reply:
        told.append(messages[-1]["content"])
        return SEVEN

    report = sit(tmp_path, model, resume=True)
    assert len(told) == 55
    assert "What is 15 + 7?" in told[0]
    assert "What is 5 + 7?" in told[45]
    assert (len(report.traces), report.failures) == (60, ())


def test_a_question_whose_calls_failed_is_scored_neither_right_nor_wrong(tmp_path):
    report = sit(tmp_path, Endpoint(lambda number: number == 8), "debate(rounds=1)", count=4)
    (failed,) = [trace for trace in report.traces if trace.labels.get("failed_calls")]
    assert failed.id == "q2"
    assert failed.correct is None
    assert run_correct(Context(failed, CollaborationGraph(failed))) is None
    assert failed.warnings == ("1 of 3 calls of this question failed: run it again with --resume",)
    scores = evaluate(report.traces, ["accuracy", "tokens_in"])
    accuracy, tokens = (entry for entry in scores.summary() if entry.system is None)
    assert (accuracy.mean, accuracy.n, accuracy.undefined) == (1.0, 3, 1)
    assert accuracy.reasons == {FAILED: 1}
    assert (tokens.mean, tokens.n) == (30, 3)
    assert {row.parts["failed_calls"] for row in scores.rows if row.value is None} == {1}
    mended = sit(tmp_path, Endpoint(lambda number: False), "debate(rounds=1)", count=4, resume=True)
    assert [trace.correct for trace in mended.traces] == [True] * 4
    assert not mended.traces[2].warnings


def test_refusals_and_empty_replies_are_replies(tmp_path):
    replies = itertools.cycle([Reply("No.", 1, 1, "m", "refusal"), Reply("", 1, 1, "m")])
    report = sit(tmp_path, lambda messages: next(replies), count=24)
    assert report.stopped == ""
    assert [trace.correct for trace in report.traces] == [False] * 24
    assert len(report.failures) == 24
    assert evaluate(report.traces, ["accuracy"]).summary()[0].n == 24
    seen: list[int] = []
    again = sit(tmp_path, ALWAYS_SEVEN, count=24, resume=True, watch=lambda now: seen.append(now.done))
    assert (set(seen), again.traces, again.progress.asked_now) == ({24}, report.traces, 0)


def test_a_disk_that_is_full_costs_at_most_one_reply_a_thread(tmp_path, monkeypatch):
    kept = RunFolder.add_reply
    written = itertools.count(1)

    def add_reply(self: RunFolder, *told: Any) -> Any:
        if next(written) > 9:
            raise UsageError("log.jsonl: could not be written: No space left on device")
        return kept(self, *told)

    monkeypatch.setattr(RunFolder, "add_reply", add_reply)
    endpoint = Endpoint(lambda number: False)
    with pytest.raises(UsageError, match="No space left"):
        sit(tmp_path, endpoint, threads=4)
    assert endpoint.asked <= 9 + 4


def test_a_budgets_end_says_what_was_spent_in_flight_too(tmp_path):
    together, ended = threading.Barrier(2, timeout=60), threading.Event()

    def model(messages: Any, /) -> Reply:
        if together.wait() == 0:
            assert ended.wait(60)  # still under way when the other thread learns that nothing is left
        return SEVEN

    def watch(progress: Progress) -> None:
        if progress.stopping:
            ended.set()

    report = sit(tmp_path, model, threads=2, limits=Limits(budget_tokens=20), watch=watch)
    assert report.stopped == (
        "the budget of 20 tokens is used up: 15 spent, and a further call may take 15; "
        "30 tokens once the calls under way had come in"
    )


def test_whoever_watches_learns_at_once_that_the_run_stops_and_what_is_waited_for(tmp_path):
    told = threading.Event()
    seen: list[tuple[str, int]] = []

    def model(messages: Any, /) -> Reply:
        assert told.wait(60)
        return SEVEN

    def watch(progress: Progress) -> None:
        seen.append((progress.stopping, progress.under_way))
        if progress.stopping:
            told.set()
        elif progress.under_way == 2:
            raise KeyboardInterrupt

    report = sit(tmp_path, model, threads=2, watch=watch)
    assert ("interrupted", 2) in seen
    assert report.stopped == "interrupted"
    assert len(report.traces) == 2
