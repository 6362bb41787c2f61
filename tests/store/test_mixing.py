"""A log is played into no other file than the one it is of, and no file is refused for its own log."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from counterpoint.errors import CounterpointError
from counterpoint.store import Store, StoreFault
from counterpoint.store.log import FirstPage, belongs, first_pages

from .conftest import span, trace_id


def vacuumed(path: Path, copy: Path) -> None:
    """A copy of a store in use, as docs/store.md says."""
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"VACUUM INTO '{copy}'")


def backed_up(path: Path, copy: Path) -> None:
    """A copy of a store in use, as ``.backup`` makes one."""
    with closing(sqlite3.connect(path)) as database, closing(sqlite3.connect(copy)) as target:
        database.backup(target)


def of_another(path: Path, copy: Path) -> None:
    """Another store."""
    with Store(copy) as other:
        other.add_spans([span(1)])


COPIES = (vacuumed, backed_up, of_another)


def files(folder: Path) -> dict[str, bytes]:
    """The store of the folder, byte by byte."""
    return {file.name: file.read_bytes() for file in folder.glob("store.db*")}


def killed(path: Path, folder: Path) -> Path:
    """What stands on the disk if all who have the store open are killed now."""
    folder.mkdir()
    for name in ("store.db", "store.db-wal", "store.db-shm"):
        shutil.copy(path.with_name(name), folder / name)
    return folder / "store.db"


def checkpoint(path: Path, mode: str = "TRUNCATE") -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("begun_anew", [True, False])
def test_a_copy_put_beside_the_log_of_a_killed_store_is_refused_and_left_alone(
    path: Path, tmp_path: Path, copied: Callable[[Path, Path], None], begun_anew: bool
):
    copy = tmp_path / "copy.db"
    with Store(path) as store:
        store.add_spans([span(number) for number in range(1, 20)])
        copied(path, copy)
        store.add_spans([span(20)])
        if begun_anew:
            checkpoint(path)
        for number in range(21, 24):
            store.add_spans([span(number)])
        left = killed(path, tmp_path / "left")
    shutil.copy(copy, left)
    before = files(left.parent)
    with pytest.raises(StoreFault, match=r"is of another file.*delete .*store\.db-wal and .*-shm") as told:
        Store(left)
    assert "\n" not in str(told.value)
    assert files(left.parent) == before
    for name in ("store.db-wal", "store.db-shm"):
        left.with_name(name).unlink()
    with Store(left) as store, Store(copy) as given:
        assert store.runs().rows == given.runs().rows
        assert store.verify() == []


def test_a_copy_of_a_closed_store_put_beside_a_later_log_is_refused(path: Path, tmp_path: Path):
    with Store(path) as store:
        store.add_spans([span(1)])
    shutil.copy(path, tmp_path / "copy.db")
    with Store(path) as store:
        store.add_spans([span(2)])
        checkpoint(path)
        store.add_spans([span(3)])
        left = killed(path, tmp_path / "left")
    shutil.copy(tmp_path / "copy.db", left)
    with pytest.raises(StoreFault, match="is of another file"):
        Store(left)


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_written_over_an_open_store_is_noticed_and_not_mixed(
    path: Path, tmp_path: Path, copied: Callable[[Path, Path], None]
):
    copy = tmp_path / "copy.db"
    with Store(path) as store:
        store.add_spans([span(1)])
        copied(path, copy)
        store.add_spans([span(2)])
        store.add_spans([span(3)])
        os.utime(path, ns=(0, 0))  # so long ago that the clock of the file system tells the two writes apart
        store.version()
        shutil.copyfile(copy, path)
        for call in (store.version, store.runs, lambda: store.add_spans([span(4)])):
            with pytest.raises(StoreFault, match=r"was written over.*restart") as told:
                call()
            assert "\n" not in str(told.value)
    with Store(path) as store, Store(copy) as given:
        assert store.runs().rows == given.runs().rows
        assert store.verify() == []


def test_a_copy_put_in_place_as_told_is_a_store_like_any_other(path: Path, tmp_path: Path):
    with Store(path) as store:
        store.add_spans([span(1)])
        vacuumed(path, tmp_path / "copy.db")
    shutil.copy(tmp_path / "copy.db", path)
    with Store(path) as store:
        store.add_spans([span(2)])
        with Store(killed(path, tmp_path / "left")) as left:
            assert left.runs().total == 2


def vacuum(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("VACUUM")


def index(path: Path) -> None:
    """What somebody else may do."""
    with closing(sqlite3.connect(path)) as database:
        name = f"theirs_{random.getrandbits(60)}"
        database.execute(f"CREATE INDEX {name} ON runs(task)")


def restore(path: Path) -> None:
    """``.restore`` of what ``.backup`` made, into the open store."""
    with closing(sqlite3.connect(path)) as database, closing(sqlite3.connect(":memory:")) as copy:
        database.backup(copy)
        copy.backup(database)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_done_to_a_store_by_its_own_means_its_log_is_not_refused(
    path: Path, tmp_path: Path, seed: int
):
    chance = random.Random(seed)
    with Store(path) as store, Store(path) as other:
        deeds: list[Callable[[], object]] = [
            lambda: store.add_spans([span(chance.randrange(1, 99), number) for number in range(1, 9)]),
            lambda: other.add_spans([span(chance.randrange(1, 99), text="x" * 100) for _ in range(30)]),
            lambda: other.prune(keep=chance.randrange(9)),
            lambda: checkpoint(path, "PASSIVE"),
            lambda: checkpoint(path, "RESTART"),
            lambda: checkpoint(path),
            lambda: vacuum(path),
            lambda: index(path),
            lambda: restore(path),
        ]
        for number in range(30):
            chance.choices(deeds, (5, 5, 1, 3, 1, 1, 1, 1, 1))[0]()
            store.version()
            left = killed(path, tmp_path / str(number))
            with Store(left) as found:
                assert found.runs().total == store.runs().total
            shutil.rmtree(left.parent)


def test_a_checkpoint_that_a_reader_holds_up_is_no_fault(path: Path, tmp_path: Path):
    with Store(path) as store:
        store.add_spans([span(1)])
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT COUNT(*) FROM runs").fetchall()
            for number in range(2, 9):
                store.add_spans([span(number)])
            checkpoint(path, "PASSIVE")
            store.version()
            with Store(killed(path, tmp_path / "left")) as left:
                assert left.runs().total == 8


def test_where_the_log_is_begun_anew_meanwhile_it_is_looked_at_again(path: Path):
    with Store(path) as store:
        store.add_spans([span(1)])
        looks = []

        def connect() -> sqlite3.Connection:
            database = sqlite3.connect(path.as_uri() + "?mode=ro&immutable=1", uri=True)
            database.execute("PRAGMA user_version").fetchone()
            looks.append(len(looks))
            if len(looks) == 1:
                for number in (2, 3):
                    store.add_spans([span(number)])
                    checkpoint(path)
                store.add_spans([span(4)])
            return database

        assert belongs(f"{path}-wal", connect)
    assert looks == [0, 1]


def test_a_page_that_is_half_written_says_nothing(path: Path, tmp_path: Path):
    with Store(path) as store:
        store.add_spans([span(1)])
        checkpoint(path)
        store.add_spans([span(2)])
        left = killed(path, tmp_path / "left")
    log = left.with_name("store.db-wal")
    assert len(first_pages(str(log))) == 1
    content = bytearray(log.read_bytes())
    for kept in (32 + 24 + 100, 32 + 10, 32, 10, 0):
        log.write_bytes(content[:kept])
        assert first_pages(str(log)) == []
    content[32 + 24 + 60] ^= 1
    log.write_bytes(content)
    assert first_pages(str(log)) == []
    with Store(left) as store:
        assert [run.id for run in store.runs().rows] == [trace_id(1)]


def test_every_commit_that_changes_something_counts_one(path: Path):
    with Store(path) as store:
        checkpoint(path)
        for _ in range(2):
            store.add_spans([span(1)])
        store.add_spans([span(2)])
        first, second = first_pages(f"{path}-wal")
    assert second == FirstPage(first.changes, (first.commits + 1) % 2**31, first.application)


@pytest.mark.parametrize("application", [0, 77])
def test_a_database_of_another_program_whose_tables_stand_in_its_log_only_is_left_alone(
    path: Path, tmp_path: Path, application: int
):
    (tmp_path / "theirs").mkdir()
    with closing(sqlite3.connect(tmp_path / "theirs" / "store.db")) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE bookmarks (url TEXT)")
        database.execute(f"PRAGMA application_id = {application}")
        for name in ("store.db", "store.db-wal"):
            shutil.copy(tmp_path / "theirs" / name, path.with_name(name))
    before = files(tmp_path)
    with pytest.raises(CounterpointError, match="is a database of another program") as told:
        Store(path)
    assert "\n" not in str(told.value)
    assert files(tmp_path) == before


def test_a_file_that_cannot_be_read_just_now_is_not_called_another(path: Path, tmp_path: Path):
    with Store(path) as store:
        store.add_spans([span(1)])
        checkpoint(path)
        store.add_spans([span(2)])
        left = killed(path, tmp_path / "left")
    os.truncate(left, 8192)  # as during a checkpoint, which writes the first page first

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(left.as_uri() + "?mode=ro&immutable=1", uri=True)

    assert belongs(f"{left}-wal", connect) is None
