"""How long a long trace is diagnosed: `observe` and `findings` on 33,000 steps, and on twice as many.

    python perf/findings.py [--steps 33000]

Six agents in a shared chat, each turn hearing those since its agent's own last one; 60 words a turn, an
answer in every fifth, usage in all. Exits with 1 where an aim is missed: 10 s of one core, and 2.5 times as
long for twice the steps. Findings need no embeddings; whether `score` has computed some changes nothing.
"""

from __future__ import annotations

import argparse
import random
import time

import counterpoint as cp
from counterpoint.contracts import Context
from counterpoint.findings import findings, observe
from counterpoint.graph import CollaborationGraph

AIM_S, AIM_RATIO = 10.0, 2.5
AGENTS = ["planner", "solver", "coder", "critic", "tester", "writer"]


def chat(steps: int) -> cp.Trace:
    """A trace of so many turns."""
    rng = random.Random(0)
    vocabulary = [
        "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(5000)
    ]
    made: list[cp.Step] = []
    last: dict[str, int] = {}
    for number in range(steps):
        agent = AGENTS[number % 6] if rng.random() < 0.8 else rng.choice(AGENTS)
        said = rng.choices(vocabulary, k=60)
        if number and rng.random() < 0.5:  # half of the turns say some of the last one again
            said[:20] = made[-1].text.split()[:20]
        text = " ".join(said) + (f". The answer is {rng.randint(1, 9)}." if number % 5 == 0 else "")
        heard = tuple(
            cp.Transfer(f"s{earlier}", evidence="broadcast")
            for earlier in range(max(last.get(agent, -1) + 1, number - 12), number)
            if made[earlier].agent != agent
        )
        usage = cp.Usage(tokens_in=400 + 90 * len(heard), tokens_out=95, model="gpt-4o-mini")
        made.append(cp.Step(f"s{number}", agent, text, heard=heard, usage=usage))
        last[agent] = number
    return cp.Trace("long", tuple(made), gold="7", task="Which digit?")


def timed(steps: int) -> float:
    """Seconds of one core to diagnose a trace of so many steps."""
    trace = chat(steps)
    context = Context(trace=trace, graph=CollaborationGraph(trace))
    clock, start = time.perf_counter(), time.process_time()
    observed = observe(context)
    between = time.process_time()
    found = findings([observed])
    end = time.process_time()
    print(
        f"{steps:,} steps, {len(observed.spent.pairs):,} transfers: observed in {between - start:.1f} s, "
        f"folded in {end - between:.1f} s, {time.perf_counter() - clock:.1f} s on the clock, "
        f"{len(found)} findings"
    )
    return end - start


def main() -> int:
    parser = argparse.ArgumentParser(description="Speed of findings.")
    parser.add_argument("--steps", type=int, default=33_000)
    steps = parser.parse_args().steps
    timed(steps // 33)  # imports, caches
    once, twice = timed(steps), timed(2 * steps)
    print(
        f"{once:.1f} s (aim {AIM_S:g}), twice the steps {twice / once:.2f} times as long (aim {AIM_RATIO:g})"
    )
    return int(once > AIM_S or twice > AIM_RATIO * once)


if __name__ == "__main__":
    raise SystemExit(main())
