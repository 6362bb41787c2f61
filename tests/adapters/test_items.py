"""The items of documents are counted through, and what is none is told by its number."""

from __future__ import annotations

import io
from typing import Any

from counterpoint.adapters._items import Items, paged
from counterpoint.contracts import Source
from counterpoint.errors import TraceError


def given(content: bytes) -> tuple[list[Any], list[tuple[str, int | None]], Items]:
    """The numbers among the items, the errors with their records, and the items."""
    taken: list[Any] = []

    def take(item: Any) -> bool:
        if fits := isinstance(item, float):
            taken.append(item)
        return fits

    items = Items(Source("f", content, content, lambda: io.BytesIO(content)), "not a number", split=paged)
    errors: list[TraceError] = list(items.give(take))
    return taken, [(error.message, error.record) for error in errors], items


def test_items_are_counted_over_the_entries_of_all_documents() -> None:
    taken, errors, items = given(b'[1.0, "x", 2.0]\n{"data": [3.0, null]}\n{"a": 1}\n')
    assert taken == [1.0, 2.0, 3.0]
    assert errors == [("not a number", 2), ("not a number", 5), ("not a number", 6)]
    assert items.broken
    assert items.warnings == ()


def test_items_tell_each_mend_once_and_are_not_broken_by_it() -> None:
    content = b'{"data": [1.0], "next": "\\ud800"}\n' * 2
    taken, errors, items = given(content)
    assert (taken, errors, items.broken) == ([1.0, 1.0], [], False)
    assert items.warnings == ("lone surrogates in the text were replaced by U+FFFD",)
