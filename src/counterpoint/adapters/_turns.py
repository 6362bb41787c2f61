"""Scopes of a span tree become turns: split at calls of agents, put in order, with texts and tool calls.

How a turn is split (R6)
------------------------
A scope's model calls and the scopes inside it are laid out in time. Where a model call follows the end of
an inner scope, a new part begins: what was said before called the inner agent, what follows heard its
result. Inner scopes that run side by side share one split. A scope without model calls (nobody instrumented
them) is split around every inner scope.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from counterpoint.adapters._messages import Chat, ToolCall, json_or_text, string_values
from counterpoint.adapters._spans import Reading, Scope, Tree, prompt, results
from counterpoint.adapters._transfers import Message, Turn, total_usage
from counterpoint.trace import Call, Kind, Usage

__all__ = ["Part", "fold", "handover", "parts_in_order", "turn_of"]


@dataclass(slots=True, eq=False)
class Part:
    """A scope, or what of it lies before, between or after calls of other agents."""

    scope: Scope
    number: int = 1
    last: bool = False
    start: int = 0
    models: list[int] = field(default_factory=list)
    tools: list[int] = field(default_factory=list)
    called: list[Scope] = field(default_factory=list)
    """Inner scopes that begin when this part ends."""
    returned: list[Scope] = field(default_factory=list)
    """Inner scopes that ended before this part began."""
    calls: dict[int, ToolCall] = field(default_factory=dict)
    """The tool call, where there is one, behind each inner scope of `called`, by place."""


def parts_in_order(tree: Tree, readings: Sequence[Reading | None], scopes: Sequence[Scope]) -> list[Part]:
    """All parts of all scopes: each after what it heard by call or return, else by start and tree order."""
    parts = [part for scope in scopes for part in _split(scope, tree, readings)]
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for place, part in enumerate(parts):
        first.setdefault(id(part.scope), place)
        last[id(part.scope)] = place
    after: dict[int, list[int]] = defaultdict(list)
    waits = [0] * len(parts)
    for place, part in enumerate(parts):
        before = [place - 1] if part.number > 1 else []
        before += [last[id(scope)] for scope in part.returned]
        caller = part.scope.parent
        if part.number == 1 and caller is not None:
            before += [
                at for at in range(first[id(caller)], last[id(caller)] + 1) if part.scope in parts[at].called
            ]
        for at in before:
            after[at].append(place)
        waits[place] = len(before)
    ready = [(part.start, place) for place, part in enumerate(parts) if not waits[place]]
    heapq.heapify(ready)
    order = []
    while ready:
        _, place = heapq.heappop(ready)
        order.append(parts[place])
        for at in after[place]:
            waits[at] -= 1
            if not waits[at]:
                heapq.heappush(ready, (parts[at].start, at))
    return order


def _split(scope: Scope, tree: Tree, readings: Sequence[Reading | None]) -> list[Part]:
    inner = sorted(scope.children, key=lambda child: (tree.spans[child.first].start, child.first))
    if not inner:
        parts = [Part(scope, models=scope.models, tools=scope.tools)]
    elif scope.models:
        parts = _split_at_models(scope, inner, tree)
    else:
        parts = _split_at_calls(scope, inner, tree)
    for number, part in enumerate(parts, 1):
        part.number = number
        part.last = number == len(parts)
        if part.models and (number > 1 or scope.first > part.models[0]):
            part.start = tree.spans[part.models[0]].start
        if number == 1 or not part.start:
            part.start = max([tree.spans[scope.first].start, *(_end(child, tree) for child in part.returned)])
    _share_tools(scope, parts, tree)
    for part in parts:
        _match_calls(part, readings)
    return parts


def _split_at_models(scope: Scope, inner: Sequence[Scope], tree: Tree) -> list[Part]:
    spans = tree.spans
    models = sorted(scope.models, key=lambda at: (spans[at].start, at))
    parts = [Part(scope)]
    waiting = list(inner)
    running: list[Scope] = []
    for at in models:
        start = spans[at].start
        while waiting and spans[waiting[0].first].start < start:
            running.append(waiting[0])
            parts[-1].called.append(waiting.pop(0))
        ended = [child for child in running if spans[child.first].end and _end(child, tree) <= start]
        if ended:
            running = [child for child in running if child not in ended]
            if parts[-1].models:
                parts.append(Part(scope))
            parts[-1].returned += ended
        parts[-1].models.append(at)
    parts[-1].called += waiting
    if len(parts) > 1 or parts[0].models:
        for part in parts:  # what ran before anything was said was called by no one
            part.called = [child for child in part.called if child not in part.returned]
    return parts


def _split_at_calls(scope: Scope, inner: Sequence[Scope], tree: Tree) -> list[Part]:
    parts = [Part(scope)]
    reach = 0
    for child in inner:
        if parts[-1].called and tree.spans[child.first].start >= reach:
            parts.append(Part(scope, returned=parts[-1].called))
        parts[-1].called.append(child)
        reach = max(reach, _end(child, tree))
    if tree.spans[scope.first].end:
        parts.append(Part(scope, returned=parts[-1].called))
    return parts


def _end(scope: Scope, tree: Tree) -> int:
    return tree.spans[scope.first].end


def _share_tools(scope: Scope, parts: list[Part], tree: Tree) -> None:
    if len(parts) == 1:
        parts[0].tools = scope.tools
        return
    for at in scope.tools:
        home = parts[0]
        for part in parts[1:]:
            if part.start <= tree.spans[at].start:
                home = part
        home.tools.append(at)


# --- tool calls behind inner scopes --------------------------------------------------------------


def _match_calls(part: Part, readings: Sequence[Reading | None]) -> None:
    """Finds the tool call that each called scope answers: by call id, by name, by who is named in it."""
    if not part.called:
        return
    asked = [call for at in part.models for chat in _said(readings[at]) for call in chat.calls]
    for place, scope in enumerate(part.called):
        behind = scope.tool if scope.tool is not None else scope.first
        tool = readings[behind]
        if tool is not None and (tool.role == "tool" or tool.called):
            ids = [call for call in asked if call.id and call.id == tool.call]
            names = [call for call in asked if fold(call.name) == fold(tool.tool)]
            match = ids or names or [ToolCall(tool.call, tool.tool, tool.arguments)]
        else:
            match = [call for call in asked if fold(call.name) == fold(scope.agent)]
            match = match or [call for call in asked if _names_agent(call, scope, readings)]
            if not match and len(asked) == len(part.called):
                match = [asked[place]]
        taken = part.calls.values()
        match = [call for call in match if call not in taken] or match
        if match:
            part.calls[place] = match[0]


def _names_agent(call: ToolCall, scope: Scope, readings: Sequence[Reading | None]) -> bool:
    reading = readings[scope.first]
    names = {fold(scope.agent), fold(reading.agent_id if reading else "")} - {""}
    return any(fold(value) in names for value in string_values(json_or_text(call.arguments)))


def _said(reading: Reading | None) -> Sequence[Chat]:
    return reading.said if reading is not None else ()


def fold(name: str) -> str:
    """A name as letters and digits in lower case: ``Refund Agent`` and ``refund_agent`` are one."""
    return "".join(char for char in name.lower() if char.isalnum())


_HAND_OVER = re.compile(r"(?:transfer|hand[ _-]?off|hand[ _-]?over)[ _-](?:back[ _-])?to[ _-](.+)", re.I)
_HAND_OVER_TO = {"transfertoagent", "handofftoagent", "handoff", "transfer", "transferagent"}
_TARGET_KEYS = ("agent_name", "agent", "target", "to_agent", "target_agent", "name", "recipient")


def handover(tool: str, arguments: str) -> str:
    """The agent that a tool call hands over to, as named there; empty if it is no hand-over.

    >>> handover("transfer_to_refund_agent", "{}"), handover("handoff_to_agent", '{"agent_name": "critic"}')
    ('refund_agent', 'critic')
    """
    if fold(tool) in _HAND_OVER_TO:
        given = json_or_text(arguments)
        if isinstance(given, dict):
            return next((str(given[key]) for key in _TARGET_KEYS if isinstance(given.get(key), str)), "")
        return ""
    match = _HAND_OVER.fullmatch(tool)
    return match[1] if match else ""


# --- turns ---------------------------------------------------------------------------------------


def turn_of(part: Part, tree: Tree, readings: Sequence[Reading | None], agent: str, kind: Kind) -> Turn:
    """The turn that a part is, without what it heard."""
    scope, spans = part.scope, tree.spans
    opener = spans[scope.first]
    models = [_filled(at, scope, tree, readings) for at in part.models]
    said = [chat for reading in models for chat in reading.said]
    agents = [reading for reading in _agents(scope, readings) if not (scope.models and reading.state)]
    result = [chat for reading in agents for chat in results(reading)] if part.last else []
    ended = max((spans[at].end for at in (*part.models, *part.tools)), default=0)
    if part.last:
        ended = max(ended, opener.end)
    errors = [spans[at].error for at in (scope.first, *part.models) if spans[at].error]
    return Turn(
        id=opener.id if part.number == 1 else f"{opener.id}#{part.number}",
        agent=agent,
        text=_text(part, said, result),
        kind=kind,
        said=[*said, *result],
        shown=_prompts(part, models, agents),
        calls=list(_tool_calls(part, tree, readings, said)),
        started_at=part.start / 1e9 if part.start else None,
        ended_at=ended / 1e9 if ended else None,
        usage=_usage(part, models, readings),
        error=errors[0] if errors else None,
    )


def _prompts(part: Part, models: Sequence[Reading], agents: Sequence[Reading]) -> list[list[Message]]:
    """The prompt of each model call; of an agent without any, what it was given."""
    shown: list[list[Message]] = []
    for reading in models:
        if reading.shown:
            shown.append([*reading.shown])
    if not part.scope.models and part.number == 1:
        given = next((messages for reading in agents if (messages := prompt(reading))), None)
        if given:
            shown.append([*given])
    return shown


def _agents(scope: Scope, readings: Sequence[Reading | None]) -> list[Reading]:
    """What the spans say that stand for the agent itself, outermost first."""
    found = (reading for at in scope.members if (reading := readings[at]) is not None)
    return [reading for reading in found if reading.role == "agent" or reading.called]


def _filled(at: int, scope: Scope, tree: Tree, readings: Sequence[Reading | None]) -> Reading:
    """A leaf call's reading, its texts taken from the model span around it where it has none itself."""
    reading = readings[at]
    assert reading is not None  # models are spans that were read
    if not reading.said and not reading.shown:
        for wrapper in reversed(scope.wrappers):
            around = readings[wrapper]
            if wrapper < at < tree.ends[wrapper] and around is not None:
                return Reading("model", shown=around.shown, said=around.said, usage=reading.usage)
    return reading


def _text(part: Part, said: Sequence[Chat], result: Sequence[Chat]) -> str:
    """What was spoken, then the words of agent calls; the turn's result where the last call spoke none."""
    texts = [chat.text.strip() for chat in said]
    if result and not (texts and texts[-1]):
        texts.append(result[0].text.strip())
    for place, call in part.calls.items():
        name = fold(part.called[place].agent)
        texts += [text for text in string_values(json_or_text(call.arguments)) if fold(text) != name]
    for chat in said:
        for call in chat.calls:
            target = handover(call.name, call.arguments)
            if target and call not in part.calls.values():
                values = string_values(json_or_text(call.arguments))
                texts += [value for value in values if fold(value) != fold(target)]
    return "\n\n".join(text for text in dict.fromkeys(texts) if text)


def _tool_calls(
    part: Part, tree: Tree, readings: Sequence[Reading | None], said: Sequence[Chat]
) -> Iterator[Call]:
    """Tool calls of the part that call no agent: from their spans, else from what the models asked for."""
    agents = {scope.tool for scope in part.called} | {scope.first for scope in part.called}
    of_agents = {call.id for call in part.calls.values()} - {""}
    sent = {(call.name, call.arguments) for call in part.calls.values()}
    asked = [call for chat in said for call in chat.calls]
    for at in part.tools:
        reading, span = readings[at], tree.spans[at]
        assert reading is not None  # tools are spans that were read
        if at in agents or reading.call in of_agents or (reading.tool, reading.arguments) in sent:
            continue
        if reading.target or handover(reading.tool, reading.arguments):
            continue
        yield Call(
            id=reading.call or span.id,
            tool=reading.tool,
            arguments=reading.arguments,
            result=reading.result,
            error=span.error,
            started_at=span.start / 1e9 if span.start else None,
            ended_at=span.end / 1e9 if span.end else None,
        )
    if part.tools:
        return
    replies = {
        chat.answers: chat.text for at in part.scope.models for chat in _shown(readings[at]) if chat.answers
    }
    for call in asked:
        if (
            call.id not in of_agents
            and call not in part.calls.values()
            and not handover(call.name, call.arguments)
        ):
            yield Call(call.id, call.name, call.arguments, replies.get(call.id))


def _shown(reading: Reading | None) -> Sequence[Chat]:
    return reading.shown if reading is not None else ()


def _usage(part: Part, models: Sequence[Reading], readings: Sequence[Reading | None]) -> Usage | None:
    """Tokens of the leaf calls; the turn's own total only where no leaf in it or below knows any."""
    scope = part.scope
    if scope.models and any(reading is not None and reading.usage for reading in _leaves(scope, readings)):
        return total_usage(reading.usage for reading in models)
    if not part.last or any(_has_usage(child, readings) for child in scope.children):
        return None
    return next((reading.usage for reading in _agents(scope, readings) if reading.usage), None)


def _leaves(scope: Scope, readings: Sequence[Reading | None]) -> Iterator[Reading | None]:
    return (readings[at] for at in scope.models)


def _has_usage(scope: Scope, readings: Sequence[Reading | None]) -> bool:
    return any(reading is not None and reading.usage for reading in _leaves(scope, readings)) or any(
        _has_usage(child, readings) for child in scope.children
    )
