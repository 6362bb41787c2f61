"""Loops: what goes round is found and named, what makes progress is not."""

from __future__ import annotations

import pytest
from small_worlds import chain, context_of, judged, turn

from counterpoint.errors import UsageError
from counterpoint.metrics.loops import find_loops
from counterpoint.trace import Call, Step

PING_PONG = [("ann", "Over to you, Bob."), ("bob", "No, over to you, Ann.")]


def rounds(count: int, *turns: tuple[str, str]) -> list[Step]:
    """The turns ``count`` times; ``{n}`` in a text is the round."""
    return chain(*[(agent, text.replace("{n}", str(n))) for n in range(count) for agent, text in turns])


def silent(steps: list[Step]) -> list[Step]:
    """The same steps, without anybody hearing anybody."""
    return [Step(step.id, step.agent, step.text) for step in steps]


@pytest.mark.parametrize("heard", [True, False])
def test_ping_pong_of_two_agents_eight_times_is_found_and_named(heard):
    steps = rounds(8, *PING_PONG)
    score = judged("loops", steps if heard else silent(steps))
    assert score.value == 1
    assert score.parts == {"steps": 16, "wasted": 14, "most_times": 8, "exact": 1, "near": 0}
    assert score.detail["loop_1"].startswith("ann -> bob, 8 times exactly: ann0, bob1, ann2")
    assert all(step.id in score.detail["loop_1"] for step in steps)


DRAFTS = [
    "An outline in five points.",
    "Two pages, with figures still to come.",
    "The whole text, with figures.",
]
REVIEWS = ["Say who this is for.", "The second figure contradicts the text.", "Good: send it."]


@pytest.mark.parametrize(
    "steps",
    [
        chain(*[turn for pair in zip(DRAFTS, REVIEWS, strict=True) for turn in zip("wr", pair, strict=True)]),
        chain(*[turn for draft in DRAFTS for turn in (("w", draft), ("r", "Please go on."))]),
        rounds(3, ("w", "Draft {n} is ready for review."), ("r", "Review {n}: better, go on.")),
    ],
    ids=["drafts and reviews", "the same review of other drafts", "in the same form"],
)
def test_three_healthy_rounds_of_review_are_no_loop(steps):
    assert judged("loops", steps).value == 0
    assert judged("loops", silent(steps)).value == 0


@pytest.mark.parametrize("agents", ["abc", "abcde", "aab"])
def test_longer_cycles_are_found(agents):
    turns = [(agent, f"I am {agent} at place {'uvwxy'[at]}.") for at, agent in enumerate(agents)]
    (loop,) = find_loops(context_of(rounds(3, *turns)).graph)
    assert (loop.agents, loop.times, loop.exact) == (tuple(agents), 3, True)
    assert loop.steps == tuple(range(3 * len(agents)))


def test_one_agent_that_repeats_itself_is_a_loop_of_one():
    (loop,) = find_loops(context_of(rounds(3, ("ann", "Trying again."))).graph)
    assert (loop.agents, loop.times) == (("ann",), 3)


def test_twice_is_no_loop():
    assert judged("loops", rounds(2, *PING_PONG)).value == 0
    assert judged("loops(repeats=2)", rounds(2, *PING_PONG)).value == 1


def test_case_and_spaces_do_not_make_a_turn_another_one():
    steps = chain(("a", "Go on."), ("a", "go  on."), ("a", " GO ON."))
    assert judged("loops", steps).parts["exact"] == 1


def test_counting_does_not_make_a_turn_another_one_from_four_times_on():
    steps = rounds(5, ("ann", "Attempt {n}: over to Bob."), ("bob", "Attempt {n}: back to Ann."))
    score = judged("loops", steps)
    assert (score.value, score.parts["near"], score.parts["most_times"]) == (1, 1, 5)
    assert "5 times nearly" in score.detail["loop_1"]
    assert judged("loops(near_repeats=0)", steps).value == 0
    assert judged("loops(near_repeats=6)", steps).value == 0


def test_one_word_in_twenty_does_not_make_a_turn_another_one_and_one_in_ten_does():
    words = [f"{first}{second}" for first in "abcd" for second in "vwxyz"]
    for size, near in ((20, 1), (10, 0)):
        texts = [" ".join([*words[: size - 1], end]) for end in ("now", "then", "soon", "today")]
        assert judged("loops", chain(*[("ann", text) for text in texts])).parts["near"] == near


def test_numbers_that_are_results_are_progress():
    guesses = [50, 25, 37, 43, 40]
    steps = chain(
        *[turn for guess in guesses for turn in (("g", f"My guess is {guess}."), ("h", "No, try again."))]
    )
    assert judged("loops", steps).value == 0


@pytest.mark.parametrize(
    "review", ["Good: add the next point, please.", "Point {n} is still missing in there."]
)
def test_rounds_of_review_of_a_draft_that_slowly_grows_are_no_loop(review):
    body = " ".join(f"point{first}{second}" for first in "abcdefgh" for second in "klmnopqrst")
    added = ["soil", "river", "bridge", "cost", "winter", "trucks"]
    drafts = [f"{body} {' '.join(added[:n])}" for n in range(1, 7)]
    edited = [draft.replace("pointak", "pointzz") if n > 2 else draft for n, draft in enumerate(drafts)]
    for texts in (drafts, edited):
        turns = [turn for n, text in enumerate(texts) for turn in (("w", text), ("r", review.format(n=n)))]
        assert judged("loops", chain(*turns)).value == 0
        assert judged("loops", chain(*[("w", text) for text in texts])).value == 0


def test_a_draft_that_grows_once_and_then_no_more_is_in_a_loop():
    words = " ".join(f"point{first}{second}" for first in "abcdefgh" for second in "klmnopqrst")
    texts = [words, *[f"{words} {last}" for last in ("soil", "river", "bridge", "cost", "winter")]]
    assert judged("loops", chain(*[("w", text) for text in texts])).parts["near"] == 1


def test_bare_handoffs_are_equal_where_others_speak():
    empty = rounds(4, ("ann", ""), ("bob", ""))
    assert judged("loops", [*empty, turn("end", "cat", "Enough.")]).parts["most_times"] == 4
    nothing = judged("loops", empty)
    assert nothing.value is None
    assert "record" in nothing.reason


def test_ping_pong_is_found_between_the_turns_of_others():
    steps, last = [], ()
    for number in range(8):
        step = turn(f"p{number}", *PING_PONG[number % 2], *last)
        steps += [
            step,
            *(turn(f"o{number}.{k}", "cat", f"{'abcdefgh'[number]}{k} is done.") for k in range(number % 3)),
        ]
        last = (step.id,)
    (loop,) = find_loops(context_of(steps).graph)
    assert (loop.agents, loop.times) == (("ann", "bob"), 4)
    assert not find_loops(context_of(silent(steps)).graph)


@pytest.mark.parametrize(
    ("arguments", "results", "found"),
    [
        (["{}"] * 4, ["pending"] * 4, 1),
        (["{}"] * 4, ["pending", "running", "stopping", "done"], 0),
        (['"pear"', '"plum"', '"fig"', '"kiwi"'], ["nothing was found for this query"] * 4, 0),
    ],
)
def test_calls_belong_to_what_a_turn_does(arguments, results, found):
    steps = [
        turn(str(at), "ann", "Let me look again.", calls=(Call("c", "look", sent, result),))
        for at, (sent, result) in enumerate(zip(arguments, results, strict=True))
    ]
    assert judged("loops", steps).value == found


def test_loops_share_no_step_and_stand_in_time_order():
    steps = chain(*[("a", "same")] * 3, ("b", "else"), *[("a", "same")] * 4)
    first, second = find_loops(context_of(steps).graph)
    assert (first.steps, second.steps) == ((0, 1, 2), (4, 5, 6, 7))
    names = judged("loops", steps).detail
    assert "4 times" in names["loop_1"]  # the longest is named first
    assert "3 times" in names["loop_2"]


def test_what_is_left_of_a_last_round_belongs_to_no_loop():
    steps = [*rounds(3, *PING_PONG), turn("ann6", "ann", "Over to you, Bob.", "bob5")]
    assert judged("loops", steps).parts["steps"] == 6


def test_many_steps_are_named_in_part():
    detail = judged("loops", rounds(60, ("ann", "Again."))).detail["loop_1"]
    assert "(20 more), ann59" in detail
    assert detail.count("ann") == 1 + 40


def test_names_and_ids_do_not_matter():
    new = [("kim", "Over to you, Bob."), ("lee", "No, over to you, Ann.")]
    assert judged("loops", rounds(5, *new)).parts == judged("loops", rounds(5, *PING_PONG)).parts


@pytest.mark.parametrize("text", ["loops(repeats=1)", "loops(near_repeats=1)"])
def test_once_is_no_repetition(text):
    with pytest.raises(UsageError, match="at least 2"):
        judged(text, rounds(3, *PING_PONG))


def test_a_cyclic_handoff_of_three_messages_is_finite_and_no_loop():
    assert judged("loops", chain(("A", "to B"), ("B", "to A"), ("A", "to B"))).value == 0
