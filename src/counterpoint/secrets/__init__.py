r"""Values that look like keys, masked by every writer unless the user keeps them.

`RULES` is the whole list, one line a rule; docs/secrets.md is the same for readers. Each value is replaced by
a hint of its kind, ``[secret:openai]``; what stands around it (a header's name, quotes, a URL's host) stays.

Conventions
-----------
* Masking is idempotent, raises on no text, and leaves ordinary prose, code, hashes, UUIDs and images alone.
* Text that is JSON is JSON afterwards; keys are also found in JSON within a string (``\"``, ``\n``).
* A value that stands under a key of its own (an attribute, a label) is judged as in JSON, by both.
* It is called on every string that is written, so a text is screened first: most are ruled out by a few
  searches for one rare character each. Every pattern stays linear on hostile text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from counterpoint.secrets.forms import FORM_SCREENS, FORMS, Rule
from counterpoint.secrets.names import INDEX, LONGEST_NAME, NAMES, describes, named, paired

__all__ = ["RULES", "Rule", "mask", "mask_value", "may_hold_secret", "telling_key"]

RULES: tuple[Rule, ...] = (*FORMS, *NAMES)
"""Every rule, in the order they are applied."""


def mask(text: str) -> str:
    """``text`` with every value that looks like a key replaced by a hint of its kind.

    >>> mask("Authorization: Basic dXNlcjpwYXNz"), mask("a task-based sk-learn pipeline")
    ('Authorization: Basic [secret:authorization]', 'a task-based sk-learn pipeline')
    """
    if len(text) < _SHORTEST:
        return text
    if passed := _forms_in(text):
        text = _replaced(text, _plan(passed))
    if passed := _names_in(text):
        text = _replaced(text, _plan(passed, names=True))
    return text


def _replaced(text: str, plan: list[tuple[Rule, str, re.Pattern[str]]]) -> str:
    for rule, anchor, pattern in plan:
        if anchor in text:
            text = pattern.sub(rule.replacement, text)
    return text


def mask_value(key: str, value: Any, *, within: str = "") -> Any:
    """``value`` with every secret masked, where it stands under ``key``: both tell what is one.

    Dicts and lists are walked, an item of a list under the list's key, one of a dict under its own and under
    ``within``, the `telling_key` of what holds it; a ``value`` beside a ``name`` or ``key`` under that, and
    so the second of two texts in a list. Keys are masked as texts, bytes are read as text. All else is left
    as it is, so no number is ever masked.

    >>> mask_value("", {"db.password": "hunter", "token_count": 7, "api_keys": {"ann": "abcdefgh"}})
    {'db.password': '[secret:password]', 'token_count': 7, 'api_keys': {'ann': '[secret:api-key]'}}
    """
    if isinstance(value, str):
        text = mask(value)
        for name in (key, "" if within and describes(key) else within):
            masked = named(name[-LONGEST_NAME:]) if name else None
            text = text if masked is None else masked(text)
        return text
    if isinstance(value, Mapping):
        return _masked_map(key, value, within)
    if isinstance(value, list | tuple):
        if len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], str):
            return [
                mask_value(key, value[0], within=within),
                mask_value(paired(*value) or key, value[1], within=within),
            ]
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
    if key and named(key[-LONGEST_NAME:]) is not None:
        return key
    return "" if within and describes(key) else within


def _masked_map(key: str, value: Mapping[Any, Any], within: str) -> dict[Any, Any]:
    """The map with keys and values masked; keys that are then one stay apart."""
    within = telling_key(key, within)
    told = ""
    if "value" in value:
        told = next((name for name in (value.get("name"), value.get("key")) if isinstance(name, str)), "")
    masked: dict[Any, Any] = {}
    for name, item in value.items():
        shown, under = name, ""
        if isinstance(name, str):
            shown, under = _masked_key(name), (told or name) if name == "value" else name
            while shown != name and shown in masked:
                shown += "~"
        masked[shown] = mask_value(under, item, within=within)
    return masked


@lru_cache(maxsize=4096)
def _masked_short(key: str) -> str:
    return mask(key)


def _masked_key(key: str) -> str:
    return _masked_short(key) if len(key) <= 4 * LONGEST_NAME else mask(key)


_SHORTEST = len("://:p@h")
"""Characters of the shortest text that any rule changes."""

_Q = rb"""\\{0,3}["']"""
_LINK = rb"s?(?:[ \t]{0,3}[:=]|>|" + _Q + rb"\]?[ \t]{0,3}[:=]|" + _Q + rb"\s{0,3},|"
_LINK += rb"(?:" + _Q + rb")?(?:,|\\n|\s){1,40}(?:" + _Q + rb")?value|(?<=-WORD)[ \t])"
_TAG = rb"s?" + INDEX.encode() + rb"\x12"
"""In a message of protobuf: the tag of the value that stands under the key before it."""


def _name_screens(end: bytes) -> list[re.Pattern[bytes]]:
    """Patterns of lower case, as `FORM_SCREENS`, each with the words that it looks for: `_WORDS`."""

    def linked(word: bytes, rest: bytes) -> bytes:
        ends = end.replace(b"s?", b"") if word == b"token" else end  # tokens are mostly counts
        return rest + b"(?:" + ends.replace(b"WORD", word) + b")"

    key, token, cookie = linked(b"key", b"ey"), linked(b"token", b"en"), linked(b"cookie", b"ie")
    words = [linked(b"pass" + rest, rest) for rest in (b"word", b"wd", b"phrase", b"")]
    patterns = [
        b"k(?:(?<=[isthgenr_. ?&;6-]k)%b|(?<=tok)%b|(?<=cook)%b)" % (key, token, cookie),
        b"p(?:ass(?:%b)|%b)" % (b"|".join(words), linked(b"pwd", b"wd")),
        b"s" + linked(b"secret", b"ecret"),
        b"z(?<=authoriz)ation",
        rb"b(?=earer\s)",
    ]
    return [re.compile(pattern) for pattern in patterns]


_IN_MESSAGE = _name_screens(_LINK + b"|" + _TAG)
_WORDS = ("key|token|cookie", "pass|pwd", "secret", "authorization", "bearer")
_IN_TEXT = list(zip(_WORDS, _name_screens(_LINK), strict=True))


def _names_in(text: str) -> tuple[str, ...]:
    lower = text.encode("utf-8", "surrogatepass").lower()
    return tuple([words for words, screen in _IN_TEXT if screen.search(lower)])


def _forms_in(text: str) -> tuple[str, ...]:
    return tuple([anchors for screen, anchors in FORM_SCREENS if screen.search(text)])


@lru_cache(maxsize=1024)
def _plan(passed: tuple[str, ...], *, names: bool = False) -> list[tuple[Rule, str, re.Pattern[str]]]:
    """The anchors that are left to look for after the screens, of all rules in their order."""
    left = re.compile("|".join(passed), re.IGNORECASE | re.DOTALL)
    return [
        (rule, anchor, pattern)
        for rule in (NAMES if names else FORMS)
        for anchor, pattern in rule.patterns.items()
        if left.match(anchor)
    ]


def may_hold_secret(data: bytes) -> bool:
    """Whether texts in UTF-8 that stand in ``data`` may hold anything that `mask_value` masks.

    For binary messages that would cost more to open than to ask: False is certain, True is not. Of OTLP's
    attributes the key has to stand before the value, as every serializer writes it.

    >>> may_hold_secret(b"\\x0allm.token_count.prompt\\x12\\x02"), may_hold_secret(b"\\x0apassword: hunter2")
    (False, True)
    """
    lower, text = data.lower(), data.decode("latin-1")
    return any(screen.search(lower) for screen in _IN_MESSAGE) or any(
        screen.search(text) for screen, _ in FORM_SCREENS
    )
