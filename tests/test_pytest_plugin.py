import json
import subprocess
import sys
from pathlib import Path

import pytest

TRACES = """
from counterpoint import Step, Trace, Transfer

def team(name, answer):
    steps = (
        Step("a", "A", f"The answer is {answer}."),
        Step("b", "B", f"Sure: the answer is {answer}.", heard=(Transfer("a"),)),
    )
    return Trace(name, steps, task="3+4?", gold="7")
"""

SESSION = (
    TRACES
    + """
import pytest

def test_good(counterpoint):
    result = counterpoint.check([team("t", 7)], require="upr<=0.4, accuracy>=1")
    assert result.passed

def test_bad(counterpoint):
    counterpoint.check([team("t1", 8), team("t2", 7), team("t3", 8)], require="upr<=0.4")

def test_nobody_can_tell(counterpoint):
    counterpoint.check([team("t", "none")], require="upr<=0.4")

@pytest.mark.counterpoint(require="steps<=2", profile="strict")
def test_marked(counterpoint):
    counterpoint.check([team("t", 7)])
"""
)


def session(folder: Path, content: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_team.py").write_text(content)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [(), ("-n", "2")])
def test_checks_pass_fail_and_are_reported_with_and_without_workers(tmp_path: Path, words: tuple[str, ...]):
    if words:
        pytest.importorskip("xdist")
    done = session(tmp_path, SESSION, "--counterpoint-report", "report.json", *words)
    assert "2 failed, 2 passed" in done.stdout
    assert "failed: upr<=0.4: 0.6667 over 3 traces" in done.stdout
    assert "worst: t1 (1), t3 (1), t2 (0)" in done.stdout
    assert "not evaluable: upr<=0.4: no step commits to an answer" in done.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert [(entry["outcome"], entry["exit_code"]) for entry in report["checks"]] == [
        ("failed", 1), ("passed", 0), ("passed", 0), ("failed", 3),
    ]  # fmt: skip


def test_it_is_silent_and_imports_nothing_where_it_is_not_used(tmp_path: Path):
    content = (
        "import sys\ndef test_it(): assert 'numpy' not in sys.modules and 'msgspec' not in sys.modules\n"
    )
    done = session(tmp_path, content)
    assert done.returncode == 0
    assert "counterpoint" not in done.stdout
