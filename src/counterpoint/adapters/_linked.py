"""Runs that span links hold together over several files, read anew from the spans of all of them.

Some frameworks (AutoGen) make a run of dozens of traces with links between them, and a collector may cut it
at any span: a message that was said in one file is delivered in the next. So the halves are not joined as
traces; their spans are kept until the last file, and what belongs together is read again as one.

Kept are the spans of a file in which a run spans several traces, or links to what the file does not have. Two
runs of such files are one if they share a trace id, or one links to the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from counterpoint.adapters._spans import Span
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

__all__ = ["LINKED", "LinkedRun", "join_linked", "may_go_on"]

LINKED = "linked_run"
"""Label of a trace that may go on in another file, until that is settled."""


class LinkedRun(Struct, eq=False):
    """The spans of a run that may go on in another file, and how they are read."""

    spans: Sequence[Span]
    read: Callable[[Sequence[Span]], Iterator[Trace | TraceError]]
    warnings: Sequence[str] = ()
    """Of the file."""
    beside: Sequence[Sequence[Span]] = ()
    """Groups of spans in the file that are no run by themselves, with its first run."""


def may_go_on(spans: Sequence[Span]) -> bool:
    """Does a run have several traces, or links to spans that it does not have?"""
    if not any(span.links for span in spans):
        return False
    ids = {span.id for span in spans}
    return len({span.trace for span in spans}) > 1 or any(
        link not in ids for span in spans for link in span.links
    )


def join_linked(traces: Iterable[Trace]) -> Iterator[Trace]:
    """The traces; those that may go on in another file come last, as one with what they go on in."""
    runs: list[Sequence[Span]] = []
    held: dict[int, tuple[Trace, LinkedRun]] = {}
    for trace in traces:
        run = trace.labels.get(LINKED)
        if isinstance(run, LinkedRun):  # a label that a file holds is none
            labels = {key: value for key, value in trace.labels.items() if key != LINKED}
            held[len(runs)] = replace(trace, labels=labels), run
            runs += [run.spans, *run.beside]
        else:
            yield trace
    for together in _groups(runs):
        known = [held[number] for number in together if number in held]
        if len(together) > 1 and known:
            yield from _anew([span for number in together for span in runs[number]], known)
        else:
            yield from (trace for trace, _ in known)


def _anew(spans: Sequence[Span], known: Sequence[tuple[Trace, LinkedRun]]) -> Iterator[Trace]:
    """What the spans of several files are read to, in place of what those of each were."""
    first, run = known[0]
    warnings = [warning for _, other in known for warning in other.warnings]
    for made in run.read(spans):
        if isinstance(made, Trace):
            yield replace(
                made,
                id=first.id,
                source=first.source,
                labels={**made.labels, "format": first.labels["format"]},
                warnings=tuple(dict.fromkeys((*warnings, *made.warnings))),
            )


def _groups(runs: Sequence[Sequence[Span]]) -> list[list[int]]:
    """Numbers of the runs that belong together, each group and all groups in order."""
    home: dict[tuple[str, str], int] = {}
    group = list(range(len(runs)))

    def top(number: int) -> int:
        while group[number] != number:
            group[number] = group[group[number]]
            number = group[number]
        return number

    for number, run in enumerate(runs):
        for span in run:
            for key in (("trace", span.trace), ("span", span.id)):
                if key[1]:
                    group[top(number)] = top(home.setdefault(key, number))
    for number, run in enumerate(runs):
        for span in run:
            for link in span.links:
                group[top(home.get(("span", link), number))] = top(number)
    found: dict[int, list[int]] = {}
    for number in range(len(runs)):
        found.setdefault(top(number), []).append(number)
    return list(found.values())
