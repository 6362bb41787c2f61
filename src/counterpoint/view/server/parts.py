"""What pages are made of, kept by run and revision; and the mark by which a page knows its age.

Conventions
-----------
* A part that took long to make is shown on for `PATIENCE` times as long, though its run has changed: pages of
  a long run whose spans arrive would else take the processor from those who receive them.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from counterpoint.evaluate import evaluate
from counterpoint.trace import Trace

if TYPE_CHECKING:
    from counterpoint.contracts import Context
    from counterpoint.store import Run, Store

__all__ = ["Parts", "arriving", "look_into", "mark", "state_of", "traces_of"]

_SERVER = time.time_ns()
"""Versions of the store are comparable within one process only."""
MOST_CHARACTERS = 32_000_000
"""Of all parts that are kept: ten pages of the largest kind."""
LONG_S, PATIENCE = 0.5, 4.0
"""Seconds from which on making a part is long; how many times as long it then rests."""

T = TypeVar("T")
Key = tuple[str | int, ...]


class Part(NamedTuple):
    """One part, as it was made last."""

    state: Key
    text: str
    rests_until: float


class Shown(NamedTuple):
    """A part to show."""

    text: str
    again_s: float
    """Seconds after which a newer one may be had; 0: this is the newest."""


class Parts:
    """Parts of pages by key; the least recently used go first. One is made at a time, in any thread."""

    def __init__(self, most: int = MOST_CHARACTERS, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = most
        self.size = 0
        self._clock = clock
        self._kept: OrderedDict[Key, Part] = OrderedDict()
        self._lock, self._making = Lock(), Lock()

    def of(self, key: Key, state: Key, make: Callable[[], str]) -> Shown:
        """The part of this key; ``make`` is asked where none is kept, or one of another state has rested."""
        found = self._find(key, state)
        if found is not None:
            return found
        with self._making:  # pages of long runs take a processor: those who wait for the same get it once
            found = self._find(key, state)
            if found is not None:
                return found
            start = self._clock()
            text = make()
            end = self._clock()
            took = end - start
            rests = PATIENCE * took if took >= LONG_S else 0.0
            self._keep(key, Part(state, text, end + rests))
            return Shown(text, 0.0)

    def _find(self, key: Key, state: Key) -> Shown | None:
        with self._lock:
            part = self._kept.get(key)
            if part is None:
                return None
            again = 0.0 if part.state == state else part.rests_until - self._clock()
            if part.state != state and again <= 0:
                return None
            self._kept.move_to_end(key)
            return Shown(part.text, again)

    def _keep(self, key: Key, part: Part) -> None:
        with self._lock:
            before = self._kept.pop(key, None)
            self._kept[key] = part
            self.size += len(part.text) - (0 if before is None else len(before.text))
            while self.size > self.most and len(self._kept) > 1:
                self.size -= len(self._kept.popitem(last=False)[1].text)


def mark(store: Store, run_ids: Sequence[str] = ()) -> str:
    """Changes with what a page shows: these runs, or the whole store. Equal marks, equal pages."""
    if not run_ids:
        return f"{_SERVER:x}-{store.version()}"
    return "_".join("-".join(map(str, state_of(store.run(run_id)))) for run_id in run_ids)


def state_of(run: Run | None) -> Key:
    """What a run's pages depend on."""
    return ("gone",) if run is None else (run.revision, run.scored_revision, len(run.error), run.state)


def arriving(run: Run) -> bool:
    """Whether the run is shown from its spans, for the store has no traces yet of all of them."""
    return run.state not in ("scored", "unreadable") and run.origin == "otlp"


def traces_of(store: Store, run: Run) -> tuple[list[Trace], list[str]]:
    """The run's traces; while its spans arrive, those of the spans so far, and what could not be read."""
    if not arriving(run):
        return store.traces(run.id), []
    from counterpoint.engine.live import read_run

    return read_run(store, run.id)


def look_into(traces: Sequence[Trace], observe: Callable[[Context], T]) -> list[T]:
    """What ``observe`` makes of each trace, without any metric."""
    seen: list[T] = evaluate(traces, [], run="", observe=observe).observed
    return seen
