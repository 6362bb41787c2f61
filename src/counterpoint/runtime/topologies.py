"""Who hears whom: rules that give a `Wiring` for any number of agents and rounds.

    wiring = topology("random(p=0.3)")(4, 2, 0)     # agents, rounds, seed

Conventions
-----------
* Agents are numbered in the order of the team. ``within[t, i, j]``: in round t, j hears what i says in it;
  ``across[t, i, j]``: in round t + 1, j hears what i said in round t. Rows are sources.
* Within a round messages flow one way, so every round is acyclic and nobody hears itself. Across rounds
  nobody hears itself either, but for the one agent of `direct`, who reads its own earlier answer.
* Every topology works for 1 to 12 agents; one agent alone has nobody to hear. The same seed gives the same
  wiring; only `random` looks at it.

Differences from the papers
---------------------------
AgentPrune [1]_, G-Designer and AgentDropout draw both kinds of edges from masks by a cycle rule. A "fully
connected" team becomes i -> j for i < j there, in the order of the agents, and so it does here (`mesh`, of
which `full` is another name). Their scripts open every pair across rounds for stars and layers too, and call
a mesh a star in places; here a star's, tree's, chain's or layered team's second round hears along its own
edges, turned around: what came out last goes back to where the first round began.

.. [1] Zhang et al. Cut the Crap: An Economical Communication Pipeline for LLM-based Multi-Agent Systems.
   ICLR 2025.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterpoint.contracts import Topology, Wiring
from counterpoint.errors import UsageError
from counterpoint.registry import lookup, parse_call, suggest

__all__ = [
    "MAX_AGENTS",
    "TABLE",
    "chain",
    "debate",
    "direct",
    "independent",
    "layered",
    "mesh",
    "parameters",
    "random",
    "star",
    "topology",
    "tree",
    "vanilla",
]

TABLE: dict[str, str] = {
    "direct": "counterpoint.runtime.topologies:direct",
    "independent": "counterpoint.runtime.topologies:independent",
    "chain": "counterpoint.runtime.topologies:chain",
    "star": "counterpoint.runtime.topologies:star",
    "mesh": "counterpoint.runtime.topologies:mesh",
    "full": "counterpoint.runtime.topologies:mesh",
    "layered": "counterpoint.runtime.topologies:layered",
    "tree": "counterpoint.runtime.topologies:tree",
    "debate": "counterpoint.runtime.topologies:debate",
    "random": "counterpoint.runtime.topologies:random",
    "vanilla": "counterpoint.runtime.topologies:vanilla",
}

MAX_AGENTS = 12

Matrix = NDArray[np.bool_]


def topology(text: str) -> Topology:
    """The topology that ``text`` names, parameters set: ``chain``, ``random(p=0.3)``."""
    name, given = parse_call(text, "topology")
    rule: Topology = lookup("topology", name)
    known = parameters(rule)
    for key in given:
        if key not in known:
            has = ", ".join(known) or "none"
            raise UsageError(
                f"topology {name!r} has no parameter {key!r}{suggest(key, known)}; it has: {has}"
            )
    return partial(rule, **given) if given else rule


def parameters(rule: Topology) -> dict[str, Any]:
    """A topology's own parameters and their defaults."""
    found = inspect.signature(rule).parameters.values()
    return {one.name: one.default for one in found if one.kind is one.KEYWORD_ONLY}


def direct(agents: int, rounds: int, seed: int = 0) -> Wiring:
    """The first agent alone; in a later round it reads its own earlier answer.

    >>> direct(3, 2).speaks.astype(int).tolist()
    [[1, 0, 0], [1, 0, 0]]
    """
    _check(agents, rounds)
    within, across = _none(agents), _none(agents)
    across[0, 0] = True
    wiring = _repeat(within, across, rounds)
    wiring.speaks[:, 1:] = False
    return wiring


def independent(agents: int, rounds: int, seed: int = 0) -> Wiring:
    """Everybody speaks and nobody hears anybody: what votes are taken of."""
    _check(agents, rounds)
    return _repeat(_none(agents), _none(agents), rounds)


def chain(agents: int, rounds: int, seed: int = 0) -> Wiring:
    """i -> i + 1; across rounds the last agent is heard by the first.

    >>> chain(3, 2).within[0].astype(int).tolist()
    [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    """
    _check(agents, rounds)
    return _flow([(i, i + 1) for i in range(agents - 1)], [(agents - 1, 0)], agents, rounds)


def star(agents: int, rounds: int, seed: int = 0) -> Wiring:
    """0 -> everybody else; across rounds the first agent hears all the others.

    >>> star(3, 2).across[0].astype(int).tolist()
    [[0, 0, 0], [1, 0, 0], [1, 0, 0]]
    """
    _check(agents, rounds)
    rays = [(0, i) for i in range(1, agents)]
    return _flow(rays, _turned(rays), agents, rounds)


def mesh(agents: int, rounds: int, seed: int = 0) -> Wiring:
    """i -> j for i < j; across rounds everybody hears everybody else. Also called full.

    >>> mesh(3, 1).within[0].astype(int).tolist()
    [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    """
    _check(agents, rounds)
    return _repeat(np.triu(~_none(agents), 1), _others(agents), rounds)


def vanilla(agents: int, rounds: int, seed: int = 0, *, mirror: bool = False) -> Wiring:
    """GEMMAS's baseline: a mesh; ``mirror``: across rounds i -> j for i < j only, as published code has it.

    IDS under the profile ``paper`` is the same for both: every pair is linked.

    >>> vanilla(3, 2, mirror=True).across[0].astype(int).tolist()
    [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    """
    _check(agents, rounds)
    forward = np.triu(~_none(agents), 1)
    return _repeat(forward, forward if mirror else _others(agents), rounds)


def layered(agents: int, rounds: int, seed: int = 0, *, layers: int = 2) -> Wiring:
    """Each layer hears all of the one before; across rounds the first layer hears the last.

    Agents fill the layers in order; where they do not divide evenly, the earlier layers have one more.

    >>> layered(3, 1).within[0].astype(int).tolist()
    [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
    """
    _check(agents, rounds)
    if not isinstance(layers, int) or layers < 1:
        raise UsageError(f"a layered team has at least one layer, found layers={layers!r}")
    parts = [part.tolist() for part in np.array_split(np.arange(agents), min(layers, agents))]
    forward = [(i, j) for before, after in pairwise(parts) for i in before for j in after]
    back = [(i, j) for i in parts[-1] for j in parts[0]] if len(parts) > 1 else []
    return _flow(forward, back, agents, rounds)


def tree(agents: int, rounds: int, seed: int = 0, *, arity: int = 2) -> Wiring:
    """Children speak before their parent, who hears them; across rounds children hear their parent.

    Agent 0 is the root; the children of i are i * arity + 1 and the next ones.

    >>> tree(4, 1).within[0].astype(int).tolist()
    [[0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]]
    """
    _check(agents, rounds)
    if not isinstance(arity, int) or arity < 1:
        raise UsageError(f"a tree has at least one child a parent, found arity={arity!r}")
    up = [(child, (child - 1) // arity) for child in range(1, agents)]
    return _flow(up, _turned(up), agents, rounds)


def debate(agents: int, rounds: int, seed: int = 0) -> Wiring:
    """Nobody hears anybody within a round; across rounds everybody hears everybody else."""
    _check(agents, rounds)
    return _repeat(_none(agents), _others(agents), rounds)


def random(agents: int, rounds: int, seed: int = 0, *, p: float = 0.5) -> Wiring:
    """Each pair i < j within, and each ordered pair across rounds, is linked with probability ``p``.

    One draw, the same in every round. Drawing forward pairs only makes all of them equally likely.
    """
    _check(agents, rounds)
    if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
        raise UsageError(f"a probability lies between 0 and 1, found p={p!r}")
    draw = np.random.default_rng(seed)
    within = np.triu(draw.random((agents, agents)) < p, 1)
    across = (draw.random((agents, agents)) < p) & _others(agents)
    return _repeat(within, across, rounds)


def _check(agents: int, rounds: int) -> None:
    if not 1 <= agents <= MAX_AGENTS:
        raise UsageError(f"a team has 1 to {MAX_AGENTS} agents, found {agents}")
    if rounds < 1:
        raise UsageError(f"a discussion has at least one round, found {rounds}")


def _none(agents: int) -> Matrix:
    return np.zeros((agents, agents), dtype=np.bool_)


def _others(agents: int) -> Matrix:
    return ~np.eye(agents, dtype=np.bool_)


def _turned(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(j, i) for i, j in pairs]


def _flow(
    forward: Sequence[tuple[int, int]], back: Sequence[tuple[int, int]], agents: int, rounds: int
) -> Wiring:
    """``forward`` within every round, ``back`` from each round to the next."""
    within, across = _none(agents), _none(agents)
    for matrix, pairs in ((within, forward), (across, back)):
        for i, j in pairs:
            matrix[i, j] = i != j
    return _repeat(within, across, rounds)


def _repeat(within: Matrix, across: Matrix, rounds: int) -> Wiring:
    """The same two matrices in every round; everybody speaks in each."""
    return Wiring(
        speaks=np.ones((rounds, len(within)), dtype=np.bool_),
        within=np.repeat(within[None], rounds, axis=0),
        across=np.repeat(across[None], rounds - 1, axis=0),
    )
