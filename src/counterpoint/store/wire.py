"""Spans back into the envelope they came in.

Conventions
-----------
Field numbers are OTLP's: ``TracesData.resource_spans`` = 1, ``ResourceSpans.scope_spans`` = 2,
``ScopeSpans.spans`` = 2. Bytes that are no message raise ValueError.
"""

from __future__ import annotations

from collections.abc import Iterable

from counterpoint.protobuf import BYTES, delimited, fields

__all__ = ["resource_spans"]


def resource_spans(envelope: bytes, spans: Iterable[bytes]) -> bytes:
    """One entry of TracesData: the envelope (a ResourceSpans with one ScopeSpans) with these spans in it."""
    inside = b"".join(delimited(2, span) for span in spans)
    out, placed = [], False
    for number, kind, start, body, end in fields(envelope):
        if number == 2 and kind == BYTES and not placed:
            out.append(delimited(2, envelope[body:end] + inside))
            placed = True
        else:
            out.append(envelope[start:end])
    if not placed:
        out.append(delimited(2, inside))
    return delimited(1, b"".join(out))
