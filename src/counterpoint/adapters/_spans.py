"""Spans of any tracing format as one tree, and one vocabulary for what they mean.

An adapter turns its records into `Span` and hands them to `_runs.traces`, together with a *dialect*: a
function that says what one span means (`Reading`). Nothing here or there knows an attribute name.

The tree
--------
Every span is kept. A parent that is not among the spans, and one span of each cycle of parents, make their
child a root under a synthetic one, with a warning; a span that names itself as parent is a root. Spans with
one id are one span: the one that ended wins. A span whose start is not known stands where its children, its
end, its parent or its place in the file put it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from counterpoint.adapters._messages import Chat, as_text, chats
from counterpoint.trace import Usage

__all__ = ["Reading", "Span", "Tree", "prompt", "results", "service_name"]


class Span(Struct, gc=False):
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
    service: str = ""
    """Name of the program that it is of, where that has one."""


class Reading(Struct, gc=False):
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


def service_name(resource: Mapping[str, Any]) -> str:
    """``service.name`` among the attributes of a resource; empty for what an SDK puts where none is set.

    >>> service_name({"service.name": "desk-b"}), service_name({"service.name": "unknown_service:python"})
    ('desk-b', '')
    """
    name = resource.get("service.name")
    return name if isinstance(name, str) and not name.startswith("unknown_service") else ""


class Tree:
    """Spans in the order of a depth-first walk, parents before children, siblings by start and id."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.warnings: list[str] = []
        self.spans = _without_doubles(spans, self.warnings)
        backward = self._forget_impossible_ends()
        self.running = sum(not span.end for span in self.spans) - backward
        """Spans that never ended."""
        self.parents: list[int] = []
        """Index of each span's parent in `spans`, -1 for roots."""
        self.orphans = 0
        self._link()
        self.starts = [span.start for span in self.spans]
        """When each span began, in nanoseconds; a stand-in where it is not known, to order spans by."""
        if not all(self.starts):
            self._stand_in()
        self._walk()

    def _forget_impossible_ends(self) -> int:
        wrong = [at for at, span in enumerate(self.spans) if 0 < span.end < span.start]
        for at in wrong:
            self.spans[at] = replace(self.spans[at], end=0)
        if wrong:
            self.warnings.append(f"{len(wrong)} spans end before they start: when they ended is not known")
        return len(wrong)

    def _link(self) -> None:
        index = {span.id: position for position, span in enumerate(self.spans)}
        themselves = 0
        for position, span in enumerate(self.spans):
            parent = index.get(span.parent, -1) if span.parent else -1
            if parent == position:
                themselves += 1
                self.spans[position] = replace(span, parent="")
                parent = -1
            elif span.parent and parent < 0:
                self.orphans += 1
            self.parents.append(parent)
        if themselves:
            self.warnings.append(f"{themselves} spans name themselves as parent: taken for roots")
        if self.orphans:
            self.warnings.append(
                f"{self.orphans} spans name a parent that is not there: kept under a synthetic root"
            )
        cut = self._cut_cycles()
        if cut:
            self.warnings.append(f"{cut} cycles of parents were cut: the earliest span of each is now a root")

    def _cut_cycles(self) -> int:
        if all(parent < at for at, parent in enumerate(self.parents)):
            return 0  # as most files are written: no span before its parent
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

    def _stand_in(self) -> None:
        """Times to order spans by that have no start: their first child's, else their end, and so on."""
        unknown = [at for at, start in enumerate(self.starts) if not start]
        if len(unknown) < len(self.spans):
            self.warnings.append(
                f"{len(unknown)} spans have no start that can be read: "
                "put where their children, end, parent or place in the file say"
            )
        first: dict[int, int] = {}
        for parent, span in zip(self.parents, self.spans, strict=True):
            if span.start and span.start < first.get(parent, span.start + 1):
                first[parent] = span.start
        for at in unknown:
            self.starts[at] = first.get(at) or self.spans[at].end
        for at in unknown:
            parent = self.parents[at]
            before = self.starts[at - 1] if at else 0
            self.starts[at] = self.starts[at] or (self.starts[parent] if parent >= 0 else 0) or before

    def _walk(self) -> None:
        children: list[list[int]] = [[] for _ in self.spans]
        roots: list[int] = []
        spans, starts = self.spans, self.starts
        # Of two at one time the one whose start is known comes first; those of no start keep their order.
        by_time = sorted(
            range(len(spans)),
            key=lambda at: (starts[at], not spans[at].start, spans[at].start and spans[at].id),
        )
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
        self.starts = [self.starts[at] for at in order]
        self.ends = list(range(1, len(order) + 1))
        """One past the last descendant of each span."""
        for at in range(len(order) - 1, 0, -1):
            if self.parents[at] >= 0:
                self.ends[self.parents[at]] = max(self.ends[self.parents[at]], self.ends[at])


def _without_doubles(spans: Sequence[Span], warnings: list[str]) -> list[Span]:
    kept: dict[str, Span] = {}
    for number, span in enumerate(spans):
        key = span.id or f"without id {number}"
        known = kept.get(key)
        if known is None or known.end < span.end:
            kept[key] = span
    if len(kept) < len(spans):
        warnings.append(f"{len(spans) - len(kept)} spans came twice: of each id the last to end was kept")
    return list(kept.values())


# --- readings ------------------------------------------------------------------------------------


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
