"""What the teams of every script say: our own texts, the same whichever framework carries them.

Plain data only, for this file is read twice: by `run.py`, which serves the lines, and inside the framework's
own environment, where this project is not installed. The texts are long enough to be found where they are
pasted into a prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

TASK = "Write one sentence about the old lighthouse."
PLAN = "First name the year, then say who keeps the lighthouse today – no more than twenty words."
ROUGH = "The lighthouse is very old, and somebody has kept it since the day on which it was built."
OBJECTION = "The year is missing, and nobody learns who keeps the lighthouse. Please write it again."
DRAFT = "Built in 1871, the lighthouse is kept by two sisters who still climb its stairs each night."
VERDICT = "Good: it names the year and the keepers, and it has fewer than twenty words. APPROVE"
YEAR = "The parish register says that the lighthouse was built in 1871."

PLANNER = "You are the planner. Say in one sentence how the text is to be written."
WRITER = "You are the writer. Write what the plan asks for."
CRITIC = "You are the critic. Object, or say APPROVE."


@dataclass(frozen=True)
class Say:
    """One reply of the scripted model that is more than a text."""

    text: str = ""
    tool: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
