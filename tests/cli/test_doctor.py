import json
from pathlib import Path

from typer.testing import CliRunner

from counterpoint import adapters
from counterpoint.cli import app
from counterpoint.doctor import ADVICE, SPANS

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


def advice(tmp_path: Path, metric: str, **fields: object) -> list[str]:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({**TRACE, **fields}))
    return json.loads(doctor(path, "--format", "json", "-m", metric))["metrics"][0]["advice"]


def test_advice_is_of_the_framework_and_else_of_the_format(tmp_path: Path):
    def usage(system: str, format: str) -> str:
        return advice(tmp_path, "tokens_in", system=system, labels={"format": format})[0]

    assert "stream_usage=True" in usage("langgraph", "otlp")
    assert usage("mine", "phoenix") == usage("mine", "otlp") == usage("", "otel_sdk")
    assert "instrument the model provider" in usage("mine", "otlp")
    assert (
        usage("mine", "chat")
        == "usage: record tokens_in, tokens_out and the model's name with each model call"
    )


def test_one_agent_alone_is_told_to_bring_its_team(tmp_path: Path):
    told = advice(tmp_path, "depth", steps=TRACE["steps"][:1])
    assert told == [
        "transfers: fewer than two agents speak; the metric needs a team; "
        "if there is one, read the export that holds all of its agents"
    ]


def test_every_name_that_advice_is_for_is_a_framework_or_a_format_that_we_read():
    golden = Path(__file__).parents[1] / "golden"
    systems = {
        json.loads(line).get("system")
        for file in golden.rglob("*.golden.jsonl")
        for line in file.read_bytes().splitlines()
    }
    known = {"", "spans", *adapters.TABLE, *systems}
    assert {name for told in ADVICE.values() for name in told} <= known
    assert set(SPANS) <= set(adapters.TABLE)
