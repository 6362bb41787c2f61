"""ChatDev 1.x: the text log of a software company whose roles talk in pairs, phase by phase.

Sample::

    [2025-13-05 11:32:59 INFO] **[Preprocessing]**

    **ChatDev Starts** (20250513113259)
    **task_prompt**: Build a clock.
    [2025-13-05 11:33:00 INFO] System: **[chatting]**
    | **phase_name** | Language |
    | **phase_prompt** | Modality: "{modality}". Propose a programming language. |
    | **placeholders** | {'task': 'Build a clock.', 'modality': 'application'} |
    [2025-13-05 11:33:00 INFO] System: **[RolePlaying]**
    | **assistant_role_name** | Programmer |
    | **user_role_name** | Chief Technology Officer |
    [2025-13-05 11:33:00 INFO] Chief Technology Officer: **[Start Chat]**

    [You are Programmer.]

    Modality: "application". Propose a programming language.
    [2025-13-05 11:33:02 INFO] **[OpenAI_Usage_Info Receive]**
    prompt_tokens: 40
    completion_tokens: 5
    cost: $0.003650
    [2025-13-05 11:33:02 INFO] Programmer: **Programmer<->Chief Technology Officer on : Language, turn 0**

    [You are Chief Technology Officer.]

    <INFO> Python
    [2025-13-05 11:33:02 INFO] **[Seminar Conclusion]**:

     <INFO> Python

What counts
-----------
* A block ``Speaker: **A<->B on : Phase, turn n**`` is one step, and its partner's next turn in the phase
  hears it (explicit). The prompt in brackets, with which a block begins, is the partner's.
* What a phase concluded reaches the first turn of each later phase that has it among its placeholders and
  names it in its prompt (explicit). What else of an earlier turn, or of a program in it, stands in the prompt
  of a phase is found by text (context).
* Days are written year-day-month, without a zone (read as UTC), to the second: turns are in the order of the
  log. A turn ends when its model answered, and begins when the one before it ended.
* Token counts are logged before the turns that they belong to: first come, first served. Older logs and
  those of other servers have none.
* Lines of HTTP clients and of the web view, and the company's own files and tests, are no steps.

What the format cannot tell: what an agent remembered of a phase beyond the last message, and whether the
program works: there is no gold answer.

Source: Qian et al., ChatDev: Communicative Agents for Software Development, ACL 2024.
"""

from __future__ import annotations

import html
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from counterpoint.adapters._chat_log import Names
from counterpoint.adapters._containment import normal
from counterpoint.adapters._logs import CUT_OFF, log_text, whole_lines
from counterpoint.adapters._transfers import Message, Turn, add_context, add_sequence, to_trace
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace, Usage

__all__ = ["read", "sniff"]

_HEAD = re.compile(
    rb"\A\s*\[\d{4}-\d\d-\d\d [\d:]{8} [A-Z]+\] \*\*\[Preprocessing\]\*\*\s+\*\*ChatDev Starts"
)
_BLOCK = re.compile(r"^\[(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d) [A-Z]+\] ?", re.MULTILINE)
_TURN = re.compile(r"([^\n:*]+): \*\*[^\n*]+?<->[^\n*]+? on : ([^\n*]+?), turn (\d+)\*\*")
_SPOKEN = re.compile(r"([^\n:*]+): (?!\*\*)")
_ROW = re.compile(r"^\| \*\*(\w+)\*\* \| (.*?) \|$", re.MULTILINE)
_FACT = re.compile(r"^\*\*(task_prompt|project_name)\*\*: (.*?)(?=\n\n\*\*|\Z)", re.MULTILINE | re.DOTALL)
_PLACEHOLDER = re.compile(r"""'(\w+)': (?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")""")
_COUNT = re.compile(r"^(prompt_tokens|completion_tokens|cost): \$?([\d.]+)$", re.MULTILINE)
_PROGRAM = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)
_END = re.compile(r"^ChatDev Ends \(\d+\)", re.MULTILINE)


def sniff(source: Source) -> bool:
    """The first block of a log is where ChatDev starts."""
    return _HEAD.match(source.head) is not None


def read(source: Source) -> Iterator[Trace | TraceError]:
    """The run; with a TraceError beside it where the log is cut off within a line."""
    mended: set[str] = set()
    try:
        text = log_text(source, mended)
        cut = _END.search(text) is None and not text.endswith("\n")
        yield _trace(whole_lines(text) if cut else text, mended)
    except TraceError as error:
        yield TraceError(error.message, source=source.name, record=1)
    else:
        if cut:
            yield TraceError(CUT_OFF, source=source.name, record=1)


def _trace(text: str, mended: set[str]) -> Trace:
    ended = _END.search(text) is not None
    log = _Log()
    for block in _blocks(text):
        log.add(block)
    if not log.turns:
        raise TraceError("the log has no turn: **A<->B on : Phase, turn n**")
    task = log.facts.pop("task_prompt", "").strip()
    add_context(log.turns, given=[task])
    add_sequence(log.turns)
    return to_trace(
        log.turns,
        id="",
        task=task,
        system="ChatDev",
        labels={**log.facts, "system_prompt": log.prompts} if log.prompts else log.facts,
        warnings=(*mended, *(() if ended else ("the log ends before the run does",))),
    )


class _Block(NamedTuple):
    """What was logged at once."""

    moment: float | None
    text: str


def _blocks(text: str) -> Iterator[_Block]:
    begins = list(_BLOCK.finditer(text))
    for number, begin in enumerate(begins):
        end = begins[number + 1].start() if number + 1 < len(begins) else len(text)
        yield _Block(_moment(begin), text[begin.end() : end])


def _moment(begin: re.Match[str]) -> float | None:
    year, day, month, hour, minute, second = map(int, begin.groups())
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
    except ValueError:
        return None


@dataclass(slots=True)
class _Call:
    """A model call that was logged, and whose turn is still to come."""

    moment: float | None
    usage: Usage | None = None


class _Log:
    """The turns of a run while its blocks come in."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.facts: dict[str, str] = {}
        self.prompts: dict[str, str] = {}
        """The system prompt of each role."""
        self._names = Names()
        self._concluded: dict[bytes, Turn] = {}
        """What phases concluded, and the turn that said it."""
        self._calls: deque[_Call] = deque()
        self._roles: set[str] = set()
        self._model: str | None = None
        self._template = self._placeholders = self._start = ""
        """Of this phase: its prompt before and after the placeholders were filled in."""
        self._told: Turn | None = None
        """The turn before in this phase."""
        self._before: float | None = None
        """When the turn before ended, or the phase began."""

    def add(self, block: _Block) -> None:
        line, _, rest = block.text.partition("\n")
        if match := _TURN.match(line):
            self._turn(block, match[1], _without_prompt(rest), f".{match[2]}.{match[3]}")
        elif line.startswith("HTTP Request: ") and "completions " in line and line.endswith('200 OK"'):
            self._calls.append(_Call(block.moment))
        elif line.startswith("**[OpenAI_Usage_Info Receive]**"):
            self._usage(block)
        elif line.startswith("System: **[chatting]**"):
            rows = _rows(rest)
            self._template, self._placeholders = rows.get("phase_prompt", ""), rows.get("placeholders", "")
        elif line.startswith("System: **[RolePlaying]**"):
            self._phase(_rows(rest))
        elif line.endswith("**[Start Chat]**"):
            self._start, self._before = rest.strip(), block.moment
        elif line.startswith("**[Seminar Conclusion]**") and self.turns:
            self._concluded[normal(rest.rpartition("<INFO>")[2])] = self.turns[-1]
        elif line.startswith("**[Task Prompt Self Improvement]**") and self.turns:
            self._concluded[normal(rest.rpartition("**Improved Task Prompt**:")[2])] = self.turns[-1]
        elif line.startswith("**[Preprocessing]**"):
            self.facts = {key: value.strip() for key, value in _FACT.findall(rest)}
        elif (match := _SPOKEN.match(line)) and match[1] in self._roles:
            self._turn(block, match[1], block.text[match.end() :].strip(), "")

    def _usage(self, block: _Block) -> None:
        if not self._calls or self._calls[-1].usage is not None:
            self._calls.append(_Call(block.moment))
        self._calls[-1].usage = _usage(block.text, self._model)

    def _phase(self, rows: dict[str, str]) -> None:
        self._told, self._start = None, ""
        self._calls.clear()
        self._roles.clear()
        for side in ("assistant", "user"):
            if role := rows.get(f"{side}_role_name"):
                self._roles.add(role)
                self.prompts.setdefault(role, rows.get(f"{side}_role_prompt", ""))
        name = rows.get("model_type", "None").rpartition(".")[2]
        self._model = None if name == "None" else name.lower().replace("3_5", "3.5").replace("_", "-")

    def _turn(self, block: _Block, speaker: str, text: str, place: str) -> None:
        turn = Turn(f"{len(self.turns) + 1}{place}", self._names.of(speaker), text)
        call = self._calls.popleft() if self._calls else _Call(block.moment)
        turn.usage = call.usage
        turn.started_at, turn.ended_at = self._before, call.moment
        self._before = call.moment
        turn.said = [Message(part) for part in (text.rpartition("<INFO>")[2], *_PROGRAM.findall(text))]
        if self._told is not None:
            turn.hear(self._told.id, "explicit")
        elif self._start:
            turn.shown = [[Message(self._start, "user")]]
            self._inherit(turn)
        self._told = turn
        self.turns.append(turn)

    def _inherit(self, turn: Turn) -> None:
        """The phase's first turn heard what earlier phases concluded, where the prompt asks for that."""
        for key, single, double in _PLACEHOLDER.findall(self._placeholders):
            value = normal(single or double)
            if value and value in self._concluded and f"{{{key}}}" in self._template:
                turn.hear(self._concluded[value].id, "explicit")


def _rows(text: str) -> dict[str, str]:
    """The rows of a table, whose text is escaped as for a web page."""
    return {key: html.unescape(value) for key, value in _ROW.findall(text)}


def _without_prompt(text: str) -> str:
    """A message without the prompt in brackets that stands before it."""
    text = text.strip()
    end = text.find("]\n\n") if text.startswith("[") else -1
    return text[end + 3 :].strip() if end >= 0 else text


def _usage(text: str, model: str | None) -> Usage | None:
    counts = dict(_COUNT.findall(text))
    tokens_in, tokens_out = (
        int(counts[key]) if counts.get(key, "").isdecimal() else None
        for key in ("prompt_tokens", "completion_tokens")
    )
    if tokens_in is None and tokens_out is None:
        return None
    try:
        cost = float(counts["cost"]) if "cost" in counts else None
    except ValueError:
        cost = None
    return Usage(tokens_in, tokens_out, cost_usd=cost, model=model)
