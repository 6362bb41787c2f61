"""What a comparison found, as structs and as text that a person without statistics can read."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from counterpoint.scores import plain
from counterpoint.secrets import mask

__all__ = ["SCHEMA", "Baseline", "ComparedPair", "ComparedSide", "Comparison", "Difference"]

SCHEMA = "counterpoint.comparison/1"
EXAMPLES = 3
"""Tasks named beside a count of those that were not paired."""
MATCHED = 0.1
"""Token budgets within a tenth of each other count as matched."""


class ComparedSide(Struct, frozen=True):
    """One system of one input."""

    label: str
    source: str
    system: str
    traces: int
    tasks: int


class Baseline(Struct, frozen=True):
    """The single-agent system that a pair is held against: what one agent gave and cost on the same tasks."""

    label: str
    team: str
    """Label of the side that it is a baseline to: side b, or a where b is the single agent."""
    tasks: int
    """Tasks of the pair that it ran too; its means are over them."""
    tokens_ratio: float | None
    """Its tokens over those of the team, on those tasks; None where tokens are not known."""

    @property
    def matched(self) -> bool | None:
        """Whether its token budget is that of the team, within a tenth."""
        if self.tokens_ratio is None:
            return None
        return 1 - MATCHED <= self.tokens_ratio <= 1 + MATCHED


class ComparedPair(Struct, frozen=True):
    """Two sides, and which of their tasks were paired."""

    a: str
    b: str
    paired: bool
    tasks: int
    """Tasks that were paired; where nothing is paired, of the smaller side."""
    by_seed: int
    """Tasks whose traces were paired by seed too."""
    only_a: list[str]
    """Tasks that were left out because the other side did not run them."""
    only_b: list[str]
    baseline: Baseline | None = None

    @property
    def beside(self) -> bool:
        """Whether the baseline is a third system beside the two."""
        return self.baseline is not None and self.baseline.label not in (self.a, self.b)


class Difference(Struct, frozen=True):
    """One metric of one pair: side b minus side a."""

    metric: str
    a: float | None
    """Mean of side a over the tasks that were compared."""
    b: float | None
    difference: float | None
    """``b - a``."""
    ci_low: float | None
    ci_high: float | None
    p: float | None
    p_holm: float | None
    """p after Holm's correction for all tests of the comparison; the verdict goes by it."""
    n: int
    """Tasks compared."""
    verdict: str
    """About b: better, worse (higher, lower where the metric has no direction), same within ±δ, same on all n
    tasks, not decided."""
    label_a: str
    label_b: str
    undefined: int = 0
    """Tasks left out because the metric is undefined on a side."""
    reason: str = ""
    """Why there is no interval, or no number at all."""
    rough: bool = False
    """Fewer than ten tasks: take the interval as an order of magnitude."""
    n_to_decide: int | None = None
    """Tasks that would decide with 80 % probability, if the difference is what it looks like now."""
    detectable: float | None = None
    """The smallest difference that this many tasks show with 80 % probability."""
    effect: float | None = None
    """The difference in standard deviations (d_z; Hedges' g where nothing is paired)."""
    p_same: float | None = None
    """p of "differs by delta or more", after Holm's correction; None without a delta."""
    baseline: float | None = None
    """Mean of the single-agent baseline over the same tasks."""


class Comparison(Struct, frozen=True):
    """Every metric of every pair, and how they were paired. ``print`` it to read it."""

    rows: list[Difference]
    pairs: list[ComparedPair]
    sides: list[ComparedSide]
    warnings: list[str]
    tests: int
    """Tests that Holm's correction answers for."""
    level: float = 0.95

    def to_json(self, *, keep_secrets: bool = False) -> str:
        """All of it as indented JSON text; floats have 9 significant digits."""
        document = {
            "schema": SCHEMA,
            "rows": [plain(row, keep_secrets=keep_secrets) for row in self.rows],
            "pairs": [
                plain(pair, keep_secrets=keep_secrets)
                | {"baseline": pair.baseline and plain(pair.baseline, keep_secrets=keep_secrets)}
                for pair in self.pairs
            ],
            "sides": [plain(side, keep_secrets=keep_secrets) for side in self.sides],
            "warnings": [text if keep_secrets else mask(text) for text in self.warnings],
            "tests": self.tests,
            "level": self.level,
        }
        return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        """The same as HTML tables, for notebooks; user text is escaped."""
        parts = []
        for index, pair in enumerate(self.pairs):
            notes = [*self._about(pair)] if index else [*self._legend(), *self._about(pair)]
            parts += [f"<p>{'<br>'.join(html.escape(note) for note in notes)}</p>"]
            head, *body = self._table(pair)
            cells = [f"<tr>{''.join(f'<th>{html.escape(cell)}</th>' for cell in head)}</tr>"]
            cells += [f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in body]
            parts.append(f"<table>{''.join(cells)}</table>")
        parts.append(f"<p>{'<br>'.join(html.escape(note) for note in self._notes())}</p>")
        return "".join(parts)

    def _lines(self) -> Iterator[str]:
        yield from self._legend()
        for pair in self.pairs:
            yield ""
            yield from self._about(pair)
            yield ""
            yield from _aligned(self._table(pair))
        yield ""
        yield from self._notes()

    def _letter(self, label: str) -> str:
        """The short name of a side in the tables."""
        index = [side.label for side in self.sides].index(label)
        return chr(ord("A") + index) if index < 26 else f"S{index + 1}"

    def _legend(self) -> Iterator[str]:
        for side in self.sides:
            counts = f"{side.traces} traces, {side.tasks} tasks"
            yield f"{self._letter(side.label)} = {_line(side.label)}: {counts}"

    def _about(self, pair: ComparedPair) -> Iterator[str]:
        a, b = self._letter(pair.a), self._letter(pair.b)
        if pair.paired:
            seeds = f", {pair.by_seed} of them by seed too" if pair.by_seed else ""
            yield f"{b} against {a}: {pair.tasks} tasks paired{seeds}"
        else:
            yield f"{b} against {a}: independent samples, nothing is paired"
        for letter, tasks in ((a, pair.only_a), (b, pair.only_b)):
            if tasks and pair.paired:
                more = ", ..." if len(tasks) > EXAMPLES else ""
                yield f"not paired: {len(tasks)} tasks of {letter} only ({_named(tasks[:EXAMPLES])}{more})"
        if pair.baseline is not None:
            yield self._about_baseline(pair.baseline)

    def _about_baseline(self, baseline: Baseline) -> str:
        text = f"single-agent baseline: {self._letter(baseline.label)}, on {baseline.tasks} of these tasks, "
        if baseline.tokens_ratio is None:
            return text + "tokens not known"
        budget = "budgets match" if baseline.matched else "budgets do not match"
        return (
            text
            + f"with {baseline.tokens_ratio:.2f} times the tokens of {self._letter(baseline.team)}: {budget}"
        )

    def _table(self, pair: ComparedPair) -> Iterator[list[str]]:
        a, b = self._letter(pair.a), self._letter(pair.b)
        percent = f"{100 * self.level:g} %"
        single = [self._letter(pair.baseline.label)] if pair.baseline and pair.beside else []
        yield [
            "metric", a, b, *single, f"{b} - {a}", f"{percent} interval", "p", "p Holm", "n", "detects",
            f"{b} is",
        ]  # fmt: skip
        for row in self.rows:
            if (row.label_a, row.label_b) == (pair.a, pair.b):
                baseline = [_number(row.baseline)] if single else []
                yield [
                    _line(row.metric), _number(row.a), _number(row.b), *baseline,
                    _number(row.difference, "+"), _interval(row), _p(row.p), _p(row.p_holm), str(row.n),
                    _number(row.detectable), _verdict(row),
                ]  # fmt: skip

    def _notes(self) -> Iterator[str]:
        alpha = f"{1 - self.level:.2g}"
        yield f"The verdict goes by p Holm <= {alpha}, which answers for all {self.tests} tests above."
        if any(row.verdict == "not decided" for row in self.rows):
            yield "Not decided does not mean the same: it means that these tasks cannot tell."
        if any(row.detectable is not None for row in self.rows):
            yield "detects: the smallest difference that so many tasks show with 80 % probability."
        if any(row.rough for row in self.rows):
            yield "~ marks an interval from fewer than ten tasks: an order of magnitude."
        for warning in self.warnings:
            yield f"warning: {_line(warning)}"


def _verdict(row: Difference) -> str:
    if row.verdict != "not decided":
        return row.verdict
    if row.n_to_decide is not None:
        return f"not decided (about {_about(row.n_to_decide):,} tasks would)"
    return f"not decided ({_line(row.reason)})" if row.reason else row.verdict


def _about(n: int) -> int:
    """Upward to two digits: it is an estimate."""
    unit = int(10 ** max(0, len(str(n)) - 2))
    return -(-n // unit) * unit


def _interval(row: Difference) -> str:
    if row.ci_low is None or row.ci_high is None:
        return "–"
    return f"{'~' if row.rough else ''}{_number(row.ci_low, '+')} to {_number(row.ci_high, '+')}"


def _number(value: float | None, sign: str = "") -> str:
    if value is None:
        return "–"
    size = abs(value)
    digits = (
        ",.0f" if size >= 1000 else ".1f" if size >= 10 else ".3f" if size >= 0.001 or not size else ".1e"
    )
    return format(value, sign + digits)


def _p(value: float | None) -> str:
    return "–" if value is None else "<.001" if value < 0.001 else f"{value:.3f}"


def _aligned(table: Iterator[list[str]]) -> Iterator[str]:
    rows = list(table)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        first, *numbers, last = row
        cells = [cell.rjust(width) for cell, width in zip(numbers, widths[1:-1], strict=True)]
        yield "   ".join([first.ljust(widths[0]), *cells, last]).rstrip()


def _named(tasks: list[str]) -> str:
    return ", ".join(_line(task)[:40] for task in tasks)


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def _line(text: str) -> str:
    """User text on one line: no control characters, no keys."""
    return mask(_CONTROL.sub("", " ".join(text.encode("utf-8", "replace").decode().split())))
