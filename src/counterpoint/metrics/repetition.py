"""Repetition: the same call made twice, the same text put into a prompt again; the rest of `redundancy`.

Conventions
-----------
* Both scores are shares in [0, 1], lower is better.
* Amounts of text are characters, letters and signs after spaces are squeezed; as tokens, a fourth of them. A
  share does not depend on how long a token is.

What counts
-----------
* Duplicate work: a tool called with the same arguments by two agents or more. Arguments are compared as JSON
  values, so that spacing, the order of keys and 1 or 1.0 do not count.
* Duplicated tokens: a passage of a prompt is a repeat if its reader has been shown it before, in this prompt
  or an earlier one, or has said it. A passage is a line or a sentence; shorter ones than `MIN_CHARACTERS`
  are never repeats. Who said it (``Critic: ...``) does not make a passage another one. Each repeat counts
  once, however many earlier copies there are.
* A prompt is what was recorded; where none was, the texts that the step heard: the least that it was shown.
  What was recorded also holds instructions and the history that is sent anew in each turn, so numbers with
  and without recorded prompts do not compare (parts ``recorded`` and ``implied`` count them).

Source: duplicate work is the measure of the published code of "Towards a Science of Scaling Agent Systems"
(arXiv:2512.08296); duplicated tokens are ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from counterpoint.contracts import Context, Metric
from counterpoint.json_text import parse_json
from counterpoint.score import Score

__all__ = [
    "DUPLICATED_TOKENS",
    "DUPLICATE_WORK",
    "Turn",
    "canonical_arguments",
    "duplicate_work",
    "duplicated_tokens",
    "repeats",
]

MIN_CHARACTERS = 20
"""A shorter passage ("Yes.", "---") is no repeat of anything."""

CHARACTERS_A_TOKEN = 4
"""Of English text, about; only for numbers of tokens that are said to be estimates."""

LONGEST_LABEL = 60
"""A passage may begin with the name of who said it, so long at most."""

_ENDS = re.compile(r"(?<=[.!?])\s|(?<=[。！？])")
_EDGE = " \t\r\"'`*#>|-•"


def duplicate_work(calls: Iterable[tuple[Hashable, str, str]]) -> Score:
    """Duplicate work: distinct (tool, arguments) called by two agents or more / distinct (tool, arguments).

    Parameters
    ----------
    calls: (agent, tool, arguments as JSON text).

    Returns
    -------
    Score in [0, 1], lower is better; parts ``duplicates``, ``count``, ``calls``, and ``repeated``: calls that
    whoever had made before. Undefined without calls.

    >>> calls = [("A", "find", '{"q": 1}'), ("B", "find", '{ "q":1}'), ("B", "find", '{"q": 2}')]
    >>> duplicate_work(calls).value
    0.5
    """
    callers: dict[tuple[str, str], set[Hashable]] = {}
    made = 0
    for agent, tool, arguments in calls:
        callers.setdefault((tool, canonical_arguments(arguments)), set()).add(agent)
        made += 1
    if not made:
        return Score.undefined("no tool call is recorded: record each with its name and arguments")
    duplicates = sum(len(agents) > 1 for agents in callers.values())
    parts = {
        "duplicates": duplicates,
        "count": len(callers),
        "calls": made,
        "repeated": made - len(callers),
    }
    return Score(duplicates / len(callers), parts)


@lru_cache(maxsize=4096)
def canonical_arguments(arguments: str) -> str:
    """Arguments of a call as one text for all ways to write the same JSON value.

    >>> canonical_arguments('{"b": 1.0, "a": [1,2]}')
    '{"a":[1,2],"b":1}'
    """
    try:
        value = _with_whole_numbers(parse_json(arguments)[0])
        return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return " ".join(arguments.split())


def _with_whole_numbers(value: Any) -> Any:
    """The value with ``1`` for ``1.0``: JSON knows one kind of number."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_with_whole_numbers(item) for item in value]
    if isinstance(value, dict):
        return {key: _with_whole_numbers(item) for key, item in value.items()}
    return value


class Turn(Struct, frozen=True):
    """What an agent was shown in a turn, and what it said then."""

    agent: str
    shown: tuple[str, ...]
    """One prompt, or the texts that it is made of: within one of those, nothing is a repeat of itself."""
    said: str = ""
    recorded: bool = False
    """``shown`` is one recorded prompt: within it, a passage can be a repeat."""


def duplicated_tokens(turns: Sequence[Turn]) -> Score:
    """Duplicated tokens: share of the prompts that their reader had been shown, or had said, before; ours.

    Parameters
    ----------
    turns: in time order.

    Returns
    -------
    Score in [0, 1], lower is better; parts ``tokens`` and ``duplicated`` (estimates: characters / 4),
    ``recorded`` and ``implied`` (turns whose prompt is known, or only texts that were heard). Undefined where
    nobody was shown anything.

    >>> text = "The bridge can carry trucks of up to forty tonnes."
    >>> turns = [Turn("A", (), text), Turn("B", (), text), Turn("C", (text, text), text), Turn("A", (text,))]
    >>> duplicated_tokens(turns).value  # of three deliveries, C holds the second and A the third
    0.666667
    """
    shown = repeated = 0
    for _, _, characters, again in repeats(turns):
        shown += characters
        repeated += again
    if not shown:
        return Score.undefined("no agent was shown a text: record `prompt`, or `heard` with each step")
    parts = {
        "tokens": round(shown / CHARACTERS_A_TOKEN),
        "duplicated": round(repeated / CHARACTERS_A_TOKEN),
        "recorded": sum(turn.recorded for turn in turns),
        "implied": sum(bool(turn.shown) and not turn.recorded for turn in turns),
    }
    return Score(repeated / shown, parts)


def repeats(turns: Sequence[Turn]) -> Iterator[tuple[int, int, int, int]]:
    """Of each text that was shown: the turn, its place there, its characters, and how many of them repeat.

    >>> list(repeats([Turn("A", ("Seen in the first turn.",)), Turn("A", ("Seen in the first turn.",))]))
    [(0, 0, 23, 0), (1, 0, 23, 23)]
    """
    held: dict[str, set[str]] = {}
    for number, turn in enumerate(turns):
        known = held.setdefault(turn.agent, set())
        for place, text in enumerate(turn.shown):
            shown = repeated = 0
            passages = _passages(text)
            for forms in passages:
                shown += len(forms[0])
                if not known.isdisjoint(forms) and any(_counts(form) and form in known for form in forms):
                    repeated += len(forms[0])
                if turn.recorded:
                    known.update(forms)
            if not turn.recorded:
                known.update(*passages)
            yield number, place, shown, repeated
        known.update(*_passages(turn.said))


def _counts(passage: str) -> bool:
    return len(passage) >= MIN_CHARACTERS


@lru_cache(maxsize=4096)  # a text is heard by several, soon after it was said
def _passages(text: str) -> tuple[tuple[str, ...], ...]:
    """The passages of a text, as they are compared: whole, and without the name of who said it."""
    return tuple(forms for piece in pieces(text) if (forms := _forms(piece)))


@lru_cache(maxsize=16_384)  # a passage stands in the prompts of several
def _forms(piece: str) -> tuple[str, ...]:
    whole = " ".join(piece.casefold().split()).strip(_EDGE)
    colon = whole.find(": ", 0, LONGEST_LABEL + 2)
    if colon >= 0:
        return whole, whole[colon + 2 :].lstrip(_EDGE)
    return (whole,) if whole else ()


def lines(text: str) -> list[str]:
    """The lines and sentences of a text, with what stands around them; line breaks written in JSON count.

    >>> lines("Of 3.5 m. Or more?\\nNo")
    ['Of 3.5 m.', 'Or more?', 'No']
    """
    if "\\" in text:
        text = text.replace("\\n", "\n")
    if text.isascii():  # sooner than by regular expression
        for end in (". ", "! ", "? "):
            text = text.replace(end, f"{end[0]}\n")
    else:
        text = _ENDS.sub("\n", text)
    return text.splitlines()


def pieces(text: str) -> list[str]:
    """The `lines` of a text, short ones that follow each other (code, tables, Chinese) as one.

    >>> pieces("A bridge of 3.5 m and more. Or less?\\nNo")
    ['A bridge of 3.5 m and more.', 'Or less?\\nNo']
    """
    packed: list[str] = []
    short: list[str] = []
    for line in lines(text):
        if len(line.strip()) >= MIN_CHARACTERS:
            packed += ["\n".join(short), line] if short else [line]
            short = []
            continue
        short.append(line)
        if sum(map(len, short)) >= MIN_CHARACTERS:
            packed.append("\n".join(short))
            short = []
    return [*packed, "\n".join(short)] if short else packed


def _turns(context: Context) -> list[Turn]:
    nodes = context.graph.unrolled
    heard: dict[int, list[int]] = {}
    for source, target in nodes.edge_array.tolist():
        heard.setdefault(target, []).append(source)
    turns = []
    for number, step in enumerate(nodes.steps):
        if step.prompt is not None and step.prompt.strip():
            turns.append(Turn(step.agent, (step.prompt,), step.text, recorded=True))
        else:
            texts = tuple(nodes.steps[source].text for source in heard.get(number, ()))
            turns.append(Turn(step.agent, texts, step.text))
    return turns


def _duplicated_tokens(context: Context) -> Score:
    turns = _turns(context)
    if context.graph.why_no_edges and not any(turn.recorded for turn in turns):
        return Score.undefined(context.graph.why_no_edges)
    return duplicated_tokens(turns)


def _duplicate_work(context: Context) -> Score:
    return duplicate_work(
        (step.agent, call.tool, call.arguments) for step in context.graph.steps for call in step.calls
    )


DUPLICATE_WORK = Metric(
    "duplicate_work", 2, "share of distinct tool calls that two agents or more made", _duplicate_work,
    (0, 1), "lower", "share of calls", "published code of arXiv:2512.08296", ("calls",),
)  # fmt: skip
DUPLICATED_TOKENS = Metric(
    "duplicated_tokens", 1, "share of prompt tokens that their reader had been shown, or had said, before",
    _duplicated_tokens, (0, 1), "lower", "share of prompt tokens", "ours", ("texts", "transfers"),
    settings=("evidence",),
)  # fmt: skip
