"""Strands: a graph of a planner, a writer who looks up the year, and a critic.

Written: spans as Strands makes them itself.
"""

import sys
from pathlib import Path

from otlp import Recorder
from story import CRITIC, DRAFT, PLAN, PLANNER, TASK, VERDICT, WRITER, YEAR, Say

REQUIREMENTS = (
    "strands-agents[openai]==1.62.0",
    "opentelemetry-sdk==1.43.0",
    "opentelemetry-exporter-otlp-proto-common==1.43.0",
)
LINES = {
    "planner": [PLAN],
    "writer": [Say("", "look_up", {"subject": "lighthouse"}), DRAFT],
    "critic": [VERDICT],
}


def main(out: Path) -> None:
    from opentelemetry import trace
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel
    from strands.multiagent import GraphBuilder

    recorder = Recorder()
    trace.set_tracer_provider(recorder.provider)

    @tool
    def look_up(subject: str) -> str:
        """What the parish register says."""
        return YEAR

    graph = GraphBuilder()
    before = ""
    for name, prompt, tools in (
        ("planner", PLANNER, []),
        ("writer", WRITER, [look_up]),
        ("critic", CRITIC, []),
    ):
        model = OpenAIModel(model_id="scripted")
        agent = Agent(name=name, model=model, system_prompt=prompt, tools=tools, callback_handler=None)
        graph.add_node(agent, name)
        if before:
            graph.add_edge(before, name)
        before = name
    graph.set_max_node_executions(3).build()(TASK)
    recorder.write(out / "otlp" / "strands_graph.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
