"""A Ctrl-C in the middle of the engine's own bookkeeping: it waits, and no reply is lost."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from counterpoint.benchmarks import gsm8k
from counterpoint.contracts import Example, Reply
from counterpoint.engine import local
from counterpoint.engine.folder import RunFolder
from counterpoint.engine.interrupts import Interrupts
from counterpoint.engine.jobs import Plan
from counterpoint.models.scripted import Scripted
from counterpoint.runtime.systems import system

FOUR = [Example(f"q{number}", f"What is {number} + 7?", str(number + 7)) for number in range(4)]
SEVEN = Reply("The answer is 7.", 10, 5, "m")

pytestmark = pytest.mark.usefixtures("interruptible")


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def after(patch: pytest.MonkeyPatch, owner: Any, name: str, then: Callable[[], None]) -> None:
    """Have ``then`` done in the main thread each time that the function of this name has returned."""
    inner = getattr(owner, name)

    def call(*arguments: Any, **named: Any) -> Any:
        found = inner(*arguments, **named)
        if threading.current_thread() is threading.main_thread():
            then()
        return found

    patch.setattr(owner, name, call)


def sit(path: Path, reply: Any) -> tuple[local.Report, Scripted, list[str]]:
    """One sitting; then the events of its log, after every reply was found in it."""
    plan, model = Plan(gsm8k, "gsm8k", FOUR, system("debate"), {"model": "m"}, 1), Scripted(reply)
    folder = RunFolder(path, plan.config(), resume=False)
    report = local.run(plan, folder, lambda seed, wait: model, threads=4)
    folder.close()
    lines = (path / "log.jsonl").read_text().splitlines()
    again = RunFolder(path, plan.config(), resume=True)
    assert len(again.replies) == len(model.requests)
    again.close()
    return report, model, [json.loads(line)["event"] for line in lines]


@pytest.mark.parametrize("number", [1, 4])
def test_a_ctrl_c_while_threads_are_started_loses_no_reply(number: int, tmp_path, monkeypatch):
    started: list[int] = []
    asked, stopped = threading.Event(), threading.Event()

    def one_more() -> None:
        started.append(1)
        if len(started) == number:
            assert asked.wait(60)  # a call is under way
            press()

    def reply(request: Any) -> Reply:
        asked.set()
        assert stopped.wait(60)
        return SEVEN

    after(monkeypatch, threading.Thread, "start", one_more)
    after(monkeypatch, local._Run, "_stop", stopped.set)
    report, model, events = sit(tmp_path, reply)
    assert len(started) == 4
    assert (report.stopped, events[-1]) == ("interrupted", "stopped")
    assert 1 <= len(model.requests) <= 4


@pytest.mark.parametrize(
    ("owner", "name", "why"),
    [
        (local._Run, "_found", "interrupted"),
        (RunFolder, "set_traces", ""),
        (RunFolder, "note", ""),
    ],
)
def test_a_ctrl_c_between_two_steps_loses_nothing(owner: Any, name: str, why: str, tmp_path, monkeypatch):
    """Once all is played it comes too late to stop anything."""
    stopped = threading.Event()

    def press_if_at_work() -> None:
        """The folder is begun before the engine is."""
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            press()

    def reply(request: Any) -> Reply:
        assert not why or stopped.wait(60)
        return SEVEN

    after(monkeypatch, owner, name, press_if_at_work)
    after(monkeypatch, local._Run, "_stop", stopped.set)
    report, _, events = sit(tmp_path, reply)
    assert report.stopped == why
    assert events[-1] == ("stopped" if why else "finished")


def test_each_ctrl_c_is_raised_once_where_it_is_asked_for():
    with Interrupts() as interrupts:
        interrupts.check()
        press()
        press()
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                interrupts.check()
        interrupts.check()
    with pytest.raises(KeyboardInterrupt):
        press()


def test_a_handler_of_the_program_stays():
    seen: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    with Interrupts() as interrupts:
        press()
        interrupts.check()
    assert seen == [signal.SIGINT]


def test_another_thread_handles_no_signals():
    def enter() -> None:
        with Interrupts() as interrupts:
            interrupts.check()

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
