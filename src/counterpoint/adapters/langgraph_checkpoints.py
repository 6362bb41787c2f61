"""LangGraph checkpoints: ``graph.get_state_history(config)``, a snapshot a line.

::

    {"values": {"messages": [{"type": "human", "data": {"content": "2+2?", "id": "m1"}}]},
     "next": ["planner"], "created_at": "2026-11-30T14:19:19.61+00:00",
     "config": {"configurable": {"thread_id": "t1", "checkpoint_ns": "", "checkpoint_id": "1f1e..."}},
     "metadata": {"source": "loop", "step": 0}, "parent_config": {...},
     "tasks": [["87aa...", "planner", ["__pregel_pull", "planner"], null, [], null,
                {"messages": [{"type": "ai", "data": {"content": "4", "name": "planner"}}]}]]}

A task is written as a list (id, name, path, error, interrupts, state, result) or as an object of these.

What counts
-----------
* A task is a step; what it wrote is its result, or else the difference to the next snapshot. Of a history
  that was forked the branch that the newest snapshot stands on is read. Each thread is a trace.
* Nodes read the shared state: each heard what was written since its own last turn (broadcast), but nothing
  of its own super-step. ``transfer_to_x`` and ``transfer_back_to_x`` are explicit.
* **Not in the file**: prompts. A node may have read less of the state than it could.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from counterpoint.adapters._items import Items
from counterpoint.adapters._langgraph import Node, Task, author, human_text, nodes, spans
from counterpoint.adapters._otlp import nanoseconds
from counterpoint.adapters._runs import Dialect, Relation, traces
from counterpoint.adapters._source import opening
from counterpoint.adapters._spans import Tree
from counterpoint.adapters._transcript import reading_of
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]

_TASK = ("id", "name", "path", "error", "interrupts", "state", "result")


def sniff(source: Source) -> bool:
    """Snapshots: ``values``, ``next``, ``config``, ``metadata``."""
    return _is_snapshot(opening(source).record)


def _is_snapshot(value: Any) -> bool:
    return isinstance(value, dict) and {"values", "next", "config", "metadata"} <= set(value)


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every thread; a TraceError in place of each record that is no snapshot."""
    threads: dict[str, list[dict[str, Any]]] = defaultdict(list)

    def take(snapshot: Any) -> bool:
        if not _is_snapshot(snapshot):
            return False
        configured = _configured(snapshot["config"])
        if not configured.get("checkpoint_ns"):
            threads[str(configured.get("thread_id") or "")].append(snapshot)
        return True

    items = Items(source, "not a snapshot of LangGraph")
    yield from items.give(take)
    for thread, snapshots in threads.items():
        yield from _thread(thread, _branch(snapshots), source.name, items.warnings)


def _configured(config: Any) -> Mapping[str, Any]:
    found = config.get("configurable") if isinstance(config, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _branch(snapshots: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The newest snapshot and those it came from, oldest first; all by step where they name no parents."""
    ordered = sorted(snapshots, key=lambda each: (_step(each), str(each.get("created_at"))))
    by_id = {str(_configured(each["config"]).get("checkpoint_id")): each for each in snapshots}
    newest = max(snapshots, key=lambda each: str(each.get("created_at")))
    branch = [newest]
    while len(branch) <= len(snapshots):
        parent = _configured(branch[-1].get("parent_config")).get("checkpoint_id")
        if not isinstance(parent, str) or parent not in by_id:
            break
        branch.append(by_id[parent])
    return branch[::-1] if len(branch) > 1 else ordered


def _step(snapshot: Mapping[str, Any]) -> int:
    metadata = snapshot["metadata"]
    step = metadata.get("step") if isinstance(metadata, dict) else None
    return step if isinstance(step, int) else 0


def _thread(
    thread: str, snapshots: Sequence[dict[str, Any]], source: str, warnings: tuple[str, ...]
) -> Iterator[Trace | TraceError]:
    found = nodes(list(_tasks(snapshots)))
    task = next((text for each in snapshots if (text := human_text(each["values"]))), "")
    labels = {"session.id": thread, "thread_id": thread} if thread else {}
    dialect = Dialect(
        reading_of,
        relations=partial(_readers, found),
        facts=lambda *_: {"system": "langgraph", "task": task, "labels": labels},
    )
    made = list(spans(found, trace=thread, prompts=False))
    yield from traces(made, dialect, source=source, format="langgraph_checkpoints", warnings=warnings)


def _tasks(snapshots: Sequence[dict[str, Any]]) -> Iterator[Task]:
    for position, snapshot in enumerate(snapshots):
        after = snapshots[position + 1] if position + 1 < len(snapshots) else None
        planned = list(_planned(snapshot))
        for task in planned:
            if not isinstance(task["id"], str) or not isinstance(task["name"], str):
                continue
            wrote = task.get("result")
            if wrote is None and after is not None:
                wrote = _difference(snapshot["values"], after["values"], task["name"], len(planned))
            error = task.get("error")
            yield Task(
                task["id"],
                task["name"],
                step=position,
                before={"messages": _list(snapshot["values"], "messages")},
                wrote=wrote,
                start=nanoseconds(snapshot.get("created_at")),
                end=nanoseconds(after.get("created_at")) if after is not None else 0,
                error=str(error) if error else None,
            )


def _planned(snapshot: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The tasks that ran from a snapshot; by name alone where they were not saved."""
    tasks = [task for task in _list(snapshot, "tasks") if isinstance(task, list | dict) and task]
    for task in tasks:
        fields = dict(zip(_TASK, task, strict=False)) if isinstance(task, list) else task
        yield {"id": None, "name": None, **fields}
    if not tasks:
        for name in _list(snapshot, "next"):
            yield {"id": str(_step(snapshot)), "name": name}


def _list(holder: Any, key: str) -> list[Any]:
    value = holder.get(key) if isinstance(holder, Mapping) else None
    return value if isinstance(value, list) else []


def _difference(before: Any, after: Any, name: str, tasks: int) -> Any:
    """What the node ``name`` wrote between two states: all that is new, or of several nodes its messages."""
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return None
    wrote = {key: value for key, value in after.items() if key != "messages" and value != before.get(key)}
    messages = _list(after, "messages")
    if tasks == 1:
        return {**wrote, "messages": messages}
    return {"messages": [message for message in messages if author(message) == name]}


def _readers(found: Sequence[Node], tree: Tree) -> Iterator[Relation]:
    """Each node heard what was written since its own last turn, and before its own super-step."""
    places = {span.id: at for at, span in enumerate(tree.spans)}
    for reader in found:
        own = (turn.step for turn in found if turn.agent == reader.agent and turn.step < reader.step)
        since = max(own, default=-1)
        for source in found:
            if since <= source.step < reader.step and source.agent != reader.agent and not source.silent:
                yield places[source.id], places[reader.id], "broadcast"
