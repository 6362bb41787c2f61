"""What a run achieved and what it took: accuracy, tokens, dollars, time, size.

Conventions
-----------
* Tokens and dollars are sums over steps; a step holds the usage of its own model calls, so nothing counts
  twice. Totals that a format gives for the whole run only (``labels["run_usage"]``) are used where no step
  has any.
* Sizes (steps, agents, rounds) count the nodes of the collaboration graph: steps of kind ``agent``.

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

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from counterpoint.answers import infer_kind, read_answer, read_options, same_answer
from counterpoint.contracts import Context, Metric
from counterpoint.score import Score
from counterpoint.trace import Step, Trace, Usage, failed_calls

__all__ = [
    "ACCURACY",
    "AGENTS",
    "COST_USD",
    "DEPTH",
    "PARALLELISM",
    "ROUNDS",
    "STEPS",
    "TOKENS_IN",
    "TOKENS_OUT",
    "UNPARSED",
    "WALL_TIME_S",
    "Correctness",
    "last_word",
    "price_usd",
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
        return _read_anew(context, step.text, step.answer, fallback=fallback)
    if step.answer is not None:
        return step.answer
    return _read(context, step.text, fallback=fallback)


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
        spoken = _last_spoken(trace)
        recorded = trace.answer if trace.answer is not None or spoken is None else spoken.answer
        return _read_anew(context, spoken.text if spoken else "", recorded, fallback=True)
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


def _accuracy(context: Context) -> Score:
    correct = run_correct(context)
    if correct is None:
        return Score.undefined(NO_GOLD)
    if not (context.trace.gold or "").strip():
        return Score(float(correct))  # graded by other means than an answer
    return Score(float(correct), {"unparsed": int(not correct and run_answer(context) is None)})


def _unparsed(context: Context) -> Score:
    if not (context.trace.gold or "").strip() and context.answers is None:
        return Score.undefined(f"{NO_GOLD}; or name the kind of answer with --answers")
    answers = step_answers(context)
    if not answers:
        return Score.undefined("the trace has no agent step")
    missing = sum(answer is None for answer in answers.values())
    return Score(missing, {"steps": len(answers), "final": int(run_answer(context) is None)})


# --- tokens, money, time -------------------------------------------------------------------------


def _tokens(context: Context, field: str) -> Score:
    used = [step.usage for step in context.trace.steps if step.usage is not None]
    amounts = [amount for usage in used if (amount := getattr(usage, field)) is not None and amount >= 0]
    if amounts:
        speakers = sum(step.kind in ("agent", "control", "decision") for step in context.trace.steps)
        return Score(sum(amounts), {"counted": len(amounts), "unknown": max(0, speakers - len(amounts))})
    total = _run_usage(context).get(field)
    if isinstance(total, int | float):
        return Score(total, {"run_total": 1})
    return Score.undefined("no token counts in the trace: have the framework record `usage` with each call")


def _run_usage(context: Context) -> Mapping[str, Any]:
    usage = context.trace.labels.get("run_usage")
    return usage if isinstance(usage, Mapping) else {}


def price_usd(usage: Usage) -> float | str:
    """What a step cost: as recorded, else tokens times the model's public price; a reason where unknown."""
    if usage.cost_usd is not None:
        return usage.cost_usd
    if usage.tokens_in is None or usage.tokens_out is None or min(usage.tokens_in, usage.tokens_out) < 0:
        return "no token counts"
    if not usage.model:
        return "no model name"
    return _public_price(
        usage.model, usage.tokens_in, usage.tokens_out, min(usage.tokens_cached or 0, usage.tokens_in)
    )


@lru_cache(maxsize=4096)
def _public_price(model: str, tokens_in: int, tokens_out: int, cached: int) -> float | str:
    from genai_prices import Usage as Billed
    from genai_prices import calc_price

    billed = Billed(input_tokens=tokens_in, output_tokens=tokens_out, cache_read_tokens=cached)
    try:
        return float(calc_price(billed, model).total_price)
    except (LookupError, ValueError):
        return f"no public price for model {model!r}"


def _cost_usd(context: Context) -> Score:
    used = [step.usage for step in context.trace.steps if step.usage is not None]
    prices = [price_usd(usage) for usage in used]
    unknown = [price for price in prices if isinstance(price, str)]
    if not prices:
        total = _run_usage(context).get("cost_usd")
        if isinstance(total, int | float):
            return Score(total, {"run_total": 1})
        return Score.undefined("no usage in the trace: record tokens and model, or `cost_usd`, a step")
    if unknown:
        return Score.undefined(
            f"{unknown[0]} ({len(unknown)} of {len(prices)} steps): record `cost_usd` with each step",
            parts={"priced": len(prices) - len(unknown), "unpriced": len(unknown)},
        )
    return Score(sum(price for price in prices if not isinstance(price, str)), {"priced": len(prices)})


def _wall_time_s(context: Context) -> Score:
    times = [time for step in context.trace.steps for time in _times(step)]
    if not times:
        return Score.undefined("no times in the trace: record `started_at` and `ended_at` with each step")
    if len(times) == 1:
        return Score.undefined("one time in the trace: record `started_at` and `ended_at` with each step")
    return Score(max(times) - min(times))


def _times(step: Step) -> list[float]:
    """When the step started and ended, as far as it is known; an end before its start is not."""
    start, end = (
        time if time is not None and math.isfinite(time) else None
        for time in (step.started_at, step.ended_at)
    )
    if start is not None and end is not None and end < start:
        end = None
    return [time for time in (start, end) if time is not None]


# --- size ----------------------------------------------------------------------------------------


def _count(context: Context, size: int) -> Score:
    if not context.graph.steps:
        return Score.undefined("the trace has no agent step")
    return Score(size)


def _depth(context: Context) -> Score:
    graph = context.graph
    if len(graph.agent_names) > 1 and graph.why_no_edges:
        return Score.undefined(graph.why_no_edges)
    return _count(context, graph.depth)


def _parallelism(context: Context) -> Score:
    depth = _depth(context)
    if depth.value is None:
        return depth
    size = len(context.graph.steps)
    return Score(size / depth.value, {"steps": size, "depth": int(depth.value)})


def _compute_tokens_in(context: Context) -> Score:
    return _tokens(context, "tokens_in")


def _compute_tokens_out(context: Context) -> Score:
    return _tokens(context, "tokens_out")


def _steps(context: Context) -> Score:
    return _count(context, len(context.graph.steps))


def _agents(context: Context) -> Score:
    return _count(context, len(context.graph.agent_names))


def _rounds(context: Context) -> Score:
    return _count(context, context.graph.rounds)


OURS = "counted from the trace"

ACCURACY = Metric(
    "accuracy", 1, "the run's answer equals the gold answer", _accuracy,
    (0, 1), "higher", "share of runs", "graded by counterpoint.answers", ("gold",), settings=("answers",),
)  # fmt: skip
TOKENS_IN = Metric(
    "tokens_in", 1, "prompt tokens of all model calls", _compute_tokens_in,
    (0, None), "lower", "tokens", OURS, ("usage",),
)  # fmt: skip
TOKENS_OUT = Metric(
    "tokens_out", 1, "completion tokens of all model calls", _compute_tokens_out,
    (0, None), "lower", "tokens", OURS, ("usage",),
)  # fmt: skip
COST_USD = Metric(
    "cost_usd", 1, "dollars for all model calls, as recorded or by public prices", _cost_usd,
    (0, None), "lower", "USD", f"public prices of genai-prices {version('genai-prices')}", ("usage",),
    settings=("prices",),
)  # fmt: skip
STEPS = Metric("steps", 1, "turns that agents took", _steps, (1, None), "", "steps", OURS)
AGENTS = Metric("agents", 1, "agents that took a turn", _agents, (1, None), "", "agents", OURS)
ROUNDS = Metric("rounds", 1, "rounds in which an agent spoke", _rounds, (1, None), "", "rounds", OURS)
DEPTH = Metric(
    "depth", 1, "steps on the longest chain of transfers", _depth,
    (1, None), "", "steps", "longest path of the unrolled graph", ("transfers",), settings=("evidence",),
)  # fmt: skip
PARALLELISM = Metric(
    "parallelism", 1, "steps divided by depth: 1 is a chain", _parallelism,
    (1, None), "", "steps per level", "work over span", ("transfers",), settings=("evidence",),
)  # fmt: skip
WALL_TIME_S = Metric(
    "wall_time_s", 2, "seconds from the first start to the last end", _wall_time_s,
    (0, None), "lower", "s", OURS, ("times",),
)  # fmt: skip
UNPARSED = Metric(
    "unparsed", 1, "steps that commit to no readable answer", _unparsed,
    (0, None), "lower", "steps", "read by counterpoint.answers", ("gold",), settings=("answers",),
)  # fmt: skip
