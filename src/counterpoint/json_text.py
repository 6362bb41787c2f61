"""JSON as files of others hold it: read where any reading makes sense, with a word on what was mended.

What cannot be kept as it is becomes U+FFFD (in texts) or null; nothing else of a document is lost by it.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec

__all__ = ["decode", "mend", "parse_json", "parse_shallow"]

DEEPEST = 200
"""Levels of JSON that are kept of a text which is nested deeper than can be read."""

_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)


def parse_json(text: bytes | str) -> tuple[Any, list[str]]:
    """JSON text to plain objects, and warnings for what had to be mended to read it.

    Lone surrogates and bytes that are not UTF-8 become U+FFFD; NaN and infinities become null, and so does
    what is nested deeper than can be read. Raises ValueError on anything else.
    """
    try:
        return msgspec.json.decode(text), []
    except RecursionError:
        return parse_shallow(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        problem = str(error)
    mended: set[str] = set()
    if isinstance(text, bytes):
        text = decode(text, mended)
    try:
        value = mend(json.loads(text), mended)
    except RecursionError:
        return parse_shallow(text)
    except ValueError:
        raise ValueError(problem) from None
    return value, sorted(mended)


def parse_shallow(text: bytes | str) -> tuple[Any, list[str]]:
    """As `parse_json`, with null for the objects and arrays that stand deeper than the level `DEEPEST`."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    kept: list[bytes] = []
    depth = start = 0
    for match in _BRACKETS.finditer(data):
        sign = match[0]
        if sign in b"{[":
            depth += 1
            if depth == DEEPEST + 1:
                kept += [data[start : match.start()], b"null"]
        elif sign in b"]}":
            if depth == DEEPEST + 1:
                start = match.end()
            depth -= 1
    if depth > 0:
        raise ValueError("JSON is nested too deeply")  # to the end of the text: nothing comes after it
    value, mended = parse_json(b"".join([*kept, data[start:]]))
    return value, sorted({*mended, f"values nested more than {DEEPEST} deep were read as null"})


def decode(text: bytes, mended: set[str]) -> str:
    """UTF-8 to text; that it had to be changed for that is added to ``mended``."""
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError:
        mended.add("bytes that are not UTF-8 were replaced by U+FFFD")
        return text.decode("utf-8-sig", "replace")


def mend(value: Any, mended: set[str]) -> Any:
    """The value as JSON can hold it; what had to be changed for that is added to ``mended``."""
    if isinstance(value, str):
        clean = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if clean != value:
            mended.add("lone surrogates in the text were replaced by U+FFFD")
        return clean
    if isinstance(value, float) and not math.isfinite(value):
        mended.add("numbers that are not finite were read as null")
        return None
    if isinstance(value, list):
        return [mend(item, mended) for item in value]
    if isinstance(value, dict):
        return {mend(key, mended): mend(item, mended) for key, item in value.items()}
    return value
