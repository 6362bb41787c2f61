"""Do 95 % intervals hold the true mean in 95 % of samples, and does Holm keep the family-wise error at 5 %?

    python perf/coverage.py [--samples 4000] [--seed 0]

Prints the tables of docs/parity.md. Every interval is the one that a user sees: `stats.interval` with its
10,000 resamples, or the expansion that stands in for them. 4,000 samples a cell give a standard error of
0.35 points.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import combinations

import numpy as np

from counterpoint import stats

SIZES = (5, 10, 20, 50, 100, 200, 1000)

Draw = Callable[[np.random.Generator, int], np.ndarray]


def mixture(rng: np.random.Generator, n: int) -> np.ndarray:
    """3 in 10 exactly 0, 3 in 10 exactly 1, the rest uniform: what shares such as UPR look like."""
    kind = rng.random(n)
    return np.where(kind < 0.3, 0.0, np.where(kind < 0.6, 1.0, rng.random(n)))


def rare(rng: np.random.Generator, n: int) -> np.ndarray:
    """9 in 10 exactly 0, the rest uniform: a fault that few runs have."""
    return np.where(rng.random(n) < 0.9, 0.0, rng.random(n))


DATA: dict[str, tuple[float, bool, Draw]] = {
    "normal": (0.0, False, lambda rng, n: rng.normal(size=n)),
    "exponential": (1.0, False, lambda rng, n: rng.exponential(size=n)),
    "uniform": (0.5, False, lambda rng, n: rng.random(n)),
    "beta(0.5, 2)": (0.2, False, lambda rng, n: rng.beta(0.5, 2, size=n)),
    "0 / 1 / between": (0.5, False, mixture),
    "9 in 10 are 0": (0.05, False, rare),
    "right or wrong, p = 0.5": (0.5, True, lambda rng, n: (rng.random(n) < 0.5).astype(float)),
    "right or wrong, p = 0.9": (0.9, True, lambda rng, n: (rng.random(n) < 0.9).astype(float)),
}
"""Name: true mean, whether it is a proportion, and how a sample is drawn."""


def coverage(name: str, n: int, samples: int, seed: int) -> float:
    """Share of samples whose interval holds the true mean; a sample without an interval holds nothing."""
    mean, proportion, draw = DATA[name]
    rng = np.random.default_rng([seed, n, list(DATA).index(name)])
    held = 0
    for index in range(samples):
        found = stats.interval(draw(rng, n), proportion=proportion, seed=index)
        held += found.low is not None and found.high is not None and found.low <= mean <= found.high
    return held / samples


def family_wise_error(shifts: list[float], samples: int, seed: int, *, n: int = 50) -> float:
    """Share of experiments in which Holm calls any of the truly equal pairs of methods different."""
    rng = np.random.default_rng([seed, n])
    pairs = list(combinations(range(len(shifts)), 2))
    equal = np.array([shifts[i] == shifts[j] for i, j in pairs])
    wrong = 0
    for index in range(samples):
        scores = rng.exponential(size=(n, 1)) + rng.exponential(size=(n, len(shifts))) + shifts
        differences = np.stack([scores[:, i] - scores[:, j] for i, j in pairs], axis=1)
        p, _ = stats.sign_flip_tests(differences, resamples=2_000, seed=index)
        wrong += bool((stats.holm(p)[equal] <= 0.05).any())
    return wrong / samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=4_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("| data | " + " | ".join(f"n = {n}" for n in SIZES) + " |")
    print("|---" * (len(SIZES) + 1) + "|")
    for name in DATA:
        cells = [f"{100 * coverage(name, n, options.samples, options.seed):.1f}" for n in SIZES]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    for text, shifts in (
        ("all six methods equal", [0.0] * 6),
        ("three of six methods equal", [0.0] * 3 + [1, 2, 3]),
    ):
        rate = family_wise_error(list(map(float, shifts)), options.samples, options.seed)
        print(f"\nHolm over 15 pairs, {text}: family-wise error {100 * rate:.1f} %", flush=True)


if __name__ == "__main__":
    main()
