"""What pages are made of, kept by run and revision; and the mark by which a page knows its age."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from counterpoint.evaluate import evaluate
from counterpoint.trace import Trace

if TYPE_CHECKING:
    from counterpoint.contracts import Context
    from counterpoint.store import Run, Store

__all__ = ["Parts", "look_into", "mark", "traces_of"]

_SERVER = time.time_ns()
"""Versions of the store are comparable within one process only."""
MOST_CHARACTERS = 32_000_000
"""Of all parts that are kept: ten pages of the largest kind."""

T = TypeVar("T")
Key = tuple[str | int, ...]


class Parts:
    """Parts of pages by key; the least recently used go first. One is made at a time, in any thread."""

    def __init__(self, most: int = MOST_CHARACTERS) -> None:
        self.most = most
        self.size = 0
        self._kept: OrderedDict[Key, str] = OrderedDict()
        self._lock, self._making = Lock(), Lock()

    def of(self, key: Key, make: Callable[[], str]) -> str:
        """The part of this key; ``make`` is asked where it is not kept."""
        found = self._find(key)
        if found is not None:
            return found
        with self._making:  # pages of long runs take a processor: those who wait for the same get it once
            found = self._find(key)
            if found is not None:
                return found
            made = make()
            with self._lock:
                self._kept[key] = made
                self.size += len(made)
                while self.size > self.most and len(self._kept) > 1:
                    self.size -= len(self._kept.popitem(last=False)[1])
            return made

    def _find(self, key: Key) -> str | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)


def mark(store: Store, run_ids: Sequence[str] = ()) -> str:
    """Changes with what a page shows: these runs, or the whole store. Equal marks, equal pages."""
    if not run_ids:
        return f"{_SERVER:x}-{store.version()}"
    return "_".join("-".join(map(str, state_of(store.run(run_id)))) for run_id in run_ids)


def state_of(run: Run | None) -> Key:
    """What a run's pages depend on."""
    return ("gone",) if run is None else (run.revision, run.scored_revision, len(run.error))


def traces_of(store: Store, run: Run) -> tuple[list[Trace], list[str]]:
    """The run's traces; while its spans arrive, those of the spans so far, and what could not be read."""
    if not run.due or run.origin != "otlp":
        return store.traces(run.id), []
    from counterpoint.engine.live import read_run

    return read_run(store, run.id)


def look_into(traces: Sequence[Trace], observe: Callable[[Context], T]) -> list[T]:
    """What ``observe`` makes of each trace, without any metric."""
    seen: list[T] = evaluate(traces, [], run="", observe=observe).observed
    return seen
