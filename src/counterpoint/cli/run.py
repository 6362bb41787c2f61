"""``counterpoint run``: play a team on a benchmark, giving traces and scores."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterpoint.cli import options
from counterpoint.cli.output import choose, console, say, write_text
from counterpoint.cli.run_models import choose_models, in_process
from counterpoint.cli.run_progress import bar, finish
from counterpoint.cli.score import FORMATS, show
from counterpoint.errors import UsageError

if TYPE_CHECKING:
    from counterpoint.engine.jobs import Plan
    from counterpoint.engine.local import Models, Report
    from counterpoint.models.limits import Limits
    from counterpoint.scores import Scores


def run(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", help="See: counterpoint list benchmarks.")],
    data: Annotated[str, typer.Option("--data", metavar="PATH", help="The benchmark's file or folder.")],
    model: Annotated[str, typer.Option("--model", metavar="NAME", help="At the endpoint; or simulated.")],
    system: Annotated[
        str, typer.Option("--system", metavar="NAME", help="vanilla, 'layered(layers=3)', ...")
    ] = "vanilla",
    base_url: Annotated[
        str, typer.Option("--base-url", metavar="URL", help="An OpenAI-compatible endpoint.")
    ] = "https://api.openai.com/v1",
    api_key_env: Annotated[
        str, typer.Option("--api-key-env", metavar="NAME", help="Environment variable that holds the key.")
    ] = "OPENAI_API_KEY",
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="Only the first N questions.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option("--rounds", metavar="R", min=1, help="Rounds of discussion.")
    ] = None,
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="N", min=1, max=999, help="Play every question under N seeds.")
    ] = 1,
    wiring: Annotated[
        Path | None, typer.Option("--wiring", metavar="FILE", help="Who hears whom, from a file.")
    ] = None,
    temperature: Annotated[
        float | None, typer.Option("--temperature", metavar="T", help="Sent as it is; default: not sent.")
    ] = None,
    top_p: Annotated[
        float | None, typer.Option("--top-p", metavar="P", help="Sent as it is; default: not sent.")
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option("--max-tokens", metavar="N", min=1, help="Of one reply; default: not sent."),
    ] = None,
    threads: Annotated[
        int, typer.Option("--threads", metavar="N", min=1, max=1024, help="Questions under way at once.")
    ] = 8,
    budget_usd: Annotated[
        float | None,
        typer.Option("--budget-usd", metavar="X", help="Begin no call that might not be covered by it."),
    ] = None,
    budget_tokens: Annotated[
        int | None,
        typer.Option("--budget-tokens", metavar="N", min=1, help="The same in tokens, prompts included."),
    ] = None,
    requests_per_minute: Annotated[
        float | None, typer.Option("--requests-per-minute", metavar="N", help="At most so many calls.")
    ] = None,
    tokens_per_minute: Annotated[
        float | None, typer.Option("--tokens-per-minute", metavar="N", help="At most about so many tokens.")
    ] = None,
    timeout_s: Annotated[
        float, typer.Option("--timeout", metavar="S", help="Seconds in which a reply has to be there.")
    ] = 60.0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what the run would take, and ask nothing.")
    ] = False,
    profile: Annotated[
        str | None,
        typer.Option("--profile", metavar="strict|paper", help="Of -m; without -m: of the row (paper)."),
    ] = None,
    embedder: options.EmbedderName = "default",
    metrics: options.Metrics = None,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FOLDER", help="The run folder.")
    ] = None,
    format: Annotated[
        str, typer.Option("--format", metavar="|".join(FORMATS), help="Form of the output.")
    ] = "table",
    quiet: options.Quiet = False,
) -> None:
    """Play a team on a benchmark, giving traces and scores."""
    from counterpoint.metrics import metric

    choose(format, FORMATS, "--format")
    for name in metrics or ():
        metric(name)
    check_settings(model, temperature, top_p, profile, embedder)
    plan = make_plan(
        benchmark, data, system,
        limit=limit, rounds=rounds, seeds=seeds, wiring=wiring,
        settings={"model": model, "temperature": temperature, "top_p": top_p, "max_tokens": max_tokens},
    )  # fmt: skip
    within = {
        "per_minute": requests_per_minute, "tokens_per_minute": tokens_per_minute,
        "budget_tokens": budget_tokens, "budget_usd": budget_usd,
    }  # fmt: skip
    limits = make_limits(within)
    if not 0 < timeout_s < float("inf"):
        raise UsageError(f"--timeout is a number of seconds above 0, not {timeout_s:g}")
    if dry_run:
        tell_estimate(plan, format)
        return
    asked = {
        "data": data, "split": "test", "limit": limit, "threads": threads, **within, "timeout_s": timeout_s,
        "base_url": base_url, "metrics": list(metrics or ()), "profile": profile, "embedder": embedder,
    }  # fmt: skip
    models = choose_models(plan, base_url=base_url, api_key_env=api_key_env, timeout_s=timeout_s)
    if output is None or not output.strip():
        raise UsageError("a run needs a folder for its traces: -o FOLDER (or --dry-run)")
    folder = Path(output)
    if not quiet:
        warn(plan, budget_usd)
    with programs(plan) as ready:
        report = play_all(
            ready, models, asked,
            folder=folder, resume=resume, threads=threads, limits=limits, quiet=quiet,
        )  # fmt: skip
    scores = print_scores(plan, report, metrics, profile, embedder, format, folder)
    finish(report, scores, folder, quiet=quiet)


def check_settings(
    model: str, temperature: float | None, top_p: float | None, profile: str | None, embedder: str
) -> None:
    """A UsageError where scoring would fail after the run was paid for, or a setting cannot be sent."""
    from math import isfinite

    from counterpoint.evaluate import PROFILES
    from counterpoint.models.embed import embedder as load

    if not model.strip():
        raise UsageError("--model is empty: name the model at the endpoint")
    if temperature is not None and not (isfinite(temperature) and temperature >= 0):
        raise UsageError(f"--temperature is a number from 0, not {temperature:g}")
    if top_p is not None and not 0 < top_p <= 1:
        raise UsageError(f"--top-p is a share above 0 and up to 1, not {top_p:g}")
    if profile is not None:
        choose(profile, PROFILES, "--profile")
    if embedder != "default":
        load(embedder)


def make_plan(
    benchmark: str,
    data: str,
    system: str,
    *,
    limit: int | None,
    rounds: int | None,
    seeds: int,
    wiring: Path | None,
    settings: dict[str, Any],
) -> Plan:
    """What is to be played, checked as far as that goes without asking anybody."""
    from counterpoint.benchmarks import subset
    from counterpoint.engine.jobs import Plan
    from counterpoint.registry import lookup
    from counterpoint.runtime import systems, wirings

    loader = lookup("benchmark", benchmark)
    chosen = systems.system(system)
    examples = subset(loader.load(data, "test"), limit)
    if not examples:
        raise UsageError(f"{data}: no test questions of benchmark {benchmark!r}")
    learned = None if wiring is None else wirings.read_wiring(wiring)
    if learned is not None and rounds not in (None, len(learned.speaks)):
        raise UsageError(f"{wiring}: has {len(learned.speaks)} rounds, and --rounds says {rounds}")
    plan = Plan(
        benchmark=loader,
        benchmark_name=benchmark,
        examples=examples,
        system=chosen if rounds is None or learned is not None else chosen.bind(rounds=rounds),
        model={name: value for name, value in settings.items() if value is not None},
        seeds=seeds,
        learned=learned,
        learned_name="" if wiring is None else wiring.stem,
    )
    plan.wiring(0)
    return plan


def warn(plan: Plan, budget_usd: float | None) -> None:
    """Say what will make the numbers mean less than they seem to, or end the run early."""
    from counterpoint.metrics.outcome import price_usd
    from counterpoint.trace import Usage

    model = str(plan.model["model"])
    if plan.system.name == "cot-sc" and plan.model.get("temperature") == 0:
        say("warning: cot-sc takes several samples of one prompt: at temperature 0 all may be the same")
    given = [name for name in ("temperature", "max_tokens") if name in plan.model]
    if given and model.startswith("simulated") and in_process(model):
        say(f"warning: a simulated model has no {' and no '.join(given)}: left out")
    price = price_usd(Usage(1, 1, model=model))
    if budget_usd is not None and isinstance(price, str):
        say(f"warning: {price}: unless the endpoint says what a call costs, the run ends at the first reply; "
            "--budget-tokens needs no price")  # fmt: skip


def make_limits(within: dict[str, Any]) -> Limits:
    """Rates and budgets as the options say; a UsageError names one that cannot be."""
    from counterpoint.engine.local import dollars
    from counterpoint.models.limits import SLOWEST, Limits

    options = {"per_minute": "--requests-per-minute"}
    for name, value in within.items():
        option = options.get(name, "--" + name.replace("_", "-"))
        if value is not None and not 0 < value < float("inf"):
            raise UsageError(f"{option} is a number above 0, not {value:g}")
        if value is not None and name.endswith("per_minute") and value < SLOWEST:
            raise UsageError(f"{option} is at least {SLOWEST:g}, not {value:g}")
    return Limits(**within, price=dollars)


def tell_estimate(plan: Plan, format: str) -> None:
    """Print what the run would take."""
    import json
    from dataclasses import asdict

    from counterpoint.engine.estimate import estimate

    found = estimate(plan)
    if format == "json":
        write_text(json.dumps(asdict(found), indent=2), None)
        return
    cost = f"{found.cost_usd:.2f} USD" if found.cost_usd is not None else f"cost unknown: {found.unpriced}"
    write_text(
        f"{found.questions:,} questions, {found.calls:,} calls, about {found.tokens_in:,} prompt and "
        f"{found.tokens_out:,} completion tokens, {cost}",
        None,
    )


@contextmanager
def programs(plan: Plan) -> Iterator[Plan]:
    """The plan with a sandbox for what its code writers write, if it has any; MissingExtra without one."""
    from dataclasses import replace

    from counterpoint.runtime.roles import role

    if not any(role(agent.role).writes_code for agent in plan.team):
        yield plan
        return
    from counterpoint.runtime.sandbox import Sandbox

    with Sandbox() as sandbox:
        sandbox.run("```python\nanswer = 7\n```")  # now, and not in the middle of a run
        yield replace(plan, run_program=sandbox.run)


def play_all(
    plan: Plan,
    models: Models,
    asked: dict[str, Any],
    *,
    folder: Path,
    resume: bool,
    threads: int,
    limits: Limits,
    quiet: bool,
) -> Report:
    """Play the plan in its folder, with a bar on a terminal."""
    from counterpoint import __version__
    from counterpoint.engine.folder import RunFolder
    from counterpoint.engine.local import run as play
    from counterpoint.runtime.roles import roles_id

    config = {
        "schema": "counterpoint.run/1",
        "counterpoint": __version__,
        "python": platform.python_version(),
        "roles": roles_id(),
        "command": sys.argv[1:],
        **plan.config(),
        "asked": asked,
    }
    opened = RunFolder(folder, config, resume=resume)
    try:
        with bar(quiet) as watch:
            return play(plan, opened, models, threads=threads, limits=limits, watch=watch)
    finally:
        opened.close()


def print_scores(
    plan: Plan,
    report: Report,
    metrics: list[str] | None,
    profile: str | None,
    embedder: str,
    format: str,
    output: Path,
) -> Scores:
    """The row of Table 1, then what ``-m`` asked for; both go to ``scores.json``, too."""
    from counterpoint.evaluate import evaluate
    from counterpoint.view import run_row

    name = str(output)
    row = evaluate(
        report.traces, run_row.METRICS,
        profile="paper" if metrics or profile is None else profile,
        answers=plan.kind, embedder=embedder, run=name,
    )  # fmt: skip
    scores = row if not metrics else evaluate(
        report.traces, metrics,
        profile=profile, answers=plan.kind, embedder=embedder, run=name,
    )  # fmt: skip
    write_text(scores.to_json(), output / "scores.json")
    model = str(plan.model["model"])
    if not report.traces and format in ("table", "md"):
        return scores
    if format == "table":
        shown = console()
        shown.print(run_row.table(row, plan.benchmark_name, model, report.crashed, width=shown.width))
    elif format == "md":
        write_text(run_row.markdown(row, plan.benchmark_name, model, report.crashed), None)
    if metrics or format not in ("table", "md"):
        show(scores, format, None)
    return scores
