"""OpenInference: ``openinference.span.kind``, ``llm.*``, ``agent.name``, ``graph.node.*``.

Written by the instrumentations of Arize for LangChain, OpenAI Agents, CrewAI, smolagents, Agno and others.
Model calls name no agent: it is that of the span around them, of LangGraph's metadata, or of CrewAI's task.
Lists of messages come as flat keys with indices, or (from Phoenix) as lists of objects.
"""

from __future__ import annotations

import re
from typing import Any

from counterpoint.adapters._messages import (
    Chat,
    ToolCall,
    as_json,
    chats,
    json_or_text,
    role_of,
    whole,
)
from counterpoint.adapters._spans import Reading, Span
from counterpoint.adapters.dialects import crewai, langgraph
from counterpoint.trace import Usage

__all__ = ["read"]

_SPAN_NAME = re.compile(r"(.+?)(?:\.(?:run|arun|kickoff|_execute_core|invoke|ainvoke))?")
_RUN_ID = re.compile(r"[0-9a-f]{16}|[0-9a-f]{32}")
_AGENT_IDS = ("agent.id", "agno.agent.id", "agno.team.id")


def read(span: Span) -> Reading | None:
    """What a span says by these conventions."""
    attributes = span.attributes
    kind = attributes.get("openinference.span.kind")
    reading: Reading | None = None
    if kind == "LLM":
        reading = _model(attributes)
    elif kind == "TOOL":
        reading = crewai.coworker(span) or _tool(span)
    elif kind == "AGENT":
        reading = crewai.task(span) or _agent(span)
    elif kind in ("GUARDRAIL", "EVALUATOR"):
        return Reading("agent", span.name, rule="span name", control=True)
    metadata = attributes.get("metadata")
    if metadata is not None:
        if isinstance(metadata, str):
            metadata = json_or_text(metadata) if "langgraph_" in metadata else None
        given, gave = attributes.get("input.value"), attributes.get("output.value")
        reading = langgraph.placed(reading, metadata, given, gave)
    if reading is None and not span.parent:
        return Reading(input=attributes.get("input.value"), output=attributes.get("output.value"))
    return reading


def _agent(span: Span) -> Reading:
    attributes = span.attributes
    name, rule = attributes.get("agent.name"), "agent.name"
    node = attributes.get("graph.node.id")
    if not name:
        name, rule = attributes.get("graph.node.name") or node, "graph.node.id"
    if not name:
        match = _SPAN_NAME.fullmatch(span.name)
        name, rule = match[1] if match else span.name, "span name"
    identity = next((attributes[key] for key in _AGENT_IDS if attributes.get(key)), "")
    if not identity and node and node != name and not _RUN_ID.fullmatch(str(node)):
        identity = node
    return Reading(
        "agent",
        str(name),
        str(identity),
        rule=rule,
        input=_value(attributes, "input"),
        output=_value(attributes, "output"),
        usage=_usage(attributes),
    )


def _value(attributes: dict[str, Any], side: str) -> Any:
    """Input or output; where it is the arguments of the run's function, the task among them."""
    value = attributes.get(f"{side}.value")
    if side == "input" and isinstance(value, str) and value.startswith('{"task":'):
        given = json_or_text(value)
        if isinstance(given, dict) and isinstance(given.get("task"), str):
            return given["task"]
    return value


def _tool(span: Span) -> Reading:
    attributes = span.attributes
    name = attributes.get("tool.name") or span.name
    arguments = attributes.get("input.value", attributes.get("tool.parameters", ""))
    result = attributes.get("output.value")
    target = ""
    if name.startswith("handoff to "):  # OpenAI Agents: input and output are the two agents' names
        target, arguments, result = str(result or name[11:]), "", None
    return Reading(
        "tool",
        tool=str(name),
        arguments=as_json(arguments),
        result=None if result is None else as_json(result),
        call=str(attributes.get("tool_call.id") or attributes.get("tool.id") or ""),
        target=target,
    )


def _model(attributes: dict[str, Any]) -> Reading:
    shown = _messages(attributes, "llm.input_messages")
    said = _messages(attributes, "llm.output_messages")
    if not shown:
        shown = chats(attributes.get("input.value"), "user")
    if not said:
        said = chats(attributes.get("output.value"), "assistant")
    return Reading("model", shown=shown, said=said, usage=_usage(attributes))


def _usage(attributes: dict[str, Any]) -> Usage | None:
    tokens_in = whole(attributes.get("llm.token_count.prompt"))
    tokens_out = whole(attributes.get("llm.token_count.completion"))
    if tokens_in is None and tokens_out is None:
        return None
    return Usage(
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        tokens_cached=whole(attributes.get("llm.token_count.prompt_details.cache_read")),
        tokens_reasoning=whole(attributes.get("llm.token_count.completion_details.reasoning")),
        cost_usd=attributes.get("llm.cost.total"),
        model=attributes.get("llm.model_name"),
    )


def _messages(attributes: dict[str, Any], key: str) -> list[Chat]:
    """Messages under flat keys ``<key>.<n>.message.<field>``, gaps allowed, or in a list of objects."""
    nested = attributes.get(key)
    if nested is not None:
        return [_chat(_flat(item)) for item in json_or_text(nested) or () if isinstance(item, dict)]
    prefix = f"{key}."
    found: dict[str, dict[str, Any]] = {}
    size = len(prefix)
    for name, value in attributes.items():
        if name.startswith(prefix):
            number, _, rest = name[size:].partition(".")
            if number.isdigit():
                fields = found.get(number)
                if fields is None:
                    fields = found[number] = {}
                fields[rest] = value
    return [_chat(found[number]) for number in sorted(found, key=int)]


def _chat(fields: dict[str, Any]) -> Chat:
    """One message from its flat fields: ``message.role``, ``message.tool_calls.0.tool_call.id``, ..."""
    text = fields.get("message.content")
    if len(fields) == 2 and isinstance(text, str):
        return Chat(text, role_of(fields.get("message.role")))
    parts: dict[int, str] = {}
    calls: dict[int, dict[str, Any]] = {}
    for name, value in fields.items():
        if name.startswith("message.contents."):
            number, _, rest = name[17:].partition(".")
            if rest == "message_content.text" and number.isdigit() and isinstance(value, str):
                parts[int(number)] = value
        elif name.startswith("message.tool_calls."):
            number, _, rest = name[19:].partition(".")
            if number.isdigit():
                calls.setdefault(int(number), {})[rest.removeprefix("tool_call.")] = value
    if not isinstance(text, str):
        text = "\n".join(parts[number] for number in sorted(parts))
    asked = tuple(_call(calls[number]) for number in sorted(calls))
    keys = tuple(call.id for call in asked if call.id)
    answers = str(fields.get("message.tool_call_id") or "")
    name = str(fields.get("message.name") or "")
    return Chat(text, role_of(fields.get("message.role")), keys, name, asked, answers)


def _call(fields: dict[str, Any]) -> ToolCall:
    identity, arguments = fields.get("id"), fields.get("function.arguments")
    return ToolCall(str(identity or ""), str(fields.get("function.name") or ""), as_json(arguments))


def _flat(value: Any) -> dict[str, Any]:
    """Nested objects and lists as one object with dotted keys, as in the flat form."""
    flat: dict[str, Any] = {}
    stack = [("", value)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, dict):
            stack += [(f"{path}.{key}" if path else str(key), inner) for key, inner in item.items()]
        elif isinstance(item, list):
            stack += [(f"{path}.{number}", inner) for number, inner in enumerate(item)]
        elif item is not None:
            flat[path] = item
    return flat
