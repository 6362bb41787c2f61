import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from counterpoint.cli import main


class Told(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Told]:
    """The command line in this process: exit code, stdout, stderr."""

    def call(*words: object) -> Told:
        monkeypatch.setattr(sys, "argv", ["counterpoint", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        out, err = capsys.readouterr()
        return Told(code, out, err)

    return call


def native(name: str = "t", **fields: Any) -> dict[str, Any]:
    """A trace of two agents, both right."""
    steps = [
        {"id": "a", "agent": "A", "text": "The answer is 7."},
        {"id": "b", "agent": "B", "text": "Checked by adding: the answer is 7.", "heard": ["a"]},
    ]
    return {"id": name, "task": "3+4?", "gold": "7", "system": "s", "steps": steps, **fields}


def lines(*records: Any) -> str:
    return "".join(record if isinstance(record, str) else json.dumps(record) + "\n" for record in records)


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """A file of two traces."""
    path = tmp_path / "traces.jsonl"
    path.write_text(lines(native("t1"), native("t2", gold=None)))
    return path
