"""Spans in memory, and as an OTLP JSON document; for scripts, inside a framework's environment."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any


class Recorder:
    """A tracer provider that keeps all finished spans, in the order in which they ended."""

    def __init__(self) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self._spans = InMemorySpanExporter()
        self.provider = TracerProvider(resource=Resource({"service.name": "lighthouse"}))
        self.provider.add_span_processor(SimpleSpanProcessor(self._spans))

    def document(self) -> Any:
        """All spans as one OTLP JSON document, ids in hex and enums as numbers, as the standard has it."""
        from google.protobuf.json_format import MessageToDict
        from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

        document = MessageToDict(encode_spans(self._spans.get_finished_spans()), use_integers_for_enums=True)
        for resource in document["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    for part in (span, *span.get("links", [])):
                        for key in {"traceId", "spanId", "parentSpanId"} & set(part):
                            part[key] = base64.b64decode(part[key]).hex()
        return document

    def write(self, file: Path) -> None:
        """The document, a span a line."""
        file.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.document(), ensure_ascii=False, separators=(",", ":"))
        file.write_text(text.replace('{"traceId"', '\n{"traceId"') + "\n", "utf-8")
