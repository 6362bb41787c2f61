"""Agno: a ``RunOutput`` or ``TeamRunOutput`` as JSON, what ``agent.run`` and ``team.run`` return.

::

    {"run_id": "8b1a...", "team_id": "lead", "team_name": "Team Lead", "session_id": "b08b...",
     "content": "...", "messages": [
       {"id": "m1", "role": "user", "content": "Report on fares.", "created_at": 1796048835},
       {"id": "m2", "role": "assistant", "metrics": {"input_tokens": 434, ...}, "tool_calls": [
          {"id": "c1", "function": {"name": "delegate_task_to_member",
                                    "arguments": "{\\"member_id\\": \\"web\\", \\"task\\": \\"...\\"}"}}]},
       {"id": "m3", "role": "tool", "tool_call_id": "c1", "content": "..."}],
     "member_responses": [{"run_id": "36ae...", "parent_run_id": "8b1a...", "agent_id": "web",
                           "agent_name": "Web Agent", "messages": [...]}]}

What counts
-----------
* A member's run is a step, inside the call of the leader that delegated to it: by ``child_run_id``, else by
  the member that the call names, else in order. Members of members likewise.
* Messages from history are shown, but not said anew. Tokens are those of the messages; where these have
  none, the run's total stands in ``labels["run_usage"]``.
* ``created_at`` is in whole seconds: what falls into one second keeps its order.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from counterpoint.adapters._messages import (
    Chat,
    ToolCall,
    as_json,
    as_text,
    chats,
    json_or_text,
    string_values,
)
from counterpoint.adapters._source import each, listed, opening
from counterpoint.adapters._spans import Span
from counterpoint.adapters._times import seconds
from counterpoint.adapters._transcript import Speaker, Transcript
from counterpoint.adapters._usage import run_usage, usage_of
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]

_NAMES = ("team_name", "agent_name", "workflow_name", "name", "team_id", "agent_id")
_IDS = ("team_id", "agent_id")
_LABELS = {"session_id": "session.id", "run_id": "run_id", "user_id": "user_id", "status": "status"}


def sniff(source: Source) -> bool:
    """An object with a run, and an agent or team."""
    return _is_run(opening(source).record)


def _is_run(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("run_id"), str):
        return False
    return bool({"agent_id", "team_id", "agent_name", "team_name"} & set(value)) and "event" not in value


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every run; a TraceError in place of each record that is none."""
    yield from each(source, partial(_trace, source=source.name), split=listed)


def _trace(run: Any, *, source: str) -> Trace:
    if not _is_run(run):
        raise TraceError("not a run of Agno")
    transcript = Transcript()
    _Run(run, transcript).tell(None)
    given = run.get("input")
    task = as_text(given.get("input_content")) if isinstance(given, dict) else ""
    if not task:
        asked = (chat.text for chat in chats(run.get("messages")) if chat.role == "user")
        task = next(asked, "")
    labels = {name: str(run[key]) for key, name in _LABELS.items() if isinstance(run.get(key), str)}
    messages = [each for each in _list(run, "messages") if isinstance(each, dict)]
    if not any(usage_of(each.get("metrics")) for each in messages):
        labels |= run_usage(run.get("metrics"), model=run.get("model"))
    return transcript.trace(source=source, format="agno", system="agno", task=task, labels=labels)


def _list(holder: dict[str, Any], key: str) -> list[Any]:
    value = holder.get(key)
    return value if isinstance(value, list) else []


class _Run:
    """One run of an agent or team, and the runs of its members."""

    def __init__(self, run: dict[str, Any], transcript: Transcript) -> None:
        self._run = run
        self._transcript = transcript
        self._members = [each for each in _list(run, "member_responses") if isinstance(each, dict)]
        self._children = {
            str(tool.get("tool_call_id")): tool["child_run_id"]
            for tool in _list(run, "tools")
            if isinstance(tool, dict) and isinstance(tool.get("child_run_id"), str)
        }

    def tell(self, inside: Span | None) -> None:
        """Puts the run into the transcript; ``inside``: the tool call that it answers."""
        run = self._run
        name = next((str(run[key]) for key in _NAMES if run.get(key)), "agent")
        identity = next((str(run[key]) for key in _IDS if run.get(key)), "")
        messages = [each for each in _list(run, "messages") if isinstance(each, dict)]
        began = seconds(messages[0].get("created_at")) if messages else seconds(run.get("created_at"))
        speaker = self._transcript.speaker(
            name, id=str(run.get("run_id") or ""), agent_id=identity, inside=inside, at=began
        )
        spoken = False
        for message in messages:
            spoken = self._add(message, speaker) or spoken
        if not spoken and run.get("content") is not None:
            given = run.get("input")
            speaker.hear(*chats(given.get("input_content") if isinstance(given, dict) else None, "user"))
            usage = usage_of(run.get("metrics"), model=run.get("model"))
            speaker.say(Chat(_content(run["content"]), "assistant"), usage)
        for member in self._members:  # Those that no call is known of.
            _Run(member, self._transcript).tell(speaker.span)
        speaker.done()

    def _add(self, message: dict[str, Any], speaker: Speaker) -> bool:
        """Adds a message; is it something said in this run?"""
        at = seconds(message.get("created_at"))
        found = chats(message)
        old = message.get("from_history") is True
        for chat in found:
            if chat.role == "assistant" and not old:
                usage = usage_of(message.get("metrics"), model=self._run.get("model"))
                speaker.say(chat, usage, at=at)
                self._delegate(chat.calls, speaker)
            elif chat.answers and not old:
                failed = message.get("tool_call_error") is True
                speaker.result(
                    chat.answers,
                    chat.text,
                    name=str(message.get("tool_name") or ""),
                    arguments=as_json(message.get("tool_args")),
                    failed=failed,
                    at=at,
                )
            else:
                speaker.hear(chat)
        return not old and any(chat.role == "assistant" for chat in found)

    def _delegate(self, calls: tuple[ToolCall, ...], speaker: Speaker) -> None:
        """Puts each member's run into the call that asked for it."""
        for call in calls:
            for member in self._asked(call):
                self._members.remove(member)
                _Run(member, self._transcript).tell(speaker.call(call.id))

    def _asked(self, call: ToolCall) -> list[dict[str, Any]]:
        """The members that a call delegates to."""
        child = self._children.get(call.id)
        if child is not None:
            return [each for each in self._members if each.get("run_id") == child][:1]
        if not call.name.startswith("delegate_task"):
            return []
        if call.name.endswith("members"):
            return list(self._members)
        told = string_values(json_or_text(call.arguments))
        named = [each for each in self._members if any(each.get(key) in told for key in (*_IDS, *_NAMES))]
        return (named or self._members)[:1]


def _content(content: Any) -> str:
    return content if isinstance(content, str) else as_json(content)
