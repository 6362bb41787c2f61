"""Spans of any tracing format as one tree, and which agent's turn each span belongs to.

An adapter turns its records into `Span` and hands them to `_turns.traces`, together with a *dialect*: a
function that says what one span means (`Reading`). Nothing here or there knows an attribute name.

The tree
--------
Every span is kept. A parent that is not among the spans, and one span of each cycle of parents, make their
child a root under a synthetic one, with a warning. Spans with one id are one span: the one that ended wins.

Scopes
------
A *scope* is the part of the tree that is one turn of one agent (before it is split at calls of agents).
A span opens a scope if it names an agent other than that of the scope around it, or the same one again
inside a tool call. Model and tool spans without any agent around take the nearest ancestor that has a
telling name, else their own. Each scope knows which rule decided.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec import Struct

from counterpoint.adapters._messages import Chat, as_text, chats
from counterpoint.trace import Usage

__all__ = ["Reading", "Scope", "Span", "Tree", "find_scopes", "prompt", "results"]


class Span(Struct):
    """One span, whatever carried it."""

    id: str
    name: str
    trace: str = ""
    parent: str = ""
    """Id of the parent span; empty for a root."""
    start: int = 0
    """Nanoseconds since the epoch; 0: unknown."""
    end: int = 0
    """0: never ended."""
    attributes: dict[str, Any] = {}
    events: Sequence[tuple[str, dict[str, Any]]] = ()
    """Name and attributes of each event, in time order."""
    links: Sequence[str] = ()
    """Ids of the spans linked to."""
    scope: str = ""
    """Name of the instrumentation."""
    error: str | None = None


class Reading(Struct):
    """What a span means, in one vocabulary for all dialects; as little as the span says."""

    role: Literal["agent", "model", "tool", "other"] = "other"
    agent: str = ""
    """Name of the agent at work, where the span says it."""
    agent_id: str = ""
    """Its id, the same in all its turns; empty: the name is the id."""
    instance: str = ""
    """Spans of one instance are one turn, wherever they stand in the tree."""
    rule: str = ""
    """How the agent is known: the attribute, or ``span name``."""
    called: bool = False
    """The span itself is the call of an agent as a tool."""
    control: bool = False
    """Routes, guards or judges: no member of the team."""
    framework: str = ""
    """What the span shows to be at work, where its instrumentation does not say it."""
    step: int | None = None
    """Super-step, where the framework runs in such."""
    shown: Sequence[Chat] = ()
    """A model call's prompt; an agent's, where it is written out."""
    said: Sequence[Chat] = ()
    """A model call's reply; an agent's result, where it is written out."""
    input: Any = None
    """What an agent or the whole run was given, as it stands in the span: read only where it is needed."""
    output: Any = None
    """What it gave back."""
    state: bool = False
    """Input and output are the state shared by all: they count only where no model call is known."""
    tool: str = ""
    arguments: str = ""
    result: str | None = None
    call: str = ""
    """Id of the tool call."""
    target: str = ""
    """Agent that a tool hands over to, where the span says it outright."""
    caller: str = ""
    """Agent that called this one, where the span says it outright."""
    usage: Usage | None = None


Dialect = Callable[[Span], "Reading | None"]


@dataclass(slots=True, eq=False)
class Scope:
    """One turn of one agent: a part of the span tree."""

    agent: str
    id: str
    """Id of the agent; empty: its name is all that is known."""
    rule: str
    """How the agent is known."""
    first: int = -1
    """The span that opened it."""
    parent: Scope | None = None
    tool: int | None = None
    """The tool span, if any, between it and the scope around it."""
    named: bool = True
    """Named by an attribute, not by a span's name."""
    control: bool = False
    members: list[int] = field(default_factory=list)
    children: list[Scope] = field(default_factory=list)
    models: list[int] = field(default_factory=list)
    """Leaf model calls."""
    tools: list[int] = field(default_factory=list)
    metered: bool = False
    """Some leaf call in it or in a scope inside it knows its tokens."""
    wrappers: list[int] = field(default_factory=list)
    """Model spans around others: their texts stand in for missing ones, their tokens never count."""


class Tree:
    """Spans in the order of a depth-first walk, parents before children, siblings by start and id."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.warnings: list[str] = []
        self.spans = _without_doubles(spans, self.warnings)
        self.parents: list[int] = []
        """Index of each span's parent in `spans`, -1 for roots."""
        self.orphans = 0
        self._link()
        self._walk()

    def _link(self) -> None:
        index = {span.id: position for position, span in enumerate(self.spans)}
        for position, span in enumerate(self.spans):
            parent = index.get(span.parent, -1) if span.parent else -1
            if span.parent and parent in (-1, position):
                self.orphans += 1
            self.parents.append(-1 if parent == position else parent)
        if self.orphans:
            self.warnings.append(
                f"{self.orphans} spans name a parent that is not there: kept under a synthetic root"
            )
        cut = self._cut_cycles()
        if cut:
            self.warnings.append(f"{cut} cycles of parents were cut: the earliest span of each is now a root")

    def _cut_cycles(self) -> int:
        state = bytearray(len(self.spans))  # 0 new, 1 on the current path, 2 known to end at a root
        cut = 0
        for start in range(len(self.spans)):
            path = []
            at = start
            while at >= 0 and state[at] == 0:
                state[at] = 1
                path.append(at)
                at = self.parents[at]
            if at >= 0 and state[at] == 1:
                cycle = path[path.index(at) :]
                self.parents[min(cycle, key=lambda each: (self.spans[each].start, each))] = -1
                cut += 1
            for each in path:
                state[each] = 2
        return cut

    def _walk(self) -> None:
        children: list[list[int]] = [[] for _ in self.spans]
        roots: list[int] = []
        by_time = sorted(range(len(self.spans)), key=lambda at: (self.spans[at].start, self.spans[at].id))
        for at in by_time:
            (roots if self.parents[at] < 0 else children[self.parents[at]]).append(at)
        order: list[int] = []
        stack = roots[::-1]
        while stack:
            at = stack.pop()
            order.append(at)
            stack += reversed(children[at])
        place = [0] * len(order)
        for position, at in enumerate(order):
            place[at] = position
        self.parents = [place[self.parents[at]] if self.parents[at] >= 0 else -1 for at in order]
        self.spans = [self.spans[at] for at in order]
        self.ends = list(range(1, len(order) + 1))
        """One past the last descendant of each span."""
        for at in range(len(order) - 1, 0, -1):
            if self.parents[at] >= 0:
                self.ends[self.parents[at]] = max(self.ends[self.parents[at]], self.ends[at])


def _without_doubles(spans: Sequence[Span], warnings: list[str]) -> list[Span]:
    kept: dict[str, Span] = {}
    for span in spans:
        known = kept.get(span.id)
        if known is None or known.end < span.end:
            kept[span.id] = span
    if len(kept) < len(spans):
        warnings.append(f"{len(spans) - len(kept)} spans came twice: of each id the last to end was kept")
    return list(kept.values())


# --- scopes --------------------------------------------------------------------------------------

_PLUMBING = re.compile(
    r"Runnable\w*|\w*Prompt(Template)?|\w*OutputParser|ChatCompletion\w*|Completions?|turn|generation|response"
    r"|Agent workflow|running tools?|Step \d+|execute_event_loop_cycle|LangGraph|Unnamed"
    r"|\w+\.(generate|invoke)"
)


def find_scopes(tree: Tree, readings: Sequence[Reading | None]) -> list[Scope]:
    """Every scope of the tree that did or said something, in tree order; containers are dissolved."""
    scopes = _open_scopes(tree, readings)
    _sort_members(scopes, tree, readings)
    return _dissolve_containers(scopes, readings)


def _open_scopes(tree: Tree, readings: Sequence[Reading | None]) -> list[Scope]:
    scopes: list[Scope] = []
    instances: dict[str, Scope] = {}
    stand_ins: dict[int, Scope] = {}
    around: list[tuple[Scope | None, int | None]] = []  # of each span: its scope, and the tool span above it
    for at, reading in enumerate(readings):
        parent = tree.parents[at]
        scope, tool = around[parent] if parent >= 0 else (None, None)
        if reading is not None:
            opened = _opened(reading, scope, tool, instances)
            if opened is None and scope is None and reading.role == "model":
                opened = _stand_in(at, tree, stand_ins)
            if opened is not None and opened is not scope:
                if opened.first < 0:
                    opened.first, opened.parent, opened.tool = at, scope, tool
                    scopes.append(opened)
                scope, tool = opened, None
            if reading.role == "tool" and not reading.called:
                tool = at
        if scope is not None:
            scope.members.append(at)
        around.append((scope, tool))
    return scopes


def _opened(
    reading: Reading, scope: Scope | None, tool: int | None, instances: dict[str, Scope]
) -> Scope | None:
    """The scope that a span's own words put it in; a new one has ``first`` = -1. None: no word."""
    if not reading.agent:
        return None
    if reading.instance and reading.instance in instances:
        return instances[reading.instance]
    opened = None
    if scope is not None and not reading.called:
        if reading.role == "tool":
            return None  # a tool runs in the turn that called it, whatever name baggage gave the span
        if _same_agent(reading, scope) and (reading.role != "agent" or tool is None):
            opened = scope
            opened.id = opened.id or reading.agent_id
    if opened is None:
        named = reading.rule != "span name"
        opened = Scope(reading.agent, reading.agent_id, reading.rule, named=named, control=reading.control)
    if reading.instance:
        instances[reading.instance] = opened
    return opened


def _same_agent(reading: Reading, scope: Scope) -> bool:
    if reading.agent_id and scope.id:
        return reading.agent_id == scope.id
    return reading.agent == scope.agent


def _stand_in(at: int, tree: Tree, stand_ins: dict[int, Scope]) -> Scope:
    """A scope for a model call that no agent is known for: one for each nearest ancestor of telling name."""
    named = at
    above = tree.parents[at]
    while above >= 0:
        if not _PLUMBING.fullmatch(tree.spans[above].name):
            named = above
            break
        above = tree.parents[above]
    if named not in stand_ins:
        rule = "span name" if named == at else "ancestor's name"
        stand_ins[named] = Scope(tree.spans[named].name, "", rule, named=False)
    return stand_ins[named]


def _sort_members(scopes: Sequence[Scope], tree: Tree, readings: Sequence[Reading | None]) -> None:
    for scope in scopes:
        models = []
        for at in scope.members:
            reading = readings[at]
            if reading is None:
                continue
            if reading.role == "model":
                models.append(at)
            elif reading.role == "tool" and not reading.called:
                scope.tools.append(at)
        for position, at in enumerate(models):
            if position + 1 < len(models) and models[position + 1] < tree.ends[at]:
                scope.wrappers.append(at)
            else:
                scope.models.append(at)
                reading = readings[at]
                scope.metered = scope.metered or (reading is not None and reading.usage is not None)


def _dissolve_containers(scopes: Sequence[Scope], readings: Sequence[Reading | None]) -> list[Scope]:
    """Without the scopes that only hold others (workflow roots, sequential wrappers) or nothing at all."""
    kept = []
    inside: dict[int, list[Scope]] = {}
    for scope in reversed(scopes):  # what is inside comes before what it is inside of
        scope.children = inside.pop(id(scope), [])
        outer = inside.setdefault(id(scope.parent), []) if scope.parent is not None else []
        if scope.models or scope.tools or not _is_container(scope, readings):
            kept.append(scope)
            outer.append(scope)
            scope.metered = scope.metered or any(child.metered for child in scope.children)
        else:
            for child in scope.children:
                child.parent = scope.parent
                child.tool = child.tool if child.tool is not None else scope.tool
            outer += scope.children
    return kept[::-1]


def _is_container(scope: Scope, readings: Sequence[Reading | None]) -> bool:
    results = _results(scope, readings)
    if not scope.children:
        return not scope.named and not results
    told = {text for child in scope.children for text in _results(child, readings)}
    return not scope.named or not results - told


def _results(scope: Scope, readings: Sequence[Reading | None]) -> set[str]:
    found = {
        result.text.strip() for at in scope.members if (each := readings[at]) for result in results(each)
    }
    return found - {""}


def prompt(reading: Reading) -> list[Chat]:
    """What a span's agent or model was shown."""
    if reading.shown or reading.input is None:
        return list(reading.shown)
    return chats(reading.input, "user") or [Chat(as_text(reading.input), "user")]


def results(reading: Reading) -> Sequence[Chat]:
    """What a span's agent or model said; of a conversation that came out, the last reply."""
    if reading.said or reading.output is None:
        return reading.said
    found = chats(reading.output, "assistant")
    replies = [chat for chat in found if chat.role == "assistant" and chat.text.strip()]
    return replies[-1:] or [Chat(as_text(reading.output), "assistant")]
