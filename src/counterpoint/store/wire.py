"""Just enough of protobuf's wire format to put spans back into the envelope they came in.

Conventions
-----------
Field numbers are OTLP's: ``TracesData.resource_spans`` = 1, ``ResourceSpans.scope_spans`` = 2,
``ScopeSpans.spans`` = 2. Bytes that are no message raise ValueError.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

__all__ = ["fields", "resource_spans"]

_LENGTH_DELIMITED = 2
_FIXED = {1: 8, 5: 4}


def resource_spans(envelope: bytes, spans: Iterable[bytes]) -> bytes:
    """One entry of TracesData: the envelope (a ResourceSpans with one ScopeSpans) with these spans in it."""
    inside = b"".join(_delimited(2, span) for span in spans)
    out, placed = [], False
    for number, kind, start, body, end in fields(envelope):
        if number == 2 and kind == _LENGTH_DELIMITED and not placed:
            out.append(_delimited(2, envelope[body:end] + inside))
            placed = True
        else:
            out.append(envelope[start:end])
    if not placed:
        out.append(_delimited(2, inside))
    return _delimited(1, b"".join(out))


def fields(message: bytes) -> Iterator[tuple[int, int, int, int, int]]:
    """Each field of a message: number, wire type, where it starts, where its content does, where it ends."""
    at = 0
    while at < len(message):
        start = at
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        body = at
        if kind == 0:
            _, at = _varint(message, at)
        elif kind == _LENGTH_DELIMITED:
            size, body = _varint(message, at)
            at = body + size
        elif kind in _FIXED:
            at += _FIXED[kind]
        else:
            raise ValueError(f"wire type {kind} at byte {start}")
        if not number or at > len(message):
            raise ValueError(f"cut off, or no message, at byte {start}")
        yield number, kind, start, body, at


def _delimited(number: int, content: bytes) -> bytes:
    size, length = len(content), bytearray()
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    return bytes([number << 3 | _LENGTH_DELIMITED]) + bytes(length) + content


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """The number at ``at``, and where the next thing begins."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError(f"a number is cut off at byte {at}")
