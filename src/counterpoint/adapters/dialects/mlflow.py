"""MLflow: ``mlflow.spanType``, ``mlflow.spanInputs``, ``mlflow.spanOutputs``; every value is JSON text."""

from __future__ import annotations

from typing import Any

from counterpoint.adapters._messages import as_json, chats, json_or_text, whole
from counterpoint.adapters._spans import Reading, Span
from counterpoint.adapters.dialects import langgraph
from counterpoint.trace import Usage

__all__ = ["read"]


def read(span: Span) -> Reading | None:
    """What a span says by these conventions."""
    attributes = span.attributes
    kind = plain(attributes.get("mlflow.spanType"))
    given, gave = plain(attributes.get("mlflow.spanInputs")), plain(attributes.get("mlflow.spanOutputs"))
    reading: Reading | None = None
    if kind in ("CHAT_MODEL", "LLM"):
        reading = Reading(
            "model", shown=chats(given, "user"), said=chats(gave, "assistant"), usage=_usage(attributes)
        )
    elif kind == "AGENT":
        reading = Reading("agent", span.name, rule="mlflow.spanType", input=given, output=gave)
    elif kind == "TOOL":
        result = None if gave is None else as_json(gave)
        reading = Reading("tool", tool=span.name, arguments=as_json(given), result=result)
    reading = langgraph.placed(reading, plain(attributes.get("metadata")), given, gave)
    if reading is None and not span.parent:
        return Reading(input=given, output=gave)
    return reading


def plain(value: Any) -> Any:
    """The value behind JSON text: ``'"AGENT"'`` is AGENT."""
    if isinstance(value, str) and value[:1] == '"' == value[-1:] and len(value) > 1:
        return json_or_text(f"[{value}]")[0]
    return json_or_text(value)


def _usage(attributes: dict[str, Any]) -> Usage | None:
    tokens = plain(attributes.get("mlflow.chat.tokenUsage"))
    if not isinstance(tokens, dict):
        return None
    model = plain(attributes.get("mlflow.llm.model"))
    return Usage(
        tokens_in=whole(tokens.get("input_tokens")),
        tokens_out=whole(tokens.get("output_tokens")),
        tokens_cached=whole(tokens.get("cache_read_input_tokens")),
        model=model if isinstance(model, str) else None,
    )
