"""What a recorded team would have answered and cost without a part of it: replays by hand, paired changes."""

from __future__ import annotations

import pytest
from small_worlds import context_of, turn

from counterpoint.errors import UsageError
from counterpoint.metrics.correctness import step_answers
from counterpoint.metrics.costs import costs
from counterpoint.metrics.counterfactual import (
    MEASURES,
    counterfactual,
    largest_removable,
    loses_nothing,
    reduced,
    removals,
    saving,
)
from counterpoint.metrics.replay import ASSUMPTION, Recording, Removal, recording, vote
from counterpoint.models.hashing import HashingEncoder
from counterpoint.trace import Usage


def without(*agents: str, edges: tuple[tuple[str, str], ...] = (), rounds: tuple[int, ...] = ()) -> Removal:
    return Removal(frozenset(agents), frozenset(edges), frozenset(rounds))


def recorded(steps, **fields) -> Recording:
    found = recording(context_of(steps, **fields))
    assert isinstance(found, Recording)
    return found


def says(name: str, agent: str, answer: int | None, *heard: str, **fields):
    text = f"{name} thinks." if answer is None else f"The answer is {answer}."
    return turn(name, agent, text, *heard, **fields)


# --- the replay ------------------------------------------------------------------------------------

RELAY = [says("a", "A", 7), says("b", "B", 7, "a"), says("c", "C", 7, "b"), says("d", "D", 8, "c")]


def replayed(steps, removal) -> list[int | None]:
    """Answers by step, as numbers; None where none is left."""
    found = recorded(steps)
    texts = dict(zip(found.answers, found.texts, strict=True))
    return [None if answer < 0 else int(texts[answer]) for answer in found.replay(removal)]


def test_an_answer_that_was_heard_is_lost_with_the_last_one_who_gives_it():
    assert replayed(RELAY, without("A")) == [None, None, None, 8]
    assert replayed(RELAY, without(edges=(("B", "C"),))) == [7, 7, None, 8]


def test_an_answer_heard_from_two_stays_while_one_of_them_gives_it():
    steps = [says("a", "A", 7), says("b", "B", 7), says("c", "C", 7, "a", "b")]
    assert replayed(steps, without("A")) == [None, 7, 7]
    assert replayed(steps, without("A", "B")) == [None, None, None]


def test_an_answer_of_ones_own_stays_whoever_goes():
    assert replayed(RELAY, without("A", "B", "C")) == [None, None, None, 8]


def test_who_loses_what_it_took_over_falls_back_on_its_own_last_answer():
    steps = [says("a", "A", 7), says("b", "B", 8), says("b2", "B", 7, "a"), says("b3", "B", 7)]
    assert replayed(steps, without("A")) == [None, 8, 8, 8]


def test_a_round_takes_its_turns_with_it_and_agents_keep_what_they_said_before():
    steps = [says("a", "A", 7, round=0), says("b", "B", 8, round=0), says("b2", "B", 7, "a", round=1)]
    assert replayed(steps, without(rounds=(1,))) == [7, 8, None]
    assert recorded(steps, gold="7").outcome(without(rounds=(1,))).vote.right == 0.5


def test_nothing_removed_changes_nothing():
    found = recorded(RELAY, gold="7")
    assert found.replay(Removal()) == found.answers
    assert found.outcome(Removal()).stays


@pytest.mark.parametrize(
    ("answers", "right", "expected"),
    [([1, 1, 2], 1, 1.0), ([1, 2], 1, 0.5), ([2, 2, 1], 1, 0.0), ([-1, -1], 1, 0.0), ([1], None, None)],
)
def test_a_vote_is_worth_the_share_of_right_answers_among_its_winners(answers, right, expected):
    assert vote(range(len(answers)), answers, right).right == expected


def test_the_runs_answer_stays_where_it_won_the_vote_and_still_does():
    steps = [says("a", "A", 7), says("b", "B", 7), says("c", "C", 8), says("end", "J", 7, kind="decision")]
    found = recorded(steps, gold="7")
    assert found.outcome(without("C")).stays
    assert found.outcome(without("A")).stays  # a tie that it is in
    outcome = found.outcome(without("A", "B"))
    assert (outcome.stays, outcome.right) == (False, 0.0)


def test_the_runs_answer_that_did_not_win_the_vote_stays_while_somebody_gives_it():
    steps = [says("a", "A", 8), says("b", "B", 8), says("c", "C", 7), says("end", "J", 7, kind="decision")]
    found = recorded(steps, gold="7")
    assert found.outcome(without("A")).stays
    assert not found.outcome(without("C")).stays


def test_an_answer_that_no_agent_gave_stays_where_the_vote_does():
    steps = [says("a", "A", 8), says("b", "B", 9), says("c", "C", 9), says("end", "J", 7, kind="decision")]
    found = recorded(steps, gold="7")
    assert found.outcome(without("A")).stays
    assert not found.outcome(without("B", "C")).stays


# --- the reduced trace ------------------------------------------------------------------------------


def test_the_reduced_trace_has_no_transfer_of_what_is_gone_and_replayed_answers():
    context = reduced(context_of(RELAY, gold="7"), without(edges=(("A", "B"),)))
    assert [len(step.heard) for step in context.trace.steps] == [0, 0, 1, 1]
    assert [answer or None for answer in step_answers(context).values()] == ["7", None, None, "8"]


def test_a_decision_is_never_removed_and_still_hears_over_a_removed_edge():
    steps = [says("a", "A", 7), says("end", "B", 7, "a", kind="decision")]
    context = reduced(context_of(steps), without("B", edges=(("A", "B"),)))
    assert [step.id for step in context.trace.steps] == ["a", "end"]
    assert len(context.trace.steps[1].heard) == 1


# --- costs ----------------------------------------------------------------------------------------


def usage(tokens_in: int, tokens_out: int) -> Usage:
    return Usage(tokens_in=tokens_in, tokens_out=tokens_out, cost_usd=(tokens_in + tokens_out) / 1000)


SPENT = [
    turn("a", "A", "x" * 40, usage=usage(100, 10)),
    turn("b", "B", "y" * 40, "a", usage=usage(100, 10)),
    turn("end", "J", "z", "a", "b", kind="decision", usage=usage(100, 1)),
]


def test_removing_an_agent_saves_its_calls_and_what_it_put_into_other_prompts():
    saved = saving(costs(context_of(SPENT)), without("A"))
    assert saved.tokens == 110 + 10 + 10
    assert saved.text == 10 + 20


def test_removing_an_edge_saves_its_deliveries_and_none_to_the_decision():
    assert saving(costs(context_of(SPENT)), without(edges=(("A", "B"),))).tokens == 10
    assert saving(costs(context_of(SPENT)), without(edges=(("A", "J"),))).tokens == 0
    assert saving(costs(context_of(SPENT)), without("A", edges=(("A", "B"),))).tokens == 130


def test_removing_a_round_saves_its_turns():
    steps = [turn("a", "A", "x" * 40, round=0, usage=usage(5, 10)), turn("b", "B", "y", "a", round=1)]
    assert saving(costs(context_of(steps)), without(rounds=(0,))).tokens == 15 + 10


# --- over a set of traces ---------------------------------------------------------------------------


def embed(texts):
    return HashingEncoder().encode(texts)[0]


def test_every_measure_is_paired_with_an_interval_and_the_assumption_is_printed():
    contexts = [
        context_of(
            [
                says("a", "A", 7, usage=usage(50 + number, 5)),
                says("b", "B", 8, "a", usage=usage(60, 5)),
                says("c", "C", 7, "a", "b", usage=usage(60, 5)),
                says("end", "J", 7, "a", "b", "c", kind="decision", usage=usage(70, 5)),
            ],
            gold="7",
            labels={"task_id": number},
            embed=embed,
        )
        for number in range(12)
    ]
    found = counterfactual(contexts, without("B"))
    assert [change.measure for change in found.changes] == list(MEASURES)
    accuracy = found["accuracy"]
    assert (accuracy.before, accuracy.after, accuracy.n) == (1.0, 1.0, 12)
    assert accuracy.ci_low == pytest.approx(-accuracy.ci_high) == pytest.approx(-0.2425, abs=1e-3)
    assert (found["upr"].before, found["upr"].after) == (0.0, 0.0)
    assert found["ids"].difference is not None
    assert found["tokens"].difference == pytest.approx(-65 - 2 * 4)
    assert ASSUMPTION in str(found)
    assert "without B" in str(found)


def test_what_is_undefined_on_a_trace_leaves_it_out_with_a_reason():
    found = counterfactual([context_of([turn("a", "A", "hm"), turn("b", "B", "so", "a")])], without("B"))
    assert found["accuracy"].before is None
    assert "no step commits to an answer" in str(found["accuracy"])
    assert "no token counts" in found["tokens"].reason


@pytest.mark.parametrize(
    ("removal", "measures", "message"),
    [
        (without("Bob"), MEASURES, "no agent 'Bob'"),
        (without(edges=(("D", "A"),)), MEASURES, "no transfer from 'D' to 'A'"),
        (without(rounds=(9,)), MEASURES, "no round 9"),
        (without("A"), ["acuracy"], "did you mean 'accuracy'"),
    ],
)
def test_what_no_trace_has_cannot_be_removed(removal, measures, message):
    with pytest.raises(UsageError, match=message):
        counterfactual([context_of(RELAY)], removal, measures)


def test_removals_are_every_agent_edge_and_round():
    names = [str(one) for one in removals([context_of(RELAY)])]
    assert names == ["A", "B", "C", "D", "A → B", "B → C", "C → D"]


# --- the largest part that can go -------------------------------------------------------------------


def test_the_greedy_search_drops_what_loses_nothing_and_keeps_what_the_answer_hangs_on():
    steps = [
        says("a", "A", 7, usage=usage(10, 10)),
        says("b", "B", 8, "a", usage=usage(500, 10)),
        says("c", "C", 7, "a", usage=usage(10, 10)),
    ]
    context = context_of(steps, gold="7")
    found = largest_removable([(recording(context), costs(context))], removals([context]))
    assert found.removal == without("B", "C")  # A's answer is its own, and right
    assert found.unit == "USD"
    assert found.share == pytest.approx((510 + 20) / 550)


def test_a_part_is_no_loss_where_the_run_gets_better_and_one_where_an_ungraded_answer_changes():
    steps = [says("a", "A", 8), says("b", "B", 8, "a"), says("c", "C", 7)]
    assert loses_nothing(recorded(steps, gold="7", correct=False), without("A"))
    assert not loses_nothing(recorded(steps, answer="8"), without("A"))


def test_where_no_answer_is_known_nothing_can_be_said_to_go():
    context = context_of([turn("a", "A", "hm"), turn("b", "B", "so", "a")])
    found = largest_removable([(recording(context), costs(context))], removals([context]))
    assert (str(found.removal), found.share, found.tested) == ("nothing", 0.0, 0)
