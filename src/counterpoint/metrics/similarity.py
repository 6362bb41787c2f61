"""How alike two texts are: TF-IDF cosines over a run's own texts, and cosines of embedded texts.

Conventions
-----------
* Texts are a list; pairs of them are two index arrays of equal length, (p,).
* Cosines are arrays (p,), never NaN, and in range but for rounding; that of a zero vector with any is 0.

What counts
-----------
Tokens, by one of two tokenizers:

* ``words``: NFKC and casefold, then numbers (``3``, ``2.5``, ``1,200`` as ``1200``), runs of letters with
  their marks, operators and currency signs (a run of the same one once), and single characters of Han, kana,
  Thai, Lao, Khmer and Burmese. A minus sign, and an en dash before a digit, is ``-``.
* ``sklearn``: what scikit-learn's TfidfVectorizer [1]_ does unless told otherwise: lower case, runs of two or
  more word characters. Digits and variables of one character vanish.

Term weights are scikit-learn's: raw counts times ``ln((1 + N) / (1 + df)) + 1``, N the number of texts and df
the number of those with the term.

.. [1] Pedregosa et al. Scikit-learn: Machine Learning in Python. JMLR 12, 2011.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray

from counterpoint.contracts import Embedder
from counterpoint.errors import ModelError, UsageError
from counterpoint.registry import suggest

__all__ = ["TOKENIZERS", "embedded_cosines", "embedding_cosines", "same_texts", "tfidf_cosines"]

Indices = NDArray[np.int64]
Floats = NDArray[np.float64]

OPERATORS = "+-*/=<>^%$€£¥×÷√≤≥≠"
ALONE = r"[\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
"""Scripts that are written without spaces: one token a character."""

_WORDS = regex.compile(
    r"\p{Nd}+(?:\.\p{Nd}+)*"
    rf"|[{regex.escape(OPERATORS)}]"
    rf"|[{ALONE}&&[\p{{L}}\p{{Nl}}]]\p{{M}}*"
    rf"|[\p{{L}}--{ALONE}][[\p{{L}}--{ALONE}]\p{{M}}]*",
    regex.V1,
)
_ASCII_WORDS = re.compile(rf"[a-z]+|\d+(?:\.\d+)*|[{re.escape(OPERATORS)}]")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_RUN = re.compile(rf"([{re.escape(OPERATORS)}])\1+")
_DASH = re.compile(r"−|–(?=\d)")
_SKLEARN = re.compile(r"\w\w+")  # what \b\w\w+\b finds, sooner
_ASCII_LETTERS = {code: chr(code).lower() if re.match(r"\w", chr(code)) else " " for code in range(128)}

DENSE = 1_000_000
"""Up to so many numbers, texts times terms, a matrix of weights is dense."""

FEW = 64
"""Up to so many texts all pairs are compared, even where few are asked for."""

CHUNK = 4_000_000
"""About so many numbers are gathered at once to compare pairs."""


def words(text: str) -> list[str]:
    """Tokens that tell "The answer is 7" from "The answer is 8".

    >>> words("So 1,234.5 - 7 = x")
    ['so', '1234.5', '-', '7', '=', 'x']
    """
    if text.isascii():  # sooner than by all of Unicode
        return _ASCII_WORDS.findall(_joined(text.lower()))
    text = _DASH.sub("-", unicodedata.normalize("NFKC", text).casefold())
    return _WORDS.findall(_joined(text))


def _joined(text: str) -> str:
    """Without thousands separators, and a run of one operator as one."""
    return _RUN.sub(r"\1", _THOUSANDS.sub("", text))


def sklearn_words(text: str) -> list[str]:
    """The tokens of a TfidfVectorizer with default settings.

    >>> sklearn_words("So 1,234.5 - 7 = x")
    ['so', '234']
    """
    if text.isascii():  # sooner than by regular expression
        return [word for word in text.translate(_ASCII_LETTERS).split() if len(word) > 1]
    return _SKLEARN.findall(text.lower())


TOKENIZERS: dict[str, Callable[[str], list[str]]] = {"words": words, "sklearn": sklearn_words}


def tfidf_cosines(texts: list[str], first: Indices, second: Indices, tokenizer: str = "words") -> Floats:
    """Cosine of the TF-IDF vectors of each pair; the vectors are fitted on ``texts`` alone."""
    if tokenizer not in TOKENIZERS:
        raise UsageError(f"tokenizer {tokenizer!r}{suggest(tokenizer, TOKENIZERS)} is none of words, sklearn")
    tokens = list(map(TOKENIZERS[tokenizer], texts))
    sizes = list(map(len, tokens))
    vocabulary: dict[str, int] = {}
    number = vocabulary.setdefault
    terms = np.array([number(token, len(vocabulary)) for text in tokens for token in text], dtype=np.int64)
    n, size = len(texts), len(vocabulary)
    owners = np.arange(n).repeat(sizes)
    if n * size > DENSE:
        return _sparse_cosines(owners, terms, (n, size), first, second)
    counts = np.bincount(owners * size + terms, minlength=n * size).reshape(n, size)
    rows = counts * _idf(n)[np.add.reduce(counts > 0, axis=0)]
    squares = np.einsum("ij,ij->i", rows, rows)
    if not all(sizes):
        squares[squares == 0] = 1  # so that a text without tokens has cosine 0
    return _cosines(rows, squares, first, second)


@lru_cache(maxsize=64)
def _idf(n: int) -> Floats:
    """The weight of a term by the number of documents that have it, 0 to n."""
    weights: Floats = np.log((1 + n) / (1 + np.arange(n + 1))) + 1
    return weights


def _cosines(rows: Floats, squares: Floats, first: Indices, second: Indices) -> Floats:
    """Cosines of pairs of rows, whose squared lengths are given."""
    if len(rows) <= FEW or 4 * len(first) >= len(rows) ** 2:
        dots = (rows @ rows.T)[first, second]
    else:
        step = CHUNK // max(rows.shape[1], 1) + 1
        dots = np.empty(len(first))
        for at in range(0, len(first), step):
            part = slice(at, at + step)
            dots[part] = np.einsum("ij,ij->i", rows[first[part]], rows[second[part]])
    lengths = np.sqrt(squares)
    cosines: Floats = dots / (lengths[first] * lengths[second])
    return cosines


def _sparse_cosines(
    owners: Indices, terms: Indices, shape: tuple[int, int], first: Indices, second: Indices
) -> Floats:
    from scipy.sparse import csr_array

    weights: Any = csr_array((np.ones(len(terms)), (owners, terms)), shape=shape)
    weights.sum_duplicates()
    documents = np.bincount(weights.indices, minlength=shape[1])
    weights.data *= _idf(shape[0])[documents[weights.indices]]
    sizes = np.diff(weights.indptr)
    norms = np.sqrt(weights.multiply(weights).sum(axis=1))
    weights.data /= norms.repeat(sizes)
    step = CHUNK // int(sizes.max()) + 1
    parts = [
        weights[first[at : at + step]].multiply(weights[second[at : at + step]]).sum(axis=1)
        for at in range(0, len(first), step)
    ]
    cosines: Floats = np.concatenate([np.empty(0), *parts])
    return cosines


def embedded_cosines(
    embed: Embedder, texts: Sequence[str], first: Indices, second: Indices
) -> tuple[Floats, int]:
    """As `embedding_cosines`, of texts that are embedded here: those in a pair, and no others."""
    paired, place = np.unique(np.concatenate([first, second]), return_inverse=True)
    vectors = embed([texts[index] for index in paired.tolist()])
    return embedding_cosines(vectors, len(paired), place[: len(first)], place[len(first) :])


def embedding_cosines(vectors: Any, n: int, first: Indices, second: Indices) -> tuple[Floats, int]:
    """Cosine of each pair of embedded texts, in [-1, 1]; and how many vectors were zero or not finite.

    Raises ModelError where ``vectors`` is not (n, d).
    """
    try:
        rows = np.asarray(vectors, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(
            f"the embedder gave {type(vectors).__name__}, not an (n, d) array of floats"
        ) from None
    if rows.ndim != 2 or len(rows) != n:
        raise ModelError(f"the embedder gave shape {rows.shape} for {n} texts: it has to give ({n}, d)")
    squares = np.einsum("ij,ij->i", rows, rows)
    if all(1e-200 < square < 1e200 for square in squares.tolist()):
        return _cosines(rows, squares, first, second), 0
    # Squares of very small and large numbers vanish or overflow; NaN and infinity have no direction.
    peaks = np.abs(rows).max(axis=1, initial=0)
    bad = ~np.isfinite(peaks) | (peaks == 0)
    rows = np.where(bad[:, None], 0, rows) / np.where(bad, 1, peaks)[:, None]
    squares = np.where(bad, 1, np.einsum("ij,ij->i", rows, rows))
    return _cosines(rows, squares, first, second), int(bad.sum())


def same_texts(texts: list[str], first: Indices, second: Indices) -> Indices:
    """Positions of the pairs whose texts are equal after NFKC, casefold and strip."""
    forms = [unicodedata.normalize("NFKC", text).casefold().strip() for text in texts]
    known = {form: number for number, form in enumerate(forms)}
    if len(known) == len(forms):
        return np.empty(0, dtype=np.int64)
    identity = np.array([known[form] for form in forms])
    return np.flatnonzero(identity[first] == identity[second])
