"""Texts to vectors: ``embedder()`` finds the model, keeps what it has computed, and says who it was.

Conventions
-----------
An embedder takes a list of texts and gives ``(n, d)`` floats with unit rows; its ``id`` names the model and
its weights. Nothing is loaded before a vector is needed that is neither in memory nor on disk, so a second
run over the same texts loads no model at all.

What counts
-----------
Equal texts are computed once. Lone surrogates count as U+FFFD. A text that was cut to the model's length
counts as truncated. The default embedder's vector of a text depends on that text alone, whatever texts
come with it, and on one platform is the same with and without the cache, to the last bit.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from counterpoint.contracts import Embedder
from counterpoint.errors import ModelError, UsageError
from counterpoint.models.vectors import Row, VectorCache, cache_folder
from counterpoint.registry import lookup, names, suggest

__all__ = ["TABLE", "Encoder", "TextEmbedder", "embedder"]

TABLE: dict[str, str] = {
    "default": "counterpoint.models.minilm:encoder",
    "hashing": "counterpoint.models.hashing:HashingEncoder",
}
"""Name to a function without arguments that gives an `Encoder` (or any embedder). Folders, names of the
model hub and callables need no entry."""

REMEMBERED = 16_384
"""Texts kept in memory at least (about 50 MB); a larger ``prefetch`` is kept whole until the next one."""
_CHUNK = 512
"""Texts computed before they are stored and progress is told."""


class Encoder(Protocol):
    """A model as `TextEmbedder` needs it: no memory, no cache, no repeated texts."""

    @property
    def id(self) -> str:
        """Name and short hash of the model, as signatures show it."""
        ...

    @property
    def dimensions(self) -> int:
        """0 where it is not known before the first vector."""
        ...

    @property
    def cache_key(self) -> str:
        """All that the vectors depend on but the text; empty: not to be kept on disk."""
        ...

    def encode(self, texts: list[str]) -> tuple[NDArray[np.float64], Sequence[bool]]:
        """Unit rows, and for each text whether it was truncated."""
        ...


class TextEmbedder:
    """An encoder with a memory: removes repetitions, keeps vectors in memory and on disk, counts truncation.

    Safe to share between threads; forks and pickles start with an empty memory.
    """

    def __init__(self, encoder: Encoder, disk: VectorCache | None = None) -> None:
        self._encoder = encoder
        self._disk = disk
        self._forget()

    @property
    def id(self) -> str:
        """Name and short hash of the model."""
        return self._encoder.id

    def __repr__(self) -> str:
        return f"<embedder {self.id}>"

    def __call__(self, texts: list[str], /) -> NDArray[np.float64]:
        """``(n, d)`` float64, a unit row a text. Raises ModelError where the model gives no usable vector."""
        rows = [row for row, _ in self._rows(texts)]
        if not rows:
            return np.zeros((0, self._encoder.dimensions))
        vectors = np.stack(rows)
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            text = texts[int(np.argmin(finite))]
            raise ModelError(
                f"embedder {self.id} gave numbers that are not finite for the text {text[:60]!r}"
            )
        return vectors

    def prefetch(self, texts: list[str], *, progress: Callable[[int, int], None] | None = None) -> None:
        """Compute the vectors of many texts at once, so that later calls find them in memory.

        ``progress(done, total)`` is told about the distinct texts that were in neither cache.
        """
        self._rows(texts, progress)

    def truncated(self, texts: list[str]) -> int:
        """How many of ``texts`` were cut to the model's length, repetitions counted."""
        return sum(cut for _, cut in self._rows(texts))

    def _rows(self, texts: list[str], progress: Callable[[int, int], None] | None = None) -> list[Row]:
        if isinstance(texts, str):
            raise UsageError("an embedder takes a list of texts, and got one text: put it into a list")
        if self._process != os.getpid():  # a lock that another thread held at the fork would stay held
            self._forget()
        cleaned = [_clean(text) for text in texts]
        keys = [hashlib.sha256(text.encode()).digest() for text in cleaned]
        found = self._remembered(keys)
        missing = {key: text for key, text in zip(keys, cleaned, strict=True) if key not in found}
        if missing:
            # One at a time: the model uses all cores by itself, and what waits may be computed meanwhile.
            with self._lock:
                found |= self._fill(missing, progress)
        return [found[key] for key in keys]

    def _remembered(self, keys: Sequence[bytes]) -> dict[bytes, Row]:
        return {key: row for key in keys if (row := self._memory.get(key)) is not None}

    def _fill(
        self, missing: Mapping[bytes, str], progress: Callable[[int, int], None] | None
    ) -> dict[bytes, Row]:
        found = self._remembered(list(missing))
        if self._disk:
            found |= self._disk.get([key for key in missing if key not in found])
        todo = [key for key in missing if key not in found]
        for start in range(0, len(todo), _CHUNK):
            chunk = todo[start : start + _CHUNK]
            vectors, cut = self._encoder.encode([missing[key] for key in chunk])
            rows = {key: (vectors[i], bool(cut[i])) for i, key in enumerate(chunk)}
            found |= rows
            if self._disk:
                self._disk.put(rows)
            if progress:
                progress(start + len(chunk), len(todo))
        self._remember(found)
        return found

    def _remember(self, rows: Mapping[bytes, Row]) -> None:
        self._memory.update(rows)
        surplus = len(self._memory) - max(REMEMBERED, len(rows))
        for key in list(islice(self._memory, max(surplus, 0))):
            del self._memory[key]

    def _forget(self) -> None:
        self._memory: dict[bytes, Row] = {}
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        return {"_encoder": self._encoder, "_disk": self._disk}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()


def embedder(name: str | os.PathLike[str] | Embedder = "default", *, cache: bool = True) -> TextEmbedder:
    """The embedder called ``name``.

    Parameters
    ----------
    name
        ``"default"`` (all-MiniLM-L6-v2, or what the environment variable ``COUNTERPOINT_EMBEDDER`` names);
        ``"hashing"`` (for tests: words, no meaning); a folder with ``model.onnx`` and ``tokenizer.json`` or a
        sentence-transformers model; the name of a model on the hub (extra ``hub``); or a callable
        ``list[str] -> (n, d)``, whose rows are scaled to length 1 where they are not.
    cache
        Keep vectors on disk, in ``$COUNTERPOINT_CACHE`` or the platform's cache folder. Callables and
        ``"hashing"`` are never kept there.

    Raises
    ------
    ModelError
        The model is missing or cannot be read; the default one also, at its first use, when a file is not
        the one that was pinned.
    MissingExtra
        A hub model, without the extra ``hub``.
    UsageError
        A near miss of a known name.

    >>> embed = embedder("hashing")
    >>> embed.id, embed(["two apples", "two apples"]).shape
    ('hashing-384', (2, 384))
    """
    if isinstance(name, TextEmbedder):
        return name
    encoder = _callable_encoder(name) if callable(name) else _named_encoder(os.fspath(name))
    disk = _disk_cache(encoder) if cache and encoder.cache_key else None
    return TextEmbedder(encoder, disk)


def _named_encoder(name: str) -> Encoder:
    if name == "default":
        name = os.environ.get("COUNTERPOINT_EMBEDDER", "").strip() or name
    if name in names("embedder"):
        made = lookup("embedder", name)()
        encoder: Encoder = made if hasattr(made, "encode") else _callable_encoder(made)
        return encoder
    folder = Path(os.path.expanduser(name))
    if name and folder.is_dir():
        from counterpoint.models.onnx import OnnxEncoder, is_onnx_folder

        if is_onnx_folder(folder):
            return OnnxEncoder.from_folder(folder)
    elif not name or name[0] in "./~" or "\\" in name:
        raise ModelError(f"embedder {name!r}: no such folder")
    elif near := suggest(name, names("embedder")):
        raise UsageError(f"no embedder {name!r}{near}")
    from counterpoint.models.hub import HubEncoder

    return HubEncoder(os.path.expanduser(name))


def _disk_cache(encoder: Encoder) -> VectorCache:
    short = hashlib.sha256(encoder.cache_key.encode()).hexdigest()[:16]
    return VectorCache(cache_folder() / f"vectors-{short}.sqlite3", encoder.dimensions)


def _clean(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class _CallableEncoder:
    """A user's function as an encoder; its vectors are left as they are but for their length."""

    dimensions = 0
    cache_key = ""

    def __init__(self, function: Embedder) -> None:
        self._function = function
        named = getattr(function, "id", None) or getattr(function, "__qualname__", None)
        self.id = str(named or type(function).__qualname__)

    def encode(self, texts: list[str]) -> tuple[NDArray[np.float64], Sequence[bool]]:
        try:
            vectors = np.array(self._function(texts), np.float64)
        except Exception as error:  # a function of the user's may raise anything
            raise ModelError(f"embedder {self.id} failed: {type(error).__name__}: {error}") from error
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise ModelError(
                f"embedder {self.id} gave an array of shape {vectors.shape} for {len(texts)} texts; "
                f"it has to be ({len(texts)}, d)"
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        off = (np.abs(lengths - 1) > 1e-6) & (lengths > 0)
        return np.where(off, vectors / np.where(off, lengths, 1), vectors), [False] * len(texts)


def _callable_encoder(function: Any) -> _CallableEncoder:
    return _CallableEncoder(function)
