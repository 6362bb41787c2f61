"""Blame: the first decisive error of a failed run, who made it and when, by rules and the graph alone.

Conventions
-----------
* Steps are counted from 0, as they stand in the trace; one history item of a log is one step.
* Confidence orders the rules; it is no calibrated probability. No failure label is looked at.

What counts
-----------
The decisive error is the earliest step whose correction would have turned failure into success [1]_. The
first of these rules that finds a step names it:

* ``turned`` (.9): the run's wrong answer, traced back from the end along steps that give it, each heard by
  the next or of the same agent: the step where it begins, if its agent had given or heard the right answer;
* ``origin`` (.7): the same where nobody there knew the right answer; ``decision`` (.7) where the answer
  begins with the step that decides;
* ``failure`` (.5): the first turn that ends in an error, or that asked for a call that failed;
* ``claim`` (.4): the first turn that says the run's answer, or else the earliest number or quotation that the
  last turn still holds, and that neither the task nor an opening that restates it gives;
* ``source`` (.2): the turn, not an opening, from which later turns took up most that was new.

Turns of users and tools are never to blame. A run whose outcome is not known is judged as if it had failed,
and the detail says so.

Differences from the paper
--------------------------
The paper asks language models; this asks none, cannot read reasoning, and sees no error that leaves no mark
in answers, tool results or quoted values.

.. [1] Zhang et al. Which Agent Causes Task Failures and When? ICML 2025 (arXiv:2505.00212).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from counterpoint.answers import read_number
from counterpoint.answers.equality import normalize
from counterpoint.contracts import Context, Metric
from counterpoint.metrics.correctness import run_answer, run_correct
from counterpoint.metrics.influence import previous_turns, uptake_shares
from counterpoint.metrics.replay import Recording, recording
from counterpoint.metrics.similarity import TOKENIZERS
from counterpoint.metrics.uptake import uptake
from counterpoint.score import Score

__all__ = ["BLAME", "Verdict", "blame"]

SPEAK = ("agent", "control", "decision")
"""Kinds of steps that can be to blame."""

RESTATES = 0.8
"""A turn that holds so many of the task's terms, before anyone was heard, restates it."""

_FAILED_CALL = re.compile(
    r"exit ?code:? *[1-9]|execution failed|Traceback \(most recent call last\)|\w*(?:Error|Exception):"
    r"|not found|no such file|timed out",
    re.IGNORECASE,
)
_FAILED_TURN = re.compile(
    r"Traceback \(most recent call last\)|\bError [45]\d\d\b|\bstatus code:? [45]\d\d\b|\bAccess Denied\b"
    r"|\b(?:verify|verifying) (?:that )?you are (?:a )?human\b|\bJust a moment\.\.\."
)
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?!\w)")
_QUOTED = re.compile(r"\"([^\"\n]{2,80})\"|\*\*([^*\n]{2,80})\*\*|“([^”\n]{2,80})”")


class Verdict(NamedTuple):
    """Which step is to blame, and why."""

    step: int
    """Index in the trace."""
    rule: str
    confidence: float


def blame(context: Context) -> Verdict | None:
    """The first decisive error of a trace, by the first rule that finds one; None where none does."""
    for rule in (_origin, _failure, _claim, _source):
        if verdict := rule(context):
            return verdict
    return None


def _origin(context: Context) -> Verdict | None:
    """Where the run's wrong answer begins."""
    found = recording(context)
    if not isinstance(found, Recording) or run_correct(context) is not False:
        return None
    index = {step.id: number for number, step in enumerate(context.trace.steps)}
    if found.run < 0:
        decisions = [number for number, step in enumerate(context.trace.steps) if step.kind == "decision"]
        told = decisions and any(answer >= 0 for answer in found.answers)
        return Verdict(decisions[-1], "decision", 0.7) if told else None
    before = _own_same(found)
    waiting = [max(step for step, answer in enumerate(found.answers) if answer == found.run)]
    reached = set(waiting)
    while waiting:
        step = waiting.pop()
        for source in (*found.heard[step], *before[step]):
            if source not in reached:
                reached.add(source)
                waiting.append(source)
    first = min(reached)
    knew = found.right is not None and _knew(context, found, first)
    return Verdict(index[found.names[first]], "turned" if knew else "origin", 0.9 if knew else 0.7)


def _own_same(found: Recording) -> list[tuple[int, ...]]:
    """Of each step: its agent's step before, where that gave the same answer."""
    last = previous_turns(found.speakers)
    return [
        (earlier,) if earlier >= 0 and found.answers[earlier] == found.answers[step] else ()
        for step, earlier in enumerate(last)
    ]


def _knew(context: Context, found: Recording, step: int) -> bool:
    """Whether the step's agent had given the right answer, or heard it."""
    edges = context.graph.unrolled.edge_array
    heard = edges[edges[:, 1] == step, 0].tolist()
    own = [earlier for earlier in range(step) if found.speakers[earlier] == found.speakers[step]]
    return any(found.answers[earlier] == found.right for earlier in (*heard, *own))


def _failure(context: Context) -> Verdict | None:
    """The first turn that ends in an error, or that asked for a call that failed."""
    asked = None
    for number, step in enumerate(context.trace.steps):
        if step.kind == "tool" and asked is not None and (step.error or _FAILED_CALL.search(step.text)):
            return Verdict(asked, "failure", 0.5)
        if step.kind in SPEAK:
            failed = step.error or any(call.error for call in step.calls)
            if step.kind == "agent" and (failed or _FAILED_TURN.search(step.text)):
                return Verdict(number, "failure", 0.5)
            asked = number
    return None


def _claim(context: Context) -> Verdict | None:
    """The first turn that says what the run ended with."""
    steps = context.trace.steps
    openings = _openings(context)
    given = " ".join([context.trace.task, *(steps[number].text for number in openings)])
    turns = [number for number, step in enumerate(steps) if step.kind == "agent" and number not in openings]
    answer = run_answer(context)
    if answer is not None and (wanted := normalize(answer)):
        for number in turns:
            if f" {wanted} " in f" {_plain(steps[number].text)} ":
                return Verdict(number, "claim", 0.4)
    final = uptake(context).final
    if final is None:
        return None
    known, held = set(_claims(given)), set(_claims(final.text))
    for number in turns:
        if steps[number].id != final.id and (held - known) & set(_claims(steps[number].text)):
            return Verdict(number, "claim", 0.4)
    return None


def _plain(text: str) -> str:
    """A text in the form in which answers are compared, its punctuation as spaces."""
    return " ".join(re.sub(r"[^\w.]+|\.(?!\d)", " ", normalize(text)).split())


def _claims(text: str) -> Iterator[str]:
    """Numbers, quotations and what is set in bold, as they are compared."""
    for number in _NUMBER.findall(text):
        value = read_number(number)
        if value:
            yield str(value.value)
    for match in _QUOTED.finditer(text):
        yield _plain(next(group for group in match.groups() if group))


def _openings(context: Context) -> set[int]:
    """Turns that restate the task before any other agent was heard."""
    words = TOKENIZERS["words"]
    task = set(words(context.trace.task))
    found: set[int] = set()
    speakers: set[str] = set()
    for number, step in enumerate(context.trace.steps):
        if step.kind != "agent":
            continue
        if speakers - {step.agent} or not task:
            break
        if len(task & set(words(step.text))) >= RESTATES * len(task):
            found.add(number)
        speakers.add(step.agent)
    return found


def _source(context: Context) -> Verdict | None:
    """The turn from which later ones took up most that was new."""
    steps = context.graph.steps
    index = {step.id: number for number, step in enumerate(context.trace.steps)}
    openings = _openings(context)
    edges = context.graph.unrolled.edge_array
    texts = [step.text for step in steps]
    shares = uptake_shares(texts, edges, given=context.trace.task, speakers=[step.agent for step in steps])
    taken = (
        np.bincount(edges[:, 0], weights=shares, minlength=len(steps)) if len(edges) else np.zeros(len(steps))
    )
    for number in np.argsort(-taken, kind="stable").tolist():
        if index[steps[number].id] not in openings and texts[number].strip():
            return Verdict(index[steps[number].id], "source", 0.2)
    return None


def _blame(context: Context) -> Score:
    if not context.graph.steps:
        return Score.undefined("the trace has no agent step")
    correct = run_correct(context)
    if correct is True:
        return Score.undefined("the run is right: there is no decisive error to look for")
    verdict = blame(context)
    if verdict is None:
        return Score.undefined("no agent says anything: record the texts of turns")
    step = context.trace.steps[verdict.step]
    detail = {"agent": step.agent, "step_id": step.id, "rule": verdict.rule}
    if correct is None:
        detail["outcome"] = "unknown"
    return Score(verdict.confidence, {"step": verdict.step}, detail=detail)


BLAME = Metric(
    "blame", 1, "confidence that the named step is the run's first decisive error", _blame,
    (0, 1), "", "ordinal", "ours; the question is that of arXiv:2505.00212", ("texts",),
    settings=("evidence", "answers"),
)  # fmt: skip
