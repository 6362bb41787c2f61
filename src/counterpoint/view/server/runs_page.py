"""The list of runs: search, filters, order, paging, and the choice of two to compare. A plain form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from counterpoint.errors import UsageError
from counterpoint.gates import parse_gates
from counterpoint.metrics import metric
from counterpoint.store.records import STATES
from counterpoint.view.markup import inline
from counterpoint.view.report import SHOWN
from counterpoint.view.server.layout import day, key_of, link_to, run_of, short
from counterpoint.view.server.run_page import run_name, size, verdict
from counterpoint.view.table import arrow, number
from counterpoint.view.visible import escaped, shortened

if TYPE_CHECKING:
    from counterpoint.store import Run, Runs, Store

__all__ = ["Asked", "runs_main"]

PAGE = 50
"""Runs on one page."""
METRICS = tuple(name for name in SHOWN if name != "accuracy")
"""The main metrics, where a run has them; whether it was right has a column of its own."""
ORDERS = {
    "received": "newest first",
    "-received": "oldest first",
    "task": "task",
    "system": "system",
    "steps": "most steps",
    **{name: f"highest {name}" for name in METRICS},
    **{f"-{name}": f"lowest {name}" for name in METRICS},
}
CHOICES = {
    "state": STATES,
    "correct": ("right", "wrong", "ungraded"),
}
FIELDS = ("q", "system", "state", "correct", "where", "order", "page", "a")
"""What an address of the list may ask for."""
SIDES = {"a": "first", "b": "second"}
MOST_QUERY, MOST_SYSTEMS = 1000, 500
MOST_NAME, MOST_NAMES = 13, 26
"""Characters of an agent's name in the list, and of all names of a row that are more than two."""
MOST_KEY = 6_000
"""Characters of a run's key: two of them fit into an address."""


class Asked(Struct, frozen=True):
    """What the form asked for; whatever makes no sense is not asked."""

    q: str = ""
    system: str = ""
    state: str = ""
    correct: str = ""
    where: str = ""
    order: str = ""
    page: int = 1
    a: str = ""
    """Key of the first run of a comparison, chosen before."""
    ignored: tuple[str, ...] = ()
    """What made no sense, each with what would, as text."""

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> Asked:
        """The form's fields out of a query."""
        texts = {name: parameters.get(name, "")[:MOST_QUERY] for name in ("q", "system", "where")}
        texts["a"] = key_of(run_of(parameters["a"])) if parameters.get("a") else ""
        ignored = []
        for name, allowed in (*CHOICES.items(), ("order", tuple(ORDERS))):
            given = parameters.get(name, "")
            texts[name] = given if given in allowed else ""
            if given and given not in allowed:
                ignored.append(f"{name}={given[:60]!r} is left out: expected one of {', '.join(allowed)}")
        page = parameters.get("page", "")
        number = int(page) if page.isascii() and page.isdecimal() and len(page) < 9 else 0
        if page and not number:
            ignored.append(f"page={page[:60]!r} is left out: expected a number from 1 on")
        unknown = [repr(name[:30]) for name in parameters if name not in FIELDS]
        if unknown:
            more = f" and {len(unknown) - 3:,} more" if len(unknown) > 3 else ""
            ignored.append(f"{', '.join(unknown[:3])}{more} is left out: expected one of {', '.join(FIELDS)}")
        return cls(**texts, page=max(number, 1), ignored=tuple(ignored))

    def link(self, **changed: str) -> str:
        """The list with some of it asked otherwise; not on the same page, unless that is named."""
        asked = {name: getattr(self, name) for name in FIELDS if name != "page"}
        return link_to("/", asked | changed)

    @property
    def filters(self) -> bool:
        """Whether anything is filtered."""
        return any((self.q, self.system, self.state, self.correct, self.where))


def runs_main(store: Store, asked: Asked, endpoint: str) -> tuple[str, str, int]:
    """The main part of the page, what it tells in a word, and the status: 400 for a malformed condition."""
    found, fault, asked = _found(store, asked)
    if not found.total and not asked.filters:
        return "".join([*_ignored(asked), _empty(endpoint)]), "no runs", 200
    told = f"{found.total:,} run{'' if found.total == 1 else 's'}"
    first = store.run(run_of(asked.a)) if asked.a else None
    parts = [*_form(asked, found, fault), *_first(asked, first), *_table(found, asked, first, told)]
    return "\n".join(parts), told, 400 if fault else 200


def _known(where: str) -> None:
    """A UsageError where the condition is malformed, or of a metric that nobody knows."""
    for gate in parse_gates(where):
        metric(gate.metric)


def _found(store: Store, asked: Asked) -> tuple[Runs, str, Asked]:
    """The runs, what is wrong with the condition that is left out then, and what was asked in the end."""
    try:
        if asked.where:
            _known(asked.where)
        return _rows(store, asked, asked.where), "", asked
    except UsageError as error:
        fault = str(error)
    try:
        return _rows(store, asked, ""), fault, asked
    except UsageError:  # then it is the order, by a metric
        if not asked.order:
            raise
    told = f"order={asked.order!r} is left out: no run here has a value of it"
    return _found(store, replace(asked, order="", ignored=(*asked.ignored, told)))


def _rows(store: Store, asked: Asked, where: str) -> Runs:
    return store.runs(
        search=asked.q,
        system=asked.system or None,
        state=asked.state,
        correct=asked.correct,
        where=where,
        order=asked.order or "received",
        limit=PAGE,
        offset=(asked.page - 1) * PAGE,
    )


def _empty(endpoint: str) -> str:
    lines = f"export OTEL_EXPORTER_OTLP_ENDPOINT={escaped(endpoint)}\n"
    lines += "export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"
    return (
        "<p>No run has come yet. Two ways to bring one:</p>\n"
        "<h2>Send spans</h2><p>Set these where your agents run. Every framework that is instrumented for "
        "OpenTelemetry then sends its spans here, and its runs appear on this page by themselves.</p>\n"
        f'<pre tabindex="0" aria-label="Two lines for the environment">{lines}</pre>\n'
        "<h2>Add files</h2><p>Trace files of any format that Counterpoint reads:</p>\n"
        '<pre tabindex="0" aria-label="A command">counterpoint store add PATH</pre>\n'
    )


def _form(asked: Asked, found: Runs, fault: str) -> Iterator[str]:
    systems = {name: short(name, 60) for name in found.systems[:MOST_SYSTEMS]}
    if asked.system and asked.system not in systems:
        systems[asked.system] = short(asked.system, 60)
    yield '<form class="filters" id="filters" role="search" aria-label="Runs" method="get" action="/">'
    yield _field("q", "Search", asked.q, "search", "task, agent, answer or id")
    yield _select("system", "System", asked.system, systems, "all")
    for name, label in (("state", "State"), ("correct", "Answer")):
        yield _select(name, label, getattr(asked, name), {one: one for one in CHOICES[name]}, "all")
    told = ' aria-invalid="true" aria-describedby="where-fault"' if fault else ""
    yield _field("where", "Where", asked.where, "text", "upr&gt;0.4", told)
    yield _select("order", "Order", asked.order or "received", ORDERS, "")
    if asked.a:
        yield f'<input type="hidden" name="a" value="{asked.a}">'
    yield '<div class="buttons"><button id="show">Show</button>'
    if asked.filters:
        yield f'<a id="clear" href="{link_to("/", {"a": asked.a})}">Show all</a>'
    yield "</div></form>"
    if fault:
        yield f'<pre class="fault" id="where-fault" role="alert" tabindex="0">{escaped(fault)}</pre>'
        yield '<p class="note">The condition is left out below.</p>'
    yield from _ignored(asked)


def _ignored(asked: Asked) -> Iterator[str]:
    for told in asked.ignored:
        yield f'<p class="note fault">{inline(told, 400)}</p>'


def _field(name: str, label: str, value: str, kind: str, hint: str, more: str = "") -> str:
    return (
        f'<div><label for="{name}">{label}</label><input id="{name}" name="{name}" type="{kind}" '
        f'maxlength="{MOST_QUERY}" value="{escaped(value)}" placeholder="{hint}"{more}></div>'
    )


def _select(name: str, label: str, chosen: str, options: Mapping[str, str], everything: str) -> str:
    """``options``: value to its label, escaped."""
    parts = [f'<option value="">{everything}</option>'] if everything else []
    for value, shown in options.items():
        selected = " selected" if value == chosen else ""
        parts.append(f'<option value="{escaped(value)}"{selected}>{shown}</option>')
    chooser = f'<select id="{name}" name="{name}">{"".join(parts)}</select>'
    return f'<div><label for="{name}">{label}</label>{chooser}</div>'


def _first(asked: Asked, first: Run | None) -> Iterator[str]:
    if asked.a:
        name = f"<bdi>{run_name(first)}</bdi>" if first is not None else "a run that is not here any more"
        off = f'<a href="{asked.link(a="")}">Choose both anew</a>'
        yield f'<p class="note">To be compared: {name}. Choose the other run. {off}</p>'


def _table(found: Runs, asked: Asked, first: Run | None, told: str) -> Iterator[str]:
    if not found.rows:
        yield (
            f'<p class="note">{told} found.</p>'
            if not found.total
            else '<p class="note">No run on this page.</p>'
        )
        yield from _pages(found, asked)
        return
    metrics = _shown(found.rows)
    sides = ["b"] if first is not None else list(SIDES)
    heads = [
        *(f'<abbr title="{SIDES[side]} run to compare">{side.upper()}</abbr>' for side in sides),
        "task",
        *(f"{escaped(name)} {arrow(name)}" for name in metrics),  # where there is little room, these are seen
        "answer", "state", "system", "agents", "size", "received, UTC",
    ]  # fmt: skip
    yield '<form id="pairs" aria-label="Two runs to compare" method="get" action="/compare">'
    if first is not None:
        yield f'<input type="hidden" name="a" value="{asked.a}">'
    top = "".join(f'<th scope="col">{head}</th>' for head in heads)
    yield (
        '<div class="scroll" id="list" tabindex="0" role="region" aria-label="Runs"><table class="runs">'
        f"<caption>{told}{_range(found, asked)}</caption><thead><tr>{top}</tr></thead><tbody>"
    )
    for place, run in enumerate(found.rows, (asked.page - 1) * PAGE + 1):
        yield _row(run, sides, metrics, place)
    yield '</tbody></table></div><p><button id="compare">Compare A with B</button></p></form>'
    yield from _pages(found, asked)


def _shown(runs: Sequence[Run]) -> list[str]:
    """The metrics of the list: the main ones, each as its first form that any run has a value of."""
    known: dict[str, str] = {}
    for run in runs:
        for text, value in run.values.items():
            if value is not None:
                known.setdefault(text.partition("(")[0], text)
    return [known[name] for name in METRICS if name in known]


def _range(found: Runs, asked: Asked) -> str:
    start = (asked.page - 1) * PAGE
    whole = found.total <= PAGE and asked.page == 1
    return "" if whole else f", {start + 1:,} to {start + len(found.rows):,}"


def _row(run: Run, sides: Sequence[str], metrics: Sequence[str], place: int) -> str:
    key, name = key_of(run.id), run_name(run)
    openable = len(key) <= MOST_KEY
    chosen = "".join(
        f'<td><input type="radio" id="{side}-{key}" name="{side}" value="{key}" required '
        f'aria-label="{side.upper()}: {name}, number {place}"></td>'
        if openable
        else "<td></td>"
        for side in sides
    )
    state = f'<span class="state-{run.state}">{run.state}</span>'
    if run.error:
        state += f"<small>{inline(run.error[:20_000], 120)}</small>"
    answer = "" if run.answer is None else inline(run.answer[:20_000], 36)
    graded = verdict(run)
    grade = f'<span class="{graded.split()[0]}-answer">{graded}</span>' if graded else ""
    grade = f"<small>{grade}</small>" if grade and answer else grade
    link = f'<a id="open-{key}" href="/runs/{key}"><bdi>{name}</bdi></a>'
    if not openable:
        link = f"<bdi>{name}</bdi><small>Its id is too long for an address.</small>"
    cells = [
        *(("", number(run.values.get(each), each)) for each in metrics),
        ("text answer", f"{answer}{grade}"),
        ("", state),
        ("text", inline(run.system, 40)),
        ("text agents", _agents(run)),
        ("", size(run)),
        ("", day(run.received_at)),
    ]
    rest = "".join(f'<td class="{kind}">{cell}</td>' if kind else f"<td>{cell}</td>" for kind, cell in cells)
    row = f' id="run-{key}"' if openable else ""
    return f'<tr{row}>{chosen}<th scope="row">{link}</th>{rest}</tr>'


def _agents(run: Run) -> str:
    """Their names on two lines at most: as many as fit, two at least, and how many more there are."""
    shown = [shortened(agent[:20_000], MOST_NAME) for agent in run.agents[:6]]
    while len(shown) > 2 and sum(map(len, shown)) > MOST_NAMES:
        shown.pop()
    left = len(run.agents) - len(shown)
    return ", ".join(f"<bdi>{name}</bdi>" for name in shown) + (f" and {left:,} more" if left else "")


def _pages(found: Runs, asked: Asked) -> Iterator[str]:
    last = -(-found.total // PAGE)
    if last <= 1 and asked.page == 1:
        return
    yield '<nav aria-label="Pages of the list"><ul>'
    if asked.page > 1:
        before = min(asked.page - 1, last)
        yield f'<li><a id="before" rel="prev" href="{asked.link(page=str(before))}">Page {before:,}</a></li>'
    yield f"<li>Page {asked.page:,} of {last:,}</li>"
    if asked.page < last:
        after = asked.page + 1
        yield f'<li><a id="after" rel="next" href="{asked.link(page=str(after))}">Page {after:,}</a></li>'
    yield "</ul></nav>"
