"""The store: spans that came in, and what was made of them, in one SQLite file.

Conventions
-----------
* Every method may be called from every thread, and several processes may use one file at once.
* What `Store.add_spans` returned from is on the disk: it survives ``kill -9`` and a power cut.
* Every fault that a user can cause is a one-line CounterpointError.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from counterpoint.errors import UsageError
from counterpoint.json_text import parse_json
from counterpoint.score import Row
from counterpoint.store import listing
from counterpoint.store.database import DiskFull, StoreFault, files_beside, told
from counterpoint.store.keeping import Added, FileTrace, add, file_trace, keep
from counterpoint.store.place import Place
from counterpoint.store.pruning import (
    FEW_PAGES,
    Outdated,
    Pruned,
    compact_search,
    delete_envelopes,
    delete_runs,
    free_pages,
    outdated,
)
from counterpoint.store.readers import Readers
from counterpoint.store.receiving import Receiver, arrivals
from counterpoint.store.records import Run, Runs, Span, clean, kept, read_claim, read_row
from counterpoint.store.verifying import problems, search_problem
from counterpoint.store.wire import resource_spans
from counterpoint.store.writer import Work, Writer
from counterpoint.trace import Trace, decode

__all__ = ["Store"]

T = TypeVar("T")

BATCH_BYTES = 4 * 2**20
"""Traces of files are written in pieces of about so much."""


class Store:
    """Runs, spans, traces, scores and claims in one file."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_pending_bytes: int = 64 * 2**20,
        keep_secrets: bool = False,
        create: bool = True,
    ) -> None:
        """Open the file, or create it with its folder; a StoreFault where that cannot be.

        A file that cannot be written, and that no program has open, is open for reading only.

        Parameters
        ----------
        path : the database file.
        max_pending_bytes : spans that wait to be written hold no more memory than this, in bytes.
        keep_secrets : do not mask values that look like keys in traces, rows and claims. Spans are written
            as they are given: whoever receives them masks them.
        create : make the file where there is none.
        """
        self.path = os.path.abspath(os.fspath(path))
        self._keep_secrets = keep_secrets
        self._receiver = Receiver()
        self._place = Place(self.path)
        database = self._place.open(create=create)
        self._writer = Writer(database, self._place, max_pending_bytes, self._receiver.forget)
        self._readers = Readers(self._place)
        self._watch = threading.Lock()
        self._watcher = self._place.connect()

    # --- writing ---------------------------------------------------------------------------------

    def add_spans(self, spans: Sequence[Span], *, wait_s: float | None = None) -> None:
        """Write the spans, and return when they are on the disk.

        Calls that wait at the same time share one commit. A span that was sent before (same trace and span
        id) replaces the first. A span with links joins the runs of its trace and of the traces it links to.

        Raises StoreFull at once where too much is waiting already, a UsageError where an id is none or the
        file cannot be written, also where another program keeps it locked for ``wait_s`` seconds (30 if
        None); then none of these spans is kept.
        """
        batch = arrivals(spans)
        if batch:
            size = sum(len(one.payload) + len(one.envelope) for one in batch)
            self._writer.do(
                lambda database: self._receiver.write(database, batch), size=size, refuse=True, wait_s=wait_s
            )

    def add_traces(self, traces: Iterable[Trace], *, origin: str) -> list[str]:
        """Each trace as a run of its own, due for scoring; the ids of the runs, in order.

        A trace of the same origin and id as one before takes its place.
        """
        return [added.run for added in self.put_traces(traces, origin=origin)]

    def put_traces(self, traces: Iterable[Trace], *, origin: str) -> list[Added]:
        """`add_traces`, telling of each whether it is new, changed, or there already."""
        added: list[Added] = []
        batch: list[FileTrace] = []
        size = 0
        for trace in traces:
            batch.append(file_trace(trace, keep_secrets=self._keep_secrets))
            size += batch[-1].kept.size
            if size >= BATCH_BYTES:
                added += self._put(batch, origin, size)
                batch, size = [], 0
        return added + self._put(batch, origin, size) if batch else added

    def _put(self, batch: list[FileTrace], origin: str, size: int) -> list[Added]:
        return self._writer.do(
            lambda database: [add(database, one, origin, keep_secrets=self._keep_secrets) for one in batch],
            size=size,
        )

    def keep(
        self,
        run_id: str,
        revision: int,
        *,
        traces: Sequence[Trace],
        rows: Sequence[Row],
        claims: Sequence[Mapping[str, Any]] = (),
        error: str = "",
        answer: str | None = None,
    ) -> None:
        """Replace what is kept of the run by what was made of its ``revision``, in one transaction.

        ``answer`` is what the run came to, for the list, where no trace records one.

        Spans that came in meanwhile keep the run due. Nothing is written where the run is gone (pruned, or
        joined into another), or where something newer is kept of it.
        """
        what = kept(traces, rows, claims, error, answer=answer, keep_secrets=self._keep_secrets)
        self._writer.do(lambda database: keep(database, run_id, revision, what), size=what.size)

    # --- reading ---------------------------------------------------------------------------------

    def otlp(self, run_id: str) -> bytes:
        """All spans of the run as one protobuf TracesData: by envelope, in order of arrival."""
        with self._readers.snapshot() as database:
            groups: dict[int, list[bytes]] = {}
            for envelope, payload in database.execute(
                """SELECT envelope, payload FROM spans WHERE trace IN (
                    SELECT trace_ids.key FROM trace_ids JOIN runs ON runs.key = trace_ids.run
                    WHERE runs.id = ?) ORDER BY key""",
                (clean(run_id),),
            ):
                groups.setdefault(envelope, []).append(payload)
            envelopes = {
                key: database.execute("SELECT content FROM envelopes WHERE key = ?", (key,)).fetchone()[0]
                for key in groups
            }
        return b"".join(resource_spans(envelopes[key], spans) for key, spans in groups.items())

    def due(self, quiet_s: float, *, now: float | None = None) -> list[str]:
        """Runs with spans that are not scored yet and whose last span is ``quiet_s`` seconds old.

        Traces of files are due at once. What was received last comes first: it is what somebody waits for.
        """
        before = (time.time() if now is None else now) - quiet_s
        with self._readers.snapshot() as database:
            rows = database.execute(
                """SELECT id FROM runs WHERE revision > scored_revision
                    AND (updated_at <= ? OR origin <> 'otlp') ORDER BY received_at DESC, key DESC""",
                (before,),
            )
            return [run_id for (run_id,) in rows]

    def runs(
        self,
        *,
        search: str = "",
        system: str | None = None,
        state: str = "",
        correct: str = "",
        where: str = "",
        order: str = "received",
        limit: int = 100,
        offset: int = 0,
    ) -> Runs:
        """A page of the runs that match all that is asked.

        Parameters
        ----------
        search : text that stands in the run's id, system, task, agents or answer, or (from three characters
            on) in a step; case does not matter.
        system : its name, exactly.
        state : receiving, waiting, scored or unreadable.
        correct : right, wrong or ungraded.
        where : gates on metrics, as in ``upr>0.4, max(ids)<0.3``; all have to hold.
        order : received (newest first), started, system, task, steps, spans, or a metric (largest first,
            undefined last); with ``-`` in front the other way round.

        Raises UsageError where a filter makes no sense.
        """
        with self._readers.snapshot() as database:
            return listing.list_runs(
                database,
                search=search,
                system=system,
                state=state,
                correct=correct,
                where=where,
                order=order,
                limit=limit,
                offset=offset,
            )

    def run(self, run_id: str) -> Run | None:
        """The run of that id, or the one that the trace of that id was joined into; None if there is none."""
        with self._readers.snapshot() as database:
            return listing.find(database, run_id)

    def traces(self, run_id: str) -> list[Trace]:
        """What was read of the run, or added as it."""
        return [decode(parse_json(text)[0], source=run_id) for text in self._contents("traces", run_id)]

    def rows(self, run_id: str) -> list[Row]:
        """The run's scores, in the order in which they were kept."""
        return [read_row(text) for text in self._contents("scores", run_id)]

    def claims(self, run_id: str) -> list[dict[str, Any]]:
        """The run's claims, in the order in which they were kept."""
        return [read_claim(text) for text in self._contents("claims", run_id)]

    def _contents(self, table: str, run_id: str) -> list[bytes]:
        with self._readers.snapshot() as database:
            rows = database.execute(
                f"SELECT content FROM {table} WHERE run = (SELECT key FROM runs WHERE id = ?) ORDER BY key",
                (clean(run_id),),
            )
            return [text for (text,) in rows]

    def version(self) -> int:
        """A number that changes with every commit, also of other processes; cheap enough to ask often."""
        with self._watch, self._place.told():
            try:
                (version,) = self._watcher.execute("PRAGMA data_version").fetchone()
            except sqlite3.OperationalError:
                self._place.check(self._watcher)  # may know more of it
                raise
            self._place.check(self._watcher)
            return int(version)

    def check(self) -> None:
        """A StoreFault where the file is not the one that was opened, or where damage was met since."""
        self.version()
        with self._readers.snapshot() as database:
            database.execute("SELECT id FROM runs ORDER BY received_at DESC LIMIT 1").fetchall()
        if self._place.damage:
            raise StoreFault(self._place.damage)

    # --- upkeep ----------------------------------------------------------------------------------

    def prune(
        self, *, older_than_s: float | None = None, keep: int | None = None, dry_run: bool = False
    ) -> Pruned:
        """Delete old runs with all that belongs to them, and give their space on the disk back.

        Parameters
        ----------
        older_than_s : runs whose last span is older than so many seconds go.
        keep : but for so many, the newest, all runs go.
        dry_run : count what would go, and delete nothing.
        """
        if older_than_s is None and keep is None:
            raise UsageError("nothing says what to prune: give older_than_s or keep")
        before = None if older_than_s is None else time.time() - older_than_s
        with self._readers.snapshot() as database:
            chosen = outdated(database, before, keep)
        if dry_run:
            return Pruned(len(chosen), sum(one.spans for one in chosen), 0)
        size = self._bytes_on_disk()
        try:
            self._empty_log()  # a deletion that fails takes the room which this needs
            gone = [part for at in range(0, len(chosen), 20) for part in self._delete(chosen[at : at + 20])]
            if gone:
                self._compact()
        except DiskFull:
            raise DiskFull(
                f"{self.path}: the disk is full, and deleting needs some room to begin with: free "
                f"{self._bytes_in_log_only() // 2**20 + 2} MB there (no file of the store), or stop what has "
                "the store open and move all of its files to another disk, and prune again"
            ) from None
        runs, spans = sum(part.runs for part in gone), sum(part.spans for part in gone)
        return Pruned(runs, spans, max(size - self._bytes_on_disk(), 0))

    def _delete(self, batch: list[Outdated]) -> list[Pruned]:
        """Delete the runs; where the disk is full, one by one."""
        try:
            return [self._roomy(self._deleting(batch))]
        except DiskFull:
            return [self._roomy(self._deleting([one])) for one in batch]

    def _roomy(self, work: Work[T]) -> T:
        """The work; where the disk is full, again after the log has given its room back."""
        try:
            return self._writer.do(work)
        except DiskFull:
            self._empty_log()
            return self._writer.do(work)

    def _empty_log(self) -> None:
        with told(self.path), closing(self._place.connect()) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _deleting(self, batch: list[Outdated]) -> Callable[[sqlite3.Connection], Pruned]:
        def work(database: sqlite3.Connection) -> Pruned:
            self._receiver.forget()
            return delete_runs(database, batch)

        return work

    def _compact(self) -> None:
        """Delete what nothing needs any more, and give back the space."""

        def work(database: sqlite3.Connection) -> None:
            self._receiver.forget()
            delete_envelopes(database)

        self._roomy(work)
        with suppress(DiskFull):  # the index gets smaller by the next time
            more = self._roomy(lambda database: compact_search(database, begin=True))
            while more:
                more = self._roomy(lambda database: compact_search(database, begin=False))
        try:
            while self._roomy(free_pages):
                pass
        except DiskFull:
            while self._roomy(lambda database: free_pages(database, FEW_PAGES)):
                pass
        self._empty_log()

    def _bytes_on_disk(self) -> int:
        return Path(self.path).stat().st_size + self._bytes_of_log()

    def _bytes_in_log_only(self) -> int:
        """By how much the file grows when the log is emptied into it."""
        with self._readers.snapshot() as database:
            (pages,) = database.execute("PRAGMA page_count").fetchone()
            (size,) = database.execute("PRAGMA page_size").fetchone()
        return max(int(pages) * int(size) - Path(self.path).stat().st_size, 0)

    def _bytes_of_log(self) -> int:
        log = Path(files_beside(self.path)[0])
        return log.stat().st_size if log.exists() else 0

    def verify(self) -> list[str]:
        """What is wrong in the file, a line each; empty where nothing is.

        The file itself, spans that do not parse, counts that are not so, runs without spans or traces, traces
        that cannot be read, scores without their trace, the search index.
        """
        with self._readers.snapshot() as database:
            found = list(problems(database))
        if found or self._place.immutable:  # looking through the index wants to write
            return found
        return self._writer.do(search_problem)

    # --- the end ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Finish what waits and close the file; closing twice is harmless."""
        self._writer.close()
        self._readers.close()
        with self._watch:
            self._watcher.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
