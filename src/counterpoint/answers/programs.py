"""Programs in texts: where they stand, and what a text says beside them."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["FENCE", "spoken"]

FENCE = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+-]*)[^\n]*\n(?P<code>.*?)(?:^[ \t]*(?P=fence)|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""A fenced block, also one that was cut off."""


def spoken(text: str, results: Sequence[str | None]) -> str:
    r"""What a commitment is read from: the prose of ``text``, then the result of the program that ran last.

    A program is no answer: ``answer = 18`` may stand in one that failed, or that went on to another value.

    Parameters
    ----------
    results : of the programs in ``text`` that were run, oldest first; None of one that failed. Without any
        the text stays as it is.

    >>> spoken("So:\n```python\nanswer = 18 + x\n```\n", [None]), spoken("It is 3.", [])
    ('So:\n\n', 'It is 3.')
    """
    if not results:
        return text
    said = FENCE.sub("", text)
    return said if results[-1] is None else f"{said}\n\nThe answer is {results[-1]}"
