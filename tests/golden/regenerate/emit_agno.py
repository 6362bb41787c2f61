"""Agno: a team whose planner has the writer write.

Written: the run of the team, and spans of OpenInference.
"""

import json
import sys
from pathlib import Path
from typing import Any

from otlp import Recorder
from story import DRAFT, PLAN, TASK, WRITER, Say

REQUIREMENTS = (
    "agno==3.1.10",
    "openai==3.57.0",
    "openinference-instrumentation-agno==1.0.15",
    "opentelemetry-sdk==1.45.2",
    "opentelemetry-exporter-otlp-proto-common==1.45.2",
)
LINES = {
    "planner": [
        Say("", "delegate_task_to_member", {"member_id": "writer", "task": PLAN}),
        f"This is it: {DRAFT}",
    ],
    "writer": [DRAFT],
}


def main(out: Path) -> None:
    from agno.agent import Agent
    from agno.models.openai import OpenAIChat
    from agno.team import Team
    from openinference.instrumentation.agno import AgnoInstrumentor

    recorder = Recorder()
    AgnoInstrumentor().instrument(tracer_provider=recorder.provider)
    # OpenAI's new role "developer" would do as well; "system" is what all endpoints know.
    roles = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
    models: list[Any] = [OpenAIChat(id="scripted", role_map=roles) for _ in range(2)]
    writer = Agent(name="writer", model=models[0], system_message=WRITER, telemetry=False)
    prompt = "You are the planner. Have the writer write."
    team = Team([writer], name="planner", model=models[1], system_message=prompt, telemetry=False)
    result = team.run(TASK)
    (out / "agno").mkdir()
    text = json.dumps(result.to_dict(), ensure_ascii=False, indent=1, default=str)
    (out / "agno" / "agno_team.json").write_text(text + "\n", "utf-8")
    recorder.write(out / "otlp" / "agno_team.openinference.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
