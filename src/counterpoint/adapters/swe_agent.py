"""SWE-agent: the trajectory of one agent at work in a shell (``.traj``).

Sample::

    {"environment": "swe_main",
     "trajectory": [{"thought": "Look first.", "action": "ls", "response": "Look first.\\n```\\nls\\n```",
                     "observation": "main.py", "state": "{}"}],
     "history": [{"role": "system", "content": "You fix bugs.", "agent": "primary"},
                 {"role": "user", "content": "Fix issue 3.", "agent": "primary"},
                 {"role": "assistant", "content": "Look first. ...", "action": "ls", "agent": "primary"}],
     "info": {"exit_status": "submitted", "submission": "...",
              "model_stats": {"tokens_sent": 10, "tokens_received": 5, "api_calls": 1, "instance_cost": 0.1}}}

What counts
-----------
* One item of the trajectory is one step with one call: the command is the call, the observation its result.
  The step's text is the whole response.
* The task is the first message of the user that is no demonstration; the submission is the answer.
* An agent is called as in ``history``, else ``primary``.

What the format cannot tell: who heard whom, for there is one agent: metrics of a team are undefined. Tokens
and money are known for the whole run only; times not at all.

Source: Yang et al., SWE-agent: Agent-Computer Interfaces Enable Automated Software Engineering, 2024.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from counterpoint.adapters._chat_log import content_text, items
from counterpoint.adapters._messages import whole
from counterpoint.adapters._source import each, listed, opening
from counterpoint.adapters._transfers import Turn, add_broadcast, to_trace
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.trace import Call, Trace

__all__ = ["read", "sniff"]


def sniff(source: Source) -> bool:
    """A ``trajectory`` of actions and observations."""
    trajectory = opening(source).record.get("trajectory")
    if not isinstance(trajectory, list) or not trajectory or not isinstance(trajectory[0], dict):
        return False
    return {"action", "observation"} <= set(trajectory[0])


def read(source: Source) -> Iterator[Trace | TraceError]:
    """Every trajectory."""
    yield from each(source, _trace, split=listed)


def _trace(run: Any) -> Trace:
    trajectory = items(run, "trajectory", "a SWE-agent run")
    history = run.get("history")
    told = [item for item in history if isinstance(item, dict)] if isinstance(history, list) else []
    real = [item for item in told if not item.get("is_demo")]
    speakers = [str(item.get("agent") or "primary") for item in real if item.get("role") == "assistant"]
    task = next((content_text(item.get("content")) for item in real if item.get("role") == "user"), "")
    turns = [Turn("task", "user", task, "task")] if task else []
    for index, item in enumerate(trajectory):
        agent = speakers[index] if index < len(speakers) else "primary"
        turns.append(_turn(item, index, agent))
    add_broadcast(turns)
    info = run.get("info")
    info = info if isinstance(info, dict) else {}
    submission = info.get("submission")
    return to_trace(
        turns,
        id="",
        task=task,
        answer=submission.strip() if isinstance(submission, str) else None,
        system="SWE-agent",
        labels=_labels(run, info, told),
    )


def _turn(item: dict[str, Any], index: int, agent: str) -> Turn:
    action = content_text(item.get("action")).strip()
    text = content_text(item.get("response")) or content_text(item.get("thought"))
    turn = Turn(str(index), agent, text)
    if action:
        tool = action.split(maxsplit=1)[0]
        turn.calls = [Call(f"{index}-call", tool, action, content_text(item.get("observation")))]
    return turn


def _labels(run: dict[str, Any], info: dict[str, Any], told: list[dict[str, Any]]) -> dict[str, Any]:
    labels = {
        "environment": run.get("environment"),
        "exit_status": info.get("exit_status"),
        "system_prompt": next((item.get("content") for item in told if item.get("role") == "system"), None),
    }
    known: dict[str, Any] = {key: content_text(value) for key, value in labels.items() if value}
    stats = info.get("model_stats")
    # Where no call was counted the model was not asked through SWE-agent, and its zeros are no counts.
    if isinstance(stats, dict) and stats.get("api_calls"):
        cost = stats.get("instance_cost")
        known["run_usage"] = {
            "tokens_in": whole(stats.get("tokens_sent")),
            "tokens_out": whole(stats.get("tokens_received")),
            "cost_usd": cost if isinstance(cost, int | float) else None,
        }
    return known
