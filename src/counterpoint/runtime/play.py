"""One team on one question: who is asked what, in which order, and the trace of it.

    trace = play(example, team, wiring, ask, benchmark=gsm8k, protocol=MajorityVote())

Conventions
-----------
* A round goes through its speakers so that each comes after all that it hears. An agent is shown what the
  wiring lets it hear, this round's messages and last round's apart, each under the speaker's name; then the
  task, with the form of the answer last.
* Every transfer of a trace is ``explicit``: the text stood in the reader's prompt, word for word. Own
  earlier words are shown like any other's where the wiring says so.

What counts
-----------
* A step without text (the call failed, the model said nothing) and an agent that does not speak are absent
  from the prompts of others: no placeholder, no transfer. The step stays in the trace, with its error.
* A step's answer is what its text commits to, by the strict reader; only a team's final answer may be read
  as the benchmark reads it. What a program printed may be an answer; its error message is shown to the
  agent, once, and never to a reader of answers.

Differences from the papers
---------------------------
Published code waits for each agent in turn within a question, as this does, but gives a failed agent's
readers the text "None", writes random ids into prompts, and draws edges anew at evaluation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import msgspec

from counterpoint.answers import read_answer, same_answer, spoken
from counterpoint.contracts import Benchmark, ChatModel, Example, Reply, Wiring
from counterpoint.errors import ModelError, UsageError
from counterpoint.runtime.wirings import check_wiring, speaking_order
from counterpoint.trace import Call, Step, Trace, Transfer, Usage

Amount = TypeVar("Amount", int, float)

__all__ = ["Agent", "Discussion", "DiscussionProtocol", "Ran", "Task", "TimedReply", "play", "speak", "talk"]


@dataclass(frozen=True)
class TimedReply(Reply):
    """A reply that knows when it was asked for and given: one from a journal, for instance."""

    started_at: float = 0.0
    ended_at: float = 0.0


@dataclass(frozen=True)
class Ran:
    """What became of the program in a text."""

    code: str
    result: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Agent:
    """A named member of a team."""

    name: str
    """Unique in its team; what others see above its messages."""
    role: str
    system: str
    """The system prompt."""
    adversarial: bool = False
    """It is told to argue for a wrong answer."""
    run: Callable[[str], Ran | None] | None = None
    """Runs the program in a text, if there is one; None: this agent's programs are only read."""


@dataclass(frozen=True)
class Task:
    """What a discussion is about."""

    prompt: str
    """The question, with the form of the answer last."""
    read: Callable[[str], str | None]
    """The answer that a text commits to."""
    read_final: Callable[[str], str | None]
    """The answer that a team's last word gives, read as the benchmark does."""
    same: Callable[[str, str], bool] = str.__eq__
    """Whether two answers are one."""
    cut: list[str] = field(default_factory=list)
    """Steps some of whose replies ended at the limit on tokens; filled as the discussion goes on."""


@dataclass(frozen=True)
class Discussion:
    """What was said, and what the team answers."""

    steps: tuple[Step, ...]
    answer: str | None


class DiscussionProtocol(Protocol):
    """How a discussion goes: a dataclass, registered in `counterpoint.runtime.protocols`."""

    def discuss(self, task: Task, team: Sequence[Agent], wiring: Wiring, ask: ChatModel) -> Discussion:
        """Every step in time order, and the team's answer."""
        ...


def play(
    example: Example,
    team: Sequence[Agent],
    wiring: Wiring,
    ask: ChatModel,
    *,
    benchmark: Benchmark,
    protocol: DiscussionProtocol,
) -> Trace:
    """The trace of one discussion of ``example``; its id is the example's.

    Parameters
    ----------
    team: agents with distinct names, as many as ``wiring`` has.
    ask: a chat model. A ModelError of it fails that step only; every other error ends the play.

    Raises
    ------
    GraphError: the wiring is none, or is for another number of agents.
    UsageError: two agents of one name.
    """
    check_wiring(wiring, len(team))
    names = [agent.name for agent in team]
    if len(set(names)) < len(names):
        raise UsageError(f"agents of a team have distinct names, found {', '.join(names)}")
    task = _task(example, benchmark)
    found = protocol.discuss(task, team, wiring, ask)
    labels: dict[str, Any] = {"task_id": example.id}
    if adversaries := [agent.name for agent in team if agent.adversarial]:
        labels["adversaries"] = adversaries
    return Trace(
        id=example.id,
        steps=found.steps,
        task=example.task,
        gold=example.gold,
        answer=found.answer,
        correct=bool(benchmark.grade(found.answer, example)),
        labels=labels,
        warnings=(_told_cut(task.cut),) if task.cut else (),
    )


def _told_cut(steps: Sequence[str]) -> str:
    return f"replies of {len(steps)} steps were cut at the limit on tokens (--max-tokens): {', '.join(steps)}"


def _task(example: Example, benchmark: Benchmark) -> Task:
    kind, options = example.kind, example.options or None
    return Task(
        prompt=benchmark.prompt(example),
        read=lambda text: read_answer(text, kind=kind, options=options),
        read_final=lambda text: benchmark.read_answer(text, example),
        same=lambda a, b: same_answer(a, b, kind=kind),
    )


def talk(task: Task, team: Sequence[Agent], wiring: Wiring, ask: ChatModel) -> list[Step]:
    """Every agent's step in every round, as the wiring has it, in time order."""
    steps: list[Step] = []
    before: dict[int, Step] = {}
    for number in range(len(wiring.speaks)):
        now: dict[int, Step] = {}
        for reader in speaking_order(wiring, number):
            heard = {"within": _heard(now, wiring.within[number][:, reader])}
            if number:
                heard["across"] = _heard(before, wiring.across[number - 1][:, reader])
            now[reader] = speak(team[reader], task, heard, ask, number)
            steps.append(now[reader])
        before = now
    return steps


def _heard(said: Mapping[int, Step], hears: Any) -> list[Step]:
    """What there is to hear, in the order of the team."""
    return [said[agent] for agent in sorted(said) if hears[agent] and said[agent].text.strip()]


def speak(agent: Agent, task: Task, heard: Mapping[str, Sequence[Step]], ask: ChatModel, number: int) -> Step:
    """The step of one agent in round ``number`` that has heard these steps of this and the last round."""
    prompt = _prompt(task, heard)
    messages = [{"role": "system", "content": agent.system}, {"role": "user", "content": prompt}]
    turn = _Turn(agent, ask, messages)
    turn.take()
    name = f"{number}.{agent.name}"
    if turn.cut:
        task.cut.append(name)
    return Step(
        id=name,
        agent=agent.name,
        text=turn.text,
        role=agent.role,
        prompt=f"{agent.system}\n\n{prompt}" if agent.system else prompt,
        round=number,
        heard=tuple(
            Transfer(step.id, "within" if scope == "within" else "across", "explicit")
            for scope, steps in heard.items()
            for step in steps
        ),
        calls=tuple(turn.calls),
        answer=task.read(said(turn.text, turn.calls)),
        started_at=turn.started_at,
        ended_at=turn.ended_at,
        usage=turn.usage(),
        error=turn.error,
    )


def said(text: str, calls: Sequence[Call]) -> str:
    """What an answer is read from: not the source of a program that was run, but its result."""
    return spoken(text, [call.result for call in calls if call.tool == "python"])


HEADINGS = {
    "within": "What others say in this round:",
    "across": "What was said in the previous round:",
}


def _prompt(task: Task, heard: Mapping[str, Sequence[Step]]) -> str:
    """What was heard, each message under its speaker's name, then the task: the answer's form is last."""
    parts = []
    for scope, steps in heard.items():
        if steps:
            parts.append(HEADINGS[scope])
            parts.extend(f"[{step.agent}]\n{step.text.strip()}" for step in steps)
    return "\n\n".join([*parts, task.prompt])


class _Turn:
    """One turn: a model call; a second one where the program of the first failed."""

    def __init__(self, agent: Agent, ask: ChatModel, messages: list[dict[str, str]]) -> None:
        self.agent, self.ask, self.messages = agent, ask, messages
        self.text = ""
        self.error: str | None = None
        self.calls: list[Call] = []
        self.replies: list[Reply] = []
        self.started_at: float | None = None
        self.ended_at: float | None = None

    def take(self) -> None:
        """Ask; run the program if there is one; show its error to the agent once."""
        for attempt in range(2):
            reply = self._ask()
            if reply is None:
                return
            self.text = reply.text
            ran = self._run()
            if ran is None:
                return
            if ran.error is None:
                self.text += f"\n\nThe program was run. The answer is {ran.result}"
                return
            if attempt == 0:
                told = f"Your program failed: {ran.error}\nMend it and give the whole program again."
                self.messages += [
                    {"role": "assistant", "content": reply.text},
                    {"role": "user", "content": told},
                ]

    def _ask(self) -> Reply | None:
        begun = time.time()
        try:
            reply = self.ask(tuple(self.messages))
        except ModelError as error:
            reply, self.error = None, str(error)
        done = time.time()
        timed = reply if isinstance(reply, TimedReply) else None
        if self.started_at is None:
            self.started_at = timed.started_at if timed else begun
        self.ended_at = timed.ended_at if timed else done
        if reply is None:
            return None
        self.replies.append(reply)
        if reply.finish_reason in ("refusal", "content_filter"):
            self.error = f"the model refused: {' '.join(reply.text.split())[:200] or 'no reason given'}"
            return None
        if not reply.text.strip():
            self.error = "the model gave an empty reply"
        return reply

    def _run(self) -> Ran | None:
        if self.agent.run is None or not self.text.strip():
            return None
        ran = self.agent.run(self.text)
        if ran is not None:
            self.calls.append(
                Call(
                    id=f"{self.agent.name}.{len(self.calls) + 1}",
                    tool="python",
                    arguments=msgspec.json.encode({"code": ran.code}).decode(),
                    result=ran.result,
                    error=ran.error,
                    started_at=self.ended_at,  # and no end: a trace made anew of kept replies is the same
                )
            )
        return ran

    @property
    def cut(self) -> bool:
        """Whether a reply of the turn ended at the limit on tokens, and not where the model ends it."""
        return any(reply.finish_reason == "length" for reply in self.replies)

    def usage(self) -> Usage | None:
        """Of all replies of the turn; None where there is none."""
        if not self.replies:
            return None
        return Usage(
            tokens_in=_sum([reply.tokens_in for reply in self.replies]),
            tokens_out=_sum([reply.tokens_out for reply in self.replies]),
            tokens_cached=_sum([reply.tokens_cached for reply in self.replies]),
            tokens_reasoning=_sum([reply.tokens_reasoning for reply in self.replies]),
            cost_usd=_sum([reply.cost_usd for reply in self.replies]),
            model=self.replies[-1].model or None,
        )


def _sum(amounts: Sequence[Amount | None]) -> Amount | None:
    """The total; None where a part of it is not known."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known[1:], known[0]) if known and len(known) == len(amounts) else None
