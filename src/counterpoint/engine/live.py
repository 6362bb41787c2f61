"""Runs that are received live: spans to traces, traces to scores, by a process beside the receiver.

Conventions
-----------
* A run that was received and the same run exported, read and scored give the same traces and numbers: both
  go through the same adapter and the same `evaluate`.
* A run is due when no span of it has come for ``quiet_s`` seconds, and again when a late one comes. One that
  took a while to score rests as long before it is scored again.
* Scoring is a child process that shares nothing with the receiver but the store. What ends it, or takes more
  than ``limit_s``, becomes the ``error`` of the run that it was at; a new one scores the next runs.
* Large runs have a second child, started when one is due, so that small ones do not wait for them.
* A child ends with its parent, however that ends. While the store cannot be read or written, it tells so
  once, and waits.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import msgspec

from counterpoint.adapters import read_source
from counterpoint.contracts import Context, Embedder, Source
from counterpoint.errors import CounterpointError, ModelError, UsageError
from counterpoint.evaluate import evaluate
from counterpoint.judges import make as make_judges
from counterpoint.metrics import metrics_of
from counterpoint.metrics.claim_ledger import Event, ledger
from counterpoint.metrics.claim_metrics import OPTIONS
from counterpoint.metrics.correctness import last_word
from counterpoint.models.embed import TextEmbedder
from counterpoint.models.embed import embedder as load_embedder
from counterpoint.store import Run, Store, StoreFault
from counterpoint.trace import Trace

__all__ = ["LIMIT_S", "QUIET_S", "Scorer", "read_run", "score_run"]

QUIET_S = 5.0
LIMIT_S = 900.0
"""Seconds that one run may take."""

LARGE = 1000
"""Spans (of a file: steps) above which a run is large."""

MOST_CLAIM_STEPS = 2000
"""Runs of more steps are scored without a ledger of their claims, which would take longer than all else."""

_HEAD = 64 * 1024
_BATCH = 50
"""Runs looked at in one go, the newest of all that are due; among these the smallest come first."""
_LOOK_AGAIN_S = 2.0
"""So long the others of them are scored before it is looked what is due by now."""
_FAULT_S = 2.0
"""How long a child waits where the store cannot be read or written."""

_Score = Callable[[Store, str], None]
_At = tuple[str, int]
"""Id and revision of the run that a child is at."""
_LARGE_DUE = "a large run is due"


def read_run(store: Store, run_id: str) -> tuple[list[Trace], list[str]]:
    """The traces of a run, tidy, as `read` gives them of an exported file; and what could not be read.

    Raises UsageError where the store has no such run.
    """
    run = store.run(run_id)
    if run is None:
        raise UsageError(f"no run {run_id!r} in {store.path}")
    if run.origin != "otlp":
        return store.traces(run.id), []
    content = store.otlp(run.id)
    source = Source(
        name=run.id, head=content[:_HEAD], tail=content[-_HEAD:], open=lambda: io.BytesIO(content)
    )
    traces: list[Trace] = []
    wrong: list[str] = []
    for item in read_source(source, "otlp", id=run.id):
        if isinstance(item, Trace):
            traces.append(item)
        else:
            wrong.append(item.message)
    return traces, wrong


def score_run(
    store: Store,
    run_id: str,
    *,
    metrics: Sequence[str] | None = None,
    profile: str | None = None,
    embedder: str = "default",
) -> None:
    """Reads and scores a run as it is now, and keeps what was found: traces, rows, the ledger of its claims.

    Parameters
    ----------
    metrics, profile, embedder : as in `counterpoint.evaluate.evaluate`; None: the metrics of ``score``.
    """
    run = store.run(run_id)
    if run is None:  # it was pruned, or joined to another run
        return
    traces, wrong = read_run(store, run.id)
    if not traces:
        store.keep(run.id, run.revision, traces=[], rows=[], error="; ".join(wrong) or "holds no trace")
        return
    embed = _embedder(embedder)
    scores = evaluate(
        traces,
        metrics,
        profile=profile,
        embedder=embedder if embed is None else embed,
        run=run.id,
        observe=lambda context: (last_word(context), _claims(context, embed)),
    )
    claims = [msgspec.to_builtins(event) for _, told in scores.observed for event in told]
    answer = next((given for given, _ in reversed(scores.observed) if given is not None), None)
    store.keep(run.id, run.revision, traces=traces, rows=scores.rows, claims=claims, answer=answer)


@lru_cache(maxsize=1)
def _embedder(name: str) -> TextEmbedder | None:
    """The embedder, loaded once for all runs; None where the default one is missing."""
    try:
        return load_embedder(name)
    except (ModelError, ImportError):
        if name != "default":
            raise
        return None


def _claims(context: Context, embed: Embedder | None) -> list[Event]:
    """The ledger of `counterpoint claims`, as it is without options."""
    if len(context.trace.steps) > MOST_CLAIM_STEPS:
        return []
    judge, decomposer = make_judges(embed=embed)
    return ledger(context, {**OPTIONS, "judge": judge, "decomposer": decomposer})


class Scorer:
    """Scores every run of a store that is due, in child processes, until it is stopped.

    The children are started by ``spawn``: a script that starts a Scorer needs ``if __name__ == "__main__":``.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        quiet_s: float = QUIET_S,
        limit_s: float = LIMIT_S,
        metrics: Sequence[str] | None = None,
        profile: str | None = None,
        embedder: str = "default",
        keep_secrets: bool = False,
        score: _Score | None = None,
    ) -> None:
        """The store at ``path`` is opened by each process for itself.

        Parameters
        ----------
        quiet_s : seconds without a span after which a run is due.
        limit_s : seconds that scoring one run may take.
        metrics, profile, embedder : how runs are scored, see `score_run`.
        keep_secrets : leave values that look like keys in what is kept of a run.
        score : how a run is scored, instead of `score_run`; it is sent to another process.

        Raises UsageError for an unknown metric.
        """
        for name in metrics or ():
            metrics_of(name)
        self._path, self._limit_s, self._keep_secrets = os.fspath(path), limit_s, keep_secrets
        score = score or partial(score_run, metrics=metrics, profile=profile, embedder=embedder)
        self._arguments = (self._path, quiet_s, keep_secrets, score)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._large: threading.Thread | None = None

    def start(self) -> None:
        """Starts the child, and a thread that watches it."""
        if self._thread is None:
            self._stopping.clear()
            self._thread = threading.Thread(target=self._supervise, name="counterpoint-scorer", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ends the children, and waits for their end; a run that one was at stays due."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        if self._large is not None:  # started by the first, so looked at after its end
            self._large.join()
        self._thread = self._large = None

    def __enter__(self) -> Scorer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _supervise(self, *, large: bool = False) -> None:
        """Starts a child, and another where it ends; the one for large runs ends once none is due."""
        context = multiprocessing.get_context("spawn")
        pause = 0.0
        while not self._stopping.wait(pause):
            ours, theirs = context.Pipe(duplex=False)
            child = context.Process(target=_work, args=(theirs, large, *self._arguments), daemon=True)
            child.start()
            theirs.close()
            with ours:
                scored = self._watch(child, ours)
            if child.exitcode == 0:
                return
            # A child that cannot even begin would otherwise be started for ever, as fast as can be.
            pause = 0.1 if scored else min(2 * pause + 0.1, 30.0)

    def _watch(self, child: BaseProcess, told: Connection) -> bool:
        """Follows a child to its end; whether it has begun any run."""
        run: _At | None = None
        begun, fault = 0.0, ""
        while not self._stopping.is_set():
            try:
                if told.poll(0.1):
                    message = told.recv()
                    if message == _LARGE_DUE:
                        self._start_large()
                        continue
                    run, begun = message, time.monotonic()
            except (EOFError, OSError):
                child.join()
                fault = f"the process that scored it ended (exit code {child.exitcode})"
                break
            if run is not None and time.monotonic() - begun > self._limit_s:
                fault = (
                    f"scoring took more than {self._limit_s:g} seconds: export the run, and score the file"
                )
                break
        child.kill()
        child.join()
        if run is not None and fault:
            self._fail(*run, fault)
        return begun > 0

    def _start_large(self) -> None:
        if self._large is None or not self._large.is_alive():
            self._large = threading.Thread(target=self._supervise, kwargs={"large": True}, daemon=True)
            self._large.start()

    def _fail(self, run_id: str, revision: int, fault: str) -> None:
        with (
            contextlib.suppress(CounterpointError),  # then the run stays due
            Store(self._path, keep_secrets=self._keep_secrets, create=False) as store,
        ):
            store.keep(run_id, revision, traces=[], rows=[], error=fault)


# --- the child -----------------------------------------------------------------------------------


def _work(
    told: Connection, large: bool, path: str, quiet_s: float, keep_secrets: bool, score: _Score
) -> None:
    """Scores what is due, telling the parent before and after each run which it is at.

    The child for large runs ends when none is due; the other one never does, and tells of large ones.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(5)  # the receiver comes first
    said = ""
    while True:
        try:
            with Store(path, keep_secrets=keep_secrets, create=False) as store:
                _score_due(told, store, quiet_s, score, large=large)
                return
        except StoreFault as error:
            told.send(None)
            if str(error) != said:
                said = str(error)
                print(f"counterpoint: scoring waits: {said}", file=sys.stderr, flush=True)
            time.sleep(_FAULT_S)


def _score_due(told: Connection, store: Store, quiet_s: float, score: _Score, *, large: bool) -> None:
    resting: dict[str, float] = {}
    while True:
        mine, others = _due(store, quiet_s, resting, large=large)
        looked = time.monotonic()
        for run in mine:
            told.send((run.id, run.revision))
            begun = time.monotonic()
            _score_safely(store, run, score)
            ended = time.monotonic()
            resting[run.id] = 2 * ended - begun
            told.send(None)
            if ended - looked > _LOOK_AGAIN_S:
                break
        if large and not mine and not resting:
            return
        if others and not large:
            told.send(_LARGE_DUE)
        if not mine:
            time.sleep(min(max(quiet_s / 4, 0.02), 1.0))


def _score_safely(store: Store, run: Run, score: _Score) -> None:
    """What goes wrong with one run is kept as its error, and is no reason not to score the others."""
    try:
        score(store, run.id)
    except StoreFault:  # says nothing of the run, which stays due
        raise
    except CounterpointError as error:
        store.keep(run.id, run.revision, traces=[], rows=[], error=str(error))
    except Exception as error:
        message = " ".join(str(error).split())[:500]
        fault = f"could not be scored: {type(error).__name__}: {message}"
        store.keep(run.id, run.revision, traces=[], rows=[], error=fault)


def _due(store: Store, quiet_s: float, resting: dict[str, float], *, large: bool) -> tuple[list[Run], bool]:
    """Runs to be scored now, the smallest first; and whether any of the other size is due."""
    now = time.monotonic()
    for run_id in [run_id for run_id, until in resting.items() if until <= now]:
        del resting[run_id]
    mine: list[Run] = []
    others = False
    for run_id in store.due(quiet_s):
        run = None if run_id in resting or len(mine) == _BATCH else store.run(run_id)
        if run is not None and (max(run.spans, run.steps) > LARGE) is large:
            mine.append(run)
        else:
            others = others or run is not None
    return sorted(mine, key=lambda run: run.spans), others


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(0)
