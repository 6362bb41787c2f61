"""One thread that writes for all: what waits while it commits goes into the next commit together.

Conventions
-----------
* `Writer.do` returns when the work is on the disk. Where work fails, nothing of it is written, and what
  shared its transaction is done again without it.
* What waits and what is being written counts against a limit; beyond it work is refused at once, so that a
  flood costs the sender time, not this process memory.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from counterpoint.errors import CounterpointError, UsageError
from counterpoint.store.database import begin_writing, told

__all__ = ["StoreFull", "Work", "Writer"]

SHARED_BYTES = 16 * 2**20
"""One commit takes about so much, so that nobody waits for a very long one."""

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]


class StoreFull(CounterpointError):
    """Too much is waiting to be written: try again in a moment."""


class _Job(NamedTuple):
    work: Work[Any]
    size: int
    done: Future[Any]


class Writer:
    """Does work on a connection, in the order it came, in as few commits as there can be."""

    def __init__(
        self, database: sqlite3.Connection, path: str, max_bytes: int, forget: Callable[[], None]
    ) -> None:
        """``forget`` is called where what was learned from the database may no longer hold."""
        self._database, self._path, self._max_bytes, self._forget = database, path, max_bytes, forget
        self._turn = threading.Condition()
        self._waiting: list[_Job] = []
        self._bytes = 0
        self._closed = False
        self._thread: threading.Thread | None = None
        self._version = -1

    def do(self, work: Work[T], *, size: int = 0, refuse: bool = False) -> T:
        """The result of ``work``, once it is on the disk; with ``refuse`` StoreFull where too much waits."""
        done: Future[T] = Future()
        with self._turn:
            if self._closed:
                raise UsageError(f"{self._path}: the store is closed")
            if refuse and self._bytes and self._bytes + size > self._max_bytes:
                raise StoreFull(
                    f"{self._path}: {self._bytes:,} bytes wait to be written and {self._max_bytes:,} may: "
                    "try again"
                )
            self._waiting.append(_Job(work, size, done))
            self._bytes += size
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="counterpoint-store", daemon=True)
                self._thread.start()
            self._turn.notify()
        return done.result()

    def close(self) -> None:
        """Finish what waits, then close the connection; closing twice is harmless."""
        with self._turn:
            self._closed = True
            self._turn.notify()
            thread = self._thread
        if thread is not None:
            thread.join()
        self._database.close()

    def _run(self) -> None:
        while jobs := self._next():
            try:
                self._begin()
            except Exception as error:
                self._finish(jobs, error)
            else:
                self._do(jobs)

    def _do(self, jobs: list[_Job]) -> None:
        """The jobs in the transaction that was begun; where that fails, each in one of its own."""
        try:
            results = self._commit(jobs)
        except Exception as error:
            if len(jobs) == 1:
                self._finish(jobs, error)
            else:
                for job in jobs:
                    self._alone(job)
            return
        self._release(jobs)
        for job, result in zip(jobs, results, strict=True):
            job.done.set_result(result)

    def _alone(self, job: _Job) -> None:
        try:
            self._begin()
        except Exception as error:
            self._finish([job], error)
        else:
            self._do([job])

    def _next(self) -> list[_Job]:
        with self._turn:
            while not self._waiting and not self._closed:
                self._turn.wait()
            taken = size = 0
            for job in self._waiting:
                if taken and size + job.size > SHARED_BYTES:
                    break
                taken += 1
                size += job.size
            jobs, self._waiting = self._waiting[:taken], self._waiting[taken:]
        return jobs

    def _begin(self) -> None:
        with told(self._path):
            begin_writing(self._database)
            (version,) = self._database.execute("PRAGMA data_version").fetchone()
        if version != self._version:  # another connection wrote
            self._forget()
            self._version = version

    def _commit(self, jobs: Sequence[_Job]) -> list[Any]:
        """What each job gives; where one fails, none is done and its error is raised."""
        database = self._database
        try:
            with told(self._path):
                results = [job.work(database) for job in jobs]
                database.execute("COMMIT")
        except BaseException:
            self._forget()
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise
        return results

    def _finish(self, jobs: Sequence[_Job], error: Exception) -> None:
        self._release(jobs)
        for job in jobs:
            job.done.set_exception(error)

    def _release(self, jobs: Sequence[_Job]) -> None:
        with self._turn:
            self._bytes -= sum(job.size for job in jobs)
