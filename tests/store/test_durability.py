"""What was acknowledged is there: after kill -9, under many writers at once, and when the disk is full."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from counterpoint.errors import CounterpointError, UsageError
from counterpoint.store import Store, StoreFull
from counterpoint.store import database as database_file

from .conftest import large, row, span, trace, trace_id

ROOT = Path(__file__).parents[2]

WRITER = """
import sys
from counterpoint.store import Store
from tests.store.conftest import span

path, number, calls, size = sys.argv[1], *map(int, sys.argv[2:])
store = Store(path)
for call in range(calls):
    store.add_spans([span(number + call % 3, call * size + n + 1) for n in range(size)])
    print((call + 1) * size, flush=True)
store.close()
"""


def writer(path: Path, number: int, calls: int, size: int) -> subprocess.Popen[str]:
    """A process that adds spans to three runs, and says after each call how many were acknowledged."""
    words = [sys.executable, "-c", WRITER, path, number, calls, size]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([*map(str, words)], stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT)


def test_acknowledged_spans_survive_kill_9(path):
    killed = writer(path, 1, 100_000, 7)
    assert killed.stdout is not None
    acknowledged = 0
    for line in killed.stdout:
        acknowledged = int(line)
        if acknowledged >= 200:
            break
    killed.send_signal(signal.SIGKILL)
    rest, _ = killed.communicate()
    acknowledged = max([acknowledged, *map(int, rest.split())])
    with Store(path) as store:
        assert sum(run.spans for run in store.runs().rows) >= acknowledged
        assert store.verify() == []
        data = b"".join(store.otlp(run.id) for run in store.runs().rows)
        for number in range(1, acknowledged + 1):
            assert b"\x12\x08" + number.to_bytes(8) in data
        store.add_spans([span(9)])


def test_processes_and_threads_write_at_once_and_lose_nothing(path):
    processes = [writer(path, 10 * number, 12, 5) for number in (1, 2, 3)]
    with Store(path) as store:

        def write(number: int) -> None:
            for call in range(12):
                store.add_spans([span(10 * number, call * 5 + n + 1) for n in range(5)])

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(write, range(4, 12)))
        assert [process.wait(600) for process in processes] == [0, 0, 0]
        for process in processes:
            process.communicate()
        runs = store.runs().rows
        assert sorted(run.spans for run in runs) == [20] * 9 + [60] * 8
        assert store.verify() == []


def test_calls_that_wait_share_a_commit(store):
    entered, go = threading.Event(), threading.Event()

    def slow(_: sqlite3.Connection) -> None:
        entered.set()
        go.wait()

    version = store.version()
    with ThreadPoolExecutor(9) as threads:
        first = threads.submit(store._writer.do, slow)
        entered.wait()
        calls = [threads.submit(store.add_spans, [span(n)]) for n in range(1, 9)]
        while len(store._writer._waiting) < 8:
            time.sleep(0.001)
        begun = []
        store._writer._database.set_trace_callback(begun.append)
        go.set()
        for call in [first, *calls]:
            call.result()
    assert store.runs().total == 8
    assert begun.count("BEGIN IMMEDIATE") == 1
    assert store.version() != version


def test_work_that_fails_takes_nothing_else_with_it(store):
    entered, go = threading.Event(), threading.Event()

    def slow(_: sqlite3.Connection) -> None:
        entered.set()
        go.wait()

    def wrong(database: sqlite3.Connection) -> None:
        database.execute("DELETE FROM runs")
        raise ValueError("no")

    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(store._writer.do, slow)
        entered.wait()
        before = threads.submit(store.add_spans, [span(1)])
        fault = threads.submit(store._writer.do, wrong)
        after = threads.submit(store.add_spans, [span(2)])
        while len(store._writer._waiting) < 3:
            time.sleep(0.001)
        go.set()
        with pytest.raises(ValueError, match="no"):
            fault.result()
        for call in (first, before, after):
            call.result()
    assert store.runs().total == 2
    store.add_spans([span(1, 2)])
    assert store.run(trace_id(1)).spans == 2


def test_ctrl_c_takes_only_its_own_work_away(store):
    entered, go = threading.Event(), threading.Event()

    def interrupted(database: sqlite3.Connection) -> None:
        entered.set()
        go.wait()
        database.execute("DELETE FROM runs")
        raise KeyboardInterrupt

    store.add_spans([span(1)])
    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(store._writer.do, interrupted)
        entered.wait()
        calls = [threads.submit(store.add_spans, [span(n)]) for n in (2, 3)]
        while len(store._writer._waiting) < 2:
            time.sleep(0.001)
        go.set()
        with pytest.raises(KeyboardInterrupt):
            first.result()
        for call in calls:
            call.result()
    assert store.runs().total == 3
    assert store._writer._bytes == 0
    assert store.verify() == []


def test_a_flood_is_refused_at_once_and_memory_stays_bounded(path):
    entered, go = threading.Event(), threading.Event()

    def slow(_: sqlite3.Connection) -> None:
        entered.set()
        go.wait()

    one = large(1, 1, 1024)
    with Store(path, max_pending_bytes=3000) as store, ThreadPoolExecutor(3) as threads:
        first = threads.submit(store._writer.do, slow)
        entered.wait()
        waiting = [threads.submit(store.add_spans, [one]) for _ in range(2)]
        while len(store._writer._waiting) < 2:
            time.sleep(0.001)
        with pytest.raises(StoreFull, match="bytes wait to be written"):
            store.add_spans([one])
        go.set()
        for call in [first, *waiting]:
            call.result()
        store.add_spans([large(1, 2, 5000)])  # nothing waits: it may
        assert store.run(trace_id(1)).spans == 2


def test_a_full_disk_refuses_what_it_cannot_keep_and_goes_on_when_there_is_room(store):
    store.add_spans([span(1)])
    database = store._writer._database
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {pages}")
    big = span(2)._replace(payload=bytes(10**6))
    with pytest.raises(UsageError, match="disk is full") as told:
        store.add_spans([big, span(3)])
    assert "\n" not in str(told.value)
    assert store.runs().total == 1
    database.execute("PRAGMA max_page_count = 1000000")
    store.add_spans([span(2), span(3)])
    assert store.runs().total == 3
    assert store.verify() == []


def test_a_file_that_another_program_locks_is_told_in_one_line(path, store, monkeypatch):
    store.add_spans([span(1)])
    monkeypatch.setattr(database_file, "BUSY_S", 0.05)
    with Store(path) as impatient:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UsageError, match="is locked by another program"):
            impatient.add_spans([span(2)])
        assert impatient.runs().total == 1  # reading does not wait
        other.execute("ROLLBACK")
        other.close()
        impatient.add_spans([span(2)])
        assert impatient.runs().total == 2


def test_of_those_who_wait_for_another_program_each_waits_as_long_as_it_said(path, store):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(2) as pool:
        patient = pool.submit(store.add_spans, [span(1)])
        hasty = pool.submit(store.add_spans, [span(2)], wait_s=0.05)
        assert "is locked by another program" in str(hasty.exception(300))
        assert not patient.done()
        other.execute("ROLLBACK")
        other.close()
        patient.result(300)
    assert [run.id for run in store.runs().rows] == [trace_id(1)]


def test_the_version_changes_with_every_commit_also_of_others(path, store):
    with Store(path) as other:
        seen = store.version()
        assert store.version() == seen
        for write in (
            lambda: other.add_spans([span(1)]),
            lambda: store.add_spans([span(2)]),
            lambda: other.keep(trace_id(1), 1, traces=[], rows=[]),
            lambda: store.add_traces([trace()], origin="file"),
        ):
            write()
            assert store.version() != seen
            seen = store.version()


def test_what_another_store_changed_is_noticed_before_the_next_span_is_written(path, store):
    store.add_spans([span(1), span(2)])
    with Store(path) as other:
        other.add_spans([span(2, 2, links=(1,))])
        store.add_spans([span(2, 3)])
        assert store.run(trace_id(1)).spans == 4
        other.prune(keep=0)
        store.add_spans([span(2, 4)])
    (run,) = store.runs().rows
    assert (run.id, run.spans) == (trace_id(2), 1)
    assert store.verify() == []


def test_a_closed_store_says_so(path):
    store = Store(path)
    store.add_spans([span(1)])
    store.close()
    store.close()
    for call in (lambda: store.add_spans([span(2)]), store.runs, store.version):
        with pytest.raises(CounterpointError, match="the store is closed"):
            call()


def test_closing_finishes_what_waits(path):
    with Store(path) as store:
        calls = [threading.Thread(target=store.add_spans, args=([span(n)],)) for n in range(1, 20)]
        for call in calls:
            call.start()
        while len([call for call in calls if call.is_alive()]) == 19:
            time.sleep(0.001)
        for call in calls:
            call.join()
    with Store(path) as store:
        assert store.runs().total == 19


def test_readers_see_one_moment_while_others_write(store):
    store.add_spans([span(1)])
    with store._readers.snapshot() as database:
        (before,) = database.execute("SELECT COUNT(*) FROM spans").fetchone()
        store.add_spans([span(1, 2)])
        assert database.execute("SELECT COUNT(*) FROM spans").fetchone() == (before,)
    assert store.run(trace_id(1)).spans == 2


def test_kept_rows_are_replaced_as_a_whole(store):
    store.add_spans([span(1)])
    for revision, metrics in ((1, "ab"), (2, "c"), (1, "x")):
        rows = [row(trace_id(1), name, 0.5) for name in metrics]
        store.keep(trace_id(1), revision, traces=[trace(trace_id(1))], rows=rows)
    assert [one.metric for one in store.rows(trace_id(1))] == ["c"]
