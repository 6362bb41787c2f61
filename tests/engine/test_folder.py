"""A run folder that somebody else has been in: what is wrong is named, and nothing is written over."""

from __future__ import annotations

from pathlib import Path

import pytest

from counterpoint.engine.folder import RunFolder
from counterpoint.errors import UsageError
from counterpoint.runtime.play import TimedReply
from counterpoint.trace import Trace, encode

CONFIG = {"system": "single", "model": {"model": "m"}}
WORDS = TimedReply("The answer is 7.", 10, 5, "m")


def opened(path: Path, *, resume: bool = True) -> RunFolder:
    return RunFolder(path, CONFIG, resume=resume)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One reply and one trace."""
    run = opened(tmp_path, resume=False)
    run.add_reply("job", "call", WORDS)
    run.add_trace(Trace("mine", ()))
    run.close()
    return tmp_path


def test_what_was_kept_is_there_again(folder):
    run = opened(folder)
    assert run.replies == {("job", "call"): WORDS}
    assert [trace.id for trace in run.traces()] == ["mine"]
    run.close()


@pytest.mark.parametrize(
    ("file", "line", "told"),
    [
        (
            "log.jsonl",
            '{"event": "call", "job": "j", "call": "c"}',
            "log.jsonl: line 3 is no reply",
        ),
        ("log.jsonl", '{"event": "call", "job": "j", "call": "c", "reply": {"text": 7}}', "is no reply"),
        ("log.jsonl", "nonsense", "line 3 is no JSON object"),
        ("traces.jsonl", "{}", 'a native trace has no "id"'),
    ],
)
def test_a_line_that_is_none_of_ours_is_named_and_left_alone(folder, file, line, told):
    with (folder / file).open("a") as log:
        log.write(line + "\n")
    before = (folder / file).read_bytes()
    with pytest.raises(UsageError, match=told):
        opened(folder).traces()
    assert (folder / file).read_bytes().startswith(before)


@pytest.mark.parametrize("content", ["[]", "nonsense", ""])
def test_a_config_that_is_none_is_named_and_left_alone(folder, content):
    (folder / "config.json").write_text(content)
    with pytest.raises(UsageError, match="could not be read, so the run cannot go on"):
        opened(folder)
    assert (folder / "config.json").read_text() == content


def test_a_reply_with_fields_of_a_later_version_is_still_a_reply(folder):
    log = folder / "log.jsonl"
    log.write_text(log.read_text().replace('"reply":{', '"reply":{"mood":"good",'))
    run = opened(folder)
    assert run.replies == {("job", "call"): WORDS}
    run.close()


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("name", ["traces.jsonl", "scores.json"])
def test_files_of_something_else_are_not_written_over(tmp_path, name, resume):
    mine = encode(Trace("mine", ())) + b"\n"
    (tmp_path / name).write_bytes(mine)
    with pytest.raises(UsageError, match=f"{name} of something else"):
        opened(tmp_path, resume=resume)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == mine


@pytest.mark.parametrize("resume", [False, True])
def test_a_run_that_was_killed_before_its_first_line_can_be_started(tmp_path, resume):
    for name in ("log.jsonl", "traces.jsonl"):
        (tmp_path / name).touch()
    opened(tmp_path, resume=resume).close()
    assert (tmp_path / "config.json").exists()


@pytest.mark.parametrize(
    ("file", "remedy"),
    [
        ("log.jsonl", "delete that line"),
        ("traces.jsonl", "delete this file \\(--resume makes it anew from log.jsonl\\)"),
    ],
)
def test_whoever_finds_a_bad_line_is_told_what_to_do(folder, file, remedy):
    with (folder / file).open("a") as log:
        log.write("nonsense\n")
    with pytest.raises(UsageError, match=remedy):
        opened(folder).traces()
