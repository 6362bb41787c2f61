"""LangGraph streams: what ``graph.stream(..., stream_mode=["updates", "debug"])`` yields, a tuple a line.

::

    [[], "debug", {"type": "task", "step": 1, "timestamp": "2026-11-30T14:19:20.04+00:00", "payload":
       {"id": "b5ef...", "name": "planner", "input": {"messages": [...]}, "triggers": ["branch:to:planner"]}}]
    [[], "updates", {"planner": {"messages": [{"type": "ai", "data": {"content": "..."}}]}}]
    [[], "debug", {"type": "task_result", "step": 1, "timestamp": "...", "payload":
       {"id": "b5ef...", "name": "planner", "error": null, "result": {"messages": [...]}}}]

The namespace is there with ``subgraphs=True`` only; a stream of the mode ``debug`` alone is its objects, and
the mode ``tasks`` has the payloads without the object around. A stream of the mode ``updates`` alone looks
like nothing in particular: name the format.

What counts
-----------
* A task is a step, its input what the node was shown, its result what it wrote; states of the modes
  ``values`` and ``checkpoints`` and tokens of ``messages`` say the same again and are dropped.
* Texts of others in the input are heard (context): from the messages since the node's own last one, and
  from the other channels. A node may have read less of its input than it was given.
* **Updates alone** tell neither inputs nor which nodes ran side by side: each then heard what was written
  since its own last turn (broadcast). Stream ``debug`` too to know more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from counterpoint.adapters._langgraph import Task, human_text, nodes, spans
from counterpoint.adapters._otlp import nanoseconds
from counterpoint.adapters._runs import Dialect, traces
from counterpoint.adapters._source import opening, records
from counterpoint.adapters._spans import Tree
from counterpoint.adapters._transcript import READING, reading_of, without_times
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]

_MODES = {"updates", "debug", "tasks", "checkpoints", "values", "messages", "custom"}


def sniff(source: Source) -> bool:
    """Tuples that name a mode, or the objects of the mode ``debug``."""
    return _part(opening(source).value) is not None


class _Part(NamedTuple):
    path: tuple[str, ...]
    mode: str
    payload: Any


def _part(value: Any) -> _Part | None:
    """One line of a stream; None for what is none."""
    if isinstance(value, dict):
        debug = {"type", "payload", "step", "timestamp"} <= set(value)
        return _Part((), "debug", value) if debug else None
    if not isinstance(value, list) or len(value) not in (2, 3):
        return None
    *path, mode, payload = value
    if path and not isinstance(path[0], list):
        return None
    known = isinstance(mode, str) and mode in _MODES
    return _Part(tuple(map(str, path[0])) if path else (), mode, payload) if known else None


def _bare(value: Any) -> _Part | None:
    """A line of the mode ``updates`` alone, which only the user can tell from any other object."""
    bare = isinstance(value, dict) and all(
        isinstance(wrote, dict | list | type(None)) for wrote in value.values()
    )
    return _Part((), "updates", value) if bare and value else None


def read(source: Source) -> Iterator[Trace | TraceError]:
    """The run that was streamed; a TraceError in place of each line that is no part of one."""
    run = _Run()
    warnings: dict[str, None] = {}
    broken = False
    for record in records(source):
        if isinstance(record, TraceError):
            broken = True
            yield record
            continue
        warnings.update(dict.fromkeys(record.warnings))
        part = _part(record.value) or _bare(record.value)
        if part is None:
            broken = True
            yield TraceError("not a line of a LangGraph stream", source=source.name, record=record.number)
        else:
            run.add(part, record.number)
    if run.tasks or not broken:
        yield from run.traces(source.name, tuple(warnings))


class _Run:
    """The tasks of a run while its stream comes in."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}
        self._updates: dict[str, Task] = {}
        self._task = ""
        self._labels: dict[str, Any] = {}
        self._timed = False

    def add(self, part: _Part, number: int) -> None:
        payload = part.payload
        if not isinstance(payload, dict):
            return
        if part.mode == "updates":
            for name, wrote in payload.items():
                task = Task(str(number), name, part.path, wrote=wrote, start=number, end=number)
                self._updates[f"{number} {name}"] = task
        elif part.mode == "tasks":
            self._add_task(payload, part.path, {}, number)
        elif part.mode == "debug" and isinstance(payload.get("payload"), dict):
            if str(payload.get("type")).startswith("task"):
                self._add_task(payload["payload"], part.path, payload, number)
            self._add_facts(payload["payload"])

    def _add_task(
        self, told: dict[str, Any], path: tuple[str, ...], around: Mapping[str, Any], number: int
    ) -> None:
        if not isinstance(told.get("id"), str) or not isinstance(told.get("name"), str):
            return
        at = nanoseconds(around.get("timestamp"))
        self._timed = self._timed or bool(at)
        task = self.tasks.get(told["id"])
        if task is None:
            task = self.tasks[told["id"]] = Task(told["id"], told["name"], path, start=at or number)
        if "input" in told:
            task.before = told["input"]
            self._task = self._task or human_text(told["input"])
        if "result" in told or "error" in told:
            task.wrote, task.end = _plain(told.get("result")), at or number
            task.error = str(told["error"]) if told.get("error") else None

    def _add_facts(self, payload: dict[str, Any]) -> None:
        config = payload.get("config")
        configured = config.get("configurable") if isinstance(config, dict) else None
        thread = configured.get("thread_id") if isinstance(configured, dict) else None
        if thread:
            self._labels = {"session.id": str(thread), "thread_id": str(thread)}

    def traces(self, source: str, warnings: tuple[str, ...]) -> Iterator[Trace | TraceError]:
        found = nodes(list((self.tasks or self._updates).values()))
        made = list(spans(found, trace="", prompts=True))
        dialect = Dialect(reading_of, relations=self._relations, facts=self._facts)
        for trace in traces(made, dialect, source=source, format="langgraph_stream", warnings=warnings):
            yield trace if isinstance(trace, TraceError) or self._timed else without_times(trace)

    def _facts(self, *_: Any) -> dict[str, Any]:
        return {"system": "langgraph", "task": self._task, "labels": self._labels}

    def _relations(self, tree: Tree) -> Iterator[tuple[int, int, Any]]:
        """Of updates alone: all that was written since the reader's own last turn."""
        if self.tasks:
            return
        turns = [at for at, span in enumerate(tree.spans) if span.attributes[READING].role == "agent"]
        for position, reader in enumerate(turns):
            for source in reversed(turns[:position]):
                if tree.spans[source].name == tree.spans[reader].name:
                    break
                if not tree.spans[source].attributes[READING].control:
                    yield source, reader, "broadcast"


def _plain(result: Any) -> Any:
    """What a task wrote as a state; older versions list pairs of channel and value."""
    if not isinstance(result, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in result):
        return result
    return [{name: value} for name, value in result if isinstance(name, str)]
