"""How many spans a second the store takes, beside plain SQLite with the same payload in the same run.

    python perf/store.py [FOLDER]

Spans of 1.5 KB, 500 a call, runs of 100 spans; WAL and synchronous=FULL on both sides. Then what the list of
10,000 scored runs takes. FOLDER is where the files go (a temporary folder).
"""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from counterpoint.score import Row
from counterpoint.store import Span, Store
from counterpoint.trace import Step, Trace

SPANS, PER_CALL, PER_RUN, BYTES = 60_000, 500, 100, 1536
ROUNDS = 5
RUNS = 10_000
WORDS = [
    "the",
    "plan",
    "needs",
    "a",
    "check",
    "of",
    "each",
    "sum",
    "that",
    "was",
    "never",
    "tested",
    "so",
    "far",
]


def batches() -> list[list[Span]]:
    """The spans of one round, in calls; ids and payloads are all different."""
    envelope = os.urandom(200)
    spans = []
    for number in range(SPANS):
        if number % PER_RUN == 0:
            trace = os.urandom(16).hex()
        spans.append(
            Span(trace, os.urandom(8).hex(), envelope, os.urandom(BYTES), name="chat", start_ns=number)
        )
    return [spans[at : at + PER_CALL] for at in range(0, SPANS, PER_CALL)]


def plain(path: Path, calls: list[list[Span]]) -> float:
    """Seconds of an executemany and a commit a call into one table with the same key."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE spans (trace BLOB, id BLOB, payload BLOB, UNIQUE (trace, id))")
    began = time.perf_counter()
    for call in calls:
        database.execute("BEGIN IMMEDIATE")
        rows = [(bytes.fromhex(one.trace_id), bytes.fromhex(one.span_id), one.payload) for one in call]
        database.executemany("INSERT OR REPLACE INTO spans VALUES (?, ?, ?)", rows)
        database.execute("COMMIT")
    took = time.perf_counter() - began
    database.close()
    return took


def ours(path: Path, calls: list[list[Span]], threads: int = 1) -> float:
    """Seconds until every call has returned."""
    with Store(path) as store:
        began = time.perf_counter()
        shares = [calls[number::threads] for number in range(threads)]
        workers = [threading.Thread(target=_send, args=(store, share)) for share in shares]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return time.perf_counter() - began


def _send(store: Store, calls: list[list[Span]]) -> None:
    for call in calls:
        store.add_spans(call)


def write(folder: Path) -> None:
    """Spans a second, of each side by turns; the best of each, for other programs only slow it down."""
    sides: dict[str, Callable[[Path, list[list[Span]]], float]] = {
        "plain sqlite3": plain,
        "store": ours,
        "store, 8 threads": lambda path, calls: ours(path, calls, 8),
    }
    best = dict.fromkeys(sides, float("inf"))
    for turn in range(ROUNDS):
        for name, side in sides.items():
            best[name] = min(best[name], side(folder / f"{turn}-{name}.db", batches()))
    for name, took in best.items():
        print(f"{name:20} {SPANS / took:10,.0f} spans/s {SPANS * BYTES / took / 2**20:8.1f} MB/s")
        sizes = [file.stat().st_size for file in folder.glob(f"*-{name}.db")]
        print(f"{'':20} {max(sizes) / SPANS:10,.0f} bytes a span on disk")


def read(folder: Path) -> None:
    """Milliseconds of the list of runs, by what is asked of it."""
    traces = [_trace(number) for number in range(RUNS)]
    with Store(folder / "list.db") as store:
        began = time.perf_counter()
        ids = store.add_traces(traces, origin="perf")
        for run, trace in zip(ids, traces, strict=True):
            rows = [
                Row("perf", run, trace.system, f"metric{m}", (int(run) * (m + 1) % 997) / 997)
                for m in range(14)
            ]
            store.keep(run, 1, traces=[trace], rows=rows)
        print(f"{'add and keep a run':36} {(time.perf_counter() - began) / RUNS * 1e3:8.2f} ms")
        for name, asked in (
            ("first page", {}),
            ("page 90", {"offset": 9000}),
            ("search, 1 run", {"search": "number 04711 "}),
            ("search, all runs", {"search": "needs a"}),
            ("search, none", {"search": "zzz yyy"}),
            ("search, 2 characters", {"search": "pl"}),
            ("metric0>0.4", {"where": "metric0>0.4"}),
            ("metric0>0.4, max(metric1)<0.2", {"where": "metric0>0.4, max(metric1)<0.2"}),
            ("system and wrong", {"system": "team 3", "correct": "wrong"}),
            ("scored, by metric", {"state": "scored", "order": "metric3"}),
            (
                "all of these",
                {"search": "check", "system": "team 3", "where": "metric0>0.4", "order": "task"},
            ),
        ):
            times = []
            for _ in range(7):
                began = time.perf_counter()
                total = store.runs(**asked).total  # type: ignore[arg-type]
                times.append(time.perf_counter() - began)
            print(f"{name:36} {sorted(times)[3] * 1e3:8.2f} ms {total:8,} runs")
        began = time.perf_counter()
        for _ in range(1000):
            store.version()
        print(f"{'version':36} {time.perf_counter() - began:8.4f} ms")
        print(f"{(folder / 'list.db').stat().st_size / 2**20:.0f} MB")


def _trace(number: int) -> Trace:
    steps = tuple(
        Step(
            f"s{at}",
            f"agent {at % 4}",
            " ".join(WORDS[(number * 7 + at * 3 + word) % len(WORDS)] for word in range(150)),
        )
        for at in range(8)
    )
    return Trace(
        str(number), steps, task=f"What is number {number:05} ?", system=f"team {number % 10}",
        answer=str(number), correct=number % 3 > 0,
    )  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        write(Path(folder))
        read(Path(folder))


if __name__ == "__main__":
    main()
