"""DyLAN: questions answered by agents in rounds; two layouts, both without names and times.

A matrix of replies a line, agents by rounds, ``null`` where an agent did not run (``.json`` files that are
JSONL: MMLU, HumanEval)::

    [["It is (B).", "Still (B).", null], ["It is (A).", "Now (B).", null], ["(B)", null, null]]

An object of questions, each with the chat memories of its agents, the gold answer, and more (MATH; the
debates of Du et al. are kept in the same way)::

    {"What is 441 in base 7?": [
        [[{"role": "user", "content": "..."}, {"role": "assistant", "content": "1200."}],
         [{"role": "user", "content": "..."}, {"role": "assistant", "content": "1060."}]],
        "1200", 3, "Number Theory"]}

What counts
-----------
* One reply is one step. Agents are called by their row, from 1; the column is the round.
* In a matrix, whoever speaks in a round heard all replies of the round before (broadcast). In memories a
  transfer is known by its text: a reply that stands in what another agent is told (context).
* Whether a matrix's answer was right stands in the file of the same name with ``.txt``, if that lies beside
  it: ``correct``, and the agents' importance as DyLAN computed it, ``labels["importance"]``.

What the format cannot tell: in a matrix the question, all prompts, and who ranked the agents that went on;
tokens and times in both. A matrix has no task: such a run is paired with no other.

Source: Liu et al., Dynamic LLM-Agent Network, 2023. Du et al., Improving Factuality and Reasoning in
Language Models through Multiagent Debate, ICML 2024.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from counterpoint.adapters._beside import beside, stem
from counterpoint.adapters._chat_log import content_text
from counterpoint.adapters._memories import add_told, is_memory, memory_turns
from counterpoint.adapters._source import each, opening
from counterpoint.adapters._transfers import Turn, to_trace
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.json_text import parse_json
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]

_VERDICTS = re.compile(rb"\s*\[((?:\s*(?:True|False)\s*,?)*)\]")


def sniff(source: Source) -> bool:
    """A matrix of texts and nulls, or memories by question."""
    value = opening(source).value
    if isinstance(value, list):
        return _is_matrix(value)
    if not isinstance(value, dict) or not value:
        return False
    return all(
        isinstance(answer, list)
        and answer
        and isinstance(answer[0], list)
        and answer[0]
        and all(map(is_memory, answer[0]))
        and any(answer[0])
        for answer in value.values()
    )


def _is_matrix(value: list[Any]) -> bool:
    """Rows of one length and of nothing but texts and nulls; the last one may be cut off."""
    if not value or not all(isinstance(row, list) for row in value):
        return False
    cells = [cell for row in value for cell in row]
    if not all(cell is None or isinstance(cell, str) for cell in cells):
        return False
    return len({len(row) for row in value[:-1] or value}) == 1 and any(cells)


class _Question(NamedTuple):
    """One question of a file: a matrix, or memories with what is known of them."""

    replies: Any
    task: str | None = None
    """None: the replies are a matrix."""
    gold: Any = None


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every question."""
    verdicts, importance = _scores(source.name)
    for number, item in enumerate(each(source, _trace, split=_questions)):
        if isinstance(item, TraceError) or item.task:
            yield item
            continue
        if number < len(verdicts):
            item = _graded(item, verdicts[number], importance[number : number + 1])
        yield item


def _questions(document: Any) -> Iterator[_Question]:
    if not isinstance(document, dict):
        yield _Question(document)
        return
    for task, answer in document.items():
        if not isinstance(answer, list) or not answer:
            yield _Question(None, task)
        else:
            yield _Question(answer[0], task, answer[1] if len(answer) > 1 else None)


def _trace(question: _Question) -> Trace:
    if question.task is None:
        return to_trace(_replies(question.replies), id="", system="DyLAN")
    if not isinstance(question.replies, list) or not question.replies:
        raise TraceError(f"question {question.task[:40]!r} has no list of memories")
    turns = _debate(question.replies)
    add_told(turns, at_once=True)
    return to_trace(
        turns,
        id="",
        task=question.task,
        gold=None if question.gold is None else content_text(question.gold),
        system="debate",
    )


def _replies(matrix: Any) -> list[Turn]:
    if not isinstance(matrix, list):
        raise TraceError(f"a question is a list of agents, found {type(matrix).__name__}")
    for number, row in enumerate(matrix, 1):
        if not isinstance(row, list):
            raise TraceError(f"agent {number} is not a list of replies but {type(row).__name__}")
    turns: list[Turn] = []
    before: list[str] = []
    for number in range(max(map(len, matrix), default=0)):
        now: list[str] = []
        for agent, row in enumerate(matrix, 1):
            reply = row[number] if number < len(row) else None
            if reply is None:
                continue
            if not isinstance(reply, str):
                raise TraceError(f"reply {number + 1} of agent {agent} is no text but {type(reply).__name__}")
            turn = Turn(f"{number + 1}.{agent}", f"agent {agent}", reply, round=number)
            for source in before:
                turn.hear(source, "broadcast")
            turns.append(turn)
            now.append(turn.id)
        before = now or before
    return turns


def _debate(memories: list[Any]) -> list[Turn]:
    """The turns of all memories: those of a round one after the other, in the order of the agents."""
    told = [memory_turns(f"agent {agent}", memory) for agent, memory in enumerate(memories, 1)]
    turns = []
    for number in range(max(map(len, told))):
        for own in told:
            if number < len(own):
                own[number].round = number
                turns.append(own[number])
    return turns


# --- the file beside it --------------------------------------------------------------------------


def _scores(name: str) -> tuple[list[bool], list[Any]]:
    """Right or wrong, and the importance of the agents, a question each; empty where not known.

    The file has the verdicts and their mean in its first line, calls in the second, importance in the third.
    """
    content = beside(name, f"{stem(name)}.txt")
    found = _VERDICTS.match(content) if content else None
    if content is None or found is None:
        return [], []
    verdicts = [word == b"True" for word in re.findall(rb"True|False", found[1])]
    lines = content.split(b"\n")
    try:
        importance, _ = parse_json(lines[2]) if len(lines) > 2 else ([], [])
    except ValueError:
        importance = []
    return verdicts, importance if isinstance(importance, list) else []


def _graded(trace: Trace, correct: bool, importance: list[Any]) -> Trace:
    labels = {**trace.labels, "importance": importance[0]} if importance else trace.labels
    return replace(trace, correct=correct, labels=labels)
