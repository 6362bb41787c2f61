"""Counterpoint evaluates how a team of LLM agents works together, not only whether the answer was right.

    import counterpoint as cp

    scores = cp.evaluate(cp.read("runs/"), metrics=["ids", "upr"])

Each public name is imported from its module on first use, so that importing the package costs nothing.
Some name both a function and the module it lives in (``cp.graph`` and ``counterpoint.graph``): as an
attribute of the package such a name is always the function.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from counterpoint.adapters import from_messages, read, write
    from counterpoint.check import check
    from counterpoint.compare import compare
    from counterpoint.errors import CounterpointError, TraceError
    from counterpoint.evaluate import evaluate
    from counterpoint.frames import to_pandas
    from counterpoint.graph import graph
    from counterpoint.models.embed import embedder
    from counterpoint.models.scripted import scripted_server
    from counterpoint.record import record
    from counterpoint.score import Row, Score
    from counterpoint.scores import Scores
    from counterpoint.trace import Call, Step, Trace, Transfer, Usage

__version__ = "0.1.0"

__all__ = [
    "Call",
    "CounterpointError",
    "Row",
    "Score",
    "Scores",
    "Step",
    "Trace",
    "TraceError",
    "Transfer",
    "Usage",
    "__version__",
    "check",
    "compare",
    "embedder",
    "evaluate",
    "from_messages",
    "graph",
    "read",
    "record",
    "scripted_server",
    "to_pandas",
    "write",
]

_HOMES = {
    "adapters": ("from_messages", "read", "write"),
    "check": ("check",),
    "compare": ("compare",),
    "errors": ("CounterpointError", "TraceError"),
    "evaluate": ("evaluate",),
    "frames": ("to_pandas",),
    "graph": ("graph",),
    "models.embed": ("embedder",),
    "models.scripted": ("scripted_server",),
    "record": ("record",),
    "score": ("Row", "Score"),
    "scores": ("Scores",),
    "trace": ("Call", "Step", "Trace", "Transfer", "Usage"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # hidden, so that a type checker finds a misspelt name

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return list(__all__)


class _Package(ModuleType):
    """Keeps public functions in reach where a submodule has the same name (docs/decisions/0001)."""

    def __setattr__(self, name: str, value: Any) -> None:
        # The import system sets a submodule as an attribute of its package once it is imported.
        if name in _HOME and isinstance(value, ModuleType):
            return
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
