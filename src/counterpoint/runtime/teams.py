"""Roles to the agents of a team: distinct names, and a sandbox for those whose programs are run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from counterpoint.runtime.play import Agent

__all__ = ["agents_of"]


def agents_of(roles: Sequence[str], kind: str) -> tuple[Agent, ...]:
    """An agent a role, in order; the second of a role gets ``2`` behind its name, and so on."""
    counts: Counter[str] = Counter()
    team = []
    for name in roles:
        counts[name] += 1
        title = name if counts[name] == 1 else f"{name} {counts[name]}"
        team.append(Agent(title, name, f"You are the {name} of a team.", adversarial=name == "adversary"))
    return tuple(team)
