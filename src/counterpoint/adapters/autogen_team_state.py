"""AutoGen team state: what ``await team.save_state()`` returns, as JSON.

::

    {"type": "TeamState", "version": "1.0.0", "agent_states": {
       "planner": {"type": "ChatAgentContainerState", "agent_state": {"type": "AssistantAgentState",
          "llm_context": {"messages": [
             {"type": "UserMessage", "source": "user", "content": "2+2?"},
             {"type": "AssistantMessage", "source": "planner", "content": "4"}]}}, "message_buffer": []},
       "RoundRobinGroupChatManager": {"type": "RoundRobinManagerState", "message_thread": [
          {"id": "m1", "source": "user", "type": "TextMessage", "content": "2+2?"}, ...]}}}

What counts
-----------
* The manager's thread makes the turns, as in a TaskResult (see `autogen`).
* The model context of an agent is what it was shown before each of its own messages there: texts of others
  since its last one are heard (context). Agents without a model context heard the shared chat (broadcast).
* **Not in the file**: the calls by which a manager chose who speaks. Times and tokens are those of the
  messages, where these have them. A buffered context keeps late messages only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from counterpoint.adapters._autogen import Chat, add_hearing
from counterpoint.adapters._chat_log import content_text
from counterpoint.adapters._messages import Chat as Said
from counterpoint.adapters._source import each, listed, opening
from counterpoint.adapters._transfers import Message, Turn, to_trace
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]


def sniff(source: Source) -> bool:
    """An object with ``agent_states``."""
    record = opening(source).record
    return isinstance(record.get("agent_states"), dict) and isinstance(record.get("type"), str)


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every state; a TraceError in place of each record that holds no thread of messages."""
    yield from each(source, _trace, split=listed)


def _trace(state: Any) -> Trace:
    states = state.get("agent_states") if isinstance(state, dict) else None
    if not isinstance(states, dict):
        raise TraceError('a team state is an object with "agent_states"')
    thread = _thread(states)
    chat = Chat()
    for index, message in enumerate(thread):
        chat.add(message, index)
    for name, each_state in states.items():
        agent = name.partition("/")[0]
        _show(_context(each_state), [turn for turn in chat.turns if turn.agent == agent])
    task = next((turn.text for turn in chat.turns if turn.kind == "task"), "")
    add_hearing(chat.turns, chat.targets, task)
    return to_trace(chat.turns, id="", task=task, system="autogen")


def _thread(states: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages of the manager's thread; the longest, where teams are nested."""
    threads = [state.get("message_thread") for state in states.values() if isinstance(state, dict)]
    found = [thread for thread in threads if isinstance(thread, list) and thread]
    if not found:
        raise TraceError('no agent state has a "message_thread": was the team saved before it ran?')
    longest = max(found, key=len)
    return [message for message in longest if isinstance(message, dict)]


def _context(state: Any) -> list[dict[str, Any]]:
    """The messages of an agent's model context."""
    inner = state.get("agent_state") if isinstance(state, dict) else None
    if not isinstance(inner, dict):
        return []
    context = inner.get("llm_context")
    messages = context.get("messages") if isinstance(context, dict) else inner.get("llm_messages")
    return [each for each in messages if isinstance(each, dict)] if isinstance(messages, list) else []


def _show(context: Sequence[dict[str, Any]], turns: Sequence[Turn]) -> None:
    """Gives each turn of an agent the messages that stand before it in the agent's context."""
    left = list(turns)
    before: list[Message] = []
    for message in context:
        content = message.get("content")
        calls = content if isinstance(content, list) else []
        keys = tuple(str(call["id"]) for call in calls if isinstance(call, dict) and "id" in call)
        if message.get("type") != "AssistantMessage":
            role = "tool" if message.get("type") == "FunctionExecutionResultMessage" else "user"
            before.append(Said(content_text(content), role))
            continue
        said = Said("" if keys else content_text(content), "assistant", keys)
        turn = next((turn for turn in left if _is_of(said, turn)), None)
        if turn is not None:
            turn.shown.append(list(before))
            turn.said.append(said)
            del left[: left.index(turn)]
        before.append(said)


def _is_of(said: Message, turn: Turn) -> bool:
    if said.keys:
        return any(call.id in said.keys for call in turn.calls)
    return bool(said.text) and said.text.strip() in turn.text
