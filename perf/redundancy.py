"""How fast one long run is searched for waste: every metric of redundancy and coordination on one trace.

    python perf/redundancy.py [STEPS]

A run of 6 agents, 33,000 steps unless told otherwise, and one of half as many: each step says some 40 words,
has heard the two before it and was shown them in a prompt; one in five calls a tool, one in eight repeats
what somebody said before, and now and then two agents play ping-pong. Embeddings are in memory, as after a
first run. Prints processor time on one core. Exits with 1 where the whole takes over 10 s, or twice the steps
over 2.5 times the time.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads that wait for a busy core count as busy

import numpy as np
from numpy.typing import NDArray

from counterpoint.contracts import Context
from counterpoint.graph import CollaborationGraph
from counterpoint.metrics import metric
from counterpoint.trace import Call, Step, Trace, Transfer, Usage

METRICS = (
    "reasoning_redundancy",
    "memory_redundancy",
    "task_redundancy",
    "knowledge_duplication",
    "duplicate_work",
    "duplicated_tokens",
    "loops",
    "communication_tax",
    "effective_channels",
    "participation_gini",
    "overhead(turns_single=1000)",
    "error_amplification(error_single=0.2)",
    "message_density",
    "flip_gain",
    "information_survival",
    "mast_modes",
)
AIM_S, AIM_RATIO = 10.0, 2.5

WORDS = [
    f"{a}{b}" for a in ("bri", "fer", "riv", "har", "tun", "sig") for b in ("dge", "ry", "er", "bor", "tal")
]


def main(count: int = 33_000) -> None:
    half, whole = measured(count // 2, show=False), measured(count, show=True)
    print(f"{'all':40} {whole:6.2f} s of processor time, {whole / half:.2f} times that of half as many steps")
    if whole > AIM_S or whole / half > AIM_RATIO:
        sys.exit(f"missed: at most {AIM_S:g} s, and {AIM_RATIO} times")


def measured(count: int, *, show: bool) -> float:
    """Processor time of all metrics on a run of so many steps."""
    steps = tuple(made(count))
    trace = Trace("run", steps, task="Plan it.", gold="7", labels={"planted": ["bridge ferry river"]})
    vectors = remembered([step.text for step in steps])
    graph = CollaborationGraph(trace)
    context = Context(graph.trace, graph, embed=lambda texts: np.stack([vectors[text] for text in texts]))
    total = 0.0
    for name in METRICS:
        chosen = metric(name)
        started = time.process_time()
        score = chosen.compute(context, **chosen.values("strict"))
        spent = time.process_time() - started
        total += spent
        if show:
            value = "undefined" if score.value is None else f"{score.value:.4g}"
            print(f"{name:40} {spent:6.2f} s   {value}")
    return total


def made(count: int, agents: int = 6) -> Iterator[Step]:
    rng = random.Random(7)
    said: list[str] = []
    for number in range(count):
        agent = number % agents
        text = f"Step {number}: {sentence(rng)} {sentence(rng)} The answer is {rng.choice((7, 7, 8))}."
        ping_pong = number % 2000 < 40
        if ping_pong:
            agent, text = number % 2, ("Over to you, please.", "No, this is yours, please.")[number % 2]
        elif number % 8 == 7:
            text = rng.choice(said)
        calls: tuple[Call, ...] = ()
        if number % 5 == 0 and not ping_pong:
            call = Call(
                f"c{number}", "search_notes", f'{{"q": {rng.randrange(2000)}}}', f'["{sentence(rng)}"]'
            )
            calls = (call,)
        yield Step(
            f"s{number}",
            f"agent_{agent}",
            text,
            prompt="You are a planner.\n" + "\n".join(said[-2:]),
            heard=tuple(Transfer(f"s{at}") for at in range(max(0, number - 2), number)),
            calls=calls,
            usage=Usage(tokens_in=150, tokens_out=60),
        )
        said.append(text)


def sentence(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=20)).capitalize() + "."


def remembered(texts: list[str]) -> dict[str, NDArray[np.float64]]:
    """A vector of 384 numbers for each text; those of two texts have a cosine near .4, as in one run."""
    distinct = list(dict.fromkeys(texts))
    rows = np.random.default_rng(7).normal(size=(len(distinct), 384)) + 0.8
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return dict(zip(distinct, rows, strict=True))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
