"""From spans to traces, the last step of every span format: who heard whom, and what is known of the run.

How transfers are known
-----------------------
explicit: a hand-over tool (``transfer_to_x``), a span link, what the dialect states; call: an inner scope
under a tool span or asked for by a tool call, and back; context: texts, see `_transfers`; broadcast: the
super-step before, for nodes of which no text is known; nesting: an inner scope without any tool call;
sequence: mere order, for turns that would otherwise hear nobody.

Spans of several traces that links join are one run; traces of a file without any turn are left out unless
there is no other.
"""

from __future__ import annotations

import gc
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from counterpoint.adapters._containment import MIN_CHARACTERS
from counterpoint.adapters._linked import LINKED, LinkedRun, may_go_on
from counterpoint.adapters._scopes import Scope, find_scopes
from counterpoint.adapters._spans import Reading, Span, Tree, prompt
from counterpoint.adapters._transfers import Turn, add_context, add_sequence, to_trace
from counterpoint.adapters._turns import Part, fold, handover, hands_over, parts_in_order, turn_of
from counterpoint.errors import TraceError
from counterpoint.trace import Evidence, Kind, Trace

__all__ = ["Dialect", "Relation", "no_collection", "traces"]

Relation = tuple[int, int, Evidence]
"""Two spans, by place in the tree: the turn of the first was heard by the turn of the second."""


@dataclass(frozen=True)
class Dialect:
    """What the attributes of spans mean."""

    read: Callable[[Span], Reading | None]
    """What one span says; None: nothing of interest."""
    mend: Callable[[Sequence[Span]], Sequence[Span]] = lambda spans: spans
    """All spans of a source, put right before they are linked."""
    relations: Callable[[Tree], Iterable[Relation]] = lambda tree: ()
    """Transfers that spans state outright."""
    turns: Callable[[Tree], list[Turn] | None] = lambda tree: None
    """All turns with their explicit transfers, for a format that tells them in a way of its own."""
    facts: Callable[[Tree], dict[str, Any]] = lambda tree: {}
    """Further fields of the trace: ``system``, ``task``, ``labels``."""


def traces(
    spans: Sequence[Span],
    dialect: Dialect,
    *,
    source: str,
    format: str,
    warnings: Sequence[str] = (),
    linked: bool = False,
) -> Iterator[Trace | TraceError]:
    """Every run among the spans; a TraceError where they hold no turn of any agent.

    ``linked``: a run that may go on in another file has what `join_linked` needs among its labels.
    """
    with no_collection():
        groups = _joined(dialect.mend(spans))
        linked = linked and any(map(may_go_on, groups))
        runs = [_Run(group, dialect) for group in groups]
        held = deque(run for run in runs if run.turns)
        beside = [run.tree.spans for run in runs if not run.turns]
        del groups, runs  # each run is let go when its trace is made, before garbage is looked for
    if not held:
        what = f"{len(spans)} spans" if spans else "no spans"
        yield TraceError(
            f"found {what}, and among them no agent's turn and no model call; "
            "was the framework instrumented when this was recorded?",
            source=source,
        )
    while held:
        with no_collection():
            run = held.popleft()
            trace = run.trace(source=f"{source} ({format})", format=format, warnings=warnings)
            if linked:
                anew = partial(traces, dialect=dialect, source=source, format=format)
                going_on = LinkedRun(run.tree.spans, anew, warnings, beside)
                trace = replace(trace, labels={**trace.labels, LINKED: going_on})
                beside = []
            del run
        yield trace


@contextmanager
def no_collection() -> Iterator[None]:
    """Cyclic garbage is not looked for: where millions of objects are made, that takes half the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _joined(spans: Sequence[Span]) -> list[list[Span]]:
    """Spans by trace id, where a link joins two traces to one, in order of first appearance."""
    parents: dict[str, str] = {}

    def root(trace: str) -> str:
        while parents.setdefault(trace, trace) != trace:
            parents[trace] = parents[parents[trace]]
            trace = parents[trace]
        return trace

    if any(span.links for span in spans):
        home = {span.id: span.trace for span in spans}
        for span in spans:
            for link in span.links:
                if link in home:
                    parents[root(home[link])] = root(span.trace)
    groups: dict[str, list[Span]] = {}
    for span in spans:
        groups.setdefault(root(span.trace) if parents else span.trace, []).append(span)
    return list(groups.values())


class _Run:
    """One run: its tree, readings, parts and turns."""

    def __init__(self, spans: Sequence[Span], dialect: Dialect) -> None:
        self.dialect = dialect
        self.tree = Tree(spans)
        self.readings: list[Reading | None] = []
        self.scopes: list[Scope] = []
        self.dissolved: list[str] = []
        """Agents, by their own attributes, that only hold others."""
        self.parts: list[Part] = []
        own = dialect.turns(self.tree)
        if own is not None:
            self.turns = own
            return
        self.readings = [dialect.read(span) for span in self.tree.spans]
        self.scopes = find_scopes(self.tree, self.readings, self.dissolved)
        self.parts = parts_in_order(self.tree, self.readings, self.scopes)
        names = _names(self.scopes)
        modeled = any(scope.models for scope in self.scopes)
        self.turns = [
            turn_of(part, self.tree, self.readings, names[id(part.scope)], self._kind(part.scope, modeled))
            for part in self.parts
        ]
        self._index()
        self._hear_calls()
        self._hear_handovers()
        self._hear_relations()
        self._hear_callers()

    def _kind(self, scope: Scope, modeled: bool) -> Kind:
        if scope.control:
            return "control"
        reading = self.readings[scope.first]
        code = modeled and not scope.models and reading is not None and reading.step is not None
        return "tool" if code else "agent"

    def _index(self) -> None:
        self.places: dict[int, list[int]] = defaultdict(list)
        """Places of each scope's parts."""
        self.by_agent: dict[str, list[int]] = defaultdict(list)
        self.starts = [scope.first for scope in self.scopes]
        for place, part in enumerate(self.parts):
            self.places[id(part.scope)].append(place)
            self.by_agent[fold(part.scope.agent)].append(place)

    def _hear(self, target: int, source: int, evidence: Evidence) -> None:
        if source < target:
            self.turns[target].hear(self.turns[source].id, evidence)

    # --- calls and returns

    def _hear_calls(self) -> None:
        known: dict[int, Evidence] = {}
        for place, part in enumerate(self.parts):
            for at, scope in enumerate(part.called):
                known[id(scope)] = "call" if at in part.calls else "nesting"
                self._hear(self.places[id(scope)][0], place, known[id(scope)])
            for scope in part.returned:
                self._hear(place, self.places[id(scope)][-1], known.get(id(scope), "nesting"))

    # --- hand-overs

    def _hear_handovers(self) -> None:
        for place, part in enumerate(self.parts):
            for target in self._targets(part):
                later = self.by_agent.get(fold(target), ())
                at = bisect_left(later, place + 1)
                if at < len(later):
                    self._hear(later[at], place, "explicit")
            self._hear_unnamed_handover(place, part)
            for author in self._handed_back_by(part):
                before = self.by_agent.get(fold(author), ())
                at = bisect_left(before, place) - 1
                own = self.by_agent[fold(part.scope.agent)]
                last = bisect_left(own, place) - 1
                if at >= 0 and (last < 0 or before[at] > own[last]):
                    self._hear(place, before[at], "explicit")

    def _targets(self, part: Part) -> Iterator[str]:
        for at in part.models:
            reading = self.readings[at]
            for chat in reading.said if reading else ():
                for call in chat.calls:
                    yield handover(call.name, call.arguments)
        for at in part.tools:
            reading = self.readings[at]
            if reading:
                yield reading.target or handover(reading.tool, reading.arguments)

    def _hear_unnamed_handover(self, place: int, part: Part) -> None:
        """Without content no arguments are recorded: whoever follows beside this turn was handed over to."""
        first, spans, parents = part.scope.first, self.tree.spans, self.tree.parents
        tools = [(spans[at].end, tool) for at in part.tools if (tool := self.readings[at])]
        if parents[first] >= 0 and tools and hands_over(tools[-1][1].tool) and not tools[-1][1].arguments:
            later = self.scopes[bisect_left(self.starts, self.tree.ends[first]) :]
            follower = next((scope for scope in later if parents[scope.first] == parents[first]), None)
            if follower is not None and self.tree.starts[follower.first] >= tools[-1][0]:
                self._hear(self.places[id(follower)][0], place, "explicit")

    def _handed_back_by(self, part: Part) -> Iterator[str]:
        """Authors of hand-overs to this part, as its prompts tell, or the state that it began with."""
        own = fold(part.scope.agent)
        opener = self.readings[part.scope.first]
        places = [*part.models, part.scope.first] if opener and opener.state else part.models
        for at in places:
            reading = self.readings[at]
            found = False
            for chat in prompt(reading) if reading else ():
                for call in chat.calls if chat.name else ():
                    found = True
                    if fold(handover(call.name, call.arguments)) == own:
                        yield chat.name
            if found:
                return

    def _hear_callers(self) -> None:
        for place, part in enumerate(self.parts):
            reading = self.readings[part.scope.first]
            if part.number == 1 and reading is not None and reading.caller:
                before = self.by_agent.get(fold(reading.caller), ())
                at = bisect_left(before, place) - 1
                if at >= 0:
                    self._hear(place, before[at], "explicit")

    # --- links and what the dialect states

    def _hear_relations(self) -> None:
        for source, target, evidence in self.dialect.relations(self.tree):
            taker = self._at_or_below(target)
            if taker is not None:
                self._hear_scopes(self._givers(source, taker), taker, evidence)
        if any(span.links for span in self.tree.spans):
            index = {span.id: at for at, span in enumerate(self.tree.spans)}
            for at, span in enumerate(self.tree.spans):
                taker = self._at_or_below(at) if span.links else None
                if taker is not None:
                    sources = [index[link] for link in span.links if link in index]
                    self._hear_scopes(self._linked(sources, index, taker), taker, "explicit")

    def _hear_scopes(self, givers: Iterable[Scope], taker: Scope, evidence: Evidence) -> None:
        first = self.places[id(taker)][0]
        for giver in givers:
            given = self.places[id(giver)]
            at = bisect_left(given, first) - 1
            if giver is not taker and at >= 0:
                self._hear(first, given[at], evidence)

    def _linked(self, sources: list[int], index: dict[str, int], taker: Scope) -> Iterator[Scope]:
        """Scopes that the linked spans stand for; through spans of no agent on to what these link to."""
        seen: set[int] = set()
        while sources:
            at = sources.pop()
            while at >= 0 and at not in seen and not at <= taker.first < self.tree.ends[at]:
                seen.add(at)
                givers = self._givers(at, taker)
                if givers:
                    yield from givers
                    break
                sources += [index[link] for link in self.tree.spans[at].links if link in index]
                at = self.tree.parents[at]

    def _givers(self, at: int, taker: Scope) -> list[Scope]:
        """The scope that holds the span, else the last begun before it of those below it."""
        owner = self._owner(at)
        if owner is not None:
            return [owner]
        starts = self.tree.starts
        start = max(starts[at], starts[taker.first])
        return [scope for scope in self._below(at) if starts[scope.first] <= start][-1:]

    def _at_or_below(self, at: int) -> Scope | None:
        """The scope that holds the span, else the first that opens below it."""
        owner = self._owner(at)
        return owner if owner is not None else next(iter(self._below(at)), None)

    def _below(self, at: int) -> Sequence[Scope]:
        """The scopes that open at span ``at`` or below it."""
        return self.scopes[bisect_left(self.starts, at) : bisect_left(self.starts, self.tree.ends[at])]

    def _owner(self, at: int) -> Scope | None:
        if not hasattr(self, "owners"):
            self.owners = {member: scope for scope in self.scopes for member in scope.members}
        return self.owners.get(at)

    # --- texts, super-steps, order

    def _hear_texts(self, task: str) -> None:
        add_context(self.turns, given=[task] if task else [])
        if self.scopes:
            self._hear_super_steps()
        add_sequence(self.turns)

    def _hear_super_steps(self) -> None:
        """Nodes of which no prompt is known heard the super-step before: they read what it wrote."""
        steps: dict[int, list[int]] = defaultdict(list)
        for place, part in enumerate(self.parts):
            reading = self.readings[part.scope.first]
            if reading is not None and reading.step is not None:
                steps[reading.step].append(place)
        ordered = sorted(steps)
        for before, step in pairwise(ordered):
            for place in steps[step]:
                turn = self.turns[place]
                if not turn.shown and not turn.heard:
                    for source in steps[before]:
                        self._hear(place, source, "broadcast")

    # --- the trace

    def trace(self, *, source: str, format: str, warnings: Sequence[str]) -> Trace:
        facts = self.dialect.facts(self.tree)
        task = facts.pop("task", "") or self._task()
        self._hear_texts(task)
        labels = {"format": format, **self._labels(), **facts.pop("labels", {})}
        openers = (self.readings[scope.first] for scope in self.scopes)
        framework = next((reading.framework for reading in openers if reading and reading.framework), "")
        facts["system"] = framework or facts.get("system") or format
        return to_trace(
            self.turns,
            id=self.tree.spans[0].trace,
            task=task,
            source=source,
            labels=labels,
            warnings=(*warnings, *self.tree.warnings, *self._warnings()),
            **facts,
        )

    def _task(self) -> str:
        """The last thing that the user said to the root span, else to the first model call."""
        given = next((turn.text for turn in self.turns if turn.kind == "task"), "")
        if given or not self.parts:
            return given
        first = self.parts[0]
        places = [0, first.scope.first, *first.models[:1]]
        for reading in (self.readings[at] for at in places):
            for chat in reversed(prompt(reading) if reading else ()):
                if chat.role in ("user", "") and chat.text.strip():
                    return chat.text.strip()
        return ""

    def _labels(self) -> dict[str, Any]:
        spans = self.tree.spans
        labels: dict[str, Any] = {"trace_id": spans[0].trace} if spans[0].trace else {}
        labels["spans"] = len(spans)
        if rules := Counter(scope.rule for scope in self.scopes):
            labels["identity_rules"] = dict(rules.most_common())
        if self.tree.orphans:
            labels["orphans"] = self.tree.orphans
        if self.tree.running:
            labels["running"] = self.tree.running
        if all(parent >= 0 or span.parent for span, parent in zip(spans, self.tree.parents, strict=True)):
            labels["rootless"] = True
        if doubled := sum(self._has_tokens(at) for scope in self.scopes for at in self._above_leaves(scope)):
            labels["totals_left_out"] = doubled
        return labels

    def _above_leaves(self, scope: Scope) -> Iterator[int]:
        """Spans around model calls that know their tokens: totals of theirs would count these twice."""
        if scope.metered:
            leaves = set(scope.models)
            yield from (at for at in scope.members if at not in leaves)

    def _has_tokens(self, at: int) -> bool:
        reading = self.readings[at]
        return reading is not None and reading.usage is not None

    def _warnings(self) -> Iterator[str]:
        if self.dissolved:
            names = ", ".join(dict.fromkeys(self.dissolved))
            yield f"no model call of its own, so taken for a workflow and not for an agent: {names[:200]}"
        if self.tree.running:
            yield f"{self.tree.running} spans never ended: the run was cut off or is still going on"
        models = [self.readings[at] for scope in self.scopes for at in scope.models]
        if silent := sum(not reading.said for reading in models if reading):
            yield f"{silent} of {len(models)} model calls have no reply text"
        if unknown := sum(not reading.usage for reading in models if reading):
            yield f"{unknown} of {len(models)} model calls have no token counts"
        texts = Counter(turn.text for turn in self.turns if len(turn.text) >= MIN_CHARACTERS)
        if repeated := sum(count - 1 for count in texts.values()):
            yield f"{repeated} turns say word for word what a turn before them said"


def _names(scopes: Sequence[Scope]) -> dict[int, str]:
    """Display name of each scope's agent: two ids of one name are two agents, told apart by their ids."""
    ids: dict[str, list[str]] = defaultdict(list)
    for scope in scopes:
        if scope.id and scope.id not in ids[scope.agent]:
            ids[scope.agent].append(scope.id)
    return {
        id(scope): f"{scope.agent} ({scope.id})" if scope.id and len(ids[scope.agent]) > 1 else scope.agent
        for scope in scopes
    }
