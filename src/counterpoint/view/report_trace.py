"""One trace in a report: its pictures, what each agent used, and its steps with who took up what.

A section holds at most `MOST_STEPS` steps and `MOST_TEXT` characters of each; what is left out is counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from counterpoint.contracts import Context
from counterpoint.findings import Observation, Observer
from counterpoint.metrics.correctness import last_word, run_correct, step_answers
from counterpoint.metrics.costs import costs, text_tokens
from counterpoint.metrics.uptake import uptake
from counterpoint.trace import Step, Trace, Transfer, task_id
from counterpoint.view.markup import block, inline, picture
from counterpoint.view.pictures import cost_svg, lanes_svg, scene, team_svg
from counterpoint.view.pictures.drawing import OUTCOMES
from counterpoint.view.pictures.scene import outcomes
from counterpoint.view.report_claims import MOST_PAIRS, Claims, claims_html, read_claims
from counterpoint.view.visible import shortened

__all__ = ["Pages", "Seen", "TracePage", "block", "inline", "picture", "trace_page"]

MOST_STEPS, MOST_TEXT, MOST_HEARD, MOST_CALLS = 200, 4000, 12, 10
MOST_IN_SIGHT = 60
"""Steps that a page grows by; the list of more scrolls by itself."""
MOST_TEXTS = 400_000
"""Characters of all steps of a section: the more steps, the less of each."""
MOST_SAMPLES, MOST_SAMPLED = 5, 200
"""Traces that damage is tried on, and steps of one."""
MOST_BYTES = 3_000_000
"""Of all sections of a report together."""


class TracePage(Struct, frozen=True):
    """The section of one trace, but for its metrics."""

    key: str
    """Prefix of the section's ids."""
    trace: str
    system: str
    body: str
    claims: str = ""
    """What became of its claims; empty where nobody looked."""

    def size(self) -> int:
        """Bytes of the section."""
        return len(f"{self.body}{self.claims}".encode("utf-8", "replace"))

    def under(self, key: str) -> TracePage:
        """The same section with another prefix of its ids: processes count their sections each for itself."""
        if key == self.key:
            return self
        # Quotes in texts of users are escaped, so that nothing else than our own attributes is met.
        old = re.compile(rf'(?<=id="|f="#){re.escape(self.key)}(?=-)')
        body, claims = (old.sub(key, text) for text in (self.body, self.claims))
        return TracePage(key, self.trace, self.system, body, claims)


class Seen(Struct, frozen=True):
    """What a report keeps of a trace."""

    trace: str
    system: str
    task: str
    """Text of the task, shortened; its id where there is no text."""
    answer: str
    correct: bool | None
    steps: int
    task_id: str
    found: Observation | None
    """What findings and costs are made of; None where enough runs of its system were observed."""
    page: TracePage | None
    """None where the report has no room for more sections."""
    claims: Claims | None = None
    """Without its events, which the page holds; None: not looked for."""
    sample: Trace | None = None
    """The trace itself, of the first few short ones: what damage is tried on."""


class Pages:
    """Called with each trace's context while it is scored; makes sections until they fill a report.

    ``claims``: look for claims too, by words alone; False where the page has its own.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, *, claims: bool = True) -> None:
        self.left = most_bytes
        self.made = self.sampled = 0
        self.pairs = MOST_PAIRS if claims else None
        self.observer = Observer()

    def __call__(self, context: Context) -> Seen:
        """What a report keeps of the trace."""
        trace, page, claims = context.trace, None, self._claims(context)
        if self.left > 0:
            page = trace_page(context, f"t{self.made + 1}", claims)
            self.made += 1
            self.left -= page.size()
            if self.left < 0:
                page = None
        return Seen(
            trace.id,
            trace.system,
            shortened(trace.task or task_id(trace), 160),
            last_word(context) or "",
            run_correct(context),
            len(trace.steps),
            task_id(trace),
            self.observer(context),
            page,
            None if claims is None else replace(claims, events=()),
            self._sample(trace),
        )

    def _claims(self, context: Context) -> Claims | None:
        if self.pairs is None:
            return None
        claims = read_claims(context, self.pairs)
        self.pairs -= claims.pairs
        return claims

    def _sample(self, trace: Trace) -> Trace | None:
        if self.sampled == MOST_SAMPLES or len(trace.steps) > MOST_SAMPLED:
            return None
        self.sampled += 1
        return trace


def trace_page(context: Context, key: str, claims: Claims | None = None) -> TracePage:
    """The section of a trace; ``key`` makes its ids unique in the page, ``claims`` are told where given."""
    trace, shown = context.trace, scene(context)
    kept = _kept(trace.steps)
    links = {step.id: f"{key}-s{number}" for number, step in kept}
    parts = [
        "<h4>Task</h4>",
        block(trace.task) if trace.task.strip() else "<p>No text of the task is recorded.</p>",
        _answers(context),
        '<div class="pictures">',
        picture(lanes_svg(shown, links=links, alone=False), "Lanes: who spoke, who heard whom"),
        picture(team_svg(shown, alone=False), "Team: who passed on how much"),
        picture(_cost(context), "What each agent used"),
        "</div>",
        *_warnings(trace.warnings),
        f"<h4>Steps</h4>{_left_out(len(trace.steps), len(kept))}",
        *_list_of(len(kept), _steps(context, kept, links)),
    ]
    told = "" if claims is None else claims_html(claims, links)
    return TracePage(key, trace.id, trace.system, "\n".join(parts), told)


def _list_of(count: int, steps: Iterator[str]) -> Iterator[str]:
    """The steps as a list, which scrolls by itself where they are many."""
    if count > MOST_IN_SIGHT:
        yield '<div class="long" tabindex="0" role="region" aria-label="Steps">'
    yield '<ol class="steps">'
    yield from steps
    yield "</ol></div>" if count > MOST_IN_SIGHT else "</ol>"


def _kept(steps: tuple[Step, ...]) -> list[tuple[int, Step]]:
    """The steps that are shown, with their numbers: all, or as many from both ends."""
    numbered = list(enumerate(steps, 1))
    if len(steps) <= MOST_STEPS:
        return numbered
    return numbered[: MOST_STEPS // 2] + numbered[-MOST_STEPS // 2 :]


def _left_out(steps: int, kept: int) -> str:
    if steps == kept:
        return ""
    half = kept // 2
    return (
        f'<p class="more">The first {half:,} and the last {half:,} of {steps:,} steps; '
        f"{steps - kept:,} between them are in the pictures and numbers, not here.</p>"
    )


def _answers(context: Context) -> str:
    answer, gold = last_word(context), context.trace.gold
    won = run_correct(context)
    verdict = "not graded" if won is None else "right" if won else "wrong"
    given = inline(answer) if answer is not None else "none"
    wanted = inline(gold) if gold is not None else "not recorded"
    return f"<p>Answer: <strong>{given}</strong> ({verdict}) · Gold answer: <strong>{wanted}</strong></p>"


def _cost(context: Context) -> str:
    """Tokens of each agent's model calls, or of what it said where usage is not recorded."""
    spent = costs(context)
    amounts = dict.fromkeys(context.graph.agent_names, 0.0)
    for speaker, tokens in zip(spent.calls.speakers.tolist(), spent.calls.tokens.tolist(), strict=True):
        if speaker >= 0:
            name = spent.agents[speaker]
            amounts[name] = amounts.get(name, 0.0) + tokens
    title = "Tokens by agent: prompts and completions"
    if not any(amounts.values()):
        title = "Tokens of what each agent said (usage is not recorded)"
        for step in context.graph.steps:
            amounts[step.agent] += text_tokens(step)
    return cost_svg(amounts, title=title, unit="tokens", alone=False)


def _warnings(warnings: Iterable[str]) -> Iterator[str]:
    listed = [f"<li>{inline(warning)}</li>" for warning in warnings]
    if listed:
        more = f"<li>and {len(listed) - 20} more</li>" if len(listed) > 20 else ""
        yield f"<h4>Mended while reading</h4><ul>{''.join(listed[:20])}{more}</ul>"


def _steps(context: Context, kept: list[tuple[int, Step]], links: Mapping[str, str]) -> Iterator[str]:
    found, ended = uptake(context), outcomes(context)
    names = [step.id for step in found.steps]
    taken = {
        (names[source], names[target]): used
        for (source, target), used in zip(found.pairs.tolist(), found.taken.tolist(), strict=True)
    }
    given = step_answers(context)
    speakers = {step.id: step.agent for step in context.trace.steps}
    most = min(MOST_TEXT, MOST_TEXTS // max(len(kept), 1))
    for number, step in kept:
        outcome = ended[step.id]
        facts = [f"round {step.round or 0}", f"{text_tokens(step):,} tokens", OUTCOMES[outcome]]
        answer = given.get(step.id)
        if answer is not None:
            facts.append(f"answer {inline(answer, 60)}")
        if step.id in found.useful:
            facts.append(
                "reached the final answer" if found.useful[step.id] else "did not reach the final answer"
            )
        yield f'<li id="{links[step.id]}" value="{number}" class="{outcome}-step">'
        yield f"<h5>{inline(step.agent, 80)} <small>{inline(step.id, 80)} · {' · '.join(facts)}</small></h5>"
        yield from _heard(step, speakers, links, taken)
        yield block(step.text, most) if step.text.strip() else '<p class="more">It said nothing.</p>'
        yield from _calls(step)
        if step.error:
            yield f"<p>Error: {inline(step.error, 500)}</p>"
        yield "</li>"


def _heard(
    step: Step,
    speakers: Mapping[str, str],
    links: Mapping[str, str],
    taken: Mapping[tuple[str, str], bool],
) -> Iterator[str]:
    def told(one: Transfer) -> str:
        used = taken.get((one.source, step.id))
        use = "" if used is None else ", taken up" if used else ", not taken up"
        label = f"{inline(speakers[one.source], 60)} ({inline(one.source, 60)})"
        goal = links.get(one.source)
        name = f'<a href="#{goal}">{label}</a>' if goal else label
        scope = "same round" if one.scope == "within" else "earlier round"
        return f"{name}: {scope}, {one.evidence}{use}"

    if step.heard:
        more = len(step.heard) - MOST_HEARD
        listed = "; ".join(told(one) for one in step.heard[:MOST_HEARD])
        yield f'<p class="heard">Heard {listed}{f"; and {more:,} more" if more > 0 else ""}.</p>'


def _calls(step: Step) -> Iterator[str]:
    if not step.calls:
        return
    yield f"<details><summary>{len(step.calls):,} tool call{'s' if len(step.calls) > 1 else ''}</summary><ul>"
    for call in step.calls[:MOST_CALLS]:
        end = f"error: {call.error}" if call.error else call.result or "no result"
        yield f"<li>{inline(call.tool, 80)}: {inline(call.arguments, 300)} → {inline(end, 300)}</li>"
    if len(step.calls) > MOST_CALLS:
        yield f"<li>and {len(step.calls) - MOST_CALLS:,} more</li>"
    yield "</ul></details>"
