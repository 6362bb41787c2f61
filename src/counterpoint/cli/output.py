"""What every command does with its results: data to stdout or a file, talk to stderr."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from counterpoint.errors import UsageError
from counterpoint.secrets import mask

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "choose",
    "console",
    "say",
    "say_some",
    "to_stdout",
    "version_callback",
    "write_bytes",
    "write_text",
]

SHOWN = 5
"""Warnings of one sort that are printed before the rest is only counted."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def console(*, stderr: bool = False) -> Console:
    """A terminal console; without a terminal: no colors, 120 columns unless COLUMNS says otherwise."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    wide = None if stream.isatty() or "COLUMNS" in os.environ else 120
    return Console(file=stream, width=wide, highlight=False, soft_wrap=False)


def say(text: str) -> None:
    """One line to stderr, secrets masked, control characters dropped."""
    print(_CONTROL.sub("", mask(" ".join(text.splitlines()))), file=sys.stderr)


def say_some(texts: Sequence[str], what: str) -> None:
    """The first few lines to stderr, and how many more there are."""
    for text in texts[:SHOWN]:
        say(f"{what}: {text}")
    if len(texts) > SHOWN:
        say(f"{what}: ... and {len(texts) - SHOWN} more (all of them: --format json)")


def write_text(text: str, output: Path | None) -> None:
    """Text to stdout, or to a file in one move, so that a reader never sees half of it."""
    if not text.endswith("\n"):
        text += "\n"
    write_bytes([text.encode("utf-8", "replace")], output)


def write_bytes(pieces: Iterable[bytes], output: Path | None) -> None:
    """Bytes to stdout, or to a file in one move; they are written as they come."""
    if output is None:
        with to_stdout():
            sys.stdout.buffer.writelines(pieces)
        return
    try:
        output = output.resolve()  # through links, so that they stay
        if output.exists() and not output.is_file():
            with output.open("wb") as file:
                file.writelines(pieces)  # a pipe or device: there is nothing to replace
        else:
            _replace(output, pieces)
    except OSError as error:
        raise UsageError(f"{output}: could not be written: {error.strerror or error}") from None


def _replace(output: Path, pieces: Iterable[bytes]) -> None:
    handle, name = tempfile.mkstemp(dir=output.parent, prefix=f".{output.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(pieces)
        Path(name).chmod(0o666 & ~_umask())
        os.replace(name, output)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def to_stdout() -> Iterator[None]:
    """Where the reader of stdout has gone (``| head``), the command ends quietly and is done."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


def _umask() -> int:
    mode = os.umask(0)
    os.umask(mode)
    return mode


def choose(value: str, among: Sequence[str], option: str) -> str:
    """``value`` if it is among the choices; a UsageError that lists them otherwise."""
    if value not in among:
        from counterpoint.registry import suggest

        raise UsageError(f"{option} {value!r} is none of {', '.join(among)}{suggest(value, among)}")
    return value


def version_callback(asked: bool) -> None:
    """Print the version and end."""
    if asked:
        from counterpoint import __version__

        typer.echo(f"counterpoint {__version__}")
        raise typer.Exit
