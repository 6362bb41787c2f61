"""Charts of results: diversity over the weight of words, amounts by agent, differences with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from counterpoint.compare import Comparison, Difference
from counterpoint.metrics.diversity import LAMS, diversity_curve
from counterpoint.score import Score
from counterpoint.view import table
from counterpoint.view.pictures.drawing import frame, place, text_at
from counterpoint.view.visible import escaped, shortened

__all__ = ["comparison_svg", "cost_svg", "ids_svg"]

WIDTH, HEIGHT, LEFT, TOP = 300, 180, 52, 36
MOST_LINES, MOST_BARS = 5, 20
BAR, NAMES, BARS = 22, 170, 260
ROW, PLOT, TITLE = 24, 260, 80


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
        parts.append(f'<path class="l l{number}" d="M{LEFT + WIDTH + 16} {y}h18"/>')
        parts.append(text_at(LEFT + WIDTH + 40, y + 4, shortened(name, 22)))
        about.append(f"{shortened(name, 60)}: {values[0]:.3f} at 0, {values[-1]:.3f} at 1")
    if len(curves) > MOST_LINES:
        y = TOP + 12 + 18 * MOST_LINES
        parts.append(text_at(LEFT + WIDTH + 16, y, f"{len(curves) - MOST_LINES} more systems not drawn", "a"))
    size = LEFT + WIDTH + 200, TOP + HEIGHT + 44
    return frame(parts, *size, title=title, about="; ".join(about) or "nothing to draw", alone=alone)


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
        f"{escaped(row.metric)} {_signed(row.difference or 0.0, row.metric)}, {escaped(row.verdict)}"
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
    yield text_at(NAMES - 8, y + 4, escaped(row.metric), anchor="end")
    told = _signed(row.difference, row.metric)
    if low is not None and high is not None:
        x, to = middle + low * scale, middle + high * scale
        yield f'<path class="l l0" d="M{place(x)} {place(y)}H{place(to)}M{place(x)} {place(y - 4)}v8'
        yield f'M{place(to)} {place(y - 4)}v8"/>'
        told += f" [{_signed(low, row.metric)}, {_signed(high, row.metric)}]"
    yield f'<circle class="b" cx="{place(middle + row.difference * scale)}" cy="{place(y)}" r="4"/>'
    pair = f" ({shortened(row.label_b, 16)} – {shortened(row.label_a, 16)})" if named else ""
    yield text_at(NAMES + PLOT + 8, y + 4, f"{told}  {escaped(row.verdict)}{pair}", "a")


def _signed(value: float, metric: str) -> str:
    return ("+" if value > 0 else "") + table.number(value, metric)
