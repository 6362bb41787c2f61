"""What a run will take, before any of it is paid for: calls, tokens, dollars.

Conventions
-----------
* Calls are those of plays in which every call succeeds. Programs that fail and are asked for again come on
  top.
* Tokens are rough: prompts are written out by plays with a stand-in for the model whose replies have
  `REPLY_TOKENS` tokens (or ``max_tokens``, if that is less), at four characters a token, over the first
  `SAMPLE` questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from counterpoint.contracts import Reply
from counterpoint.engine.jobs import Plan
from counterpoint.metrics.outcome import price_usd
from counterpoint.trace import Usage

__all__ = ["REPLY_TOKENS", "SAMPLE", "Estimate", "estimate"]

REPLY_TOKENS = 275
"""GEMMAS's baseline on GSM8K: 2,469 completion tokens a question in nine calls."""
SAMPLE = 50
_CHARACTERS = 4


@dataclass(frozen=True)
class Estimate:
    """What a run is expected to take."""

    questions: int
    calls: int
    tokens_in: int
    tokens_out: int
    cost_usd: float | None
    unpriced: str = ""
    """Why there is no cost."""


def estimate(plan: Plan) -> Estimate:
    """The estimate for all jobs of the plan; no model is asked."""
    limit = plan.model.get("max_tokens")
    reply_tokens = min(REPLY_TOKENS, int(limit)) if limit else REPLY_TOKENS
    calls = tokens_in = 0

    def stand_in(messages: Sequence[Mapping[str, Any]], /) -> Reply:
        nonlocal calls, tokens_in
        calls += 1
        tokens_in += sum(len(str(message["content"])) for message in messages) // _CHARACTERS
        return Reply("word" * (reply_tokens - 5) + "\nThe answer is 7")

    sample = list(islice(plan.jobs, SAMPLE))
    for job in sample:
        job.play(stand_in)
    scale = len(plan.jobs) / len(sample) if sample else 0.0
    calls, tokens_in = round(calls * scale), round(tokens_in * scale)
    tokens_out = calls * reply_tokens
    price = price_usd(Usage(tokens_in, tokens_out, model=str(plan.model.get("model", "")) or None))
    if isinstance(price, str):
        return Estimate(len(plan.jobs), calls, tokens_in, tokens_out, None, price)
    return Estimate(len(plan.jobs), calls, tokens_in, tokens_out, price)
