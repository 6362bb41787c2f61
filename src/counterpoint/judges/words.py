"""What a heuristic can see of a claim: its words, numbers and names, and whether it denies or doubts.

Conventions
-----------
Words are casefolded NFKC, without function words, and English endings are dropped. Scripts without spaces
give one word a character. Numbers are plain decimals: ``1,200.50`` is ``1200.5``.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import regex

__all__ = ["Words", "is_content", "read_words"]

FUNCTION_WORDS = frozenset(
    """
    a an the this that these those it its itself he him his she her hers they them their theirs we us our ours
    you your yours i me my mine who whom whose which what there here one and or but if so as of in on at by
    for from to into onto with than then too also very just be is are was were been being am do does did done
    has have had having will would shall should can could may might must s t d ll m re ve yes ok okay well
    thus hence therefore however indeed sure please thanks thank agree agreed disagree think believe say says
    said according let
    """.split()  # noqa: SIM905  # a list of a hundred quoted words is no better to read
)
NEGATIONS = frozenset(
    """
    not no never none nobody nothing neither nor cannot without lack lacks lacked unable impossible hardly
    nicht kein keine keinen keiner nie ne pas jamais aucun nunca jamás ningún ninguna не нет никогда ليس لا لم
    لن
    """.split()  # noqa: SIM905
)
_NEGATED = regex.compile(r"n['’]t\b|[不没沒無无未非]|ない|ません")
_NUMBER = regex.compile(r"(?<![\p{L}\d])[-−]?\d+(?:[.,]\d+)*")
_THOUSANDS = regex.compile(r"(?<=\d),(?=\d{3}(?!\d))")
ALONE = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_WORD = regex.compile(rf"{ALONE}|(?:(?!{ALONE})\p{{L}}\p{{M}}*)+")
_NAME = regex.compile(r"(?<=[\p{Ll}\p{N},;:)’'\"] )\p{Lu}[\p{L}\p{M}]+")
_ENDINGS = ("ing", "ed", "es", "ly", "s")


@dataclass(frozen=True)
class Words:
    """The parts of one text that are compared."""

    content: frozenset[str]
    numbers: frozenset[str]
    names: frozenset[str]
    """Words with a capital letter that does not come from the start of a sentence."""
    negated: bool


@lru_cache(maxsize=16_384)
def read_words(text: str) -> Words:
    """The words, numbers, names and negation of ``text``.

    >>> found = read_words("Paris was not founded by 1,200 Romans")
    >>> sorted(found.content), sorted(found.numbers), found.negated
    (['found', 'pari', 'roman'], ['1200'], True)
    """
    folded = unicodedata.normalize("NFKC", text)
    lower = folded.casefold()
    words = _WORD.findall(_NEGATED.sub(" ", lower))
    return Words(
        frozenset(_stem(word) for word in words if word not in FUNCTION_WORDS and word not in NEGATIONS),
        frozenset(_plain(number) for number in _NUMBER.findall(lower)),
        frozenset(_stem(name.casefold()) for name in _NAME.findall(folded)),
        bool(_NEGATED.search(lower)) or not NEGATIONS.isdisjoint(words),
    )


def is_content(text: str) -> bool:
    """Does the text say anything beyond pronouns, fillers and marks?"""
    found = read_words(text)
    return bool(found.content or found.numbers)


def _stem(word: str) -> str:
    if len(word) > 4 and word.isascii():
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
                return word[: -len(ending)]
    return word


def _plain(number: str) -> str:
    digits = _THOUSANDS.sub("", number.replace("−", "-")).replace(",", ".")
    return digits.rstrip("0").rstrip(".") if digits.count(".") == 1 else digits
