"""smolagents: a planner manages a writer; both call tools. The prompts are ours, the built-in ones are long.

Written: spans of OpenInference, and the planner's memory.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from otlp import Recorder
from story import DRAFT, PLAN, TASK, WRITER, YEAR, Say

REQUIREMENTS = (
    "smolagents[openai]==1.26.0",
    "openinference-instrumentation-smolagents==0.1.43",
    "opentelemetry-sdk==1.45.2",
    "opentelemetry-exporter-otlp-proto-common==1.45.2",
)
LINES = {
    "planner": [
        Say("The writer shall write it.", "writer", {"task": PLAN}),
        Say("", "final_answer", {"answer": DRAFT}),
    ],
    "writer": [
        Say("I need the year.", "look_up", {"subject": "lighthouse"}),
        Say("", "final_answer", {"answer": DRAFT}),
    ],
}


def prompts(system: str) -> Any:
    """All the templates that an agent wants, as short as can be."""
    report = "Here is the final answer from your managed agent '{{name}}':\n{{final_answer}}"
    return {
        "system_prompt": system,
        "planning": {"initial_plan": "", "update_plan_pre_messages": "", "update_plan_post_messages": ""},
        "managed_agent": {"task": "{{task}}", "report": report},
        "final_answer": {"pre_messages": "", "post_messages": ""},
    }


def main(out: Path) -> None:
    from openinference.instrumentation.smolagents import SmolagentsInstrumentor
    from smolagents import OpenAIModel, ToolCallingAgent, tool

    @tool
    def look_up(subject: str) -> str:
        """What the parish register says.

        Args:
            subject: What to look for.
        """
        return YEAR

    recorder = Recorder()
    SmolagentsInstrumentor().instrument(tracer_provider=recorder.provider)
    model = OpenAIModel("scripted")
    options: Any = {"model": model, "max_steps": 3, "verbosity_level": 0}
    writer = ToolCallingAgent(
        [look_up],
        name="writer",
        description="Writes by a plan.",
        prompt_templates=prompts(WRITER),
        **options,
    )
    planner = ToolCallingAgent(
        [],
        name="planner",
        managed_agents=[writer],
        prompt_templates=prompts("You are the planner. Have the writer write."),
        **options,
    )
    planner.run(TASK)
    recorder.write(out / "otlp" / "smolagents_manager.openinference.json")
    text = json.dumps(planner.memory.get_full_steps(), ensure_ascii=False, indent=1, default=str)
    (out / "smolagents").mkdir()
    (out / "smolagents" / "smolagents_manager.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
