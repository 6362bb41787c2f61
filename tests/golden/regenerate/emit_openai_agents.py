"""OpenAI Agents SDK: a desk that hands over to a writer, who asks a critic as a tool and then writes again.

Written: what the SDK would send to its tracing service, with chat completions; the run's items, with the
responses API; and spans of OpenInference, with chat completions.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from otlp import Recorder
from story import CRITIC, DRAFT, OBJECTION, PLAN, ROUGH, TASK, WRITER, Say

REQUIREMENTS = (
    "openai-agents==0.24.0",
    "openinference-instrumentation-openai-agents==2.6.0",
    "opentelemetry-sdk==1.45.2",
    "opentelemetry-exporter-otlp-proto-common==1.45.2",
)
LINES = {
    "planner": [Say(PLAN, "transfer_to_writer")] * 2,
    "writer": [Say("Let me ask the critic.", "ask_critic", {"input": ROUGH}), DRAFT] * 2,
    "critic": [OBJECTION] * 2,
}


def team(interface: type) -> Any:
    """The agent that is asked first; models are reached by ``interface``."""
    from agents import Agent
    from openai import AsyncOpenAI

    model = interface("scripted", AsyncOpenAI())
    critic = Agent(name="critic", instructions=CRITIC, model=model)
    ask = critic.as_tool("ask_critic", "What does the critic say?")
    writer = Agent(name="writer", instructions=WRITER, model=model, tools=[ask])
    planner = "You are the planner. Say in one sentence how the text is to be written, and hand over."
    return Agent(name="planner", instructions=planner, model=model, handoffs=[writer])


def main(out: Path) -> None:
    from agents import (
        OpenAIChatCompletionsModel,
        OpenAIResponsesModel,
        Runner,
        add_trace_processor,
        set_trace_processors,
    )
    from agents.tracing.processors import BatchTraceProcessor, TracingExporter
    from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    class Kept(TracingExporter):
        def __init__(self) -> None:
            self.items: list[Any] = []

        def export(self, items: list[Any]) -> None:
            self.items += [exported for item in items if (exported := item.export())]

    kept, recorder = Kept(), Recorder()
    processor = BatchTraceProcessor(kept)
    OpenAIAgentsInstrumentor().instrument(tracer_provider=recorder.provider)
    add_trace_processor(processor)
    asyncio.run(Runner.run(team(OpenAIChatCompletionsModel), TASK))
    processor.force_flush()
    recorder.write(out / "otlp" / "openai_agents_desk.openinference.json")
    (out / "openai_agents").mkdir()
    text = json.dumps({"data": kept.items}, ensure_ascii=False, indent=1)
    (out / "openai_agents" / "openai_agents_desk.json").write_text(text + "\n", "utf-8")

    set_trace_processors([])
    result = asyncio.run(Runner.run(team(OpenAIResponsesModel), TASK))
    record = {
        "last_agent": result.last_agent.name,
        "final_output": result.final_output,
        "input_list": result.to_input_list(),
        "new_items": [
            {"type": item.type, "agent": item.agent.name, "raw_item": raw(item.raw_item)}
            for item in result.new_items
        ],
        "raw_responses": [
            {
                "response_id": reply.response_id,
                "usage": raw(reply.usage),
                "output": list(map(raw, reply.output)),
            }
            for reply in result.raw_responses
        ],
    }
    (out / "openai_agents_items").mkdir()
    text = json.dumps(record, default=raw, ensure_ascii=False, indent=1)
    (out / "openai_agents_items" / "openai_agents_desk.json").write_text(text + "\n", "utf-8")


def raw(item: Any) -> Any:
    """The item as plain data."""
    from pydantic import TypeAdapter

    return (
        item if isinstance(item, dict) else TypeAdapter(Any).dump_python(item, mode="json", exclude_none=True)
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
