import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = shlex.split(command)
    assert words[0] == "counterpoint"
    whole = [sys.executable, "-m", "counterpoint", *words[1:]]
    return subprocess.run(whole, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A project whose traces are those of the demo."""
    shutil.copytree(EXAMPLES / "traces", tmp_path / "runs")
    return tmp_path


def test_the_github_action_checks_and_writes_what_it_uploads(runs: Path):
    text = (EXAMPLES / "ci/github-action.yml").read_text()
    (command,) = re.findall(r"run: >-\n((?: {10}.*\n)+)", text)
    done = run(" ".join(command.split()), runs)
    assert done.returncode == 0, done.stderr
    for name in re.findall(r"(?:sarif_file|path): (\S+)|cat (\S+) >>", text):
        assert (runs / (name[0] or name[1])).stat().st_size > 0


def test_the_pre_commit_hook_runs_on_the_files_that_it_is_given(runs: Path):
    (entry,) = re.findall(r"entry: (.*)", (EXAMPLES / "ci/pre-commit-config.yaml").read_text())
    files = [str(path.relative_to(runs)) for path in sorted(runs.rglob("*.jsonl"))]
    done = run(" ".join([entry, *files]), runs)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("passed: upr>0.8")


def test_the_demo_traces_are_what_their_script_writes(tmp_path: Path):
    script = tmp_path / "examples" / "make_traces.py"
    (tmp_path / "examples" / "traces").mkdir(parents=True)
    script.write_text((EXAMPLES / "make_traces.py").read_text())
    subprocess.run([sys.executable, str(script)], check=True)
    for made in (tmp_path / "examples/traces").iterdir():
        assert made.read_bytes() == (EXAMPLES / "traces" / made.name).read_bytes()


def test_the_recorded_team_is_scored(tmp_path: Path):
    script = EXAMPLES / "record_a_team.py"
    command = [sys.executable, "-W", "error", str(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "ferry accuracy 1.0",
        "ferry agents 3.0",
        "ferry depth 2.0",
        "ferry tokens_out 36.0",
    ]
