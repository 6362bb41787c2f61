"""``counterpoint store``: what `counterpoint serve` received, and files beside it: list, export, prune."""

from __future__ import annotations

import io
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterpoint.cli import options
from counterpoint.cli.output import choose, console, say, to_stdout, write_bytes, write_text
from counterpoint.cli.trace_options import HOW, READING, TraceOptions, takes_trace_options
from counterpoint.errors import UsageError

if TYPE_CHECKING:
    from counterpoint.store import Run, Runs, Store
    from counterpoint.trace import Trace

app = typer.Typer(
    help="Look into what serve keeps: list, export and prune its runs, add files to them.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

LIST_FORMATS = ("table", "json", "jsonl", "csv")
EXPORT_FORMATS = ("native", "otlp", "scores")
SHOWN_METRICS = ("ids", "upr")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}

StoreFile = Annotated[
    Path | None,
    typer.Option("--store", metavar="FILE", help="The store; default: COUNTERPOINT_STORE, or serve's own."),
]


@app.command("list")
def list_(
    search: Annotated[
        str, typer.Option("--search", metavar="TEXT", help="Only runs in which this text stands.")
    ] = "",
    system: Annotated[
        str | None, typer.Option("--system", metavar="NAME", help="Only runs of this system.")
    ] = None,
    where: Annotated[
        str,
        typer.Option("--where", metavar="CONDITIONS", help="Only runs where all hold: 'upr>0.4, ids<0.3'."),
    ] = "",
    state: Annotated[
        str,
        typer.Option(
            "--state", metavar="receiving|waiting|scored|unreadable", help="Only runs in this state."
        ),
    ] = "",
    correct: Annotated[
        str, typer.Option("--correct", metavar="right|wrong|ungraded", help="Only runs with such an answer.")
    ] = "",
    order: Annotated[
        str,
        typer.Option(
            "--order",
            metavar="ORDER",
            help="received, started, system, task, steps, spans or a metric; - in front turns it round.",
        ),
    ] = "received",
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most so many runs.")] = 50,
    format: Annotated[
        str, typer.Option("--format", metavar="|".join(LIST_FORMATS), help="Form of the output.")
    ] = "table",
    output: options.Output = None,
    store: StoreFile = None,
    keep_secrets: options.KeepSecrets = False,
    quiet: options.Quiet = False,
) -> None:
    """List the runs of the store, the latest first."""
    choose(format, LIST_FORMATS, "--format")
    with open_store(store) as opened:
        page = opened.runs(
            search=search, system=system, where=where, state=state, correct=correct, order=order, limit=limit
        )
    if format == "table":
        show_table(page, where, order, output, keep_secrets=keep_secrets)
    else:
        from counterpoint.view import run_list

        text = {"json": run_list.json_text, "jsonl": run_list.jsonl, "csv": run_list.csv_text}[format]
        write_text(text(page, keep_secrets=keep_secrets), output)
    if not quiet and (page.total > len(page.rows) or not page.total):
        more = f"{len(page.rows):,} of {page.total:,} runs: --limit N shows more"
        say(more if page.total else "no such run")


def show_table(page: Runs, where: str, order: str, output: Path | None, *, keep_secrets: bool) -> None:
    """The runs as a table with the metrics that were asked about, on the terminal or in a file."""
    from rich.console import Console

    from counterpoint.gates import parse_gates
    from counterpoint.view import run_list

    if not page.rows and output is None:
        return
    asked = [gate.metric for gate in parse_gates(where)] if where.strip() else []
    there = {name for run in page.rows for name in run.values}
    metrics = [name for name in (*asked, order.removeprefix("-"), *SHOWN_METRICS) if name in there]
    width = console().width if output is None else 120
    drawn = run_list.table(page.rows, list(dict.fromkeys(metrics)), width=width, keep_secrets=keep_secrets)
    if output is None:
        with to_stdout():
            console().print(drawn)
        return
    out = io.StringIO()
    Console(file=out, width=width, color_system=None, highlight=False).print(drawn)
    write_text(out.getvalue(), output)


@app.command("export")
def export(
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN]...", help="Ids of runs; without any: all.")
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Where to; - is stdout.")
    ] = Path("-"),
    format: Annotated[
        str, typer.Option("--format", metavar="|".join(EXPORT_FORMATS), help="Traces, spans, or scores.")
    ] = "native",
    store: StoreFile = None,
    keep_secrets: options.KeepSecrets = False,
    quiet: options.Quiet = False,
) -> None:
    """Write runs as traces that every command reads, as the spans that came in, or as scores."""
    choose(format, EXPORT_FORMATS, "--format")
    file = None if output == Path("-") else output
    with open_store(store) as opened:
        faults: list[str] = []
        chosen = chosen_runs(opened, runs or (), with_spans=format == "otlp")
        if format == "native":
            from counterpoint.adapters import write

            with to_stdout():
                count = write(traces_of(opened, chosen, faults), str(output), keep_secrets=keep_secrets)
            told = f"{count:,} traces"
        elif format == "otlp":
            pieces = (opened.otlp(run.id) for run in chosen)
            write_bytes(pieces if keep_secrets else map(masked, pieces), file)
            told = f"the spans of {len(chosen):,} runs"
        else:
            text, told = scores_text(opened, chosen, keep_secrets=keep_secrets)
            write_text(text, file)
    if not quiet:
        say(f"{told} written to {file or 'stdout'}")
    for fault in faults:
        say(f"error: {fault}")
    if faults:
        raise typer.Exit(2)


def chosen_runs(store: Store, ids: Sequence[str], *, with_spans: bool) -> list[Run]:
    """The runs of these ids, or all, the earliest first; a UsageError for one that cannot be exported."""
    if not ids:
        runs = store.runs(order="-received", limit=sys.maxsize).rows
        return [run for run in runs if run.spans or not with_spans]
    found = {}
    for name in ids:
        run = store.run(name)
        if run is None:
            raise UsageError(f"{store.path}: no run {name!r}: `counterpoint store list` names them")
        if with_spans and not run.spans:
            raise UsageError(f"run {run.id!r} was added from a file, and has no spans: --format native")
        found[run.id] = run
    return list(found.values())


def traces_of(store: Store, runs: Sequence[Run], faults: list[str]) -> Iterator[Trace]:
    """The traces of each run; what could not be read goes to ``faults``."""
    from counterpoint.engine.live import read_run

    for run in runs:
        traces, wrong = read_run(store, run.id)
        yield from traces
        if not traces:
            faults.append(f"run {run.id}: {'; '.join(wrong) or 'holds no trace'}")


def masked(content: bytes) -> bytes:
    """Spans without values that look like keys: a store may have been told to keep them."""
    from counterpoint.secrets import may_hold_secret

    if not may_hold_secret(content):
        return content
    from counterpoint.cli.serve import check_extra

    check_extra()
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    from counterpoint.view.server.spans import mask_message

    data = TracesData.FromString(content)
    mask_message(data)
    sealed: bytes = data.SerializeToString()
    return sealed


def scores_text(store: Store, runs: Sequence[Run], *, keep_secrets: bool) -> tuple[str, str]:
    """The document of ``score --format json``, and what it holds in words."""
    from counterpoint.scores import Scores, TraceInfo
    from counterpoint.trace import seed, task_id

    scores = Scores([], [])
    for run in runs:
        rows = store.rows(run.id)
        names = {row.trace: row.run for row in rows}
        infos = [
            TraceInfo(names[trace.id], trace.id, trace.system, task_id(trace), seed(trace))
            for trace in store.traces(run.id)
            if trace.id in names
        ]
        scores = scores + Scores(rows, infos)
    waiting = [run for run in runs if run.due]
    if waiting:
        scores.warnings.append(f"{len(waiting)} runs are not scored, or not since their last span")
    broken = [f"run {run.id}: {run.error}" for run in runs if run.state == "unreadable"]
    scores.warnings += broken
    return scores.to_json(keep_secrets=keep_secrets), f"the scores of {len(scores.traces):,} traces"


@app.command("prune")
def prune(
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="AGE", help="Runs whose last span is older: 30d, 12h, 2w."),
    ] = None,
    keep: Annotated[
        int | None, typer.Option("--keep", metavar="N", min=0, help="All runs but the N newest.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would go, and delete nothing.")
    ] = False,
    store: StoreFile = None,
    quiet: options.Quiet = False,
) -> None:
    """Delete old runs with their spans, traces and scores, and free the disk space."""
    if (older_than is None) == (keep is None):
        raise UsageError("say what is to go, with one of --older-than AGE and --keep N")
    age = None if older_than is None else seconds(older_than)
    with open_store(store) as opened:
        found = opened.prune(older_than_s=age, keep=keep, dry_run=True)
        what = f"{found.runs:,} of {opened.runs(limit=0).total:,} runs with {found.spans:,} spans"
        if dry_run or not found.runs:
            say(f"would delete {what}" if found.runs else "nothing to delete")
            return
        if not yes:
            if not sys.stdin.isatty():
                raise UsageError(f"this would delete {what}: add --yes")
            typer.confirm(f"Delete {what}?", abort=True, err=True)
        gone = opened.prune(older_than_s=age, keep=keep)
    if not quiet:
        say(f"deleted {gone.runs:,} runs, {gone.spans:,} spans; {gone.freed_bytes / 2**20:,.1f} MB freed")


def seconds(age: str) -> float:
    """``30d`` and the like in seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw])", age.strip(), re.ASCII)
    if not found:
        raise UsageError(f"--older-than {age!r} is no age: write 30d, 12h, 90m or 2w")
    return float(found[1]) * _SECONDS[found[2]]


@app.command("verify")
def verify(store: StoreFile = None, quiet: options.Quiet = False) -> None:
    """Look for what is wrong in the store: damage, spans that do not parse, scores without their trace."""
    with open_store(store) as opened:
        problems = opened.verify()
        count = 0 if problems else opened.runs(limit=0).total
    if problems:
        write_text("\n".join(problems), None)
        raise typer.Exit(2)
    if not quiet:
        say(f"nothing is wrong: {count:,} runs")


@app.command("add")
@takes_trace_options(READING)
def add(
    paths: options.Paths,
    how: TraceOptions = HOW,
    score: Annotated[
        bool, typer.Option("--score", help="Score them now; else the next `counterpoint serve` does.")
    ] = False,
    store: StoreFile = None,
    keep_secrets: options.KeepSecrets = False,
    quiet: options.Quiet = False,
) -> None:
    """Put the traces of files into the store; a trace that is there already is not added again."""
    from counterpoint.cli.score import finish
    from counterpoint.secrets import mask
    from counterpoint.store import Store, default_path

    readings = how.open(paths)
    outcomes: Counter[str] = Counter()
    notes = []
    with Store(store or default_path(), keep_secrets=keep_secrets) as opened:
        for reading in readings:
            ids: list[str] = []
            added = opened.put_traces(_noted(reading, ids), origin=origin(reading.run))
            outcomes.update(one.outcome for one in added)
            notes += [
                f"{mask(name)[:80]}: {_renamed(name)}: added as {one.run}"
                for name, one in zip(ids, added, strict=True)
                if one.outcome == "new" and one.run not in (name, mask(name))
            ]
            if score:
                score_added(opened, [one.run for one in added])
    if not quiet:
        for note in notes:
            say(f"note: {note}")
        say(
            ", ".join(f"{outcomes[name]:,} {name}" for name in ("new", "changed", "unchanged"))
            + f": {opened.path}"
        )
    finish(readings, None, quiet=quiet)


def _renamed(name: str) -> str:
    from counterpoint.store.receiving import MOST_ID

    return "another run has this id" if len(name) <= MOST_ID else f"an id of {len(name):,} characters"


def _noted(traces: Iterator[Trace], ids: list[str]) -> Iterator[Trace]:
    for trace in traces:
        ids.append(trace.id)
        yield trace


def origin(path: str) -> str:
    """What a path is remembered by, wherever it is given from."""
    return path if path == "-" else str(Path(path).absolute())


def score_added(store: Store, ids: Sequence[str]) -> None:
    """Score those of the runs that are due."""
    from counterpoint.engine.live import score_run

    due = set(store.due(0))
    for run_id in ids:
        if run_id in due:
            score_run(store, run_id)


def open_store(path: Path | None) -> Store:
    """The store that is there; a UsageError where there is none."""
    from counterpoint.store import Store, default_path

    path = path or default_path()
    if not path.exists():
        raise UsageError(
            f"{path}: there is no store: `counterpoint serve` or `counterpoint store add` makes one"
        )
    return Store(path)
