"""Embedding throughput, side by side: ours, a plain onnxruntime loop, sentence-transformers where installed.

    python perf/embedding.py [--texts 512] [--repeats 3]

All embed the same distinct texts of mixed length (log-normal, about 70 tokens in the mean, cut at 256), with
the same weights. The plain loop does what most code does: 32 texts at a time in the order given, padded to
the longest of the 32. It is given the same tokenizer settings, session and pooling. sentence-transformers
runs on torch with its own sorting by length; it gets the same architecture (6 layers, 384 wide) with random
weights, since no hub is reached. Caches are off. The sides take turns; the median counts.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tokenizers

from counterpoint.models import minilm
from counterpoint.models.embed import embedder

WORDS = (
    "the answer is so we first add seven apples and then multiply by three to get a total cost of "
    "twelve dollars remaining therefore each student reads pages before noon while others wait"
)

Embed = Callable[[list[str]], np.ndarray]


def mixed_texts(number: int) -> list[str]:
    rng = random.Random(0)
    lengths = [int(min(300, max(3, rng.lognormvariate(3.9, 0.8)))) for _ in range(number)]
    return [
        f"{index} " + " ".join(rng.choices(WORDS.split(), k=length)) for index, length in enumerate(lengths)
    ]


def plain_loop(folder: Path, size: int = 32) -> Embed:
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # before the import, or it would report home
    import onnxruntime

    session = onnxruntime.InferenceSession(
        str(folder / "onnx" / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()

    def embed(texts: list[str]) -> np.ndarray:
        rows = []
        for start in range(0, len(texts), size):
            encoded = tokenizer.encode_batch(texts[start : start + size])
            ids = np.array([one.ids for one in encoded], np.int64)
            mask = np.array([one.attention_mask for one in encoded], np.int64)
            given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            hidden = session.run(None, given)[0]
            weights = mask[:, :, None].astype(np.float32)
            mean = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
            rows.append(mean / np.linalg.norm(mean, axis=1, keepdims=True))
        return np.concatenate(rows)

    return embed


def sentence_transformers_on_torch(folder: Path) -> Embed | None:
    try:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
        from transformers import BertConfig, BertModel, BertTokenizerFast
    except ImportError:
        return None
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    with tempfile.TemporaryDirectory() as scratch:
        words = Path(scratch) / "vocab.txt"
        words.write_text("\n".join(sorted(vocabulary, key=vocabulary.__getitem__)))
        BertTokenizerFast(vocab_file=str(words)).save_pretrained(scratch)
        config = BertConfig(
            hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
        )
        BertModel(config).save_pretrained(scratch)
        transformer = Transformer(scratch, max_seq_length=256)
    model = SentenceTransformer(modules=[transformer, Pooling(384)], device="cpu")
    return lambda texts: model.encode(
        texts, batch_size=32, normalize_embeddings=True, show_progress_bar=False
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--texts", type=int, default=512)
    arguments.add_argument("--repeats", type=int, default=3)
    chosen = arguments.parse_args()
    texts = mixed_texts(chosen.texts)
    folder = minilm.encoder().folder
    torch_side = sentence_transformers_on_torch(folder)
    plain_side = plain_loop(folder)
    sides: dict[str, Callable[[], Embed]] = {
        "counterpoint": lambda: embedder(cache=False),  # anew each round: it would remember the texts
        "plain onnxruntime loop, batch 32": lambda: plain_side,
    }
    if torch_side:
        sides["sentence-transformers on torch, batch 32"] = lambda: torch_side
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    rows: dict[str, np.ndarray] = {}
    for _ in range(chosen.repeats):
        for name, make in sides.items():
            embed = make()
            embed(["warm up"])
            start = time.perf_counter()
            rows[name] = embed(texts)
            seconds[name].append(time.perf_counter() - start)
    ours, plain = list(rows.values())[:2]
    cosine = (ours * plain).sum(axis=1).min()
    print(f"{len(texts)} texts; smallest cosine between ours and the plain loop: {cosine:.7f}")
    baseline = statistics.median(seconds["counterpoint"])
    for name, taken in seconds.items():
        median = statistics.median(taken)
        print(f"{name:42} {len(texts) / median:7.1f} texts/s   {median / baseline:5.2f} x our time")
    if not torch_side:
        print("sentence-transformers and torch are not installed: not compared")


if __name__ == "__main__":
    main()
