"""Ways to damage a role graph on purpose, and ways that must not change a similarity at all.

Conventions
-----------
* An operator is ``operator(graph, p, rng) -> RoleGraph``; p in [0, 1] is the share that is hit, rounded to
  the nearest count, a half up.
* Nodes that stay keep their order; new edges run forward in a topological order, so that the graph stays
  acyclic.
* Tokens are not carried over: they say nothing about a graph that no run had.

Source: ForestBench deletes and rewires; bridging, merging, duplicating and the must-not-change ones are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from counterpoint.graph import topological_order
from counterpoint.metrics.rolegraph import RoleGraph
from counterpoint.metrics.roles import ROLES

__all__ = ["OPERATORS", "UNCHANGING", "Operator"]

Operator = Callable[[RoleGraph, float, np.random.Generator], RoleGraph]


def _chosen(count: int, p: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """A random p-share of 0..count-1."""
    return rng.choice(count, size=min(count, int(p * count + 0.5)), replace=False)


def _subset(graph: RoleGraph, kept: Sequence[int], pairs: Sequence[tuple[int, int]]) -> RoleGraph:
    """The graph on the nodes ``kept``, with ``pairs`` between them."""
    place = {node: index for index, node in enumerate(kept)}
    return graph.replace(
        [graph.roles[node] for node in kept],
        [(place[i], place[j]) for i, j in pairs if i in place and j in place],
        agents=graph.agents and [graph.agents[node] for node in kept],
        names=graph.names and [graph.names[node] for node in kept],
    )


def delete_nodes(graph: RoleGraph, p: float, rng: np.random.Generator) -> RoleGraph:
    """Nodes go, and their edges with them."""
    gone = set(_chosen(graph.n, p, rng).tolist())
    kept = [node for node in range(graph.n) if node not in gone]
    return _subset(graph, kept, _pairs(graph))


def bridge_nodes(graph: RoleGraph, p: float, rng: np.random.Generator) -> RoleGraph:
    """Nodes go, and what they read reaches those who read them."""
    gone = set(_chosen(graph.n, p, rng).tolist())
    pairs = set(_pairs(graph))
    for node in gone:
        before = [i for i, j in pairs if j == node]
        after = [j for i, j in pairs if i == node]
        pairs = {pair for pair in pairs if node not in pair} | {(i, j) for i in before for j in after}
    kept = [node for node in range(graph.n) if node not in gone]
    return _subset(graph, kept, sorted(pairs))


def delete_edges(graph: RoleGraph, p: float, rng: np.random.Generator) -> RoleGraph:
    """Edges go."""
    gone = set(_chosen(len(graph.edges), p, rng).tolist())
    pairs = [pair for index, pair in enumerate(_pairs(graph)) if index not in gone]
    return _subset(graph, range(graph.n), pairs)


def rewire_edges(graph: RoleGraph, p: float, rng: np.random.Generator) -> RoleGraph:
    """Edges are drawn anew among the pairs of nodes that are free, forward in time."""
    order = topological_order(graph.n, graph.edges)
    old = _pairs(graph)
    moved = set(_chosen(len(old), p, rng).tolist())
    kept = [pair for index, pair in enumerate(old) if index not in moved]
    taken = set(kept)
    free = [pair for pair in combinations(order, 2) if pair not in taken]
    drawn = rng.choice(len(free), size=len(moved), replace=False).tolist() if moved else []
    return _subset(graph, range(graph.n), kept + [free[index] for index in drawn])


def relabel_nodes(graph: RoleGraph, p: float, rng: np.random.Generator) -> RoleGraph:
    """Nodes get another role of the vocabulary."""
    roles = list(graph.roles)
    for node in _chosen(graph.n, p, rng).tolist():
        others = [role for role in ROLES if role != roles[node]]
        roles[node] = others[int(rng.integers(len(others)))]
    return _recast(graph, roles)


def merge_roles(graph: RoleGraph, p: float, rng: np.random.Generator) -> RoleGraph:
    """Roles become one: p of the graph's roles but one take the name of that one."""
    present = sorted(graph.role_counts)
    if len(present) < 2:
        return graph
    into, *others = (present[index] for index in rng.permutation(len(present)))
    merged = {others[index] for index in _chosen(len(others), p, rng).tolist()}
    return _recast(graph, [into if role in merged else role for role in graph.roles])


def duplicate_nodes(graph: RoleGraph, p: float, rng: np.random.Generator) -> RoleGraph:
    """Nodes are done twice: the copy reads and reaches the same nodes."""
    copied = _chosen(graph.n, p, rng).tolist()
    copy = {node: graph.n + index for index, node in enumerate(copied)}
    pairs = _pairs(graph)
    pairs += [(copy[i], j) for i, j in pairs if i in copy] + [(i, copy[j]) for i, j in pairs if j in copy]
    return graph.replace(
        [*graph.roles, *(graph.roles[node] for node in copied)],
        pairs,
        agents=graph.agents and [*graph.agents, *(graph.agents[node] for node in copied)],
        names=graph.names and [*graph.names, *(graph.names[node] for node in copied)],
    )


def rename_agents(graph: RoleGraph, p: float, rng: np.random.Generator) -> RoleGraph:
    """Agents get other names, their actions keep their roles."""
    agents = graph.agents or [str(node) for node in range(graph.n)]
    names = sorted(set(agents))
    hit = {names[index] for index in _chosen(len(names), p, rng).tolist()}
    renamed = [f"renamed {agent}" if agent in hit else agent for agent in agents]
    return graph.replace(graph.roles, graph.edges, agents=renamed, names=graph.names)


def shuffle_nodes(graph: RoleGraph, p: float, rng: np.random.Generator) -> RoleGraph:
    """Independent actions happen in another order: a random topological order; p is not used."""
    pairs = _pairs(graph)
    pending = np.bincount(graph.edges[:, 1], minlength=graph.n).tolist()
    ready = [node for node in range(graph.n) if not pending[node]]
    order: list[int] = []
    while ready:
        node = ready.pop(int(rng.integers(len(ready))))
        order.append(node)
        for source, target in pairs:
            if source == node:
                pending[target] -= 1
                if not pending[target]:
                    ready.append(target)
    return _subset(graph, order, pairs)


def _pairs(graph: RoleGraph) -> list[tuple[int, int]]:
    return [(i, j) for i, j in graph.edges.tolist()]


def _recast(graph: RoleGraph, roles: Sequence[str]) -> RoleGraph:
    return graph.replace(roles, graph.edges, agents=graph.agents, names=graph.names)


OPERATORS: Mapping[str, Operator] = {
    "delete nodes": delete_nodes,
    "delete nodes, bridged": bridge_nodes,
    "delete edges": delete_edges,
    "rewire edges": rewire_edges,
    "relabel nodes": relabel_nodes,
    "merge roles": merge_roles,
    "duplicate nodes": duplicate_nodes,
}
"""What damages a graph."""

UNCHANGING: Mapping[str, Operator] = {"rename agents": rename_agents, "shuffle actions": shuffle_nodes}
"""What must not change a similarity. Texts are no part of a role graph: editing them cannot."""
