"""The items of documents: events, spans, runs, one by one, wherever they stand, and what is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from counterpoint.adapters._source import records
from counterpoint.contracts import Source
from counterpoint.errors import TraceError

__all__ = ["Items", "listed"]


def listed(document: Any) -> Iterable[Any]:
    """The entries of a list, or the one that stands there without a list."""
    return document if isinstance(document, list) else [document]


class Items:
    """The items that a source's documents hold, given to whoever takes them."""

    def __init__(
        self,
        source: Source,
        complaint: str,
        *,
        split: Callable[[Any], Iterable[Any]] = listed,
    ) -> None:
        self._source = source
        self._complaint = complaint
        self._split = split
        self._warnings: dict[str, None] = {}
        self.broken = False
        """Was there a document that could not be read, or an item that was not taken?"""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What had to be mended in the documents so far, each once."""
        return tuple(self._warnings)

    def give(self, take: Callable[[Any], bool]) -> Iterator[TraceError]:
        """Give every item to ``take``; a TraceError in place of each that it does not take."""
        for record in records(self._source):
            if isinstance(record, TraceError):
                self.broken = True
                yield record
                continue
            self._warnings.update(dict.fromkeys(record.warnings))
            for item in self._split(record.value):
                if not take(item):
                    self.broken = True
                    yield TraceError(self._complaint, source=self._source.name, record=record.number)
