"""Inspect: a planner who hands the conversation over to a writer and has a critic as a tool, in one sample.

Written: the log as JSON.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from story import CRITIC, DRAFT, PLAN, TASK, VERDICT, WRITER, YEAR, Say

REQUIREMENTS = ("inspect-ai==0.3.285", "openai==3.57.0")
LINES = {
    "planner": [
        Say(PLAN, "transfer_to_writer"),
        Say("Let me ask the critic.", "critic", {"input": DRAFT}),
        DRAFT,
    ],
    "writer": [Say("", "look_up", {"subject": "lighthouse"}), DRAFT],
    "critic": [VERDICT],
}


def main(out: Path) -> None:
    from inspect_ai import Task, eval_async
    from inspect_ai.agent import Agent, AgentState, agent, as_solver, as_tool, handoff
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ChatMessageSystem, get_model
    from inspect_ai.scorer import includes
    from inspect_ai.tool import Tool, ToolDef, tool

    async def speak(state: AgentState, prompt: str, tools: list[Tool | ToolDef]) -> AgentState:
        others = [message for message in state.messages if message.role != "system"]
        messages, state.output = await get_model().generate_loop(
            [ChatMessageSystem(content=prompt), *others], tools=tools
        )
        state.messages = [message for message in [*others, *messages] if message.role != "system"]
        return state

    @tool
    def look_up() -> Tool:
        async def execute(subject: str) -> str:
            """What the parish register says.

            Args:
                subject: What to look for.
            """
            return YEAR

        return execute

    @agent(description="Writes by a plan.")
    def writer() -> Agent:
        async def execute(state: AgentState) -> AgentState:
            return await speak(state, WRITER, [look_up()])

        return execute

    @agent(description="Objects or approves.")
    def critic() -> Agent:
        async def execute(state: AgentState) -> AgentState:
            return await speak(state, CRITIC, [])

        return execute

    @agent
    def planner() -> Agent:
        async def execute(state: AgentState) -> AgentState:
            prompt = "You are the planner. Plan, have it written, have it judged."
            return await speak(state, prompt, [handoff(writer()), as_tool(critic())])

        return execute

    task = Task(
        [Sample(TASK, target="1871", id="lighthouse")],
        solver=as_solver(planner()),
        scorer=includes(),
        name="lighthouse",
    )
    folder = out / "inspect"
    folder.mkdir()
    model: Any = {"model": "openai/scripted", "model_args": {"responses_api": False}}
    run = eval_async(task, **model, log_dir=str(folder), log_format="json")
    asyncio.run(run)
    (log,) = folder.glob("*.json")
    log.rename(folder / "inspect_ai_handoff.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
