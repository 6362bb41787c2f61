r"""Values that look like keys, masked by every writer unless the user keeps them.

`RULES` is the whole list, one line a rule; docs/secrets.md is the same for readers. Each value is replaced by
a hint of its kind, ``[secret:openai]``; what stands around it (a header's name, quotes, a URL's host) stays.

Conventions
-----------
* Masking is idempotent, raises on no text, and leaves ordinary prose, code, hashes, UUIDs and images alone.
* A value that stands under a key of its own (an attribute, a label) is judged as in JSON, by both.
* Keys are also found in JSON within a string, where a quote is ``\"`` and a line break ``\n``.
* It is called on every string that is written, so a text without any rule's anchor costs substring tests
  only; every pattern starts with its anchor and stays linear on hostile text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

__all__ = ["RULES", "Rule", "mask", "mask_value", "may_hold_secret", "telling_key"]


@dataclass(frozen=True)
class Rule:
    """One kind of secret and how it is found: literal anchors, each with the pattern that starts there."""

    name: str
    """The kind, as the hint says it."""
    patterns: dict[str, re.Pattern[str]]
    """Anchor to pattern; what the groups named ``before`` and ``after`` catch stays."""
    accepts: Callable[[re.Match[str]], bool] = lambda found: True
    """The last word on a match, for what a pattern says badly."""
    cased: bool = False
    """The anchors are words, each in lower, title and upper case."""


def mask(text: str) -> str:
    """``text`` with every value that looks like a key replaced by a hint of its kind.

    >>> mask("Authorization: Basic dXNlcjpwYXNz"), mask("a task-based sk-learn pipeline")
    ('Authorization: Basic [secret:authorization]', 'a task-based sk-learn pipeline')
    """
    if _may_hold_key(text):
        text = _masked(text, _BY_LITERAL)
    if _may_name_key(text):
        text = _masked(text, _BY_WORD)
    return text


def mask_value(key: str, value: Any, *, within: str = "") -> Any:
    """``value`` with every secret masked, where it stands under ``key``: both tell what is one.

    Dicts and lists are walked, an item of a list under the list's key, one of a dict under its own and under
    ``within``, the `telling_key` of what holds it; bytes are read as text. All else is left as it is, so no
    number is ever masked.

    >>> mask_value("", {"db.password": "hunter", "token_count": 7, "api_keys": {"ann": "abcdefgh"}})
    {'db.password': '[secret:password]', 'token_count': 7, 'api_keys': {'ann': '[secret:api-key]'}}
    """
    if isinstance(value, str):
        text = mask(value)
        for name in (key, "" if within and _describes(key) else within):
            named = _named(name[-_LONGEST_NAME:]) if name else None
            text = text if named is None else named(text)
        return text
    if isinstance(value, Mapping):
        within = telling_key(key, within)
        return {
            name: mask_value(name if isinstance(name, str) else "", item, within=within)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [mask_value(key, item, within=within) for item in value]
    if isinstance(value, bytes):  # latin-1 has a character for every byte, and keys are ASCII
        sealed: str = mask_value(key, value.decode("latin-1"), within=within)
        return sealed.encode("latin-1")
    return value


def telling_key(key: str, within: str = "") -> str:
    """The key that what stands in a map under ``key`` is judged by: its own where it tells, else ``within``.

    What describes a value instead of holding it (``description``, ``type``) is under neither.

    >>> telling_key("api_keys"), telling_key("openai", "api_keys"), telling_key("description", "api_keys")
    ('api_keys', 'api_keys', '')
    """
    if key and _named(key[-_LONGEST_NAME:]) is not None:
        return key
    return "" if within and _describes(key) else within


def _describes(key: str) -> bool:
    return _DESCRIBES.search(key[-_LONGEST_NAME:]) is not None


def _masked(text: str, rules: list[Rule]) -> str:
    for rule in rules:
        for anchor, pattern in rule.patterns.items():
            if anchor in text:
                text = pattern.sub(_Replacement(rule), text)
    return text


class _Replacement:
    def __init__(self, rule: Rule) -> None:
        self.rule = rule

    def __call__(self, found: re.Match[str]) -> str:
        if not self.rule.accepts(found):
            return found[0]
        kept = found.groupdict("")
        return f"{kept.get('before', '')}[secret:{self.rule.name}]{kept.get('after', '')}"


def _starting(*prefixes: str, then: str) -> dict[str, re.Pattern[str]]:
    """Keys known by their prefix, before which stands no letter, digit, ``_`` or ``-`` (``\\n`` may)."""
    return {
        prefix: re.compile(rf"{literal}(?:(?<![A-Za-z0-9_-]{literal})|(?<=\\[nrt]{literal})){then}")
        for prefix in prefixes
        for literal in (re.escape(prefix),)
    }


def _cased(*words: str, then: str) -> dict[str, re.Pattern[str]]:
    """The words in lower, title and upper case, each its own anchor."""
    cases = {case for word in words for case in (word, word.title(), word.upper())}
    return {case: re.compile(rf"(?P<before>{case}{then}", re.DOTALL) for case in sorted(cases)}


_QUOTE = r"""\\{0,3}["']"""
_IS = rf"(?:{_QUOTE}\]?)?[ \t]{{0,3}}(?::=|=>|[:=])[ \t]{{0,3}}"
_VALUE = rf"""{_IS}(?:(?P<quote>{_QUOTE})(?=[^\s"'\\<>{{}}$\[\]*]{{4,400}}(?P=quote)))?)(?P<value>(?(quote)"""
_VALUE += r"""[^\s"'\\<>{}$\[\]*]++|[A-Za-z0-9_+/=~-]++(?!\.\w|[(\[])))"""
_PAIR = r"[A-Za-z0-9_.~-]{1,64}+=[A-Za-z0-9_.~%+/=:|&!-]*+"
_PRIVATE = r"(?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"

_MIXED = re.compile(r"(?=[^A-Za-z]*[A-Za-z])[^0-9]*[0-9]")
_PLACEHOLDER = re.compile(
    r"(?i:your|xxx|example|placeholder|change_?me|string$|password$|required$|optional$)"
)
_KEY_OF = re.compile(r"(?i:api|access|secret|private|auth|signing|encryption|master|subscription)[-_. ]?$")
_ENVIRONMENT = re.compile(r"[A-Z0-9]_$")
_SECRET_OF = re.compile(
    r"(?i:client|app|consumer|shared|webhook|signing|access|refresh|auth|api|bearer)[-_. ]?$"
)

_Judge = Callable[[str, str, bool], bool]
"""Is it a secret: what stands before the telling word, the value, and whether its end is known (quoted)?"""


def _in_text(judge: _Judge) -> Callable[[re.Match[str]], bool]:
    def accepts(found: re.Match[str]) -> bool:
        before = found.string[max(0, found.start() - 16) : found.start()]
        return judge(before, found["value"], bool(found["quote"]))

    return accepts


def _is_password(before: str, value: str, quoted: bool) -> bool:
    if _PLACEHOLDER.match(value):
        return False
    return (quoted and len(value) >= 4) or (len(value) >= 6 and bool(_MIXED.match(value)))


def _is_key(before: str, value: str, quoted: bool) -> bool:
    """An API key by its name; by an environment variable's name only where the value looks like a key."""
    if _KEY_OF.search(before):
        return _looks_secret(value, 8) or (quoted and len(value) >= 8 and not _PLACEHOLDER.match(value))
    return bool(_ENVIRONMENT.search(before)) and _looks_secret(value, 12)


def _is_token(before: str, value: str, quoted: bool) -> bool:
    if quoted and len(value) >= 8 and _SECRET_OF.search(before):
        return not _PLACEHOLDER.match(value)
    return _looks_secret(value, 12)


def _is_cookie(before: str, value: str, quoted: bool) -> bool:
    """Under a key any ``name=value``; in text, where ``cookie: a=b`` may be prose, a value like a key."""
    if quoted:
        return "=" in value or _looks_secret(value, 12)
    return any(_looks_secret(pair.partition("=")[2], 8) for pair in value.split(";"))


def _looks_secret(value: str, least: int) -> bool:
    """Long enough, with letters and digits, and no placeholder."""
    return len(value) >= least and bool(_MIXED.match(value)) and not _PLACEHOLDER.match(value)


def _is_openai(found: re.Match[str]) -> bool:
    """A long run without hyphens, or a part that mixes letters and digits; no ``sk-learn-step-2``."""
    parts = re.split(r"[-_]", found[0][3:])
    return any(len(part) >= 20 or (len(part) >= 12 and _MIXED.match(part)) for part in parts)


RULES: tuple[Rule, ...] = (
    Rule(
        "private-key",
        {
            "-----BEGIN ": re.compile(
                rf"-----BEGIN {_PRIVATE}(?:[^-]*+(?:-(?!----)[^-]*+)*+-----END {_PRIVATE}"
                r"|(?:(?:\s|\\[nr]){0,9}[A-Za-z0-9+/=]{20,}+)*+)"
            )
        },
    ),
    Rule("anthropic", _starting("sk-ant-", then=r"[A-Za-z0-9_-]{16,}")),
    Rule("openrouter", _starting("sk-or-", then=r"[A-Za-z0-9_-]{20,}")),
    Rule("langfuse", _starting("sk-lf-", "pk-lf-", then=r"[A-Za-z0-9_-]{16,}")),
    Rule("openai", _starting("sk-", then=r"[A-Za-z0-9_-]{16,}"), _is_openai),
    Rule(
        "google",
        {
            **_starting("AIza", then=r"[A-Za-z0-9_-]{30,}"),
            **_starting("ya29.", "GOCSPX-", then=r"[A-Za-z0-9_-]{20,}"),
        },
    ),
    Rule("groq", _starting("gsk_", then=r"[A-Za-z0-9]{20,}")),
    Rule("xai", _starting("xai-", then=r"[A-Za-z0-9]{32,}")),
    Rule("perplexity", _starting("pplx-", then=r"[A-Za-z0-9]{32,}")),
    Rule("nvidia", _starting("nvapi-", then=r"[A-Za-z0-9_-]{32,}")),
    Rule("replicate", _starting("r8_", then=r"[A-Za-z0-9]{30,}")),
    Rule("huggingface", _starting("hf_", then=r"[A-Za-z0-9]{20,}")),
    Rule("langsmith", _starting("lsv2_", "ls__", then=r"[A-Za-z0-9_]{20,}")),
    Rule("logfire", _starting("pylf_", then=r"v[0-9]_[A-Za-z0-9_]{20,}")),
    Rule("tavily", _starting("tvly-", then=r"[A-Za-z0-9-]{16,}")),
    Rule("pinecone", _starting("pcsk_", then=r"[A-Za-z0-9_]{32,}")),
    Rule(
        "github",
        _starting("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", then=r"[A-Za-z0-9_]{20,}"),
    ),
    Rule("gitlab", _starting("glpat-", then=r"[A-Za-z0-9_-]{20,}")),
    Rule("aws", _starting("AKIA", "ASIA", then=r"[A-Z0-9]{16}(?![A-Za-z0-9_-])")),
    Rule(
        "slack",
        {
            **_starting(*(f"xox{kind}-" for kind in "abeoprs"), "xapp-", then=r"[A-Za-z0-9-]{16,}"),
            "hooks.slack.com/": re.compile(
                r"(?P<before>hooks\.slack\.com/(?:services|workflows)/)[A-Za-z0-9_/-]{10,}"
            ),
        },
    ),
    Rule(
        "stripe",
        {
            **_starting("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_", then=r"[A-Za-z0-9]{16,}"),
        },
    ),
    Rule("npm", _starting("npm_", then=r"[A-Za-z0-9]{30,}")),
    Rule("pypi", _starting("pypi-", then=r"[A-Za-z0-9_-]{40,}")),
    Rule("sendgrid", _starting("SG.", then=r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}")),
    Rule("jwt", _starting("eyJ", then=r"[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?")),
    Rule(
        "url-login",
        {
            "://": re.compile(
                r"""(?P<before>://)[^\s/?#:"'<>\\]{0,256}:(?![${<*])"""
                r"""[^\s/"'<>\\]{1,256}(?P<after>@)(?=[\w\[])"""
            )
        },
    ),
    Rule(
        "authorization",
        {
            **_cased(
                "authorization",
                then=rf"(?:{_QUOTE}\]?)?\s{{0,3}}[:=,]\s{{0,3}}(?:{_QUOTE})?"
                r"(?i:bearer|basic|token|apikey|api-key)\s{1,3})[A-Za-z0-9._~+/=-]++",
            ),
            **_cased("bearer", then=r"\s{1,3})(?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{16,}"),
        },
        cased=True,
    ),
    Rule(
        "cookie",
        _cased("cookie", then=rf"{_IS}(?:{_QUOTE})?)(?P<value>{_PAIR}(?:;[ ]?{_PAIR})*+)"),
        lambda found: _is_cookie("", found["value"], False),
        cased=True,
    ),
    Rule("password", _cased("password", "passwd", then=_VALUE), _in_text(_is_password), cased=True),
    Rule("api-key", _cased("key", then=_VALUE), _in_text(_is_key), cased=True),
    Rule("token", _cased("token", "secret", "authorization", then=_VALUE), _in_text(_is_token), cased=True),
)
"""Every rule, in the order they are applied: the special before the general."""

_BY_LITERAL = [rule for rule in RULES if not rule.cased]
_BY_WORD = [rule for rule in RULES if rule.cased]
_LITERALS = [anchor for rule in _BY_LITERAL for anchor in rule.patterns]
_WORDS = [b"key", b"token", b"secret", b"passw", b"authorization", b"bearer", b"cookie"]


def _prefixes_ending(last: str) -> re.Pattern[str]:
    prefixes = "|".join(f"(?<={re.escape(literal)})" for literal in _LITERALS if literal[-1] == last)
    return re.compile(rf"{re.escape(last)}(?=[A-Za-z0-9_-]{{16}})(?:{prefixes})")


_SCREENS = [re.compile("A(?:Iza|KIA|SIA)"), *map(_prefixes_ending, "-_.")]
"""Each starts with one literal character, which `re` finds by memchr: no dearer than a substring test."""
_UNSCREENED = [literal for literal in _LITERALS if literal[-1] not in "-_." and literal[0] != "A"]


def _may_hold_key(text: str) -> bool:
    """Is there any literal anchor? Asked of every string, so quicker than a look for each in turn."""
    return any(map(text.__contains__, _UNSCREENED)) or any(screen.search(text) for screen in _SCREENS)


def _may_name_key(text: str) -> bool:
    return any(map(text.encode("utf-8", "surrogatepass").lower().__contains__, _WORDS))


_INDEX = r"(?:[.\[][0-9]{1,4}\]?)?"
_NAME = re.compile(
    rf"(?:(?P<password>passwords?|passwds?)|(?P<key>keys?)|(?P<token>token|secrets?)"
    rf"|(?P<authorization>authorization)|(?P<cookie>cookies?)){_INDEX}\Z",
    re.IGNORECASE | re.ASCII,
)
_DESCRIBES = re.compile(
    r"(?:\A|[_.$-])(?:type|title|description|format|pattern|ref|name|in|id|at|url|scheme|scopes?|status|env)\Z",
    re.IGNORECASE,
)
"""Keys of JSON Schema and OpenAPI, and of what is known about a key: none holds it."""
_LONGEST_NAME = 64
"""Characters of a key that are looked at, from its end."""
_JUDGES: dict[str, tuple[str, _Judge]] = {
    "password": ("password", _is_password),
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


@lru_cache(maxsize=4096)  # spans and labels repeat their keys
def _named(key: str) -> Callable[[str], str] | None:
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


_ASSIGNED = rb"""(?:\\{0,3}["']\]?)?[ \t]{0,3}[:=]"""
_TAGGED = _INDEX.encode() + rb"\x12"
"""In a message of protobuf: the tag of the value that stands under the key before it."""
_NAMED = [
    *(
        (word, re.compile(word + b"(?:" + _ASSIGNED + b"|" + plural + _TAGGED + b")"))
        for word, plural in (
            (b"key", b"s?"), (b"token", b""), (b"secret", b"s?"), (b"password", b"s?"), (b"passwd", b"s?"),
            (b"cookie", b"s?"),
        )
    ),
    *((word, re.compile(word)) for word in (b"authorization", b"bearer")),
]  # fmt: skip


def may_hold_secret(data: bytes) -> bool:
    """Whether texts in UTF-8 that stand in ``data`` may hold anything that `mask_value` masks.

    For binary messages that would cost more to open than to ask: False is certain, True is not. Of OTLP's
    attributes the key has to stand before the value, as every serializer writes it.

    >>> may_hold_secret(b"\\x0allm.token_count.prompt\\x12\\x02"), may_hold_secret(b"\\x0apassword: hunter2")
    (False, True)
    """
    lower = data.lower()
    for word, pattern in _NAMED:
        if word in lower and pattern.search(lower):
            return True
    return _may_hold_key(data.decode("latin-1"))
