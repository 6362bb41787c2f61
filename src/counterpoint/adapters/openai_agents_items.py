"""OpenAI Agents SDK: the items of a run, as a program saves them from its ``RunResult``.

::

    {"last_agent": "Refunds", "trace_id": "trace_1",
     "input_list": [{"role": "user", "content": "I want my money back."}, ...],
     "new_items": [
       {"type": "handoff_call_item", "agent": "Triage", "raw_item": {"type": "function_call",
          "call_id": "c1", "name": "transfer_to_refunds", "arguments": "{}"}},
       {"type": "handoff_output_item", "agent": "Triage", "raw_item": {"call_id": "c1", "output": "..."}},
       {"type": "message_output_item", "agent": "Refunds", "raw_item": {"type": "message",
          "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}}]}

or the list of items alone. An agent is written as its name, or as an object with ``name``.

What counts
-----------
* Items of one agent in a row are one step; a handoff is an explicit transfer.
* The new agent is shown the whole conversation so far, as the SDK does it without an input filter.
* **Not in the file**: times, and agents that ran as tools, whose calls look like those of any tool. Token
  counts are there where ``raw_responses`` were saved too.
* The exported trace of the same run (see `openai_agents`) becomes one trace with it where both are read: by
  ``trace_id`` if you saved it, else by the same agents making the same calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from counterpoint.adapters._messages import Chat, as_text, chats
from counterpoint.adapters._source import each, opening
from counterpoint.adapters._transcript import Speaker, Transcript
from counterpoint.adapters._usage import usage_of
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace, Usage

__all__ = ["read", "sniff"]

_REPLIES = {"message_output_item", "tool_call_item", "handoff_call_item"}
_RESULTS = {"tool_call_output_item", "handoff_output_item"}


def sniff(source: Source) -> bool:
    """``new_items``, or a list of items, each with an agent and a ``raw_item``."""
    value = opening(source).value
    items = value.get("new_items") if isinstance(value, dict) else value
    return isinstance(items, list) and bool(items) and _is_item(items[0])


def _is_item(value: Any) -> bool:
    return isinstance(value, dict) and {"type", "agent", "raw_item"} <= set(value)


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every run; a TraceError in place of each record that holds no items."""
    yield from each(source, partial(_run, source=source.name))


def _run(value: Any, *, source: str) -> Trace:
    run = value if isinstance(value, dict) else {"new_items": value}
    items = run.get("new_items")
    if not isinstance(items, list) or not any(map(_is_item, items)):
        raise TraceError('no run items: a run has "new_items"')
    transcript = Transcript()
    given = _given(run)
    conversation = _Conversation(transcript, given, _usages(run))
    for item in items:
        if _is_item(item) and isinstance(item["raw_item"], dict):
            conversation.add(item)
    conversation.close()
    labels = {
        key: str(run[key]) for key in ("trace_id", "group_id", "last_agent") if isinstance(run.get(key), str)
    }
    final = run.get("final_output")
    return transcript.trace(
        source=source,
        format="openai_agents_items",
        system="openai-agents",
        task=next((chat.text for chat in reversed(given) if chat.role == "user"), ""),
        answer=final if isinstance(final, str) else None,
        labels=labels,
    )


def _given(run: dict[str, Any]) -> list[Chat]:
    """What the first agent was shown: the input list up to the first thing that an agent did."""
    given: list[Chat] = []
    for chat in chats(run.get("input_list", run.get("input")), "user"):
        if chat.role not in ("user", "system"):
            break
        given.append(chat)
    return given


def _usages(run: dict[str, Any]) -> list[Usage | None]:
    responses = run.get("raw_responses")
    found = responses if isinstance(responses, list) else []
    return [usage_of(response.get("usage")) for response in found if isinstance(response, dict)]


class _Conversation:
    """Model calls and their results, agent by agent: replies in a row were one model call."""

    def __init__(self, transcript: Transcript, given: list[Chat], usages: list[Usage | None]) -> None:
        self._transcript = transcript
        self._history = given
        self._usages = usages[::-1]
        self._agent = ""
        self._speaker: Speaker | None = None
        self._reply: list[Chat] = []

    def add(self, item: dict[str, Any]) -> None:
        raw, kind = item["raw_item"], str(item["type"])
        speaker = self._speaker_of(_name(item["agent"]))
        if kind in _RESULTS:
            self._flush()
            output = raw.get("output", item.get("output"))
            text = output if isinstance(output, str) else as_text(output)
            self._history.append(Chat(text, "tool", answers=str(raw.get("call_id") or "")))
            if kind == "tool_call_output_item":
                speaker.result(str(raw.get("call_id") or ""), text)
        elif kind in _REPLIES:
            self._reply += chats(_plain(raw), "assistant")

    def _speaker_of(self, agent: str) -> Speaker:
        if self._speaker is None or agent != self._agent:
            self.close()
            self._agent = agent
            self._speaker = self._transcript.speaker(agent)
            self._speaker.hear(*self._history)
        return self._speaker

    def _flush(self) -> None:
        """What was said and asked since the last result, as one model call."""
        if self._reply and self._speaker is not None:
            calls = tuple(call for chat in self._reply for call in chat.calls)
            keys = tuple(key for chat in self._reply for key in chat.keys)
            text = "\n".join(chat.text for chat in self._reply if chat.text)
            reply = Chat(text, "assistant", keys, calls=calls)
            self._speaker.say(reply, self._usages.pop() if self._usages else None)
            self._history.append(reply)
            self._reply = []

    def close(self) -> None:
        self._flush()
        if self._speaker is not None:
            self._speaker.done()


def _name(agent: Any) -> str:
    name = agent.get("name") if isinstance(agent, dict) else agent
    return str(name or "agent")


def _plain(raw: dict[str, Any]) -> dict[str, Any]:
    """A call of a tool that the provider runs (web search, code) as a call of a function."""
    kind = str(raw.get("type") or "")
    if not kind.endswith("_call") or kind == "function_call":
        return raw
    return {"type": "function_call", "call_id": raw.get("id"), "name": kind.removesuffix("_call")}
