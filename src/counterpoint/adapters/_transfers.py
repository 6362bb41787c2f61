"""From turns in time order to a tidy Trace: the step building and edge finding that all adapters share.

An adapter makes a list of `Turn`, in time order, each with what it ``said`` and what it was ``shown``; adds
the transfers that its format states (``turn.hear(source, "explicit")``); calls one or more of

* `add_context`: a producer's text stands in a reader's prompt,
* `add_broadcast`: shared chat, everyone heard everything since their own last turn,
* `add_sequence`: mere order, for turns that would otherwise hear nothing;

and ends with `to_trace`. Each step adds evidence and keeps the strongest of each source, so that their
order does not matter::

    turns = [Turn("1", "writer", "A draft of some forty characters, or more."),
             Turn("2", "critic", "Fine.", shown=[[Message("Judge: A draft of some forty ...")]])]
    add_context(turns)
    trace = to_trace(turns, id="run", system="my framework")

What counts as context
----------------------
Message by message, in this order: a key (message id) known from an earlier turn's ``said``; the whole text
equal to an earlier turn's; an earlier text of 40 characters or more contained in it, compared as in
`_containment.normal`. The latest producer of a text wins; a text that occurs twice has its two latest
producers. A text quoted inside a longer known text came with the longer one.

Where a prompt repeats a shared list (the reader's own last output stands in it as a message of its own),
only messages from there on are new. A prompt that is built anew each time has no such message: all of it
counts each time. Texts that were given from outside (`given`, and what the first turn was shown) are
nobody's: an agent that repeats the task is not its producer.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any

from msgspec import Struct, field

from counterpoint.adapters._containment import MIN_CHARACTERS, Needles, normal
from counterpoint.trace import EVIDENCE, Call, Evidence, Kind, Step, Trace, Transfer, Usage, tidy

__all__ = ["Message", "Turn", "add_broadcast", "add_context", "add_sequence", "to_trace", "total_usage"]


class Message(Struct, gc=False):
    """One message that a turn said or was shown."""

    text: str
    role: str = ""
    """As in the format; user and system messages are never taken for the reader's own output."""
    keys: tuple[str, ...] = ()
    """Ids under which the very same message is known elsewhere: message id, ids of its tool calls."""


class Turn(Struct, gc=False):
    """One turn of one agent, to become one Step; fields as there, if not said otherwise."""

    id: str
    agent: str
    text: str = ""
    kind: Kind = "agent"
    role: str = ""
    round: int | None = None
    said: list[Message] = field(default_factory=list)
    """Every output that others may be shown; `text` is always one of them."""
    shown: list[list[Message]] = field(default_factory=list)
    """The prompt of each model call, in time order; or the agent's input where calls are not recorded."""
    prompt: str | None = None
    """Left out: joined from ``shown``, each message once."""
    heard: dict[str, Evidence] = field(default_factory=dict)
    """Id of each earlier turn heard, and how that is known: use `hear`."""
    calls: list[Call] = field(default_factory=list)
    answer: str | None = None
    started_at: float | None = None
    ended_at: float | None = None
    usage: Usage | None = None
    error: str | None = None

    def hear(self, source: str, evidence: Evidence) -> None:
        """Adds a transfer from the turn of id ``source``; of two the stronger evidence stays."""
        known = self.heard.get(source)
        if known is None or EVIDENCE.index(evidence) < EVIDENCE.index(known):
            self.heard[source] = evidence


# --- context -------------------------------------------------------------------------------------


def add_context(turns: Sequence[Turn], *, given: Iterable[str] = ()) -> None:
    """Adds a ``context`` transfer wherever an earlier turn's text stands in what a turn was shown.

    ``given``: texts from outside, such as the task. Turns of kind control read, but hand nothing on.
    """
    outside = [*given]
    if turns and turns[0].shown:
        outside += [message.text for message in turns[0].shown[0]]
    said = _Said(turns, {text.strip() for text in outside})
    news: list[tuple[int, int, list[Message]]] = []
    for number, turn in enumerate(turns):
        for call, prompt in enumerate(turn.shown):
            # A turn's own output cannot stand in its first prompt, whatever the texts say.
            before = number + 1 if call else number
            news.append((number, before, said.news(prompt, number, before)))
    inside = _Inside(said, outside, (message.text for _, _, prompt in news for message in prompt))
    for number, before, prompt in news:
        for source in _sources(prompt, before, said, inside):
            if source != number:
                turns[number].hear(turns[source].id, "context")


class _Said:
    """Who said what, by key and by text; turns are numbers in time order."""

    def __init__(self, turns: Sequence[Turn], given: set[str]) -> None:
        self.agents = [turn.agent for turn in turns]
        self.by_key: dict[str, list[int]] = {}
        self.by_text: dict[str, list[int]] = {}
        for number, turn in enumerate(turns):
            if turn.kind == "control":
                continue
            for message in (Message(turn.text), *turn.said):
                for key in message.keys:
                    self.by_key.setdefault(key, []).append(number)
                text = message.text.strip()
                if text and text not in given:
                    producers = self.by_text.setdefault(text, [])
                    if not producers or producers[-1] != number:
                        producers.append(number)

    def producers(self, message: Message) -> list[int]:
        """Turns that said exactly this, whenever."""
        for key in message.keys:
            if key in self.by_key:
                return self.by_key[key]
        return self.by_text.get(message.text.strip(), [])

    def news(self, prompt: list[Message], reader: int, before: int) -> list[Message]:
        """The messages from the reader's own last output on; all where that does not stand in the prompt."""
        for position in range(len(prompt) - 1, -1, -1):
            message = prompt[position]
            if message.role not in _NEVER_OWN:
                latest = _latest(self.producers(message), before)
                if latest is not None and self.agents[latest] == self.agents[reader]:
                    return prompt[position:]
        return prompt


_NEVER_OWN = {"user", "human", "system", "developer", "tool", "function"}


def _latest(producers: list[int], before: int, skip: int = 0) -> int | None:
    """The latest of ``producers`` (ascending) before turn ``before``, or the ``skip``-th before that."""
    position = bisect_left(producers, before) - 1
    return producers[max(position - skip, 0)] if position >= 0 else None


class _Inside:
    """Which of the texts said stand inside which messages."""

    def __init__(self, said: _Said, outside: list[str], texts: Iterable[str]) -> None:
        by_needle: dict[bytes, list[int]] = {}
        for text, producers in said.by_text.items():
            if len(text) >= MIN_CHARACTERS:
                by_needle.setdefault(normal(text), []).extend(producers)
        needles = Needles(list(by_needle))
        self.producers = [sorted(set(producers)) for producers in by_needle.values()]
        for matches in needles.find(map(normal, outside)):
            for _, _, needle in matches:
                self.producers[needle] = []
        wanted = [text for text in dict.fromkeys(texts) if len(text) >= MIN_CHARACTERS]
        found = needles.find(map(normal, wanted))
        self.matches = {text: matches for text, matches in zip(wanted, found, strict=True) if matches}

    def known(self, text: str, before: int) -> list[int]:
        """Needles that were said ``before`` and stand in ``text``, but in no longer such needle."""
        matches = self.matches.get(text, ())
        if len(matches) > 1:
            # Of two that start together the longer comes first, so that it covers the other.
            matches = sorted(matches, key=lambda match: (match[0], -match[1]))
        reach = 0
        kept: list[int] = []
        for _, end, needle in matches:
            producers = self.producers[needle]
            if end > reach and producers and producers[0] < before:
                reach = end
                kept.append(needle)
        return kept


def _sources(prompt: list[Message], before: int, said: _Said, inside: _Inside) -> Iterator[int]:
    """Turns whose output stands in ``prompt``; the k-th occurrence of a text has its k-th latest
    producer."""
    seen: dict[int, int] = {}
    for message in reversed(prompt):
        exact = said.producers(message)
        if _latest(exact, before) is not None:
            lists = [exact]
        else:
            lists = [inside.producers[needle] for needle in inside.known(message.text, before)]
        for producers in lists:
            times = seen.get(id(producers), 0)
            seen[id(producers)] = times + 1
            source = _latest(producers, before, times)
            if source is not None:
                yield source


# --- shared chat and order -----------------------------------------------------------------------


def add_broadcast(turns: Sequence[Turn]) -> None:
    """Adds a ``broadcast`` transfer to each turn from all turns of others since its agent's own last one.

    Turns of kind control hear, but hand nothing on; so do turns without any text. What an agent heard in a
    control turn it still hears in its next spoken one: weighing whom to ask is not yet a turn.
    """
    spoken: list[Turn] = []
    heard_up_to: dict[tuple[str, bool], int] = {}
    for turn in turns:
        control = turn.kind == "control"
        for source in spoken[heard_up_to.get((turn.agent, control), 0) :]:
            if source.agent != turn.agent:
                turn.hear(source.id, "broadcast")
        if not control and turn.text.strip():
            spoken.append(turn)
        heard_up_to[turn.agent, control] = len(spoken)


def add_sequence(turns: Sequence[Turn]) -> None:
    """Adds a ``sequence`` transfer from the turn before to each turn that hears no other agent.

    A turn that was still going on when another began, by the times of both, is not before it.
    """
    agents: dict[str, str] = {}
    running: list[tuple[float, int]] = []
    before = -1
    for number, turn in enumerate(turns):
        now = math.inf if turn.started_at is None else turn.started_at
        while running and running[0][0] <= now:
            before = max(before, heappop(running)[1])
        alone = all(agents.get(source) == turn.agent for source in turn.heard)
        if before >= 0 and alone and turns[before].agent != turn.agent:
            turn.hear(turns[before].id, "sequence")
        agents[turn.id] = turn.agent
        if turn.kind != "control":
            known = turn.started_at is not None and turn.ended_at is not None
            heappush(running, (turn.ended_at if known and turn.ended_at else -math.inf, number))


# --- building ------------------------------------------------------------------------------------


def to_trace(turns: Sequence[Turn], *, id: str, **fields: Any) -> Trace:
    """The tidy Trace of ``turns``; ``fields`` are those of Trace."""
    return tidy(Trace(id=id, steps=tuple(_step(turn) for turn in turns), **fields))


def _step(turn: Turn) -> Step:
    heard = [Transfer(source, evidence=evidence) for source, evidence in turn.heard.items()]
    return Step(
        id=turn.id,
        agent=turn.agent,
        text=turn.text,
        kind=turn.kind,
        role=turn.role,
        prompt=_prompt(turn) if turn.prompt is None else turn.prompt,
        round=turn.round,
        heard=tuple(heard),
        calls=tuple(turn.calls),
        answer=turn.answer,
        started_at=turn.started_at,
        ended_at=turn.ended_at,
        usage=turn.usage,
        error=turn.error,
    )


def _prompt(turn: Turn) -> str | None:
    texts = dict.fromkeys(message.text for prompt in turn.shown for message in prompt if message.text)
    return "\n\n".join(texts) or None


def total_usage(usages: Iterable[Usage | None]) -> Usage | None:
    """The sum over model calls: a field is None where no call knows it; the model is the last one named.

    >>> total_usage([Usage(tokens_in=3), None, Usage(tokens_in=4, tokens_out=1)])
    Usage(tokens_in=7, tokens_out=1, tokens_cached=None, tokens_reasoning=None, cost_usd=None, model=None)
    """
    known = [usage for usage in usages if usage is not None]
    if len(known) < 2:
        return known[0] if known else None
    sums: dict[str, Any] = {"model": None}
    for usage in known:
        for name in _AMOUNTS:
            amount = getattr(usage, name)
            if amount is not None:
                sums[name] = sums.get(name, 0) + amount
        sums["model"] = usage.model or sums["model"]
    return Usage(**sums)


_AMOUNTS = ("tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning", "cost_usd")
