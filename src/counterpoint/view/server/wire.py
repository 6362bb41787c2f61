"""A request of protobuf cut into its spans by its bytes: what is kept is what was sent.

Conventions
-----------
Only three levels are walked (request, resource, scope); a span's bytes are not looked into. An envelope is a
``ResourceSpans`` with everything that came with it (fields that nobody knows yet, too) except for its spans.
"""

from __future__ import annotations

from collections.abc import Iterator

from counterpoint.protobuf import BYTES, delimited, fields
from counterpoint.view.server.limits import TooLarge

__all__ = ["Refused", "split"]

_RESOURCE_SPANS, _SCOPE_SPANS, _SPANS = 1, 2, 2


class Refused(ValueError):
    """One span that cannot be taken, and why."""


def split(body: bytes, items: int) -> Iterator[tuple[bytes, bytes]]:
    """Envelope and span of every span of an ``ExportTraceServiceRequest``, in order.

    ``items`` is the most fields of the three levels that are looked at. Raises ValueError where the bytes
    are no such message, and TooLarge where there are more.
    """
    count = _Count(items)
    for start, end in _parts(body, 0, len(body), _RESOURCE_SPANS, count)[1]:
        resource, scopes = _parts(body, start, end, _SCOPE_SPANS, count)
        for scope_start, scope_end in scopes:
            scope, spans = _parts(body, scope_start, scope_end, _SPANS, count)
            envelope = resource + delimited(_SCOPE_SPANS, scope)
            for span_start, span_end in spans:
                yield envelope, body[span_start:span_end]


class _Count:
    """Counts down what one request may hold."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.left = most

    def one(self) -> None:
        """Raises TooLarge once there were more than the most."""
        self.left -= 1
        if self.left < 0:
            raise TooLarge(f"more than {self.most} resources, scopes and spans in one request: send fewer")


def _parts(
    body: bytes, start: int, end: int, wanted: int, count: _Count
) -> tuple[bytes, list[tuple[int, int]]]:
    """Where the messages of field ``wanted`` stand in a message, and the bytes of all its other fields."""
    others: list[bytes] = []
    parts: list[tuple[int, int]] = []
    for number, kind, begin, inside, after in fields(body, start, end):
        count.one()
        if number == wanted and kind == BYTES:
            parts.append((inside, after))
        else:
            others.append(body[begin:after])
    return b"".join(others), parts
