"""Uptake on traces: which steps used which, which are useful, and the Unnecessary Path Ratio without gold.

Conventions, and what an uptake edge is: see `influence`. Nodes here are agent steps, and decision steps where
usefulness is looked for; an agent's text is its step's.

What counts
-----------
* The final answer is the decision step that heard an agent; else the last turn that commits to the run's
  answer; else the last turn that says something (a framework's closing word, TERMINATE, says nothing).
* ``upr_uptake`` is UPR with "useful" in place of "correct": the same nodes, edges, paths, threshold and exact
  count, by `gemmas`. A path is necessary iff at least half of its steps are useful.

Differences from the paper
--------------------------
GEMMAS asks who was right, and needs gold. This asks whose words reached the answer, right or wrong: a team
that uses all it says in order to be wrong has ``upr_uptake`` 0. It is another question with the same count.

Source: ours, after GEMMAS (arXiv:2507.13190), eq. 3.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as modified
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from counterpoint.contracts import Context, Metric
from counterpoint.errors import UsageError
from counterpoint.graph import CollaborationGraph, Edges
from counterpoint.metrics.correctness import run_answer, run_correct, step_answers, step_correctness
from counterpoint.metrics.gemmas import path_graph, unnecessary_path_ratio
from counterpoint.metrics.influence import (
    EMBEDDING,
    TEXT,
    answer_classes,
    previous_turns,
    uptake_cosines,
    uptake_edges,
    uptake_shares,
    useful_steps,
)
from counterpoint.metrics.near import codes
from counterpoint.registry import suggest
from counterpoint.score import Score
from counterpoint.trace import Step

__all__ = ["UPR_UPTAKE", "Uptake", "commitments", "reading_graph", "uptake"]

BY = ("text", "embedding", "either")

_CLOSING = re.compile(r"[\W_]*(?:[A-Z]{4,}[\W_]*){1,3}")
"""A framework's closing word: TERMINATE, END DISCUSSION."""


@dataclass(frozen=True)
class Uptake:
    """Which steps of a trace used which, the decision step included."""

    steps: tuple[Step, ...]
    pairs: Edges
    """(m, 2) transfers between them, row-major."""
    taken: NDArray[np.bool_]
    """(m,) something was used."""
    useful: Mapping[str, bool]
    """Step id to: its content reached the final answer."""
    final: Step | None
    """The step that holds the final answer; None where none says anything."""


def uptake(context: Context, *, by: str = "text", threshold: float | None = None) -> Uptake:
    """The uptake edges of a trace and its useful steps, computed once a trace.

    Parameters
    ----------
    by: ``text``, ``embedding`` (needs ``context.embed``), or ``either`` of them.
    threshold: of the share or the cosine, inclusive; None: .25 and .5. ``either`` takes None only.

    Raises
    ------
    UsageError: another ``by``, or a threshold that is no number.
    """
    if by not in BY:
        raise UsageError(f"by {by!r}{suggest(by, BY)} is none of {', '.join(BY)}")
    if threshold is not None and (by == "either" or not isinstance(threshold, int | float)):
        raise UsageError(
            f"threshold {threshold!r}: give a number with by=text or by=embedding, none with by=either"
        )
    return context.once(f"uptake {by} {threshold}", lambda: _uptake(context, by, threshold))


def _uptake(context: Context, by: str, threshold: float | None) -> Uptake:
    graph = reading_graph(context)
    steps, pairs = graph.steps, graph.unrolled.edge_array
    speakers = [(step.kind, step.agent) for step in steps]
    answers = commitments(context, steps)
    memory = np.array([(i, j) for j, i in enumerate(previous_turns(speakers)) if i >= 0], dtype=np.int64)
    links = np.concatenate([pairs, memory.reshape(-1, 2)])
    links = links[np.lexsort((links[:, 1], links[:, 0]))]
    taken = np.zeros(len(links), dtype=bool)
    for kind in ("text", "embedding") if by == "either" else (by,):
        cut = threshold if threshold is not None else TEXT if kind == "text" else EMBEDDING
        likeness = _likeness(context, steps, links, speakers, kind)
        taken |= uptake_edges(links, likeness, threshold=cut, answers=answers, speakers=speakers)
    who = codes(speakers)
    between = who[links[:, 0]] != who[links[:, 1]]
    given = np.array(answers)[links]
    taken |= ~between & (given[:, 0] == given[:, 1]) & (given[:, 0] >= 0)  # an agent stays with its answer
    final = _final(context, steps, pairs, answers)
    useful = useful_steps(len(steps), links[taken], [] if final is None else [final])
    return Uptake(
        steps,
        links[between],
        taken[between],
        {step.id: bool(flag) for step, flag in zip(steps, useful, strict=True)},
        None if final is None else steps[final],
    )


def reading_graph(context: Context) -> CollaborationGraph:
    """The trace's graph with its decision steps, who read too; made once a trace."""
    return context.once(
        "reading_graph",
        lambda: CollaborationGraph(context.trace, evidence=context.graph.evidence, include_decision=True),
    )


def commitments(context: Context, steps: Sequence[Step]) -> list[int]:
    """Answer classes of agent and decision steps; a decision commits to the run's answer."""
    given = step_answers(context)
    answers = [run_answer(context) if step.kind == "decision" else given[step.id] for step in steps]
    right = step_correctness(context).correct
    won = bool(right) and run_correct(context) is True
    return answer_classes(
        answers, [won if step.kind == "decision" else right.get(step.id, False) for step in steps]
    )


def _likeness(
    context: Context, steps: Sequence[Step], pairs: Edges, speakers: Sequence[Hashable], kind: str
) -> NDArray[np.float64]:
    """One number an edge, in the order of ``pairs``."""
    texts, task = [step.text for step in steps], context.trace.task
    if kind == "text":
        return uptake_shares(texts, pairs, given=task, speakers=speakers)
    assert context.embed is not None  # the metric asks first
    said = list(dict.fromkeys(text for text in [*texts, task] if text.strip()))
    vectors = dict(zip(said, context.embed(said), strict=True)) if said else {}
    nothing = np.zeros(len(next(iter(vectors.values()))) if vectors else 1)
    rows = np.array([vectors.get(text, nothing) for text in texts])
    return uptake_cosines(rows, pairs, given=vectors.get(task))


def _final(context: Context, steps: Sequence[Step], pairs: Edges, answers: Sequence[int]) -> int | None:
    """Index of the step that holds the final answer."""
    readers = set(pairs[:, 1].tolist())
    backward = range(len(steps) - 1, -1, -1)
    decision = next((i for i in backward if steps[i].kind == "decision" and i in readers), None)
    if decision is not None:
        return decision
    agents = [i for i in backward if steps[i].kind == "agent"]
    said = step_answers(context)
    given = answer_classes([run_answer(context), *(said[steps[i].id] for i in agents)])
    for index, answer in zip(agents, given[1:], strict=True):
        if answer >= 0 and answer == given[0]:
            return index
    spoken = [i for i in agents if steps[i].text.strip()]
    return next((i for i in spoken if not _CLOSING.fullmatch(steps[i].text.strip())), None)


# --- the metric ----------------------------------------------------------------------------------


def _upr_uptake(context: Context, *, by: str, level: float | None, threshold: Any, paths: str) -> Score:
    view, edges, reason = path_graph(context)
    if reason:
        return Score.undefined(reason)
    if by in ("embedding", "either") and context.embed is None:
        return Score.undefined(context.embed_missing)
    found = uptake(context, by=by, threshold=level)
    if found.final is None:
        return Score.undefined("no agent says anything: record the texts of turns")
    useful = [found.useful[step.id] for step in view.steps]
    score = unnecessary_path_ratio((len(useful), edges), useful, threshold=threshold, paths=paths)
    parts = {
        **score.parts,
        "useful": sum(useful),
        "steps": len(useful),
        "taken_up": int(found.taken.sum()),
        "transfers": len(found.taken),
    }
    return replace(score, parts=parts, detail={**score.detail, "final": found.final.id})


class _UptakeMetric(Metric):
    """A metric that needs an embedder only where it is asked to compare by one."""

    def bind(self, **parameters: Any) -> Metric:
        bound = super().bind(**parameters)
        if bound.bound.get("by", "text") == "text":
            return bound
        return modified(bound, needs=tuple(dict.fromkeys([*bound.needs, "embedder"])))


UPR_UPTAKE = _UptakeMetric(
    "upr_uptake", 1, "share of communication paths on which too few steps reached the final answer",
    _upr_uptake, (0, 1), "lower", "share of paths", "ours: UPR (arXiv:2507.13190, eq. 3) on useful steps",
    ("texts", "transfers"),
    parameters={"by": "text", "level": None, "threshold": 0.5, "paths": "subpath"},
    settings=("evidence", "answers", "profile"),
)  # fmt: skip
