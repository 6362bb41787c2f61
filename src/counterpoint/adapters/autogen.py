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
  hears it, unless the agent said nothing else.
* Everyone hears what was said since their own last turn (broadcast); a handoff is explicit for its target.
* The manager's choice of a speaker is a control step. Streaming chunks repeat the message and are dropped.
* ``created_at`` is when a message was done: the end of its step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from counterpoint.adapters._chat_log import (
    content_text,
    found_keys,
    hand_over,
    is_user,
    items,
    json_text,
    objects,
    runs,
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

__all__ = ["read", "sniff"]

SYSTEM = "AutoGen AgentChat"

_DROPPED = {"ModelClientStreamingChunkEvent", "UserInputRequestedEvent", "MemoryQueryEvent"}
_CHOICES = {"SelectSpeakerEvent", "SelectorEvent"}
_SPEAKS_ON = {"MagenticOneOrchestrator"}
"""Posts several messages in one turn."""


def sniff(source: Source) -> bool:
    """An object with ``messages`` that have a ``source`` and a ``type``."""
    messages = opening(source).record.get("messages")
    if not isinstance(messages, list) or not messages or not isinstance(messages[0], dict):
        return False
    return {"source", "type"} <= set(messages[0]) and "role" not in messages[0]


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every TaskResult; files of several are lists or JSONL of them."""
    yield from each(source, _trace, split=runs)


def _trace(result: Any) -> Trace:
    chat = _Chat()
    for index, message in enumerate(items(result, "messages", "a TaskResult")):
        chat.add(message, index)
    hand_over(chat.turns, chat.targets)
    add_broadcast(chat.turns)
    reason = result.get("stop_reason")
    return to_trace(
        chat.turns,
        id="",
        task=next((turn.text for turn in chat.turns if turn.kind == "task"), ""),
        system=SYSTEM,
        labels={"stop_reason": reason} if reason else {},
    )


class _Chat:
    """The turns of a chat while its messages come in."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.targets: dict[str, str] = {}
        """Id of a turn to the agent that it hands over to."""
        self._working: dict[str, Turn] = {}
        """Of each agent: the turn in which it has worked, but not spoken yet."""

    def add(self, message: dict[str, Any], index: int) -> None:
        kind, speaker = str(message.get("type", "")), message.get("source")
        if not isinstance(speaker, str):
            raise TraceError(f'message {index + 1} has no "source" (found: {found_keys(message)})')
        if kind in _DROPPED:
            return
        turn = self._turn(message, speaker, kind, index)
        spoken_at(turn, seconds(message.get("created_at")))
        turn.usage = total_usage([turn.usage, usage(message.get("models_usage"))])
        if _work(turn, kind, message):
            self._working[speaker] = turn
            return
        if self._working.pop(speaker, None) is turn:
            turn.text = ""  # What was thought gives way to what is said.
        turn.text = "\n\n".join(filter(None, [turn.text, content_text(message.get("content"))]))
        if kind == "HandoffMessage" and isinstance(message.get("target"), str):
            self.targets[turn.id] = message["target"]

    def _turn(self, message: dict[str, Any], speaker: str, kind: str, index: int) -> Turn:
        """The turn that the message belongs to: that of its speaker, if it is open, else a new one."""
        if speaker in self._working:
            return self._working[speaker]
        if speaker in _SPEAKS_ON and self.turns and self.turns[-1].agent == speaker:
            return self.turns[-1]
        turn = Turn(str(message.get("id") or index), speaker)
        if is_user(speaker):
            turn.kind = "task"
            self._working.clear()
        elif kind in _CHOICES or speaker.endswith("GroupChatManager") or speaker == "DiGraphStopAgent":
            turn.kind = "control"
        self.turns.append(turn)
        return turn


def _work(turn: Turn, kind: str, message: dict[str, Any]) -> bool:
    """Adds an event of the agent's work to its turn; False where the message is speech."""
    content = message.get("content")
    if kind == "ThoughtEvent":
        turn.text = "\n\n".join(filter(None, [turn.text, content_text(content)]))
    elif kind == "ToolCallRequestEvent":
        for call in objects(content, f'"content" of a {kind}'):
            arguments = json_text(call.get("arguments"))
            turn.calls.append(Call(str(call.get("id")), str(call.get("name")), arguments))
    elif kind == "ToolCallExecutionEvent":
        for done in objects(content, f'"content" of a {kind}'):
            text, failed = content_text(done.get("content")), done.get("is_error") is True
            settle(turn.calls, str(done.get("call_id")), text, tool=str(done.get("name")), failed=failed)
    elif kind == "CodeGenerationEvent":
        turn.calls.append(Call(f"{turn.id}-{len(turn.calls)}", "code", content_text(content)))
    elif kind == "CodeExecutionEvent":
        output, failed = message.get("result"), False
        if isinstance(output, dict):
            failed = bool(output.get("exit_code"))
            output = output.get("output")
        settle(turn.calls, "", content_text(output), tool="code", failed=failed)
    else:
        return False
    return True
