"""Pydantic AI: a planner who asks a writer as a tool; the writer looks up the year, at the second attempt.

Written: the messages of the planner's run, and spans as Pydantic AI's own instrumentation makes them.
"""

import sys
from pathlib import Path

from otlp import Recorder
from story import DRAFT, PLAN, TASK, WRITER, YEAR, Say

REQUIREMENTS = (
    "pydantic-ai-slim[openai]==2.68.0",
    "opentelemetry-sdk==1.45.2",
    "opentelemetry-exporter-otlp-proto-common==1.45.2",
)
LINES = {
    "planner": [Say("", "ask_writer", {"plan": PLAN}), DRAFT],
    "writer": [
        Say("", "look_up", {"subject": "house"}),
        Say("", "look_up", {"subject": "lighthouse"}),
        DRAFT,
    ],
}


def main(out: Path) -> None:
    from pydantic_ai import Agent, ModelRetry, RunContext
    from pydantic_ai.models.instrumented import InstrumentationSettings
    from pydantic_ai.models.openai import OpenAIChatModel

    recorder = Recorder()
    Agent.instrument_all(InstrumentationSettings(tracer_provider=recorder.provider))
    model = OpenAIChatModel("scripted")
    planner = Agent(model, name="planner", instructions="You are the planner. Have the writer write.")
    writer = Agent(model, name="writer", instructions=WRITER)

    @planner.tool
    async def ask_writer(context: RunContext, plan: str) -> str:
        """What the writer writes by a plan."""
        return (await writer.run(plan, usage=context.usage)).output

    @writer.tool_plain
    def look_up(subject: str) -> str:
        """What the parish register says about a subject."""
        if subject != "lighthouse":
            raise ModelRetry(f"There is nothing about {subject!r}.")
        return YEAR

    result = planner.run_sync(TASK)
    (out / "pydantic_ai").mkdir()
    (out / "pydantic_ai" / "pydantic_ai_planner.json").write_bytes(result.all_messages_json() + b"\n")
    recorder.write(out / "otlp" / "pydantic_ai_delegation.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
