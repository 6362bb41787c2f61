"""Chat messages in whatever JSON shape a framework wrote them, as one kind of object.

Shapes that `chats` understands, alone or in lists, as objects or as JSON text::

    {"role": "user", "content": "Hi"}                                     OpenAI, Anthropic, Bedrock blocks
    {"role": "assistant", "parts": [{"type": "text", "content": "Hi"}]}   gen_ai conventions, Google
    {"type": "ai", "data": {"content": "Hi", "id": "m1"}}                 LangChain, dumped
    {"lc": 1, "id": ["...", "AIMessage"], "kwargs": {"content": "Hi"}}    LangChain, serialized
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}    OpenAI responses
    {"messages": [...]}, {"choices": [{"message": ...}]}, {"generations": [[{"message": ...}]]}

Roles are brought to user, assistant, system and tool. Reasoning, images and other media have no text here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from counterpoint.adapters._transfers import Message

__all__ = [
    "Chat",
    "ToolCall",
    "as_json",
    "as_text",
    "chats",
    "json_or_text",
    "role_of",
    "string_values",
    "tool_call",
    "whole",
]


class ToolCall(Struct, gc=False):
    """A tool call that a model asked for."""

    id: str
    name: str
    arguments: str = ""
    """JSON text."""


class Chat(Message, gc=False):
    """A chat message: text, role and keys as in Message; ids of its tool calls are among its keys."""

    name: str = ""
    """Author, where the format says it."""
    calls: tuple[ToolCall, ...] = ()
    answers: str = ""
    """Id of the tool call that this message is the result of."""


ROLES = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "tool": "tool",
    "ai": "assistant",
    "aimessage": "assistant",
    "aimessagechunk": "assistant",
    "model": "assistant",
    "human": "user",
    "humanmessage": "user",
    "systemmessage": "system",
    "developer": "system",
    "toolmessage": "tool",
    "function": "tool",
    "functionmessage": "tool",
    "tool-call": "assistant",
    "tool-response": "tool",
}


def role_of(role: Any) -> str:
    """The role in lower case, synonyms brought together."""
    if not isinstance(role, str):
        return ""
    return ROLES.get(role) or ROLES.get(role.lower()) or role.lower()


def json_or_text(value: Any) -> Any:
    """The object that a JSON text holds; any other value as it is."""
    if isinstance(value, str) and value[:1] in "{[" and value:
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return value
    return value


def as_json(value: Any) -> str:
    """``value`` as JSON text; a text is taken for JSON already."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def whole(value: Any) -> int | None:
    """A count, from a number or the text of one; None where it is neither.

    >>> whole("25"), whole(25.0), whole(True), whole("many")
    (25, 25, None, None)
    """
    if type(value) is int or value is None:
        return value
    if isinstance(value, str):
        value = int(value) if value.strip().isdecimal() else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value)


def chats(value: Any, role: str = "") -> list[Chat]:
    """All messages in ``value``, in order; ``role`` is for those that name none."""
    try:
        return _chats(value, role)
    except RecursionError:  # nested deeper than any message
        return []


def _chats(value: Any, role: str) -> list[Chat]:
    value = json_or_text(value)
    if isinstance(value, str):
        return [Chat(value, role)] if value.strip() else []
    if isinstance(value, list):
        found: list[Chat] = []
        for item in value:
            plain = _plain_text(item) if type(item) is dict else None
            if plain is not None:
                found.append(Chat(plain, role_of(item["role"])))
            else:
                found += _chats(item, role)
        return found
    if not isinstance(value, dict):
        return []
    for key in ("messages", "choices", "generations"):
        if isinstance(value.get(key), list):
            return [chat for item in value[key] for chat in _chats(item, role)]
    return _message(value, role)


def _message(item: dict[str, Any], role: str) -> list[Chat]:
    kwargs, data, message = item.get("kwargs"), item.get("data"), item.get("message")
    if isinstance(kwargs, dict) and "id" in item:
        names = item["id"]
        own = kwargs.get("type") or (names[-1] if isinstance(names, list) and names else "")
        return _message({**kwargs, "type": own}, role)
    if isinstance(data, dict) and "type" in item:
        return _message({"type": item["type"], **data}, role)
    if message is not None:
        return _chats(message, role_of(item.get("role")) or role or "assistant")
    kind = item.get("type")
    if isinstance(kind, str) and kind in _ITEMS:
        made: list[Chat] = _ITEMS[kind](item)
        return made
    own_role = role_of(item.get("role")) or (role_of(kind) if kind not in (None, "message") else "") or role
    return _from_content(item, own_role)


def _plain_text(item: dict[str, Any]) -> str | None:
    """The text of a message that is nothing but a role and a text, as most are; None for any other."""
    if len(item) != 2 or "role" not in item:
        return None
    parts = item.get("parts")
    if type(parts) is list:
        part = parts[0] if len(parts) == 1 else None
        text = part.get("content") if type(part) is dict and part.get("type") == "text" else None
    else:
        text = item.get("content")
    return text if type(text) is str and text and text[0] not in "[{" else None


def _from_content(item: dict[str, Any], role: str) -> list[Chat]:
    content = item.get("content", item.get("parts", item.get("text")))
    parts = _Parts()
    parts.add(json_or_text(content) if isinstance(content, str) and content[:2] in ("[{", "[]") else content)
    extra = item.get("additional_kwargs")
    calls = item.get("tool_calls") or (extra.get("tool_calls") if isinstance(extra, dict) else None) or ()
    if isinstance(calls, list | tuple):
        parts.calls += [call for call in map(tool_call, calls) if call is not None]
    answers = item.get("tool_call_id") or ""
    if role == "tool" and not answers and item.get("id") and not item.get("tool_calls"):
        answers = item["id"]
    text = "\n".join(parts.texts)
    found = []
    identity = item.get("id")
    keys = [identity] if isinstance(identity, str) and identity and not answers else []
    keys += [call.id for call in parts.calls if call.id]
    if text or parts.calls or (keys and role):
        found.append(
            Chat(text, role, tuple(keys), str(item.get("name") or ""), tuple(parts.calls), str(answers))
        )
    return found + [Chat(text, "tool", answers=call) for call, text in parts.results]


class _Parts:
    """Text, tool calls and tool results out of a content of blocks."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: list[ToolCall] = []
        self.results: list[tuple[str, str]] = []

    def add(self, content: Any) -> None:
        if isinstance(content, str):
            self.texts.append(content)
        elif isinstance(content, list):
            for block in content:
                self.add(block)
        elif isinstance(content, dict):
            self._add_block(content)

    def _add_block(self, block: dict[str, Any]) -> None:
        kind = block.get("type")
        if kind in ("tool_call", "tool_use", "function_call", "server_tool_call"):
            call = tool_call(block)
            if call is not None:
                self.calls.append(call)
        elif kind in ("tool_call_response", "tool_result", "server_tool_call_response"):
            result = block.get("response", block.get("result", block.get("content")))
            self.results.append((str(block.get("id") or block.get("tool_use_id") or ""), as_text(result)))
        elif kind in ("reasoning", "thinking", "redacted_thinking"):
            return
        elif isinstance(use := block.get("toolUse", block.get("function_call")), dict):
            call = tool_call(use)
            if call is not None:
                self.calls.append(call)
        elif isinstance(given := block.get("toolResult", block.get("function_response")), dict):
            result = given.get("content", given.get("response"))
            self.results.append((str(given.get("toolUseId") or given.get("id") or ""), as_text(result)))
        else:
            text = block.get("text", block.get("content") if kind in (None, "text", "output_text") else None)
            if isinstance(text, str):
                self.texts.append(text)


def tool_call(item: Any) -> ToolCall | None:
    """A tool call in any of the shapes; None for what is no object."""
    if not isinstance(item, dict):
        return None
    function = item.get("function")
    inner = function if isinstance(function, dict) else item
    arguments = inner.get("arguments", inner.get("args", inner.get("input")))
    identity = (
        item.get("id") or item.get("call_id") or item.get("toolUseId") or item.get("tool_call_id") or ""
    )
    name = inner.get("name") or inner.get("tool_name") or (function if isinstance(function, str) else "")
    return ToolCall(str(identity), str(name), as_json(arguments))


def _function_call(item: dict[str, Any]) -> list[Chat]:
    call = tool_call({**item, "id": item.get("call_id") or item.get("id")})
    assert call is not None  # an object always gives one
    return [Chat("", "assistant", (call.id,) if call.id else (), calls=(call,))]


def _function_call_output(item: dict[str, Any]) -> list[Chat]:
    return [Chat(as_text(item.get("output")), "tool", answers=str(item.get("call_id") or ""))]


_ITEMS: Mapping[Any, Any] = {
    "function_call": _function_call,
    "function_call_output": _function_call_output,
    "reasoning": lambda item: [],
}


def as_text(value: Any) -> str:
    """The text of an output of any shape: its messages' texts, else its text values, one a line.

    >>> as_text({"messages": [{"role": "assistant", "content": "Done."}]}), as_text({"raw": "x", "n": 1})
    ('Done.', 'x')
    """
    value = json_or_text(value)
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and isinstance(value.get("raw"), str):
        return str(value["raw"])
    found = [chat.text for chat in chats(value) if chat.text]
    return "\n".join(found or string_values(value))


def string_values(value: Any) -> list[str]:
    """Every text in a JSON value, in order; keys are left out.

    >>> string_values({"task": "Count.", "options": {"unit": "km", "n": 3}})
    ['Count.', 'km']
    """
    found = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            found += [item] if item.strip() else []
        elif isinstance(item, Mapping):
            waiting += reversed([*item.values()])
        elif isinstance(item, Iterable):
            waiting += reversed([*item])
    return found
