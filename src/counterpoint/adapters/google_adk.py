"""Google ADK: a session as JSON, its events a line each, or a list of them.

::

    {"id": "3d05...", "app_name": "demo", "user_id": "u", "events": [
       {"author": "user", "invocation_id": "e-1", "content": {"role": "user", "parts": [{"text": "Hi"}]}},
       {"author": "coordinator", "invocation_id": "e-1", "timestamp": 1796049255.1, "content": {"parts": [
          {"function_call": {"id": "c1", "name": "transfer_to_agent", "args": {"agent_name": "weather"}}}]},
        "usage_metadata": {"prompt_token_count": 216, "candidates_token_count": 14}},
       {"author": "coordinator", "actions": {"transfer_to_agent": "weather"}, "content": {"parts": [
          {"function_response": {"id": "c1", "name": "transfer_to_agent", "response": {}}}]}},
       {"author": "weather", "content": {"parts": [{"text": "Sunny."}], "role": "model"}, ...}]}

Names in camel case are read as well.

What counts
-----------
* Events of one author up to its final response (one without calls or results) are a step; partial events
  repeat it and are dropped, thoughts are no text.
* The session is shared: everyone heard what was said since their own last turn (broadcast), except what
  stands on another branch, such as beside a parallel agent. A transfer is explicit.
* **Not in the file**: prompts, so that state read by ``{key}`` in an instruction does not show; agents that
  ran as tools (``AgentTool``), whose events are in no session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from counterpoint.adapters._chat_log import hand_over, is_user, json_text, settle, spoken_at
from counterpoint.adapters._source import opening, records
from counterpoint.adapters._times import seconds
from counterpoint.adapters._transfers import Turn, to_trace, total_usage
from counterpoint.adapters._usage import usage_of
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Call, Trace

__all__ = ["read", "sniff"]

_TRANSFER = "transfer_to_agent"


def sniff(source: Source) -> bool:
    """A session with an app and events, or events with author and invocation."""
    record = opening(source).record
    if isinstance(record.get("events"), list):
        return bool({"app_name", "appName"} & set(record))
    return _is_event(record)


def _is_event(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("author"), str):
        return False
    return bool({"invocation_id", "invocationId"} & set(value))


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every session; a TraceError in place of each record that is neither session nor event."""
    loose: list[dict[str, Any]] = []
    warnings: dict[str, None] = {}
    for record in records(source):
        if isinstance(record, TraceError):
            yield record
            continue
        warnings.update(dict.fromkeys(record.warnings))
        for value in record.value if isinstance(record.value, list) else [record.value]:
            if _is_event(value):
                loose.append(value)
            elif isinstance(value, dict) and isinstance(value.get("events"), list):
                yield _session(value, [each for each in value["events"] if _is_event(each)], record.warnings)
            else:
                what = "neither a session nor an event of Google ADK"
                yield TraceError(what, source=source.name, record=record.number)
    if loose:
        yield _session({}, loose, warnings)


def _get(holder: Any, key: str) -> Any:
    """``holder[key]``, in snake or in camel case; None where there is none."""
    if not isinstance(holder, Mapping):
        return None
    first, *rest = key.split("_")
    value = holder.get(key)
    return holder.get(first + "".join(map(str.title, rest))) if value is None else value


def _session(session: Mapping[str, Any], events: Sequence[dict[str, Any]], warnings: Iterable[str]) -> Trace:
    run = _Run()
    for number, event in enumerate(events):
        if event.get("partial") is not True:
            run.add(event, number)
    run.hear()
    identity, app, user = (_get(session, key) for key in ("id", "app_name", "user_id"))
    labels = {"session.id": identity, "app_name": app, "user_id": user}
    return to_trace(
        run.turns,
        id="",
        task=next((turn.text for turn in run.turns if turn.kind == "task"), ""),
        system="google-adk",
        labels={key: str(value) for key, value in labels.items() if value},
        warnings=tuple(warnings),
    )


class _Run:
    """The turns of a session while its events come in."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self._branches: dict[str, str] = {}
        """Of each turn, by id: the branch that it stands on."""
        self._open: dict[tuple[str, str], Turn] = {}
        """Turns without a final response so far, by author and branch."""
        self._targets: dict[str, str] = {}

    def add(self, event: dict[str, Any], number: int) -> None:
        author, branch = event["author"], str(event.get("branch") or "")
        turn = self._open.get((author, branch))
        if turn is None:
            turn = Turn(str(event.get("id") or number), author, kind="task" if is_user(author) else "agent")
            self.turns.append(turn)
            self._branches[turn.id] = branch
        calls, texts = _parts(event, turn)
        turn.text = "\n\n".join(filter(None, [turn.text, *texts]))
        spoken_at(turn, seconds(event.get("timestamp")))
        usage = usage_of(_get(event, "usage_metadata"), model=_get(event, "model_version"))
        turn.usage = total_usage([turn.usage, usage])
        trouble = _get(event, "error_message") or _get(event, "error_code")
        turn.error = str(trouble) if trouble else turn.error
        target = _get(event.get("actions"), _TRANSFER)
        if isinstance(target, str):
            self._targets[turn.id] = target
        # A turn goes on after calls and results, except that who handed over is done.
        if calls and not isinstance(target, str):
            self._open[author, branch] = turn
        else:
            self._open.pop((author, branch), None)

    def hear(self) -> None:
        """Adds who heard whom."""
        hand_over(self.turns, self._targets)
        spoken: list[Turn] = []
        own: dict[tuple[str, str], int] = {}
        for turn in self.turns:
            branch = self._branches[turn.id]
            for source in spoken[own.get((turn.agent, branch), 0) :]:
                if source.agent != turn.agent and _visible(self._branches[source.id], branch):
                    turn.hear(source.id, "broadcast")
            if turn.text.strip():
                spoken.append(turn)
            own[turn.agent, branch] = len(spoken)


def _visible(source: str, reader: str) -> bool:
    """Does an agent on branch ``reader`` see what stands on branch ``source``?"""
    return not source or not reader or reader == source or reader.startswith(f"{source}.")


def _parts(event: dict[str, Any], turn: Turn) -> tuple[bool, list[str]]:
    """Adds the calls and results of an event to its turn; are there any, and the texts."""
    content = event.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    texts: list[str] = []
    worked = False
    for part in parts if isinstance(parts, list) else ():
        call, done = _get(part, "function_call"), _get(part, "function_response")
        code, output = _get(part, "executable_code"), _get(part, "code_execution_result")
        text = _get(part, "text")
        if isinstance(call, dict):
            worked = True
            _ask(turn, call)
        elif isinstance(done, dict):
            worked = True
            name = str(done.get("name") or "")
            if name != _TRANSFER:
                settle(turn.calls, str(done.get("id") or ""), json_text(done.get("response")), tool=name)
        elif isinstance(code, dict):
            turn.calls.append(Call(f"{turn.id}-{len(turn.calls)}", "code", json_text(code.get("code"))))
        elif isinstance(output, dict):
            settle(turn.calls, "", json_text(output.get("output")), tool="code")
        elif isinstance(text, str) and text and not _get(part, "thought"):
            texts.append(text)
    if not texts and not worked and event.get("output") is not None:
        texts.append(json_text(event["output"]))
    return worked, texts


def _ask(turn: Turn, call: dict[str, Any]) -> None:
    """A tool call; of a transfer, which is none, the words other than the agent's name."""
    name, arguments = str(call.get("name") or ""), call.get("args")
    if name != _TRANSFER:
        turn.calls.append(
            Call(str(call.get("id") or f"{turn.id}-{len(turn.calls)}"), name, json_text(arguments))
        )
        return
    words = (
        [value for key, value in arguments.items() if key != "agent_name"]
        if isinstance(arguments, dict)
        else []
    )
    turn.text = "\n\n".join(filter(None, [turn.text, *(word for word in words if isinstance(word, str))]))
