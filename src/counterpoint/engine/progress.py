"""How far a run is, and what it has used."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from counterpoint.contracts import Reply

__all__ = ["Progress"]


@dataclass
class Progress:
    """How far a run is, and what it has used; calls of earlier sittings included."""

    questions: int
    done: int = 0
    """Questions none of whose calls failed."""
    failed: int = 0
    """Questions some of whose calls failed in this sitting, or whose play did as a whole."""
    calls: int = 0
    failed_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    unpriced: str = ""
    """Why the cost is not known; empty where it is."""
    asked_now: int = 0
    """Calls that this sitting made and that were answered."""
    under_way: int = 0
    """Calls that are waited for."""
    stopping: str = ""
    """Why no further call is begun; empty where some are."""
    started_at: float = field(default_factory=time.monotonic)

    def add(self, reply: Reply, price: float | str) -> None:
        """Count a reply and what it cost, or why that is not known."""
        self.calls += 1
        self.tokens_in += reply.tokens_in or 0
        self.tokens_out += reply.tokens_out or 0
        if isinstance(price, str):
            self.unpriced = price
        else:
            self.cost_usd += price
