"""How long does a comparison take, and how much memory: 10,000 tasks x 6 systems x 20 metrics.

    python perf/compare.py [--tasks 10000] [--systems 6] [--metrics 20] [--runs 1]

One run: every system against every other, 15 pairs. Two runs: every system against itself in the other run.
Aim: at most 10 s and 1 GB, the rows included.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from counterpoint.compare import compare
from counterpoint.score import Row
from counterpoint.scores import Scores, TraceInfo


def scores(run: str, tasks: int, systems: int, metrics: int, seed: int) -> Scores:
    """Rows of random values: shares, counts and right-or-wrong by turns; one in fifty undefined."""
    rng = np.random.default_rng(seed)
    names = [f"metric_{index}" for index in range(metrics)]
    signatures = [{"metric": name, "version": 1} for name in names]
    infos, rows = [], []
    for system in range(systems):
        shares = rng.beta(2, 3, (tasks, metrics)) + 0.002 * system
        shares[:, 1::3] = rng.poisson(5, shares[:, 1::3].shape)
        shares[:, 2::3] = rng.random(shares[:, 2::3].shape) < 0.6
        undefined = rng.random(shares.shape) < 0.02
        for task in range(tasks):
            trace = f"{system}/{task}"
            infos.append(TraceInfo(run, trace, f"system {system}", f"task {task}", ""))
            for index, value in enumerate(shares[task].tolist()):
                found = (None, "no texts") if undefined[task, index] else (value, "")
                rows.append(
                    Row(run, trace, f"system {system}", names[index], *found, signature=signatures[index])
                )
    return Scores(rows, infos)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--systems", type=int, default=6)
    parser.add_argument("--metrics", type=int, default=20)
    parser.add_argument("--runs", type=int, choices=(1, 2), default=1)
    options = parser.parse_args()
    size = (options.tasks, options.systems, options.metrics)
    inputs = [scores(f"run {index}", *size, seed=index) for index in range(options.runs)]
    rows = sum(len(one.rows) for one in inputs)
    started = time.perf_counter()
    found = compare(*inputs)
    seconds = time.perf_counter() - started
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{rows:,} rows, {len(found.pairs)} pairs, {found.tests} tests: {seconds:.1f} s, "
        f"peak {gigabytes:.2f} GB with the rows"
    )


if __name__ == "__main__":
    main()
