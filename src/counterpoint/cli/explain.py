"""``counterpoint explain``: one trace in words and rows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from counterpoint.cli import options
from counterpoint.cli.output import choose, say, write_text
from counterpoint.cli.trace_options import ALL, HOW, TraceOptions, takes_trace_options
from counterpoint.errors import UsageError

if TYPE_CHECKING:
    from counterpoint.adapters import Reading
    from counterpoint.explain import Event, Explanation
    from counterpoint.trace import Trace

SCHEMA = "counterpoint.explain/1"
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
LINE = 90
"""Characters of a text that is quoted."""
MOST_EDGES = 8


@takes_trace_options(ALL - {"profile"})
def explain(
    path: Annotated[str, typer.Argument(metavar="PATH", help="File, folder, glob, or - for stdin.")],
    trace: Annotated[
        str | None, typer.Option("--trace", metavar="ID", help="Which trace; default: the first.")
    ] = None,
    format: Annotated[
        str, typer.Option("--format", metavar="text|json", help="Form of the output.")
    ] = "text",
    output: options.Output = None,
    how: TraceOptions = HOW,
    no_cache: options.NoCache = False,
    keep_secrets: options.KeepSecrets = False,
    quiet: options.Quiet = False,
) -> None:
    """Explain one trace: who was diverse, which paths were waste, where the answer was lost, what repeats."""
    choose(format, ("text", "json"), "--format")
    from counterpoint.cli.score import finish
    from counterpoint.evaluate import FAILED, evaluate
    from counterpoint.explain import explain as explained
    from counterpoint.trace import failed_calls

    (reading,) = how.open([path])
    found, others = _found(reading, trace)
    if found is None:
        finish([reading], None, quiet=quiet)
        raise UsageError(f"{path}: no trace to explain")
    if failed := failed_calls(found):
        how_many = f"{failed['failed_calls']} of {failed['calls']}"
        raise UsageError(f"{path}: trace {found.id!r} cannot be explained: {how_many} {FAILED}")
    scores = evaluate(
        [found],
        ["ids"],
        **how.judging,
        cache=not no_cache,
        run=reading.run,
        observe=explained,
    )
    if not scores.observed:
        raise UsageError(f"{path}: {scores.warnings[-1]}")
    write_text(_written(scores.observed[0], format, keep_secrets), output)
    if others and not quiet:
        say(f"note: 1 of {others + 1} traces; name another by --trace ID")
    finish([reading], scores, quiet=quiet)


def _found(reading: Reading, name: str | None) -> tuple[Trace | None, int]:
    """The trace of this name (the first one for None), and how many others there are."""
    from counterpoint.registry import suggest

    found: Trace | None = None
    others: list[str] = []
    for trace in reading:
        if found is None and name in (None, trace.id):
            found = trace
        else:
            others.append(trace.id)
    if found is None and name is not None and others:
        known = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
        raise UsageError(f"no trace {name!r}{suggest(name, others)}; there are: {known}")
    return found, len(others)


def _written(found: Explanation, format: str, keep_secrets: bool) -> str:
    from counterpoint.scores import plain
    from counterpoint.secrets import mask

    if format == "json":
        document = {"schema": SCHEMA, **plain(found, keep_secrets=keep_secrets)}
        return json.dumps(document, indent=2, ensure_ascii=False)
    shown = str if keep_secrets else mask
    lines = [_CONTROL.sub("", " ".join(shown(line).split("\n"))) for line in _lines(found, _Cut(shown))]
    return "\n".join(lines)


# --- in words ---------------------------------------------------------------------------------------


class _Cut:
    """Texts on a line of bounded length, masked before they are cut: half a key is no less secret."""

    def __init__(self, shown: Callable[[str], str]) -> None:
        self.shown = shown

    def __call__(self, text: str) -> str:
        line = " ".join(self.shown(text).split())
        return line if len(line) <= LINE else f"{line[: LINE - 1]}…"


def _lines(found: Explanation, short: _Cut) -> Iterator[str]:
    yield f"trace     {found.trace}" + (f"  (system {found.system})" if found.system else "")
    yield f"task      {short(found.task) or 'not recorded'}"
    yield f"answer    {_outcome(found, short)}"
    sections = {
        "agents": _agents(found),
        "edges": _edges(found),
        "diversity": _diverse(found),
        "paths": _paths(found),
        "the answer": _answer(found, short),
        "repeated text": _repeated(found, short),
    }
    for title, section in sections.items():
        yield ""
        yield title
        yield from (f"  {line}" for line in section)


def _outcome(found: Explanation, short: _Cut) -> str:
    grade = {True: ", right", False: ", wrong", None: ""}[found.correct]
    gold = f" (gold {short(found.gold)})" if found.gold else ""
    disputed = ""
    if found.disputed:
        other = "wrong" if found.correct else "right"
        disputed = f": so it is recorded; by the gold answer it is {other} (--regrade grades anew)"
    return f"{short(found.answer) if found.answer else 'none'}{grade}{gold}{disputed}"


def _agents(found: Explanation) -> Iterator[str]:
    shares = found.shares
    rows: list[Sequence[str]] = [
        ("", "turns", "tokens", "USD", "put into prompts", "paths", "unnecessary", "IDS without", "Shapley",
         "leave one out")
    ]  # fmt: skip
    for share in shares.agents:
        value = _number(share.shapley)
        if share.shapley_low is not None and share.shapley_high is not None:
            value = f"{value} [{share.shapley_low:.2f}, {share.shapley_high:.2f}]"
        rows.append(
            (share.agent, f"{share.steps}", _count(share.tokens), _number(share.cost_usd, 2),
             _count(share.delivered_tokens), _count(share.paths), _count(share.unnecessary),
             _number(share.ids_without), value, _number(share.leave_one_out))
        )  # fmt: skip
    yield from _table(rows)
    if shares.value_function:
        yield f"Shapley values are shares of: {shares.value_function}"
    yield from (f"{what}: {reason}" for what, reason in shares.reasons.items())


def _edges(found: Explanation) -> Iterator[str]:
    """Who passed on most to whom."""
    edges = sorted(found.shares.edges, key=lambda edge: -edge.delivered_tokens)
    if not edges:
        yield "no transfer between agents is known"
        return
    rows: list[Sequence[str]] = [
        ("", "transfers", "taken up", "tokens", "repeated", "USD", "paths", "unnecessary", "IDS without")
    ]
    for edge in edges[:MOST_EDGES]:
        repeated = edge.repeated_tokens / edge.delivered_tokens if edge.delivered_tokens else 0.0
        rows.append(
            (f"{edge.source} → {edge.reader}", f"{edge.transfers}", f"{edge.taken_up}",
             _count(edge.delivered_tokens), f"{repeated:.0%}", _number(edge.delivered_usd, 2),
             _count(edge.paths), _count(edge.unnecessary), _number(edge.ids_without))
        )  # fmt: skip
    yield from _table(rows)
    if len(edges) > MOST_EDGES:
        yield f"... and {len(edges) - MOST_EDGES} more"


def _diverse(found: Explanation) -> Iterator[str]:
    if not found.pairs:
        yield "no transfer connects two steps that say something"
        return
    whole = f"; IDS of the run {found.shares.ids:.3f}" if found.shares.ids is not None else ""
    yield f"{found.pairs:,} connected pairs, in {found.by}{whole}"
    for title, pairs in (("least diverse", found.least_diverse), ("most diverse", found.most_diverse)):
        for pair in pairs:
            ends = f"{pair.first} ({pair.first_agent}) – {pair.second} ({pair.second_agent})"
            yield f"{title}  {pair.diversity:.3f}  {ends}"


def _paths(found: Explanation) -> Iterator[str]:
    shares = found.shares
    if shares.paths is not None and shares.unnecessary is not None:
        share = f" ({shares.unnecessary / shares.paths:.0%})" if shares.paths else ""
        counts = f"{_count(shares.unnecessary)} of {_count(shares.paths)} paths"
        yield f"{counts} are unnecessary{share}: too few {shares.judged_by}"
    else:
        yield shares.reasons.get("paths", "no path")
    if found.heaviest:
        yield f"the heaviest {len(found.heaviest)} of up to {found.longest} steps, by the text they carried:"
    for path in found.heaviest:
        hops = " → ".join(f"{step} ({agent})" for step, agent in zip(path.steps, path.agents, strict=True))
        yield f"{_count(path.tokens)} tokens, {path.right} of {len(path.steps)} {shares.judged_by}: {hops}"


def _answer(found: Explanation, short: _Cut) -> Iterator[str]:
    yield _story(found)
    left_out = found.events_in_all - len(found.events)
    for number, event in enumerate(found.events):
        if left_out and number == len(found.events) - 4:
            yield f"... {left_out} more"
        yield _event(event, short)
    if found.blame:
        blamed = found.blame
        who = f"{blamed['step_id']} ({blamed['agent']})"
        yield f"first decisive error, by the rule {blamed['rule']!r}: {who}; a rule's guess, no proof"


def _story(found: Explanation) -> str:
    right = [event for event in found.events if event.right and event.what != "final"]
    if not found.events:
        return "no step commits to an answer that can be read: see --answer-pattern"
    if found.correct is None:
        return "whether it is right is not known: no gold answer"
    if found.correct:
        return (
            f"the right answer was kept; first given by {right[0].step} ({right[0].agent})"
            if right
            else "right"
        )
    if right:
        return f"the right answer was there, first by {right[0].step} ({right[0].agent}), and was lost"
    return "nobody gave the right answer"


def _event(event: Event, short: _Cut) -> str:
    who = f"{event.step} ({event.agent}, round {event.round})"
    grade = {True: ", right", False: ", wrong", None: ""}[event.right]
    heard = f", which it heard from {', '.join(event.heard[:5])}" if event.heard else ""
    if event.what == "turns":
        return f"{who} turns from {short(event.before)} to {short(event.answer)}{grade}{heard}"
    if event.what == "final":
        return f"{who} ends the run with {short(event.answer)}{grade}"
    return (
        f"{who} {'begins' if event.what == 'begins' else 'agrees'} with {short(event.answer)}{grade}{heard}"
    )


def _repeated(found: Explanation, short: _Cut) -> Iterator[str]:
    if not found.delivered_tokens:
        yield "nothing was delivered"
        return
    share = found.repeated_tokens / found.delivered_tokens
    yield (
        f"{_count(found.repeated_tokens)} of {_count(found.delivered_tokens)} delivered tokens ({share:.0%}) "
        "their readers had seen or said before"
    )
    for repeat in found.repeats:
        readers = ", ".join(repeat.readers[:5]) + (" ..." if len(repeat.readers) > 5 else "")
        who = f"{repeat.step} ({repeat.agent})"
        yield f"{_count(repeat.tokens)} tokens of {who} to {readers}: “{short(repeat.text)}”"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        yield "  ".join([row[0].ljust(widths[0]), *cells]).rstrip()


def _count(value: float | None) -> str:
    """A number as people write it; of a huge one its size: the JSON form has all digits."""
    if value is None:
        return "–"
    if isinstance(value, int) and value >= 10**15:
        digits = str(value)
        return f"{digits[0]}.{digits[1:3]}e{len(digits) - 1}"
    return f"{value:,.0f}"


def _number(value: float | None, digits: int = 3) -> str:
    if value is None:
        return "–"
    return f"{value:.{digits}g}" if 0 < abs(value) < 10**-digits else f"{value:.{digits}f}"
