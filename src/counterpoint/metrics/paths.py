"""Paths of a directed acyclic graph, and how many of them are necessary: counted exactly, never listed.

A path is necessary when the share of correct nodes on it is at least a threshold a/b. With c correct nodes
out of l that is ``b*c - a*l >= 0``: so a node weighs ``b - a`` where it is correct and ``-a`` where not,
a path weighs the sum, and one distribution of weights per node suffices: of the paths that end in it.

Conventions
-----------
* An adjacency is an (n, n) array (row i, column j: i -> j), ``(n, edge list)`` or a scipy sparse matrix.
* A distribution is one Python integer, a slot of ``width`` bits a weight: adding distributions and moving
  them by a node's weight are an integer addition and a shift, and the sum of all slots is the remainder by
  ``2**width - 1``.

What counts
-----------
``subpath``: every directed path of at least two nodes; ``subpath1``: single nodes too; ``maximal``: paths of
at least two nodes from a node without predecessors to one without successors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from operator import mul
from typing import Any, TypeGuard

import numpy as np

from counterpoint.errors import GraphError, UsageError
from counterpoint.graph import Edges, index_edges, topological_order
from counterpoint.registry import suggest

__all__ = [
    "KINDS",
    "PathQuestion",
    "count",
    "counts_by_length",
    "expected_unnecessary",
    "is_edge_list",
    "load",
    "node_load",
    "unnecessary_subsets",
]

SMALL = 64
"""Up to so many nodes nothing is gained by looking at the graph before counting."""

MAX_BITS, MAX_SLOTS = 1e10, 5e6
"""What auto mode spends on exact integers: about 0.3 s and 150 MB a distribution, or 1 s for all loads."""

KINDS = ("subpath", "subpath1", "maximal")


@dataclass
class PathQuestion:
    """A graph, which nodes are correct, which paths count, and when one is necessary."""

    n: int
    edges: Edges
    correct: list[bool]
    threshold: Fraction
    kind: str
    order: list[int]
    """Nodes so that every edge goes forward."""
    predecessors: list[list[int]]

    @classmethod
    def read(cls, adjacency: object, correct: Any, threshold: Any, kind: str) -> PathQuestion:
        """The question that a user's arguments ask; raises GraphError or UsageError."""
        if kind not in KINDS:
            raise UsageError(f"paths {kind!r}{suggest(kind, KINDS)} is none of {', '.join(KINDS)}")
        n, edges = index_edges(adjacency)
        if not is_edge_list(adjacency):
            _refuse_loops(adjacency)
        forward = bool((edges[:, 0] < edges[:, 1]).all())
        order = list(range(n)) if forward else topological_order(n, edges)
        predecessors: list[list[int]] = [[] for _ in range(n)]
        for source, target in edges.tolist():
            predecessors[target].append(source)
        return cls(n, edges, _flags(correct, n), _share(threshold), kind, order, predecessors)

    @cached_property
    def successors(self) -> list[list[int]]:
        successors: list[list[int]] = [[] for _ in range(self.n)]
        for source, target in self.edges.tolist():
            successors[source].append(target)
        return successors

    def reversed(self) -> PathQuestion:
        """The same question about the graph with every edge turned around."""
        order = self.order[::-1]
        return replace(self, edges=self.edges[:, ::-1], order=order, predecessors=self.successors)

    @cached_property
    def starts(self) -> list[bool]:
        """Whether a path may start in each node."""
        return [self.kind != "maximal" or not above for above in self.predecessors]

    @cached_property
    def ends(self) -> list[int]:
        """Nodes in which a path may end."""
        if self.kind != "maximal":
            return self.order
        sources = set(self.edges[:, 0].tolist())
        return [node for node in self.order if self.predecessors[node] and node not in sources]

    @cached_property
    def counts(self) -> list[int]:
        """Of each node: paths that start where they may and end in it, itself alone included."""
        return _sweep(self, [int(start) for start in self.starts], [0] * self.n)

    @cached_property
    def paths(self) -> int:
        """How many paths count."""
        total = sum(self.counts[node] for node in self.ends)
        return total - self.n if self.kind == "subpath" else total

    @cached_property
    def depth(self) -> int:
        """Nodes on the longest path."""
        depth = [1] * self.n
        for node in self.order:
            above = self.predecessors[node]
            if above:
                depth[node] = 1 + max([depth[source] for source in above])
        return max(depth, default=0)

    @cached_property
    def weights(self) -> tuple[int, int]:
        """What a correct node adds and what a wrong one takes away: ``b - a`` and ``a``.

        A share c/l with l <= ``depth`` is at least a/b iff it is at least the smallest such share that is: so
        the weights are never greater than the graph is deep.
        """
        share = self.threshold
        if share.denominator > 2 and share.denominator > self.depth > 0:
            lengths = range(1, self.depth + 1)
            share = min(Fraction(math.ceil(share * length), length) for length in lengths)
        return share.denominator - share.numerator, share.numerator

    @cached_property
    def span(self) -> tuple[int, int]:
        """Bounds of the weight of a path: how far below zero, and how far above."""
        gain, loss = self.weights
        right = sum(self.correct)
        longest = self.depth if self.n > SMALL else self.n  # the depth is a tighter bound, but takes a sweep
        return loss * min(self.n - right, longest), gain * min(right, longest)

    @cached_property
    def width(self) -> int:
        """Bits of a slot, in whole bytes: one slot holds every path, and one bit to spare."""
        total = sum(self.counts)
        return 8 * (total.bit_length() // 8 + 1)

    @property
    def is_exact_quick(self) -> bool:
        """Whether `count`, `counts_by_length` and `expected_unnecessary` are quick."""
        if self.n <= SMALL:
            return True
        return (len(self.edges) + 8 * self.n) * self.slots * self.width <= MAX_BITS

    @property
    def is_load_quick(self) -> bool:
        """Whether `load` is quick: it takes each slot out of its integer."""
        return self.is_exact_quick and (len(self.edges) + self.n) * self.slots <= MAX_SLOTS

    @property
    def slots(self) -> int:
        """How many weights or lengths a path may have, at most."""
        return max(sum(self.span), self.depth) + 1


def is_edge_list(adjacency: object) -> TypeGuard[tuple[Any, Any]]:
    """Whether a graph is given as ``(n, edge list)``."""
    return isinstance(adjacency, tuple) and len(adjacency) == 2 and np.ndim(adjacency[0]) == 0


def _flags(correct: Any, n: int) -> list[bool]:
    try:
        values = correct.tolist() if isinstance(correct, np.ndarray) else list(correct)
        odd = [value for value in set(values) if value not in (0, 1, None)]
    except TypeError:
        kind = type(correct).__name__
        raise GraphError(f"correct holds one of True and False a node, found another {kind}") from None
    if len(values) != n:
        raise GraphError(f"correct holds one of True and False a node, found {len(values)} for {n} nodes")
    if odd:
        raise GraphError(f"correct holds one of True and False a node, found {odd[0]!r}")
    return [bool(value) for value in values]


def _share(threshold: Any) -> Fraction:
    try:
        share = Fraction(str(threshold))
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"threshold {threshold!r} is no number in [0, 1]") from None
    if not 0 <= share <= 1:
        raise UsageError(f"threshold {threshold} is outside [0, 1]")
    return share


def _refuse_loops(adjacency: Any) -> None:
    matrix = adjacency if hasattr(adjacency, "diagonal") else np.asarray(adjacency)
    if matrix.ndim == 2 and (diagonal := matrix.diagonal()).any():
        node = int(np.flatnonzero(diagonal)[0])
        raise GraphError(f"node {node} has an edge to itself: set the diagonal to 0")


def _sweep(question: PathQuestion, starts: list[int], shifts: list[int]) -> list[int]:
    """Of each node, in order: what starts in it plus what its predecessors hold, shifted by its bits."""
    held = [0] * question.n
    for node in question.order:
        total = starts[node]
        for source in question.predecessors[node]:
            total += held[source]
        shift = shifts[node]
        held[node] = total << shift if shift >= 0 else total >> -shift
    return held


def count(question: PathQuestion) -> int:
    """How many of the question's paths are necessary, exactly."""
    _, loss = question.weights
    below, width = question.span[0], question.width
    held = _weigh(question)
    total = sum([held[node] for node in question.ends]) >> below * width
    necessary = total % ((1 << width) - 1)
    if question.kind == "subpath":  # single nodes are in, and those of weight >= 0 are among the necessary
        necessary -= sum(question.correct) if loss else question.n
    return necessary


def _weigh(question: PathQuestion) -> list[int]:
    """Of each node: the weights of the paths that end in it; slot ``below`` is weight 0."""
    gain, loss = question.weights
    width = question.width
    alone = 1 << question.span[0] * width
    starts = [alone if start else 0 for start in question.starts]
    shifts = [gain * width if right else -loss * width for right in question.correct]
    return _sweep(question, starts, shifts)


def counts_by_length(question: PathQuestion) -> list[int]:
    """How many of the question's paths have 1, 2, ... nodes, exactly."""
    width = question.width
    held = _sweep(question, [int(start) for start in question.starts], [width] * question.n)
    slots = _slots(sum(held[node] for node in question.ends), width, question.depth + 1)
    if question.kind == "subpath":
        slots[1:2] = [0]
    return slots[1:]


def _slots(packed: int, width: int, size: int) -> list[int]:
    step = width // 8
    raw = packed.to_bytes(size * step, "little")
    return [int.from_bytes(raw[at : at + step], "little") for at in range(0, len(raw), step)]


def load(question: PathQuestion) -> list[tuple[int, int]]:
    """Of each edge: paths through it, and unnecessary ones, exactly.

    A path through u -> v is one that ends in u and one that starts in v: it is unnecessary iff their weights
    sum to less than 0.
    """
    backward = question.reversed()
    below, over = question.span
    heads, tails = (
        [_slots(packed, side.width, below + over + 1) for packed in _weigh(side)]
        for side in (question, backward)
    )
    fewer = [_fewer(tail, 2 * below) for tail in tails]
    return [
        (question.counts[source] * backward.counts[target], sum(map(mul, heads[source], fewer[target])))
        for source, target in question.edges.tolist()
    ]


def node_load(question: PathQuestion) -> list[tuple[int, int]]:
    """Of each node: paths through it, and unnecessary ones, exactly; single nodes only where they count.

    A path through v is one that ends in v and one that starts in v, the weight of v once.
    """
    gain, loss = question.weights
    backward = question.reversed()
    below, over = question.span
    heads, tails = (
        [_slots(packed, side.width, below + over + 1) for packed in _weigh(side)]
        for side in (question, backward)
    )
    loads = []
    for node, right in enumerate(question.correct):
        weight = gain if right else -loss
        fewer = _fewer(tails[node], 2 * below + weight)
        paths = question.counts[node] * backward.counts[node]
        unnecessary = sum(map(mul, heads[node], fewer))
        alone = question.kind == "subpath" or not (question.predecessors[node] or question.successors[node])
        if paths and alone and question.kind != "subpath1":  # the node itself is a path of one
            paths, unnecessary = paths - 1, unnecessary - (weight < 0)
        loads.append((paths, unnecessary))
    return loads


def _fewer(slots: list[int], limit: int) -> list[int]:
    """For each slot of a first half: how many second halves stand in slots that sum with it to below a limit.

    With both halves' weights counted from slot ``below`` on, the sum is negative below slot ``2 * below``.
    """
    sums = [0, *accumulate(slots)]
    return [sums[max(0, min(limit - slot, len(slots)))] for slot in range(len(slots))]


def unnecessary_subsets(n: int, correct: int, weights: tuple[int, int]) -> Iterator[int]:
    """How many sets of 1, 2, ... nodes out of n, of which some are correct, are unnecessary.

    With k the fewest correct nodes that make l nodes necessary, U(l, k) counts the sets of l nodes with fewer
    than k correct ones, and h(l, k - 1) those with exactly k - 1. Adding a node to a set gives
    ``(l + 1) U(l + 1, k) = (n - l) U(l, k) - (correct - k + 1) h(l, k - 1)``.
    """
    gain, loss = weights
    wrong = n - correct
    unnecessary = fringe = wrong if loss else 0  # U(1, 1) and h(1, 0)
    k = 1
    for size in range(1, n + 1):
        yield unnecessary
        unnecessary = ((n - size) * unnecessary - (correct - k + 1) * fringe) // (size + 1)
        if (size + 1) * loss > k * (gain + loss):
            fringe = fringe * (correct - k + 1) // k
            unnecessary += fringe
            k += 1
        else:
            without = size - k + 1
            fringe = fringe * (wrong - without) // (without + 1)


def expected_unnecessary(question: PathQuestion) -> tuple[int, int]:
    """Mean number of unnecessary paths over all ways to hand out the correctness, as an exact fraction.

    Of a path with l nodes it matters only which l nodes of the n it has: the mean is the sum over l of
    ``N(l) U(l) / C(n, l)``, here over the common denominator ``n! / (n - depth)!``.
    """
    n = question.n
    subsets = unnecessary_subsets(n, sum(question.correct), question.weights)
    total, factorial = 0, 1
    for length, (paths, sets) in enumerate(zip(counts_by_length(question), subsets, strict=False), 1):
        factorial *= length
        total = total * (n - length + 1) + paths * sets * factorial
    return total, math.perm(n, question.depth)
