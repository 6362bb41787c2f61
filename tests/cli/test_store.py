"""`counterpoint store`: what is kept is listed, exported, pruned and checked; files are added to it."""

from __future__ import annotations

import csv
import io
import json
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from counterpoint.engine.live import score_run
from counterpoint.scores import read_scores
from counterpoint.store import Run as RunOfStore
from counterpoint.store import Runs, Store, receiving

from .conftest import lines, native

Run = Callable[..., Any]
DESK = Path(__file__).parents[1] / "golden" / "otlp" / "openai_agents_desk.openinference.json"
KEY = "sk-" + "a1b2c3d4" * 4


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "store.db"
    monkeypatch.setenv("COUNTERPOINT_STORE", str(path))
    return path


@pytest.fixture
def desk(file: Path) -> str:
    """The id of a run of which spans came in; it is scored."""
    pytest.importorskip("opentelemetry.proto", reason="extra otlp is not installed")
    from counterpoint.view.server.limits import Limits
    from counterpoint.view.server.spans import decode

    spans = decode(DESK.read_bytes(), json=True, limits=Limits()).spans
    with Store(file) as store:
        store.add_spans(spans)
        score_run(store, spans[0].trace_id, metrics=["steps", "upr"])
    return spans[0].trace_id


def added(file: Path, run: Run, *records: Any, name: str = "t.jsonl") -> Path:
    path = file.parent / name
    path.write_text(lines(*records))
    assert run("store", "add", path, "-q").code == 0
    return path


# --- add -----------------------------------------------------------------------------------------


def test_files_are_added_once(run: Run, file: Path, traces: Path):
    told = run("store", "add", traces)
    assert (told.code, told.out) == (0, "")
    assert told.err == f"2 new, 0 changed, 0 unchanged: {file}\n"
    assert "0 new, 0 changed, 2 unchanged" in run("store", "add", traces).err
    traces.write_text(lines(native("t1"), native("t2", task="another")))
    assert "0 new, 1 changed, 1 unchanged" in run("store", "add", traces).err
    assert run("store", "add", traces, "-q").err == ""


def test_ids_that_clash_are_told(run: Run, file: Path, traces: Path):
    run("store", "add", traces)
    other = traces.parent / "other.jsonl"
    other.write_text(lines(native("t1", task="another")))
    told = run("store", "add", other)
    assert "note: t1: another run has this id: added as t1~2" in told.err
    assert "1 new" in told.err
    assert "1 unchanged" in run("store", "add", other).err


def test_what_cannot_be_read_is_told_and_the_rest_is_added(run: Run, file: Path, traces: Path):
    bad = traces.parent / "bad.jsonl"
    bad.write_text('{"id": 1')
    told = run("store", "add", bad, traces, "--system", "team")
    assert told.code == 2
    assert "error: " in told.err
    assert "2 new" in told.err
    assert [row["system"] for row in runs(run)] == ["team", "team"]


def test_added_runs_are_scored_if_asked(run: Run, file: Path, traces: Path):
    assert run("store", "add", traces, "--score").code == 0
    found = {row["id"]: row for row in runs(run)}
    assert found["t1"]["state"] == "scored"
    assert found["t1"]["values"]["accuracy"] == 1
    assert (found["t1"]["correct"], found["t2"]["correct"]) == (True, None)


# --- list ----------------------------------------------------------------------------------------


def runs(run: Run, *words: object) -> list[dict[str, Any]]:
    document = json.loads(run("store", "list", "--format", "json", *words).out)
    assert document["schema"] == "counterpoint.runs/1"
    found: list[dict[str, Any]] = document["runs"]
    return found


def test_the_json_of_runs_follows_its_schema(run: Run, file: Path, desk: str):
    jsonschema = pytest.importorskip("jsonschema")
    added(file, run, native("t1"))
    found = json.loads(run("store", "list", "--format", "json").out)
    assert len(found["runs"]) == 2
    jsonschema.validate(found, json.loads(run("schema", "runs").out))


def test_runs_are_listed_searched_and_filtered(run: Run, file: Path, desk: str):
    added(file, run, native("t1", system="panel"), native("t2", task="What is zinnober?"))
    assert [row["id"] for row in runs(run)] == ["t2", "t1", desk]
    assert [row["id"] for row in runs(run, "--search", "ZINNOBER")] == ["t2"]
    assert [row["id"] for row in runs(run, "--system", "panel")] == ["t1"]
    assert [row["id"] for row in runs(run, "--state", "scored")] == [desk]
    assert [row["id"] for row in runs(run, "--where", "steps>0")] == [desk]
    assert runs(run, "--correct", "ungraded", "--order", "-received")[0]["id"] == desk
    assert len(runs(run, "--limit", 2)) == 2


def test_the_table_shows_ids_in_full_and_the_metrics_asked_about(run: Run, file: Path, desk: str):
    told = run("store", "list", "--where", "steps>0")
    assert told.code == 0
    head, line = told.out.splitlines()
    assert head.split()[:5] == ["run", "received", "system", "task", "result"]
    assert "steps" in head
    assert line.startswith(f"{desk} ")
    assert max(map(len, told.out.splitlines())) <= 120


@pytest.mark.parametrize("width", [80, 100, 160])
def test_a_long_id_leaves_room_for_the_other_columns(width: int):
    from rich.console import Console

    from counterpoint.view import run_list

    run = RunOfStore(
        id="x" * 3000, origin="f", system="debate", task="How many marbles?", agents=("a",), answer="7",
        correct=None, started_at=None, ended_at=None, received_at=0.0, spans=120, steps=12, traces=1,
        revision=1, scored_revision=1, error="", values={"ids": 0.25, "upr": 0.5}, state="scored",
    )  # fmt: skip
    out = io.StringIO()
    Console(file=out, width=width).print(run_list.table([run], ["ids", "upr"], width=width))
    line = out.getvalue().splitlines()[1]
    for told in ("xxxx… ", " debate ", "How many", " ungraded ", " 12 ", " 120 ", " 0.250 ", " 0.500"):
        assert told in line
    assert run_list.csv_text(Runs((run,), 1, ())).splitlines()[1].startswith("x" * 3000)


def test_stdout_is_data_and_stderr_tells_what_is_not_shown(run: Run, file: Path):
    added(file, run, native("t1"), native("t2"))
    told = run("store", "list", "--limit", 1)
    assert len(told.out.splitlines()) == 2
    assert told.err == "1 of 2 runs: --limit N shows more\n"
    told = run("store", "list", "--search", "nowhere at all")
    assert (told.code, told.out, told.err) == (0, "", "no such run\n")


@pytest.mark.parametrize("form", ["table", "json", "jsonl", "csv"])
def test_every_form_masks_keys_and_goes_to_a_file(run: Run, file: Path, form: str):
    with Store(file, keep_secrets=True) as store:
        from counterpoint.trace import Step, Trace

        store.add_traces([Trace("t1", (Step("s", KEY, KEY),), task=KEY, system=KEY)], origin=KEY)
    out = file.parent / "out"
    assert run("store", "list", "--format", form, "-o", out).out == ""
    assert KEY not in out.read_text()
    assert "[secret:" in out.read_text()
    if form != "table":  # where it would be cut
        assert KEY in run("store", "list", "--format", form, "--keep-secrets").out


def test_csv_cells_are_no_formulas_and_terminals_are_not_steered(run: Run, file: Path):
    wild = "=cmd|' /C calc'!A1\x1b[31m\u202e"
    added(file, run, native(wild, system=wild, task=wild))
    with Store(file) as store:
        score_run(store, store.runs().rows[0].id, metrics=["upr", "steps"])
    (row,) = csv.DictReader(io.StringIO(run("store", "list", "--format", "csv").out))
    for name in ("id", "system", "task"):
        assert row[name].startswith("'=cmd")
    assert float(row["values.upr"]) >= 0
    assert (row["steps"], row["values.steps"]) == ("2", "2.0")
    told = run("store", "list").out
    assert "\x1b" not in told
    assert "\u202e" not in told


def test_jsonl_has_a_run_a_line(run: Run, file: Path):
    added(file, run, native("t1"), native("t2"))
    told = run("store", "list", "--format", "jsonl")
    assert [json.loads(line)["id"] for line in told.out.splitlines()] == ["t2", "t1"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--where", "upr>"], "expected a number"),
        (["--state", "done"], "state 'done' is none of receiving, waiting, scored, unreadable"),
        (["--order", "nothing"], ""),
        (["--format", "xml"], "--format 'xml' is none of"),
    ],
)
def test_a_filter_without_meaning_is_bad_usage(
    run: Run, file: Path, desk: str, words: list[str], message: str
):
    told = run("store", "list", *words)
    assert (told.code, told.out) == (2, "")
    assert message in told.err


# --- export --------------------------------------------------------------------------------------


def test_an_export_is_what_the_other_commands_read(run: Run, file: Path, desk: str):
    added(file, run, native("t1"))
    for form, name in (("native", "out.jsonl"), ("otlp", "out.binpb")):
        told = run("store", "export", desk, "--format", form, "-o", file.parent / name)
        assert (told.code, told.out) == (0, "")
        assert f"written to {file.parent / name}" in told.err
    scores = [
        json.loads(run("score", source, "-m", "upr", "-m", "steps", "--format", "json", "-q").out)
        for source in (DESK, file.parent / "out.jsonl", file.parent / "out.binpb")
    ]
    values = [[row["value"] for row in document["rows"]] for document in scores]
    assert values[0] == values[1] == values[2]
    kept = run("store", "export", desk, "--format", "scores", "-o", file.parent / "kept.json")
    assert kept.code == 0
    by_metric = {row.metric: row.value for row in read_scores(file.parent / "kept.json").rows}
    assert [by_metric["upr"], by_metric["steps"]] == values[0]


def test_without_ids_all_runs_are_exported_the_earliest_first(run: Run, file: Path, desk: str):
    added(file, run, native("t1"), native("t2"))
    told = run("store", "export")
    assert [json.loads(line)["id"] for line in told.out.splitlines()] == [desk, "t1", "t2"]
    assert told.err == "3 traces written to stdout\n"
    told = run("store", "export", "--format", "otlp", "-o", file.parent / "all.binpb")
    assert told.err.startswith("the spans of 1 runs written")


def test_scores_say_what_is_not_in_them(run: Run, file: Path, desk: str):
    added(file, run, native("t1"))
    document = json.loads(run("store", "export", "--format", "scores", "-q").out)
    assert document["schema"] == "counterpoint.scores/1"
    assert document["warnings"] == ["1 runs are not scored, or not since their last span"]
    assert {row["trace"] for row in document["rows"]} == {info["trace"] for info in document["traces"]}


def test_runs_that_cannot_be_exported_are_told(run: Run, file: Path):
    from tests.store.conftest import span, trace_id

    with Store(file) as store:
        store.add_spans([span(1)])
    added(file, run, native("t1"))
    told = run("store", "export")
    assert told.code == 2
    assert f"error: run {trace_id(1)}: " in told.err
    assert [json.loads(line)["id"] for line in told.out.splitlines()] == ["t1"]
    assert "no spans: --format native" in run("store", "export", "t1", "--format", "otlp").err
    told = run("store", "export", "t9")
    assert (told.code, told.out) == (2, "")
    assert "no run 't9'" in told.err


def test_exported_spans_are_masked_unless_secrets_are_kept(run: Run, file: Path):
    pytest.importorskip("opentelemetry.proto", reason="extra otlp is not installed")
    from tests.store.conftest import span

    with Store(file) as store:
        store.add_spans([span(1, 1, text=KEY)])
    out = file.parent / "out.binpb"
    assert run("store", "export", "--format", "otlp", "-o", out).code == 0
    assert KEY.encode() not in out.read_bytes()
    assert b"[secret:openai]" in out.read_bytes()
    run("store", "export", "--format", "otlp", "-o", out, "--keep-secrets")
    assert KEY.encode() in out.read_bytes()


def test_labels_and_attributes_named_like_secrets_are_masked_on_their_way_in_and_out(run: Run, file: Path):
    pytest.importorskip("opentelemetry.proto", reason="extra otlp is not installed")
    from tests.store.conftest import span

    made, out = file.parent / "made.jsonl", file.parent / "out.jsonl"
    made.write_text(
        '{"schema": "counterpoint.trace/1", "id": "q1", "labels": {"api_key": "hunter9secret", "seed": 1},'
        ' "steps": [{"id": "s1", "agent": "a", "text": "Four."}]}\n'
    )
    run("store", "add", made)
    attribute = b"\x4a\x1e\x0a\x0bdb.password\x12\x0f\x0a\x0dhunter9secret"
    one = span(1)
    with Store(file) as store:
        store.add_spans([one._replace(payload=one.payload + attribute)])
    assert run("convert", made, "-o", file.parent / "converted.jsonl").code == 0
    assert run("store", "export", "--format", "native", "-o", out, "q1").code == 0
    assert "hunter9secret" not in out.read_text() + (file.parent / "converted.jsonl").read_text()
    assert '"api_key":"[secret:api-key]","seed":1' in out.read_text()
    run("store", "export", "--format", "otlp", "-o", out)
    assert b"hunter9secret" not in out.read_bytes()
    assert b"[secret:password]" in out.read_bytes()


# --- prune and verify ----------------------------------------------------------------------------


@pytest.fixture
def old(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs, one of them 40 days old."""
    from tests.store.conftest import span

    with Store(file) as store:
        with monkeypatch.context() as patch:
            now = time.time()
            patch.setattr(receiving.time, "time", lambda: now - 40 * 86400)
            store.add_spans([span(1), span(1, 2)])
        store.add_spans([span(2)])


@pytest.mark.usefixtures("old")
def test_old_runs_are_pruned_when_that_is_confirmed(run: Run):
    told = run("store", "prune", "--older-than", "30d", "--dry-run")
    assert (told.code, told.err) == (0, "would delete 1 of 2 runs with 2 spans\n")
    told = run("store", "prune", "--older-than", "30d")
    assert told.code == 2
    assert "this would delete 1 of 2 runs with 2 spans: add --yes" in told.err
    assert len(runs(run)) == 2
    told = run("store", "prune", "--older-than", "4w", "--yes")
    assert (told.code, told.out) == (0, "")
    assert told.err.startswith("deleted 1 runs, 2 spans; ")
    assert run("store", "prune", "--older-than", "30d", "--yes").err == "nothing to delete\n"
    assert run("store", "prune", "--keep", 0, "-y", "-q").err == ""
    assert runs(run) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "one of --older-than AGE and --keep N"),
        (["--keep", "1", "--older-than", "1d"], "one of --older-than AGE and --keep N"),
        (["--older-than", "soon"], "'soon' is no age: write 30d"),
        (["--older-than", "30"], "'30' is no age"),
        (["--older-than", "-1d"], ""),
    ],
)
@pytest.mark.usefixtures("old")
def test_what_to_prune_has_to_be_said(run: Run, words: list[str], message: str):
    told = run("store", "prune", *words, "--yes")
    assert told.code == 2
    assert message in told.err
    assert len(runs(run)) == 2


def test_a_sound_store_is_verified_and_a_damaged_one_is_told(run: Run, file: Path, desk: str):
    told = run("store", "verify")
    assert (told.code, told.out, told.err) == (0, "", "nothing is wrong: 1 runs\n")
    database = sqlite3.connect(file, isolation_level=None)
    database.execute("DELETE FROM traces")
    database.close()
    told = run("store", "verify")
    assert (told.code, told.err) == (2, "")
    assert told.out == f"scores without their trace: {desk}\n"


@pytest.mark.parametrize("verb", ["list", "export", "verify", "prune --keep 1"])
def test_a_store_that_is_not_there_is_told_and_not_made(run: Run, file: Path, verb: str):
    told = run("store", *verb.split())
    assert told.code == 2
    assert told.err.startswith(f"counterpoint: {file}: there is no store")
    assert not file.exists()


@pytest.mark.parametrize("verb", ["list", "export", "verify", "prune --keep 1", "add"])
def test_a_file_that_is_no_store_is_told(run: Run, file: Path, traces: Path, verb: str):
    file.write_text("hello" * 500)
    told = run("store", *verb.split(), *([traces] if verb == "add" else []))
    assert (told.code, told.out) == (2, "")
    assert "is no database of counterpoint" in told.err
    assert len(told.err.splitlines()) == 1


def test_another_file_is_named_by_an_option(run: Run, file: Path, traces: Path):
    other = file.parent / "other" / "x.db"
    assert run("store", "add", traces, "--store", other).code == 0
    assert len(runs(run, "--store", other)) == 2
    assert not file.exists()
    assert os.environ["COUNTERPOINT_STORE"] == str(file)
