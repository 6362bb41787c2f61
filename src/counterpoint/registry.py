"""Names to things: ``lookup("metric", "upr")`` imports what the table names, on first use.

A kind's built-in table stands in its folder's ``__init__`` as ``TABLE: dict[str, "module:object"]``.
Other packages add to it by an entry point ``counterpoint.<kind>s``. Listing imports nothing but the
table, nothing registers itself on import, and a built-in name cannot be shadowed.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import re
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from counterpoint.errors import UsageError

__all__ = ["KINDS", "lookup", "names", "parse_call", "plural", "suggest"]

KINDS: dict[str, str] = {
    "adapter": "counterpoint.adapters",
    "benchmark": "counterpoint.benchmarks",
    "decomposer": "counterpoint.judges.decomposers",
    "embedder": "counterpoint.models.embed",
    "judge": "counterpoint.judges",
    "model": "counterpoint.models",
    "metric": "counterpoint.metrics",
    "protocol": "counterpoint.runtime.protocols",
    "system": "counterpoint.runtime.systems",
    "topology": "counterpoint.runtime.topologies",
}
"""Kind to the package that holds its table."""


@cache
def _table(kind: str) -> dict[str, str]:
    if kind not in KINDS:
        raise UsageError(f"no kind {kind!r}{suggest(kind, KINDS)}")
    external = {entry.name: entry.value for entry in entry_points(group=f"counterpoint.{plural(kind)}")}
    table: dict[str, str] = importlib.import_module(KINDS[kind]).TABLE
    return {**external, **table}


def names(kind: str) -> list[str]:
    """Every registered name of ``kind``: built-in ones in table order, then those of other packages."""
    builtin: dict[str, str] = importlib.import_module(KINDS[kind]).TABLE if kind in KINDS else {}
    return [*builtin, *sorted(set(_table(kind)) - set(builtin))]


def lookup(kind: str, name: str) -> Any:
    """The object registered under ``name``; a UsageError that suggests the nearest name otherwise."""
    table = _table(kind)
    if name not in table:
        raise UsageError(f"no {kind} {name!r}{suggest(name, table)}; see: counterpoint list {plural(kind)}")
    module, _, attribute = table[name].partition(":")
    loaded = importlib.import_module(module)
    return getattr(loaded, attribute) if attribute else loaded


def plural(kind: str) -> str:
    """What `list` calls the things of a kind: ``metrics``, ``topologies``."""
    return f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"


_CALL = re.compile(r"\s*([A-Za-z_][\w-]*)\s*(?:\((.*)\))?\s*", re.DOTALL)


def parse_call(text: str, kind: str) -> tuple[str, dict[str, Any]]:
    """A name and its parameters: ``random(p=0.3)`` is ``("random", {"p": 0.3})``; UsageError otherwise."""
    match = _CALL.fullmatch(text)
    if not match:
        raise UsageError(f"{kind} {text!r} is not of the form name or name(parameter=value, ...)")
    parameters = {}
    for part in re.split(r",(?![^\[(]*[\])])", match[2] or ""):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not part.strip() and not (match[2] or "").strip():
            continue
        if not equals or not name.isidentifier():
            raise UsageError(f"{kind} {text!r}: {part.strip()!r} is not of the form parameter=value")
        parameters[name] = _value(value)
    return match[1], parameters


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def suggest(name: str, among: Any) -> str:
    """`` (did you mean 'upr'?)`` for a near miss, else an empty string."""
    near = difflib.get_close_matches(name.lower(), [str(known) for known in among], n=1, cutoff=0.6)
    return f" (did you mean {near[0]!r}?)" if near else ""
