"""Chat messages in the style of OpenAI: a list of them, an object with ``messages``, or one of these a line.

Sample::

    {"task": "2+2?", "gold": "4", "messages": [
       {"role": "user", "content": "2+2?"},
       {"role": "assistant", "name": "solver", "content": "", "tool_calls": [
          {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\\"a\\": 2}"}}]},
       {"role": "tool", "tool_call_id": "c1", "content": "4"},
       {"role": "assistant", "name": "solver", "content": "4"},
       {"role": "assistant", "name": "critic", "content": "Agreed."}]}

What counts
-----------
* A speaker is the message's name, else its role; ``name_key`` and ``role_key`` say where these stand. What
  user, human or user_proxy say is the task; every other name is an agent, whatever its role.
* A message with tool calls, their results and the next message of the same agent are one step.
* The chat is shared: everyone hears what was said since their own last turn (broadcast). A call of
  ``transfer_to_NAME`` is an explicit transfer to that agent's next step.
* System messages are no steps. An object's ``task``, ``gold``, ``answer``, ``correct``, ``system`` and
  ``benchmark`` are those of the trace, its other plain values go to the labels.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from counterpoint.adapters._chat_log import (
    Names,
    content_text,
    found_keys,
    hand_over,
    is_user,
    items,
    json_text,
    objects,
    settle,
    spoken_at,
    usage,
)
from counterpoint.adapters._source import each, opening
from counterpoint.adapters._times import seconds
from counterpoint.adapters._transfers import Turn, add_broadcast, to_trace, total_usage
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Call, Trace

__all__ = ["from_messages", "read", "sniff"]

_ROLES = {"system", "developer", "user", "assistant", "tool", "function", "human", "ai"}
_OTHER_FORMATS = {
    "agent_id",
    "member_responses",
    "parent_run_id",
    "reward_info",
    "run_id",
    "schema_version",
    "session_id",
    "trace_id",
    "trajectory",
}
"""Keys of objects that hold messages too, but more than a chat."""
_TEXTS = ("task", "gold", "answer", "system", "benchmark")
_HANDOFF = re.compile(r"(?:transfer|handoff|hand_off)(?:_back)?_to_(.+)")


def sniff(source: Source) -> bool:
    """Messages with a role that chat models know, or with any role where the user says which key it is."""
    value = opening(source).value
    if isinstance(value, list) and value and _holds_messages(value[0]):
        value = value[0]
    if isinstance(value, dict):
        value = [] if _OTHER_FORMATS & set(value) else value.get("messages")
    if not isinstance(value, list) or not value:
        return False
    role_key = source.options.get("role_key", "role")
    return all(_is_message(item, role_key) for item in (value[:-1] or value))


def _is_message(item: Any, role_key: str) -> bool:
    if not isinstance(item, dict) or not {"content", "tool_calls", "function_call"} & set(item):
        return False
    role = item.get(role_key)
    return isinstance(role, str) and (role in _ROLES or role_key != "role")


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every conversation in the file."""
    keys = {key: source.options[key] for key in ("name_key", "role_key") if key in source.options}
    yield from each(source, partial(_conversation, **keys), split=_conversations)


def _conversations(document: Any) -> list[Any]:
    """The conversations of a document that is one, or a list of them."""
    several = isinstance(document, list) and document and all(map(_holds_messages, document))
    return document if several else [document]


def _holds_messages(value: Any) -> bool:
    return isinstance(value, list) or (isinstance(value, dict) and "messages" in value)


def _conversation(document: Any, **keys: str) -> Trace:
    if isinstance(document, list):
        return from_messages(document, **keys)
    trace = from_messages(items(document, "messages", "a conversation"), **keys)
    fields: dict[str, Any] = {
        key: content_text(document[key]) for key in _TEXTS if document.get(key) is not None
    }
    if isinstance(document.get("correct"), bool):
        fields["correct"] = document["correct"]
    rest = {
        key: value
        for key, value in document.items()
        if key not in (*fields, "messages") and isinstance(value, str | int | float | bool)
    }
    return replace(trace, labels={**trace.labels, **rest}, **fields)


def from_messages(
    messages: Iterable[Any],
    *,
    name_key: str = "name",
    role_key: str = "role",
    task: str = "",
    gold: str | None = None,
    id: str = "",
) -> Trace:
    """A trace from the messages of one conversation.

    Parameters
    ----------
    messages : objects with role and content, as dicts or as what a client library returned.
    name_key, role_key : the keys of the speaker's name and role.
    task : what the team was asked; left out: the first message of the user.
    gold : the right answer.
    id : left out: made from the messages.

    Raises
    ------
    TraceError
        where something is no message, with its number; or where no message has a ``name_key`` of your own.
    """
    plain = objects([_plain(message) for message in messages], "a conversation")
    if name_key != "name" and plain and not any(item.get(name_key) for item in plain):
        raise TraceError(f'no message has a "{name_key}" (found: {found_keys(plain[0])})')
    chat = _Chat(name_key, role_key)
    for index, item in enumerate(plain):
        chat.add(item, index)
    hand_over(chat.turns, _handoffs(chat.turns))
    add_broadcast(chat.turns)
    digest = hashlib.sha256(json_text(plain).encode("utf-8", "replace")).hexdigest()
    return to_trace(
        chat.turns,
        id=id or f"chat-{digest[:12]}",
        task=task or next((turn.text for turn in chat.turns if turn.kind == "task"), ""),
        gold=gold,
        system="chat",
        labels={"system_prompt": "\n\n".join(chat.instructions)} if chat.instructions else {},
    )


def _plain(message: Any) -> Any:
    """A message of a client library as a dict."""
    dump = getattr(message, "model_dump", None)
    if dump is not None:
        return dump(exclude_none=True)
    return dict(message) if isinstance(message, Mapping) else message


class _Chat:
    """The turns of a conversation while its messages come in."""

    def __init__(self, name_key: str, role_key: str) -> None:
        self.turns: list[Turn] = []
        self.instructions: list[str] = []
        self._name_key, self._role_key = name_key, role_key
        self._names = Names()
        self._callers: dict[str, Turn] = {}
        """Id of a tool call to the turn that made it."""
        self._working: Turn | None = None
        """The last turn, if it waits for the results of its calls."""

    def add(self, item: dict[str, Any], index: int) -> None:
        role, name = item.get(self._role_key), item.get(self._name_key)
        role = role.strip().lower() if isinstance(role, str) else ""
        text = content_text(item.get("content"))
        if role in ("system", "developer"):
            self.instructions.append(text)
        elif role in ("tool", "function"):
            self._result(item, text, index)
        else:
            speaker = name if isinstance(name, str) and name.strip() else role
            if not speaker:
                raise TraceError(
                    f'message {index + 1} has neither "{self._name_key}" nor "{self._role_key}" '
                    f"(found: {found_keys(item)})"
                )
            self._message(item, self._names.of(speaker), text, index)

    def _message(self, item: dict[str, Any], speaker: str, text: str, index: int) -> None:
        turn = self._working
        if turn is None or turn.agent != speaker:
            turn = Turn(str(index), speaker, kind="task" if is_user(speaker) else "agent")
            self.turns.append(turn)
        turn.text = "\n\n".join(filter(None, [turn.text, text]))
        spoken_at(turn, seconds(item.get("created_at", item.get("timestamp"))))
        turn.usage = total_usage([turn.usage, usage(item.get("usage"), model=item.get("model"))])
        calls = list(_calls(item, index))
        turn.calls += calls
        self._callers |= {call.id: turn for call in calls}
        self._working = turn if calls else None

    def _result(self, item: dict[str, Any], text: str, index: int) -> None:
        known = [item.get(key) for key in ("tool_call_id", self._name_key)]
        call, tool = (value if isinstance(value, str) else "" for value in known)
        turn = self._callers.get(call) if call else self._working
        if turn is None:
            self.turns.append(Turn(str(index), tool or "tool", text, "tool"))
        else:
            settle(turn.calls, call, text, tool=tool)


def _calls(item: dict[str, Any], index: int) -> Iterator[Call]:
    """The tool calls of a message; an older form has one, without an id."""
    listed = item.get("tool_calls")
    single = item.get("function_call")
    for call in listed if isinstance(listed, list) else [{"function": single}] if single else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            name, arguments = str(function.get("name")), json_text(function.get("arguments", ""))
            yield Call(str(call.get("id") or f"{index}-{name}"), name, arguments)


def _handoffs(turns: Sequence[Turn]) -> dict[str, str]:
    """Turns that call a transfer tool, and the agent that it names."""
    agents = {_squashed(turn.agent): turn.agent for turn in turns}
    targets = {}
    for turn in turns:
        for call in turn.calls:
            match = _HANDOFF.fullmatch(call.tool)
            if match and (target := agents.get(_squashed(match[1]))):
                targets[turn.id] = target
    return targets


def _squashed(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()
