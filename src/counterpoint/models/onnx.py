"""Sentence encoders in ONNX: a folder with ``model.onnx`` and ``tokenizer.json``.

Conventions
-----------
``model.onnx`` stands in the folder or in its sub-folder ``onnx``, with its external data beside it. Where a
sentence-transformers folder says so, ``1_Pooling/config.json`` chooses between the mean over the tokens
(default) and the first token, and ``sentence_bert_config.json`` sets the number of tokens (default 256).

What counts
-----------
The vector of a text must not depend on the texts that share its batch. So a text is padded to the next
multiple of 8 of its own length, never to the longest of its batch, and vectors are rounded to 6 decimals.
Only the first 65,536 characters of a text are read; a longer one counts as truncated.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterpoint.errors import ModelError
from counterpoint.models.vectors import millionths

__all__ = ["OnnxEncoder", "is_onnx_folder"]

BUCKET = 8
"""Padded lengths are multiples of this."""
BATCH_TOKENS = 2048
"""Tokens in one batch, padding included: enough for full speed on a CPU, little enough for its caches."""
MAX_CHARACTERS = 65_536
MAX_TOKENS = 256

_GRAPHS = ("model.onnx", "onnx/model.onnx")


def is_onnx_folder(folder: Path) -> bool:
    """Does the folder hold a model that `OnnxEncoder` can try?"""
    return (folder / "tokenizer.json").is_file() and any((folder / graph).is_file() for graph in _GRAPHS)


class OnnxEncoder:
    """An ONNX model and its tokenizer, loaded when the first text comes."""

    def __init__(
        self,
        folder: Path,
        *,
        name: str,
        hashes: Mapping[str, str],
        dimensions: int,
        pooling: str = "mean",
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        """``hashes``: file (relative to ``folder``) to the SHA-256 that it must have when it is loaded."""
        self.folder = folder
        self.dimensions = dimensions
        self._hashes = dict(hashes)
        self._pooling = pooling
        self._max_tokens = max_tokens
        self._loaded: dict[int, _Loaded | ModelError] = {}
        heaviest = max(self._hashes, key=lambda file: (folder / file).stat().st_size)
        self.id = f"{name}@{self._hashes[heaviest][:8]}"

    @classmethod
    def from_folder(cls, folder: Path) -> OnnxEncoder:
        """The model in a folder of the user's, as it is now."""
        graph = next(graph for graph in _GRAPHS if (folder / graph).is_file())
        beside = [path for path in (folder / graph).parent.glob("model.onnx*") if path.is_file()]
        files = sorted({*beside, folder / "tokenizer.json"})
        hashes = {file.relative_to(folder).as_posix(): _sha256(file) for file in files}
        pooling = _read_json(folder / "1_Pooling" / "config.json")
        encoder = cls(
            folder,
            name=folder.resolve().name,
            hashes=hashes,
            dimensions=0,
            pooling="first" if pooling.get("pooling_mode_cls_token") else "mean",
            max_tokens=_read_json(folder / "sentence_bert_config.json").get("max_seq_length") or MAX_TOKENS,
        )
        encoder.dimensions = encoder.encode(["a"])[0].shape[1]
        return encoder

    @property
    def cache_key(self) -> str:
        """Files, settings and the arithmetic: another runtime or processor may round another way."""
        arithmetic = [_runtime_version(), platform.machine(), BUCKET, MAX_CHARACTERS]
        return json.dumps([sorted(self._hashes.items()), self._pooling, self._max_tokens, *arithmetic])

    def encode(self, texts: list[str]) -> tuple[NDArray[np.float64], Sequence[bool]]:
        """Unit rows, rounded to 6 decimals, and for each text whether it was truncated."""
        model = self._model()
        encodings = model.tokenizer.encode_batch([text[:MAX_CHARACTERS] for text in texts])
        tokens = [encoding.ids for encoding in encodings]
        cut = [
            len(text) > MAX_CHARACTERS or (len(ids) >= self._max_tokens and bool(encoding.overflowing))
            for text, ids, encoding in zip(texts, tokens, encodings, strict=True)
        ]
        pooled: dict[int, NDArray[np.float32]] = {}
        for length, batch in _batches([len(ids) for ids in tokens]):
            pooled |= zip(batch, model.run([tokens[i] for i in batch], length), strict=True)
        vectors = np.stack([pooled[i] for i in range(len(texts))]).astype(np.float64)
        return millionths(vectors / np.linalg.norm(vectors, axis=1, keepdims=True)), cut

    def _model(self) -> _Loaded:
        # By process: a session's threads do not survive a fork, and to delete it there would wait for them.
        process = os.getpid()
        if process not in self._loaded:
            try:
                self._loaded[process] = self._load()
            except ModelError as error:  # kept: every trace asks again, and hashing takes its time
                self._loaded[process] = error
        found = self._loaded[process]
        if isinstance(found, ModelError):
            raise ModelError(str(found))
        return found

    def _load(self) -> _Loaded:
        for file, expected in self._hashes.items():
            _verify(self.folder / file, expected)
        graph = next(file for file in self._hashes if file in _GRAPHS)
        try:
            return _Loaded(self.folder, graph, self._max_tokens, self._pooling)
        except Exception as error:  # both libraries raise bare Exceptions of their own
            raise ModelError(f"{self.folder}: the embedder cannot be loaded: {_line(error)}") from None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_loaded": {}}


class _Loaded:
    """Session and tokenizer of one process."""

    def __init__(self, folder: Path, graph: str, max_tokens: int, pooling: str) -> None:
        import tokenizers

        onnxruntime = _onnxruntime()
        self._pooling = pooling
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3  # errors only: they come back as exceptions, stderr is ours
        self._session = onnxruntime.InferenceSession(
            str(folder / graph), options, providers=["CPUExecutionProvider"]
        )
        self._inputs = {given.name for given in self._session.get_inputs()}
        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(max_tokens)
        self.tokenizer.no_padding()

    def run(self, tokens: list[list[int]], length: int) -> NDArray[np.float32]:
        """One vector a text, not yet scaled."""
        ids = np.zeros((len(tokens), length), np.int64)
        mask = np.zeros_like(ids)
        for row, text in enumerate(tokens):
            ids[row, : len(text)] = text
            mask[row, : len(text)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = self._session.run(None, {name: given[name] for name in given if name in self._inputs})[0]
        if hidden.ndim == 2:  # the model pools by itself
            return np.asarray(hidden)
        if self._pooling == "first":
            return np.asarray(hidden[:, 0])
        weights = mask[:, :, None].astype(np.float32)
        return np.asarray((hidden * weights).sum(axis=1) / weights.sum(axis=1))


def _batches(lengths: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Padded length and indices of each batch; all texts of a batch have that padded length."""
    buckets = defaultdict(list)
    for index, length in enumerate(lengths):
        buckets[-(-max(length, 1) // BUCKET) * BUCKET].append(index)
    for padded, indices in sorted(buckets.items()):
        size = max(1, BATCH_TOKENS // padded)
        for start in range(0, len(indices), size):
            yield padded, indices[start : start + size]


def _onnxruntime() -> Any:
    """The library, told before its import not to report its use to its makers: releases since 1.29 would."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    return onnxruntime


def _runtime_version() -> str:
    try:
        return version(
            "onnxruntime"
        )  # the import takes 0.15 s, which a run that finds all in the cache saves
    except PackageNotFoundError:  # a build under another name, such as onnxruntime-gpu
        return str(_onnxruntime().__version__)


def _verify(file: Path, expected: str) -> None:
    found = _sha256(file)
    if found != expected:
        raise ModelError(
            f"{file}: not the file that was expected (SHA-256 {found[:16]}…, expected {expected[:16]}…): "
            "refused; install the package that brought it anew"
        )


def _sha256(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"{file}: cannot be read: {error.strerror}") from None


def _read_json(file: Path) -> dict[str, Any]:
    """What a settings file says; nothing where there is none."""
    try:
        found = json.loads(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ModelError(f"{file}: cannot be read: {_line(error)}") from None
    return found if isinstance(found, dict) else {}


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
