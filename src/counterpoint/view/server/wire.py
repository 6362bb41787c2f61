"""A request of protobuf cut into its spans by its bytes: what is kept is what was sent.

Conventions
-----------
Only three levels are walked (request, resource, scope); a span's bytes are not looked into. An envelope is a
``ResourceSpans`` with everything that came with it (fields that nobody knows yet, too) except for its spans.
"""

from __future__ import annotations

from collections.abc import Iterator

from counterpoint.protobuf import BYTES, delimited, fields
from counterpoint.view.server.limits import Limits, TooLarge

__all__ = ["Extent", "Refused", "split"]

_RESOURCE_SPANS, _SCOPE_SPANS, _SPANS = 1, 2, 2


class Refused(ValueError):
    """One span that cannot be taken, and why."""


class Extent:
    """What one request may hold besides its bytes; it counts down."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._items = limits.items
        self._bytes = limits.body_bytes

    def items(self, count: int) -> None:
        """Raises TooLarge once there were more than the most."""
        self._items -= count
        if self._items < 0:
            most = self._limits.items
            raise TooLarge(f"more than {most} resources, scopes and spans in one request: send fewer at once")

    def envelope(self, size: int) -> None:
        """Before it is made. A large resource stands in the envelope of each of its scopes."""
        self._bytes -= size
        if self._bytes < 0:
            raise TooLarge("a resource so large, with so many scopes: send fewer at once")


def split(body: bytes, limits: Limits) -> Iterator[tuple[bytes, bytes]]:
    """Envelope and span of every span of an ``ExportTraceServiceRequest``, in order.

    Raises ValueError where the bytes are no such message, and TooLarge where it holds too much.
    """
    extent = Extent(limits)
    for start, end in _parts(body, 0, len(body), _RESOURCE_SPANS, extent)[1]:
        resource, scopes = _parts(body, start, end, _SCOPE_SPANS, extent)
        for scope_start, scope_end in scopes:
            scope, spans = _parts(body, scope_start, scope_end, _SPANS, extent)
            if not spans:
                continue
            extent.envelope(len(resource) + len(scope))
            envelope = resource + delimited(_SCOPE_SPANS, scope)
            for span_start, span_end in spans:
                yield envelope, body[span_start:span_end]


def _parts(
    body: bytes, start: int, end: int, wanted: int, extent: Extent
) -> tuple[bytes, list[tuple[int, int]]]:
    """Where the messages of field ``wanted`` stand in a message, and the bytes of all its other fields."""
    others: list[bytes] = []
    parts: list[tuple[int, int]] = []
    for number, kind, begin, inside, after in fields(body, start, end):
        extent.items(1)
        if number == wanted and kind == BYTES:
            parts.append((inside, after))
        else:
            others.append(body[begin:after])
    return b"".join(others), parts
