"""Logfire's pending spans: a span is announced when it begins, and sent again when it has ended.

The announcement has an id of its own, the span's id as its parent, and the true parent in an attribute. It
stands for the span where that never came.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from counterpoint.adapters._otlp import span_id
from counterpoint.adapters._spans import Span

__all__ = ["without_pending"]


def without_pending(spans: Sequence[Span]) -> Sequence[Span]:
    """The spans, each announced one that never ended in place of its announcement."""
    if not any("logfire.span_type" in span.attributes for span in spans):
        return spans
    kept = [span for span in spans if span.attributes.get("logfire.span_type") != "pending_span"]
    ended = {span.id for span in kept}
    for span in spans:
        if span.attributes.get("logfire.span_type") == "pending_span" and span.parent not in ended:
            parent = span_id(str(span.attributes.get("logfire.pending_parent_id") or ""))
            kept.append(replace(span, id=span.parent, parent=parent, end=0))
            ended.add(span.parent)
    return kept
