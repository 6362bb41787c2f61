"""AG2 messages: the tool calls and results in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from counterpoint.adapters._chat_log import content_text, json_text, settle
from counterpoint.adapters._transfers import Turn
from counterpoint.trace import Call

__all__ = ["answer_calls", "calls_of"]


def calls_of(message: dict[str, Any], index: int) -> Iterator[Call]:
    """The tool calls that a message asks for; an older form has one, without an id."""
    listed, single = message.get("tool_calls"), message.get("function_call")
    for call in listed if isinstance(listed, list) else [{"function": single}] if single else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            name, arguments = str(function.get("name")), json_text(function.get("arguments", ""))
            yield Call(str(call.get("id") or f"{index}-{name}"), name, arguments)


def answer_calls(message: dict[str, Any], turns: Sequence[Turn]) -> Turn | None:
    """Puts results of tools to the latest turn with open calls, and gives it; None where there are none."""
    responses = message.get("tool_responses")
    if not isinstance(responses, list) and message.get("role") not in ("tool", "function"):
        return None
    working = next((turn for turn in reversed(turns) if turn.kind != "task"), None)
    if working is None or all(call.result is not None for call in working.calls):
        return None
    for response in responses if isinstance(responses, list) and responses else [message]:
        if isinstance(response, dict):
            call, tool = str(response.get("tool_call_id") or ""), str(response.get("name") or "")
            settle(working.calls, call, content_text(response.get("content")), tool=tool)
    return working
