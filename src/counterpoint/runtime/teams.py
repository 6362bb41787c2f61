"""Roles to the agents of a team: distinct names, and a sandbox for those whose programs are run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from counterpoint.runtime.play import Agent, Ran
from counterpoint.runtime.roles import role

__all__ = ["agents_of"]


def agents_of(
    roles: Sequence[str], kind: str = "number", run: Callable[[str], Ran | None] | None = None
) -> tuple[Agent, ...]:
    """An agent a role, in order; the second of a role gets ``2`` behind its name, and so on.

    >>> [agent.name for agent in agents_of(["analyst", "math_solver", "math_solver"])]
    ['analyst', 'math_solver', 'math_solver 2']
    """
    counts: Counter[str] = Counter()
    team = []
    for name in roles:
        found = role(name, kind)
        counts[name] += 1
        team.append(
            Agent(
                name=name if counts[name] == 1 else f"{name} {counts[name]}",
                role=name,
                system=found.system,
                adversarial=found.adversarial,
                run=run if found.writes_code else None,
            )
        )
    return tuple(team)
