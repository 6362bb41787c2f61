"""Are two answers the same? Numbers exactly, letters by name, texts normalized, LaTeX by math-verify.

math-verify (and with it SymPy, about a second to load) is asked only where both answers are short
mathematical expressions, at least one of them beyond plain numbers; what could take it long to evaluate
(functions, high or stacked powers, roots of variables) is not sent to it and is unequal.
"""

from __future__ import annotations

import logging
import re
import string
import unicodedata
from collections.abc import Callable
from functools import cache
from itertools import accumulate

from counterpoint.answers.choices import letter
from counterpoint.answers.numbers import number

__all__ = ["NOTHING", "is_expression", "normalize", "same_answer", "unwrap"]

NOTHING = frozenset({"", "none", "null", "nan", "n/a", "undefined"})
"""Normalized texts that stand for the lack of an answer."""

_PAIRS = {"(": ")", "[": "]", "{": "}", '"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "$": "$"}
_OPENERS = {closer: opener for opener, closer in _PAIRS.items()}
_EDGE = " \t\r\n.,;:!?*_`~。，"
_ARTICLE = re.compile(r"(?<!\S)(?:a|an|the)\s+(?=\S)")
_DRESS = re.compile(r"\\(?:text(?:bf|it|rm|tt)?|math(?:rm|bf|sf|tt)|mbox|operatorname)\s?\{([^{}]{0,200})\}")
_BOX = re.compile(r"\\f?box(?:ed)?(?![A-Za-z])\s?")

_LONGEST = 100
_DEEPEST = 6
_MOST_LAYERS = 20
_MOST_ROOTS = 4
_MOST_VARIABLES = 3
_COMMANDS = "[dct]?frac|sqrt|pi|cdot|times|div|left|right|infty|cup|cap|circ"
_EXPRESSION = re.compile(
    rf"(?:\\(?:{_COMMANDS})(?![A-Za-z])|\\[{{}},;! ]"
    r"|[a-zA-Z]{1,2}(?![a-zA-Z])|[-0-9+*/^(){}\[\].,=√π\s])+"
)
_BEYOND_NUMBERS = re.compile(r"\\[A-Za-z]|\^|[√π]")
_POWER = re.compile(r"\^\s?(?:[0-9]|\{\s?-?[0-9]{1,2}\s?\}|\{?\\circ\}?)(?!\s?\^)")
_SMALL_POWER = re.compile(r"\^\s?(?:[0-4a-zA-Z]|\{\s?-?[0-4a-zA-Z]\s?\})(?!\s?\^)")
_OF_GROUP = re.compile(r"[)}\]]\s?\^")
_VARIABLE = re.compile(r"(?<![a-zA-Z\\])[a-zA-Z]{1,2}(?![a-zA-Z])")
_ROOT = re.compile(r"\\sqrt|√")
_PI = re.compile(r"\\pi|π")
_HUGE = re.compile(r"[0-9]{16}")


def same_answer(a: str | None, b: str | None, *, kind: str | None = None) -> bool:
    """Are ``a`` and ``b`` the same answer of ``kind`` (number, choice, text; None: whatever both are)?

    Numbers are equal iff they are equal as fractions, without tolerance; currency, separators, ``%`` and one
    unit word do not count. Texts are equal after NFKC, case folding, and without articles and end
    punctuation. None, an empty text and the text "None" equal nothing.

    >>> same_answer("145", "145.0"), same_answer("$1,000", "1000 dollars"), same_answer("(b)", "B")
    (True, True, True)
    >>> same_answer("25", "5"), same_answer("0.33", "1/3"), same_answer("The Hague.", "the hague")
    (False, False, True)
    """
    if a is None or b is None:
        return False
    if kind != "text":
        one, two = number(a), number(b)
        if one and two:
            return one.value == two.value
    if kind in ("choice", None):
        one_letter, two_letter = letter(a, string.ascii_uppercase), letter(b, string.ascii_uppercase)
        if (one_letter and two_letter) or kind == "choice":
            return one_letter is not None and one_letter == two_letter
    first, second = normalize(a), normalize(b)
    if first == second:
        return first not in NOTHING
    return _same_expression(a, b)


def normalize(text: str) -> str:
    """``text`` as texts are compared: NFKC, case folded, without articles, markup and end punctuation."""
    folded = unwrap(unicodedata.normalize("NFKC", text).casefold())
    return " ".join(_ARTICLE.sub("", folded).split())


def unwrap(text: str) -> str:
    """``text`` without the markup, quotes, brackets and punctuation around it; what stands inside is kept."""
    if "\\" in text:
        text = _DRESS.sub(r"\1", _BOX.sub("", text))
    for _ in range(_MOST_LAYERS):
        before = text
        text = text.strip(_EDGE)
        if len(text) > 1 and _PAIRS.get(text[0]) == text[-1] and text[-1] not in text[1:-1]:
            text = text[1:-1]
        elif text and text[-1] in _OPENERS and _OPENERS[text[-1]] not in text[:-1]:
            text = text[:-1]
        if text == before:
            break
    return text


def is_expression(text: str) -> bool:
    """Is ``text`` one short mathematical expression, safe to evaluate?"""
    if len(text) > _LONGEST or not _EXPRESSION.fullmatch(text) or _HUGE.search(text):
        return False
    variables, roots = set(_VARIABLE.findall(text)), len(_ROOT.findall(text))
    powers = (_SMALL_POWER if variables or roots or _PI.search(text) else _POWER).findall(text)
    return (
        len(variables) <= _MOST_VARIABLES
        and roots <= (0 if variables else _MOST_ROOTS)
        and text.count("^") == len(powers)
        and len(_OF_GROUP.findall(text)) <= 2
        and max(accumulate((char in "([{") - (char in ")]}") for char in text), default=0) <= _DEEPEST
    )


def _same_expression(a: str, b: str) -> bool:
    a, b = unwrap(a), unwrap(b)
    if not (_BEYOND_NUMBERS.search(a) or _BEYOND_NUMBERS.search(b)):
        return False
    if not (is_expression(a) and is_expression(b)):
        return False
    parse, verify = _math_verify()
    try:
        return bool(verify(parse(a), parse(b)))
    except (
        Exception
    ):  # a parser of a third party on hostile text: whatever it raises, nothing was shown equal
        return False


@cache
def _math_verify() -> tuple[Callable[[str], object], Callable[[object, object], bool]]:
    """math-verify's two functions without their time limit, which needs signals and so the main thread."""
    import math_verify

    for part in ("parser", "grader"):  # each warns once that there is no time limit
        logging.getLogger(f"math_verify.{part}").setLevel(logging.ERROR)

    def parse(text: str) -> object:
        return math_verify.parse(f"${text}$", parsing_timeout=None)

    def verify(a: object, b: object) -> bool:
        return bool(math_verify.verify(a, b, float_rounding=12, timeout_seconds=None))

    return parse, verify
