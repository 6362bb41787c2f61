"""What a run achieved and what it took: accuracy, tokens, dollars, time, size.

Conventions
-----------
* Tokens and dollars are sums over steps; a step holds the usage of its own model calls, so nothing counts
  twice. Totals that a format gives for the whole run only (``labels["run_usage"]``) are used where no step
  has any.
* Sizes (steps, agents, rounds) count the nodes of the collaboration graph: steps of kind ``agent``.
* Who is right, and what counts as an answer, is told in `counterpoint.metrics.correctness`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from counterpoint.contracts import Context, Metric
from counterpoint.metrics.correctness import NO_GOLD, run_answer, run_correct, step_answers
from counterpoint.score import Score
from counterpoint.trace import Step, Usage

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
    "price_usd",
]


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
