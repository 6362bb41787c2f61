"""Unity against references: made cases with known truth, and data of people where a file of it is given.

    python perf/river_validation.py [--units FILE] [--ratings FILE --low 1 --high 5] [--votes FILE]
    python perf/river_validation.py --judge llm --model NAME --base-url URL

Prints rank and linear correlation. On made cases decomposer and judge have to find what is shared; data of
people comes with its correspondences, so that the metric alone is tried. Exits with 1 where the made cases
miss the aim.
"""

from __future__ import annotations

import argparse

import counterpoint as cp
from counterpoint.metrics import metric
from counterpoint.metrics.river_validation import (
    Known,
    agreement,
    read_ratings,
    read_units,
    read_votes,
    synthetic,
    unity_of,
)
from counterpoint.score import Score

AIM = 0.95
"""Rank correlation with the truth on made cases, whose two wordings share all of their words."""


def told(name: str, score: Score) -> None:
    if score.value is None:
        print(f"{name:28} {score.reason} (n = {score.parts['n']})")
        return
    parts = score.parts
    print(
        f"{name:28} n = {parts['n']:4}  spearman {score.value:.3f}  pearson {parts['pearson']:.3f}  "
        f"mean difference {parts['mean_difference']:+.3f}"
    )


def of_people(cases: list[Known]) -> Score:
    return agreement([(unity_of(case).value, case.reference) for case in cases])


def main() -> int:
    parser = argparse.ArgumentParser(description="Unity against references.")
    for name in ("units", "ratings", "votes", "model", "base-url"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--judge", default="lexical")
    parser.add_argument("--embedder", default="default")
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--low", type=float, default=1)
    parser.add_argument("--high", type=float, default=5)
    asked = parser.parse_args()

    made = synthetic(asked.cases)
    chosen = metric("unity").bind(judge=asked.judge, model=asked.model, base_url=asked.base_url)
    rows = cp.evaluate([trace for trace, _ in made], [chosen], embedder=asked.embedder).rows
    score = agreement([(row.value, truth) for row, (_, truth) in zip(rows, made, strict=True)])
    told(f"made cases ({asked.judge})", score)
    if asked.units:
        told("content units", of_people(read_units(asked.units)))
    if asked.ratings:
        told("importance ratings", of_people(read_ratings(asked.ratings, low=asked.low, high=asked.high)))
    if asked.votes:
        told("votes", of_people(read_votes(asked.votes)))
    return int(score.value is None or score.value < AIM)


if __name__ == "__main__":
    raise SystemExit(main())
