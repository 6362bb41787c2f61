"""Forest files: role graphs of runs that worked, by task; self-describing, versioned, and small.

The first line says what the file is, each further line is one reference::

    {"schema": "counterpoint.forest/1", "roles": "default", "roles_sha256": "d978...", "where": "correct",
     "evidence": "broadcast", "runs": 12, "references": 2, "texts": false, "made_by": "counterpoint 0.1.0"}
    {"task": "q1", "generator": "langgraph", "roles": ["planner", "coder"], "edges": [[0, 1]],
     "tokens": [120, 480], "agents": [0, 1], "names": ["Planner", "Coder"], "traces": ["5f0c..."]}

Conventions
-----------
* Runs of one task, generator and conditioning that have the same structure are one reference, the one with
  the fewest tokens; ``traces`` holds a hash of the content of each run, so that none is compared with itself.
* Roles were read with one role table: a forest is matched only by graphs read with the same.
* Agents are numbers, by first appearance. Texts are kept only where asked for, with secrets masked.
* Equal runs give equal bytes, whatever their order.

Source: ForestBench's reference forest; the file format is ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from counterpoint.errors import CounterpointError, UsageError
from counterpoint.metrics.forestbench import ReferenceSet
from counterpoint.metrics.rolegraph import Origin, RoleGraph, actions
from counterpoint.metrics.roles import RoleTable, role_table
from counterpoint.secrets import mask
from counterpoint.trace import Trace, tidy

__all__ = ["SCHEMA", "Forest", "Header", "Reference", "build_forest", "read_forest"]

SCHEMA = "counterpoint.forest/1"


class Header(Struct, frozen=True, kw_only=True):
    """What a forest file says about itself."""

    schema: str = SCHEMA
    roles: str
    """Name of the role table."""
    roles_sha256: str
    where: str
    """Which runs were taken."""
    evidence: str
    """The weakest evidence of a transfer that counted."""
    runs: int
    """How many runs the references stand for."""
    references: int
    texts: bool = False
    made_by: str = ""


class Reference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of a forest file: one structure, and the runs that have it."""

    task: str = ""
    dataset: str = ""
    generator: str = ""
    conditioning: str = ""
    correct: float = 1.0
    roles: tuple[str, ...]
    edges: tuple[tuple[int, int], ...] = ()
    tokens: float | tuple[float | None, ...] | None = None
    agents: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    traces: tuple[str, ...] = ()
    texts: tuple[str, ...] | None = None

    def graph(self) -> RoleGraph:
        """The reference as a role graph; raises a CounterpointError where it is none."""
        return RoleGraph(
            self.roles,
            list(self.edges),
            tokens=self.tokens,
            correct=self.correct,
            generator=self.generator,
            conditioning=self.conditioning,
            agents=[str(agent) for agent in self.agents] or None,
            names=self.names or None,
            origin=Origin(self.task, self.dataset, self.traces),
        )


class Forest:
    """References by task, each task's prepared for matching on first use."""

    def __init__(self, header: Header, references: Iterable[Reference], name: str = "") -> None:
        self.header = header
        self.references = tuple(references)
        self.name = name
        """The path it was read from."""
        self._sets: dict[str | None, ReferenceSet] = {}

    @cached_property
    def by_task(self) -> Mapping[str, list[int]]:
        """Task id to the numbers of its references, in the order of the file."""
        found: dict[str, list[int]] = {}
        for index, reference in enumerate(self.references):
            found.setdefault(reference.task, []).append(index)
        return found

    @cached_property
    def graphs(self) -> tuple[RoleGraph, ...]:
        """Every reference as a role graph."""
        return tuple(reference.graph() for reference in self.references)

    @cached_property
    def sha256(self) -> str:
        """Hash of the content, whatever the file is called."""
        return hashlib.sha256(self.to_jsonl().encode()).hexdigest()

    def of(self, task: str | None) -> ReferenceSet:
        """The references of a task, prepared; of every task for None. Empty for a task that is not there."""
        if task not in self._sets:
            chosen = range(len(self.references)) if task is None else self.by_task.get(task, [])
            self._sets[task] = ReferenceSet(self.graphs[index] for index in chosen)
        return self._sets[task]

    def tasks_like(self, task: str) -> list[str]:
        """The other tasks of the same data set, sorted."""
        datasets = {self.references[index].dataset for index in self.by_task.get(task, [])}
        return sorted(
            other
            for other, numbers in self.by_task.items()
            if other != task and self.references[numbers[0]].dataset in datasets
        )

    def without(self, *, dataset: str | None = None, conditioning: str | None = None) -> Forest:
        """The forest without one data set (leave-one-data-set-out), or without one sort of conditioning."""
        kept = [
            reference
            for reference in self.references
            if dataset != reference.dataset and conditioning != reference.conditioning
        ]
        return _forest(self.header, kept, self.name)

    def to_jsonl(self) -> str:
        """The file's content."""
        lines = [self.header, *self.references]
        return "".join(msgspec.json.encode(line).decode() + "\n" for line in lines)


def build_forest(
    traces: Iterable[Trace],
    *,
    aliases: str | Path | RoleTable = "default",
    evidence: str = "broadcast",
    where: str = "correct",
    texts: bool = False,
) -> Forest:
    """A forest of the traces that say that they were correct.

    Parameters
    ----------
    traces: runs; those that are not ``correct``, and those without an action, are left out.
    aliases: the role table.
    evidence: the weakest evidence of a transfer that counts.
    where: written into the file: how the runs were chosen.
    texts: keep what each action said, secrets masked.

    Raises UsageError where no run is left.
    """
    from counterpoint import __version__

    table = role_table(aliases)
    best: dict[tuple[str, ...], tuple[tuple[Any, ...], Reference]] = {}
    merged: dict[tuple[str, ...], set[str]] = {}
    seen = 0
    for trace in traces:
        seen += 1
        if not trace.correct:
            continue
        graph = RoleGraph.from_trace(trace, table, evidence=evidence)
        if not graph.n:
            continue
        reference = _reference(graph, trace if texts else None)
        key = (graph.origin.task, graph.generator, graph.conditioning, graph.structure)
        rank = (graph.tokens is None, graph.tokens or 0, reference.traces)
        merged.setdefault(key, set()).update(reference.traces)
        if key not in best or rank < best[key][0]:
            best[key] = (rank, reference)
    if not best:
        raise UsageError(
            f"no verified run among {seen}: a forest is made of runs that are known to be right; record "
            "`correct` or `gold` with each trace, or give --gold FILE"
        )
    header = Header(
        roles=table.name,
        roles_sha256=table.sha256,
        where=where,
        evidence=evidence,
        runs=0,
        references=0,
        texts=texts,
        made_by=f"counterpoint {__version__}",
    )
    references = [replace(best[key][1], traces=tuple(sorted(merged[key]))) for key in sorted(best)]
    return _forest(header, references)


def _forest(header: Header, references: list[Reference], name: str = "") -> Forest:
    runs = sum(max(1, len(reference.traces)) for reference in references)
    return Forest(replace(header, runs=runs, references=len(references)), references, name)


def _reference(graph: RoleGraph, trace: Trace | None) -> Reference:
    """A graph as a line, with the texts of ``trace``."""
    number: dict[str, int] = {}
    tokens = graph.tokens if graph.node_tokens is None else graph.node_tokens
    return Reference(
        task=graph.origin.task,
        dataset=graph.origin.dataset,
        generator=graph.generator,
        conditioning=graph.conditioning,
        correct=graph.correct,
        roles=graph.roles,
        edges=tuple((int(i), int(j)) for i, j in graph.edges),
        tokens=tokens,
        agents=tuple(number.setdefault(agent, len(number)) for agent in graph.agents or ()),
        names=tuple(mask(name) for name in graph.names or ()),
        traces=graph.origin.traces,
        texts=None if trace is None else tuple(mask(node.content) for node in actions(tidy(trace))),
    )


def read_forest(path: str | Path) -> Forest:
    """A forest file, read once as long as the file does not change.

    Raises UsageError for a file that is missing, is no forest, was written by another version, is cut off, or
    holds a line that is no acyclic graph.
    """
    try:
        status = Path(path).stat()
        return _read(str(path), status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise UsageError(f"forest {path}: {error.strerror or error}") from None


@lru_cache(maxsize=8)
def _read(path: str, changed_ns: int, size: int) -> Forest:
    with open(path, "rb") as file:
        header = _header(path, file.readline())
        references = list(_references(path, file))
    if len(references) != header.references:
        raise UsageError(
            f"forest {path}: {len(references)} references where the first line says {header.references}: "
            "cut off? Build it again"
        )
    return Forest(header, references, path)


def _header(path: str, line: bytes) -> Header:
    try:
        found = msgspec.json.decode(line)
        schema = str(found["schema"])
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError, KeyError):
        raise UsageError(
            f"forest {path}: its first line is not that of a forest; make one with: counterpoint forest build"
        ) from None
    if schema != SCHEMA:
        known = schema.startswith("counterpoint.forest/")
        hint = "written by another version: build it again" if known else "not a forest"
        raise UsageError(f"forest {path}: schema {schema!r} is not {SCHEMA!r}: {hint}")
    try:
        return msgspec.convert(found, Header)
    except msgspec.ValidationError as error:
        raise UsageError(f"forest {path}: line 1: {error}") from None


def _references(path: str, lines: Iterable[bytes]) -> Iterator[Reference]:
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        try:
            reference = msgspec.json.decode(line, type=Reference)
            reference.graph()
        except (msgspec.DecodeError, UnicodeDecodeError, CounterpointError) as error:
            raise UsageError(f"forest {path}: line {number}: {error}") from None
        yield reference
