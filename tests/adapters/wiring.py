"""How well adapters read real traces: what was read against what a perfect reader gets.

Run as a script it prints precision and recall of transfers, format by format::

    python tests/adapters/wiring.py [--all] [FILE-PREFIX ...]

The real traces lie outside the repository: in ``$COUNTERPOINT_DATA/traces`` or ``../shared/data/traces``.
Their README.md explains ``wiring.json``. Transfers are compared with their evidence; same-agent memory and
evidence weaker than broadcast are left out, as is everything that the file's entry calls optional.
"""

from __future__ import annotations

import csv
import importlib
import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from counterpoint import adapters
from counterpoint.trace import EVIDENCE, Step, Trace

ROOT = Path(os.environ.get("COUNTERPOINT_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
TRACES = ROOT / "traces"
COUNTED = EVIDENCE[: EVIDENCE.index("broadcast") + 1]


def expectations() -> dict[str, dict[str, Any]]:
    """File -> what a perfect reader gets; empty where the data are not on this machine."""
    path = TRACES / "wiring.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


@dataclass
class Verdict:
    """One file, or one trace of it, against its entry."""

    expected: int = 0
    found: int = 0
    reported: int = 0
    evidence: int = 0
    """Of the transfers found, those with the very evidence that the entry names."""
    problems: list[str] = field(default_factory=list)

    def add(self, other: Verdict) -> None:
        self.expected += other.expected
        self.found += other.found
        self.reported += other.reported
        self.evidence += other.evidence
        self.problems += other.problems


def judge(traces: list[Trace], entry: dict[str, Any]) -> Verdict:
    """The traces read from one file against the file's entry in wiring.json."""
    if "traces" in entry:
        return _judge_many(traces, entry["traces"])
    if "steps" in entry:
        if len(traces) != 1:
            return Verdict(len(entry["transfers"]), problems=[f"{len(traces)} traces instead of 1"])
        return _judge_readings(traces[0], entry)
    return _judge_counts(traces, entry)


def _judge_many(traces: list[Trace], entries: list[dict[str, Any]]) -> Verdict:
    total = Verdict()
    if len(traces) != len(entries):
        total.problems.append(f"{len(traces)} traces instead of {len(entries)}")
    left = list(traces)
    for entry in entries:
        if not left:
            total.expected += len(entry["transfers"])
            continue
        verdicts = [_judge_readings(trace, entry) for trace in left]
        best = min(range(len(left)), key=lambda index: len(verdicts[index].problems))
        total.add(verdicts[best])
        del left[best]
    return total


def _judge_readings(trace: Trace, entry: dict[str, Any]) -> Verdict:
    readings = [entry, *entry.get("alternatives", ())]
    return min(
        (_judge_one(trace, reading) for reading in readings), key=lambda verdict: len(verdict.problems)
    )


def _judge_one(trace: Trace, entry: dict[str, Any]) -> Verdict:
    spared = set(entry.get("optional_agents", ()))
    steps = [step for step in trace.steps if step.kind not in ("task", "control")]
    names = _names({step.agent for step in steps}, set(entry["agents"]) | spared)
    labels = _labels(steps, names)
    agents = {names[step.agent] for step in steps}
    problems = [f"agent {name!r} is missing" for name in sorted(set(entry["agents"]) - agents - spared)]
    problems += [f"{name!r} is no agent" for name in sorted(agents - set(entry["agents"]) - spared)]
    got = [label for label in labels.values() if label.rsplit("#", 1)[0] not in spared]
    problems += _order_problems(got, entry["steps"], entry.get("parallel", ()))
    verdict = _judge_transfers(steps, labels, entry, spared)
    verdict.problems = problems + verdict.problems
    return verdict


def _names(got: set[str], expected: set[str]) -> dict[str, str]:
    """Names as in the entry, where "?" stands for the one agent that the file does not name."""
    names = {name: name for name in got}
    strangers = got - expected
    if "?" in expected and len(strangers) == 1:
        names[strangers.pop()] = "?"
    return names


def _labels(steps: Iterable[Step], names: dict[str, str]) -> dict[str, str]:
    turns: Counter[str] = Counter()
    labels = {}
    for step in steps:
        turns[names[step.agent]] += 1
        labels[step.id] = f"{names[step.agent]}#{turns[names[step.agent]]}"
    return labels


def _order_problems(got: list[str], expected: list[str], parallel: Iterable[list[str]]) -> list[str]:
    if set(got) != set(expected):
        lost, extra = sorted(set(expected) - set(got)), sorted(set(got) - set(expected))
        return [f"steps missing {lost}, too many {extra}"]
    free = {frozenset((a, b)) for group in parallel for a in group for b in group}
    place = {label: position for position, label in enumerate(got)}
    return [
        f"{after} stands before {before}"
        for position, before in enumerate(expected)
        for after in expected[position + 1 :]
        if place[after] < place[before] and frozenset((before, after)) not in free
    ]


def _judge_transfers(
    steps: list[Step], labels: dict[str, str], entry: dict[str, Any], spared: set[str]
) -> Verdict:
    agent = {step.id: step.agent for step in steps}
    got = {
        (labels[transfer.source], labels[step.id]): transfer.evidence
        for step in steps
        for transfer in step.heard
        if transfer.source in labels
        and agent[transfer.source] != step.agent
        and transfer.evidence in COUNTED
        and not spared & {agent[transfer.source], step.agent}
    }
    wanted = {(source, target): evidence for source, target, evidence in entry["transfers"]}
    free = {(pair[0], pair[1]) for key in ("optional", "not_in_file") for pair in entry.get(key, ())}
    reported = {pair: evidence for pair, evidence in got.items() if pair in wanted or pair not in free}
    found = [pair for pair in wanted if pair in got]
    problems = [f"no transfer {a} > {b} ({wanted[a, b]})" for a, b in wanted if (a, b) not in got]
    problems += [f"wrong transfer {a} > {b} ({reported[a, b]})" for a, b in reported if (a, b) not in wanted]
    problems += [
        f"{a} > {b} is {wanted[a, b]}, not {got[a, b]}" for a, b in found if got[a, b] != wanted[a, b]
    ]
    right = sum(got[pair] == wanted[pair] for pair in found)
    return Verdict(len(wanted), len(found), len(reported), right, problems)


def _judge_counts(traces: list[Trace], entry: dict[str, Any]) -> Verdict:
    problems = []
    if len(traces) != entry.get("n_records", 1):
        problems.append(f"{len(traces)} traces instead of {entry.get('n_records', 1)}")
    spared = set(entry.get("optional_agents", ()))
    agents = {step.agent for trace in traces for step in trace.steps if step.kind != "task"}
    if "agents" in entry and agents - spared != set(entry["agents"]) - spared:
        problems.append(f"agents {sorted(agents)} instead of {sorted(entry['agents'])}")
    if "n_agents" in entry and len(agents) != entry["n_agents"]:
        problems.append(f"{len(agents)} agents instead of {entry['n_agents']}")
    if "n_steps" in entry:
        wanted = entry["n_steps"] if isinstance(entry["n_steps"], list) else [entry["n_steps"]]
        got = [len(trace.steps) for trace in traces]
        without_task = [sum(step.kind != "task" for step in trace.steps) for trace in traces]
        if wanted not in (got, without_task):
            problems.append(f"{got} steps instead of {wanted}")
    return Verdict(problems=problems)


# --- reading ---------------------------------------------------------------------------------------


def claimants(path: Path) -> list[str]:
    """Names of the adapters that say this file is theirs; adapters not yet written say nothing."""
    source = adapters.source(path)
    return [name for name, module in adapters.TABLE.items() if importlib.import_module(module).sniff(source)]


def read(path: Path) -> list[Trace]:
    """Every trace of the file, as a user would get it; an unreadable record raises."""
    return list(adapters.read(str(path), on_error="raise"))


# --- the table -------------------------------------------------------------------------------------


def table(prefixes: list[str], *, everything: bool = False) -> str:
    """Precision and recall of transfers by format, as Markdown."""
    with (TRACES / "index.tsv").open(encoding="utf-8") as lines:
        formats = {row["file"]: row["format"] for row in csv.DictReader(lines, delimiter="\t")}
    totals: dict[str, Verdict] = defaultdict(Verdict)
    files: Counter[str] = Counter()
    details: list[str] = []
    for file, entry in expectations().items():
        if prefixes and not file.startswith(tuple(prefixes)):
            continue
        try:
            verdict = judge(read(TRACES / file), entry)
        except Exception as error:
            verdict = Verdict(len(entry.get("transfers", ())), problems=[f"{type(error).__name__}: {error}"])
        totals[formats[file]].add(verdict)
        files[formats[file]] += 1
        if verdict.problems or everything:
            details += [file, *(f"    {problem}" for problem in verdict.problems)]
    lines = [
        "| format | files | transfers | precision | recall | evidence right |",
        "|---|---|---|---|---|---|",
    ]
    lines += [f"| {name} | {files[name]} | {_figures(total)} |" for name, total in sorted(totals.items())]
    return "\n".join([*lines, "", *details])


def _figures(total: Verdict) -> str:
    def ratio(part: int, whole: int) -> str:
        return f"{part / whole:.2f}" if whole else "-"

    return " | ".join(
        [
            str(total.expected),
            ratio(total.found, total.reported),
            ratio(total.found, total.expected),
            ratio(total.evidence, total.found),
        ]
    )


if __name__ == "__main__":
    arguments = sys.argv[1:]
    print(table([each for each in arguments if each != "--all"], everything="--all" in arguments))
