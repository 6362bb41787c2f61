"""What each step used and what each transfer carried, in tokens and dollars.

Conventions
-----------
* Nodes are agent and decision steps in time order, pairs (i, j) the transfers between them. A decision reads
  too, so dropping an agent saves what the decision is shown of it.
* None, and NaN in arrays, is unknown, never 0. Totals are those of the metrics ``tokens_in``, ``tokens_out``
  and ``cost_usd``.

What counts
-----------
* A step's own tokens are those of its model calls, prompt and completion. Every kind of step counts for its
  agent: an orchestrator's thoughts are its own, though they are no nodes.
* A text's tokens are estimated: a fourth of its characters, at most the completion tokens of its step.
* A transfer delivers its source's text to a prompt. If a prompt is known to be shorter than all that was
  delivered to it, each delivery counts less, in proportion: a prompt holds no more than it holds.
* A delivery costs its tokens at the reader's price of prompt tokens: the public price of its model, in
  proportion to what the step is recorded to have cost. Without a public price it is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from counterpoint.contracts import Context
from counterpoint.graph import Edges
from counterpoint.metrics.outcome import COST_USD, TOKENS_IN, TOKENS_OUT, price_usd
from counterpoint.metrics.uptake import reading_graph
from counterpoint.trace import Step, Usage

__all__ = ["Costs", "costs", "text_tokens"]

Floats = NDArray[np.float64]

CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True)
class Costs:
    """Tokens and dollars of one trace."""

    steps: tuple[Step, ...]
    """Agent and decision steps."""
    pairs: Edges
    """(m, 2) transfers between them, row-major."""
    said: Floats
    """(n,) tokens of each text."""
    delivered: Floats
    """(m,) tokens that each transfer put into its reader's prompt."""
    delivered_usd: Floats
    """(m,) what they cost; NaN where that is unknown."""
    own_tokens: Mapping[str, int]
    """Step id (of any kind) to the tokens of its model calls, where they are known."""
    own_usd: Mapping[str, float]
    """Step id to the dollars of its model calls, where they are known."""
    tokens: int | None
    """All prompt and completion tokens of the run."""
    usd: float | None
    """All dollars, None unless every step with usage can be priced."""


def text_tokens(step: Step) -> int:
    """Tokens of what a step said, estimated.

    >>> text_tokens(Step("s", "A", "four words or so", usage=Usage(tokens_out=3)))
    3
    """
    estimate = math.ceil(len(step.text.strip()) / CHARACTERS_A_TOKEN)
    known = step.usage.tokens_out if step.usage is not None else None
    return estimate if known is None else min(estimate, known)


def costs(context: Context) -> Costs:
    """Tokens and dollars of the trace, computed once."""
    return context.once("costs", lambda: _costs(context))


def _costs(context: Context) -> Costs:
    graph = reading_graph(context)
    steps, pairs = graph.steps, graph.unrolled.edge_array
    own_tokens: dict[str, int] = {}
    own_usd: dict[str, float] = {}
    used = 0
    for step in context.trace.steps:
        if step.usage is None:
            continue
        used += 1
        amounts = [step.usage.tokens_in, step.usage.tokens_out]
        if any(amount is not None for amount in amounts):
            own_tokens[step.id] = sum(amount for amount in amounts if amount is not None)
        price = price_usd(step.usage)
        if not isinstance(price, str):
            own_usd[step.id] = price
    said = np.array([text_tokens(step) for step in steps], dtype=np.float64)
    delivered = _delivered(steps, pairs, said)
    rates = np.array([_prompt_rate(step, own_usd.get(step.id)) for step in steps])
    return Costs(
        steps,
        pairs,
        said,
        delivered,
        delivered * rates[pairs[:, 1]],
        own_tokens,
        own_usd,
        sum(own_tokens.values()) if own_tokens else _run_tokens(context),
        sum(own_usd.values()) if own_usd and len(own_usd) == used else COST_USD.compute(context).value,
    )


def _run_tokens(context: Context) -> int | None:
    """Tokens of a run that only has totals."""
    totals = [metric.compute(context).value for metric in (TOKENS_IN, TOKENS_OUT)]
    known = [int(total) for total in totals if total is not None]
    return sum(known) if known else None


def _delivered(steps: tuple[Step, ...], pairs: Edges, said: Floats) -> Floats:
    carried: Floats = said[pairs[:, 0]]
    shown = np.bincount(pairs[:, 1], weights=carried, minlength=len(steps))
    held = np.array([_prompt_tokens(step) for step in steps])
    with np.errstate(divide="ignore", invalid="ignore"):
        shrunk = np.where((held < shown) & (shown > 0), held / shown, 1.0)
    result: Floats = carried * shrunk[pairs[:, 1]]
    return result


def _prompt_tokens(step: Step) -> float:
    """Tokens of the step's prompts; infinite where they are unknown."""
    known = step.usage.tokens_in if step.usage is not None else None
    return math.inf if known is None else float(known)


def _prompt_rate(step: Step, usd: float | None) -> float:
    """Dollars a prompt token of this step, NaN where they are unknown."""
    usage = step.usage
    if usage is None or usd is None or not usage.model:
        return math.nan
    into, out = _public_rates(usage.model)
    if math.isnan(into):
        return math.nan
    public = into * (usage.tokens_in or 0) + out * (usage.tokens_out or 0)
    return into * usd / public if public > 0 else into


@lru_cache(maxsize=256)
def _public_rates(model: str) -> tuple[float, float]:
    """Dollars a prompt token and a completion token, by public prices; NaN where there is none."""
    rates = []
    for amounts in ((1000, 0), (0, 1000)):
        price = price_usd(Usage(tokens_in=amounts[0], tokens_out=amounts[1], model=model))
        rates.append(math.nan if isinstance(price, str) else price / 1000)
    return rates[0], rates[1]
