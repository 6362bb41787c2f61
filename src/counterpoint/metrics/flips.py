"""The flip ledger: do agents change their answers for the better after reading their peers?

Conventions
-----------
* A flip record is an agent's answer before and after it read others, each right or wrong. Kept answers are
  records too: they are what could have flipped.
* The value is the net gain, in [-1, 1]: (wrong to right - right to wrong) / records.

What counts
-----------
* On a trace: two answers of one agent that follow each other, if between them, or with the later one, it
  heard another agent. Steps that commit to no answer are passed over.
* The majority is the answer that most of the heard peers had last committed to, if more than any other.
  Sycophancy is the share of right answers that were given up for a majority's wrong one.

Source: ours, after the literature on persuasion and conformity in multi-agent debate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from counterpoint.answers import same_answer
from counterpoint.contracts import Context, Metric
from counterpoint.metrics.correctness import step_correctness
from counterpoint.score import Score

__all__ = ["FLIP_GAIN", "Flip", "flip_ledger", "flips"]


class Flip(Struct, frozen=True):
    """An agent's answers before and after it read its peers."""

    before: bool
    """Was the earlier answer right?"""
    after: bool
    """Is the later one?"""
    to_majority: bool | None = None
    """Is the later answer that of most peers that were read? None: they had no majority."""
    agent: str = ""
    steps: tuple[str, str] = ("", "")
    """Ids of the two steps."""


def flip_ledger(records: Iterable[Flip]) -> Score:
    """Flip ledger: ``(#(wrong -> right) - #(right -> wrong)) / #records``.

    Parameters
    ----------
    records: one for each time that an agent answered again after reading others.

    Returns
    -------
    Score in [-1, 1], higher is better. Parts: ``wrong_to_right`` and ``right_to_wrong``, shares of those that
    were wrong (right) before, ``sycophancy``, the share of those right before that went wrong with the
    majority (each only where there is something to divide by), and counts ``records``, ``gained``, ``lost``,
    ``lost_to_majority``. Undefined without records.

    >>> mended, spoilt, kept = Flip(False, True), Flip(True, False, to_majority=True), Flip(True, True)
    >>> score = flip_ledger([mended, spoilt, kept, Flip(False, False)])
    >>> score.value, score.parts["wrong_to_right"], score.parts["sycophancy"]
    (0.0, 0.5, 0.5)
    """
    known = list(records)
    counts = Counter((flip.before, flip.after) for flip in known)
    if not known:
        return Score.undefined("no agent answered again after it had read another one", parts={"records": 0})
    gained, lost = counts[False, True], counts[True, False]
    to_majority = sum(flip.before and not flip.after and flip.to_majority is True for flip in known)
    parts: dict[str, int | float] = {
        "records": len(known),
        "gained": gained,
        "lost": lost,
        "lost_to_majority": to_majority,
    }
    if wrong := gained + counts[False, False]:
        parts["wrong_to_right"] = gained / wrong
    if right := lost + counts[True, True]:
        parts["right_to_wrong"], parts["sycophancy"] = lost / right, to_majority / right
    return Score((gained - lost) / len(known), parts)


def flips(context: Context) -> list[Flip]:
    """The flip records of a trace, in time order; needs answers that can be told right from wrong."""
    known = step_correctness(context)
    steps = context.graph.steps
    sources: dict[int, list[int]] = {}
    for source, target in context.graph.unrolled.edge_array.tolist():
        sources.setdefault(target, []).append(source)
    stance: list[str | None] = []  # the answer that each step's agent had last committed to
    latest: dict[str, int] = {}  # agent to its last answering step
    read: dict[str, dict[str, int]] = {}  # agent to the last step that it heard of each peer since then
    found = []
    for number, step in enumerate(steps):
        heard = read.setdefault(step.agent, {})
        heard.update((steps[source].agent, source) for source in sorted(sources.get(number, ())))
        before, answer = latest.get(step.agent), known.answers[step.id]
        if answer is not None:
            if before is not None and heard:
                majority = _majority([stance[source] for source in heard.values()])
                right = known.correct[steps[before].id], known.correct[step.id]
                joined = None if majority is None else same_answer(answer, majority)
                found.append(Flip(*right, joined, step.agent, (steps[before].id, step.id)))
            latest[step.agent] = before = number
            read[step.agent] = {}
        stance.append(None if before is None else known.answers[steps[before].id])
    return found


def _majority(answers: Iterable[str | None]) -> str | None:
    """The answer that stands more often than any other; None on a tie or without any."""
    counts: dict[str, int] = {}
    for answer in answers:
        if answer is not None:
            same = next((known for known in counts if known == answer or same_answer(known, answer)), answer)
            counts[same] = counts.get(same, 0) + 1
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]


def _flip_gain(context: Context) -> Score:
    known = step_correctness(context)
    if known.reason:
        return Score.undefined(known.reason)
    if context.graph.why_no_edges:
        return Score.undefined(context.graph.why_no_edges)
    return flip_ledger(flips(context))


FLIP_GAIN = Metric(
    "flip_gain", 1, "answers mended less answers spoilt after reading peers, of all given again", _flip_gain,
    (-1, 1), "higher", "share of answers given again", "ours", ("transfers", "gold"),
    settings=("evidence", "answers"),
)  # fmt: skip
