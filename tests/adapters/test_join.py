"""Traces that share a label are one run: steps by time, ids apart, rounds anew."""

from __future__ import annotations

from pathlib import Path

from counterpoint.adapters import read, write
from counterpoint.trace import Step, Trace, Transfer


def step(id: str, agent: str, at: float | None, *heard: str) -> Step:
    return Step(id, agent, f"{agent} speaks", heard=tuple(map(Transfer, heard)), started_at=at)


def test_parts_of_a_session_become_one_trace_in_time_order(tmp_path: Path) -> None:
    label = {"session.id": "s9", "host": "first"}
    asked = Trace("q", (step("1", "asker", 1), step("2", "asker", 5, "1")), task="Why?", labels=label)
    said = (step("1", "teller", 3), step("x", "teller", None, "1"))
    told = Trace("r", said, answer="So.", gold="so", labels={"session.id": "s9"})
    other = Trace("o", (step("1", "asker", 2),), labels={"session.id": "s8"})
    alone = Trace("n", (step("1", "asker", 2),))
    write([asked, other, alone, told], tmp_path / "x.jsonl")
    joined, *rest = read(tmp_path / "x.jsonl", group_by="session.id")
    assert [trace.id for trace in rest] == ["o", "n"]
    assert (joined.id, joined.task, joined.answer, joined.gold) == ("s9", "Why?", "So.", "so")
    assert joined.labels == label
    assert [(s.id, s.agent, s.round, [t.source for t in s.heard]) for s in joined.steps] == [
        ("1:1", "asker", 0, []),
        ("2:1", "teller", 0, []),
        ("2:x", "teller", 1, ["2:1"]),
        ("1:2", "asker", 1, ["1:1"]),
    ]


def test_parts_without_times_follow_each_other(tmp_path: Path) -> None:
    parts = [Trace(who, (step("1", who, None), step("2", who, None)), labels={"run": 1}) for who in "ab"]
    write(parts, tmp_path / "x.jsonl")
    (joined,) = read(tmp_path, group_by="run")
    assert [s.agent for s in joined.steps] == ["a", "a", "b", "b"]
