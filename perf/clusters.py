"""Clustering claims: 5,000 at one position, by ten agents and by a hundred, dense and sparse matches.

    python perf/clusters.py [--claims 5000]

Wall time of one public call on a fresh match, reading it included. Exits with 1 where an aim is missed.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numpy.typing import NDArray

from counterpoint.metrics.river import cluster_claims

AIM_S = 5.0


def topics(n: int, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Claims about n / size topics: those of one mostly correspond, the others rarely do."""
    topic = rng.integers(0, n // size, n)
    match = np.where(topic[:, None] == topic[None, :], 0.9, 0.4) + rng.uniform(-0.2, 0.1, (n, n))
    return np.triu(match, 1) + np.triu(match, 1).T


def main() -> int:
    parser = argparse.ArgumentParser(description="Speed of clustering claims.")
    parser.add_argument("--claims", type=int, default=5000)
    n = parser.parse_args().claims
    rng = np.random.default_rng(0)
    misses = 0
    for agents in (10, 100):
        for size in (5, n // 4):
            match = topics(n, size, rng)
            owners = rng.integers(0, agents, n).tolist()
            start = time.perf_counter()
            clusters = cluster_claims(owners, match)
            seconds = time.perf_counter() - start
            misses += seconds > AIM_S
            print(
                f"{n} claims, {agents:3} agents, topics of {size:4}: "
                f"{len(clusters):4} clusters in {seconds:.2f} s  aim {AIM_S:.0f}"
            )
    return int(misses > 0)


if __name__ == "__main__":
    raise SystemExit(main())
