"""Damage curves: a panel an operator, a line a component, with bands of two standard errors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from counterpoint.metrics.damage import Curve, Point
from counterpoint.view.pictures.drawing import frame, place, text_at
from counterpoint.view.visible import escaped, shortened

__all__ = ["damage_svg"]

LABELS = {
    "node": "roles",
    "edge": "role-typed edges",
    "topo": "shape",
    "sim": "similarity with itself",
    "forest": "Forest Match",
}
"""Component to what its legend says; the order gives each its line (`drawing.STYLE`)."""
COLUMNS, WIDTH, HEIGHT = 3, 250, 170
LEFT, TOP, GAP_X, GAP_Y, HEAD = 44, 22, 58, 62, 58


def damage_svg(curves: Sequence[Curve], *, title: str = "Damage by perturbation", alone: bool = True) -> str:
    """The picture: damage over the share that is hit; ``alone``: with its own style, False where the page
    has it."""
    rows = -(-len(curves) // COLUMNS)
    width = LEFT + COLUMNS * (WIDTH + GAP_X)
    low = _floor(curves)
    shown = [name for name in LABELS if any(name in curve.area for curve in curves)]
    parts = [text_at(LEFT, 18, shortened(title, 100), "t"), *_legend(shown)]
    for index, curve in enumerate(curves):
        x = LEFT + index % COLUMNS * (WIDTH + GAP_X)
        y = HEAD + TOP + index // COLUMNS * (HEIGHT + GAP_Y)
        parts.append(f'<g transform="translate({x} {y})">')
        parts.extend(_panel(curve, low))
        parts.append("</g>")
    height = HEAD + max(rows, 1) * (HEIGHT + GAP_Y)
    return frame(parts, width, height, title=escaped(title), about=_about(curves), alone=alone)


def _about(curves: Sequence[Curve]) -> str:
    """The mean damage of each operator, as a screen reader says it."""
    return (
        "; ".join(
            f"{escaped(curve.operator)}: "
            + ", ".join(f"{LABELS[name]} {curve.area[name]:.2f}" for name in LABELS if name in curve.area)
            for curve in curves
        )
        or "nothing to draw"
    )


def _legend(shown: Sequence[str]) -> Iterator[str]:
    x = LEFT
    for name in shown:
        yield f'<path class="l {_line_of(name)}" d="M{x} 36h24"/>'
        yield text_at(x + 29, 40, LABELS[name])
        x += 48 + 7 * len(LABELS[name])


def _panel(curve: Curve, low: float) -> Iterator[str]:
    yield text_at(0, -8, shortened(curve.operator, 30), "t")
    for tick in range(round(low * 4), 5):
        y = _y(tick / 4, low)
        yield f'<path class="{"g" if tick else "z"}" d="M0 {place(y)}h{WIDTH}"/>'
        yield text_at(-6, y + 3, f"{tick / 4:g}", "a", "end")
    for p in (0, 0.25, 0.5, 0.75, 1):
        yield text_at(p * WIDTH, HEIGHT + 14, f"{p:g}", "a", "middle")
    yield text_at(WIDTH / 2, HEIGHT + 29, "share that is hit", "a", "middle")
    for name in LABELS:
        if name in curve.area:
            yield from _line(curve.points, name, low)


def _line(points: Sequence[Point], name: str, low: float) -> Iterator[str]:
    """The line of means, and its band."""
    rows = [(0.0, 0.0, 0.0), *((point.p, point.damage[name], 2 * point.error[name]) for point in points)]
    above = [_place(p, mean + error, low) for p, mean, error in rows]
    below = [_place(p, mean - error, low) for p, mean, error in reversed(rows)]
    line = [_place(p, mean, low) for p, mean, _ in rows]
    yield f'<path class="band {_line_of(name)}" d="M{"L".join([*above, *below])}Z"/>'
    yield f'<path class="l {_line_of(name)}" d="M{"L".join(line)}"/>'


def _line_of(name: str) -> str:
    return f"l{list(LABELS).index(name)}"


def _floor(curves: Sequence[Curve]) -> float:
    """The lowest mean damage, rounded down to a quarter: Forest Match can rise."""
    values = [value for curve in curves for point in curve.points for value in point.damage.values()]
    return min(0.0, math.floor(min(values, default=0.0) * 4) / 4)


def _place(p: float, value: float, low: float) -> str:
    return f"{place(p * WIDTH)} {place(_y(min(max(value, low), 1), low))}"


def _y(value: float, low: float) -> float:
    return HEIGHT * (1 - (value - low) / (1 - low))
