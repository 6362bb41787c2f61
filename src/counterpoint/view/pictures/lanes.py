"""Lanes: a line for each agent, time from left to right, a mark for each step, a curve for each transfer.

Up to `MOST_STEPS` steps each is drawn. Above, columns are joined: a bar stands for the steps of one agent in
one stretch of time, stacked by outcome, and a curve for all transfers between two bars. What is not drawn is
counted below the picture.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from msgspec import Struct

from counterpoint.view.pictures.drawing import OUTCOMES, frame, hatching, mark, place, text_at
from counterpoint.view.pictures.scene import Link, Scene, Spot
from counterpoint.view.visible import escaped, shortened

__all__ = ["lanes_svg"]

MOST_STEPS, MOST_COLUMNS, MOST_CURVES = 300, 120, 800
STRETCHES = 48
"""Columns of a picture whose columns are joined, at most."""
GUTTER, TOP, LANE, COLUMN, BAR = 170, 62, 36, 40, 26
NAME = 22
TITLE, LEGEND_STEP = 80, 7


class Curve(Struct, frozen=True):
    """Transfers between two marks that are drawn as one."""

    source: tuple[int, int]
    """Lane and column."""
    target: tuple[int, int]
    within: bool
    count: int
    load: float


class Bar(Struct, frozen=True):
    """The steps of one lane in one stretch."""

    lane: int
    column: int
    counts: Mapping[str, int]
    """Outcome to steps, in the order of `OUTCOMES`."""
    repeated: int
    tokens: int


def lanes_svg(
    shown: Scene,
    *,
    title: str = "Who spoke, who heard whom",
    links: Mapping[str, str] | None = None,
    alone: bool = True,
) -> str:
    """The picture.

    Parameters
    ----------
    shown: what `scene` made of a trace.
    title: of the picture, as text.
    links: step id to the id of the page's element that shows the step.
    alone: with its own style; False where the page has it.
    """
    detailed = len(shown.spots) <= MOST_STEPS and shown.columns <= MOST_COLUMNS
    stretch = 1 if detailed else max(1, -(-shown.columns // STRETCHES))
    columns = -(-shown.columns // stretch)
    curves = _curves(shown, stretch)
    drawn = sorted(curves, key=lambda one: (-one.load, -one.count, one.source, one.target))[:MOST_CURVES]
    most = max((one.count for one in drawn), default=1)
    width = max(GUTTER + columns * COLUMN + 16, 620)
    bottom = TOP + len(shown.lanes) * LANE
    notes = list(_notes(shown, curves, drawn, stretch))
    parts = [
        text_at(12, 18, shortened(title, TITLE), "t"),
        *_legend(shown, detailed),
        *_rounds(shown, stretch, bottom),
        *_lanes(shown, width),
        *(
            _curve(one, 1 if detailed else most)
            for one in sorted(drawn, key=lambda one: (one.load, one.count))
        ),
        *(_marks(shown, links or {}) if detailed else _bars(shown, stretch)),
        *(text_at(12, bottom + 20 + 14 * row, note, "a") for row, note in enumerate(notes)),
    ]
    return frame(
        parts, width, bottom + 20 + 14 * len(notes), title=escaped(title), about=_about(shown), alone=alone
    )


def _about(shown: Scene) -> str:
    """What a screen reader says of the picture."""
    counts = {name: sum(spot.outcome == name for spot in shown.spots) for name in OUTCOMES}
    told = ", ".join(f"{count} {OUTCOMES[name]}" for name, count in counts.items() if count)
    within = sum(link.within for link in shown.links)
    names = len(shown.lanes) - bool(shown.others) + shown.others
    return (
        f"{len(shown.spots)} steps ({told}) of {names} names in "
        f"{len(shown.starts)} rounds; {within} transfers within a round, {len(shown.links) - within} across"
    )


def _notes(shown: Scene, curves: Sequence[Curve], drawn: Sequence[Curve], stretch: int) -> Iterator[str]:
    if stretch > 1 or len(shown.spots) > MOST_STEPS:
        yield (
            f"{len(shown.spots):,} steps are too many to draw each: a bar stands for the steps of one name "
            f"in {stretch} columns of time, its height for how many."
        )
    left = sum(one.count for one in curves) - sum(one.count for one in drawn)
    if left:
        yield f"{left:,} of {len(shown.links):,} transfers are not drawn: those on the thinnest curves."
    inner = len(shown.links) - sum(one.count for one in curves)
    if inner:
        yield f"{inner:,} transfers among the {shown.others} others, or within one bar, are not drawn."
    if shown.judged_by:
        yield (
            "Width of a curve: its share of the unnecessary paths, those with too few "
            f"{html.escape(shown.judged_by)}."
        )


def _legend(shown: Scene, detailed: bool) -> Iterator[str]:
    x = 12.0
    used = {spot.outcome for spot in shown.spots}
    for name, label in OUTCOMES.items():
        if name in used:
            yield mark(name if detailed else "other", x + 6, 36, 6).replace('"other"', f'"{name}"', 1)
            yield text_at(x + 17, 40, label)
            x += 30 + LEGEND_STEP * len(label)
    if any(spot.repeated for spot in shown.spots):
        yield mark("right", x + 6, 36, 6, hatched=True)
        yield text_at(x + 17, 40, "said before")
        x += 30 + LEGEND_STEP * 11
    for kind, label, here in (("", "same round", True), (" d", "earlier round", False)):
        if any(link.within is here for link in shown.links):
            yield f'<path class="e{kind}" stroke-width="1.8" d="M{place(x)} 36h22"/>'
            yield text_at(x + 27, 40, label)
            x += 40 + LEGEND_STEP * len(label)


def _rounds(shown: Scene, stretch: int, bottom: float) -> Iterator[str]:
    """A line and a label where a round starts; as many labels as have room."""
    free = -math.inf
    for turn, column in sorted(shown.starts.items()):
        x = GUTTER + column / stretch * COLUMN
        label = f"round {turn}" if free == -math.inf else str(turn)
        if x >= free:
            yield f'<path class="g" d="M{place(x)} {TOP - 4}V{place(bottom)}"/>'
            yield text_at(x + 3, TOP - 4, label, "a")
            free = x + 12 + 6 * len(label)


def _lanes(shown: Scene, width: float) -> Iterator[str]:
    for number, name in enumerate(shown.lanes):
        y = _y(number)
        yield f'<path class="g" d="M{GUTTER} {place(y)}H{place(width - 8)}"/>'
        label = text_at(GUTTER - 10, y + 4, shortened(name, NAME), anchor="end")
        yield f"<g><title>{shortened(name, 200)}</title>{label}</g>"


def _marks(shown: Scene, links: Mapping[str, str]) -> Iterator[str]:
    most = max((spot.tokens for spot in shown.spots), default=1) or 1
    for spot in shown.spots:
        title = f"{shortened(spot.step, 60)}, {shortened(shown.lanes[spot.lane], 60)}, round {spot.round}: "
        title += f"{OUTCOMES[spot.outcome]}, {spot.tokens:,} tokens{', said before' if spot.repeated else ''}"
        size = 4.5 + 7.5 * math.sqrt(spot.tokens / most)
        drawn = mark(spot.outcome, _x(spot.column), _y(spot.lane), size, title=title, hatched=spot.repeated)
        goal = links.get(spot.step)
        yield f'<a href="#{html.escape(goal)}" tabindex="-1">{drawn}</a>' if goal else drawn


def _bars(shown: Scene, stretch: int) -> Iterator[str]:
    bars = list(_joined(shown, stretch))
    most = max(sum(bar.counts.values()) for bar in bars)
    for bar in bars:
        steps = sum(bar.counts.values())
        height = 6 + (LANE - 16) * math.sqrt(steps / most)
        x, y = _x(bar.column) - BAR / 2, _y(bar.lane) + height / 2
        told = ", ".join(f"{count:,} {OUTCOMES[name]}" for name, count in bar.counts.items())
        yield f"<g><title>{shortened(shown.lanes[bar.lane], 60)}: {steps:,} steps ({told}), "
        yield f"{bar.repeated:,} said before, {bar.tokens:,} tokens</title>"
        for name, count in bar.counts.items():
            part = height * count / steps
            y -= part
            yield (f'<path class="{name}" d="M{place(x)} {place(y)}h{BAR}v{place(part)}h{-BAR}z"/>')
        if 2 * bar.repeated >= steps:
            yield hatching(_x(bar.column), _y(bar.lane), min(height / 2, BAR / 2))
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


def _curves(shown: Scene, stretch: int) -> list[Curve]:
    joined: dict[tuple[tuple[int, int], tuple[int, int], bool], list[Link]] = {}
    for link in shown.links:
        one, other = shown.spots[link.source], shown.spots[link.target]
        ends = (one.lane, one.column // stretch), (other.lane, other.column // stretch)
        if one.lane != other.lane:
            joined.setdefault((*ends, link.within), []).append(link)
    return [
        Curve(source, target, within, len(links), max(link.load for link in links))
        for (source, target, within), links in joined.items()
    ]


def _curve(curve: Curve, most: int) -> str:
    x, y = _x(curve.source[1]), _y(curve.source[0])
    to_x, to_y = _x(curve.target[1]), _y(curve.target[0])
    wide = 0.9 + 4.1 * max(curve.load, 0.0 if most == 1 else 0.4 * curve.count / most)
    bend = max(14.0, (to_x - x) * 0.45)
    kind = "e" if curve.within else "e d"
    return (
        f'<path class="{kind}" stroke-width="{place(wide)}" d="M{place(x)} {place(y)}'
        f'C{place(x + bend)} {place(y)} {place(to_x - bend)} {place(to_y)} {place(to_x)} {place(to_y)}"/>'
    )


def _x(column: int) -> float:
    return GUTTER + (column + 0.5) * COLUMN


def _y(lane: int) -> float:
    return TOP + (lane + 0.5) * LANE
