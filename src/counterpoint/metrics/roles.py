"""Roles: the names that frameworks give to agents, mapped onto a vocabulary of fifteen.

Conventions
-----------
* A name is looked up as its words: camel case split, punctuation to spaces, case folded, a trailing number
  dropped (``WebSurfer_2`` is ``web surfer``).
* The order is: exact name, then the first pattern that is found in it, then the default of the node's kind
  (``agent_message``: other, ``tool_call``: tool, ``decision``: decision).
* Tool names are matched against the patterns for tools only: a tool called ``web_search`` is a tool.
* The built-in table is the union of the files in ``aliases/``, one family of frameworks a file; no name
  stands in two of them with different roles. A user's table is looked up before it.

Every table has a sha256 over its content: two numbers made with different tables are not comparable. A file::

    {"schema": "counterpoint.roles/1", "framework": "ours", "version": 1,
     "names": {"Red Team": "critic"}, "patterns": [["\\\\bscribe\\\\b", "memory"]]}

or, for short, just ``{"Red Team": "critic"}``.

Source: ForestBench maps actions onto canonical roles; the vocabulary and the tables are ours.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from counterpoint.errors import UsageError
from counterpoint.registry import suggest

__all__ = ["DEFAULT_ROLE", "ROLES", "SCHEMA", "NodeKind", "RoleTable", "coverage", "role_table", "words"]

SCHEMA = "counterpoint.roles/1"

ROLES: tuple[str, ...] = (
    "planner", "router", "researcher", "solver", "coder", "tool", "critic", "verifier", "tester",
    "debater", "reviser", "aggregator", "memory", "decision", "other",
)  # fmt: skip

NodeKind = Literal["agent_message", "tool_call", "decision"]

DEFAULT_ROLE: dict[NodeKind, str] = {"agent_message": "other", "tool_call": "tool", "decision": "decision"}

LONGEST_NAME = 80
"""Longer names are prose (a back story, a prompt): what they mention says little about who speaks."""

MOST_KNOWN = 10_000
"""Looked-up names that a table remembers at most."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NO_WORD = re.compile(r"[\W_]+")
_NUMBER = re.compile(r" ?\d+$")


def words(name: str) -> str:
    """The words of a name, as tables hold them.

    >>> words("WebSurfer_2"), words("Computer_terminal"), words("QAEngineer")
    ('web surfer', 'computer terminal', 'qa engineer')
    """
    split = _CAMEL.sub(" ", unicodedata.normalize("NFKC", name))
    return _NUMBER.sub("", _NO_WORD.sub(" ", split).strip().casefold())


@dataclass(frozen=True)
class RoleTable:
    """A mapping of names to roles."""

    name: str
    """``default``, or the path of the user's table in front of it."""
    sha256: str
    """Over the content of every file that the table is made of."""
    names: Mapping[str, str]
    patterns: tuple[tuple[re.Pattern[str], str], ...]
    tools: tuple[tuple[re.Pattern[str], str], ...]
    known: dict[tuple[str, ...], tuple[str, str]] = field(default_factory=dict, compare=False, repr=False)
    """What was looked up before: runs repeat few names many times."""

    def role(self, *names: str, kind: NodeKind = "agent_message") -> str:
        """The role of an action, from the names it goes by, the most telling first."""
        return self.resolve(*names, kind=kind)[0]

    def resolve(self, *names: str, kind: NodeKind = "agent_message") -> tuple[str, str]:
        """The role, and the name that it was read from (the last one where none is known)."""
        key = (kind, *names)
        if key not in self.known:
            if len(self.known) >= MOST_KNOWN:
                self.known.clear()
            self.known[key] = self._resolve(names, kind)
        return self.known[key]

    def _resolve(self, names: Sequence[str], kind: NodeKind) -> tuple[str, str]:
        readable = [(name, words(name)) for name in names if 0 < len(name.strip()) <= LONGEST_NAME]
        patterns = self.patterns
        if kind == "tool_call":
            patterns = self.tools
        else:
            for name, plain in readable:
                if plain in self.names:
                    return self.names[plain], name
        for name, plain in readable:
            for pattern, role in patterns:
                if pattern.search(plain):
                    return role, name
        return DEFAULT_ROLE[kind], readable[-1][0] if readable else ""


def role_table(aliases: str | Path | RoleTable = "default") -> RoleTable:
    """The table that ``aliases`` names: ``default``, or a file to look up before it.

    Raises UsageError for a file that is missing, is no role table, or names a role outside the vocabulary.
    """
    if isinstance(aliases, RoleTable):
        return aliases
    if str(aliases) == "default":
        return _builtin()
    path = Path(aliases)
    try:
        status = path.stat()
        return _user_table(str(path), status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise UsageError(f"role table {path}: {error.strerror or error}") from None


def coverage(roles: Sequence[str]) -> float | None:
    """Share of actions whose role is known, that is not ``other``; None without actions.

    >>> coverage(["planner", "other", "solver", "solver"])
    0.75
    """
    return sum(role != "other" for role in roles) / len(roles) if roles else None


@cache
def _builtin() -> RoleTable:
    folder = files("counterpoint.metrics").joinpath("aliases")
    found = sorted(item.name for item in folder.iterdir() if item.name.endswith(".json"))
    parts = [json.loads(folder.joinpath(name).read_text(encoding="utf-8")) for name in found]
    return _table("default", parts)


@lru_cache(maxsize=16)
def _user_table(path: str, changed_ns: int, size: int) -> RoleTable:
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"role table {path}: not JSON ({error})") from None
    if isinstance(content, dict) and "schema" not in content:
        content = {"schema": SCHEMA, "framework": "user", "version": 1, "names": content}
    _check(path, content)
    own, builtin = _table(path, [content]), _builtin()
    return RoleTable(
        path,
        _sha256([own.sha256, builtin.sha256]),
        {**builtin.names, **own.names},
        own.patterns + builtin.patterns,
        own.tools + builtin.tools,
    )


def _table(name: str, parts: Sequence[Mapping[str, Any]]) -> RoleTable:
    return RoleTable(
        name,
        _sha256(parts),
        {words(key): role for part in parts for key, role in part.get("names", {}).items()},
        tuple((re.compile(text), role) for part in parts for text, role in part.get("patterns", [])),
        tuple((re.compile(text), role) for part in parts for text, role in part.get("tools", [])),
    )


def _check(path: str, content: Any) -> None:
    """Raises UsageError unless ``content`` is a role table."""
    if not isinstance(content, dict):
        raise UsageError(f"role table {path}: a JSON object is needed, found {type(content).__name__}")
    if content["schema"] != SCHEMA:
        raise UsageError(f"role table {path}: schema {content['schema']!r} is not {SCHEMA!r}")
    names = content.get("names", {})
    if not isinstance(names, dict):
        raise UsageError(f'role table {path}: "names" is an object of name: role')
    pairs = [*names.items()]
    for key in ("patterns", "tools"):
        for item in content.get(key, []):
            if not (isinstance(item, list) and len(item) == 2 and isinstance(item[0], str)):
                raise UsageError(f'role table {path}: "{key}" is a list of [pattern, role], found {item!r}')
            try:
                re.compile(item[0])
            except re.error as error:
                raise UsageError(f"role table {path}: pattern {item[0]!r}: {error}") from None
            pairs.append((item[0], item[1]))
    for name, role in pairs:
        if role not in ROLES:
            hint = suggest(str(role), ROLES)
            raise UsageError(
                f"role table {path}: {name!r} has role {role!r}{hint}; roles are {', '.join(ROLES)}"
            )


def _sha256(content: Any) -> str:
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
