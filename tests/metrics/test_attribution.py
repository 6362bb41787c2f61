"""Who cost, carried and contributed what: Shapley's oracles, loads that add up, costs by hand."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from small_worlds import context_of, judged, turn

from counterpoint.errors import UsageError
from counterpoint.metrics.attribution import attribute, leave_one_out, shapley, shapley_intervals
from counterpoint.metrics.costs import costs
from counterpoint.metrics.gemmas import path_load, unnecessary_path_ratio
from counterpoint.metrics.paths import KINDS, PathQuestion, counts_by_length, node_load
from counterpoint.models.hashing import HashingEncoder
from counterpoint.trace import Usage

# --- Shapley ---------------------------------------------------------------------------------------


def test_the_worked_game_gives_two_thirds_and_two_sixths():
    value = shapley([0, 1, 2], lambda team: float(0 in team and len(team) > 1))
    assert list(value.values()) == pytest.approx([2 / 3, 1 / 6, 1 / 6])


def test_two_duplicates_have_half_each_and_leave_one_out_zero():
    def worth(team):
        return float(bool(team))

    assert shapley(["a", "b"], worth) == {"a": 0.5, "b": 0.5}
    assert leave_one_out(["a", "b"], worth) == {"a": 0.0, "b": 0.0}


@given(st.integers(1, 6), st.integers(0, 10_000))
def test_values_sum_to_what_all_reach_together_less_what_nobody_does(n, seed):
    def worth(team):
        return random.Random(f"{seed} {sorted(team)}").uniform(-5, 5)

    everything = worth(frozenset(range(n))) - worth(frozenset())
    assert sum(shapley(range(n), worth).values()) == pytest.approx(everything, abs=1e-12)
    sampled = shapley_intervals(range(n), worth, samples=20)
    assert sum(one.value for one in sampled.values()) == pytest.approx(everything, abs=1e-9)


def test_sampled_values_hold_the_exact_ones_within_their_intervals():
    def worth(team):
        return float(len(team & {0, 1, 2}) >= 2)

    exact = shapley(range(8), worth)
    for player, one in shapley_intervals(range(8), worth, samples=2000).items():
        if one.low is None or one.high is None:
            assert one.value == exact[player] == 0
        else:
            assert one.low - 0.01 <= exact[player] <= one.high + 0.01


def test_the_same_seed_gives_the_same_sample():
    worth = len
    first, second = (shapley_intervals(range(15), worth, samples=3) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("players", "worth", "message"),
    [
        (range(13), len, "use shapley_intervals"),
        (["a", "a"], len, "'a' stands twice"),
        (["a"], lambda team: float("nan"), "a finite number is needed"),
    ],
)
def test_games_that_cannot_be_valued_are_refused(players, worth, message):
    with pytest.raises(UsageError, match=message):
        shapley(list(players), worth)


def test_one_sample_shows_no_variation():
    with pytest.raises(UsageError, match="2 at least"):
        shapley_intervals(["a"], len, samples=1)


# --- path loads ------------------------------------------------------------------------------------


def listed(n, edges, correct, threshold, kind):
    """Paths of a small graph, each with whether it is unnecessary."""
    after = [[b for a, b in edges if a == node] for node in range(n)]
    paths = [[node] for node in range(n)]
    for path in paths:
        paths.extend([*path, node] for node in after[path[-1]])
    if kind != "subpath1":
        paths = [path for path in paths if len(path) > 1]
    if kind == "maximal":
        targets = {b for _, b in edges}
        paths = [path for path in paths if path[0] not in targets and not after[path[-1]]]
    return [(path, sum(correct[node] for node in path) / len(path) < threshold) for path in paths]


@pytest.mark.parametrize("kind", KINDS)
def test_the_load_of_a_node_is_the_paths_through_it(kind):
    rng = random.Random(1)
    for _ in range(60):
        n = rng.randint(1, 7)
        edges = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.5]
        correct = [rng.random() < 0.5 for _ in range(n)]
        threshold = rng.choice([0, 0.25, 0.5, 0.75, 1])
        paths = listed(n, edges, correct, threshold, kind)
        expected = [
            (sum(node in path for path, _ in paths), sum(node in path for path, waste in paths if waste))
            for node in range(n)
        ]
        assert node_load(PathQuestion.read((n, edges), correct, threshold, kind)) == expected


def test_loads_of_edges_sum_to_the_transfers_on_all_paths():
    edges = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)]
    question = PathQuestion.read((5, edges), [True, False, True, False, False], 0.5, "subpath")
    total = sum(row[0] for row in path_load((5, edges), question.correct).tolist())
    assert total == sum(length * paths for length, paths in enumerate(counts_by_length(question)))


# --- one run ---------------------------------------------------------------------------------------


def embed(texts):
    return HashingEncoder().encode(texts)[0]


def spent(tokens_in: int, tokens_out: int, cost_usd: float | None = None) -> Usage:
    return Usage(tokens_in=tokens_in, tokens_out=tokens_out, cost_usd=cost_usd, model="gpt-4o-mini")


RUN = [
    turn("a", "A", "x" * 40 + " The answer is 7.", usage=spent(100, 20)),
    turn("b", "B", "No. The answer is 8.", "a", usage=spent(110, 10)),
    turn("c", "C", "I agree with A. The answer is 7.", "a", "b", usage=spent(130, 10)),
    turn("end", "J", "The answer is 7.", "a", "b", "c", kind="decision", usage=spent(90, 5)),
]


def test_shares_of_agents_steps_and_edges_add_up_to_the_run():
    found = attribute(context_of(RUN, gold="7"))
    agents = {share.agent: share for share in found.agents}
    assert [agents[name].tokens for name in "ABC"] == [120, 120, 140]
    assert {share.step: share.tokens for share in found.steps} == {"a": 120, "b": 120, "c": 140}
    assert (agents["A"].paths, found.paths) == (3, 4)  # ab, ac, abc; bc avoids A
    assert sum(share.paths or 0 for share in found.edges) == 5  # ab, ac, bc, and abc twice
    score = unnecessary_path_ratio((3, [(0, 1), (0, 2), (1, 2)]), [True, False, True])
    assert (found.paths, found.unnecessary) == (score.parts["paths"], 4 - score.parts["necessary"])
    assert found.judged_by == "correct steps"


def test_the_value_of_agents_is_that_of_their_vote_and_sums_to_the_vote_of_all():
    found = attribute(context_of(RUN, gold="7"))
    values = {share.agent: share.shapley for share in found.agents}
    assert values["A"] == values["C"] == pytest.approx(7 / 12)
    assert values["B"] == pytest.approx(-1 / 6)
    assert sum(value or 0 for value in values.values()) == pytest.approx(1)
    assert found.value_function == "vote equals gold"
    assert attribute(context_of(RUN)).value_function == "vote equals the run's answer"


def test_diversity_without_a_part_is_that_of_the_run_that_never_had_it():
    def ids(*names, cut=()):
        kept = [s for s in RUN if s.id in names]
        steps = [
            replace(s, heard=tuple(t for t in s.heard if t.source in names and (t.source, s.id) != cut))
            for s in kept
        ]
        return judged("ids", steps, embed=embed).value

    found = attribute(context_of(RUN, gold="7", embed=embed))
    agents = {share.agent: share.ids_without for share in found.agents}
    assert found.ids == ids("a", "b", "c")
    assert agents == {"A": ids("b", "c"), "B": ids("a", "c"), "C": ids("a", "b")}
    assert {share.step: share.ids_without for share in found.steps} == {
        "a": agents["A"], "b": agents["B"], "c": agents["C"],
    }  # fmt: skip
    edges = {(share.source, share.reader): share.ids_without for share in found.edges}
    assert edges["A", "C"] == pytest.approx(ids("a", "b", "c", cut=("a", "c")))


def test_without_a_gold_answer_paths_are_judged_by_use_and_without_answers_no_one_has_a_value():
    silent = [turn("a", "A", "seven tall ships"), turn("b", "B", "seven tall ships sail", "a")]
    found = attribute(context_of(silent))
    assert found.judged_by == "useful steps"
    assert found.agents[0].shapley is None
    assert "no step commits to an answer" in found.reasons["shapley"]
    assert found.reasons["ids"] == "no embedder was given"


def test_a_delivery_is_a_fourth_of_the_characters_at_most_the_completion_and_never_more_than_the_prompt():
    steps = [
        turn("a", "A", "x" * 400, usage=spent(10, 1000)),
        turn("b", "B", "y" * 400, usage=spent(10, 30)),
        turn("c", "C", "z", "a", "b", usage=spent(65, 1)),
    ]
    found = costs(context_of(steps))
    assert found.said.tolist() == [100, 30, 1]
    assert found.delivered.tolist() == [50, 15]  # 130 were sent to a prompt of 65
    assert found.tokens == 1116


def test_a_delivery_costs_the_readers_price_in_proportion_to_what_the_step_is_recorded_to_have_cost():
    def dollars(cost):
        steps = [turn("a", "A", "x" * 400), turn("b", "B", "y", "a", usage=spent(1000, 0, cost))]
        return costs(context_of(steps)).delivered_usd.tolist()[0]

    assert dollars(None) == pytest.approx(100 * 0.15e-6)
    assert dollars(0.15e-3 / 2) == pytest.approx(50 * 0.15e-6)


def test_thoughts_that_are_no_turn_cost_their_agent_and_unknown_prices_stay_unknown():
    steps = [
        turn("t", "A", "Next: B", kind="control", usage=Usage(tokens_in=50, tokens_out=5)),
        turn("a", "A", "go", usage=Usage(tokens_in=10, tokens_out=5)),
        turn("b", "B", "gone", "a", usage=Usage(tokens_in=10, tokens_out=5)),
    ]
    found = attribute(context_of(steps))
    assert [(share.agent, share.tokens, share.cost_usd) for share in found.agents] == [
        ("A", 70, None), ("B", 15, None),
    ]  # fmt: skip
    assert costs(context_of(steps)).usd is None
