"""Benchmarks: questions with known answers, loaded from files that users have. Importing this loads none.

    gsm8k = lookup("benchmark", "gsm8k")
    train, test = train_test("gsm8k", "data/gsm8k")
    gsm8k.grade(gsm8k.read_answer("The answer is 7.", test[0]), test[0])

Conventions
-----------
* A path is a file or a folder; ``hub`` stands for the model hub's copy (extra ``hub``). A file name that says
  test, train, dev or val says which split it is; one that says neither holds everything (MultiArith, SVAMP:
  split here, by seed 0) or the test questions (GSM8K, AQuA).
* Ids are the data set's own, or a hash of the question: the same in every variant of the files. A question
  that stands twice is ``ID~2`` the second time.
* A training question that is also a test question is left out of training, so that every system is tested
  on the same questions.

What counts
-----------
Answers are read by `counterpoint.answers`, with its fallback, and numbers compare exactly: the gold answers
of these sets are whole numbers or letters, so none needs a tolerance.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from counterpoint.contracts import Benchmark, Example
from counterpoint.errors import UsageError
from counterpoint.registry import lookup

__all__ = ["TABLE", "subset", "train_test"]

TABLE: dict[str, str] = {
    "gsm8k": "counterpoint.benchmarks.gsm8k",
    "aqua": "counterpoint.benchmarks.aqua",
    "multiarith": "counterpoint.benchmarks.multiarith",
    "svamp": "counterpoint.benchmarks.svamp",
    "mmlu": "counterpoint.benchmarks.mmlu",
}


def train_test(name: str, path: str) -> tuple[list[Example], list[Example]]:
    """Training and test examples of benchmark ``name`` under ``path``; a UsageError if they share one."""
    benchmark: Benchmark = lookup("benchmark", name)
    train, test = benchmark.load(path, "train"), benchmark.load(path, "test")
    shared = {example.id for example in train} & {example.id for example in test}
    if shared:
        raise UsageError(
            f"benchmark {name!r}: {len(shared)} training questions are test questions too, "
            f"{min(shared)!r} for one: what is learned from them must not be tested on them"
        )
    return train, test


def subset(examples: Sequence[Example], limit: int | None, seed: int | None = None) -> list[Example]:
    """At most ``limit`` examples: the first ones, or with ``seed`` drawn at random; in their order.

    >>> questions = [Example(str(n), "?", "7") for n in range(10)]
    >>> [one.id for one in subset(questions, 3)], [one.id for one in subset(questions, 3, seed=0)]
    (['0', '1', '2'], ['0', '6', '9'])
    """
    if limit is None or limit >= len(examples):
        return list(examples)
    if limit < 1:
        raise UsageError(f"a limit is at least 1 question, not {limit}")
    if seed is None:
        return list(examples[:limit])
    return [examples[index] for index in sorted(random.Random(seed).sample(range(len(examples)), limit))]
