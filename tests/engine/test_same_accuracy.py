"""GEMMAS's point, on a simulated model: teams that are right equally often can work quite differently."""

from __future__ import annotations

from pathlib import Path

import pytest

from counterpoint.benchmarks import gsm8k
from counterpoint.contracts import Example
from counterpoint.engine.folder import RunFolder
from counterpoint.engine.jobs import Plan
from counterpoint.engine.local import run
from counterpoint.evaluate import evaluate
from counterpoint.models.simulated import Simulated
from counterpoint.runtime.systems import system
from counterpoint.scores import Summary

QUESTIONS = [Example(f"q{number}", f"What is {number} + 7?", str(number + 7)) for number in range(300)]


def scored(name: str, path: Path) -> dict[str, Summary]:
    plan = Plan(gsm8k, "gsm8k", QUESTIONS, system(name), {"model": "simulated"})
    folder = RunFolder(path, plan.config(), resume=False)
    report = run(plan, folder, lambda seed, wait: Simulated(QUESTIONS, seed=seed), threads=4)
    folder.close()
    scores = evaluate(report.traces, ["accuracy", "ids", "upr"], profile="paper", embedder="hashing")
    return {entry.metric: entry for entry in scores.summary() if entry.system is not None}


@pytest.mark.slow
def test_two_teams_within_two_points_of_accuracy_differ_clearly_in_diversity_and_waste(tmp_path):
    mesh, star = scored("vanilla", tmp_path / "mesh"), scored("star", tmp_path / "star")
    assert abs((mesh["accuracy"].mean or 0) - (star["accuracy"].mean or 0)) <= 0.02
    assert (star["upr"].ci_high or 1) < (mesh["upr"].ci_low or 0)
    assert (star["ids"].ci_high or 1) < (mesh["ids"].ci_low or 0)
