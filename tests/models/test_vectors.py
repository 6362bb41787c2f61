"""The cache of vectors on disk: exact, shared between processes, and never a reason to fail."""

from __future__ import annotations

import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from counterpoint.models.embed import TextEmbedder
from counterpoint.models.vectors import VectorCache, cache_folder, millionths


def row(seed: int) -> np.ndarray:
    return millionths(np.random.default_rng(seed).normal(size=4) / 2)


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def test_a_vector_comes_back_to_the_last_bit_with_its_truncation(tmp_path):
    cache = VectorCache(tmp_path / "a" / "v.sqlite3", 4)
    cache.put({key(1): (row(1), True), key(2): (row(2), False)})
    found = VectorCache(cache.path, 4).get([key(2), key(1), key(3)])
    assert set(found) == {key(1), key(2)}
    assert found[key(1)][0].tobytes() == row(1).tobytes()
    assert (found[key(1)][1], found[key(2)][1]) == (True, False)


def test_negative_zero_is_rounded_away():
    assert np.signbit(millionths(np.array([-1e-9, -0.0]))).tolist() == [False, False]


def test_thousands_of_keys_are_looked_up_at_once(tmp_path):
    cache = VectorCache(tmp_path / "v.sqlite3", 4)
    cache.put({key(number): (row(number), False) for number in range(1700)})
    assert len(cache.get([key(number) for number in range(2000)])) == 1700


def test_looking_up_creates_no_file(tmp_path):
    assert VectorCache(tmp_path / "v.sqlite3", 4).get([key(1)]) == {}
    assert not list(tmp_path.iterdir())


def test_an_entry_of_the_wrong_size_counts_as_unknown(tmp_path):
    VectorCache(tmp_path / "v.sqlite3", 4).put({key(1): (row(1), False)})
    assert VectorCache(tmp_path / "v.sqlite3", 8).get([key(1)]) == {}


def broken_file(folder):
    (folder / "v.sqlite3").write_bytes(b"this is no database at all, whatever its name says" * 100)


def folder_in_place_of_the_file(folder):
    (folder / "v.sqlite3").mkdir()


def other_table(folder):
    connection = sqlite3.connect(folder / "v.sqlite3")
    connection.execute("CREATE TABLE vectors (something TEXT)")
    connection.close()


@pytest.mark.parametrize("spoil", [broken_file, folder_in_place_of_the_file, other_table])
def test_a_broken_cache_costs_one_line_and_nothing_else(tmp_path, capsys, spoil):
    spoil(tmp_path)
    cache = VectorCache(tmp_path / "v.sqlite3", 4)
    for number in range(3):
        assert cache.get([key(number)]) == {}
        cache.put({key(number): (row(number), False)})
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "v.sqlite3" in captured.err


def test_a_folder_that_cannot_be_made_costs_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    cache = VectorCache(tmp_path / "file" / "v.sqlite3", 4)
    cache.put({key(1): (row(1), False)})
    cache.put({key(1): (row(1), False)})
    assert capsys.readouterr().err.count("\n") == 1


def test_a_cache_that_stays_locked_is_given_up(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("counterpoint.models.vectors.PATIENCE_S", 0.05)
    cache = VectorCache(tmp_path / "v.sqlite3", 4)
    cache.put({key(1): (row(1), False)})
    other = sqlite3.connect(cache.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    cache.put({key(2): (row(2), False)})
    other.close()
    assert "locked" in capsys.readouterr().err


WRITER = """
import sys
import numpy as np
from pathlib import Path
from counterpoint.models import vectors
from counterpoint.models.vectors import VectorCache

vectors.PATIENCE_S = 600  # a slow disk is no fault
cache, start = VectorCache(Path(sys.argv[1]), 4), int(sys.argv[2])
for number in range(start, start + 25):
    shared, own = (n.to_bytes(32, "big") for n in (0, number))
    cache.put({own: (np.full(4, number / 1e6), False), shared: (np.zeros(4), True)})
    assert len(cache.get([own, shared])) == 2, number
"""


def test_processes_that_write_at_once_lose_nothing(tmp_path):
    path = tmp_path / "v.sqlite3"
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = [
        subprocess.Popen([*command, str(start)], stderr=subprocess.PIPE) for start in (100, 200, 300, 400)
    ]
    assert [writer.communicate()[1] for writer in writers] == [b""] * 4
    found = VectorCache(path, 4).get([key(number) for number in range(500)])
    assert len(found) == 101
    assert found[key(424)][0].tolist() == [424 / 1e6] * 4


def test_a_second_embedder_reads_what_the_first_computed(tmp_path):
    class Encoder:
        id, dimensions, cache_key = "m@1", 4, "m"

        def __init__(self):
            self.asked = 0

        def encode(self, texts):
            self.asked += len(texts)
            return np.stack([row(len(text)) for text in texts]), [len(text) > 3 for text in texts]

    first, second = Encoder(), Encoder()
    path = tmp_path / "v.sqlite3"
    computed = TextEmbedder(first, VectorCache(path, 4))(["a", "four"])
    reading = TextEmbedder(second, VectorCache(path, 4))
    assert reading(["four", "a"])[::-1].tobytes() == computed.tobytes()
    assert reading.truncated(["four", "a"]) == 1
    assert (first.asked, second.asked) == (2, 0)


def test_the_folder_is_the_named_one_or_the_platforms(monkeypatch, tmp_path):
    monkeypatch.setenv("COUNTERPOINT_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("COUNTERPOINT_CACHE")
    assert "counterpoint" in str(cache_folder()).lower()
