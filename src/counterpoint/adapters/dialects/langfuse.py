"""Langfuse: ``langfuse.observation.*`` on the spans of its SDK, and its API's observations as they are.

A decorated function gives every agent the span name of the function; LangGraph's node is in the metadata
there, each field an attribute of its own and each value JSON text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from counterpoint.adapters._messages import as_json, chats, json_or_text, whole
from counterpoint.adapters._spans import Reading, Span
from counterpoint.adapters.dialects import langgraph
from counterpoint.trace import Usage

__all__ = ["read"]

_METADATA = "langfuse.observation.metadata."


def read(span: Span) -> Reading | None:
    """What an observation says."""
    attributes = span.attributes
    kind = str(attributes.get("langfuse.observation.type", "span")).lower()
    given = attributes.get("langfuse.observation.input")
    gave = attributes.get("langfuse.observation.output")
    reading: Reading | None = None
    if kind == "generation":
        reading = Reading(
            "model", shown=chats(given, "user"), said=chats(gave, "assistant"), usage=_usage(attributes)
        )
    elif kind == "agent":
        name = attributes.get("gen_ai.agent.name")
        rule = "gen_ai.agent.name" if name else "observation type agent"
        reading = Reading("agent", str(name or span.name), rule=rule, input=given, output=gave)
    elif kind == "tool":
        result = None if gave is None else as_json(gave)
        reading = Reading("tool", tool=span.name, arguments=as_json(given), result=result)
    elif kind in ("guardrail", "evaluator"):
        return Reading("agent", span.name, rule="span name", control=True)
    reading = langgraph.placed(reading, _metadata(attributes), given, gave)
    if reading is None and not span.parent:
        return Reading(input=given, output=gave)
    return reading


def _metadata(attributes: dict[str, Any]) -> dict[str, Any]:
    whole_object = json_or_text(attributes.get("langfuse.observation.metadata"))
    metadata = dict(whole_object) if isinstance(whole_object, dict) else {}
    for key in langgraph.KEYS:
        value = attributes.get(_METADATA + key)
        if isinstance(value, str):
            value = value.strip('"')
        if value is not None:
            metadata[key] = value
    return metadata


def _usage(attributes: dict[str, Any]) -> Usage | None:
    details = json_or_text(attributes.get("langfuse.observation.usage_details"))
    if not isinstance(details, Mapping):
        return None
    tokens_in, tokens_out = whole(details.get("input")), whole(details.get("output"))
    if tokens_in is None and tokens_out is None:
        return None
    cost = json_or_text(attributes.get("langfuse.observation.cost_details"))
    total = cost.get("total") if isinstance(cost, Mapping) else None
    model = attributes.get("langfuse.observation.model.name")
    return Usage(
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        tokens_cached=whole(details.get("input_cache_read", details.get("cache_read_input_tokens"))),
        tokens_reasoning=whole(details.get("output_reasoning", details.get("output_reasoning_tokens"))),
        cost_usd=float(total) if isinstance(total, int | float) else None,
        model=None if model is None else str(model),
    )
