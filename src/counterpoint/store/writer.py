"""One thread at a time writes, for all who wait: what comes while it commits shares the next commit.

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
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from counterpoint.errors import CounterpointError
from counterpoint.store.database import StoreFault, StoreLocked, begin_writing, patience
from counterpoint.store.log import count_commit
from counterpoint.store.place import Place

__all__ = ["StoreFull", "Work", "Writer"]

SHARED_BYTES = 16 * 2**20
"""One commit takes about so much, so that nobody waits for a very long one."""
TURN_S = 0.25
"""So long one waits for another program's lock before it looks who else waits by now."""

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]


class StoreFull(CounterpointError):
    """Too much is waiting to be written: try again in a moment."""


class _Job:
    """Work that waits, and what became of it."""

    def __init__(self, work: Work[Any], size: int, until: float) -> None:
        self.work, self.size, self.until = work, size, until
        self.done = False
        self.result: Any = None
        self.error: Exception | None = None


class Writer:
    """Does work on a connection, in the order it came, in as few commits as there can be."""

    def __init__(
        self, database: sqlite3.Connection, place: Place, max_bytes: int, forget: Callable[[], None]
    ) -> None:
        """``forget`` is called where what was learned from the database may no longer hold."""
        self._database, self._place, self._max_bytes, self._forget = database, place, max_bytes, forget
        self._path = place.path
        self._turn = threading.Condition()
        self._waiting: list[_Job] = []
        self._writing = False
        self._bytes = 0
        self._closed = False
        self._opened = True
        self._version = -1

    def do(self, work: Work[T], *, size: int = 0, refuse: bool = False, wait_s: float | None = None) -> T:
        """The result of ``work``, once it is on the disk; with ``refuse`` StoreFull where too much waits.

        ``wait_s``: so long, in seconds, it may wait for another program to end its writing; BUSY_S if None.
        """
        job = _Job(work, size, patience(wait_s))
        with self._turn:
            if self._closed:
                raise StoreFault(f"{self._path}: the store is closed")
            if refuse and self._bytes and self._bytes + size > self._max_bytes:
                raise StoreFull(
                    f"{self._path}: {self._bytes:,} bytes wait to be written and {self._max_bytes:,} may: "
                    "try again"
                )
            self._waiting.append(job)
            self._bytes += size
            try:
                while not job.done:
                    if self._writing:
                        self._turn.wait()
                    else:
                        self._write()
            except BaseException:  # Ctrl-C
                self._drop(job)
                raise
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def close(self) -> None:
        """Wait for what waits, then close the connection; closing twice is harmless."""
        with self._turn:
            self._closed = True
            while self._writing or self._waiting:
                self._turn.wait()
            if self._opened:
                self._opened = False
                self._place.leave(self._database)
            self._database.close()

    def _drop(self, job: _Job) -> None:
        """Nobody waits for it any more; what is being written already is written."""
        if job in self._waiting:
            self._waiting.remove(job)
            self._bytes -= job.size
        self._turn.notify_all()

    def _write(self) -> None:
        """Write for all who wait; called with the lock held, which it leaves meanwhile."""
        jobs = self._take()
        self._writing = True
        self._turn.release()
        try:
            self._do(jobs)
        finally:
            self._turn.acquire()
            self._writing = False
            self._bytes -= sum(job.size for job in jobs if job.done)
            self._waiting[:0] = [job for job in jobs if not job.done]  # Ctrl-C: the next one does these
            self._turn.notify_all()

    def _take(self) -> list[_Job]:
        taken = size = 0
        for job in self._waiting:
            if taken and size + job.size > SHARED_BYTES:
                break
            taken += 1
            size += job.size
        jobs, self._waiting = self._waiting[:taken], self._waiting[taken:]
        return jobs

    def _do(self, jobs: Sequence[_Job]) -> None:
        """The jobs in one transaction; where that fails, each in one of its own."""
        try:
            self._begin(min(patience(TURN_S), *(job.until for job in jobs)))
        except StoreLocked as error:  # the others go on waiting, with who came meanwhile
            now = time.monotonic()
            _fail([job for job in jobs if job.until <= now], error)
            return
        except Exception as error:
            _fail(jobs, error)
            return
        try:
            results = self._commit(jobs)
        except Exception as error:
            if len(jobs) == 1:
                _fail(jobs, error)
            else:
                for job in jobs:
                    self._do([job])
            return
        for job, result in zip(jobs, results, strict=True):
            job.result, job.done = result, True

    def _begin(self, until: float) -> None:
        with self._place.told():
            if self._database.in_transaction:  # Ctrl-C came right after it began
                self._database.execute("ROLLBACK")
            self._place.check(self._database)
            begin_writing(self._database, until)
            (version,) = self._database.execute("PRAGMA data_version").fetchone()
        if version != self._version:  # another connection wrote
            self._forget()
            self._version = version

    def _commit(self, jobs: Sequence[_Job]) -> list[Any]:
        """What each job gives; where one fails, none is done and its error is raised."""
        database = self._database
        try:
            with self._place.told():
                before = database.total_changes
                results = [job.work(database) for job in jobs]
                if database.total_changes > before:
                    count_commit(database)
                database.execute("COMMIT")
            self._place.check(database)  # else what is on the disk may be nowhere
        except BaseException:
            self._forget()
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise
        return results


def _fail(jobs: Sequence[_Job], error: Exception) -> None:
    for job in jobs:
        job.error, job.done = error, True
