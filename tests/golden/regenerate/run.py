"""Makes golden fixtures anew by running a real framework against the scripted endpoint.

    python tests/golden/regenerate/run.py langgraph          # or: make golden FRAMEWORK=langgraph

Installs what ``emit_langgraph.py`` pins into an environment of its own, in a temporary folder that is deleted
again; serves the script's lines on loopback; runs the script there; scrubs what it wrote and puts it into
``tests/golden/ADAPTER/``, each file with its golden traces beside it. ``--environment FOLDER`` keeps the
environment, and uses it again.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import re
import socket
import subprocess
import sys
import tempfile
import threading
import venv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from scrub import Scrubber
from story import Say

import counterpoint
from counterpoint.models.scripted import ToolCall, Turn, scripted_server

HERE = Path(__file__).parent
GOLDEN = HERE.parent
LARGEST = 60 * 1024
SETTINGS = {
    "AGNO_TELEMETRY": "false",
    "ANONYMIZED_TELEMETRY": "false",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "INSPECT_DISPLAY": "none",
    "LANGSMITH_TRACING": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "OPENAI_API_KEY": "any",
    "PYTHONHASHSEED": "0",
    "TZ": "UTC",
    "USER": "user",
}


def main() -> None:
    frameworks = sorted(file.stem.removeprefix("emit_") for file in HERE.glob("emit_*.py"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("framework", choices=frameworks)
    parser.add_argument(
        "--environment", type=Path, help="a folder for the environment, kept for the next run"
    )
    arguments = parser.parse_args()
    script = HERE / f"emit_{arguments.framework}.py"
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        environment = arguments.environment or place / "environment"
        module = loaded(script)
        python = installed(environment, module.REQUIREMENTS)
        words = recorded(python, script, module.LINES, place)
        keep(place / "out", words, getattr(module, "BUILT_IN", ()))


def loaded(script: Path) -> ModuleType:
    """The script as a module; it imports its framework only when it is run."""
    spec = importlib.util.spec_from_file_location(script.stem, script)
    if spec is None or spec.loader is None:
        sys.exit(f"{script} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def installed(environment: Path, requirements: Sequence[str]) -> Path:
    """The Python of an environment that has ``requirements``."""
    python = environment / "bin" / "python"
    if not python.exists():
        venv.create(environment, with_pip=True)
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *requirements], check=True
    )
    return python


def recorded(
    python: Path, script: Path, lines: Mapping[str, Sequence[str | Say]], place: Path
) -> dict[str, str]:
    """Runs ``script``, which writes into ``place/out``; returns what to replace in its files."""
    home, out = place / "home", place / "out"
    home.mkdir()
    out.mkdir()
    with scripted_server(speaker(lines), model="scripted") as server:
        url = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_BASE": server.base_url}
        settings = {**os.environ, **SETTINGS, **url, "HOME": str(home)}
        settings.pop("PYTHONPATH", None)
        subprocess.run([python, script, out], check=True, env=settings, cwd=home)
        if server.errors:
            sys.exit("\n".join(server.errors))
        print(f"{len(server.requests)} requests, {server.tokens_in} tokens in, {server.tokens_out} out")
    return {
        re.sub("/v1$", "", server.base_url): "http://127.0.0.1:8000",
        str(script): script.name,
        str(home): "/home/user",
        str(place): "/home/user",
        platform.platform(): "Linux",
        socket.gethostname(): "host",
    }


def speaker(lines: Mapping[str, Sequence[str | Say]]) -> Callable[[list[Any]], str | Turn]:
    """Each agent's lines in order; the agent is the first "You are the NAME" that a request holds."""
    queues = {name: iter(said) for name, said in lines.items()}
    lock = threading.Lock()

    def reply(messages: list[Any]) -> str | Turn:
        found = re.search(r"You are the (\w+)", str(messages))
        name = found[1] if found else ""
        with lock:
            line = next(queues.get(name, iter(())), None)
        if line is None:
            raise ValueError(f"no line is left for {name!r}: {str(messages)[:2000]}")
        if isinstance(line, str):
            return line
        return Turn(line.text, calls=(ToolCall(line.tool, line.arguments),) if line.tool else ())

    return reply


def keep(out: Path, words: Mapping[str, str], built_in: Sequence[str]) -> None:
    """Puts scrubbed files into the golden folders, and what is read from each beside it.

    ``built_in`` are patterns of the framework's own long prompts, which are not ours to give away.
    """
    files = sorted(file for file in out.glob("*/*") if file.is_file())
    texts = [file.read_text("utf-8") for file in files]
    scrubber = Scrubber(texts, words)
    for file, text in zip(files, texts, strict=True):
        clean = scrubber.clean(text)
        for pattern in built_in:
            clean = re.sub(pattern, "(built in)", clean)
        target = GOLDEN / file.parent.name / file.name
        size = len(clean.encode("utf-8"))
        print(f"{target.relative_to(GOLDEN)}: {size:,} bytes")
        if size > LARGEST:
            print(f"not kept, for it is larger than {LARGEST:,} bytes: record less")
            continue
        target.write_text(clean, "utf-8")
        traces = list(counterpoint.read(target, on_error="raise"))
        counterpoint.write(traces, target.with_name(f"{target.name}.golden.jsonl"))


if __name__ == "__main__":
    main()
