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
* Of data, lines of JSON or of a printed dict, only values of at least four words count: keys, names and
  numbers are no claims.
* Scripts without spaces between words (Thai, Lao, Khmer, Burmese, Han, kana) are split at spaces, and a piece
  of more than 80 characters at commas. Whatever is longer than 500 characters, 200 in these scripts, is cut
  there: at a comma or a space where there is one.

Sentences are found by sentencex [1]_, for about 300 languages.

.. [1] https://github.com/wikimedia/sentencex
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import version

import regex
import sentencex

from counterpoint.contracts import Decomposition, Statement
from counterpoint.judges.words import ALONE, is_content

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
_NEXT_LINE = regex.compile(r"(?<!\n)\n++(?!\s*+\p{Ll})|\x1e+")
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

LONGEST = 500
"""Characters of one statement."""
LONGEST_DENSE = 200
"""Of one in a script without spaces between words, of which a character says about as much as a syllable."""
LONGEST_CLAUSE = 80
"""Beyond this a statement in such a script is split at its commas."""
SHORTEST = 6
"""Characters on both sides of a space or comma at which a statement in such a script is split."""

_DENSE = regex.compile(ALONE)
_SPACES = regex.compile(rf"(?<={ALONE}\p{{M}}*)\s+(?={ALONE})")
_COMMAS = regex.compile(r"[，、,]\s*")
_PAUSES = regex.compile(r"(?<=[,;:])\s+|(?<=[，、；：])")
_GAPS = regex.compile(r"\s+")

_LINE_OF_DATA = regex.compile(
    r"""(?mx)^[ \t]*+ (?:
        (?:[\w][\w ]{0,30}:[ \t]*+)? [\[{] \s*+ ["'\[{] [^\n]*+ (?<=[\]}\[{,][ \t]{0,3})  # { "key": 1, ... }
      | ["'][^"'\n]{1,80}["'] \s*+ : [^\n]*+                                            # "key": 1,
    )$"""
)
_VALUE = regex.compile(r"""(?<=:\s{0,3})(?:"((?:[^"\\\n]|\\.)*+)"|'((?:[^'\\\n]|\\.)*+)')""")
_PROSE = regex.compile(rf"(?:\S+\s+){{3}}\S|(?:{ALONE}\p{{M}}*){{8}}")
_BLANK = "\x1e"
"""Stands for what is no text, and ends a line."""

Span = tuple[int, int]


class Sentences:
    """Splits texts into sentences, and these into clauses: a heuristic, offline.

    >>> [one.text for one in Sentences()(["Rain fell; the dam is not safe. Why? I agree."])[0].statements]
    ['Rain fell', 'the dam is not safe.']
    """

    VERSION = f"sentences/2 (heuristic), sentencex {version('sentencex')}"

    def __init__(self, *, cap: int | None = None, questions: bool = False, data: bool = False) -> None:
        self.cap, self.questions, self.data = cap, questions, data
        self.id = f"{self.VERSION}, at most {cap}" if cap is not None else self.VERSION

    def __call__(self, texts: Sequence[str], /) -> list[Decomposition]:
        """The statements of each text, in order."""
        return [self._decompose(text) for text in texts]

    def _decompose(self, text: str) -> Decomposition:
        found: dict[str, Statement] = {}
        for start, end in _clauses(text, self.questions, self.data):
            written = text[start:end]
            key = " ".join(written.casefold().split())
            if key not in found and is_content(written):
                plain = _EMPHASIS.sub("", _SURROGATES.sub("\ufffd", written))
                found[key] = Statement(plain, start, end)
        statements = tuple(found.values())
        kept = statements if self.cap is None else statements[: self.cap]
        return Decomposition(kept, capped=len(statements) - len(kept))


def _clauses(text: str, questions: bool, data: bool) -> Iterator[Span]:
    """Spans of the statements in ``text``, before repetitions and fragments are dropped."""
    shape = _shape(text)
    shape = shape if data else _LINE_OF_DATA.sub(_prose_of, shape)
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
                for piece in _split(shape, first, last):
                    yield from _shortened(shape, *piece)


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


def _prose_of(line: regex.Match[str]) -> str:
    """A line of data with nothing left but the values that are prose, where they stand."""
    kept = [_BLANK] * len(line[0])
    for value in _VALUE.finditer(line[0]):
        start, end = value.span(1 if value[1] is not None else 2)
        if _PROSE.search(line[0], start, end):
            kept[start:end] = line[0][start:end]
    return "".join(kept)


def _shortened(shape: str, start: int, end: int) -> Iterator[Span]:
    """A span, or its pieces where it is in a script without spaces between words, or too long for a claim."""
    dense = 2 * len(_DENSE.findall(shape, start, end)) > end - start
    pieces = [(start, end)]
    if dense:
        pieces = [piece for span in pieces for piece in _apart(shape, *span, _SPACES, 0)]
        pieces = [piece for span in pieces for piece in _apart(shape, *span, _COMMAS, LONGEST_CLAUSE)]
    most = LONGEST_DENSE if dense else LONGEST
    for first, last in pieces:
        while last - first > most:
            half = first + most // 2
            cuts = [*_PAUSES.finditer(shape, half, first + most)] or [
                *_GAPS.finditer(shape, half, first + most)
            ]
            if not cuts and not dense:
                break  # one word, a key say: it stays whole
            cut, after = cuts[-1].span() if cuts else (first + most, first + most)
            yield first, cut
            first = after
        yield first, last


def _apart(shape: str, start: int, end: int, joint: regex.Pattern[str], least: int) -> Iterator[Span]:
    """A span of more than ``least`` characters, split at each joint that has enough on both sides."""
    at = start
    for found in joint.finditer(shape, start, end) if end - start > least else ():
        if found.start() - at >= SHORTEST and end - found.end() >= SHORTEST:
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
