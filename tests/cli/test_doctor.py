import json
from pathlib import Path

from typer.testing import CliRunner

from counterpoint.cli import app

TRACE = {
    "id": "t",
    "task": "2+2?",
    "steps": [
        {"id": "a", "agent": "solver", "text": "4", "started_at": 1.0},
        {"id": "b", "agent": "Zed", "text": "4", "heard": [{"source": "a", "evidence": "nesting"}]},
        {"id": "c", "agent": "solver", "text": "", "heard": [{"source": "b", "evidence": "nesting"}]},
    ],
}


def doctor(path: Path, *options: str) -> str:
    result = CliRunner().invoke(app, ["doctor", str(path), *options])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_doctor_says_what_is_there_and_what_to_record(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(TRACE))
    told = doctor(path)
    for line in (
        "native: 1 traces",
        "  steps        agent 3",
        "  agents       solver 2, Zed 1",
        "  transfers    nesting 2",
        "  no text      1 of 3 agent steps",
        "  never ended  1 of 3 agent steps",
        "  repeated     1 of 3 agent steps",
        "  no role      Zed 1 (name them with --roles FILE)",
        "  yes  steps",
        "  no   tokens_in  (0 of 1 traces)",
        "         usage: record tokens_in, tokens_out and the model's name with each model call",
    ):
        assert line in told.splitlines()
    assert "the trace has nesting: try --evidence nesting" in told


def test_more_trust_finds_the_cycle_and_the_metrics(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(TRACE))
    found = json.loads(doctor(path, "--evidence", "nesting", "--format", "json", "-m", "depth"))
    assert found["metrics"] == [{"metric": "depth", "traces": 1, "of": 1, "missing": {}, "advice": []}]


def test_an_unreadable_file_is_exit_code_2(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    path.write_text("\x00\x01")
    result = CliRunner().invoke(app, ["doctor", str(path)])
    assert result.exit_code == 2
    assert "t.jsonl" in result.stdout


def test_doctor_tells_of_runs_that_were_cut_off_and_of_totals_left_out(tmp_path: Path):
    labels = ({"running": 2, "totals_left_out": 3}, {"rootless": True, "totals_left_out": 1}, {"spans": 4})
    lines = [json.dumps({**TRACE, "id": str(at), "labels": each}) for at, each in enumerate(labels)]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(lines))
    told = doctor(path).splitlines()
    assert "  cut off      2 of 3 traces: a span never ended, or no root span" in told
    assert "  tokens       token totals left out: 4 (the calls in them count, once)" in told
