"""The team: a node for each agent on a circle, an arrow for all transfers from one to another.

Agents that reach each other in turn (a cycle) stand side by side, and the arrows between them are drawn in
color and bold: a cycle of two is a lens, a longer one a ring.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec import Struct

from counterpoint.view.pictures.drawing import frame, place, text_at
from counterpoint.view.pictures.scene import Scene
from counterpoint.view.visible import escaped, shortened

__all__ = ["team_svg"]

MOST_LABELS = 60
"""Arrows with their count beside them; where there are more, the count is in their title and width only."""
MOST_ARROWS = 300
SIDE, ARC, NAME, TITLE = 190, 34, 22, 60
LETTER, NARROWEST = 7, 420
"""Room for a letter of a name, and for the title and the legend."""
CROWD = 20
"""Above so many nodes their names stand like the spokes of a wheel."""
BEND, PULL, LABEL = 0.18, 0.75, 0.26
"""How far a curve swings out to its side, as a share of its length; in a crowd, how far toward the middle, as
a share of the way there; and where its count stands, as a share of the way from its source."""


Point = tuple[float, float]


class Ring(Struct, frozen=True):
    """Where the nodes stand."""

    places: dict[int, Point]
    middle: Point
    crowded: bool
    """Names stand like spokes, and arrows bend through the middle, away from the names."""


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
    if not arrows:
        return _silent(shown, title, alone)
    drawn = sorted(arrows, key=lambda one: (-one.count, one.source, one.target))[:MOST_ARROWS]
    ring = _ring(order, shown.lanes)
    sizes = _sizes(shown)
    labeled = len(drawn) <= MOST_LABELS
    parts = [text_at(12, 18, shortened(title, TITLE), "t"), *_legend(drawn)]
    parts.extend(_arrows_of(drawn, ring, sizes, shown.lanes))
    for one in drawn if labeled else ():
        x, y = _beside(ring, one)
        parts.append(text_at(x, y + 4, f"{one.count:,}", "k halo", "middle"))
    for lane in order:
        parts.extend(_node(shown, lane, ring.places[lane], sizes[lane]))
        parts.append(_name(shortened(shown.lanes[lane], NAME), ring, lane, sizes[lane]))
    notes = list(_notes(arrows, drawn, labeled))
    foot = max((at[1] for at in ring.places.values()), default=0) + (SIDE if ring.crowded else 44)
    parts.extend(text_at(12, foot + 14 * row, note, "a") for row, note in enumerate(notes))
    width, height = 2 * ring.middle[0], foot + 14 * len(notes)
    return frame(parts, width, height, title=escaped(title), about=_about(shown, arrows), alone=alone)


def _silent(shown: Scene, title: str, alone: bool) -> str:
    """One line: a circle of nodes without an arrow would tell no more."""
    told = "Nobody heard anybody, so there is no arrow to draw."
    parts = [text_at(12, 18, shortened(title, TITLE), "t"), text_at(12, 40, told)]
    return frame(parts, NARROWEST, 54, title=escaped(title), about=_about(shown, []), alone=alone)


def _notes(arrows: Sequence[Arrow], drawn: Sequence[Arrow], labeled: bool) -> Iterator[str]:
    count = "beside it" if labeled else "in its title"
    yield "Size of a node: the tokens of what it said."
    yield f"Width of an arrow: its transfers, counted {count}."
    left = len(arrows) - len(drawn)
    if left:
        number = sum(one.count for one in arrows) - sum(one.count for one in drawn)
        yield f"{left:,} of {len(arrows):,} arrows, the thinnest, with {number:,} transfers, are not drawn."


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


def _ring(order: Sequence[int], names: Sequence[str]) -> Ring:
    radius = max(min(60.0 + 26 * len(order), 230.0), ARC * len(order) / (2 * math.pi))
    crowded = len(order) > CROWD
    longest = max((len(name) for name in names), default=0)
    side = SIDE if crowded else min(SIDE, 36 + LETTER * min(longest, NAME))
    middle = max(radius + side, NARROWEST / 2), (SIDE if crowded else 84) + radius
    places = {lane: _around(middle, radius, number / max(len(order), 1)) for number, lane in enumerate(order)}
    return Ring(places, middle, crowded)


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


def _arrows_of(
    drawn: Sequence[Arrow], ring: Ring, sizes: Sequence[float], names: Sequence[str]
) -> Iterator[str]:
    """The arrows, the widest on top; thin and pale where they are many."""
    most = max((one.count for one in drawn), default=1)
    many = len(drawn) > MOST_LABELS
    for one in reversed(drawn):
        share = one.count / most
        wide = 0.8 + 3.7 * share * (share if many else 1)
        pale = many and share < 0.5
        yield from _arrow(one, ring, sizes[one.target] + 2, wide, " q" if pale else "", names)


def _arrow(one: Arrow, ring: Ring, gap: float, wide: float, more: str, names: Sequence[str]) -> Iterator[str]:
    start, end = ring.places[one.source], ring.places[one.target]
    bend = _bend(ring, one)
    tip = _toward(end, bend, gap)
    head = 5 + wide
    neck = _toward(tip, bend, head)
    kind = f"e{' c' if one.cyclic else ''}{'' if one.within else ' d'}{more}"
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


def _name(label: str, ring: Ring, lane: int, size: float) -> str:
    """The name outside the circle: level, or along the spoke where nodes are many."""
    at, middle = ring.places[lane], ring.middle
    right, gap = at[0] > middle[0] - 1, size + 6
    anchor = "start" if right else "end"
    if ring.crowded:
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


def _bend(ring: Ring, one: Arrow) -> Point:
    """Where the curve of an arrow bends: out to its side, and in a crowd toward the middle."""
    start, end = ring.places[one.source], ring.places[one.target]
    x, y = end[0] - start[0], end[1] - start[1]
    swing = BEND * (0.4 if ring.crowded else 1)
    at = (start[0] + end[0]) / 2 + y * swing, (start[1] + end[1]) / 2 - x * swing
    if not ring.crowded:
        return at
    pull = PULL * math.hypot(x, y) / (2 * math.dist(start, ring.middle))
    return at[0] + (ring.middle[0] - at[0]) * pull, at[1] + (ring.middle[1] - at[1]) * pull


def _beside(ring: Ring, one: Arrow) -> Point:
    """A point of the curve near its source, where few other curves pass."""
    start, bend, end = ring.places[one.source], _bend(ring, one), ring.places[one.target]
    near, half, far = (1 - LABEL) ** 2, 2 * LABEL * (1 - LABEL), LABEL**2
    return (
        near * start[0] + half * bend[0] + far * end[0],
        near * start[1] + half * bend[1] + far * end[1],
    )


def _toward(point: Point, goal: Point, distance: float) -> Point:
    x, y = goal[0] - point[0], goal[1] - point[1]
    length = math.hypot(x, y) or 1.0
    return point[0] + x / length * distance, point[1] + y / length * distance


def _at(point: Point) -> str:
    return f"{place(point[0])} {place(point[1])}"
