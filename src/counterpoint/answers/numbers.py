"""Numbers in prose and LaTeX: strict about what is one number, never guessing at the rest.

Conventions
-----------
* A phrase is at most 400 characters, a number at most 300 digits; longer ones are not read.
* A number keeps its written form: ``0.5`` and ``1/2`` are one value and two texts.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

__all__ = ["ERROR", "NEGATED", "PHRASE", "Number", "clip", "first_number", "last_number", "number", "plain"]

PHRASE = 400
"""Longest phrase that is looked at, in characters."""

_MAX_DIGITS = 300
_CURRENCY = "$€£¥₹₩₽₺₫₦฿¢"
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_CODES = r"(?:USD|EUR|GBP|JPY|CNY|RMB|INR|CHF|CAD|AUD|Rs\.?)"

ERROR = re.compile(
    r"""Traceback\ \(most\ recent\ call | \bFile\ "[^"\n]{0,300}",\ line\ \d
      | (?:Error|Exception|Warning)\b\ ?[:(] | ^[^\w\n]{0,20}(?i:error|exception|fatal|panic)\b
      | (?i:\b(?:exit\ ?code|exit\ status|status\ code|http)\b[:= ]{0,3}\d)
      | \(<\w{1,30}>,\ line\ \d | \bline\ \d{1,9},\ in\b
      | (?i:\b(?:error|invalid|unexpected|failed)\b[^\n]{0,80}\bline\ \d)""",
    re.VERBOSE | re.MULTILINE,
)
"""An interpreter's or a tool's error message: what stands in it is nobody's answer."""

NEGATED = re.compile(
    r"(?i:\b(?:not|never|neither|nor|cannot|incorrect|wrong|unknown|unclear|undefined|impossible)\b|n['’]t\b)"
)
"""Words before a value that take the commitment back."""

_BEYOND_ASCII = str.maketrans(
    {
        **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
        **dict.fromkeys("\u2212\u2010\u2011\u2012\u2013\ufe63", "-"),
        **dict.fromkeys("\u00a0\u2007\u2009\u202f\u3000", " "),
        "\u2044": "/",
        "\u3001": ",",
        "\u3002": ".",
        "\u200b": "",
        "\ufeff": "",
    }
)
_DIGIT = re.compile(r"[^\D0-9]")
_POWER = re.compile(r"[⁰¹²³⁴-⁹⁻]{1,9}")
_VULGAR = re.compile(r"(\d?)([¼½¾⅐-⅞])")

_NUMERAL = r"[+-]?[0-9][0-9,.]{0,60}"
_LATEX: list[tuple[re.Pattern[str], str]] = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (
            r"\\(?:left|right|displaystyle|math(?:rm|bf|sf|tt)|text(?:bf|it|rm|tt)?|mbox|operatorname)(?![A-Za-z])",
            "",
        ),
        (r"\\f?box(?:ed)?(?![A-Za-z])", ""),
        (r"\{\\?,(?:\\!)?\}|,\\!", ","),
        (r"\\!", ""),
        (r"\\[,;: ]|~|\\q?quad(?![A-Za-z])|&nbsp;", " "),
        (r"\\([$%#&_])", r"\1"),
        (r"\\[()\[\]]", " "),
        (r"\^\s?\{?\s?\\(?:circ|degree)(?![A-Za-z])\}?|\\degree(?![A-Za-z])", "°"),
        (r"(?<=[0-9])\s?(?=\\[dtc]?frac)", " "),
        (rf"\\[dtc]?frac\s?\{{\s?({_NUMERAL})\s?\}}\s?\{{\s?({_NUMERAL})\s?\}}", r"\1/\2"),
        (r"\\[dtc]?frac\s?\{?([0-9])\}?\s?\{?([0-9])\}?(?![0-9])", r"\1/\2"),
        (r"\\(?:times|cdot|ast)(?![A-Za-z])", "×"),
        (r"\\div(?![A-Za-z])", "÷"),
        (r"\\pm(?![A-Za-z])", "±"),
        (r"\\pi(?![A-Za-z])", "π"),
        (r"\\sqrt(?![A-Za-z])", "√"),
        (r"\\(?:approx|simeq|sim)(?![A-Za-z])", "≈"),
    )
]
_MARKUP: list[tuple[re.Pattern[str], str]] = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?<=[0-9])\*\*(?=[0-9])", "^"),
        (r"\*\*|__|`|</?[A-Za-z][^<>]{0,40}>", ""),
        (r"(?<!\S)\*(?=\S)|(?<=\S)\*(?=[\s.,;:!?)]|$)", ""),
        (r"(?<=[0-9])\s?[×x*·]\s?10\s?\^\s?\{?\s?([+-]?[0-9]{1,4})\}?", r"e\1"),
        (r"(?<![0-9.^a-zA-Z])10\s?\^\s?\{?\s?([+-]?[0-9]{1,4})\}?", r"1e\1"),
        (r"\b(?:US|CA|AU|HK|NZ)\$", "$"),
        (rf"([+-])\s?[{_CURRENCY}]\s?", r"\1"),
        (rf"[{_CURRENCY}]", " "),
        (r"[{}]", ""),
    )
]

_INT = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]{1,3}(?:[ ][0-9]{3})+(?![0-9])|[0-9]+)"
_NUMBER = re.compile(
    rf"""(?<![A-Za-z0-9_^])(?<![0-9][.,:/])(?<![A-Za-z]-)
         (?:(?<![0-9)\]-])(?P<sign>[-+]))?
         (?:(?P<whole>[0-9]{{1,9}})[ ]{{1,2}}(?=[0-9]{{1,9}}/[0-9]))?
         (?P<up>{_INT}(?:\.[0-9]+)?|\.[0-9]+)
         (?:[eE](?P<power>[-+]?[0-9]{{1,12}})(?!\w|\.[0-9]))?
         (?:[ ]?/[ ]?(?P<down>[-+]?{_INT}(?:\.[0-9]+)?))?
         (?:[ ]?(?P<scale>thousand|million|billion|trillion)\b)?""",
    re.VERBOSE,
)
_GOES_ON = re.compile(
    r"""[.,:/][0-9] | [eE][-+]?[0-9]
      | [xyzni](?![^\W\d_])
      | [ ]?(?:pi\b|π|√|sqrt\b|∞)
      | [ ]{0,3}[-+×*÷/^±–x·][ ]{0,3}[0-9(\\√π.]
      | [ ]?[^\W\d_]{1,20}[ ]{0,3}[-+×*÷][ ]{0,3}[0-9(]
      | [ ]{0,3},?[ ]{0,3}(?:or|and|to|through|&)[ ]{1,3}[-+]?[0-9]
      | ,[ ]{1,3}[-+]?[0-9][0-9.]{0,30}[ ]?(?:,|and\b|or\b|[)\]]|$)
      | [ ]{0,3}\\[A-Za-z]
      | [ ]{0,3}\^""",
    re.VERBOSE,
)
"""After a number: it was only part of an expression, a range or a list."""
_COMES_FROM = re.compile(
    r"""(?:[±√∞≤≥^*×÷+/] | (?<![=-])[<>]=? | [\w)]\s?- | \\[A-Za-z]{1,20})\s{0,2}$
      | [A-Za-z_]\([^()\n]{0,60}$ | [\w)]\[$""",
    re.VERBOSE,
)
"""Before a number: the same."""
_MINUS = re.compile(r"^[\s:]{0,9}-\s{1,3}(?=[0-9])")
_CUT = re.compile(r"[.,:/][0-9]")
_ORDINAL = re.compile(r"(?:st|nd|rd|th)\b")
_LABEL = re.compile(
    r"\b(?:line|step|agent|question|problem|equation|part|round|solution|option|figure|table|page)[ ]?[#(]?$",
    re.IGNORECASE,
)
"""Before a number: it counts lines or steps, it answers nothing."""
_BEFORE = re.compile(rf"[\s(\[\"'“‘:≈=]*(?:{_CODES}\s?)?")
_AFTER = re.compile(
    r"""[ ]?(?:[%°]|(?![xyzni]\b|pi\b|π|(?:or|and|to|but|plus|minus|times)\b)[°µ]?[^\W\d_][^\W\d_.]{0,23}
        (?:/[^\W\d_]{1,12})?(?:\^[23])?)?[\s)\]\"'”’.,;:!]*""",
    re.VERBOSE,
)
_BARE = re.compile(r"-?[1-9][0-9]{0,17}|0")
_ASCII_DIGIT = re.compile(r"[0-9]")
_REASON = re.compile(r"(?i:\b(?:because|since|given that)\b)")
_SENTENCE = re.compile(r"(?<=[0-9])[.!?;]\s|[.!?;]\s+(?=[A-Z(])")


@dataclass(frozen=True)
class Number:
    """A number as read: its canonical text and its exact value."""

    text: str
    value: Fraction


def clip(phrase: str) -> str:
    """The start of ``phrase`` that is looked at, without a word cut in two."""
    return phrase if len(phrase) <= PHRASE else phrase[:PHRASE].rpartition(" ")[0]


def plain(phrase: str) -> str:
    """``phrase`` without markup, currency and LaTeX dress, in ASCII digits and signs; meaning is kept."""
    if not phrase.isascii():
        phrase = _POWER.sub(lambda found: "^" + unicodedata.normalize("NFKC", found[0]), phrase)
        phrase = _VULGAR.sub(lambda found: f"{found[1]} {unicodedata.normalize('NFKC', found[2])}", phrase)
        phrase = phrase.translate(_BEYOND_ASCII)
        phrase = _DIGIT.sub(lambda found: str(unicodedata.decimal(found[0], found[0])), phrase)
    if "\\" in phrase:
        for pattern, replacement in _LATEX:
            phrase = pattern.sub(replacement, phrase)
    for pattern, replacement in _MARKUP:
        phrase = pattern.sub(replacement, phrase)
    return phrase


def number(text: str) -> Number | None:
    """The number that ``text`` is, with at most a currency and one unit word beside it; else None.

    >>> number("$1,234.50").text, number("35 cm").text, number("1 1/2").value, number("3 or 4")
    ('1234.5', '35', Fraction(3, 2), None)
    """
    if _BARE.fullmatch(text):
        return Number(text, Fraction(text))
    if len(text) > PHRASE or (text.isascii() and not _ASCII_DIGIT.search(text)):
        return None
    phrase = plain(text).strip()
    before = _BEFORE.match(phrase)
    found = _NUMBER.match(phrase, before.end() if before else 0)
    if not found or _ORDINAL.match(phrase, found.end()) or not _AFTER.fullmatch(phrase, found.end()):
        return None
    return _value(found)


def first_number(phrase: str) -> Number | None:
    """The number that an answer line's rest commits to: after its last ``=``, else the first; else None.

    None also where a "not" comes first, and where the number is only part of an expression, range or list.
    """
    phrase = _MINUS.sub("-", plain(clip(phrase)))
    if ERROR.search(phrase):
        return None
    phrase = _SENTENCE.split(_REASON.split(phrase, maxsplit=1)[0], maxsplit=1)[0]
    for start in (phrase.rfind("=") + 1, 0):
        for found in _NUMBER.finditer(phrase, start):
            if _ORDINAL.match(phrase, found.end()) or _LABEL.search(phrase, 0, found.start()):
                continue
            before = phrase[: found.start()]
            if NEGATED.search(before) or _COMES_FROM.search(before) or _GOES_ON.match(phrase, found.end()):
                return None
            return _value(found)
    return None


def last_number(line: str) -> Number | None:
    """The last number of a line of prose, if it is one."""
    line = plain(line)
    for found in reversed(list(_NUMBER.finditer(line))):
        if _ORDINAL.match(line, found.end()) or _LABEL.search(
            line, max(0, found.start() - 20), found.start()
        ):
            continue
        return None if _CUT.match(line, found.end()) else _value(found)
    return None


def _value(found: re.Match[str]) -> Number | None:
    if found.end() - found.start() > _MAX_DIGITS:
        return None
    sign = "-" if found["sign"] == "-" else ""
    power = int(found["power"] or 0) + _SCALES.get(found["scale"] or "", 0)
    up = _digits(found["up"])
    if abs(power) > _MAX_DIGITS:
        return None
    if found["down"] is None:
        text = f"{Decimal(f'{up}e{power}'):f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        value = Fraction(text)
        return Number(sign * bool(value) + text, -value if sign else value)
    down = Fraction(_digits(found["down"]))
    if not down:
        return None
    value = Fraction(up) * Fraction(10) ** power / down + int(found["whole"] or 0)
    value = -value if sign else value
    return Number(str(value), value)


def _digits(text: str) -> str:
    return text.replace(",", "").replace(" ", "")
