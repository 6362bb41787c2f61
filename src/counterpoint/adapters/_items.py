"""The items of documents: events, spans, runs, one by one, wherever they stand, and what is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from counterpoint.adapters._source import Record, listed, records
from counterpoint.contracts import Source
from counterpoint.errors import TraceError

__all__ = ["Items", "paged"]


def paged(document: Any) -> list[Any]:
    """The entries of ``data``, as a page of an answer has them, or of a list; or what stands alone."""
    data = document.get("data") if isinstance(document, dict) else None
    return listed(data if isinstance(data, list) else document)


class Items:
    """The items that a source's documents hold, given to whoever takes them."""

    def __init__(
        self,
        source: Source,
        complaint: str,
        *,
        split: Callable[[Any], Iterable[Any]] = listed,
        documents: Callable[[Source], Iterable[Record | TraceError]] = records,
    ) -> None:
        self._source = source
        self._complaint = complaint
        self._split = split
        self._documents = documents
        self._warnings: dict[str, None] = {}
        self.broken = False
        """Was there a document that could not be read, or an item that was not taken?"""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What had to be mended in the documents so far, each once."""
        return tuple(self._warnings)

    def give(self, take: Callable[[Any], bool]) -> Iterator[TraceError]:
        """Give every item to ``take``; a TraceError in place of each that it does not take."""
        number = 0
        for record in self._documents(self._source):
            if isinstance(record, TraceError):
                number += 1
                self.broken = True
                yield record
                continue
            self._warnings.update(dict.fromkeys(record.warnings))
            for item in self._split(record.value):
                number += 1
                if not take(item):
                    self.broken = True
                    yield TraceError(self._complaint, source=self._source.name, record=number)
