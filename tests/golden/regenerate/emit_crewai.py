"""CrewAI: a writer, and a critic whose task has the writer's as its context; the critic asks the planner.

Written: the events of the bus, without what is nested deep in their agents and tasks; the CrewOutput; and
spans of OpenInference. Of CrewAI's own prompts only the names and the places to fill are kept.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, get_args

from otlp import Recorder
from story import DRAFT, PLAN, TASK, VERDICT, Say

REQUIREMENTS = (
    "crewai==1.15.30",
    "openinference-instrumentation-crewai==1.1.21",
    "opentelemetry-sdk==1.45.2",
    "opentelemetry-exporter-otlp-proto-common==1.45.2",
)
QUESTION = {"question": "Which plan was it?", "context": "The lighthouse.", "coworker": "planner"}
LINES = {
    "writer": [DRAFT],
    "critic": [Say("", "ask_question_to_coworker", QUESTION), VERDICT],
    "planner": [PLAN],
}


def without_text(prompts: Any, name: str = "") -> Any:
    """CrewAI's prompts, each no more than its name and its placeholders."""
    if isinstance(prompts, dict):
        return {key: without_text(value, key) for key, value in prompts.items()}
    return " ".join([*re.findall(r"{\w+}", prompts), f"({name})"])


def thin(event: Any) -> Any:
    """The event's JSON; of agents and tasks, which hold each other, what identifies them."""
    named = {"id", "role", "name", "description", "expected_output", "context", "agent"}

    def part(value: Any) -> Any:
        if isinstance(value, list):
            return [part(item) for item in value]
        if isinstance(value, dict):
            return {key: part(item) for key, item in value.items() if key in named}
        return value

    plain = event.to_json()
    return {**plain, **{key: part(plain[key]) for key in ("agent", "task") if key in plain}}


def main(out: Path) -> None:
    from crewai import LLM, Agent, Crew, Task
    from crewai.events import crewai_event_bus
    from crewai.events.event_types import EventTypes
    from crewai.utilities.i18n import get_i18n
    from openinference.instrumentation.crewai import CrewAIInstrumentor

    events: list[Any] = []

    for kind in get_args(EventTypes):
        crewai_event_bus.on(kind)(lambda source, event: events.append(event))

    prompts = get_i18n()._prompts
    prompts.update(without_text(prompts))
    recorder = Recorder()
    CrewAIInstrumentor().instrument(tracer_provider=recorder.provider)

    def agent(name: str, **more: Any) -> Agent:
        model = LLM(
            model="scripted", provider="openai"
        )  # One each: CrewAI sums the counts of every agent's own.
        return Agent(role=name, goal="A good sentence.", backstory=f"You are the {name}.", llm=model, **more)

    planner, writer, critic = agent("planner"), agent("writer"), agent("critic", allow_delegation=True)
    write = Task(name="write", description=TASK, expected_output="One sentence.", agent=writer)
    judge = Task(
        name="judge", description="Judge it.", expected_output="A verdict.", agent=critic, context=[write]
    )
    result = Crew(agents=[planner, writer, critic], tasks=[write, judge]).kickoff()
    crewai_event_bus.flush()
    (out / "crewai_output").mkdir()
    (out / "crewai_output" / "crewai_crew.json").write_text(result.model_dump_json(indent=1), "utf-8")
    recorder.write(out / "otlp" / "crewai_crew.openinference.json")
    (out / "crewai_events").mkdir()
    lines = [json.dumps(thin(event), ensure_ascii=False) for event in events]
    (out / "crewai_events" / "crewai_crew.jsonl").write_text("\n".join(lines), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
