"""The command line: one command a file; each parses, calls the library and prints.

stdout is data, stderr is talk. Exit codes: 0 done or gate passed, 1 gate failed, 2 bad usage or input that
could not be read, 3 not evaluable.
"""

from __future__ import annotations

import os
import sys

import typer

from counterpoint.cli import (
    check,
    claims,
    compare,
    convert,
    demo,
    doctor,
    explain,
    forest,
    list_,
    report,
    run,
    schema,
    score,
    serve,
    store,
)
from counterpoint.cli.output import version_callback
from counterpoint.errors import CounterpointError

__all__ = ["app", "main"]

app = typer.Typer(
    name="counterpoint",
    help="Evaluate how a team of LLM agents works together, not only whether the answer was right.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _main(
    version: bool = typer.Option(
        False, "--version", callback=version_callback, is_eager=True, help="Print the version."
    ),
) -> None:
    """Evaluate how a team of LLM agents works together, not only whether the answer was right."""


app.command("score")(score.score)
app.command("report")(report.report)
app.command("compare")(compare.compare)
app.command("check")(check.check)
app.command("doctor")(doctor.doctor)
app.command("explain")(explain.explain)
app.command("claims")(claims.claims)
app.add_typer(forest.app, name="forest")
app.command("convert")(convert.convert)
app.command("run")(run.run)
app.add_typer(store.app, name="store")
app.command("list")(list_.list_)
app.command("schema")(schema.schema)
app.command("demo")(demo.demo)
app.command("serve")(serve.serve)


def _prepare_streams() -> None:
    """A closed stream is written to nowhere; a character that a terminal lacks is replaced, not an error."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - to the end
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def main() -> None:
    """Run the command line; an error that a user can cause is one line on stderr and exit code 2."""
    _prepare_streams()
    try:
        app()
    except CounterpointError as error:
        print(f"counterpoint: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(f"counterpoint: {error.filename or 'output'}: {error.strerror or error}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as ended:
        if _was_interrupt(ended):
            print("counterpoint: interrupted", file=sys.stderr)
        raise


def _was_interrupt(error: BaseException | None) -> bool:
    """Does the end come from a Ctrl-C? The library of the command line makes a silent exit of it."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
