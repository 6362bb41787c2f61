"""LangGraph: a planner, then writer and critic until the critic approves; all share one list of messages.

Written: the stream of the modes updates and debug, and the checkpoints, of a run in which the critic objects
once; runs as LangSmith's tracer sends them, and spans of OpenInference, of runs in which it does not; the
events of `astream_events` of a run without it, for they repeat every text many times.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from otlp import Recorder
from story import CRITIC, DRAFT, OBJECTION, PLAN, PLANNER, ROUGH, TASK, VERDICT, WRITER

REQUIREMENTS = (
    "langgraph==1.2.24",
    "langchain-openai==1.7.4",
    "openinference-instrumentation-langchain==0.1.80",
    "opentelemetry-sdk==1.45.2",
    "opentelemetry-exporter-otlp-proto-common==1.45.2",
)
LINES = {  # of the stream, the events without a critic, LangSmith's tracer, the spans
    "planner": [PLAN] * 4,
    "writer": [ROUGH, DRAFT] + [DRAFT] * 3,
    "critic": [OBJECTION, VERDICT] + [VERDICT] * 2,
}


def team(*, critic: bool = True) -> Any:
    """The compiled graph; without its critic the writer has the last word."""
    from langchain_openai import ChatOpenAI
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, MessagesState, StateGraph

    model = ChatOpenAI(model="scripted", stream_usage=True)

    def node(name: str, prompt: str) -> Any:
        def speak(state: Any) -> Any:
            answer = model.invoke([("system", prompt), *state["messages"]])
            answer.name = name
            return {"messages": [answer]}

        return speak

    graph = StateGraph(MessagesState)
    graph.add_node("planner", node("planner", PLANNER))
    graph.add_node("writer", node("writer", WRITER))
    graph.add_edge(START, "planner")
    graph.add_edge("planner", "writer")
    if critic:
        graph.add_node("critic", node("critic", CRITIC))
        graph.add_edge("writer", "critic")
        graph.add_conditional_edges(
            "critic", lambda state: END if "APPROVE" in state["messages"][-1].text else "writer"
        )
    return graph.compile(checkpointer=InMemorySaver())


def plain(value: Any) -> Any:
    """What LangChain's own `message_to_dict` makes of a message, else its text."""
    from langchain_core.messages import BaseMessage, message_to_dict

    return message_to_dict(value) if isinstance(value, BaseMessage) else str(value)


def write(file: Path, records: list[Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = (
        json.dumps(record, default=plain, ensure_ascii=False, separators=(",", ":")) for record in records
    )
    file.write_text("\n".join(lines) + "\n", "utf-8")


def service(batch: dict[str, list[Any]]) -> Any:
    """The HTTP session of a LangSmith client: what it would send is kept in ``batch``."""
    from requests import Response, Session

    class Kept(Session):
        def request(self, method: Any, url: Any, *, data: Any = None, **rest: Any) -> Response:
            if "/runs" in url:
                run = json.loads(data)
                batch[method.lower()].append({**run, "id": run.get("id") or url.rpartition("/")[2]})
            response = Response()
            response.status_code, response._content = 200, b"{}"
            return response

    return Kept()


def main(out: Path) -> None:
    from langchain_core.tracers import LangChainTracer
    from langsmith import Client
    from openinference.instrumentation.langchain import LangChainInstrumentor

    question = {"messages": [("user", TASK)]}

    def config(thread: str, **more: Any) -> Any:
        return {"configurable": {"thread_id": thread}, **more}

    graph = team()
    stream = graph.stream(question, config("stream"), stream_mode=["updates", "debug"], subgraphs=True)
    write(out / "langgraph_stream" / "langgraph_critic_loop.jsonl", list(stream))
    history = [state._asdict() for state in graph.get_state_history(config("stream"))]
    write(out / "langgraph_checkpoints" / "langgraph_critic_loop.jsonl", history)

    async def events() -> list[Any]:
        return [event async for event in graph.astream_events(question, config("events"), version="v2")]

    graph = team(critic=False)
    write(out / "langchain_events" / "langgraph_pair.jsonl", asyncio.run(events()))

    batch: dict[str, list[Any]] = {"post": [], "patch": []}
    client = Client("http://127.0.0.1:1", api_key="any", session=service(batch), auto_batch_tracing=False)
    team().invoke(question, config("runs", callbacks=[LangChainTracer(client=client)]))
    write(out / "langsmith" / "langgraph_review.json", [batch])

    recorder = Recorder()
    LangChainInstrumentor().instrument(tracer_provider=recorder.provider)
    team().invoke(question, config("spans"))
    recorder.write(out / "otlp" / "langgraph_review.openinference.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
