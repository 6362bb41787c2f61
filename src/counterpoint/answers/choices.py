"""Choice letters in prose, and the options that a task lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from counterpoint.answers.numbers import ERROR, NEGATED, PHRASE, clip, plain

__all__ = ["alphabet", "first_letter", "last_letter", "letter", "read_options"]

_DEFAULT = "ABCDE"
_TAIL = 100_000
_LABEL = re.compile(r"(?<![\w.])(?:(?i:option)\s)?(?:\(([A-Ja-j])\)|([A-J])[).:]|([a-j])\))(?=\s{0,3}\S)")
_LETTER = re.compile(r"(?<![\w'’.])(?:\(([A-Za-z])\)|([A-Z])(?![\w'’^=+*/]|\.\w)|([a-z])(?=\)|[.,;:!]?\s*$))")
_BARE = re.compile(r"[\s(\[\"']*(?:(?:option|choice)\s+)?[(\[]?([A-Za-z])[)\].:,!\"'\s]*", re.IGNORECASE)
_LABELED = re.compile(
    r"\s*(?:(?:option|choice)\s+)?(?:\(([A-Za-z])\)|([A-Z])[).:])\s*\S[^\n]{0,80}", re.IGNORECASE
)
_MORE = re.compile(
    r"\s{0,2}(?:,?\s{0,2}(?:\b(?:or|and)\b|[/&])\s{0,2}\(?(?:[A-HJ-Z]|I(?!\s[a-z]))\b"
    r"|,\s{0,2}\(?[A-Z]\)?\s{0,2}(?:,|\bor\b|\band\b|$))"
)
"""After a letter: it was the first of several."""
_WORD = re.compile(r"\s+[a-z]")
_REASON = re.compile(r"\s+(?:because|since|as|is|for)\b")
_SHOWN = re.compile(r"\(([A-Z])\)|\*\*\(?([A-Z])\)?(?:[.:]|\*\*)|\b(?:[Oo]ption|[Cc]hoice)\s([A-Z])\b")


def alphabet(options: Mapping[str, str] | Iterable[str] | None) -> str:
    """The option letters, in upper case: those of ``options``, A to E where none are given."""
    return "".join(options).upper() if options else _DEFAULT


def read_options(task: str) -> dict[str, str]:
    """The options that a task lists, letter to text; empty where it lists none.

    Read are labels ``A)``, ``(A)``, ``A.``, ``A:``, ``a)`` that run from A on, in a column or in one line;
    the last such list where there are several, within the last 100,000 characters.

    >>> read_options("Which one is even? Choices: A) 3 B) 4 C) 5")
    {'A': '3', 'B': '4', 'C': '5'}
    """
    task = task[-_TAIL:]
    lists: list[list[re.Match[str]]] = [[]]
    for found in _LABEL.finditer(task):
        here = _name(found)
        if here == "A":
            lists.append([found])
        elif lists[-1] and ord(here) == ord("A") + len(lists[-1]):
            lists[-1].append(found)
    labels = next((labels for labels in reversed(lists) if len(labels) > 1), [])
    ends = [*(label.start() for label in labels[1:]), len(task)]
    return {
        _name(label): task[label.end() : end].split("\n\n")[0].strip(" \t\r\n,;'\"[]")
        for label, end in zip(labels, ends, strict=False)
    }


def letter(text: str, letters: str, *, labeled: bool = True) -> str | None:
    """The letter that ``text`` is: bare, or (where ``labeled``) with its option's text behind it."""
    if len(text) > PHRASE:
        return None
    phrase = plain(text).strip()
    found = _BARE.fullmatch(phrase) or (_LABELED.fullmatch(phrase) if labeled else None)
    return _among(found, letters) if found else None


def first_letter(phrase: str, letters: str) -> str | None:
    """The letter that an answer line's rest commits to; None after a "not", or where there are several."""
    phrase = plain(clip(phrase))
    if ERROR.search(phrase):
        return None
    for found in _LETTER.finditer(phrase):
        if _is_word(phrase, found):
            continue
        if NEGATED.search(phrase, 0, found.start()) or _MORE.match(phrase, found.end()):
            return None
        return _among(found, letters)
    return None


def last_letter(lines: Iterable[str], letters: str) -> str | None:
    """The one letter that the last line with any shows as a choice: ``(B)``, ``**B**``, ``option B``."""
    for line in lines:
        shown = {_name(found) for found in _SHOWN.finditer(line)} & set(letters)
        if shown:
            return shown.pop() if len(shown) == 1 else None
    return None


def _is_word(phrase: str, found: re.Match[str]) -> bool:
    """Is the letter the article "A" or the pronoun "I"? At the start of a phrase "A because" is a choice."""
    if found[2] not in ("A", "I") or not _WORD.match(phrase, found.end()):
        return False
    at_start = not phrase[: found.start()].strip(" :\"'")
    return not (at_start and found[2] == "A") and not _REASON.match(phrase, found.end())


def _among(found: re.Match[str], letters: str) -> str | None:
    name = _name(found)
    return name if name in letters else None


def _name(found: re.Match[str]) -> str:
    return str(next(group for group in found.groups() if group)).upper()
