"""Two runs side by side: numbers with their difference, pictures, answers, and what each agent used.

Conventions
-----------
* A difference is B - A. Which run is better goes by the metric's direction; where it has none, nobody is.
* Two single runs carry no interval: the page says so, and how to get one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from counterpoint.contracts import Context
from counterpoint.metrics.correctness import last_word
from counterpoint.metrics.costs import costs, text_tokens
from counterpoint.view.markup import html_table, inline, picture
from counterpoint.view.pictures import cost_svg, lanes_svg, scene, team_svg
from counterpoint.view.server.layout import key_of, link_to, scores_of
from counterpoint.view.server.parts import look_into, traces_of
from counterpoint.view.server.run_page import STATES, as_far_as, how_to_give, run_name, size, verdict
from counterpoint.view.table import arrow, number, signed
from counterpoint.view.visible import escaped

if TYPE_CHECKING:
    from counterpoint.scores import Summary
    from counterpoint.store import Run, Store

__all__ = ["compare_main"]

MOST_TRACES = 4
"""Traces of a run whose pictures are shown."""
MOST_AGENTS = 100
EQUAL = 1e-9


class Part(Struct, frozen=True):
    """What is shown of one trace of a run."""

    trace: str
    answer: str
    lanes: str
    team: str
    cost: str
    used: Mapping[str, tuple[int, float]]
    """Agent to its steps and the tokens of its model calls, or of its texts where usage is not recorded."""
    recorded: bool
    """Whether those are tokens of model calls."""


class Side(Struct, frozen=True):
    """One of the two runs."""

    letter: str
    run: Run
    task: str
    """Of its first trace: the run itself goes by a name where it has none."""
    entries: Mapping[str, Summary]
    parts: Sequence[Part]
    traces: int


def compare_main(store: Store, one: Run, other: Run) -> str:
    """The main part of the page."""
    sides = _side(store, "A", one), _side(store, "B", other)
    return "\n".join([*_heads(sides), *_metrics(sides), *_pictures(sides), *_agents(sides)])


def _side(store: Store, letter: str, run: Run) -> Side:
    traces, _ = traces_of(store, run)
    run = as_far_as(run, traces)
    summary = scores_of(store.rows(run.id), traces).summary()
    entries = {entry.metric: entry for entry in summary if entry.system is None}
    task = traces[0].task if traces else run.task
    return Side(letter, run, task, entries, look_into(traces[:MOST_TRACES], _part), len(traces))


def _part(context: Context) -> Part:
    shown, names = scene(context), context.graph.agent_names
    steps = dict.fromkeys(names, 0)
    said = dict.fromkeys(names, 0.0)
    for step in context.graph.steps:
        steps[step.agent] += 1
        said[step.agent] += text_tokens(step)
    spent = costs(context)
    called = dict.fromkeys(names, 0.0)
    for speaker, tokens in zip(spent.calls.speakers.tolist(), spent.calls.tokens.tolist(), strict=True):
        if speaker >= 0:
            name = spent.agents[speaker]
            called[name] = called.get(name, 0.0) + tokens
    recorded = any(called.values())
    amounts = called if recorded else said
    title = "Tokens by agent" if recorded else "Tokens of what each agent said"
    return Part(
        context.trace.id,
        last_word(context) or "",
        lanes_svg(shown, alone=False),
        team_svg(shown, alone=False),
        cost_svg(amounts, title=title, unit="tokens", alone=False),
        {name: (steps.get(name, 0), amount) for name, amount in amounts.items()},
        recorded,
    )


def _heads(sides: Sequence[Side]) -> Iterator[str]:
    one, other = (side.run for side in sides)
    swapped = link_to("/compare", {"a": key_of(other.id), "b": key_of(one.id)})
    yield "<h1>Two runs side by side</h1>"
    yield f'<p class="actions"><a id="swap" href="{swapped}">Swap A and B</a></p>'
    yield (
        '<p class="note">Two single runs carry no interval: a difference between them may be chance. For '
        "differences with intervals, compare systems over many tasks: "
        "<code>counterpoint compare A B</code>.</p>"
    )
    if sides[0].task != sides[1].task:
        told = "The tasks of the two runs differ, so their numbers are of different things."
        yield f'<p class="note">{told}</p>'
    rows = [
        ["task", *(_link(side) for side in sides)],
        ["system", *(inline(side.run.system, 80) for side in sides)],
        ["state", *(STATES[side.run.state] for side in sides)],
        ["answer", *(_answer(side) for side in sides)],
        ["size", *(size(side.run) for side in sides)],
    ]
    yield html_table("The two runs", ["", "A", "B"], rows)


def _link(side: Side) -> str:
    name = f"<bdi>{run_name(side.run)}</bdi>"
    return f'<a id="open-{side.letter.lower()}" href="/runs/{key_of(side.run.id)}">{name}</a>'


def _answer(side: Side) -> str:
    given = side.run.answer or next((part.answer for part in side.parts[::-1] if part.answer), None)
    answer = "none" if given is None else inline(given[:20_000], 200)
    return f"<strong>{answer}</strong> ({verdict(side.run) or 'not graded'})"


def _metrics(sides: Sequence[Side]) -> Iterator[str]:
    yield '<section aria-labelledby="metrics-h"><h2 id="metrics-h">Metrics</h2>'
    one, other = (side.entries for side in sides)
    rows = []
    for metric in dict.fromkeys([*one, *other]):
        a, b = (entries[metric].mean if metric in entries else None for entries in (one, other))
        rows.append(
            [
                f"{escaped(metric)} {arrow(metric)}",
                *(number(v, metric) for v in (a, b)),
                *_apart(metric, a, b),
            ]
        )
    if rows:
        yield html_table("Metrics of both runs", ["metric", "A", "B", "B − A", "better"], rows)
        yield '<p class="note">↑ higher is better, ↓ lower is better.</p>'
        yield from _reasons(sides)
    else:
        yield '<p class="note">No metric has been computed for either run yet.</p>'
    yield "</section>"


def _apart(metric: str, a: float | None, b: float | None) -> tuple[str, str]:
    """The difference, and who is better."""
    if a is None or b is None:
        return "", ""
    difference = b - a
    if abs(difference) <= EQUAL * max(abs(a), abs(b), 1.0):
        return "0", "equal" if arrow(metric) else ""
    better = {"↑": "B" if difference > 0 else "A", "↓": "A" if difference > 0 else "B"}.get(arrow(metric), "")
    return signed(difference, metric), better


def _reasons(sides: Sequence[Side]) -> Iterator[str]:
    rows = [
        [escaped(entry.metric), side.letter, inline(reason[:20_000], 500)]
        for side in sides
        for entry in side.entries.values()
        for reason in entry.reasons
    ]
    if rows:
        yield html_table("What is undefined, and why", ["metric", "run", "why"], rows)
        undefined = [side for side in sides if any(entry.reasons for entry in side.entries.values())]
        entries = [entry for side in undefined for entry in side.entries.values()]
        yield how_to_give(entries, [side.run.id for side in undefined])


def _pictures(sides: Sequence[Side]) -> Iterator[str]:
    yield '<section aria-labelledby="pictures-h"><h2 id="pictures-h">Pictures</h2><div class="sides">'
    for side in sides:
        yield f'<section id="side-{side.letter.lower()}" aria-label="Run {side.letter}">'
        yield f"<h3>{side.letter}: <bdi>{run_name(side.run)}</bdi></h3>"
        if not side.parts:
            yield '<p class="note">Nothing of this run could be read as a trace so far.</p>'
        for part in side.parts:
            if side.traces > 1:
                yield f"<h4>{inline(part.trace, 80)}</h4>"
            yield picture(part.lanes, f"Lanes of run {side.letter}: who spoke, who heard whom")
            yield picture(part.team, f"Team of run {side.letter}: who passed on how much")
            yield picture(part.cost, f"What each agent of run {side.letter} used")
        if side.traces > MOST_TRACES:
            yield f'<p class="more">{side.traces - MOST_TRACES:,} more traces are on the page of the run.</p>'
        yield "</section>"
    yield "</div></section>"


def _agents(sides: Sequence[Side]) -> Iterator[str]:
    totals = [_totals(side) for side in sides]
    names = list(dict.fromkeys(name for used in totals for name in used))
    rows = []
    for name in names[:MOST_AGENTS]:
        cells = [used.get(name) for used in totals]
        told = [("", "") if cell is None else (f"{cell[0]:,}", f"{cell[1]:,.0f}") for cell in cells]
        rows.append([inline(name, 60), *(text for pair in told for text in pair)])
    if not rows:
        return
    yield '<section aria-labelledby="agents-h"><h2 id="agents-h">What each agent used</h2>'
    heads = [title for side in sides for title in (f"{side.letter}: steps", f"{side.letter}: {_unit(side)}")]
    yield html_table("Steps and tokens by agent", ["agent", *heads], rows)
    if len(names) > MOST_AGENTS:
        yield f'<p class="more">{len(names) - MOST_AGENTS:,} more agents are not listed here.</p>'
    yield "</section>"


def _unit(side: Side) -> str:
    return "tokens" if all(part.recorded for part in side.parts) else "tokens said"


def _totals(side: Side) -> dict[str, tuple[int, float]]:
    total: dict[str, tuple[int, float]] = {}
    for part in side.parts:
        for name, (steps, tokens) in part.used.items():
            before = total.get(name, (0, 0.0))
            total[name] = before[0] + steps, before[1] + tokens
    return total
