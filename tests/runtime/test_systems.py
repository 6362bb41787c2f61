"""Every system has a team that fits its wiring; what a user sets is in its name."""

from __future__ import annotations

import pytest

from counterpoint.errors import UsageError
from counterpoint.registry import names
from counterpoint.runtime.systems import system
from counterpoint.runtime.wirings import check_wiring


@pytest.mark.parametrize("name", names("system"))
@pytest.mark.parametrize("kind", ["number", "choice", "text"])
def test_a_system_has_a_wiring_for_its_team(name, kind):
    chosen = system(name)
    team = chosen.agents(kind)
    check_wiring(chosen.wiring(0), len(team))
    assert len({agent.name for agent in team}) == len(team)
    assert chosen.summary
    assert str(chosen) == name


def test_vanilla_is_four_roles_in_two_rounds_and_its_mirror_hears_forward_only():
    chosen, mirror = system("vanilla"), system("vanilla-mirror")
    assert chosen.roles == ("analyst", "code_writer", "math_solver", "adversary")
    assert chosen.wiring().within.sum(axis=(1, 2)).tolist() == [6, 6]
    assert (chosen.wiring().across.sum(), mirror.wiring().across.sum()) == (12, 6)
    assert (system("vanilla(mirror=true)").wiring().across == mirror.wiring().across).all()


@pytest.mark.parametrize(
    ("text", "name", "agents", "rounds"),
    [
        ("vanilla", "vanilla", 4, 2),
        ("vanilla(mirror=true)", "vanilla(mirror=true)", 4, 2),
        ("debate( agents = 5, rounds=3 )", "debate(agents=5, rounds=3)", 5, 3),
        ("cot-sc(agents=2)", "cot-sc(agents=2)", 2, 1),
        ("layered(layers=3, rounds=1)", "layered(layers=3, rounds=1)", 4, 1),
        ("vanilla(agents=1)", "vanilla(agents=1)", 1, 2),
    ],
)
def test_what_is_set_is_in_the_name(text, name, agents, rounds):
    chosen = system(text)
    assert str(chosen) == name
    assert chosen.wiring().speaks.shape == (rounds, agents) == (chosen.rounds, len(chosen.agents("number")))


def test_roles_are_dealt_in_turn_to_a_larger_team():
    names = [agent.name for agent in system("vanilla(agents=6)").agents("number")]
    assert names == ["analyst", "code_writer", "math_solver", "adversary", "analyst 2", "code_writer 2"]


def test_setting_twice_keeps_both():
    assert str(system("layered(layers=3)").bind(rounds=1)) == "layered(layers=3, rounds=1)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vanila", "did you mean 'vanilla'"),
        ("vanilla(miror=true)", "did you mean 'mirror'"),
        ("vanilla(agents=0)", "from 1 to 12, found 0"),
        ("vanilla(agents=13)", "from 1 to 12"),
        ("vanilla(rounds=true)", "from 1 to 100"),
        ("layered(layers=0)", "at least one layer"),
        ("vanilla(agents", "is not of the form"),
    ],
)
def test_a_system_that_cannot_be_says_why(text, message):
    with pytest.raises(UsageError, match=message):
        system(text)
