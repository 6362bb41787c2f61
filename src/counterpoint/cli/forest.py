"""``counterpoint forest``: reference forests from runs that worked, and runs graded against them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterpoint.cli import options
from counterpoint.cli.output import choose, console, say, write_text
from counterpoint.cli.trace_options import ALL, HOW, READING, TraceOptions, takes_trace_options

if TYPE_CHECKING:
    from counterpoint.adapters import Reading
    from counterpoint.contracts import Context
    from counterpoint.trace import Trace
    from counterpoint.view.forest import Grid

app = typer.Typer(
    help="Make reference forests from runs that worked, and grade runs against them.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

FORMATS = ("table", "json", "md")

ForestFile = Annotated[
    str, typer.Option("--forest", metavar="FILE", help="A file that `counterpoint forest build` made.")
]
LeaveOut = Annotated[
    str,
    typer.Option(
        "--leave-out",
        metavar="generator|trace|dataset|none|NAME",
        help="References to drop: those of the run's own framework, its own run, its data set, nobody's.",
    ),
]
Scope = Annotated[
    str, typer.Option("--scope", metavar="task|all", help="Compare with references of the task, or of all.")
]
Format = Annotated[str, typer.Option("--format", metavar="|".join(FORMATS), help="Form of the output.")]


@app.command("build")
@takes_trace_options(ALL - {"profile"})
def build(
    paths: options.Paths,
    output: options.Output = None,
    where: Annotated[
        str,
        typer.Option(
            "--where", metavar="CONDITIONS", help="Which runs: correct, or 'correct, upr<=0.4, loops<=0'."
        ),
    ] = "correct",
    roles: options.Roles = "default",
    texts: Annotated[bool, typer.Option("--texts", help="Keep what was said, secrets masked.")] = False,
    how: TraceOptions = HOW,
    quiet: options.Quiet = False,
) -> None:
    """Make a forest of the runs that were right: one reference a task, framework and structure."""
    from counterpoint.cli.score import finish
    from counterpoint.metrics.forest_report import unmapped_names
    from counterpoint.metrics.forests import build_forest

    readings = how.open(paths)
    traces = _graded(readings, where, **how.judging)
    forest = build_forest(traces, aliases=roles, evidence=how.evidence, where=where, texts=texts)
    write_text(forest.to_jsonl(), output)
    if not quiet:
        head = forest.header
        say(
            f"{head.references} references of {len(forest.by_task)} tasks from {head.runs} of {len(traces)} "
            f"runs written to {output or 'stdout'}"
        )
        if unmapped := unmapped_names(forest.graphs):
            some = ", ".join(f"{name} ({count})" for name, count in list(unmapped.items())[:5])
            say(f"names without a role: {some}; give them one with --roles FILE")
    finish(readings, None, quiet=quiet)


@app.command("match")
@takes_trace_options(before={"each": ("embedder",)})
def match(
    paths: options.Paths,
    forest: ForestFile,
    roles: options.Roles = "default",
    quality: Annotated[
        str,
        typer.Option(
            "--quality",
            metavar="FAMILY",
            help="Weights of references: default, uniform, tokens, size, product, softmax.",
        ),
    ] = "default",
    leave_out: LeaveOut = "generator",
    scope: Scope = "task",
    others: Annotated[
        int,
        typer.Option("--others", metavar="B", min=0, help="Contrast with the forests of B other tasks."),
    ] = 0,
    beside: Annotated[
        list[str] | None,
        typer.Option(
            "--beside", metavar="METRIC", help="Correlate with it, accuracy held fixed. Repeatable."
        ),
    ] = None,
    each: Annotated[bool, typer.Option("--each", help="Show every run.")] = False,
    diagnose: Annotated[bool, typer.Option("--diagnose", help="Say why failed runs failed.")] = False,
    format: Format = "table",
    output: options.Output = None,
    how: TraceOptions = HOW,
    keep_secrets: options.KeepSecrets = False,
    quiet: options.Quiet = False,
) -> None:
    """Grade runs against a forest: each system with its bounds, its ties, and what the weights decide."""
    choose(format, FORMATS, "--format")
    from counterpoint.cli.score import finish
    from counterpoint.metrics.forest_report import forest_report
    from counterpoint.scores import plain
    from counterpoint.view.forest import report_grids

    readings = how.open(paths)
    judging = how.judging
    gold, embedder = judging.pop("gold"), judging.pop("embedder")
    contexts = _contexts(readings, gold=gold, **{**judging, "profile": how.profile})
    values = _values(contexts, beside or [], embedder=embedder, **judging)
    report = forest_report(
        contexts, forest, roles=roles, quality=quality, leave_out=_named(leave_out), scope=scope,
        others=others, why=diagnose, beside=values,
    )  # fmt: skip
    _show(report_grids(report, each=each), plain(report, keep_secrets=keep_secrets), format, output)
    finish(readings, None, quiet=quiet)


@app.command("show")
def show(
    forest: Annotated[str, typer.Argument(metavar="FILE", help="A forest file.")],
    task: Annotated[
        str | None, typer.Option("--task", metavar="ID", help="The references of one task.")
    ] = None,
    format: Format = "table",
    output: options.Output = None,
) -> None:
    """Show what a forest holds: tasks, references, and how much team structure each task calls for."""
    choose(format, FORMATS, "--format")
    from counterpoint.errors import UsageError
    from counterpoint.metrics.forests import read_forest
    from counterpoint.registry import suggest
    from counterpoint.scores import plain
    from counterpoint.view.forest import forest_grids

    known = read_forest(forest)
    if task is not None and task not in known.by_task:
        raise UsageError(f"forest {forest} has no task {task!r}{suggest(task, known.by_task)}")
    chosen = [line for line in known.references if task in (None, line.task)]
    content = {**plain(known.header), "references": [plain(line) for line in chosen]}
    _show(forest_grids(known, task), content, format, output)


@app.command("damage")
@takes_trace_options(READING | {"profile", "evidence"})
def damage(
    paths: options.Paths,
    forest: ForestFile,
    svg: Annotated[Path, typer.Option("--svg", metavar="FILE", help="Where to write the picture.")] = Path(
        "damage.svg"
    ),
    replicates: Annotated[int, typer.Option("--replicates", metavar="N", min=1, help="Per level.")] = 100,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Damage the first N runs.")] = 10,
    draws: Annotated[
        int, typer.Option("--draws", metavar="N", min=0, help="Changed role tables; 0 for none.")
    ] = 200,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of the random numbers.")] = 0,
    roles: options.Roles = "default",
    leave_out: LeaveOut = "generator",
    format: Format = "table",
    output: options.Output = None,
    how: TraceOptions = HOW,
    quiet: options.Quiet = False,
) -> None:
    """Damage runs on purpose and see what notices: a table, and a picture of the curves."""
    choose(format, FORMATS, "--format")
    from counterpoint.cli.score import finish
    from counterpoint.metrics.damage_report import damage_report
    from counterpoint.scores import plain
    from counterpoint.view.forest import damage_grids
    from counterpoint.view.pictures import damage_svg

    readings = how.open(paths)
    report = damage_report(
        _contexts(readings, profile=how.profile, evidence=how.evidence), forest, roles=roles,
        leave_out=_named(leave_out), replicates=replicates, limit=limit, draws=draws, seed=seed,
    )  # fmt: skip
    write_text(damage_svg(report.curves), svg)
    _show(damage_grids(report), plain(report), format, output)
    if not quiet:
        say(f"picture written to {svg}")
    finish(readings, None, quiet=quiet)


def _named(leave_out: str) -> str | None:
    return None if leave_out.lower() == "none" else leave_out


def _traces(readings: Sequence[Reading], gold: Path | None) -> list[Trace]:
    """All runs, with the gold answers given beside them."""
    from msgspec.structs import replace

    from counterpoint.adapters.gold import read_gold
    from counterpoint.trace import task_id

    known = read_gold(gold) if gold is not None else {}
    traces = []
    for trace in (trace for reading in readings for trace in reading):
        given = next((known[key] for key in (trace.id, task_id(trace), trace.task) if key in known), None)
        # graded anew, as everywhere where a gold answer is given
        traces.append(trace if given is None else replace(trace, gold=given, correct=None))
    return traces


def _graded(readings: Sequence[Reading], where: str, *, gold: Path | None, **how: Any) -> list[Trace]:
    """All runs, each marked ``correct`` iff it meets every condition of ``where``."""
    from msgspec.structs import replace

    from counterpoint.errors import UsageError
    from counterpoint.evaluate import evaluate
    from counterpoint.gates import parse_gates

    first, comma, rest = where.partition(",")
    if first.strip() != "correct":
        raise UsageError(f"--where {where!r} does not begin with correct: a reference was right")
    gates = parse_gates(rest, require=True) if comma else []
    traces = _traces(readings, gold)
    rows = evaluate(traces, ["accuracy", *(gate.metric for gate in gates)], **how).rows
    width = 1 + len(gates)
    graded = []
    for index, trace in enumerate(traces):
        accuracy, *values = (row.value for row in rows[index * width : (index + 1) * width])
        met = accuracy == 1 and all(
            value is not None and not gate.fails(value) for gate, value in zip(gates, values, strict=True)
        )
        graded.append(replace(trace, correct=met))
    return graded


def _contexts(
    readings: Sequence[Reading], *, profile: str, evidence: str, gold: Path | None = None, **how: Any
) -> list[Context]:
    from counterpoint.contracts import Context
    from counterpoint.graph import CollaborationGraph

    contexts = []
    for trace in _traces(readings, gold):
        graph = CollaborationGraph(trace, evidence=evidence)
        contexts.append(Context(graph.trace, graph, profile=profile, **how))
    return contexts


def _values(contexts: Sequence[Context], metrics: Sequence[str], **how: Any) -> dict[str, dict[str, float]]:
    """Metric to its value by trace id, where defined."""
    from counterpoint.evaluate import evaluate

    found: dict[str, dict[str, float]] = {}
    if metrics:
        for row in evaluate([context.trace for context in contexts], metrics, **how).rows:
            values = found.setdefault(row.metric, {})
            if row.value is not None:
                values[row.trace] = row.value
    return found


def _show(grids: list[Grid], content: dict[str, Any], format: str, output: Path | None) -> None:
    """Print or write in one of FORMATS."""
    import json

    from counterpoint.view.forest import markdown, renderable, text

    if format == "json":
        write_text(json.dumps(content, ensure_ascii=False, indent=1), output)
    elif format == "md":
        write_text(markdown(grids), output)
    elif output is not None:
        write_text(text(grids), output)
    else:
        console().print(renderable(grids))
