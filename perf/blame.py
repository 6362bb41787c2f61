"""How often `blame` names the labeled agent and step.

    python perf/blame.py FOLDER...

Folders of Who&When and AgentRx runs; those without a label are left out. Prints the table of docs/parity.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import counterpoint as cp
from counterpoint.contracts import Context
from counterpoint.metrics.blame import Verdict, blame
from counterpoint.stats import wilson_interval

Labeled = tuple[cp.Trace, Verdict]


def labeled(folder: Path) -> list[Labeled]:
    """Runs with a label that `blame` says something about."""
    found = []
    for trace in cp.read(str(folder), on_error=lambda error: None):
        if "mistake_step" not in trace.labels:
            continue
        verdict = blame(Context(trace=trace, graph=cp.graph(trace)))
        if verdict is not None:
            found.append((trace, verdict))
    return found


def share(runs: list[Labeled], is_right: Callable[[cp.Trace, Verdict], bool]) -> str:
    hits = sum(is_right(trace, verdict) for trace, verdict in runs)
    low, high = wilson_interval(hits, len(runs))
    return f"{hits} ({hits / len(runs):.0%}) [{low:.0%}, {high:.0%}]"


def row(name: str, runs: list[Labeled]) -> str:
    """A line of the table."""

    def within(steps: int) -> str:
        return share(runs, lambda trace, found: abs(found.step - trace.labels["mistake_step"]) <= steps)

    agents = share(runs, lambda trace, found: trace.steps[found.step].agent == trace.labels["mistake_agent"])
    return f"| {name} | {len(runs)} | {agents} | {within(0)} | {within(1)} | {within(3)} |"


def main() -> None:
    sets = {folder: labeled(Path(folder)) for folder in sys.argv[1:]}
    for folder, runs in sets.items():
        kinds = {
            "algorithm-generated": [run for run in runs if run[0].system != "Magentic-One"],
            "hand-crafted": [run for run in runs if run[0].system == "Magentic-One"],
        }
        for kind, some in kinds.items():
            if some:
                print(row(f"{Path(folder).name}, {kind}", some))
        for trace, verdict in runs:
            print(f"  {trace.id}: {trace.steps[verdict.step].agent} {verdict}", file=sys.stderr)
    print(row("all", [run for runs in sets.values() for run in runs]))


if __name__ == "__main__":
    main()
