"""AutoGen AgentChat: the TaskResult that a team's ``run`` returns, as JSON.

Sample::

    {"messages": [
       {"id": "m1", "source": "user", "type": "TextMessage", "content": "2+2?", "models_usage": null},
       {"id": "m2", "source": "solver", "type": "ToolCallRequestEvent",
        "content": [{"id": "c1", "name": "add", "arguments": "{}"}],
        "models_usage": {"prompt_tokens": 9, "completion_tokens": 3}},
       {"id": "m3", "source": "solver", "type": "ToolCallExecutionEvent",
        "content": [{"call_id": "c1", "name": "add", "content": "4", "is_error": false}]},
       {"id": "m4", "source": "solver", "type": "ToolCallSummaryMessage", "content": "4"}],
     "stop_reason": "..."}

What counts
-----------
* Request, execution and summary of one agent are one step with calls; so are the plan and the instruction
  that the Magentic-One orchestrator posts one after the other. A thought is no text of the step, for nobody
  hears it, unless the agent said nothing else or a handoff takes it along (``context``).
* Everyone hears what was said since their own last turn (broadcast); a handoff is explicit for its target.
* The manager's choice of a speaker is a control step. Streaming chunks repeat the message and are dropped.
* ``created_at`` is when a message was done: the end of its step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from counterpoint.adapters._autogen import Chat
from counterpoint.adapters._chat_log import hand_over, items
from counterpoint.adapters._source import each, listed, opening
from counterpoint.adapters._transfers import add_broadcast, to_trace
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]


def sniff(source: Source) -> bool:
    """An object with ``messages`` that have a ``source`` and a ``type``."""
    messages = opening(source).record.get("messages")
    if not isinstance(messages, list) or not messages or not isinstance(messages[0], dict):
        return False
    return {"source", "type"} <= set(messages[0]) and "role" not in messages[0]


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every TaskResult; files of several are lists or JSONL of them."""
    yield from each(source, _trace, split=listed)


def _trace(result: Any) -> Trace:
    chat = Chat()
    for index, message in enumerate(items(result, "messages", "a TaskResult")):
        chat.add(message, index)
    hand_over(chat.turns, chat.targets)
    add_broadcast(chat.turns)
    reason = result.get("stop_reason")
    return to_trace(
        chat.turns,
        id="",
        task=next((turn.text for turn in chat.turns if turn.kind == "task"), ""),
        system="autogen",
        labels={"stop_reason": reason} if reason else {},
    )
