"""One run: its numbers, then each of its traces: pictures, steps, who took up what, claims.

A run whose spans still arrive is shown from what has come so far; it has no numbers yet, and says so.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from counterpoint.contracts import Context
from counterpoint.metrics.claim_ledger import EVENTS, Event
from counterpoint.metrics.correctness import last_word
from counterpoint.scores import Scores, Summary
from counterpoint.store.records import task_or_name
from counterpoint.trace import Trace
from counterpoint.view.markup import inline, values_table
from counterpoint.view.report import report_html, signatures_of
from counterpoint.view.report_claims import Claims
from counterpoint.view.report_trace import MOST_BYTES, Pages, TracePage, trace_page
from counterpoint.view.server.layout import key_of, link_to, moment, scores_of, short
from counterpoint.view.server.parts import arriving, look_into, traces_of
from counterpoint.view.table import arrow, number
from counterpoint.view.visible import escaped

if TYPE_CHECKING:
    from counterpoint.store import Run, Store

__all__ = ["STATES", "as_far_as", "how_to_give", "report_of", "run_main", "run_name", "size", "verdict"]

STATES = {
    "receiving": "receiving: spans still arrive",
    "waiting": "waiting to be scored",
    "scored": "scored",
    "unreadable": "unreadable",
}
MOST_AGENTS, MOST_MORE = 8, 500
"""Agents of a run that are named at once, and where the reader asks for more."""
MOST_NOTES = 20


def run_name(run: Run) -> str:
    """What a run is called where it is spoken of; escaped."""
    return short(run.task, 80) or short(run.id, 60) or "(no name)"


def verdict(run: Run) -> str:
    """How its answer was graded: as recorded, else as the metric found; empty where neither says."""
    known = run.values.get("accuracy") if run.correct is None else run.correct
    return "" if known is None else "right" if known == 1 else "wrong" if known == 0 else "partly right"


def size(run: Run) -> str:
    """How long it is: in spans while they arrive, for its steps are not counted yet."""
    count, what = (run.spans, "span") if arriving(run) else (run.steps, "step")
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def report_of(store: Store, run: Run) -> str:
    """The report of one file, of this run alone."""
    traces, _ = traces_of(store, run)
    scores = scores_of(store.rows(run.id), traces)
    return report_html(scores, look_into(traces, Pages()), title=run.task or run.id)


def run_main(store: Store, run: Run) -> str:
    """The main part of the run's page."""
    traces, faults = traces_of(store, run)
    run = as_far_as(run, traces)
    scores = scores_of(store.rows(run.id), traces)
    shown = look_into(traces, _Sections(store.claims(run.id)))
    if len(shown) < len(traces):
        faults = [*faults, f"{len(traces) - len(shown)} of {len(traces)} traces could not be drawn"]
    sections = [
        ("metrics", "Metrics", [*_metrics(scores, len(shown), run.id), *_counted(run, shown, scores)]),
        ("traces", "Traces" if len(shown) > 1 else "Trace", _traces(scores, shown)),
        ("signatures", "How it was computed", signatures_of(scores)),
    ]
    told = [(key, label, "\n".join(parts)) for key, label, parts in sections]
    links = "".join(f'<li><a href="#{key}">{label}</a></li>' for key, label, body in told if body)
    body = "\n".join(
        f'<section id="{key}" aria-labelledby="{key}-h"><h2 id="{key}-h">{label}</h2>\n{body}\n</section>'
        for key, label, body in told
        if body
    )
    head = "".join([*_head(run, shown), *_notes(run, faults)])
    return f'{head}<nav aria-label="Sections"><ul>{links}</ul></nav>\n{body}'


def as_far_as(run: Run, traces: Sequence[Trace]) -> Run:
    """The run with what its traces tell, where its spans still arrive: the store knows older ones only."""
    if not arriving(run) or not traces:
        return run
    steps = [step for trace in traces for step in trace.steps]
    agents = dict.fromkeys(step.agent for step in steps if step.kind in ("agent", "decision"))
    return replace(
        run,
        task=task_or_name(traces[0]),
        system=traces[0].system,
        agents=tuple(agents),
        steps=len(steps),
        answer=None,
    )


class _Section(Struct, frozen=True):
    """What is shown of one trace."""

    page: TracePage | None
    """None where the page has no room for it."""
    answer: str
    steps: int
    """Those that metrics count."""
    agents: frozenset[str]
    """Those that metrics count."""
    service: str = ""
    """What the program called itself (``OTEL_SERVICE_NAME``)."""


class _Sections:
    """Called with the context of each trace; makes its section, claims included, until the page is full."""

    def __init__(self, claims: Sequence[Mapping[str, Any]]) -> None:
        self.events: dict[str, list[Event]] = {}
        for claim in claims:
            with suppress(msgspec.ValidationError):
                event = msgspec.convert(claim, Event)
                if event.event in EVENTS:
                    self.events.setdefault(event.trace, []).append(event)
        self.left = MOST_BYTES
        self.made = 0

    def __call__(self, context: Context) -> _Section:
        page = None
        if self.left > 0:
            self.made += 1
            events = self.events.get(context.trace.id)
            claims = Claims(events=tuple(events)) if events else None
            page = trace_page(context, f"t{self.made}", claims)
            self.left -= len(page.body) + len(page.claims)
        graph = context.graph
        return _Section(
            page if self.left > 0 else None,
            last_word(context) or "",
            len(graph.steps),
            frozenset(graph.agent_names),
            str(context.trace.labels.get("service.name", "")),
        )


def _head(run: Run, shown: Sequence[_Section]) -> Iterator[str]:
    """Facts, and what can be done with the run."""
    given = (
        run.answer
        if run.answer is not None
        else next((one.answer for one in shown[::-1] if one.answer), None)
    )
    answer = "none" if given is None else inline(given[:20_000], 200)
    lasted = ""
    if run.started_at is not None and run.ended_at is not None and run.ended_at >= run.started_at:
        lasted = f", for {run.ended_at - run.started_at:,.1f} s"
    facts = [
        ("State", STATES[run.state]),
        ("System", inline(run.system, 80) if run.system.strip() else "(no name)"),
        *[("Service", inline(name, 120)) for name in dict.fromkeys(one.service for one in shown) if name][:1],
        (f"Agents ({len(run.agents):,})", _agents(run.agents)),
        ("Answer", f"<strong>{answer}</strong> ({verdict(run) or 'not graded'})"),
        ("Size", _size(run, shown)),
        ("Started", f"{moment(run.started_at) or 'not recorded'}{lasted}"),
        ("Received", moment(run.received_at)),
        ("From", "OpenTelemetry" if run.origin == "otlp" else inline(run.origin, 120)),
        ("Id", f"<code>{inline(run.id, 120)}</code>"),
    ]
    yield f"<h1><bdi>{run_name(run)}</bdi></h1>"
    yield '<dl class="facts">'
    for name, value in facts:
        yield f"<div><dt>{name}</dt><dd>{value}</dd></div>"
    yield "</dl>"
    key = key_of(run.id)
    yield f'<p class="actions"><a id="report" href="/runs/{key}/report" download>Download as one file</a> '
    yield f'<a id="compare" href="{link_to("/", {"a": key})}">Compare with another run</a></p>\n'


def _agents(names: Sequence[str]) -> str:
    told = ", ".join(inline(name, 60) for name in names[:MOST_AGENTS]) or "none"
    more = names[MOST_AGENTS:]
    if not more:
        return told
    listed = ", ".join(inline(name, 60) for name in more[:MOST_MORE])
    left = f" and {len(more) - MOST_MORE:,} that are not named here" if len(more) > MOST_MORE else ""
    return f"{told} <details><summary>and {len(more):,} more</summary>{listed}{left}</details>"


def _size(run: Run, shown: Sequence[_Section]) -> str:
    by_agents = sum(one.steps for one in shown)
    steps = f"{run.steps:,} step{'s'[: run.steps != 1]}"
    if by_agents != run.steps and shown:
        steps += f" ({by_agents:,} by agents)"
    spans = f"{run.spans:,} span{'s'[: run.spans != 1]}, " if run.origin == "otlp" else ""
    return f"{steps}, {spans}{len(shown):,} trace{'s'[: len(shown) != 1]}"


def _counted(run: Run, shown: Sequence[_Section], scores: Scores) -> Iterator[str]:
    """What the metrics do not count, though the head and the pictures show it."""
    if not shown or not scores.rows:
        return
    others = run.steps - sum(one.steps for one in shown)
    names = [name for name in run.agents if not any(name in one.agents for one in shown)]
    if others <= 0 and not names:
        return
    told = (
        [f"{others:,} step{'s'[: others != 1]} of a tool, of control or of a decision"] if others > 0 else []
    )
    if names:
        more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
        told.append(
            f"{', '.join(inline(name, 60) for name in names[:3])}{more}, who made no step as an agent"
        )
    left = "; and without ".join(told)
    yield f'<p class="note">Metrics count the steps of agents only: without {left}.</p>'


def _notes(run: Run, faults: Sequence[str]) -> Iterator[str]:
    if run.state in ("receiving", "waiting"):
        late = "The numbers are of the run before its last spans came." if run.scored_revision else ""
        yield (
            '<p class="note state-receiving">This run is shown as far as it has come. It is scored when no '
            f"span has come for some seconds. {late}</p>"
        )
    if run.error:
        told = inline(run.error[:20_000], 1000)
        yield f'<p class="note state-unreadable">This run could not be read or scored: {told}</p>'
    if faults:
        told = "".join(f"<li>{inline(fault, 500)}</li>" for fault in faults[:MOST_NOTES])
        more = f"<li>and {len(faults) - MOST_NOTES:,} more</li>" if len(faults) > MOST_NOTES else ""
        yield f"<h2>What could not be read</h2><ul>{told}{more}</ul>"


def how_to_give(entries: Iterable[Summary], run_ids: Sequence[str]) -> str:
    """How what the reasons ask for is given to runs that are here; empty where none names an option."""
    if not any("--" in reason for entry in entries for reason in entry.reasons):
        return ""
    ids = " ".join(shlex.quote(run_id) for run_id in dict.fromkeys(run_ids))
    if any(run_id.startswith("-") for run_id in run_ids):
        ids = f"-- {ids}"
    export = f"counterpoint store export -o run.jsonl {ids}"
    return (
        '<p class="note">An option that a reason names, as <code>--gold FILE</code>, is given to a run that '
        "is here by these two lines, the first with <code>--store FILE</code> as the server has it; new "
        "runs bring a gold answer along with <code>cp.record(..., gold=...)</code>.</p>\n"
        f'<pre tabindex="0" aria-label="Two commands">{escaped(export)}\n'
        "counterpoint score run.jsonl --gold FILE</pre>"
    )


def _metrics(scores: Scores, traces: int, run_id: str) -> Iterator[str]:
    entries = [entry for entry in scores.summary() if entry.system is None]
    if not entries:
        yield '<p class="note">No metric has been computed for this run yet.</p>'
        return
    rows = [
        (f"{escaped(entry.metric)} {arrow(entry.metric)}", _value(entry), _reasons(entry))
        for entry in entries
    ]
    what = "Mean of each metric over the traces of the run" if traces > 1 else "Metrics of the run"
    yield values_table(what, rows)
    yield '<p class="note">↑ higher is better, ↓ lower is better.</p>'
    yield how_to_give(entries, [run_id])


def _value(entry: Summary) -> str:
    several = f" <small>n={entry.n:,}</small>" if entry.n + entry.undefined > 1 else ""
    return f"{number(entry.mean, entry.metric)}{several}"


def _reasons(entry: Summary) -> str:
    several = entry.n + entry.undefined > 1
    told = sorted(entry.reasons.items(), key=lambda one: (-one[1], one[0]))
    return "; ".join(
        inline(reason[:20_000], 500) + (f" ({count:,})" if several else "") for reason, count in told[:5]
    )


def _traces(scores: Scores, shown: Sequence[_Section]) -> Iterator[str]:
    rows: dict[str, list[tuple[str, str, str]]] = {}
    if len(shown) > 1:  # of one trace the numbers stand above
        for row in scores.rows:
            why = inline(row.reason[:20_000], 300) if row.reason else ""
            cells = (escaped(row.metric), number(row.value, row.metric), why)
            rows.setdefault(row.trace, []).append(cells)
    pages = [one.page for one in shown if one.page is not None]
    if not shown:
        yield '<p class="note">Nothing of this run could be read as a trace so far.</p>'
    for place, page in enumerate(pages):
        yield f'<details class="trace" id="{page.key}"{" open" if not place else ""}>'
        yield f"<summary><h3>{inline(page.trace, 80)}</h3></summary>"
        yield page.body
        if page.claims:
            yield f"<h4>Claims</h4>{page.claims}"
        if page.trace in rows:
            yield f"<h4>Metrics</h4>{values_table('Metrics of this trace', rows[page.trace])}"
        yield "</details>"
    if len(pages) < len(shown):
        yield (
            f'<p class="more">{len(pages):,} of {len(shown):,} traces have a section: the page would grow; '
            f"{len(shown) - len(pages):,} are in the numbers only.</p>"
        )
