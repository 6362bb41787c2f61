"""Lanes of a long trace: columns of time joined into stretches, a bar for one agent's steps in each.

Transfers within a stretch are arcs right of its bars, whichever way they went; of each stretch the
`MOST_ARCS` widest are drawn. Width is the largest load among an arc's transfers, or their number where loads
are not known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import groupby

from msgspec import Struct

from counterpoint.view.pictures.drawing import OUTCOMES, hatching, place
from counterpoint.view.pictures.scene import Link, Scene, Spot
from counterpoint.view.visible import shortened

__all__ = ["STRETCHES", "Plot", "arcs", "bars"]

STRETCHES = 22
"""Columns of a picture whose columns are joined, at most: as many as a page is wide."""
MOST_ARCS = 8
BAR, INSET = 18, 4
"""Width of a bar, and how far it stands from the left of its column."""


class Plot(Struct, frozen=True):
    """Where lanes and columns of a scene are drawn."""

    left: float
    top: float
    lane: float
    column: float
    stretch: int
    """Columns of the scene in one of the picture."""

    def x(self, column: int) -> float:
        """Middle of a column of the scene."""
        return self.left + (column // self.stretch + 0.5) * self.column

    def y(self, lane: int) -> float:
        """Middle of a lane."""
        return self.top + (lane + 0.5) * self.lane


class Bar(Struct, frozen=True):
    """The steps of one lane in one stretch."""

    lane: int
    column: int
    """Of the picture."""
    counts: Mapping[str, int]
    """Outcome to steps, in the order of `OUTCOMES`."""
    repeated: int
    tokens: int


class Arc(Struct, frozen=True):
    """Transfers between two bars that are drawn as one; ends are (column, lane)."""

    source: tuple[int, int]
    target: tuple[int, int]
    within: bool
    count: int
    load: float


def bars(shown: Scene, plot: Plot) -> Iterator[str]:
    """The bars, each with a title that tells its numbers."""
    joined = list(_joined(shown, plot.stretch))
    most = max(sum(bar.counts.values()) for bar in joined)
    for bar in joined:
        steps = sum(bar.counts.values())
        height = 6 + (plot.lane - 12) * math.sqrt(steps / most)
        x = plot.left + bar.column * plot.column + INSET
        y = plot.y(bar.lane) + height / 2
        told = ", ".join(f"{count:,} {OUTCOMES[name]}" for name, count in bar.counts.items())
        yield f"<g><title>{shortened(shown.lanes[bar.lane], 60)}: {steps:,} steps ({told}), "
        yield f"{bar.repeated:,} said before, {bar.tokens:,} tokens</title>"
        for name, count in bar.counts.items():
            part = height * count / steps
            y -= part
            yield (f'<path class="{name}" d="M{place(x)} {place(y)}h{BAR}v{place(part)}h{-BAR}z"/>')
        if 2 * bar.repeated >= steps:
            yield hatching(x + BAR / 2, plot.y(bar.lane), min(height / 2, BAR / 2))
        yield "</g>"


def _joined(shown: Scene, stretch: int) -> Iterator[Bar]:
    def cell(spot: Spot) -> tuple[int, int]:
        return spot.lane, spot.column // stretch

    for (lane, column), group in groupby(sorted(shown.spots, key=cell), cell):
        spots = list(group)
        counts = {name: sum(spot.outcome == name for spot in spots) for name in OUTCOMES}
        known = {name: count for name, count in counts.items() if count}
        repeated = sum(spot.repeated for spot in spots)
        yield Bar(lane, column, known, repeated, sum(spot.tokens for spot in spots))


def arcs(shown: Scene, plot: Plot) -> tuple[int, list[str]]:
    """How many transfers are left out, and the others as arcs."""
    found = sorted(_arcs(shown, plot.stretch), key=lambda one: (one.source[0], -one.load, -one.count))
    kept = [arc for _, group in groupby(found, lambda one: one.source[0]) for arc in list(group)[:MOST_ARCS]]
    most = max((arc.count for arc in kept), default=1)
    left = sum(arc.count for arc in found) - sum(arc.count for arc in kept)
    return left, [
        _arc(arc, plot, len(shown.lanes), arc.load if shown.judged_by else arc.count / most) for arc in kept
    ]


def _arcs(shown: Scene, stretch: int) -> list[Arc]:
    joined: dict[tuple[tuple[int, int], tuple[int, int], bool], list[Link]] = {}
    for link in shown.links:
        one, other = (
            (spot.column // stretch, spot.lane)
            for spot in (shown.spots[link.source], shown.spots[link.target])
        )
        if one[1] != other[1]:
            joined.setdefault((min(one, other), max(one, other), link.within), []).append(link)
    return [
        Arc(source, target, within, len(links), max(link.load for link in links))
        for (source, target, within), links in joined.items()
    ]


def _arc(arc: Arc, plot: Plot, lanes: int, share: float) -> str:
    x, to_x = (plot.left + column * plot.column + INSET for column, _ in (arc.source, arc.target))
    y, to_y = plot.y(arc.source[1]), plot.y(arc.target[1])
    x += BAR
    room = (plot.column - BAR - INSET) * 1.25
    bend = 6 + room * abs(arc.source[1] - arc.target[1]) / max(lanes - 1, 1)
    if arc.source[0] == arc.target[0]:
        to_x += BAR
        ends = f"{place(x + bend)} {place(y)} {place(x + bend)} {place(to_y)}"
    else:
        ends = f"{place(x + 14)} {place(y)} {place(to_x - 14)} {place(to_y)}"
    return (
        f'<path class="{"e" if arc.within else "e d"}" stroke-width="{place(0.6 + 2.6 * share * share)}" '
        f'd="M{place(x)} {place(y)}C{ends} {place(to_x)} {place(to_y)}"/>'
    )
