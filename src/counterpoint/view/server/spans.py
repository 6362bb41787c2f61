"""Bodies of ``/v1/traces`` to spans of the store, and how many of them had to be refused.

Conventions
-----------
* A span needs a trace id of 16 bytes and a span id of 8, neither all zeros; one without is refused, the rest
  is kept. So is a span that is no message of OTLP's. Only what holds no spans at all is refused as a whole.
* Values that look like keys are masked here, before anything is written. A span is opened for that only
  where its bytes may hold one; any other is kept byte by byte as it was sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError, Message  # type: ignore[import-untyped]
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Sent

from counterpoint.secrets import mask, mask_value, may_hold_secret, telling_key
from counterpoint.store import Span
from counterpoint.view.server.limits import Limits
from counterpoint.view.server.wire import Refused, split

__all__ = ["Decoded", "decode"]

MOST_REASONS = 5
_NO_TRACE = bytes(16)
_NO_SPAN = bytes(8)
_VALUES = ("string_value", "bytes_value")


class Decoded(NamedTuple):
    """The spans of one body."""

    spans: list[Span]
    rejected: int
    reasons: tuple[str, ...]
    """Why spans were refused: the first few reasons, each once and short."""


def decode(body: bytes, *, json: bool, limits: Limits, keep_secrets: bool = False) -> Decoded:
    """The spans of a body of protobuf, or of JSON.

    Raises ValueError where it is neither, and TooLarge where it holds too many.
    """
    pairs: Iterable[tuple[bytes, bytes | Refused]]
    if json:
        from counterpoint.view.server.otlp_json import split_json

        pairs = split_json(body, limits)
    else:
        pairs = split(body, limits)
    envelopes = _Envelopes(keep_secrets)
    spans: list[Span] = []
    rejected = 0
    reasons: list[str] = []
    for envelope, payload in pairs:
        try:
            if isinstance(payload, Refused):
                raise payload
            kept = envelopes[envelope]
            if kept is None:
                raise Refused("a span of a resource or scope that is no message of OTLP")
            spans.append(_span(kept, payload, limits.span_bytes, keep_secrets))
        except Refused as error:
            rejected += 1
            reason = str(error)[:200]
            if len(reasons) < MOST_REASONS and reason not in reasons:
                reasons.append(reason)
    return Decoded(spans, rejected, tuple(reasons))


def _span(envelope: bytes, payload: bytes, most: int, keep_secrets: bool) -> Span:
    if len(payload) > most:
        raise Refused(f"a span of more than {most} bytes")
    try:
        sent = Sent.FromString(payload)
    except DecodeError:
        raise Refused(
            "a span that is no message of OTLP, is nested too deeply, or has text that is not UTF-8"
        ) from None
    trace_id, span_id = sent.trace_id, sent.span_id
    if len(trace_id) != 16 or trace_id == _NO_TRACE:
        raise Refused("a span without a valid trace id (16 bytes, not all zeros)")
    if len(span_id) != 8 or span_id == _NO_SPAN:
        raise Refused("a span without a valid span id (8 bytes, not all zeros)")
    if not keep_secrets and may_hold_secret(payload) and mask_message(sent):
        payload = sent.SerializeToString()
    links = sent.links
    return Span(
        trace_id.hex(),
        span_id.hex(),
        envelope,
        payload,
        _linked(links, trace_id) if links else (),
        sent.name,
        sent.start_time_unix_nano,
    )


def _linked(links: Iterable[Any], own: bytes) -> tuple[str, ...]:
    """The other traces that a span links to, each once."""
    traces = dict.fromkeys(link.trace_id for link in links)
    return tuple(trace.hex() for trace in traces if len(trace) == 16 and trace not in (own, _NO_TRACE))


class _Envelopes(dict[bytes, bytes | None]):
    """Envelope as sent to envelope as kept, each checked and masked once; None of what is none."""

    def __init__(self, keep_secrets: bool) -> None:
        self._keep_secrets = keep_secrets

    def __missing__(self, envelope: bytes) -> bytes | None:
        self[envelope] = kept = self._kept(envelope)
        return kept

    def _kept(self, envelope: bytes) -> bytes | None:
        try:
            message = ResourceSpans.FromString(envelope)
        except DecodeError:
            return None
        if not self._keep_secrets and may_hold_secret(envelope) and mask_message(message):
            return bytes(message.SerializeToString())
        return envelope


def mask_message(message: Message, key: str = "", within: str = "") -> bool:
    """Mask every text of a message, however deep, in place; whether any was changed.

    A value of an attribute is judged together with the key that it stands under, and ``within``, that of the
    map that holds it.
    """
    changed = False
    if isinstance(message, KeyValue):
        key, within = message.key, telling_key(key, within)
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in (value,) if isinstance(value, Message) else value:
                changed |= mask_message(part, key, within)
        elif field.name in _VALUES or isinstance(value, str):
            masked = mask_value(key, value, within=within) if field.name in _VALUES else mask(value)
            if masked != value:
                setattr(message, field.name, masked)
                changed = True
    return changed
