"""Ctrl-C, counted where Python would raise it, so that it falls between no two statements."""

from __future__ import annotations

import signal
import threading
from types import FrameType

__all__ = ["Interrupts"]


class Interrupts:
    """Within its ``with`` in the main thread, a Ctrl-C waits until it is asked for.

    Where SIGINT is ignored, or handled by a handler of the program's own, that stays.
    """

    def __init__(self) -> None:
        self._waiting = 0
        self._counts = False

    def check(self) -> None:
        """Raises KeyboardInterrupt, once for each that has waited."""
        if self._waiting:
            self._waiting -= 1
            raise KeyboardInterrupt

    def __enter__(self) -> Interrupts:
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._count)
            self._counts = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._counts:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._counts = False

    def _count(self, number: int, frame: FrameType | None) -> None:
        self._waiting += 1
