"""AutoGen's event log: what the logger ``autogen_core.events`` wrote, a JSON object a line.

::

    {"logger": "autogen_core.events", "created": 1796049180.64, "event":
       {"type": "LLMCall", "agent_id": "planner_27a8.../27a8...", "messages": [...], "response": {...},
        "prompt_tokens": 41, "completion_tokens": 78}}
    {"logger": "autogen_core.events", "created": 1796049180.65, "event":
       {"type": "Message", "sender": "planner_27a8.../27a8...", "receiver": "group_topic_27a8.../27a8...",
        "payload": "{\\"response\\":{\\"chat_message\\":{\\"source\\":\\"planner\\",...}}}"}}

The object around the event may be missing.

What counts
-----------
* Chat messages make the turns, as in a TaskResult (see `autogen`); each is delivered many times and read
  once. A task that is put to a team begins a new trace.
* Model calls are those of the next turn of their agent, their prompts what it was shown: texts of others
  since the agent's own last one are heard (context). Agents without any model call heard the shared chat
  (broadcast); a handoff is explicit.
* A call of the manager, which chooses who speaks, is a control step; ledger calls of a Magentic-One
  orchestrator belong to its turns. Tokens are those of the calls.
* Without any chat message (AutoGen Core) each agent's model calls in a row are a turn.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from counterpoint.adapters._autogen import Chat, add_hearing, is_manager
from counterpoint.adapters._chat_log import json_text
from counterpoint.adapters._messages import chats, json_or_text
from counterpoint.adapters._source import opening, records
from counterpoint.adapters._times import seconds
from counterpoint.adapters._transfers import Message, Turn, to_trace, total_usage
from counterpoint.adapters._usage import usage_of
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Call, Trace

__all__ = ["read", "sniff"]

_TYPES = {"LLMCall", "LLMStreamStart", "LLMStreamEnd", "Message", "ToolCall", "MessageDropped"}
_TYPES |= {"MessageHandlerException", "AgentConstructionException"}
_TEAM = re.compile(r"_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")


def sniff(source: Source) -> bool:
    """Events of the types that ``autogen_core`` logs."""
    record = opening(source).record
    return record.get("logger") == "autogen_core.events" or (
        record.get("type") in ("LLMCall", "Message", "ToolCall", "LLMStreamStart")
        and bool({"agent_id", "delivery_stage"} & set(record))
    )


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every run that was logged; a TraceError in place of each record that is no event."""
    run = _Run()
    warnings: dict[str, None] = {}
    found = False
    for record in records(source):
        if isinstance(record, TraceError):
            found = True
            yield record
            continue
        warnings.update(dict.fromkeys(record.warnings))
        value = record.value
        event = json_or_text(value["event"]) if isinstance(value, dict) and "event" in value else value
        if not isinstance(event, dict) or "type" not in event:
            found = True
            yield TraceError("not an event of AutoGen", source=source.name, record=record.number)
            continue
        if run.begins_anew(event):
            found = True
            yield run.trace(tuple(warnings))
            run = _Run()
        run.add(event, seconds(value.get("created")), record.number)
    if not run.empty:
        yield run.trace(tuple(warnings))
    elif not found:
        yield TraceError("no chat message and no model call among the events", source=source.name)


class _Run:
    """The turns of one run while its events come in."""

    def __init__(self) -> None:
        self._chat = Chat()
        self._messages: set[str] = set()
        """Ids of the messages seen."""
        self._waiting: dict[str, list[Turn]] = defaultdict(list)
        """Of each agent: its model calls since its last message, as turns of their own."""
        self._asked: dict[str, list[Message]] = {}
        """Of each agent: the prompt of a streamed call that has not ended."""
        self._tools: dict[str, list[Call]] = defaultdict(list)
        self._calls: list[Turn] = []
        self._tasks = 0

    @property
    def empty(self) -> bool:
        """Was neither said nor called anything?"""
        return not self._chat.turns and not self._calls

    def begins_anew(self, event: dict[str, Any]) -> bool:
        """Does the event put a new task to a team that has already worked?"""
        if self._tasks == 0 or event.get("type") != "Message" or event.get("sender"):
            return False
        fresh = [each for each in _told(event) if each["id"] not in self._messages]
        return bool(fresh) and all(each.get("source") == "user" for each in fresh)

    def add(self, event: dict[str, Any], at: float | None, number: int) -> None:
        kind = event["type"]
        if kind == "Message":
            for message in _told(event):
                self._add_message(message, number)
        elif kind == "LLMStreamStart":
            self._asked[_name(event.get("agent_id"))] = [*chats(event.get("messages"), "user")]
        elif kind in ("LLMCall", "LLMStreamEnd"):
            self._add_call(event, at, number)
        elif kind == "ToolCall":
            arguments = json_text(event.get("arguments") or "")
            call = Call(str(number), str(event.get("tool_name")), arguments, json_text(event.get("result")))
            self._tools[_name(event.get("agent_id"))].append(call)

    def _add_message(self, message: dict[str, Any], number: int) -> None:
        if message["id"] in self._messages or not isinstance(message.get("source"), str):
            return
        self._messages.add(message["id"])
        turn = self._chat.add({**message, "models_usage": None}, number)
        self._tasks += message["source"] == "user"
        if turn is not None:
            for call in self._waiting.pop(turn.agent, ()):
                _merge(turn, call)

    def _add_call(self, event: dict[str, Any], at: float | None, number: int) -> None:
        agent = _name(event.get("agent_id"))
        response = json_or_text(event.get("response"))
        said = chats(response, "assistant")
        model = response.get("model") if isinstance(response, dict) else None
        prompt: list[Message] = [*chats(event.get("messages"), "user")] or self._asked.pop(agent, [])
        turn = Turn(
            str(number),
            agent,
            "\n\n".join(chat.text for chat in said if chat.text),
            "control" if is_manager(agent) else "agent",
            said=[*said],
            shown=[prompt] if prompt else [],
            ended_at=at,
            usage=usage_of(event, model=model),
        )
        self._calls.append(turn)
        if turn.kind == "control":
            self._chat.turns.append(turn)
        else:
            self._waiting[agent].append(turn)

    def trace(self, warnings: tuple[str, ...]) -> Trace:
        turns = self._turns()
        task = next((turn.text for turn in turns if turn.kind == "task"), "")
        add_hearing(turns, self._chat.targets, task)
        return to_trace(turns, id="", task=task, system="autogen", warnings=warnings)

    def _turns(self) -> list[Turn]:
        """The turns of the chat, or of the model calls where there was none; later calls go to the last."""
        if all(turn.kind in ("task", "control") for turn in self._chat.turns):
            return self._called_turns()
        last = {turn.agent: turn for turn in self._chat.turns}
        for agent, calls in self._waiting.items():
            for call in calls:
                if agent in last:
                    _merge(last[agent], call)
                else:
                    self._chat.turns.append(call)
                    last[agent] = call
        return self._chat.turns

    def _called_turns(self) -> list[Turn]:
        turns: list[Turn] = [turn for turn in self._chat.turns if turn.kind == "task"]
        for call in self._calls:
            if turns and turns[-1].agent == call.agent:
                _merge(turns[-1], call)
                turns[-1].text = "\n\n".join(filter(None, [turns[-1].text, call.text]))
            else:
                call.calls = self._tools.pop(call.agent, [])
                turns.append(call)
        return turns


def _merge(turn: Turn, call: Turn) -> None:
    """Adds a model call to the turn that it was made in."""
    turn.said += call.said
    turn.shown += call.shown
    turn.usage = total_usage([turn.usage, call.usage])
    if turn.started_at is None:
        turn.started_at = call.ended_at


def _name(agent_id: Any) -> str:
    """The agent in ``planner_<team id>/<team id>``."""
    return _TEAM.sub("", str(agent_id or "agent").partition("/")[0])


def _told(event: dict[str, Any]) -> list[dict[str, Any]]:
    """The chat messages in a payload that have an id: of a task, a reply, or an event of an agent's work."""
    payload = json_or_text(event.get("payload"))
    if not isinstance(payload, dict):
        return []
    response = payload.get("response")
    response = response if isinstance(response, dict) else {}
    groups = (payload.get("messages"), response.get("inner_messages"))
    found = [message for group in groups if isinstance(group, list) for message in group]
    found += [payload.get("message"), response.get("chat_message")]
    return [each for each in found if isinstance(each, dict) and isinstance(each.get("id"), str)]
