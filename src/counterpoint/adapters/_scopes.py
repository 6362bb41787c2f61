"""Which agent's turn each span of a tree belongs to, and how that is known: the resolver of identities.

A *scope* is the part of the tree that is one turn of one agent (before it is split at calls of agents).
The first of these that applies puts a span into one:

1. The span names an agent, or a run of it, by attributes of its own: the scope around it if that is of the
   same agent (by id; by name where one of them has no id) and no tool call lies between, else a new one.
2. The scope of its parent: model and tool calls inherit the agent around them.
3. A model or tool call beside a model call of the same agent that asked for tools: the same turn goes on.
4. A model call of no known agent: the nearest ancestor with a telling name lends it; where several system
   prompts alternate there, each is an agent, named by the role in it (*You are a planner*).

A scope of no model or tool calls that only holds others (a workflow's root, a sequential wrapper) is none.
Each scope knows which rule decided; the trace's label ``identity_rules`` counts them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct, field

from counterpoint.adapters._spans import Reading, Tree, results

__all__ = ["Scope", "find_scopes"]


class Scope(Struct, eq=False):
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


_PLUMBING = re.compile(
    r"Runnable\w*|\w*Prompt(Template)?|\w*OutputParser|ChatCompletion\w*|Completions?|turn|generation|response"
    r"|Agent workflow|running tools?|Step \d+|execute_event_loop_cycle|LangGraph|Unnamed"
    r"|\w+\.(generate|invoke)"
)


_ROLE = re.compile(
    r"\s*(?:you are|you're|act as|your role is|role:)\s+(?:an?\s|the\s)?\s*([^\W\d_][\w '-]{0,40}?)"
    r"(?=[.,;:!\n]|\s(?:that|who|whose|with|and|for|in|of|on|from|at|to)\s|$)",
    re.IGNORECASE,
)


def find_scopes(
    tree: Tree, readings: Sequence[Reading | None], dissolved: list[str] | None = None
) -> list[Scope]:
    """Every scope of the tree that did or said something, in tree order; containers are dissolved.

    ``dissolved`` gets the names of those among the containers that call themselves agents.
    """
    opening = _Opening(tree, readings)
    opening.name_stand_ins()
    _sort_members(opening.scopes, tree, readings)
    kept = _dissolve_containers(opening.scopes, readings)
    if dissolved is not None:
        members = {id(scope) for scope in kept}
        names = {scope.agent for scope in kept}
        dissolved += [
            scope.agent
            for scope in opening.scopes
            if id(scope) not in members and scope.named and scope.agent not in names
        ]
    return kept


class _Opening:
    """One walk over the tree, parents first, in which each span finds its scope."""

    def __init__(self, tree: Tree, readings: Sequence[Reading | None]) -> None:
        self.tree, self.readings = tree, readings
        self.scopes: list[Scope] = []
        self.instances: dict[str, Scope] = {}
        self.latest: dict[int, Scope] = {}
        """The scope opened last directly under each span, -1 for the root."""
        self.replies: dict[int, Reading] = {}
        """The latest model call of each scope."""
        self.stand_ins: dict[int, dict[str, list[Scope]]] = {}
        """Scopes without a known agent, by the span that lends its name, and by system prompt."""
        self.speaking: dict[int, tuple[str, Scope]] = {}
        """System prompt and scope of the latest of them, by the span that lends its name."""
        around: list[tuple[Scope | None, int | None]] = []  # of each span: its scope, the tool span above it
        for at, reading in enumerate(readings):
            parent = tree.parents[at]
            scope, tool = around[parent] if parent >= 0 else (None, None)
            if reading is not None:
                opened = self._scope_of(at, reading, scope, tool)
                if opened is not None and opened is not scope:
                    if opened.first < 0:
                        opened.first, opened.parent, opened.tool = at, scope, tool
                        self.scopes.append(opened)
                        self.latest[parent] = opened
                    scope, tool = opened, None
                if reading.role == "tool" and not reading.called:
                    tool = at
                if scope is not None and reading.role == "model":
                    self.replies[id(scope)] = reading
            if scope is not None:
                scope.members.append(at)
            around.append((scope, tool))

    def _scope_of(self, at: int, reading: Reading, scope: Scope | None, tool: int | None) -> Scope | None:
        """The scope that a span belongs to, new where its ``first`` is -1; None: that of its parent."""
        opened = _opened(reading, scope, tool, self.instances) if reading.agent else None
        bare = reading.role == "model" and opened is not None and opened.first < 0 and not reading.instance
        if bare or (scope is None and reading.role == "tool" and not reading.called):
            before = self.latest.get(self.tree.parents[at])
            if before is not None and self._goes_on(before, reading):
                return before
        if opened is None and scope is None and reading.role == "model":
            return self._stand_in(at, reading)
        return opened

    def _goes_on(self, scope: Scope, reading: Reading) -> bool:
        """Does the turn before, which asked for tools, go on with this span beside it?"""
        if reading.role == "model" and not _same_agent(reading, scope):
            return False
        opener, reply = self.readings[scope.first], self.replies.get(id(scope))
        if opener is None or opener.role != "model" or reply is None:
            return False
        return any(chat.calls for chat in reply.said)

    def _stand_in(self, at: int, reading: Reading) -> Scope:
        """A scope for a model call of no known agent: it goes on while the system prompt stays the same."""
        named = self.tree.parents[at]
        while named >= 0 and _PLUMBING.fullmatch(self.tree.spans[named].name):
            named = self.tree.parents[named]
        system = next((chat.text for chat in reading.shown if chat.role == "system"), "")
        before, latest = self.speaking.get(named, ("", None))
        if latest is not None and before == system and (named >= 0 or system):
            return latest
        name = self.tree.spans[named if named >= 0 else at].name
        scope = Scope(name, "", "ancestor's name" if named >= 0 else "span name", named=False)
        self.speaking[named] = system, scope
        self.stand_ins.setdefault(named, {}).setdefault(system, []).append(scope)
        return scope

    def name_stand_ins(self) -> None:
        """Where several system prompts alternate under one span, each is an agent, named by its role."""
        for by_system in self.stand_ins.values():
            if len(by_system) == 1:
                continue
            taken: Counter[str] = Counter()
            for system, scopes in by_system.items():
                match = _ROLE.match(system)
                name = match[1].strip() if match else scopes[0].agent
                taken[name] += 1
                for scope in scopes:
                    scope.agent = name if taken[name] == 1 else f"{name} {taken[name]}"
                    scope.rule = "role string" if match else scope.rule


def _opened(
    reading: Reading, scope: Scope | None, tool: int | None, instances: dict[str, Scope]
) -> Scope | None:
    """The scope that a span's own words put it in; a new one has ``first`` = -1. None: no word."""
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
    modeled = any(scope.models for scope in scopes)
    inside: dict[int, list[Scope]] = {}
    for scope in reversed(scopes):  # what is inside comes before what it is inside of
        scope.children = inside.pop(id(scope), [])
        outer = inside.setdefault(id(scope.parent), []) if scope.parent is not None else []
        if scope.models or scope.tools or not _is_container(scope, readings, modeled):
            kept.append(scope)
            outer.append(scope)
            scope.metered = scope.metered or any(child.metered for child in scope.children)
        else:
            for child in scope.children:
                child.parent = scope.parent
                child.tool = child.tool if child.tool is not None else scope.tool
            outer += scope.children
    return kept[::-1]


def _is_container(scope: Scope, readings: Sequence[Reading | None], modeled: bool) -> bool:
    """Does a scope without calls of its own only hold others? ``modeled``: there are model calls."""
    results = _results(scope, readings)
    if not scope.children:
        return not scope.named and not results
    if modeled or not scope.named:
        return True
    return not results - {text for child in scope.children for text in _results(child, readings)}


def _results(scope: Scope, readings: Sequence[Reading | None]) -> set[str]:
    found = {
        result.text.strip() for at in scope.members if (each := readings[at]) for result in results(each)
    }
    return found - {""}
