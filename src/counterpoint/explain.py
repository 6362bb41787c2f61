"""One trace in words and rows: who was diverse, which paths were waste, where the answer was lost.

Conventions
-----------
* Everything is about the steps of agents, as the profile ``strict`` sees them.
* Lists are capped and say how many there are in all. None is unknown or undefined; ``reasons`` says why.

What counts
-----------
* Diversity of a pair that a transfer connects: 1 - (cos in words + cos in meaning) / 2, the summand of IDS;
  in words alone where there is no embedder.
* The weight of a path is the text that it carried: the tokens of all its steps but the last. The heaviest
  unnecessary paths are found exactly up to ``longest`` steps a path, which is the depth of the graph unless
  that were too many to look at. Their number in all is exact, or absent where it cannot be counted exactly.
* The answer begins with the first step that gives it; it is kept along uptake, and turns where an agent gives
  another one than before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from counterpoint.contracts import Context
from counterpoint.graph import Edges
from counterpoint.metrics.attribution import Attribution, attribute
from counterpoint.metrics.blame import BLAME
from counterpoint.metrics.correctness import run_answer, run_correct, run_graded, step_correctness
from counterpoint.metrics.costs import costs, repeated_shares
from counterpoint.metrics.replay import Recording, recording
from counterpoint.metrics.similarity import embedded_cosines, same_texts, tfidf_cosines
from counterpoint.metrics.uptake import uptake
from counterpoint.trace import Step

__all__ = ["Event", "Explanation", "HeavyPath", "Pair", "Repeat", "explain", "heaviest_paths"]

MOST = 5
"""Pairs, paths and repeats that are listed."""
MOST_EVENTS = 12
BUDGET = 3_000_000
"""Partial paths that are looked at."""


class Pair(Struct, frozen=True):
    """Two steps that a transfer connects."""

    first: str
    first_agent: str
    second: str
    second_agent: str
    diversity: float
    """In [0, 1]; 0: they say the same."""


class HeavyPath(Struct, frozen=True):
    """An unnecessary path."""

    steps: tuple[str, ...]
    agents: tuple[str, ...]
    tokens: float
    """Text that it carried, estimated."""
    right: int
    """Of its steps, how many are correct (or useful, where there is no gold answer)."""


class Event(Struct, frozen=True):
    """What happened to the answer at a step."""

    step: str
    agent: str
    round: int
    what: str
    """``begins``, ``turns``, ``takes over``, ``final``."""
    answer: str
    before: str = ""
    """What the agent had answered before."""
    right: bool | None = None
    heard: tuple[str, ...] = ()
    """Steps from which the answer was taken over."""


class Repeat(Struct, frozen=True):
    """A text that was delivered to readers who knew much of it."""

    step: str
    agent: str
    text: str
    readers: tuple[str, ...]
    """Steps that were shown it again."""
    tokens: float
    """Repeated tokens, over all of them."""


class Explanation(Struct, frozen=True):
    """One trace, explained."""

    trace: str
    system: str
    task: str
    answer: str | None
    gold: str | None
    correct: bool | None
    shares: Attribution
    least_diverse: tuple[Pair, ...]
    most_diverse: tuple[Pair, ...]
    pairs: int
    """Pairs that are connected and both say something."""
    heaviest: tuple[HeavyPath, ...]
    longest: int
    """Steps of the longest paths that were looked at."""
    events: tuple[Event, ...]
    events_in_all: int
    blame: Mapping[str, str]
    """agent, step_id, rule of the first decisive error of a failed run; empty for others."""
    repeats: tuple[Repeat, ...]
    repeated_tokens: float
    delivered_tokens: float
    by: str
    """What diversity is seen in: ``words and meaning``, or ``words``."""
    disputed: bool = False
    """``correct`` is as recorded, and the gold answer says otherwise."""


def explain(context: Context) -> Explanation:
    """One trace in words and rows."""
    trace, shares = context.trace, attribute(context)
    least, greatest, connected = _pairs(context)
    heaviest, longest = _heaviest(context)
    events = list(_events(context))
    repeated = repeated_shares(context) * costs(context).delivered
    graded = run_graded(context) if run_answer(context) is not None else None
    blamed = BLAME.compute(context)
    return Explanation(
        trace.id, trace.system, trace.task, run_answer(context), trace.gold, run_correct(context), shares,
        least, greatest, connected,
        heaviest, longest, tuple(_capped(events)), len(events),
        blamed.detail if blamed.value is not None and run_correct(context) is False else {},
        _repeats(context, repeated), float(repeated.sum()), float(costs(context).delivered.sum()),
        "words" if context.embed is None else "words and meaning",
        graded is not None and graded is not run_correct(context),
    )  # fmt: skip


# --- diversity ------------------------------------------------------------------------------------


def _pairs(context: Context) -> tuple[tuple[Pair, ...], tuple[Pair, ...], int]:
    """The least and the most diverse of connected pairs that both say something, and how many there are."""
    steps = context.graph.steps
    edges = context.graph.unrolled.edge_array
    there = np.array([bool(step.text.strip()) for step in steps], dtype=bool)
    edges = edges[there[edges].all(axis=1)]
    if not len(edges):
        return (), (), 0
    diversity = _diversity(context, steps, there, edges)
    order = np.lexsort((edges[:, 1], edges[:, 0], diversity))

    def pair(row: int) -> Pair:
        first, second = (steps[node] for node in edges[row].tolist())
        return Pair(first.id, first.agent, second.id, second.agent, float(diversity[row]))

    few = min(MOST, (len(order) + 1) // 2)  # no pair is in both lists
    least, greatest = order[:few], order[few:][::-1][:few]
    return tuple(map(pair, least)), tuple(map(pair, greatest)), len(order)


def _diversity(
    context: Context, steps: Sequence[Step], there: NDArray[np.bool_], edges: Edges
) -> NDArray[np.float64]:
    """1 - similarity of each edge's ends, as IDS has it."""
    texts = [step.text for step, is_there in zip(steps, there, strict=True) if is_there]
    place = there.cumsum() - 1
    first, second = place[edges[:, 0]], place[edges[:, 1]]
    likeness = [tfidf_cosines(texts, first, second)]
    if context.embed is not None:
        cosines, _ = embedded_cosines(context.embed, texts, first, second)
        likeness.append(np.maximum(cosines, 0.0))
    mean: NDArray[np.float64] = np.mean(likeness, axis=0)
    mean[same_texts(texts, first, second)] = 1.0
    return np.clip(1.0 - mean, 0.0, 1.0)


# --- paths ------------------------------------------------------------------------------------------


def _heaviest(context: Context) -> tuple[tuple[HeavyPath, ...], int]:
    """The unnecessary paths that carried most text, and the most steps a path of those looked at has."""
    correctness = step_correctness(context)
    flags = uptake(context).useful if correctness.reason else correctness.correct
    steps, edges = context.graph.steps, context.graph.unrolled.edge_array
    right = [flags[step.id] for step in steps]
    spent = costs(context)
    said = dict(zip(spent.names, spent.said.tolist(), strict=True))
    longest = context.graph.depth
    while longest > 2 and len(edges) * MOST * longest**2 > BUDGET:
        longest -= 1
    found = heaviest_paths(edges, right, [said[step.id] for step in steps], longest)
    listed = (
        HeavyPath(
            tuple(steps[node].id for node in path), tuple(steps[node].agent for node in path), tokens,
            sum(right[node] for node in path),
        )
        for tokens, path in found
    )  # fmt: skip
    return tuple(listed), longest


def heaviest_paths(
    edges: Edges, right: Sequence[bool], weights: Sequence[float], longest: int, most: int = MOST
) -> list[tuple[float, tuple[int, ...]]]:
    """Paths of 2 to ``longest`` nodes, fewer than half right, that weigh most without their last node.

    >>> heaviest_paths(np.array([[0, 1], [1, 2]]), [False, False, True], [3, 5, 9], 3)
    [(8.0, (0, 1, 2)), (3.0, (0, 1))]
    """
    sources: dict[int, list[int]] = {}
    for source, target in edges.tolist():
        sources.setdefault(target, []).append(source)
    # Of each node and balance (right less wrong nodes): the heaviest paths of so many nodes that end in it.
    ends: dict[int, dict[int, list[Weighed]]] = {
        node: {1 if is_right else -1: [(0.0, (node,))]} for node, is_right in enumerate(right)
    }
    found: list[Weighed] = []
    for _ in range(2, longest + 1):
        longer: dict[int, dict[int, list[Weighed]]] = {}
        for node, above in sources.items():
            reached: dict[int, list[Weighed]] = {}
            for source in above:
                for balance, paths in ends.get(source, {}).items():
                    reached.setdefault(balance + (1 if right[node] else -1), []).extend(
                        (-float(weights[source]) + weight, (*path, node)) for weight, path in paths
                    )
            longer[node] = {balance: sorted(paths)[:most] for balance, paths in reached.items()}
            found += [path for balance, paths in longer[node].items() if balance < 0 for path in paths]
        ends, found = longer, sorted(found)[:most]
    return [(0.0 - weight, path) for weight, path in found]  # never -0.0


Weighed = tuple[float, tuple[int, ...]]
"""A path and its weight, negative, so that the heaviest sorts first."""


# --- the answer and its repeats ---------------------------------------------------------------------


def _events(context: Context) -> Iterator[Event]:
    """Where answers begin, turn and are taken over, and with which one the run ends."""
    found = recording(context)
    if isinstance(found, Recording):
        last: dict[str, int] = {}
        spoken: dict[int, str] = {}
        for number, answer in enumerate(found.answers):
            speaker, text = found.speakers[number], found.texts[number]
            if answer < 0 or text is None:
                continue
            before = last.get(speaker, -1)
            what = "turns" if before not in (-1, answer) else ""
            if not what and before < 0:
                what = "begins" if answer not in spoken else "takes over" if found.heard[number] else ""
            if what:
                yield Event(
                    found.names[number], speaker, found.rounds[number], what, text,
                    spoken.get(before, ""),
                    None if found.right is None else answer == found.right,
                    tuple(found.names[source] for source in found.heard[number]),
                )  # fmt: skip
            last[speaker] = answer
            spoken.setdefault(answer, text)
    final, answer_text = uptake(context).final, run_answer(context)
    if final is not None and answer_text is not None:
        yield Event(final.id, final.agent, final.round or 0, "final", answer_text, right=run_correct(context))


def _capped(events: Sequence[Event]) -> list[Event]:
    """The first and the last ones."""
    if len(events) <= MOST_EVENTS:
        return list(events)
    return [*events[: MOST_EVENTS - 4], *events[-4:]]


def _repeats(context: Context, repeated: NDArray[np.float64]) -> tuple[Repeat, ...]:
    """Texts that readers were shown although they knew them, the most tokens first."""
    spent = costs(context)
    texts = {step.id: step for step in context.trace.steps}
    again = np.bincount(spent.pairs[:, 0], weights=repeated, minlength=len(spent.names))
    listed = []
    for number in np.argsort(-again, kind="stable")[:MOST].tolist():
        if again[number] <= 0:
            break
        step = texts[spent.names[number]]
        rows = np.flatnonzero((spent.pairs[:, 0] == number) & (repeated > 0))
        readers = tuple(spent.names[reader] for reader in spent.pairs[rows, 1])
        listed.append(Repeat(step.id, step.agent, step.text, readers, float(again[number])))
    return tuple(listed)
