"""`read` finds files and formats, names traces, streams, and keeps what it cannot read."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from counterpoint.adapters import Reading, read
from counterpoint.errors import TraceError, UsageError
from counterpoint.trace import task_id

CHAT = [{"role": "user", "content": "Why?"}, {"role": "assistant", "name": "sage", "content": "Because."}]


def native(*ids: str) -> str:
    step = {"id": "s", "agent": "a", "text": "hi"}
    return "".join(json.dumps({"id": name, "steps": [step]}) + "\n" for name in ids)


def quietly(path: Any, **how: Any) -> Reading:
    return read(path, on_error=lambda error: None, **how)


def ids_and_errors(path: Any, **how: Any) -> tuple[list[str], list[str]]:
    reading = quietly(path, **how)
    return [trace.id for trace in reading], [str(error) for error in reading.errors]


# --- which files --------------------------------------------------------------------------------


def test_a_folder_is_searched_in_order_without_hidden_files(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a/z.jsonl", "a/.hidden.jsonl", ".git/x.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(native(name))
    assert ids_and_errors(tmp_path) == (["a/z.jsonl", "b.jsonl"], [])


def test_a_file_of_a_folder_that_is_no_trace_is_passed_over_with_a_note(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Nothing to see.")
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "good.jsonl").write_text(native("1"))
    reading = read(tmp_path)
    assert [trace.id for trace in reading] == ["1"]
    assert reading.errors == []
    assert reading.notes == [
        f"{tmp_path}/empty.json: skipped: empty",
        f"{tmp_path}/notes.txt: skipped: no trace format is recognized",
    ]


@pytest.mark.parametrize(
    "content",
    [
        '{\n  "schema": "counterpoint.run/1"}',
        '{\n  "schema": "counterpoint.scores/1"}',
        '{"event":"started","at":1.5}\n{"event":"call"}',
    ],
)
def test_what_stands_beside_the_traces_of_a_run_is_passed_over_in_silence(tmp_path: Path, content) -> None:
    (tmp_path / "beside.json").write_text(content)
    (tmp_path / "traces.jsonl").write_text(native("1"))
    reading = read(tmp_path)
    assert [trace.id for trace in reading] == ["1"]
    assert (reading.errors, reading.notes) == ([], [])
    with pytest.warns(UserWarning, match="of no known trace format"):
        list(read(tmp_path / "beside.json"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b" \n", "the file is empty"),
        (b"Nothing to see.", "is of no known trace format: counterpoint list adapters names them"),
        (b"\x89PNG\r\n\x1a\n\0\0", "is a binary file"),
        ("[1]".encode("utf-16"), "is UTF-16 text: save it as UTF-8"),
        (b'{"a": 1', "is JSON, but of no known trace format, or cut off"),
    ],
)
def test_a_named_file_that_is_no_trace_is_an_error(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(TraceError, match=message) as caught:
        list(read(file, on_error="raise"))
    assert caught.value.source == str(file)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing", "missing: no such file or folder"),
        ("*.none", r"\*.none: no file matches"),
        ("hollow", "hollow: the folder is empty"),
        ("barren", "barren: no trace found in any of 2 files"),
    ],
)
def test_a_path_without_any_trace_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hollow").mkdir()
    Path("barren").mkdir()
    for name in ("one.txt", "two.txt"):
        Path("barren", name).write_text("no")
    with pytest.raises(TraceError, match=message):
        list(read(path, on_error="raise"))


def test_a_glob_names_files_from_its_first_wildcard_on(tmp_path: Path) -> None:
    for run in ("one", "two"):
        (tmp_path / run).mkdir()
        (tmp_path / run / "out.json").write_text(json.dumps(CHAT))
    expected = (["one/out.json", "two/out.json"], [])
    assert ids_and_errors(f"{tmp_path}/*/out.json") == expected
    assert ids_and_errors(f"{tmp_path}/**/*.json") == expected
    assert ids_and_errors(f"{tmp_path}/*") == expected


def test_links_that_lead_back_are_followed_no_further(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "one.jsonl").write_text(native("1"))
    (tmp_path / "runs" / "again").symlink_to(tmp_path / "runs", target_is_directory=True)
    (tmp_path / "runs" / "gone").symlink_to(tmp_path / "nowhere")
    ids, errors = ids_and_errors(tmp_path / "runs")
    assert ids == ["1"]
    assert errors == [f"{tmp_path}/runs/gone: could not be read: No such file or directory"]


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_text(native("1"))
    (tmp_path / "locked.jsonl").write_text(native("2"))
    (tmp_path / "locked.jsonl").chmod(0)
    assert ids_and_errors(tmp_path) == (
        ["1"],
        [f"{tmp_path}/locked.jsonl: could not be read: Permission denied"],
    )


def test_standard_input_and_pipes_are_read_like_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stdin:
        buffer = io.BytesIO(gzip.compress(json.dumps(CHAT).encode()))

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert ids_and_errors("-") == (["stdin"], [])
    reading, writing = os.pipe()
    os.write(writing, native("1", "2").encode())
    os.close(writing)
    assert ids_and_errors(f"/dev/fd/{reading}") == (["1", "2"], [])


# --- ids, systems, tasks --------------------------------------------------------------------------


def test_records_are_numbered_where_a_file_holds_several(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(CHAT))
    (tmp_path / "three.jsonl").write_text(f"{json.dumps(CHAT)}\n[{{\n{json.dumps(CHAT)}\n")
    assert ids_and_errors(tmp_path) == (
        ["one.json", "three.jsonl#1", "three.jsonl#3"],
        [f"{tmp_path}/three.jsonl: record 2: not valid JSON: it is cut off: export it again"],
    )


def test_files_of_one_name_take_the_argument_before_it(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "run.json").write_text(json.dumps(CHAT))
    (tmp_path / "b" / "other.json").write_text(json.dumps(CHAT))
    ids, _ = ids_and_errors([tmp_path / "a", tmp_path / "b"])
    assert ids == [f"{tmp_path}/a/run.json", "other.json", f"{tmp_path}/b/run.json"]


def test_a_native_id_that_two_arguments_have_takes_the_argument_before_it(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text(native("x"))
    ids, _ = ids_and_errors([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    assert ids == ["x", f"{tmp_path}/b.jsonl:x"]


def test_native_ids_stay_but_never_stand_twice(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(native("x", "x"))
    first, second = read(tmp_path)
    assert (first.id, first.warnings) == ("x", ())
    assert (second.id, second.warnings) == (
        "x~2",
        ("trace id 'x' stands twice: this one is now 'x~2'",),
    )


def test_the_system_can_be_named_and_the_format_is_a_label(tmp_path: Path) -> None:
    (tmp_path / "chat.json").write_text(json.dumps(CHAT))
    (default,) = read(tmp_path)
    (named,) = read(tmp_path, system="mine")
    assert (default.system, default.source, default.labels) == ("chat", "chat", {"format": "chat"})
    assert named.system == "mine"
    assert task_id(named) == task_id(default)


def test_agents_are_excluded_and_renamed(tmp_path: Path) -> None:
    steps = [{"id": agent, "agent": agent, "text": "hi"} for agent in "abc"]
    (tmp_path / "x.jsonl").write_text(json.dumps({"id": "x", "steps": steps}))
    (trace,) = read(tmp_path, exclude_agents=["b"], rename_agents={"c": "a"})
    assert [step.agent for step in trace.steps] == ["a", "a"]


# --- formats --------------------------------------------------------------------------------------


def test_the_content_tells_the_format_and_gzip_not_the_name(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(native("1", "2"))
    (tmp_path / "b.jsonl").write_text(json.dumps(json.loads(native("3")), indent=2))
    (tmp_path / "c").write_bytes(gzip.compress(native("4").encode()))
    (tmp_path / "d.jsonl").write_bytes(b"\xef\xbb\xbf" + native("5").encode())
    (tmp_path / "e.json").write_text(json.dumps([json.loads(native("6")), json.loads(native("7"))]))
    reading = read(tmp_path)
    assert [trace.id for trace in reading] == ["1", "2", "3", "4", "5", "6", "7"]
    assert set(reading.detected.values()) == {"native"}
    assert reading.detected[f"{tmp_path}/c"] == "native"


def test_a_document_longer_than_the_head_is_recognized(tmp_path: Path) -> None:
    long = {"id": "1", "task": "x" * 100, "steps": [{"id": "s", "agent": "a", "text": "x" * 200_000}] * 2}
    who = {"history": [{"content": 'a "quoted", {bracketed [text' * 9000, "role": "human"}] * 2}
    who |= {"question": "?", "mistake_agent": "x", "mistake_step": "1"}
    (tmp_path / "a.jsonl").write_text(json.dumps(long))
    (tmp_path / "b.json").write_text(json.dumps(long, indent=1))
    (tmp_path / "c.json").write_text(json.dumps(who))
    reading = read(tmp_path)
    assert len(list(reading)) == 3
    assert list(reading.detected.values()) == ["native", "native", "who_and_when"]


def test_a_format_of_the_users_own_is_taken_at_their_word(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps(CHAT))
    with pytest.raises(TraceError, match="record 1: a Who&When run has no"):
        list(read(tmp_path / "x.json", format="who_and_when", on_error="raise"))
    with pytest.raises(UsageError, match="did you mean 'who_and_when'"):
        read(tmp_path, format="who_when")


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "errors"),
    [
        (
            native("1") + '{"id": "2", "steps": [{"id"',
            ["record 2: not valid JSON: it is cut off: export it again"],
        ),
        (native("1") + "oops\n", ["record 2: not valid JSON: invalid character (byte 0)"]),
        (native("1") + "[" * 100_000 + "\n", ["record 2: not valid JSON: nested too deeply"]),
        (native("1") + '{"id": "2"}', ['record 2: a native trace has no "steps" (found: id)']),
        (native("1") + "7", ["record 2: a trace is a JSON object, found int"]),
        (
            native("1") + '{"id": "2", "steps": [{"id": "s", "agent": "a", "content": "hi"}]}',
            ['record 2: step 1 has no "text" (found: id, agent, content). A chat list? Try --from chat'],
        ),
        ("broken\n" + native("1"), ["record 1: not valid JSON: invalid character (byte 0)"]),
        (
            '{"id": "0", "steps": [\n' + native("1"),
            ["record 1: not valid JSON: it is cut off: export it again"],
        ),
    ],
)
def test_a_broken_record_is_named_and_the_others_are_read(
    tmp_path: Path, content: str, errors: list[str]
) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(content)
    ids, found = ids_and_errors(file)
    assert ids == ["1"]
    assert [error[: len(f"{file}: {wanted}")] for error, wanted in zip(found, errors, strict=True)] == [
        f"{file}: {wanted}" for wanted in errors
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (native("1").encode("utf-16"), "the file is UTF-16 text: save it as UTF-8"),
        (b"{\0\0", "the file is binary, not JSON"),
        (b"PK\x03\x04", "the file is not JSON: it begins with 'PK\\x03\\x04'"),
        (gzip.compress(b'{\n"a":' + b" " * 99)[:-9], "could not be read: Compressed file ended before"),
        (b"\x1f\x8b\x08broken", "could not be read: "),
        (b'{"a":1}\n\n {"a":\n2}', 'record 1: a native trace has no "id"'),
        (b'{\n"a":1}\n{\n"a":2}', "record 1: not valid JSON: trailing characters"),
    ],
)
def test_a_file_of_another_kind_is_refused_in_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "x"
    file.write_bytes(content)
    _, errors = ids_and_errors(file, format="native")
    assert errors[0].startswith(f"{file}: {message}")
    assert all("\n" not in error for error in errors)


def test_text_that_is_no_unicode_is_mended_with_a_warning(tmp_path: Path) -> None:
    for name, text in {"a": b"\xff", "b": b"\\ud83d", "c": b"ok"}.items():
        gold = b"NaN" if name == "c" else b"null"
        steps = b'[{"id": "s", "agent": "a", "text": "' + text + b'"}]'
        record = b'{"id": "1", "gold": ' + gold + b', "steps": ' + steps + b"}"
        (tmp_path / f"{name}.jsonl").write_bytes(record.replace(b'"1"', f'"{name}"'.encode()))
    a, b, c = read(tmp_path)
    assert a.steps[0].text == b.steps[0].text == "\ufffd"
    assert a.warnings == ("bytes that are not UTF-8 were replaced by U+FFFD",)
    assert b.warnings == ("lone surrogates in the text were replaced by U+FFFD",)
    assert c.gold is None
    assert c.warnings == ("numbers that are not finite were read as null",)


def test_a_document_over_the_limit_is_refused_and_lines_are_not(tmp_path: Path) -> None:
    record = json.loads(native("1"))
    (tmp_path / "a.json").write_text(json.dumps(record, indent=9))
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(json.dumps(record, indent=9).encode()))
    (tmp_path / "c.jsonl").write_text(native("1", "2" * 99, "3"))
    ids, errors = ids_and_errors(tmp_path, max_bytes=80)
    assert ids == ["1", "3"]
    refused = "one JSON document of more than 80 bytes is not read"
    assert [error.partition(": write one run")[0] for error in errors] == [
        f"{tmp_path}/a.json: record 1: {refused}",
        f"{tmp_path}/b.json.gz: record 1: {refused}",
        f"{tmp_path}/c.jsonl: record 2: {refused}",
    ]


def test_lines_stream_in_memory_that_does_not_grow_with_the_file(tmp_path: Path) -> None:
    file = tmp_path / "big.jsonl"
    step = {"id": "s", "agent": "a", "text": "x" * 20_000}
    with file.open("w") as out:
        for number in range(1000):
            out.write(json.dumps({"id": str(number), "steps": [step]}) + "\n")
    tracemalloc.start()
    try:
        assert sum(1 for _ in read(file)) == 1000
        assert tracemalloc.get_traced_memory()[1] < 2_000_000 < file.stat().st_size / 9
    finally:
        tracemalloc.stop()


# --- errors ---------------------------------------------------------------------------------------


def test_errors_are_warned_of_once_raised_or_handed_over(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(native("1") + "1\n2\n")
    reading = read(file)
    with pytest.warns(UserWarning, match="record 2: a trace is a JSON object, found int") as told:
        traces = list(reading)
    assert (len(traces), len(told)) == (1, 1)
    assert [error.record for error in reading.errors] == [2, 3]
    raising = read(file, on_error="raise")
    assert next(raising).id == "1"
    with pytest.raises(TraceError, match="record 2"):
        next(raising)
    handed: list[TraceError] = []
    assert len(list(read(file, on_error=handed.append))) == 1
    assert [error.record for error in handed] == [2, 3]


def test_what_an_error_handler_raises_reaches_the_caller(tmp_path: Path) -> None:
    def stop(error: TraceError) -> None:
        raise KeyError(error.source)

    with pytest.raises(KeyError):
        list(read(tmp_path / "missing", on_error=stop))


def test_a_wrong_argument_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="on_error 'ignore'"):
        read(".", on_error="ignore")
    with pytest.raises(UsageError, match="exclude_agents is a list"):
        read(".", exclude_agents="solver")
