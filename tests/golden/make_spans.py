"""Writes the golden fixtures of the span formats: small runs of teams that we made up.

    python tests/golden/make_spans.py

writes the fixtures; ``counterpoint convert FILE -o FILE.golden.jsonl`` then says what is read from each.
Two texts are in every story: a plan and a draft, each long enough to be found where it is pasted.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TRACE = "5b8efff798038103d269b633813fc60c"
START = 1_767_225_600_000_000_000  # 2026-01-01
TASK = "Write one sentence about the old lighthouse."
PLAN = "First name the year, then say who keeps the lighthouse today – no more than twenty words."
DRAFT = "Built in 1871, the lighthouse is kept by two sisters who still climb its stairs each night."
VERDICT = "Good: it names the year and the keepers, and it has fewer than twenty words. APPROVE"

Attributes = dict[str, Any]


class Run:
    """Spans of one run; each begins one second after the one before and lasts as long as told."""

    def __init__(self, scope: str, trace: str = TRACE) -> None:
        self.scope, self.trace = scope, trace
        self.spans: list[dict[str, Any]] = []

    def span(self, name: str, parent: str = "", at: float = 0, lasts: float = 1, **more: Any) -> str:
        number = len(self.spans) + 1
        identity = f"{int(self.trace[:6], 16) * 256 + number:016x}"
        begin = START + round(at * 1e9)
        self.spans.append(
            {
                "id": identity,
                "name": name,
                "parent": parent,
                "start": begin,
                "end": begin + round(lasts * 1e9),
            }
            | {
                "attributes": {},
                "events": [],
                "links": [],
                "error": None,
                "trace": more.pop("trace", self.trace),
            }
            | more
        )
        return identity


# --- wrappings -----------------------------------------------------------------------------------


def value(plain: Any) -> dict[str, Any]:
    if isinstance(plain, bool):
        return {"boolValue": plain}
    if isinstance(plain, int):
        return {"intValue": str(plain)}
    if isinstance(plain, float):
        return {"doubleValue": plain}
    if isinstance(plain, list):
        return {"arrayValue": {"values": [value(item) for item in plain]}}
    if isinstance(plain, dict):
        return {"kvlistValue": {"values": pairs(plain)}}
    return {"stringValue": plain}


def pairs(attributes: Attributes) -> list[dict[str, Any]]:
    return [{"key": key, "value": value(plain)} for key, plain in attributes.items()]


def otlp_span(span: dict[str, Any], encode: Callable[[str], str] = str) -> dict[str, Any]:
    item = {
        "traceId": encode(span["trace"]),
        "spanId": encode(span["id"]),
        "parentSpanId": encode(span["parent"]),
        "name": span["name"],
        "kind": 1,
        "startTimeUnixNano": str(span["start"]),
        "endTimeUnixNano": str(span["end"]),
        "attributes": pairs(span["attributes"]),
        "events": [{"name": name, "attributes": pairs(more)} for name, more in span["events"]],
        "links": [{"traceId": encode(trace), "spanId": encode(link)} for trace, link in span["links"]],
        "status": {"code": 2, "message": span["error"]} if span["error"] else {"code": 1},
    }
    return {key: item[key] for key in item if item[key] not in ([], "")}


def document(spans: Iterable[dict[str, Any]], scope: str) -> dict[str, Any]:
    resource = {"attributes": pairs({"service.name": "lighthouse"})}
    return {
        "resourceSpans": [
            {"resource": resource, "scopeSpans": [{"scope": {"name": scope}, "spans": [*spans]}]}
        ]
    }


def otlp(run: Run, file: str, **how: Any) -> None:
    write(
        f"otlp/{file}",
        json.dumps(document((otlp_span(span, **how) for span in run.spans), run.scope), indent=1),
    )


def otlp_lines(run: Run, file: str) -> None:
    """A document a line, children before their parents."""
    documents = (document([otlp_span(span)], run.scope) for span in reversed(run.spans))
    write(f"otlp/{file}", "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in documents))


def protobuf(run: Run, file: str) -> None:
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    def as_base64(text: str) -> str:
        return base64.b64encode(bytes.fromhex(text)).decode()

    spans = (otlp_span(span, encode=as_base64) for span in run.spans)
    message = ParseDict(document(spans, run.scope), TracesData())
    (HERE / "otlp" / file).write_bytes(message.SerializeToString(deterministic=True))


def iso(nanoseconds: int) -> str:
    return f"2026-01-01T00:00:{(nanoseconds - START) / 1e9:09.6f}+00:00"


def otel_sdk(run: Run, file: str) -> None:
    """As the console exporter prints them: indented, one after the other."""
    printed = []
    for span in run.spans:
        item = {
            "name": span["name"],
            "context": {"trace_id": f"0x{span['trace']}", "span_id": f"0x{span['id']}", "trace_state": "[]"},
            "kind": "SpanKind.INTERNAL",
            "parent_id": f"0x{span['parent']}" if span["parent"] else None,
            "start_time": iso(span["start"]).replace("+00:00", "Z"),
            "end_time": iso(span["end"]).replace("+00:00", "Z"),
            "status": {"status_code": "ERROR", "description": span["error"]}
            if span["error"]
            else {"status_code": "OK"},
            "attributes": span["attributes"],
            "events": [{"name": name, "timestamp": "", "attributes": more} for name, more in span["events"]],
            "links": [],
            "resource": {"attributes": {"service.name": "lighthouse"}, "schema_url": ""},
        }
        printed.append(json.dumps(item, indent=4))
    write(f"otel_sdk/{file}", "\n".join(printed) + "\n")


def phoenix_rows(run: Run) -> list[dict[str, Any]]:
    return [
        {
            "id": f"U3Bhbj{number}",
            "name": span["name"],
            "context": {"trace_id": span["trace"], "span_id": span["id"]},
            "span_kind": span["attributes"].get("openinference.span.kind", "UNKNOWN"),
            "parent_id": span["parent"] or None,
            "start_time": iso(span["start"]),
            "end_time": iso(span["end"]),
            "status_code": "OK",
            "status_message": "",
            "attributes": {k: v for k, v in span["attributes"].items() if k != "openinference.span.kind"},
            "events": [],
        }
        for number, span in enumerate(run.spans)
    ]


def phoenix(run: Run, file: str) -> None:
    write(f"phoenix/{file}", json.dumps({"data": phoenix_rows(run), "next_cursor": None}, indent=1))


def phoenix_parquet(run: Run, file: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = []
    for row in phoenix_rows(run):
        attributes = row.pop("attributes")
        context = row.pop("context")
        for side in ("input", "output"):
            messages = [value for key, value in attributes.items() if key.startswith(f"llm.{side}_messages.")]
            if messages:
                roles, contents = messages[::2], messages[1::2]
                attributes[f"llm.{side}_messages"] = [
                    {"message.role": role, "message.content": content}
                    for role, content in zip(roles, contents, strict=True)
                ]
        kept = {f"attributes.{k}": v for k, v in attributes.items() if "_messages." not in k}
        rows.append({**row, **{f"context.{key}": text for key, text in context.items()}, **kept})
    columns = dict.fromkeys(key for row in rows for key in row)
    pq.write_table(
        pa.table({key: [row.get(key) for row in rows] for key in columns}), HERE / "phoenix" / file
    )


def write(path: str, text: str) -> None:
    target = HERE / path
    target.parent.mkdir(exist_ok=True)
    target.write_text(text if text.endswith("\n") else text + "\n", "utf-8")


# --- stories -------------------------------------------------------------------------------------


def oi_messages(side: str, messages: Iterable[tuple[str, str]]) -> Attributes:
    found: Attributes = {}
    for number, (role, content) in enumerate(messages):
        found[f"llm.{side}_messages.{number}.message.role"] = role
        found[f"llm.{side}_messages.{number}.message.content"] = content
    return found


def oi_model(system: str, user: str, reply: str, tokens: tuple[int, int] = (20, 10)) -> Attributes:
    return {
        "openinference.span.kind": "LLM",
        "llm.model_name": "small",
        "llm.token_count.prompt": tokens[0],
        "llm.token_count.completion": tokens[1],
        **oi_messages("input", [("system", system), ("user", user)]),
        **oi_messages("output", [("assistant", reply)]),
    }


def langgraph() -> Run:
    """A graph: planner, then writer and historian side by side, then critic; each with its model call."""
    run = Run("openinference.instrumentation.langchain")
    root = run.span(
        "LangGraph",
        lasts=20,
        attributes={"openinference.span.kind": "CHAIN", "input.value": TASK, "session.id": "s-1"},
    )
    facts = "The keepers are two sisters; a lamp was lit there for the first time in the year 1871."
    nodes = [
        ("planner", 1, 1, "You plan.", TASK, PLAN),
        ("writer", 2, 4, "You write.", f"{TASK}\nPlan: {PLAN}", DRAFT),
        ("historian", 2, 4, "You look things up.", f"{TASK}\nPlan: {PLAN}", facts),
        ("critic", 3, 8, "You judge.", f"Draft: {DRAFT}\nFacts: {facts}", VERDICT),
    ]
    for name, step, at, system, user, reply in nodes:
        path = f"{name}:{name}-run"
        metadata = {"langgraph_node": name, "langgraph_step": step, "langgraph_checkpoint_ns": path}
        where = {"metadata": json.dumps(metadata), "session.id": "s-1"}
        node = run.span(name, root, at, 3, attributes={"openinference.span.kind": "CHAIN", **where})
        run.span("ChatModel", node, at + 1, 1, attributes={**oi_model(system, user, reply), **where})
    return run


def handoff_and_tool() -> Run:
    """A desk that hands over to a writer, who calls a checker as a tool; the root is marked as an agent."""
    run = Run("openinference.instrumentation.openai_agents")
    root = run.span("lighthouse desk", lasts=30, attributes={"openinference.span.kind": "AGENT"})
    desk = run.span("Desk", root, 1, 4, attributes=oi_agent("Desk"))
    call = "llm.output_messages.0.message.tool_calls.0.tool_call."
    handing = oi_model("You route.", TASK, "") | {
        f"{call}id": "c1",
        f"{call}function.name": "transfer_to_writer",
    }
    run.span("response", desk, 2, 1, attributes=handing)
    tool = {"openinference.span.kind": "TOOL", "input.value": "Desk", "output.value": "Writer"}
    run.span("handoff to Writer", desk, 3, 1, attributes=tool)
    writer = run.span("Writer", root, 6, 20, attributes=oi_agent("Writer") | {"graph.node.parent_id": "Desk"})
    arguments = json.dumps({"input": DRAFT})
    asking = oi_model("You write.", TASK, "Let me have that checked.") | {
        f"{call}id": "c2",
        f"{call}function.name": "check",
        f"{call}function.arguments": arguments,
    }
    run.span("response", writer, 7, 1, attributes=asking)
    tool = {
        "openinference.span.kind": "TOOL",
        "tool.name": "check",
        "input.value": arguments,
        "output.value": VERDICT,
    }
    check = run.span("check", writer, 9, 6, attributes=tool)
    checker = run.span("Checker", check, 10, 4, attributes=oi_agent("Checker"))
    run.span("response", checker, 11, 1, attributes=oi_model("You check.", DRAFT, VERDICT))
    final = oi_model("You write.", TASK, DRAFT) | {
        "llm.input_messages.2.message.role": "assistant",
        "llm.input_messages.2.message.tool_calls.0.tool_call.id": "c2",
        "llm.input_messages.5.message.role": "tool",  # a gap in the numbers
        "llm.input_messages.5.message.content": VERDICT,
        "llm.input_messages.5.message.tool_call_id": "c2",
    }
    run.span("response", writer, 17, 1, attributes=final)
    return run


def oi_agent(name: str) -> Attributes:
    return {"openinference.span.kind": "AGENT", "agent.name": name, "graph.node.id": name}


def crew() -> Run:
    """Two tasks of a crew, the second given the first as context, with a coworker asked in between."""
    run = Run("openinference.instrumentation.crewai")
    tasks = [
        {"id": "t1", "description": "Plan", "agent_role": "Planner", "context": None},
        {"id": "t2", "description": "Write", "agent_role": "Writer", "context": ["Plan"]},
    ]
    kickoff = {
        "openinference.span.kind": "CHAIN",
        "crew_id": "c",
        "crew_tasks": json.dumps(tasks),
        "crew_inputs": "",
    }
    root = run.span("Crew_c.kickoff", lasts=30, attributes=kickoff)
    planner = run.span("Planner._execute_core", root, 1, 8, attributes=crew_task("Planner", "t1", TASK, PLAN))
    asked = {"question": "When was it built?", "context": "I plan a sentence.", "coworker": "Historian"}
    tool = {"openinference.span.kind": "TOOL", "tool.name": "Ask question to coworker"}
    tool |= {"input.value": json.dumps(asked), "output.value": "In 1871."}
    run.span("Ask question to coworker.run", planner, 3, 2, attributes=tool)
    given = f"{TASK}\n\nThis is the context you're working with:\n{PLAN}"
    run.span("Writer._execute_core", root, 12, 8, attributes=crew_task("Writer", "t2", given, DRAFT))
    return run


def crew_task(role: str, task: str, prompt: str, raw: str) -> Attributes:
    output = {"raw": raw, "agent": role, "messages": [{"role": "user", "content": prompt}]}
    return {
        "openinference.span.kind": "AGENT",
        "graph.node.id": role,
        "task_id": task,
        "crew_id": "c",
        "output.value": json.dumps(output),
        "output.mime_type": "application/json",
    }


def gen_text(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": content}]}


def gen_model(
    agent: str, shown: list[Any], said: list[Any], tokens: tuple[int, int] = (20, 10)
) -> Attributes:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "small",
        "gen_ai.agent.name": agent,
        "gen_ai.input.messages": json.dumps(shown),
        "gen_ai.output.messages": json.dumps(said),
        "gen_ai.usage.input_tokens": tokens[0],
        "gen_ai.usage.output_tokens": tokens[1],
    }


def delegation() -> Run:
    """An editor calls a writer inside a tool and judges what comes back; agent spans hold totals too."""
    run = Run("pydantic-ai")
    call = {"type": "tool_call", "id": "c1", "name": "write", "arguments": {"plan": PLAN}}
    total = {"gen_ai.usage.input_tokens": 60, "gen_ai.usage.output_tokens": 30}
    session = {"gen_ai.conversation.id": "s-2"}
    editor = run.span("agent run", "", 0, 20, attributes=gen_agent("editor") | total | session)
    shown = [gen_text("system", "You edit."), gen_text("user", TASK)]
    asking = [{"role": "assistant", "parts": [call], "finish_reason": "tool_call"}]
    run.span("chat small", editor, 1, 1, attributes=gen_model("editor", shown, asking))
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "write", "gen_ai.tool.call.id": "c1"}
    tool |= {
        "tool_arguments": json.dumps({"plan": PLAN}),
        "tool_response": DRAFT,
        "gen_ai.agent.name": "editor",
    }
    inner = run.span("running tool", editor, 3, 6, attributes=tool)
    writer = run.span("agent run", inner, 4, 4, attributes=gen_agent("writer") | {"final_result": DRAFT})
    told = [gen_text("system", "You write."), gen_text("user", PLAN)]
    run.span("chat small", writer, 5, 1, attributes=gen_model("writer", told, [gen_text("assistant", DRAFT)]))
    back = {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "response": DRAFT}]}
    final = gen_model("editor", [*shown, *asking, back], [gen_text("assistant", VERDICT)])
    run.span("chat small", editor, 10, 1, attributes=final)
    return run


def gen_agent(name: str) -> Attributes:
    return {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}


def events() -> Run:
    """Messages as span events, of the generation before attributes; a failed model call, then its retry."""
    run = Run("strands.telemetry.tracer")
    root = run.span("invoke_graph", "", 0, 20, attributes={"gen_ai.operation.name": "invoke_graph"})
    stories = [
        ("planner", "You plan.", TASK, PLAN),
        ("writer", "You write.", f"From planner:\n{PLAN}", DRAFT),
    ]
    for number, (agent, system, user, reply) in enumerate(stories):
        at = 1 + 6 * number
        asked = [
            ("gen_ai.system.message", {"content": json.dumps([{"text": system}])}),
            ("gen_ai.user.message", {"content": json.dumps([{"text": user}])}),
        ]
        answer = ("gen_ai.choice", {"message": json.dumps([{"text": reply}]), "finish_reason": "end_turn"})
        named = gen_agent(agent) | {"gen_ai.system": "strands-agents"}
        node = run.span(f"invoke_agent {agent}", root, at, 5, attributes=named, events=[*asked, answer])
        chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small"}
        if agent == "writer":
            run.span("chat", node, at + 1, 1, attributes=chat, events=asked, error="rate limit")
        chat = chat | {"gen_ai.usage.prompt_tokens": 20, "gen_ai.usage.input_tokens": 20}
        chat = chat | {"gen_ai.usage.completion_tokens": 10, "gen_ai.usage.output_tokens": 10}
        run.span("chat", node, at + 3, 1, attributes=chat, events=[*asked, answer])
    return run


def indexed() -> Run:
    """Messages under indexed keys, by OpenLLMetry."""
    run = Run("opentelemetry.instrumentation.openai")
    root = run.span("desk.workflow", "", 0, 20, attributes={"traceloop.span.kind": "workflow"})
    for at, agent, user, reply in ((1, "planner", TASK, PLAN), (6, "writer", f"Plan: {PLAN}", DRAFT)):
        named = {"traceloop.span.kind": "agent", "traceloop.entity.name": agent}
        node = run.span(f"{agent}.agent", root, at, 4, attributes=named)
        chat = {"llm.request.type": "chat", "gen_ai.request.model": "small", "gen_ai.system": "OpenAI"}
        chat |= {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": user}
        chat |= {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": reply}
        chat |= {"gen_ai.usage.prompt_tokens": 20, "gen_ai.usage.completion_tokens": 10}
        run.span("openai.chat", node, at + 1, 1, attributes=chat)
    return run


def transfer() -> Run:
    """The draft that states a hand-over on the tool span and the caller on the agent span; two namesakes."""
    run = Run("lighthouse")
    root = run.span(
        "invoke_workflow desk", "", 0, 20, attributes={"gen_ai.operation.name": "invoke_workflow"}
    )
    desk = run.span("invoke_agent desk", root, 1, 4, attributes=gen_agent("desk"))
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "pass_on"}
    tool |= {"gen_ai.transfer.target.name": "writer", "gen_ai.transfer.mode": "pass_control"}
    run.span("execute_tool pass_on", desk, 2, 1, attributes=tool)
    said = {"gen_ai.output.messages": json.dumps([gen_text("assistant", DRAFT)])}
    run.span(
        "invoke_agent writer", root, 6, 2, attributes=gen_agent("writer") | {"gen_ai.agent.id": "w1"} | said
    )
    caller = {"gen_ai.caller.type": "agent", "gen_ai.caller.name": "desk"}
    other = gen_agent("writer") | {"gen_ai.agent.id": "w2"} | caller
    run.span("invoke_agent writer", root, 9, 2, attributes=other)
    return run


def linked() -> Run:
    """A workflow whose messages are spans: links say which executor got whose message."""
    run = Run("agent_framework")
    root = run.span("workflow.run", "", 0, 20, attributes={"workflow.name": "desk"})
    first = run.span("executor.process writer", root, 1, 5, attributes={"executor.id": "writer"})
    writer = run.span("invoke_agent writer", first, 2, 2, attributes=gen_agent("writer"))
    shown = [gen_text("user", TASK)]
    run.span("chat small", writer, 3, 1, attributes=gen_model("", shown, [gen_text("assistant", "Short.")]))
    sent = run.span("message.send", first, 5, 0.5, attributes={"message.type": "Reply"})
    second = run.span("executor.process critic", root, 7, 5, links=[(TRACE, sent)])
    critic = run.span("invoke_agent critic", second, 8, 2, attributes=gen_agent("critic"))
    run.span("chat small", critic, 9, 1, attributes=gen_model("", shown, [gen_text("assistant", "Fine.")]))
    return run


def observations() -> Run:
    """Langfuse's attributes on LangGraph's nodes."""
    run = Run("langfuse-sdk")
    head = "langfuse.observation."
    top = {f"{head}type": "chain", f"{head}input": json.dumps({"q": TASK}), "session.id": "s-3"}
    root = run.span("LangGraph", "", 0, 20, attributes=top)
    for at, name, user, reply in ((1, "planner", TASK, PLAN), (6, "writer", f"Plan: {PLAN}", DRAFT)):
        where = {f"{head}metadata.langgraph_node": f'"{name}"', f"{head}metadata.langgraph_step": str(at)}
        node = run.span("run_node", root, at, 4, attributes={f"{head}type": "chain", **where})
        call = {f"{head}type": "generation", f"{head}model.name": "small", **where}
        call |= {f"{head}input": json.dumps([{"role": "user", "content": user}])}
        call |= {f"{head}output": json.dumps({"role": "assistant", "content": reply})}
        call |= {f"{head}usage_details": json.dumps({"input": 20, "output": 10, "total": 30})}
        run.span("ChatModel", node, at + 1, 1, attributes=call)
    return run


def group_chat() -> Run:
    """AutoGen's runtime: a trace for each delivery, joined by links."""
    run = Run("autogen SingleThreadedAgentRuntime")
    team = "11111111-2222-3333-4444-555555555555"
    task = {"id": "m0", "source": "user", "content": TASK, "type": "TextMessage"}
    plan = chat_message("m1", "planner", PLAN)
    draft = chat_message("m2", "writer", DRAFT)
    before = ""
    for number, (kind, agent, content) in enumerate(
        [
            ("process", "planner", {"messages": [task]}),
            ("process", "writer", {"messages": [task]}),
            ("invoke", "planner", None),
            ("process", "writer", {"response": {"chat_message": plan, "inner_messages": []}}),
            ("invoke", "writer", None),
            ("process", "planner", {"response": {"chat_message": draft, "inner_messages": []}}),
        ],
        1,
    ):
        attributes: Attributes = {"recipient_agent_type": f"{agent}_{team}", "message": json.dumps(content)}
        name = f"autogen process {agent}_{team}"
        if kind == "invoke":
            name, attributes = f"invoke_agent {agent}", gen_agent(agent)
        links = [(f"{number - 1:032x}", before)] if before else []
        before = run.span(name, "", number, 0.5, attributes=attributes, links=links, trace=f"{number:032x}")
    return run


def chat_message(identity: str, source: str, content: str) -> dict[str, Any]:
    usage = {"prompt_tokens": 20, "completion_tokens": 10}
    return {
        "id": identity,
        "source": source,
        "content": content,
        "type": "TextMessage",
        "models_usage": usage,
    }


def debate_attributes(kind: str, given: Any, gave: Any) -> Attributes:
    return {
        "mlflow.spanType": json.dumps(kind),
        "mlflow.spanInputs": json.dumps(given),
        "mlflow.spanOutputs": json.dumps(gave),
    }


def debate() -> Run:
    """Two agents under MLflow, their texts passed on by the program."""
    run = Run("mlflow")
    root = run.span("debate", "", 0, 20, attributes=debate_attributes("CHAIN", {"q": TASK}, DRAFT))
    for at, name, user, reply in ((1, "planner", TASK, PLAN), (6, "writer", f"Plan: {PLAN}", DRAFT)):
        agent = run.span(name, root, at, 4, attributes=debate_attributes("AGENT", {"q": user}, reply))
        given = {"model": "small", "messages": [{"role": "user", "content": user}]}
        gave = {"choices": [{"message": {"role": "assistant", "content": reply}}]}
        call = debate_attributes("CHAT_MODEL", given, gave)
        call["mlflow.chat.tokenUsage"] = json.dumps({"input_tokens": 20, "output_tokens": 10})
        run.span("Completions", agent, at + 1, 1, attributes=call)
    return run


# --- formats with records of their own -----------------------------------------------------------


def mlflow() -> None:
    spans = [
        {
            "trace_id": base64.b64encode(bytes.fromhex(span["trace"])).decode(),
            "span_id": base64.b64encode(bytes.fromhex(span["id"])).decode(),
            "parent_span_id": base64.b64encode(bytes.fromhex(span["parent"])).decode() or None,
            "name": span["name"],
            "start_time_unix_nano": span["start"],
            "end_time_unix_nano": span["end"],
            "status": {"code": "STATUS_CODE_OK", "message": ""},
            "attributes": span["attributes"],
            "events": [],
        }
        for span in debate().spans
    ]
    info = {"trace_id": "tr-1", "state": "OK", "trace_metadata": {"mlflow.trace.session": "s-4"}}
    write("mlflow/debate.json", json.dumps({"info": info, "data": {"spans": spans}}, indent=1))


def langfuse() -> None:
    head = "langfuse.observation."
    found = []
    for span in observations().spans:
        attributes = span["attributes"]
        found.append(
            {
                "id": span["id"],
                "traceId": span["trace"],
                "parentObservationId": span["parent"] or None,
                "type": attributes[f"{head}type"].upper(),
                "name": span["name"],
                "startTime": iso(span["start"]),
                "endTime": iso(span["end"]),
                "model": attributes.get(f"{head}model.name"),
                "input": json.loads(attributes.get(f"{head}input", "null")),
                "output": json.loads(attributes.get(f"{head}output", "null")),
                "metadata": {
                    key.rpartition(".")[2]: json.loads(text)
                    for key, text in attributes.items()
                    if ".metadata." in key
                },
                "usageDetails": json.loads(attributes.get(f"{head}usage_details", "{}")),
                "level": "DEFAULT",
            }
        )
    trace = {"id": TRACE, "name": "LangGraph", "sessionId": "s-3", "observations": found}
    write("langfuse/trace.json", json.dumps(trace, indent=1))


def langsmith() -> None:
    """A supervisor that hands over and is handed back to; the last node was killed."""

    def ai(name: str, content: str, identity: str, *calls: str) -> dict[str, Any]:
        asked = [{"name": call, "args": {}, "id": f"{identity}-call", "type": "tool_call"} for call in calls]
        return {"type": "ai", "content": content, "name": name, "id": identity, "tool_calls": asked}

    human = {"type": "human", "content": TASK, "id": "h"}
    ask = ai("boss", "", "m1", "transfer_to_writer")
    draft = ai("writer", DRAFT, "m2")
    back = ai("writer", "Handing back.", "m3", "transfer_back_to_boss")
    nodes = [
        ("boss", 1, [human], ask),
        ("writer", 2, [human, ask], draft),
        ("boss", 3, [human, ask, draft, back], ai("boss", VERDICT, "m4")),
        ("printer", 4, [human, draft], None),
    ]
    runs = [
        langsmith_run(
            "r0", None, "team", "chain", 0, 40, {"messages": [human]}, {"messages": [human, draft]}, {}
        )
    ]
    for number, (name, step, given, reply) in enumerate(nodes, 1):
        metadata = {
            "langgraph_node": name,
            "langgraph_step": step,
            "langgraph_checkpoint_ns": f"{name}:{number}",
        }
        metadata["thread_id"] = "s-5"
        ended = 9 if reply else None
        state = {"messages": given}
        outputs = {"messages": [reply]} if reply else {}
        node = f"r{number}"
        runs.append(langsmith_run(node, "r0", name, "chain", 10 * number, ended, state, outputs, metadata))
        usage = {"usage_metadata": {"input_tokens": 20, "output_tokens": 10}}
        made = {"generations": [[{"text": "", "message": {**reply, **usage}}]]} if reply else {}
        call = langsmith_run(
            f"{node}m",
            node,
            "ChatModel",
            "llm",
            10 * number + 1,
            reply and 3,
            {"messages": [given]},
            made,
            metadata,
        )
        runs.append(call)
    write("langsmith/killed.jsonl", "".join(json.dumps(run) + "\n" for run in reversed(runs)))
    tree = {
        **runs[0],
        "child_runs": [
            {**node, "child_runs": [call]} for node, call in zip(runs[1::2], runs[2::2], strict=True)
        ],
    }
    write("langsmith/tree.json", json.dumps(tree, indent=1))


def langsmith_run(
    identity: str, parent: str | None, name: str, kind: str, at: int, lasts: int | None,
    inputs: Any, outputs: Any, metadata: Any,
) -> dict[str, Any]:  # fmt: skip
    return {
        "id": identity,
        "trace_id": "r0",
        "parent_run_id": parent,
        "name": name,
        "run_type": kind,
        "start_time": iso(START + at * 10**9),
        "end_time": None if lasts is None else iso(START + (at + lasts) * 10**9),
        "inputs": inputs,
        "outputs": outputs,
        "error": None,
        "extra": {"metadata": metadata},
        "tags": [],
    }


def main() -> None:
    for folder in ("otlp", "otel_sdk", "phoenix", "langsmith", "mlflow", "langfuse"):
        (HERE / folder).mkdir(exist_ok=True)
    otlp_lines(langgraph(), "langgraph.openinference.jsonl")
    otlp(handoff_and_tool(), "openai_agents.openinference.json")
    otlp(
        crew(),
        "crewai.openinference.json",
        encode=lambda text: base64.b64encode(bytes.fromhex(text)).decode(),
    )
    otlp(delegation(), "delegation.genai_messages.json")
    otlp(events(), "graph.genai_events.json")
    otlp(indexed(), "openllmetry.genai_indexed.json")
    otlp(transfer(), "transfer.genai_draft.json")
    otlp(linked(), "workflow.links.json")
    otlp(observations(), "langgraph.langfuse.json")
    otlp(debate(), "debate.mlflow.json")
    otlp_lines(group_chat(), "group_chat.autogen.jsonl")
    protobuf(delegation(), "delegation.binpb")
    otel_sdk(events(), "graph.json")
    phoenix(langgraph(), "spans.json")
    phoenix_parquet(langgraph(), "spans.parquet")
    mlflow()
    langfuse()
    langsmith()


if __name__ == "__main__":
    main()
