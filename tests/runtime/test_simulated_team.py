"""GEMMAS's point on simulated teams: two systems may be equally right and work together very differently."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

import counterpoint as cp
from counterpoint.benchmarks import gsm8k
from counterpoint.contracts import Example
from counterpoint.models.simulated import Simulated
from counterpoint.runtime.play import play
from counterpoint.runtime.systems import system
from counterpoint.scores import Scores

SUMS = [Example(f"q{n}", f"What is {n} plus {n}, please?", str(2 * n)) for n in range(120)]


def scores(name: str) -> Scores:
    model = Simulated(SUMS, accuracy=0.7, copying=0.5, stubbornness=0.3)
    chosen = system(name)
    traces = [
        play(
            question,
            chosen.agents("number"),
            chosen.wiring(0),
            model,
            benchmark=gsm8k,
            protocol=chosen.last_word(),
        )
        for question in SUMS
    ]
    named = [replace(trace, system=name) for trace in traces]
    return cp.evaluate(named, ["accuracy", "ids", "upr"], embedder="hashing", cache=False)


@pytest.mark.slow
def test_two_systems_of_one_accuracy_differ_clearly_in_diversity_and_unnecessary_paths():
    rows = {row.metric: row for row in cp.compare(scores("star"), scores("debate")).rows}
    assert abs(rows["accuracy"].difference) <= 0.02
    assert rows["ids"].ci_high < -0.03
    assert rows["upr"].ci_high < 0
    assert {row.n for row in rows.values()} == {120}
