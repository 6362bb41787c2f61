import pytest

from counterpoint.errors import UsageError
from counterpoint.frames import to_pandas
from counterpoint.trace import Step, Trace, Transfer, Usage

pytest.importorskip("pandas")

TRACE = Trace(
    "t",
    (
        Step("u", "user", "2+2?", kind="task"),
        Step("a", "A", "4", role="solver", usage=Usage(10, 5, model="gpt-4o-mini")),
        Step("b", "B", "ok", heard=(Transfer("a"),), usage=Usage(20, 1, model="unknown-9b")),
        Step("a2", "A", "4!", heard=(Transfer("b"),)),
    ),
    gold="4",
    system="s",
    labels={"task_id": "q", "seed": 3},
)


def test_a_row_a_run():
    (row,) = to_pandas([TRACE]).to_dict("records")
    assert (row["trace"], row["task"], row["seed"], row["gold"]) == ("t", "q", "3", "4")
    assert (row["steps"], row["agents"], row["rounds"], row["tokens_in"]) == (3, 2, 2, 30)
    assert row["cost_usd"] is None


def test_a_row_an_agent():
    a, b = to_pandas([TRACE], level="agents").to_dict("records")
    assert (a["agent"], a["role"], a["steps"], a["heard"], a["heard_by"], a["idle"]) == (
        "A",
        "solver",
        2,
        1,
        1,
        False,
    )
    assert (b["agent"], b["tokens_out"]) == ("B", 1)


def test_a_row_an_edge():
    rows = to_pandas([TRACE], level="edges").to_dict("records")
    assert [(row["source_agent"], row["target_agent"], row["within"], row["across"]) for row in rows] == [
        ("A", "B", 1, 0),
        ("B", "A", 0, 1),
    ]


def test_a_row_a_step():
    frame = to_pandas([TRACE], level="steps")
    assert frame["kind"].tolist() == ["task", "agent", "agent", "agent"]
    assert frame["heard"].tolist() == [[], [], ["a"], ["b"]]


def test_a_row_an_event_in_the_life_of_a_claim():
    steps = (
        Step("a", "A", "The bridge opened in 1932 after nine years of work.", round=0),
        Step(
            "b", "B", "The bridge opened in 1932 after nine years of work.", round=1, heard=(Transfer("a"),)
        ),
    )
    frame = to_pandas([Trace("t", steps, task="When did it open?")], level="claims", embedder="hashing")
    assert {"trace", "life", "event", "text"} <= set(frame.columns)
    assert "born" in set(frame["event"])


def test_an_unknown_level_is_bad_usage():
    with pytest.raises(
        UsageError, match=r"level 'step' is none of runs, agents, edges, steps, claims \(did you mean 'steps'"
    ):
        to_pandas([TRACE], level="step")
