"""What is to be played: every example under every seed, each under a key of all that its trace depends on.

Conventions
-----------
* A key is the SHA-256 of system, roles, wiring, benchmark, example, prompt, model settings and seed. Where
  the model is served, how many threads ask it and what a budget allows are not part of it: a run may go on
  at another address.
* Jobs come example by example, the seeds of one together, so that a run that was stopped has whole tasks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import msgspec
from msgspec.structs import replace

from counterpoint.contracts import Benchmark, ChatModel, Example, Wiring
from counterpoint.runtime.play import Agent, Ran, play
from counterpoint.runtime.systems import System
from counterpoint.runtime.wirings import check_wiring, plain
from counterpoint.trace import Trace

__all__ = ["QUESTION", "Job", "Plan"]

QUESTION = 8
"""Hex digits that tell a question from others in a run's config."""


@dataclass(frozen=True)
class Plan:
    """One system on one benchmark with one model."""

    benchmark: Benchmark
    benchmark_name: str
    examples: Sequence[Example]
    system: System
    model: Mapping[str, Any]
    """The settings that replies depend on, as plain JSON; the address of an endpoint left out."""
    seeds: int = 1
    run_program: Callable[[str], Ran | None] | None = None
    """Runs what code writers write; None: their programs are only read."""
    learned: Wiring | None = None
    """A wiring in place of the system's topology."""
    learned_name: str = ""

    @property
    def kind(self) -> str:
        """The kind of answer of the examples."""
        return self.examples[0].kind if self.examples else "number"

    @property
    def name(self) -> str:
        """What the system is called in traces."""
        return (
            f"{self.system}+{self.learned_name or 'wiring'}" if self.learned is not None else str(self.system)
        )

    @cached_property
    def team(self) -> tuple[Agent, ...]:
        """The agents, worded for the examples' kind of answer."""
        return self.system.agents(self.kind, self.run_program)

    def wiring(self, seed: int) -> Wiring:
        """Who hears whom under this seed."""
        chosen = self.system.wiring(seed) if self.learned is None else self.learned
        return check_wiring(chosen, len(self.team))

    @cached_property
    def jobs(self) -> tuple[Job, ...]:
        """Every job, in order."""
        common = self._common()
        return tuple(
            Job(self, example, seed, _digest({**common[seed], "example": self._content(example)}))
            for example in self.examples
            for seed in range(self.seeds)
        )

    def config(self) -> dict[str, Any]:
        """What a run folder says about the plan, prompts and wirings included."""
        first, *others = self._common()
        wirings = [first.pop("wiring"), *(other["wiring"] for other in others)]
        del first["seed"]
        return {
            **first,
            "seeds": self.seeds,
            "questions": len(self.examples),
            "examples": "".join(_digest(self._content(example))[:QUESTION] for example in self.examples),
            "wirings": wirings[:1] if all(wiring == wirings[0] for wiring in wirings) else wirings,
        }

    def _common(self) -> list[dict[str, Any]]:
        """What the keys of one seed share."""
        protocol = self.system.last_word()
        decider = getattr(protocol, "decider", None)
        return [
            {
                "benchmark": self.benchmark_name,
                "system": self.name,
                "team": [_content(agent) for agent in self.team],
                "protocol": [type(protocol).__name__, _content(decider) if decider else None],
                "wiring": plain(self.wiring(seed)),
                "model": dict(self.model),
                "seed": seed,
            }
            for seed in range(self.seeds)
        ]

    def _content(self, example: Example) -> dict[str, Any]:
        return {**asdict(example), "options": dict(example.options), "prompt": self.benchmark.prompt(example)}


@dataclass(frozen=True)
class Job:
    """One example under one seed."""

    plan: Plan
    example: Example
    seed: int
    key: str

    @property
    def id(self) -> str:
        """The id of its trace: the example's, and the seed where there are several."""
        return f"{self.example.id}.s{self.seed}" if self.plan.seeds > 1 else self.example.id

    def play(self, ask: ChatModel) -> Trace:
        """The trace of the discussion, with all that places it in the run."""
        plan = self.plan
        trace = play(
            self.example,
            plan.team,
            plan.wiring(self.seed),
            ask,
            benchmark=plan.benchmark,
            protocol=plan.system.last_word(),
        )
        model = str(plan.model.get("model", ""))
        labels = {**trace.labels, "seed": self.seed, "job": self.key, "model": model}
        return replace(trace, id=self.id, benchmark=plan.benchmark_name, system=plan.name, labels=labels)


def _content(agent: Agent) -> list[Any]:
    return [agent.name, agent.role, agent.system, agent.adversarial, agent.run is not None]


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()
