"""ChatDev: partners in a phase hear each other, and phases hand over what they concluded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from counterpoint.adapters import read
from counterpoint.errors import TraceError
from counterpoint.trace import Trace


def block(text: str, second: int = 0, day: str = "2025-13-05") -> str:
    return f"[{day} 00:00:{second:02} INFO] {text}\n"


END = block("**[Post Info]**\n\nChatDev Ends (20250513113312)")
HEAD = block(
    "**[Preprocessing]**\n\n**ChatDev Starts** (1)\n\n**task_prompt**: A clock.\n\n**project_name**: Clock\n"
)


def phase(assistant: str, user: str, prompt: str = "Go.", template: str = "", values: str = "{}") -> str:
    return (
        block(f"System: **[chatting]**\n| **phase_prompt** | {template} |\n| **placeholders** | {values} |")
        + block(
            f"System: **[RolePlaying]**\n| **assistant_role_name** | {assistant} |\n"
            f"| **user_role_name** | {user} |\n| **model_type** | ModelType.GPT_3_5_TURBO |"
        )
        + block(f"{user}: **[Start Chat]**\n\n[You are {assistant}.]\n\n{prompt}")
    )


def turn(speaker: str, pair: str, text: str, second: int = 0, number: int = 0) -> str:
    return block(f"{speaker}: **{pair} on : Talk, turn {number}**\n\n[You are it.]\n\n{text}\n", second)


def called(second: int, tokens: int) -> str:
    return block(f"**[OpenAI_Usage_Info Receive]**\nprompt_tokens: {tokens}\ncompletion_tokens: 1\n", second)


def concluded(text: str) -> str:
    return block(f"**[Seminar Conclusion]**:\n\n {text}\n")


def run(path: Path, *parts: str, end: str = END) -> Trace:
    path.write_text(HEAD + "".join(parts) + end, "utf-8")
    (trace,) = read(path, on_error="raise")
    return trace


def told(trace: Trace) -> list[tuple[str, str, list[tuple[str, str]]]]:
    return [(s.agent, s.text, [(t.source, t.evidence) for t in s.heard]) for s in trace.steps]


def test_partners_of_a_phase_hear_each_other_and_the_bracketed_prompt_is_no_text(tmp_path: Path) -> None:
    trace = run(
        tmp_path / "x",
        phase("A", "B"),
        turn("A", "A<->B", "[1, 2]\n\nsorted"),
        turn("B", "A<->B", "No."),
        turn("a", "A<->B", "Yes.", number=1),
    )
    assert told(trace) == [
        ("A", "[1, 2]\n\nsorted", []),
        ("B", "No.", [("1.Talk.0", "explicit")]),
        ("A", "Yes.", [("2.Talk.0", "explicit")]),
    ]
    assert (trace.task, trace.labels["project_name"]) == ("A clock.", "Clock")


@pytest.mark.parametrize(
    ("conclusion", "values", "template", "heard"),
    [
        ("Fine.\n\n<INFO> Python.", "{'language': ' python'}", "In {language}.", "explicit"),
        ("It's > 3", '{"x": 1, \'comments\': "It\'s &gt; 3"}', "{comments}", "explicit"),
        ("<INFO> Python", "{'language': 'Java'}", "In {language}.", "sequence"),
        ("<INFO> Python", "{'language': 'Python'}", "In any language.", "sequence"),
    ],
)
def test_a_conclusion_reaches_a_phase_that_asks_for_it(
    tmp_path: Path, conclusion: str, values: str, template: str, heard: str
) -> None:
    trace = run(
        tmp_path / "x",
        phase("A", "B"),
        turn("A", "A<->B", conclusion),
        concluded(conclusion),
        phase("C", "D", template=template, values=values),
        turn("C", "C<->D", "So."),
    )
    assert told(trace)[1] == ("C", "So.", [("1.Talk.0", heard)])


def test_a_program_is_found_in_a_later_prompt(tmp_path: Path) -> None:
    program = "print('seven times six is', 7 * 6, 'as everyone knows')\n"
    trace = run(
        tmp_path / "x",
        phase("A", "B"),
        turn("A", "A<->B", f"Here it is:\n```python\n{program}```"),
        phase("C", "A", prompt=f"Review this. main.py\n\n{program}\nNow."),
        turn("C", "C<->A", "Fine."),
    )
    assert told(trace)[1] == ("C", "Fine.", [("1.Talk.0", "context")])


def test_an_improved_task_reaches_the_phases_that_use_it(tmp_path: Path) -> None:
    trace = run(
        tmp_path / "x",
        phase("Prompt Engineer", "User"),
        block("Prompt Engineer: <INFO> A big clock."),
        block("**[Task Prompt Self Improvement]**\n**Improved Task Prompt**: a big clock."),
        phase("A", "B", template="Task: {task}", values="{'task': 'a big clock.'}"),
        turn("A", "A<->B", "Python"),
    )
    assert told(trace) == [
        ("Prompt Engineer", "<INFO> A big clock.", []),
        ("A", "Python", [("1", "explicit")]),
    ]


def test_calls_come_before_their_turns_and_in_their_order(tmp_path: Path) -> None:
    request = 'HTTP Request: POST http://x/v1/chat/completions "HTTP/1.1'
    trace = run(
        tmp_path / "x",
        phase("A", "B"),
        block(f'{request} 503 Busy"', 1),
        block(f'{request} 200 OK"', 2),
        called(3, 10),
        called(5, 20),
        turn("A", "A<->B", "a", 6),
        turn("B", "A<->B", "b", 6),
        turn("A", "A<->B", "c", 9),
    )
    midnight = 1747094400.0
    assert [(s.started_at, s.ended_at) for s in trace.steps] == [
        (midnight, midnight + 2),
        (midnight + 2, midnight + 5),
        (midnight + 5, midnight + 9),
    ]
    assert [s.usage and (s.usage.tokens_in, s.usage.model) for s in trace.steps] == [
        (10, "gpt-3.5-turbo"),
        (20, "gpt-3.5-turbo"),
        None,
    ]


def test_a_day_that_is_none_has_no_time(tmp_path: Path) -> None:
    parts = phase("A", "B") + turn("A", "A<->B", "a")
    trace = run(tmp_path / "x", parts.replace("2025-13-05", "2025-05-13"))
    assert (trace.steps[0].started_at, trace.steps[0].ended_at) == (None, None)


def test_a_run_that_was_killed_is_read_with_a_warning(tmp_path: Path) -> None:
    parts = phase("A", "B") + turn("A", "A<->B", "a")
    assert run(tmp_path / "x", parts, end="").warnings == ("the log ends before the run does",)
    assert run(tmp_path / "x", parts).warnings == ()


def test_a_log_without_a_turn_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="x: record 1: the log has no turn"):
        run(tmp_path / "x", phase("A", "B"), end="")


def test_a_log_cut_off_within_a_line_is_read_up_to_it_and_told_of(tmp_path: Path) -> None:
    whole = phase("A", "B") + turn("A", "A<->B", "a")
    run(tmp_path / "x", whole, end="")
    with (tmp_path / "x").open("a") as log:
        log.write("[2025-13-05 00:0")
    reading = read(tmp_path / "x", on_error=lambda error: None)
    (trace,) = reading
    assert (trace.id, [step.text for step in trace.steps]) == ("x", ["a"])
    assert trace.warnings == ("the log ends before the run does",)
    assert ["record 1: the log is cut off" in str(error) for error in reading.errors] == [True]


def test_a_long_log_is_read_fast(tmp_path: Path, takes_at_most: Any) -> None:
    talk = "".join(
        turn("A" if n % 2 else "B", "A<->B", f"{n} " + "word " * 400, number=n) for n in range(1000)
    )

    def read_it() -> None:
        assert len(run(tmp_path / "x", phase("A", "B"), talk).steps) == 1000

    assert takes_at_most(10, read_it)
    assert (tmp_path / "x").stat().st_size > 2_000_000


def test_tokens_and_money_of_real_logs_add_up_to_what_the_log_says(data: Path) -> None:
    traces = {trace.id: trace for trace in read(data / "traces" / "chatdev", on_error="raise")}
    assert len(traces) == 6
    assert not any(trace.warnings for trace in traces.values())
    sums = {}
    for name, trace in traces.items():
        used = [step.usage for step in trace.steps if step.usage is not None]
        if used:
            cost = sum(usage.cost_usd or 0 for usage in used)
            tokens = [
                sum(usage.tokens_in or 0 for usage in used),
                sum(usage.tokens_out or 0 for usage in used),
            ]
            sums[name[:14]] = (*tokens, round(cost, 6))
    assert sums == {
        "pdv2_CLI_Audio": (12615, 4768, 0.134595),
        "pdv2_Log_File_": (10782, 3223, 0.102255),
        "warehouse_2023": (53436, 16942, 0),
        "warehouse_Runn": (22448, 7525, 0.097444),
    }


def test_every_later_phase_of_a_real_log_hears_an_earlier_one(data: Path) -> None:
    for trace in read(data / "traces" / "chatdev", on_error="raise"):
        for step in trace.steps[1:]:
            assert step.heard
            assert all(transfer.evidence in ("explicit", "context") for transfer in step.heard)
