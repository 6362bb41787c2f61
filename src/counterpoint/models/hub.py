"""Embedders from the model hub or from a sentence-transformers folder (extra ``hub``).

A plain model such as ``bert-base-uncased`` gets the mean over its tokens. The id holds a hash of the weights,
so the model is loaded at once. Texts of equal length share a batch, and vectors are rounded to 6 decimals;
whether a vector is the same to the last bit in every batch is up to torch and the device.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import platform
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterpoint.errors import MissingExtra, ModelError
from counterpoint.models.vectors import millionths

__all__ = ["HubEncoder"]


class HubEncoder:
    """A sentence-transformers model by its name on the hub, or by its folder."""

    def __init__(self, name: str) -> None:
        try:
            library = importlib.import_module("sentence_transformers")
        except ImportError:
            raise MissingExtra(f"embedder {name!r}", "hub") from None
        try:
            self._model: Any = library.SentenceTransformer(name)
        except Exception as error:  # network, hub, torch and file format each raise their own
            raise ModelError(f"embedder {name!r} cannot be loaded: {' '.join(str(error).split())}") from None
        weights = _weights_hash(self._model)
        self.id = f"{Path(name).name}@{weights[:8]}"
        self._limit: int | None = self._model.max_seq_length
        self.dimensions = int(self._model.encode(["a"]).shape[1])
        arithmetic = [library.__version__, importlib.import_module("torch").__version__, platform.machine()]
        self.cache_key = json.dumps([weights, self._limit, str(self._model.device), *arithmetic])

    def encode(self, texts: list[str]) -> tuple[NDArray[np.float64], Sequence[bool]]:
        """Unit rows, rounded to 6 decimals, and for each text whether it was truncated."""
        tokens = self._model.tokenizer(texts, truncation=False, verbose=False)["input_ids"]
        counts = [len(ids) for ids in tokens]
        cut = [self._limit is not None and count > self._limit for count in counts]
        groups = defaultdict(list)
        for index, count in enumerate(counts):
            groups[min(count, self._limit or count)].append(index)
        vectors = np.zeros((len(texts), self.dimensions))
        for indices in groups.values():
            vectors[indices] = self._model.encode(
                [texts[i] for i in indices], normalize_embeddings=True, show_progress_bar=False
            )
        return millionths(vectors), cut


def _weights_hash(model: Any) -> str:
    torch = importlib.import_module("torch")
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()
