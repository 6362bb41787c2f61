"""The public names: one list, complete and sorted; importing them early or late gives the same things."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import counterpoint as cp

INIT = Path(cp.__file__)
NAMES = [name for name in cp.__all__ if name != "__version__"]


def in_a_new_process(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def names_for_type_checkers() -> dict[str, str]:
    """Public name to module, as written under ``if TYPE_CHECKING:``."""
    blocks = [
        node.body
        for node in ast.parse(INIT.read_text()).body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name)
    ]
    return {alias.name: line.module for line in blocks[0] for alias in line.names}


def test_the_list_is_sorted_and_short():
    assert cp.__all__ == sorted(cp.__all__)
    assert len(cp.__all__) <= 25


def test_the_list_the_lazy_table_and_the_type_checkers_agree():
    assert sorted(cp._HOME) == NAMES
    assert names_for_type_checkers() == {name: f"counterpoint.{home}" for name, home in cp._HOME.items()}


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_there_and_documented(name):
    value = getattr(cp, name)
    assert not isinstance(value, ModuleType)
    assert value.__doc__, f"{name} has no docstring"


def test_dir_shows_the_public_names():
    assert dir(cp) == cp.__all__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'grpah'"):
        cp.grpah  # noqa: B018


def test_importing_the_package_imports_no_dependency():
    roots = "*{name.partition('.')[0] for name in sys.modules}"
    before = in_a_new_process(f"import sys; print({roots})").split()
    after = in_a_new_process(f"import sys, counterpoint; print({roots})").split()
    assert set(after) - set(before) - sys.stdlib_module_names == {"counterpoint"}


@pytest.mark.parametrize(
    "code",
    [
        "import counterpoint as cp; import counterpoint.graph; print(callable(cp.graph))",
        "import counterpoint.graph; import counterpoint as cp; print(callable(cp.graph))",
        "from counterpoint.graph import View; from counterpoint import graph; print(callable(graph))",
        "import counterpoint as cp; before = cp.graph; import counterpoint.graph; print(before is cp.graph)",
        "from counterpoint import *; import counterpoint.graph; print(callable(graph))",
    ],
)
def test_a_submodule_never_hides_the_function_of_its_name(code):
    assert in_a_new_process(code) == "True"


def test_a_submodule_without_a_public_namesake_is_an_attribute_as_usual():
    assert in_a_new_process("import counterpoint.trace as t; print(t.__name__)") == "counterpoint.trace"


def test_a_fake_may_replace_a_public_function(monkeypatch):
    monkeypatch.setattr(cp, "graph", len)
    assert cp.graph is len
