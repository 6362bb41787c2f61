"""What was mended while a file was read is told by every trace that came of it."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest

from counterpoint import adapters
from counterpoint.adapters import read
from counterpoint.trace import Trace, encode

GOLDEN = Path(__file__).parents[1] / "golden"
SURROGATE = "lone surrogates in the text were replaced by U+FFFD"
BYTE = "bytes that are not UTF-8 were replaced by U+FFFD"

NO_TEXT = {".parquet", ".binpb"}
"""Forms that are neither JSON nor a log: nothing in them is mended."""
PACKED = {"zstandard.eval"}
"""In a packing that `zipfile` does not know; its members are like those of old_steps.eval."""
FIXTURES = sorted(
    file
    for name in adapters.TABLE
    for file in (GOLDEN / name).glob("*")
    if not file.name.endswith(".golden.jsonl") and file.suffix not in NO_TEXT and file.name not in PACKED
)

SPOTS = {
    "agentrx/ferry.json": b'"content": "',
    "dylan/debate.json": b'"content": "',
    "dylan/rivers_test_1.json": b'["',
}
"""Where a text begins, in fixtures that have no objects, or none that may have another key."""


def broken(document: bytes, spot: bytes | None = None) -> bytes:
    """The document with a lone surrogate in its first object, or at the spot."""
    if spot is not None:
        return document.replace(spot, spot + rb"\ud800", 1)
    return document.replace(b"{", rb'{"unknown": "\ud800", ', 1)


def damage(file: Path, target: Path) -> str:
    """Writes the fixture to ``target`` with something to mend in every document; what is to be told of it."""
    if file.suffix == ".log":
        target.write_bytes(re.sub(rb"(?=bridges|clock)", b"\xff", file.read_bytes(), count=1))
        return BYTE
    if zipfile.is_zipfile(file):
        repack(file, target, "samples/")
        return SURROGATE
    content = file.read_bytes()
    lines = content.splitlines()
    documents = lines if is_json(lines[0]) else [content]
    spot = SPOTS.get(f"{file.parent.name}/{file.name}")
    target.write_bytes(b"\n".join(broken(document, spot) for document in documents))
    return SURROGATE


def repack(file: Path, target: Path, damaged: str) -> None:
    """Writes a zip anew, with something to mend in the members whose names begin so."""
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(target, "w") as copy:
        for name in source.namelist():
            text = source.read(name)
            copy.writestr(name, broken(text) if name.startswith(damaged) else text)


def is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def told(traces: list[Trace], warning: str) -> list[int]:
    """How often each trace tells it."""
    return [trace.warnings.count(warning) for trace in traces]


@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_every_trace_of_a_mended_file_says_so_once(file: Path, tmp_path: Path) -> None:
    warning = damage(file, tmp_path / file.name)
    traces = list(read(tmp_path / file.name, on_error="raise"))
    golden = list(read(file))
    assert told(golden, warning) == [0] * len(golden)
    assert told(traces, warning) == [1] * len(golden)


@pytest.mark.parametrize(
    "name",
    [
        "agno/runs.jsonl",
        "chat/conversations.jsonl",
        "google_adk/sessions.jsonl",
        "marble/chain_and_tree.jsonl",
        "native/two_teams.jsonl",
        "pydantic_ai/lines.jsonl",
    ],
)
def test_a_line_that_is_a_run_tells_of_itself_alone(name: str, tmp_path: Path) -> None:
    first, second = (GOLDEN / name).read_bytes().splitlines()
    file = tmp_path / "two.jsonl"
    file.write_bytes(first + b"\n" + broken(second))
    assert told(list(read(file, on_error="raise")), SURROGATE) == [0, 1]


def test_a_mended_header_of_an_evaluation_is_told_by_every_sample(tmp_path: Path) -> None:
    repack(GOLDEN / "inspect" / "old_steps.eval", tmp_path / "run.eval", "_journal/")
    traces = list(read(tmp_path / "run.eval", on_error="raise"))
    assert traces
    assert told(traces, SURROGATE) == [1] * len(traces)


def test_spans_printed_one_after_the_other_hold_nothing_that_json_cannot(tmp_path: Path) -> None:
    printed = (GOLDEN / "otel_sdk" / "graph.json").read_bytes()
    text = b"old lighthouse"
    assert text in printed
    file = tmp_path / "printed.json"
    file.write_bytes(printed.replace(text, rb"old \ud800lighth\u00f6use" + b"\xff"))
    (trace,) = read(file, on_error="raise")
    assert {SURROGATE, BYTE} <= set(trace.warnings)
    encode(trace)


@pytest.mark.parametrize("both", [False, True])
def test_a_mended_log_beside_a_path_is_told_by_the_path_once(both: bool, tmp_path: Path) -> None:
    path, log = ((GOLDEN / "puppeteer" / f"bridges.{end}").read_bytes() for end in ("jsonl", "log"))
    (tmp_path / "path_0.jsonl").write_bytes(broken(path) if both else path)
    (tmp_path / "path0.log").write_bytes(log.replace(b"'Question': \"", rb"""'Question': "\ud800"""))
    (trace,) = read(tmp_path / "path_0.jsonl", on_error="raise")
    assert trace.task.startswith("\ufffd")
    assert told([trace], SURROGATE) == [1]
