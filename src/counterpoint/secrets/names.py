r"""Secrets that are known by their name: what stands after ``password``, ``api_key``, ``token`` and the like.

Conventions
-----------
* A name and its value are linked as in `_LINK`: assigned, an option of a command, a pair, an element of XML.
* A value in quotes may be anything that is no placeholder; one that is not needs letters and digits, since
  ``password: required`` is prose. Names and values are also found in JSON within a string (``\"``, ``\n``).
* No value holds a quote, a bracket or a brace, and no number is one, so that JSON stays JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from counterpoint.secrets.forms import MIXED, Rule, runs

__all__ = ["INDEX", "LONGEST_NAME", "NAMES", "describes", "named", "paired"]

INDEX = r"(?:[.\[][0-9]{1,4}\]?)?"
"""What may stand behind the name of an attribute."""
LONGEST_NAME = 64
"""Characters of a key that are looked at, from its end."""

_QUOTE = r"""\\{0,3}["']"""
_IS = rf"(?:{_QUOTE}\]?)?[ \t]{{0,3}}(?::=|=>|[:=])(?:\*\*)?[ \t]{{0,3}}`?"
_OF = rf"(?:{_QUOTE})?(?:,|\\n|\s){{1,40}}(?:{_QUOTE})?value(?:{_QUOTE})?\s{{0,3}}[:=]\s{{0,3}}"
_OF += rf"(?:\{{\s{{0,40}}{_QUOTE}stringValue{_QUOTE}\s{{0,3}}:\s{{0,3}})?"
_ITEM = r"""[^\s"'\\<>{}$\[\]*]"""


_PART = r"(?<=[A-Za-z0-9_. ?&-]WORD)"
"""The word is the end of a longer name."""


def _cased(*words: str, then: str) -> dict[str, re.Pattern[str]]:
    """The words in lower, title and upper case, each its own anchor."""
    cases = {case for word in words for case in (word, word.title(), word.upper())}
    return {
        case: re.compile(rf"(?P<before>(?P<word>{case}){then.replace('WORD', case)}", re.DOTALL)
        for case in sorted(cases)
    }


def _valued(*words: str, more: str = "", end: str = "s?") -> dict[str, re.Pattern[str]]:
    """The words, a link, and the value; ``more`` may stand in a value that is not quoted."""
    link = rf"{end}(?:{_IS}(?P<list>\[\s{{0,40}}(?={_QUOTE}))?|(?P<of>{_OF})"
    link += rf"|(?P<pair>{_QUOTE}\s{{0,3}},\s{{0,40}}(?=b?\\{{0,3}}[\"']))|(?P<option>(?<=-WORD)[ \t]{{1,3}})"
    link += r"|>(?=[^<>\s]{4,400}</))"
    quoted = rf"(?:b(?=[\"']))?(?:(?P<quote>{_QUOTE})(?={_ITEM}{{4,400}}(?P=quote)))?)"
    items = rf"{_ITEM}++(?(list)(?:(?P=quote)\s{{0,40}},\s{{0,40}}(?P=quote){_ITEM}++(?=(?P=quote)))*+)"
    return _cased(
        *words, then=rf"{link}{quoted}(?P<value>(?(quote){items}|[A-Za-z0-9_+/=~%{more}-]++(?!\.\w|[(\[])))"
    )


_PAIR = r"[A-Za-z0-9_.~-]{1,64}+=[A-Za-z0-9_.~%+/=:|&!-]*+"
_PLACEHOLDER = re.compile(
    r"(?i:your|xxx|example|sample$|placeholder|change_?me|string\??$|password$|required$|optional$)"
)
_NUMBER = re.compile(r"-?[0-9]+(?:[eE][+-]?[0-9]+)?\Z")
_PATH = re.compile(r"[/~.]|[A-Za-z]:[\\/]")
_KEY_OF = re.compile(r"(?i:api|access|secret|private|auth|signing|encryption|master|subscription)[-_. ]?$")
_ACCOUNT_OF = re.compile(r"(?:Account|Storage)$")
_ENVIRONMENT = re.compile(r"[A-Z0-9]_$")
_SECRET_OF = re.compile(
    r"(?i:client|app|consumer|shared|webhook|signing|access|refresh|auth|api|bearer)[-_. ]?$"
)
_PASS_OF = re.compile(
    r"(?i:db|database|sql|mysql|postgres|pg|mongo|redis|ldap|smtp|imap|mail|email|s?ftp|ssh|user|admin|root|proxy"
    r"|login|auth)[-_.]?$"
)
_SESSION = re.compile(r"(?i:sess|sid|auth|token|jwt|csrf|login)[^=]{0,20}=[^;]{0,200}?[A-Za-z]{16}")
_FLAG = re.compile(r"(?<![\w-])--(?:[a-z0-9]{1,12}-){0,3}$")
_FIRST = re.compile(rf"[\[(]\s{{0,40}}b?{_QUOTE}[\w.-]*$")
_ARGUMENT = re.compile(rf"{_QUOTE}--(?:[a-z0-9]{{1,12}}-){{0,3}}$")
_WHOLE = re.compile(r"""["'][\w.$-]*$""")
"""A name that stands in its quotes alone, up to the telling word."""
_LAST = re.compile(rf"{_QUOTE}\s{{0,40}},?\s{{0,40}}[\])]")

_Judge = Callable[[str, str, bool], bool]
"""Is it a secret: what stands before the telling word, the value, and whether its end is known (quoted)?"""


def _in_text(usual: _Judge, **by_word: _Judge) -> Callable[[re.Match[str]], bool]:
    def accepts(found: re.Match[str]) -> bool:
        judge = by_word.get(found["word"].lower(), usual)
        start, value, quoted = found.start(), found["value"], bool(found["quote"])
        before = found.string[max(0, start - 16) : start]
        if found["option"] is not None:
            return judge(before, value, False) and bool(_FLAG.search(_around(found)))
        if found["pair"] is not None:
            return judge(before, value, False) and _is_pair(found)
        if found["list"] is not None:
            return any(judge(before, item, True) and bool(MIXED.match(item)) for item in _items(value))
        if found["of"] is not None:
            return judge(before, value, quoted and bool(_WHOLE.search(_around(found))))
        return judge(before, value, quoted)

    return accepts


def _around(found: re.Match[str]) -> str:
    return found.string[max(0, found.start() - LONGEST_NAME) : found.start()]


def _items(value: str) -> list[str]:
    return [item for item in re.split(r"""[\s"'\\,]+""", value) if item]


def _is_pair(found: re.Match[str]) -> bool:
    """``("x-api-key", "...")`` and nothing else in the brackets, or ``"--api-key", "..."`` of arguments."""
    around = _around(found)
    if _ARGUMENT.search(around):
        return True
    alone = _FIRST.search(around) and _LAST.match(found.string, found.end())
    return bool(alone) and _is_header(around, found["value"])


def _is_header(before: str, value: str) -> bool:
    """A pair of words may be a list of names: is the first a header's, or the second no word?"""
    return before.endswith("-") or (runs(value) and MIXED.match(value) is not None)


def _is_password(before: str, value: str, quoted: bool) -> bool:
    if _PLACEHOLDER.match(value):
        return False
    return (quoted and len(value) >= 4) or _looks_secret(value, 6)


def _is_pwd(before: str, value: str, quoted: bool) -> bool:
    """A password, and not the folder that ``pwd`` prints."""
    return _PATH.match(value) is None and (quoted or "/" not in value) and _is_password(before, value, quoted)


def _is_pass(before: str, value: str, quoted: bool) -> bool:
    return bool(_PASS_OF.search(before)) and _is_password(before, value, quoted)


def _is_key(before: str, value: str, quoted: bool) -> bool:
    """An API key by its name; by an environment variable's name only where the value looks like a key."""
    if _KEY_OF.search(before):
        return _looks_secret(value, 8) or (quoted and len(value) >= 8 and not _PLACEHOLDER.match(value))
    if _ACCOUNT_OF.search(before):
        return _looks_secret(value, 40)
    return bool(_ENVIRONMENT.search(before)) and _looks_secret(value, 12)


def _is_token(before: str, value: str, quoted: bool) -> bool:
    if quoted and len(value) >= 8 and _SECRET_OF.search(before):
        return not _PLACEHOLDER.match(value)
    return _looks_secret(value, 12)


def _is_cookie(before: str, value: str, quoted: bool) -> bool:
    """Under a key any ``name=value``; in text, where ``cookie: a=b`` may be prose, a value like a key."""
    if quoted:
        return "=" in value or _looks_secret(value, 12)
    return any(
        _looks_secret(pair.partition("=")[2], 8) or _SESSION.search(pair) is not None
        for pair in value.split(";")
    )


def _looks_secret(value: str, least: int) -> bool:
    """Long enough, with letters and digits, and neither a placeholder nor a number."""
    return (
        len(value) >= least
        and bool(MIXED.match(value))
        and not _PLACEHOLDER.match(value)
        and not _NUMBER.match(value)
    )


_SCHEMED = rf"(?:(?:{_QUOTE}\]?)?\s{{0,3}}[:=,](?:\*\*)?\s{{0,3}}`?|{_OF})(?:b(?=[\"']))?(?:{_QUOTE})?"

NAMES: tuple[Rule, ...] = (
    Rule(
        "authorization",
        {
            **_cased(
                "authorization",
                then=rf"{_SCHEMED}(?:(?i:bearer|basic|token|apikey|api-key)\s{{1,3}}"
                r"|(?i:bot|ssws|dpop|negotiate|ntlm)\s{1,3}(?=[A-Za-z._~+/=-]{0,99}[0-9])))[A-Za-z0-9._~+/=-]++",
            ),
            **_cased("bearer", then=r"\s{1,3})(?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{16,}"),
        },
    ),
    Rule(
        "cookie",
        _cased("cookie", then=rf"(?:{_IS}|{_OF})(?:{_QUOTE})?)(?P<value>{_PAIR}(?:;[ ]?{_PAIR})*+)"),
        lambda found: _is_cookie("", found["value"], False),
    ),
    Rule(
        "password",
        {
            **_valued("password", "passwd", "passphrase", "pwd", more="@!#^"),
            **_valued("pass", more="@!#^", end=_PART),
        },
        _in_text(_is_password, pwd=_is_pwd, **{"pass": _is_pass}),
    ),
    Rule("api-key", _valued("key", end=rf"{_PART}s?"), _in_text(_is_key)),
    Rule("token", {**_valued("token", end=""), **_valued("secret", "authorization")}, _in_text(_is_token)),
)
"""In the order they are applied, after all known by their form."""

_NAME = re.compile(
    rf"(?:(?P<password>passwords?|passwds?|passphrases?)|(?P<pwd>pwds?)|(?P<passed>pass)|(?P<key>keys?)"
    rf"|(?P<token>token|secrets?)|(?P<authorization>authorization)|(?P<cookie>cookies?)){INDEX}\Z",
    re.IGNORECASE | re.ASCII,
)
_DESCRIBES = re.compile(
    r"(?:\A|[_.$-])(?:type|title|description|format|pattern|ref|name|in|id|at|url|scheme|scopes?|status|env)\Z",
    re.IGNORECASE,
)
"""Keys of JSON Schema and OpenAPI, and of what is known about a key: none holds it."""
_JUDGES: dict[str, tuple[str, _Judge]] = {
    "password": ("password", _is_password),
    "pwd": ("password", _is_pwd),
    "passed": ("password", _is_pass),
    "key": ("api-key", _is_key),
    "token": ("token", _is_token),
    "authorization": ("token", _is_token),
    "cookie": ("cookie", _is_cookie),
}
_SCHEME = re.compile(
    r"""(?P<before>[\["'\s]{0,4}(?i:bearer|basic|token|apikey|api-key|digest|negotiate|ntlm|dpop|hawk"""
    r"""|aws4-hmac-sha256)\s{1,3})(?P<value>\S.*?)(?P<after>(?:["']\])?)\Z""",
    re.DOTALL,
)
_STANDS_FOR = re.compile(
    r"""\s*(?:<[^<>]*>|\$?\{{1,2}[^{}"]*\}{1,2}|\$[A-Z0-9_]+|[*\u2022xX.-]{3,}|\[[A-Za-z: _-]*\]"""
    r"""|(?i:true|false|null|none|yes|no|redacted|masked|filtered))\s*\Z"""
)
"""A template, a flag, or what a value was masked by, here or elsewhere."""


def describes(key: str) -> bool:
    """Whether what stands under ``key`` says what a secret is, instead of being one."""
    return _DESCRIBES.search(key[-LONGEST_NAME:]) is not None


def paired(name: str, value: str) -> str:
    """The name that a value is judged by, where a list holds just these two; else ``""``."""
    end = name[-LONGEST_NAME:]
    found = _NAME.search(end)
    if found is None:
        return ""
    return name if found["authorization"] or _is_header(end[: found.start()], value) else ""


@lru_cache(maxsize=4096)  # spans and labels repeat their keys
def named(key: str) -> Callable[[str], str] | None:
    """How to mask a value under a key of this end; None where the key does not tell."""
    found = _NAME.search(key)
    if found is None:
        return None
    word = str(found.lastgroup)
    name, judge = _JUDGES[word]
    before = key[max(0, found.start() - 16) : found.start()]

    def masked(value: str) -> str:
        parts = _SCHEME.match(value) if word == "authorization" else None
        if parts is not None:
            stays = _STANDS_FOR.match(parts["value"])
            return value if stays else f"{parts['before']}[secret:authorization]{parts['after']}"
        return f"[secret:{name}]" if judge(before, value, True) and not _STANDS_FOR.match(value) else value

    return masked
