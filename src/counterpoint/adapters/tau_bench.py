"""tau-bench: an agent with tools, a simulated user, and a reward; a list of runs, or one run a file.

Sample::

    [{"task_id": 7, "trial": 0, "reward": 1.0,
      "info": {"task": {"instruction": "You are Ada. Cancel order 12.", "outputs": ["12.50"],
                        "actions": [{"name": "cancel", "kwargs": {"order": 12}}]}, "user_cost": 0.002},
      "traj": [{"role": "system", "content": "You help customers."},
               {"role": "user", "content": "Please cancel order 12."},
               {"role": "assistant", "content": null, "tool_calls": [
                  {"id": "c1", "type": "function", "function": {"name": "cancel", "arguments": "{}"}}]},
               {"role": "tool", "tool_call_id": "c1", "name": "cancel", "content": "12.50 refunded"},
               {"role": "assistant", "content": "Done: you get back 12.50."}]}]

What counts
-----------
* Steps are as in `chat`: calls, their results and what the agent says next are one. A step's id is the index
  of its first message in ``traj``.
* The simulated user is no member of the team: what it says is the task. ``Trace.task`` is its instruction.
* ``correct``: the reward is 1. ``gold`` is the output to be told, if there is exactly one; all outputs and
  actions are in ``labels``. The trial is the seed.
* A file of failure labels beside it is joined, as for `agentrx`.

What the format cannot tell: times, tokens, models.

Source: Yao et al., tau-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains, 2024.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from msgspec.structs import replace

from counterpoint.adapters._beside import failure_labels
from counterpoint.adapters._chat_log import Names, content_text, items
from counterpoint.adapters._source import each, listed, opening
from counterpoint.adapters.chat import from_messages
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]


def sniff(source: Source) -> bool:
    """A task's id and a ``traj`` of messages."""
    run = opening(source).record
    return "task_id" in run and isinstance(run.get("traj"), list)


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every run."""
    yield from each(source, partial(_trace, file=source.name), split=listed)


def _trace(run: Any, *, file: str) -> Trace:
    trace = from_messages(items(run, "traj", "a tau-bench run"), id="run")
    info = _object(run.get("info"))
    task = _object(info.get("task"))
    outputs = task.get("outputs")
    outputs = outputs if isinstance(outputs, list) else []
    names = Names()
    for step in trace.steps:
        names.of(step.agent)
    labels = {
        "task_id": run.get("task_id"),
        "seed": run.get("trial"),
        "reward": run.get("reward"),
        "gold_actions": task.get("actions"),
        "gold_outputs": outputs or None,
        "user_cost": info.get("user_cost"),
    }
    known = {key: value for key, value in labels.items() if value is not None}
    reward = run.get("reward")
    return replace(
        trace,
        task=content_text(task.get("instruction")) or trace.task,
        gold=content_text(outputs[0]) if len(outputs) == 1 else None,
        correct=reward == 1 if isinstance(reward, int | float) else None,
        system="tau-bench",
        labels={**trace.labels, **known, **failure_labels(file, names)},
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
