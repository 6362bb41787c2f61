"""What happens to the file of an open store from outside is noticed before anything is acknowledged."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from counterpoint.errors import CounterpointError
from counterpoint.store import Store, StoreFault

from .conftest import span, trace


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


@pytest.mark.parametrize(
    ("happens", "words"),
    [
        (deleted, "was deleted"),
        (replaced, "another file"),
        (emptied, "was emptied"),
        (without_log, "deleted"),
    ],
)
def test_a_file_that_is_gone_replaced_or_emptied_takes_no_spans(
    path: Path, store: Store, happens: Callable[[Path], None], words: str
):
    store.add_spans([span(1)])
    happens(path)
    before = sorted(path.parent.iterdir())
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
    assert sorted(path.parent.iterdir()) == before


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
