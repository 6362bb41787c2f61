"""Claims without a model: the sentences of a text, one proposition each.

Conventions
-----------
A statement's text is as written, without list marks and signs of emphasis; its span is where it stands.

What counts
-----------
* Sentences, list items and the rows of tables. A sentence is split at a semicolon, and at ", and", ", but",
  ", while", ", whereas" between two clauses that stand for themselves, each with a verb and no pronoun to
  resolve (English only). Numbers and negation always stay.
* Left out: code blocks, questions (unless asked for), lines that only introduce what follows, repetitions
  within the text, and fragments of nothing but pronouns and fillers.
* Formulas, inline code and links are never split. A line ends a sentence unless the next one goes on in lower
  case.

Sentences are found by sentencex [1]_, for about 300 languages.

.. [1] https://github.com/wikimedia/sentencex
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import version

import regex
import sentencex

from counterpoint.contracts import Decomposition, Statement
from counterpoint.judges.words import is_content

__all__ = ["Sentences"]

_FENCE = regex.compile(r"(?ms)^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1[ \t]*$|\Z)")
_UNSPLIT = regex.compile(
    r"(?s)\$\$.{1,1000}?\$\$|\\\[.{1,1000}?\\\]|\\\(.{1,1000}?\\\)|\\begin\{(\w+\*?)\}.{1,1000}?\\end\{\1\}"
    r"|(?<![\\\w$])\$(?=[^\s$])[^$\n]{1,400}?(?<=\S)\$(?![\w$])|`[^`\n]{1,400}`|https?://[^\s)>\]]{1,2000}"
)
_STOPS = regex.compile(r"[.?!;,。！？；।؟۔\n|]")
_ROW = regex.compile(r"[ \t]*\|?[^|\n]*\|[^\n]*")
_RULE = regex.compile(r"[\s|:+=-]+")
_MARKS = regex.compile(
    r"(?:\s|[*_~>#•‣▪◦·–—-]+(?=[\s*_~>#\w])|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4})[.)](?=\s|$)|[\"'“”„«»])+"
)
_EMPHASIS = regex.compile(r"\*\*|(?<!\w)\*(?=\w)|(?<=\w)\*(?!\w)")
_MARKER = regex.compile(r"\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4})[.)]")
_ENDS = regex.compile(r"[\s*_~#\"'“”„«»]+$")
_NEXT_LINE = regex.compile(r"\n+(?!\s*\p{Ll})")
_QUESTION = regex.compile(r"[?？؟;]\s*$")
_JOINT = regex.compile(r"\s*[;；]\s*|,\s+(?:and|but|while|whereas)\s+")
_VERB = regex.compile(
    r"(?i)\b(?:is|are|was|were|has|have|had|will|would|can|could|should|must|may|might|do|does|did|needs?|"
    r"rose|fell|grew|won|lost|\p{L}{2,}ed)\b|n['’]t\b"
)
_PRONOUN = regex.compile(r"(?i)(?:it|its|they|their|he|his|she|her|this|that|these|those|which|who|there)\b")
_SCRIPTS = (
    ("ja", regex.compile(r"[\p{Hiragana}\p{Katakana}]")),
    ("zh", regex.compile(r"\p{Han}")),
    ("ru", regex.compile(r"\p{Cyrillic}")),
    ("ar", regex.compile(r"\p{Arabic}")),
    ("hi", regex.compile(r"\p{Devanagari}")),
    ("el", regex.compile(r"\p{Greek}")),
    ("hy", regex.compile(r"\p{Armenian}")),
)
_SURROGATES = regex.compile(r"[\ud800-\udfff]")

REACH = 300
"""How far back from a joint a clause's verb is looked for, in characters: a text without any stays quick."""

Span = tuple[int, int]


class Sentences:
    """Splits texts into sentences, and these into clauses: a heuristic, offline.

    >>> [one.text for one in Sentences()(["Rain fell; the dam is not safe. Why? I agree."])[0].statements]
    ['Rain fell', 'the dam is not safe.']
    """

    VERSION = f"sentences/1 (heuristic), sentencex {version('sentencex')}"

    def __init__(self, *, cap: int | None = None, questions: bool = False) -> None:
        self.cap, self.questions = cap, questions
        self.id = f"{self.VERSION}, at most {cap}" if cap is not None else self.VERSION

    def __call__(self, texts: Sequence[str], /) -> list[Decomposition]:
        """The statements of each text, in order."""
        return [self._decompose(text) for text in texts]

    def _decompose(self, text: str) -> Decomposition:
        found: dict[str, Statement] = {}
        for start, end in _clauses(text, self.questions):
            written = text[start:end]
            key = " ".join(written.casefold().split())
            if key not in found and is_content(written):
                plain = _EMPHASIS.sub("", _SURROGATES.sub("\ufffd", written))
                found[key] = Statement(plain, start, end)
        statements = tuple(found.values())
        kept = statements if self.cap is None else statements[: self.cap]
        return Decomposition(kept, capped=len(statements) - len(kept))


def _clauses(text: str, questions: bool) -> Iterator[Span]:
    """Spans of the statements in ``text``, before repetitions and fragments are dropped."""
    shape = _shape(text)
    for start, end in _lines(shape):
        if _ROW.fullmatch(shape, start, end) and "|" in shape[start:end].strip().strip("|"):
            if not _RULE.fullmatch(shape, start, end) and not _heads_table(shape, end):
                yield _trimmed(text, start, end, "|")
            continue
        for first, last in _sentences(shape, start, end):
            first, last = _trimmed(text, first, last)
            ending = text[first:last]
            if _MARKER.fullmatch(text, first, last) and end - start > last - first:
                continue
            asks = not questions and _QUESTION.search(ending)
            if first < last and not asks and not ending.endswith((":", "：")):
                yield from _split(shape, first, last)


def _shape(text: str) -> str:
    """The text, as long as it was, with code blanked out and nothing in formulas that looks like an end."""
    shape = _SURROGATES.sub("x", text).replace("\r", " ")
    shape = _FENCE.sub(lambda found: "\n" * len(found[0]), shape)
    return _UNSPLIT.sub(lambda found: _STOPS.sub("_", found[0]), shape)


def _lines(shape: str) -> Iterator[Span]:
    """Lines; one that goes on in lower case on the next is one line with it."""
    start = 0
    for found in _NEXT_LINE.finditer(shape):
        if found.start() > start:
            yield start, found.start()
        start = found.end()
    if start < len(shape):
        yield start, len(shape)


def _heads_table(shape: str, end: int) -> bool:
    """Does a rule of dashes follow, so that the row before it names columns?"""
    start = end + 1
    stop = shape.find("\n", start)
    following = shape[start : stop if stop >= 0 else len(shape)]
    return "-" in following and "|" in following and bool(_RULE.fullmatch(following))


def _sentences(shape: str, start: int, end: int) -> Iterator[Span]:
    line = shape[start:end]
    at = start
    for sentence in sentencex.segment(_language(line), line):
        yield at, at + len(sentence)
        at += len(sentence)


def _language(line: str) -> str:
    """A language that is written in the line's script: what ends a sentence differs by script."""
    return next((language for language, script in _SCRIPTS if script.search(line)), "en")


def _split(shape: str, start: int, end: int) -> Iterator[Span]:
    """One span, or its clauses where each can stand for itself."""
    joints = [found for found in _JOINT.finditer(shape, start, end) if found.start() > start]
    at = start
    for number, found in enumerate(joints):
        following = joints[number + 1].start() if number + 1 < len(joints) else end
        right = shape[found.end() : following]
        if found[0].strip() in (";", "；"):
            stands = bool(right.strip())
        else:
            stands = bool(
                _VERB.search(shape, max(at, found.start() - REACH), found.start())
                and _VERB.search(right)
                and not _PRONOUN.match(right)
            )
        if stands:
            yield at, found.start()
            at = found.end()
    yield at, end


def _trimmed(text: str, start: int, end: int, also: str = "") -> Span:
    """The span without list marks, Markdown, quotes and white space at its ends."""
    while start < end and text[start] in also:
        start += 1
    marks = _MARKS.match(text, start, end)
    if marks and marks.end() < end:
        start = marks.end()
    while end > start and text[end - 1] in also + " \t\n\r":
        end -= 1
    tail = _ENDS.search(text, start, end)
    return start, tail.start() if tail else end
