"""One trace in words and rows: pairs, paths, the answer's way, and texts that repeat."""

from __future__ import annotations

import random

import numpy as np
import pytest

import counterpoint as cp
from counterpoint.contracts import Context
from counterpoint.explain import explain, heaviest_paths
from counterpoint.models.hashing import HashingEncoder


def embed(texts: list[str]) -> np.ndarray:
    return HashingEncoder().encode(texts)[0]


def step(name: str, agent: str, text: str, *heard: str, **fields) -> cp.Step:
    return cp.Step(name, agent, text, heard=tuple(cp.Transfer(source) for source in heard), **fields)


def explained(*steps: cp.Step, **fields):
    trace = cp.Trace("t", steps, **fields)
    graph = cp.graph(trace)
    return explain(Context(trace=graph.trace, graph=graph, embed=embed))


LOST = (
    step("a", "A", "Six eights make it, surely. The answer is 48."),
    step("b", "B", "Six eights make it, surely. The answer is 48.", "a"),
    step("c", "C", "Hastily: The answer is 14.", "a", "b"),
    step("b2", "B", "Well then. The answer is 14.", "c"),
    step("end", "J", "The answer is 14.", "b2", "c", kind="decision"),
)


def test_the_answer_begins_is_taken_over_turns_and_ends_the_run():
    found = explained(*LOST, gold="48")
    told = [(event.step, event.what, event.answer, event.before, event.right) for event in found.events]
    assert told == [
        ("a", "begins", "48", "", True),
        ("b", "takes over", "48", "", True),
        ("c", "begins", "14", "", False),
        ("b2", "turns", "14", "48", False),
        ("end", "final", "14", "", False),
    ]
    assert found.blame["step_id"] == "c"
    assert (found.correct, found.answer, found.gold) == (False, "14", "48")


@pytest.mark.parametrize(
    ("fields", "disputed"),
    [
        ({"gold": "48", "correct": True}, True),
        ({"gold": "14", "correct": False}, True),
        ({"gold": "14.0", "correct": True}, False),
        ({"gold": "48"}, False),
        ({"correct": True}, False),
    ],
)
def test_a_recorded_grade_that_the_gold_answer_disputes_is_told(fields, disputed):
    assert explained(*LOST, **fields).disputed == disputed


def test_a_run_without_a_readable_answer_disputes_no_grade():
    assert not explained(step("a", "A", "No idea."), gold="48", correct=True).disputed


def test_a_path_of_steps_that_say_nothing_carries_no_tokens():
    found = explained(step("a", "A", ""), step("b", "B", "", "a"), gold="48", answer="7")
    assert [str(path.tokens) for path in found.heaviest] == ["0.0"]


def test_the_least_diverse_pair_says_the_same_and_no_pair_is_in_both_lists():
    found = explained(*LOST, gold="48")
    assert (found.least_diverse[0].first, found.least_diverse[0].second) == ("a", "b")
    assert found.least_diverse[0].diversity == pytest.approx(0)
    both = [(pair.first, pair.second) for pair in (*found.least_diverse, *found.most_diverse)]
    assert len(both) == len(set(both)) == found.pairs == 4


def test_the_mean_diversity_of_pairs_is_that_of_ids():
    found = explained(*LOST, gold="48")
    pairs = [*found.least_diverse, *found.most_diverse]
    assert sum(pair.diversity for pair in pairs) / len(pairs) == pytest.approx(found.shares.ids)


def test_what_a_reader_had_seen_before_is_a_repeat():
    found = explained(*LOST, gold="48")
    assert [(repeat.step, repeat.readers) for repeat in found.repeats] == [("b", ("c",))]
    assert found.repeated_tokens == found.repeats[0].tokens > 0


def test_paths_are_counted_exactly_beside_the_capped_list():
    steps = [
        step(f"s{number}", f"agent {number % 6}", "no idea yet", *[f"s{i}" for i in range(number)])
        for number in range(20)
    ]
    found = explained(*steps, gold="7", answer="8")
    assert found.shares.judged_by == "useful steps"
    assert found.shares.paths is not None
    assert found.shares.paths > 100_000
    assert len(found.heaviest) <= 5


def test_without_answers_or_transfers_there_are_reasons_and_no_crash():
    found = explained(step("a", "A", "hm"))
    assert (found.events, found.pairs, found.heaviest, found.repeats) == ((), 0, (), ())
    assert set(found.shares.reasons) >= {"paths", "ids", "shapley"}
    assert explained().shares.agents == ()


def test_the_heaviest_unnecessary_paths_are_those_of_a_full_list():
    rng = random.Random(3)
    for _ in range(100):
        n = rng.randint(2, 7)
        edges = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.5]
        right = [rng.random() < 0.5 for _ in range(n)]
        weights = [rng.randint(1, 20) for _ in range(n)]
        after = [[j for i, j in edges if i == node] for node in range(n)]
        paths = [(node,) for node in range(n)]
        for path in paths:
            paths.extend((*path, node) for node in after[path[-1]])
        waste = [path for path in paths if len(path) > 1 and sum(right[i] for i in path) * 2 < len(path)]
        expected = sorted((-sum(weights[i] for i in path[:-1]), path) for path in waste)[:5]
        found = heaviest_paths(np.array(edges, dtype=int).reshape(-1, 2), right, weights, n)
        assert found == [(-weight, path) for weight, path in expected]
