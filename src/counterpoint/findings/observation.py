"""What findings need of one trace: names and numbers, so that a thousand traces need not be kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterpoint.contracts import Context
from counterpoint.metrics.correctness import run_correct, step_correctness
from counterpoint.metrics.costs import Costs, costs, repeated_shares
from counterpoint.metrics.loops import find_loops
from counterpoint.metrics.replay import Recording, recording
from counterpoint.metrics.uptake import uptake
from counterpoint.trace import task_id

__all__ = ["Observation", "observe"]

AGAIN = 3
"""Nobody who speaks less often goes round in a loop."""


@dataclass(frozen=True)
class Observation:
    """What findings need of one trace; it holds names and numbers, no texts but answers."""

    trace: str
    system: str
    task: str
    recording: Recording | str
    spent: Costs
    repeated: NDArray[np.float64]
    """(m,) of what each transfer delivered: the share that its reader had been shown, or had said, before."""
    taken: NDArray[np.bool_]
    """(m,) something of the transfer was used."""
    useful: NDArray[np.bool_]
    """(n,) a chain of uptake leads from the step to the final answer."""
    loops: tuple[tuple[str, int, tuple[str, ...]], ...]
    """Of each loop: its agents, how often it goes round, the steps after the first time round."""
    correct: bool | None
    right: tuple[str, ...]
    """Steps that give the right answer."""


def observe(context: Context) -> Observation:
    """What findings need of one trace."""
    found, spent = uptake(context), costs(context)
    steps, trace = context.graph.steps, context.trace
    loops = []
    turns = Counter(step.agent for step in steps)
    says = any(step.text.strip() or step.calls for step in steps)
    for loop in find_loops(context.graph) if says and max(turns.values(), default=0) >= AGAIN else ():
        again = loop.steps[len(loop.agents) :]
        loops.append((", ".join(dict.fromkeys(loop.agents)), loop.times, tuple(steps[i].id for i in again)))
    right = step_correctness(context).correct
    return Observation(
        trace.id,
        trace.system,
        task_id(trace),
        recording(context),
        spent,
        repeated_shares(context),
        found.taken,
        np.array([found.useful[name] for name in spent.names], dtype=bool),
        tuple(loops),
        run_correct(context),
        tuple(name for name, flag in right.items() if flag),
    )
