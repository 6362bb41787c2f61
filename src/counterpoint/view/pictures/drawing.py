"""What every picture is drawn with: the frame, the style, numbers, marks.

No element has an id, so that any number of pictures stand in one page. Every outcome has a color *and* a
shape, told apart in gray and by color-blind eyes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

__all__ = ["OUTCOMES", "STYLE", "frame", "hatching", "mark", "place", "shape", "text_at"]

OUTCOMES = {
    "right": "right",
    "wrong": "wrong",
    "abstained": "abstained",
    "ungraded": "not graded",
    "other": "not an answer",
}
"""Class of a mark to what its legend says."""

STYLE = (
    ".cp text{font:12px system-ui,sans-serif;fill:#222}.cp .t{font-weight:600}"
    ".cp .a{font-size:10px;fill:#555}"
    ".cp .g{stroke:#ddd;stroke-width:1}.cp .z{stroke:#888;stroke-width:1}.cp .h{stroke:#fff;stroke-width:1.4}"
    ".cp .e{fill:none;stroke:#555;stroke-opacity:.65}.cp .d{stroke-dasharray:5 4}"
    ".cp .c{stroke:#0072b2;stroke-opacity:.9}.cp .q{stroke-opacity:.4}"
    ".cp .p{fill:#555}.cp .pc{fill:#0072b2}.cp .n{fill:#56758f}"
    ".cp .right{fill:#00805c}.cp .wrong{fill:#c44e00}"
    ".cp .abstained{fill:#e6b400;stroke:#7a5c00;stroke-width:.8}.cp .other{fill:#8a8a8a}"
    ".cp .ungraded{fill:#4a78b5}.cp .b{fill:#0072b2}.cp .l{fill:none;stroke-width:1.8}"
    ".cp .halo{paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}"
    ".cp .k{font-weight:600;stroke-width:6px}"
    ".cp .l0{stroke:#0072b2}.cp .l1{stroke:#d55e00}.cp .l2{stroke:#009e73}.cp .l3{stroke:#cc79a7}"
    ".cp .l4{stroke:#777}.cp .l1{stroke-dasharray:8 3}.cp .l2{stroke-dasharray:2 3}"
    ".cp .l3{stroke-dasharray:9 3 2 3}.cp .l4{stroke-dasharray:4 2}"
    ".cp .band{stroke:none;fill-opacity:.12}"
    ".cp .band.l0,.cp .f0{fill:#0072b2}.cp .band.l1,.cp .f1{fill:#d55e00}"
    ".cp .band.l2,.cp .f2{fill:#009e73}.cp .band.l3,.cp .f3{fill:#cc79a7}.cp .band.l4,.cp .f4{fill:#777}"
    "@media screen and (prefers-color-scheme:dark){.cp text{fill:#ddd}.cp .a{fill:#b5b5b5}"
    ".cp .g{stroke:#3a3a3a}"
    ".cp .e{stroke:#bbb}.cp .p{fill:#bbb}.cp .c{stroke:#56b4e9}.cp .pc,.cp .b{fill:#56b4e9}"
    ".cp .halo{stroke:#16181c}.cp .h{stroke:#16181c}.cp .right{fill:#2fc394}.cp .wrong{fill:#f0813a}"
    ".cp .n{fill:#8fb0cc}.cp .ungraded{fill:#86aee6}.cp .l4{stroke:#aaa}.cp .l0{stroke:#56b4e9}"
    ".cp .f0{fill:#56b4e9}.cp .f4{fill:#aaa}}"
)
"""Of all pictures; a page that holds several has it once."""
FITTING = 800
"""Widest picture that can still be read where a page makes it fit into half of itself."""


def frame(
    parts: Iterable[str], width: float, height: float, *, title: str, about: str, alone: bool = True
) -> str:
    """The SVG of the parts; ``title`` and ``about`` (both escaped) are what a screen reader says of it."""
    style = f"<style>{STYLE}</style>" if alone else ""
    size = f'width="{place(width)}" height="{place(height)}" viewBox="0 0 {place(width)} {place(height)}"'
    kind = "cp" if width <= FITTING else "cp wide"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{kind}" {size} role="img" '
        f'aria-label="{title}. {about}">'
        f"<title>{title}</title><desc>{about}</desc>{style}\n" + "\n".join(parts) + "\n</svg>\n"
    )


def text_at(x: float, y: float, text: str, kind: str = "", anchor: str = "") -> str:
    """A line of text; ``text`` is escaped already."""
    more = (f' class="{kind}"' if kind else "") + (f' text-anchor="{anchor}"' if anchor else "")
    return f'<text{more} x="{place(x)}" y="{place(y)}">{text}</text>'


def mark(outcome: str, x: float, y: float, size: float, *, title: str = "", hatched: bool = False) -> str:
    """A step: its shape and color say how it went, ``size`` (a radius) how long it is."""
    told = f"<title>{title}</title>" if title else ""
    lines = hatching(x, y, size) if hatched else ""
    drawn = f'<path class="{outcome}" d="{shape(outcome, x, y, size)}"/>'
    return f"<g>{told}{drawn}{lines}</g>" if told or lines else drawn


def shape(outcome: str, x: float, y: float, size: float) -> str:
    """Path of a mark: circle, diamond, triangle, ring, or square."""
    r, left = place(size), place(x - size)
    circle = f"M{left} {place(y)}a{r} {r} 0 1 0 {place(2 * size)} 0a{r} {r} 0 1 0 {place(-2 * size)} 0z"
    if outcome == "right":
        return circle
    if outcome == "wrong":
        return f"M{left} {place(y)}l{r} {place(-size)}l{r} {r}l{place(-size)} {r}z"
    if outcome == "abstained":
        return f"M{left} {place(y + size * 0.8)}h{place(2 * size)}l{place(-size)} {place(-1.8 * size)}z"
    if outcome == "ungraded":
        q = size * 0.45
        hole = f"M{place(x - q)} {place(y)}a{place(q)} {place(q)} 0 1 1 {place(2 * q)} 0"
        return circle + hole + f"a{place(q)} {place(q)} 0 1 1 {place(-2 * q)} 0z"
    side = size * 1.6
    return f"M{place(x - side / 2)} {place(y - side / 2)}h{place(side)}v{place(side)}h{place(-side)}z"


def hatching(x: float, y: float, size: float) -> str:
    """Three strokes across a mark: most of its text was said before."""
    path = ""
    for offset in (-0.45, 0.0, 0.45):
        half = math.sqrt(max(0.0, 0.7 - offset * offset)) * size * 0.7071
        shift = offset * size * 0.7071
        path += f"M{place(x + shift - half)} {place(y + shift + half)}L{place(x + shift + half)} "
        path += place(y + shift - half)
    return f'<path class="h" d="{path}"/>'


def place(value: float) -> str:
    """A coordinate: one decimal at most, so that the bytes do not depend on the last bit."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text
