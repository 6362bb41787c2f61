"""`record`: what a team says, written down as it says it, without any framework.

    with cp.record("my-run", task="2+2?", gold="4", system="pair") as run:
        first = run.step("solver", "The answer is 4.")
        with run.turn("critic", heard=[first]) as turn:  # a step that takes time
            turn.text = ask_the_critic(first.text)
        run.answer = "4"

    counterpoint score recording.jsonl

Conventions
-----------
The file is JSONL, ``counterpoint.recording/1``: an event a line, described in docs/formats.md and read by the
adapter ``recording``. Every event is one write to the end of the file, so threads, runs and processes may
share it, and what `Recording.step` returned for survives the end of the process, ``kill -9`` included.

Where ``to`` is the address of a running ``counterpoint serve``, each event is sent there as a span, and is in
its store when `Recording.step` returns. The adapter ``otlp`` reads the same run of it.

A server that is away is tried again for ten seconds; then `Recording.step` raises, because that it returns
means that the step is kept: steps held back in memory would be lost, without a word, with the process. The
run stays open, and a program that would rather go on than stop catches the UsageError.

A run does not cross a fork: it is of the process that began it. A child process (of ``os.fork``, of a pool)
can add nothing to it, since two processes would give one id to two steps, and does not end it either,
whichever way it leaves the block that it inherited. It may begin runs of its own, in the same file.

A step begins when its turn does. One that is given at once is taken to have begun when the last step ended
that it heard or that its agent said, else with the run; both times can be given instead.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TypedDict, Unpack
from uuid import uuid4

import msgspec
from msgspec import Struct

from counterpoint.errors import UsageError
from counterpoint.record.places import place
from counterpoint.trace import Call, Kind, Step, Trace, Transfer, Usage, encode

__all__ = ["SCHEMA", "Recording", "Turn", "record"]

SCHEMA = "counterpoint.recording/1"

_AMOUNTS = ("tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning", "cost_usd")
_USAGE = (*_AMOUNTS, "model")


def record(
    name: str,
    *,
    task: str = "",
    gold: str | None = None,
    system: str = "",
    to: str | os.PathLike[str] = "recording.jsonl",
    labels: Mapping[str, Any] | None = None,
    keep_secrets: bool = False,
) -> Recording:
    """One run of a team, recorded step by step; to be used in a ``with`` statement.

    Parameters
    ----------
    name : id of the trace; a second run of this name in the same file becomes ``name#2``.
    task, gold, system, labels : as in `counterpoint.trace.Trace`.
    to : the file that events are added to, which is made where there is none; or the address of a running
        ``counterpoint serve``, such as ``http://localhost:4318``, whose token is taken from the environment
        variable ``COUNTERPOINT_TOKEN``.
    keep_secrets : leave values that look like keys as they are.

    Raises
    ------
    UsageError
        for a place that cannot be written to (a file that holds anything but a recording is one), a run
        without a name, or a value of another type than a trace holds.
    """
    if isinstance(name, str) and not name.strip():
        raise UsageError("a run has no name: record() takes one first, such as record('my-run')")
    for label, value in (labels or {}).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"label {label!r} of run {name!r} is {value}: give a finite number, or None")
    about = Trace(
        name,
        (),
        task=task,
        gold=None if gold is None else str(gold),
        system=system,
        labels=dict(labels or {}),
    )
    return Recording(about, os.fspath(to), keep_secrets=keep_secrets)


class Said(TypedDict, total=False):
    """What may be told of a step beside its agent, its text and whom it heard: see `Step` and `Usage`."""

    kind: Kind
    role: str
    prompt: str | None
    round: int | None
    calls: Iterable[Call]
    answer: str | None
    error: str | None
    tokens_in: int | None
    tokens_out: int | None
    tokens_cached: int | None
    tokens_reasoning: int | None
    cost_usd: float | None
    model: str | None
    started_at: float | None
    ended_at: float | None


class Turn(Struct):
    """A step in the making: what is known of it by the end of its ``with`` block is recorded."""

    run: Recording
    agent: str
    text: str = ""
    heard: Iterable[Step | Turn | str] = ()
    kind: Kind = "agent"
    role: str = ""
    prompt: str | None = None
    round: int | None = None
    calls: Iterable[Call] = ()
    answer: str | None = None
    error: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None
    tokens_reasoning: int | None = None
    cost_usd: float | None = None
    model: str | None = None
    started_at: float | None = None
    ended_at: float | None = None
    step: Step | None = None
    """The step, once the turn has ended."""

    def __enter__(self) -> Turn:
        self.run._check_process()
        self.heard = self.run._transfers(self.heard)
        if self.started_at is None:
            self.started_at = time.time()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None and self.error is None:
            self.error = _told(error)
        if not self.run._inherited:
            with _raised_first(error):
                self.step = self.run._add(self)


class Recording:
    """A run that is being recorded; every thread may add to it."""

    answer: str | None
    """The team's answer, to be set before the run ends."""
    correct: bool | None
    """Whether it is right, where that is known."""

    def __init__(self, about: Trace, path: str, *, keep_secrets: bool) -> None:
        self.answer = None
        self.correct = None
        self._about, self._keep_secrets = about, keep_secrets
        self._key = ""
        self._pid = 0
        """The process that began the run; 0 before."""
        self._lock = threading.Lock()
        self._place = place(path)
        self._open = False
        self._began = 0.0
        self._ended: dict[str, float] = {}
        """When each step so far ended."""
        self._last: dict[str, float] = {}
        """When each agent's last step ended."""

    def __enter__(self) -> Recording:
        if self._began:
            raise UsageError(f"run {self._about.id!r} was recorded already: call record() for each run")
        about = self._plain(self._about)
        self._place.open()
        self._key, self._pid = uuid4().hex, os.getpid()
        self._began, self._open = time.time(), True
        given = {key: about[key] for key in about if key not in ("schema", "id", "steps")}
        try:
            self._write("begin", {"name": about["id"], "at": self._began, **given})
        except BaseException:  # nothing leaves a block that was not entered
            self._open = False
            self._place.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._inherited:  # the lock may have been held by another thread when the process was forked
            self._open = False
            self._place.close()
            return
        with self._lock, _raised_first(error):
            try:
                self._write("end", {"at": time.time(), **self._end(error)})
            finally:
                self._open = False
                self._place.close()

    def __reduce__(self) -> str:
        raise UsageError(f"run {self._about.id!r} stays in the process that began it: it cannot be pickled")

    def step(
        self, agent: str, text: str, *, heard: Iterable[Step | Turn | str] = (), **more: Unpack[Said]
    ) -> Step:
        """Adds what ``agent`` said; when this returns, it is in the file.

        Parameters
        ----------
        heard : earlier steps that reached the agent, or their ids.
        more : see `Said`.

        Raises
        ------
        UsageError
            for a step heard that is none of this run, a value of another type or out of its range, a run
            that is not open or that another process began, or where the step could not be kept: a full disk,
            a server that is away.
        """
        turn = Turn(self, agent, text, **more)
        turn.heard = self._transfers(heard)
        return self._add(turn)

    def turn(self, agent: str, *, heard: Iterable[Step | Turn | str] = (), **more: Unpack[Said]) -> Turn:
        """A step that takes time: ``with run.turn("critic", heard=[first]) as turn: turn.text = ...``.

        An exception in the block is recorded as the step's error and raised again; where it could not be
        recorded, a note on it says so. The step itself is ``turn.step`` afterwards; `heard` takes the turn
        as well.
        """
        return Turn(self, agent, heard=heard, **more)

    @property
    def _inherited(self) -> bool:
        """Was the run begun by a process of which this one is a fork?"""
        return self._pid not in (0, os.getpid())

    def _check_process(self) -> None:
        if self._inherited:
            raise UsageError(
                f"run {self._about.id!r} does not cross a fork: return what was said to process {self._pid}, "
                "which began it, or begin a run of its own in this one"
            )

    def _transfers(self, heard: Iterable[Any]) -> tuple[Any, ...]:
        """Ids of the steps heard, each one of this run."""
        if isinstance(heard, str | Step | Turn):
            raise UsageError("heard is a list of steps or of their ids: heard=[step]")
        return tuple(map(self._known, heard))

    def _known(self, heard: Any) -> str:
        step = heard.step if isinstance(heard, Turn) else heard
        if step is None:
            raise UsageError(f"a turn of {heard.agent!r} that has not ended cannot be heard yet")
        name = step.id if isinstance(step, Step) else step
        when = self._ended.get(name) if isinstance(name, str) else None
        strange = isinstance(heard, Turn) and heard.run is not self
        if strange or (isinstance(step, Step) and (when is None or step.ended_at != when)):
            raise UsageError(
                f"heard {name!r} is a step of another run, not of {self._about.id!r}: "
                "give what step() of this run returned"
            )
        if when is None:
            there = ", ".join(list(self._ended)[-8:]) or "none yet"
            raise UsageError(f"heard {name!r} is no step of run {self._about.id!r}; its last steps: {there}")
        return str(name)

    def _add(self, turn: Turn) -> Step:
        """Writes the step that the turn has become."""
        self._check_process()
        _check(turn, self._about.id)
        with self._lock:
            sources: Any = turn.heard
            ended = time.time() if turn.ended_at is None else turn.ended_at
            before = [self._ended[source] for source in sources]
            before.append(self._last.get(turn.agent, self._began))
            started = min(max(before), ended) if turn.started_at is None else turn.started_at
            usage = {key: getattr(turn, key) for key in _USAGE if getattr(turn, key) is not None}
            step = Step(
                id=f"s{len(self._ended) + 1}",
                agent=turn.agent,
                text=turn.text,
                kind=turn.kind,
                role=turn.role,
                prompt=turn.prompt,
                round=turn.round,
                heard=tuple(map(Transfer, sources)),
                calls=tuple(turn.calls),
                answer=None if turn.answer is None else str(turn.answer),
                started_at=started,
                ended_at=ended,
                usage=Usage(**usage) if usage else None,
                error=turn.error,
            )
            (plain,) = self._plain(Trace(self._about.id, (step,)))["steps"]
            self._write("step", {"step": plain})
            self._ended[step.id] = self._last[step.agent] = ended
            return step

    def _end(self, error: BaseException | None) -> dict[str, Any]:
        """What the end of the run says; nothing wrong may keep it from being written."""
        answer = None if self.answer is None else str(self.answer)
        correct = None if self.correct is None else bool(self.correct)
        end = self._plain(Trace(self._about.id, (), answer=answer, correct=correct))
        told: dict[str, Any] = {key: end[key] for key in ("answer", "correct") if key in end}
        if error is not None:
            told["error"] = self._plain(Trace("", (), task=_told(error)))["task"]
        return told

    def _plain(self, trace: Trace) -> dict[str, Any]:
        """The trace as plain JSON, masked; a UsageError for a value that a trace cannot hold."""
        try:
            plain: dict[str, Any] = msgspec.json.decode(encode(trace, keep_secrets=self._keep_secrets))
            msgspec.convert({key: plain[key] for key in plain if key != "schema"}, Trace)
        except (TypeError, ValueError) as error:  # a ValidationError of msgspec is a ValueError
            raise UsageError(f"run {self._about.id!r} cannot be recorded: {error}") from None
        return plain

    def _write(self, event: str, told: Mapping[str, Any]) -> None:
        """One event; the caller holds the lock."""
        if not self._open:
            raise UsageError(f"run {self._about.id!r} is not open: use it in its with statement")
        line = msgspec.json.encode({"schema": SCHEMA, "event": event, "run": self._key, **told})
        self._place.write(self._key, line)


def _check(turn: Turn, run: str) -> None:
    """Refuses what a trace could hold, and no metric use: NaN would be read back as unknown."""
    if isinstance(turn.agent, str) and not turn.agent.strip():
        raise UsageError(f"a step of run {run!r} has no agent: give the name of who said it")
    for key in (*_AMOUNTS, "started_at", "ended_at"):
        value = getattr(turn, key)
        if isinstance(value, int | float) and (not math.isfinite(value) or (key in _AMOUNTS and value < 0)):
            least = "a number from 0" if key in _AMOUNTS else "seconds since the epoch"
            raise UsageError(
                f"{key} of a step of {turn.agent!r} is {value}: give {least}, or None where it is not known"
            )


@contextmanager
def _raised_first(error: BaseException | None) -> Iterator[None]:
    """Keeps what cannot be recorded of a failed block from hiding why the block failed: it becomes a note."""
    try:
        yield
    except UsageError as wrong:
        if error is None:
            raise
        error.add_note(str(wrong))


def _told(error: BaseException) -> str:
    message = " ".join(str(error).split())[:500]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
