"""Plain JSON that can be sent and kept: a lone surrogate has no form in UTF-8."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["encodable"]


def encodable(value: Any) -> Any:
    r"""Plain JSON, or one text, with every lone surrogate in it replaced by U+FFFD.

    >>> encodable([{"content": "half \ud800"}]) == [{"content": "half \ufffd"}]
    True
    """
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {encodable(key): encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encodable(item) for item in value]
    return value
