"""Names to things: ``lookup("metric", "upr")`` imports what the table names, on first use.

A kind's built-in table stands in its folder's ``__init__`` as ``TABLE: dict[str, "module:object"]``.
Other packages add to it by an entry point ``counterpoint.<kind>s``. Listing imports nothing but the
table, nothing registers itself on import, and a built-in name cannot be shadowed.
"""

from __future__ import annotations

import difflib
import importlib
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from counterpoint.errors import UsageError

__all__ = ["KINDS", "lookup", "names", "suggest"]

KINDS: dict[str, str] = {
    "adapter": "counterpoint.adapters",
    "embedder": "counterpoint.models.embed",
    "model": "counterpoint.models",
    "metric": "counterpoint.metrics",
}
"""Kind to the package that holds its table."""


@cache
def _table(kind: str) -> dict[str, str]:
    if kind not in KINDS:
        raise UsageError(f"no kind {kind!r}{suggest(kind, KINDS)}")
    external = {entry.name: entry.value for entry in entry_points(group=f"counterpoint.{kind}s")}
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
        raise UsageError(f"no {kind} {name!r}{suggest(name, table)}; see: counterpoint list {kind}s")
    module, _, attribute = table[name].partition(":")
    loaded = importlib.import_module(module)
    return getattr(loaded, attribute) if attribute else loaded


def suggest(name: str, among: Any) -> str:
    """`` (did you mean 'upr'?)`` for a near miss, else an empty string."""
    near = difflib.get_close_matches(name.lower(), [str(known) for known in among], n=1, cutoff=0.6)
    return f" (did you mean {near[0]!r}?)" if near else ""
