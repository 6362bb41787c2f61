"""The team: a node for each agent on a circle, an arrow for all transfers from one to another.

Agents that reach each other in turn (a cycle) stand side by side, and the arrows between them are drawn in
color and bold: a cycle of two is a lens, a longer one a ring.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from counterpoint.view.pictures.drawing import frame, place, text_at
from counterpoint.view.pictures.scene import Scene
from counterpoint.view.visible import escaped, shortened

__all__ = ["team_svg"]

MOST_LABELS = 60
"""Arrows with their count beside them; where there are more, the count is in their title and width only."""
MOST_ARROWS = 600
SIDE, BOTTOM, ARC, NAME, TITLE = 190, 66, 34, 22, 60
CROWD = 20
"""Above so many nodes their names stand like the spokes of a wheel."""
BEND = 0.18


class Arrow(Struct, frozen=True):
    """All transfers from one lane to another."""

    source: int
    target: int
    within: int
    across: int
    cyclic: bool

    @property
    def count(self) -> int:
        """Transfers."""
        return self.within + self.across


def team_svg(shown: Scene, *, title: str = "Who passed on how much", alone: bool = True) -> str:
    """The picture; ``alone``: with its own style, False where the page has it."""
    arrows, order = _arrows(shown)
    drawn = sorted(arrows, key=lambda one: (-one.count, one.source, one.target))[:MOST_ARROWS]
    radius = max(min(60.0 + 20 * len(order), 220.0), ARC * len(order) / (2 * math.pi))
    top = SIDE if len(order) > CROWD else 84
    width, height = 2 * (radius + SIDE), 2 * radius + top + (top if top == SIDE else BOTTOM)
    middle = width / 2, top + radius
    places = {lane: _around(middle, radius, number / max(len(order), 1)) for number, lane in enumerate(order)}
    sizes = _sizes(shown)
    most = max((one.count for one in drawn), default=1) * (1 if len(drawn) <= MOST_LABELS else 4)
    parts = [text_at(12, 18, shortened(title, TITLE), "t"), *_legend(drawn)]
    for one in reversed(drawn):
        parts.extend(_arrow(one, places, sizes, most, shown.lanes))
    for one in drawn if len(drawn) <= MOST_LABELS else ():
        x, y = _control(places[one.source], places[one.target], 0.62)
        parts.append(text_at(x, y + 4, f"{one.count:,}", "a halo", "middle"))
    for lane in order:
        parts.extend(_node(shown, lane, places[lane], sizes[lane]))
        parts.append(_name(shortened(shown.lanes[lane], NAME), places[lane], sizes[lane], middle, len(order)))
    left = sum(one.count for one in arrows) - sum(one.count for one in drawn)
    if left:
        note = f"{left:,} transfers on the thinnest arrows are not drawn."
        parts.append(text_at(12, height - 10, note, "a"))
    return frame(parts, width, height, title=escaped(title), about=_about(shown, arrows), alone=alone)


def _about(shown: Scene, arrows: Sequence[Arrow]) -> str:
    cyclic = len({one.source for one in arrows if one.cyclic})
    cycles = f"{cyclic} of them hear each other in a cycle" if cyclic else "no cycle"
    total = sum(one.count for one in arrows)
    return f"{len(shown.lanes)} names, {len(arrows)} arrows for {total} transfers; {cycles}"


def _arrows(shown: Scene) -> tuple[list[Arrow], list[int]]:
    """The arrows, and the lanes in their order around the circle."""
    counts: dict[tuple[int, int], list[int]] = {}
    for link in shown.links:
        ends = shown.spots[link.source].lane, shown.spots[link.target].lane
        if ends[0] != ends[1]:
            counts.setdefault(ends, [0, 0])[0 if link.within else 1] += 1
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(shown.lanes)))
    graph.add_edges_from(counts)
    groups = sorted(sorted(part) for part in nx.strongly_connected_components(graph))
    group = {lane: number for number, part in enumerate(groups) for lane in part}
    arrows = [
        Arrow(source, target, within, across, group[source] == group[target])
        for (source, target), (within, across) in counts.items()
    ]
    return arrows, [lane for part in groups for lane in part]


def _sizes(shown: Scene) -> list[float]:
    tokens = [0] * len(shown.lanes)
    for spot in shown.spots:
        tokens[spot.lane] += spot.tokens
    most = max(tokens, default=0) or 1
    largest = 9 if len(tokens) <= CROWD else 5
    return [5 + largest * math.sqrt(count / most) for count in tokens]


def _legend(drawn: Sequence[Arrow]) -> Iterator[str]:
    x = 12
    for kind, label, here in (
        ("e", "transfers", any(not one.cyclic for one in drawn)),
        ("e c", "part of a cycle", any(one.cyclic for one in drawn)),
        ("e d", "from earlier rounds only", any(not one.within for one in drawn)),
    ):
        if here:
            yield f'<path class="{kind}" stroke-width="2" d="M{x} 36h22"/>'
            yield text_at(x + 27, 40, label)
            x += 44 + 7 * len(label)


Point = tuple[float, float]


def _arrow(
    one: Arrow, places: Mapping[int, Point], sizes: Sequence[float], most: int, names: Sequence[str]
) -> Iterator[str]:
    start, end = places[one.source], places[one.target]
    bend = _control(start, end, 1.0)
    wide = 0.8 + 3.7 * one.count / most
    tip = _toward(end, bend, sizes[one.target] + 2)
    head = 5 + wide
    neck = _toward(tip, bend, head)
    kind = f"e{' c' if one.cyclic else ''}{'' if one.within else ' d'}"
    told = (
        f"{shortened(names[one.source], 60)} to {shortened(names[one.target], 60)}: {one.count:,} transfers"
    )
    yield f"<g><title>{told} ({one.within:,} within a round, {one.across:,} across)</title>"
    yield (f'<path class="{kind}" stroke-width="{place(wide)}" d="M{_at(start)}Q{_at(bend)} {_at(neck)}"/>')
    across = (tip[1] - neck[1]) * 0.5, (neck[0] - tip[0]) * 0.5
    sides = (neck[0] + across[0], neck[1] + across[1]), (neck[0] - across[0], neck[1] - across[1])
    head_kind = "pc" if one.cyclic else "p"
    yield f'<path class="{head_kind}" d="M{_at(tip)}L{_at(sides[0])}L{_at(sides[1])}z"/></g>'


def _node(shown: Scene, lane: int, at: Point, size: float) -> Iterator[str]:
    spots = [spot for spot in shown.spots if spot.lane == lane]
    tokens = sum(spot.tokens for spot in spots)
    yield f"<g><title>{shortened(shown.lanes[lane], 200)}: {len(spots):,} steps, {tokens:,} tokens</title>"
    yield f'<circle class="n" cx="{place(at[0])}" cy="{place(at[1])}" r="{place(size)}"/></g>'


def _name(label: str, at: Point, size: float, middle: Point, nodes: int) -> str:
    """The name outside the circle: level, or along the spoke where nodes are many."""
    right, gap = at[0] > middle[0] - 1, size + 6
    anchor = "start" if right else "end"
    if nodes > CROWD:
        turn = math.degrees(math.atan2(at[1] - middle[1], at[0] - middle[0])) - (0 if right else 180)
        text = text_at(gap if right else -gap, 4, label, "halo", anchor)
        return f'<g transform="translate({_at(at)}) rotate({place(turn)})">{text}</g>'
    if abs(at[0] - middle[0]) < 1:
        return text_at(at[0], at[1] + (-gap if at[1] < middle[1] else gap + 9), label, "halo", "middle")
    return text_at(at[0] + (gap if right else -gap), at[1] + 4, label, "halo", anchor)


def _around(middle: Point, radius: float, share: float) -> Point:
    """A point of the circle, clockwise from the top."""
    angle = 2 * math.pi * share - math.pi / 2
    return middle[0] + radius * math.cos(angle), middle[1] + radius * math.sin(angle)


def _control(start: Point, end: Point, share: float) -> Point:
    """Where the curve bends; with ``share`` .5, the middle of the curve itself."""
    x, y = end[0] - start[0], end[1] - start[1]
    return (start[0] + end[0]) / 2 + y * BEND * share, (start[1] + end[1]) / 2 - x * BEND * share


def _toward(point: Point, goal: Point, distance: float) -> Point:
    x, y = goal[0] - point[0], goal[1] - point[1]
    length = math.hypot(x, y) or 1.0
    return point[0] + x / length * distance, point[1] + y / length * distance


def _at(point: Point) -> str:
    return f"{place(point[0])} {place(point[1])}"
