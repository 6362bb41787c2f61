"""The forms by which a text commits to an answer, found in one linear pass, read from the last one back.

Each form's text ends where the next form begins, and every look is bounded, so that a megabyte of
hostile text takes well under a second.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from counterpoint.answers.choices import alphabet, first_letter, last_letter, letter, read_options
from counterpoint.answers.equality import NOTHING, is_expression, normalize, same_answer, unwrap
from counterpoint.answers.numbers import ERROR, NEGATED, PHRASE, first_number, last_number, number
from counterpoint.errors import UsageError

if TYPE_CHECKING:
    import regex

__all__ = ["infer_kind", "read_answer"]

_MOST_FORMS = 1000
"""So many forms without an answer, counted from the end, are enough: the text commits to nothing."""
_TAIL = 20_000
_SECONDS = 5
"""The user's own pattern may take so long on one text."""
_LONGEST_TEXT = 2000

_FORM = re.compile(
    r"""(?P<json>\\{0,3}["'](?:final_?)?answer\\{0,3}["']\s{0,5}:\s{0,5})
      | (?P<line>(?<![A-Za-z])answer["'*_`~})\]]{0,6}[ \t]{0,3}[*_`~]{0,4}(?:is\b|[:=：])[ \t:=*_`~]{0,20})
      | (?P<hashes>^[ \t>*]{0,8}\#{4}(?!\#))
      | (?P<box>\\f?box(?:ed)?(?![A-Za-z])\s{0,3})""",
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_VOID = re.compile(
    r"\b(?:incorrect|wrong|(?:not|if|whether|unless)(?:\s(?:the|my|your|our|that|this))?)"
    r"(?:\s(?:correct|final|best|right))?[\s*_\"'$]{0,6}$",
    re.IGNORECASE,
)
_STRING = re.compile(
    r"""\\{1,3}"([^"\\\n]{0,2000})\\{1,3}"|"((?:[^"\\]|\\.){0,2000})"|'((?:[^'\\\n]|\\.){0,2000})'"""
)
_LETTER_START = re.compile(
    r"\s*(?:(?i:option|choice)\s+)?\(?([A-J])(?:\)|[.:,]?\s*$|[.:,]\s|\s+(?:because|since)\b)"
)
_NUMBER_START = re.compile(r"[\s$€£¥(\\]*[-+−]?[\s$€£¥]*(?:[0-9]|\.[0-9]|\\[dtc]?frac)")
_BULLET = re.compile(r"\s*(?:[-•*]\s+)?")
_END = re.compile(r"(?<=\w\w)[.!?]\s+(?=[A-Z\"'(“])")
_ABBREVIATION = re.compile(
    r"\b(?:St|Mr|Mrs|Ms|Dr|Prof|Sr|Jr|Mt|Ft|No|vs|etc|Inc|Ltd|Co|Gen|Col|Sgt|Capt|Rev)$"
)
_HEADING = re.compile(r"\d\s+[A-Z]")
_TOKEN = re.compile(r"[^\s,\[\]{}][^,\[\]{}\n]{0,400}")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_BARE_BOX = re.compile(r"[^\s${}]{1,400}")
_JOINED = re.compile(r"[,±]|\\pm|\b(?:or|and|to)\b")
_BEYOND_NUMBERS = re.compile(r"\\[A-Za-z]|[\^√π]")
_NUMERIC = re.compile(r"[\d¼½¾⅐-⅞]")


class _Form(NamedTuple):
    """A place where a text may commit to an answer."""

    start: int
    end: int
    name: str
    group: str
    """What the user's pattern caught; empty for the built-in forms."""


class _Reader:
    """Reads phrases as one kind of answer: ``loosely`` finds it in prose, ``strictly`` takes it bare."""

    def __init__(self, kind: str | None, options: Mapping[str, str] | Iterable[str] | None) -> None:
        if kind not in ("number", "choice", "text", None):
            raise UsageError(f"no kind of answer {kind!r}: it is number, choice or text")
        self.options = options if isinstance(options, Mapping) else {}
        self.letters = alphabet(options) if options or kind == "choice" else "ABCDEFGHIJ"
        self.kind = "choice" if options and kind is None else kind

    def loosely(self, phrase: str) -> str | None:
        if self.kind == "text":
            return _text(phrase)
        if self.kind == "choice":
            return first_letter(phrase, self.letters) or self._by_value(phrase)
        if self.kind == "number" or "=" in phrase or _NUMBER_START.match(phrase):
            found = first_number(phrase)
            if found or self.kind == "number":
                return found.text if found else None
        if _LETTER_START.match(phrase):
            return first_letter(phrase, self.letters)
        return _text(phrase)

    def strictly(self, phrase: str, *, labeled: bool = True) -> str | None:
        if self.kind == "text":
            return None
        if self.kind != "choice":
            found = number(phrase)
            if found or self.kind == "number":
                return found.text if found else None
        return letter(phrase, self.letters, labeled=labeled and self.kind == "choice")

    def briefly(self, value: str) -> str | None:
        """Of a JSON value, which may be any sentence: taken if it starts with the answer or has a ``=``."""
        if self.kind == "text":
            return _whole_text(value)
        starts = "=" in value or _NUMBER_START.match(value) or _LETTER_START.match(value) or self.kind is None
        return self.strictly(value) or (self.loosely(value) if starts else self._by_value(value))

    def _by_value(self, phrase: str) -> str | None:
        said = _text(phrase) if self.kind == "choice" and self.options else None
        same = [name for name, text in self.options.items() if same_answer(said, text)]
        return same[0].upper() if len(same) == 1 else None


def read_answer(
    text: str,
    *,
    kind: str | None = None,
    options: Mapping[str, str] | Iterable[str] | None = None,
    pattern: str | None = None,
    fallback: bool = False,
    gold: str | None = None,
) -> str | None:
    r"""The answer that ``text`` commits to, or None where it commits to none.

    Parameters
    ----------
    text : any text; nothing in it raises.
    kind : ``number``, ``choice``, ``text``; None reads whichever it is.
    options : letters of a choice (``"ABCD"``), or letter to option text (see `read_options`): then an answer
        that equals one option's text counts as its letter. Default A to E.
    pattern : a regular expression with one group, the user's own form beside the built-in ones.
    fallback : take the last number of the text (kind choice: the last line's one letter) where no form holds
        an answer; for a run's final answer and the grading of benchmarks, not for steps.
    gold : for kind text, a message that is nothing but this answer commits to it.

    Returns
    -------
    A number as written in plain digits, an upper-case letter, or a text; None: no commitment.

    Raises
    ------
    UsageError : an unknown ``kind``; a ``pattern`` that is no regular expression with one group, or takes
        more than 5 seconds on the text.

    >>> read_answer("So 3 + 5 = 8.\n**Answer:** $8,000."), read_answer(r"It is \boxed{\frac{2}{4}}.")
    ('8000', '1/2')
    >>> read_answer("The answer is B because a car moves.", kind="choice"), read_answer("I give up.")
    ('B', None)
    """
    reader = _Reader(kind, options)
    end = len(text)
    for form in reversed(_forms(text, pattern)):
        answer = _answer(text, form, end, reader)
        if answer is not None:
            return answer
        end = form.start
    if gold is not None and reader.kind in ("text", None) and normalize(text) == normalize(gold):
        return unwrap(text) or None
    if len(text) <= PHRASE and (answer := reader.strictly(text.strip())):
        return answer
    return _last_resort(text, reader) if fallback else None


def infer_kind(gold: str, task: str = "") -> str:
    """The kind of answer that ``gold`` is.

    A letter A to J of a task that lists options is a choice; one number with optional currency and one unit
    word is a number; everything else is text.

    >>> infer_kind("B", "Pick one: A) 3 B) 4"), infer_kind("$1,000"), infer_kind("B"), infer_kind("3 or 4")
    ('choice', 'number', 'text', 'text')
    """
    if letter(gold, "".join(read_options(task)), labeled=False):
        return "choice"
    return "number" if number(gold) else "text"


def _forms(text: str, pattern: str | None) -> list[_Form]:
    found: deque[_Form] = deque(maxlen=_MOST_FORMS)
    folded = text.casefold()
    if not ("answer" in folded or "box" in folded or "####" in text):  # sooner than by the expression
        matches: Iterable[re.Match[str]] = ()
    else:
        matches = _FORM.finditer(text)
    for match in matches:
        found.append(_Form(match.start(), match.end(), match.lastgroup or "", ""))
    if pattern is None:
        return list(found)
    own: deque[_Form] = deque(maxlen=_MOST_FORMS)
    try:
        for own_match in _compiled(pattern).finditer(text, timeout=_SECONDS):
            own.append(_Form(own_match.start(), own_match.end(), "pattern", own_match[1] or ""))
    except TimeoutError:
        raise UsageError(
            f"answer pattern {pattern!r} took more than {_SECONDS} seconds on a text of {len(text):,} "
            "characters: write it without repeats inside repeats"
        ) from None
    return sorted([*found, *own], key=lambda form: form.start)


def _compiled(pattern: str) -> regex.Pattern[str]:
    import regex  # what the user writes has to end, and only this library can be told when

    try:
        compiled: regex.Pattern[str] = regex.compile(pattern)
    except regex.error as error:
        raise UsageError(f"answer pattern {pattern!r} is no regular expression: {error}") from None
    if compiled.groups != 1:
        raise UsageError(
            f"answer pattern {pattern!r} has {compiled.groups} groups: put the answer in the only one; "
            "write others as (?:...)"
        )
    return compiled


def _answer(text: str, form: _Form, end: int, reader: _Reader) -> str | None:
    if form.name == "pattern":
        return reader.loosely(form.group)
    if form.name in ("line", "box") and _VOID.search(text[max(0, form.start - 40) : form.start]):
        return None
    before = text[max(0, form.start - PHRASE) : form.start].rpartition("\n")[2]
    if form.name == "line" and ERROR.search(before):
        return None
    if form.name == "json":
        return _from_json(text, form.end, reader)
    if form.name == "box":
        return _from_box(text, form.end, reader)
    first, *below = text[form.end : min(end, form.end + _LONGEST_TEXT)].split("\n")
    if form.name == "hashes":
        return None if _HEADING.search(first) else reader.strictly(first, labeled=False)
    if _says_something(first):
        return reader.loosely(first)
    line = _BULLET.sub("", next(filter(_says_something, below), ""), count=1)
    return _text(line) if reader.kind == "text" else reader.strictly(line.rpartition("=")[2])


def _says_something(line: str) -> bool:
    return any(map(str.isalnum, line))


def _from_json(text: str, start: int, reader: _Reader) -> str | None:
    quoted = _STRING.match(text, start)
    if not quoted:
        token = _TOKEN.match(text, start)
        return reader.briefly(token[0]) if token else None
    content = next(group for group in quoted.groups() if group is not None)
    if "\\" in content:
        with contextlib.suppress(ValueError):
            content = str(json.loads(f'"{content}"', strict=False))
    return reader.briefly(content)


def _from_box(text: str, start: int, reader: _Reader) -> str | None:
    if text[start : start + 1] != "{":
        bare = _BARE_BOX.match(text, start)
        return reader.strictly(bare[0]) if bare else None
    depth = 0
    for brace in _BRACE.finditer(text, start, start + 2 * PHRASE):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0 and brace[0] == "}":
            content = text[start + 1 : brace.start()]
            break
    else:  # cut off
        return reader.strictly(text[start + 1 : start + PHRASE].split("\n")[0])
    answer = _whole_text(content) if reader.kind == "text" else reader.loosely(content)
    return _expression(content) if answer is None and reader.kind == "number" else answer


def _expression(content: str) -> str | None:
    """A box's content beyond plain numbers, for `same_answer` to judge."""
    content = unwrap(content.rpartition("=")[2])
    if _JOINED.search(content) or not _BEYOND_NUMBERS.search(content) or not is_expression(content):
        return None
    return content


def _text(line: str) -> str | None:
    """The text that an answer line's rest commits to: its first sentence, without "not" before it."""
    line = line.strip().split("\n", 1)[0][:_LONGEST_TEXT]
    if NEGATED.match(line.lstrip(" *_`\"'(")):
        return None
    for end in _END.finditer(line):
        if not _ABBREVIATION.search(line, max(0, end.start() - 6), end.start()):
            line = line[: end.start()]
            break
    return _whole_text(line)


def _whole_text(content: str) -> str | None:
    answer = unwrap(content)
    return None if normalize(answer) in NOTHING or ERROR.search(answer) else answer


def _last_resort(text: str, reader: _Reader) -> str | None:
    """The last number, or the last line's one letter, after the last error message of the text's tail."""
    tail = text[-_TAIL:]
    if len(text) > _TAIL:
        tail = tail[re.search(r"\s|$", tail).start() :]  # type: ignore[union-attr]
    start = 0
    for error in ERROR.finditer(tail):
        start = error.end()
    lines = tail[start:].split("\n")
    if start:
        del lines[0]
        while lines and lines[0][:1] in (" ", "\t"):
            del lines[0]
    if reader.kind == "choice":
        return last_letter(reversed(lines), reader.letters)
    if reader.kind == "text":
        return None
    found = (last_number(line) for line in reversed(lines) if _NUMERIC.search(line))
    return next((one.text for one in found if one), None)
