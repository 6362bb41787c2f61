"""Systems: a team, a topology and a protocol, each under one name.

    chosen = system("vanilla(mirror=true)")
    trace = play(example, chosen.agents("number"), chosen.wiring(seed=0), ask, ...)

Conventions
-----------
* ``name(parameter=value)`` sets the topology's parameters, the number of agents (``agents``: the roles are
  dealt in turn until there are so many) or ``rounds``.
* A team's roles follow the kind of answer: a question with options gets roles that are worded for it.

What counts
-----------
``single`` and ``cot`` differ in their prompt alone. ``cot-sc`` asks one prompt several times: at temperature
0 an endpoint may give the same reply every time, so it needs some. ``vanilla`` is GEMMAS's baseline [1]_.

.. [1] Lee et al. GEMMAS: Graph-based Evaluation Metrics for Multi Agent Systems. EMNLP 2025, Industry Track
   (arXiv:2507.13190), section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from typing import Any

from counterpoint.contracts import Wiring
from counterpoint.errors import UsageError
from counterpoint.registry import lookup, parse_call, suggest
from counterpoint.runtime.play import Agent, DiscussionProtocol, Ran
from counterpoint.runtime.teams import agents_of
from counterpoint.runtime.topologies import MAX_AGENTS, parameters, topology

__all__ = ["TABLE", "System", "system"]

GEMMAS = ("analyst", "code_writer", "math_solver", "adversary")
"""The four roles of the paper, in its order, which is part of the experiment: i is heard by j > i."""
HONEST = ("analyst", "code_writer", "math_solver")


@dataclass(frozen=True)
class System:
    """A team, who hears whom in it, and who has the last word."""

    name: str
    summary: str
    roles: tuple[str, ...]
    topology: str
    protocol: str
    rounds: int = 1
    choice_roles: tuple[str, ...] = ()
    """The team for questions with options, where it is another one."""
    bound: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of the topology."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """What the user set."""

    def bind(self, **given: Any) -> System:
        """The system with parameters set; a UsageError names one that it does not have."""
        known = {"agents": len(self.roles), "rounds": self.rounds, **parameters(topology(self.topology))}
        for key in given:
            if key not in known:
                raise UsageError(
                    f"system {self.name!r} has no parameter {key!r}{suggest(key, known)}; "
                    f"it has: {', '.join(known)}"
                )
        roles = tuple(islice(cycle(self.roles), _count("agents", given.get("agents", len(self.roles)))))
        rounds = _count("rounds", given.get("rounds", self.rounds))
        rest = {key: value for key, value in given.items() if key not in ("agents", "rounds")}
        changed = replace(
            self, roles=roles, rounds=rounds, bound={**self.bound, **rest}, given={**self.given, **given}
        )
        changed.wiring()
        return changed

    def wiring(self, seed: int = 0) -> Wiring:
        """Who hears whom among this team; only a random topology looks at the seed."""
        rule = topology(self.topology)
        return rule(len(self.roles), self.rounds, seed, **self.bound)

    def agents(self, kind: str, run: Callable[[str], Ran | None] | None = None) -> tuple[Agent, ...]:
        """The team, worded for answers of this kind (number, choice, text); ``run``: runs its programs."""
        roles = self.choice_roles if kind == "choice" and self.choice_roles else self.roles
        return agents_of(list(islice(cycle(roles), len(self.roles))), kind, run)

    def last_word(self) -> DiscussionProtocol:
        """Who has the last word."""
        found: DiscussionProtocol = lookup("protocol", self.protocol)()
        return found

    def __str__(self) -> str:
        if not self.given:
            return self.name
        given = (f"{key}={_written(value)}" for key, value in sorted(self.given.items()))
        return f"{self.name}({', '.join(given)})"


def system(text: str) -> System:
    """The system that ``text`` names: ``vanilla``, ``layered(layers=3)``, ``cot-sc(agents=10)``."""
    name, given = parse_call(text, "system")
    found: System = lookup("system", name)
    return found.bind(**given) if given else found


def _count(name: str, value: Any) -> int:
    most = MAX_AGENTS if name == "agents" else 100
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise UsageError(f"{name} of a system is a number from 1 to {most}, found {value!r}")
    return value


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_HERE = "counterpoint.runtime.systems:"
TABLE: dict[str, str] = {
    "single": _HERE + "SINGLE",
    "cot": _HERE + "COT",
    "cot-sc": _HERE + "COT_SC",
    "vanilla": _HERE + "VANILLA",
    "vanilla-mirror": _HERE + "VANILLA_MIRROR",
    "majority": _HERE + "MAJORITY",
    "debate": _HERE + "DEBATE",
    "star": _HERE + "STAR",
    "chain": _HERE + "CHAIN",
    "tree": _HERE + "TREE",
    "layered": _HERE + "LAYERED",
    "random": _HERE + "RANDOM",
}

SINGLE = System("single", "one agent, asked for the answer", ("direct",), "direct", "last")
COT = System("cot", "one agent that thinks step by step", ("math_solver",), "direct", "last")
COT_SC = System(
    "cot-sc", "self-consistency: five chains of thought, majority vote",
    ("math_solver",) * 5, "independent", "vote",
)  # fmt: skip
VANILLA = System(
    "vanilla", "GEMMAS's baseline: four roles, everyone hears the ones before it, two rounds, FinalRefer",
    GEMMAS, "vanilla", "refer", rounds=2,
)  # fmt: skip
VANILLA_MIRROR = replace(
    VANILLA,
    name="vanilla-mirror",
    summary="vanilla, with the edges across rounds as published code realizes them",
    bound={"mirror": True},
)
MAJORITY = System(
    "majority", "three honest roles that do not hear each other, majority vote",
    HONEST, "independent", "vote", choice_roles=("math_solver", "expert", "eliminator"),
)  # fmt: skip
DEBATE = System(
    "debate", "three solvers; each hears the others' last round; two rounds, majority vote",
    ("math_solver",) * 3, "debate", "vote", rounds=2,
)  # fmt: skip
STAR = System(
    "star", "the first of four roles is heard by the others, FinalRefer", GEMMAS, "star", "refer", 2
)
CHAIN = System("chain", "each of four roles hears the one before it, FinalRefer", GEMMAS, "chain", "refer", 2)
TREE = System(
    "tree", "children speak before their parent, who hears them, FinalRefer", GEMMAS, "tree", "refer", 2
)
LAYERED = System(
    "layered", "two layers, the second hears the first, FinalRefer", GEMMAS, "layered", "refer", 2
)
RANDOM = System("random", "each pair is linked with p = 0.5, FinalRefer", GEMMAS, "random", "refer", 2)
