"""CrewAI through OpenInference: tasks as agent spans, coworkers that show in tool spans only.

A task's span has its prompt in the *output* (``messages``), its result there too (``raw``). A delegated turn
has no span: the tool span *Delegate work to coworker* or *Ask question to coworker* names the coworker in its
arguments and holds the reply. True dependencies are the kickoff span's ``crew_tasks[].context``; the agent
that ``graph.node.parent_id`` names is merely that of the task before.
"""

from __future__ import annotations

from collections.abc import Iterator

from counterpoint.adapters._messages import Chat, as_text, chats, json_or_text, string_values
from counterpoint.adapters._spans import Reading, Span, Tree
from counterpoint.trace import Evidence

__all__ = ["coworker", "relations", "task"]


def task(span: Span) -> Reading | None:
    """A task that one agent did; None for spans that are no such thing."""
    attributes = span.attributes
    if "task_id" not in attributes or "crew_id" not in attributes or not attributes.get("graph.node.id"):
        return None
    output = json_or_text(attributes.get("output.value"))
    result = output if isinstance(output, dict) else {}
    raw = result.get("raw")
    return Reading(
        "agent",
        str(attributes["graph.node.id"]),
        rule="graph.node.id",
        shown=[chat for chat in chats(result.get("messages") or []) if chat.role != "assistant"],
        said=[Chat(raw, "assistant")] if isinstance(raw, str) else [],
        output=None if result else output,
    )


def coworker(span: Span) -> Reading | None:
    """A coworker's turn, from the span of the tool that asked for it; None for other tools."""
    name = span.attributes.get("tool.name") or span.name
    if "coworker" not in str(name).lower():
        return None
    arguments = json_or_text(span.attributes.get("input.value"))
    who = arguments.get("coworker") if isinstance(arguments, dict) else None
    if not isinstance(who, str) or not who.strip():
        return None
    told = [value for key, value in arguments.items() if key != "coworker"]
    return Reading(
        "tool",
        who.strip(),
        rule="coworker",
        called=True,
        shown=[Chat(text, "user") for text in string_values(told)],
        said=[Chat(as_text(span.attributes.get("output.value") or ""), "assistant")],
        tool=str(name),
        arguments=str(span.attributes.get("input.value")),
    )


def relations(tree: Tree) -> Iterator[tuple[int, int, Evidence]]:
    """Each task that another was given as context, by the descriptions that the kickoff span lists."""
    for at, span in enumerate(tree.spans):
        if "crew_tasks" not in span.attributes:
            continue
        tasks = json_or_text(span.attributes["crew_tasks"])
        if not isinstance(tasks, list):
            continue
        below = range(at, tree.ends[at])
        spans = {str(tree.spans[inner].attributes.get("task_id")): inner for inner in below}
        tasks = [item for item in tasks if isinstance(item, dict)]
        ids = {str(item.get("description")): str(item.get("id")) for item in tasks}
        for item in tasks:
            target, context = spans.get(str(item.get("id"))), item.get("context")
            for name in context if isinstance(context, list) and target is not None else ():
                source = spans.get(str(name), spans.get(ids.get(str(name), "")))
                if source is not None and target is not None:
                    yield source, target, "explicit"
