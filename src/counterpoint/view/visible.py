"""Text of users as it may stand in a page: masked, without hidden signs, escaped. Nothing of it is markup.

Conventions
-----------
* Values that look like keys are masked, whatever the user said elsewhere: a page is made to be passed on.
* Control characters and marks that turn the direction of text are shown by their code, ``[U+202E]``; tabs and
  line breaks stay. Lone surrogates and signs that XML does not allow become U+FFFD.
"""

from __future__ import annotations

import html
import re
from functools import lru_cache

from counterpoint.secrets import mask

__all__ = ["escaped", "shortened", "visible"]

_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_NO_TEXT = re.compile(r"[\ud800-\udfff\ufffe\uffff]")


def visible(text: str) -> str:
    """The text with secrets masked and hidden signs shown; not escaped.

    >>> visible("pay\\u202e\\x1b[0m")
    'pay[U+202E][U+001B][0m'
    """
    text = _NO_TEXT.sub("\ufffd", text).replace("\r\n", "\n")
    return _HIDDEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", mask(text))


@lru_cache(maxsize=4096)  # names repeat from step to step
def shortened(text: str, most: int) -> str:
    """One line of at most ``most`` characters, escaped.

    >>> shortened("a <b> and\\nmore of it", 10)
    'a &lt;b&gt; and…'
    """
    line = " ".join(visible(text).split())
    return html.escape(line if len(line) <= most else f"{line[: most - 1].rstrip()}…")


def escaped(text: str) -> str:
    """`visible`, as HTML or XML text or attribute.

    >>> escaped('"><img onerror=x>')
    '&quot;&gt;&lt;img onerror=x&gt;'
    """
    return html.escape(visible(text))
