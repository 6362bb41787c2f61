"""The embedder for tests: knows words, no meaning, and needs no weights. Never used unless it is named.

Every token has a fixed pattern of 384 signs, the bits of its BLAKE2b hash; a text's vector is the sum of its
tokens' patterns, scaled to length 1. So equal texts have cosine 1, texts with the same words in another
order too, and texts without a common word a cosine near 0 (standard deviation 1/√384 ≈ 0.05).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from counterpoint.models.vectors import millionths

__all__ = ["HashingEncoder"]

DIMENSIONS = 384
_TOKEN = re.compile(r"\w+|[^\w\s]")


class HashingEncoder:
    """Texts to sums of hashed sign patterns."""

    id = "hashing-384"
    dimensions = DIMENSIONS
    cache_key = ""

    def encode(self, texts: list[str]) -> tuple[NDArray[np.float64], Sequence[bool]]:
        """Unit rows; nothing is ever truncated."""
        return millionths(np.array([_vector(text) for text in texts])), [False] * len(texts)


def _vector(text: str) -> NDArray[np.float64]:
    tokens = _TOKEN.findall(text.casefold()) or [""]
    total = np.sum([_signs(token) for token in tokens], axis=0, dtype=np.float64)
    length = np.linalg.norm(total)  # 0 only if 384 sums cancel at once, which no test will see
    return np.asarray(total / length)


@lru_cache(maxsize=65_536)
def _signs(token: str) -> NDArray[np.int8]:
    digest = hashlib.blake2b(token.encode(), digest_size=DIMENSIONS // 8).digest()
    return np.unpackbits(np.frombuffer(digest, np.uint8)).astype(np.int8) * 2 - 1
