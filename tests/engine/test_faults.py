"""A server that misbehaves: the run ends, failures are named, and nothing is counted twice."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from counterpoint.benchmarks import gsm8k
from counterpoint.contracts import ChatModel, Example, Reply
from counterpoint.engine.folder import RunFolder
from counterpoint.engine.jobs import Plan
from counterpoint.engine.local import Report, run
from counterpoint.models.chat_http import ChatHTTP
from counterpoint.models.scripted import Fault, ScriptedServer, Turn, scripted_server
from counterpoint.runtime.systems import system

QUESTIONS = [Example(f"q{number}", f"What is {number} + 7?", str(number + 7)) for number in range(6)]
SPOILED = "What is 3 + 7?"

FAULTS = {
    "429": (Fault.rate_limited(0.01), "HTTP 429"),
    "500": (Fault.server_error(500), "HTTP 500"),
    "503": (Fault.server_error(503), "HTTP 503"),
    "dropped": (Fault.dropped(40), "connection failed"),
    "dropped at once": (Fault.dropped(0), "connection failed"),
    "garbage": (Fault.garbage(), "no JSON"),
    "empty choices": (Fault.empty_choices(), "no choices"),
    "stall": (Fault.stall(60), "no whole answer within"),
}


QUICK: dict[str, Any] = {"retries": 2, "wait": lambda seconds: None}


def sit(path: Path, model: ChatModel, name: str = "chain(rounds=1)") -> Report:
    plan = Plan(gsm8k, "gsm8k", QUESTIONS, system(name), {"model": "m"})
    folder = RunFolder(path, plan.config(), resume=False)
    try:
        return run(plan, folder, lambda seed, wait: model, threads=3)
    finally:
        folder.close()


@contextmanager
def client(server: ScriptedServer, hasty_s: float = 60, **settings: Any) -> Iterator[ChatModel]:
    """Waits a minute for an answer, and ``hasty_s`` for one to the question that is spoiled.

    So nothing hangs on how fast the machine answers where nothing stalls.
    """
    with (
        closing(ChatHTTP("m", base_url=server.base_url, **{**QUICK, **settings})) as patient,
        closing(ChatHTTP("m", base_url=server.base_url, timeout_s=hasty_s, **QUICK)) as hasty,
    ):

        def model(messages: Any, /) -> Reply:
            return (hasty if SPOILED in str(messages) else patient)(messages)

        yield model


def used(report: Report) -> tuple[int, int]:
    usages = [step.usage for trace in report.traces for step in trace.steps if step.usage is not None]
    return sum(one.tokens_in or 0 for one in usages), sum(one.tokens_out or 0 for one in usages)


class Spoiling:
    """Answers everything but one question, whose first requests go wrong."""

    def __init__(self, fault: Any, times: int) -> None:
        self.fault, self.times = fault, times
        self.seen: Counter[str] = Counter()
        self.lock = threading.Lock()

    def __call__(self, messages: Any) -> Any:
        text = str(messages)
        with self.lock:
            self.seen[text] += 1
            again = self.seen[text]
        return self.fault if SPOILED in text and again <= self.times else "The answer is 10."


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "stall")) for name in FAULTS]
)
def test_a_fault_that_passes_is_no_failure_and_counts_no_token_twice(tmp_path, name):
    fault, _ = FAULTS[name]
    hasty_s = 3 if name == "stall" else 60  # what is answered after a stall is to be in time on any machine
    with scripted_server(Spoiling(fault, times=1)) as server, client(server, hasty_s) as model:
        report = sit(tmp_path, model)
    assert report.failures == ()
    assert len(report.traces) == 6
    assert used(report) == (server.tokens_in, server.tokens_out)
    assert report.progress.calls == 6 * 5


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_stays_is_named_for_its_question_and_agent(tmp_path, name):
    fault, told = FAULTS[name]
    hasty_s = 0.4 if name == "stall" else 60
    with scripted_server(Spoiling(fault, times=99)) as server, client(server, hasty_s) as model:
        report = sit(tmp_path, model)
    assert {one.trace for one in report.failures} == {"q3"}
    assert len(report.failures) == 4, "each of the four agents; nobody is left to refer to"
    assert all(told in one.error for one in report.failures)
    assert report.traces[3].answer is None
    assert report.traces[3].correct is None
    assert [trace.answer for trace in report.traces if trace.id != "q3"] == ["10"] * 5
    assert used(report) == (server.tokens_in, server.tokens_out)


def test_a_wait_that_the_server_asks_for_is_kept(tmp_path):
    waits: list[float] = []
    plan = Plan(gsm8k, "gsm8k", QUESTIONS[:1], system("single"), {"model": "m"})
    with scripted_server([Fault.rate_limited(2.5), "The answer is 7."]) as server:
        folder = RunFolder(tmp_path, plan.config(), resume=False)
        model = ChatHTTP("m", base_url=server.base_url, wait=waits.append)
        report = run(plan, folder, lambda seed, wait: model)
        folder.close()
        model.close()
    assert report.failures == ()
    assert len(waits) == 1
    assert waits[0] >= 2.5


def test_a_refusal_is_named_paid_for_and_not_asked_again(tmp_path):
    spoiling = Spoiling(Turn(refusal="I will not."), times=99)
    with scripted_server(spoiling) as server, client(server) as model:
        report = sit(tmp_path, model, "single")
        assert len(server.requests) == 6
    assert [one.error for one in report.failures] == ["the model refused: I will not."]
    assert used(report) == (server.tokens_in, server.tokens_out)


@pytest.mark.parametrize("usage", [-5, 10**9])
def test_wrong_numbers_of_tokens_break_nothing(tmp_path, usage):
    turn = Turn("The answer is 7.", tokens_in=usage, tokens_out=1)
    with scripted_server(turn) as server, client(server) as model:
        report = sit(tmp_path, model, "single")
    assert report.failures == ()
    assert used(report) == (max(usage, 0) * 6, 6)


def test_a_server_that_is_gone_ends_the_run_in_one_line(tmp_path):
    with scripted_server("7") as server:
        pass
    with client(server) as model:
        report = sit(tmp_path, model, "vanilla")
    assert "10 calls in a row were not answered" in report.stopped
    assert report.progress.failed_calls <= 10 + 2, "of 54, whatever the threads were at"


@pytest.mark.slow
def test_a_real_minute_of_silence_is_waited_out_once_and_named_where_it_stays(tmp_path):
    """With the timeout that a model has by default; both runs wait at the same time."""
    with (
        scripted_server(Spoiling(Fault.stall(900), times=1)) as passing,
        scripted_server(Spoiling(Fault.stall(900), times=99)) as staying,
        closing(ChatHTTP("m", base_url=passing.base_url)) as persistent,
        closing(ChatHTTP("m", base_url=staying.base_url, retries=0)) as once,
        ThreadPoolExecutor(2) as pool,
    ):
        begun = time.monotonic()
        first = pool.submit(sit, tmp_path / "a", persistent, "single")
        second = pool.submit(sit, tmp_path / "b", once, "single")
        waited, failed = first.result(), second.result()
        assert 60 <= time.monotonic() - begun < 600
        assert (used(waited), used(failed)) == tuple(
            (server.tokens_in, server.tokens_out) for server in (passing, staying)
        )
    assert (waited.failures, len(waited.traces), len(passing.requests)) == ((), 6, 7)
    assert [(one.trace, one.agent) for one in failed.failures] == [("q3", "direct")]
    assert failed.failures[0].error.endswith("no whole answer within 60 s")
    assert len(failed.traces) == 6


@pytest.mark.slow
def test_more_than_two_hundred_calls_at_once_reach_the_endpoint_and_come_back(tmp_path):
    many = [Example(f"q{number}", f"What is {number} + 7?", "7") for number in range(400)]
    plan = Plan(gsm8k, "gsm8k", many, system("single"), {"model": "m"})
    together, first = threading.Barrier(256, timeout=300), iter(range(256))

    def answer(messages: Any) -> str:
        if next(first, None) is not None:
            together.wait()  # nobody is answered before all of them have asked
        return "The answer is 7."

    with scripted_server(answer) as server:
        folder = RunFolder(tmp_path, plan.config(), resume=False)
        model = ChatHTTP("m", base_url=server.base_url, timeout_s=300)
        report = run(plan, folder, lambda seed, wait: model, threads=256)
        folder.close()
        model.close()
        assert server.peak == 256
    assert report.failures == ()
    assert len(report.traces) == 400 == len(server.requests)
    assert used(report) == (server.tokens_in, server.tokens_out)
