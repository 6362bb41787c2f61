"""A file becomes a store, an old one is brought up to date, and one that is none is refused in a line."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from counterpoint.errors import CounterpointError
from counterpoint.store import Store, database, default_path, migrations

from .conftest import span, trace

NOBODY = 65534


def refused(path: Path) -> str:
    """Why the file is no store, in one line that begins with its name."""
    with pytest.raises(CounterpointError) as told:
        Store(path)
    message = str(told.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def test_a_new_file_is_made_with_its_folders_for_its_owner_only(tmp_path):
    path = tmp_path / "a" / "b" / "store.db"
    with Store(path) as store:
        store.add_spans([span(1)])
        for file in path.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    assert [file.name for file in path.parent.iterdir()] == ["store.db"]


@pytest.mark.parametrize("name", [":memory:", "file:x.db?mode=memory", "a b'\";--.db", "ünïcode"])
def test_a_path_is_the_name_of_a_file_whatever_it_looks_like(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with Store(name) as store:
        store.add_spans([span(1)])
    assert (tmp_path / name).stat().st_size > 0


def test_the_default_is_named_by_the_environment_or_the_platform(monkeypatch):
    monkeypatch.setenv("COUNTERPOINT_STORE", "/elsewhere/x.db")
    assert default_path() == Path("/elsewhere/x.db")
    monkeypatch.delenv("COUNTERPOINT_STORE")
    assert default_path().name == "store.db"
    assert "counterpoint" in default_path().parts


def test_an_old_database_is_migrated_once_and_keeps_what_it_holds(path, monkeypatch):
    steps = list(migrations.MIGRATIONS)
    with monkeypatch.context() as old:
        old.setattr(migrations, "MIGRATIONS", steps[:1])
        with Store(path) as store:
            store.add_spans([span(1)])

    def rename(database: sqlite3.Connection) -> None:
        database.execute("UPDATE runs SET system = 'migrated'")

    monkeypatch.setattr(migrations, "MIGRATIONS", [*steps, rename])
    for _ in range(2):
        with Store(path) as store:
            assert [(run.system, run.spans) for run in store.runs().rows] == [("migrated", 1)]
    with Store(path) as store:
        store.add_traces([trace()], origin="file")
        assert store.runs(search="hello").total == 1
    database = sqlite3.connect(path)
    names = [name for (name,) in database.execute("SELECT name FROM migrations ORDER BY number")]
    database.close()
    assert names == [*(step.__name__.strip("_") for step in steps), "rename"]


def test_a_migration_that_fails_leaves_the_old_database(path, monkeypatch):
    with Store(path) as store:
        store.add_spans([span(1)])

    def fail(database: sqlite3.Connection) -> None:
        database.execute("DROP TABLE spans")
        database.execute("SELECT nonsense")

    with monkeypatch.context() as patch:
        patch.setattr(migrations, "MIGRATIONS", [*migrations.MIGRATIONS, fail])
        assert "the database failed: no such column" in refused(path)
    with Store(path) as store:
        store.add_spans([span(1, 2)])
        assert store.runs().rows[0].spans == 2


def test_a_newer_database_is_refused(path):
    Store(path).close()
    database = sqlite3.connect(path)
    database.execute("INSERT INTO migrations VALUES (99, 'later', 0)")
    database.commit()
    database.close()
    assert refused(path).startswith("was written by a newer counterpoint (its tables are version 99")


def test_a_database_of_another_program_is_refused_and_left_alone(path):
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE bookmarks (url TEXT)")
    database.close()
    before = path.read_bytes()
    assert refused(path).startswith("is a database of another program")
    assert path.read_bytes() == before


def test_a_database_of_another_program_that_crashed_keeps_its_log(path, tmp_path):
    (tmp_path / "theirs").mkdir()
    with closing(sqlite3.connect(tmp_path / "theirs" / "store.db")) as database:
        database.execute("CREATE TABLE bookmarks (url TEXT)")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE visits (url TEXT)")
        for name in ("store.db", "store.db-wal"):
            shutil.copy(tmp_path / "theirs" / name, path.with_name(name))
    before = {file.name: file.read_bytes() for file in tmp_path.glob("store.db*")}
    assert refused(path).startswith("is a database of another program")
    assert {file.name: file.read_bytes() for file in tmp_path.glob("store.db*")} == before


def test_a_link_that_leads_nowhere_yet_has_its_file_made(path, tmp_path):
    path.symlink_to(tmp_path / "far" / "real.db")
    with Store(path) as store:
        store.add_spans([span(1)])
    with Store(tmp_path / "far" / "real.db") as store:
        assert store.runs().total == 1


def test_a_file_too_damaged_to_be_opened_says_so_and_what_to_do(path):
    Store(path).close()
    content = bytearray(path.read_bytes())
    content[100:8192] = b"\xff" * 8092
    path.write_bytes(content)
    message = refused(path)
    assert "cannot be opened" in message
    assert "put a copy in place" in message
    assert "store verify" not in message


@pytest.mark.parametrize(
    "content", [b"hello " * 500, b"\x00" * 5000, b"SQLite format 3\x00" + b"\xff" * 3000]
)
def test_a_file_that_is_no_database_is_refused_and_left_alone(path, content):
    path.write_bytes(content)
    assert refused(path)
    assert path.read_bytes() == content


def test_a_folder_is_refused(tmp_path):
    assert "could not be opened" in refused(tmp_path)


def test_a_place_that_cannot_be_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    assert "could not be created" in refused(tmp_path / "file" / "store.db")


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder of a user who is not root, who may write everywhere."""
    with tempfile.TemporaryDirectory() as folder:
        root = os.geteuid() == 0
        if root:
            os.chown(folder, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        yield Path(folder)
        if root:
            os.seteuid(0)
        Path(folder).chmod(0o700)


@pytest.mark.parametrize("folder_too", [True, False])
def test_a_read_only_file_is_told_in_one_line(unprivileged, folder_too):
    path = unprivileged / "store.db"
    with Store(path) as store:
        store.add_spans([span(1)])
    path.chmod(0o400)
    if folder_too:
        path.parent.chmod(0o500)
    with (
        pytest.raises(CounterpointError, match=r"read-only|could not be opened") as told,
        Store(path) as store,
    ):
        store.add_spans([span(2)])
    assert "\n" not in str(told.value)


def test_a_damaged_file_is_told_in_one_line(path):
    with Store(path) as store:
        for number in range(50):
            store.add_spans([span(number + 1)._replace(payload=bytes(9000))])
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xff" * (len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(CounterpointError, match="is damaged") as told, Store(path) as store:
        store.runs()
    assert "\n" not in str(told.value)


def test_a_store_that_another_process_makes_meanwhile_is_opened(path, monkeypatch):
    other, connect = sqlite3.connect(path, isolation_level=None), database.connect
    waits: list[float] = []

    def write(statement: str) -> None:
        if "journal_mode" in statement and not waits:
            other.execute("BEGIN IMMEDIATE")

    def watched(*told: Any, **how: Any) -> sqlite3.Connection:
        connection = connect(*told, **how)
        connection.set_trace_callback(write)
        return connection

    def wait(seconds: float) -> None:
        waits.append(seconds)
        other.close()

    monkeypatch.setattr(database, "connect", watched)
    monkeypatch.setattr(database.time, "sleep", wait)
    Store(path).close()
    assert len(waits) == 1


def test_a_store_that_another_process_makes_between_two_looks_is_not_foreign(path):
    with closing(sqlite3.connect(path)) as looking:
        looking.set_trace_callback(lambda said: Store(path).close() if "sqlite_master" in said else None)
        assert not migrations.foreign(looking)
        looking.set_trace_callback(None)
        assert migrations.version(looking, str(path)) == len(migrations.MIGRATIONS)
