"""What a user installs is the wheel, not this folder: it has to hold all that the package needs to run."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile

import pytest


@pytest.fixture(scope="module")
def installed(root, tmp_path_factory):
    """A folder with the wheel's content."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--wheel-dir", folder, root], check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


@pytest.mark.slow
def test_the_wheel_holds_what_the_demo_needs(installed, tmp_path):
    code = "import counterpoint, sys; from counterpoint.cli import main; print(counterpoint.__file__); main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "demo", "--format", "csv"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, header, *rows = done.stdout.splitlines()
    assert first == str(installed / "counterpoint" / "__init__.py")
    assert header.startswith("run,")
    assert len(rows) > 100


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package_that_is_no_bytecode(root, installed):
    source = root / "src" / "counterpoint"
    expected = {
        path.relative_to(source)
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert not {path for path in expected if not (installed / "counterpoint" / path).is_file()}
    assert (installed / "counterpoint" / "py.typed").is_file()
