"""IDS, side by side: `information_diversity` on many small traces, and a scikit-learn fit a trace.

    python perf/ids.py [--traces 10000]

Traces of four agents in two rounds: as four nodes (the agents, S and T complete) and as eight (the steps,
within a round complete, across to every other agent). Tokenizer `sklearn`, embeddings in memory on both
sides, one process; the peer fits a TfidfVectorizer a trace and does the rest in numpy. The sides take turns,
500 traces each, so that both see the same machine. Last column: `words`, our default. Exits with 1 where an
aim is missed or the sides differ by more than 1e-9.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer

from counterpoint.metrics.gemmas import information_diversity

AIMS = {20: 10, 60: 4}
"""Words a text to how many times as fast."""

TURN = 500
"""Traces before the other side's turn."""

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Team(NamedTuple):
    texts: list[str]
    vectors: NDArray[np.float64]


def peer(team: Team, spatial: NDArray[np.int64], temporal: NDArray[np.int64]) -> float:
    """IDS as one writes it with scikit-learn and numpy."""
    tfidf = TfidfVectorizer().fit_transform(team.texts)
    syntactic = (tfidf @ tfidf.T).toarray()
    semantic = np.clip(team.vectors @ team.vectors.T, 0, 1)
    weights = np.triu(np.maximum(spatial, spatial.T) + np.maximum(temporal, temporal.T), 1)
    return float((weights * (1 - 0.5 * syntactic - 0.5 * semantic)).sum() / weights.sum())


def ours(team: Team, spatial: NDArray[np.int64], temporal: NDArray[np.int64], tokenizer: str) -> float:
    embed = {tuple(team.texts): team.vectors}
    score = information_diversity(
        team.texts, spatial, temporal, embed=lambda texts: embed[tuple(texts)], tokenizer=tokenizer
    )
    assert score.value is not None
    return score.value


def wiring(nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    upper = np.triu(np.ones((4, 4), dtype=np.int64), 1)
    if nodes == 4:
        return upper, upper
    spatial, temporal = np.zeros((2, 8, 8), dtype=np.int64)
    spatial[:4, :4] = spatial[4:, 4:] = upper
    temporal[:4, 4:] = 1 - np.eye(4, dtype=np.int64)
    return spatial, temporal


def drawn(nodes: int, words: int, vocabulary: list[str], rng: random.Random, seed: int) -> Team:
    texts = [" ".join(rng.choices(vocabulary, k=words)) for _ in range(nodes)]
    vectors = np.random.default_rng(seed).normal(0.02, 1, (nodes, 384))
    return Team(texts, vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def timed(work: Callable[[Team], float], teams: list[Team]) -> tuple[float, list[float]]:
    start = time.perf_counter()
    values = [work(team) for team in teams]
    return time.perf_counter() - start, values


def compared(nodes: int, words: int, traces: int, vocabulary: list[str]) -> tuple[list[float], float]:
    """Microseconds a trace of peer, ours, and ours with `words`; and how far the first two are apart."""
    spatial, temporal = wiring(nodes)
    sides: list[Callable[[Team], float]] = [
        lambda team: peer(team, spatial, temporal),
        lambda team: ours(team, spatial, temporal, "sklearn"),
        lambda team: ours(team, spatial, temporal, "words"),
    ]
    spent, apart, rng = [0.0] * len(sides), 0.0, random.Random(0)
    for first in range(0, traces, TURN):
        teams = [drawn(nodes, words, vocabulary, rng, number) for number in range(first, first + TURN)]
        results = [timed(side, teams) for side in sides]
        spent = [total + seconds for total, (seconds, _) in zip(spent, results, strict=True)]
        apart = max(apart, *(abs(a - b) for a, b in zip(results[0][1], results[1][1], strict=True)))
    return [total / traces * 1e6 for total in spent], apart


def main() -> int:
    parser = argparse.ArgumentParser(description="Speed of IDS.")
    parser.add_argument("--traces", type=int, default=10_000)
    traces = -(-parser.parse_args().traces // TURN) * TURN
    rng = random.Random(0)
    vocabulary = ["".join(rng.choices(LETTERS, k=rng.randint(2, 9))) for _ in range(800)]
    missed = False
    print(f"{traces} traces, microseconds a trace")
    print("nodes  words a text  scikit-learn   ours  times as fast  aim  difference  ours, words")
    for nodes in (4, 8):
        for words, aim in AIMS.items():
            (slow, quick, default), apart = compared(nodes, words, traces, vocabulary)
            missed |= slow / quick < aim or apart > 1e-9
            print(
                f"{nodes:5}  {words:12}  {slow:12.1f}  {quick:5.1f}  {slow / quick:13.1f}  {aim:3}  "
                f"{apart:10.1e}  {default:11.1f}"
            )
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())
