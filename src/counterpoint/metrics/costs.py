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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from counterpoint.contracts import Context
from counterpoint.graph import Edges
from counterpoint.metrics.outcome import COST_USD, TOKENS_IN, TOKENS_OUT, price_usd
from counterpoint.metrics.repetition import Turn, repeats
from counterpoint.metrics.uptake import reading_graph
from counterpoint.trace import Step, Usage

__all__ = ["Costs", "ModelCalls", "costs", "repeated_shares", "text_tokens"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

CHARACTERS_A_TOKEN = 4
OUTSIDE = ("task", "decision")
"""Kinds of steps that are no agent's."""


@dataclass(frozen=True)
class Costs:
    """Tokens and dollars of one trace, as arrays; it holds no text."""

    agents: tuple[str, ...]
    names: tuple[str, ...]
    """(n,) ids of agent and decision steps."""
    speakers: Indices
    """(n,) index of the agent; -1 for a decision."""
    rounds: Indices
    """(n,)"""
    pairs: Edges
    """(m, 2) transfers between them, row-major."""
    said: Floats
    """(n,) tokens of each text."""
    delivered: Floats
    """(m,) tokens that each transfer put into its reader's prompt."""
    delivered_usd: Floats
    """(m,) what they cost; NaN where that is unknown."""
    calls: ModelCalls
    tokens: int | None
    """All prompt and completion tokens of the run."""
    usd: float | None
    """All dollars; None unless every step with usage can be priced."""

    @property
    def text(self) -> float:
        """Tokens of all texts, once where they were said and once for each delivery: known without usage."""
        return float(self.said.sum() + self.delivered.sum())


@dataclass(frozen=True)
class ModelCalls:
    """What the model calls of steps of any kind used; a step without usage is not among them."""

    names: tuple[str, ...]
    speakers: Indices
    """Index of the agent; -1 for steps that are no agent's: decisions and tasks."""
    rounds: Indices
    tokens: Floats
    """Prompt and completion."""
    usd: Floats
    """NaN where it is unknown."""


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
    agents = tuple(dict.fromkeys(step.agent for step in context.trace.steps if step.kind not in OUTSIDE))
    number = {name: index for index, name in enumerate(agents)}
    calls = _model_calls(context.trace.steps, number)
    usd = dict(zip(calls.names, calls.usd.tolist(), strict=True))
    said = np.array([text_tokens(step) for step in steps], dtype=np.float64)
    delivered = _delivered(steps, pairs, said)
    rates = np.array([_prompt_rate(step, usd.get(step.id, math.nan)) for step in steps])
    priced = len(calls.usd) > 0 and not np.isnan(calls.usd).any()
    return Costs(
        agents,
        tuple(step.id for step in steps),
        _speakers(steps, number),
        np.array([step.round or 0 for step in steps], dtype=np.int64),
        pairs,
        said,
        delivered,
        delivered * rates[pairs[:, 1]],
        calls,
        int(calls.tokens.sum()) if calls.tokens.any() else _run_tokens(context),
        sum(calls.usd.tolist()) if priced else COST_USD.compute(context).value,
    )


def _model_calls(steps: Sequence[Step], number: Mapping[str, int]) -> ModelCalls:
    used = [step for step in steps if step.usage is not None]
    usages = [step.usage for step in used if step.usage is not None]
    prices = [price_usd(usage) for usage in usages]
    return ModelCalls(
        tuple(step.id for step in used),
        _speakers(used, number),
        np.array([step.round or 0 for step in used], dtype=np.int64),
        np.array([(usage.tokens_in or 0) + (usage.tokens_out or 0) for usage in usages], dtype=np.float64),
        np.array([math.nan if isinstance(price, str) else price for price in prices], dtype=np.float64),
    )


def _speakers(steps: Sequence[Step], number: Mapping[str, int]) -> Indices:
    return np.array([-1 if step.kind in OUTSIDE else number[step.agent] for step in steps], dtype=np.int64)


def _run_tokens(context: Context) -> int | None:
    """Tokens of a run that only has totals."""
    totals = [metric.compute(context).value for metric in (TOKENS_IN, TOKENS_OUT)]
    known = [int(total) for total in totals if total is not None]
    return sum(known) if known else None


def _delivered(steps: Sequence[Step], pairs: Edges, said: Floats) -> Floats:
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


def _prompt_rate(step: Step, usd: float) -> float:
    """Dollars a prompt token of this step, NaN where they are unknown."""
    usage = step.usage
    if usage is None or math.isnan(usd) or not usage.model:
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


def repeated_shares(context: Context) -> Floats:
    """Of each transfer of `costs`: the share of its text that its reader had seen, or had said, before."""
    return context.once("repeated_shares", lambda: _repeated_shares(context))


def _repeated_shares(context: Context) -> Floats:
    graph = reading_graph(context)
    pairs = graph.unrolled.edge_array
    heard: list[list[int]] = [[] for _ in graph.steps]
    rows: list[list[int]] = [[] for _ in graph.steps]
    for row, (source, target) in enumerate(zip(*pairs.T.tolist(), strict=True)):
        heard[target].append(source)
        rows[target].append(row)
    turns = [
        Turn(step.agent, tuple(graph.steps[source].text for source in sources), step.text)
        for step, sources in zip(graph.steps, heard, strict=True)
    ]
    shares = np.zeros(len(pairs))
    for turn, place, shown, again in repeats(turns):
        if shown:
            shares[rows[turn][place]] = again / shown
    return shares
