"""The embedder: what a caller sees of it, with the test embedder and with callables."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

from counterpoint.errors import MissingExtra, ModelError, UsageError
from counterpoint.models import embed as embed_module
from counterpoint.models.embed import TextEmbedder, embedder


class Recorder:
    """An encoder that remembers what it was asked: every text points along the axis of its length."""

    id = "recorder@1"
    dimensions = 8
    cache_key = ""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def encode(self, texts):
        self.asked.append(texts)
        return np.eye(8)[[len(text) for text in texts]], [len(text) > 5 for text in texts]


def test_equal_texts_are_computed_once_and_come_back_in_order():
    recorder = Recorder()
    vectors = TextEmbedder(recorder)(["bb", "a", "bb"])
    assert recorder.asked == [["bb", "a"]]
    assert vectors.argmax(axis=1).tolist() == [2, 1, 2]


def test_what_was_prefetched_is_not_computed_again():
    recorder = Recorder()
    embed = TextEmbedder(recorder)
    told = []
    embed.prefetch(["a", "bb", "a"], progress=lambda done, total: told.append((done, total)))
    embed(["bb", "a"])
    assert recorder.asked == [["a", "bb"]]
    assert told == [(2, 2)]


def test_a_long_prefetch_is_computed_in_chunks_that_tell_progress(monkeypatch):
    monkeypatch.setattr(embed_module, "_CHUNK", 2)
    told = []
    TextEmbedder(Recorder()).prefetch(["", "a", "bb"], progress=lambda *state: told.append(state))
    assert told == [(2, 3), (3, 3)]


def test_memory_forgets_the_oldest_texts_first(monkeypatch):
    monkeypatch.setattr(embed_module, "REMEMBERED", 2)
    recorder = Recorder()
    embed = TextEmbedder(recorder)
    for text in ("a", "bb", "ccc", "bb", "a"):
        embed([text])
    assert recorder.asked == [["a"], ["bb"], ["ccc"], ["a"]]


def test_a_call_with_more_texts_than_memory_holds_is_answered_in_full(monkeypatch):
    monkeypatch.setattr(embed_module, "REMEMBERED", 1)
    embed = TextEmbedder(Recorder())
    assert embed(["", "a", "bb"]).argmax(axis=1).tolist() == [0, 1, 2]


def test_truncated_texts_are_counted_with_repetitions():
    assert TextEmbedder(Recorder()).truncated(["toolong", "fits", "toolong"]) == 2


def test_threads_that_ask_for_the_same_texts_have_them_computed_once():
    recorder = Recorder()
    embed = TextEmbedder(recorder)
    threads = [threading.Thread(target=embed, args=(["a", "bb"],)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recorder.asked == [["a", "bb"]]


def test_no_texts_give_no_rows():
    assert embedder("hashing")([]).shape == (0, 384)


def test_one_text_instead_of_a_list_is_refused():
    with pytest.raises(UsageError, match="put it into a list"):
        embedder("hashing")("apple")


@pytest.mark.parametrize("text", ["", " ", "!!!", "\ud83d", "ok \udc00 \U0001f600", "x" * 1_000_000, "7\x00"])
def test_hostile_texts_give_a_finite_unit_row(text):
    row = embedder("hashing")([text])[0]
    assert np.linalg.norm(row) == pytest.approx(1, abs=1e-5)


def test_a_lone_surrogate_counts_as_the_replacement_character_and_a_pair_as_its_character():
    embed = embedder("hashing")
    rows = embed(["a \ud83d b", "a \ufffd b", "\ud83d\ude00", "\U0001f600"])
    assert (rows[0] == rows[1]).all()
    assert (rows[2] == rows[3]).all()


def test_hashing_knows_words_but_not_their_order():
    same, shuffled, other = embedder("hashing")(["two red apples", "apples two red", "seven green pears"])
    assert same @ shuffled == pytest.approx(1, abs=1e-5)
    assert abs(same @ other) < 0.25


def test_a_callable_is_used_as_it_is():
    def axes(texts):
        return np.eye(3)[[len(text) for text in texts]]

    embed = embedder(axes)
    assert embed.id.endswith("axes")
    assert embed(["a", "bb"]).tolist() == [[0, 1, 0], [0, 0, 1]]
    assert embed.truncated(["a"]) == 0


def test_a_callable_names_itself_by_its_id():
    class Named:
        id = "house-model@7"

        def __call__(self, texts):
            return np.ones((len(texts), 1))

    assert embedder(Named()).id == "house-model@7"


def test_rows_of_a_callable_are_scaled_to_length_1_and_zero_rows_left():
    embed = embedder(lambda texts: [[3, 4] if text else [0, 0] for text in texts])
    np.testing.assert_allclose(embed(["a", ""]), [[0.6, 0.8], [0, 0]])


def test_unit_rows_of_a_callable_keep_every_bit():
    rows = np.random.default_rng(0).normal(size=(50, 7))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    embed = embedder(lambda texts: rows[[int(text) for text in texts]])
    assert (embed([str(i) for i in range(50)]) == rows).all()


def test_nan_from_a_callable_is_an_error_for_the_call_that_asks_for_that_text_only():
    embed = embedder(lambda texts: [[np.nan, 1] if text == "bad" else [0, 1] for text in texts])
    embed.prefetch(["good", "bad"])
    assert embed(["good"]).tolist() == [[0, 1]]
    with pytest.raises(ModelError, match="not finite for the text 'bad'"):
        embed(["good", "bad"])


@pytest.mark.parametrize("answer", [[[1.0]], [1.0, 0.0], 7, [[[1.0], [1.0]]]])
def test_a_callable_with_the_wrong_shape_is_told_the_right_one(answer):
    with pytest.raises(ModelError, match=r"has to be \(2, d\)"):
        embedder(lambda texts: answer)(["a", "bb"])


def test_a_callable_that_fails_is_named():
    with pytest.raises(ModelError, match="failed: ZeroDivisionError: division by zero"):
        embedder(lambda texts: 1 / 0)(["a"])


def test_an_embedder_is_passed_through():
    embed = embedder("hashing")
    assert embedder(embed) is embed


def test_a_near_miss_of_a_name_is_corrected():
    with pytest.raises(UsageError, match="did you mean 'hashing'"):
        embedder("hashin")


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/model", "~nobody/model", ""])
def test_a_folder_that_is_not_there_is_named(name):
    with pytest.raises(ModelError, match="no such folder"):
        embedder(name)


def test_a_hub_name_without_the_extra_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtra, match=r"bert-base-uncased.*counterpoint\[hub\]"):
        embedder("bert-base-uncased")


def test_the_environment_names_what_default_means(monkeypatch):
    monkeypatch.setenv("COUNTERPOINT_EMBEDDER", "hashing")
    assert embedder().id == "hashing-384"


def test_an_embedder_survives_pickling():
    embed = embedder("hashing")
    before = embed(["a b", "c"])
    assert (pickle.loads(pickle.dumps(embed))(["a b", "c"]) == before).all()


def test_naming_an_embedder_loads_no_model():
    program = (
        "import sys, counterpoint.models; assert 'numpy' not in sys.modules\n"
        "from counterpoint.models.embed import embedder; embedder('hashing')(['a'])\n"
        "assert not {'onnxruntime', 'tokenizers', 'torch'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
