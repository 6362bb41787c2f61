"""MAST's modes by rule: each is shown by a run made for it, and by no other."""

from __future__ import annotations

from typing import Any

from small_worlds import Vectors, judged, turn

from counterpoint.score import Score
from counterpoint.trace import Call, Step

EMBED = Vectors(
    {
        "plan the bridge": [1, 0, 0],
        "plan a bridge": [1, 0.1, 0],
        "the bridge as planned": [0.8, 0.6, 0],
        "checked, the bridge holds": [0.7, 0.7, 0],
        "I had fish today": [0, 0, 1],
        "done": [0.7, 0.7, 0.1],
    }
)

GOOD = (
    turn("p", "planner", "plan the bridge"),
    turn("s", "solver", "the bridge as planned", "p"),
    turn("c", "critic", "checked, the bridge holds", "s"),
    turn("d", "judge", "done", "c", kind="decision"),
)


def modes(*steps: Step, **fields: Any) -> Score:
    return judged("mast_modes", steps, embed=EMBED, **fields)


def shown(score: Score) -> set[str]:
    return {name for name, count in score.parts.items() if count and name not in ("judged", "uptake")}


def test_a_healthy_run_shows_no_mode():
    score = modes(*GOOD)
    assert score.value == 0
    assert score.parts["judged"] == 5
    assert score.parts["uptake"] == 1


def test_step_repetition_is_an_own_action_nearly_made_before():
    again = turn("p2", "planner", "plan a bridge", "c")
    score = modes(*GOOD[:3], again, turn("d", "judge", "done", "p2", "c", kind="decision"))
    assert shown(score) == {"step_repetition"}
    assert score.detail["step_repetition"] == "p2 (planner)"


def test_the_same_words_with_another_call_are_no_repetition():
    def calling(name: str, arguments: str, text: str) -> Step:
        return turn(name, "planner", text, calls=(Call("1", "draw", arguments),))

    for text in ("plan the bridge", ""):
        first, other = calling("1", "{}", text), calling("2", '{"x": 1}', text)
        assert modes(first, other, *GOOD).parts["step_repetition"] == 0
        assert modes(first, calling("2", "{ }", text), *GOOD).parts["step_repetition"] == 1


def test_going_on_after_the_decision_is_unaware_of_termination():
    score = modes(*GOOD, turn("s2", "solver", "the bridge as planned", "d"))
    assert score.parts["unaware_of_termination"] == 1
    assert "unaware_of_termination" not in modes(*GOOD[:3]).parts


def test_a_text_that_reaches_nobody_is_withheld():
    extra = turn("e", "expert", "I had fish today")
    assert shown(modes(*GOOD[:3], extra, GOOD[3])) == {"withholding"}


def test_what_is_said_again_to_somebody_was_not_withheld():
    first, again = turn("e", "expert", "plan the bridge"), turn("e2", "expert", "plan a bridge")
    heard = turn("d", "judge", "done", "c", "e2", kind="decision")
    assert modes(*GOOD[:3], first, again, heard).parts["withholding"] == 0
    assert modes(*GOOD[:3], again, first, heard).parts["withholding"] == 1


def test_last_texts_are_not_withheld_where_it_is_unknown_what_the_decision_heard():
    assert modes(*GOOD[:3]).parts["withholding"] == 0
    assert modes(*GOOD[:3], turn("d", "judge", "done", kind="decision")).parts["withholding"] == 0


def test_a_step_that_takes_up_none_of_its_inputs_ignores_them():
    deaf = turn("s", "solver", "I had fish today", "p")
    score = modes(GOOD[0], deaf, turn("c", "critic", "checked, the bridge holds", "p", "s"), GOOD[3])
    assert score.parts["ignored_input"] == 1  # the critic takes up the plan
    assert score.detail["ignored_input"] == "s (solver)"
    assert score.parts["uptake"] == 1 / 3


def test_no_verification_is_a_decision_before_anybody_checked():
    assert shown(modes(GOOD[0], GOOD[1], turn("d", "judge", "done", "s", kind="decision"))) == {
        "no_verification"
    }
    late = (
        turn("d", "judge", "done", "s", kind="decision"),
        turn("c", "critic", "checked, the bridge holds", "s"),
    )
    assert modes(GOOD[0], GOOD[1], *late).parts["no_verification"] == 1


def test_modes_that_need_transfers_are_not_judged_without_them():
    score = modes(turn("1", "ann", "plan the bridge"), turn("2", "bob", "done"))
    assert score.parts["judged"] == 2
    assert "withholding" not in score.parts


def test_without_texts_or_embedder_it_is_undefined():
    assert modes(turn("1", "ann", "")).value is None
    assert judged("mast_modes", GOOD).value is None


def test_names_do_not_matter_but_for_roles():
    renamed = [Step(s.id, f"x{s.agent}", s.text, s.kind, s.agent, heard=s.heard) for s in GOOD]
    assert modes(*renamed).parts == modes(*GOOD).parts
