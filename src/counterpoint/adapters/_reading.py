"""`read`: from paths to a stream of finished traces.

An adapter gives raw traces; all that is the same for every format is done here: finding the files and the
format, ids, the join of traces, tidying, the choice of agents, and the fate of errors.
"""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from counterpoint.adapters._files import File, expand
from counterpoint.adapters._join import join
from counterpoint.adapters._linked import join_linked
from counterpoint.adapters._pair import pair
from counterpoint.adapters._source import MAX_BYTES, UNREADABLE, open_source
from counterpoint.contracts import Source
from counterpoint.errors import TraceError, UsageError
from counterpoint.registry import lookup, names
from counterpoint.trace import Trace, select_agents, tidy

__all__ = ["Reading", "read", "read_source"]

Path = str | os.PathLike[str]

_BESIDE_TRACES = re.compile(rb'\s*\{\s*("schema":\s*"counterpoint\.(run|scores)/|"event":\s*"started")')
"""The other files of a run folder, which are known to be no traces."""
_NAMED = 10
"""Agents that a note names before it only counts the rest."""


def read(
    path: Path | Sequence[Path],
    *,
    format: str = "auto",
    on_error: str | Callable[[TraceError], object] = "warn",
    exclude_agents: Iterable[str] = (),
    rename_agents: Mapping[str, str] | None = None,
    system: str | None = None,
    name_key: str = "name",
    role_key: str = "role",
    max_bytes: int = MAX_BYTES,
    group_by: str | None = None,
) -> Reading:
    """Traces from files of any known format, one at a time.

    Parameters
    ----------
    path : a file, a folder (searched all through; hidden files are skipped), a glob, ``"-"`` for standard
        input, or a list of these. Compressed files (``.gz``) are read as they are.
    format : name of the adapter; ``auto`` looks at each file.
    on_error : what becomes of a record or file that cannot be read. ``warn``: the first one is warned of;
        ``raise``: it is raised; a callable gets each TraceError. All are kept in ``Reading.errors``.
    exclude_agents, rename_agents : see `counterpoint.trace.select_agents`; excluding comes first.
    system : name of the team, instead of the one that the format gives.
    name_key, role_key : where chat messages keep the speaker's name and role.
    max_bytes : the largest JSON document that is read into memory; JSONL is read a line at a time.
    group_by : a label, such as ``session.id``: traces with the same value become one trace. Reads all
        traces before it gives the first.

    Returns
    -------
    An iterator of traces, to be gone through once.
    """
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    if format != "auto":
        lookup("adapter", format)
    if on_error not in ("warn", "raise") and not callable(on_error):
        raise UsageError(f"on_error {on_error!r} is neither 'warn' nor 'raise' nor a callable")
    if isinstance(exclude_agents, str):
        raise UsageError(f"exclude_agents is a list of names: [{exclude_agents!r}]")
    return Reading(
        [os.fspath(part) for part in paths],
        format=format,
        on_error=on_error,
        exclude=frozenset(exclude_agents),
        rename=dict(rename_agents or {}),
        system=system,
        options={"name_key": name_key, "role_key": role_key, "max_bytes": max_bytes, "linked": True},
        group_by=group_by,
    )


def read_source(source: Source, format: str, *, id: str) -> Iterator[Trace | TraceError]:
    """What `read` gives of a file called ``id`` with this content, for content that stands in no file."""
    for item in _numbered(lookup("adapter", format).read(source), source.name, id, format):
        yield tidy(item) if isinstance(item, Trace) else item


class Reading(Iterator[Trace]):
    """The traces of some paths, read as they are asked for; and what was noticed on the way."""

    run: str
    """The path argument, as text."""
    notes: list[str]
    """Files that were passed over so far; at the end, agents and labels asked for that no trace has."""
    errors: list[TraceError]
    """What could not be read so far."""
    detected: dict[str, str]
    """File to the name of its format, so far."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        format: str,
        on_error: str | Callable[[TraceError], object],
        exclude: frozenset[str],
        rename: Mapping[str, str],
        system: str | None,
        options: Mapping[str, Any],
        group_by: str | None,
    ) -> None:
        self.run = " ".join(arguments)
        self.notes = []
        self.errors = []
        self.detected = {}
        self._format = format
        self._on_error = on_error
        self._exclude, self._rename, self._system = exclude, rename, system
        self._options = options
        self._ids: set[str] = set()
        raw = join_linked(pair(self._files(arguments)))
        self._agents: dict[str, None] = {}
        self._traces = self._finished(join(raw, group_by, self.notes) if group_by else raw)

    def __iter__(self) -> Reading:
        return self

    def __next__(self) -> Trace:
        return next(self._traces)

    def _files(self, arguments: Sequence[str]) -> Iterator[Trace]:
        """Every trace of every file, with its id; an argument that gives nothing at all is an error."""
        fruitful: set[int] = set()
        searched: Counter[int] = Counter()
        owner: dict[str, int] = {}
        for file in expand(arguments):
            if isinstance(file, TraceError):
                self._fail(file)
                continue
            searched[file.argument] += 1
            for item in self._file(file):
                fruitful.add(file.argument)
                if isinstance(item, TraceError):
                    self._fail(item)
                elif owner.setdefault(item.id, file.argument) == file.argument:
                    yield item
                else:
                    yield replace(item, id=f"{arguments[file.argument]}:{item.id}")
        for number, count in searched.items():
            if number not in fruitful:
                files = "the one file" if count == 1 else f"any of {count} files"
                self._fail(TraceError(f"no trace found in {files}", source=arguments[number]))

    def _file(self, file: File) -> Iterator[Trace | TraceError]:
        """The traces of one file; an error where something is wrong, never an exception."""
        name = None
        try:
            with open_source(file.path, self._options) as source:
                name = self._format if self._format != "auto" else _detect(source)
                if name is None:
                    yield from self._pass_over(file, source)
                    return
                self.detected[file.path] = name
                yield from _numbered(lookup("adapter", name).read(source), source.name, file.id, name)
        except UNREADABLE as error:
            yield TraceError(f"could not be read: {_reason(error)}", source=file.path)
        except Exception as error:
            # A file can be wrong in more ways than an adapter foresees, and the next file may be good.
            wrong = f"could not be read as {name or 'a trace'}: {type(error).__name__}: {error}"
            fault = TraceError(wrong, source=file.path)
            fault.__cause__ = error
            yield fault

    def _pass_over(self, file: File, source: Source) -> Iterator[TraceError]:
        """A note on a file that is no trace; an error where the user named it."""
        empty = not source.head.strip()
        if file.named:
            yield TraceError("the file is empty" if empty else _unknown(source.head), source=file.path)
        elif not _BESIDE_TRACES.match(source.head):
            self.notes.append(
                f"{file.path}: skipped: {'empty' if empty else 'no trace format is recognized'}"
            )

    def _fail(self, error: TraceError) -> None:
        self.errors.append(error)
        if callable(self._on_error):
            self._on_error(error)
        elif self._on_error == "raise":
            raise error
        elif len(self.errors) == 1:
            warnings.warn(f"{error} (errors are kept in Reading.errors)", stacklevel=2)

    def _finished(self, raw: Iterable[Trace]) -> Iterator[Trace]:
        yield from map(self._finish, raw)
        if not self._agents:
            return
        there = list(self._agents)
        more = f" and {len(there) - _NAMED} more" if len(there) > _NAMED else ""
        for option, asked in (("--exclude-agent", self._exclude), ("--rename-agent", self._rename)):
            for name in sorted(name for name in asked if name not in self._agents):
                seen = ", ".join(there[:_NAMED])
                self.notes.append(f"{option} {name}: no such agent; there are: {seen}{more}")

    def _finish(self, trace: Trace) -> Trace:
        trace = tidy(trace)
        if self._exclude or self._rename:
            self._agents.update(dict.fromkeys(step.agent for step in trace.steps))
            trace = select_agents(trace, exclude=self._exclude, rename=self._rename)
        if self._system is not None:
            trace = replace(trace, system=self._system)
        unique, count = trace.id, 1
        while unique in self._ids:
            count += 1
            unique = f"{trace.id}~{count}"
        self._ids.add(unique)
        if count > 1:
            warning = f"trace id {trace.id!r} stands twice: this one is now {unique!r}"
            trace = replace(trace, id=unique, warnings=(*trace.warnings, warning))
        return trace


def _unknown(head: bytes) -> str:
    """What a file without a known format looks like, and what to do."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "is UTF-16 text: save it as UTF-8"
    if b"\x00" in head[:4096]:
        return "is a binary file of no known trace format"
    look = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    kind = (
        "JSON, but of no known trace format, or cut off"
        if look in (b"{", b"[")
        else "of no known trace format"
    )
    return f"is {kind}: counterpoint list adapters names them, --from NAME tries one"


def _detect(source: Source) -> str | None:
    if not source.head.strip():
        return None
    for name in names("adapter"):
        try:
            if lookup("adapter", name).sniff(source):
                return name
        except (ImportError, AttributeError) as error:
            # Another package's adapter that does not load is no reason to read nothing at all.
            warnings.warn(f"adapter {name!r} is left out: {error}", stacklevel=2)
    return None


def _numbered(
    items: Iterator[Trace | TraceError], path: str, id: str, format: str
) -> Iterator[Trace | TraceError]:
    """The traces with id, source and format; numbered where the file holds several records.

    A record that cannot be read keeps its number. Traces with a trace id are no records: they count alone.
    """
    waiting: Trace | None = None
    made = failed = 0
    for item in items:
        if waiting is not None and not _beside(waiting, item):
            yield _named(waiting, f"{id}#1", format)
            waiting = None
        if isinstance(item, TraceError):
            failed += 1
            yield item
            continue
        made += 1
        number = made if "trace_id" in item.labels else made + failed
        if number == 1:
            # Whether its id takes a number is known once the next record is there.
            waiting = item
        else:
            yield _named(item, f"{id}#{number}", format)
    if waiting is not None:
        yield _named(waiting, id, format)
    if not made + failed:
        yield TraceError("holds no trace", source=path)


def _beside(trace: Trace, item: Trace | TraceError) -> bool:
    """Is ``item`` what was wrong with the first record or with spans, and no record after it?"""
    return isinstance(item, TraceError) and (item.record == 1 or "trace_id" in trace.labels)


def _named(trace: Trace, id: str, format: str) -> Trace:
    """The trace with the id that its place gives it; native traces and recordings keep their own."""
    if format == "native":
        return trace
    name = trace.id if format == "recording" else id
    return replace(trace, id=name, source=format, labels={**trace.labels, "format": format})


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error) or type(error).__name__
