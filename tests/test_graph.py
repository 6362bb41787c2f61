import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.errors import GraphError, UsageError
from counterpoint.graph import CollaborationGraph, graph, index_edges, levels, topological_order
from counterpoint.trace import Step, Trace, Transfer


def said(name: str, agent: str, *heard: str, evidence: str = "explicit", **fields: object) -> Step:
    transfers = tuple(Transfer(source, evidence=evidence) for source in heard)  # type: ignore[arg-type]
    return Step(name, agent, f"text of {name}", heard=transfers, **fields)  # type: ignore[arg-type]


def world(*steps: Step) -> Trace:
    return Trace("t", steps)


PING_PONG = world(said("a1", "A"), said("b1", "B", "a1"), said("a2", "A", "b1"), said("b2", "B", "a2"))


def test_rows_are_sources_and_columns_readers():
    view = graph(PING_PONG).unrolled
    assert view.names == ("a1", "b1", "a2", "b2")
    assert view.spatial.tolist() == [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert view.temporal.tolist() == [[0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert view.edges == [(0, 1), (1, 2), (2, 3)]
    assert view.order == view.names


def test_the_last_round_looks_at_what_reached_each_agents_last_step():
    view = graph(PING_PONG).agents()
    assert view.names == ("A", "B")
    assert view.texts == ["text of a2", "text of b2"]
    assert view.spatial.tolist() == [[0, 1], [0, 0]]
    assert view.temporal.tolist() == [[0, 0], [1, 0]]


def test_an_agent_silent_in_the_last_round_is_no_node_of_it_but_of_the_union():
    trace = world(said("c1", "C"), said("a1", "A", "c1"), said("b1", "B", "a1"), said("a2", "A", "b1", "c1"))
    assert graph(trace).agents().names == ("A",)
    union = graph(trace).agents("union")
    assert union.names == ("C", "A", "B")
    assert union.spatial.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert union.temporal.tolist() == [[0, 1, 0], [0, 0, 0], [0, 1, 0]]


def test_own_memory_is_no_edge():
    trace = world(said("a1", "A"), said("a2", "A", "a1"))
    assert graph(trace).unrolled.edges == []
    assert graph(trace).why_no_edges == "fewer than two agents speak"


def test_tasks_tools_and_control_are_no_nodes_and_decisions_only_on_request():
    trace = world(
        said("t", "user", kind="task"),
        said("a", "A", "t"),
        said("r", "R", "a", kind="control"),
        said("x", "shell", "a", kind="tool"),
        said("d", "D", "a", kind="decision"),
    )
    assert graph(trace).unrolled.names == ("a",)
    assert CollaborationGraph(trace, include_decision=True).unrolled.edges == [(0, 1)]
    assert graph(trace).idle_agents == []


def test_evidence_says_how_much_to_trust_and_what_there_is():
    trace = world(said("a", "A"), said("b", "B", "a", evidence="nesting"))
    assert graph(trace).unrolled.edges == []
    assert "the trace has nesting: try --evidence nesting" in graph(trace).why_no_edges
    assert graph(trace, evidence="nesting").unrolled.edges == [(0, 1)]
    assert graph(trace, evidence="nesting").why_no_edges == ""
    with pytest.raises(UsageError, match="evidence 'gossip' is none of explicit"):
        graph(trace, evidence="gossip")


def test_levels_depth_and_rounds_of_the_unrolled_graph():
    trace = world(said("a", "A"), said("b", "B"), said("c", "C", "a", "b"), said("d", "D", "c", "a"))
    found = graph(trace)
    assert found.levels.tolist() == [0, 0, 1, 2]
    assert (found.depth, found.rounds) == (3, 1)
    assert (graph(world()).depth, graph(world()).rounds) == (0, 0)


def test_cycles_of_the_agent_graph_are_found_and_named():
    assert graph(PING_PONG).cycles == [["A", "B"]]
    ring = world(said("a1", "A"), said("b1", "B", "a1"), said("c1", "C", "b1"), said("a2", "A", "c1"))
    assert graph(ring).cycles == [["A", "B", "C"]]
    assert graph(world(said("a", "A"), said("b", "B", "a"))).cycles == []


def test_two_interlocking_cycles_are_both_named_the_shorter_first():
    trace = world(
        said("a1", "A"),
        said("b1", "B", "a1"),
        said("c1", "C", "b1"),
        said("b2", "B", "c1"),
        said("a2", "A", "c1"),
    )
    assert graph(trace).cycles == [["B", "C"], ["A", "B", "C"]]


def test_naming_the_cycles_of_a_large_mesh_ends():
    first = [said(f"a{n}", f"A{n}") for n in range(40)]
    second = [said(f"b{n}", f"A{n}", *(f"a{m}" for m in range(40) if m != n)) for n in range(40)]
    assert len(graph(world(*first, *second)).cycles) == 100


def test_an_agent_is_idle_when_nobody_hears_it_or_it_says_nothing():
    trace = world(
        said("a", "A"), said("b", "B", "a"), Step("c", "C", "  "), said("d", "D", "a", "c"),
        said("z", "Z", "d", kind="decision"),
    )  # fmt: skip
    assert graph(trace).idle_agents == ["B", "C"]


def test_an_adjacency_is_a_matrix_or_a_count_with_an_edge_list():
    n, edges = index_edges([[1, 1], [0, 0]])
    assert (n, edges.tolist()) == (2, [[0, 1]])
    n, edges = index_edges((3, [(1, 2), (0, 1), (1, 2)]))
    assert (n, edges.tolist()) == (3, [[0, 1], [1, 2]])
    assert index_edges((3, []))[1].shape == (0, 2)
    assert index_edges(np.empty((0, 0)))[0] == 0


@pytest.mark.parametrize(
    ("adjacency", "message"),
    [
        ([[0, 1, 0], [0, 0, 1]], "found shape"),
        ((2, [(0, 2)]), "an edge names node 2, but nodes are 0 to 1"),
        ((2, [(-1, 0)]), "an edge names node -1"),
        ((2, [(1, 1)]), "node 1 has an edge to itself"),
    ],
)
def test_an_array_that_is_no_graph_is_a_graph_error(adjacency: object, message: str):
    with pytest.raises(GraphError, match=message) as caught:
        index_edges(adjacency)
    assert isinstance(caught.value, ValueError)


def test_a_cycle_is_named():
    with pytest.raises(
        GraphError, match=r"cycle \(0 -> 1 -> 2 -> 0\)|cycle \(1 -> 2 -> 0 -> 1\)|cycle \(2 -> 0"
    ):
        topological_order(3, index_edges((3, [(0, 1), (1, 2), (2, 0)]))[1])


@given(st.integers(1, 8), st.data())
def test_every_edge_goes_forward_in_the_order_and_up_a_level(n: int, data: st.DataObject):
    rank = data.draw(st.permutations(range(n)))
    pairs = [(i, j) for i in range(n) for j in range(n) if rank[i] < rank[j]]
    edges = index_edges(
        (n, data.draw(st.lists(st.sampled_from(pairs or [(0, 0)]), max_size=12) if pairs else st.just([])))
    )[1]
    place = {node: number for number, node in enumerate(topological_order(n, edges))}
    level = levels(n, edges)
    assert len(place) == n
    for i, j in edges.tolist():
        assert place[i] < place[j]
        assert level[i] < level[j]
    for node in range(n):
        incoming = [int(level[i]) for i, j in edges.tolist() if j == node]
        assert level[node] == max(incoming, default=-1) + 1


@given(st.permutations(["A", "B", "C"]))
def test_renaming_agents_changes_no_edge(names: list[str]):
    new = dict(zip("ABC", names, strict=True))
    steps = [said("a", "A"), said("b", "B", "a"), said("c", "C", "a", "b"), said("a2", "A", "c")]
    renamed = [Step(s.id, new[s.agent], s.text, heard=s.heard) for s in steps]
    before, after = graph(world(*steps)), graph(world(*renamed))
    assert before.unrolled.edges == after.unrolled.edges
    for view in ("last_round", "union"):
        assert before.agents(view).spatial.tolist() == after.agents(view).spatial.tolist()
        assert before.agents(view).temporal.tolist() == after.agents(view).temporal.tolist()
