"""What attributes of spans mean, one convention a file; a span is read by the one that it follows."""

from __future__ import annotations

from counterpoint.adapters._runs import Dialect
from counterpoint.adapters._spans import Reading, Span
from counterpoint.adapters.dialects import (
    autogen,
    crewai,
    frameworks,
    genai,
    langfuse,
    logfire,
    mlflow,
    openinference,
)

__all__ = ["ATTRIBUTES"]


def _read(span: Span) -> Reading | None:
    attributes = span.attributes
    if "openinference.span.kind" in attributes:
        return openinference.read(span)
    if "langfuse.observation.type" in attributes:
        return langfuse.read(span)
    if "mlflow.spanType" in attributes:
        return mlflow.read(span)
    return genai.read(span)


ATTRIBUTES = Dialect(
    _read,
    mend=logfire.without_pending,
    relations=crewai.relations,
    turns=autogen.turns,
    facts=frameworks.facts,
)
"""The conventions that are told apart by a span's attributes."""
