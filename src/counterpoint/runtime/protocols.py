"""How a discussion goes and who has the last word.

All of them let the team talk as the wiring says. They differ in what then becomes the team's answer:

* `Refer`: one more model call reads every agent's last message (GEMMAS's FinalRefer).
* `MajorityVote`: the answer that most agents commit to; of equally frequent ones that which got there first.
* `LastWord`: the last speaker's answer.

Conventions
-----------
* Who decides stands outside the team: a step of kind ``decision``, in the last round, heard by nobody.
* Only what was said in the last round is looked at. Where nobody said anything there is no answer, and no
  model is asked for one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from counterpoint.contracts import ChatModel, Wiring
from counterpoint.runtime.play import Agent, Discussion, Task, said, speak, talk
from counterpoint.runtime.roles import role
from counterpoint.trace import Step, Transfer

__all__ = ["TABLE", "LastWord", "MajorityVote", "Refer"]

TABLE: dict[str, str] = {
    "refer": "counterpoint.runtime.protocols:Refer",
    "vote": "counterpoint.runtime.protocols:MajorityVote",
    "last": "counterpoint.runtime.protocols:LastWord",
}


def _decider() -> Agent:
    found = role("decider")
    return Agent("FinalRefer", found.name, found.system)


@dataclass(frozen=True)
class Refer:
    """One more model call reads every agent's last message and answers for the team."""

    decider: Agent = field(default_factory=_decider)

    def discuss(self, task: Task, team: Sequence[Agent], wiring: Wiring, ask: ChatModel) -> Discussion:
        """The talk, then the decider's step, which is asked for."""
        steps = talk(task, team, wiring, ask)
        heard = _last_words(steps)
        if not heard:
            return Discussion(tuple(steps), None)
        step = speak(self.decider, task, {"within": heard}, ask, len(wiring.speaks) - 1)
        answer = task.read_final(step.text)
        decision = replace(step, kind="decision", answer=answer)
        return Discussion((*steps, decision), answer)


@dataclass(frozen=True)
class MajorityVote:
    """The answer that most agents commit to; of equally frequent ones that which got there first."""

    def discuss(self, task: Task, team: Sequence[Agent], wiring: Wiring, ask: ChatModel) -> Discussion:
        """The talk, then a step that states the vote; no model is asked for that."""
        steps = talk(task, team, wiring, ask)
        heard = _last_words(steps)
        if not heard:
            return Discussion(tuple(steps), None)
        answer = majority([step.answer for step in heard if step.answer is not None], task)
        now = max((step.ended_at or 0.0 for step in heard), default=time.time())
        decision = Step(
            id=f"{len(wiring.speaks) - 1}.MajorityVote",
            agent="MajorityVote",
            text="No agent committed to an answer." if answer is None else f"The answer is {answer}",
            kind="decision",
            round=len(wiring.speaks) - 1,
            heard=tuple(Transfer(step.id, "within", "explicit") for step in heard),
            answer=answer,
            started_at=now,
            ended_at=now,
        )
        return Discussion((*steps, decision), answer)


@dataclass(frozen=True)
class LastWord:
    """The last speaker's answer is the team's."""

    def discuss(self, task: Task, team: Sequence[Agent], wiring: Wiring, ask: ChatModel) -> Discussion:
        """The talk, and nothing after it."""
        steps = talk(task, team, wiring, ask)
        heard = _last_words(steps)
        answer = task.read_final(said(heard[-1].text, heard[-1].calls)) if heard else None
        return Discussion(tuple(steps), answer)


def _last_words(steps: Sequence[Step]) -> list[Step]:
    """What was said in the last round."""
    last = max((step.round or 0 for step in steps), default=0)
    return [step for step in steps if step.round == last and step.text.strip()]


def majority(answers: Sequence[str], task: Task) -> str | None:
    """The most frequent answer, as first written; of equally frequent ones that which got there first."""
    groups: list[list[int]] = []
    for position, answer in enumerate(answers):
        group = next((group for group in groups if task.same(answers[group[0]], answer)), None)
        if group is None:
            groups.append([position])
        else:
            group.append(position)
    if not groups:
        return None
    top = max(map(len, groups))
    winner = min((group for group in groups if len(group) == top), key=lambda group: group[-1])
    return answers[winner[0]]
