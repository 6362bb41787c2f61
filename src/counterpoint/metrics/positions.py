"""Where a discussion stands when: positions, cycles of positions, and who goes on with whose claims [1]_.

Conventions
-----------
A position is a round in which an agent speaks; positions are counted from 0 here and from 1 where people read
them. A cycle is a run of positions that starts anew from the source: nothing links one cycle to the next. The
private position, where there is one, is the last: each cycle's end leads to it.

What counts
-----------
Rounds as recorded or derived, all of them one cycle, each agent going on with its own claims; unless
``labels["discussion"]`` says otherwise, by any of its keys:

* ``stages``: positions in a cycle, 4 for RIVER. Absent: one cycle.
* ``private``: true where the last position is each agent's own summary, read by nobody.
* ``paths``: ``"agent"``; ``"relay"`` (a sheet goes from agent a to a + 1, by order of first appearance); or a
  list of paths, each a list of agents by stage: ``[["Ana", "Ben"], ["Ben", "Ana"]]``.

.. [1] RIVER, section 2: cycles, stages and the sheets of brainwriting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from counterpoint.contracts import Context

__all__ = ["Plan", "read_plan"]


@dataclass(frozen=True)
class Plan:
    """The positions of one trace, and the transitions between them."""

    rounds: tuple[int, ...]
    """The round of each position, ascending."""
    cycles: tuple[tuple[int, ...], ...]
    """The positions of each cycle, the private one at its end."""
    private: bool
    agents: tuple[str, ...]
    paths: str | tuple[tuple[str, ...], ...] = "agent"

    @property
    def transitions(self) -> list[tuple[int, int]]:
        """Pairs of positions that follow each other inside a cycle."""
        return [pair for cycle in self.cycles for pair in pairwise(cycle)]

    def successor(self, agent: str, source: int, target: int) -> str | None:
        """Who goes on at ``target`` with what ``agent`` had at ``source``; None where no path says."""
        if self.private and target == len(self.rounds) - 1:
            return agent
        if self.paths == "agent":
            return agent
        if self.paths == "relay":
            return self.agents[(self.agents.index(agent) + 1) % len(self.agents)]
        cycle = next(cycle for cycle in self.cycles if source in cycle and target in cycle)
        stage, following = cycle.index(source), cycle.index(target)
        for path in self.paths:
            if len(path) > following and path[stage] == agent:
                return path[following]
        return None


def read_plan(context: Context) -> tuple[Plan, str]:
    """The plan of a trace, and what of ``labels["discussion"]`` could not be used (empty: all of it)."""
    steps = context.graph.steps
    rounds = tuple(sorted({step.round or 0 for step in steps}))
    agents = context.graph.agent_names
    said = context.trace.labels.get("discussion")
    label: Mapping[str, Any] = said if isinstance(said, Mapping) else {}
    private = label.get("private") is True and len(rounds) > 1
    open_ = len(rounds) - private
    stages, problem = _stages(label.get("stages"), open_)
    ends = (len(rounds) - 1,) if private else ()
    cycles = tuple(
        (*range(start, min(start + stages, open_)), *ends) for start in range(0, open_, stages or 1)
    )
    paths, wrong = _paths(label.get("paths", "agent"), agents)
    problem = problem or wrong
    if said is not None and not isinstance(said, Mapping):
        problem = "labels.discussion is no mapping of stages, private and paths"
    return Plan(rounds, cycles, private, agents, paths), problem


def _stages(said: object, positions: int) -> tuple[int, str]:
    if said is None:
        return positions, ""
    if isinstance(said, int) and not isinstance(said, bool) and said >= 1:
        return said, ""
    return positions, f"labels.discussion.stages is {said!r}, not a number of positions"


def _paths(said: object, agents: Sequence[str]) -> tuple[str | tuple[tuple[str, ...], ...], str]:
    if said in ("agent", "relay"):
        return str(said), ""
    if isinstance(said, list | tuple) and all(isinstance(path, list | tuple) for path in said):
        paths = tuple(tuple(str(name) for name in path) for path in said)
        strangers = sorted({name for path in paths for name in path} - set(agents))
        if not strangers:
            return paths, ""
        return "agent", f"labels.discussion.paths names {strangers[0]!r}, who does not speak"
    return (
        "agent",
        f"labels.discussion.paths is {str(said)[:40]!r}: agent, relay, or lists of agents by stage",
    )
