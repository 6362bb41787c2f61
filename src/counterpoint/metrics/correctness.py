"""What the steps of a run and the run itself answer, and whether it is right.

What counts
-----------
* A step commits to an answer by ``Step.answer``, else by what its text says (`counterpoint.answers`). A step
  that commits to none abstains: it is not correct, and is counted apart.
* A run is correct as graded anew where a gold answer was given beside the trace or regrading was asked for;
  else as recorded; else by comparing its answer with its gold answer. Its answer is the recorded one, else
  that of its last decision step, else that of its last agent step.
* Regrading reads every answer from the texts: what a text commits to outweighs what is recorded. In traces of
  `counterpoint run` every answer was read from a text, so recorded ones are not looked at; elsewhere a system
  may record an answer that no text commits to, and that one stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from counterpoint.answers import infer_kind, read_answer, read_options, same_answer, spoken
from counterpoint.contracts import Context
from counterpoint.trace import Step, Trace, failed_calls

__all__ = [
    "NO_GOLD",
    "Correctness",
    "last_word",
    "run_answer",
    "run_correct",
    "run_graded",
    "step_answer",
    "step_answers",
    "step_correctness",
]

_OURS = "job"
"""A label that every trace of `counterpoint run` has."""

NO_GOLD = "no gold answer: record one with the trace, or give --gold FILE"


@dataclass(frozen=True)
class Correctness:
    """Which steps of a trace commit to the gold answer."""

    correct: Mapping[str, bool]
    """Step id to: it commits to an answer that equals the gold one. Empty where ``reason`` is set."""
    answers: Mapping[str, str | None]
    """Step id to the answer that it commits to; None: it abstains."""
    reason: str = ""
    """Why steps cannot be told right from wrong; empty where they can."""

    @property
    def abstained(self) -> int:
        """How many steps commit to no answer."""
        return sum(answer is None for answer in self.answers.values())


def step_correctness(context: Context) -> Correctness:
    """Correctness of every node of the trace's graph, computed once a trace."""
    return context.once("step_correctness", lambda: _step_correctness(context))


def _step_correctness(context: Context) -> Correctness:
    gold = context.trace.gold
    if gold is None or not gold.strip():
        return Correctness({}, {}, NO_GOLD)
    answers = step_answers(context)
    if not answers:
        return Correctness({}, {}, "the trace has no agent step")
    if all(answer is None for answer in answers.values()):
        return Correctness(
            {},
            answers,
            "no step commits to an answer: have agents end with a line 'The answer is X', record "
            "`answer` with each step, or give --answer-pattern",
        )
    kind = _kind(context)
    correct = {
        name: answer is not None and same_answer(answer, gold, kind=kind) for name, answer in answers.items()
    }
    return Correctness(correct, answers)


def step_answers(context: Context) -> Mapping[str, str | None]:
    """The answer that each node of the trace's graph commits to, by step id; None: it abstains."""
    return context.once(
        "step_answers", lambda: {step.id: step_answer(context, step) for step in context.graph.steps}
    )


def _kind(context: Context) -> str | None:
    gold = context.trace.gold
    if context.answers is not None or gold is None:
        return context.answers
    return context.once("answer_kind", lambda: infer_kind(gold, context.trace.task))


def step_answer(context: Context, step: Step, *, fallback: bool = False) -> str | None:
    """The answer that a step of any kind commits to, or None; ``fallback``: else the last number it says."""
    if context.regrade:
        return _read_anew(context, _said(context, step), step.answer, fallback=fallback)
    if step.answer is not None:
        return step.answer
    return _read(context, _said(context, step), fallback=fallback)


def _said(context: Context, step: Step) -> str:
    """What an answer is read from; in traces of `counterpoint run` not the source of a program."""
    if _OURS not in context.trace.labels:
        return step.text
    return spoken(step.text, [call.result for call in step.calls if call.tool == "python"])


def _read_anew(context: Context, text: str, recorded: str | None, *, fallback: bool) -> str | None:
    """What a text commits to; else what is recorded, if it can have another source; else ``fallback``."""
    found = _read(context, text, fallback=False)
    if found is None and _OURS not in context.trace.labels:
        found = recorded
    return _read(context, text, fallback=True) if found is None and fallback else found


def _read(context: Context, text: str, *, fallback: bool) -> str | None:
    kind = _kind(context)
    options = None
    if kind == "choice":
        options = context.once("option_letters", lambda: read_options(context.trace.task))
    return read_answer(
        text,
        kind=kind,
        options=options,
        pattern=context.answer_pattern,
        fallback=fallback,
        gold=context.trace.gold,
    )


def run_answer(context: Context) -> str | None:
    """The run's answer: as recorded, else its last decision step's, else its last agent step's."""
    return context.once("run_answer", lambda: _run_answer(context))


def _run_answer(context: Context) -> str | None:
    trace = context.trace
    if context.regrade:
        last = _last_spoken(trace)
        recorded = trace.answer if trace.answer is not None or last is None else last.answer
        return _read_anew(context, _said(context, last) if last else "", recorded, fallback=True)
    if trace.answer is not None:
        return trace.answer
    last = _last(trace)
    return None if last is None else step_answer(context, last, fallback=True)


def _last(trace: Trace) -> Step | None:
    """Who had the last word: the last decision step, else the last agent step."""
    kinds = ("decision", "agent")
    return next((step for kind in kinds for step in reversed(trace.steps) if step.kind == kind), None)


def _last_spoken(trace: Trace) -> Step | None:
    """The same, but for an agent that said nothing: then who spoke before it in its round."""
    last = _last(trace)
    if last is None or last.kind == "decision" or last.text.strip():
        return last
    spoke = (step for step in reversed(trace.steps) if step.kind == "agent" and step.text.strip())
    return next((step for step in spoke if step.round == last.round), last)


def last_word(context: Context) -> str | None:
    """What the run came to, for people to read: its answer, or where none is asked for what was said last.

    An answer is asked for where there is a gold answer, a kind or pattern of answers, or one was recorded; a
    number read out of a sentence would say less than the sentence.
    """
    trace, last = context.trace, _last(context.trace)
    recorded = trace.answer is not None or (last is not None and last.answer is not None)
    if recorded or trace.gold is not None or context.answers or context.answer_pattern:
        return run_answer(context)
    return (last.text.strip() or None) if last is not None else None


def run_correct(context: Context) -> bool | None:
    """Whether the run is right; None where neither grade nor gold answer is known, or calls failed."""
    return context.once("run_correct", lambda: _run_correct(context))


def _run_correct(context: Context) -> bool | None:
    trace = context.trace
    if failed_calls(trace):
        return None
    graded_anew = (context.gold_given or context.regrade) and trace.gold is not None
    if trace.correct is not None and not graded_anew:
        return trace.correct
    return run_graded(context)


def run_graded(context: Context) -> bool | None:
    """Whether the run's answer is the gold one, whatever is recorded; None where no gold answer is known."""
    trace = context.trace
    if trace.gold is None or not trace.gold.strip():
        return None
    answer = run_answer(context)
    if answer is None:
        return False
    kind = _kind(context)
    if same_answer(answer, trace.gold, kind=kind):
        return True
    read = _read(context, answer, fallback=True) if trace.answer is not None else None
    return read is not None and same_answer(read, trace.gold, kind=kind)
