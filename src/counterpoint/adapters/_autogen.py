"""AutoGen AgentChat: from the messages of a team's chat to turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from counterpoint.adapters._chat_log import (
    content_text,
    found_keys,
    hand_over,
    is_user,
    json_text,
    objects,
    settle,
    spoken_at,
    usage,
)
from counterpoint.adapters._times import seconds
from counterpoint.adapters._transfers import Turn, add_broadcast, add_context, total_usage
from counterpoint.errors import TraceError
from counterpoint.trace import Call

__all__ = ["Chat", "add_hearing", "is_manager"]

_DROPPED = {"ModelClientStreamingChunkEvent", "UserInputRequestedEvent", "MemoryQueryEvent"}
_CHOICES = {"SelectSpeakerEvent", "SelectorEvent"}
_SPEAKS_ON = {"MagenticOneOrchestrator"}
"""Posts several messages in one turn."""


def is_manager(name: str) -> bool:
    """Does this participant only choose who speaks?"""
    return name.endswith("GroupChatManager") or name == "DiGraphStopAgent"


def add_hearing(turns: Sequence[Turn], targets: Mapping[str, str], task: str) -> None:
    """Who heard whom: by hand-over, by prompt (context), and where no prompt is known by the shared chat."""
    hand_over(turns, targets)
    add_context(turns, given=[task] if task else [])
    known = [dict(turn.heard) if turn.shown else None for turn in turns]
    add_broadcast(turns)
    for turn, heard in zip(turns, known, strict=True):
        turn.heard = turn.heard if heard is None else heard


class Chat:
    """The turns of a chat while its messages come in."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.targets: dict[str, str] = {}
        """Id of a turn to the agent that it hands over to."""
        self._working: dict[str, Turn] = {}
        """Of each agent: the turn in which it has worked, but not spoken yet."""

    def add(self, message: dict[str, Any], index: int) -> Turn | None:
        """Adds a message; gives the turn that it belongs to, if it says anything new."""
        kind, speaker = str(message.get("type", "")), message.get("source")
        if not isinstance(speaker, str):
            raise TraceError(f'message {index + 1} has no "source" (found: {found_keys(message)})')
        if kind in _DROPPED:
            return None
        turn = self._turn(message, speaker, kind, index)
        spoken_at(turn, seconds(message.get("created_at")))
        turn.usage = total_usage([turn.usage, usage(message.get("models_usage"))])
        if _work(turn, kind, message):
            self._working[speaker] = turn
            return turn
        if self._working.pop(speaker, None) is turn:
            turn.text = ""  # What was thought gives way to what is said.
        turn.text = "\n\n".join(
            filter(None, [turn.text, *_taken_along(message), content_text(message.get("content"))])
        )
        if kind == "HandoffMessage" and isinstance(message.get("target"), str):
            self.targets[turn.id] = message["target"]
        return turn

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
        elif kind in _CHOICES or is_manager(speaker):
            turn.kind = "control"
        self.turns.append(turn)
        return turn


def _taken_along(message: Mapping[str, Any]) -> Iterator[str]:
    """What a handoff's target is shown besides its text: thoughts, which only a handoff makes heard."""
    context = message.get("context")
    for item in context if isinstance(context, list) else []:
        if isinstance(item, dict) and item.get("type") == "AssistantMessage":
            content = item.get("content")
            yield content_text(content if isinstance(content, str) else item.get("thought"))


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
