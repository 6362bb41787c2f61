"""What a team says is in the file once `step` returns, whoever else writes to it, whatever happens then."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import counterpoint as cp
from counterpoint.adapters import _recorded
from counterpoint.errors import CounterpointError, UsageError
from counterpoint.record import Recording
from counterpoint.trace import Trace

module = importlib.import_module("counterpoint.record")  # as an attribute of the package it is the function
places = importlib.import_module("counterpoint.record.places")
KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "recording.jsonl"


def traces(file: Path) -> list[Trace]:
    return list(cp.read(file, on_error="raise"))


def heard(trace: Trace) -> dict[str, list[str]]:
    return {step.id: [transfer.source for transfer in step.heard] for step in trace.steps}


def in_a_new_process(code: str, file: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-W", "error", "-c", code, str(file)], stdout=subprocess.PIPE)


def test_writer_and_reader_mean_one_format():
    assert (module.SCHEMA, places.ATTRIBUTE) == (_recorded.SCHEMA, _recorded.ATTRIBUTE)


def test_what_is_recorded_is_read_back_as_it_was(file: Path):
    call = cp.Call("c1", "map", '{"of": "river"}', result="4")
    labels = {"task_id": "bridges", "seed": 1}
    with cp.record("walk", task="How many?", gold="4", system="pair", to=file, labels=labels) as run:
        first = run.step(
            "walker", "Four.", role="counts", prompt="Go.", round=2, calls=[call], answer="4", tokens_in=3
        )
        second = run.step("reader", "Yes.", kind="decision", heard=[first], cost_usd=0.5, model="small")
        run.answer, run.correct = "4", True
    (trace,) = traces(file)
    assert (trace.id, trace.task, trace.gold, trace.system) == ("walk", "How many?", "4", "pair")
    assert (trace.answer, trace.correct, trace.warnings) == ("4", True, ())
    assert trace.labels == {**labels, "format": "recording"}
    assert trace.steps[0] == first
    assert trace.steps[1].usage == cp.Usage(cost_usd=0.5, model="small")
    assert (trace.steps[1].kind, trace.steps[1].text) == (second.kind, second.text)
    assert heard(trace) == {"s1": [], "s2": ["s1"]}


def test_a_recording_is_scored(file: Path):
    with cp.record("sum", task="2+2?", gold="4", to=file) as run:
        first = run.step("solver", "The answer is 4.")
        run.step("critic", "Agreed: the answer is 4.", heard=[first])
        run.answer = 4  # type: ignore[assignment]
    scores = cp.evaluate(cp.read(file), metrics=["accuracy", "agents", "depth"])
    assert [row.value for row in scores.rows] == [1, 2, 2]


@pytest.mark.parametrize("as_id", [False, True], ids=["steps", "ids"])
def test_a_step_hears_steps_turns_and_ids(file: Path, as_id: bool):
    with cp.record("r", to=file) as run:
        first = run.step("a", "one")
        with run.turn("b", heard=[first.id if as_id else first]) as turn:
            turn.text = "two"
        assert turn.step is not None
        run.step("c", "three", heard=[first, turn.step.id if as_id else turn])
    (trace,) = traces(file)
    assert heard(trace) == {"s1": [], "s2": ["s1"], "s3": ["s1", "s2"]}


def bad(run: Recording) -> dict[str, Any]:
    open_turn = run.turn("slow")
    return {
        "no step of run 'r'; its last steps: s1": lambda: run.step("b", "x", heard=["s9"]),
        "no step of run": lambda: run.step("b", "x", heard=[3]),  # type: ignore[list-item]
        "has not ended cannot be heard": lambda: run.step("b", "x", heard=[open_turn]),
        "heard is a list": lambda: run.step("b", "x", heard="s1"),
        "`str`, got `int`": lambda: run.step("b", 7),  # type: ignore[arg-type]
        "Invalid enum value 'boss'": lambda: run.step("b", "x", kind="boss"),  # type: ignore[arg-type]
        "a step of run 'r' has no agent": lambda: run.step(" ", "x"),
        "tokens_in of a step of 'b' is -1": lambda: run.step("b", "x", tokens_in=-1),
        "cost_usd of a step of 'b' is -0.5": lambda: run.step("b", "x", cost_usd=-0.5),
        "cost_usd of a step of 'b' is nan": lambda: run.step("b", "x", cost_usd=float("nan")),
        "started_at of a step of 'b' is inf": lambda: run.step("b", "x", started_at=float("inf")),
        "ended_at of a step of 'b' is nan": lambda: run.step("b", "x", ended_at=float("nan")),
    }


@pytest.mark.parametrize("number", range(12))
def test_a_step_that_cannot_be_is_refused_in_one_line_and_not_recorded(file: Path, number: int):
    with cp.record("r", to=file) as run:
        run.step("a", "one")
        message, call = list(bad(run).items())[number]
        with pytest.raises(CounterpointError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)
    (trace,) = traces(file)
    assert heard(trace) == {"s1": []}


def test_a_step_of_another_run_is_not_heard(file: Path):
    with cp.record("r", to=file) as run, cp.record("other", to=file) as other:
        run.step("a", "one")
        stranger = other.step("a", "one")
        with pytest.raises(UsageError, match="step of another run, not of 'r'"):
            run.step("b", "two", heard=[stranger])


def test_a_step_of_another_run_is_called_that_though_this_run_has_one_of_its_id(file: Path):
    with cp.record("out", to=file) as out, cp.record("in", to=file) as run:
        with out.turn("a") as turn:
            pass
        run.step("a", "one")
        for stranger in (turn, turn.step):
            with pytest.raises(
                UsageError, match="heard 's1' is a step of another run, not of 'in'"
            ) as caught:
                run.step("b", "two", heard=[stranger])
            assert "its last steps" not in str(caught.value)


def test_nothing_is_recorded_outside_the_block(file: Path):
    run = cp.record("r", to=file)
    with pytest.raises(UsageError, match="use it in its with statement"):
        run.step("a", "early")
    with run:
        pass
    with pytest.raises(UsageError, match="use it in its with statement"):
        run.step("a", "late")
    with pytest.raises(UsageError, match="recorded already"), run:
        pass


def test_a_run_without_a_name_is_refused(file: Path):
    with pytest.raises(UsageError, match="a run has no name"):
        cp.record("", to=file)
    with pytest.raises(UsageError, match="label 'score' of run 'r' is nan"):
        cp.record("r", to=file, labels={"score": float("nan")})
    assert not file.exists()


@pytest.mark.parametrize("to", ["localhost:4318", "127.0.0.1:4318/v1/traces", "[::1]:4318"])
def test_an_address_without_its_scheme_is_no_file(tmp_path: Path, to: str, monkeypatch: Any):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=f"^{re.escape(to)}: .*to='http://{re.escape(to)}'"):
        cp.record("r", to=to)
    with cp.record("r", to=f"./{to.partition('/')[0]}"):
        pass
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("to", ["http:/localhost:1", "HTTP:localhost:1"])
def test_an_address_that_lacks_a_slash_is_no_file(to: str):
    with pytest.raises(UsageError, match="begins with http://: to='http://localhost:1'"):
        cp.record("r", to=to)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"my notes\nof today", "'my notes'"),
        (b'\n{"schema": "counterpoint.trace/1", "id": "q1"}\n', '\'{"schema": "counterpoint.trace/1", '),
        (f"key={KEY}\n".encode(), "'key=[secret:openai]'"),
        (b"\x1f\x8b\x08\x00", r"'\x1f"),
    ],
)
def test_a_file_that_is_no_recording_is_left_as_it_is(file: Path, content: bytes, found: str):
    file.write_bytes(content)
    with pytest.raises(UsageError, match=r"is no recording: its first line is .*: give") as caught:
        cp.record("r", to=file).__enter__()
    message = str(caught.value)
    assert (found in message, KEY[:12] in message, "\n" in message) == (True, False, False), message
    assert file.read_bytes() == content


@pytest.mark.parametrize(
    "content", [b"", b"\n", b'{"schema":"coun', b'{"schema":"counterpoint.recording/1","ev']
)
def test_a_file_that_is_empty_or_was_cut_off_in_its_first_line_is_added_to(file: Path, content: bytes):
    file.write_bytes(content)
    with cp.record("r", to=file) as run:
        run.step("a", "one")
    reading = cp.read(file, on_error=lambda error: None)
    assert [step.text for trace in reading for step in trace.steps] == ["one"]


@pytest.mark.parametrize(
    "name",
    ["ftp://localhost/r.jsonl", "http:///r", "http://localhost:port", "r.jsonl.gz", "no/such/folder/r.jsonl"],
)
def test_a_place_that_cannot_be_added_to_is_refused(tmp_path: Path, name: str):
    path = name if "://" in name else tmp_path / name
    with (
        pytest.raises(UsageError, match=r"is written to a JSONL file|cannot be written|no host|no port"),
        cp.record("r", to=path),
    ):
        pass


def test_times_say_when_a_step_may_have_begun_and_when_a_turn_did(file: Path, monkeypatch: Any):
    clock = count(100)
    monkeypatch.setattr(module.time, "time", lambda: float(next(clock)))
    with cp.record("r", to=file) as run:  # begins at 100
        first = run.step("a", "one")
        with run.turn("b") as turn:  # begins at 102
            run.step("c", "two", heard=[first])
        run.step("a", "three", heard=[turn], ended_at=110.0)
    (trace,) = traces(file)
    assert [(step.agent, step.started_at, step.ended_at) for step in trace.steps] == [
        ("a", 100, 101),
        ("c", 101, 103),
        ("b", 102, 104),
        ("a", 104, 110),
    ]


def test_the_exception_of_a_block_is_raised_also_where_it_cannot_be_recorded(file: Path, monkeypatch: Any):
    def fail() -> None:
        with cp.record("r", to=file) as run, run.turn("a"):
            monkeypatch.setattr(places.os, "write", lambda *_: os.stat("/no/such"))
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught:
        fail()
    assert ["cannot be written" in note for note in caught.value.__notes__] == [True, True]


def test_an_exception_is_recorded_as_the_end_and_raised_again(file: Path):
    def fail() -> None:
        with cp.record("r", to=file) as run:
            run.step("a", "one")
            with run.turn("b") as turn:
                turn.text = str(1 // 0)

    with pytest.raises(ZeroDivisionError):
        fail()
    (trace,) = traces(file)
    assert trace.steps[1].error == "ZeroDivisionError: integer division or modulo by zero"
    assert trace.warnings == (
        "the run ended with an error: ZeroDivisionError: integer division or modulo by zero",
    )


@pytest.mark.parametrize(("keep", "times"), [(False, 0), (True, 7)])
def test_keys_are_masked_unless_they_are_kept(file: Path, keep: bool, times: int):
    def tell() -> None:
        labels = {"deep": [KEY]}
        with cp.record(f"r {KEY}", to=file, task=KEY, labels=labels, keep_secrets=keep) as run:
            assert run.step("a", f"Use {KEY}.", prompt=KEY).text == f"Use {KEY}."
            run.answer = KEY
            raise ValueError(KEY)

    with pytest.raises(ValueError, match="sk-proj"):
        tell()
    assert file.read_text().count(KEY) == times


def test_text_that_is_no_unicode_is_mended(file: Path):
    with cp.record("r", to=file) as run:
        run.step("a\ud800", "x\udc00\n\u2028")
    (trace,) = traces(file)
    assert (trace.steps[0].agent, trace.steps[0].text) == ("a\ufffd", "x\ufffd\n\u2028")


def test_a_name_that_comes_again_is_another_trace(file: Path):
    for text in ("one", "two", "three"):
        with cp.record("r", to=file) as run:
            run.step("a", text)
    assert [(trace.id, trace.steps[0].text) for trace in traces(file)] == [
        ("r", "one"),
        ("r#2", "two"),
        ("r#3", "three"),
    ]


def test_threads_share_a_run(file: Path):
    def speak(agent: str) -> None:
        last = run.step(agent, "start")
        for number in range(50):
            last = run.step(agent, f"{agent} {number}", heard=[last])

    with cp.record("r", to=file) as run:
        threads = [threading.Thread(target=speak, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    (trace,) = traces(file)
    assert [step.id for step in trace.steps] == [f"s{number}" for number in range(1, 205)]
    agents = {step.id: step.agent for step in trace.steps}
    assert all(agents[transfer.source] == step.agent for step in trace.steps for transfer in step.heard)
    assert trace.warnings == ()


def test_processes_share_a_file(file: Path):
    code = """if True:
        import sys, counterpoint as cp
        for _ in range(3):
            with cp.record("r", to=sys.argv[1]) as run:
                for number in range(100):
                    run.step("a", f"{number} " + "long " * 2000)
    """
    children = [in_a_new_process(code, file) for _ in range(3)]
    assert [child.communicate() and child.returncode for child in children] == [0, 0, 0]
    found = traces(file)
    assert {trace.id for trace in found} == {"r"} | {f"r#{number}" for number in range(2, 10)}
    for trace in found:
        assert [step.text.split()[0] for step in trace.steps] == [str(number) for number in range(100)]


def test_events_after_the_end_belong_to_the_run_with_a_warning(file: Path):
    with cp.record("r", to=file) as run:
        run.step("a", "one")
        run.step("a", "two")
        run.answer = "4"
    with cp.record("later", to=file):
        pass
    begin, one, two, end, *later = file.read_text().splitlines()
    early = json.dumps({**json.loads(end), "answer": None, "error": "SystemExit: 0"})
    file.write_text("\n".join([begin, one, early, *later, two, end]))
    other, trace = traces(file)
    assert (other.id, trace.id, trace.answer) == ("later", "r", "4")
    assert [step.text for step in trace.steps] == ["one", "two"]
    assert trace.warnings == (
        "the run ended with an error: SystemExit: 0",
        "2 events stand after the end of the run: another process may have ended it",
    )


def test_what_step_returned_for_survives_a_kill(file: Path):
    code = """if True:
        import os, sys, counterpoint as cp
        with cp.record("r", task="Go on.", to=sys.argv[1]) as run:
            number = 0
            while True:
                run.step("a", f"{number} " + "long " * 500)
                number += 1
                os.write(1, b".")
    """
    child = in_a_new_process(code, file)
    assert child.stdout is not None
    acknowledged = len(child.stdout.read(200))
    os.kill(child.pid, signal.SIGKILL)
    acknowledged += len(child.stdout.read())
    child.wait()
    child.stdout.close()
    (trace,) = traces(file)
    assert acknowledged <= len(trace.steps) <= acknowledged + 1
    assert trace.task == "Go on."
    assert trace.warnings == ("the recording has no end: the run was cut off or is still going on",)


def test_a_line_that_was_left_unfinished_costs_that_line_alone(file: Path):
    with cp.record("r", to=file) as run:
        run.step("a", "one")
        run.step("a", "two")
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2]) + lines[2][:40])
    with cp.record("later", to=file) as run:
        run.step("b", "three")
    reading = cp.read(file, on_error=lambda error: None)
    assert {trace.id: [step.text for step in trace.steps] for trace in reading} == {
        "later": ["three"],
        "r": ["one"],
    }
    assert [str(error).split(": ")[1] for error in reading.errors] == ["record 3"]


def test_a_full_disk_is_told_and_the_next_step_begins_a_line_of_its_own(file: Path, monkeypatch: Any):
    with cp.record("r", to=file) as run:
        write = os.write
        answers = [lambda file, line: write(file, line[:10]), lambda file, line: os.stat("/no/such")]
        with monkeypatch.context() as patch:
            patch.setattr(places.os, "write", lambda file, line: answers.pop(0)(file, line))
            with pytest.raises(UsageError, match="cannot be written"):
                run.step("a", "lost")
        run.step("a", "kept")
    reading = cp.read(file, on_error=lambda error: None)
    assert [step.text for trace in reading for step in trace.steps] == ["kept"]
    assert len(reading.errors) == 1


def test_steps_without_their_begin_are_a_trace_that_says_so(file: Path):
    with cp.record("r", to=file) as run:
        run.step("a", "one")
    events = file.read_text().splitlines()
    file.write_text("\n".join(events[1:]))
    (trace,) = traces(file)
    assert trace.id == json.loads(events[0])["run"]
    assert trace.warnings == ("the begin of the recording is missing: name, task and gold are not known",)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ([], "an event is a JSON object, found list"),
        ({"schema": "counterpoint.recording/2"}, "written by another version"),
        ({"event": "pause"}, "event 'pause' is none of begin, step, end"),
        ({"event": "step", "run": None}, 'no "run"'),
        ({"event": "step", "step": {"id": "s1"}}, "missing required field `agent`"),
        ({"event": "begin", "task": 7}, "Expected `str`, got `int`"),
    ],
)
def test_an_event_of_another_shape_is_an_error_and_the_rest_is_read(file: Path, event: Any, message: str):
    with cp.record("r", to=file) as run:
        run.step("a", "one")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    if isinstance(event, dict):
        event = {"schema": _recorded.SCHEMA, "run": lines[0]["run"], **event}
    lines.insert(1, event)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    reading = cp.read(file, on_error=lambda error: None)
    assert [step.text for trace in reading for step in trace.steps] == ["one"]
    (error,) = reading.errors
    assert (error.record, message in str(error)) == (2, True), error
