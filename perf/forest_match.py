"""Forest Match, side by side: one run against ten references, and networkx on the same graphs for scale.

    python perf/forest_match.py [--runs 1000] [--nodes 60]

Runs are random role graphs of one size, each node reading up to three of the eight before it. Ours is timed
as a batch against references prepared once, with and without making the graphs from lists, and run by run.
networkx is timed on the same pairs: VF2 (is the run's role graph isomorphic to the reference's or not) and
graph edit distance, whose exact search ends in no useful time at this size: it is stopped after one second a
pair, and timed in full on 7 nodes. The sides answer different questions: the table is for scale. CPU time.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable

import networkx as nx

from counterpoint.metrics.forestbench import RoleGraph, forest_match, match_many
from counterpoint.metrics.references import ReferenceSet
from counterpoint.metrics.roles import ROLES

Lists = tuple[list[str], list[tuple[int, int]]]


def run(nodes: int, rng: random.Random) -> Lists:
    roles = [rng.choice(ROLES[:10]) for _ in range(nodes)]
    edges = {(rng.randrange(max(0, j - 8), j), j) for j in range(1, nodes) for _ in range(3)}
    return roles, sorted(edges)


def network(lists: Lists) -> nx.DiGraph:
    graph = nx.DiGraph(lists[1])
    graph.add_nodes_from((node, {"role": role}) for node, role in enumerate(lists[0]))
    return graph


def cpu(work: Callable[[], object], repeats: int = 3) -> float:
    """CPU seconds of the fastest run."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def same_role(a: dict[str, str], b: dict[str, str]) -> bool:
    return a["role"] == b["role"]


def isomorphic(a: nx.DiGraph, b: nx.DiGraph) -> bool:
    return nx.algorithms.isomorphism.DiGraphMatcher(a, b, node_match=same_role).is_isomorphic()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=60)
    asked = parser.parse_args()
    rng = random.Random(0)
    lists = [run(asked.nodes, rng) for _ in range(asked.runs)]
    kept = [run(asked.nodes, rng) for _ in range(10)]
    references = ReferenceSet(
        RoleGraph(*one, tokens=1000 + k, generator=f"r{k % 4}") for k, one in enumerate(kept)
    )
    graphs: list[RoleGraph] = []

    def make() -> None:
        graphs[:] = [RoleGraph(*one, generator=f"r{k % 6}") for k, one in enumerate(lists)]

    print(f"{asked.runs} runs of {asked.nodes} nodes, {len(lists[0][1])} edges, 10 references; ms a run")
    made = cpu(make)
    batch = cpu(lambda: (make(), match_many(graphs, references)))
    single = cpu(lambda: (make(), [forest_match(graph, references) for graph in graphs]))
    for name, seconds in (
        ("counterpoint, batch, graphs given", batch - made),
        ("counterpoint, batch, graphs made from lists", batch),
        ("counterpoint, run by run, graphs given", single - made),
    ):
        print(f"  {name:<52} {1000 * seconds / asked.runs:9.4f}")

    few = [network(one) for one in lists[:20]]
    others = [network(one) for one in kept]
    seconds = cpu(lambda: [isomorphic(a, b) for a in few for b in others])
    print(f"  {'networkx, VF2 isomorphism with roles, 10 pairs':<52} {1000 * seconds / len(few):9.4f}")
    pair = few[0], others[0]
    seconds = cpu(lambda: nx.graph_edit_distance(*pair, node_match=same_role, timeout=1), 1)
    print(f"  {'networkx, edit distance, stopped at 1 s, 10 pairs':<52} {10 * 1000 * seconds:9.1f}")
    small = [network(run(7, rng)) for _ in range(11)]
    seconds = cpu(lambda: [nx.graph_edit_distance(small[0], b, node_match=same_role) for b in small[1:]], 1)
    print(f"  {'networkx, exact edit distance on 7 nodes, 10 pairs':<52} {1000 * seconds:9.1f}")


if __name__ == "__main__":
    main()
