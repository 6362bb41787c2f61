"""AG2 (and AutoGen 0.2) runtime logging to a file: ``runtime_logging.start(logger_type="file")``.

::

    Started new session with Session ID: d8b2...
    {"source_name": "chat_manager", "event_name": "received_message", "agent_class": "GroupChatManager",
     "json_state": "{\\"message\\": \\"Build a parser.\\", \\"sender\\": \\"Admin\\"}", ...}
    {"source_name": "Planner", "event_name": "received_message", "agent_class": "ConversableAgent",
     "json_state": "{\\"message\\": {\\"content\\": \\"...\\", \\"name\\": \\"Admin\\"}, ...}", ...}
    {"invocation_id": "a5c0...", "request": {"messages": [...]}, "response": "...", "source_name": "Planner"}

Lines of plain text stand among the objects and are passed over.

What counts
-----------
* What an agent sends is a step; what it received since its own last one is an explicit transfer. A group
  chat's manager relays, and is no agent: the author is the message's name.
* A model call belongs to the next step of its agent; those of the agents that select a speaker are control.
* Agents are told apart by name: their numbers are addresses in memory, which the next run uses anew.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from counterpoint.adapters._ag2 import answer_calls, calls_of
from counterpoint.adapters._chat_log import Names, content_text, is_user
from counterpoint.adapters._messages import chats, json_or_text
from counterpoint.adapters._source import opening, records
from counterpoint.adapters._times import seconds
from counterpoint.adapters._transfers import Turn, to_trace, total_usage
from counterpoint.adapters._usage import usage_of
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.json_text import parse_json
from counterpoint.trace import Trace, Usage

__all__ = ["read", "sniff"]

_SELECTORS = {"checking_agent", "speaker_selection_agent"}
_SESSION = re.compile(r"Started new session with Session ID: (\S+)")
_PRINTED = {
    "prompt_tokens": re.compile(r"\bprompt_tokens=(\d+)"),
    "completion_tokens": re.compile(r"\bcompletion_tokens=(\d+)"),
    "cached_tokens": re.compile(r"\bcached_tokens=(\d+)"),
}
_MODEL = re.compile(r"\bmodel='([^']*)'")


def sniff(source: Source) -> bool:
    """Objects with a ``thread_id``, and what AG2 logs: clients, agents, events, calls."""
    record = opening(source).record
    return "thread_id" in record and bool({"wrapper_id", "event_name", "invocation_id"} & set(record))


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every session that was logged; a TraceError in place of each record that is broken."""
    run = _Run("")
    warnings: dict[str, None] = {}
    found = False
    for record in records(source, _parse):
        if isinstance(record, TraceError):
            found = True
            yield record
            continue
        warnings.update(dict.fromkeys(record.warnings))
        if isinstance(record.value, str):
            session = _SESSION.match(record.value)
            if session:
                if run.turns:
                    found = True
                    yield run.trace(tuple(warnings))
                run = _Run(session[1])
        elif isinstance(record.value, dict):
            run.add(record.value, record.number)
    if run.turns:
        yield run.trace(tuple(warnings))
    elif not found:
        yield TraceError("no agent received a message in this log", source=source.name)


def _parse(line: bytes) -> tuple[Any, list[str]]:
    """A line as JSON, or as the text that it is."""
    return parse_json(line) if line.startswith(b"{") else (line.decode("utf-8", "replace"), [])


class _Run:
    """The turns of one session while its log comes in."""

    def __init__(self, session: str) -> None:
        self.turns: list[Turn] = []
        self._session = session
        self._names = Names()
        self._managers: set[str] = set()
        self._received: dict[str, list[str]] = defaultdict(list)
        """Of each agent: ids of the turns that reached it since its own last one."""
        self._calls: dict[str, list[Turn]] = defaultdict(list)
        """Of each agent: its model calls since then, as turns of their own."""
        self._latest: dict[str, tuple[str, Turn]] = {}

    def add(self, line: dict[str, Any], number: int) -> None:
        name = line.get("source_name")
        if not isinstance(name, str):
            return
        if line.get("event_name") == "received_message":
            if line.get("agent_class") == "GroupChatManager":
                self._managers.add(name)
            state = json_or_text(line.get("json_state"))
            if isinstance(state, dict) and isinstance(state.get("sender"), str):
                self._receive(name, state, seconds(line.get("timestamp")), number)
        elif "invocation_id" in line:
            self._calls[self._names.of(name)].append(_call(line))

    def _receive(self, receiver: str, state: dict[str, Any], at: float | None, number: int) -> None:
        message = state.get("message")
        message = message if isinstance(message, dict) else {"content": message}
        sender = state["sender"]
        relayed = sender in self._managers
        author = self._names.of(str(message.get("name") or sender) if relayed else sender)
        text = content_text(message.get("content"))
        turn = answer_calls(message, self.turns)
        if turn is None and relayed:
            turn = self._spoken(author, text)
        if turn is None:
            turn = self._speak(author, text, at, number)
            turn.calls += calls_of(message, number)
        if receiver not in self._managers and self._names.of(receiver) != turn.agent:
            self._received[self._names.of(receiver)].append(turn.id)

    def _spoken(self, author: str, text: str) -> Turn | None:
        """The author's latest turn, if that is what was last said in it."""
        said, turn = self._latest.get(author, ("", None))
        return turn if said == text else None

    def _speak(self, author: str, text: str, at: float | None, number: int) -> Turn:
        turn = self.turns[-1] if self.turns else None
        if turn is None or turn.agent != author or not turn.calls:
            turn = Turn(str(number), author)
            self.turns.append(turn)
        turn.text = "\n\n".join(filter(None, [turn.text, text]))
        turn.ended_at = at
        if is_user(author):
            turn.kind = "task"
        elif author in _SELECTORS:
            turn.kind = "control"
        for source in self._received.pop(author, ()):
            turn.hear(source, "explicit")
        for call in self._calls.pop(author, ()):
            turn.shown += call.shown
            turn.usage = total_usage([turn.usage, call.usage])
            turn.started_at = call.started_at if turn.started_at is None else turn.started_at
        self._latest[author] = text, turn
        return turn

    def trace(self, warnings: tuple[str, ...]) -> Trace:
        labels = {"session.id": self._session} if self._session else {}
        task = self.turns[0].text
        return to_trace(self.turns, id="", task=task, system="ag2", labels=labels, warnings=warnings)


def _call(line: dict[str, Any]) -> Turn:
    request = json_or_text(line.get("request"))
    messages = chats(request.get("messages"), "user") if isinstance(request, dict) else []
    return Turn(
        "",
        "",
        shown=[[*messages]] if messages else [],
        started_at=seconds(line.get("start_time")),
        usage=_usage(json_or_text(line.get("response"))),
    )


def _usage(response: Any) -> Usage | None:
    """Tokens of a reply, as an object or as Python prints one."""
    if isinstance(response, dict):
        return usage_of(response.get("usage"), model=response.get("model"))
    if not isinstance(response, str):
        return None
    found = {key: match[1] for key, form in _PRINTED.items() if (match := form.search(response))}
    model = _MODEL.search(response)
    return usage_of(found, model=model[1] if model else None)
