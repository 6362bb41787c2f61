"""Path counts in floating point, for graphs whose exact integers get slow; the twin of `paths`.

Conventions
-----------
* A distribution is a `Row`: floats from a lowest weight on, times a power of two that is the node's own.
  Counts below 2**900 need no power, so that a small graph is counted as exactly as floats can.
* Only non-negative numbers are added and multiplied, so that no error grows by cancellation: each addition
  costs at most a relative 2**-53, and `relative_error` adds up the longest chain of them.

What counts
-----------
A row that was scaled down forgets the counts at its ends that are below 2**-1500 of its greatest: of all
paths less than 2**-1500 times nodes times weights are lost so. No share that a float can hold feels it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterpoint.errors import GraphError
from counterpoint.metrics.paths import PathQuestion, unnecessary_subsets

__all__ = ["count", "expected_share", "load", "relative_error"]

TOP, SCALED, KEPT = 900, 500, 1500
"""A greatest count above 2**TOP is scaled to 2**SCALED, and counts down to 2**-KEPT of it are kept: nothing
overflows below 2**123 rows added at once, and nothing that is kept is subnormal."""

BATCH = 16
"""So many rows are held before they are added to the total."""

MAX_BYTES = 4e9
"""`load` holds two rows a node; it refuses where they may take more than this."""


class Row(NamedTuple):
    """How many paths have each weight: ``values[i] * 2**power`` weigh ``low + i``."""

    low: int
    power: int
    values: NDArray[np.float64]

    def moved(self, weight: int) -> Row:
        return Row(self.low + weight, self.power, self.values)


ONE = np.ones(1)


def count(question: PathQuestion) -> tuple[float, float]:
    """The unnecessary share of the question's paths, and the decimal logarithm of the necessary ones.

    The logarithm is ``-inf`` where fewer than one path in 1e300 is necessary.
    """
    row = _total(question, _weights(question))
    negative = max(0, -row.low)
    unnecessary, necessary = float(row.values[:negative].sum()), float(row.values[negative:].sum())
    share = necessary / (unnecessary + necessary)
    logarithm = math.log10(necessary) + row.power * math.log10(2) if share > 1e-300 else -math.inf
    return unnecessary / (unnecessary + necessary), logarithm


def relative_error(question: PathQuestion) -> float:
    """A bound on the relative error of a count: every addition on the way, at 2**-53 each."""
    additions = len(question.edges) + 2 * question.n + 2 * sum(question.span)
    return (additions + 8) * 2.0**-53


def expected_share(question: PathQuestion) -> float:
    """The mean unnecessary share over all ways to hand out the correctness."""
    n = question.n
    row = _total(question, [1] * n)
    share = dict(enumerate((row.values / row.values.sum()).tolist(), row.low))
    expected, sets = 0.0, 1
    subsets = unnecessary_subsets(n, sum(question.correct), question.weights)
    for length, unnecessary in zip(range(1, row.low + len(row.values)), subsets, strict=False):
        sets = sets * (n - length + 1) // length
        expected += share.get(length, 0.0) * (unnecessary / sets)
    return expected


def load(question: PathQuestion) -> list[tuple[int, int]]:
    """Of each edge: paths through it, exactly, and unnecessary ones, rounded to about 15 digits.

    An edge with fewer than one unnecessary path in 1e300 may count none.
    """
    size = 16 * question.n * (sum(question.span) + 1)
    if size > MAX_BYTES:
        raise GraphError(
            f"the loads of {len(question.edges)} edges on paths of up to {question.depth} nodes may take "
            f"{size / 1e9:.0f} GB of memory: ask about fewer nodes"
        )
    backward = question.reversed()
    heads, tails = ([_unit(row) for row in _rows(side)] for side in (question, backward))
    fewer = [np.concatenate([[0.0], np.cumsum(tail.values)]) for tail in tails]
    loads = []
    for source, target in question.edges.tolist():
        head, tail = heads[source], tails[target]
        below = -head.low - tail.low - np.arange(len(head.values))
        unnecessary = float(head.values @ fewer[target][np.clip(below, 0, len(tail.values))])
        paths = question.counts[source] * backward.counts[target]
        loads.append((paths, min(paths, _integer(unnecessary, head.power + tail.power))))
    return loads


def _weights(question: PathQuestion) -> list[int]:
    gain, loss = question.weights
    return [gain if right else -loss for right in question.correct]


def _total(question: PathQuestion, weights: list[int]) -> Row:
    """Weights of all paths that count; a node's row is let go after its last use."""
    uses = [len(after) for after in question.successors]
    ends = set(question.ends)
    rows: dict[int, Row] = {}
    found: list[Row] = []
    for node in question.order:
        above = question.predecessors[node]
        longer, every = _extended(question, node, weights[node], [rows[source] for source in above])
        counted = every if question.kind == "subpath1" else longer
        if counted is not None and node in ends:
            found.append(counted)
        if len(found) == BATCH:
            found = [_sum(found)]
        rows[node] = every
        for source in above:
            uses[source] -= 1
            if not uses[source]:
                del rows[source]
    return _sum(found)


def _rows(question: PathQuestion) -> list[Row]:
    """Of each node: weights of the paths that end in it."""
    weights = _weights(question)
    rows: dict[int, Row] = {}
    for node in question.order:
        above = [rows[source] for source in question.predecessors[node]]
        rows[node] = _extended(question, node, weights[node], above)[1]
    return [rows[node] for node in range(question.n)]


def _extended(question: PathQuestion, node: int, weight: int, above: list[Row]) -> tuple[Row | None, Row]:
    """Paths of two nodes and more that end in ``node``, and all that do."""
    alone = Row(weight, 0, ONE)
    if not above:
        return None, alone
    longer = _sum(above).moved(weight)
    return longer, _sum([longer, alone]) if question.starts[node] else longer


def _sum(rows: list[Row]) -> Row:
    """All of the rows together, scaled and cut as the module's docstring says."""
    if len(rows) == 1:
        return rows[0]
    low = min([row.low for row in rows])
    power = max([row.power for row in rows])
    total = np.zeros(max([row.low + len(row.values) for row in rows]) - low)
    for start, own, values in rows:
        total[start - low : start - low + len(values)] += (
            values if own == power else values * math.ldexp(1.0, own - power)
        )
    peak = float(total.max())
    if peak > 2.0**TOP:
        excess = math.frexp(peak)[1] - SCALED
        total *= 2.0**-excess
        power += excess
        peak = math.ldexp(peak, -excess)
    if not power:
        return Row(low, power, total)
    kept = total > math.ldexp(peak, -KEPT)
    first, last = int(kept.argmax()), len(kept) - int(kept[::-1].argmax())
    return Row(low + first, power, total[first:last])


def _unit(row: Row) -> Row:
    """The same row with its greatest count below 1, so that products of two cannot overflow."""
    excess = math.frexp(float(row.values.max()))[1]
    return Row(row.low, row.power + excess, row.values * 2.0**-excess)


def _integer(value: float, power: int) -> int:
    """The integer nearest to ``value * 2**power``."""
    mantissa, exponent = math.frexp(value)
    exponent += power
    return round(math.ldexp(mantissa, exponent)) if exponent <= 53 else int(mantissa * 2**53) << exponent - 53
