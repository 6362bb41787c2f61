"""AutoGen AgentChat: planner, writer and critic in turn until the critic approves; a tool and a handoff.

Written: of a round robin in which the writer looks up the year the result, the event log, the state of the
team, and spans; of a swarm in which the planner hands over to the writer the result.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import Any

from otlp import Recorder
from story import CRITIC, DRAFT, PLAN, PLANNER, TASK, VERDICT, WRITER, YEAR, Say

REQUIREMENTS = (
    "autogen-agentchat==0.7.5",
    "autogen-ext[openai]==0.7.5",
    "opentelemetry-sdk==1.45.2",
    "opentelemetry-exporter-otlp-proto-common==1.45.2",
)
LINES = {
    "planner": [PLAN, Say(PLAN, "transfer_to_writer")],
    "writer": [Say("", "look_up", {"subject": "lighthouse"}), DRAFT, f"{DRAFT} APPROVE"],
    "critic": [VERDICT],
}


def look_up(subject: str) -> str:
    """What the parish register says about a subject."""
    return YEAR


class EventLog(logging.Handler):
    """Keeps the events of `autogen_core.events`."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        event = json.loads(str(record.msg))
        line = {"logger": record.name, "level": record.levelname, "created": record.created, "event": event}
        self.lines.append(json.dumps(line, ensure_ascii=False))


def agents(*, handoffs: list[str], tools: list[Any]) -> list[Any]:
    """Planner, writer and critic; the planner may hand over, the writer has tools."""
    from autogen_agentchat.agents import AssistantAgent
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    information = {
        "vision": False,
        "function_calling": True,
        "json_output": False,
        "family": "unknown",
        "structured_output": False,
    }
    client: Any = OpenAIChatCompletionClient(model="scripted", model_info=information)
    return [
        AssistantAgent("planner", client, system_message=PLANNER, handoffs=handoffs),
        AssistantAgent("writer", client, system_message=WRITER, tools=tools, reflect_on_tool_use=True),
        AssistantAgent("critic", client, system_message=CRITIC),
    ]


async def run(out: Path) -> None:
    from autogen_agentchat.conditions import TextMentionTermination
    from autogen_agentchat.teams import RoundRobinGroupChat, Swarm
    from autogen_core import EVENT_LOGGER_NAME, SingleThreadedAgentRuntime

    log, recorder = EventLog(), Recorder()
    events = logging.getLogger(EVENT_LOGGER_NAME)
    events.setLevel(logging.INFO)
    events.addHandler(log)
    runtime = SingleThreadedAgentRuntime(tracer_provider=recorder.provider)
    runtime.start()
    approved = TextMentionTermination("APPROVE")
    team = RoundRobinGroupChat(
        agents(handoffs=[], tools=[look_up]), termination_condition=approved, runtime=runtime
    )
    result = await team.run(task=TASK)
    write(out / "autogen" / "autogen_round_robin.json", result.model_dump_json(indent=1))
    write(out / "autogen_events" / "autogen_round_robin.jsonl", "\n".join(log.lines))
    state = json.dumps(await team.save_state(), ensure_ascii=False, indent=1)
    write(out / "autogen_team_state" / "autogen_round_robin.json", state)
    recorder.write(out / "otlp" / "autogen_round_robin.json")

    swarm = Swarm(agents(handoffs=["writer"], tools=[])[:2], termination_condition=approved)
    write(out / "autogen" / "autogen_swarm.json", (await swarm.run(task=TASK)).model_dump_json(indent=1))


def write(file: Path, text: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"{text}\n", "utf-8")


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1])))
