"""How much the receiver takes on at once, so that a flood is answered and not swallowed."""

from __future__ import annotations

import threading

from msgspec import Struct

from counterpoint.errors import CounterpointError

__all__ = ["Budget", "Limits", "Share", "TooBusy", "TooLarge"]


class Limits(Struct, frozen=True):
    """Bounds of the receiver; docs/serve.md lists them for users."""

    body_bytes: int = 64 * 2**20
    """Largest body, compressed and not: what OTLP's exporters send at most."""
    span_bytes: int = 16 * 2**20
    """Largest single span."""
    items: int = 100_000
    """Most resources, scopes and spans in one request."""
    flight_bytes: int = 160 * 2**20
    """Bytes of all bodies that are read or handled at one time."""
    requests: int = 64
    """Requests handled at one time."""
    queue: int = 256
    """Requests that may wait for their turn."""
    wait_s: float = 4.0
    """How long a request waits for its turn, or for the store, before it is sent away."""
    body_s: float = 30.0
    """How long a body may take to arrive."""
    json_values: int = 2_000_000
    """Most values in one request of JSON, which take far more room than their text does."""
    threads: int = 4
    """Threads that decode and wait for the disk."""


class TooBusy(CounterpointError):
    """There is more under way than fits: to be tried again."""


class TooLarge(CounterpointError):
    """A body, or what it unpacks to, that is over a limit: no use in trying again."""


class Budget:
    """Bytes that requests may hold together; every thread may use it."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0
        self._lock = threading.Lock()

    def change(self, count: int) -> None:
        """Take bytes, or give them back (``count`` below 0). Raises TooBusy where there are not as many."""
        with self._lock:
            if count > 0 and self.used + count > self.most:
                raise TooBusy(f"more than {self.most} bytes of spans are under way")
            self.used += count


class Share:
    """What one request holds of a budget, given back at the end of its ``with``."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.held = 0

    def take(self, count: int) -> None:
        """Raises TooBusy where the budget has not as many bytes left."""
        self._budget.change(count)
        self.held += count

    def __enter__(self) -> Share:
        return self

    def __exit__(self, *_: object) -> None:
        self._budget.change(-self.held)
        self.held = 0
