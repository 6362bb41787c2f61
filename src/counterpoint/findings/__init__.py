"""Findings: what to change in a team, in at most five plain lines, each with its size and how sure it is.

`observe` looks at one trace and keeps numbers only; `findings` folds what it kept, system by system.

Conventions
-----------
* Sizes are dollars where every run of the system is priced, else tokens, else tokens of texts; they are sums
  over the same runs as the table's means.
* Findings about what to drop are estimates from the recording, under the assumption of `metrics.replay`.

What counts
-----------
* A part (an agent, an edge between agents, the last rounds) is a finding if it is at least `LEAST` of the
  costs, and without it no graded run is worth less than recorded and every other run's answer stays.
* An edge of an agent that can go is no finding of its own.
* Turns from which no chain of uptake leads to the final answer are a finding if they are at least half of the
  turns of an agent that cannot go, as far as texts and answers show it.
* A right answer is lost where a step gave it and the run did not.
* Nothing is a finding without an interval or a count. They are ranked by the share that they save: of the
  costs, and lost answers of the runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from counterpoint.contracts import Context
from counterpoint.findings.observation import Observation, observe
from counterpoint.findings.system import Finding, System
from counterpoint.metrics.replay import ASSUMPTION

__all__ = ["ASSUMPTION", "MOST", "Finding", "Observation", "Observer", "findings", "observe"]

MOST = 5
"""So many findings are given at most."""
MOST_RUNS = 1_000
"""So many runs of a system are looked at: enough for 3 points either way, and no more than memory bears."""


class Observer:
    """`observe` for the first MOST_RUNS runs of each system, None for the others."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def __call__(self, context: Context) -> Observation | None:
        """What findings need of one trace, or None where enough of its system have been seen."""
        self.seen[context.trace.system] += 1
        return observe(context) if self.seen[context.trace.system] <= MOST_RUNS else None


def findings(observed: Iterable[Observation], *, most: int = MOST) -> list[Finding]:
    """What to change, over the traces of each system: at most ``most`` findings, the largest saving first.

    Parameters
    ----------
    observed: what `observe` gave, in order; the first 1,000 runs of a system are looked at.

    Returns
    -------
    Findings; none where there is nothing to say.
    """
    systems: dict[str, list[Observation]] = {}
    for one in observed:
        of_system = systems.setdefault(one.system, [])
        if len(of_system) < MOST_RUNS:
            of_system.append(one)
    found = [finding for name, runs in systems.items() for finding in System(name, runs).findings()]
    return sorted(found, key=lambda finding: (-finding.share, finding.system, finding.text))[:most]
