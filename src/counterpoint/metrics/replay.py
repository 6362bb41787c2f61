"""Replay: what a recorded team would have answered without some of its agents, edges or rounds; an estimate.

Conventions
-----------
* Nobody is asked again: a replay changes recorded answers only, by the one assumption below.
* Edges are pairs of agent names, source and reader. Rounds are numbers, as in the trace.

What counts
-----------
* **The assumption**: a step that gives an answer which it heard, or which its agent gave before, holds it
  from there. When nobody whom it still hears gives it any more, and its agent has not kept it either, it
  falls back on its agent's own last answer. An answer that a step brought up itself stays.
* So an answer that two agents found by themselves, one hearing the other, counts as taken over: the replay
  rather reports a loss than overlooks one. What an agent would have found untold, it cannot know.
* The vote is by the last answer of each agent that gave one, each once. A tie is worth the share of right
  answers among those tied.
* The run's answer stays where it won the vote and still does, or where it did not win it and somebody still
  gives it; one that no agent gave stays where the vote does. Else the vote of the replay stands in for it.

Source: ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from counterpoint.contracts import Context
from counterpoint.metrics.correctness import run_answer, run_correct, step_answers, step_correctness
from counterpoint.metrics.influence import answer_classes
from counterpoint.trace import Trace

__all__ = ["ASSUMPTION", "Outcome", "Recording", "Removal", "Vote", "recording", "vote", "without"]

ASSUMPTION = (
    "estimate from the recording: an answer that a step heard, or that its agent gave before, is lost when "
    "nobody it still hears gives it; the agent then falls back on its own last one; no model was asked again"
)


class Removal(Struct, frozen=True):
    """What is taken out of a team: agents, edges between agents, rounds."""

    agents: frozenset[str] = frozenset()
    edges: frozenset[tuple[str, str]] = frozenset()
    """(source, reader): nothing of the source reaches the reader."""
    rounds: frozenset[int] = frozenset()

    def __str__(self) -> str:
        """``Critic, Solver → Critic, round 2``."""
        parts = [*sorted(self.agents), *(f"{source} → {reader}" for source, reader in sorted(self.edges))]
        return ", ".join([*parts, *(f"round {number}" for number in sorted(self.rounds))]) or "nothing"

    def __or__(self, other: Removal) -> Removal:
        """Both removals together."""
        return Removal(self.agents | other.agents, self.edges | other.edges, self.rounds | other.rounds)


class Vote(Struct, frozen=True):
    """The answers with most voices, and what they are worth."""

    top: frozenset[int]
    """Classes of answers; several: a tie; none: nobody answers."""
    right: float | None
    """Share of right ones among them, 0 where nobody answers; None where right and wrong are not known."""


class Outcome(Struct, frozen=True):
    """What becomes of a run's answer."""

    stays: bool
    right: float | None
    """1 or 0 as the run is graded where its answer stays, else what the vote of the replay is worth."""
    vote: Vote


@dataclass(frozen=True)
class Recording:
    """The answers of one trace, and from whom each may have been taken."""

    names: tuple[str, ...]
    """Step ids."""
    speakers: tuple[str, ...]
    """The agent of each step."""
    rounds: tuple[int, ...]
    answers: tuple[int, ...]
    """Class of the answer of each step; -1: none."""
    texts: tuple[str | None, ...]
    """The answers as they were given."""
    heard: tuple[tuple[int, ...], ...]
    """Of each step: earlier steps of others, heard by it, that give the same answer."""
    right: int | None
    """Class of right answers, -2 where nobody gave one; None where right and wrong are not known."""
    run: int
    """Class of the run's answer; -1 where it is not known, or no agent gave it."""
    correct: bool | None
    """How the run is graded."""

    @cached_property
    def last(self) -> Vote:
        """The vote, as recorded."""
        return vote(self.speakers, self.answers, self.right)

    def replay(self, removal: Removal) -> tuple[int, ...]:
        """Answers without what is removed; steps that are gone give none."""
        answers: list[int] = []
        before: dict[str, int] = {}  # the agent's last answer, as recorded
        now: dict[str, int] = {}  # and in the replay
        for step, speaker in enumerate(self.speakers):
            recorded = self.answers[step]
            if speaker in removal.agents or self.rounds[step] in removal.rounds or recorded < 0:
                answers.append(-1)
            else:
                kept = self._keeps(step, answers, before.get(speaker, -1), now.get(speaker, -1), removal)
                answers.append(recorded if kept else now.get(speaker, -1))
                now[speaker] = answers[step]
            if recorded >= 0:
                before[speaker] = recorded
        return tuple(answers)

    def _keeps(self, step: int, answers: Sequence[int], before: int, now: int, removal: Removal) -> bool:
        """Whether a step's answer is its own, or one from whom it may have it still gives it."""
        recorded = self.answers[step]
        if not self.heard[step] and before != recorded:
            return True
        return now == recorded or any(
            answers[source] == recorded and (self.speakers[source], self.speakers[step]) not in removal.edges
            for source in self.heard[step]
        )

    def outcome(self, removal: Removal) -> Outcome:
        """What becomes of the run's answer without what is removed."""
        answers = self.replay(removal)
        voted = vote(self.speakers, answers, self.right)
        if self.run < 0:
            stays = voted.top == self.last.top
        else:
            stays = self.run in (voted.top if self.run in self.last.top else answers)
        right = None if self.correct is None else float(self.correct)
        return Outcome(stays, right if stays or right is None else voted.right, voted)


def vote(speakers: Sequence[Hashable], answers: Sequence[int], right: int | None) -> Vote:
    """The vote of each speaker's last answer; see the module's docstring.

    >>> vote("ABA", [7, 8, 8], right=8)
    Vote(top=frozenset({8}), right=1.0)
    >>> vote("AB", [7, 8], right=8).right
    0.5
    """
    last = {speaker: answer for speaker, answer in zip(speakers, answers, strict=True) if answer >= 0}
    voices = Counter(last.values())
    most = max(voices.values(), default=0)
    top = frozenset(answer for answer, count in voices.items() if count == most)
    if right is None:
        return Vote(top, None)
    return Vote(top, (right in top) / len(top) if top else 0.0)


def recording(context: Context) -> Recording | str:
    """The recording of a trace, made once; or why it holds no answers to replay."""
    return context.once("recording", lambda: _recording(context))


def _recording(context: Context) -> Recording | str:
    steps = context.graph.steps
    if not steps:
        return "the trace has no agent step"
    given = step_answers(context)
    texts = tuple(given[step.id] for step in steps)
    if all(text is None for text in texts):
        return (
            "no step commits to an answer: have agents end with a line 'The answer is X', record "
            "`answer` with each step, or give --answer-pattern"
        )
    correctness = step_correctness(context)
    flags = [correctness.correct.get(step.id, False) for step in steps]
    graded = run_correct(context)
    flags.append(any(flags) and graded is True)
    *classes, run = answer_classes([*texts, run_answer(context)], flags)
    ones = [answer for answer, flag in zip(classes, flags, strict=False) if flag]
    right = None if correctness.reason else next(iter(ones), -2)
    heard: list[list[int]] = [[] for _ in steps]
    for source, target in context.graph.unrolled.edge_array.tolist():
        if classes[target] >= 0 and classes[source] == classes[target]:
            heard[target].append(source)
    return Recording(
        tuple(step.id for step in steps),
        tuple(step.agent for step in steps),
        tuple(step.round or 0 for step in steps),
        tuple(classes),
        texts,
        tuple(map(tuple, heard)),
        right,
        run if run in classes else -1,
        graded,
    )


def without(context: Context, removal: Removal) -> Trace:
    """The trace without what is removed, its answers replayed; transfers of what is gone are gone too."""
    found = recording(context)
    changed: dict[str, str] = {}
    if isinstance(found, Recording):
        texts = {answer: text for answer, text in zip(found.answers, found.texts, strict=True) if text}
        changed = {
            name: texts.get(new, "")  # an empty answer is none, and keeps the text from being read again
            for name, old, new in zip(found.names, found.answers, found.replay(removal), strict=True)
            if new != old
        }
    trace = context.trace
    speaker = {step.id: step.agent for step in trace.steps}
    gone = {step.id for step in trace.steps if _is_gone(step.agent, step.kind, step.round, removal)}
    steps = []
    for step in trace.steps:
        if step.id in gone:
            continue
        heard = tuple(
            transfer
            for transfer in step.heard
            if transfer.source not in gone
            and (step.kind == "decision" or (speaker.get(transfer.source), step.agent) not in removal.edges)
        )
        if heard != step.heard or step.id in changed:
            step = replace(step, heard=heard, answer=changed.get(step.id, step.answer))
        steps.append(step)
    return replace(trace, steps=tuple(steps))


def _is_gone(agent: str, kind: str, turn: int | None, removal: Removal) -> bool:
    if kind in ("task", "decision"):
        return False
    return agent in removal.agents or (turn or 0) in removal.rounds
