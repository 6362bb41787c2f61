"""The claims of a trace in a report: how many there are at each position, and the life of each.

What counts
-----------
* Claims are sentences, and are compared by words alone, without a model and whatever the metrics of the
  report use: a heuristic that sees no paraphrase, and says so where it is shown.
* A trace of more than `MOST_STEPS` steps, `MOST_CHARACTERS` characters or `MOST_CLAIMS` claims is not looked
  into, nor is one after `MOST_PAIRS` pairs of claims in all; each time the report says which and why.
* Of the lives those with the most events are shown, in the order of their births; the others are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from msgspec import Struct

from counterpoint.contracts import Context
from counterpoint.errors import CounterpointError
from counterpoint.judges import make
from counterpoint.metrics.claim_ledger import Event, ledger
from counterpoint.metrics.claim_metrics import EXTENSION_RATE, OPTIONS, UNIQUE_CLAIMS, discussion
from counterpoint.score import Score
from counterpoint.view.markup import html_table, inline

__all__ = ["HEURISTIC", "Claims", "claims_html", "read_claims"]

MOST_STEPS, MOST_CHARACTERS, MOST_CLAIMS = 400, 60_000, 200
MOST_PAIRS, LEAST_PAIRS = 200_000, 800
"""Pairs of all traces of a report together, and what the smallest trace counts for: a few seconds."""
MOST_LIVES, MOST_EVENTS, MOST_AGENTS = 40, 10, 20
BY_WORDS = {**OPTIONS, "candidates": None}
HEURISTIC = (
    "Claims are sentences here, compared by their words alone: a heuristic, blind to paraphrase. "
    "<code>counterpoint claims</code> asks a judge of your choice."
)


class Claims(Struct, frozen=True):
    """What became of the claims of one trace."""

    counts: tuple[tuple[float, float], ...] = ()
    """At each position: different claims that the source supports, and that go beyond it."""
    events: tuple[Event, ...] = ()
    pairs: int = 0
    """What looking took, of `MOST_PAIRS`."""
    reason: str = ""
    """Why nothing was looked at; empty where it was."""


def read_claims(context: Context, left: int = MOST_PAIRS) -> Claims:
    """The claims of a trace by words alone, where that takes no more than ``left`` pairs of claims."""
    steps = context.graph.steps
    if len(steps) > MOST_STEPS or sum(len(step.text) for step in steps) > MOST_CHARACTERS:
        return Claims(reason="the trace is too long to look for claims here")
    if left <= 0:
        return Claims(reason="the traces before it had claims enough")
    words = replace(context, embed=None, judges=lambda **how: make(**how, embed=None), memo={})
    try:
        found = discussion(words, BY_WORDS)
        if len(found.claims) > MOST_CLAIMS:
            return Claims(reason=f"it makes {len(found.claims):,} claims, more than are compared here")
        if not found.claims:
            return Claims(reason="nobody makes a claim in it")
        pairs = max(len(found.claims) ** 2, LEAST_PAIRS)
        return Claims(_counts(words), tuple(ledger(words, BY_WORDS)), pairs)
    except CounterpointError as error:
        return Claims(reason=str(error))


def _counts(context: Context) -> tuple[tuple[float, float], ...]:
    every, beyond = (one.compute(context, **BY_WORDS) for one in (UNIQUE_CLAIMS, EXTENSION_RATE))

    def at(score: Score, position: int) -> float:
        return float(score.parts.get(f"at_{position}", 0.0))

    counts = []
    for position in range(1, int(every.parts.get("positions", 0)) + 1):
        if f"at_{position}" not in every.parts:
            break
        count = at(every, position)
        # Without a source every claim goes beyond it, and the rate is not defined.
        share = at(beyond, position) if beyond.value is not None else 1.0
        counts.append((count * (1 - share), count * share))
    return tuple(counts)


def claims_html(claims: Claims, links: Mapping[str, str]) -> str:
    """The ledger of a trace: what each agent did with claims, and the lives of the liveliest.

    Parameters
    ----------
    claims: what `read_claims` found.
    links: step id to the id of the page's element that shows the step.
    """
    if claims.reason:
        return (
            f'<p class="more">No claims are told here: {inline(claims.reason, 300)}. '
            "<code>counterpoint claims</code> tells the life of every claim.</p>"
        )
    return "\n".join(_told(claims, links))


def _told(claims: Claims, links: Mapping[str, str]) -> Iterator[str]:
    lives = [list(events) for _, events in groupby(claims.events, lambda event: event.life)]
    happened = Counter(event.event for event in claims.events)
    beyond = sum(life[0].extension is True for life in lives)
    yield (
        f"<p>{len(lives):,} claims were born, {beyond:,} of them beyond the task's text; adopted by another "
        f"agent {happened['adopted']:,} times, weakened {happened['weakened']:,}, contradicted "
        f"{happened['contradicted']:,}; {happened['lost']:,} were lost.</p>"
        f'<p class="note">{HEURISTIC}</p>'
    )
    yield _by_agent(claims.events)
    ranked = sorted(range(len(lives)), key=lambda index: (-len(lives[index]), index))[:MOST_LIVES]
    rows = [_life(lives[index], links) for index in sorted(ranked)]
    yield html_table("The life of each claim, in the order of births", ["claim", "what became of it"], rows)
    if len(lives) > MOST_LIVES:
        yield (
            f'<p class="more">{len(lives) - MOST_LIVES:,} of {len(lives):,} claims are not listed here: '
            "those to which the least happened.</p>"
        )


def _by_agent(events: Sequence[Event]) -> str:
    done: dict[str, Counter[str]] = {}
    for event in events:
        if event.agent:
            done.setdefault(event.agent, Counter())[event.event] += 1
    names = ("born", "adopted", "kept", "weakened", "contradicted")
    ranked = sorted(done.items(), key=lambda one: -sum(one[1].values()))
    rows = [
        [inline(agent, 60), *(f"{counts[name]:,}" for name in names)]
        for agent, counts in ranked[:MOST_AGENTS]
    ]
    more = len(ranked) - MOST_AGENTS
    told = f'<p class="more">{more:,} more agents are not listed here.</p>' if more > 0 else ""
    return html_table("What each agent did with claims", ["agent", *names], rows) + told


def _life(events: Sequence[Event], links: Mapping[str, str]) -> list[str]:
    def told(event: Event) -> str:
        who = f" by {inline(event.agent, 40)}" if event.agent else ""
        goal = links.get(event.step)
        name = f'<a href="#{goal}">{event.event}</a>' if goal else event.event
        return f"{name}{who} in round {event.round}"

    shown = [told(event) for event in events[:MOST_EVENTS]]
    if len(events) > MOST_EVENTS:
        shown.append(f"and {len(events) - MOST_EVENTS:,} more")
    return [inline(events[0].text, 160), " → ".join(shown)]
