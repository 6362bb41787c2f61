"""CrewAI results: a ``CrewOutput`` as JSON, what ``crew.kickoff()`` returns.

::

    {"raw": "...", "token_usage": {"prompt_tokens": 1941, "completion_tokens": 738},
     "tasks_output": [
       {"description": "Write an article.", "agent": "Writer", "raw": "...", "messages": [
          {"role": "system", "content": "You are Writer."}, {"role": "user", "content": "Current Task: ..."},
          {"role": "assistant", "content": "", "tool_calls": [...]},
          {"role": "tool", "tool_call_id": "c1", "content": "11"}]}]}

What counts
-----------
* The output of a task is a step. Its last message is often missing: its text is ``raw``.
* Texts of earlier tasks in a task's messages are heard (context). A coworker who was asked or delegated to
  shows in the tool call only: its turn is what it was told and what it gave back.
* **Not in the file**: times, the order of tasks that ran side by side, and tokens by call: the run's total
  stands in ``labels["run_usage"]``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from counterpoint.adapters._messages import Chat, ToolCall, chats, json_or_text, string_values
from counterpoint.adapters._source import each, listed, opening
from counterpoint.adapters._transcript import Speaker, Transcript
from counterpoint.adapters._usage import run_usage
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]


def sniff(source: Source) -> bool:
    """An object with ``tasks_output`` of agents."""
    outputs = opening(source).record.get("tasks_output")
    return isinstance(outputs, list) and bool(outputs) and isinstance(outputs[0], dict)


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every result; a TraceError in place of each record that is none."""
    yield from each(source, partial(_crew, source=source.name), split=listed)


def _crew(output: Any, *, source: str) -> Trace:
    tasks = output.get("tasks_output") if isinstance(output, dict) else None
    tasks = [task for task in tasks if isinstance(task, dict)] if isinstance(tasks, list) else []
    if not tasks:
        raise TraceError('a CrewOutput has "tasks_output", a list of what its tasks gave')
    transcript = Transcript()
    for task in tasks:
        _task(task, transcript)
    descriptions = [str(task["description"]).strip() for task in tasks if task.get("description")]
    return transcript.trace(
        source=source,
        format="crewai_output",
        system="crewai",
        task="\n".join(dict.fromkeys(descriptions)),
        labels=run_usage(output.get("token_usage")),
    )


def _task(task: dict[str, Any], transcript: Transcript) -> None:
    speaker = transcript.speaker(str(task.get("agent") or "agent").strip())
    raw = task["raw"] if isinstance(task.get("raw"), str) else ""
    calls: dict[str, ToolCall] = {}
    spoken = ""
    for chat in chats(task.get("messages"), "user"):
        if chat.role == "assistant":
            speaker.say(chat)
            spoken = chat.text
            calls |= {call.id: call for call in chat.calls}
        elif chat.answers in calls:
            _coworker(calls[chat.answers], chat.text, speaker, transcript)
            speaker.result(chat.answers, chat.text)
        else:
            speaker.hear(chat)
    if raw.strip() and raw.strip() != spoken.strip():
        speaker.say(Chat(raw, "assistant"))
    speaker.done()


def _coworker(call: ToolCall, reply: str, speaker: Speaker, transcript: Transcript) -> None:
    """The turn of a coworker behind a tool call, if there is one."""
    told = json_or_text(call.arguments)
    name = told.get("coworker") if isinstance(told, dict) else None
    if "coworker" not in call.name.lower() or not isinstance(name, str) or not name.strip():
        return
    coworker = transcript.speaker(name.strip(), inside=speaker.call(call.id))
    words = string_values([value for key, value in told.items() if key != "coworker"])
    coworker.hear(*(Chat(text, "user") for text in words))
    coworker.say(Chat(reply, "assistant"))
    coworker.done()
