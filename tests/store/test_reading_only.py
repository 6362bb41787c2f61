"""A store in a place that cannot be written is read, where nothing is missing for it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from counterpoint.errors import CounterpointError
from counterpoint.store import Store, migrations

from .conftest import span

NOBODY = 65534


@pytest.fixture
def sealed() -> Iterator[Callable[[Path], Path]]:
    """Copies a store to a folder that its user, who is not root, cannot write to."""
    with tempfile.TemporaryDirectory() as folder:
        root = os.geteuid() == 0

        def copy(path: Path) -> Path:
            for file in path.parent.glob("store.db*"):
                shutil.copy(file, folder)
                Path(folder, file.name).chmod(0o444)
            Path(folder).chmod(0o555)
            if root:
                os.seteuid(NOBODY)
            return Path(folder, "store.db")

        yield copy
        if root:
            os.seteuid(0)
        Path(folder).chmod(0o700)


def test_a_store_that_was_closed_is_read_where_nothing_can_be_written(path: Path, sealed):
    with Store(path) as store:
        store.add_spans([span(1)])
    with Store(sealed(path)) as store:
        assert store.runs().total == 1
        assert store.otlp(store.runs().rows[0].id)
        assert store.verify() == []
        assert store.version() == store.version()
        with pytest.raises(CounterpointError, match="read-only"):
            store.add_spans([span(2)])
        with pytest.raises(CounterpointError, match="read-only"):
            store.prune(keep=0)


def test_a_store_in_use_is_not_read_where_its_log_cannot_be(path: Path, sealed):
    with Store(path) as store:
        store.add_spans([span(1)])
        copy = sealed(path)
        with pytest.raises(CounterpointError, match=r"folder.*has to be writable.*store\.db-wal") as told:
            Store(copy)
        assert "\n" not in str(told.value)


def test_an_old_store_that_cannot_be_brought_up_to_date_says_so(path: Path, sealed, monkeypatch):
    with monkeypatch.context() as old:
        old.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[:1])
        Store(path).close()
    with pytest.raises(CounterpointError, match=r"older counterpoint.*writable"):
        Store(sealed(path))
