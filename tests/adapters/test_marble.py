"""MARBLE: sessions of messages say who heard whom; the mode of coordination says nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from counterpoint.adapters import read
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

MODEL, FUNCTION = "Result from the model:", "\nResult from the function:"


def run(path: Path, *iterations: dict[str, Any], **rest: Any) -> Trace:
    path.write_text(json.dumps({"coordination_mode": "graph", "iterations": list(iterations), **rest}))
    (trace,) = read(path, on_error="raise")
    return trace


def iteration(*results: tuple[str, str], talk: Any = (), **rest: Any) -> dict[str, Any]:
    return {
        "task_assignments": {agent: f"Task of {agent}." for agent in ("a", "b", "c")},
        "task_results": [{agent: result} for agent, result in results],
        "communications": talk,
        **rest,
    }


def session(name: str, *said: str) -> str:
    """``ab Hello`` is From a to b: Hello."""
    return f"In Session {name} \n" + "".join(f"From {one[0]} to {one[1]}: {one[3:]}\n" for one in said)


def function(**output: Any) -> str:
    return f"{MODEL}{FUNCTION}{json.dumps(output)}"


def told(trace: Trace) -> list[tuple[str, str, list[tuple[str, str]]]]:
    return [(s.agent, s.text, [(t.source, t.evidence) for t in s.heard]) for s in trace.steps]


def test_each_message_of_a_session_is_a_step_that_its_addressee_hears(tmp_path: Path) -> None:
    talk = session("s1", "ab Hi.", "ba So?\nFrom 2000 to 2023: more.", "ab Bye.")
    trace = run(
        tmp_path / "x",
        iteration(("a", function(success=True, full_chat_history=talk)), ("b", f"{MODEL}Done."), talk=[talk]),
    )
    assert told(trace) == [
        ("a", "Hi.", []),
        ("b", "So?\nFrom 2000 to 2023: more.", [("1.1", "explicit")]),
        ("a", "Bye.", [("1.2", "explicit")]),
        ("b", "Done.", [("1.3", "explicit")]),
    ]
    assert trace.steps[0].prompt == "Task of a."


@pytest.mark.parametrize("listed", [True, False])
def test_a_session_is_read_once_wherever_it_stands(tmp_path: Path, listed: bool) -> None:
    talk = session("s1", "ab Hi.", "ba So?")
    result = function(success=True, full_chat_history=talk) if not listed else f"{MODEL}I wrote to b."
    trace = run(tmp_path / "x", iteration(("a", result), talk=[talk] if listed else None))
    assert [text for _, text, _ in told(trace)] == ["Hi.", "So?", *(["I wrote to b."] if listed else [])]


def test_what_was_said_before_a_session_goes_with_its_first_message(tmp_path: Path) -> None:
    talk = json.dumps({"full_chat_history": session("s1", "ab Hi.")})
    trace = run(tmp_path / "x", iteration(("a", f"{MODEL}I write.{FUNCTION}{talk}")))
    assert told(trace) == [("a", "I write.\n\nHi.", [])]


def test_a_session_of_somebody_without_a_result_comes_last(tmp_path: Path) -> None:
    trace = run(tmp_path / "x", iteration(("a", f"{MODEL}x"), talk=[session("s1", "bc Hi.")]))
    assert [agent for agent, _, _ in told(trace)] == ["a", "b"]


def test_messages_to_oneself_are_written_twice_and_count_once(tmp_path: Path) -> None:
    talk = session("s1", "aa One.", "aa One.", "aa Two.", "aa Two.")
    trace = run(tmp_path / "x", iteration(("b", f"{MODEL}x"), talk=[talk]))
    assert told(trace) == [("b", "x", []), ("a", "One.", []), ("a", "Two.", [("1.2", "explicit")])]


@pytest.mark.parametrize(
    ("output", "failed"),
    [
        ({"success": True, "papers": []}, False),
        ({"success": False, "error-msg": "no"}, True),
        ({"status": "error", "function_name": "f"}, True),
        ({"status": False, "message": "too far"}, True),
    ],
)
def test_an_agent_that_only_calls_a_function_says_what_that_gave(
    tmp_path: Path, output: dict[str, Any], failed: bool
) -> None:
    (step,) = run(tmp_path / "x", iteration(("a", function(**output)))).steps
    assert step.text == json.dumps(output)
    assert step.calls[0].tool == output.get("function_name", "function")
    assert (step.calls[0].error is not None, step.calls[0].result is not None) == (failed, not failed)


def test_the_last_summary_is_the_decision_and_no_agent(tmp_path: Path) -> None:
    trace = run(
        tmp_path / "x",
        iteration(("a", f"{MODEL}x"), summary="First."),
        iteration(("a", f"{MODEL}y"), ("b", f"{MODEL}z"), summary="Second."),
    )
    assert [(step.agent, step.kind, step.round) for step in trace.steps] == [
        ("a", "agent", 0),
        ("planner", "control", 0),
        ("a", "agent", 1),
        ("b", "agent", 1),
        ("planner", "decision", 1),
    ]
    assert told(trace)[-1] == ("planner", "Second.", [("2.1", "broadcast"), ("2.2", "broadcast")])
    assert trace.answer == "Second."


@pytest.mark.parametrize(
    ("predicted", "answer", "correct"),
    [
        (["B", "A", "C"], "B, A, C", True),
        (["B", "C"], "B, C", False),
        ("It is a and B.", "It is a and B.", True),
        ("It is AB.", "It is AB.", False),
        (None, None, None),
    ],
)
def test_a_database_run_is_correct_iff_it_names_every_true_cause(
    tmp_path: Path, predicted: Any, answer: str | None, correct: bool | None
) -> None:
    verdict = {"root_cause": ["A", "B"], "predicted": predicted}
    trace = run(tmp_path / "x", task_evaluation=verdict, token_usage=9)
    assert (trace.gold, trace.answer, trace.correct) == ("A, B", answer, correct)
    assert (trace.labels["root_cause"], trace.labels["run_usage"]) == (["A", "B"], {"tokens": 9})


def test_a_chain_hands_over_from_agent_to_agent(tmp_path: Path) -> None:
    links = [
        {
            "chain_length": n,
            "current_agent": agent,
            "result": f"{MODEL}{agent}",
            "task_assignments": {agent: "Go."},
        }
        for n, agent in enumerate("abb", 1)
    ]
    assert told(run(tmp_path / "x", *links)) == [
        ("a", "a", []),
        ("b", "b", [("1.1", "explicit")]),
        ("b", "b", [("2.1", "explicit")]),
    ]


def test_a_tree_calls_from_the_root_down_and_returns(tmp_path: Path) -> None:
    tree = {
        "root_agent": "a",
        "result": None,
        "task_assignments": [{"b": "Do b.", "d": "Do d."}, {"c": "Do c."}],
        "task_results": [{"agent_id": agent, "result": f"{MODEL}{agent}"} for agent in "abcd"],
        "communications": None,
    }
    assert told(run(tmp_path / "x", tree)) == [
        ("a", "Do b.\nDo d.", []),
        ("b", "Do c.", [("1.1", "call")]),
        ("d", "d", [("1.1", "call")]),
        ("c", "c", [("1.2", "call")]),
        ("b", "b", [("1.1", "call"), ("1.4", "call")]),
        ("a", "a", [("1.5", "call"), ("1.3", "call")]),
    ]


def test_a_result_without_an_agent_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match='record 1: a result has no agent: its "agent_id" is 3'):
        run(tmp_path / "x", {"task_results": [{"agent_id": 3, "result": "x"}]})


def test_real_runs_have_an_edge_for_every_message_that_is_answered(data: Path) -> None:
    traces = list(read(data / "traces" / "marble", on_error="raise"))
    assert len(traces) == 14
    assert not any(trace.warnings for trace in traces)
    assert {trace.labels["coordination_mode"] for trace in traces} == {"graph"}
    talking = [
        trace for trace in traces if any(t.evidence == "explicit" for step in trace.steps for t in step.heard)
    ]
    assert len(talking) == 7
    assert all(step.text for trace in traces for step in trace.steps)
    databases = {
        trace.id[:13]: trace.labels["root_cause"] for trace in traces if "root_cause" in trace.labels
    }
    assert databases == {
        "db_gpt-3.5-tu": ["FETCH_LARGE_DATA", "INSERT_LARGE_DATA"],
        "db_gpt-4o-min": ["INSERT_LARGE_DATA", "LOCK_CONTENTION"],
    }
