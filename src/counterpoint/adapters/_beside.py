"""Files that lie beside a trace and say more of it: who failed, what was right, what the task was.

What is not there, or cannot be read, says nothing: a trace is never refused for a file beside it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from counterpoint.adapters._chat_log import Names
from counterpoint.json_text import parse_json

__all__ = ["beside", "failure_labels", "stem"]

_MAX_BYTES = 16 * 2**20
_LABEL_FILE = re.compile(r".*(label|ground_truth).*\.json", re.IGNORECASE)
_SHORTEST_PREFIX = 8
"""Of an id that a file name has only the beginning of."""


def stem(name: str) -> str:
    """The file's name without folder and extensions.

    >>> stem("runs/path_0.jsonl.gz")
    'path_0'
    """
    return re.sub(r"(\.\w{1,5}){1,2}$", "", os.path.basename(name))


def beside(name: str, other: str) -> bytes | None:
    """The content of the file ``other`` in the folder of ``name``; None where there is none to be read."""
    if name == "-":
        return None
    try:
        path = os.path.join(os.path.dirname(name), other)
        if not os.path.isfile(path) or os.path.getsize(path) > _MAX_BYTES:
            return None
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError):
        return None


def failure_labels(name: str, names: Names) -> dict[str, Any]:
    """Labels of the failed run in file ``name``, from a file of labels in its folder; empty without one.

    The one that is the root cause, else the first one, is ``mistake_agent``, ``mistake_step`` (from 0),
    ``mistake_type`` and ``mistake_reason``; all are in ``failures``. Agents are spelled as in ``names``.
    """
    for run in _labeled_runs(name):
        failures = [
            failure for failure in run["failures"] if isinstance(failure, dict) and _step(failure) is not None
        ]
        if not failures or not _is_of(str(run.get("trajectory_id")), stem(name)):
            continue
        cause = run.get("root_cause")
        cause = cause if isinstance(cause, dict) else {}
        same = [failure for failure in failures if failure.get("failure_id") == cause.get("failure_id")]
        told = [_told(failure, names) for failure in failures]
        root = told[failures.index(same[0])] if same and "failure_id" in cause else told[0]
        labels = {f"mistake_{key}": value for key, value in root.items()}
        if cause.get("reason_for_root_cause"):
            labels["mistake_reason"] = str(cause["reason_for_root_cause"])
        return labels | {"failures": told}
    return {}


def _labeled_runs(name: str) -> Iterator[dict[str, Any]]:
    try:
        files: Sequence[str] = sorted(os.listdir(os.path.dirname(name) or ".")) if name != "-" else ()
    except (OSError, ValueError):
        return
    for file in files:
        if not _LABEL_FILE.fullmatch(file) or (content := beside(name, file)) is None:
            continue
        try:
            runs, _ = parse_json(content)
        except ValueError:
            continue
        for run in runs if isinstance(runs, list) else []:
            if isinstance(run, dict) and isinstance(run.get("failures"), list):
                yield run


def _is_of(id: str, stem: str) -> bool:
    """Is this the id of the run that the file is named after, which may have lost its end?"""
    last = stem.rpartition("_")[2]
    return id in (stem, last) or (len(last) >= _SHORTEST_PREFIX and id.startswith(last))


def _step(failure: dict[str, Any]) -> int | None:
    """The item that failed, from 0; they are counted from 1."""
    step = str(failure.get("step_number")).strip()
    return int(step) - 1 if step.isdecimal() and int(step) > 0 else None


def _told(failure: dict[str, Any], names: Names) -> dict[str, Any]:
    agent = str(failure.get("failed_agent") or "")
    known = {
        "agent": names.known(agent) or agent,
        "step": _step(failure),
        "type": str(failure.get("failure_category") or ""),
        "reason": str(failure.get("step_reason") or failure.get("category_reason") or ""),
    }
    return {key: value for key, value in known.items() if value != ""}
