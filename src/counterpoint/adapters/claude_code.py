"""Claude Code sessions: the JSONL transcripts under ``~/.claude/projects``.

::

    {"type": "user", "uuid": "u1", "parentUuid": null, "isSidechain": false, "sessionId": "s1",
     "timestamp": "2026-03-01T10:00:00Z", "message": {"role": "user", "content": "Fix the test."}}
    {"type": "assistant", "uuid": "u2", "parentUuid": "u1", "sessionId": "s1", ..., "message": {"id": "msg_1",
     "role": "assistant", "model": "claude-...", "usage": {"input_tokens": 35, "output_tokens": 145},
     "content": [{"type": "tool_use", "id": "c1", "name": "Task",
                  "input": {"subagent_type": "searcher", "prompt": "Find the test."}}]}}
    {"type": "user", "uuid": "u3", "parentUuid": null, "isSidechain": true, "sessionId": "s1",
     "message": {"role": "user", "content": "Find the test."}}

What counts
-----------
* Each prompt of the user is answered by one turn of ``claude``, with its tool calls. A reply stands on as
  many lines as it has blocks, each with the tokens of all: they count once.
* A sidechain is a sub-agent, inside the call whose result names it (``agentId``) or whose prompt it begins
  with; it is called by its ``subagent_type``. Sidechains in files of their own are traces of their own:
  ``--group-by session.id`` brings them to the session by time.
* Thinking is no text. After a compaction the agent is shown only what follows it. Branches that the user
  left by going back are kept, for they were run and paid for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from counterpoint.adapters._items import Items
from counterpoint.adapters._messages import Chat, ToolCall, chats, json_or_text
from counterpoint.adapters._source import mentions, opening
from counterpoint.adapters._spans import Span
from counterpoint.adapters._times import seconds
from counterpoint.adapters._transcript import Speaker, Transcript
from counterpoint.adapters._usage import usage_of
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]

MAIN, SUB = "claude", "sub-agent"
_TASKS = {"Task", "Agent"}


def sniff(source: Source) -> bool:
    """Lines with a type, and among them messages with parent and session."""
    record = opening(source).record
    return isinstance(record.get("type"), str) and mentions(source, "sessionId", "parentUuid")


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every session; a TraceError in place of each record that is no line of one."""
    sessions: dict[str, list[dict[str, Any]]] = defaultdict(list)

    def take(line: Any) -> bool:
        if not isinstance(line, dict) or not isinstance(line.get("type"), str):
            return False
        if _is_message(line) or _is_compaction(line):
            sessions[str(line.get("sessionId") or "")].append(line)
        return True

    items = Items(source, "not a line of a session: it has no type")
    yield from items.give(take)
    found = False
    for session, lines in sessions.items():
        if any(line["type"] == "assistant" for line in lines):
            found = True
            yield _Session(lines).trace(session, source.name, items.warnings)
    if not found and not items.broken:
        yield TraceError("no reply of the assistant in this session", source=source.name)


def _is_message(line: dict[str, Any]) -> bool:
    message = line.get("message")
    return (
        line["type"] in ("user", "assistant") and isinstance(message, dict) and bool(message.get("content"))
    )


def _is_compaction(line: dict[str, Any]) -> bool:
    return line["type"] == "system" and line.get("subtype") == "compact_boundary"


class _Session:
    """The main thread of a session and its sidechains."""

    def __init__(self, lines: Sequence[dict[str, Any]]) -> None:
        self._chains: dict[str, list[dict[str, Any]]] = defaultdict(list)
        """Lines of each sidechain, by its agent's id or the uuid of its first line."""
        chain_of: dict[str, str] = {}
        self._main: list[dict[str, Any]] = []
        for line in lines:
            if line.get("isSidechain") is not True:
                self._main.append(line)
                continue
            chain = str(line.get("agentId") or chain_of.get(str(line.get("parentUuid")), line.get("uuid")))
            chain_of[str(line.get("uuid"))] = chain
            self._chains[chain].append(line)
        self._agents = dict(_agent_ids(lines))
        self._transcript = Transcript()

    def trace(self, session: str, source: str, warnings: Sequence[str]) -> Trace:
        asked = (text for line in self._main for text in _prompts(line) if line.get("isMeta") is not True)
        task = next(asked, "")
        self._tell(self._main, MAIN, None)
        while self._chains:  # Those that no call is known of.
            chain = next(iter(self._chains))
            lines = self._chains.pop(chain)
            self._tell(lines, f"{SUB} {chain}" if lines[0].get("agentId") else SUB, None)
        labels = {"session.id": session} if session else {}
        return self._transcript.trace(
            source=source,
            format="claude_code",
            warnings=warnings,
            system="claude-code",
            task=task,
            labels=labels,
        )

    def _tell(self, lines: Sequence[dict[str, Any]], agent: str, inside: Span | None) -> None:
        """Puts a thread into the transcript; ``inside``: the call that it answers."""
        history: list[Chat] = []
        speaker: Speaker | None = None
        ends = {_reply_id(line): line for line in lines}
        for _, group in groupby(enumerate(lines), _same_reply):
            replies = [line for _, line in group]
            line = replies[-1]
            if line["type"] == "assistant":
                if speaker is None:
                    speaker = self._transcript.speaker(
                        agent, inside=inside, at=seconds(replies[0].get("timestamp"))
                    )
                    speaker.hear(*history)
                history.append(self._reply(replies, speaker, counted=ends[_reply_id(line)] is line))
            elif line["type"] == "system":
                history.clear()
            else:
                prompted = bool(_prompts(line)) and not _answers(line)
                if speaker is not None and prompted and line.get("isMeta") is not True:
                    speaker.done()
                    speaker = None
                history += self._given(line, speaker)
        if speaker is not None:
            speaker.done()

    def _reply(self, lines: Sequence[dict[str, Any]], speaker: Speaker, *, counted: bool) -> Chat:
        """A model call: the blocks of its reply, and the sub-agents that its calls ran.

        ``counted``: no later line is of the same reply, as where a tool was done before the reply was.
        """
        found = [chat for line in lines for chat in chats(line["message"], "assistant")]
        calls = tuple(call for chat in found for call in chat.calls)
        text = "\n\n".join(chat.text for chat in found if chat.text)
        keys = tuple(key for chat in found for key in chat.keys)
        reply = Chat(text, "assistant", keys, calls=calls)
        last = lines[-1]
        message = last["message"]
        usage = usage_of(message.get("usage"), model=message.get("model")) if counted else None
        error = text if last.get("isApiErrorMessage") is True else None
        speaker.say(reply, usage, until=seconds(last.get("timestamp")), error=error)
        for call in calls:
            if call.name in _TASKS:
                self._run(call, speaker)
        return reply

    def _run(self, call: ToolCall, speaker: Speaker) -> None:
        """The sidechain that a call began, if it is in this file."""
        told = json_or_text(call.arguments)
        told = told if isinstance(told, dict) else {}
        chain = self._agents.get(call.id, "")
        if chain not in self._chains:
            begun = (name for name, lines in self._chains.items() if told.get("prompt") in _prompts(lines[0]))
            chain = next(begun, "")
        lines = self._chains.pop(chain, None)
        if lines:
            self._tell(lines, str(told.get("subagent_type") or SUB), speaker.call(call.id))

    def _given(self, line: dict[str, Any], speaker: Speaker | None) -> list[Chat]:
        """What a line of the user's side shows the agent: words, and results of tools."""
        failed = _failed(line)
        given = chats(line["message"], "user")
        for chat in given:
            if speaker is not None and chat.answers:
                at = seconds(line.get("timestamp"))
                speaker.result(chat.answers, chat.text, failed=chat.answers in failed, at=at)
            elif speaker is not None:
                speaker.hear(chat)
        return given


def _reply_id(line: dict[str, Any]) -> str:
    """The id of the reply that a line is part of; its own where it is of none."""
    identity = line["message"].get("id") if line["type"] == "assistant" else None
    return identity if isinstance(identity, str) else f"line {line.get('uuid')}"


def _same_reply(numbered: tuple[int, dict[str, Any]]) -> Any:
    """A key that only the lines of one reply, one after the other, have in common."""
    number, line = numbered
    return _reply_id(line) if line["type"] == "assistant" else number


def _blocks(line: dict[str, Any]) -> list[dict[str, Any]]:
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _prompts(line: dict[str, Any]) -> list[str]:
    """Texts of the user in a line."""
    if line["type"] != "user":
        return []
    return [chat.text for chat in chats(line["message"], "user") if chat.role == "user" and chat.text.strip()]


def _answers(line: dict[str, Any]) -> list[str]:
    return [str(block.get("tool_use_id")) for block in _blocks(line) if block.get("type") == "tool_result"]


def _failed(line: dict[str, Any]) -> set[str]:
    return {str(block.get("tool_use_id")) for block in _blocks(line) if block.get("is_error") is True}


def _agent_ids(lines: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Call id and the id of the agent that ran in it, as its result tells."""
    for line in lines:
        result = line.get("toolUseResult")
        agent = result.get("agentId") if isinstance(result, dict) else None
        if isinstance(agent, str):
            for call in _answers(line):
                yield call, agent
