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
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct, field

from counterpoint.adapters._messages import Chat, ToolCall, json_or_text, string_values
from counterpoint.adapters._scopes import Scope
from counterpoint.adapters._spans import Reading, Tree, prompt, results
from counterpoint.adapters._transfers import Message, Turn, total_usage
from counterpoint.trace import Call, Kind, Usage

__all__ = ["Part", "fold", "handover", "hands_over", "parts_in_order", "turn_of"]


class Part(Struct, eq=False, gc=False):
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
    last: dict[int, int] = {}
    caller: dict[int, int] = {}
    for place, part in enumerate(parts):
        last[id(part.scope)] = place
        for scope in part.called:
            caller[id(scope)] = place
    after: dict[int, list[int]] = defaultdict(list)
    waits = [0] * len(parts)
    for place, part in enumerate(parts):
        before = [last[id(scope)] for scope in part.returned]
        if part.number > 1:
            before.append(place - 1)
        elif id(part.scope) in caller:
            before.append(caller[id(part.scope)])
        for at in before:
            after[at].append(place)
        waits[place] = len(before)
    ready = [(part.start, place) for place, part in enumerate(parts) if not waits[place]]
    heapq.heapify(ready)
    order = []
    while ready:
        _, place = heapq.heappop(ready)
        order.append(parts[place])
        for at in after.get(place, ()):
            waits[at] -= 1
            if not waits[at]:
                heapq.heappush(ready, (parts[at].start, at))
    return order


def _split(scope: Scope, tree: Tree, readings: Sequence[Reading | None]) -> list[Part]:
    if not scope.children:
        parts = [Part(scope, models=scope.models, tools=scope.tools)]
    else:
        inner = sorted(scope.children, key=lambda child: (tree.starts[child.first], child.first))
        split = _split_at_models if scope.models else _split_at_calls
        parts = split(scope, inner, tree)
    for number, part in enumerate(parts, 1):
        part.number = number
        part.last = number == len(parts)
        if part.models and (number > 1 or scope.first > part.models[0]):
            part.start = tree.spans[part.models[0]].start
        if number == 1 or not part.start:
            part.start = max([tree.starts[scope.first], *(_end(child, tree) for child in part.returned)])
    if len(parts) > 1:
        starts = [part.start for part in parts]
        for at in scope.tools:
            parts[max(bisect_right(starts, tree.starts[at]) - 1, 0)].tools.append(at)
    elif scope.children:
        parts[0].tools = scope.tools
    for part in parts:
        if part.called:
            _match_calls(part, readings)
    return parts


def _split_at_models(scope: Scope, inner: Sequence[Scope], tree: Tree) -> list[Part]:
    starts = tree.starts
    parts = [Part(scope)]
    waiting = deque(inner)
    running: list[Scope] = []
    for at in sorted(scope.models, key=lambda at: (starts[at], at)):
        start = starts[at]
        while waiting and starts[waiting[0].first] < start:
            running.append(waiting[0])
            parts[-1].called.append(waiting.popleft())
        ended = [child for child in running if 0 < _end(child, tree) <= start]
        if ended:
            running = [child for child in running if not 0 < _end(child, tree) <= start]
            if parts[-1].models:
                parts.append(Part(scope))
            parts[-1].returned += ended
        parts[-1].models.append(at)
    parts[-1].called += waiting
    # What had run before anything was said was called by no one.
    returned = {id(child) for child in parts[0].returned}
    parts[0].called = [child for child in parts[0].called if id(child) not in returned]
    return parts


def _split_at_calls(scope: Scope, inner: Sequence[Scope], tree: Tree) -> list[Part]:
    parts = [Part(scope)]
    reach = 0
    for child in inner:
        if parts[-1].called and tree.starts[child.first] >= reach:
            parts.append(Part(scope, returned=parts[-1].called))
        parts[-1].called.append(child)
        reach = max(reach, _end(child, tree))
    if tree.spans[scope.first].end:
        parts.append(Part(scope, returned=parts[-1].called))
    return parts


def _end(scope: Scope, tree: Tree) -> int:
    return tree.spans[scope.first].end


# --- tool calls behind inner scopes --------------------------------------------------------------


def _match_calls(part: Part, readings: Sequence[Reading | None]) -> None:
    """Finds the tool call that each called scope answers: by call id, by name, by who is named in it."""
    said = [chat for at in part.models for chat in _said(readings[at])]
    asked = [call for chat in said for call in chat.calls]
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
            # Which of them it was is not said; that the agent was called by one of them is plain.
            match = match or asked[min(place, len(asked) - 1) :][:1] if asked else _in_code(scope, said)
        taken = part.calls.values()
        match = [call for call in match if call not in taken] or match
        if match:
            part.calls[place] = match[0]


def _names_agent(call: ToolCall, scope: Scope, readings: Sequence[Reading | None]) -> bool:
    reading = readings[scope.first]
    names = {fold(scope.agent), fold(reading.agent_id if reading else "")} - {""}
    return any(fold(value) in names for value in string_values(json_or_text(call.arguments)))


def _in_code(scope: Scope, said: Sequence[Chat]) -> list[ToolCall]:
    """A call of the agent as a function, in code that the model wrote; its arguments stand in the text."""
    return [ToolCall("", scope.agent) for chat in said if f"{scope.agent}(" in chat.text][:1]


def _said(reading: Reading | None) -> Sequence[Chat]:
    return reading.said if reading is not None else ()


@lru_cache(maxsize=4096)
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
    by_name, target = _target_of(tool)
    if not by_name:
        return target
    given = json_or_text(arguments)
    if isinstance(given, dict):
        return next((str(given[key]) for key in _TARGET_KEYS if isinstance(given.get(key), str)), "")
    return ""


def hands_over(tool: str) -> bool:
    """Does a tool of this name hand over to an agent that only its arguments name?"""
    return _target_of(tool)[0]


@lru_cache(maxsize=4096)
def _target_of(tool: str) -> tuple[bool, str]:
    """Does the tool name its target among its arguments? Else the target that stands in its own name."""
    if fold(tool) in _HAND_OVER_TO:
        return True, ""
    match = _HAND_OVER.fullmatch(tool)
    return False, match[1] if match else ""


# --- turns ---------------------------------------------------------------------------------------


def turn_of(part: Part, tree: Tree, readings: Sequence[Reading | None], agent: str, kind: Kind) -> Turn:
    """The turn that a part is, without what it heard."""
    scope, spans = part.scope, tree.spans
    opener = spans[scope.first]
    models = [_filled(at, scope, tree, readings) for at in part.models]
    said = [chat for reading in models for chat in reading.said]
    agents = [reading for reading in _agents(scope, readings) if not (scope.models and reading.state)]
    result = [chat for reading in agents for chat in results(reading)] if part.last else []
    ended = _ended(part, tree)
    # A call that failed and was repeated is no fault of the turn; that the last one failed is.
    errors = [spans[at].error for at in (scope.first, *part.models[-1:]) if spans[at].error]
    return Turn(
        id=opener.id if part.number == 1 else f"{opener.id}#{part.number}",
        agent=agent,
        text=_text(part, said, result),
        kind=kind,
        said=[*said, *result],
        shown=_prompts(part, models, agents),
        calls=_tool_calls(part, tree, readings, said),
        started_at=part.start / 1e9 if part.start and (opener.start or part.number > 1) else None,
        ended_at=ended / 1e9 if ended else None,
        usage=_usage(part, models, agents),
        error=errors[0] if errors else None,
    )


def _ended(part: Part, tree: Tree) -> int:
    """When the part was over; one that called an agent ends there, unless other calls in it go on."""
    behind = {scope.tool if scope.tool is not None else scope.first for scope in part.called}
    calls = [at for at in (*part.models, *part.tools) if part.last or at not in behind]
    ended = max((tree.spans[at].end for at in calls), default=0)
    if part.last:
        return max(ended, tree.spans[part.scope.first].end)
    return ended or min((tree.spans[at].start for at in behind), default=0)


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
    if len(texts) == 1 and texts[0] and not part.called and not said[0].calls:
        return texts[0]
    if result and not (texts and texts[-1]):
        texts.append(result[0].text.strip())
    for place, call in part.calls.items():
        names = {fold(part.called[place].agent), fold(part.called[place].id)}
        texts += [text for text in string_values(json_or_text(call.arguments)) if fold(text) not in names]
    for chat in said:
        for call in chat.calls:
            target = handover(call.name, call.arguments)
            if target and call not in part.calls.values():
                values = string_values(json_or_text(call.arguments))
                texts += [value for value in values if fold(value) != fold(target)]
    return "\n\n".join(text for text in dict.fromkeys(texts) if text)


def _tool_calls(
    part: Part, tree: Tree, readings: Sequence[Reading | None], said: Sequence[Chat]
) -> list[Call]:
    """Tool calls of the part that call no agent: from their spans, else from what the models asked for."""
    asked = [call for chat in said for call in chat.calls]
    if not part.tools and not asked:
        return []
    agents = {at for scope in part.called for at in (scope.tool, scope.first)}
    of_agents = {call.id for call in part.calls.values() if call.id}
    sent = {(call.name, call.arguments) for call in part.calls.values()}
    made = []
    for at in part.tools:
        reading, span = readings[at], tree.spans[at]
        assert reading is not None  # tools are spans that were read
        if at in agents or reading.call in of_agents or (reading.tool, reading.arguments) in sent:
            continue
        if not reading.target and not handover(reading.tool, reading.arguments):
            times = (span.start / 1e9 if span.start else None, span.end / 1e9 if span.end else None)
            call = reading.call or span.id
            made.append(Call(call, reading.tool, reading.arguments, reading.result, span.error, *times))
    if part.tools:
        return made
    shown = (chat for at in part.scope.models for chat in _shown(readings[at]))
    replies = {chat.answers: chat.text for chat in shown if chat.answers}
    return [
        Call(call.id, call.name, call.arguments, replies.get(call.id))
        for call in asked
        if call.id not in of_agents and (call.name, call.arguments) not in sent
        if not handover(call.name, call.arguments)
    ]


def _shown(reading: Reading | None) -> Sequence[Chat]:
    return reading.shown if reading is not None else ()


def _usage(part: Part, models: Sequence[Reading], agents: Sequence[Reading]) -> Usage | None:
    """Tokens of the leaf calls; the turn's own total only where no leaf in it or below knows any."""
    if part.scope.metered:
        return total_usage([reading.usage for reading in models])
    return next((reading.usage for reading in agents if reading.usage), None) if part.last else None
