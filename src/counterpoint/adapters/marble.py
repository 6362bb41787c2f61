"""MARBLE / MultiAgentBench: teams that work in iterations; one run a file, or one a line.

Sample::

    {"task": "Find the cause.", "coordination_mode": "graph", "token_usage": 92322,
     "iterations": [
        {"iteration": 1, "summary": "It is the index.", "continue_simulation": false,
         "task_assignments": {"agent1": "Look at locks.", "agent2": "Look at indexes."},
         "task_results": [
            {"agent_id": "agent1", "result": "Result from the model:\\nResult from the function:{...}"},
            {"agent2": "Result from the model:No index is used."}],
         "communications": ["In Session 7f \\nFrom agent1 to agent2: Hi.\\nFrom agent2 to agent1: Good."]
        }],
     "task_evaluation": {"root_cause": ["MISSING_INDEXES"], "predicted": "It is the index."}}

Results are listed as ``{"agent_id", "result"}`` or as ``{agent: result}``. In chains an iteration has one
``current_agent`` and its ``result``; in trees ``root_agent``, a list of ``task_assignments``, each of them
from one agent to its children, results from the root down, and communications in one text, or none.

What counts
-----------
* One result is one step: what the model said; if it only called a function, what that gave. A result that is
  a session of messages is no step of its own: each message is one, heard by whom it is addressed to
  (explicit). In a session with oneself every message is written twice, and counts once.
* Who heard whom is taken from these messages, never from ``coordination_mode``, which mostly says ``graph``
  whatever the run was. A chain hands over from agent to agent (explicit), a tree calls its children and gets
  their results (call).
* The summary is the planner's, who is no agent of the team: it hears every step of its iteration (broadcast).
  The last one is the decision and the answer, those before are control: nothing says who was shown them.
* The round is the place of the iteration; its number is not always the next one.
* Token use is one number for the run: ``labels["run_usage"]``. Scores are the judge's, in ``labels``.
* Of database runs the true root causes are the gold answer (and ``labels["root_cause"]``), the answer is what
  was predicted. Texts are not compared: a run is correct iff every true cause is among the predicted ones,
  or, where the prediction is a text, stands in it as a word. Further causes do not count against it, since
  the planner is asked for more than there are.

What the format cannot tell: times, tokens a step, which function was called (databases name it) and with what
arguments, and what an agent that got no message was shown beyond its task.

Source: Zhu et al., MultiAgentBench, ACL 2025.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from counterpoint.adapters._chat_log import content_text, hand_over, items, json_text, objects
from counterpoint.adapters._messages import whole
from counterpoint.adapters._source import each, listed, mentions, opening
from counterpoint.adapters._transfers import Message, Turn, add_context, to_trace
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.json_text import parse_json
from counterpoint.trace import Call, Trace

__all__ = ["read", "sniff"]

PLANNER = "planner"

_MODEL, _FUNCTION = "Result from the model:", "Result from the function:"
_SESSION = re.compile(r"^In Session (\S+)[ \t]*\n", re.MULTILINE)
_MESSAGE = re.compile(r"^From ([^\n:]{1,80}?) to ([^\n:]{1,80}?): ?", re.MULTILINE)
_LABELS = (
    "agent_kpis",
    "code_quality",
    "communication_scores",
    "coordination_mode",
    "planning_scores",
    "total_milestones",
)


def sniff(source: Source) -> bool:
    """A mode of coordination, and iterations; a long task may push the latter beyond the head."""
    run = opening(source).record
    return "coordination_mode" in run and ("iterations" in run or mentions(source, "iterations"))


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every run."""
    yield from each(source, _trace, split=listed)


def _trace(run: Any) -> Trace:
    iterations = items(run, "iterations", "a MARBLE run")
    team = _Team({agent for iteration in iterations for agent in _members(iteration)})
    for iteration in iterations:
        team.add(iteration)
    hand_over(team.turns, team.targets)
    task = content_text(run.get("task"))
    add_context(team.turns, given=[task])
    answer = run.get("final_output")
    if team.summary is not None:
        team.summary.kind = "decision"
        answer = answer or team.summary.text
    return to_trace(
        team.turns,
        id="",
        task=task,
        system="MARBLE",
        **{"answer": content_text(answer) if answer else None, **_diagnosis(run)},
        labels=_labels(run),
    )


def _diagnosis(run: dict[str, Any]) -> dict[str, Any]:
    """Gold, answer and correctness of a database run; of any other nothing."""
    verdict = run.get("task_evaluation")
    causes = verdict.get("root_cause") if isinstance(verdict, dict) else None
    if not isinstance(verdict, dict) or not isinstance(causes, list) or not causes:
        return {}
    true = [content_text(cause) for cause in causes]
    facts: dict[str, Any] = {"gold": ", ".join(true)}
    predicted = verdict.get("predicted")
    if isinstance(predicted, list):
        named = [content_text(cause) for cause in predicted]
        facts |= {"answer": ", ".join(named), "correct": set(true) <= set(named)}
    elif isinstance(predicted, str) and predicted.strip():
        found = (re.search(rf"(?<!\w){re.escape(cause)}(?!\w)", predicted, re.IGNORECASE) for cause in true)
        facts |= {"answer": predicted.strip(), "correct": all(found)}
    return facts


def _labels(run: dict[str, Any]) -> dict[str, Any]:
    labels = {key: run[key] for key in _LABELS if run.get(key) not in (None, {}, [])}
    verdict = run.get("task_evaluation")
    if isinstance(verdict, dict) and isinstance(verdict.get("root_cause"), list):
        labels["root_cause"] = verdict["root_cause"]
    elif verdict not in (None, {}):
        labels["task_evaluation"] = verdict
    if (tokens := whole(run.get("token_usage"))) is not None:
        labels["run_usage"] = {"tokens": tokens}
    return labels


# --- turns ---------------------------------------------------------------------------------------


class _Said(NamedTuple):
    """One message of a session."""

    speaker: str
    hearer: str
    text: str


class _Result(NamedTuple):
    """What an agent did in an iteration."""

    agent: str
    spoken: str
    function: str
    """What the function that it called gave; empty without a call."""
    output: dict[str, Any]
    """The same as an object, where it is one."""


class _Team:
    """The turns of a run while its iterations come in."""

    def __init__(self, agents: set[str]) -> None:
        self.turns: list[Turn] = []
        self.targets: dict[str, str] = {}
        """Id of a turn to the agent that it is addressed to."""
        self.summary: Turn | None = None
        """Of the last iteration."""
        self._agents = agents
        self._round = 0
        self._begin = 0
        """Where the turns of this iteration begin."""
        self._handing: str | None = None
        """Of a chain: the turn that chose the next agent."""

    def add(self, iteration: dict[str, Any]) -> None:
        self._begin = len(self.turns)
        results = list(_results(iteration))
        tasks = _tasks(iteration.get("task_assignments"))
        sessions = dict(_sessions(iteration.get("communications"), self._agents))
        tree = "root_agent" in iteration
        plans = self._plan(iteration.get("task_assignments"), results) if tree else {}
        worked: dict[str, list[Turn]] = {}
        # Children work before their parent, although its result is listed before theirs.
        for result in reversed(results) if tree else results:
            own = dict(_sessions(result.output.get("full_chat_history"), self._agents))
            own |= {name: said for name, said in sessions.items() if said[0].speaker == result.agent}
            sessions = {name: said for name, said in sessions.items() if name not in own}
            before = len(self.turns)
            self._act(result, tasks.get(result.agent, ""), list(own.values()))
            worked[result.agent] = [turn for turn in self.turns[before:] if turn.agent == result.agent]
            _call(result.agent, plans, worked)
        for said in sessions.values():
            self._converse(said, "", "")
        if "current_agent" in iteration and len(self.turns) > self._begin:
            if self._handing is not None:
                self.turns[self._begin].hear(self._handing, "explicit")
            self._handing = self.turns[-1].id
        self._summarize(content_text(iteration.get("summary")))
        self._round += 1

    def _turn(self, agent: str, text: str, task: str = "") -> Turn:
        turn = Turn(f"{self._round + 1}.{len(self.turns) - self._begin + 1}", agent, text, round=self._round)
        turn.shown = [[Message(task)]] if task else []
        self.turns.append(turn)
        return turn

    def _act(self, result: _Result, task: str, sessions: list[list[_Said]]) -> None:
        talk = "full_chat_history" in result.output and bool(sessions)
        for number, said in enumerate(sessions):
            self._converse(said, task, result.spoken if talk and number == 0 else "")
        if talk:
            return
        turn = self._turn(result.agent, result.spoken or result.function, task)
        if result.function:
            tool = content_text(result.output.get("function_name")) or "function"
            call = Call(f"{turn.id}-call", tool)
            failed = result.output.get("success") is False or result.output.get("status") in ("error", False)
            turn.calls = [
                replace(call, error=result.function) if failed else replace(call, result=result.function)
            ]

    def _converse(self, said: list[_Said], task: str, spoken: str) -> None:
        for number, one in enumerate(said):
            first = number == 0
            text = "\n\n".join(filter(None, [spoken if first else "", one.text]))
            turn = self._turn(one.speaker, text, task if first else "")
            self.targets[turn.id] = one.hearer

    def _summarize(self, text: str) -> None:
        self.summary = None
        if not text:
            return
        heard = self.turns[self._begin :]
        self.summary = self._turn(PLANNER, text)
        self.summary.kind = "control"
        for turn in heard:
            self.summary.hear(turn.id, "broadcast")

    # In a tree, every agent with children tells them their tasks, and works on when it has their results.

    def _plan(self, assignments: Any, results: list[_Result]) -> dict[str, Turn]:
        """A turn for each agent that gives tasks to others; by child."""
        order = [result.agent for result in results]
        plans: dict[str, Turn] = {}
        for tasks in assignments if isinstance(assignments, list) else []:
            given = _tasks(tasks)
            children = [agent for agent in order if agent in given]
            # Results go from the root down: the first child follows its parent.
            place = order.index(children[0]) if children else 0
            if place == 0:
                continue
            parent = order[place - 1]
            plan = self._turn(parent, "\n".join(given[child] for child in children))
            if parent in plans:
                plan.hear(plans[parent].id, "call")
            plans |= dict.fromkeys(children, plan)
        return plans


def _call(agent: str, plans: dict[str, Turn], worked: dict[str, list[Turn]]) -> None:
    """The first turn of ``agent`` in a tree heard its parent's plan, and what its own children did."""
    for turn in worked[agent][:1]:
        if agent in plans:
            turn.hear(plans[agent].id, "call")
        for child, plan in plans.items():
            for done in worked.get(child, ()) if plan.agent == agent else ():
                turn.hear(done.id, "call")


# --- the parts of an iteration -------------------------------------------------------------------


def _members(iteration: dict[str, Any]) -> set[str]:
    return {*_tasks(iteration.get("task_assignments")), *(result.agent for result in _results(iteration))}


def _tasks(assignments: Any) -> dict[str, str]:
    """Agent to task; of a list of such the first one of each agent."""
    if isinstance(assignments, list):
        merged: dict[str, str] = {}
        for part in assignments:
            merged = _tasks(part) | merged if isinstance(part, dict) else merged
        return merged
    if not isinstance(assignments, dict):
        return {}
    return {agent: content_text(task) for agent, task in assignments.items()}


def _results(iteration: dict[str, Any]) -> Iterator[_Result]:
    if "current_agent" in iteration:
        yield _result(iteration["current_agent"], iteration.get("result"))
        return
    for entry in objects(iteration.get("task_results") or [], '"task_results" of an iteration'):
        if "agent_id" in entry:
            yield _result(entry["agent_id"], entry.get("result"))
        else:
            yield from (_result(agent, result) for agent, result in entry.items())


def _result(agent: Any, result: Any) -> _Result:
    if not isinstance(agent, str) or not agent:
        raise TraceError(f'a result has no agent: its "agent_id" is {json_text(agent)[:40]}')
    spoken, _, function = content_text(result).partition(_FUNCTION)
    function = function.strip()
    try:
        output, _ = parse_json(function)
    except ValueError:
        output = None
    output = output if isinstance(output, dict) else {}
    return _Result(agent, spoken.strip().removeprefix(_MODEL).strip(), function, output)


def _sessions(value: Any, agents: set[str]) -> Iterator[tuple[str, list[_Said]]]:
    """Name and messages of each session in communications: a text, or a list of texts."""
    texts = value if isinstance(value, list) else [value]
    for text in texts:
        if isinstance(text, dict):
            text = text.get("full_chat_history")
        if not isinstance(text, str):
            continue
        parts = _SESSION.split(text)
        for name, part in zip(parts[1::2], parts[2::2], strict=True):
            if said := _messages(part, agents):
                yield name, said


def _messages(text: str, agents: set[str]) -> list[_Said]:
    """The messages of a session; only an agent of the team begins one."""
    begins = [match for match in _MESSAGE.finditer(text) if {match[1], match[2]} <= agents]
    ends = [match.start() for match in begins[1:]] + [len(text)]
    said = [
        _Said(match[1], match[2], text[match.end() : end].strip())
        for match, end in zip(begins, ends, strict=True)
    ]
    alone = all(one.speaker == one.hearer for one in said)
    return said[::2] if alone and said[::2] == said[1::2] else said
