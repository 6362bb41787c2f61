"""IDS and UPR of traces: which nodes and edges either profile takes, and what undefined says to do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from counterpoint.contracts import Context, Metric
from counterpoint.graph import graph
from counterpoint.metrics import gemmas, metric
from counterpoint.metrics.gemmas import IDS, UPR, UPR_RESIDUAL
from counterpoint.score import Score
from counterpoint.trace import Step, Trace, Transfer


def embed(texts: list[str]) -> NDArray[np.floating]:
    return np.array([[len(text), 1 + text.count("a")] for text in texts], dtype=float)


def said(name: str, agent: str, text: str, *heard: str, evidence: Any = "explicit", **fields: Any) -> Step:
    transfers = tuple(Transfer(source, evidence=evidence) for source in heard)
    return Step(name, agent, text, heard=transfers, **fields)


def judged(
    chosen: Metric, *steps: Step, gold: str | None = "7", profile: str = "strict", **settings: Any
) -> Score:
    found = graph(
        Trace("t", steps, task="How many?", gold=gold), evidence=settings.pop("evidence", "broadcast")
    )
    settings.setdefault("embed", embed)
    context = Context(found.trace, found, profile=profile, **settings)
    return chosen.compute(context, **chosen.values(profile))


SEVEN, EIGHT = "The answer is 7.", "The answer is 8."

TEAM = (
    said("a0", "ann", f"adding up gives {EIGHT}"),
    said("b0", "bob", f"counting gives {SEVEN}", "a0"),
    said("a1", "ann", f"adding again gives {SEVEN}", "b0", round=1),
    said("b1", "bob", f"right, {SEVEN}", "a0", "a1", round=1),
    said("final", "judge", SEVEN, "a1", "b1", kind="decision", round=1),
)
"""Two agents, two rounds, everyone right but ann's first step. Edges a0-b0, b0-a1, a0-b1, a1-b1."""


# --- strict and paper ----------------------------------------------------------------------------


def test_strict_upr_takes_steps_and_all_transfers():
    """Seven paths: a0 b0, b0 a1, a0 b1, a1 b1, a0 b0 a1, b0 a1 b1, a0 b0 a1 b1; none has most steps wrong."""
    score = judged(UPR, *TEAM)
    assert score.value == 0
    assert score.parts == {"paths": 7, "necessary": 7, "abstained": 0}
    assert judged(UPR.bind(threshold=1), *TEAM).value == 4 / 7


def test_paper_upr_takes_agents_and_transfers_within_the_last_round():
    score = judged(UPR, *TEAM, profile="paper")
    assert (score.value, score.parts["paths"]) == (0, 1)


def test_strict_ids_takes_steps_and_words():
    n, texts = 4, [step.text for step in TEAM[:4]]
    spatial, temporal = (n, [(0, 1), (2, 3)]), (n, [(1, 2), (0, 3)])
    assert judged(IDS, *TEAM) == gemmas.information_diversity(texts, spatial, temporal, embed=embed)


def test_paper_ids_takes_last_outputs_and_sklearn_tokens():
    texts = [TEAM[2].text, TEAM[3].text]
    expected = gemmas.information_diversity(
        texts, (2, [(0, 1)]), (2, [(0, 1), (1, 0)]), embed=embed, tokenizer="sklearn"
    )
    score = judged(IDS, *TEAM, profile="paper")
    assert score == expected
    assert score.parts["weight"] == 2
    assert judged(IDS.bind(tokenizer="words"), *TEAM, profile="paper") != expected


def test_the_residual_of_a_trace_has_ratio_and_mean_in_its_parts():
    score = judged(UPR_RESIDUAL.bind(threshold=1), *TEAM)
    assert score.parts["upr"] == 4 / 7
    assert score.value == pytest.approx(4 / 7 - score.parts["expected"])
    assert score.parts["abstained"] == 0


def test_parameters_go_through_as_text():
    assert judged(metric("upr(threshold=1/1, paths=maximal)"), *TEAM).parts["paths"] == 2
    assert judged(metric("upr(mode=float)"), *TEAM).detail == {"mode": "float"}
    assert judged(metric("ids(lam=1)"), *TEAM).value == judged(IDS, *TEAM).parts["syntactic"]


@given(st.permutations(["ann", "bob", "judge"]), st.sampled_from(["strict", "paper"]))
def test_renaming_agents_changes_nothing(names: list[str], profile: str):
    new = dict(zip(["ann", "bob", "judge"], names, strict=True))
    renamed = [Step(s.id, new[s.agent], s.text, kind=s.kind, round=s.round, heard=s.heard) for s in TEAM]
    for chosen in (IDS, UPR, UPR_RESIDUAL):
        assert judged(chosen, *renamed, profile=profile) == judged(chosen, *TEAM, profile=profile)


@pytest.mark.parametrize("profile", ["strict", "paper"])
@pytest.mark.parametrize("chosen", [IDS, UPR, UPR_RESIDUAL])
def test_values_are_in_their_range_and_parts_are_finite_numbers(chosen: Metric, profile: str):
    score = judged(chosen, *TEAM, profile=profile)
    low, high = chosen.range
    assert low is not None
    assert high is not None
    assert score.value is not None
    assert low <= score.value <= high
    assert all(math.isfinite(part) for part in score.parts.values())


def test_texts_that_the_embedder_cut_are_counted():
    class Cutting:
        def __call__(self, texts: list[str], /) -> NDArray[np.floating]:
            return embed(texts)

        def truncated(self, texts: list[str]) -> int:
            return sum(len(text) > 20 for text in texts)

    steps = said("a", "ann", "a short text"), said("b", "bob", "a much longer text than that", "a")
    assert judged(IDS, *steps, embed=Cutting()).parts["truncated"] == 1
    assert "truncated" not in judged(IDS, *steps).parts


# --- correctness ---------------------------------------------------------------------------------


def test_a_step_without_an_answer_is_not_correct_and_counted():
    steps = said("a", "ann", "let me think"), said("b", "bob", EIGHT, "a"), said("c", "cy", SEVEN, "b")
    score = judged(UPR, *steps)
    assert (score.value, score.parts["abstained"]) == (2 / 3, 1)


def test_answers_that_differ_in_form_only_are_equal():
    """Seen in the wild: "145" and "145.0" compared as texts make every path unnecessary."""
    steps = said("a", "ann", "The answer is 145.0."), said("b", "bob", "The answer is $145.", "a")
    assert judged(UPR, *steps, gold="145").value == 0


def test_a_number_in_an_error_message_is_no_answer():
    """Seen in the wild: 'line 7' of an interpreter's message taken for the answer 7."""
    steps = (
        said("a", "ann", 'File "x.py", line 7, in <module>: ZeroDivisionError'),
        said("b", "bob", EIGHT, "a"),
    )
    score = judged(UPR, *steps)
    assert (score.value, score.parts["abstained"]) == (1, 1)


# --- undefined -----------------------------------------------------------------------------------

PAIR = said("a", "ann", SEVEN), said("b", "bob", EIGHT, "a")


@pytest.mark.parametrize("chosen", [UPR, UPR_RESIDUAL])
@pytest.mark.parametrize(
    ("steps", "gold", "reason"),
    [
        (PAIR, None, "no gold answer"),
        ((said("a", "ann", "hm"), said("b", "bob", "well", "a")), "7", "no step commits to an answer"),
        ((said("a", "ann", SEVEN), said("b", "bob", SEVEN)), "7", "record `heard`"),
        ((said("a", "ann", SEVEN),), "7", "fewer than two agents"),
        ((), "7", "no agent step"),
    ],
)
def test_undefined_upr_says_what_to_record(chosen: Metric, steps: Any, gold: str | None, reason: str):
    score = judged(chosen, *steps, gold=gold)
    assert score.value is None
    assert reason in score.reason


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ((said("a", "ann", SEVEN), said("b", "bob", SEVEN)), "record `heard`"),
        ((said("a", "ann", SEVEN),), "fewer than two agents"),
        ((), "fewer than two agents"),
        ((PAIR[0], said("quiet", "bob", " ", "a")), "no text from quiet (bob), and every transfer"),
    ],
)
def test_undefined_ids_says_what_to_record(steps: Any, reason: str):
    score = judged(IDS, *steps)
    assert score.value is None
    assert reason in score.reason


@pytest.mark.parametrize("chosen", [IDS, UPR, UPR_RESIDUAL])
def test_transfers_below_the_evidence_asked_for_are_named(chosen: Metric):
    steps = PAIR[0], said("b", "bob", EIGHT, "a", evidence="nesting")
    score = judged(chosen, *steps)
    assert "at broadcast evidence or stronger; the trace has nesting: try --evidence nesting" in score.reason
    assert judged(chosen, *steps, evidence="nesting").value is not None


def test_without_an_embedder_ids_says_why_and_keeps_its_syntactic_half():
    score = judged(IDS, *PAIR, embed=None, embed_missing="the weights are missing: pip install them")
    assert (score.value, score.reason) == (None, "the weights are missing: pip install them")
    assert score.parts["syntactic"] > 0


def test_more_than_five_silent_steps_are_counted():
    steps = [said(f"s{n}", f"cy{n or ''}", "", *(["s0"] if n else [])) for n in range(7)]
    assert (
        "no text from s0 (cy), s1 (cy1), s2 (cy2), s3 (cy3), s4 (cy4) and 2 more, and"
        in judged(IDS, *steps).reason
    )


def test_paper_upr_names_a_cycle_of_agents():
    steps = (
        said("a", "ann", SEVEN, round=0), said("b", "bob", SEVEN, "a", round=0),
        said("a2", "ann", SEVEN, "b", round=0),
    )  # fmt: skip
    score = judged(UPR, *steps, profile="paper")
    assert "cycle within the last round (ann -> bob -> ann): try --profile strict" in score.reason
    assert judged(UPR, *steps).value == 0


def test_paper_upr_needs_transfers_within_the_last_round():
    steps = (
        said("a", "ann", SEVEN, round=0),
        said("b", "bob", SEVEN, "a", round=1),
        said("a2", "ann", "7", round=1),
    )
    score = judged(UPR, *steps, profile="paper")
    assert score.value is None
    assert "no agent's last step hears another of the same round" in score.reason
    assert judged(IDS, *steps, profile="paper").value is not None


@pytest.mark.parametrize("chosen", [IDS, UPR])
def test_the_paper_profile_looks_at_the_last_round_only(chosen: Metric):
    steps = *PAIR, said("z", "cy", SEVEN, round=1), said("z2", "dee", SEVEN, round=1)
    score = judged(chosen, *steps, profile="paper")
    assert score.value is None
    assert "in the last round (cy, dee) nobody hears anybody" in score.reason
    assert judged(chosen, *steps).value is not None


def test_paper_upr_is_undefined_where_no_last_step_commits():
    steps = (
        said("a", "ann", SEVEN), said("b", "bob", SEVEN, "a"),
        said("a2", "ann", "agreed", "b", round=1), said("b2", "bob", "good", "a2", round=1),
    )  # fmt: skip
    score = judged(UPR, *steps, profile="paper")
    assert "no agent commits to an answer in its last step" in score.reason
    assert judged(UPR, *steps).parts["abstained"] == 2


@pytest.mark.parametrize("texts", [("7", "7"), ("", ""), ("!!!", "???"), ("a", "I"), ("ok \ud83d", "ok")])
@pytest.mark.parametrize("chosen", [IDS, UPR, UPR_RESIDUAL])
@pytest.mark.parametrize("profile", ["strict", "paper"])
def test_agents_that_say_next_to_nothing_give_a_value_or_a_reason(
    texts: tuple[str, str], chosen: Metric, profile: str
):
    steps = said("a", "ann", texts[0]), said("b", "bob", texts[1], "a")
    score = judged(chosen, *steps, profile=profile)
    assert score.value is not None or score.reason
