"""Two simulated teams that are right equally often by design, and what else tells them apart.

    python perf/same_accuracy.py [--seeds 60] [--together 10] [--questions 1000] [--embedder hashing]

The pair, the parameters and what counts as success are those of decision 0007, which was written first. For
each experiment of `--together` seeds, and for each of its seeds alone: chain minus layers, paired by question
and seed, with 95 % intervals. Exits with 1 where fewer than nine experiments in ten succeed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

import counterpoint as cp
from counterpoint.benchmarks import gsm8k
from counterpoint.contracts import Example
from counterpoint.engine.jobs import Plan
from counterpoint.models.simulated import Simulated
from counterpoint.runtime.systems import System
from counterpoint.scores import Scores
from counterpoint.trace import Trace

CHAIN = System("chain", "three honest roles; the last one answers", (
    "analyst", "code_writer", "math_solver",
), "chain", "last")  # fmt: skip
LAYERS = replace(CHAIN, name="layers", topology="layered")
METRICS = ("accuracy", "ids", "upr")
CLEAR = 0.05
SAME = 0.02

Difference = dict[str, tuple[float, float, float]]


def traces(system: System, questions: int, seeds: range) -> list[Trace]:
    """Every question under every seed."""
    asked = [Example(f"q{n}", f"What is {n} + 7?", str(n + 7)) for n in range(questions)]
    plan = Plan(gsm8k, "gsm8k", asked, system, {"model": "simulated"}, seeds.stop)
    models = {
        seed: Simulated(asked, accuracy=0.7, copying=0.8, stubbornness=0.2, verbosity=40, seed=seed)
        for seed in seeds
    }
    return [job.play(models[job.seed]) for job in plan.jobs if job.seed in models]


def scored(found: Sequence[Trace], seeds: range, embedder: str) -> Scores:
    """The scores of these seeds."""
    chosen = [trace for trace in found if trace.labels["seed"] in seeds]
    return cp.evaluate(chosen, METRICS, profile="paper", embedder=embedder)


def differences(chain: Scores, layers: Scores) -> Difference:
    """Metric to chain minus layers, and its interval."""
    rows = cp.compare(layers, chain).rows
    return {row.metric: (row.difference or 0.0, row.ci_low or 0.0, row.ci_high or 0.0) for row in rows}


def succeeded(found: Difference) -> bool:
    """Equal in accuracy, and clearly apart in both others, as decision 0007 has it."""
    _, low, high = found["accuracy"]
    return low > -SAME and high < SAME and found["upr"][1] > CLEAR and found["ids"][2] < -CLEAR


def told(found: Difference) -> str:
    """The three differences, with intervals, and whether that is a success."""
    parts = [f"{name} {d:+.4f} [{low:+.4f}, {high:+.4f}]" for name, (d, low, high) in found.items()]
    return "  ".join([*parts, "success" if succeeded(found) else "no success"])


def means(scores: Scores) -> str:
    """The three means, with intervals."""
    rows = {row.metric: row for row in scores.summary() if row.system is not None}
    return "  ".join(
        f"{name} {rows[name].mean:.3f} [{rows[name].ci_low:.3f}, {rows[name].ci_high:.3f}]"
        for name in METRICS
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Equal accuracy by design.")
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--together", type=int, default=10)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--embedder", default="hashing")
    asked = parser.parse_args()
    passed = []
    for first in range(0, asked.seeds - asked.together + 1, asked.together):
        block = range(first, first + asked.together)
        chain, layers = (traces(system, asked.questions, block) for system in (CHAIN, LAYERS))
        for seeds in (block, *(range(seed, seed + 1) for seed in block)):
            a, b = (scored(found, seeds, asked.embedder) for found in (layers, chain))
            found = differences(b, a)
            print(f"seeds {seeds[0]}-{seeds[-1]}: {told(found)}", flush=True)
            if seeds is block:
                passed.append(succeeded(found))
                print(f"  layers {means(a)}\n  chain  {means(b)}")
    print(f"{sum(passed)} of {len(passed)} experiments of {asked.together} seeds succeeded")
    return int(sum(passed) < 0.9 * len(passed))


if __name__ == "__main__":
    raise SystemExit(main())
