"""Plays the team of a framework once; its spans go where ``OTEL_EXPORTER_OTLP_ENDPOINT`` says.

    python send.py openai_agents|langgraph

Runs inside the framework's own environment. The teams are those that the golden fixtures are made with, in
``tests/golden/regenerate``.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "golden" / "regenerate"))

from story import TASK


def openai_agents(provider: Any) -> None:
    from agents import OpenAIChatCompletionsModel, Runner
    from emit_openai_agents import team
    from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)
    asyncio.run(Runner.run(team(OpenAIChatCompletionsModel), TASK))


def langgraph(provider: Any) -> None:
    from emit_langgraph import team
    from openinference.instrumentation.langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument(tracer_provider=provider)
    team().invoke({"messages": [("user", TASK)]}, {"configurable": {"thread_id": "sent"}})


def main(framework: Callable[[Any], None]) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    try:
        from opentelemetry.exporter.otlp.json.http.trace_exporter import OTLPSpanExporter
    except ImportError:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    print(OTLPSpanExporter.__module__)
    framework(provider)
    provider.shutdown()


if __name__ == "__main__":
    main({"openai_agents": openai_agents, "langgraph": langgraph}[sys.argv[1]])
