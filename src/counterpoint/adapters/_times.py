"""Points in time as formats write them: ISO 8601 text, or seconds, milli-, micro- or nanoseconds."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

__all__ = ["seconds"]


def seconds(value: Any) -> float | None:
    """``value`` as seconds since the epoch; None where it is no time or 0, unset. Text without a zone is UTC.

    The unit of a number is told by its size: seconds reach 10^11 in the year 5138 only.

    >>> seconds("1970-01-01T00:01:00Z"), seconds(1_600_000_000_000), seconds("soon"), seconds(0)
    (60.0, 1600000000.0, None, None)
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return _iso(value)
    if not isinstance(value, int | float) or not 0 < value < math.inf:
        return None
    for limit, unit in ((1e11, 1), (1e14, 1e3), (1e17, 1e6)):
        if value < limit:
            return value / unit
    return value / 1e9


def _iso(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() or None
    except (ValueError, OverflowError):
        return None
