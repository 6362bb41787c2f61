"""What the engine costs a call, side by side: threads that only ask, and a run that plays and journals.

    python perf/engine.py [--threads 32] [--questions 320] [--latency-ms 20]

Both sides ask the same in-process model, which sleeps, in the same number of threads, as many times (chains
of four agents and their decider: five calls a question, one after the other). The overhead a call is the
extra wall time divided by the number of calls; what one thread feels of it, waiting for the disk included, is
printed beside it. Exits with 1 where the former is above 2 ms.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from counterpoint.benchmarks import gsm8k
from counterpoint.contracts import Example, Reply
from counterpoint.engine.folder import RunFolder
from counterpoint.engine.jobs import Plan
from counterpoint.engine.local import run
from counterpoint.runtime.systems import system

AIM_MS = 2.0
CALLS = 5
"""Of one question: four agents in a chain, and FinalRefer."""
TEXT = "We add what is given and check the result against the question. " * 12 + "The answer is 7."


class Sleeper:
    """A model that takes its time and nothing else."""

    def __init__(self, latency_s: float) -> None:
        self.latency_s = latency_s

    def __call__(self, messages: Sequence[Mapping[str, Any]], /) -> Reply:
        time.sleep(self.latency_s)
        return Reply(TEXT, 900, 275, "m", "stop")


def bare(model: Sleeper, questions: int, threads: int) -> float:
    """Seconds for the calls alone."""
    left, lock = iter(range(questions)), threading.Lock()

    def work() -> None:
        while True:
            with lock:
                if next(left, None) is None:
                    return
            for _ in range(CALLS):
                model([])

    workers = [threading.Thread(target=work) for _ in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - start


def engine(model: Sleeper, questions: int, threads: int) -> float:
    """Seconds for the same calls as a run, its folder included."""
    examples = [Example(f"q{number}", f"What is {number} + 7?", "7") for number in range(questions)]
    plan = Plan(gsm8k, "gsm8k", examples, system("chain(rounds=1)"), {"model": "m"})
    with tempfile.TemporaryDirectory() as path:
        start = time.perf_counter()
        folder = RunFolder(Path(path), plan.config(), resume=False)
        report = run(plan, folder, lambda seed, wait: model, threads=threads)
        folder.close()
        took = time.perf_counter() - start
    assert report.progress.calls == CALLS * questions, report
    return took


def main() -> int:
    parser = argparse.ArgumentParser(description="Overhead of the engine.")
    parser.add_argument("--threads", type=int, default=32)
    parser.add_argument("--questions", type=int, default=320)
    parser.add_argument("--latency-ms", type=float, default=20.0)
    asked = parser.parse_args()
    model = Sleeper(asked.latency_ms / 1000)
    calls = CALLS * asked.questions
    engine(model, 8, 8)  # imports and first uses
    alone = min(bare(model, asked.questions, asked.threads) for _ in range(3))
    within = min(engine(model, asked.questions, asked.threads) for _ in range(3))
    overhead_ms = 1000 * (within - alone) / calls
    felt_ms = 1000 * (within - alone) * asked.threads / calls
    print(f"{calls:,} calls of {asked.latency_ms:g} ms in {asked.threads} threads")
    print(f"calls alone      {alone:6.2f} s  {calls / alone:7,.0f} calls/s")
    print(f"a run            {within:6.2f} s  {calls / within:7,.0f} calls/s")
    print(f"overhead         {overhead_ms:6.2f} ms a call (aim: {AIM_MS:g}); a thread feels {felt_ms:.1f} ms")
    return int(overhead_ms > AIM_MS)


if __name__ == "__main__":
    raise SystemExit(main())
