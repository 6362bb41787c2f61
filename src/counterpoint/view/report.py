"""An evaluation as one HTML file that works without network and without script.

Conventions
-----------
* Same input, same bytes. The page's policy forbids scripts and anything from elsewhere; its only style is
  the one whose hash the policy names.
* Texts of users are escaped and stand apart from the direction of the page; keys are masked in any case.
* What does not fit (`MOST_ROWS` traces in the list, sections by size) is counted where it is missing.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from counterpoint.findings import ASSUMPTION, findings
from counterpoint.score import Row
from counterpoint.scores import Scores, Summary
from counterpoint.view.markup import html_table, inline, named, values_table
from counterpoint.view.pictures import STYLE as PICTURE_STYLE
from counterpoint.view.report_charts import charts
from counterpoint.view.report_trace import MOST_BYTES, Seen, TracePage
from counterpoint.view.table import arrow, interval_text, number
from counterpoint.view.visible import escaped, shortened

__all__ = ["SHOWN", "STYLE", "html_table", "report_html", "signatures_of"]

MOST_ROWS = 1000
"""Traces in the list."""
LEGEND = "↑ higher is better, ↓ lower is better. ~ marks a rough interval: fewer than ten tasks."
MOST_REASONS = 100
SHOWN = ("accuracy", "ids", "upr", "upr_uptake", "tokens_out", "cost_usd")
"""Metrics that the list of traces shows, where they were computed."""
STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1200px;margin:0 auto;padding:0 20px 60px;color:#222;"
    "background:#fff;overflow-wrap:anywhere}"
    "a{color:#005a9c}h1{font-size:26px;margin:24px 0 4px}h2{font-size:20px;margin:36px 0 8px}"
    "h3{font-size:16px;margin:0;display:inline}h4{font-size:14px;margin:18px 0 6px}"
    "h5{font-size:14px;margin:0}small{font-weight:400;color:#555}.more,.heard,.note{color:#555;margin:4px 0}"
    ".heard{font-size:13px}"
    "nav ul{display:flex;flex-wrap:wrap;gap:4px 18px;list-style:none;padding:0;margin:8px 0}"
    ".skip{position:absolute;left:-9999px}.skip:focus{left:8px;top:8px;background:#fff;padding:6px;z-index:1}"
    ":root{--paper:#fff;--edge:#0005}.scroll,figure{overflow-x:auto;margin:12px 0;background:"
    "linear-gradient(90deg,var(--paper) 40%,transparent) left/50px 100% no-repeat local,"
    "linear-gradient(270deg,var(--paper) 40%,transparent) right/50px 100% no-repeat local,"
    "linear-gradient(90deg,var(--edge),transparent) left top/14px calc(100% - 2px) no-repeat,"
    "linear-gradient(270deg,var(--edge),transparent) right top/14px calc(100% - 2px) no-repeat}"
    ".pictures{display:flex;flex-wrap:wrap;gap:0 36px;align-items:flex-start}.pictures figure{max-width:100%}"
    ".long{max-height:80vh;overflow-y:auto;border:1px solid #ccc;border-radius:6px;padding-right:10px}"
    ":focus-visible{outline:3px solid #0072b2;outline-offset:2px}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums;overflow-wrap:normal}"  # it scrolls
    "caption{text-align:left;color:#555;white-space:nowrap}"
    "th,td{text-align:left;padding:4px 14px 4px 0;border-bottom:1px solid #ddd;vertical-align:top}"
    "thead th{border-bottom:2px solid #999}td small{display:block}"
    "pre{white-space:pre-wrap;font:13px/1.45 ui-monospace,monospace;margin:4px 0;"
    "padding:8px 10px;background:#f4f5f7;border-radius:4px;max-height:420px;overflow-y:auto}"
    "details.trace{border:1px solid #ccc;border-radius:6px;padding:8px 14px;margin:10px 0}"
    "summary{cursor:pointer}code{overflow-wrap:anywhere;font-size:13px}"
    ".steps{padding-left:44px}.steps>li{margin:10px 0;padding-left:10px;border-left:4px solid #8a8a8a}"
    ".steps>li.right-step{border-color:#00805c}.steps>li.wrong-step{border-color:#c44e00}"
    ".steps>li.abstained-step{border-color:#e6b400}.steps>li.ungraded-step{border-color:#4a78b5}"
    ".steps>li:target{background:#fff6d6}"
    "@media screen and (prefers-color-scheme:dark){:root{--paper:#16181c;--edge:#fff5}"
    ".long{border-color:#444}body{color:#ddd;background:#16181c}a{color:#7cc0f4}"
    "small,.more,.heard,.note,caption{color:#b5b5b5}pre{background:#22252b}th,td{border-color:#3a3a3a}"
    "details.trace{border-color:#444}.skip:focus{background:#16181c}.steps>li:target{background:#3a3413}}"
    "@media print{body{max-width:none;font-size:11px}nav,.skip{display:none}"
    "pre{max-height:none;overflow:visible}"
    "figure,.scroll{overflow:visible;background:none}.long{max-height:none;border:0}.pictures{display:block}svg.cp{max-width:100%;height:auto}details.trace{border:0;padding:0}"
    "details::details-content{content-visibility:visible;display:block}h2,h3,h4,h5{break-after:avoid}"
    "figure,tr{break-inside:avoid}}"
) + PICTURE_STYLE


def report_html(scores: Scores, seen: Sequence[Seen], *, title: str = "") -> str:
    """The page: scores, and what `Pages` kept of each trace, in order."""
    name = shortened(title or ", ".join(dict.fromkeys(row.run for row in scores.rows)) or "no traces", 120)
    seen = list(_fitting(seen))
    pages = [one.page for one in seen if one.page is not None]
    sections = [
        ("summary", "Summary", _summary(scores)),
        ("findings", "What to change", _findings(scores, seen)),
        ("charts", "Charts", charts(scores, seen)),
        ("tasks", "Tasks and traces", _tasks(scores, seen)),
        ("traces", "Traces", _traces(scores, seen, pages)),
        ("undefined", "What is undefined, and why", _undefined(scores)),
        ("signatures", "How it was computed", signatures_of(scores)),
    ]
    told = [(key, label, "\n".join(parts)) for key, label, parts in sections]
    links = "".join(f'<li><a href="#{key}">{label}</a></li>' for key, label, body in told if body)
    body = "\n".join(
        f'<section id="{key}" aria-labelledby="{key}-h"><h2 id="{key}-h">{label}</h2>\n{body}\n</section>'
        for key, label, body in told
        if body
    )
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{_policy()}\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{name} – Counterpoint</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        '<a class="skip" href="#main">Skip to the results</a>\n'
        f"<header><h1><bdi>{name}</bdi></h1><p>{_counts(scores, seen)}</p></header>\n"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n<main id="main">\n{body}\n</main>\n'
        "<footer><p>Made by Counterpoint. Nothing in this file runs or comes from elsewhere.</p></footer>\n"
        "</body>\n</html>\n"
    )


def _fitting(seen: Sequence[Seen]) -> Iterator[Seen]:
    """What was kept, with ids of its own each, and no more sections than a page holds: processes that made
    them knew nothing of each other."""
    left, number = MOST_BYTES, 0
    for one in seen:
        page = one.page
        if page is not None and left > 0:
            left -= page.size()
            number += 1
            page = page.under(f"t{number}") if left >= 0 else None
        yield replace(one, page=page if left >= 0 else None)


def _policy() -> str:
    """No script, no connection, no form; one style, known by its hash."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    rule = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return f'<meta http-equiv="Content-Security-Policy" content="{rule}">'


def _counts(scores: Scores, seen: Sequence[Seen]) -> str:
    tasks = len({info.task for info in scores.traces})
    steps = sum(one.steps for one in seen)
    traces, systems = len(scores.traces), len(scores.systems)
    amounts = [(traces, "trace"), (systems, "system"), (tasks, "task"), (steps, "step")]
    told = " · ".join(f"{count:,} {what}{'' if count == 1 else 's'}" for count, what in amounts)
    return f"{told}, with tasks, tools and decisions"


# --- sections ------------------------------------------------------------------------------------


def _summary(scores: Scores) -> Iterator[str]:
    entries = {(entry.system, entry.metric): entry for entry in scores.summary()}
    systems: list[str | None] = [*scores.systems]
    if len(systems) != 1:
        systems.append(None)
    if scores.rows:
        head = ["metric", *(named(name) for name in systems)]
        rows = [
            [f"{escaped(name)} {arrow(name)}", *(_cell(entries.get((system, name))) for system in systems)]
            for name in scores.metrics
        ]
        yield html_table("Mean of each metric, with its 95 % interval over tasks", head, rows)
        yield f'<p class="note">{LEGEND}</p>'
    if scores.warnings:
        listed = "".join(f"<li>{inline(text, 300)}</li>" for text in scores.warnings[:20])
        more = f"<li>and {len(scores.warnings) - 20:,} more</li>" if len(scores.warnings) > 20 else ""
        count = f"{len(scores.warnings):,} warnings"
        yield f"<details><summary>{count}</summary><ul>{listed}{more}</ul></details>"


def _cell(entry: Summary | None) -> str:
    if entry is None:
        return ""
    left = f", {entry.undefined:,} undefined" if entry.undefined else ""
    bounds = interval_text(entry)
    more = f"{bounds}, " if bounds else ""
    return f"{number(entry.mean, entry.metric)} <small>{more}n={entry.n:,}{left}</small>"


def _findings(scores: Scores, seen: Sequence[Seen]) -> Iterator[str]:
    found = findings(one.found for one in seen if one.found is not None)
    if not found:
        return
    several = len(scores.systems) > 1
    goals = {one.trace: one.page.key for one in seen if one.page is not None}
    yield "<ol>"
    for one in found:
        where = ", ".join(
            f'<a href="#{goals[trace]}">{inline(trace, 60)}</a>: {inline(step, 60)}'
            if trace in goals
            else f"{inline(trace, 60)}: {inline(step, 60)}"
            for trace, step in one.steps
        )
        yield f"<li>{named(one.system) + ': ' if several else ''}{inline(one.text, 500)} ({where})</li>"
    yield "</ol>"
    if any(one.is_estimate for one in found):
        yield f'<p class="note">Without: {escaped(ASSUMPTION)}</p>'


def _tasks(scores: Scores, seen: Sequence[Seen]) -> Iterator[str]:
    if not seen:
        return
    known = {name.partition("(")[0]: name for name in reversed(scores.metrics)}
    shown = [known[name] for name in SHOWN if name in known]
    values = {(row.trace, row.metric): row.value for row in scores.rows if row.metric in shown}
    ranked = sorted(seen, key=lambda one: one.task_id)
    rows = []
    last = None
    for one in ranked[:MOST_ROWS]:
        name = inline(one.trace, 60)
        link = f'<a href="#{one.page.key}">{name}</a>' if one.page is not None else name
        verdict = "" if one.correct is None else "right" if one.correct else "wrong"
        task = "″" if one.task_id == last else f"<bdi>{one.task}</bdi>"
        last = one.task_id
        cells = [number(values.get((one.trace, metric)), metric) for metric in shown]
        rows.append([link, named(one.system), task, inline(one.answer, 40), verdict, *cells])
    head = ["trace", "system", "task", "answer", "graded", *map(escaped, shown)]
    yield html_table("A line for each trace, by task", head, rows)
    if len(ranked) > MOST_ROWS:
        more = len(ranked) - MOST_ROWS
        yield f'<p class="more">{more:,} of {len(ranked):,} traces are not listed here.</p>'


def _traces(scores: Scores, seen: Sequence[Seen], pages: Sequence[TracePage]) -> Iterator[str]:
    rows: dict[str, list[Row]] = {}
    wanted = {page.trace for page in pages}
    for row in scores.rows:
        if row.trace in wanted:
            rows.setdefault(row.trace, []).append(row)
    if len(pages) < len(seen):
        yield (
            f'<p class="more">{len(pages):,} of {len(seen):,} traces have a section: the page would grow; '
            f"{len(seen) - len(pages):,} are in the numbers only. A report of fewer traces shows each.</p>"
        )
    for place, page in enumerate(pages):
        heading = f"{inline(page.trace, 80)} <small>{named(page.system)}</small>"
        yield f'<details class="trace" id="{page.key}"{" open" if not place else ""}>'
        yield f"<summary><h3>{heading}</h3></summary>"
        yield page.body
        if page.claims:
            yield f"<h4>Claims</h4>{page.claims}"
        cells = [
            (
                escaped(row.metric),
                number(row.value, row.metric),
                inline(row.reason, 300) if row.reason else "",
            )
            for row in rows.get(page.trace, [])
        ]
        table = values_table("Metrics of this trace", cells)
        yield f"<h4>Metrics</h4>{table}"
        yield "</details>"


def _undefined(scores: Scores) -> Iterator[str]:
    told = [
        (named(entry.system), escaped(entry.metric), f"{count:,}", inline(reason, 500))
        for entry in scores.summary()
        if entry.system is not None
        for reason, count in sorted(entry.reasons.items(), key=lambda one: (-one[1], one[0]))
    ]
    if told:
        rows = [[metric, system, count, reason] for system, metric, count, reason in told[:MOST_REASONS]]
        yield html_table("Traces on which a metric has no value", ["metric", "system", "traces", "why"], rows)
    if len(told) > MOST_REASONS:
        yield f'<p class="more">{len(told) - MOST_REASONS:,} more reasons are not listed here.</p>'


def signatures_of(scores: Scores) -> Iterator[str]:
    """Everything that could change a number, a line a metric."""
    found: dict[tuple[str, str], None] = {}
    previous = None
    for row in scores.rows:
        if row.signature is not previous:  # rows of a metric share theirs
            signature = json.dumps(dict(row.signature), ensure_ascii=False, sort_keys=True, default=str)
            found[row.metric, signature] = None
        previous = row.signature
    if found:
        rows = [
            [escaped(metric), f"<code><bdi>{shortened(signature, 2000)}</bdi></code>"]
            for metric, signature in found
        ]
        yield "<details><summary>Signature of each metric</summary>"
        yield html_table("All that could change a number", ["metric", "signature"], rows)
        yield "</details>"
