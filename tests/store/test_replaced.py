"""What happens to the file of an open store from outside is noticed before anything is acknowledged."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from counterpoint.errors import CounterpointError
from counterpoint.store import Store, StoreFault

from .conftest import span, trace, trace_id


def deleted(path: Path) -> None:
    for file in path.parent.glob("store.db*"):
        file.unlink()


def replaced(path: Path) -> None:
    with Store(path.with_name("other.db")) as other:
        other.add_spans([span(9)])
    path.with_name("other.db").replace(path)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def without_log(path: Path) -> None:
    Path(f"{path}-wal").unlink()


def emptied_log(path: Path) -> None:
    os.truncate(f"{path}-wal", 0)


@pytest.mark.parametrize(
    ("happens", "words"),
    [
        (deleted, "was deleted"),
        (replaced, "another file"),
        (emptied, "was emptied"),
        (without_log, "deleted"),
        (emptied_log, "was emptied"),
    ],
)
def test_a_file_that_is_gone_replaced_or_emptied_takes_no_spans(
    path: Path, store: Store, happens: Callable[[Path], None], words: str
):
    store.add_spans([span(1)])
    happens(path)
    before = set(path.parent.iterdir())
    calls = (
        lambda: store.add_spans([span(2)]),
        lambda: store.add_traces([trace()], origin="file"),
        store.version,
        store.runs,
        lambda: store.prune(keep=0),
    )
    for call in calls:
        with pytest.raises(StoreFault, match=f"(?s){words}.*restart") as told:
            call()
        assert "\n" not in str(told.value)
    assert set(path.parent.iterdir()) <= before


SCRIPT = """
import os, signal, sys
from counterpoint.errors import CounterpointError
from counterpoint.store import Store
sys.path.insert(0, sys.argv[3])
from tests.store.conftest import span
store = Store(sys.argv[1])
for number in range(1, 30):
    store.add_spans([span(number, text="x" * 200)])
print("ready", flush=True)
sys.stdin.readline()
try:
    store.add_spans([span(99)])
except CounterpointError as error:
    print(error, flush=True)
sys.stdin.readline()
if sys.argv[2] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
store.close()
"""


@pytest.mark.parametrize("ends", ["close", "kill"])
@pytest.mark.parametrize("how", ["moved over it", "copied into the emptied file"])
def test_a_copy_put_in_the_place_of_an_open_store_is_what_the_next_start_finds(
    path: Path, how: str, ends: str
):
    copy = path.with_name("copy.db")
    with Store(copy) as backup:
        backup.add_spans([span(trace) for trace in range(100, 103)])
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", SCRIPT, str(path), ends, root]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin
        assert server.stdout
        server.stdout.readline()
        if how == "moved over it":
            copy.replace(path)
        else:
            os.truncate(path, 0)
        server.stdin.write("\n")
        server.stdin.flush()
        assert "restart" in server.stdout.readline()
        if copy.exists():
            shutil.copyfile(copy, path)
        server.communicate("\n")
    with Store(path) as store:
        assert {run.id for run in store.runs().rows} == {trace_id(trace) for trace in range(100, 103)}
        assert store.verify() == []
        store.add_spans([span(200)])
    with Store(path) as store:
        assert store.runs().total == 4


def test_what_a_file_that_was_moved_away_lacks_is_written_to_it(path: Path):
    away = path.with_name("away.db")
    with Store(path.with_name("copy.db")) as copy:
        copy.add_spans([span(9)])
    with Store(path) as store:
        store.add_spans([span(1)])
        path.rename(away)
        path.with_name("copy.db").rename(path)
    with Store(away) as old, Store(path) as new:
        assert [run.id for run in old.runs().rows] == [trace_id(1)]
        assert [run.id for run in new.runs().rows] == [trace_id(9)]


def test_a_file_that_was_moved_away_takes_all_with_it_and_leaves_no_log(path: Path):
    away = path.with_name("away.db")
    with Store(path) as store:
        store.add_spans([span(1)])
        path.rename(away)
    assert list(path.parent.iterdir()) == [away]
    with Store(away) as store:
        assert store.runs().total == 1


def test_a_log_that_pruning_emptied_is_no_fault(path: Path, store: Store):
    with Store(path) as other:
        store.add_spans([span(1)])
        other.prune(keep=0)
        assert Path(f"{path}-wal").stat().st_size == 0
        store.version()
        store.add_spans([span(2)])
        assert other.runs().total == 1


def test_a_file_that_comes_back_is_used_again(path: Path, store: Store):
    store.add_spans([span(1)])
    away = path.with_name("away.db")
    path.rename(away)
    with pytest.raises(StoreFault, match="was deleted or moved"):
        store.add_spans([span(2)])
    away.rename(path)
    store.add_spans([span(2)])
    assert store.runs().total == 2


def test_a_store_behind_a_link_is_written_to(path: Path, tmp_path: Path):
    (tmp_path / "far").mkdir()
    path.symlink_to(tmp_path / "far" / "real.db")
    Store(tmp_path / "far" / "real.db").close()
    with Store(path) as store:
        store.add_spans([span(1)])
        assert store.runs().total == 1


def test_a_store_that_has_to_be_there_is_not_made(path: Path):
    with pytest.raises(CounterpointError, match="is not there"):
        Store(path, create=False)
    assert not path.exists()
    Store(path).close()
    Store(path, create=False).close()


def test_a_reader_makes_no_file(path: Path):
    from counterpoint.store.database import connect

    with pytest.raises(sqlite3.OperationalError):
        connect(str(path)).execute("SELECT 1")
    assert not path.exists()
