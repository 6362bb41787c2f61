"""Microsoft Agent Framework: a workflow of a planner, a writer who looks up the year, and a critic.

Written: spans as the framework makes them itself.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from otlp import Recorder
from story import CRITIC, DRAFT, PLAN, PLANNER, TASK, VERDICT, WRITER, YEAR, Say

REQUIREMENTS = (
    "agent-framework-core==1.23.0",
    "agent-framework-openai==1.17.0",
    "opentelemetry-sdk==1.45.2",
    "opentelemetry-exporter-otlp-proto-common==1.45.2",
)
LINES = {
    "planner": [PLAN],
    "writer": [Say("", "look_up", {"subject": "lighthouse"}), DRAFT],
    "critic": [VERDICT],
}


def look_up(subject: str) -> str:
    """What the parish register says."""
    return YEAR


async def run(out: Path) -> None:
    os.environ["ENABLE_INSTRUMENTATION"] = os.environ["ENABLE_SENSITIVE_DATA"] = "true"
    from agent_framework import Agent, WorkflowBuilder
    from agent_framework.openai import OpenAIChatCompletionClient
    from opentelemetry import trace

    recorder = Recorder()
    trace.set_tracer_provider(recorder.provider)

    def agent(name: str, prompt: str, **more: Any) -> Agent:
        client = OpenAIChatCompletionClient(model="scripted")
        return Agent(client, name=name, id=name, instructions=prompt, **more)

    planner, critic = agent("planner", PLANNER), agent("critic", CRITIC)
    writer = agent("writer", WRITER, tools=[look_up])
    flow = WorkflowBuilder(start_executor=planner).add_edge(planner, writer).add_edge(writer, critic).build()
    await flow.run(TASK)
    recorder.write(out / "otlp" / "ms_agent_framework_workflow.json")


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1])))
