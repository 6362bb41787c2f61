"""Puppeteer: one reasoning path of a team whose next agent a policy chooses; and the log of such a path.

A path (``path_0.jsonl``: named so, but one indented JSON array)::

    [{"agent": "PlannerAgent", "action": {"action": "planning", "parameter": ""},
      "cost": 1200, "tokens": 30, "model_size": 20, "success": "Success",
      "result": {"step_data": "First count the bridges.", "answer": "5"}},
     {"agent": "TerminatorAgent", "action": {"action": "terminate", "parameter": ""},
      "cost": 0, "tokens": 0, "result": {"step_data": null, "answer": null}, "success": "Success"}]

Its log (``path0.log``)::

    [10:09:53 INFO]
    ------------------------------[Reasoning Path0 Start]------------------------------
    [10:09:53 INFO]
    Previous Agent sequence: PlannerAgent->TerminatorAgent
    [10:09:53 INFO]
    Updated global_info: {'task': {'type': 'MMLU-Pro', 'Question': '...', 'Answer': 'B', 'id': 7}, ...}

What counts
-----------
* One item is one step; an action with a parameter is a call, such as the program that was run. Terminating
  is a control step.
* Each agent is shown what all before it concluded: the path is a shared chat (broadcast).
* Question, gold answer and benchmark are those of the log, for a path too where the log lies beside it.
* Paths of one question are runs of their own, although some began as copies of another.

What the format cannot tell: prompts, times, and tokens by direction: a path has only their sum. ``cost`` is
twice tokens times size of the model, and no money. A log has no texts, and no agents after its beginning.

Source: Dang et al., Multi-Agent Collaboration via Evolving Orchestration, 2025.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from counterpoint.adapters._beside import beside, stem
from counterpoint.adapters._chat_log import content_text, found_keys, objects
from counterpoint.adapters._logs import CUT_OFF, log_text, whole_lines
from counterpoint.adapters._messages import whole
from counterpoint.adapters._source import each, opening
from counterpoint.adapters._transfers import Turn, add_broadcast, add_sequence, to_trace
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.json_text import decode, mend
from counterpoint.trace import Call, Trace

__all__ = ["read", "sniff"]

SYSTEM = "Puppeteer"

_START = re.compile(rb"\A\s*\[[\d:]+ INFO\]\s+-+\[Reasoning Path\d+ Start\]-+\s")
_SEQUENCE = re.compile(r"^Previous Agent sequence: (.+)$", re.MULTILINE)
_PATH = re.compile(r"path_?(\d+)")
_FACT = r"""'%s': ('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|\d+)"""
_FACTS = {
    "task": re.compile(_FACT % "Question"),
    "gold": re.compile(_FACT % "Answer"),
    "benchmark": re.compile(_FACT % "type"),
    "id": re.compile(_FACT % "id"),
}
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|(.))")


def sniff(source: Source) -> bool:
    """A list of agents with their action and its result, or the head of a path's log."""
    if _START.match(source.head):
        return True
    value = opening(source).value
    item = opening(source).record
    return isinstance(value, list) and {"agent", "action"} <= set(item) and isinstance(item["action"], dict)


def read(source: Source) -> Iterator[Trace | TraceError]:
    """The path."""
    mended: set[str] = set()
    if _START.match(source.head):
        try:
            text = log_text(source, mended)
        except TraceError as error:
            yield TraceError(error.message, source=source.name, record=error.record)
            return
        cut = not text.endswith(("\n", "}"))
        trace = _logged(whole_lines(text) if cut else text, mended)
        if trace.steps or not cut:
            yield trace
        if cut:
            yield TraceError(CUT_OFF, source=source.name, record=1)
        return
    number = _PATH.fullmatch(stem(source.name))
    log = beside(source.name, f"path{number[1]}.log") if number else None
    facts = _facts(decode(log or b"", mended), mended)
    yield from each(source, partial(_trace, facts=facts))


def _trace(path: Any, *, facts: dict[str, Any]) -> Trace:
    actions = objects(path, "a path")
    turns = [_turn(item, index) for index, item in enumerate(actions)]
    add_broadcast(turns)
    labels = dict(facts.get("labels", {}))
    tokens = [count for item in actions if (count := whole(item.get("tokens"))) is not None]
    if tokens:
        labels["run_usage"] = {"tokens": sum(tokens)}
    return to_trace(turns, id="", system=SYSTEM, **{**facts, "labels": labels})


def _turn(item: dict[str, Any], index: int) -> Turn:
    agent, action, result = (item.get(key) for key in ("agent", "action", "result"))
    if not isinstance(agent, str) or not isinstance(action, dict):
        raise TraceError(f'item {index + 1} has no "agent" with an "action" (found: {found_keys(item)})')
    result = result if isinstance(result, dict) else {}
    name, parameter = (content_text(action.get(key)) for key in ("action", "parameter"))
    text = content_text(result.get("step_data"))
    turn = Turn(str(index), agent, text, "control" if name == "terminate" else "agent")
    if parameter:
        turn.calls = [Call(f"{index}-call", name, parameter, text)]
    turn.answer = content_text(result.get("answer")).strip() or None
    success = item.get("success")
    turn.error = success if isinstance(success, str) and success.casefold() != "success" else None
    return turn


# --- the log -------------------------------------------------------------------------------------


def _logged(text: str, mended: set[str]) -> Trace:
    sequences = _SEQUENCE.findall(text)
    agents = [agent.strip() for agent in sequences[-1].split("->")] if sequences else []
    turns = [
        Turn(str(index), agent, kind="control" if agent.startswith("Terminator") else "agent")
        for index, agent in enumerate(agents)
    ]
    add_sequence(turns)
    return to_trace(turns, id="", system=SYSTEM, **_facts(text, mended))


def _facts(log: str, mended: set[str]) -> dict[str, Any]:
    """What a log says of the task, and what was ``mended`` in it: fields of the trace."""
    begin = log.find("'task': {")
    found = {
        key: match[1] for key, pattern in _FACTS.items() if (match := pattern.search(log, max(begin, 0)))
    }
    if begin < 0 or "task" not in found:
        return {"warnings": tuple(sorted(mended))}
    facts = mend({key: _unquoted(literal) for key, literal in found.items()}, mended)
    labels = {"task_id": facts.pop("id")} if "id" in facts else {}
    return {**facts, "labels": labels, "warnings": tuple(sorted(mended))}


def _unquoted(literal: str) -> str:
    """The value of a Python text literal, or of a number as text."""
    return literal if literal[0] not in "'\"" else _ESCAPE.sub(_unescaped, literal[1:-1])


def _unescaped(match: re.Match[str]) -> str:
    if code := match[1] or match[2]:
        return chr(int(code, 16))
    return {"n": "\n", "t": "\t", "r": "\r"}.get(match[3], match[3])
