"""References prepared once, so that a batch of runs is compared with them in a few array operations.

Conventions
-----------
* Counts of roles and role-typed edges are kept for what occurs in the references; what else a candidate has
  only adds to the size of the union.
* Results are (candidates, references) arrays.

Source: ForestBench, equations 2 to 4; see `counterpoint.metrics.forestbench`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterpoint.errors import UsageError
from counterpoint.metrics.rolegraph import RoleGraph
from counterpoint.metrics.weighting import Floats, Quality, family_weights

__all__ = ["PARTS", "WEIGHTS", "ReferenceSet"]

Counts = NDArray[np.int64]

WEIGHTS = (0.4, 0.4, 0.2)
PARTS = {"strict": ("multiset", "shape"), "paper": ("set", "nodes")}
"""Profile to how edges and topology are compared."""


class ReferenceSet(Sequence[RoleGraph]):
    """References of one task, with all that does not depend on the candidate computed once."""

    def __init__(self, references: Iterable[RoleGraph]) -> None:
        self.references = tuple(references)
        self.unknown = np.array([not graph.tokens for graph in self.references], dtype=bool)
        self.correct = np.array([graph.correct for graph in self.references], dtype=np.float64)
        self.generators = np.array([graph.generator for graph in self.references], dtype=object)
        roles = dict.fromkeys(role for graph in self.references for role in graph.roles)
        self._role_index = {role: index for index, role in enumerate(roles)}
        pairs = {pair for graph in self.references for pair in graph.edge_counts}
        side = len(roles) + 1
        self._pair_index = np.full((side, side), len(pairs), dtype=np.int64)
        for index, (source, target) in enumerate(sorted(pairs)):
            self._pair_index[self._role_index[source], self._role_index[target]] = index
        self._roles, self._edges = self._counts(self.references)
        self._shapes = _shapes(self.references)
        self.datasets = np.array([graph.origin.dataset for graph in self.references], dtype=object)
        self._weights: dict[tuple[str, bytes], Floats] = {}
        self._traces: dict[str, list[int]] = {}
        for index, graph in enumerate(self.references):
            for trace in graph.origin.traces:
                self._traces.setdefault(trace, []).append(index)

    def __len__(self) -> int:
        return len(self.references)

    def __getitem__(self, index: Any) -> Any:
        return self.references[index]

    def components(
        self,
        graphs: Sequence[RoleGraph],
        *,
        profile: str = "strict",
        edges: str | None = None,
        topo: str | None = None,
    ) -> tuple[Floats, Floats, Floats]:
        """s_node, s_edge and s_topo of every graph with every reference, (graphs, references) each."""
        counted, shaped = _comparison(profile, edges, topo)
        roles, pairs = self._counts(graphs)
        shapes = _shapes(graphs)
        reference_pairs, sizes, reference_sizes = self._edges, shapes[:, 1], self._shapes[:, 1]
        if counted == "set":
            pairs, reference_pairs = np.minimum(pairs, 1), np.minimum(reference_pairs, 1)
            sizes, reference_sizes = _kinds_of_edges(graphs), _kinds_of_edges(self.references)
        node = _jaccard(roles, self._roles, shapes[:, 0], self._shapes[:, 0])
        edge = _jaccard(pairs, reference_pairs, sizes, reference_sizes)
        columns = 1 if shaped == "nodes" else 4
        ratios = _ratio(shapes[:, None, :columns], self._shapes[None, :, :columns])
        return node, edge, ratios.mean(axis=2)

    def _counts(self, graphs: Sequence[RoleGraph]) -> tuple[Counts, Counts]:
        """How often each role, and each pair of roles along an edge, of the references occurs in a graph."""
        known = len(self._role_index)
        role = np.fromiter(
            (self._role_index.get(role, known) for graph in graphs for role in graph.roles), dtype=np.int64
        )
        nodes = np.array([graph.n for graph in graphs], dtype=np.int64)
        edges = np.array([len(graph.edges) for graph in graphs], dtype=np.int64)
        first = np.repeat(np.cumsum(nodes) - nodes, edges)
        ends = np.concatenate([np.empty((0, 2), np.int64), *(graph.edges for graph in graphs)])
        pair = self._pair_index[role[first + ends[:, 0]], role[first + ends[:, 1]]]
        return _tally(role, nodes, known), _tally(pair, edges, int(self._pair_index[-1, -1]))

    def similarities(
        self, graphs: Sequence[RoleGraph], *, weights: Sequence[float] = WEIGHTS, profile: str = "strict"
    ) -> Floats:
        """sim of every graph with every reference, (graphs, references)."""
        parts = self.components(graphs, profile=profile)
        return sum((weight * part for weight, part in zip(weights, parts, strict=True)), np.zeros(()))

    def quality(self, quality: Quality, kept: NDArray[np.bool_]) -> Floats:
        """q_k of the references that are kept, 0 of the others; minima are over the kept ones."""
        key = (quality if isinstance(quality, str) else repr(list(quality)), kept.tobytes())
        if key not in self._weights:
            self._weights[key] = family_weights(
                quality,
                [graph.size for graph in self.references],
                [graph.tokens for graph in self.references],
                np.where(kept, self.correct, 0),
            )
        return self._weights[key]

    def foreign(self, generator: str) -> NDArray[np.bool_]:
        """Which references another generator made; an empty generator equals none, itself included."""
        return _differ(self.generators, generator)

    def kept(self, graph: RoleGraph, own: NDArray[np.bool_], leave_out: str | None) -> NDArray[np.bool_]:
        """Which references stay for a candidate under ``leave_out``."""
        if leave_out is None:
            return np.ones(len(self.references), dtype=bool)
        if leave_out == "trace":
            return ~own
        if leave_out == "dataset":
            return _differ(self.datasets, graph.origin.dataset)
        return self.foreign(graph.generator if leave_out == "generator" else leave_out)

    def own(self, graph: RoleGraph) -> NDArray[np.bool_]:
        """Which references are the very run that ``graph`` was made from."""
        same = np.zeros(len(self.references), dtype=bool)
        for trace in graph.origin.traces:
            same[self._traces.get(trace, [])] = True
        return same


def _differ(names: NDArray[np.object_], name: str) -> NDArray[np.bool_]:
    """Which names are other ones; an empty name equals none."""
    return np.asarray(names != name, dtype=bool) if name else np.ones(len(names), dtype=bool)


def _comparison(profile: str, edges: str | None, topo: str | None) -> tuple[str, str]:
    """How edges and topology are compared under a profile, unless said otherwise."""
    if profile not in PARTS:
        raise UsageError(f"profile {profile!r} is none of {', '.join(PARTS)}")
    counted, shaped = edges or PARTS[profile][0], topo or PARTS[profile][1]
    if counted not in ("multiset", "set"):
        raise UsageError(f"edges {counted!r} is neither multiset nor set")
    if shaped not in ("shape", "nodes"):
        raise UsageError(f"topo {shaped!r} is neither shape nor nodes")
    return counted, shaped


def _tally(values: Counts, lengths: Counts, kinds: int) -> Counts:
    """How often each of 0..kinds-1 occurs in each run of ``values``, (runs, kinds); others do not count."""
    run = np.repeat(np.arange(len(lengths)), lengths)
    counts = np.bincount(run * (kinds + 1) + values, minlength=len(lengths) * (kinds + 1))
    return counts.reshape(len(lengths), kinds + 1)[:, :kinds]


def _kinds_of_edges(graphs: Sequence[RoleGraph]) -> Counts:
    return np.array([len(graph.edge_counts) for graph in graphs], dtype=np.int64)


def _shapes(graphs: Sequence[RoleGraph]) -> Counts:
    """Nodes, edges, depth and width of each graph, (graphs, 4)."""
    rows = [(graph.n, len(graph.edges), graph.depth, graph.width) for graph in graphs]
    return np.array(rows, dtype=np.int64).reshape(len(rows), 4)


def _jaccard(counts: Counts, table: Counts, sizes: Counts, reference_sizes: Counts) -> Floats:
    """Σ min / Σ max of every row of ``counts`` with every row of ``table``; sizes are over all keys."""
    if len(counts) < len(table):  # the loop below is over the shorter side
        return _jaccard(table, counts, reference_sizes, sizes).T
    shared = np.empty((len(counts), len(table)), dtype=np.int64)
    for column, row in enumerate(table):
        np.minimum(counts, row).sum(axis=1, out=shared[:, column])
    return _ratio(shared, sizes[:, None] + reference_sizes[None] - shared)


def _ratio(one: Counts, other: Counts) -> Floats:
    """min / max, 1 where both are 0."""
    largest = np.maximum(one, other)
    return np.where(largest == 0, 1.0, np.minimum(one, other) / np.maximum(largest, 1))
