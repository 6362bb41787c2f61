"""Does `upr_uptake`, which needs no gold answer, rank runs as UPR does, which needs one?

    python perf/uptake.py [--teams 1200] [--embedder default]

Prints the table of docs/metrics/uptake.md: Kendall's tau-b between both, with a 95 % percentile interval over
1,000 resamples of runs; on the bundled traces, and on simulated teams. In the simulation it is known who used
whom, so that the edges have a precision and a recall too.

A simulated step takes over a text that it heard, words (some by a synonym) and answer; or stays with its
agent's own last one; or solves anew. How often, how often agents are right, who hears whom, and how often a
step says its answer differ from team to team. The decision is the vote of the last answers.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import kendalltau

import counterpoint as cp
from counterpoint.contracts import Context, Embedder
from counterpoint.graph import CollaborationGraph
from counterpoint.metrics import metric
from counterpoint.metrics.uptake import uptake

EXAMPLES = Path(__file__).parents[1] / "examples" / "traces"

PAIRS = """road street|car vehicle|house home|rock stone|ship vessel|shop store|job task|price cost|child kid
forest wood|hill mound|gift present|start begin|end finish|big large|small little|quick fast|sum total|piece
part|way path|pupil student|doctor physician|error mistake|answer reply|speed pace|rubbish waste|field meadow
rope cord|bag sack|cup mug|sofa couch|jacket coat|physics mechanics|proof evidence|rule law|plan scheme|trip
journey|film movie|photo picture|book volume|letter note|street lane|river stream|boat canoe|engine motor
farmer grower|meal dish|bread loaf|lamp light|box crate|border edge|corner angle|weight mass|length extent
height altitude|area region|cloud mist|wind breeze|fire blaze|noise sound|smell odor|danger risk|help aid
illness disease|idea thought|talk speech|fight struggle|joy delight|sadness grief|anger rage|fear terror"""
SPLIT = [pair.split() for pair in PAIRS.replace("\n", " ").split("|")]
SYNONYMS = {pair[0]: pair[1] for pair in SPLIT if len(pair) == 2}
WORDS = list(SYNONYMS)
GLUE = ["the", "of", "and", "to", "in", "is", "that", "for", "it", "with",
        "as", "by", "we", "this", "on", "be", "at", "from", "so", "then"]  # fmt: skip


def said(content: list[str], rng: random.Random) -> str:
    """Content words in a sentence with the words that every sentence has."""
    return " ".join(word for term in content for word in (rng.choice(GLUE), term))


def wiring(kind: str, agents: int, rounds: int, rng: random.Random) -> list[tuple[int, int, list[int]]]:
    """(agent, round, indices of the steps heard) of each step."""
    steps: list[tuple[int, int, list[int]]] = []
    for turn in range(rounds):
        for agent in range(agents):
            earlier = [number for number, step in enumerate(steps) if step[0] != agent]
            recent = [number for number in earlier if steps[number][1] >= turn - 1]
            heard = {
                "all": recent,
                "chain": earlier[-1:],
                "random": [number for number in recent if rng.random() < 0.4],
                "rounds": [number for number in recent if steps[number][1] == turn - 1],
            }[kind]
            steps.append((agent, turn, heard))
    return steps


class Team(NamedTuple):
    """A simulated run and the truth about it."""

    trace: cp.Trace
    used: set[tuple[str, str]]
    """Pairs of steps: the second took the first over."""
    useful: set[str]
    """Steps from which a chain of such pairs, or of an agent staying with its own, leads to the vote."""
    says: float
    """Share of steps that say their answer."""


def team(number: int) -> Team:
    rng = random.Random(number)
    skill, taking, synonyms, saying = (rng.choice(levels) for levels in (
        (0.3, 0.5, 0.7, 0.9), (0.2, 0.5, 0.8), (0.0, 0.3, 0.6), (0.5, 1.0)))  # fmt: skip
    task, gold = rng.sample(WORDS, 6), rng.randint(10, 999)
    steps: list[cp.Step] = []
    held: list[tuple[list[str], int]] = []
    used: set[tuple[str, str]] = set()
    parents: list[int] = []
    kind = rng.choice(("all", "chain", "random", "rounds"))
    for index, (agent, turn, heard) in enumerate(wiring(kind, rng.randint(3, 6), rng.randint(1, 3), rng)):
        own = rng.sample(WORDS, 8)
        answer = gold if rng.random() < skill else rng.randint(10, 999)
        content, parent = own, -1
        mine = [number for number in range(index) if steps[number].agent == f"agent {agent}"]
        if heard and rng.random() < taking:
            parent = rng.choice(heard)
            used.add((f"s{parent}", f"s{index}"))
        elif mine and rng.random() < 0.7:
            parent = mine[-1]
        if parent >= 0:
            words, answer = held[parent]
            content = own[:4] + [
                SYNONYMS.get(word, word) if rng.random() < synonyms else word for word in rng.sample(words, 5)
            ]
        parents.append(parent)
        text = said(content + rng.sample(task, 2), rng)
        if rng.random() < saying:
            text += f". The answer is {answer}."
        held.append((content, answer))
        transfers = tuple(cp.Transfer(f"s{source}") for source in heard)
        steps.append(cp.Step(f"s{index}", f"agent {agent}", text, round=turn, heard=transfers))
    last = {step.agent: number for number, step in enumerate(steps)}
    vote = Counter(held[number][1] for number in last.values()).most_common(1)[0][0]
    readers = tuple(cp.Transfer(f"s{number}") for number in last.values())
    final = cp.Step("final", "judge", f"The answer is {vote}.", kind="decision", round=9, heard=readers)
    useful = {number for number in last.values() if held[number][1] == vote}
    for index in reversed(range(len(steps))):
        if index in useful and parents[index] >= 0:
            useful.add(parents[index])
    trace = cp.Trace(f"team {number}", (*steps, final), task=said(task, rng), gold=str(gold), system=kind)
    return Team(trace, used, {f"s{index}" for index in useful}, saying)


def compared(trace: cp.Trace, by: str, embed: Embedder | None) -> tuple[float, float, bool] | None:
    """UPR, ``upr_uptake``, and whether the run was right; None where either is undefined."""
    context = Context(trace=trace, graph=CollaborationGraph(trace), embed=embed)
    values = []
    for name in ("upr", f"upr_uptake(by={by})", "accuracy"):
        chosen = metric(name)
        values.append(chosen.compute(context, **chosen.values("strict")).value)
    upr, without, right = values
    return None if upr is None or without is None else (upr, without, bool(right))


def tau(rows: list[tuple[float, float, bool]]) -> str:
    """tau-b and its interval."""
    pairs = np.array([row[:2] for row in rows])
    if len(pairs) < 3 or not pairs.std(axis=0).all():
        return f"none (n={len(pairs)}, no variation)"
    rng, taus = np.random.default_rng(0), []
    for _ in range(1000):
        drawn = pairs[rng.integers(0, len(pairs), len(pairs))]
        taus.append(kendalltau(drawn[:, 0], drawn[:, 1]).statistic)
    low, high = np.nanpercentile(taus, [2.5, 97.5])
    return f"{kendalltau(pairs[:, 0], pairs[:, 1]).statistic:.2f} [{low:.2f}, {high:.2f}] (n={len(pairs)})"


def report(name: str, traces: list[cp.Trace], by: str, embed: Embedder | None) -> None:
    rows = [row for trace in traces if (row := compared(trace, by, embed))]
    right, wrong = [row for row in rows if row[2]], [row for row in rows if not row[2]]
    print(f"{name:10} {by:10} all {tau(rows):32} right {tau(right):32} wrong {tau(wrong)}")


def truth(teams: list[Team], by: str, embed: Embedder | None) -> None:
    """Precision and recall of uptake edges between agents and of useful steps, against the simulation's."""
    for level in {"text": (0.15, 0.2, 0.25, 0.3, 0.4), "embedding": (0.3, 0.4, 0.5, 0.6)}.get(by, (None,)):
        counts = np.zeros(6)
        for made in teams:
            context = Context(trace=made.trace, graph=CollaborationGraph(made.trace), embed=embed)
            found = uptake(context, by=by, threshold=level)
            names = [step.id for step in found.steps]
            pairs = found.pairs[found.taken].tolist()
            taken = {(names[i], names[j]) for i, j in pairs if names[j] != "final"}
            useful = {name for name, flag in found.useful.items() if flag} - {"final"}
            counts += [
                len(taken & made.used), len(taken), len(made.used),
                len(useful & made.useful), len(useful), len(made.useful),
            ]  # fmt: skip
        e, f, g, h, i, j = counts
        print(
            f"{by:10} level {level}: edges precision {e / f:.2f} recall {e / g:.2f} of {g:.0f}; "
            f"useful steps precision {h / i:.2f} recall {h / j:.2f} of {j:.0f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Validation of upr_uptake.")
    parser.add_argument("--teams", type=int, default=1200)
    parser.add_argument("--embedder", default="default")
    arguments = parser.parse_args()
    embed = cp.embedder(arguments.embedder)
    bundled = [trace for path in sorted(EXAMPLES.glob("*.jsonl")) for trace in cp.read(str(path))]
    teams = [team(number) for number in range(arguments.teams)]
    for by in ("text", "embedding", "either"):
        report("bundled", bundled, by, embed)
        for share in (1.0, 0.5):
            report(f"says {share:.0%}", [made.trace for made in teams if made.says == share], by, embed)
    for by in ("text", "embedding", "either"):
        truth(teams, by, embed)


if __name__ == "__main__":
    main()
