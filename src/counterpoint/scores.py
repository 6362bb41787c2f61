"""The result of an evaluation: rows, which trace each belongs to, and their fold by system.

Conventions
-----------
* The unit of a summary is the task: rows of one task (seeds, repetitions) are averaged first. ``n`` counts
  the rows that are defined, ``undefined`` the others, and ``reasons`` say why.
* Intervals are over tasks (stats.interval): none below two values or without variation, rough below ten.
* ``micro`` is the pooled unnecessary path ratio: all unnecessary paths over all paths.
* Values and parts are written with 9 significant digits, so that equal input gives equal bytes.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from counterpoint.errors import MissingExtra, UsageError
from counterpoint.json_text import parse_json
from counterpoint.score import Row
from counterpoint.secrets import mask
from counterpoint.stats import interval

if TYPE_CHECKING:
    import pandas

__all__ = [
    "SCHEMA",
    "Scores",
    "Summary",
    "TraceInfo",
    "is_scores",
    "json_schema",
    "plain",
    "read_scores",
    "unread",
]

SCHEMA = "counterpoint.scores/1"
MAX_SAFE_INT = 2**53


class TraceInfo(Struct, frozen=True):
    """What pairs a trace with others: its task and seed."""

    run: str
    trace: str
    system: str
    task: str
    seed: str


class Summary(Struct, frozen=True):
    """One metric over the traces of one system; ``system`` None: over all."""

    system: str | None
    metric: str
    mean: float | None
    ci_low: float | None
    ci_high: float | None
    n: int
    """Defined rows."""
    undefined: int
    micro: float | None = None
    reasons: Mapping[str, int] = {}
    """Why rows are undefined, with counts."""
    note: str = ""
    """How the interval was made, or why there is none."""
    low: float | None = None
    high: float | None = None
    """forest_match: means of the rows' exact bounds over the weights of their references."""


class Document(Struct, frozen=True):
    """The JSON form of Scores."""

    rows: list[Row]
    summary: list[Summary]
    warnings: list[str]
    traces: list[TraceInfo]
    schema: str = SCHEMA


class Scores:
    """Rows in the order trace, then metric."""

    def __init__(
        self,
        rows: list[Row],
        traces: list[TraceInfo],
        warnings: Iterable[str] = (),
        observed: Iterable[Any] = (),
    ) -> None:
        self.rows = rows
        self.traces = traces
        self.warnings = list(warnings)
        self.observed = list(observed)
        """What ``evaluate(observe=...)`` returned of each trace; it is not written."""

    def __add__(self, other: Scores) -> Scores:
        """Both evaluations as one."""
        warnings = dict.fromkeys([*self.warnings, *other.warnings])
        observed = [*self.observed, *other.observed]
        return Scores(self.rows + other.rows, self.traces + other.traces, warnings, observed)

    @property
    def metrics(self) -> list[str]:
        """Text forms of the metrics, in the order of the rows."""
        return list(dict.fromkeys(row.metric for row in self.rows))

    @property
    def systems(self) -> list[str]:
        """Systems by first appearance."""
        return list(dict.fromkeys(row.system for row in self.rows))

    def summary(self) -> list[Summary]:
        """One entry a system and metric, then one a metric over all (system None)."""
        tasks = {(info.run, info.trace): info.task for info in self.traces}
        groups: dict[tuple[str | None, str], list[Row]] = {}
        for system in self.systems:
            for name in self.metrics:
                groups[system, name] = []
        for name in self.metrics:
            groups[None, name] = []
        for row in self.rows:
            groups[row.system, row.metric].append(row)
            groups[None, row.metric].append(row)
        return [_summarize(system, name, rows, tasks) for (system, name), rows in groups.items() if rows]

    def unread(self, metric: str, system: str | None = None) -> str:
        """What stands beside an accuracy: ``2 of 40 unread``, see `unread`; empty beside any other metric."""
        if not _is_accuracy(metric):
            return ""
        return unread(row for row in self.rows if row.metric == metric and system in (None, row.system))

    def to_json(self, *, keep_secrets: bool = False) -> str:
        """The published JSON form (`json_schema`), indented, as text."""
        document = {
            "schema": SCHEMA,
            "rows": [plain(row, keep_secrets=keep_secrets) for row in self.rows],
            "summary": [plain(entry, keep_secrets=keep_secrets) for entry in self.summary()],
            "warnings": [text if keep_secrets else mask(text) for text in self.warnings],
            "traces": [plain(info, keep_secrets=keep_secrets) for info in self.traces],
        }
        return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()

    def to_pandas(self) -> pandas.DataFrame:
        """One row a trace and metric; parts as columns ``part.<name>``."""
        try:
            import pandas
        except ImportError:
            raise MissingExtra("a DataFrame", "pandas") from None
        tasks = {(info.run, info.trace): info for info in self.traces}
        records = []
        for row in self.rows:
            info = tasks.get((row.run, row.trace))
            record: dict[str, Any] = {
                "run": row.run, "trace": row.trace, "system": row.system,
                "task": info.task if info else None, "seed": info.seed if info else None,
                "metric": row.metric, "value": row.value, "reason": row.reason,
            }  # fmt: skip
            record.update({f"part.{name}": value for name, value in row.parts.items()})
            record.update({f"detail.{name}": value for name, value in row.detail.items()})
            records.append(record)
        frame = pandas.DataFrame.from_records(records)
        if "value" in frame:
            frame["value"] = frame["value"].astype(float)
        return frame

    def _repr_html_(self) -> str:
        """The summary as an HTML table, for notebooks; user text is escaped."""
        columns = ("system", "metric", "mean", "95 % CI", "n", "undefined")
        head = "".join(f"<th>{name}</th>" for name in columns)
        body = []
        for entry in self.summary():
            bounds = "" if entry.ci_low is None else f"{entry.ci_low:.4g} to {entry.ci_high:.4g}"
            mean = "" if entry.mean is None else f"{entry.mean:.4g}"
            cells = [
                "all" if entry.system is None else entry.system,
                entry.metric, mean, bounds, str(entry.n), str(entry.undefined),
            ]  # fmt: skip
            body.append("<tr>" + "".join(f"<td>{html.escape(mask(cell))}</td>" for cell in cells) + "</tr>")
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _summarize(
    system: str | None, name: str, rows: list[Row], tasks: Mapping[tuple[str, str], str]
) -> Summary:
    by_task: dict[str, list[float]] = {}
    for row in rows:
        if row.value is not None:
            by_task.setdefault(tasks.get((row.run, row.trace), row.trace), []).append(row.value)
    values = [sum(repeated) / len(repeated) for repeated in by_task.values()]
    defined = sum(map(len, by_task.values()))
    reasons: dict[str, int] = {}
    for row in rows:
        if row.value is None:
            reasons[row.reason] = reasons.get(row.reason, 0) + 1
    base = name.partition("(")[0]
    bounds = interval(values, proportion=_is_accuracy(name) and all(value in (0, 1) for value in values))
    low, high = (_mean_part(rows, part) if base == "forest_match" else None for part in ("low", "high"))
    return Summary(
        system=system,
        metric=name,
        mean=sum(values) / len(values) if values else None,
        ci_low=bounds.low,
        ci_high=bounds.high,
        n=defined,
        undefined=len(rows) - defined,
        micro=_micro(rows) if base == "upr" else None,
        reasons=reasons,
        note=bounds.reason or bounds.method + (" (rough: fewer than 10)" if bounds.rough else ""),
        low=low,
        high=high,
    )


def unread(rows: Iterable[Row]) -> str:
    """How many final answers nobody could read, of the rows of an accuracy, which counts them as wrong.

    >>> row = Row("", "t", "", "accuracy", 0.0, parts={"unparsed": 1})
    >>> unread([row]), unread([])
    ('1 of 1 unread', '')
    """
    found = [row.parts["unparsed"] for row in rows if "unparsed" in row.parts]
    missing = sum(map(int, found))
    return f"{missing} of {len(found)} unread" if missing else ""


def _is_accuracy(metric: str) -> bool:
    return metric.partition("(")[0] == "accuracy"


def _mean_part(rows: list[Row], part: str) -> float | None:
    """Mean of a part over the defined rows; None where a row lacks it."""
    values = [row.parts.get(part) for row in rows if row.value is not None]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _micro(rows: list[Row]) -> float | None:
    """Pooled UPR, 1 - sum of necessary / sum of all paths; None where a row has no exact counts."""
    pairs = [(row.parts.get("necessary"), row.parts.get("paths")) for row in rows if row.value is not None]
    necessary = [count for count, _ in pairs if isinstance(count, int)]
    paths = [count for _, count in pairs if isinstance(count, int)]
    if not pairs or len(necessary) < len(pairs) or len(paths) < len(pairs):
        return None
    return float(1 - Fraction(sum(necessary), sum(paths)))


def read_scores(path: str | Path) -> Scores:
    """What ``to_json`` wrote, read back; a UsageError says what is wrong with the file.

    Values come back as written: 9 significant digits, ints beyond 2^53 exact again.
    """
    try:
        document, mended = parse_json(Path(path).read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: could not be read: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"{path}: not the JSON of `score --format json`: {error}") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else type(document).__name__
        raise UsageError(
            f"{path}: not scores of schema {SCHEMA!r} (found: {found!r}): score --format json -o FILE"
        )
    if mended:
        raise UsageError(f"{path}: not scores: {mended[0]}")
    for row in document.get("rows", ()):
        if isinstance(row, dict) and isinstance(row.get("parts"), dict):
            row["parts"] = {
                name: int(value) if isinstance(value, str) and value.lstrip("-").isdigit() else value
                for name, value in row["parts"].items()
            }
    try:
        rows = msgspec.convert(document["rows"], list[Row])
        traces = msgspec.convert(document.get("traces", []), list[TraceInfo])
    except (msgspec.ValidationError, KeyError, ValueError) as error:
        raise UsageError(f"{path}: not the JSON of `score --format json`: {error}") from None
    return Scores(rows, traces, [str(text) for text in document.get("warnings", ())])


def is_scores(path: str | Path) -> bool:
    """Whether the file is what ``to_json`` wrote, judged by its beginning."""
    try:
        with Path(path).open("rb") as file:
            return SCHEMA.partition("/")[0].encode() in file.read(200)
    except OSError:
        return False


def plain(record: Struct, *, keep_secrets: bool = False) -> dict[str, Any]:
    """A row or summary as JSON-ready objects: 9 significant digits, big ints as text, secrets masked."""
    ready: dict[str, Any] = _plain(msgspec.structs.asdict(record), keep_secrets)
    return ready


def _plain(value: Any, keep_secrets: bool) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, int):
        return value if abs(value) <= MAX_SAFE_INT else str(value)
    if isinstance(value, str):
        return _clean(value) if keep_secrets else _masked(value)
    if isinstance(value, Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item, keep_secrets) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, keep_secrets) for item in value]
    if isinstance(value, Struct):
        return plain(value, keep_secrets=keep_secrets)
    return str(value)


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


@lru_cache(maxsize=4096)  # rows repeat metrics, systems, reasons and signatures
def _masked(text: str) -> str:
    return mask(_clean(text))


def json_schema() -> dict[str, Any]:
    """The JSON Schema of ``to_json``."""
    schema = msgspec.json.schema(Document)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return schema
