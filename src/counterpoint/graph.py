"""The collaboration graph of a trace: who spoke, and whose text reached whom.

Nodes are steps of kind ``agent`` (of kind ``decision`` too with ``include_decision``); edges are transfers at
or above an evidence level. Two views:

* ``unrolled``: a node a step. Always acyclic, for a step only hears earlier steps.
* ``agents(view)``: a node an agent, with S (within a round, spatial) and T (across rounds, temporal).

Conventions
-----------
* ``spatial[i, j]`` = 1 means i -> j: i's text reached j. Rows are sources.
* An agent's own memory (a transfer between two steps of one agent) is no edge.
* Names are never folded or merged: two agents are one iff their names are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from counterpoint.errors import GraphError, UsageError
from counterpoint.trace import EVIDENCE, Step, Trace, tidy

__all__ = ["CollaborationGraph", "Edges", "View", "graph", "index_edges", "levels", "topological_order"]

Edges = NDArray[np.int64]
"""(m, 2) node indices, source then target."""

MAX_CYCLES = 100
"""At most so many cycles of the agent graph are named, the shortest ones."""


@dataclass(frozen=True)
class View:
    """Nodes and edges as arrays; equal indices mean the same node in every field."""

    names: tuple[str, ...]
    """Step ids, or agent names by first appearance."""
    steps: tuple[Step, ...]
    """The step that stands for each node: itself, or the agent's last one."""
    spatial_edges: Edges
    """(m, 2) transfers within a round, row-major, no duplicates."""
    temporal_edges: Edges
    """(m, 2) transfers across rounds, row-major, no duplicates."""
    order: tuple[str, ...]
    """Names in time order of the steps that stand for them."""

    @cached_property
    def spatial(self) -> NDArray[np.uint8]:
        """S, (n, n) of 0 and 1."""
        return _dense(len(self.names), self.spatial_edges)

    @cached_property
    def temporal(self) -> NDArray[np.uint8]:
        """T, (n, n) of 0 and 1."""
        return _dense(len(self.names), self.temporal_edges)

    @cached_property
    def edge_array(self) -> Edges:
        """(m, 2) all edges, spatial or temporal, row-major, no duplicates."""
        return _unique(np.concatenate([self.spatial_edges, self.temporal_edges]))

    @cached_property
    def edges(self) -> list[tuple[int, int]]:
        """All edges as index pairs, row-major."""
        return [(int(i), int(j)) for i, j in self.edge_array]

    @property
    def texts(self) -> list[str]:
        """What each node said."""
        return [step.text for step in self.steps]


class CollaborationGraph:
    """The collaboration graph of one trace at one evidence level.

    ``evidence``: the weakest evidence that counts; ``evidence_found``: the levels that the trace has
    between its nodes, strongest first, at any level.
    """

    def __init__(self, trace: Trace, *, evidence: str = "broadcast", include_decision: bool = False):
        if evidence not in EVIDENCE:
            raise UsageError(f"evidence {evidence!r} is none of {', '.join(EVIDENCE)}")
        self.trace = tidy(trace)
        self.evidence = evidence
        kinds = {"agent", "decision"} if include_decision else {"agent"}
        self.steps = tuple(step for step in self.trace.steps if step.kind in kinds)
        index = {step.id: number for number, step in enumerate(self.steps)}
        allowed = set(EVIDENCE[: EVIDENCE.index(evidence) + 1])
        found: set[str] = set()
        within: list[tuple[int, int]] = []
        across: list[tuple[int, int]] = []
        for target, step in enumerate(self.steps):
            for transfer in step.heard:
                source = index.get(transfer.source)
                if source is None or self.steps[source].agent == step.agent:
                    continue
                found.add(transfer.evidence)
                if transfer.evidence in allowed:
                    (within if transfer.scope == "within" else across).append((source, target))
        self.evidence_found = tuple(level for level in EVIDENCE if level in found)
        self._within, self._across = _unique(within), _unique(across)

    @cached_property
    def unrolled(self) -> View:
        """A node a step, in time order."""
        names = tuple(step.id for step in self.steps)
        return View(names, self.steps, self._within, self._across, names)

    def agents(self, view: str = "last_round") -> View:
        """A node an agent.

        ``last_round``: agents active in the last round; i -> j in S (T) iff j's own last step has a within
        (across) transfer from any step of i. ``union``: all agents; i -> j iff any step of j has one.
        """
        if view not in ("last_round", "union"):
            raise UsageError(f"view {view!r} is neither last_round nor union")
        last: dict[str, int] = {step.agent: number for number, step in enumerate(self.steps)}
        names = list(dict.fromkeys(step.agent for step in self.steps))
        within, across = self._within, self._across
        if view == "last_round":
            final = max((step.round or 0 for step in self.steps), default=0)
            active = {step.agent for step in self.steps if step.round == final}
            names = [name for name in names if name in active]
            ends = np.array([last[name] for name in names], dtype=np.int64)
            within = within[np.isin(within[:, 1], ends)]
            across = across[np.isin(across[:, 1], ends)]
        number = {name: position for position, name in enumerate(names)}
        node = np.array([number.get(step.agent, -1) for step in self.steps], dtype=np.int64)
        return View(
            tuple(names),
            tuple(self.steps[last[name]] for name in names),
            _fold(within, node),
            _fold(across, node),
            tuple(sorted(names, key=last.__getitem__)) if view == "last_round" else tuple(names),
        )

    @cached_property
    def agent_names(self) -> tuple[str, ...]:
        """Every agent that has a node, by first appearance."""
        return tuple(dict.fromkeys(step.agent for step in self.steps))

    @cached_property
    def levels(self) -> NDArray[np.int64]:
        """Of each node of ``unrolled``: edges on the longest path that ends in it."""
        return levels(len(self.steps), self.unrolled.edge_array)

    @property
    def depth(self) -> int:
        """Nodes on the longest path of ``unrolled``; 0 without nodes."""
        return int(self.levels.max()) + 1 if len(self.steps) else 0

    @cached_property
    def why_no_edges(self) -> str:
        """Why there is no edge at this evidence level, and what to do; empty where there is one."""
        if len(self._within) or len(self._across):
            return ""
        if self.evidence_found:
            return (
                f"no transfer between agents at {self.evidence} evidence or stronger; "
                f"the trace has {', '.join(self.evidence_found)}: try --evidence {self.evidence_found[0]}"
            )
        if len(self.agent_names) < 2:
            return "fewer than two agents speak"
        return "no transfer between agents is known: where one hears another, record `heard` with each step"

    @property
    def rounds(self) -> int:
        """Number of rounds in which a node speaks."""
        return len({step.round for step in self.steps})

    @cached_property
    def cycles(self) -> list[list[str]]:
        """Elementary cycles of the agent graph over all rounds, as agent names, the shortest first.

        At most `MAX_CYCLES` are named. Each starts with its agent of earliest appearance.
        """
        import networkx as nx

        view = self.agents("union")
        loops: nx.DiGraph[int] = nx.DiGraph()
        loops.add_nodes_from(range(len(view.names)))
        loops.add_edges_from(view.edges)
        named: dict[tuple[int, ...], None] = {}
        largest = max((len(part) for part in nx.strongly_connected_components(loops)), default=0)
        for bound in range(2, largest + 1):
            for cycle in islice(nx.simple_cycles(loops, length_bound=bound), MAX_CYCLES):
                start = cycle.index(min(cycle))
                named.setdefault(tuple(cycle[start:] + cycle[:start]))
            if len(named) >= MAX_CYCLES:
                break
        ranked = sorted(named, key=lambda cycle: (len(cycle), cycle))[:MAX_CYCLES]
        return [[view.names[node] for node in cycle] for cycle in ranked]

    @cached_property
    def idle_agents(self) -> list[str]:
        """Agents whose text helped nobody: heard by no other agent and by no decision step, or all empty."""
        heard_by_decision = {
            transfer.source for step in self.trace.steps if step.kind == "decision" for transfer in step.heard
        }
        sources = set(self.unrolled.edge_array[:, 0].tolist())
        useful = {
            step.agent
            for number, step in enumerate(self.steps)
            if step.text.strip() and (number in sources or step.id in heard_by_decision)
        }
        return [name for name in self.agent_names if name not in useful]


def graph(trace: Trace, *, evidence: str = "broadcast") -> CollaborationGraph:
    """The collaboration graph of ``trace``, with transfers at or above ``evidence``."""
    return CollaborationGraph(trace, evidence=evidence)


def index_edges(adjacency: object) -> tuple[int, Edges]:
    """An (n, n) array, or ``(n, edge list)``, to n and its edges: row-major, duplicates merged.

    Raises GraphError for another shape, an index out of range, or a self-loop in an edge list. The
    diagonal of an array is ignored.
    """
    if isinstance(adjacency, tuple) and len(adjacency) == 2 and np.ndim(adjacency[0]) == 0:
        n, pairs = int(adjacency[0]), _pairs(adjacency[1])
        if pairs.size and (pairs.min() < 0 or pairs.max() >= n):
            raise GraphError(
                f"an edge names node {int(pairs.max() if pairs.max() >= n else pairs.min())}, "
                f"but nodes are 0 to {n - 1}"
            )
        loops = pairs[pairs[:, 0] == pairs[:, 1]]
        if loops.size:
            raise GraphError(f"node {int(loops[0, 0])} has an edge to itself: leave self-loops out")
        return n, _unique(pairs)
    if hasattr(adjacency, "tocoo"):  # scipy sparse: its dense form need not fit into memory
        sparse = adjacency.tocoo()
        if sparse.shape[0] != sparse.shape[1]:
            raise GraphError(f"an adjacency is an (n, n) array or (n, edge list), found shape {sparse.shape}")
        pairs = np.column_stack([sparse.row, sparse.col])[sparse.data != 0].astype(np.int64)
        return int(sparse.shape[0]), _unique(pairs[pairs[:, 0] != pairs[:, 1]])
    try:
        matrix = np.asarray(adjacency)
    except ValueError:
        raise GraphError(
            "an adjacency is an (n, n) array or (n, edge list), found rows of different lengths"
        ) from None
    if matrix.size == 0:
        return 0, np.empty((0, 2), np.int64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise GraphError(f"an adjacency is an (n, n) array or (n, edge list), found shape {matrix.shape}")
    pairs = np.argwhere(matrix)
    return len(matrix), pairs[pairs[:, 0] != pairs[:, 1]]


def topological_order(n: int, edges: Edges) -> list[int]:
    """Nodes so that every edge goes forward, wave by wave; GraphError names a cycle."""
    order = _waves(n, edges)
    flat = [node for wave in order for node in wave]
    if len(flat) < n:
        import networkx as nx

        left = set(range(n)) - set(flat)
        loops = nx.DiGraph([(int(i), int(j)) for i, j in edges if i in left and j in left])
        cycle = [source for source, _ in nx.find_cycle(loops)]
        path = " -> ".join(map(str, [*cycle, cycle[0]]))
        raise GraphError(f"the graph has a cycle ({path}): unroll it by round, a node a step")
    return flat


def levels(n: int, edges: Edges) -> NDArray[np.int64]:
    """Of each node: the number of edges on the longest path that ends in it."""
    depth = np.zeros(n, dtype=np.int64)
    for level, wave in enumerate(_waves(n, edges)):
        depth[wave] = level
    return depth


def _waves(n: int, edges: Edges) -> list[list[int]]:
    """Kahn's algorithm wave by wave: wave k holds the nodes whose longest incoming path has k edges."""
    successors: list[list[int]] = [[] for _ in range(n)]
    pending = [0] * n
    for source, target in edges.tolist():
        successors[source].append(target)
        pending[target] += 1
    waves = []
    ready = [node for node in range(n) if not pending[node]]
    while ready:
        waves.append(ready)
        following = []
        for node in ready:
            for target in successors[node]:
                pending[target] -= 1
                if not pending[target]:
                    following.append(target)
        ready = sorted(following)
    return waves


def _pairs(edges: object) -> Edges:
    """An edge list as written by a user, to an (m, 2) array."""
    try:
        pairs = np.asarray(edges)
    except ValueError:
        pairs = np.empty(1, dtype=object)
    if pairs.size == 0:
        return np.empty((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise GraphError("an edge list holds pairs of whole numbers: node indices, source then target")
    return pairs.astype(np.int64)


def _unique(pairs: Iterable[tuple[int, int]] | Edges) -> Edges:
    array = np.asarray(list(pairs) if isinstance(pairs, Iterator) else pairs, dtype=np.int64).reshape(-1, 2)
    if len(array) < 2:
        return array
    rank = array[:, 0] * (array[:, 1].max() + 1) + array[:, 1]
    if (rank[1:] > rank[:-1]).all():
        return array
    return array[np.unique(rank, return_index=True)[1]]


def _fold(edges: Edges, node: NDArray[np.int64]) -> Edges:
    """Edges between steps to edges between the nodes that the steps belong to."""
    folded = node[edges]
    return _unique(folded[(folded >= 0).all(axis=1) & (folded[:, 0] != folded[:, 1])])


def _dense(n: int, edges: Edges) -> NDArray[np.uint8]:
    matrix = np.zeros((n, n), dtype=np.uint8)
    matrix[edges[:, 0], edges[:, 1]] = 1
    return matrix
