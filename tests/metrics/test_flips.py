"""The flip ledger: answers changed after reading peers, for better and for worse."""

from __future__ import annotations

import pytest
from small_worlds import chain, context_of, judged, turn

from counterpoint.metrics.flips import Flip, flip_ledger, flips

MENDED, KEPT_WRONG, KEPT = Flip(False, True), Flip(False, False), Flip(True, True)
SPOILT, FOLLOWED = Flip(True, False, to_majority=False), Flip(True, False, to_majority=True)


@pytest.mark.parametrize(
    ("records", "gain", "mended", "spoilt", "sycophancy"),
    [
        ([MENDED, KEPT_WRONG, KEPT], 1 / 3, 1 / 2, 0, 0),
        ([SPOILT, FOLLOWED, KEPT, KEPT], -1 / 2, None, 1 / 2, 1 / 4),
        ([MENDED, SPOILT], 0, 1, 1, 0),
        ([KEPT_WRONG], 0, 0, None, None),
    ],
)
def test_the_ledger_tells_mended_from_spoilt_answers(records, gain, mended, spoilt, sycophancy):
    score = flip_ledger(records)
    assert score.value == pytest.approx(gain)
    found = [score.parts.get(name) for name in ("wrong_to_right", "right_to_wrong", "sycophancy")]
    assert found == [mended, spoilt, sycophancy]


def test_an_empty_ledger_is_undefined():
    assert flip_ledger([]).value is None


def says(answer: int | None) -> str:
    return "Let me think." if answer is None else f"The answer is {answer}."


def test_a_flip_is_between_two_answers_of_an_agent_with_a_peer_read_since():
    steps = chain(("ann", says(8)), ("bob", says(7)), ("ann", says(None)), ("bob", says(8)), ("ann", says(7)))
    ann, bob = sorted(flips(context_of(steps, gold="7")), key=lambda flip: flip.agent)
    assert (ann.before, ann.after, ann.steps) == (False, True, ("ann0", "ann4"))
    assert (bob.before, bob.after, bob.steps) == (True, False, ("bob1", "bob3"))
    score = judged("flip_gain", steps, gold="7")
    assert (score.value, score.parts["gained"], score.parts["lost"]) == (0, 1, 1)


def test_answers_without_a_peer_read_between_are_no_records():
    alone = [turn("1", "ann", says(8)), turn("2", "ann", says(7)), turn("3", "bob", says(7), "2")]
    assert flips(context_of(alone, gold="7")) == []
    assert judged("flip_gain", alone, gold="7").value is None


@pytest.mark.parametrize(
    ("peers", "joined"),
    [((8, 8, 7), True), ((8, 9, 9), False), ((8, 9), None), ((None, None), None), ((8,), True)],
)
def test_the_majority_is_the_answer_of_most_peers_that_were_read(peers, joined):
    steps = [turn("before", "ann", says(7))]
    steps += [turn(f"p{number}", f"peer {number}", says(answer)) for number, answer in enumerate(peers)]
    steps.append(turn("after", "ann", says(8), *[step.id for step in steps[1:]]))
    (flip,) = flips(context_of(steps, gold="7"))
    assert flip.to_majority is joined
    assert judged("flip_gain", steps, gold="7").parts["sycophancy"] == (1 if joined else 0)


def test_a_peer_that_was_read_twice_has_one_voice_its_latest():
    steps = [
        turn("a", "ann", says(7)),
        turn("b", "bob", says(8)),
        turn("c", "cat", says(9)),
        turn("b2", "bob", says(9)),
        turn("a2", "ann", says(9), "b", "c", "b2"),
    ]
    (flip,) = flips(context_of(steps, gold="7"))
    assert flip.to_majority


def test_without_gold_or_transfers_the_reason_says_so():
    steps = chain(("ann", says(7)), ("bob", says(8)))
    assert "gold" in judged("flip_gain", steps).reason
    assert (
        "heard"
        in judged("flip_gain", [turn("1", "ann", says(7)), turn("2", "bob", says(7))], gold="7").reason
    )
