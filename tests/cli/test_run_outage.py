"""`counterpoint run` where things go wrong outside: endpoint, folder, Ctrl-C; no number is a lie then."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from counterpoint.engine.jobs import Job
from counterpoint.models.scripted import Fault, scripted_server

Run = Callable[..., Any]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Forty questions whose answer is 7."""
    path = tmp_path / "gsm8k_test.jsonl"
    path.write_text(
        "".join(json.dumps({"question": f"Case {n}: 3 + 4?", "answer": "#### 7"}) + "\n" for n in range(40))
    )
    return path


def words(server: Any, data: Path, folder: Path | str, *more: object) -> list[object]:
    return [
        "run", "gsm8k", "--data", data, "--model", "m", "--base-url", server.base_url, "-o", folder,
        "--embedder", "hashing", "--system", "single", "--threads", 2, *more,
    ]  # fmt: skip


class Dies:
    """Answers so many calls, and then with a fault; a while, or for ever."""

    def __init__(self, calls: int, fault: Fault, faults: int = 10**6) -> None:
        self.calls, self.fault, self.faults = calls, fault, faults
        self.numbers = count()

    def __call__(self, messages: Any) -> Any:
        number = next(self.numbers)
        return self.fault if self.calls <= number < self.calls + self.faults else "The answer is 7."


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (Fault(status=402), "the endpoint answers no further call: model 'm' at 127.0.0.1"),
        (Fault.rate_limited(300), "it asks to wait 300 s"),
        (Fault(status=404), "10 calls in a row were not answered"),
        (Fault(status=400), "10 questions in a row were refused"),
    ],
)
def test_an_endpoint_that_goes_bad_ends_the_run_and_its_accuracy_is_of_what_was_answered(
    run: Run, data: Path, tmp_path: Path, fault: Fault, told: str
):
    folder = tmp_path / "r"
    with scripted_server(Dies(12, fault)) as server:
        ended = run(*words(server, data, folder, "--format", "md"))
        assert len(server.requests) <= 12 + 14
    assert ended.code == 2
    last = ended.err.splitlines()[-1]
    assert last.startswith("counterpoint: stopped after 12 of 40 questions: ")
    assert told in last
    assert last.endswith("(to go on: --resume)")
    cells = [cell.strip() for cell in ended.out.splitlines()[2].split("|")]
    assert cells[4].startswith(r"12 (+")
    assert cells[5].startswith("1.000 ")
    scored = run("score", folder, "-m", "accuracy", "--format", "json")
    (overall,) = [entry for entry in json.loads(scored.out)["summary"] if entry["system"] is None]
    assert (overall["mean"], overall["n"]) == (1.0, 12)
    assert overall["undefined"] >= 1
    assert list(overall["reasons"]) == ["calls of this question failed: run it again with --resume"]
    with scripted_server("The answer is 7.") as server:
        mended = run(*words(server, data, folder, "--resume", "--format", "md"))
        assert len(server.requests) == 28
    assert mended.code == 0
    assert "| 40 | 1.000 " in mended.out


def test_failures_that_pass_are_named_and_counted_beside_n(run: Run, data: Path, tmp_path: Path):
    with scripted_server(Dies(12, Fault(status=400), faults=3)) as server:
        told = run(*words(server, data, tmp_path / "r"))
    assert told.code == 0
    assert "(+3 failed)" in told.out
    assert "37" in told.out
    assert told.out.count("3 undefined: calls of this question failed") == 1
    assert "3 of 40 questions failed and are not scored: --resume plays them again" in told.err


@pytest.mark.parametrize("system", ["single", "debate(agents=2, rounds=1)"])
def test_a_run_of_which_no_question_could_be_scored_is_no_success(
    run: Run, data: Path, tmp_path: Path, system: str
):
    with scripted_server(lambda messages: Fault(status=400)) as server:
        told = run(*words(server, data, tmp_path / "r", "--limit", 3, "--system", system))
    assert told.code == 2
    last = "counterpoint: no question could be scored: see what failed; --resume tries again"
    assert told.err.splitlines()[-1] == last


def test_a_run_half_of_whose_calls_failed_in_every_question_is_none_either(
    run: Run, data: Path, tmp_path: Path
):
    numbers = count()
    with scripted_server(lambda _: Fault(status=400) if next(numbers) % 2 else "The answer is 7.") as server:
        system = ("--system", "debate(agents=2, rounds=1)", "--threads", 1)
        told = run(*words(server, data, tmp_path / "r", "--limit", 3, *system))
    assert told.code == 2
    assert "no question could be scored" in told.err


@pytest.mark.parametrize(("crash", "code", "row"), [((5,), 0, "| 39 (+1 failed) |"), (range(40), 2, "")])
def test_a_play_that_an_unforeseen_error_ends_is_a_failed_question(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash: Any, code: int, row: str
):
    play = Job.play

    def crashing(job: Job, ask: Any) -> Any:
        if int(job.example.task.split()[1].rstrip(":")) in crash:
            raise ValueError("unforeseen")
        return play(job, ask)

    monkeypatch.setattr(Job, "play", crashing)
    with scripted_server("The answer is 7.") as server:
        told = run(*words(server, data, tmp_path / "r", "--format", "md"))
    assert told.code == code
    assert row in told.out
    assert f"{len(crash)} of 40 questions failed and are not scored" in told.err
    assert "ValueError: unforeseen" in told.err


def test_a_smaller_limit_leaves_the_other_traces_and_says_so(run: Run, data: Path, tmp_path: Path):
    with scripted_server("The answer is 7.") as server:
        run(*words(server, data, tmp_path / "r"))
        told = run(*words(server, data, tmp_path / "r", "--resume", "--limit", 4, "--format", "md"))
        assert len(server.requests) == 40
    assert "| 4 | 1.000 " in told.out
    assert "also holds 36 traces of more questions or seeds" in told.err
    assert len((tmp_path / "r" / "traces.jsonl").read_text().splitlines()) == 40


@pytest.mark.parametrize("folder", ["", " "])
def test_a_folder_without_a_name_is_refused(run: Run, data: Path, folder: str):
    with scripted_server("The answer is 7.") as server:
        told = run(*words(server, data, folder))
        assert server.requests == []
    assert told.code == 2
    assert "-o FOLDER" in told.err


def test_scores_of_something_else_are_not_written_over(run: Run, data: Path, tmp_path: Path):
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "scores.json").write_text("mine")
    with scripted_server("The answer is 7.") as server:
        told = run(*words(server, data, tmp_path / "r"))
        assert server.requests == []
    assert told.code == 2
    assert "holds scores.json of something else" in told.err
    assert (tmp_path / "r" / "scores.json").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_the_first_ctrl_c_says_at_once_what_is_waited_for(data: Path, tmp_path: Path):
    told = threading.Event()

    def reply(messages: Any) -> str:
        assert told.wait(300)
        return "The answer is 7."

    with scripted_server(reply) as server:
        command = [sys.executable, "-m", "counterpoint", *map(str, words(server, data, tmp_path / "r"))]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while len(server.requests) < 2:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert process.stderr.readline() == (
            "stopping: 2 calls under way are waited for; Ctrl-C again leaves them\n"
        )
        told.set()
        rest = process.communicate(timeout=300)[1]
    assert process.returncode == 130
    assert "interrupted after 2 of 40 questions: go on with --resume" in rest


def test_a_ctrl_c_outside_of_a_run_says_one_line(monkeypatch, capsys):
    from counterpoint import cli

    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sys.argv", ["counterpoint", "list", "adapters"])
    monkeypatch.setattr("counterpoint.registry.names", pressed)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "counterpoint: interrupted\n"
