"""Charts of results: diversity over the weight of words, claims over positions, amounts by agent, differences
with intervals. Lines differ in color and in dashes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from counterpoint.compare import Comparison, Difference
from counterpoint.metrics.diversity import LAMS, diversity_curve
from counterpoint.score import Score
from counterpoint.view.pictures.drawing import frame, place, text_at
from counterpoint.view.table import signed
from counterpoint.view.visible import escaped, shortened

__all__ = ["claims_svg", "comparison_svg", "cost_svg", "ids_svg"]

WIDTH, HEIGHT, LEFT, TOP = 300, 180, 52, 36
MOST_LINES, MOST_BARS = 5, 20
BAR, NAMES, BARS = 22, 170, 260
ROW, PLOT, TITLE = 24, 260, 80
SHARE, APART = 240, 60
"""Width of one of two panels, and what is between them."""


def ids_svg(curves: Mapping[str, Score], *, alone: bool = True) -> str:
    """IDS of each system over λ, the weight of words against meaning: a straight line each.

    Parameters
    ----------
    curves: system to a score with parts ``syntactic`` and ``semantic``; the first five are drawn.
    """
    title, about = "IDS over λ", []
    parts = [text_at(12, 18, title, "t")]
    for tick in (0, 0.25, 0.5, 0.75, 1):
        x, y = LEFT + tick * WIDTH, TOP + (1 - tick) * HEIGHT
        parts.append(f'<path class="{"g" if tick else "z"}" d="M{LEFT} {place(y)}h{WIDTH}"/>')
        parts.append(text_at(LEFT - 6, y + 3, f"{tick:g}", "a", "end"))
        parts.append(text_at(x, TOP + HEIGHT + 14, f"{tick:g}", "a", "middle"))
    parts.append(
        text_at(LEFT + WIDTH / 2, TOP + HEIGHT + 30, "λ: 0 meaning only, 1 words only", "a", "middle")
    )
    for number, (name, score) in enumerate(list(curves.items())[:MOST_LINES]):
        values = diversity_curve(score).tolist()
        path = "L".join(
            f"{place(LEFT + lam * WIDTH)} {place(TOP + (1 - value) * HEIGHT)}"
            for lam, value in zip(LAMS, values, strict=True)
        )
        y = TOP + 8 + 18 * number
        parts.append(f'<path class="l l{number}" d="M{path}"/>')
        parts.append(f'<path class="l l{number}" d="M{LEFT + WIDTH + 12} {y}h24"/>')
        parts.append(text_at(LEFT + WIDTH + 40, y + 4, shortened(name, 22)))
        about.append(f"{shortened(name, 60)}: {values[0]:.3f} at 0, {values[-1]:.3f} at 1")
    if len(curves) > MOST_LINES:
        y = TOP + 12 + 18 * MOST_LINES
        parts.append(text_at(LEFT + WIDTH + 16, y, f"{len(curves) - MOST_LINES} more systems not drawn", "a"))
    size = LEFT + WIDTH + 200, TOP + HEIGHT + 44
    return frame(parts, *size, title=title, about="; ".join(about) or "nothing to draw", alone=alone)


def claims_svg(counts: Mapping[str, Sequence[tuple[float, float]]], *, alone: bool = True) -> str:
    """Different claims at each position, all and those beyond the source: two panels, a line a system.

    Parameters
    ----------
    counts: system to, at each position, claims that the source supports and claims that go beyond it; the
        first five systems are drawn.
    """
    title, about = "Claims over positions", []
    parts = [text_at(12, 18, title, "t")]
    most = _top(max((sum(pair) for pairs in counts.values() for pair in pairs), default=0.0))
    positions = max((len(pairs) for pairs in counts.values()), default=1) or 1
    shown = list(counts.items())[:MOST_LINES]
    for panel, heading in enumerate(("different claims", "of them beyond the source")):
        left = LEFT + panel * (SHARE + APART)
        parts.append(text_at(left, 38, heading))
        parts.extend(_grid(left, most, positions))
        for number, (_, pairs) in enumerate(shown):
            values = [pair[1] if panel else sum(pair) for pair in pairs]
            parts.extend(_points(left, [value / most for value in values], positions, number))
    for number, (name, pairs) in enumerate(shown):
        x, y = LEFT + 2 * SHARE + APART + 16, TOP + 30 + 18 * number
        parts.append(f'<path class="l l{number}" d="M{x} {y}h24"/>')
        parts.append(text_at(x + 30, y + 4, shortened(name, 22)))
        told = ", ".join(f"{sum(pair):.3g} ({pair[1]:.3g} beyond)" for pair in pairs[:12])
        about.append(f"{shortened(name, 60)}: {told}")
    if len(counts) > MOST_LINES:
        y = TOP + 34 + 18 * MOST_LINES
        x = LEFT + 2 * SHARE + APART + 16
        parts.append(text_at(x, y, f"{len(counts) - MOST_LINES} more systems not drawn", "a"))
    size = LEFT + 2 * SHARE + APART + 220, TOP + HEIGHT + 64
    return frame(parts, *size, title=title, about="; ".join(about) or "nothing to draw", alone=alone)


def _top(most: float) -> float:
    """The end of an axis from 0 with four equal steps of 1, 2 or 5 times a power of ten."""
    steps = (digit * 10.0**power for power in range(300) for digit in (1, 2, 5))
    return 4 * next(step for step in steps if 4 * step >= most)


def _grid(left: float, most: float, positions: int) -> Iterator[str]:
    """Lines from 0 to ``most``, and positions below as far as there is room."""
    for tick in range(5):
        y = TOP + 20 + (1 - tick / 4) * HEIGHT
        yield f'<path class="{"g" if tick else "z"}" d="M{place(left)} {place(y)}h{SHARE}"/>'
        yield text_at(left - 6, y + 3, f"{most * tick / 4:.3g}", "a", "end")
    for position in range(0, positions, -(-positions // 12)):
        x = left + _along(position, positions)
        yield text_at(x, TOP + HEIGHT + 34, str(position + 1), "a", "middle")
    yield text_at(left + SHARE / 2, TOP + HEIGHT + 50, "position", "a", "middle")


def _points(left: float, shares: Sequence[float], positions: int, number: int) -> Iterator[str]:
    """A line through points, each of which is marked: one point alone is seen too."""
    places = [
        (left + _along(position, positions), TOP + 20 + (1 - share) * HEIGHT)
        for position, share in enumerate(shares)
    ]
    if len(places) > 1:
        yield f'<path class="l l{number}" d="M{"L".join(f"{place(x)} {place(y)}" for x, y in places)}"/>'
    for x, y in places:
        yield f'<circle class="f{number}" cx="{place(x)}" cy="{place(y)}" r="2.5"/>'


def _along(position: int, positions: int) -> float:
    return SHARE * (position + 0.5) / positions


def cost_svg(amounts: Mapping[str, float], *, title: str, unit: str, alone: bool = True) -> str:
    """Bars, the longest first; those beyond the twentieth are one bar."""
    ranked = sorted(amounts.items(), key=lambda one: -one[1])
    shown, rest = ranked[:MOST_BARS], ranked[MOST_BARS:]
    if rest:
        shown.append((f"{len(rest)} others", sum(value for _, value in rest)))
    total = sum(amounts.values())
    most = max((value for _, value in shown), default=0) or 1
    parts = [text_at(12, 18, shortened(title, TITLE), "t")]
    for number, (name, value) in enumerate(shown):
        y = TOP + number * BAR
        told = f"{_amount(value, unit)} ({value / total:.0%})" if total else _amount(value, unit)
        parts.append(text_at(NAMES - 8, y + 12, shortened(name, 22), anchor="end"))
        wide = BARS * value / most
        parts.append(f'<path class="b" d="M{NAMES} {y + 2}h{place(wide)}v14h{place(-wide)}z"/>')
        parts.append(text_at(NAMES + wide + 6, y + 13, told, "a"))
    about = "; ".join(f"{shortened(name, 60)} {_amount(value, unit)}" for name, value in shown)
    height = TOP + len(shown) * BAR + 8
    return frame(parts, NAMES + BARS + 150, height, title=escaped(title), about=about or "none", alone=alone)


def _amount(value: float, unit: str) -> str:
    return f"${value:.3g}" if unit == "USD" else f"{value:,.0f} {unit}"


def comparison_svg(
    found: Comparison, *, title: str = "Differences, with intervals", alone: bool = True
) -> str:
    """Forest plot: a line a metric and pair, its difference and 95 % interval; zero is one line for all.

    Metrics have units of their own, so each line has its own scale: what is seen is on which side of zero an
    interval lies, and how wide it is for its difference. The numbers stand beside it.
    """
    rows = [row for row in found.rows if row.difference is not None]
    parts = [text_at(12, 18, shortened(title, TITLE), "t")]
    middle, bottom = NAMES + PLOT / 2, TOP + len(rows) * ROW
    parts.append(f'<path class="z" d="M{place(middle)} {TOP - 4}V{bottom}"/>')
    for number, row in enumerate(rows):
        parts.extend(_difference(row, TOP + (number + 0.5) * ROW, middle, len(found.pairs) > 1))
    left = len(found.rows) - len(rows)
    note = "Each line has its own scale; the upright line is no difference."
    parts.append(text_at(12, bottom + 18, note, "a"))
    if left:
        parts.append(text_at(12, bottom + 32, f"{left} metrics without a difference are not drawn.", "a"))
    about = "; ".join(
        f"{escaped(row.metric)} {signed(row.difference or 0.0, row.metric)}, {escaped(row.verdict)}"
        for row in rows
    )
    return frame(
        parts, NAMES + PLOT + 390, bottom + 42, title=escaped(title), about=about or "none", alone=alone
    )


def _difference(row: Difference, y: float, middle: float, named: bool) -> Iterator[str]:
    assert row.difference is not None  # filtered by the caller
    low, high = row.ci_low, row.ci_high
    ends = [row.difference] if low is None or high is None else [row.difference, low, high]
    scale = (PLOT / 2 - 10) / (max(map(abs, ends)) or 1)
    name = text_at(NAMES - 8, y + 4, shortened(row.metric, 24), anchor="end")
    yield f"<g><title>{escaped(row.metric)}</title>{name}</g>"
    told = signed(row.difference, row.metric)
    if low is not None and high is not None:
        x, to = middle + low * scale, middle + high * scale
        yield f'<path class="l l0" d="M{place(x)} {place(y)}H{place(to)}M{place(x)} {place(y - 4)}v8'
        yield f'M{place(to)} {place(y - 4)}v8"/>'
        told += f" [{signed(low, row.metric)}, {signed(high, row.metric)}]"
    yield f'<circle class="b" cx="{place(middle + row.difference * scale)}" cy="{place(y)}" r="4"/>'
    pair = f" ({shortened(row.label_b, 16)} – {shortened(row.label_a, 16)})" if named else ""
    yield text_at(NAMES + PLOT + 8, y + 4, f"{told}  {escaped(row.verdict)}{pair}", "a")
