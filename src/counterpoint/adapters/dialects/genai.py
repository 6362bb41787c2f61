"""OpenTelemetry's ``gen_ai.*``, in the three generations that are in use, and what frameworks add to it.

* Messages in attributes: ``gen_ai.input.messages``, ``gen_ai.output.messages``.
* Messages as span events, one each (``gen_ai.user.message``, ``gen_ai.choice``) or one for the whole call;
  Pydantic AI 0.8 has the events as JSON in the attributes ``events`` and ``all_messages_events``.
* Messages under indexed keys (``gen_ai.prompt.0.content``), by OpenLLMetry.

What a span did is its ``gen_ai.operation.name``; older emitters are known by ``agent_name``,
``gen_ai.tool.name``, ``llm.request.type`` or ``traceloop.span.kind``. Messages that were sent as *log*
events are not in a file of spans.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from counterpoint.adapters._messages import Chat, as_json, chats, json_or_text, whole
from counterpoint.adapters._spans import Reading, Span
from counterpoint.adapters.dialects import langgraph
from counterpoint.trace import Usage

__all__ = ["read"]

_OPERATIONS = {
    "chat": "model",
    "generate_content": "model",
    "text_completion": "model",
    "completion": "model",
    "responses": "model",
    "invoke_agent": "agent",
    "execute_tool": "tool",
}
_NO_MODEL = ("invoke_", "execute_", "create_", "retrieval", "embeddings")
"""How operations begin that hold model calls at most, whatever their results."""
_METADATA = ("", "langsmith.metadata.", "traceloop.association.properties.")
"""What stands before the keys of LangGraph's metadata, where each is an attribute."""
_KINDS = {"agent": "agent", "tool": "tool", "workflow": "other", "task": "other"}
_REQUESTS = {"chat": "model", "completion": "model", "llm": "model", "tool": "tool"}
_RESULTS = (
    "gen_ai.output.messages",
    "final_result",
    "traceloop.entity.output",
    "pydantic_ai.all_messages",
    "all_messages_events",
)
"""Where an agent's result stands; the last two hold the whole conversation, with the result at its end."""


def read(span: Span) -> Reading | None:
    """What a span says by these conventions; None where it follows none of them."""
    attributes = span.attributes
    role = _role(attributes)
    reading: Reading | None = None
    if role == "model":
        reading = _model(span)
    elif role == "agent":
        reading = _agent(span)
    elif role == "tool":
        reading = _tool(span)
    for prefix in _METADATA:
        if f"{prefix}langgraph_node" in attributes:
            metadata = {key: attributes.get(f"{prefix}{key}") for key in langgraph.KEYS}
            reading = langgraph.placed(reading, metadata, None, None)
    if "metadata" in attributes:
        reading = langgraph.placed(reading, json_or_text(attributes["metadata"]), None, None)
    if reading is None and not span.parent and (role or span.events or _is_any(attributes)):
        return Reading(shown=_shown(span))
    return reading


def _role(attributes: dict[str, Any]) -> str:
    operation = attributes.get("gen_ai.operation.name")
    if operation is not None:
        known = _OPERATIONS.get(operation) if isinstance(operation, str) else None
        # An operation of a name that is not known yet (``plan``) and has a reply is a model's.
        return known or ("model" if _replied(str(operation), attributes) else "other")
    if "agent_name" in attributes:
        return "agent"
    if "gen_ai.tool.name" in attributes:
        return "tool"
    kind = attributes.get("traceloop.span.kind")
    if isinstance(kind, str):
        return _KINDS.get(kind, "other")
    request = attributes.get("llm.request.type", attributes.get("langsmith.span.kind"))
    if isinstance(request, str):
        return _REQUESTS.get(request, "other")
    # A span that used tokens of a model, in the words of an emitter older than the operation name.
    if "gen_ai.request.model" in attributes and "gen_ai.agent.name" not in attributes:
        return "model"
    return ""


def _replied(operation: str, attributes: dict[str, Any]) -> bool:
    given = attributes.get("gen_ai.output.messages")
    return given is not None and not operation.startswith(_NO_MODEL) and bool(chats(given, "assistant"))


def _is_any(attributes: dict[str, Any]) -> bool:
    return any(key.startswith("gen_ai.") for key in attributes)


def _model(span: Span) -> Reading:
    attributes = span.attributes
    name = attributes.get("gen_ai.agent.name") or ""
    return Reading(
        "model",
        str(name),
        str(attributes.get("gen_ai.agent.id") or "") if name else "",
        rule="gen_ai.agent.name" if name else "",
        shown=_shown(span),
        said=_said(span),
        usage=usage(attributes),
    )


def _agent(span: Span) -> Reading:
    attributes = span.attributes
    rule = "gen_ai.agent.name"
    name = attributes.get(rule)
    if not name:
        rule = "agent_name" if attributes.get("agent_name") else "traceloop.entity.name"
        name = attributes.get(rule)
    if not name:
        rule, name = "span name", span.name.removeprefix("invoke_agent ")
        if span.name.strip() == "invoke_agent" and attributes.get("gen_ai.agent.id"):
            rule = "gen_ai.agent.id"
            name = attributes[rule]
    told = bool(span.events) or "gen_ai.prompt.0.role" in attributes
    return Reading(
        "agent",
        str(name),
        str(attributes.get("gen_ai.agent.id") or ""),
        rule=rule,
        shown=_shown(span) if told else (),
        said=_said(span) if told else (),
        input=_first(attributes, "gen_ai.input.messages", "traceloop.entity.input"),
        output=_first(attributes, *_RESULTS),
        caller=str(attributes.get("gen_ai.caller.name") or ""),
        usage=usage(attributes),
    )


def _tool(span: Span) -> Reading:
    attributes = span.attributes
    name = attributes.get("gen_ai.tool.name") or attributes.get("traceloop.entity.name")
    arguments = _first(attributes, "gen_ai.tool.call.arguments", "tool_arguments", "traceloop.entity.input")
    result = _first(attributes, "gen_ai.tool.call.result", "tool_response", "traceloop.entity.output")
    for event, fields in span.events:
        if event == "gen_ai.tool.message" and arguments is None:
            arguments = fields.get("content")
        elif event == "gen_ai.choice" and result is None:
            result = fields.get("message")
    return Reading(
        "tool",
        str(attributes.get("gen_ai.agent.name") or ""),
        rule="gen_ai.agent.name",
        tool=str(name or span.name.removeprefix("execute_tool ")),
        arguments=as_json(arguments),
        result=None if result is None else as_json(result),
        call=str(attributes.get("gen_ai.tool.call.id") or ""),
        target=str(attributes.get("gen_ai.transfer.target.name") or ""),
    )


def _first(attributes: dict[str, Any], *keys: str) -> Any:
    for key in keys:
        value = attributes.get(key)
        if value is not None:
            return value
    return None


def usage(attributes: dict[str, Any]) -> Usage | None:
    """Tokens under the new names, else the old ones; never both."""
    given = _first(attributes, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
    made = _first(attributes, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
    if given is None and made is None:
        return None
    cached = _first(
        attributes, "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"
    )
    reasoning = _first(
        attributes, "gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.details.reasoning_tokens"
    )
    model = _first(attributes, "gen_ai.response.model", "gen_ai.request.model")
    cost = _first(attributes, "operation.cost", "gen_ai.usage.cost")
    return Usage(
        tokens_in=whole(given),
        tokens_out=whole(made),
        tokens_cached=whole(cached),
        tokens_reasoning=whole(reasoning),
        cost_usd=float(cost) if isinstance(cost, int | float) else None,
        model=None if model is None else str(model),
    )


# --- messages ------------------------------------------------------------------------------------


def _shown(span: Span) -> list[Chat]:
    attributes = span.attributes
    given = attributes.get("gen_ai.input.messages")
    if given is not None:
        instructions = attributes.get("gen_ai.system_instructions")
        return (chats(instructions, "system") if instructions else []) + chats(given, "user")
    found = [
        chat for event, fields in _events(span) if event != "gen_ai.choice" for chat in _told(event, fields)
    ]
    if found:
        return found
    if "gen_ai.prompt" in attributes:
        return chats(attributes["gen_ai.prompt"], "user")
    return _indexed(attributes, "gen_ai.prompt.")


def _said(span: Span) -> list[Chat]:
    attributes = span.attributes
    given = attributes.get("gen_ai.output.messages")
    if given is not None:
        return chats(given, "assistant")
    found = [chat for event, fields in _events(span) for chat in _choice(event, fields)]
    if found:
        return found
    if "gen_ai.completion" in attributes:
        return chats(attributes["gen_ai.completion"], "assistant")
    return _indexed(attributes, "gen_ai.completion.")


_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}


def _events(span: Span) -> Iterable[tuple[str, dict[str, Any]]]:
    """Message events of the span, from its events or from the attribute that holds them as JSON."""
    yield from span.events
    listed = span.attributes.get("events")
    if listed is not None:
        for fields in json_or_text(listed) or ():
            if isinstance(fields, dict):
                yield str(fields.get("event.name") or ""), fields


def _told(event: str, fields: dict[str, Any]) -> list[Chat]:
    role = _ROLES.get(event)
    if role is not None:
        body = json_or_text(fields.get("body"))
        return chats({**(body if isinstance(body, dict) else fields), "role": fields.get("role") or role})
    if event in ("gen_ai.client.inference.operation.details", "gen_ai.content.prompt"):
        instructions = chats(fields.get("gen_ai.system_instructions"), "system")
        return instructions + chats(_first(fields, "gen_ai.input.messages", "gen_ai.prompt"), "user")
    return []


def _choice(event: str, fields: dict[str, Any]) -> list[Chat]:
    """A reply: the message is an object, a text, or blocks as JSON text."""
    if event != "gen_ai.choice":
        details = event in ("gen_ai.client.inference.operation.details", "gen_ai.content.completion")
        given = _first(fields, "gen_ai.output.messages", "gen_ai.completion") if details else None
        return chats(given, "assistant")
    body = json_or_text(fields.get("body"))
    message = json_or_text((body if isinstance(body, dict) else fields).get("message"))
    if isinstance(message, list):
        message = {"role": "assistant", "content": message}
    return chats(message, "assistant")


def _indexed(attributes: dict[str, Any], prefix: str) -> list[Chat]:
    """Messages under ``<prefix><n>.role``, ``.content``, ``.tool_calls.<k>.name``; gaps allowed."""
    found: dict[int, dict[str, Any]] = {}
    calls: dict[int, dict[int, dict[str, Any]]] = {}
    size = len(prefix)
    for name, value in attributes.items():
        if not name.startswith(prefix):
            continue
        number, _, rest = name[size:].partition(".")
        if not number.isdigit():
            continue
        if rest.startswith("tool_calls."):
            call, _, field = rest[11:].partition(".")
            if call.isdigit():
                calls.setdefault(int(number), {}).setdefault(int(call), {})[field] = value
        else:
            found.setdefault(int(number), {})[rest] = value
    for place, asked in calls.items():
        found.setdefault(place, {})["tool_calls"] = [asked[call] for call in sorted(asked)]
    role = "assistant" if "completion" in prefix else "user"
    return [chat for place in sorted(found) for chat in chats({"content": "", **found[place]}, role)]
