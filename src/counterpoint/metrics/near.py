"""Near duplicates: which texts say again what an earlier one said, in time linear in their number.

Conventions
-----------
* Rows are vectors of texts in time order, (n, d); a row of zeros is near nothing.
* Near is a cosine strictly above the threshold. Rows are compared in single precision, and again in double
  where that is too close to call, so that neither blocks nor platform threads decide.

What counts
-----------
A row is compared with the `WINDOW` rows before it, and with every earlier row of the same text, however far
back. So the search is exact up to ``WINDOW + 1`` rows; beyond them it misses only near duplicates, not equal
ones, that are farther apart than the window.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterpoint.contracts import Context
from counterpoint.errors import ModelError, UsageError
from counterpoint.trace import Step

__all__ = [
    "WINDOW",
    "Earlier",
    "Said",
    "clusters",
    "codes",
    "nearest_earlier",
    "said",
    "said_texts",
    "same_form",
    "unit_rows",
]

Indices = NDArray[np.int64]
Floats = NDArray[np.float64]

WINDOW = 2048
"""Rows before it that a row is compared with."""

_BLOCK = 1024
_DOUBT = 1e-5
"""Single precision may err by less."""


@dataclass(frozen=True)
class Said:
    """The steps of agents that say something, with their vectors; see `said`."""

    steps: tuple[Step, ...]
    vectors: Floats
    """(n, d), a row a step; equal texts have equal rows."""
    texts: Indices
    """(n,) a number for each text, equal iff the texts are, but for case and outer white space."""
    missing: int
    """Steps without text."""
    truncated: int
    """Texts that the embedder cut to its length, where it can tell."""


@dataclass(frozen=True)
class Earlier:
    """For each row, an earlier row that it repeats."""

    index: Indices
    """(n,) the latest such row; -1 where there is none."""
    near: int
    """Pairs that are near, among those compared."""
    pairs: int
    """Pairs that were compared."""
    windowed: bool
    """There were more rows than the window: near pairs farther apart were not looked for."""


def said(context: Context) -> Said:
    """What agents said, embedded once a trace; needs ``context.embed``."""
    return context.once("said", lambda: _said(context))


def said_texts(context: Context) -> list[str]:
    """What `said` embeds, where several agents speak: of one alone most metrics say nothing."""
    if len(context.graph.agent_names) < 2:
        return []
    return [step.text for step in context.graph.steps if step.text.strip()]


def _said(context: Context) -> Said:
    assert context.embed is not None  # callers ask first
    steps = tuple(step for step in context.graph.steps if step.text.strip())
    texts = [step.text for step in steps]
    if not texts:
        empty = np.empty(0, dtype=np.int64)
        return Said((), np.empty((0, 0)), empty, len(context.graph.steps), 0)
    count = getattr(context.embed, "truncated", None)
    number = codes([same_form(text) for text in texts])
    rows = unit_rows(context.embed(texts), len(texts))
    first = np.unique(number, return_index=True)[1][number]
    again = np.flatnonzero(first != np.arange(len(rows)))
    rows[again] = rows[first[again]]
    return Said(
        steps,
        rows,
        number,
        len(context.graph.steps) - len(steps),
        count(texts) if callable(count) else 0,
    )


def same_form(text: str) -> str:
    """What is left of a text when case and outer white space are ignored."""
    return unicodedata.normalize("NFKC", text).casefold().strip()


def codes(labels: Sequence[Hashable]) -> Indices:
    """A number for each label, 0 upwards by first appearance; equal labels have equal numbers.

    >>> codes(["b", "a", "b"]).tolist()
    [0, 1, 0]
    """
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(label, len(known)) for label in labels], dtype=np.int64)


def unit_rows(vectors: ArrayLike, n: int) -> Floats:
    """New rows of length 1; zero where there is no direction. Raises ModelError for what is not (n, d)."""
    rows = np.asarray(vectors, dtype=np.float64)
    if rows.ndim != 2 or len(rows) != n:
        raise ModelError(f"the embedder gave shape {rows.shape} for {n} texts: it has to give ({n}, d)")
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    bad = ~np.isfinite(lengths) | (lengths == 0)
    if bad.any():
        return np.where(bad[:, None], 0.0, rows / np.where(bad, 1.0, lengths)[:, None])
    return np.asarray(rows / lengths[:, None])


def nearest_earlier(
    vectors: Floats,
    threshold: float,
    *,
    groups: Indices | None = None,
    texts: Indices | None = None,
    window: int = WINDOW,
) -> Earlier:
    """The latest earlier row with a cosine above ``threshold``, for each row.

    Parameters
    ----------
    vectors: (n, d) unit rows in time order.
    threshold: strict.
    groups: (n,) numbers; where given, only rows of another group are compared.
    texts: (n,) numbers, equal iff the texts are: equal texts are near at any distance.
    window: how many rows before it a row is compared with, at least 1.

    >>> rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> nearest_earlier(rows, 0.85).index.tolist()
    [-1, -1, 0]
    >>> nearest_earlier(rows, 0.85, groups=np.array([0, 1, 0])).index.tolist()
    [-1, -1, -1]
    """
    n = len(vectors)
    index = np.full(n, -1, dtype=np.int64)
    near_pairs = 0
    for start, low, near in _blocks(vectors, threshold, window):
        stop = start + len(near)
        if groups is not None:
            near &= groups[start:stop, None] != groups[None, low:stop]
        near_pairs += int(np.count_nonzero(near))
        found = np.flatnonzero(near.any(axis=1))
        index[start + found] = stop - 1 - near[found, ::-1].argmax(axis=1)
    if texts is not None:
        equal = _equal_earlier(texts, groups)
        index = np.where(index < 0, equal, index)
    return Earlier(index, near_pairs, _compared(n, groups, window), n > window + 1)


def clusters(vectors: Floats, threshold: float, *, window: int = WINDOW) -> Indices:
    """A cluster number for each row; rows are linked by a cosine above ``threshold``, within the window.

    >>> clusters(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), 0.85).tolist()
    [0, 1, 0]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(vectors)
    links = [np.empty((0, 2), dtype=np.int64)]
    for start, low, near in _blocks(vectors, threshold, window):
        size = near.shape[1]
        rows, columns = near.nonzero()
        block = coo_array((np.ones(len(rows), np.int8), (rows + (start - low), columns)), shape=(size, size))
        label = connected_components(block, directed=False)[1]
        head = np.unique(label, return_index=True)[1]
        links.append(np.column_stack([np.arange(size), head[label]]) + low)  # a star for each component
    ends = np.concatenate(links)
    joined = coo_array((np.ones(len(ends), np.int8), (ends[:, 0], ends[:, 1])), shape=(n, n))
    return codes(connected_components(joined, directed=False)[1].tolist())


def _blocks(vectors: Floats, threshold: float, window: int) -> Iterator[tuple[int, int, NDArray[np.bool_]]]:
    """First row, first column, and which rows are near which columns: earlier ones within the window."""
    if window < 1:
        raise UsageError(f"window {window!r} is no number of steps of at least 1")
    narrow, block = vectors.astype(np.float32), min(_BLOCK, max(window, 256))
    for start in range(0, len(vectors), block):
        stop, low = min(start + block, len(vectors)), max(0, start - window)
        cosines = narrow[start:stop] @ narrow[low:stop].T
        near = cosines > threshold + _DOUBT
        at_least = cosines > threshold - _DOUBT
        if np.count_nonzero(at_least) == np.count_nonzero(near):
            rows = columns = np.empty(0, dtype=np.int64)
        else:
            rows, columns = (at_least ^ near).nonzero()
        for at in range(0, len(rows), _BLOCK * 16):  # too close to call in single precision
            some = slice(at, at + _BLOCK * 16)
            exact = np.einsum("ij,ij->i", vectors[start + rows[some]], vectors[low + columns[some]])
            near[rows[some], columns[some]] = exact > threshold
        size = stop - start  # only the first and last columns can be out of the window
        steps = np.arange(size, dtype=np.int32)
        age = steps[:, None] - steps[None, :]
        near[:, :size] &= age <= window - (start - low)
        near[:, -size:] &= age > 0
        yield start, low, near


def _equal_earlier(texts: Indices, groups: Indices | None) -> Indices:
    """The latest earlier row of the same text (and another group, where groups are given), -1 for none."""
    index = np.full(len(texts), -1, dtype=np.int64)
    owners = groups.tolist() if groups is not None else range(len(texts))
    # Of each text: its latest row, and its latest row of another group than that one's.
    latest: dict[int, tuple[int, int]] = {}
    for row, (text, owner) in enumerate(zip(texts.tolist(), owners, strict=True)):
        last, other = latest.get(text, (-1, -1))
        if last >= 0 and owners[last] != owner:
            last, other = row, last
            index[row] = other
        else:
            index[row], last = other, row
        latest[text] = (last, other)
    return index


def _compared(n: int, groups: Indices | None, window: int) -> int:
    """Pairs of rows at most ``window`` apart (and of different groups, where groups are given)."""
    reach = np.minimum(np.arange(n), window)
    total = int(reach.sum())
    if groups is None:
        return total
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        total -= int((np.arange(len(rows)) - np.searchsorted(rows, rows - window)).sum())
    return total
