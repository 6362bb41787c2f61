"""The arrows of docs/architecture.md hold, no name hides an idea, heavy libraries stay in leaves."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "counterpoint"
DOCUMENT = (ROOT / "docs" / "architecture.md").read_text()

# fmt: off
FORBIDDEN = {
    "base", "common", "config", "core", "experiments", "helpers", "integrations", "misc", "plugins",
    "prompts", "services", "types", "util", "utils",
}
HEAVY = {
    "datasets", "fastapi", "jinja2", "llama_cpp", "opentelemetry", "pandas", "pyarrow", "ray",
    "sentence_transformers", "torch", "uvicorn",
}
# fmt: on


class Import(NamedTuple):
    module: str
    """As imported, absolute: ``counterpoint.graph``, ``numpy.typing``."""
    names: tuple[str, ...]
    line: int
    at_head: bool
    """Runs when the file is imported: neither in a function nor for type checkers only."""


def drawing(heading: str) -> str:
    """The first code block under ``heading``."""
    section = DOCUMENT.split(f"\n## {heading}\n")[1]
    return section.split("```")[1]


def levels() -> dict[str, int]:
    """Part to its line in the drawing of the arrows, 0 at the top."""
    lines = drawing("Arrows").strip().splitlines()
    return {part.strip(): number for number, line in enumerate(lines) for part in line.split("·")}


@cache
def modules() -> dict[str, Path]:
    """Dotted name to file, of every module of the package."""
    found = {}
    for file in sorted(SOURCE.rglob("*.py")):
        parts = file.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


@cache
def imports(module: str) -> tuple[Import, ...]:
    """Every import in the module's file, in functions too."""
    file = modules()[module]
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    return tuple(_imports(ast.parse(file.read_text()), package, at_head=True))


def _imports(node: ast.AST, package: str, *, at_head: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import():
                for alias in child.names:
                    yield Import(alias.name, (), child.lineno, at_head)
            case ast.ImportFrom():
                name = ".".join(filter(None, [*_above(package, child.level), child.module]))
                yield Import(name, tuple(alias.name for alias in child.names), child.lineno, at_head)
            case ast.Call(func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(name)), *_]):
                yield Import(name, (), child.lineno, at_head)
            case _:
                lazy = isinstance(child, ast.FunctionDef | ast.Lambda) or _for_type_checkers(child)
                yield from _imports(child, package, at_head=at_head and not lazy)


def _above(package: str, level: int) -> list[str]:
    """The parts of a relative import's starting point; nothing for an absolute one."""
    parts = package.split(".")
    return parts[: len(parts) + 1 - level] if level else []


def _for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def part_of(module: str) -> str:
    """``counterpoint.metrics.gemmas`` is of part ``metrics``; the package itself of part ``""``."""
    return module.split(".")[1] if "." in module else ""


def imported_parts(found: Import) -> set[str]:
    """The parts of ours that an import reaches; ``""`` stands for the package itself."""
    if found.module == "counterpoint":
        names = set(found.names or [""]) - {"__version__"}
        return {name if f"counterpoint.{name}" in modules() else "" for name in names}
    return {part_of(found.module)} if found.module.startswith("counterpoint.") else set()


def is_heavy(found: Import) -> bool:
    return found.module.partition(".")[0] in HEAVY


def imported_at_head_by(target: str) -> list[str]:
    """Modules that import ``target`` whenever they are imported themselves."""
    parent, _, name = target.rpartition(".")
    return [
        module
        for module in modules()
        for found in imports(module)
        if found.at_head
        and (
            found.module == target
            or found.module.startswith(f"{target}.")
            or (found.module == parent and name in found.names)
        )
    ]


PARTS = sorted({part_of(module) for module in modules()} - {"", "__main__"})


@pytest.mark.parametrize("part", PARTS)
def test_every_part_has_its_place_in_the_drawings(part):
    assert part in levels(), f"draw {part} into the arrows of docs/architecture.md"
    assert re.search(rf"── {part}(\.py|/) ", drawing("Layout")), (
        f"draw {part} into the layout of docs/architecture.md"
    )


@pytest.mark.parametrize("module", [name for name in modules() if part_of(name) in PARTS])
def test_a_part_imports_only_parts_on_a_lower_line(module):
    line, own = levels(), part_of(module)
    wrong = [
        f"line {found.line}: {own} -> {part or 'the package itself'}"
        for found in imports(module)
        for part in imported_parts(found) - {own}
        if line.get(part, -1) <= line[own]
    ]
    assert not wrong, f"{module} imports upward or sideways: {wrong}"


@pytest.mark.parametrize("module", [name for name in modules() if any(map(is_heavy, imports(name)))])
def test_a_heavy_library_is_imported_in_a_function_or_by_a_leaf(module):
    heads = [
        f"line {found.line}: {found.module}" for found in imports(module) if is_heavy(found) and found.at_head
    ]
    if heads:
        assert modules()[module].name != "__init__.py", f"{module} imports {heads} for all of its folder"
        assert not imported_at_head_by(module), f"{module} imports {heads}, and is no leaf"


def test_no_name_hides_an_idea():
    names = {name for file in SOURCE.rglob("*.py") for name in file.relative_to(SOURCE).with_suffix("").parts}
    assert not names & FORBIDDEN


def test_every_module_but_such_a_leaf_imports_without_extras():
    """Also keeps `--doctest-ignore-import-errors` honest: it can hide leaves only."""
    leaves = {name for name in modules() if any(is_heavy(found) and found.at_head for found in imports(name))}
    code = f"""if True:
        import importlib, sys
        sys.modules.update(dict.fromkeys({sorted(HEAVY)}))
        for name in {sorted(set(modules()) - leaves)}:
            importlib.import_module(name)
    """
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        ("import counterpoint as cp", {""}),
        ("from counterpoint import Trace", {""}),
        ("from counterpoint import __version__", set()),
        ("from counterpoint import registry", {"registry"}),
        ("from counterpoint.metrics.outcome import ACCURACY", {"metrics"}),
        ("import counterpointless", set()),
    ],
)
def test_parts_of_ours_are_told_from_the_rest(code, parts):
    (found,) = _imports(ast.parse(code), "counterpoint", at_head=True)
    assert imported_parts(found) == parts


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import a.b", [("a.b", (), True)]),
        ("from a import b, c", [("a", ("b", "c"), True)]),
        ("from . import b", [("p.q", ("b",), True)]),
        ("from ..r import b", [("p.r", ("b",), True)]),
        ("def f():\n    import a", [("a", (), False)]),
        ("if TYPE_CHECKING:\n    import a", [("a", (), False)]),
        ("class C:\n    import a", [("a", (), True)]),
        ("try:\n    import a\nexcept ImportError:\n    a = None", [("a", (), True)]),
        ("importlib.import_module('a.b')", [("a.b", (), True)]),
    ],
)
def test_imports_are_seen_wherever_they_stand(code, expected):
    found = _imports(ast.parse(code), "p.q", at_head=True)
    assert [(one.module, one.names, one.at_head) for one in found] == expected
