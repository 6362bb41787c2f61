"""Inspect: zips in any packing, damaged members, and what the scores say."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from counterpoint.adapters import read
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

GOLDEN = Path(__file__).parents[1] / "golden" / "inspect"
REPLY = {"choices": [{"message": {"role": "assistant", "content": "four"}}], "usage": {"input_tokens": 3}}


def sample(id: Any = 1, **more: Any) -> dict[str, Any]:
    """2+2, asked of a solver that makes one model call."""
    call = {"event": "model", "timestamp": "2026-03-01T10:00:00Z", "input": [], "output": REPLY}
    return {"id": id, "epoch": 1, "input": "2+2?", "target": "4", "events": [call]} | more


def log(*samples: dict[str, Any]) -> dict[str, Any]:
    return {"version": 2, "status": "success", "eval": {"task": "sums"}, "samples": list(samples)}


def everything(file: Path) -> tuple[list[Trace], list[str]]:
    """All that is read, and all that could not be."""
    errors: list[TraceError] = []
    traces = list(read(file, on_error=errors.append))
    return traces, [str(error) for error in errors]


def zipped(file: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("header.json", json.dumps(log()))
        for name, content in members.items():
            archive.writestr(f"samples/{name}.json", content)
    return file


def test_a_broken_sample_is_an_error_and_the_others_are_read(tmp_path: Path) -> None:
    good = json.dumps(sample()).encode()
    file = zipped(tmp_path / "run.eval", a=good, b=good[:-9], c=b"[]", d=good)
    traces, errors = everything(file)
    assert [trace.id for trace in traces] == ["run.eval#1", "run.eval#4"]
    assert ["record 2: samples/b.json" in errors[0], "record 3: not a sample" in errors[1]] == [True, True]


def test_a_damaged_zstd_member_is_an_error(tmp_path: Path) -> None:
    content = bytearray((GOLDEN / "zstandard.eval").read_bytes())
    info = zipfile.ZipFile(GOLDEN / "zstandard.eval").getinfo("samples/z1_epoch_1.json")
    content[info.header_offset + 80] ^= 255
    (tmp_path / "run.eval").write_bytes(content)
    traces, (error,) = everything(tmp_path / "run.eval")
    assert traces == []
    assert "run.eval: record 1: samples/z1_epoch_1.json: its" in error
    assert "damaged" in error


def test_a_zstd_member_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("compression", "backports", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    _, (error,) = everything(GOLDEN / "zstandard.eval")
    assert "pip install 'counterpoint[zstd]'" in error


def test_a_member_over_the_limit_is_not_unpacked(tmp_path: Path) -> None:
    errors: list[TraceError] = []
    file = zipped(tmp_path / "run.eval", a=b" " * 2000)
    assert list(read(file, on_error=errors.append, max_bytes=1000)) == []
    assert "raise --max-bytes" in str(errors[0])


@pytest.mark.parametrize(
    ("value", "correct"),
    [("C", True), ("I", False), (1, True), (0.0, False), (True, True), ("P", None), (0.5, None), ([1], None)],
)
def test_the_first_score_says_whether_the_run_was_right(
    tmp_path: Path, value: Any, correct: bool | None
) -> None:
    scored = sample(scores={"match": {"value": value, "answer": "four"}, "style": {"value": "C"}})
    (tmp_path / "log.json").write_text(json.dumps(log(scored)))
    (trace,) = read(tmp_path, on_error="raise")
    assert (trace.correct, trace.answer, trace.gold, trace.benchmark) == (correct, "four", "4", "sums")
    assert trace.labels["task_id"] == "sums/1"


def test_of_several_right_answers_the_first_is_gold_and_all_are_kept(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(json.dumps(log(sample(target=["4", "four"]))))
    (trace,) = read(tmp_path, on_error="raise")
    assert (trace.gold, trace.labels["targets"]) == ("4", ["4", "four"])
