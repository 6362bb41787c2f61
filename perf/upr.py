"""UPR, side by side: counting paths through the public call, and networkx listing them.

    python perf/upr.py [--nodes 18]

networkx lists every path of the complete DAG, one `all_simple_paths` call a source with all later nodes as
targets; both sides see the same graph and count the same paths. Below it, without a peer that could do them,
the 100-node complete DAG, exact, and 5,000 nodes with 20,000 edges in floating mode: edges between any nodes,
which makes short paths, and between near ones, which makes long ones. Wall time, fastest of several runs.
Exits with 1 where an aim is missed.
"""

from __future__ import annotations

import argparse
import itertools
import random
import time
from collections.abc import Callable

import networkx as nx

from counterpoint.metrics.gemmas import unnecessary_path_ratio
from counterpoint.score import Score

Edges = list[tuple[int, int]]


def fastest(work: Callable[[], Score], repeats: int) -> tuple[float, Score]:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        score = work()
        times.append(time.perf_counter() - start)
    return min(times), score


def listed(n: int, edges: Edges) -> tuple[float, int]:
    """Seconds to list every path, and how many there are."""
    graph = nx.DiGraph(edges)
    start = time.perf_counter()
    sources = range(n - 1)
    paths = sum(1 for i in sources for _ in nx.all_simple_paths(graph, i, list(range(i + 1, n))))
    return time.perf_counter() - start, paths


def near(n: int, reach: int) -> Edges:
    return [(i, j) for i in range(n) for j in range(i + 1, min(n, i + 1 + reach))]


def anywhere(n: int, m: int, rng: random.Random) -> Edges:
    found: set[tuple[int, int]] = set()
    while len(found) < m:
        i, j = sorted(rng.sample(range(n), 2))
        found.add((i, j))
    return sorted(found)


def main() -> int:
    parser = argparse.ArgumentParser(description="Speed of UPR.")
    parser.add_argument("--nodes", type=int, default=18)
    n = parser.parse_args().nodes
    rng = random.Random(0)
    misses = 0

    complete = list(itertools.combinations(range(n), 2))
    correct = [rng.random() < 0.5 for _ in range(n)]
    matrix = nx.to_numpy_array(nx.DiGraph(complete), nodelist=range(n), dtype=int)
    slow, paths = min(listed(n, complete) for _ in range(2))
    print(f"{n}-node complete DAG: networkx lists {paths} paths in {slow:.3f} s")
    for form, adjacency in (("array", matrix), ("edge list", (n, complete))):
        quick, score = fastest(lambda given=adjacency: unnecessary_path_ratio(given, correct), 200)
        assert score.parts["paths"] == paths
        missed = n == 18 and slow / quick < 10_000
        misses += missed
        times = f"{slow / quick:,.0f} times as fast"
        print(f"  counted from an {form:9}  {quick * 1e6:6.1f} us  {times}  aim 10,000")

    cases = [
        ("100 nodes, complete, exact", 100, list(itertools.combinations(range(100), 2)), "exact", 0.010),
        ("5,000 nodes, 20,000 edges anywhere, float", 5000, anywhere(5000, 20_000, rng), "float", 2.0),
        ("5,000 nodes, 19,990 edges to near nodes, float", 5000, near(5000, 4), "float", 2.0),
    ]
    for name, size, edges, mode, aim in cases:
        right = [rng.random() < 0.5 for _ in range(size)]
        seconds, _ = fastest(lambda: unnecessary_path_ratio((size, edges), right, mode=mode), 3)  # noqa: B023
        misses += seconds > aim
        print(f"{name:48} {seconds * 1e3:8.2f} ms  aim {aim * 1e3:.0f} ms")
    return int(misses > 0)


if __name__ == "__main__":
    raise SystemExit(main())
