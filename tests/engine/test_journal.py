"""What a journal has taken survives; what a crash tore is dropped."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from counterpoint.engine.journal import Journal
from counterpoint.errors import UsageError


def numbers(path: Path) -> list[int]:
    with Journal(path) as journal:
        return [record["n"] for record in journal.read()]


def test_lines_come_back_in_their_order(tmp_path):
    with Journal(tmp_path / "log") as journal:
        for number in range(3):
            journal.append(b'{"n": %d}' % number)
    assert numbers(tmp_path / "log") == [0, 1, 2]


def test_threads_lose_no_line_and_share_the_waiting(tmp_path):
    with Journal(tmp_path / "log") as journal:

        def write(first: int) -> None:
            for number in range(first, first + 20):
                journal.append(b'{"n": %d}' % number)

        threads = [threading.Thread(target=write, args=(20 * part,)) for part in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(numbers(tmp_path / "log")) == list(range(320))


@pytest.mark.parametrize("torn", [b'{"n": 2', b"{", b'{"n": 2}'])
def test_a_line_that_a_crash_cut_is_dropped(tmp_path, torn):
    path = tmp_path / "log"
    path.write_bytes(b'{"n": 0}\n{"n": 1}\n' + torn)
    assert numbers(path) == [0, 1]
    assert path.read_bytes() == b'{"n": 0}\n{"n": 1}\n'


def test_a_file_that_is_all_one_torn_line_becomes_empty(tmp_path):
    (tmp_path / "log").write_bytes(b"x" * 200_000)
    assert numbers(tmp_path / "log") == []


@pytest.mark.parametrize("line", ["nonsense", "[1]", ""])
def test_a_broken_line_in_the_middle_is_an_error_that_names_it(tmp_path, line):
    (tmp_path / "log").write_text(f'{{"n": 0}}\n{line}\n{{"n": 1}}\n')
    with pytest.raises(UsageError, match="line 2 is no JSON object"):
        numbers(tmp_path / "log")


def test_one_process_at_a_time_has_it(tmp_path):
    pytest.importorskip("fcntl")
    with Journal(tmp_path / "log"), pytest.raises(UsageError, match="another process"):
        Journal(tmp_path / "log")


def test_a_closed_journal_takes_nothing_more(tmp_path):
    journal = Journal(tmp_path / "log")
    journal.close()
    journal.close()
    with pytest.raises(UsageError, match="could not be written"):
        journal.append(b"{}")


def test_after_a_write_that_failed_nothing_is_written_behind_the_torn_line(tmp_path, monkeypatch):
    path, real = tmp_path / "log", os.write

    def full(file: int, data: bytes) -> int:
        if len(data) > 10:
            real(file, data[:10])
            raise OSError("No space left on device")
        return real(file, data)

    journal = Journal(path)
    journal.append(b'{"n": 0}')
    monkeypatch.setattr(os, "write", full)
    for line in (b'{"n": 1, "text": "long"}', b'{"n": 2}'):
        with pytest.raises(UsageError, match="No space left"):
            journal.append(line)
    journal.close()
    assert numbers(path) == [0]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(UsageError, match="could not be opened"):
        Journal(tmp_path / "gone" / "log")
