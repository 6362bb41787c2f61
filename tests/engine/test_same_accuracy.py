"""GEMMAS's point, on a simulated model: teams that are right equally often can work quite differently.

The pair, its parameters, why both are right equally often and what counts as success were fixed before the
first run: docs/decisions/0007. `perf/same_accuracy.py` runs more seeds; docs/parity.md has what came out.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

import counterpoint as cp
from counterpoint.benchmarks import gsm8k
from counterpoint.contracts import Example
from counterpoint.engine.jobs import Plan
from counterpoint.models.simulated import Simulated
from counterpoint.runtime.systems import HONEST, System
from counterpoint.scores import Scores

SEEDS = 10
QUESTIONS = [Example(f"q{number}", f"What is {number} + 7?", str(number + 7)) for number in range(1000)]
CHAIN = System("chain", "the last of three in a row answers", HONEST, "chain", "last")
LAYERS = replace(CHAIN, name="layers", topology="layered")


def played(system: System) -> Scores:
    """Every question under every seed."""
    plan = Plan(gsm8k, "gsm8k", QUESTIONS, system, {"model": "simulated"}, SEEDS)
    models = [
        Simulated(QUESTIONS, accuracy=0.7, copying=0.8, stubbornness=0.2, verbosity=40, seed=seed)
        for seed in range(SEEDS)
    ]
    traces = [job.play(models[job.seed]) for job in plan.jobs]
    return cp.evaluate(traces, ["accuracy", "ids", "upr"], profile="paper", embedder="hashing")


@pytest.mark.slow
def test_two_teams_of_equal_accuracy_differ_clearly_in_diversity_and_waste():
    layers, chain = played(LAYERS), played(CHAIN)
    rows = {row.metric: row for row in cp.compare(layers, chain, delta={"accuracy": 0.02}).rows}
    accuracy, ids, upr = rows["accuracy"], rows["ids"], rows["upr"]
    assert {row.n for row in rows.values()} == {1000}
    assert -0.02 < accuracy.ci_low <= accuracy.ci_high < 0.02
    assert ids.ci_high < -0.05
    assert upr.ci_low > 0.05
    assert upr.difference == pytest.approx(0.246 - 0.157, abs=0.02), "as calculated in decision 0007"
