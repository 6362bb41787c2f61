"""Hub models, on a tiny one of random weights that the test makes itself: no hub is reached."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from counterpoint.errors import ModelError
from counterpoint.models.embed import embedder

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # not ours to mend
    transformers = pytest.importorskip("transformers", reason="needs the extra hub")
    pytest.importorskip("sentence_transformers", reason="needs the extra hub")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tiny-bert")
    (folder / "vocab.txt").write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "two", "apples"])
    )
    transformers.BertTokenizerFast(vocab_file=str(folder / "vocab.txt"), model_max_length=6).save_pretrained(
        folder
    )
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    transformers.BertModel(
        transformers.BertConfig(vocab_size=7, max_position_embeddings=6, **sizes)
    ).save_pretrained(folder)
    return folder


def test_a_plain_model_is_averaged_over_its_tokens_and_named_by_its_weights(folder):
    embed = embedder(folder, cache=False)
    vectors = embed(["two apples", "two", "", "two apples"])
    assert embed.id.startswith(f"{folder.name}@")
    assert embed.id == embedder(folder, cache=False).id
    assert vectors.shape == (4, 8)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert (vectors[0] == vectors[3]).all()


def test_texts_beyond_the_models_length_are_counted(folder):
    assert embedder(folder, cache=False).truncated(["two apples", "two two two two two"]) == 1


def test_vectors_are_kept_on_disk(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("COUNTERPOINT_CACHE", str(tmp_path))
    before = embedder(folder)(["two apples"])
    monkeypatch.setattr("counterpoint.models.hub.HubEncoder.encode", None)
    assert embedder(folder)(["two apples"]).tobytes() == before.tobytes()


def test_a_folder_without_a_model_is_refused_in_one_line(tmp_path):
    with pytest.raises(ModelError, match="cannot be loaded") as raised:
        embedder(tmp_path)
    assert "\n" not in str(raised.value)
