"""One run: its numbers, then each of its traces with pictures, steps and who took up what, then its claims.

A run whose spans still arrive is shown from what has come so far; it has no numbers yet, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from counterpoint.scores import Scores, Summary
from counterpoint.view.markup import html_table, inline
from counterpoint.view.report import report_html, signatures_of
from counterpoint.view.report_trace import Pages, Seen
from counterpoint.view.server.layout import key_of, link_to, moment, scores_of, short
from counterpoint.view.server.parts import look_into, traces_of
from counterpoint.view.table import arrow, number
from counterpoint.view.visible import escaped

if TYPE_CHECKING:
    from counterpoint.store import Run, Store

__all__ = ["STATES", "report_of", "run_main", "run_name", "verdict"]

STATES = {
    "receiving": "receiving: spans still arrive, or wait to be scored",
    "scored": "scored",
    "unreadable": "unreadable",
}
MOST_LIVES, MOST_EVENTS, MOST_AGENTS = 200, 12, 60
MOST_NOTES = 20


def run_name(run: Run) -> str:
    """What a run is called where it is spoken of; escaped."""
    return short(run.task, 80) or short(run.id, 60) or "(no name)"


def verdict(run: Run) -> str:
    """How its answer was graded: as recorded, else as the metric found; empty where neither says."""
    known = run.values.get("accuracy") if run.correct is None else run.correct
    return "" if known is None else "right" if known == 1 else "wrong" if known == 0 else "partly right"


def report_of(store: Store, run: Run) -> str:
    """The report of one file, of this run alone."""
    traces, _ = traces_of(store, run)
    scores = scores_of(store.rows(run.id), traces)
    return report_html(scores, look_into(traces, Pages()), title=run.task or run.id)


def run_main(store: Store, run: Run) -> str:
    """The main part of the run's page."""
    traces, faults = traces_of(store, run)
    scores = scores_of(store.rows(run.id), traces)
    seen = look_into(traces, Pages(claims=False))
    if len(seen) < len(traces):
        faults = [*faults, f"{len(traces) - len(seen)} of {len(traces)} traces could not be drawn"]
    sections = [
        ("metrics", "Metrics", _metrics(scores, len(seen))),
        ("traces", "Traces" if len(seen) > 1 else "Trace", _traces(scores, seen)),
        ("claims", "Claims", _claims(store.claims(run.id))),
        ("signatures", "How it was computed", signatures_of(scores)),
    ]
    told = [(key, label, "\n".join(parts)) for key, label, parts in sections]
    links = "".join(f'<li><a href="#{key}">{label}</a></li>' for key, label, body in told if body)
    body = "\n".join(
        f'<section id="{key}" aria-labelledby="{key}-h"><h2 id="{key}-h">{label}</h2>\n{body}\n</section>'
        for key, label, body in told
        if body
    )
    head = "".join([*_head(run, seen), *_notes(run, faults)])
    return f'{head}<nav aria-label="Sections"><ul>{links}</ul></nav>\n{body}'


def _head(run: Run, seen: Sequence[Seen]) -> Iterator[str]:
    """Facts, and what can be done with the run."""
    agents = ", ".join(inline(name, 60) for name in run.agents[:MOST_AGENTS])
    if len(run.agents) > MOST_AGENTS:
        agents += f" and {len(run.agents) - MOST_AGENTS:,} more"
    given = (
        run.answer if run.answer is not None else next((one.answer for one in seen[::-1] if one.answer), None)
    )
    answer = "none" if given is None else inline(given[:20_000], 200)
    lasted = ""
    if run.started_at is not None and run.ended_at is not None and run.ended_at >= run.started_at:
        lasted = f", for {run.ended_at - run.started_at:,.1f} s"
    facts = [
        ("State", STATES[run.state]),
        ("System", inline(run.system, 80) if run.system.strip() else "(no name)"),
        (f"Agents ({len(run.agents):,})", agents or "none"),
        ("Answer", f"<strong>{answer}</strong> ({verdict(run) or 'not graded'})"),
        ("Size", f"{run.steps:,} steps, {run.spans:,} spans, {len(seen):,} trace{'s'[: len(seen) != 1]}"),
        ("Started", f"{moment(run.started_at) or 'not recorded'}{lasted}"),
        ("Received", moment(run.received_at)),
        ("From", "OpenTelemetry" if run.origin == "otlp" else inline(run.origin, 120)),
        ("Id", f"<code>{inline(run.id, 120)}</code>"),
    ]
    yield '<dl class="facts">'
    for name, value in facts:
        yield f"<div><dt>{name}</dt><dd>{value}</dd></div>"
    yield "</dl>"
    key = key_of(run.id)
    yield f'<p class="actions"><a id="report" href="/runs/{key}/report" download>Download as one file</a> '
    yield f'<a id="compare" href="{link_to("/", {"a": key})}">Compare with another run</a></p>\n'


def _notes(run: Run, faults: Sequence[str]) -> Iterator[str]:
    if run.state == "receiving":
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


def _metrics(scores: Scores, traces: int) -> Iterator[str]:
    entries = [entry for entry in scores.summary() if entry.system is None]
    if not entries:
        yield '<p class="note">No metric has been computed for this run yet.</p>'
        return
    rows = [
        [f"{escaped(entry.metric)} {arrow(entry.metric)}", _value(entry), _reasons(entry)]
        for entry in entries
    ]
    what = "Mean of each metric over the traces of the run" if traces > 1 else "Metrics of the run"
    yield html_table(what, ["metric", "value", "why undefined"], rows)
    yield '<p class="note">↑ higher is better, ↓ lower is better.</p>'


def _value(entry: Summary) -> str:
    several = f" <small>n={entry.n:,}</small>" if entry.n + entry.undefined > 1 else ""
    return f"{number(entry.mean, entry.metric)}{several}"


def _reasons(entry: Summary) -> str:
    several = entry.n + entry.undefined > 1
    told = sorted(entry.reasons.items(), key=lambda one: (-one[1], one[0]))
    return "; ".join(
        inline(reason[:20_000], 500) + (f" ({count:,})" if several else "") for reason, count in told[:5]
    )


def _traces(scores: Scores, seen: Sequence[Seen]) -> Iterator[str]:
    rows: dict[str, list[list[str]]] = {}
    if len(seen) > 1:  # of one trace the numbers stand above
        for row in scores.rows:
            cells = [escaped(row.metric), number(row.value, row.metric), inline(row.reason[:20_000], 300)]
            rows.setdefault(row.trace, []).append(cells)
    pages = [one.page for one in seen if one.page is not None]
    if not seen:
        yield '<p class="note">Nothing of this run could be read as a trace so far.</p>'
    for place, page in enumerate(pages):
        yield f'<details class="trace" id="{page.key}"{" open" if not place else ""}>'
        yield f"<summary><h3>{inline(page.trace, 80)}</h3></summary>"
        yield page.body
        if page.trace in rows:
            heads = ["metric", "value", "why undefined"]
            yield f"<h4>Metrics</h4>{html_table('Metrics of this trace', heads, rows[page.trace])}"
        yield "</details>"
    if len(pages) < len(seen):
        yield (
            f'<p class="more">{len(pages):,} of {len(seen):,} traces have a section: the page would grow; '
            f"{len(seen) - len(pages):,} are in the numbers only.</p>"
        )


def _claims(events: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each claim: its words, and what became of it."""
    lives: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for event in events:
        lives.setdefault((str(event.get("trace", "")), str(event.get("life", ""))), []).append(event)
    if not lives:
        return
    rows = []
    for told in list(lives.values())[:MOST_LIVES]:
        history = [_event(event) for event in told[:MOST_EVENTS]]
        if len(told) > MOST_EVENTS:
            history.append(f"and {len(told) - MOST_EVENTS:,} more")
        rows.append([inline(str(told[0].get("text", ""))[:20_000], 200), "; ".join(history)])
    yield html_table(
        "A line for each claim, in the order of their births", ["claim", "what became of it"], rows
    )
    if len(lives) > MOST_LIVES:
        yield f'<p class="more">{len(lives) - MOST_LIVES:,} of {len(lives):,} claims are not listed here.</p>'


def _event(event: Mapping[str, Any]) -> str:
    agent = str(event.get("agent", ""))
    who = f" by {inline(agent, 60)}" if agent else ""
    return f"{short(str(event.get('event', '')), 20)}{who} in round {short(str(event.get('round', '')), 12)}"
