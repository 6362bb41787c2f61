"""A request of protobuf cut into its spans by its bytes: what is kept is what was sent.

Conventions
-----------
Only three levels are walked (request, resource, scope); a span's bytes are not looked into. An envelope is a
``ResourceSpans`` with everything that came with it (fields that nobody knows yet, too) except for its spans.
"""

from __future__ import annotations

from collections.abc import Iterator

from counterpoint.view.server.limits import TooLarge
from counterpoint.view.server.responses import delimited

__all__ = ["Refused", "split"]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
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
    body: bytes, position: int, end: int, wanted: int, count: _Count
) -> tuple[bytes, list[tuple[int, int]]]:
    """Where the messages of field ``wanted`` stand in a message, and the bytes of all its other fields."""
    others: list[bytes] = []
    parts: list[tuple[int, int]] = []
    while position < end:
        begin = position
        tag, position = _number(body, position, end)
        kind = tag & 7
        if kind == _BYTES:
            size, position = _number(body, position, end)
            first, position = position, position + size
        elif kind == _VARINT:
            _, position = _number(body, position, end)
        elif kind in (_FIXED64, _FIXED32):
            position += 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"a field of wire type {kind} at byte {begin}")
        if position > end or tag < 8:
            raise ValueError(f"a field that ends after its message, at byte {begin}")
        count.one()
        if tag == wanted << 3 | _BYTES:
            parts.append((first, position))
        else:
            others.append(body[begin:position])
    return b"".join(others), parts


def _number(body: bytes, position: int, end: int) -> tuple[int, int]:
    """A varint, and where it ends."""
    found = 0
    for shift in range(0, 70, 7):
        if position >= end:
            raise ValueError(f"cut off at byte {position}")
        byte = body[position]
        position += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found, position
    raise ValueError(f"a number of more than ten bytes, at byte {position}")
