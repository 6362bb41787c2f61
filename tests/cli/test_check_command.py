from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import lines, native


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--fail-on", "steps>5"], 0, "passed: steps>5: 2 over 1 traces"),
        (["--fail-on", "steps>1"], 1, "failed: steps>1: 2 over 1 traces"),
        (
            ["--fail-on", "ids>2, wall_time_s>1", "--embedder", "hashing"],
            3,
            "not evaluable: wall_time_s>1: no times",
        ),
        (["--fail-on", "stepz>1"], 2, ""),
        (["--fail-on", "steps>"], 2, ""),
        ([], 2, ""),
        (["--baseline", "nowhere.json"], 2, ""),
    ],
)
def test_the_command_line_has_four_exit_codes(
    run: Callable[..., Any],
    tmp_path: Path,
    words: list[str],
    code: int,
    told: str,
):
    path = tmp_path / "t.jsonl"
    path.write_text(lines(native()))
    done = run("check", path, *words)
    assert done.code == code
    assert told in done.out
    if code == 2:
        assert done.err.startswith("counterpoint: ")


def test_an_unreadable_record_is_exit_code_2(run: Callable[..., Any], tmp_path: Path):
    path = tmp_path / "t.jsonl"
    path.write_text(lines(native(), "{broken\n"))
    assert run("check", path, "--fail-on", "steps>5").code == 2


def test_a_baseline_with_nan_is_refused(run: Callable[..., Any], tmp_path: Path):
    path, earlier = tmp_path / "t.jsonl", tmp_path / "b.json"
    path.write_text(lines(native()))
    run("score", path, "-m", "steps", "--format", "json", "-o", earlier)
    earlier.write_text(earlier.read_text().replace('"value": 2.0', '"value": NaN'))
    done = run("check", path, "--baseline", earlier)
    assert done.code == 2
    assert "b.json: not scores: numbers that are not finite" in done.err
