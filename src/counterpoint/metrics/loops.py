"""Loops: the same turns over and over, by one agent or several, without a model to judge it.

Conventions
-----------
* A loop is a run of turns with a period: each turn repeats the one a period before it. A, B, A, B, A, B has
  period 2 and occurs 3 times. Its steps are named, in order, in whole periods.
* The value counts loops that share no step, the longest first; parts say how many steps are in them and how
  many of those are beyond the first time round (``wasted``).

What counts
-----------
Turns are compared in two orders: that of time, and that of the conversation, in which a turn follows the
latest turn of another agent that it heard. So two agents that play ping-pong are found between the turns of
others. A turn repeats another of the same agent

* exactly, if text and calls (tool, arguments, result) are equal, but for case and spaces; turns that say and
  do nothing, such as bare handoffs, are equal;
* nearly, if the calls are equal and at least `NEAR` of the distinct words are common to both (Jaccard), with
  numbers left aside in either.

A run of exact repeats is a loop from ``repeats`` times on. A run of near repeats is one from
``near_repeats`` times on, and only if it stands still. Its numbers are the same or count evenly (``attempt
1``, ``attempt 2``): numbers that change otherwise are results, and results that change are progress. And no
turn grows each time by far more words than it loses, as a long draft does under review. So three rounds of
review of a changing draft are no loop, whatever their form; neither is a question asked again and again of
agents whose work changes. Repeats in other words are not found: that takes a reader.

Source: ours; cross-agent ping-pong is what agent frameworks' users report and their loop guards miss.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from counterpoint.contracts import Context, Metric
from counterpoint.errors import UsageError
from counterpoint.graph import CollaborationGraph
from counterpoint.metrics.near import codes, same_form
from counterpoint.metrics.repetition import canonical_arguments
from counterpoint.metrics.similarity import words
from counterpoint.score import Score
from counterpoint.trace import Step

__all__ = ["LOOPS", "Loop", "find_loops"]

NEAR = 0.9
"""Turns that have at least this share of their words in common are near repeats."""

LONGEST_PERIOD = 32
"""Longer cycles are not looked for."""

GROWN = 4
"""A turn that grew each time, and over all gained so many times the words that it lost, makes progress."""

MOST_NAMED = 5
"""So many loops are named in a score, the longest ones."""

MOST_STEPS = 40
"""So many steps of a loop are named."""

Indices = NDArray[np.int64]

_NUMBER = re.compile(r"\d+(?:\.\d+)*")


class Loop(Struct, frozen=True):
    """Turns that repeat with a period."""

    agents: tuple[str, ...]
    """Whose turns they are, one period of them."""
    times: int
    """How often the period occurs in full."""
    exact: bool
    """Every turn is equal to the one a period before it; else near."""
    steps: tuple[int, ...]
    """Indices of the graph's steps, in order."""


def find_loops(
    graph: CollaborationGraph, *, repeats: int = 3, near_repeats: int = 4, longest: int = LONGEST_PERIOD
) -> list[Loop]:
    """Loops among the turns of a trace that share no turn, by their first turn.

    Parameters
    ----------
    graph: its steps and transfers are looked at.
    repeats: an exact loop occurs at least so often, at least 2.
    near_repeats: a near loop occurs at least so often; 0 looks for none.
    longest: the longest period.
    """
    if repeats < 2 or near_repeats == 1 or near_repeats < 0 or longest < 1:
        raise UsageError(
            "loops: repeats is at least 2, near_repeats at least 2 or 0 for none, longest at least 1"
        )
    turns = _Turns(graph.steps)
    found: list[_Run] = []
    for before in _orders(graph):
        past = np.arange(len(before))
        for period in range(1, longest + 1):
            past = np.where(past >= 0, before[past], -1)
            late = np.flatnonzero(past >= 0)
            if not len(late):
                break
            equal, near = turns.compare(late, past[late])
            found += _runs(late[equal], before, period, repeats)
            if near_repeats:
                found += _runs(late[near], before, period, near_repeats, near=True)
    return sorted(_apart(found, turns, graph.steps), key=lambda loop: loop.steps[0])


class _Run(Struct, frozen=True):
    """Turns in which every one but the first ``period`` repeats the one a period before it."""

    length: int
    period: int
    near: bool
    before: Indices
    """The turn before each one."""
    last: int

    @property
    def whole(self) -> int:
        """Its length in whole periods: what is left over at the end may be where it was left."""
        return self.length - self.length % self.period

    def turns(self, *taken: set[int]) -> list[int]:
        """Its turns in order; none if one of them is taken."""
        run = [self.last]
        while not any(run[-1] in some for some in taken):
            if len(run) == self.length:
                return run[::-1]
            run.append(int(self.before[run[-1]]))
        return []


def _apart(found: list[_Run], turns: _Turns, steps: tuple[Step, ...]) -> Iterator[Loop]:
    """Loops that share no turn: the longest first, of the shortest period, exact before near."""
    taken: set[int] = set()
    moving: dict[tuple[int, int], set[int]] = {}  # turns of runs that make progress: many may share them
    for run in sorted(found, key=lambda run: (-run.whole, run.period, run.near, run.last)):
        going = moving.setdefault((id(run.before), run.period), set()) if run.near else set()
        inside = run.turns(taken, going)[: run.whole]
        if not inside:
            continue
        if run.near and not turns.stand_still(inside, run.period):
            going.update(inside)
            continue
        taken.update(inside)
        agents = tuple(steps[turn].agent for turn in inside[: run.period])
        yield Loop(agents, run.whole // run.period, not run.near, tuple(inside))


def _orders(graph: CollaborationGraph) -> Iterator[Indices]:
    """The turn before each one, -1 for none: in time, and in the conversation."""
    n = len(graph.steps)
    in_time = np.arange(n) - 1
    yield in_time
    heard = np.full(n, -1, dtype=np.int64)
    edges = graph.unrolled.edge_array
    np.maximum.at(heard, edges[:, 1], edges[:, 0])
    if not np.array_equal(heard, in_time):
        yield heard


def _runs(
    repeated: Indices, before: Indices, period: int, repeats: int, near: bool = False
) -> Iterator[_Run]:
    """The longest runs, from turn to turn along ``before``, of turns that are ``repeated`` after a period."""
    length: dict[int, int] = {}
    going_on: set[int] = set()
    for turn in repeated.tolist():
        earlier = int(before[turn])
        length[turn] = length.get(earlier, 0) + 1
        going_on.add(earlier)
    for turn, count in length.items():
        if turn not in going_on and count >= period * (repeats - 1):
            yield _Run(count + period, period, near, before, turn)


class _Turns:
    """What the turns of a trace say and do, in forms that are compared all at once."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        from scipy.sparse import csr_array

        contents = [_content(step) for step in steps]
        self.agents = codes([step.agent for step in steps])
        self.contents = codes([same_form(" ".join(content.split())) for content in contents])
        self.calls = codes([_calls(step) for step in steps])
        self.numbers: list[tuple[float, ...]] = []
        vocabulary: dict[str, int] = {}
        said: list[set[int]] = []
        for content in contents:
            tokens = words(content)
            numeric = [token for token in tokens if token[0].isdecimal()]
            self.numbers.append(tuple(_value(token) for token in numeric))
            plain = set(tokens).difference(numeric)
            said.append({vocabulary.setdefault(token, len(vocabulary)) for token in plain})
        self.sizes = np.array([len(tokens) for tokens in said], dtype=np.int64)
        flat = np.array([token for tokens in said for token in sorted(tokens)], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(self.sizes)])
        shape = (len(steps), max(1, len(vocabulary)))
        self.words: Any = csr_array((np.ones(len(flat), dtype=np.int64), flat, starts), shape=shape)

    def compare(self, first: Indices, second: Indices) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Of each pair of turns: is one an exact repeat of the other, and is it at least a near one."""
        alike = (self.agents[first] == self.agents[second]) & (self.calls[first] == self.calls[second])
        equal = alike & (self.contents[first] == self.contents[second])
        sizes = self.sizes[first], self.sizes[second]
        alike &= (np.minimum(*sizes) >= NEAR * np.maximum(*sizes)) & (sizes[0] > 0)
        some = np.flatnonzero(alike & ~equal)
        one, two = first[some], second[some]
        common = np.asarray(self.words[one].multiply(self.words[two]).sum(axis=1)).ravel()
        near = equal.copy()
        near[some] = common >= NEAR * (self.sizes[one] + self.sizes[two] - common)
        return equal, near

    def stand_still(self, run: list[int], period: int) -> bool:
        """Whether the numbers in a run are the same or count evenly, and none of its turns grows."""
        for phase in range(period):
            if self._grows(run[phase::period]):
                return False
            numbers = [self.numbers[turn] for turn in run[phase::period]]
            if len(set(map(len, numbers))) > 1:
                return False
            if len(numbers) > 2 and numbers[0] and np.abs(np.diff(np.array(numbers), 2, axis=0)).max() > 1e-9:
                return False
        return True

    def _grows(self, turns: list[int]) -> bool:
        """Whether each turn has more distinct words than the one before, and the last most of the first's."""
        sizes = self.sizes[turns]
        if len(turns) < 2 or (np.diff(sizes) <= 0).any():
            return False
        kept = int(self.words[turns[:1]].multiply(self.words[turns[-1:]]).sum())
        return int(sizes[-1]) - kept >= GROWN * (int(sizes[0]) - kept)


def _content(step: Step) -> str:
    """What a turn said and did."""
    if not step.calls:
        return step.text
    calls = (
        f"{call.tool} {canonical_arguments(call.arguments)} {call.result or call.error or ''}"
        for call in step.calls
    )
    return "\n".join([step.text, *calls])


def _calls(step: Step) -> tuple[tuple[str, str], ...]:
    """The tool calls of a turn, numbers left aside."""
    return tuple((call.tool, _NUMBER.sub("#", canonical_arguments(call.arguments))) for call in step.calls)


def _value(token: str) -> float:
    """A number as it is written; of several points (1.2.3) or very many digits only what can be compared."""
    whole, point, rest = token.partition(".")
    return float(f"{whole[:18]}{point}{rest.replace('.', '')[:18]}")


def _loops(context: Context, *, repeats: int, near_repeats: int) -> Score:
    steps = context.graph.steps
    if not any(step.text.strip() or step.calls for step in steps):
        return Score.undefined(
            "no step says or does anything: record the texts of turns, or their tool calls"
        )
    found = find_loops(context.graph, repeats=repeats, near_repeats=near_repeats)
    inside = sum(len(loop.steps) for loop in found)
    parts = {
        "steps": inside,
        "wasted": inside - sum(len(loop.agents) for loop in found),
        "most_times": max((loop.times for loop in found), default=0),
        "exact": sum(loop.exact for loop in found),
        "near": sum(not loop.exact for loop in found),
    }
    longest = sorted(found, key=lambda loop: -len(loop.steps))[:MOST_NAMED]
    detail = {f"loop_{number}": _named(loop, steps) for number, loop in enumerate(longest, 1)}
    return Score(len(found), parts, detail=detail)


def _named(loop: Loop, steps: tuple[Step, ...]) -> str:
    names = [steps[turn].id for turn in loop.steps]
    if len(names) > MOST_STEPS:
        names[MOST_STEPS - 1 : -1] = [f"({len(names) - MOST_STEPS} more)"]
    how = "exactly" if loop.exact else "nearly"
    return f"{' -> '.join(loop.agents)}, {loop.times} times {how}: {', '.join(names)}"


LOOPS = Metric(
    "loops", 2, "runs of turns that repeat over and over, by one agent or several", _loops,
    (0, None), "lower", "loops", "ours", ("texts",),
    parameters={"repeats": 3, "near_repeats": 4}, settings=("evidence",),
)  # fmt: skip
