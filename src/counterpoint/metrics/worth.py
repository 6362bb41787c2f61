"""What each agent is worth to the vote of its team; a part of `attribution`.

What counts
-----------
The value of a set of agents is what a vote among their last recorded answers is worth: the share of right
ones among the winners; where right and wrong are not known, the run's own answer counts as the right one.
Shapley value and leave-one-out follow from it, see `shapley`.
"""

from __future__ import annotations

from typing import NamedTuple

from counterpoint.contracts import Context
from counterpoint.metrics.replay import Recording, recording, vote
from counterpoint.metrics.shapley import MOST_EXACT, leave_one_out, shapley, shapley_intervals

__all__ = ["Worth", "worth_of_agents"]


class Worth(NamedTuple):
    """Shapley value of an agent, its bounds where it is sampled, and leave-one-out."""

    shapley: float | None = None
    low: float | None = None
    high: float | None = None
    leave_one_out: float | None = None


def worth_of_agents(context: Context, reasons: dict[str, str]) -> tuple[dict[str, Worth], str]:
    """What each agent that answers is worth, and the name of the value function."""
    found = recording(context)
    if not isinstance(found, Recording):
        reasons["shapley"] = found
        return {}, ""
    if found.right is None and found.run < 0:
        reasons["shapley"] = "no agent gave the run's answer, and there is no gold one to judge a vote by"
        return {}, ""
    worth = _VoteWorth(found)
    players = [name for name in context.graph.agent_names if worth.last[name] >= 0]
    alone = leave_one_out(players, worth)
    function = "vote equals gold" if found.right is not None else "vote equals the run's answer"
    if len(players) <= MOST_EXACT:
        exact = shapley(players, worth)
        return {name: Worth(exact[name], None, None, alone[name]) for name in players}, function
    sampled = shapley_intervals(players, worth)
    return {name: Worth(one.value, one.low, one.high, alone[name]) for name, one in sampled.items()}, function


class _VoteWorth:
    """What the vote of a set of agents, each with its last answer, is worth."""

    def __init__(self, found: Recording) -> None:
        self.last = dict.fromkeys(found.speakers, -1)
        self.last.update(
            (speaker, answer)
            for speaker, answer in zip(found.speakers, found.answers, strict=True)
            if answer >= 0
        )
        self.wanted = found.right if found.right is not None else found.run

    def __call__(self, team: frozenset[str]) -> float:
        members = sorted(team)
        return vote(members, [self.last[name] for name in members], self.wanted).right or 0.0
