"""What the engine adds to a call, in processor time: what the disk and other programs take does not count."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

from counterpoint.benchmarks import gsm8k
from counterpoint.contracts import Example, Reply
from counterpoint.engine.folder import RunFolder
from counterpoint.engine.jobs import Plan
from counterpoint.engine.local import run
from counterpoint.runtime.systems import system

REPLY = Reply("We add what is given and check it. " * 20 + "The answer is 7.", 900, 275, "m", "stop")
CALLS = 5
"""Of a question: four agents, one after another, and the one that decides."""


def play(path: Path, questions: int) -> None:
    examples = [Example(f"q{number}", f"What is {number} + 7?", "7") for number in range(questions)]
    plan = Plan(gsm8k, "gsm8k", examples, system("chain(rounds=1)"), {"model": "m"})
    folder = RunFolder(path, plan.config(), resume=False)
    report = run(plan, folder, lambda seed, wait: lambda messages: REPLY, threads=32)
    folder.close()
    assert report.progress.calls == CALLS * questions


def test_a_call_takes_at_most_two_milliseconds_of_the_processor_at_32_threads(tmp_path, takes_at_most):
    play(tmp_path / "warm", 8)
    folders = (tmp_path / str(number) for number in itertools.count())
    assert takes_at_most(0.002 * CALLS * 160, lambda: play(next(folders), 160), time.process_time)
