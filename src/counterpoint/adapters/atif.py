"""ATIF: the Agent Trajectory Interchange Format of Harbor, Terminus-2, OpenHands and others.

::

    {"schema_version": "ATIF-v1.6", "session_id": "s1",
     "agent": {"name": "terminus-2", "version": "2.0.0", "model_name": "gpt-4o"},
     "steps": [
       {"step_id": 1, "source": "user", "message": "Create hello.txt."},
       {"step_id": 2, "source": "agent", "message": "I ask.", "timestamp": "2026-11-30T14:00:00Z",
        "tool_calls": [{"tool_call_id": "c1", "function_name": "delegate", "arguments": {"to": "helper"}}],
        "observation": {"results": [{"source_call_id": "c1", "content": "Done.",
                        "subagent_trajectory_ref": [{"session_id": "s2", "trajectory_path": "s2.json"}]}]},
        "metrics": {"prompt_tokens": 100, "completion_tokens": 20, "cost_usd": 0.00045}}],
     "final_metrics": {"total_prompt_tokens": 100, "total_completion_tokens": 20}}

What counts
-----------
* Steps of an agent up to the next word of the user are one turn, split where a sub-agent ran. Copied context
  is shown, but not said anew.
* Sub-agents are trajectories of their own. One that is in the same file (embedded, in a list, on another
  line) runs inside the call that refers to it. Of one in another file nothing is known but its id, in
  ``labels["subagents_elsewhere"]``: ``--group-by session.id`` brings such files together by time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from counterpoint.adapters._items import Items
from counterpoint.adapters._messages import Chat, ToolCall, as_json, as_text, chats
from counterpoint.adapters._source import opening
from counterpoint.adapters._spans import Span
from counterpoint.adapters._times import seconds
from counterpoint.adapters._transcript import Speaker, Transcript
from counterpoint.adapters._usage import run_usage, usage_of
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]


def sniff(source: Source) -> bool:
    """An object whose ``schema_version`` is ATIF's."""
    return str(opening(source).record.get("schema_version", "")).startswith("ATIF")


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every trajectory that no other one refers to; a TraceError in place of each record that is none."""
    found: dict[str, dict[str, Any]] = {}
    items = Items(source, 'not a trajectory: it has no "steps"')
    yield from items.give(partial(_collect, found=found))
    family = _Family(found)
    roots = [name for name in found if name not in family.inner] or list(found)
    for name in roots:
        try:
            yield family.trace(name, source.name, items.warnings)
        except TraceError as error:
            yield error


def _collect(trajectory: Any, found: dict[str, dict[str, Any]]) -> bool:
    """Adds a trajectory and those embedded in it, by id; is it one?"""
    if not isinstance(trajectory, dict) or not isinstance(trajectory.get("steps"), list):
        return False
    name = str(trajectory.get("trajectory_id") or trajectory.get("session_id") or "")
    while not name or name in found:
        name += "~"
    found[name] = trajectory
    for each in _list(trajectory, "subagent_trajectories"):
        _collect(each, found)
    return True


def _list(holder: Any, key: str) -> list[Any]:
    value = holder.get(key) if isinstance(holder, Mapping) else None
    return value if isinstance(value, list) else []


class _Family:
    """The trajectories of a file, and which of them runs inside which call."""

    def __init__(self, found: Mapping[str, dict[str, Any]]) -> None:
        self._found = found
        self.inner = {
            name
            for trajectory in found.values()
            for step in _list(trajectory, "steps")
            for name in self._referred(step)
        }
        self._told: set[str] = set()
        self._elsewhere: list[str] = []

    def _referred(self, step: Any) -> Iterator[str]:
        observation = step.get("observation") if isinstance(step, dict) else None
        for result in _list(observation, "results"):
            yield from _references(result)

    def trace(self, name: str, source: str, warnings: Sequence[str]) -> Trace:
        trajectory = self._found[name]
        self._told, self._elsewhere = {name}, []
        transcript = Transcript()
        self._tell(trajectory, transcript, None)
        agent = _agent(trajectory)
        extra = agent.get("extra")
        parent = extra.get("parent_session_id") if isinstance(extra, dict) else None
        session = trajectory.get("session_id")
        labels = {
            "session.id": parent or session,
            "session_id": session,
            "agent_version": agent.get("version"),
            "subagents_elsewhere": self._elsewhere,
        }
        labels = {key: value for key, value in labels.items() if isinstance(value, str | list) and value}
        if not any(isinstance(step, dict) and step.get("metrics") for step in _list(trajectory, "steps")):
            labels |= run_usage(_totals(trajectory.get("final_metrics")))
        return transcript.trace(
            source=source,
            format="atif",
            warnings=warnings,
            system=str(agent.get("name") or "atif"),
            task=_task(trajectory),
            labels=labels,
        )

    def _tell(self, trajectory: dict[str, Any], transcript: Transcript, inside: Span | None) -> None:
        """Puts a trajectory into the transcript; ``inside``: the call that it answers."""
        agent = _agent(trajectory)
        name = str(agent.get("name") or "agent")
        history: list[Chat] = []
        speaker: Speaker | None = None
        for step in _list(trajectory, "steps"):
            if not isinstance(step, dict):
                continue
            source, said = step.get("source"), _said(step)
            if source != "agent" or step.get("is_copied_context") is True:
                if speaker is not None and source == "user":
                    speaker.done()
                    speaker = None
                history.append(said if source == "agent" else Chat(said.text, str(source or "user")))
                history += _results(step) if source == "agent" else []
                if speaker is not None:
                    speaker.hear(history[-1])
                    self._observe(step, speaker, transcript)
                continue
            if speaker is None:
                speaker = transcript.speaker(name, inside=inside, at=seconds(step.get("timestamp")))
                speaker.hear(*history)
            model = step.get("model_name") or agent.get("model_name")
            speaker.say(said, usage_of(step.get("metrics"), model=model), at=seconds(step.get("timestamp")))
            history += [said, *_results(step)]
            self._observe(step, speaker, transcript)
        if speaker is not None:
            speaker.done()

    def _observe(self, step: dict[str, Any], speaker: Speaker, transcript: Transcript) -> None:
        """The results of a step's calls, and the sub-agents that ran in them."""
        calls = _said(step).calls
        for result in _list(step.get("observation"), "results"):
            if not isinstance(result, dict):
                continue
            call = str(result.get("source_call_id") or (calls[-1].id if calls else ""))
            for name in _references(result):
                if name in self._found and name not in self._told:
                    self._told.add(name)
                    self._tell(self._found[name], transcript, speaker.call(call) if call else speaker.span)
                elif name not in self._found:
                    self._elsewhere.append(name)
            text = as_text(result.get("content"))
            if call:
                speaker.result(call, text)
            elif text:
                speaker.hear(Chat(text, "tool"))


def _agent(trajectory: Mapping[str, Any]) -> dict[str, Any]:
    agent = trajectory.get("agent")
    return agent if isinstance(agent, dict) else {}


def _references(result: Any) -> Iterator[str]:
    """Ids of the trajectories that a result refers to."""
    found = result.get("subagent_trajectory_ref") if isinstance(result, dict) else None
    for reference in found if isinstance(found, list) else [found]:
        name = (
            reference.get("trajectory_id") or reference.get("session_id")
            if isinstance(reference, dict)
            else None
        )
        if isinstance(name, str) and name:
            yield name


def _said(step: dict[str, Any]) -> Chat:
    calls = tuple(
        ToolCall(
            str(call.get("tool_call_id") or f"step {step.get('step_id')}, call {place}"),
            str(call.get("function_name") or ""),
            as_json(call.get("arguments")),
        )
        for place, call in enumerate(_list(step, "tool_calls"))
        if isinstance(call, dict)
    )
    message = step.get("message")
    text = message if isinstance(message, str) else "\n".join(chat.text for chat in chats(message))
    return Chat(text, "assistant", tuple(call.id for call in calls), calls=calls)


def _results(step: dict[str, Any]) -> list[Chat]:
    results = [each for each in _list(step.get("observation"), "results") if isinstance(each, dict)]
    return [Chat(as_text(each.get("content")), "tool") for each in results]


def _task(trajectory: dict[str, Any]) -> str:
    steps = (step for step in _list(trajectory, "steps") if isinstance(step, dict))
    return next((_said(step).text.strip() for step in steps if step.get("source") == "user"), "")


def _totals(metrics: Any) -> dict[str, Any]:
    """The totals of a run under the names of a step's."""
    found = metrics if isinstance(metrics, dict) else {}
    return {key.removeprefix("total_"): value for key, value in found.items()}
