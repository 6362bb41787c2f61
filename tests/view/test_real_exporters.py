"""Frameworks as their users run them: one environment variable set, and their runs are stored and scored.

`counterpoint serve` is a process of its own, as is each framework, in an environment of its own with what
``real_exporters/FRAMEWORK.txt`` locks. One sends protobuf, the other JSON: each has one exporter only.
After a change of what ``real_exporters/FRAMEWORK.in`` asks for::

    uv pip compile FRAMEWORK.in -o FRAMEWORK.txt --universal -p 3.11 --generate-hashes --no-header
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("fastapi", reason="extra serve is not installed")

from counterpoint.models.scripted import scripted_server
from counterpoint.store import Run, Store
from counterpoint.trace import Trace

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent / "real_exporters"
REGENERATE = Path(__file__).parents[1] / "golden" / "regenerate"
NO_INDEX = re.compile("NewConnectionError|ConnectTimeout|NameResolutionError|Network is unreachable")
WAIT_S = 300.0


class Team(NamedTuple):
    exporter: str
    lines: dict[str, tuple[str, ...]]
    """What each agent says: names in the story, in order."""
    turns: list[tuple[str, dict[str, str]]]
    """Agent of each step, with the places of the steps heard and the evidence of that."""


TEAMS = {
    "openai_agents": Team(
        "opentelemetry.exporter.otlp.proto.http.trace_exporter",
        {"planner": ("PLAN",), "writer": ("ROUGH", "DRAFT"), "critic": ("OBJECTION",)},
        [
            ("planner", {}),
            ("writer", {"1": "explicit"}),
            ("critic", {"2": "call"}),
            ("writer", {"3": "call", "2": "context"}),
        ],
    ),
    "langgraph": Team(
        "opentelemetry.exporter.otlp.json.http.trace_exporter",
        {"planner": ("PLAN",), "writer": ("ROUGH", "DRAFT"), "critic": ("OBJECTION", "VERDICT")},
        [
            ("planner", {}),
            ("writer", {"1": "context"}),
            ("critic", {"2": "context", "1": "context"}),
            ("writer", {"3": "context", "2": "context"}),
            ("critic", {"4": "context", "3": "context"}),
        ],
    ),
}


def install(folder: Path, framework: str) -> tuple[Path, str]:
    """The Python of a new environment with what is locked, and what pip complained of."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1"]
    options = ["--no-compile", "--only-binary", ":all:", "--require-hashes", "-r", HERE / f"{framework}.txt"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    return python, done.stderr if done.returncode else ""


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[tuple[Path, str]]]]:
    """An environment for each framework, all installed at one time."""
    folder = tmp_path_factory.mktemp("environments")
    with ThreadPoolExecutor() as pool:
        yield {framework: pool.submit(install, folder / framework, framework) for framework in TEAMS}


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A real `counterpoint serve`: the address that it tells exporters, and its store."""
    file = tmp_path / "store.db"
    command = ["serve", "--port", "0", "--store", str(file), "--quiet-after", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "counterpoint", *command], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        told = (re.search(r"OTEL_EXPORTER_OTLP_ENDPOINT=(\S+)", line) for line in process.stderr)
        yield next(found[1] for found in told if found), file
    finally:
        process.terminate()
        process.communicate(timeout=120)


@pytest.fixture
def regenerate(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script that plays the teams of the golden fixtures against the scripted endpoint, as a module."""
    monkeypatch.syspath_prepend(str(REGENERATE))
    spec = importlib.util.spec_from_file_location("regenerate_run", REGENERATE / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines_of(framework: str) -> dict[str, list[Any]]:
    """The replies of the scripted model; two of them call a tool of the OpenAI Agents SDK."""
    import story

    lines = {name: [getattr(story, line) for line in said] for name, said in TEAMS[framework].lines.items()}
    if framework == "openai_agents":
        lines["planner"] = [story.Say(story.PLAN, "transfer_to_writer")]
        lines["writer"][0] = story.Say("Let me ask.", "ask_critic", {"input": story.ROUGH})
    return lines


def scored(file: Path) -> tuple[Run, Trace]:
    """The one run of the store, once all that came of it is scored."""
    end = time.monotonic() + WAIT_S
    with Store(file) as store:
        while time.monotonic() < end:
            rows = store.runs().rows
            if rows and all(run.scored_revision == run.revision for run in rows):
                (run,), (trace,) = rows, store.traces(rows[0].id)
                return run, trace
            time.sleep(0.1)
    raise AssertionError(f"not scored within {WAIT_S} s: {rows}")


def turns(trace: Trace) -> list[tuple[str, dict[str, str]]]:
    places = {step.id: str(place) for place, step in enumerate(trace.steps, 1)}
    return [(step.agent, {places[one.source]: one.evidence for one in step.heard}) for step in trace.steps]


@pytest.mark.parametrize("framework", TEAMS)
def test_a_run_of_a_framework_is_stored_and_scored_with_one_variable_set(
    framework: str,
    environments: dict[str, Future[tuple[Path, str]]],
    serving: tuple[str, Path],
    regenerate: Any,
    tmp_path: Path,
):
    python, complaint = environments[framework].result()
    if NO_INDEX.search(complaint):
        pytest.skip(f"no package index can be reached: {complaint.strip().splitlines()[-1][:200]}")
    assert not complaint
    url, file = serving
    with scripted_server(regenerate.speaker(lines_of(framework)), model="scripted") as model:
        settings = {**os.environ, **regenerate.SETTINGS, "OPENAI_BASE_URL": model.base_url}
        settings |= {"HOME": str(tmp_path), "OTEL_EXPORTER_OTLP_ENDPOINT": url}
        settings.pop("PYTHONPATH", None)
        command = [python, HERE / "send.py", framework]
        done = subprocess.run(
            command, env=settings, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert not done.returncode, done.stderr[-3000:]
        assert not model.errors
        used = (model.tokens_in, model.tokens_out)
    team = TEAMS[framework]
    assert done.stdout.split() == [team.exporter]
    run, trace = scored(file)
    assert run.error == ""
    assert (run.system, run.agents) == (framework.replace("_", "-"), ("planner", "writer", "critic"))
    assert run.task == "Write one sentence about the old lighthouse."
    assert turns(trace) == team.turns
    assert (run.values["tokens_in"], run.values["tokens_out"]) == used
    expected = {"agents": 3, "steps": len(team.turns), "depth": len(team.turns), "rounds": 2}
    assert {name: run.values[name] for name in expected} == expected
    assert run.values["ids"] is not None
