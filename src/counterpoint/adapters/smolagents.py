"""smolagents: the memory of an agent, ``agent.memory.get_full_steps()``, or a ``RunResult``, as JSON.

::

    [{"task": "Population of Lyon?"},
     {"step_number": 1, "timing": {"start_time": 1796048679.3, "end_time": 1796048681.6},
      "model_input_messages": [{"role": "user", "content": [{"type": "text", "text": "New task: ..."}]}],
      "model_output": null, "token_usage": {"input_tokens": 1078, "output_tokens": 31},
      "tool_calls": [{"id": "c1", "function": {"name": "searcher", "arguments": {"task": "..."}}}],
      "observations": "Here is the final answer from your managed agent 'searcher':\\n..."},
     {"step_number": 2, ..., "action_output": "About half a million.", "is_final_answer": true}]

What counts
-----------
* The steps of a run are one turn of the agent, split where a managed agent answers. Its own name is not in
  the file: it is called ``manager`` (see ``--rename-agent``).
* A managed agent shows in its caller's memory only: its turn is the task that it was told, which is in the
  call, or for agents that write code somewhere in the code, and the final answer that came back.
* **Not in the file**: what managed agents did inside, and their tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from counterpoint.adapters._messages import (
    Chat,
    ToolCall,
    as_json,
    as_text,
    chats,
    json_or_text,
    string_values,
)
from counterpoint.adapters._messages import tool_call as called
from counterpoint.adapters._source import each, opening
from counterpoint.adapters._times import seconds
from counterpoint.adapters._transcript import Speaker, Transcript
from counterpoint.adapters._usage import usage_of
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Trace

__all__ = ["read", "sniff"]

MANAGER = "manager"
_ANSWERS = re.compile(r"Here is the final answer from your managed agent '([^'\n]+)':\n?")
_SUMMARY = "\n\nFor more detail, find below a summary of this agent's work"
_OUTPUT = "\nLast output from code snippet:"
_MARKS = {"timing", "observations", "model_output", "action_output", "code_action"}


def sniff(source: Source) -> bool:
    """Steps with a number, and what smolagents notes of one."""
    steps = _steps(opening(source).value)
    return any(_is_action(step) for step in steps[:4])


def _steps(value: Any) -> list[Any]:
    """The steps of a memory, or of the result of a run."""
    if isinstance(value, dict) and "state" in value:
        value = value.get("steps", value.get("messages"))
    return value if isinstance(value, list) else []


def _is_action(step: Any) -> bool:
    return isinstance(step, dict) and "step_number" in step and bool(_MARKS & set(step))


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every memory; a TraceError in place of each record that is none."""
    yield from each(source, partial(_memory, source=source.name))


def _memory(value: Any, *, source: str) -> Trace:
    steps = [step for step in _steps(value) if isinstance(step, dict)]
    if not any(map(_is_action, steps)):
        raise TraceError("not the memory of a smolagents agent")
    transcript = Transcript()
    tasks = [step["task"] for step in steps if isinstance(step.get("task"), str)]
    speaker: Speaker | None = None
    for step in steps:
        if "system_prompt" in step:
            continue  # It stands in the model's input, too.
        if "task" in step or speaker is None:
            if speaker is not None:
                speaker.done()
            speaker = transcript.speaker(MANAGER)
            speaker.hear(*chats(step.get("task"), "user"))
        if _is_action(step):
            _act(step, speaker, transcript)
        elif step.get("plan"):
            _think(step, speaker)
    if speaker is not None:
        speaker.done()
    return transcript.trace(
        source=source, format="smolagents", system="smolagents", task=tasks[0] if tasks else ""
    )


def _think(step: dict[str, Any], speaker: Speaker) -> None:
    """A planning step."""
    at = _times(step)[0]
    speaker.say(Chat(as_text(step["plan"]), "assistant"), usage_of(step.get("token_usage")), at=at)


def _times(step: dict[str, Any]) -> tuple[float | None, float | None]:
    timing = step.get("timing")
    timing = timing if isinstance(timing, dict) else {}
    return seconds(timing.get("start_time")), seconds(timing.get("end_time"))


def _act(step: dict[str, Any], speaker: Speaker, transcript: Transcript) -> None:
    began, ended = _times(step)
    error = step.get("error")
    trouble = as_text(error.get("message") or "error") if isinstance(error, dict) else ""
    calls = _calls(step)
    given = chats(step.get("model_input_messages"))
    speaker.say(
        Chat(_said(step, calls), "assistant", tuple(call.id for call in calls), calls=calls),
        usage_of(step.get("token_usage")),
        at=began,
        shown=[*given] if given else None,
        error=None if calls else trouble or None,
    )
    observed = step.get("observations")
    observed = observed if isinstance(observed, str) else ""
    waiting = list(calls)
    for call, agent, answer in _answers(observed, calls):
        managed = transcript.speaker(agent, inside=speaker.call(call.id))
        if call.name == agent:
            managed.hear(*(Chat(text, "user") for text in string_values(json_or_text(call.arguments))))
        managed.say(Chat(answer, "assistant"), until=ended)
        managed.done()
        if call in waiting and call.name == agent:
            waiting.remove(call)
            speaker.result(call.id, answer, at=ended)
    for call in waiting[-1:]:  # Of several calls in a step the output is one text.
        speaker.result(call.id, trouble or _ANSWERS.split(observed)[0], failed=bool(trouble), at=ended)


def _calls(step: dict[str, Any]) -> tuple[ToolCall, ...]:
    """The tool calls of a step; the one that gives the final answer is speech."""
    return tuple(call for call in _listed(step) if call.name != "final_answer")


def _listed(step: dict[str, Any]) -> list[ToolCall]:
    listed = step.get("tool_calls")
    found = [called(each) for each in listed] if isinstance(listed, list) else []
    return [
        ToolCall(call.id or f"step {step['step_number']}, call {place}", call.name, call.arguments)
        for place, call in enumerate(found)
        if call is not None
    ]


def _said(step: dict[str, Any], calls: tuple[ToolCall, ...]) -> str:
    output = step.get("action_output")
    if output is not None and (step.get("is_final_answer") or not calls):
        return output if isinstance(output, str) else as_json(output)
    # Agents that write no code note a final answer in the call alone.
    final = [call.arguments for call in _listed(step) if call.name == "final_answer"]
    spoken = [as_text(step["model_output"])] if step.get("model_output") else []
    return "\n\n".join(spoken + string_values([json_or_text(arguments) for arguments in final]))


def _answers(observed: str, calls: tuple[ToolCall, ...]) -> Iterator[tuple[ToolCall, str, str]]:
    """Final answers of managed agents among the observations, each with the call behind it."""
    pieces = _ANSWERS.split(observed)
    told: set[tuple[str, str]] = set()
    left = list(calls)
    for agent, text in zip(pieces[1::2], pieces[2::2], strict=True):
        answer = text.partition(_SUMMARY)[0].partition(_OUTPUT)[0].strip()
        if (agent, answer) in told or not calls:  # What code printed and gave back stands there twice.
            continue
        told.add((agent, answer))
        own = [call for call in left if call.name == agent]
        call = own[0] if own else calls[0]
        if own:
            left.remove(call)
        yield call, agent, answer
