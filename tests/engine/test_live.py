"""A run that was received is read and scored as its exported file is; what one run does, no other feels."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

pytest.importorskip("opentelemetry.proto", reason="extra serve is not installed")

import counterpoint as cp
from counterpoint.engine import live
from counterpoint.engine.live import Scorer, read_run, score_run
from counterpoint.errors import UsageError
from counterpoint.scores import plain
from counterpoint.store import Run, Span, Store, StoreFault
from counterpoint.trace import Step, Trace
from counterpoint.view.server.limits import Limits
from counterpoint.view.server.spans import decode

GOLDEN = Path(__file__).parents[1] / "golden" / "otlp"
FIXTURES = sorted(
    file
    for file in GOLDEN.glob("*")
    if not file.name.endswith(".golden.jsonl") and file.name != "crewai.openinference.json"  # ids as base64
)
DESK = GOLDEN / "openai_agents_desk.openinference.json"
WAIT_S = 300.0
"""Machines may be slow; nothing here takes this long."""


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store(tmp_path / "store.db") as opened:
        yield opened


def spans(file: Path) -> list[Span]:
    """The spans of a fixture, as the receiver makes them."""
    bodies = [file.read_bytes()]
    if file.suffix == ".jsonl":
        bodies = bodies[0].splitlines()
    decoded = [decode(body, json=file.suffix != ".binpb", limits=Limits()) for body in bodies]
    return [span for one in decoded for span in one.spans]


def under(number: int, received: list[Span]) -> list[Span]:
    """The same spans in a trace of another id."""
    new = f"{number:032x}"
    old = bytes.fromhex(received[0].trace_id)
    return [
        span._replace(trace_id=new, payload=span.payload.replace(old, bytes.fromhex(new)))
        for span in received
    ]


def nameless(traces: list[Trace]) -> list[Trace]:
    """Traces without what the file's name gives them."""
    return [replace(trace, id="") for trace in traces]


def until(store: Store, run_id: str, true: Callable[[Run], Any]) -> Run:
    """The run, once it is as asked."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        run = store.run(run_id)
        if run is not None and true(run):
            return run
        time.sleep(0.02)
    raise AssertionError(f"not within {WAIT_S} s: {store.run(run_id)}")


def is_scored(run: Run) -> bool:
    return run.state == "scored"


# --- reading and scoring one run -----------------------------------------------------------------


@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: file.name)
def test_a_received_run_is_the_trace_that_its_file_is(store: Store, file: Path, tmp_path: Path):
    store.add_spans(spans(file))
    received: list[Trace] = []
    for run in store.runs(order="-received").rows:
        traces, wrong = read_run(store, run.id)
        exported = tmp_path / f"{run.id}.binpb"
        exported.write_bytes(store.otlp(run.id))
        reading = cp.read(exported, on_error=lambda error: None)
        assert nameless(list(reading)) == nameless(traces)
        assert len(reading.errors) == len(wrong)
        received += traces
    assert [trace.steps for trace in received] == [trace.steps for trace in cp.read(file)]


@pytest.mark.slow
def test_a_received_run_has_the_scores_and_claims_of_its_file(store: Store, tmp_path: Path):
    store.add_spans(spans(DESK))
    (run,) = store.runs().rows
    score_run(store, run.id)
    exported = tmp_path / run.id
    exported.write_bytes(store.otlp(run.id))
    scores = cp.evaluate(cp.read(exported, on_error="raise"))
    rows = [replace(row, run=str(exported)) for row in store.rows(run.id)]
    assert [plain(row) for row in rows] == [plain(row) for row in scores.rows]
    command = [sys.executable, "-m", "counterpoint", "claims", str(exported), "--format", "jsonl", "--quiet"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert store.claims(run.id) == [json.loads(line) for line in told.splitlines()]
    assert len(store.claims(run.id)) > 0
    assert is_scored(store.run(run.id))  # type: ignore[arg-type]


def test_spans_of_two_runs_in_turns_are_two_runs(store: Store):
    desk = spans(DESK)
    for pair in zip(under(1, desk), under(2, desk), strict=True):
        store.add_spans(pair)
    (alone,) = cp.read(DESK)
    for number in (1, 2):
        ((trace,), wrong) = read_run(store, f"{number:032x}")
        assert (trace.id, wrong) == (f"{number:032x}", [])
        assert trace.steps == alone.steps


def test_traces_that_links_join_are_one_run(store: Store):
    received = spans(GOLDEN / "workflow.links.json")
    store.add_spans(received[::-1])
    assert store.runs().total == len(list(cp.read(GOLDEN / "workflow.links.json")))


def test_a_trace_of_a_file_is_scored_as_it_is(store: Store):
    (trace,) = cp.read(DESK)
    (run_id,) = store.add_traces([trace], origin="desk.json")
    score_run(store, run_id, metrics=["agents"])
    assert [(row.metric, row.value) for row in store.rows(run_id)] == [("agents", 3)]
    assert [kept.steps for kept in store.traces(run_id)] == [trace.steps]


def test_the_list_tells_the_answer_that_a_run_came_to_where_none_is_recorded(store: Store):
    trace = Trace("q1", (Step("s1", "solver", "The answer is 4."),), gold="4")
    (added,) = store.add_traces([trace], origin="runs.jsonl")
    score_run(store, added, metrics=["accuracy"])
    run = store.run(added)
    assert run is not None
    assert (run.answer, run.correct) == ("4", True)
    assert store.traces(added)[0].answer is None


def test_spans_without_an_agent_are_unreadable_and_say_why(store: Store):
    (span, *_) = under(3, spans(DESK))
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as Sent

    bare = Sent(name="GET /", trace_id=bytes.fromhex(span.trace_id), span_id=bytes.fromhex(span.span_id))
    store.add_spans([span._replace(payload=bare.SerializeToString())])
    score_run(store, span.trace_id)
    run = store.run(span.trace_id)
    assert run is not None
    assert run.state == "unreadable"
    assert "was the framework instrumented" in run.error


def test_a_run_that_is_gone_is_passed_over_and_one_that_never_was_is_named(store: Store):
    score_run(store, "gone")
    with pytest.raises(UsageError, match="no run 'gone' in"):
        read_run(store, "gone")


def test_an_unknown_metric_is_refused_before_anything_is_started(tmp_path: Path):
    with pytest.raises(UsageError, match="did you mean 'upr'"):
        Scorer(tmp_path / "store.db", metrics=["uprr"])


# --- the process ---------------------------------------------------------------------------------


def scorer(store: Store, **more: Any) -> Scorer:
    return Scorer(store.path, **{"quiet_s": 0.2, "metrics": ["agents", "steps"], **more})


def score_but(store: Store, run_id: str) -> None:
    """Scores as it should, unless the first digit of the run's id tells it otherwise."""
    match run_id[-1]:
        case "a":
            os.kill(os.getpid(), signal.SIGKILL)
        case "b":
            time.sleep(6000)
        case "c":
            raise ZeroDivisionError("by\nzero")
    score_run(store, run_id, metrics=["agents"])


@pytest.mark.slow
def test_a_quiet_run_is_scored_and_scored_again_after_late_spans(store: Store):
    *early, late = spans(DESK)
    run_id = late.trace_id
    store.add_spans(early)
    with scorer(store):
        first = until(store, run_id, is_scored)
        assert first.scored_revision == first.revision == len(early)
        store.add_spans([late])
        again = until(store, run_id, lambda run: run.scored_revision > first.scored_revision)
    assert again.scored_revision == again.revision == len(early) + 1
    assert again.values["agents"] == 3


@pytest.mark.slow
def test_a_run_is_not_scored_while_its_spans_come(store: Store):
    with scorer(store, quiet_s=3600):
        store.add_spans(under(1, spans(DESK)))
        (run_id,) = store.add_traces(cp.read(DESK), origin="desk.json")
        until(store, run_id, is_scored)
    assert store.run(f"{1:032x}").state == "receiving"  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "limit_s", "error"),
    [
        (10, WAIT_S, r"the process that scored it ended (exit code -9)"),
        (11, 2.0, "scoring took more than 2 seconds: export the run, and score the file"),
        (12, WAIT_S, "could not be scored: ZeroDivisionError: by zero"),
    ],
    ids=["crash", "timeout", "exception"],
)
def test_what_goes_wrong_with_one_run_is_its_error_and_the_next_one_is_scored(
    store: Store, number: int, limit_s: float, error: str
):
    desk = spans(DESK)
    store.add_spans(under(number, desk))
    with scorer(store, score=score_but, limit_s=limit_s) as running:
        bad = until(store, f"{number:032x}", lambda run: run.error)
        running._limit_s = WAIT_S  # the next one is to be scored on a slow machine too
        store.add_spans(under(1, desk))
        good = until(store, f"{1:032x}", is_scored)
    assert (bad.state, bad.error) == ("unreadable", error)
    assert good.values["agents"] == 3


@pytest.mark.slow
def test_a_store_that_cannot_be_read_is_told_in_one_line_and_waited_for(
    store: Store, capfd: pytest.CaptureFixture[str], tmp_path: Path
):
    store.add_spans(under(1, spans(DESK)))
    Path(store.path).rename(tmp_path / "away.db")
    told = ""
    with scorer(store):
        end = time.monotonic() + WAIT_S
        while "\n" not in told and time.monotonic() < end:
            told += capfd.readouterr().err
            time.sleep(0.05)
        assert told == f"counterpoint: scoring waits: {store.path}: is not there\n"
        (tmp_path / "away.db").rename(store.path)
        until(store, f"{1:032x}", is_scored)
    assert capfd.readouterr().err == ""


def test_a_fault_of_the_store_is_not_the_run_s(store: Store):
    store.add_spans(under(1, spans(DESK)))
    run = store.run(f"{1:032x}")
    assert run is not None

    def score(_: Store, run_id: str) -> None:
        raise StoreFault("store.db: is locked by another program")

    with pytest.raises(StoreFault):
        live._score_safely(store, run, score)
    assert store.run(run.id) == run


@pytest.mark.slow
def test_a_large_run_does_not_keep_small_ones_waiting(store: Store):
    desk = spans(DESK)
    large = under(11, desk)  # which is never done
    copies = [
        span._replace(span_id=f"{number:016x}", payload=b"")
        for number, span in enumerate(large * (live.LARGE // len(large) + 1), 1)
    ]
    store.add_spans(copies)
    with scorer(store, score=score_but):
        time.sleep(1)
        store.add_spans(under(1, desk))
        until(store, f"{1:032x}", is_scored)
    assert store.run(large[0].trace_id).state == "receiving"  # type: ignore[union-attr]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found by /proc")
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_the_scoring_process_ends_with_its_parent_whatever_ends_that(store: Store, sign: int):
    code = """if True:
        import sys, time
        from counterpoint.engine.live import Scorer
        Scorer(sys.argv[1], quiet_s=0.1, metrics=["agents"]).start()
        time.sleep(6000)
    """
    store.add_spans(under(1, spans(DESK)))
    parent = subprocess.Popen([sys.executable, "-c", code, store.path])
    until(store, f"{1:032x}", is_scored)
    below = [
        pid
        for task in Path(f"/proc/{parent.pid}/task").iterdir()
        for pid in map(int, (task / "children").read_text().split())
    ]
    assert below
    parent.send_signal(sign)
    parent.wait()
    end = time.monotonic() + WAIT_S
    while any(map(alive, below)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(alive, below))
