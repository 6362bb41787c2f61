"""LangGraph's own records of a run: tasks, each one run of one node, as spans.

A task knows the state before it and what it wrote. Tasks of one instance are one turn: an agent that is a
graph itself leaves a task of its node, and tasks of the nodes inside (``agent``, ``tools``).

What a turn wrote is told from what it merely passed on by message ids, for nodes that are graphs return the
whole list of messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from counterpoint.adapters._messages import Chat, as_json, chats, string_values
from counterpoint.adapters._spans import Reading, Span
from counterpoint.adapters._transcript import READING
from counterpoint.adapters._transfers import total_usage
from counterpoint.adapters._usage import usage_of
from counterpoint.adapters.dialects import langgraph
from counterpoint.trace import Usage

__all__ = ["Node", "Task", "author", "human_text", "message_usage", "nodes", "spans"]

_CONTROL = {"__start__", "__end__", "__interrupt__"}


@dataclass(slots=True)
class Task:
    """One run of one node."""

    id: str
    name: str
    path: tuple[str, ...] = ()
    """Namespaces of the graphs around, outermost first: ``math_expert:92f6...``."""
    step: int = 0
    before: Any = None
    """The state that it was given; None: unknown."""
    wrote: Any = None
    start: int = 0
    end: int = 0
    error: str | None = None


@dataclass(slots=True)
class Node:
    """One turn: the tasks of one instance of an agent."""

    id: str
    agent: str
    parent: str
    step: int
    tasks: list[Task] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    """What it wrote to the list of messages, each once."""
    channels: list[Any] = field(default_factory=list)
    """What it wrote elsewhere."""

    @property
    def silent(self) -> bool:
        """Did it write nothing at all, as routers do?"""
        return not self.messages and not any(map(as_json, self.channels)) and not self.error

    @property
    def error(self) -> str | None:
        return next((task.error for task in self.tasks if task.error), None)


def nodes(tasks: Sequence[Task]) -> list[Node]:
    """Every turn, in order of its first task."""
    found: dict[str, Node] = {}
    for task in tasks:
        if task.name in _CONTROL:
            continue
        runs = [*task.path, f"{task.name}:{task.id}"]
        agent, instance, _ = langgraph.node({"langgraph_checkpoint_ns": "|".join(runs)}) or ("", "", None)
        if not agent:  # A graph of machinery only is one agent, which nobody named.
            agent, instance = "agent", "agent"
        parent = instance.rpartition("|")[0]
        node = found.setdefault(instance, Node(instance, agent, parent, task.step))
        node.tasks.append(task)
    for node in found.values():
        _collect(node)
    return list(found.values())


def _collect(node: Node) -> None:
    known = set(map(_identity, _messages(node.tasks[0].before)))
    for task in node.tasks:
        for write in task.wrote if isinstance(task.wrote, list) else [task.wrote]:
            for message in _messages(write):
                identity = _identity(message)
                if identity not in known:
                    known.add(identity)
                    node.messages.append(message)
            if isinstance(write, Mapping):
                node.channels += [value for key, value in write.items() if key != "messages" and value]
            elif write and not isinstance(write, tuple):
                node.channels.append(write)


def _messages(state: Any) -> list[dict[str, Any]]:
    """The messages of a state, or of a write to it: a list of them, or one."""
    found = state.get("messages") if isinstance(state, Mapping) else None
    found = found if isinstance(found, list) else [found]
    return [message for message in found if isinstance(message, dict)]


def _inner(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a message, however it was dumped."""
    for key in ("data", "kwargs"):
        if isinstance(message.get(key), dict):
            return {**message, **message[key]}
    return message


def author(message: Any) -> str:
    """The name of who wrote a message; empty where it has none."""
    name = _inner(message).get("name") if isinstance(message, Mapping) else None
    return name if isinstance(name, str) else ""


def _identity(message: Mapping[str, Any]) -> str:
    """Its id; of a message that has not got one yet, its content."""
    fields = _inner(message)
    identity = fields.get("id")
    if isinstance(identity, str) and identity:
        return identity
    return as_json([fields.get(key) for key in ("type", "content", "tool_calls", "name")])


def message_usage(message: Any) -> Usage | None:
    """The tokens of the call that made a message, as LangChain notes them on it."""
    fields = _inner(message) if isinstance(message, Mapping) else {}
    about = fields.get("response_metadata")
    about = about if isinstance(about, Mapping) else {}
    model = about.get("model_name", about.get("model"))
    places = (fields.get("usage_metadata"), about.get("token_usage"), about.get("usage"))
    return next((usage for place in places if (usage := usage_of(place, model=model))), None)


def human_text(state: Any) -> str:
    """The first thing that the user said, or the texts of a state without messages."""
    for chat in chats(_messages(state)):
        if chat.role == "user" and chat.text.strip():
            return chat.text.strip()
    return "" if _messages(state) else "\n".join(string_values(state))


# --- spans ---------------------------------------------------------------------------------------


def spans(found: Sequence[Node], *, trace: str, prompts: bool) -> Iterator[Span]:
    """A span for each turn, with its reading, and one inside for each tool that it called.

    ``prompts``: the state before was given to this very node, and counts as what it was shown.
    """
    for node in found:
        said = [message for message in node.messages if not _is_notice(message)]
        replies = [chat for message in said for chat in chats(message) if chat.role == "assistant"]
        text = "\n\n".join(chat.text for chat in replies if chat.text.strip())
        if not text and not replies:
            text = "\n".join(_texts(node.channels))
        first = node.tasks[0]
        reading = Reading(
            "agent",
            node.agent,
            instance=node.id,
            rule="node",
            control=node.silent,
            shown=_shown(first.before) if prompts else [],
            said=[Chat(text, "assistant"), *replies] if text else [],
            state=True,
            usage=total_usage(message_usage(message) for message in said),
        )
        span = Span(
            node.id, node.agent, trace, node.parent, first.start, max(task.end for task in node.tasks)
        )
        span.error, span.attributes = node.error, {READING: reading}
        yield span
        yield from _tools(node, span)


def _is_notice(message: Mapping[str, Any]) -> bool:
    """Words that LangGraph puts into an agent's mouth when it hands back."""
    about = _inner(message).get("response_metadata")
    return isinstance(about, Mapping) and about.get("__is_handoff_back") is True


def _shown(before: Any) -> list[Chat]:
    """The state as a prompt: its messages, then what stands in other channels, which nobody signed."""
    shown = chats(_messages(before))
    if isinstance(before, Mapping):
        others = [value for key, value in before.items() if key != "messages"]
        shown += [Chat(text, "user") for text in string_values(others)]
    return shown


def _texts(channels: Sequence[Any]) -> list[str]:
    texts = string_values(channels)
    return list(dict.fromkeys(texts)) if texts else [as_json(value) for value in channels]


def _tools(node: Node, around: Span) -> Iterator[Span]:
    """The calls in the messages, hand-overs among them, with the results that came back."""
    found = chats(node.messages)
    results = {chat.answers: chat.text for chat in found if chat.answers}
    for number, call in enumerate(call for chat in found for call in chat.calls):
        reading = Reading(
            "tool", tool=call.name, arguments=call.arguments, call=call.id, result=results.get(call.id)
        )
        name = f"{around.id}/{number}"
        end = around.end or around.start
        yield Span(name, call.name, around.trace, around.id, around.start, end, attributes={READING: reading})
