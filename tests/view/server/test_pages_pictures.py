"""Screenshots of the three pictures: the same pixels each time, marks where they belong in their colors.

Fonts differ between machines, so a picture is known by the ink in each cell of a grid, its words hidden.
"""

from __future__ import annotations

import base64

import numpy as np
import pytest
from pages_world import scored

from counterpoint.trace import decode

pytestmark = pytest.mark.slow

GRID = (6, 12)
"""Rows and columns of a fingerprint."""
TOLERANCE = 3
"""Of a cell, of 255: more than the smoothing of edges moves, less than a mark that is missing."""
HIDE = (
    "() => document.querySelectorAll('svg text').forEach((one) => one.setAttribute('visibility', 'hidden'))"
)

DECODE = """async (png) => {
    const image = await createImageBitmap(await (await fetch("data:image/png;base64," + png)).blob());
    const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
    canvas.drawImage(image, 0, 0);
    const { data } = canvas.getImageData(0, 0, image.width, image.height);
    let text = "";
    for (let at = 0; at < data.length; at += 4096)
        text += String.fromCharCode(...data.subarray(at, at + 4096));
    return [image.width, image.height, btoa(text)];
}"""
MARKS = """(svg) => [...svg.querySelectorAll("path.right, path.wrong, path.abstained, circle.n, path.b")]
    .map((one) => {
    const [box, frame] = [one.getBoundingClientRect(), svg.getBoundingClientRect()];
    return {
        kind: one.getAttribute("class"),
        x: box.x + box.width / 2 - frame.x, y: box.y + box.height / 2 - frame.y,
        fill: getComputedStyle(one).fill.match(/\\d+/g).map(Number),
    };
})"""

PICTURES = ("lanes", "team", "chart")
FINGERPRINTS = {
    "light": {
        "lanes": "090604000200010000000000 060305050002000000000000 000000231012190101010101 "
        "0000000130112f0101010101 00000001032d010101010101 000000000000000000000000",
        "team": "050000000100000000000000 00000000021d260300000000 "
        "00000004070000180d000000 000002090000000018080000 "
        "000027090000000009420000 000000030a0b0a0a02010000",
        "chart": "000000000000000000000000 000000000000000000000000 "
        "00000064bcbcbcbca4000000 00000069c6c6c62900000000 "
        "0000004b8e6a000000000000 0000001e392a000000000000",
    },
    "dark": {
        "lanes": "060503000200010000000000 040304040001000000000000 0000001e0b0f130101010101 "
        "00000001210c200101010101 00000001031f010101010101 000000000000000000000000",
        "team": "040000000100000000000000 00000000011c240300000000 "
        "00000004060000130b000000 000001070000000013060000 "
        "000027070000000007410000 000000030808080801010000",
        "chart": "000000000000000000000000 000000000000000000000000 "
        "000000509797979784000000 000000559f9f9f2100000000 "
        "0000003c7255000000000000 000000182e22000000000000",
    },
}
"""What `fingerprint` gives of each picture; a test that fails prints what it found."""


def world(serving):
    """Three agents, two rounds, one wrong turn and one without an answer; each hears the one before."""
    served = serving()
    said = [
        "It makes 8, I say.",
        "No: the answer is 7.",
        "Seven, as they say.",
        "So be it.",
        "Now the answer is 7.",
    ]
    answers = ["8", "7", "7", None, "7"]
    steps = [
        {
            "id": f"s{n}", "agent": "abc"[n % 3], "text": text, "round": n // 3,
            "heard": [f"s{n - 1}"] if n else [], "usage": {"tokens_in": 20 * n + 10, "tokens_out": 5},
            **({"answer": answer} if answer else {}),
        }
        for n, (text, answer) in enumerate(zip(said, answers, strict=True))
    ]  # fmt: skip
    scored(served.store, decode({"id": "a", "task": "3+4?", "gold": "7", "system": "team", "steps": steps}))
    return served


def shots(page):
    """The pictures of the page as PNG."""
    page.wait_for_selector("#live-pause")
    return dict(zip(PICTURES, (one.screenshot() for one in page.locator("svg.cp").all()), strict=True))


@pytest.fixture
def pixels(browser):
    """PNG to an array of height, width and color."""
    context = browser.new_context()
    page = context.new_page()

    def decoded(png):
        width, height, data = page.evaluate(DECODE, base64.b64encode(png).decode())
        return (
            np.frombuffer(base64.b64decode(data), np.uint8).reshape(height, width, 4)[..., :3].astype(float)
        )

    yield decoded
    context.close()


def fingerprint(image):
    """How far each cell of a coarse grid is from the color of the paper, in the mean: a row of hex a row."""
    paper = np.median(image.reshape(-1, 3), axis=0)
    ink = np.abs(image - paper).max(axis=2)
    rows = [np.array_split(row, GRID[1], axis=1) for row in np.array_split(ink, GRID[0])]
    return " ".join("".join(f"{round(float(cell.mean())):02x}" for cell in row) for row in rows)


def far(one, other):
    """The largest difference between two fingerprints."""
    cells = [np.frombuffer(bytes.fromhex(text), np.uint8).astype(int) for text in (one, other)]
    return int(np.abs(cells[0] - cells[1]).max())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_same_run_gives_the_same_pixels(serving, visit, scheme):
    served = world(serving)
    first, second = (shots(visit(served.url + "/runs/a", color_scheme=scheme)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_mark_stands_in_its_color_where_it_belongs(serving, visit, pixels, scheme):
    served = world(serving)
    page = visit(served.url + "/runs/a", color_scheme=scheme)
    images = {name: pixels(png) for name, png in shots(page).items()}
    found = {}
    for name, svg in zip(PICTURES, page.locator("svg.cp").all(), strict=True):
        for one in svg.evaluate(MARKS):
            seen = images[name][round(one["y"]), round(one["x"])]
            assert np.abs(seen - one["fill"]).max() <= 3, (name, one, seen)
            found.setdefault(one["kind"], set()).add(tuple(one["fill"]))
    assert set(found) == {"right", "wrong", "abstained", "n", "b"}
    assert len({fill for fills in found.values() for fill in fills}) == len(found)
    for name, image in images.items():
        paper = np.median(image.reshape(-1, 3), axis=0)
        assert (paper.mean() < 60) == (scheme == "dark"), name


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pictures_look_as_they_did(serving, visit, pixels, scheme):
    served = world(serving)
    page = visit(served.url + "/runs/a", color_scheme=scheme)
    page.evaluate(HIDE)
    found = {name: fingerprint(pixels(png)) for name, png in shots(page).items()}
    print(scheme, found)  # what to write into FINGERPRINTS where a picture is meant to look otherwise
    wrong = {name: text for name, text in found.items() if far(text, FINGERPRINTS[scheme][name]) > TOLERANCE}
    assert not wrong


@pytest.mark.parametrize(
    ("name", "mark"), [("lanes", "path.wrong"), ("team", "circle.n"), ("team", "path.c"), ("chart", "path.b")]
)
def test_a_mark_that_is_missing_is_noticed(serving, visit, pixels, name, mark):
    served = world(serving)
    page = visit(served.url + "/runs/a")
    page.evaluate(HIDE)
    before = fingerprint(pixels(shots(page)[name]))
    page.evaluate("() => document.querySelector('#live-pause').click()")
    page.locator("svg.cp").nth(PICTURES.index(name)).locator(mark).last.evaluate("(one) => one.remove()")
    assert far(fingerprint(pixels(shots(page)[name])), before) > TOLERANCE
