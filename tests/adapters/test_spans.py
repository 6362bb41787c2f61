"""Span formats: inputs that broke other tools, and everything that exporters do differently."""

from __future__ import annotations

import base64
import gzip
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import counterpoint as cp
from counterpoint.errors import MissingExtra
from counterpoint.trace import Trace

LONG = "The bridge should be closed for repairs in the first week of May, said the engineer on Monday. " * 4

Read = Callable[..., Trace]


def value(plain: Any) -> dict[str, Any]:
    if isinstance(plain, dict) and plain.keys() & {
        "intValue",
        "arrayValue",
        "kvlistValue",
        "bytesValue",
        "raw",
    }:
        return plain.get("raw", plain)
    return {"intValue": str(plain)} if isinstance(plain, int) else {"stringValue": plain}


def span(id: str, parent: str = "", at: int = 0, lasts: int = 10, /, **more: Any) -> dict[str, Any]:
    """One OTLP span; ``at`` and ``lasts`` in seconds, ``attributes`` plain."""
    attributes = [{"key": key, "value": value(plain)} for key, plain in more.pop("attributes", {}).items()]
    return {
        "traceId": "5b8efff798038103d269b633813fc60c",
        "spanId": id.encode().hex().zfill(16),
        "parentSpanId": parent.encode().hex().zfill(16) if parent else "",
        "name": more.pop("name", id),
        "startTimeUnixNano": str((1_700_000_000 + at) * 10**9),
        "endTimeUnixNano": str((1_700_000_000 + at + lasts) * 10**9),
        "attributes": attributes,
        **more,
    }


def agent(
    id: str, parent: str = "", at: int = 0, lasts: int = 10, /, *, name: str, said: str = "", **more: Any
) -> Any:
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": name,
        **more.pop("attributes", {}),
    }
    if said:
        attributes["gen_ai.output.messages"] = messages("assistant", said)
    return span(id, parent, at, lasts, attributes=attributes, name=f"invoke_agent {name}", **more)


def model(
    id: str, parent: str = "", at: int = 0, /, *, shown: str = "", said: str = "", **attributes: Any
) -> Any:
    chat = {"gen_ai.operation.name": "chat", **attributes}
    if shown:
        chat["gen_ai.input.messages"] = messages("user", shown)
    if said:
        chat["gen_ai.output.messages"] = messages("assistant", said)
    return span(id, parent, at, 1, attributes=chat)


def tool(id: str, parent: str, at: int, lasts: int = 1, /, *, name: str, **attributes: Any) -> Any:
    named = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **attributes}
    return span(id, parent, at, lasts, attributes=named)


def messages(role: str, *texts: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]} for text in texts])


def document(*spans: Any, scope: str = "made up") -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": scope}, "spans": list(spans)}]}]}


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads the one trace that spans, or a whole document, make."""

    def run(*spans: Any, **options: Any) -> Trace:
        whole = spans[0] if len(spans) == 1 and "resource_spans" in spans[0] else document(*spans)
        (tmp_path / "spans.json").write_text(json.dumps(whole), "utf-8")
        (trace,) = cp.read(tmp_path / "spans.json", on_error="raise", **options)
        return trace

    return run


def edges(trace: Trace) -> set[tuple[str, str]]:
    """Who heard whom, as ``agent#turn``, in order of time."""
    return {(source, target) for source, target, _ in evidence(trace)}


def evidence(trace: Trace) -> set[tuple[str, str, str]]:
    turns: dict[str, int] = {}
    label = {}
    for step in trace.steps:
        turns[step.agent] = turns.get(step.agent, 0) + 1
        label[step.id] = f"{step.agent}{turns[step.agent]}"
    return {
        (label[heard.source], label[step.id], heard.evidence) for step in trace.steps for heard in step.heard
    }


def spoken(trace: Trace) -> list[tuple[str, str]]:
    return [(step.agent, step.text) for step in trace.steps]


# --- the tree --------------------------------------------------------------------------------------


def test_an_orphan_is_kept_under_a_synthetic_root_and_counted(read: Read) -> None:
    orphan = agent("a", name="scout", said="Nothing there.") | {"parentSpanId": "dead0000dead0000"}
    trace = read(orphan)
    assert spoken(trace) == [("scout", "Nothing there.")]
    assert trace.labels["orphans"] == 1
    assert any("1 spans name a parent that is not there" in warning for warning in trace.warnings)


def test_a_span_that_is_its_own_parent_is_a_root_and_told_of(read: Read) -> None:
    trace = read(agent("a", "a", name="a", said="Hello."), model("m", "a", 1, said="Hello."))
    assert spoken(trace) == [("a", "Hello.")]
    assert not {"orphans", "rootless"} & trace.labels.keys()
    assert trace.warnings[0] == "1 spans name themselves as parent: taken for roots"


def test_a_cycle_of_parents_keeps_every_span(read: Read) -> None:
    trace = read(
        agent("a", "c", 0, name="one", said="1"), agent("b", "a", 1, name="two", said="2"),
        agent("c", "b", 2, name="three", said="3"), agent("d", "d", 3, name="four", said="4"),
    )  # fmt: skip
    assert {step.agent for step in trace.steps} == {"one", "two", "three", "four"}
    assert any("cycles of parents" in warning for warning in trace.warnings)


def test_a_span_that_came_twice_counts_once(read: Read) -> None:
    running = agent("a", name="scout") | {"endTimeUnixNano": "0"}
    trace = read(running, agent("a", name="scout", said="Done."))
    assert spoken(trace) == [("scout", "Done.")]


def test_a_span_that_never_ended_is_read_and_told_of(read: Read) -> None:
    trace = read(agent("a", name="scout", said="On my way.") | {"endTimeUnixNano": None})
    assert trace.steps[0].ended_at is None
    assert any("never ended" in warning for warning in trace.warnings)


def test_agents_that_began_and_ended_together_are_both_there_in_order_of_id(read: Read) -> None:
    trace = read(
        span("r"), agent("b", "r", 1, name="two", said="2"), agent("a", "r", 1, name="one", said="1")
    )
    assert [step.agent for step in trace.steps] == ["one", "two"]


def test_a_pending_span_stands_for_one_that_never_came(read: Read) -> None:
    pending = {"logfire.span_type": "pending_span", "logfire.pending_parent_id": b"r".hex().zfill(16)}
    trace = read(
        span("r", attributes={"logfire.span_type": "span"}),
        agent("p1", "a", name="scout", attributes=pending), agent("a", "r", name="scout", said="Done."),
        agent("p2", "b", 5, name="late", attributes=pending), model("m", "b", 6, said="Hm."),
    )  # fmt: skip
    assert spoken(trace) == [("scout", "Done."), ("late", "Hm.")]


# --- who is who ------------------------------------------------------------------------------------


def test_two_agents_of_one_name_stay_two_by_their_ids(read: Read) -> None:
    trace = read(
        span("r"),
        agent("a", "r", 0, name="coder", said="One.", attributes={"gen_ai.agent.id": "c1"}),
        agent("b", "r", 20, name="coder", said=LONG, attributes={"gen_ai.agent.id": "c2"}),
    )
    assert [step.agent for step in trace.steps] == ["coder (c1)", "coder (c2)"]
    assert all(heard.source != step.id for step in trace.steps for heard in step.heard)


def test_an_agent_of_an_id_and_no_name_is_called_by_its_id(read: Read) -> None:
    only = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.id": "x1"}
    trace = read(span("a", attributes=only, name="invoke_agent"), model("m", "a", 1, said="Hi."))
    assert [step.agent for step in trace.steps] == ["x1"]


@pytest.mark.parametrize(
    ("name", "label"), [("desk-b", "desk-b"), ("unknown_service:python", None), ("", None), (7, None)]
)
@pytest.mark.parametrize("form", ["as written", "with a null", "printed by the SDK"])
def test_the_service_of_the_resource_is_a_label_of_its_runs(
    tmp_path: Path, form: str, name: Any, label: str | None
) -> None:
    one = agent("a", name="A", said="x")
    whole = document(one)
    whole["resourceSpans"][0]["resource"] = {"attributes": [{"key": "service.name", "value": value(name)}]}
    if form == "with a null":  # another way of decoding
        one["droppedAttributesCount"], one["name"] = None, None
    if form == "printed by the SDK":
        whole = {
            "name": "a", "kind": "SpanKind.INTERNAL", "context": {"trace_id": "0x1", "span_id": "0x2"},
            "attributes": {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "A",
                           "gen_ai.output.messages": messages("assistant", "x")},
            "resource": {"attributes": {"service.name": name}},
        }  # fmt: skip
    (tmp_path / "spans.json").write_text(json.dumps(whole), "utf-8")
    (trace,) = cp.read(tmp_path / "spans.json", on_error="raise")
    assert trace.labels.get("service.name") == label


def test_runs_of_one_service_can_be_joined_and_are_apart_unless_asked_for(tmp_path: Path) -> None:
    runs = []
    for number, name in enumerate(("desk-a", "desk-b", "desk-a")):
        run = document(agent("a", "", 20 * number, name="A", said="x") | {"traceId": f"{number}" * 31 + "f"})
        service = {"key": "service.name", "value": {"stringValue": name}}
        run["resourceSpans"][0]["resource"] = {"attributes": [service]}
        runs += run["resourceSpans"]
    (tmp_path / "spans.json").write_text(json.dumps({"resourceSpans": runs}), "utf-8")
    assert len(list(cp.read(tmp_path / "spans.json"))) == 3
    joined = list(cp.read(tmp_path / "spans.json", group_by="service.name"))
    assert [(trace.labels["service.name"], len(trace.steps)) for trace in joined] == [
        ("desk-a", 2),
        ("desk-b", 1),
    ]


def test_a_session_of_the_resource_is_that_of_its_runs(read: Read, tmp_path: Path) -> None:
    whole = document(agent("a", name="a", said="Hi."))
    session = {"key": "session.id", "value": {"stringValue": "S"}}
    whole["resourceSpans"][0]["resource"] = {"attributes": [session]}
    snake = {"resource_spans": whole["resourceSpans"]}
    for number, each in enumerate((whole, snake)):
        (tmp_path / f"{number}.json").write_text(json.dumps(each))
        (trace,) = cp.read(tmp_path / f"{number}.json")
        assert trace.labels["session.id"] == "S"


def test_a_document_that_is_cut_off_is_to_be_exported_again(tmp_path: Path) -> None:
    text = json.dumps(document(agent("a", name="a", said="Hi.")), indent=1)
    (tmp_path / "x.json").write_text(text[:-20])
    reading = cp.read(tmp_path / "x.json", on_error=lambda error: None)
    assert list(reading) == []
    assert "it is cut off: export it again" in str(reading.errors[0])


def test_one_agent_seen_as_two_nested_spans_is_one_turn(read: Read) -> None:
    trace = read(agent("a", name="boss"), agent("b", "a", name="boss"), model("m", "b", 1, said="Go."))
    assert spoken(trace) == [("boss", "Go.")]


def test_an_agent_that_calls_itself_as_a_tool_takes_two_turns_more(read: Read) -> None:
    trace = read(
        agent("a", "", 0, 30, name="solver"), model("m1", "a", 1, said="Divide."),
        tool("t", "a", 3, 9, name="solve"),
        agent("b", "t", 4, 6, name="solver"), model("m2", "b", 5, said="Half."),
        model("m3", "a", 15, said="Both halves."),
    )  # fmt: skip
    assert [step.text for step in trace.steps] == ["Divide.", "Half.", "Both halves."]


def test_a_model_call_without_any_agent_takes_the_name_of_the_function_around_it(read: Read) -> None:
    trace = read(span("r", name="main"), span("f", "r", name="summarize"), model("m", "f", 1, said="Short."))
    assert spoken(trace) == [("summarize", "Short.")]
    assert trace.labels["identity_rules"] == {"ancestor's name": 1}


def test_bare_model_calls_are_told_apart_by_the_role_in_their_system_prompts(read: Read) -> None:
    def call(id: str, at: int, system: str, said: str) -> Any:
        prompt = json.dumps([{"role": "system", "content": system}, {"role": "user", "content": "Go on."}])
        return model(id, "r", at, said=said, **{"gen_ai.input.messages": prompt})

    optimist, judge = "You are an optimist who likes ferries.", "You are the judge. Be fair."
    trace = read(
        span("r", name="debate"), call("a", 1, optimist, "Yes."), call("b", 2, judge, "Why?"),
        call("c", 3, optimist, "Because."), call("d", 4, optimist, "Really."),
    )  # fmt: skip
    assert spoken(trace) == [("optimist", "Yes."), ("judge", "Why?"), ("optimist", "Because.\n\nReally.")]
    assert trace.labels["identity_rules"] == {"role string": 3}


def test_model_calls_of_a_named_agent_and_the_tool_between_them_are_one_turn(read: Read) -> None:
    asks = [
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "look", "arguments": {}}]}
    ]
    trace = read(
        span("r", "", 0, 90),
        model("a", "r", 1, **{"gen_ai.agent.name": "A", "gen_ai.output.messages": json.dumps(asks)}),
        tool("t", "r", 2, name="look", **{"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "Fog."}),
        model("b", "r", 4, said="I see fog.", **{"gen_ai.agent.name": "A"}),
        model("c", "r", 6, said="Then wait.", **{"gen_ai.agent.name": "B"}),
        model("d", "r", 8, said="I wait.", **{"gen_ai.agent.name": "A"}),
    )  # fmt: skip
    assert spoken(trace) == [("A", "I see fog."), ("B", "Then wait."), ("A", "I wait.")]
    assert [(call.tool, call.result) for call in trace.steps[0].calls] == [("look", "Fog.")]


def test_a_team_that_is_marked_as_an_agent_and_calls_no_model_is_none(read: Read) -> None:
    trace = read(
        agent("t", "", 0, 90, name="team", said="All of it."),
        agent("a", "t", 1, name="A"),
        model("m", "a", 2, said="x"),
    )
    assert spoken(trace) == [("A", "x")]


def test_an_agent_called_in_code_that_a_model_wrote_is_a_call(read: Read) -> None:
    trace = read(
        agent("a", "", 0, 60, name="boss"), model("m1", "a", 1, said='answer = searcher(task="Lyon")'),
        agent("b", "a", 3, 8, name="searcher"), model("mb", "b", 4, said="Lyon."),
        model("m2", "a", 20, said="Done."),
    )  # fmt: skip
    assert evidence(trace) == {("boss1", "searcher1", "call"), ("searcher1", "boss2", "call")}


def test_a_workflow_root_that_is_marked_as_an_agent_is_none(read: Read) -> None:
    kind = {"openinference.span.kind": "AGENT"}
    trace = read(
        span("r", attributes=kind, name="my workflow"),
        span("a", "r", 1, attributes={**kind, "agent.name": "clerk", "output.value": "Filed."}),
    )
    assert spoken(trace) == [("clerk", "Filed.")]


def test_guardrails_and_evaluators_are_control(read: Read) -> None:
    trace = read(
        agent("a", name="clerk"), model("m", "a", 1, said="Filed."),
        span("g", "a", 3, 4, attributes={"openinference.span.kind": "GUARDRAIL"}, name="no names"),
        model("n", "g", 4, said="Safe."),
    )  # fmt: skip
    assert [(step.agent, step.kind) for step in trace.steps] == [("clerk", "agent"), ("no names", "control")]


# --- who heard whom --------------------------------------------------------------------------------


def langgraph(id: str, node: str, step: int, at: int) -> Any:
    metadata = json.dumps({"langgraph_step": step, "langgraph_node": node})
    return span(
        id, "r", at, 1, attributes={"openinference.span.kind": "CHAIN", "metadata": metadata}, name=node
    )


def test_parallel_nodes_of_one_step_both_get_their_edges(read: Read) -> None:
    trace = read(
        span("r", attributes={"openinference.span.kind": "CHAIN"}),
        langgraph("a", "gen", 2, 1), langgraph("b", "classify", 3, 3),
        langgraph("c", "title", 3, 3), langgraph("d", "join", 4, 5),
    )  # fmt: skip
    assert edges(trace) == {
        ("gen1", "classify1"), ("gen1", "title1"), ("classify1", "join1"), ("title1", "join1"),
    }  # fmt: skip
    assert len(cp.graph(trace).unrolled.edges) == 4


def test_hand_overs_in_a_circle_stay_finite(read: Read) -> None:
    def turn(number: int, name: str, target: str) -> list[Any]:
        outer, at = f"t{number}", 10 * number
        kind = {"openinference.span.kind": "TOOL", "input.value": name, "output.value": target}
        return [
            agent(outer, "r", at, 9, name=name), model(f"m{number}", outer, at + 1, said="Your turn."),
            span(f"h{number}", outer, at + 3, 1, attributes=kind, name=f"handoff to {target}"),
        ]  # fmt: skip

    trace = read(
        span("r", "", 0, 90), *turn(0, "A", "B"), *turn(1, "B", "A"), *turn(2, "A", "B"), *turn(3, "B", "A")
    )
    explicit = {(source, target) for source, target, how in evidence(trace) if how == "explicit"}
    assert explicit == {("A1", "B1"), ("B1", "A2"), ("A2", "B2")}
    assert cp.graph(trace).cycles == [["A", "B"]]
    assert len(cp.graph(trace).unrolled.names) == 4


def test_a_hand_over_without_its_arguments_is_to_the_turn_that_follows_beside(read: Read) -> None:
    trace = read(
        span("root", "", 0, 20),
        agent("a", "root", 0, 5, name="desk"),
        model("m", "a", 1),
        tool("t", "a", 3, name="transfer_to_agent"),
        agent("b", "root", 6, 5, name="weather"),
        model("n", "b", 7),
    )
    assert evidence(trace) == {("desk1", "weather1", "explicit")}


def test_a_turn_that_goes_on_is_not_before_another(read: Read) -> None:
    trace = read(
        agent("a", "", 0, 9, name="first", said="One."),
        agent("b", "", 10, 9, name="left", said="Two."),
        agent("c", "", 11, 7, name="right", said="Three."),
        agent("d", "", 20, 2, name="last", said="Four."),
    )
    assert evidence(trace) == {
        ("first1", "left1", "sequence"),
        ("first1", "right1", "sequence"),
        ("right1", "last1", "sequence"),
    }


def test_an_operation_of_no_known_name_with_a_reply_is_a_model_call(read: Read) -> None:
    plan = model("p", "a", 1, said="First this.")
    plan["attributes"][0] = {"key": "gen_ai.operation.name", "value": {"stringValue": "plan"}}
    assert spoken(read(agent("a", name="a"), plan)) == [("a", "First this.")]


def test_an_agent_that_only_holds_others_is_left_out_with_a_warning(read: Read) -> None:
    trace = read(agent("a", "", 0, 9, name="boss"), agent("b", "a", 1, 2, name="worker"), model("m", "b", 1))
    assert [step.agent for step in trace.steps] == ["worker"]
    assert "no model call of its own, so taken for a workflow and not for an agent: boss" in trace.warnings


def test_agents_called_as_tools_split_the_callers_turn_once(read: Read) -> None:
    trace = read(
        agent("a", "", 0, 60, name="boss"), model("m1", "a", 1, said="Ask both."),
        tool("t1", "a", 3, 10, name="ask_x"),
        agent("x", "t1", 4, 8, name="x"), model("mx", "x", 5, said="X."),
        tool("t2", "a", 3, 10, name="ask_y"),
        agent("y", "t2", 4, 8, name="y"), model("my", "y", 5, said="Y."),
        model("m2", "a", 20, said="Done."),
    )  # fmt: skip
    assert [step.agent for step in trace.steps] == ["boss", "x", "y", "boss"]
    assert evidence(trace) == {
        ("boss1", "x1", "call"), ("boss1", "y1", "call"), ("x1", "boss2", "call"), ("y1", "boss2", "call"),
    }  # fmt: skip


def test_a_turn_that_was_split_at_calls_ends_where_the_call_begins(read: Read) -> None:
    trace = read(
        agent("boss", "", 0, 20, name="boss", said="All done."),
        tool("ask", "boss", 2, 6, name="helper"),
        agent("help", "ask", 3, 4, name="helper", said="Half."),
    )
    times = [(s.agent, (s.started_at or 0) - 1.7e9, (s.ended_at or 0) - 1.7e9) for s in trace.steps]
    assert times == [("boss", 0, 2), ("helper", 3, 7), ("boss", 7, 20)]


def test_a_run_whose_root_never_came_is_marked(read: Read) -> None:
    assert "rootless" not in read(agent("a", name="a", said="Hi.")).labels
    assert read(agent("a", "gone", name="a", said="Hi.")).labels["rootless"] is True


def test_an_agent_beside_the_model_call_of_its_caller_does_not_split_it(read: Read) -> None:
    trace = read(
        agent("a", "", 0, 30, name="support"),
        agent("g", "a", 1, 5, name="guard"), model("mg", "g", 2, said="No."),
        model("m", "a", 1, said="Hello."),
    )  # fmt: skip
    assert sorted(spoken(trace)) == [("guard", "No."), ("support", "Hello.")]


def test_the_same_text_from_two_is_heard_from_both_and_flagged(read: Read) -> None:
    trace = read(
        span("r", "", 0, 90),
        agent("a", "r", 0, name="A"), model("ma", "a", 1, said=LONG),
        agent("b", "r", 11, name="B"), model("mb", "b", 12, said=LONG),
        agent("c", "r", 22, name="C"), model("mc", "c", 23, shown=f"A: {LONG}\nB: {LONG}", said=LONG),
        agent("d", "r", 33, name="A"), model("md", "d", 34, shown=LONG, said="Enough."),
    )  # fmt: skip
    assert edges(trace) >= {("A1", "C1"), ("B1", "C1"), ("C1", "A2")}
    assert any("3 turns" in warning or "2 turns" in warning for warning in trace.warnings)


def test_a_link_between_spans_is_an_explicit_transfer(read: Read) -> None:
    link = {"links": [{"traceId": "5b8efff798038103d269b633813fc60c", "spanId": b"m1".hex().zfill(16)}]}
    trace = read(
        span("r", "", 0, 90), agent("a", "r", 0, name="A"), model("m1", "a", 1, said="x"),
        agent("b", "r", 20, name="B", **link), model("m2", "b", 21, said="y"),
    )  # fmt: skip
    assert evidence(trace) == {("A1", "B1", "explicit")}


def test_links_are_followed_through_spans_of_no_agent(read: Read) -> None:
    def to(id: str) -> dict[str, Any]:
        return {"links": [{"spanId": id.encode().hex().zfill(16)}]}

    trace = read(
        span("r", "", 0, 90),
        span("e1", "r", 0), agent("a", "e1", 0, name="A"), model("m1", "a", 1, said="x"), span("s1", "e1", 5),
        span("e2", "r", 12, **to("s1")), span("s2", "e2", 13),
        span("e3", "r", 20, **to("s2")), agent("b", "e3", 21, name="B"), model("m2", "b", 22, said="y"),
    )  # fmt: skip
    assert evidence(trace) == {("A1", "B1", "explicit")}


def test_mere_order_is_marked_as_such(read: Read) -> None:
    trace = read(span("r"), agent("a", "r", 0, name="A", said="x"), agent("b", "r", 20, name="B", said="y"))
    assert evidence(trace) == {("A1", "B1", "sequence")}


# --- values, ids, times ----------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["25", 25, 25.0])
def test_tokens_come_as_text_or_as_numbers(read: Read, number: Any) -> None:
    trace = read(model("m", said="x", **{"gen_ai.usage.input_tokens": {"intValue": number}}))
    assert trace.steps[0].usage is not None
    assert trace.steps[0].usage.tokens_in == 25


def test_lists_objects_bytes_and_empty_values_are_read(read: Read) -> None:
    parts = {"arrayValue": {"values": [{"stringValue": "x"}, {"intValue": "2"}]}}
    nested = {"kvlistValue": {"values": [{"key": "a", "value": {"boolValue": False}}]}}
    odd = {
        "list": parts,
        "object": nested,
        "bytes": {"bytesValue": "AA=="},
        "none": {"raw": {}},
        "empty": {"arrayValue": {}},
    }
    message = {"kvlistValue": {"values": [
        {"key": "role", "value": {"stringValue": "assistant"}},
        {"key": "content", "value": {"stringValue": "Hi."}},
    ]}}  # fmt: skip
    said = {"gen_ai.output.messages": {"arrayValue": {"values": [message]}}}
    assert spoken(read(model("m", **odd, **said)))[0][1] == "Hi."


def test_gaps_in_the_numbers_of_messages_do_no_harm(read: Read) -> None:
    prompt = {f"llm.input_messages.{n}.message.content": f"part {n}" for n in (0, 3, 11)}
    role = {"llm.output_messages.7.message.role": "assistant", "llm.output_messages.7.message.content": "ok"}
    trace = read(span("m", attributes={"openinference.span.kind": "LLM", **prompt, **role}))
    assert trace.steps[0].prompt == "part 0\n\npart 3\n\npart 11"
    assert trace.steps[0].text == "ok"


def as_hex(id: str) -> str:
    return id


def as_0x(id: str) -> str:
    return f"0x{id}" if id else id


def as_base64(id: str) -> str:
    return base64.b64encode(bytes.fromhex(id)).decode()


@pytest.mark.parametrize("form", [as_hex, as_0x, as_base64, str.upper])
def test_ids_come_in_any_form(read: Read, form: Callable[[str], str]) -> None:
    spans = [agent("a", name="boss"), model("m", "a", 1, said="Go.")]
    for each in spans:
        for key in ("traceId", "spanId", "parentSpanId"):
            each[key] = form(each[key])
    trace = read(*spans)
    assert trace.labels["trace_id"] == "5b8efff798038103d269b633813fc60c"
    assert spoken(trace) == [("boss", "Go.")]


def test_times_come_as_text_as_numbers_and_not_at_all(read: Read) -> None:
    one, two, three = (agent(letter, name=letter, said=letter) for letter in "abc")
    one["startTimeUnixNano"] = 1_700_000_000_000_000_000
    two["startTimeUnixNano"] = "1700000001000000000"
    three.pop("startTimeUnixNano")
    trace = read(one, two, three)
    assert [(step.agent, step.started_at) for step in trace.steps] == [
        ("a", 1.7e9),
        ("b", 1.7e9 + 1),
        ("c", None),
    ]
    assert any("1 spans have no start that can be read" in warning for warning in trace.warnings)


@pytest.mark.parametrize(
    ("around", "untimed", "order"),
    [
        ([], agent("u", "", 0, 25, name="u", said="U."), "abuc"),  # by its end
        ([model("m", "u", 15, said="U.")], agent("u", "", 0, 99, name="u"), "aubc"),  # by its first child
        ([span("p", "", 12)], agent("u", "p", 0, -(10**12), name="u", said="U."), "aubc"),  # by its parent
        ([], agent("u", "", 0, -(10**12), name="u", said="U."), "abcu"),  # by its place in the file
    ],
)
def test_a_span_of_no_readable_start_stands_where_else_is_known_of_it(
    read: Read, around: list[Any], untimed: Any, order: str
) -> None:
    timed = [agent(name, "", at, 5, name=name, said=name) for name, at in (("a", 0), ("b", 18), ("c", 30))]
    trace = read(*timed, *around, {**untimed, "startTimeUnixNano": "soon"})
    assert "".join(step.agent for step in trace.steps) == order
    assert [step.started_at for step in trace.steps if step.agent == "u"] == [None]
    assert any("1 spans have no start that can be read" in warning for warning in trace.warnings)


@pytest.mark.parametrize("unset", [0, "0", "1970-01-01T00:00:00Z"])
def test_a_time_of_zero_is_no_time(read: Read, unset: Any) -> None:
    one, two = agent("a", name="a", said="A."), agent("b", "", 5, name="b", said="B.")
    trace = read(one | {"startTimeUnixNano": unset}, two | {"endTimeUnixNano": unset})
    times = {step.agent: (step.started_at, step.ended_at) for step in trace.steps}
    assert times == {"a": (None, 1.7e9 + 10), "b": (1.7e9 + 5, None)}
    assert any("1 spans have no start that can be read" in warning for warning in trace.warnings)


def test_an_end_before_its_start_is_not_known_and_told_of(read: Read) -> None:
    trace = read(agent("a", "", 1000, -1000, name="a", said="A."))
    assert [(step.started_at, step.ended_at) for step in trace.steps] == [(1.7e9 + 1000, None)]
    assert "1 spans end before they start: when they ended is not known" in trace.warnings
    assert "running" not in trace.labels


def test_snake_case_and_one_wrong_span_are_no_reason_to_stop(read: Read) -> None:
    good = {"trace_id": "t", "span_id": "s", "name": "invoke_agent x", "attributes": [
        {"key": "gen_ai.operation.name", "value": {"string_value": "invoke_agent"}},
        {"key": "gen_ai.output.messages", "value": {"string_value": messages("assistant", "Hi.")}},
    ]}  # fmt: skip
    trace = read({"resource_spans": [{"scope_spans": [{"spans": [good, {"span_id": 5}]}]}]})
    assert spoken(trace) == [("x", "Hi.")]
    assert any("1 spans are not of OTLP's shape" in warning for warning in trace.warnings)


def test_unknown_attributes_and_operations_never_fail(read: Read) -> None:
    odd = span("o", "a", 2, attributes={"gen_ai.operation.name": "daydream", "llm.unheard.of": "x", "": "y"})
    assert spoken(read(agent("a", name="boss", said="Go."), odd)) == [("boss", "Go.")]


@pytest.mark.parametrize("depth", [400, 20_000])
def test_values_nested_beyond_reason_never_fail(read: Read, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    trace = read(
        model("m", **{"gen_ai.input.messages": deep, "gen_ai.output.messages": deep, "metadata": deep})
    )
    assert len(trace.steps) == 1


@pytest.mark.parametrize("depth", [240, 900])
@pytest.mark.parametrize("key", ["resourceSpans", "resource_spans"])
def test_an_attribute_nested_too_deeply_costs_neither_its_span_nor_the_file(
    tmp_path: Path, depth: int, key: str
) -> None:
    deep = '{"arrayValue":{"values":[' * depth + '{"stringValue":"x"}' + "]}}" * depth
    spans = [
        agent("a", name="A", said="Go.", attributes={"deep": {"raw": "@"}}),
        agent("b", "", 20, name="B", said="Gone."),
    ]
    text = json.dumps({key: document(*spans)["resourceSpans"]}).replace('"@"', deep)
    (tmp_path / "spans.json").write_text(text, "utf-8")
    (trace,) = cp.read(tmp_path / "spans.json", on_error="raise")
    assert spoken(trace) == [("A", "Go."), ("B", "Gone.")]
    cut = "values nested more than 200 deep were read as null"
    assert (cut in trace.warnings) == (depth == 900 or key == "resource_spans")


def test_tokens_of_an_agent_count_only_where_its_model_calls_know_none(read: Read) -> None:
    total = {"gen_ai.usage.input_tokens": 60, "gen_ai.usage.output_tokens": 40}
    leaf = {"gen_ai.usage.input_tokens": 6, "gen_ai.usage.prompt_tokens": 6, "gen_ai.usage.output_tokens": 4}
    with_leaves = read(agent("a", name="A", attributes=total), model("m", "a", 1, said="x", **leaf))
    without = read(agent("a", name="A", attributes=total), model("m", "a", 1, said="x"))
    assert [step.usage and step.usage.tokens_in for step in (*with_leaves.steps, *without.steps)] == [6, 60]


def test_a_model_span_around_another_counts_once(read: Read) -> None:
    used = {"gen_ai.usage.input_tokens": 6}
    trace = read(model("w", said="Hi.", shown="Hello?", **used), model("m", "w", **used))
    (step,) = trace.steps
    assert (step.text, step.prompt, step.usage and step.usage.tokens_in) == ("Hi.", "Hello?", 6)


# --- files -----------------------------------------------------------------------------------------


def test_lines_out_of_order_and_zipped_are_one_trace(tmp_path: Path) -> None:
    spans = [agent("a", name="boss"), model("m", "a", 1, said="Go.")]
    lines = [json.dumps(document(each)) for each in reversed(spans)]
    with gzip.open(tmp_path / "spans.jsonl.gz", "wt") as file:
        file.write("\n".join(lines))
    (trace,) = cp.read(tmp_path / "spans.jsonl.gz", on_error="raise")
    assert spoken(trace) == [("boss", "Go.")]


def test_a_broken_line_is_an_error_and_the_rest_is_read(tmp_path: Path) -> None:
    lines = [json.dumps(document(agent("a", name="boss", said="Go."))), '{"resourceSpans": [', ""]
    (tmp_path / "spans.jsonl").write_text("\n".join(lines), "utf-8")
    reading = cp.read(tmp_path / "spans.jsonl", on_error=lambda error: None)
    assert [spoken(trace) for trace in reading] == [[("boss", "Go.")]]
    (error,) = reading.errors
    assert "record 2" in str(error)


def test_a_zipped_file_that_breaks_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    filler = base64.b64encode(random.Random(0).randbytes(3000)).decode()
    lines = [
        json.dumps(document(agent(str(at), name=f"a{at}", said=filler[at:])) | {"x": at}) for at in range(90)
    ]
    zipped = gzip.compress("\n".join(lines).encode())
    for size in (len(zipped) // 2, 5000):
        (tmp_path / "x.jsonl.gz").write_bytes(zipped[:size])
        reading = cp.read(tmp_path / "x.jsonl.gz", on_error=lambda error: None)
        (trace,) = reading
        assert trace.id == "x.jsonl.gz"
        assert 0 < len(trace.steps) < 90
        assert ["could not be read to its end" in str(error) for error in reading.errors] == [True]


def test_a_bad_line_before_does_not_change_the_id_of_a_run(tmp_path: Path) -> None:
    good = json.dumps(document(agent("a", name="a", said="Hi.")))
    (tmp_path / "x.jsonl").write_text(f"{good}\n{{broken\n")
    (tmp_path / "y.jsonl").write_text(f"{good[:20]}\n{good}\n")
    assert [trace.id for trace in cp.read(tmp_path, on_error=lambda error: None)] == ["x.jsonl", "y.jsonl"]


def test_spans_without_any_agent_or_model_say_so(tmp_path: Path) -> None:
    (tmp_path / "spans.json").write_text(json.dumps(document(span("a", name="GET /"))), "utf-8")
    reading = cp.read(tmp_path / "spans.json", on_error=lambda error: None)
    assert list(reading) == []
    assert "found 1 spans" in str(reading.errors[0])


def test_two_runs_in_one_file_are_two_traces_and_one_by_session(tmp_path: Path) -> None:
    one = agent("a", name="A", said="x", attributes={"session.id": "s"})
    two = agent("b", "", 20, name="B", said="y", attributes={"session.id": "s"}) | {"traceId": "a" * 32}
    (tmp_path / "spans.json").write_text(json.dumps(document(one, two)), "utf-8")
    apart = list(cp.read(tmp_path / "spans.json", on_error="raise"))
    together = list(cp.read(tmp_path / "spans.json", on_error="raise", group_by="session.id"))
    assert [trace.id for trace in apart] == ["spans.json#1", "spans.json#2"]
    assert [step.agent for trace in together for step in trace.steps] == ["A", "B"]
    assert len(together) == 1


def test_protobuf_without_its_packages_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "counterpoint.adapters._otlp_protobuf", raising=False)
    monkeypatch.delattr("counterpoint.adapters._otlp_protobuf", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.common.v1.common_pb2", None)
    fixture = Path(__file__).parents[1] / "golden" / "otlp" / "delegation.binpb"
    reading = cp.read(fixture, on_error=lambda error: None)
    assert list(reading) == []
    assert "counterpoint[otlp]" in str(reading.errors[0])
    assert isinstance(reading.errors[0].__cause__, MissingExtra)


def test_a_message_of_a_megabyte_is_read_and_found(read: Read) -> None:
    huge = "".join(f"{number:06d} lines of the log were read without fault. " for number in range(20_000))
    trace = read(
        span("r"), agent("a", "r", 0, name="A"), model("m", "a", 1, said=huge),
        agent("b", "r", 20, name="B"), model("n", "b", 21, shown=f"Log:\n{huge}", said="Fine."),
    )  # fmt: skip
    assert evidence(trace) == {("A1", "B1", "context")}


def test_a_run_of_33_000_spans_of_six_agents_is_read_in_seconds(read: Read, takes_at_most: Any) -> None:
    spans = [span("r", "", 0, 10**6)]
    for number in range(10_947):
        before = f"Report {number - 1}: the water stands {number % 97} centimeters over the mark."
        report = f"Report {number}: the water stands {(number + 1) % 97} centimeters over the mark."
        spans += [
            agent(f"a{number}", "r", 10 * number, 9, name=f"gauge {number % 6}"),
            model(f"m{number}", f"a{number}", 10 * number + 1, shown=f"Go on from: {before}", said=report),
            tool(f"t{number}", f"a{number}", 10 * number + 3, name="look"),
        ]  # fmt: skip
    traces: list[Trace] = []
    assert takes_at_most(10, lambda: traces.append(read(*spans)))
    trace = traces[-1]
    assert trace.labels["spans"] == 32_842
    assert len(trace.steps) == 10_947
    heard = [(step.heard[0].source, step.heard[0].evidence) for step in trace.steps[1:]]
    assert heard == [(step.id, "context") for step in trace.steps[:-1]]


def test_a_manager_with_a_thousand_calls_is_read_in_seconds(read: Read) -> None:
    spans = [agent("boss", "", 0, 10**6, name="boss"), model("m", "boss", 1, said="Begin.")]
    for number in range(1500):
        at = 10 * number + 5
        spans += [
            tool(f"t{number}", "boss", at, 5, name="ask"),
            agent(f"w{number}", f"t{number}", at + 1, 3, name="worker"),
            model(f"x{number}", f"w{number}", at + 2, said=f"Part {number}."),
            model(f"b{number}", "boss", at + 7, said=f"Next, {number}."),
        ]  # fmt: skip
    trace = read(*spans)
    assert len(trace.steps) == 3001
    assert sum(heard.evidence == "call" for step in trace.steps for heard in step.heard) == 3000


def test_a_status_of_another_shape_does_not_cost_its_span(read: Read) -> None:
    assert spoken(read(agent("a", name="a", said="Hi.", status="weird"))) == [("a", "Hi.")]


# --- runs over several files -------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [6, 20, 33, 45])
def test_a_run_that_links_hold_together_is_one_over_two_files(tmp_path: Path, cut: int) -> None:
    whole = Path(__file__).parents[1] / "golden/otlp/autogen_round_robin.json"
    spans = [
        (part["scope"], span)
        for group in json.loads(whole.read_text("utf-8"))["resourceSpans"]
        for part in group["scopeSpans"]
        for span in part["spans"]
    ]
    for name, half in (("1", spans[:cut]), ("2", spans[cut:])):
        parts = [{"scope": scope, "spans": [span]} for scope, span in half]
        (tmp_path / f"{name}.json").write_text(
            json.dumps({"resourceSpans": [{"scopeSpans": parts}]}), "utf-8"
        )
    (expected,) = cp.read(whole)
    (trace,) = cp.read(tmp_path, on_error=lambda error: None)
    assert spoken(trace) == spoken(expected)
    assert evidence(trace) == evidence(expected)
    assert trace.labels["spans"] == len(spans)
    assert "linked_run" not in trace.labels


def test_runs_without_a_common_link_stay_apart(tmp_path: Path) -> None:
    for number in "12":
        one = agent("a", name="a", said=f"From {number}.")
        other = agent("b", "", 20, name="b", said=f"Then {number}.", links=[{"spanId": f"{number}" * 16}])
        for each in (one, other):
            each["traceId"] = number * 32
            each["spanId"] = number + each["spanId"][1:]
        (tmp_path / f"{number}.json").write_text(json.dumps(document(one, other)))
    first, second = cp.read(tmp_path)
    assert [step.text for step in (*first.steps, *second.steps)] == [
        "From 1.",
        "Then 1.",
        "From 2.",
        "Then 2.",
    ]


def test_a_label_of_a_file_is_no_linked_run(tmp_path: Path) -> None:
    steps = [{"id": "s", "agent": "a", "text": "Hi."}]
    (tmp_path / "x.jsonl").write_text(json.dumps({"id": "x", "steps": steps, "labels": {"linked_run": 0}}))
    (trace,) = cp.read(tmp_path / "x.jsonl")
    assert trace.labels["linked_run"] == 0
