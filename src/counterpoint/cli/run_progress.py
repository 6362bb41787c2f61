"""What ``counterpoint run`` tells while it plays, and when it has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from counterpoint.cli.output import console, say, say_some
from counterpoint.errors import ModelError

if TYPE_CHECKING:
    from counterpoint.engine.local import Report
    from counterpoint.engine.progress import Progress
    from counterpoint.scores import Scores

__all__ = ["bar", "finish"]


@contextmanager
def bar(quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """On a terminal: questions done, rate, tokens, cost, time left. Everywhere: what a Ctrl-C waits for."""
    notice = _Notice()
    talk = console(stderr=True)
    if quiet or not talk.is_terminal:
        yield notice
        return
    from rich import progress as rich

    columns = (
        rich.TextColumn("playing"), rich.BarColumn(), rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[told]}"), rich.TimeRemainingColumn(),
    )  # fmt: skip
    with rich.Progress(*columns, console=talk) as shown:
        task = shown.add_task("playing", total=None, told="")

        def watch(now: Progress) -> None:
            shown.update(task, total=now.questions, completed=now.done + now.failed, told=told(now))
            notice(now)

        yield watch


class _Notice:
    """Says once that the run was interrupted, and what it still waits for."""

    def __init__(self) -> None:
        self.given = False

    def __call__(self, now: Progress) -> None:
        from counterpoint.engine.local import INTERRUPTED

        if now.stopping == INTERRUPTED and not self.given:
            self.given = True
            say(f"stopping: {now.under_way} calls under way are waited for; Ctrl-C again leaves them")


def told(now: Progress) -> str:
    """Calls, their rate, tokens, dollars and failures on one line."""
    import time

    elapsed = max(time.monotonic() - now.started_at, 1e-9)
    parts = [
        f"{now.calls:,} calls ({now.asked_now / elapsed:.1f}/s)",
        f"{now.tokens_in + now.tokens_out:,} tokens",
    ]
    if not now.unpriced:
        parts.append(f"{now.cost_usd:.2f} USD")
    if now.failed_calls:
        parts.append(f"{now.failed_calls} failed")
    return " · ".join(parts)


def finish(report: Report, scores: Scores, output: Path, *, quiet: bool) -> None:
    """Tell what failed and what was used; the exit code says whether the run is whole."""
    from counterpoint.engine.local import INTERRUPTED
    from counterpoint.trace import failed_calls

    failures = [": ".join(filter(None, (one.trace, one.agent, one.error))) for one in report.failures]
    if not quiet:
        say_some(scores.warnings, "warning")
        now = report.progress
        say(f"{told(now)} · cost unknown: {now.unpriced}" if now.unpriced else told(now))
    for text in failures[:5]:
        say(f"failed: {text}")
    if len(failures) > 5:
        say(f"failed: ... and {len(failures) - 5} more (all of them: {output}/log.jsonl)")
    played = len(report.traces) + report.crashed
    failed = report.crashed + sum(bool(failed_calls(trace)) for trace in report.traces)
    if failed:
        say(f"{failed} of {played} questions failed and are not scored: --resume plays them again")
    if report.others and not quiet:
        say(f"{output}/traces.jsonl also holds {report.others} traces of more questions or seeds, "
            "played before: they stay, and are not in this table")  # fmt: skip
    if report.stopped == INTERRUPTED:
        say(f"interrupted after {report.progress.done} of {report.progress.questions} questions: "
            f"go on with --resume")  # fmt: skip
        raise typer.Exit(130)
    if report.stopped:
        raise ModelError(
            f"stopped after {report.progress.done} of {report.progress.questions} questions: "
            f"{report.stopped} (to go on: --resume)"
        )
    if failed == played:
        raise ModelError("no question could be scored: see what failed; --resume tries again")
