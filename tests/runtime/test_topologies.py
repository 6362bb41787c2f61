"""Every topology gives a wiring that the runtime can play, for 1 to 12 agents."""

from __future__ import annotations

import numpy as np
import pytest

from counterpoint.contracts import Wiring
from counterpoint.errors import GraphError, UsageError
from counterpoint.registry import names
from counterpoint.runtime.topologies import topology
from counterpoint.runtime.wirings import check_wiring, read_wiring, speaking_order, write_wiring

TOPOLOGIES = [
    *names("topology"),
    "layered(layers=3)",
    "random(p=0.9)",
    "vanilla(mirror=true)",
    "tree(arity=3)",
]


def arcs(matrix: np.ndarray) -> set[tuple[int, int]]:
    return {(int(i), int(j)) for i, j in np.argwhere(matrix)}


@pytest.mark.parametrize("name", TOPOLOGIES)
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_topology_gives_a_wiring_for_one_to_twelve_agents(name, rounds):
    for agents in range(1, 13):
        wiring = topology(name)(agents, rounds, 7)
        check_wiring(wiring, agents)
        assert {array.dtype for array in (wiring.speaks, wiring.within, wiring.across)} == {np.dtype(bool)}
        assert wiring.speaks.shape == (rounds, agents)
        assert not wiring.within.diagonal(axis1=1, axis2=2).any()
        assert wiring.speaks.any(axis=1).all()


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_the_same_seed_gives_the_same_wiring(name):
    one, other = (topology(name)(5, 3, 11) for _ in range(2))
    for field in ("speaks", "within", "across"):
        assert (getattr(one, field) == getattr(other, field)).all()


@pytest.mark.parametrize(
    ("name", "within", "across"),
    [
        ("direct", set(), {(0, 0)}),
        ("independent", set(), set()),
        ("chain", {(0, 1), (1, 2)}, {(2, 0)}),
        ("star", {(0, 1), (0, 2)}, {(1, 0), (2, 0)}),
        ("mesh", {(0, 1), (0, 2), (1, 2)}, {(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)}),
        ("vanilla", {(0, 1), (0, 2), (1, 2)}, {(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)}),
        ("vanilla(mirror=true)", {(0, 1), (0, 2), (1, 2)}, {(0, 1), (0, 2), (1, 2)}),
        ("layered", {(0, 2), (1, 2)}, {(2, 0), (2, 1)}),
        ("layered(layers=3)", {(0, 1), (1, 2)}, {(2, 0)}),
        ("tree", {(1, 0), (2, 0)}, {(0, 1), (0, 2)}),
        ("debate", set(), {(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)}),
        ("random(p=0)", set(), set()),
        ("random(p=1)", {(0, 1), (0, 2), (1, 2)}, {(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)}),
    ],
)
def test_three_agents_are_wired_as_their_topology_says(name, within, across):
    wiring = topology(name)(3, 2, 0)
    assert arcs(wiring.within[0]) == arcs(wiring.within[1]) == within
    assert arcs(wiring.across[0]) == across


def test_full_is_another_name_of_mesh():
    assert topology("full") is topology("mesh")


def test_random_draws_another_wiring_for_another_seed():
    drawn = {topology("random")(6, 1, seed).within.tobytes() for seed in range(5)}
    assert len(drawn) == 5


def test_children_of_a_tree_speak_before_their_parent():
    assert speaking_order(topology("tree")(5, 1, 0), 0) == [2, 3, 4, 1, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cahin", "did you mean"),
        ("random(q=1)", "has no parameter 'q'"),
        ("random(p=2)", "between 0 and 1"),
        ("layered(layers=0)", "at least one layer"),
        ("tree(arity=two)", "at least one child"),
        ("random(p", "is not of the form"),
        ("random(0.3)", "is not of the form"),
    ],
)
def test_a_topology_that_cannot_be_says_why(text, message):
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        topology(text)(3, 1, 0)


@pytest.mark.parametrize(("agents", "rounds"), [(0, 1), (13, 1), (2, 0)])
def test_teams_and_rounds_have_their_bounds(agents, rounds):
    with pytest.raises(UsageError):
        topology("chain")(agents, rounds, 0)


def wiring(within: list[list[int]], speaks: list[int]) -> Wiring:
    n = len(speaks)
    return Wiring(np.array([speaks], bool), np.array([within], bool), np.zeros((0, n, n), bool))


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (wiring([[0, 1], [1, 0]], [1, 1]), "cycle"),
        (wiring([[1, 0], [0, 0]], [1, 1]), "hears itself"),
        (wiring([[0, 1], [0, 0]], [0, 0]), "round 0: nobody speaks"),
        (Wiring(np.ones((1, 2), bool), np.zeros((1, 3, 3), bool), np.zeros((0, 2, 2), bool)), "`within`"),
        (Wiring(np.ones((2, 2), bool), np.zeros((2, 2, 2), bool), np.zeros((0, 2, 2), bool)), "`across`"),
        (Wiring(np.ones(2, bool), np.zeros((1, 2, 2), bool), np.zeros((0, 2, 2), bool)), "`speaks`"),
    ],
)
def test_what_is_no_wiring_is_refused_with_a_reason(found, message):
    with pytest.raises(GraphError, match=message):
        check_wiring(found)


def test_a_wiring_for_another_number_of_agents_is_refused():
    with pytest.raises(GraphError, match="for 2 agents, and the team has 3"):
        check_wiring(wiring([[0, 1], [0, 0]], [1, 1]), 3)


def test_a_silent_agent_closes_no_cycle():
    assert speaking_order(check_wiring(wiring([[0, 1], [1, 0]], [1, 0])), 0) == [0]


@pytest.mark.parametrize("name", ["direct", "vanilla", "tree"])
@pytest.mark.parametrize("rounds", [1, 2])
def test_a_wiring_comes_back_from_its_file(tmp_path, name, rounds):
    written = topology(name)(3, rounds, 0)
    write_wiring(written, tmp_path / "w.json")
    found = read_wiring(tmp_path / "w.json")
    for field in ("speaks", "within", "across"):
        assert (getattr(found, field) == getattr(written, field)).all()
        assert getattr(found, field).shape == getattr(written, field).shape


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "schema"),
        ('{"schema": "counterpoint.wiring/1"}', "`speaks`"),
        ('{"schema": "counterpoint.wiring/1", "speaks": [[1, 2]]}', "0 and 1"),
        ('{"schema": "counterpoint.wiring/1", "speaks": [[1, 1], [1]]}', "equal lengths"),
        ('{"schema": "counterpoint.wiring/1", "speaks": [[1, 1]], "within": []}', "`within`"),
    ],
)
def test_a_file_that_holds_no_wiring_is_named_with_what_is_wrong(tmp_path, text, message):
    file = tmp_path / "w.json"
    file.write_text(text)
    with pytest.raises(UsageError, match=message) as error:
        read_wiring(file)
    assert str(file) in str(error.value)


def test_a_wiring_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"gone\.json: could not be read"):
        read_wiring(tmp_path / "gone.json")
