"""What a metric gives: a Score; and what an evaluation keeps of it: a Row.

Conventions
-----------
* Undefined is ``value=None`` with a ``reason`` that a user can act on; never 0, 1 or NaN.
* ``parts`` hold the numbers behind the value (ints stay exact, of any size), ``detail`` holds names.
* A Row's ``signature`` names all that could change its number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

__all__ = ["Row", "Score"]


class Score(Struct, frozen=True):
    """The result of one metric on one input."""

    value: float | None
    """The number, or None where the metric is undefined."""
    parts: Mapping[str, int | float] = {}
    """The numbers behind the value; ints are exact."""
    reason: str = ""
    """Why ``value`` is None and what to do about it; empty where it is a number."""
    detail: Mapping[str, str] = {}
    """Names that belong to the value (an agent, a rule, a mode); never numbers."""

    def __post_init__(self) -> None:
        if self.value is None:
            if not self.reason:
                raise ValueError("an undefined Score needs a reason")
            return
        value = float(self.value)
        if not math.isfinite(value):
            raise ValueError(f"a Score is a finite number or None with a reason, not {value}")
        msgspec.structs.force_setattr(self, "value", value)

    @classmethod
    def undefined(
        cls,
        reason: str,
        *,
        parts: Mapping[str, int | float] | None = None,
        detail: Mapping[str, str] | None = None,
    ) -> Score:
        """A Score without a value: ``reason`` says why, and what to record or switch on."""
        return cls(None, parts or {}, reason, detail or {})


class Row(Struct, frozen=True, gc=False):
    """One metric on one trace: the unit that statistics fold and views show."""

    run: str
    """The PATH argument (or name of the iterable) that the trace came from."""
    trace: str
    system: str
    metric: str
    """Text form of the metric, parameters included: ``upr(threshold=0.6)``."""
    value: float | None
    reason: str = ""
    parts: Mapping[str, int | float] = {}
    detail: Mapping[str, str] = {}
    signature: Mapping[str, Any] = {}
    """All that could change the number: metric version, profile, parameters, embedder, evidence."""
