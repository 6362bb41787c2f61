"""Redundancy: how much of what a team retrieves, thinks, assigns and tells is there already [1]_.

Conventions
-----------
* Every score is a share in [0, 1], lower is less redundant, with the two counts behind it as parts, so that
  `total` can add layers up. Nothing to divide by is undefined, never 0.
* A cosine threshold is strict: a pair is near above it, not at it.

What counts
-----------
* Memory: items that two agents or more retrieved. Reasoning: steps that an earlier step of *another* agent
  says already. Tasks: those that two agents or more were given. Knowledge: deliveries of an item that was
  delivered before (plain), or that its receiver holds already (receiver form).
* What these are on a trace of any framework: see `layers`. Repeated calls and prompts: see `repetition`.

Differences from the paper
--------------------------
The paper's figure names the layers without denominators; those here are ours, chosen so that the layers add
up. Minimal sufficiency is ours.

.. [1] D3MAS, the redundancy of Figure 1 and the knowledge duplication rate.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import ArrayLike, NDArray

from counterpoint.errors import UsageError
from counterpoint.metrics.near import codes
from counterpoint.metrics.repetition import duplicate_work, duplicated_tokens
from counterpoint.score import Score

__all__ = [
    "NEAR",
    "duplicate_work",
    "duplicated_tokens",
    "knowledge_duplication",
    "memory",
    "minimal_sufficiency",
    "reasoning",
    "task",
    "total",
]

NEAR = 0.85
"""Steps and tasks whose cosine is above this are near duplicates."""


def memory(retrieved: Mapping[Hashable, Collection[Hashable]]) -> Score:
    """Memory redundancy: items retrieved by two agents or more / items retrieved by any.

    Parameters
    ----------
    retrieved: agent to the items that it retrieved.

    Returns
    -------
    Score in [0, 1], lower is better; parts ``duplicates``, ``count``. Undefined where nothing was retrieved.

    >>> memory({"A": {1, 2, 3}, "B": {3, 4}}).value
    0.25
    """
    holders: dict[Hashable, int] = {}
    for items in retrieved.values():
        for item in set(items):
            holders[item] = holders.get(item, 0) + 1
    return _share(sum(number > 1 for number in holders.values()), len(holders), "no agent retrieved anything")


def reasoning(agents: Sequence[Hashable], cosines: ArrayLike, threshold: float = NEAR) -> Score:
    """Reasoning redundancy: steps with an earlier step of another agent near them / steps.

    Parameters
    ----------
    agents: the agent of each step in time order, (n,).
    cosines: (n, n); either triangle will do, the other one being zero or the same.
    threshold: near is a cosine above it.

    Returns
    -------
    Score in [0, 1], lower is better; parts ``duplicates``, ``count``, ``near_pairs`` and ``pairs`` (of steps
    of two agents), and their quotient ``pair_rate`` where there is a pair. Undefined without steps.

    Raises
    ------
    UsageError: cosines that are not (n, n) finite numbers.

    >>> cosines = np.zeros((3, 3))
    >>> cosines[0, 1] = cosines[0, 2] = .9
    >>> score = reasoning(["A", "B", "A"], cosines)
    >>> score.value, score.parts["pair_rate"]
    (0.333333, 0.5)
    """
    n = len(agents)
    matrix = _floats(cosines) if n else np.empty((0, 0))
    if matrix.shape != (n, n):
        raise UsageError(f"cosines of {n} steps are an ({n}, {n}) array, found shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0].tolist()
        raise UsageError(f"the cosine of steps {row} and {column} is not a finite number")
    group = codes(agents)
    other = np.tril(group[:, None] != group[None, :], -1)
    near = other & (np.maximum(matrix, matrix.T) > threshold)
    pairs = {"near_pairs": int(near.sum()), "pairs": int(other.sum())}
    return with_pairs(int(near.any(axis=1).sum()), n, pairs)


def task(assignments: Mapping[Hashable, Collection[Hashable]]) -> Score:
    """Task redundancy: tasks assigned to two agents or more / tasks assigned to any.

    Parameters
    ----------
    assignments: task (or cluster of near tasks) to the agents that it was assigned to.

    Returns
    -------
    Score in [0, 1], lower is better; parts ``duplicates``, ``count``. Undefined where nothing was assigned.

    >>> task({"t1": {"A"}, "t2": {"B"}, "t3": {"A", "B"}}).value
    0.333333
    """
    sizes = [len(set(agents)) for agents in assignments.values()]
    return _share(sum(size > 1 for size in sizes), sum(size > 0 for size in sizes), "no task was assigned")


def total(memory: Score, reasoning: Score, task: Score) -> Score:
    """Total redundancy: duplicates of the three layers / their counts, so that a stacked bar adds up.

    Parameters
    ----------
    memory, reasoning, task: what the functions of these names gave.

    Returns
    -------
    Score between the smallest and the largest layer; parts ``duplicates``, ``count``, and each layer's share
    of the bar, ``memory``, ``reasoning`` and ``task``. A layer with nothing in it adds nothing; undefined
    where all are empty, or one could not be computed.

    >>> cosines = np.zeros((4, 4))
    >>> cosines[0, 1] = cosines[0, 3] = .9
    >>> shared, repeated = memory({"A": {1, 2, 3}, "B": {3, 4}}), reasoning("ABBC", cosines)
    >>> total(shared, repeated, task({1: "A", 2: "B", 3: "AB"})).value  # (1 + 2 + 1) / (4 + 4 + 3)
    0.363636
    """
    layers = {"memory": memory, "reasoning": reasoning, "task": task}
    for name, layer in layers.items():
        if "count" not in layer.parts:
            return Score.undefined(f"{name} redundancy is undefined: {layer.reason or 'no part named count'}")
    duplicates = sum(layer.parts["duplicates"] for layer in layers.values())
    count = sum(layer.parts["count"] for layer in layers.values())
    score = _share(int(duplicates), int(count), "all three layers are empty")
    if score.value is None:
        return score
    bar = {name: layer.parts["duplicates"] / count for name, layer in layers.items()}
    return replace(score, parts={**score.parts, **bar})


def knowledge_duplication(deliveries: Iterable[tuple[Hashable, Hashable, Hashable]]) -> Score:
    """Knowledge duplication rate: 1 - distinct items / deliveries; and the receiver form.

    Parameters
    ----------
    deliveries: (sender, receiver, item) in time order. An agent holds what it has sent or received.

    Returns
    -------
    Score in [0, 1), lower is better; parts ``receiver`` (deliveries of an item that the receiver holds /
    deliveries), ``distinct``, ``deliveries`` and ``held``. One message to two agents is duplication in the
    plain form and none in the receiver form. Undefined without deliveries.

    >>> score = knowledge_duplication([*("ABp", "ABq"), *("CBq", "CBr"), "BDp"])
    >>> score.value, score.parts["receiver"]
    (0.4, 0.2)
    """
    holds: dict[Hashable, set[Hashable]] = {}
    distinct: set[Hashable] = set()
    count = held = 0
    for sender, receiver, item in deliveries:
        holds.setdefault(sender, set()).add(item)
        known = holds.setdefault(receiver, set())
        held += item in known
        known.add(item)
        distinct.add(item)
        count += 1
    if not count:
        return Score.undefined(
            "nothing was delivered: no text reached another agent", parts={"deliveries": 0}
        )
    parts = {"receiver": held / count, "distinct": len(distinct), "deliveries": count, "held": held}
    return Score((count - len(distinct)) / count, parts)


def minimal_sufficiency(required: Collection[Hashable], held: Collection[Hashable]) -> Score:
    """Minimal sufficiency index: the harmonic mean of sufficiency and minimality, ours.

    ``sufficiency = #(M ∩ Q) / #Q``, ``minimality = #(M ∩ Q) / #M``, ``MSI = 2 #(M ∩ Q) / (#M + #Q)``.

    Parameters
    ----------
    required: Q, the items that the task needs.
    held: M, the items that the team (or an agent) has.

    Returns
    -------
    Score in [0, 1], higher is better; parts ``sufficiency`` and ``minimality`` (the latter only where
    something is held). Undefined where nothing is required.

    >>> minimal_sufficiency({1, 2}, {2, 3, 4}).value
    0.4
    """
    needed, there = set(required), set(held)
    if not needed:
        return Score.undefined("no item is required: name those that the task needs")
    both = len(needed & there)
    parts = {"sufficiency": both / len(needed)}
    if there:
        parts["minimality"] = both / len(there)
    return Score(2 * both / (len(needed) + len(there)), parts)


def _floats(cosines: ArrayLike) -> NDArray[np.float64]:
    try:
        return np.asarray(cosines, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError("cosines are an (n, n) array of numbers, one row and column a step") from None


def _share(duplicates: int, count: int, empty: str) -> Score:
    parts: dict[str, int | float] = {"duplicates": duplicates, "count": count}
    return Score(duplicates / count, parts) if count else Score.undefined(empty, parts=parts)


def with_pairs(duplicates: int, count: int, pairs: Mapping[str, int]) -> Score:
    """Reasoning redundancy from its counts: steps that repeat, all steps, ``near_pairs`` of ``pairs``."""
    score = _share(duplicates, count, "no step says anything")
    rate = {"pair_rate": pairs["near_pairs"] / pairs["pairs"]} if pairs["pairs"] else {}
    return replace(score, parts={**score.parts, **pairs, **rate})
