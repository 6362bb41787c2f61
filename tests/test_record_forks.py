"""A run is of the process that began it: a forked child neither adds to it nor ends it."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import counterpoint as cp
from counterpoint.errors import UsageError
from counterpoint.trace import Trace

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "recording.jsonl"


def traces(file: Path) -> list[Trace]:
    return list(cp.read(file, on_error="raise"))


def in_a_new_process(code: str, file: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-W", "error", "-c", code, str(file)], stdout=subprocess.PIPE)


@pytest.mark.parametrize("leave", ["sys.exit(0)", "1 / 0", "turn.text = 'lost'"])
def test_a_child_that_leaves_the_block_neither_ends_the_run_nor_adds_to_it(file: Path, leave: str):
    code = f"""if True:
        import os, sys, counterpoint as cp
        with cp.record("r", to=sys.argv[1]) as run:
            run.step("a", "one")
            with run.turn("b") as turn:
                child = os.fork()
                if child:
                    os.waitpid(child, 0)
                    turn.text = "two"
                else:
                    {leave}
            if child:
                run.step("a", "three", heard=[turn])
                run.answer = "4"
        os.write(1, b"parent" if child else b"child")
    """
    child = in_a_new_process(code, file)
    said, _ = child.communicate()
    assert (child.returncode, said) == (0, b"childparent" if "lost" in leave else b"parent")
    (trace,) = traces(file)
    assert [step.text for step in trace.steps] == ["one", "two", "three"]
    assert (trace.answer, trace.warnings) == ("4", ())


@pytest.mark.parametrize("way", ["run.step('b', text)", "run.turn('b').__enter__()"])
def test_a_run_does_not_cross_a_fork(file: Path, way: str):
    code = f"""if True:
        import multiprocessing, sys, counterpoint as cp
        from counterpoint.errors import UsageError
        def speak(text):
            try:
                {way}
            except UsageError as error:
                return str(error)
        with cp.record("r", to=sys.argv[1]) as run:
            run.step("a", "one")
            with multiprocessing.get_context("fork").Pool(2) as pool:
                print(*pool.map(speak, ["x", "y"]), sep="\\n")
            run.step("a", "two")
    """
    child = in_a_new_process(code, file)
    said, _ = child.communicate()
    lines = said.decode().splitlines()
    assert len(lines) == 2
    assert all(line.startswith("run 'r' does not cross a fork: ") for line in lines)
    (trace,) = traces(file)
    assert ([step.text for step in trace.steps], trace.warnings) == (["one", "two"], ())


def test_a_run_that_is_begun_in_a_child_and_in_its_parent_is_two_runs(file: Path):
    code = """if True:
        import os, sys, counterpoint as cp
        run = cp.record("r", to=sys.argv[1])
        child = os.fork()
        if child:
            os.waitpid(child, 0)
        with run:
            run.step("a", "parent" if child else "child")
    """
    child = in_a_new_process(code, file)
    child.communicate()
    assert [(trace.id, trace.steps[0].text) for trace in traces(file)] == [("r", "child"), ("r#2", "parent")]


def test_a_run_cannot_be_sent_to_another_process(file: Path):
    with (
        cp.record("r", to=file) as run,
        pytest.raises(UsageError, match="stays in the process that began it"),
    ):
        pickle.dumps(run)
