"""Roles: who an agent is told to be. Their prompts are data, `roles.toml` beside this file, with a version.

    role("code_writer", "choice").system
    roles_id()                                    # 'roles/1@0f3a9c21': what the config of a run records

Conventions
-----------
* A role's system prompt is the same for every task but for one paragraph by kind of answer (number, choice,
  text). How an answer is written down stands at the end of the question, not here.
* ``adversarial`` marks a role that is told to argue for a wrong answer: traces name such agents.

Differences from the paper
--------------------------
GEMMAS names its roles (analyst, code writer, math solver, adversary, and FinalRefer, here ``decider``) and
does not publish its prompts; these are our own. In public code the adversary is honest unless it is
configured otherwise; ours never is.

Source: ours; the roles are those of Lee et al. GEMMAS. EMNLP 2025, Industry Track (arXiv:2507.13190),
section 4.
"""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from counterpoint.errors import UsageError
from counterpoint.registry import suggest

__all__ = ["Role", "role", "role_names", "roles_id"]

KINDS = ("number", "choice", "text")


@dataclass(frozen=True)
class Role:
    """A part that an agent plays."""

    name: str
    summary: str
    system: str
    """The system prompt, worded for one kind of answer."""
    writes_code: bool = False
    """The program in its messages is to be run."""
    adversarial: bool = False
    """It is told to argue for a wrong answer."""


def role(name: str, kind: str = "number") -> Role:
    """The role ``name``, worded for answers of ``kind``; a UsageError suggests the nearest name.

    >>> role("adversary").adversarial, role("code_writer", "choice").writes_code
    (True, True)
    """
    known = _data()[1]
    if name not in known:
        raise UsageError(f"no role {name!r}{suggest(name, known)}; there are: {', '.join(known)}")
    if kind not in KINDS:
        raise UsageError(f"no kind of answer {kind!r}: it is {', '.join(KINDS)}")
    found = known[name]
    parts = (" ".join(found.get(part, "").split()) for part in ("all", kind))
    return Role(
        name=name,
        summary=found["summary"],
        system="\n".join(filter(None, parts)),
        writes_code=found.get("writes_code", False),
        adversarial=found.get("adversarial", False),
    )


def role_names() -> list[str]:
    """Every role, in the order of the file."""
    return list(_data()[1])


def roles_id() -> str:
    """Version and hash of the prompts: another id, another experiment."""
    return _data()[0]


@cache
def _data() -> tuple[str, dict[str, dict[str, Any]]]:
    content = files("counterpoint.runtime").joinpath("roles.toml").read_bytes()
    roles = tomllib.loads(content.decode())
    digest = hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()
    return f"roles/{roles.pop('version')}@{digest[:8]}", roles
