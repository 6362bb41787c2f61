"""MAD, Multi-Agents-Debate: two sides, a moderator and a judge, each with a chat memory; one debate a file.

Sample::

    {"model_name": "gpt-3.5-turbo", "source": "Guten Tag.", "correct reference": "Good day.",
     "debate translation": "Good day.", "reason": "...",
     "players": {
        "Affirmative side": [{"role": "user", "content": "Translate: Guten Tag."},
                             {"role": "assistant", "content": "Good day."}],
        "Negative side": [{"role": "user", "content": "Good day. You disagree. Why?"},
                          {"role": "assistant", "content": "Hello."}],
        "Moderator": [{"role": "user", "content": "Affirmative side arguing: Good day. ..."},
                      {"role": "assistant", "content": "{...}"}]}}

What counts
-----------
* One assistant message of a memory is one step. No times are kept: a round is one turn of each player, in the
  order of ``players``. The first player opens with one turn more than rounds, and a judge speaks after all.
* Nothing says who read what: a transfer is known where the text of one stands in what another was told
  (context, 40 characters or more).
* ``gold`` is the correct reference, ``answer`` the translation after the debate; the incorrect reference and
  the translation before the debate are in ``labels``.

What the format cannot tell: times, tokens, and transfers of very short texts.

Source: Liang et al., Encouraging Divergent Thinking in Large Language Models through Multi-Agent Debate,
EMNLP 2024.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from counterpoint.adapters._chat_log import content_text, found_keys
from counterpoint.adapters._memories import add_told, is_memory, memory_turns
from counterpoint.adapters._source import each, listed, opening
from counterpoint.adapters._transfers import Turn, to_trace
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]

_JUDGE = "judge"
_LABELS = ("model_name", "temperature", "incorrect reference", "base translation", "reason")


def sniff(source: Source) -> bool:
    """``players`` with a chat memory each."""
    players = opening(source).record.get("players")
    return isinstance(players, dict) and bool(players) and all(map(is_memory, players.values()))


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every debate."""
    yield from each(source, _trace, split=listed)


def _trace(debate: Any) -> Trace:
    players = debate.get("players") if isinstance(debate, dict) else None
    if not isinstance(players, dict):
        found = found_keys(debate) if isinstance(debate, dict) else type(debate).__name__
        raise TraceError(f'a debate is an object with "players" (found: {found})')
    turns = _in_order({name: memory_turns(name, memory) for name, memory in players.items()})
    add_told(turns, at_once=False)
    told = [message.text for turn in turns[:1] for message in turn.shown[0] if message.role == "user"]
    gold, answer = debate.get("correct reference"), debate.get("debate translation")
    labels = {key: debate[key] for key in _LABELS if debate.get(key) not in (None, "")}
    prompts = _system_prompts(players)
    return to_trace(
        turns,
        id="",
        task=told[0] if told else content_text(debate.get("source")),
        gold=None if gold is None else content_text(gold),
        answer=content_text(answer) if answer else None,
        system="MAD",
        labels=labels | ({"system_prompt": prompts} if prompts else {}),
    )


def _in_order(told: dict[str, list[Turn]]) -> list[Turn]:
    """The turns of all players, round by round; the round of each is filled in."""
    opener = next(iter(told), "")
    rounds = max((len(own) - (name == opener) for name, own in told.items()), default=0)
    turns: list[Turn] = []
    for name, own in told.items():
        for number, turn in enumerate(own):
            turn.round = number
            if name == opener:
                turn.round = max(0, number - 1)
            elif name.casefold() == _JUDGE:
                turn.round = max(0, rounds - 1)
        turns += own
    # Sorting keeps the players of a round in their order, and the judge behind them.
    turns.sort(key=lambda turn: turn.round or 0)
    return turns


def _system_prompts(players: dict[str, Any]) -> dict[str, str]:
    return {
        name: content_text(item.get("content"))
        for name, memory in players.items()
        for item in memory[:1]
        if item.get("role") == "system"
    }
