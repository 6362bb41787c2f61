"""What a forest says, as tables: on a terminal, as Markdown. Forest Match always stands with its bounds."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from counterpoint.metrics.damage_report import DamageReport
from counterpoint.metrics.forest_report import ForestReport, Run
from counterpoint.metrics.forests import Forest
from counterpoint.metrics.rolegraph import RoleGraph
from counterpoint.metrics.roles import coverage
from counterpoint.metrics.suitability import structural_suitability
from counterpoint.secrets import mask
from counterpoint.view.tabular import escape_markdown

__all__ = ["Grid", "damage_grids", "forest_grids", "markdown", "renderable", "report_grids", "text"]

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
SHOWN = 20
"""Lines of a list that are printed before the rest is only counted."""


class Grid(NamedTuple):
    """One table: its columns, its rows as text, and what has to be said below it."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()


def report_grids(report: ForestReport, *, each: bool = False) -> list[Grid]:
    """Systems with their bounds, pairs with their verdicts, families of weights; with ``each``, every run."""
    grids = [_systems(report)]
    rows: list[Sequence[str]]
    for condition, standing in report.strata.items():
        rows = [(row.system or "(no name)", str(row.tasks), _with_bounds(row.mean, row.low, row.high))
                for row in standing]  # fmt: skip
        grids.append(Grid((f"references: {condition}", "tasks", "forest match [bounds]"), rows))
    if report.pairs:
        grids.append(_pairs(report))
        grids.append(_families(report))
    if report.beside:
        rows = [
            (row.metric, str(row.runs), _number(row.correlation), _number(row.partial))
            for row in report.beside
        ]
        columns = ("beside forest match", "runs", "correlation", "with accuracy held fixed")
        grids.append(Grid(columns, rows))
    if each:
        grids.append(_runs(report))
    failed = [run for run in report.runs if run.diagnosis]
    if failed:
        rows = [(run.trace, run.system, run.diagnosis) for run in failed[:SHOWN]]
        grids.append(Grid(("failed run", "system", "why"), rows, _rest(len(failed))))
    novel = [run for run in report.runs if run.trace in set(report.novel)]
    if novel:
        rows = [(run.trace, run.system, _match(run), _number(run.parts["best"])) for run in novel[:SHOWN]]
        columns = ("novel success", "system", "forest match [bounds]", "best similarity")
        grids.append(Grid(columns, rows, _rest(len(novel))))
    return grids


def damage_grids(report: DamageReport) -> list[Grid]:
    """Damage by operator and component at some levels, its area, its rank correlation with the level."""
    first = report.curves[0]
    places = _spread(len(first.points))
    rows = []
    for curve in report.curves:
        points = [curve.points[place] for place in places]
        for index, name in enumerate(curve.area):
            spearman = curve.spearman[name]
            effect = report.effect[curve.operator] if name == "forest" else None
            rows.append(
                (
                    "" if index else curve.operator,
                    name,
                    *(_number(point.damage[name]) for point in points),
                    _number(curve.area[name]),
                    "–" if spearman is None else f"{spearman:.2f}",
                    "" if effect is None else f"{effect:.2f}",
                )
            )
    heads = (f"p={first.points[place].p:g}" for place in places)
    error = max(max(point.error.values()) for curve in report.curves for point in curve.points)
    notes = [
        f"means over {first.graphs} runs × {first.replicates}; standard errors at most {error:.3f}",
        "effect: damage to Forest Match at p = .5 over the standard deviation between systems",
    ]
    grids = [Grid(("operator", "damage to", *heads, "area", "spearman", "effect"), rows, notes)]
    if report.roles:
        table = [
            (
                row.mode.replace("_", "-"),
                f"{row.p:g}" if row.mode == "reassign" else "",
                str(row.draws),
                _number(row.change),
                f"{row.order_changes:.0%}",
            )
            for row in report.roles
        ]
        columns = ("role table", "p", "draws", "mean change of forest match", "order changes")
        grids.append(Grid(columns, table))
    return grids


def forest_grids(forest: Forest, task: str | None = None) -> list[Grid]:
    """A forest by task; with ``task``, the references of that one."""
    head = forest.header
    known = coverage([role for graph in forest.graphs for role in graph.roles]) or 0.0
    notes = [
        f"{head.references} references of {len(forest.by_task)} tasks from {head.runs} runs ({head.where})",
        f"roles {head.roles} {head.roles_sha256[:12]}, {known:.0%} of actions mapped · "
        f"evidence {head.evidence} · texts {'kept' if head.texts else 'not kept'} · {head.made_by}",
    ]
    if task is None:
        rows = [_task(name, list(forest.of(name))) for name in list(forest.by_task)[:SHOWN]]
        return [Grid(TASK_COLUMNS, rows, [*_rest(len(forest.by_task)), *notes])]
    return [Grid(REFERENCE_COLUMNS, [_reference(graph) for graph in forest.of(task)], notes)]


TASK_COLUMNS = ("task", "data set", "references", "generators", "d", "w", "δ")
REFERENCE_COLUMNS = (
    "generator", "given", "actions", "edges", "depth", "width", "tokens", "runs", "roles",
)  # fmt: skip


def _reference(graph: RoleGraph) -> list[str]:
    roles = ", ".join(f"{count} {role}" for role, count in sorted(graph.role_counts.items()))
    tokens = "–" if graph.tokens is None else f"{graph.tokens:,.0f}"
    sizes = map(str, (graph.n, len(graph.edges), graph.depth, graph.width))
    runs = str(len(graph.origin.traces))
    return [graph.generator or "(no name)", graph.conditioning, *sizes, tokens, runs, roles]


def _task(name: str, graphs: Sequence[RoleGraph]) -> list[str]:
    generators = ", ".join(sorted({graph.generator or "(no name)" for graph in graphs}))
    row = [name, graphs[0].origin.dataset, str(len(graphs)), generators]
    if not any(graph.correct for graph in graphs):
        return [*row, "–", "–", "–"]
    fit = structural_suitability(name, graphs)
    return [*row, f"{fit.depth:g}", f"{fit.width:g}", _number(fit.decomposability)]


def renderable(grids: Iterable[Grid]) -> RenderableType:
    """The tables for a terminal."""
    parts: list[RenderableType] = []
    for grid in grids:
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
        for column in grid.columns:
            table.add_column(Text(_line(column)))
        for row in grid.rows:
            table.add_row(*(Text(_line(cell)) for cell in row))
        parts.append(table)
        parts.extend(Text(_line(note), style="dim") for note in grid.notes if note)
        parts.append(Text())
    return Group(*parts[:-1])


def text(grids: Iterable[Grid]) -> str:
    """The tables as plain text, 120 columns wide."""
    out = io.StringIO()
    Console(file=out, width=120, color_system=None, highlight=False).print(renderable(grids))
    return out.getvalue()


def markdown(grids: Iterable[Grid]) -> str:
    """The tables as Markdown."""
    blocks = []
    for grid in grids:
        lines = [_row(grid.columns), _row("---" for _ in grid.columns), *map(_row, _escaped(grid.rows))]
        lines += ["", *(escape_markdown(mask(note)) for note in grid.notes if note)]
        blocks.append("\n".join(lines).rstrip())
    return "\n\n".join(blocks) + "\n"


def _systems(report: ForestReport) -> Grid:
    runs: dict[str, list[Run]] = {}
    for run in report.runs:
        runs.setdefault(run.system, []).append(run)
    rows = [
        (
            row.system or "(no name)",
            str(row.tasks),
            _with_bounds(row.mean, row.low, row.high),
            "–" if row.ci_low is None or row.ci_high is None else
            f"[{_number(row.ci_low)}, {_number(row.ci_high)}]",
            *(_mean(runs[row.system], part) for part in ("best", "self_advantage", "coverage")),
            ", ".join(name or "(no name)" for name in row.tied),
        )
        for row in report.systems
    ]  # fmt: skip
    columns = (
        "system", "tasks", "forest match [bounds]", "95 % over tasks", "best", "self-advantage",
        "roles known", "within noise of",
    )  # fmt: skip
    reasons: dict[str, int] = {}
    for run in report.runs:
        if run.match is None:
            reasons[run.reason] = reasons.get(run.reason, 0) + 1
    notes = [
        f"{count} undefined: {reason}" for reason, count in sorted(reasons.items(), key=lambda item: -item[1])
    ]
    if report.unmapped:
        some = ", ".join(f"{name} ({count})" for name, count in list(report.unmapped.items())[:5])
        notes.append(f"names without a role: {some}; give them one with --roles FILE")
    notes.append("bounds: over all weightings of the references with ratio <= 2 (or the ratio in use)")
    return Grid(columns, rows, notes)


def _pairs(report: ForestReport) -> Grid:
    rows = [
        (
            f"{pair.a or '(no name)'} − {pair.b or '(no name)'}",
            str(pair.tasks),
            _with_bounds(pair.difference, pair.low, pair.high, signed=True),
            "–" if pair.p_holm is None else f"{pair.p_holm:.3g}",
            "–" if pair.detectable is None else _number(pair.detectable),
            "tie" if pair.tie else ("ahead" if pair.difference > 0 else "behind"),
            "no" if pair.settled else "yes",
        )
        for pair in report.pairs
    ]
    columns = ("pair", "tasks", "difference [bounds]", "p (Holm)", "detectable", "verdict", "weights decide")
    return Grid(columns, rows, ["detectable: the smallest true difference that so many tasks would show"])


def _families(report: ForestReport) -> Grid:
    rows = [
        (
            family.name,
            _order(family.means),
            "–" if family.tau is None else f"{family.tau:.2f}",
        )
        for family in report.families
    ]
    kept = "" if report.order_kept is None else (
        f"{report.order_kept:.0%} of random weightings (Dirichlet) keep the order"
    )  # fmt: skip
    return Grid(("weights", "order on shared tasks", "tau with default"), rows, [kept, _stability(report)])


def _stability(report: ForestReport) -> str:
    """What the choice of suitable tasks does to the order."""
    taus = [row.tau for row in report.sweep if row.tau is not None]
    if not taus:
        return ""
    return (
        f"{len(taus)} of {len(report.sweep)} thresholds of suitability leave tasks to rank on: tau with the "
        f"order on all tasks {min(taus):.2f} to {max(taus):.2f}"
    )


def _order(means: Mapping[str, float]) -> str:
    """``a 0.700 > b 0.600 = c 0.600``"""
    parts: list[str] = []
    above = None
    for name, mean in means.items():
        if above is not None:
            parts.append("=" if above - mean < 1e-9 else ">")
        parts.append(f"{name or '(no name)'} {_number(mean)}")
        above = mean
    return " ".join(parts)


def _runs(report: ForestReport) -> Grid:
    rows = [
        (
            run.trace,
            run.system,
            "" if run.correct is None else ("right" if run.correct else "wrong"),
            _match(run),
            _number(run.parts.get("best")),
            _number(run.parts.get("specificity")),
            run.reason,
        )
        for run in report.runs
    ]
    return Grid(("run", "system", "answer", "forest match [bounds]", "best", "specificity", "reason"), rows)


def _match(run: Run) -> str:
    if run.match is None:
        return "–"
    return _with_bounds(run.match, run.parts["low"], run.parts["high"])


def _with_bounds(value: float, low: float, high: float, *, signed: bool = False) -> str:
    sign = "+" if signed else ""
    return f"{value:{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _mean(runs: Sequence[Run], part: str) -> str:
    values = [run.parts[part] for run in runs if run.match is not None and part in run.parts]
    return _number(sum(values) / len(values)) if values else "–"


def _rest(count: int) -> list[str]:
    return [f"... and {count - SHOWN} more (--format json has all)"] if count > SHOWN else []


def _spread(count: int) -> list[int]:
    """Up to five places, evenly from the first to the last."""
    places = min(count, 5)
    return [round(index * (count - 1) / max(places - 1, 1)) for index in range(places)]


def _escaped(rows: Iterable[Sequence[str]]) -> list[list[str]]:
    return [[escape_markdown(mask(cell)) for cell in row] for row in rows]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _line(cell: str) -> str:
    return _CONTROL.sub("", mask(" ".join(cell.split())))
