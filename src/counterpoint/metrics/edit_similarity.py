"""Graph edit similarity: how few nodes and edges have to change to make one collaboration graph the other.

Conventions
-----------
* Graphs are directed, without self-loops; nodes have roles. Names of nodes do not matter.
* Adding or dropping a node or an edge costs 1, and so does giving a node another role.

What counts
-----------
The distance is exact, for graphs of up to `MOST_NODES` nodes; larger ones are left to
`forestbench.similarity`, which takes microseconds.

Source: graph edit distance is Sanfeliu and Fu's (1983); the scale is ours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from counterpoint.metrics.rolegraph import RoleGraph
from counterpoint.score import Score

__all__ = ["edit_similarity"]

MOST_NODES = 10

Matrix = NDArray[np.int64]


def edit_similarity(graph_a: RoleGraph, graph_b: RoleGraph) -> Score:
    """Graph edit similarity: ``1 - GED / (#V + #V' + #E + #E')``.

    Parameters
    ----------
    graph_a, graph_b: graphs of at most 10 nodes each.

    Returns
    -------
    Score in [0, 1], symmetric, 1 for graphs that differ in nothing but names (two empty ones included); part
    ``distance`` is GED. Undefined for larger graphs.

    >>> chain = RoleGraph(["a", "b"], [(0, 1)]), RoleGraph(["a", "b", "c"], [(0, 1), (1, 2)])
    >>> score = edit_similarity(*chain)
    >>> score.value, score.parts["distance"]
    (0.75, 2)
    """
    largest = max(graph_a.n, graph_b.n)
    if largest > MOST_NODES:
        return Score.undefined(
            f"the distance is exact and so for at most {MOST_NODES} nodes, found {largest}: "
            "use forestbench.similarity"
        )
    whole = graph_a.size + graph_b.size
    if not whole:
        return Score(1, {"distance": 0})
    distance = whole - _kept(graph_a, graph_b)
    return Score((whole - distance) / whole, {"distance": distance})


def _kept(a: RoleGraph, b: RoleGraph) -> int:
    """The most that a matching of nodes saves: 2 a node of the same role, 1 of another, 2 an edge.

    Since matching two nodes never costs anything, every node of the smaller graph is matched.
    """
    small, large = sorted((a, b), key=lambda graph: graph.n)
    if not small.n:
        return 0
    same = np.array([[role == other for other in large.roles] for role in small.roles], dtype=np.int64)
    return _Search(1 + same, _matrix(small), _matrix(large)).best


def _matrix(graph: RoleGraph) -> Matrix:
    matrix = np.zeros((graph.n, graph.n), dtype=np.int64)
    matrix[graph.edges[:, 0], graph.edges[:, 1]] = 1
    return matrix


class _Search:
    """Branch and bound over the ways to match each row, a node of the small graph, with its own column."""

    def __init__(self, nodes: Matrix, small: Matrix, large: Matrix) -> None:
        self.nodes, self.small, self.large = nodes, small, large
        self.best = 0
        busiest = np.argsort(-(small.sum(axis=0) + small.sum(axis=1)), kind="stable")
        self._extend([], [], busiest.tolist(), list(range(len(large))), 0)

    def _extend(
        self, rows: list[int], columns: list[int], left: list[int], free: list[int], saved: int
    ) -> None:
        """Tries all ways to match the rows that are ``left``, after ``rows`` with ``columns``."""
        if not left:
            self.best = max(self.best, saved)
            return
        gain = self.nodes[np.ix_(left, free)].copy()
        for small, large in ((self.small, self.large), (self.small.T, self.large.T)):
            gain += 2 * small[np.ix_(left, rows)] @ large[np.ix_(free, columns)].T
        # At best, a node keeps as many edges to unmatched nodes as both sides have; each has two ends.
        most = gain.copy()
        for axis in (0, 1):
            ends = (
                self.small[np.ix_(left, left)].sum(axis=axis),
                self.large[np.ix_(free, free)].sum(axis=axis),
            )
            most += np.minimum.outer(*ends)
        chosen = linear_sum_assignment(most, maximize=True)
        if saved + int(most[chosen].sum()) <= self.best:
            return
        matching = rows + [left[at] for at in chosen[0]], columns + [free[at] for at in chosen[1]]
        self.best = max(self.best, self._saved(*matching))
        for at in np.argsort(-most[0], kind="stable").tolist():
            rest = free[:at] + free[at + 1 :]
            more = int(gain[0, at])
            self._extend([*rows, left[0]], [*columns, free[at]], left[1:], rest, saved + more)

    def _saved(self, rows: list[int], columns: list[int]) -> int:
        edges = self.small[np.ix_(rows, rows)] * self.large[np.ix_(columns, columns)]
        return int(self.nodes[rows, columns].sum() + 2 * edges.sum())
