"""Play the jobs of a plan in threads of this process, so that nothing that was paid for is lost.

    report = run(plan, folder, models, threads=32)

Conventions
-----------
* ``models(seed, wait)`` gives the chat model asked under a seed, which pauses by ``wait``. A prompt
  that comes up again in the same play is asked under another seed, so that samples differ where the endpoint
  follows seeds.
* A reply is on the disk before anybody sees it. A run that was killed and goes on plays its unfinished
  questions again from those replies, and asks for the rest only. At most the calls that were under way when
  it was killed, one a thread, are asked for again.
* A question some of whose calls failed has a trace with the errors in its steps, ``labels["failed_calls"]``,
  no grade and no scores. When a run goes on, such questions, and those refused as the run ended, are played
  after those not yet played.
* An endpoint that answers no further call, and many failures in a row without one reply, end a run
  (`counterpoint.engine.patience`). Refusals and empty texts of a model are replies.
* A stop (Ctrl-C, an outage, a budget, ours or the model's own) lets calls under way come in, and keeps them.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from msgspec.structs import replace

from counterpoint.contracts import ChatModel, Reply
from counterpoint.engine.folder import RunFolder, call_key
from counterpoint.engine.interrupts import Interrupts
from counterpoint.engine.jobs import Job, Plan
from counterpoint.engine.patience import Patience
from counterpoint.engine.progress import Progress
from counterpoint.errors import BudgetExceeded, CounterpointError, ModelError, RequestRefused
from counterpoint.evaluate import FAILED
from counterpoint.metrics.outcome import price_usd
from counterpoint.models.limits import Limits
from counterpoint.runtime.play import TimedReply
from counterpoint.trace import Trace, Usage, failed_calls

__all__ = ["INTERRUPTED", "Failure", "Models", "Report", "dollars", "run"]

Models = Callable[[int, Callable[[float], object]], ChatModel]
"""``models(seed, wait)``: the chat model for a seed; ``wait(seconds)`` is how it pauses between attempts."""

INTERRUPTED = "interrupted"
"""Why a run stopped that a Ctrl-C ended."""
SAMPLE_SEEDS = 1000
"""How far apart the seeds of repeated prompts are: seeds of a run are smaller."""


@dataclass(frozen=True)
class Failure:
    """What went wrong, and where."""

    trace: str
    agent: str
    """Empty: the play as a whole."""
    error: str


@dataclass(frozen=True)
class Report:
    """What became of a run."""

    traces: tuple[Trace, ...]
    """Of every question that was finished, in the order of the plan."""
    failures: tuple[Failure, ...]
    progress: Progress
    stopped: str = ""
    """Why the run ended before its last question; empty where it did not."""
    crashed: int = 0
    """Questions without a trace, for an error that is no model's ended their play."""
    others: int = 0
    """Traces in the folder of questions or seeds that this plan has not; they stay."""


class _Stop(BaseException):
    """Ends a play between two calls; no error, so that no `except Exception` takes it for one."""


def run(
    plan: Plan,
    folder: RunFolder,
    models: Models,
    *,
    threads: int = 8,
    limits: Limits | None = None,
    watch: Callable[[Progress], None] = lambda progress: None,
) -> Report:
    """Play every job of the plan that the folder has no whole trace of.

    Parameters
    ----------
    folder: where replies and traces are kept; those that are there already are used.
    models: the chat model for a seed.
    threads: questions under way at once.
    limits: rates, and budgets of which earlier sittings' replies are a part.
    watch: told how far the run is, several times a second, in the calling thread.

    Raises
    ------
    UsageError: the folder cannot be written; another error of ours that is not a model's ends the run too.
    """
    sitting = _Run(plan, folder, models, limits or Limits())
    with sitting.interrupts:
        return sitting.go(threads, watch)


class _Run:
    def __init__(self, plan: Plan, folder: RunFolder, models: Models, limits: Limits) -> None:
        self.plan, self.folder, self.models, self.limits = plan, folder, models, limits
        self.lock = threading.Lock()
        self.progress = Progress(questions=len(plan.jobs))
        self.interrupts = Interrupts()
        self.stopping = threading.Event()
        self.left, self.crashed = False, 0
        self.patience = Patience(1, ())
        self.spent: dict[str, float] = {}
        self.broken: CounterpointError | None = None
        self.failures: dict[str, list[Failure]] = {}
        self.by_seed: dict[int, ChatModel] = {}
        for reply in folder.replies.values():
            self.progress.add(reply, _price(reply))
            limits.enter(reply)

    @property
    def stopped(self) -> str:
        """Why no further call is begun."""
        return self.progress.stopping

    def go(self, threads: int, watch: Callable[[Progress], None]) -> Report:
        jobs = {job.key: job for job in self.plan.jobs}
        done, flawed, others = self._found(jobs)
        self.progress.done = len(done)
        todo = [job for key, job in jobs.items() if key not in done]
        failed_before = {*flawed, *self.folder.refused}
        self.todo = iter(sorted(todo, key=lambda job: job.key in failed_before))
        self.patience = Patience(threads, failed_before)
        self._play_all(done, threads, watch)
        known = {**flawed, **done}
        traces = tuple(known[key] for key in jobs if key in known)
        self.folder.set_traces([*traces, *others])
        failures = tuple(failure for key in jobs for failure in self.failures.get(key, ()))
        stopped = self.stopped + self._spent_meanwhile()
        self.folder.note("stopped" if stopped else "finished", why=stopped, traces=len(traces))
        if self.broken is not None:
            raise self.broken
        return Report(traces, failures, self.progress, stopped, self.crashed, len(others))

    def _found(self, jobs: Mapping[str, Job]) -> tuple[dict[str, Trace], dict[str, Trace], list[Trace]]:
        """The folder's traces: those to be kept, those to be played again, and those of other jobs.

        Those to be played again leave the file, so that no question is in it twice if this sitting is killed.
        """
        found = self.folder.traces()
        newest = {str(trace.labels.get("job")): trace for trace in found}
        done: dict[str, Trace] = {}
        flawed: dict[str, Trace] = {}
        for key, trace in newest.items():
            if key in jobs:
                (flawed if failed_calls(trace) else done)[key] = replace(trace, id=jobs[key].id)
        others = [trace for key, trace in newest.items() if key not in jobs]
        if len(done) + len(others) < len(found):
            self.folder.set_traces([*done.values(), *others])
        return done, flawed, others

    def _play_all(self, done: dict[str, Trace], threads: int, watch: Callable[[Progress], None]) -> None:
        results: queue.SimpleQueue[tuple[Job, Trace | BaseException | None] | None] = queue.SimpleQueue()
        workers = [
            threading.Thread(target=self._work, args=(results,), name=f"play-{number}", daemon=True)
            for number in range(threads)
        ]
        for worker in workers:
            worker.start()
        left = len(workers)
        while left:
            try:
                self.interrupts.check()
                watch(self.progress)
                told = results.get(timeout=0.2)
                if told is None:
                    left -= 1
                else:
                    self._take(*told, done)
            except queue.Empty:
                continue
            except KeyboardInterrupt:
                if self.stopped:
                    self.left = True
                    return  # asked twice: leave the calls under way; the workers are daemons
                self._stop(INTERRUPTED)
        watch(self.progress)

    def _take(self, job: Job, outcome: Trace | BaseException | None, done: dict[str, Trace]) -> None:
        if isinstance(outcome, Trace):
            done[job.key] = outcome
            if failed_calls(outcome):
                self.progress.failed += 1
            else:
                self.progress.done += 1
            failures = [Failure(job.id, agent, error) for agent, error in _errors(outcome)]
        elif outcome is not None:
            self.crashed += 1
            self.progress.failed += 1
            failures = [Failure(job.id, "", f"{type(outcome).__name__}: {outcome}")]
        else:
            return
        self.failures[job.key] = failures
        for failure in failures:
            self.folder.note("failed", trace=failure.trace, agent=failure.agent, error=failure.error)

    def _stop(self, why: str) -> bool:
        """Begin no further call; whether this is the first reason not to."""
        with self.lock:
            first = not self.stopped
            if first:
                self.progress.stopping = why
            self.stopping.set()
        return first

    def _spent_meanwhile(self) -> str:
        """What the calls under way added to a budget after it had ended the run."""
        now = self.limits.spent
        more = [f"{now[unit]:.6g} {unit}" for unit, spent in self.spent.items() if now[unit] > spent]
        return f"; {' and '.join(more)} once the calls under way had come in" if more else ""

    def _wait(self, seconds: float) -> None:
        """A pause between two attempts of a call, cut short where the run stops."""
        if self.stopping.wait(seconds):
            raise _Stop

    # --- in the workers ------------------------------------------------------------------------------

    def _work(self, results: Any) -> None:
        try:
            for job in iter(self._next_job, None):
                results.put((job, self._played(job)))
        finally:
            results.put(None)

    def _next_job(self) -> Job | None:
        with self.lock:
            return None if self.stopped else next(self.todo, None)

    def _played(self, job: Job) -> Trace | BaseException | None:
        asker = _Asker(self, job)
        try:
            trace = asker.told(job.play(asker))
            if self.left:
                return None
            self.folder.add_trace(trace)
        except _Stop:
            return None
        except BudgetExceeded as error:
            spent, first = self.limits.spent, self._stop(str(error))  # in this order: nobody knows of it yet
            self.spent = spent if first else self.spent
            return None
        except CounterpointError as error:  # a full disk, for one: whatever is asked now would be lost
            self.broken = self.broken or error
            self._stop(str(error))
            return None
        except Exception as error:
            return error
        return trace

    def ask(self, job: Job, call: str, messages: Sequence[Mapping[str, Any]], seed: int) -> TimedReply:
        """A new reply, kept; raises _Stop where no further call may be begun."""
        try:
            timed = self.limits.ask(lambda asked: self._timed(asked, seed), messages, self._wait)
        except ModelError as error:
            self._count_failure(job, error)
            raise
        kept = self.folder.add_reply(job.key, call, cast(TimedReply, timed))
        with self.lock:
            self.progress.add(kept, _price(kept))
            self.progress.asked_now += 1
        return kept

    def _timed(self, messages: Sequence[Mapping[str, Any]], seed: int) -> TimedReply:
        """A new reply; nothing is asked any more once the run stops."""
        model = self._model(seed)
        with self.lock:
            if self.stopped:
                raise _Stop
            self.progress.under_way += 1
        started = time.time()
        try:
            reply = model(messages)
        finally:
            with self.lock:
                self.progress.under_way -= 1
        with self.lock:  # now: the disk takes longer than many a failure
            self.patience.answered()
        fields = {name: getattr(reply, name) for name in Reply.__dataclass_fields__}
        return TimedReply(**fields, started_at=started, ended_at=time.time())

    def _count_failure(self, job: Job, error: ModelError) -> None:
        with self.lock:
            self.progress.failed_calls += 1
            why = self.patience.failed(job.key, error)
        if why:
            self._stop(why)
        if isinstance(error, RequestRefused):
            self.folder.add_refused(job.key)

    def _model(self, seed: int) -> ChatModel:
        with self.lock:
            if seed not in self.by_seed:
                self.by_seed[seed] = self.models(seed, self._wait)
            return self.by_seed[seed]


class _Asker:
    """The chat model of one play: recorded replies first, then the real one."""

    def __init__(self, run: _Run, job: Job) -> None:
        self.run, self.job = run, job
        self.times: Counter[str] = Counter()
        self.failed = 0

    def __call__(self, messages: Sequence[Mapping[str, Any]], /) -> Reply:
        same = call_key(messages, 0)
        times = self.times[same]
        self.times[same] += 1
        call = same if times == 0 else call_key(messages, times)
        recorded = self.run.folder.replies.get((self.job.key, call))
        if recorded is not None:
            return recorded
        try:
            return self.run.ask(self.job, call, messages, self.job.seed + SAMPLE_SEEDS * times)
        except ModelError:
            self.failed += 1
            raise

    def told(self, trace: Trace) -> Trace:
        """The trace, which says so where calls failed; it has no grade then."""
        if not self.failed:
            return trace
        failed, calls = self.failed, self.times.total()
        labels = {**trace.labels, "failed_calls": failed, "calls": calls}
        warnings = (*trace.warnings, f"{failed} of {calls} {FAILED}")
        return replace(trace, correct=None, labels=labels, warnings=warnings)


def dollars(reply: Reply) -> float | None:
    """What a reply cost: as its server says, else by the model's public price; what `Limits` go by."""
    price = _price(reply)
    return None if isinstance(price, str) else price


def _price(reply: Reply) -> float | str:
    return price_usd(
        Usage(
            tokens_in=reply.tokens_in,
            tokens_out=reply.tokens_out,
            tokens_cached=reply.tokens_cached,
            cost_usd=reply.cost_usd,
            model=reply.model or None,
        )
    )


def _errors(trace: Trace) -> list[tuple[str, str]]:
    """Who failed, and why."""
    return [(step.agent, step.error) for step in trace.steps if step.error is not None]
