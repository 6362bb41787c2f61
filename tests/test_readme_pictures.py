"""The README shows what the code draws; ``python tests/test_readme_pictures.py`` draws its pictures anew."""

from pathlib import Path

import pytest

import counterpoint as cp
from counterpoint.contracts import Context
from counterpoint.graph import CollaborationGraph
from counterpoint.view.pictures import lanes_svg, scene

ROOT = Path(__file__).parents[1]
PICTURES = {"echo": "echo/apples", "panel": "panel/apples"}


def drawn(system: str) -> str:
    traces = {trace.id: trace for trace in cp.read(ROOT / "examples" / "traces")}
    graph = CollaborationGraph(traces[PICTURES[system]])
    context = Context(trace=graph.trace, graph=graph)
    return lanes_svg(scene(context), title=f"{system}: who spoke, who heard whom")


def file(system: str) -> Path:
    return ROOT / "docs" / f"lanes-{system}.svg"


@pytest.mark.parametrize("system", PICTURES)
def test_the_picture_in_the_readme_is_what_is_drawn_today(system: str):
    assert file(system).read_text("utf-8") == drawn(system)
    assert f"docs/{file(system).name}" in (ROOT / "README.md").read_text("utf-8")


if __name__ == "__main__":
    for system in PICTURES:
        file(system).write_text(drawn(system), "utf-8")
