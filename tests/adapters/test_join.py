"""Traces that share a label are one run: steps by time, ids apart, rounds anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def test_a_text_of_one_part_in_a_prompt_of_another_is_heard(tmp_path: Path) -> None:
    draft = "The old bridge should be closed for repairs in May."
    label = {"run": "r"}
    wrote = Trace("w", (Step("1", "writer", draft, started_at=1.0),), labels=label)
    read_it = Step("1", "critic", "Why May?", prompt=f"You are a critic.\n\n{draft}", started_at=2.0)
    again = Step("2", "critic", "Fine.", prompt=f"{draft}\n\nWhy May?\n\nNo snow.", started_at=3.0)
    write([Trace("c", (read_it, again), labels=label), wrote], tmp_path / "x.jsonl")
    (joined,) = read(tmp_path, group_by="run")
    assert [(s.id, [(t.source, t.evidence) for t in s.heard]) for s in joined.steps] == [
        ("1:1", []),
        ("2:1", [("1:1", "context")]),
        ("2:2", []),
    ]


def test_task_and_answer_are_by_time_and_counts_are_summed(tmp_path: Path) -> None:
    def part(id: str, at: float, **counts: Any) -> Trace:
        labels = {"run": "r", "host": id, **counts}
        return Trace(id, (step("1", id, at),), task=f"task of {id}", answer=f"answer of {id}", labels=labels)

    later = part("late", 9, spans=2, orphans=1, run_usage={"tokens_in": 3})
    early = part("early", 1, spans=5, identity_rules={"name": 2}, run_usage={"tokens_in": 4, "tokens_out": 1})
    write([later, early], tmp_path / "x.jsonl")
    (joined,) = read(tmp_path, group_by="run")
    assert (joined.task, joined.answer) == ("task of early", "answer of late")
    assert joined.labels == {
        "run": "r",
        "host": "early",
        "spans": 7,
        "orphans": 1,
        "identity_rules": {"name": 2},
        "run_usage": {"tokens_in": 7, "tokens_out": 1},
    }


def test_a_label_that_no_trace_has_is_noted(tmp_path: Path) -> None:
    write([Trace("a", (step("1", "a", 1),))], tmp_path / "x.jsonl")
    reading = read(tmp_path, group_by="sesion.id")
    list(reading)
    assert reading.notes == ["--group-by sesion.id: no trace has this label, so that nothing was joined"]


def test_an_agent_that_was_to_be_left_out_and_is_not_there_is_noted(tmp_path: Path) -> None:
    write([Trace("a", (step("1", "critic", 1), step("2", "user", 2)))], tmp_path / "x.jsonl")
    reading = read(tmp_path, exclude_agents=["usr"], rename_agents={"critic": "judge", "Critic": "judge"})
    list(reading)
    assert reading.notes == [
        "--exclude-agent usr: no such agent; there are: critic, user",
        "--rename-agent Critic: no such agent; there are: critic, user",
    ]
