"""Influence: which later step used which earlier one, and what never reached the answer; ours.

On traces, and the metric ``upr_uptake``: see `uptake`.

Conventions
-----------
* Nodes 0..n-1 are steps in time order, edges (i, j) say that i's text reached j: it was *delivered*. An edge
  along which something was used is an *uptake edge*.
* ``answers`` are class numbers, equal iff two steps commit to the same answer; -1 where one commits to none.

What counts
-----------
* Where reader and source both commit to an answer, the answers decide: the reader took the source up iff the
  answers are equal and the reader's agent had not given that one before.
* Elsewhere the texts decide. By text: of what the source brought new (its terms beyond the task's and beyond
  the reader's own last turn), each term by its idf among the steps, the reader says at least a share again;
  or of what the reader says new, twice that share is from there. By embedding: the cosine of both vectors,
  the task's direction taken out of them, is at least a threshold.
* A step is useful iff a chain of uptake edges leads from it to the final answer. An agent's own next turn
  carries on what it took up; that is a link of such a chain, and never an edge of a path.

What it cannot tell: who would have said the same anyway. Uptake is use as far as a record shows it.

Source: ours, after UPR of GEMMAS (arXiv:2507.13190, eq. 3), with "useful" in place of "correct".
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterpoint.answers import read_number
from counterpoint.answers.equality import normalize
from counterpoint.graph import Edges, index_edges
from counterpoint.metrics.similarity import TOKENIZERS

__all__ = [
    "EMBEDDING",
    "TEXT",
    "answer_classes",
    "previous_turns",
    "uptake_cosines",
    "uptake_edges",
    "uptake_shares",
    "useful_steps",
]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

TEXT, EMBEDDING = 0.25, 0.5
"""Thresholds of the share and of the cosine, inclusive."""


def uptake_shares(
    texts: Sequence[str], edges: object, *, given: str = "", speakers: Sequence[Hashable] | None = None
) -> Floats:
    """For each edge u -> v: how much of what u brought new to v is said again by v.

    ``max(w(C) / w(N), w(C) / (2 w(M)))`` with ``N = W(u) - W(given) - W(v's last turn)``, M the same of v,
    the common terms C, and w their idf summed: the share of u's new terms, or half the share of v's. So who
    takes one fact out of a long page has used it too, if what it says is mostly from there.

    Parameters
    ----------
    texts: (n,) in time order; an empty one is missing.
    edges: (i, j) pairs, i < j.
    given: what everyone knew, such as the task.
    speakers: whose each text is, (n,); None: nobody speaks twice.

    Returns
    -------
    (m,) in [0, 1], in the order of `index_edges`; 0 where u brought nothing new.

    Raises
    ------
    GraphError: an edge out of range or to itself.

    >>> uptake_shares(["six times eight", "so six", "no"], [(0, 1), (0, 2)], given="times eight").tolist()
    [1.0, 0.0]
    """
    n, pairs = index_edges((len(texts), edges))
    numbers: dict[str, int] = {}
    bags = [_bag(text, numbers) for text in texts]
    known = _bag(given, numbers)
    weight = _weights(bags, len(numbers)).__getitem__
    fresh = [bag - known for bag in bags]
    whole = [sum(map(weight, bag)) for bag in fresh]
    before = previous_turns(speakers if speakers is not None else range(n))
    bags.append(frozenset())  # what one who speaks for the first time said before: the bag at -1
    later = [fresh[node] - bags[before[node]] for node in range(n)]
    brought = [sum(map(weight, bag)) for bag in later]
    shares = np.zeros(len(pairs))
    for number, (source, target) in enumerate(zip(*pairs.T.tolist(), strict=True)):
        own = before[target] == source  # an agent's own turn before is the source, not what it knew already
        if common := fresh[source] & (fresh[target] if own else later[target]):
            said = sum(map(weight, common))
            held = 0.0 if own else sum(map(weight, fresh[source] & bags[before[target]]))
            new = whole[target] if own else brought[target]
            shares[number] = max(said / (whole[source] - held), said / new / 2)
    return shares


def _bag(text: str, numbers: dict[str, int]) -> frozenset[int]:
    """The terms of a text, as numbers."""
    return frozenset([numbers.setdefault(term, len(numbers)) for term in TOKENIZERS["words"](text)])


def _weights(bags: Sequence[frozenset[int]], terms: int) -> list[float]:
    """idf of each term among the texts, as TF-IDF has it: never 0, so that what all repeat still counts."""
    documents = np.zeros(terms)
    for bag in bags:
        documents[list(bag)] += 1
    weights: list[float] = (np.log((1 + len(bags)) / (1 + documents)) + 1).tolist()
    return weights


def uptake_cosines(vectors: ArrayLike, edges: object, *, given: ArrayLike | None = None) -> Floats:
    """For each edge: the cosine of both texts' vectors, without what both say because of the task.

    ``cos(x_u - (x_u g) g, x_v - (x_v g) g)``.

    Parameters
    ----------
    vectors: (n, d) rows, one a text; of zeros where it is missing.
    edges: (i, j) pairs.
    given: (d,) vector of the task; None: the mean of the rows.

    Returns
    -------
    (m,) in [-1, 1], in the order of `index_edges`; 0 for a row without direction.

    >>> uptake_cosines([[1, 1], [1, -1], [0, 1]], [(0, 1), (0, 2)], given=[1, 0]).tolist()
    [-1.0, 1.0]
    """
    rows = np.asarray(vectors, dtype=np.float64)
    _, pairs = index_edges((len(rows), edges))
    if not len(rows):
        return np.empty(0)
    axis = rows.mean(axis=0) if given is None else np.asarray(given, dtype=np.float64)
    length = np.linalg.norm(axis)
    if length > 0:
        rows = rows - np.outer(rows @ axis, axis) / length**2
    norms = np.linalg.norm(rows, axis=1)
    bad = norms < 1e-9
    rows = np.where(bad[:, None], 0.0, rows) / np.where(bad, 1.0, norms)[:, None]
    cosines = np.empty(len(pairs))
    for at in range(0, len(pairs), 8192):  # rows are long: a few at a time
        part = slice(at, at + 8192)
        cosines[part] = np.einsum("ij,ij->i", rows[pairs[part, 0]], rows[pairs[part, 1]])
    return cosines


def uptake_edges(
    pairs: Edges,
    likeness: Floats,
    *,
    threshold: float,
    answers: Sequence[int] | None = None,
    speakers: Sequence[Hashable] | None = None,
) -> Flags:
    """Which edges are uptake edges: by answers where both ends commit to one, else by likeness.

    Parameters
    ----------
    pairs: (m, 2) edges. likeness: (m,) shares or cosines. threshold: inclusive.
    answers: (n,) class numbers. speakers: (n,) whose each step is.

    >>> pairs = np.array([[0, 1], [0, 2]])
    >>> uptake_edges(pairs, np.array([.9, .3]), threshold=.25, answers=[7, 8, -1]).tolist()
    [False, True]
    """
    taken = likeness >= threshold
    if answers is None:
        return taken
    gave, before = np.asarray(answers), np.array(_answers_before(answers, speakers))
    source, target = gave[pairs[:, 0]], gave[pairs[:, 1]]
    both = (source >= 0) & (target >= 0)
    adopted = (source == target) & (before[pairs[:, 1]] != target)
    confirmed = (source == target) & taken
    result: Flags = np.where(both, adopted | confirmed, taken)
    return result


def _answers_before(answers: Sequence[int], speakers: Sequence[Hashable] | None) -> list[int]:
    """Of each step: the last answer that its agent had given before; -1 for none."""
    last: dict[Hashable, int] = {}
    found = []
    for number, answer in enumerate(answers):
        speaker = speakers[number] if speakers is not None else number
        found.append(last.get(speaker, -1))
        if answer >= 0:
            last[speaker] = answer
    return found


def useful_steps(n: int, edges: object, final: Iterable[int]) -> Flags:
    """Which steps a chain of edges leads from to a final one; final ones are useful.

    >>> useful_steps(4, [(0, 1), (1, 3)], [3]).tolist()
    [True, True, False, True]
    """
    _, pairs = index_edges((n, edges))
    sources: list[list[int]] = [[] for _ in range(n)]
    for source, target in zip(*pairs.T.tolist(), strict=True):
        sources[target].append(source)
    useful = np.zeros(n, dtype=bool)
    waiting = list(final)
    useful[waiting] = True
    while waiting:
        for source in sources[waiting.pop()]:
            if not useful[source]:
                useful[source] = True
                waiting.append(source)
    return useful


def previous_turns(speakers: Iterable[Hashable]) -> list[int]:
    """Of each step: the index of its speaker's step before; -1 for none.

    >>> previous_turns("ABA")
    [-1, -1, 0]
    """
    last: dict[Hashable, int] = {}
    found = []
    for number, speaker in enumerate(speakers):
        found.append(last.get(speaker, -1))
        last[speaker] = number
    return found


def answer_classes(answers: Iterable[str | None], right: Iterable[bool] = ()) -> list[int]:
    """Class numbers of answers, 0 upwards by first appearance; -1 for None. All ``right`` ones are one class.

    >>> answer_classes(["7", None, "7.0", "8"])
    [0, -1, 0, 1]
    """
    known: dict[object, int] = {}
    flags = list(right)
    classes = []
    for index, answer in enumerate(answers):
        if answer is None:
            classes.append(-1)
            continue
        number = read_number(answer)
        key: object = number.value if number else normalize(answer)
        if index < len(flags) and flags[index]:
            key = "right", True
        classes.append(known.setdefault(key, len(known)))
    return classes
