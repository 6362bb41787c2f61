"""Google ADK: a planner transfers to a writer, who looks up the year.

Written: the session, and spans as ADK makes them itself. The model is reached through LiteLLM.
"""

import asyncio
import os
import sys
from pathlib import Path

from otlp import Recorder
from story import DRAFT, PLAN, TASK, WRITER, YEAR, Say

REQUIREMENTS = (
    "google-adk==2.13.0",
    "litellm==1.110.2",
    "opentelemetry-sdk==1.44.0",
    "opentelemetry-exporter-otlp-proto-common==1.44.0",
)
LINES = {
    "planner": [Say(PLAN, "transfer_to_agent", {"agent_name": "writer"})],
    "writer": [Say("", "look_up", {"subject": "lighthouse"}), DRAFT],
}
BUILT_IN = (
    r"You are an agent\. Your internal name.*?are\W+n`writer`\.",
    r"For context: below is.*?and from the user\.",
    r"Transfer the query to another agent.*?name to transfer to\.",
)


def look_up(subject: str) -> str:
    """What the parish register says."""
    return YEAR


async def run(out: Path) -> None:
    os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
    from google.adk.agents import LlmAgent
    from google.adk.models.lite_llm import LiteLlm
    from google.adk.runners import InMemoryRunner
    from google.genai import types
    from opentelemetry import trace

    recorder = Recorder()
    trace.set_tracer_provider(recorder.provider)
    model = LiteLlm("openai/scripted")
    writer = LlmAgent(
        name="writer",
        description="Writes by a plan.",
        model=model,
        instruction=WRITER,
        tools=[look_up],
        disallow_transfer_to_parent=True,
    )
    prompt = "You are the planner. Plan, then transfer to the writer."
    planner = LlmAgent(name="planner", model=model, instruction=prompt, sub_agents=[writer])
    runner = InMemoryRunner(planner, app_name="lighthouse")
    session = await runner.session_service.create_session(
        app_name="lighthouse", user_id="user", session_id="one"
    )
    message = types.Content(role="user", parts=[types.Part(text=TASK)])
    async for _ in runner.run_async(user_id="user", session_id=session.id, new_message=message):
        pass
    kept = await runner.session_service.get_session(app_name="lighthouse", user_id="user", session_id="one")
    (out / "google_adk").mkdir()
    text = kept.model_dump_json(indent=1, exclude_none=True)
    (out / "google_adk" / "google_adk_transfer.json").write_text(text + "\n", "utf-8")
    recorder.write(out / "otlp" / "google_adk_transfer.json")


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1])))
