"""Protobuf's wire format, as far as messages are cut apart and put together by their bytes.

Whoever needs what a message says uses its class; here it is kept as it was sent, fields that nobody knows yet
included. Bytes that are no message raise ValueError.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["BYTES", "delimited", "fields", "varint"]

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types; BYTES is that of texts and messages too."""


def fields(message: bytes, at: int = 0, end: int | None = None) -> Iterator[tuple[int, int, int, int, int]]:
    """Each field of a message: number, wire type, where it starts, where its content does, where it ends.

    The message stands in ``message`` from ``at`` to ``end``, its own end if None.

    >>> list(fields(bytes.fromhex("0896011202") + b"no"))
    [(1, 0, 0, 1, 3), (2, 2, 3, 5, 7)]
    """
    end = len(message) if end is None else end
    while at < end:
        start = at
        tag, at = _number(message, at, end)
        kind, body = tag & 7, at
        if kind == BYTES:
            size, body = _number(message, at, end)
            at = body + size
        elif kind == VARINT:
            _, at = _number(message, at, end)
        elif kind in (FIXED64, FIXED32):
            at += 8 if kind == FIXED64 else 4
        else:
            raise ValueError(f"a field of wire type {kind} at byte {start}")
        if at > end or tag < 8:
            raise ValueError(f"a field that ends after its message, at byte {start}")
        yield tag >> 3, kind, start, body, at


def _number(message: bytes, at: int, end: int) -> tuple[int, int]:
    """A varint, and where it ends."""
    found = 0
    for shift in range(0, 70, 7):
        if at >= end:
            raise ValueError(f"cut off at byte {at}")
        byte = message[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found, at
    raise ValueError(f"a number of more than ten bytes, at byte {at}")


def varint(number: int) -> bytes:
    """A number of 0 or more as protobuf writes it: seven bits a byte, the lowest first.

    >>> varint(300).hex()
    'ac02'
    """
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def delimited(number: int, content: bytes) -> bytes:
    """A field that holds bytes, text or a message.

    >>> delimited(2, b"no")
    b'\\x12\\x02no'
    """
    return varint(number << 3 | BYTES) + varint(len(content)) + content
