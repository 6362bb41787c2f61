"""`counterpoint report`, and the same page beside the table of `score`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., Any]
METRICS = ("-m", "accuracy", "-m", "upr")


def test_the_page_is_written_and_told(run: Run, traces: Path, tmp_path: Path):
    page = tmp_path / "out.html"
    told = run("report", traces, *METRICS, "-o", page)
    assert (told.code, told.out) == (0, "")
    assert f"wrote {page}" in told.err
    assert page.read_text().startswith("<!doctype html>")
    assert run("report", traces, *METRICS, "-o", page, "-q").err == ""


def test_score_prints_its_table_and_writes_the_same_page(run: Run, traces: Path, tmp_path: Path):
    plain = run("score", traces, *METRICS).out
    told = run("score", traces, *METRICS, "--html", tmp_path / "a.html")
    run("report", traces, *METRICS, "-o", tmp_path / "b.html")
    assert told.out == plain
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert run("score", traces, *METRICS, "--html", tmp_path / "c.html", "--workers", "2").code == 0


def test_a_page_is_written_although_a_file_could_not_be_read(run: Run, traces: Path, tmp_path: Path):
    (tmp_path / "bad.jsonl").write_text('{"id": 1')
    told = run("report", traces, tmp_path / "bad.jsonl", *METRICS, "-o", tmp_path / "out.html")
    assert told.code == 2
    assert (tmp_path / "out.html").exists()
