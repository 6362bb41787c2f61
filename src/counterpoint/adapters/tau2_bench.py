"""tau2-bench: simulations of an agent and a user who both have tools; in text, or as full-duplex voice.

In text, one simulation or a file of ``{"info", "tasks", "simulations": [...]}``::

    {"id": "s1", "task_id": "40", "trial": 0, "seed": 7, "termination_reason": "user_stop",
     "reward_info": {"reward": 1.0},
     "messages": [{"role": "user", "content": "My line is dead.", "timestamp": "2025-06-01T10:00:00"},
                  {"role": "assistant", "content": null, "usage": {"prompt_tokens": 9},
                   "tool_calls": [{"id": "c1", "name": "get_line", "arguments": {"id": 3}}]},
                  {"role": "tool", "id": "c1", "content": "suspended", "error": false},
                  {"role": "assistant", "content": "It is suspended."}]}

As voice there are no messages but ticks, of which each says who speaks in it::

    "mode": "full_duplex", "ticks": [{"tick_id": 0, "timestamp": "2026-06-01T10:00:00",
        "agent_chunk": {"role": "assistant", "contains_speech": false},
        "user_chunk": {"role": "user", "contains_speech": true, "content": "My line"}}, ...]

What counts
-----------
* A message with tool calls, their results and what the same party says next are one step. In voice, a turn
  lasts until its party speaks anew after the other one has begun.
* The simulated user is no member of the team: what it says is the task, and its tokens are not counted.
  ``Trace.task`` is the scenario that it was given, where the file has the tasks.
* ``correct``: the reward is 1. Rewards, gold actions, trial and reason of the end are in ``labels``.

What the format cannot tell: what was said, in voice simulations that keep no ``content``: their turns have
times and no text, and so there are no transfers. Who said what at the same moment has no true order.

Source: Barres et al., tau2-bench: Evaluating Conversational Agents in a Dual-Control Environment, 2025.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from counterpoint.adapters._chat_log import (
    content_text,
    found_keys,
    items,
    json_text,
    objects,
    settle,
    spoken_at,
    usage,
)
from counterpoint.adapters._source import each, listed, opening
from counterpoint.adapters._times import seconds
from counterpoint.adapters._transfers import Turn, add_broadcast, to_trace, total_usage
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Call, Trace, Usage

__all__ = ["read", "sniff"]

_PARTIES = {"agent_chunk": "assistant", "user_chunk": "user"}
_LABELS = ("mode", "reward", "termination_reason", "trial", "user_cost")


def sniff(source: Source) -> bool:
    """A simulation with the reason why it ended, or a file of them that describes agent and user."""
    run = opening(source).record
    info = run.get("info")
    if "tasks" in run and isinstance(info, dict):
        return {"agent_info", "user_info"} <= set(info)
    return {"task_id", "termination_reason"} <= set(run) and bool({"messages", "ticks"} & set(run))


class _Run(NamedTuple):
    """A simulation, and what the file of it says of its task and of the agent."""

    simulation: Any
    task: dict[str, Any]
    model: str | None


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every simulation."""
    yield from each(source, _trace, split=_runs)


def _runs(document: Any) -> Iterator[_Run]:
    if not isinstance(document, dict) or "simulations" not in document:
        yield from (_Run(run, {}, None) for run in listed(document))
        return
    info, tasks = document.get("info"), document.get("tasks")
    agent = info.get("agent_info") if isinstance(info, dict) else None
    model = agent.get("llm") if isinstance(agent, dict) else None
    by_id = {
        str(task.get("id")): task
        for task in (tasks if isinstance(tasks, list) else ())
        if isinstance(task, dict)
    }
    for run in listed(document["simulations"]):
        task = by_id.get(str(run.get("task_id")), {}) if isinstance(run, dict) else {}
        yield _Run(run, task, model if isinstance(model, str) else None)


def _trace(run: _Run) -> Trace:
    simulation = run.simulation
    if not isinstance(simulation, dict):
        raise TraceError(f"a simulation is a JSON object, found {type(simulation).__name__}")
    if simulation.get("messages"):
        turns = _spoken(objects(simulation["messages"], '"messages" of a simulation'), run.model)
    else:
        turns = _voiced(items(simulation, "ticks", "a simulation without messages"))
    add_broadcast(turns)
    silent = turns and not any(turn.text or turn.calls for turn in turns)
    reward = simulation.get("reward_info")
    reward = reward.get("reward") if isinstance(reward, dict) else None
    return to_trace(
        turns,
        id="",
        task=_task(run.task) or next((turn.text for turn in turns if turn.kind == "task"), ""),
        correct=reward == 1 if isinstance(reward, int | float) else None,
        system="tau2-bench",
        labels=_labels({**simulation, "reward": reward}, run.task),
        warnings=("the file keeps no text: it says only when each party spoke",) if silent else (),
    )


# --- text ----------------------------------------------------------------------------------------


def _spoken(messages: list[dict[str, Any]], model: str | None) -> list[Turn]:
    turns: list[Turn] = []
    callers: dict[str, Turn] = {}
    working: Turn | None = None
    for index, message in enumerate(messages):
        role = message.get("role")
        text = content_text(message.get("content"))
        if role == "tool":
            call = str(message.get("id", ""))
            turn = callers.get(call) or working
            if turn is not None:
                settle(turn.calls, call, text, failed=message.get("error") is True)
            continue
        if not isinstance(role, str) or not role:
            raise TraceError(f'message {index + 1} has no "role" (found: {found_keys(message)})')
        if role == "system":
            continue
        turn = working
        if turn is None or turn.agent != role:
            turn = Turn(str(index), role, kind="task" if role == "user" else "agent")
            turns.append(turn)
        turn.text = "\n\n".join(filter(None, [turn.text, text]))
        spoken_at(turn, seconds(message.get("timestamp")))
        if turn.kind == "agent":
            turn.usage = total_usage([turn.usage, _usage(message, model)])
        calls = _calls(message)
        turn.calls += calls
        callers |= {call.id: turn for call in calls}
        working = turn if calls else None
    return turns


def _calls(message: dict[str, Any]) -> list[Call]:
    listed = message.get("tool_calls")
    return [
        Call(str(call.get("id", "")), str(call.get("name", "")), json_text(call.get("arguments", "")))
        for call in (listed if isinstance(listed, list) else ())
        if isinstance(call, dict)
    ]


def _usage(message: dict[str, Any], model: str | None) -> Usage | None:
    used = usage(message.get("usage"), model=model)
    cost = message.get("cost")
    if isinstance(cost, int | float) and not isinstance(cost, bool):
        return replace(used or Usage(model=model), cost_usd=float(cost))
    return used


# --- voice ---------------------------------------------------------------------------------------


def _voiced(ticks: list[dict[str, Any]]) -> list[Turn]:
    turns: list[Turn] = []
    latest: dict[str, tuple[int, Turn]] = {}
    """Of each party: the tick in which it last spoke, and its turn."""
    for number, tick in enumerate(ticks):
        moment = seconds(tick.get("timestamp"))
        for key, party in _PARTIES.items():
            chunk = tick.get(key)
            if not isinstance(chunk, dict) or not (chunk.get("contains_speech") or chunk.get("content")):
                continue
            spoke, turn = latest.get(party, (-2, None))
            if turn is None or (spoke < number - 1 and turns[-1] is not turn):
                turn = Turn(str(number), party, kind="agent" if party == "assistant" else "task")
                turn.started_at = moment
                turns.append(turn)
            turn.text += content_text(chunk.get("content"))
            turn.ended_at = moment if moment is not None else turn.ended_at
            latest[party] = (number, turn)
    return turns


# --- what else is known --------------------------------------------------------------------------


def _task(task: dict[str, Any]) -> str:
    """The scenario that the simulated user was given."""
    scenario = task.get("user_scenario")
    instructions = scenario.get("instructions") if isinstance(scenario, dict) else scenario
    if isinstance(instructions, dict):
        parts = [text for text in instructions.values() if isinstance(text, str) and text.strip()]
        return "\n".join(parts)
    return content_text(instructions)


def _labels(simulation: dict[str, Any], task: dict[str, Any]) -> dict[str, Any]:
    labels = {key: simulation[key] for key in _LABELS if simulation.get(key) is not None}
    criteria = task.get("evaluation_criteria")
    if isinstance(criteria, dict) and criteria.get("actions"):
        labels["gold_actions"] = criteria["actions"]
    if simulation.get("task_id") is not None:
        labels["task_id"] = str(simulation["task_id"])
    seed = simulation.get("seed", simulation.get("trial"))
    if seed is not None:
        labels["seed"] = seed
    return labels
