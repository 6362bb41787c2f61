"""Which files the arguments of `read` mean: a file, a folder, a glob, ``-``; in a fixed order.

Hidden files are skipped, links to folders are followed unless they lead back, and files of a folder or a
glob are ``found`` rather than ``named``: one that is no trace is then passed over with a note.
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from counterpoint.errors import TraceError

__all__ = ["File", "expand"]


class File(Struct, frozen=True):
    """One file to read."""

    path: str
    id: str
    """What its traces are called: the path relative to the argument; with the argument where that clashes."""
    argument: int
    """Index of the argument that it comes from."""
    named: bool
    """The user named this very file."""


def expand(arguments: Sequence[str]) -> list[File | TraceError]:
    """The files of every argument, in the order of the arguments, each argument's files sorted."""
    found: list[File | TraceError] = []
    for number, argument in enumerate(arguments):
        found += _files(argument, number)
    known = Counter(file.id for file in found if isinstance(file, File))
    return [
        replace(file, id=_posix(file.path)) if isinstance(file, File) and known[file.id] > 1 else file
        for file in found
    ]


def _files(argument: str, number: int) -> list[File | TraceError]:
    if argument == "-":
        return [File("-", "stdin", number, True)]
    if os.path.isdir(argument):
        return _under(argument, argument, number) or [TraceError("the folder is empty", source=argument)]
    if os.path.lexists(argument):
        return [File(argument, os.path.basename(argument), number, True)]
    if not glob.has_magic(argument):
        return [TraceError("no such file or folder", source=argument)]
    matches = sorted(glob.glob(argument, recursive=True))
    base = _fixed_part(argument)
    files: list[File | TraceError] = []
    for match in matches:
        if os.path.isdir(match):
            # A pattern with ** gives the files of the folders that it gives as well.
            files += [] if "**" in argument else _under(match, base, number)
        else:
            files.append(File(match, _posix(os.path.relpath(match, base)), number, False))
    return files or [TraceError("no file matches", source=argument)]


def _under(folder: str, base: str, number: int) -> list[File | TraceError]:
    faults: list[File | TraceError] = []
    paths = sorted(_walk(folder, (), faults), key=lambda path: path.split(os.sep))
    return [*(File(path, _posix(os.path.relpath(path, base)), number, False) for path in paths), *faults]


def _walk(folder: str, above: tuple[tuple[int, int], ...], faults: list[File | TraceError]) -> Iterator[str]:
    """Paths of the files at any depth under ``folder``; ``above``: the folders that lead to it."""
    try:
        status = os.stat(folder)
        entries = [entry for entry in os.scandir(folder) if not entry.name.startswith(".")]
    except OSError as error:
        faults.append(TraceError(f"could not be read: {error.strerror}", source=folder))
        return
    here = (status.st_dev, status.st_ino)
    if here in above:
        return
    for entry in entries:
        if entry.is_dir():
            yield from _walk(entry.path, (*above, here), faults)
        elif entry.is_file() or not os.path.exists(entry.path):
            # Not a pipe or a device, which nobody named; a link that leads nowhere is told when it is read.
            yield entry.path


def _fixed_part(pattern: str) -> str:
    """The folder before the first part with a wildcard: ``runs`` of ``runs/*/out.jsonl``."""
    fixed = []
    for part in pattern.split(os.sep)[:-1]:
        if glob.has_magic(part):
            break
        fixed.append(part)
    return os.sep.join(fixed) or (os.sep if pattern.startswith(os.sep) else ".")


def _posix(path: str) -> str:
    return path.replace(os.sep, "/")
