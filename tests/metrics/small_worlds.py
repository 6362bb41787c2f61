"""Runs of two or three turns, and a metric's score on them: what the tests beside this file are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterpoint.contracts import Context
from counterpoint.graph import graph
from counterpoint.judges import make
from counterpoint.metrics import metric
from counterpoint.score import Score
from counterpoint.trace import Step, Trace, Transfer


def turn(name: str, agent: str, text: str, *heard: str, evidence: Any = "explicit", **fields: Any) -> Step:
    """One step; ``heard`` are the ids of the steps whose text reached it."""
    transfers = tuple(Transfer(source, evidence=evidence) for source in heard)
    return Step(name, agent, text, heard=transfers, **fields)


def chain(*turns: tuple[str, str]) -> list[Step]:
    """Steps of (agent, text), each hearing the one before; ids are the agent's name and the number."""
    steps: list[Step] = []
    for number, (agent, text) in enumerate(turns):
        steps.append(turn(f"{agent}{number}", agent, text, *[step.id for step in steps[-1:]]))
    return steps


def context_of(steps: Sequence[Step], *, evidence: str = "broadcast", **fields: Any) -> Context:
    """A context without an embedder; ``fields`` go to the trace, ``embed`` to the context and its judges."""
    embed = fields.pop("embed", None)
    found = graph(Trace("t", tuple(steps), **fields), evidence=evidence)
    return Context(found.trace, found, embed=embed, judges=partial(make, embed=embed, cache=None))


def judged(text: str, steps: Sequence[Step], **fields: Any) -> Score:
    """The metric that ``text`` names, on a trace of the steps."""
    chosen = metric(text)
    score: Score = chosen.compute(context_of(steps, **fields), **chosen.values("strict"))
    return score


class Vectors:
    """An embedder that knows a vector for each text, whatever their lengths."""

    id = "by hand"

    def __init__(self, vectors: Mapping[str, Sequence[float]]) -> None:
        self.vectors = vectors

    def __call__(self, texts: list[str]) -> NDArray[np.floating]:
        rows = np.array([self.vectors[text] for text in texts], dtype=float)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)
