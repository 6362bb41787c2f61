import re
from pathlib import Path

import pytest
import typer

from counterpoint.cli import app
from counterpoint.registry import names

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_and_stands_in_the_docs(name: str):
    command = COMMANDS[name]
    assert command.help
    assert f"`counterpoint {name}" in (ROOT / "docs/cli.md").read_text()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option_stands_in_the_docs(name: str):
    text = (ROOT / "docs/cli.md").read_text()
    commands = getattr(COMMANDS[name], "commands", {"": COMMANDS[name]})
    options = {
        option
        for command in commands.values()
        for parameter in command.params
        for option in parameter.opts
        if option.startswith("--") and option != "--help"
    }
    assert not [option for option in sorted(options) if f"{option}" not in text]


@pytest.mark.parametrize("name", names("adapter"))
def test_every_adapter_stands_in_the_docs(name: str):
    assert f"`{name}`" in (ROOT / "docs/formats.md").read_text()


@pytest.mark.parametrize("name", names("metric"))
def test_every_metric_stands_in_the_docs(name: str):
    pages = " ".join(page.read_text() for page in ROOT.glob("docs/metrics/*.md"))
    assert f"`{name}`" in pages


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_between_pages_leads_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target
