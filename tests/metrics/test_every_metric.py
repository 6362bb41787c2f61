"""What every metric must hold, tested once for all of them: see docs/adding.md."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_worlds import context_of

from counterpoint.metrics import metric
from counterpoint.models.hashing import HashingEncoder
from counterpoint.registry import names
from counterpoint.score import Score
from counterpoint.trace import Call, Step, Trace, Transfer, Usage

NAMES = names("metric")
TEXTS = [
    "The answer is 7.",
    "The answer is 8.",
    "Let me look that up first.",
    "",
    "Over to you, then. Please go on.",
]


def embed(texts: list[str]):
    return HashingEncoder().encode(texts)[0]


def score_of(name: str, trace: Trace) -> Score:
    chosen = metric(name)
    fields = {key: getattr(trace, key) for key in ("gold", "correct", "labels", "task")}
    score: Score = chosen.compute(context_of(trace.steps, embed=embed, **fields), **chosen.values("strict"))
    return score


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    steps: list[Step] = []
    for number in range(draw(st.integers(1, 9))):
        heard = draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else set()
        agent = draw(st.sampled_from(["ann", "bob", "cat"]))
        steps.append(
            Step(
                f"s{number}",
                agent,
                draw(st.sampled_from(TEXTS)),
                draw(st.sampled_from(["agent"] * 8 + ["task", "decision", "control", "tool"])),  # type: ignore[arg-type]
                role={"ann": "planner", "bob": "solver", "cat": "critic"}[agent],
                heard=tuple(
                    Transfer(f"s{at}", evidence=draw(st.sampled_from(["explicit", "call"]))) for at in heard
                ),
                calls=(Call("c", "search", '{"q": 1}', '["a page", "a note"]'),) * draw(st.integers(0, 1)),
                usage=draw(st.sampled_from([None, Usage(tokens_in=40, tokens_out=10, cost_usd=0.01)])),
                started_at=float(number),
            )
        )
    labels = {"planted": ["look that up"], "turns_single": 2, "error_single": 0.5}
    return Trace("t", tuple(steps), gold="7", labels=labels, task="How many?")


def renamed(trace: Trace) -> Trace:
    new = {"ann": "x1", "bob": "y2", "cat": "z3"}
    steps = tuple(
        Step(s.id, new[s.agent], s.text, s.kind, s.role, heard=s.heard, calls=s.calls, usage=s.usage,
             started_at=s.started_at)
        for s in trace.steps
    )  # fmt: skip
    return Trace("t", steps, gold=trace.gold, labels=trace.labels, task=trace.task)


@pytest.mark.parametrize("name", NAMES)
def test_a_metric_is_undefined_with_a_reason_on_an_empty_trace(name: str):
    score = score_of(name, Trace("t", ()))
    assert score.value is None
    assert score.reason


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15)
@given(trace=traces())
def test_a_metric_stays_in_its_range_and_does_not_look_at_names(name: str, trace: Trace):
    score = score_of(name, trace)
    low, high = metric(name).range
    if score.value is None:
        assert score.reason
    else:
        assert low is None or score.value >= low
        assert high is None or score.value <= high
    assert all(isinstance(part, int | float) and math.isfinite(part) for part in score.parts.values())
    assert all(isinstance(text, str) for text in score.detail.values())
    other = score_of(name, renamed(trace))
    assert (other.value, dict(other.parts)) == (score.value, dict(score.parts))
