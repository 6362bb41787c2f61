"""Pydantic AI: the messages of a run, ``result.all_messages_json()``; one list a file or a line.

::

    [{"kind": "request", "run_id": "r1", "instructions": "You are an editor.", "timestamp": "...",
      "parts": [{"part_kind": "user-prompt", "content": "Review this.", "timestamp": "..."}]},
     {"kind": "response", "run_id": "r1", "model_name": "gpt-4o", "usage": {"input_tokens": 57, ...},
      "parts": [{"part_kind": "tool-call", "tool_name": "count", "args": "{}", "tool_call_id": "c1"}]},
     {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "count", "content": 3, ...}]},
     {"kind": "response", "parts": [{"part_kind": "text", "content": "Three lines, all of them good."}]}]

What counts
-----------
* Each run is a step of one agent, which the format does not name: it is called ``agent`` (see
  ``--rename-agent``). Thinking is no text; a retry that was asked for is the failure of the call.
* **Not in the file**: other agents. What another run pasted into a prompt, or an agent that ran inside a
  tool, cannot be told from any other text or tool. Instrument Pydantic AI with OpenTelemetry to record teams.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from counterpoint.adapters._messages import Chat, ToolCall, as_json
from counterpoint.adapters._source import each, opening
from counterpoint.adapters._times import seconds
from counterpoint.adapters._transcript import Speaker, Transcript
from counterpoint.adapters._usage import usage_of
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]

AGENT = "agent"


def sniff(source: Source) -> bool:
    """A list of requests and responses with parts."""
    seen = opening(source)
    return isinstance(seen.value, list) and _is_message(seen.record)


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("parts"), list):
        return False
    return value.get("kind") in ("request", "response")


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every list of messages; a TraceError in place of each record that is none."""
    yield from each(source, partial(_run, source=source.name))


def _run(value: Any, *, source: str) -> Trace:
    messages = [item for item in value if _is_message(item)] if isinstance(value, list) else []
    if not messages:
        raise TraceError("not a list of Pydantic AI's requests and responses")
    transcript = Transcript()
    speaker: Speaker | None = None
    run: Any = None
    history: list[Chat] = []
    for message in messages:
        if speaker is None or (message.get("run_id") != run and message.get("run_id") is not None):
            if speaker is not None:
                speaker.done()
            run = message.get("run_id")
            speaker = transcript.speaker(AGENT, at=seconds(message.get("timestamp")))
            speaker.hear(*history)
        if message["kind"] == "request":
            history += _request(message, speaker)
        else:
            history.append(_response(message, speaker))
    if speaker is not None:
        speaker.done()
    named = next((str(item["conversation_id"]) for item in messages if item.get("conversation_id")), "")
    return transcript.trace(
        source=source,
        format="pydantic_ai",
        system="pydantic-ai",
        task=next((chat.text for chat in history if chat.role == "user"), ""),
        labels={"session.id": named} if named else {},
    )


def _request(message: dict[str, Any], speaker: Speaker) -> list[Chat]:
    """Shows the agent what a request holds; gives it, for later runs that see it as history."""
    shown: list[Chat] = []
    instructions = message.get("instructions")
    if isinstance(instructions, str) and instructions:
        shown.append(Chat(instructions, "system"))
        speaker.hear(shown[-1])
    for part in message["parts"]:
        if not isinstance(part, dict):
            continue
        kind, call = part.get("part_kind"), part.get("tool_call_id")
        text = _text(part.get("content"))
        if kind in ("tool-return", "retry-prompt") and isinstance(call, str) and part.get("tool_name"):
            failed = kind == "retry-prompt" or part.get("outcome") == "failed"
            speaker.result(
                call, text, name=str(part["tool_name"]), failed=failed, at=seconds(part.get("timestamp"))
            )
            shown.append(Chat(text, "tool", answers=call))
        elif text:
            shown.append(Chat(text, "system" if kind == "system-prompt" else "user"))
            speaker.hear(shown[-1])
    return shown


def _response(message: dict[str, Any], speaker: Speaker) -> Chat:
    texts: list[str] = []
    calls: list[ToolCall] = []
    results: list[tuple[str, str]] = []
    for part in message["parts"]:
        kind = part.get("part_kind") if isinstance(part, dict) else None
        if kind == "text" and isinstance(part.get("content"), str):
            texts.append(part["content"])
        elif isinstance(kind, str) and kind.endswith("tool-call"):
            name, arguments = str(part.get("tool_name") or ""), as_json(part.get("args"))
            calls.append(ToolCall(str(part.get("tool_call_id") or ""), name, arguments))
        elif isinstance(kind, str) and kind.endswith("tool-return"):
            results.append((str(part.get("tool_call_id") or ""), _text(part.get("content"))))
    keys = tuple(call.id for call in calls if call.id)
    reply = Chat("\n\n".join(texts), "assistant", keys, calls=tuple(calls))
    usage = usage_of(message.get("usage"), model=message.get("model_name"))
    speaker.say(reply, usage, until=seconds(message.get("timestamp")))
    for call, result in results:  # Of tools that ran at the provider.
        speaker.result(call, result)
    return reply


def _text(content: Any) -> str:
    """The text of a part: itself, the texts of a list, or JSON."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and any(isinstance(item, str) for item in content):
        return "\n".join(item for item in content if isinstance(item, str))
    return as_json(content)
