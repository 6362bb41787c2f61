"""What pictures of a trace show, before it is drawn: lanes, steps and transfers as numbers and names.

What counts
-----------
* A lane is a name that speaks, tools and decisions included, by first appearance. Of more than `MOST_LANES`
  those with the fewest steps share the last one.
* A column holds steps that need not wait for each other: within a round, a step stands right of what it heard
  and of its agent's earlier step.
* A step is hatched if at least half of its text was said before in the trace, by whom ever.
* The load of a transfer is the number of unnecessary paths through it, as a share of the largest. A path is
  unnecessary where too few steps are right; without a gold answer, where too few reached the final answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct

from counterpoint.contracts import Context
from counterpoint.errors import GraphError
from counterpoint.metrics.correctness import run_answer, run_correct, step_answers, step_correctness
from counterpoint.metrics.costs import text_tokens
from counterpoint.metrics.gemmas import path_load
from counterpoint.metrics.repetition import Turn, repeats
from counterpoint.metrics.uptake import uptake
from counterpoint.trace import EVIDENCE, Step

__all__ = ["Link", "Scene", "Spot", "outcomes", "scene"]

MOST_LANES = 60
MOST_LOADED = 20_000
"""Transfers of a trace whose path loads are counted."""
REPEATED = 0.5


class Spot(Struct, frozen=True):
    """One step."""

    step: str
    lane: int
    column: int
    round: int
    tokens: int
    outcome: str
    repeated: bool


class Link(Struct, frozen=True):
    """One transfer, between spots by index."""

    source: int
    target: int
    within: bool
    load: float
    """Share of the largest load, in [0, 1]; 0 where it is not known."""


class Scene(Struct, frozen=True):
    """A trace, ready to be drawn."""

    lanes: tuple[str, ...]
    others: int
    """Names that share the last lane; 0 where each has its own."""
    spots: tuple[Spot, ...]
    links: tuple[Link, ...]
    starts: Mapping[int, int]
    """Round to its first column."""
    columns: int
    judged_by: str
    """What makes a path necessary; empty where loads are not known."""
    unloaded: str = ""
    """Why loads are not known; empty where they are, or nobody heard anybody."""


def scene(context: Context) -> Scene:
    """The lanes, spots and links of a trace, computed once."""
    return context.once("scene", lambda: _scene(context))


def outcomes(context: Context) -> dict[str, str]:
    """Step id to right, wrong, abstained, ungraded or other (no answer is asked of tools and of the task).

    Where nobody gives an answer and none is graded, it is not answers that the team was asked for.
    """
    graded, answers = step_correctness(context), step_answers(context)
    abstained = "abstained" if not graded.reason or any(answers.values()) else "ungraded"

    def of(step: Step) -> str:
        if step.kind == "decision":
            won = run_correct(context)
            if won is None:
                return abstained if run_answer(context) is None else "ungraded"
            return "right" if won else "wrong"
        if step.kind != "agent":
            return "other"
        if answers.get(step.id) is None:
            return abstained
        if graded.reason:
            return "ungraded"
        return "right" if graded.correct[step.id] else "wrong"

    return {step.id: of(step) for step in context.trace.steps}


def _scene(context: Context) -> Scene:
    steps = context.trace.steps
    lanes, others, lane = _lanes(steps)
    columns, starts, width = _columns(steps)
    found = outcomes(context)
    again = [
        shown > 0 and repeated >= REPEATED * shown
        for _, _, shown, repeated in repeats([Turn("", (step.text,)) for step in steps])
    ]
    spots = tuple(
        Spot(step.id, lane[step.agent], column, step.round or 0, text_tokens(step), found[step.id], said)
        for step, column, said in zip(steps, columns, again, strict=True)
    )
    loads, judged_by, reason = _loads(context)
    links = tuple(_links(context, loads))
    return Scene(lanes, others, spots, links, starts, width, judged_by, reason)


def _lanes(steps: tuple[Step, ...]) -> tuple[tuple[str, ...], int, dict[str, int]]:
    """Names with a lane of their own, how many share the last one, and the lane of every name."""
    names = list(dict.fromkeys(step.agent for step in steps))
    if len(names) <= MOST_LANES:
        return tuple(names), 0, {name: number for number, name in enumerate(names)}
    spoke = Counter(step.agent for step in steps)
    ranked = sorted(names, key=lambda name: -spoke[name])[: MOST_LANES - 1]
    kept = [name for name in names if name in set(ranked)]
    others = len(names) - len(kept)
    lane = dict.fromkeys(names, len(kept)) | {name: number for number, name in enumerate(kept)}
    return (*kept, f"{others} others"), others, lane


def _columns(steps: tuple[Step, ...]) -> tuple[list[int], dict[int, int], int]:
    """The column of each step, the first one of each round, and how many there are."""
    slots: dict[str, int] = {}
    last: dict[tuple[int, str], int] = {}
    widths: dict[int, int] = {}
    turns = {step.id: step.round or 0 for step in steps}
    for step in steps:
        turn = turns[step.id]
        before = [slots[one.source] for one in step.heard if turns.get(one.source) == turn]
        slot = max([*before, last.get((turn, step.agent), -1)]) + 1
        slots[step.id] = last[turn, step.agent] = slot
        widths[turn] = max(widths.get(turn, 0), slot + 1)
    starts, width = {}, 0
    for turn in sorted(widths):
        starts[turn] = width
        width += widths[turn]
    return [starts[turns[step.id]] + slots[step.id] for step in steps], starts, width


def _links(context: Context, loads: Mapping[tuple[str, str], float]) -> list[Link]:
    steps = context.trace.steps
    number = {step.id: index for index, step in enumerate(steps)}
    allowed = set(EVIDENCE[: EVIDENCE.index(context.graph.evidence) + 1])
    links = []
    for target, step in enumerate(steps):
        for heard in step.heard:
            source = number[heard.source]
            if steps[source].agent != step.agent and heard.evidence in allowed:
                load = loads.get((heard.source, step.id), 0.0)
                links.append(Link(source, target, heard.scope == "within", load))
    return links


def _loads(context: Context) -> tuple[dict[tuple[str, str], float], str, str]:
    """Of each transfer: its unnecessary paths over the largest number of them; who judged; why not."""
    view = context.graph.unrolled
    edges = view.edge_array
    if not len(edges):
        return {}, "", ""
    if len(edges) > MOST_LOADED:
        return {}, "", f"paths are counted up to {MOST_LOADED:,} transfers, here are {len(edges):,}"
    graded = step_correctness(context)
    flags = uptake(context).useful if graded.reason else graded.correct
    try:
        loads = path_load((len(view.names), edges), [flags[name] for name in view.names])[:, 1].tolist()
    except GraphError:
        return {}, "", "the trace is too deep for paths to be counted"
    most = max(loads)
    ends = [(view.names[source], view.names[target]) for source, target in edges.tolist()]
    shares = {pair: float(load / most) if most else 0.0 for pair, load in zip(ends, loads, strict=True)}
    return shares, "steps that reached the final answer" if graded.reason else "right steps", ""
