"""Damage curves as an SVG picture: a panel an operator, a line a component. Same curves, same bytes."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from counterpoint.metrics.damage import Curve, Point

__all__ = ["damage_svg"]

COLORS = {"node": "#0072b2", "edge": "#d55e00", "topo": "#009e73", "sim": "#000000", "forest": "#cc79a7"}
LABELS = {
    "node": "roles",
    "edge": "role-typed edges",
    "topo": "shape",
    "sim": "similarity with itself",
    "forest": "Forest Match",
}
COLUMNS, WIDTH, HEIGHT = 3, 250, 170
LEFT, TOP, GAP_X, GAP_Y, HEAD = 44, 22, 58, 62, 58
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.t{font-weight:600}.a{font-size:10px;fill:#666}"
    ".g{stroke:#ddd;stroke-width:1}.z{stroke:#888;stroke-width:1}.l{fill:none;stroke-width:1.8}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.a{fill:#aaa}.g{stroke:#444}.l[stroke='#000000']"
    "{stroke:#fff}}"
)


def damage_svg(curves: Sequence[Curve], *, title: str = "Damage by perturbation") -> str:
    """The picture: damage over the share that is hit, with bands of two standard errors."""
    rows = -(-len(curves) // COLUMNS)
    width = LEFT + COLUMNS * (WIDTH + GAP_X)
    height = HEAD + max(rows, 1) * (HEIGHT + GAP_Y)
    low = _floor(curves)
    shown = [name for name in COLORS if any(name in curve.area for curve in curves)]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{html.escape(title)}</title>",
        f"<style>{STYLE}</style>",
        f'<text class="t" x="{LEFT}" y="18">{html.escape(title)}</text>',
        *_legend(shown),
    ]
    for index, curve in enumerate(curves):
        x = LEFT + index % COLUMNS * (WIDTH + GAP_X)
        y = HEAD + TOP + index // COLUMNS * (HEIGHT + GAP_Y)
        parts.append(f'<g transform="translate({x} {y})">')
        parts.extend(_panel(curve, low))
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend(shown: Sequence[str]) -> list[str]:
    parts, x = [], LEFT
    for name in shown:
        parts.append(f'<path class="l" stroke="{COLORS[name]}" d="M{x} 36h18"/>')
        parts.append(f'<text x="{x + 23}" y="40">{LABELS[name]}</text>')
        x += 42 + 7 * len(LABELS[name])
    return parts


def _panel(curve: Curve, low: float) -> list[str]:
    parts = [f'<text class="t" x="0" y="-8">{html.escape(curve.operator)}</text>']
    for tick in range(round(low * 4), 5):
        y = _number(_y(tick / 4, low))
        parts.append(f'<path class="{"g" if tick else "z"}" d="M0 {y}h{WIDTH}"/>')
        parts.append(f'<text class="a" x="-6" y="{y}" dy="3" text-anchor="end">{tick / 4:g}</text>')
    for p in (0, 0.25, 0.5, 0.75, 1):
        x = _number(p * WIDTH)
        parts.append(f'<text class="a" x="{x}" y="{HEIGHT + 14}" text-anchor="middle">{p:g}</text>')
    parts.append(
        f'<text class="a" x="{WIDTH / 2:g}" y="{HEIGHT + 29}" text-anchor="middle">share that is hit</text>'
    )
    for name, color in COLORS.items():
        if name in curve.area:
            parts.extend(_line(curve.points, name, color, low))
    return parts


def _line(points: Sequence[Point], name: str, color: str, low: float) -> list[str]:
    """The line of means, and its band."""
    rows = [(0.0, 0.0, 0.0), *((point.p, point.damage[name], 2 * point.error[name]) for point in points)]
    above = [_place(p, mean + error, low) for p, mean, error in rows]
    below = [_place(p, mean - error, low) for p, mean, error in reversed(rows)]
    line = [_place(p, mean, low) for p, mean, _ in rows]
    return [
        f'<path fill="{color}" fill-opacity="0.12" d="M{"L".join([*above, *below])}Z"/>',
        f'<path class="l" stroke="{color}" d="M{"L".join(line)}"/>',
    ]


def _floor(curves: Sequence[Curve]) -> float:
    """The lowest mean damage, rounded down to a quarter: Forest Match can rise."""
    values = [value for curve in curves for point in curve.points for value in point.damage.values()]
    return min(0.0, math.floor(min(values, default=0.0) * 4) / 4)


def _place(p: float, value: float, low: float) -> str:
    return f"{_number(p * WIDTH)} {_number(_y(min(max(value, low), 1), low))}"


def _y(value: float, low: float) -> float:
    return HEIGHT * (1 - (value - low) / (1 - low))


def _number(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")
