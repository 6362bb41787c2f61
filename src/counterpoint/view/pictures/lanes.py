"""Lanes: a line for each agent, time from left to right, a mark for each step, a curve for each transfer.

Up to `MOST_STEPS` steps each is drawn. Above, columns are joined into stretches of time: see `stretches`.
What is not drawn is counted below the picture.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping

from counterpoint.view.pictures.drawing import OUTCOMES, frame, mark, place, text_at
from counterpoint.view.pictures.scene import Link, Scene
from counterpoint.view.pictures.stretches import STRETCHES, Plot, arcs, bars
from counterpoint.view.visible import escaped, shortened

__all__ = ["lanes_svg"]

MOST_STEPS, MOST_COLUMNS, MOST_CURVES = 300, 120, 800
GUTTER, TOP, LANE, COLUMN, JOINED = 170, 62, 36, 40, 44
NAME = 22
TITLE, LEGEND_STEP = 80, 7


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
    plot = Plot(GUTTER, TOP, LANE, COLUMN if detailed else JOINED, stretch)
    width = max(GUTTER + -(-shown.columns // stretch) * plot.column + 16, 620)
    bottom = TOP + len(shown.lanes) * LANE
    if detailed:
        left, curves = _curves(shown, plot)
        marks = _marks(shown, plot, links or {})
    else:
        left, curves = arcs(shown, plot)
        marks = bars(shown, plot)
    notes = list(_notes(shown, left, plot, detailed))
    parts = [
        text_at(12, 18, shortened(title, TITLE), "t"),
        *_legend(shown, detailed),
        *_rounds(shown, plot, bottom),
        *_lanes(shown, plot, width),
        *curves,
        *marks,
        *(text_at(12, bottom + 20 + 14 * row, note, "a") for row, note in enumerate(notes)),
    ]
    height = bottom + 20 + 14 * len(notes)
    return frame(parts, width, height, title=escaped(title), about=_about(shown), alone=alone)


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


def _notes(shown: Scene, left: int, plot: Plot, detailed: bool) -> Iterator[str]:
    if detailed:
        yield "Size of a mark: tokens of the step. Hatched: at least half of it was said before in the trace."
    else:
        yield (
            f"{len(shown.spots):,} steps are too many to draw each: a bar stands for the steps of one name "
            f"in {plot.stretch} columns of time. Its height says how many;"
        )
        yield (
            "it is stacked from below in the order of the legend, and hatched where at least half of its "
            "steps were said before."
        )
    if shown.judged_by:
        told = f"its share of the unnecessary paths, those with too few {html.escape(shown.judged_by)}"
        yield f"Width of a curve: {told}{'' if detailed else ', or how many transfers it stands for'}."
    elif shown.links:
        told = "Curves are equally wide" if detailed else "Width of a curve: how many transfers it stands for"
        yield f"{told}; unnecessary paths are not shown: {html.escape(shown.unloaded)}."
    if left:
        yield f"{left:,} of {len(shown.links):,} transfers are not drawn: those on the thinnest curves."
    inner = sum(shown.spots[link.source].lane == shown.spots[link.target].lane for link in shown.links)
    if inner:
        yield f"{inner:,} transfers among the {shown.others} others are not drawn."


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


def _rounds(shown: Scene, plot: Plot, bottom: float) -> Iterator[str]:
    """A line and a label where a round starts, or which one a stretch starts in; where there is room."""
    starts = sorted(shown.starts.items())
    if plot.stretch > 1:
        columns = range(0, shown.columns, plot.stretch)
        starts = [(max(turn for turn, start in starts if start <= column), column) for column in columns]
    free = -math.inf
    for turn, column in starts:
        x = plot.left + column / plot.stretch * plot.column
        label = f"round {turn}" if free == -math.inf else str(turn)
        if x >= free:
            yield f'<path class="g" d="M{place(x)} {TOP - 4}V{place(bottom)}"/>'
            yield text_at(x + 3, TOP - 4, label, "a")
            free = x + 12 + 6 * len(label)


def _lanes(shown: Scene, plot: Plot, width: float) -> Iterator[str]:
    for number, name in enumerate(shown.lanes):
        y = plot.y(number)
        yield f'<path class="g" d="M{GUTTER} {place(y)}H{place(width - 8)}"/>'
        label = text_at(GUTTER - 10, y + 4, shortened(name, NAME), anchor="end")
        yield f"<g><title>{shortened(name, 200)}</title>{label}</g>"


def _marks(shown: Scene, plot: Plot, links: Mapping[str, str]) -> Iterator[str]:
    most = max((spot.tokens for spot in shown.spots), default=1) or 1
    for spot in shown.spots:
        title = f"{shortened(spot.step, 60)}, {shortened(shown.lanes[spot.lane], 60)}, round {spot.round}: "
        title += f"{OUTCOMES[spot.outcome]}, {spot.tokens:,} tokens{', said before' if spot.repeated else ''}"
        size = 4.5 + 7.5 * math.sqrt(spot.tokens / most)
        x, y = plot.x(spot.column), plot.y(spot.lane)
        drawn = mark(spot.outcome, x, y, size, title=title, hatched=spot.repeated)
        goal = links.get(spot.step)
        yield f'<a href="#{html.escape(goal)}" tabindex="-1">{drawn}</a>' if goal else drawn


def _curves(shown: Scene, plot: Plot) -> tuple[int, list[str]]:
    """How many transfers are left out, and the others, the widest on top."""

    def apart(link: Link) -> bool:
        return shown.spots[link.source].lane != shown.spots[link.target].lane

    links = sorted(filter(apart, shown.links), key=lambda one: (-one.load, one.source, one.target))
    drawn = [_curve(shown, plot, link) for link in links[:MOST_CURVES]]
    return len(links) - len(drawn), drawn[::-1]


def _curve(shown: Scene, plot: Plot, link: Link) -> str:
    source, target = shown.spots[link.source], shown.spots[link.target]
    x, y = plot.x(source.column), plot.y(source.lane)
    to_x, to_y = plot.x(target.column), plot.y(target.lane)
    bend = max(14.0, (to_x - x) * 0.45)
    return (
        f'<path class="{"e" if link.within else "e d"}" stroke-width="{place(0.9 + 4.1 * link.load)}" '
        f'd="M{place(x)} {place(y)}'
        f'C{place(x + bend)} {place(y)} {place(to_x - bend)} {place(to_y)} {place(to_x)} {place(to_y)}"/>'
    )
