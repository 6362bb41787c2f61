"""Traces to role graphs: what is a node, what an edge, what stays the same."""

import pytest
from msgspec.structs import replace

from counterpoint.errors import UsageError
from counterpoint.metrics.rolegraph import RoleGraph, actions, content_hash
from counterpoint.trace import Call, Step, Trace, Transfer, Usage


def step(name, agent, *heard, text="words", **more):
    return Step(name, agent, text, heard=tuple(Transfer(source) for source in heard), **more)


def trace(*steps, **more):
    return Trace("t", steps, task="2+2?", **more)


def test_turns_calls_and_decisions_are_nodes_and_tasks_and_routers_are_none():
    run = trace(
        step("1", "user", kind="task"),
        step("2", "router", "1", kind="control"),
        step("3", "coder", "1", "2", calls=(Call("c1", "python", result="4"), Call("c2", "python"))),
        step("4", "Computer_terminal", "3", kind="tool"),
        step("5", "FinalRefer", "3", "4", kind="decision"),
    )
    graph = RoleGraph.from_trace(run)
    assert graph.roles == ("tool", "tool", "coder", "tool", "decision")
    # the call that returned nothing gave nothing on
    assert graph.edges.tolist() == [[0, 2], [2, 3], [2, 4], [3, 4]]
    assert graph.agents == ("coder", "coder", "coder", "Computer_terminal", "FinalRefer")
    assert [node.content for node in actions(run)][:2] == ["python  4", "python"]


def test_own_memory_is_no_edge():
    assert RoleGraph.from_trace(trace(step("1", "coder"), step("2", "coder", "1"))).edges.tolist() == []


def test_transfers_weaker_than_asked_for_are_no_edges():
    heard = (Transfer("1", evidence="sequence"),)
    run = trace(step("1", "planner"), Step("2", "coder", "x", heard=heard))
    assert RoleGraph.from_trace(run).edges.tolist() == []
    assert RoleGraph.from_trace(run, evidence="sequence").edges.tolist() == [[0, 1]]
    with pytest.raises(UsageError, match="evidence 'rumor'"):
        RoleGraph.from_trace(run, evidence="rumor")


def test_a_declared_role_comes_before_the_name_but_a_protocol_role_does_not():
    run = trace(step("1", "Anna", role="critic"), step("2", "planner", role="assistant"))
    assert RoleGraph.from_trace(run).roles == ("critic", "planner")


def test_tokens_are_known_where_every_turn_or_the_run_records_them():
    used = Usage(tokens_in=10, tokens_out=5)
    full = trace(step("1", "a", usage=used), step("2", "b", usage=used, calls=(Call("c", "x"),)))
    assert RoleGraph.from_trace(full).tokens == 30
    assert RoleGraph.from_trace(trace(step("1", "a", usage=used), step("2", "b"))).tokens is None
    total = trace(step("1", "a"), labels={"run_usage": {"tokens_in": 7, "tokens_out": 1}})
    assert RoleGraph.from_trace(total).tokens == 8


def test_a_run_that_does_not_say_that_it_was_right_is_not_verified():
    runs = [trace(step("1", "a"), correct=correct) for correct in (True, False, None)]
    assert [RoleGraph.from_trace(run).correct for run in runs] == [1, 0, 0]


def test_where_a_graph_comes_from_is_kept():
    run = trace(
        step("1", "a"), system="ours", benchmark="sums", labels={"task_id": 7, "conditioning": "gold"}
    )
    graph = RoleGraph.from_trace(run)
    assert (graph.generator, graph.conditioning) == ("ours", "gold")
    assert (graph.origin.task, graph.origin.dataset) == ("7", "sums")


def test_a_copied_run_has_the_same_hash_whatever_its_ids_and_another_text_has_not():
    run = trace(step("1", "a"), step("2", "b", "1"))
    copy = trace(step("x", "a"), step("y", "b", "x"), source="elsewhere")
    assert content_hash(replace(copy, id="copy")) == content_hash(run)
    assert content_hash(trace(step("1", "a", text="others"), step("2", "b", "1"))) != content_hash(run)


def test_two_structures_differ_where_roles_or_edges_do():
    fork = RoleGraph(["a", "b", "b", "c"], [(0, 1), (0, 2), (1, 3)])
    assert RoleGraph(["a", "b", "b", "c"], [(0, 1), (0, 2), (2, 3)]).structure == fork.structure
    assert RoleGraph(["a", "b", "b", "c"], [(0, 1), (1, 3), (2, 3)]).structure != fork.structure
    assert RoleGraph(["a", "b", "c", "c"], [(0, 1), (0, 2), (1, 3)]).structure != fork.structure


def test_an_empty_trace_has_an_empty_graph():
    graph = RoleGraph.from_trace(Trace("t", ()))
    assert (graph.n, graph.depth, graph.width, graph.tokens) == (0, 0, 0, None)
