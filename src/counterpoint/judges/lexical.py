"""A judge without a model: does the text hold the words of the claim? A heuristic, and called one.

What counts
-----------
* Preservation: the share of the claim's content words that the text holds; where there is an embedder, scaled
  by ``.8 + .2 * cosine``. It is 0 where the text lacks a number or a name of the claim, or one of both denies
  and the other does not. Equal texts give 1.
* Support: the best preservation by a sentence of the source, or by two that follow each other.
* Contradiction: that share of words, where one of both denies or a number differs; else 0.
* Stance: 0 where the text rejects the claim, .5 where it doubts, asks or reports it, else 1 (English cues).

It cannot see synonyms, who did what to whom, or what follows from what: paraphrases fall below the threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
import regex
from numpy.typing import NDArray

from counterpoint.contracts import Embedder, Question, Verdict
from counterpoint.judges.sentences import Sentences
from counterpoint.judges.words import read_words

__all__ = ["Lexical"]

_REJECTS = regex.compile(
    r"(?i)\b(?:i|we)\s+(?:(?:strongly|firmly|completely|respectfully)\s+)?(?:disagree|reject|oppose|object|deny|"
    r"(?:do\s+not|don['’]t|cannot|can['’]t)\s+(?:agree|accept|support|believe))\b"
    r"|\b(?:it|that|this)\s+is\s+(?:simply\s+)?(?:false|untrue|wrong|incorrect|not\s+(?:true|the\s+case|correct))\b"
)
_DOUBTS = regex.compile(
    r"(?i)\b(?:maybe|perhaps|possibly|probably|might|may|could|unclear|uncertain|unsure|not\s+(?:sure|certain)|"
    r"seems?|appears?|presumably|allegedly|reportedly|according\s+to|"
    r"(?:he|she|they|\p{Lu}\p{L}+)\s+(?:says?|said|claims?|claimed|argues?|argued|reports?|reported)\s+that)\b"
    r"|[?？؟]\s*$"
)


class Lexical:
    """Containment of words, numbers and names: offline, deterministic, in (text, claim) pairs.

    >>> judge = Lexical()
    >>> [v.score for v in judge("preservation", [("The dam failed in 2019.", "The dam failed."),
    ...                                          ("The dam failed.", "The dam failed in 2019."),
    ...                                          ("The dam never failed.", "The dam failed.")])]
    [1.0, 0.0, 0.0]
    """

    VERSION = "lexical/2 (heuristic)"

    def __init__(self, embed: Embedder | None = None) -> None:
        self._embed = embed
        self._split = lru_cache(maxsize=256)(self._passages)
        self.id = self.VERSION if embed is None else f"{self.VERSION}, {getattr(embed, 'id', 'embedder')}"

    def __call__(self, question: Question, pairs: Sequence[tuple[str, str]], /) -> list[Verdict]:
        """A verdict a pair; never undefined."""
        if question == "stance":
            return [Verdict(_stance(text)) for text, _ in pairs]
        if question == "contradiction":
            return [Verdict(_contradicts(text, claim)) for text, claim in pairs]
        if question == "support":
            return self._supports(pairs)
        return [Verdict(score) for score in self._preserves(pairs)]

    def _preserves(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        shares = np.array([_contained(text, claim) for text, claim in pairs], dtype=np.float64)
        if self._embed is not None:
            # Equal texts are settled, and below the threshold nothing is decided by a factor of at most 1.
            differ = np.array([text.strip() != claim.strip() for text, claim in pairs], dtype=bool)
            open_ = np.flatnonzero((shares > 0) & differ)
            shares[open_] *= 0.8 + 0.2 * self._cosines([pairs[index] for index in open_.tolist()])
        return [float(share) for share in shares]

    def _cosines(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        if not pairs or self._embed is None:
            return np.zeros(len(pairs))
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        row = {text: number for number, text in enumerate(texts)}
        vectors = np.asarray(self._embed(texts), dtype=np.float64)
        first = vectors[[row[text] for text, _ in pairs]]
        second = vectors[[row[claim] for _, claim in pairs]]
        cosines: NDArray[np.float64] = np.einsum("ij,ij->i", first, second)
        return np.clip(cosines, 0, 1)

    def _supports(self, pairs: Sequence[tuple[str, str]]) -> list[Verdict]:
        inner = [(passage, claim) for source, claim in pairs for passage in self._split(source)]
        scores = iter(self._preserves(inner))
        return [Verdict(max((next(scores) for _ in self._split(source)), default=0.0)) for source, _ in pairs]

    @staticmethod
    def _passages(source: str) -> tuple[str, ...]:
        """The sentences of a source, questions and data included, and any two that follow each other."""
        (found,) = Sentences(questions=True, data=True)([source])
        sentences = [statement.text for statement in found.statements]
        return (*sentences, *(f"{first} {second}" for first, second in pairwise(sentences)))


def _contained(text: str, claim: str) -> float:
    """Share of the claim's words that the text holds; 0 where a number, name or denial sets them apart."""
    if text.strip() == claim.strip():
        return 1.0
    held, said = read_words(text), read_words(claim)
    if said.negated != held.negated or not said.numbers <= held.numbers:
        return 0.0
    if not said.names <= held.content:
        return 0.0
    asked = said.content | said.numbers
    return len(asked & (held.content | held.numbers)) / len(asked) if asked else 0.0


def _contradicts(text: str, claim: str) -> float:
    held, said = read_words(text), read_words(claim)
    differs = said.negated != held.negated or bool(
        said.numbers and held.numbers and not said.numbers & held.numbers
    )
    if not differs or not said.content:
        return 0.0
    return len(said.content & held.content) / len(said.content)


def _stance(text: str) -> float:
    if _REJECTS.search(text):
        return 0.0
    return 0.5 if _DOUBTS.search(text) else 1.0
