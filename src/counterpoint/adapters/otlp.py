"""OpenTelemetry spans as an OTLP exporter or collector writes them: JSON, JSON lines, protobuf.

A JSON document, or one such document a line (children may stand before their parents, a trace may be spread
over many lines)::

    {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "..."}, "spans": [
      {"traceId": "5b8e...", "spanId": "eee1...", "parentSpanId": "", "name": "chat gpt-4o",
       "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000001000000000",
       "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}]}]}]}]}

or the same as protobuf: one ``ExportTraceServiceRequest`` (or ``TracesData``), which needs the extra
``otlp``. What the attributes mean is in `dialects`. One trace per trace id; traces that links join are one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from counterpoint.adapters import _otlp
from counterpoint.adapters._recorded import ATTRIBUTE as RECORDED
from counterpoint.adapters._recorded import from_spans
from counterpoint.adapters._runs import no_collection, traces
from counterpoint.adapters._source import MAX_BYTES, opening, records
from counterpoint.adapters._spans import Span
from counterpoint.adapters.dialects import ATTRIBUTES
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.json_text import parse_json, parse_shallow
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]


def sniff(source: Source) -> bool:
    """Is this OTLP, as JSON or as protobuf?"""
    record = opening(source).record
    inner = record.get("trace")
    keys = {*record, *(inner if isinstance(inner, dict) else ())}
    if isinstance(record.get("batches"), list):  # Grafana Tempo's name for them
        return any("scopeSpans" in batch for batch in record["batches"][:1] if isinstance(batch, dict))
    return bool(keys & {"resourceSpans", "resource_spans"}) or _is_protobuf(source.head)


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every run among the spans of the file; a TraceError in place of each document that cannot be read."""
    with no_collection():  # which looks through all spans when it ends: once, after the first run is made
        spans, errors, warnings = (_from_protobuf if _is_protobuf(source.head) else _from_json)(source)
        found = _runs(spans, source, warnings) if spans or not errors else iter(())
        first = next(found, None)
    yield from errors
    if first is not None:
        yield first
        yield from found


Decoded = tuple[list[Span], list[TraceError], Sequence[str]]
"""Spans, what could not be read, and warnings."""


def _from_json(source: Source) -> Decoded:
    spans: list[Span] = []
    errors: list[TraceError] = []
    warnings: dict[str, None] = {}
    for record in records(source, _parse):
        if isinstance(record, TraceError):
            errors.append(record)
        else:
            spans += record.value
            warnings.update(dict.fromkeys(record.warnings))
    return spans, errors, tuple(warnings)


def _runs(spans: list[Span], source: Source, warnings: Sequence[str]) -> Iterator[Trace | TraceError]:
    """The runs that were recorded by `counterpoint.record`, then those that frameworks tell in their ways."""
    recorded = [span for span in spans if RECORDED in span.attributes]
    if recorded:
        yield from from_spans(recorded, source.name, warnings)
        spans = [span for span in spans if RECORDED not in span.attributes]
    if spans or not recorded:
        linked = bool(source.options.get("linked"))
        yield from traces(
            spans, ATTRIBUTES, source=source.name, format="otlp", warnings=warnings, linked=linked
        )


def _parse(text: bytes) -> tuple[list[Span], list[str]]:
    try:
        return _otlp.decode(text), []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document, warnings = parse_json(text)
    try:
        spans, wrong = _otlp.convert(document)
    except RecursionError:
        document, warnings = parse_shallow(text)
        spans, wrong = _otlp.convert(document)
    if wrong:
        warnings.append(f"{wrong} spans are not of OTLP's shape and were left out")
    return spans, warnings


# --- protobuf ------------------------------------------------------------------------------------


def _is_protobuf(head: bytes) -> bool:
    """Field 1 (resource_spans), of known length, that begins with a field of ResourceSpans."""
    if head[:1] != b"\x0a":
        return False
    at = 1
    while at < len(head) and head[at] & 0x80:
        at += 1
    return 1 < at + 1 < len(head) and at < 6 and head[at + 1] in b"\x0a\x12\x1a"


def _from_protobuf(source: Source) -> Decoded:
    from counterpoint.adapters import _otlp_protobuf

    limit = int(source.options.get("max_bytes", MAX_BYTES))
    with source.open() as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        much = f"more than {limit:,} bytes of protobuf: raise --max-bytes"
        return [], [TraceError(much, source=source.name)], ()
    try:
        spans, wrong = _otlp_protobuf.decode(data)
    except ValueError as error:
        return [], [TraceError(f"not OTLP protobuf: {error}", source=source.name)], ()
    return spans, [], [f"{wrong} attributes could not be read and were left out"] if wrong else []
