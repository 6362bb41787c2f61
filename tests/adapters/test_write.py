"""What `write` wrote, `read` reads back as it was; a file is there whole or not at all."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from counterpoint.adapters import _writing, read, write
from counterpoint.errors import UsageError
from counterpoint.trace import Call, Step, Trace, Transfer, Usage, tidy

FULL = Step(
    "b",
    "critic",
    "Agreed — ✈ 4.",
    kind="decision",
    role="judge",
    prompt="Say whether 2+2=4.",
    round=3,
    heard=(Transfer("a", "across", "context"),),
    calls=(Call("c", "add", '{"a": 2}', "4", None, 1.5, 2.5), Call("d", "fail", "", None, "no")),
    answer="4",
    started_at=1.5,
    ended_at=2.5,
    usage=Usage(3, 4, 1, 0, 0.25, "small"),
    error="late",
)
TRACES = [
    Trace("empty", ()),
    tidy(Trace("bare", (Step("a", "solver", ""), Step("b", "solver", "4", usage=Usage())))),
    tidy(
        Trace(
            "full",
            (Step("a", "solver", "4"), FULL),
            task="2+2?",
            gold="4",
            answer="4",
            correct=True,
            benchmark="sums",
            system="pair",
            source="here",
            labels={"seed": 7, "models": ["small", None], "nested": {"a": {"b": None}}, "score": 0.5},
            warnings=("a warning",),
        )
    ),
]


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz", "out.parquet"])
def test_a_round_trip_changes_nothing(tmp_path: Path, name: str) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="extra parquet is not installed")
    assert write(TRACES, tmp_path / name) == len(TRACES)
    reading = read(tmp_path / name, on_error="raise")
    assert list(reading) == TRACES
    assert list(reading.detected.values()) == ["native"]
    first = (tmp_path / name).read_bytes()
    write(TRACES, tmp_path / name)
    assert (tmp_path / name).read_bytes() == first


def test_a_single_trace_and_standard_output_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdout:
        buffer = io.BytesIO()

    monkeypatch.setattr(sys, "stdout", Stdout)
    assert write(TRACES[0], "-") == 1
    assert json.loads(Stdout.buffer.getvalue())["id"] == "empty"


def test_a_file_may_be_read_while_it_is_written_anew(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    write(TRACES, file)
    assert write(read(file, system="other"), file) == 3
    assert {trace.system for trace in read(file)} == {"other"}


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    def broken() -> Iterator[Trace]:
        yield TRACES[0]
        raise KeyboardInterrupt

    file = tmp_path / "x.jsonl"
    write(TRACES, file)
    before = file.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        write(broken(), file)
    assert file.read_bytes() == before
    assert os.listdir(tmp_path) == ["x.jsonl"]


def test_a_link_stays_a_link_and_a_device_a_device(tmp_path: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "target.jsonl")
    write(TRACES, tmp_path / "link.jsonl")
    assert (tmp_path / "link.jsonl").is_symlink()
    assert len(list(read(tmp_path / "target.jsonl"))) == 3
    assert write(TRACES, os.devnull) == 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x.json", r"x\.json: traces are written to \.jsonl, \.jsonl\.gz or \.parquet, or to - \(stdout\)"),
        ("missing/x.jsonl", r"missing/x\.jsonl: cannot be written: No such file or directory"),
    ],
)
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        write(TRACES, tmp_path / name)


def test_secrets_are_masked_unless_they_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handed = []
    monkeypatch.setattr(
        _writing, "encode", lambda trace, *, keep_secrets: handed.append(keep_secrets) or b"{}"
    )
    write(TRACES[:1], tmp_path / "x.jsonl")
    write(TRACES[:1], tmp_path / "x.jsonl.gz", keep_secrets=True)
    assert handed == [False, True]
