"""CrewAI events: what a listener on CrewAI's event bus saves, ``event.to_json()`` a line.

::

    {"type": "task_started", "event_id": "e2", "parent_event_id": "e1", "timestamp": "2026-11-30T14:22:39Z",
     "task_id": "t1", "task": {"id": "t1", "description": "Write an article.", "context": [{"id": "t0"}]}}
    {"type": "agent_execution_started", "event_id": "e3", "parent_event_id": "e2", "timestamp": "...",
     "agent": {"id": "a1", "role": "Writer"}, "task_prompt": "..."}
    {"type": "llm_call_started", "event_id": "e4", "parent_event_id": "e3", "messages": [...], ...}
    {"type": "llm_call_completed", "event_id": "e5", "started_event_id": "e4", "response": "...",
     "usage": {"prompt_tokens": 73, "completion_tokens": 84}, ...}
    {"type": "agent_execution_completed", "event_id": "e6", "started_event_id": "e3", "output": "...", ...}

What counts
-----------
* An agent's execution is a step; one inside a tool call (*delegate work to coworker*) splits that of the
  caller, and is known by call and return.
* Tasks listed in a task's ``context`` are explicit transfers. Where the list is left out CrewAI pastes the
  output of the task before: that is found in the prompt (context).
* The task is what the crew's tasks describe. Objects deep in an event are printed by Python, quotes and all:
  they are unquoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from counterpoint.adapters._items import Items
from counterpoint.adapters._messages import Chat, ToolCall, as_json, chats
from counterpoint.adapters._otlp import nanoseconds
from counterpoint.adapters._runs import Dialect, Relation, traces
from counterpoint.adapters._source import opening
from counterpoint.adapters._spans import Reading, Span, Tree
from counterpoint.adapters._usage import usage_of
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]

_KEPT = (
    "agent", "context", "crew_name", "error", "flow_name", "messages", "model", "output", "response", "task",
    "task_prompt", "tool_args", "tool_name", "usage",
)  # fmt: skip
_CALL_ID = re.compile(r"'id': '([^']+)'")
_LASTING = {"agent_execution", "crew_kickoff", "llm_call", "task", "tool_usage"}
"""What has an end, if it came to one. Of other kinds some have only a start."""
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def sniff(source: Source) -> bool:
    """Events with a type, an id, and a place among the others."""
    return _is_event(opening(source).record)


def _is_event(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("event_id"), str):
        return False
    placed = {"emission_sequence", "parent_event_id"} & set(value)
    return isinstance(value.get("type"), str) and bool(placed)


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every kickoff among the events; a TraceError in place of each record that is no event."""
    events: list[dict[str, Any]] = []

    def take(event: Any) -> bool:
        if found := _is_event(event):
            events.append(event)
        return found

    items = Items(source, "not an event of CrewAI")
    yield from items.give(take)
    spans: dict[str, Span] = {}
    for event in sorted(events, key=_place):
        _add(event, spans)
    for span in spans.values():
        span.trace = _root(span, spans)
    if spans or not items.broken:
        dialect = Dialect(_read, relations=_relations, facts=_facts)
        yield from traces(
            list(spans.values()),
            dialect,
            source=source.name,
            format="crewai_events",
            warnings=items.warnings,
        )


def _place(event: dict[str, Any]) -> tuple[int, int, bool]:
    """In time, and a start before an end of the same moment: listeners in threads write in any order."""
    sequence = event.get("emission_sequence")
    number = sequence if isinstance(sequence, int) else 0
    return nanoseconds(event.get("timestamp")), number, not event["type"].endswith("_started")


def _add(event: dict[str, Any], spans: dict[str, Span]) -> None:
    """Opens the span that an event starts, or closes the one that it ends; other events tell nothing new."""
    kind, _, moment = event["type"].rpartition("_")
    kept = {key: event[key] for key in _KEPT if event.get(key) is not None}
    started = event.get("started_event_id")
    if moment == "started":
        start = nanoseconds(event.get("timestamp"))
        spans[event["event_id"]] = Span(
            id=event["event_id"],
            name=str(kept.get("crew_name") or kept.get("flow_name") or kept.get("tool_name") or kind),
            parent=str(event.get("parent_event_id") or ""),
            start=start,
            end=0 if kind in _LASTING else start,
            attributes={**kept, "kind": kind},
        )
    elif isinstance(started, str) and started in spans:
        span = spans[started]
        span.end = nanoseconds(event.get("timestamp"))
        span.attributes |= {key: kept[key] for key in ("error", "output", "response", "usage") if key in kept}
        if kept.get("error"):
            span.error = str(kept["error"])


def _root(span: Span, spans: Mapping[str, Span]) -> str:
    seen = {span.id}
    while span.parent in spans and span.parent not in seen:
        seen.add(span.parent)
        span = spans[span.parent]
    return span.id


# --- what an event says --------------------------------------------------------------------------


def _read(span: Span) -> Reading | None:
    event = span.attributes
    kind = event["kind"]
    if kind == "agent_execution":
        return _agent(event)
    if kind == "llm_call":
        return Reading(
            "model",
            shown=_shown(event.get("messages")),
            said=_said(event.get("response")),
            usage=usage_of(event.get("usage"), model=event.get("model")),
        )
    if kind == "tool_usage":
        output = event.get("output")
        return Reading(
            "tool",
            tool=str(event.get("tool_name") or ""),
            arguments=as_json(event.get("tool_args")),
            result=None if output is None else as_json(output),
        )
    return None


def _agent(event: dict[str, Any]) -> Reading:
    agent = event.get("agent")
    agent = agent if isinstance(agent, dict) else {}
    output, prompt = event.get("output"), event.get("task_prompt")
    return Reading(
        "agent",
        str(agent.get("role") or "agent").strip(),
        str(agent.get("id") or ""),
        rule="agent.role",
        shown=chats(prompt, "user"),
        said=[] if output is None else [Chat(_raw(output), "assistant")],
    )


def _shown(messages: Any) -> list[Chat]:
    """A prompt; of tool calls in it, which Python printed, the ids, by which they are known again."""
    found = []
    for message in messages if isinstance(messages, list) else [messages]:
        printed = message.get("tool_calls") if isinstance(message, dict) else None
        if isinstance(printed, list) and all(isinstance(call, str) for call in printed):
            ids = [match[1] for call in printed if (match := _CALL_ID.search(call))]
            message = {**message, "tool_calls": [{"id": identity} for identity in ids]}
        found += chats(message, "user")
    return found


def _raw(output: Any) -> str:
    raw = output.get("raw") if isinstance(output, dict) else output
    return as_json(raw)


def _said(response: Any) -> list[Chat]:
    """A reply: its text, or the tool calls that it asked for."""
    if not isinstance(response, list):
        return [Chat(as_json(response), "assistant")] if response is not None else []
    found = chats([{"role": "assistant", "tool_calls": response}])
    calls = tuple(
        ToolCall(call.id, _unquoted(call.name), _unquoted(call.arguments))
        for chat in found
        for call in chat.calls
    )
    return [Chat("", "assistant", tuple(call.id for call in calls if call.id), calls=calls)]


def _unquoted(text: str) -> str:
    r"""The text in a string as Python prints it.

    >>> _unquoted("'{\"a\": \"it\\'s\"}'"), _unquoted("plain")
    ('{"a": "it\'s"}', 'plain')
    """
    if len(text) < 2 or text[0] not in "'\"" or text[-1] != text[0]:
        return text
    escapes = {"n": "\n", "r": "\r", "t": "\t"}
    return re.sub(r"\\(.)", lambda match: escapes.get(match[1], match[1]), text[1:-1])


# --- what the whole run says ---------------------------------------------------------------------


def _relations(tree: Tree) -> Iterator[Relation]:
    """Each task that another was given as context."""
    workers: dict[str, int] = {}
    for at, span in enumerate(tree.spans):
        task = _task(span)
        inside = range(at, tree.ends[at]) if task else ()
        found = [inner for inner in inside if tree.parents[inner] == at]
        at_work = [inner for inner in found if tree.spans[inner].attributes["kind"] == "agent_execution"]
        if not at_work:
            continue
        context = task.get("context")
        for upstream in context if isinstance(context, list) else ():
            source = workers.get(_id(upstream))
            if source is not None:
                yield source, at_work[0], "explicit"
        workers[_id(task)] = at_work[-1]


def _task(span: Span) -> dict[str, Any]:
    task = span.attributes.get("task")
    return task if span.attributes["kind"] == "task" and isinstance(task, dict) else {}


def _id(task: Any) -> str:
    """A task's id, plain or as Python prints it: ``UUID('603c0119-...')``."""
    identity = str(task.get("id") if isinstance(task, dict) else task)
    match = _UUID.search(identity)
    return match[0] if match else identity


def _facts(tree: Tree, *_: Any) -> dict[str, Any]:
    tasks = [str(task["description"]).strip() for task in map(_task, tree.spans) if task.get("description")]
    named = _first(tree.spans, "crew_name")
    labels = {"crew": named} if named and named != "crew" else {}
    return {"system": "crewai", "task": "\n".join(dict.fromkeys(tasks)), "labels": labels}


def _first(spans: Sequence[Span], key: str) -> str:
    return next((str(span.attributes[key]) for span in spans if span.attributes.get(key)), "")
