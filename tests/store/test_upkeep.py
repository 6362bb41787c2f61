"""Old runs go with all that is theirs and give their space back; what is wrong in a file is found."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from counterpoint.errors import CounterpointError, UsageError
from counterpoint.store import Pruned, Store, receiving
from counterpoint.store.pruning import Outdated, delete_runs

from .conftest import keep, large, row, span, trace, trace_id

TABLES = ("runs", "trace_ids", "spans", "envelopes", "traces", "scores", "claims", "texts")


@contextmanager
def tables(path: Path) -> Iterator[sqlite3.Connection]:
    """The file as any other program sees it."""
    database = sqlite3.connect(path, isolation_level=None)
    yield database
    database.close()


def aged(store: Store, monkeypatch: pytest.MonkeyPatch, *days: int) -> None:
    """A run for each number of days since its last span, its trace id that number."""
    now = receiving.time.time()
    for number in days:
        with monkeypatch.context() as patch:
            patch.setattr(receiving.time, "time", lambda at=now - number * 86400: at)
            store.add_spans([span(number), span(number, 2)])


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ({"older_than_s": 3 * 86400}, [1, 2]),
        ({"older_than_s": 30 * 86400}, [1, 2, 8, 9]),
        ({"older_than_s": 0}, []),
        ({"keep": 3}, [1, 2, 8]),
        ({"keep": 0}, []),
        ({"keep": 99}, [1, 2, 8, 9]),
        ({"keep": 3, "older_than_s": 3 * 86400}, [1, 2]),
    ],
)
def test_old_runs_go(store, monkeypatch, asked, left):
    aged(store, monkeypatch, 9, 2, 8, 1)
    dry = store.prune(dry_run=True, **asked)
    assert store.runs().total == 4
    pruned = store.prune(**asked)
    assert (dry.runs, dry.spans) == (pruned.runs, pruned.spans) == (4 - len(left), 8 - 2 * len(left))
    assert {run.id for run in store.runs().rows} == {trace_id(number) for number in left}
    assert store.verify() == []


def test_pruning_leaves_nothing_of_a_run_and_frees_the_disk(path, store):
    store.add_spans([span(1)])
    for number in range(2, 30):
        store.add_spans([span(number, links=(number + 100,), envelope=b"\x1a\x01%c" % number)])
        store.add_spans([large(number, 2, 100_000)])
    keep(store, trace("q", "some text" * 1000), {"upr": 1}, claims=[{"a": 1}])
    store.add_spans([span(1, 2)])
    statements: list[str] = []
    store._writer._database.set_trace_callback(statements.append)
    pruned = store.prune(keep=1)
    assert statements.count("BEGIN IMMEDIATE") < 10
    assert (pruned.runs, pruned.spans) == (29, 56)
    assert pruned.freed_bytes > 2_500_000
    assert path.stat().st_size < 500_000
    assert store.runs(search="some text").total == 0
    with tables(path) as database:
        counts = [database.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] for name in TABLES]
        assert counts == [1, 1, 2, 1, 0, 0, 0, 0]
    store.add_spans([span(2)])
    assert store.verify() == []


def test_a_run_that_grows_while_others_are_pruned_stays(store, monkeypatch):
    aged(store, monkeypatch, 9, 8)
    work = Store._deleting

    def late(self, batch):
        store.add_spans([span(9, 3)])
        return work(self, batch)

    monkeypatch.setattr(Store, "_deleting", late)
    assert store.prune(older_than_s=86400).runs == 1
    assert store.runs().rows[0].id == trace_id(9)


def test_spans_come_in_while_runs_are_pruned(store):
    for number in range(1, 60):
        store.add_spans([large(number, 1, 20_000)])
    go = threading.Event()

    def write() -> None:
        number = 100
        while not go.is_set():
            store.add_spans([span(number)])
            number += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        store.prune(keep=10)
    finally:
        go.set()
        thread.join()
    assert store.runs(limit=1).total >= 10
    assert store.verify() == []


@pytest.mark.parametrize("most", [20, 1, 0])
def test_where_the_disk_is_full_runs_go_one_by_one_or_it_is_said_what_to_do(store, monkeypatch, most):
    store.add_spans([span(number) for number in range(1, 31)])

    def delete(database: sqlite3.Connection, batch: list[Outdated]) -> Pruned:
        if len(batch) > most:
            raise sqlite3.OperationalError("database or disk is full")
        return delete_runs(database, batch)

    monkeypatch.setattr("counterpoint.store.store.delete_runs", delete)
    if most:
        assert store.prune(keep=5)[:2] == (25, 25)
        assert store.runs().total == 5
    else:
        with pytest.raises(CounterpointError, match=r"the disk is full.*free \d+ MB") as told:
            store.prune(keep=5)
        assert "\n" not in str(told.value)
        assert store.runs().total == 30
    assert store.verify() == []


def test_opening_a_store_writes_nothing(path, store):
    store.add_spans([span(1)])
    before = store.version()
    with Store(path) as other:
        assert other.runs().total == 1
    assert store.version() == before


def test_something_has_to_say_what_is_pruned(store):
    with pytest.raises(UsageError, match="nothing says what to prune"):
        store.prune()


def test_a_sound_store_has_no_problems(store):
    store.add_spans([span(1), span(2, links=(1, 7)), span(3)])
    keep(store, trace(), {"upr": 0.5, "ids": None}, claims=[{"a": 1}])
    store.keep(trace_id(3), 1, traces=[], rows=[], error="unreadable")
    assert store.verify() == []


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (
            "UPDATE spans SET payload = x'ff' WHERE id = x'0000000000000002'",
            "span 0000000000000002 does not parse",
        ),
        ("UPDATE spans SET payload = x'' WHERE id = x'0000000000000002'", "its ids are not those"),
        ("UPDATE envelopes SET content = x'12ff'", "envelope 1 does not parse"),
        ("DELETE FROM spans", f"run {trace_id(1)}: has no spans"),
        ("DELETE FROM spans WHERE id = x'0000000000000002'", "has 1 spans, 2 were counted"),
        ("DELETE FROM traces", "scores without their trace: q1"),
        ("DELETE FROM traces", "run q1: has no trace"),
        ("UPDATE traces SET content = 'nonsense'", "run q1: its trace cannot be read"),
        ("UPDATE traces SET content = '{}'", 'run q1: its trace cannot be read: a native trace has no "id"'),
        ("DELETE FROM envelopes", "a span without its envelope: 0000000000000001"),
        ("DELETE FROM trace_ids", "a span of no trace"),
        ("DELETE FROM runs", "a trace id of no run"),
        ("DELETE FROM runs", "claims of no run"),
        ("DELETE FROM runs", "text of no run"),
        ("DELETE FROM search_data WHERE id > 10", "the search index"),
        ("DELETE FROM search_docsize", "a text that the search index lacks"),
    ],
)
def test_what_is_wrong_is_found(path, damage, problem):
    with Store(path) as store:
        store.add_spans([span(1), span(1, 2)])
        keep(store, trace(), {"upr": 0.5}, claims=[{"a": 1}])
    with tables(path) as database:
        database.execute(damage)
    with Store(path) as store:
        found = store.verify()
        assert any(problem in line for line in found), found
        assert not any("\n" in line for line in found)


def test_problems_of_one_sort_are_counted_after_the_first(path, store):
    store.add_spans([span(1, number) for number in range(1, 20)])
    with tables(path) as database:
        database.execute("UPDATE spans SET payload = x'ff'")
    found = store.verify()
    assert len(found) == 6
    assert found[-1] == "... and 14 more problems of spans"


def test_spans_are_checked_without_the_extra_too(path, store, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.proto.trace.v1", None)
    store.add_spans([span(1)])
    assert store.verify() == []
    with tables(path) as database:
        database.execute("UPDATE spans SET payload = x'0aff'")
    assert len(store.verify()) == 1


def test_a_damaged_page_is_found(path):
    with Store(path) as store:
        store.add_spans([large(1, number, 5000) for number in range(1, 100)])
    content = bytearray(path.read_bytes())
    content[-30 * 8192 : -28 * 8192] = b"\xff" * (2 * 8192)
    path.write_bytes(content)
    with Store(path) as store:
        found = store.verify()
    assert found
    assert all(line.startswith("the file is damaged: ") for line in found)


def test_scores_are_of_the_run_s_own_traces(store):
    store.add_spans([span(1)])
    store.keep(trace_id(1), 1, traces=[trace("a")], rows=[row("b", "upr", 1)])
    assert store.verify() == ["scores without their trace: b"]


def test_the_log_gives_its_room_back_before_anything_is_deleted(path, store, monkeypatch):
    store.add_spans([span(number) for number in range(1, 4)])
    sizes = []

    def delete(database: sqlite3.Connection, batch: list[Outdated]) -> Pruned:
        sizes.append(Path(f"{path}-wal").stat().st_size)
        return delete_runs(database, batch)

    monkeypatch.setattr("counterpoint.store.store.delete_runs", delete)
    assert store.prune(keep=1).runs == 2
    assert sizes == [0]
