"""Token counts as frameworks and providers spell them, as one `Usage`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from counterpoint.adapters._messages import whole
from counterpoint.trace import Usage

__all__ = ["run_usage", "usage_of"]

_IN = ("prompt_tokens", "input_tokens", "prompt_token_count", "promptTokenCount", "inputTokens")
_OUT = (
    "completion_tokens",
    "output_tokens",
    "candidates_token_count",
    "candidatesTokenCount",
    "outputTokens",
)
_CACHED = (
    "cached_tokens",
    "cache_read",
    "cache_read_tokens",
    "cache_read_input_tokens",
    "cached_input_tokens",
    "input_tokens_cache_read",
    "cached_content_token_count",
    "cachedContentTokenCount",
    "cached_prompt_tokens",
)
_WRITTEN = ("cache_write_tokens", "cache_creation_input_tokens", "input_tokens_cache_write")
_REASONING = (
    "reasoning_tokens",
    "reasoning",
    "output_reasoning_tokens",
    "thoughts_token_count",
    "thoughtsTokenCount",
)
_TOTAL = ("total_tokens", "total_token_count", "totalTokenCount")
_COST = ("cost_usd", "cost", "total_cost")
_DETAILS = (
    "prompt_tokens_details",
    "input_tokens_details",
    "input_token_details",
    "completion_tokens_details",
    "output_tokens_details",
    "output_token_details",
    "details",
)


def usage_of(record: Any, *, model: Any = None) -> Usage | None:
    """The tokens that ``record`` counts; None where it counts none.

    Some providers leave cached tokens out of the prompt's, or reasoning out of the completion's. Where a
    total is given it tells; else Anthropic's own names (``cache_read_input_tokens``) do.

    >>> usage_of({"input_tokens": 5, "output_tokens": 2, "input_tokens_cache_read": 90, "total_tokens": 97})
    Usage(tokens_in=95, tokens_out=2, tokens_cached=90, tokens_reasoning=None, cost_usd=None, model=None)
    """
    if not isinstance(record, Mapping):
        return None
    tokens_in, tokens_out = _count(record, _IN), _count(record, _OUT)
    if tokens_in is None and tokens_out is None:
        return None
    cached, reasoning = _count(record, _CACHED), _count(record, _REASONING)
    total, written = _count(record, _TOTAL), _count(record, _WRITTEN) or 0
    if total is not None:
        beside = (cached or 0) + written
        missing = total - (tokens_in or 0) - (tokens_out or 0)
        if beside and missing in (beside, beside + (reasoning or 0)):
            tokens_in = (tokens_in or 0) + beside
            missing -= beside
        if reasoning and missing == reasoning:
            tokens_out = (tokens_out or 0) + reasoning
    elif "cache_read_input_tokens" in record or "cache_creation_input_tokens" in record:
        tokens_in = (tokens_in or 0) + (cached or 0) + written
    cost = next((record[key] for key in _COST if isinstance(record.get(key), int | float)), None)
    return Usage(
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        tokens_cached=cached,
        tokens_reasoning=reasoning,
        cost_usd=float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else None,
        model=model if isinstance(model, str) and model else None,
    )


def run_usage(record: Any, *, model: Any = None) -> dict[str, Any]:
    """The label of a trace whose totals are known for the whole run only; empty where they are not.

    >>> run_usage({"prompt_tokens": 5, "completion_tokens": 2})
    {'run_usage': {'tokens_in': 5, 'tokens_out': 2}}
    """
    usage = usage_of(record, model=model)
    return {"run_usage": msgspec.to_builtins(usage)} if usage is not None else {}


def _count(record: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    """The first count under any of ``keys``, in the record or in one of its details."""
    for place in _places(record):
        for key in keys:
            count = whole(place.get(key))
            if count is not None and count >= 0:
                return count
    return None


def _places(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield record
    for key in _DETAILS:
        if isinstance(record.get(key), Mapping):
            yield record[key]
