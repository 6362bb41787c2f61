"""``counterpoint claims``: the life of every claim, from its birth to its loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterpoint.cli import options
from counterpoint.cli.output import choose, console, say, write_text
from counterpoint.cli.trace_options import HOW, READING, TraceOptions, takes_trace_options

if TYPE_CHECKING:
    from counterpoint.metrics.claim_ledger import Event

FORMATS = ("table", "jsonl")


@takes_trace_options(READING | {"evidence", "embedder"}, before={"format": ("format_from",)})
def claims(
    paths: options.Paths,
    judge: Annotated[
        str, typer.Option("--judge", metavar="lexical|nli|llm", help="Who compares claims.")
    ] = "lexical",
    decomposer: Annotated[
        str, typer.Option("--decomposer", metavar="sentences|llm", help="Who finds them.")
    ] = "sentences",
    model: Annotated[str, typer.Option("--model", metavar="NAME", help="The model of llm or nli.")] = "",
    base_url: Annotated[str, typer.Option("--base-url", metavar="URL", help="The endpoint of llm.")] = "",
    cap: Annotated[int | None, typer.Option("--cap", metavar="N", help="Most claims of one text.")] = None,
    max_calls: Annotated[
        int | None, typer.Option("--max-calls", metavar="N", help="Budget of the chat model in calls.")
    ] = None,
    max_usd: Annotated[
        float | None, typer.Option("--max-usd", metavar="X", help="Budget of the chat model in dollars.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what a chat model would cost, and ask nothing.")
    ] = False,
    format: Annotated[
        str, typer.Option("--format", metavar="|".join(FORMATS), help="Form of the output.")
    ] = "table",
    output: options.Output = None,
    how: TraceOptions = HOW,
    no_cache: options.NoCache = False,
    keep_secrets: options.KeepSecrets = False,
    quiet: options.Quiet = False,
) -> None:
    """Tell the life of every claim: born, adopted, weakened, contradicted, lost."""
    from counterpoint.cli.score import evaluate_readings, finish
    from counterpoint.errors import ModelError
    from counterpoint.judges import make
    from counterpoint.metrics import metric
    from counterpoint.metrics.claim_ledger import ledger
    from counterpoint.metrics.claim_metrics import OPTIONS
    from counterpoint.models.embed import embedder as load_embedder
    from counterpoint.models.vectors import cache_folder

    choose(format, FORMATS, "--format")
    readings = how.open(paths)
    embed = load_embedder(how.embedder, cache=not no_cache)
    judging, decomposing = make(
        judge=judge,
        decomposer=decomposer,
        model=model,
        base_url=base_url,
        cap=cap,
        max_calls=max_calls,
        max_usd=max_usd,
        embed=embed,
        cache=None if no_cache else cache_folder(),
        dry_run=dry_run,
    )
    who: dict[str, Any] = {**OPTIONS, "judge": judging, "decomposer": decomposing}
    scores = evaluate_readings(
        readings,
        quiet=quiet,
        metrics=[metric("unity").bind(judge=judging, decomposer=decomposing)],
        evidence=how.evidence,
        embedder=embed,
        observe=lambda context: ledger(context, who),
        cache=not no_cache,
    )
    if dry_run:
        say_estimate(judging, decomposing)
    else:
        if scores.rows and not scores.observed:
            raise ModelError(scores.rows[0].reason)
        events = [event for told in scores.observed for event in told]
        _show(events, format, output, keep_secrets=keep_secrets)
    finish(readings, scores, quiet=quiet)


def say_estimate(judge: Any, decomposer: Any) -> None:
    """What asking a chat model would take, to stdout."""
    asker = getattr(judge, "asker", None) or getattr(decomposer, "asker", None)
    if asker is None:
        write_text("no chat model is asked: 0 calls, 0 USD", None)
        return
    spent = asker.spending
    price = f"{spent.usd:.2f} USD" if spent.usd else "no public price known"
    write_text(
        f"about {spent.calls} calls, {spent.tokens_in} tokens in and {spent.tokens_out} out, {price}; "
        f"{spent.cached} answers are in the cache",
        None,
    )


def _show(events: list[Event], format: str, output: Any, *, keep_secrets: bool) -> None:
    import json

    from counterpoint.scores import plain

    rows = [plain(event, keep_secrets=keep_secrets) for event in events]
    if format == "jsonl":
        write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), output)
        return
    if not rows:
        say("no claims")
    lines: list[tuple[Any, ...]] = []
    for row in rows:
        new = not lines or lines[-1][:2] != (row["trace"], row["life"])
        text = " ".join(str(row["text"]).split())
        shown = text if len(text) <= 72 else f"{text[:71]}…"
        lines.append((row["trace"], row["life"], new, row["event"], row["round"], row["agent"], shown))
    if output is not None:
        write_text("\n".join("\t".join(map(str, (*line[:2], *line[3:]))) for line in lines), output)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("trace", "claim", "round", "event", "agent", "text"):
        table.add_column(column)
    for trace, life, new, event, number, agent, text in lines:
        cells = (trace if new else "", str(life) if new else "", str(number), event, agent, text)
        table.add_row(*(Text(cell) for cell in cells))
    console().print(table)
