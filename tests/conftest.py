"""What every test stands on: no network but loopback, no cache but its own, the same examples every time.

Tests are functions, named as sentences, in a world small enough to compute in one's head.
"""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parents[1]

# The same examples on every machine, and no complaint about a slow one, of tests or of what draws examples.
# Others are looked for by hand: pytest --hypothesis-profile=explore --hypothesis-seed=N
hypothesis.settings.register_profile(
    "counterpoint",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile(
    "explore", hypothesis.settings.get_profile("counterpoint"), derandomize=False
)
hypothesis.settings.load_profile("counterpoint")


@pytest.fixture(scope="session", autouse=True)
def _alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Takes away what a test must not depend on: the network, the user's cache, keys and terminal."""
    with pytest.MonkeyPatch.context() as patch:
        for method in ("connect", "connect_ex"):
            patch.setattr(socket.socket, method, _loopback_only(getattr(socket.socket, method)))
        patch.setenv("COUNTERPOINT_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("NO_COLOR", "1")
        patch.setenv("COLUMNS", "120")
        for name in ("COUNTERPOINT_EMBEDDER", "OPENAI_API_KEY", "FORCE_COLOR"):
            patch.delenv(name, raising=False)
        yield


def _loopback_only(connect: Any) -> Any:
    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_loopback(address[0]):
            raise RuntimeError(f"a test may reach loopback only, not {address[0]}")
        return connect(self, address)

    return guarded


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real traces and benchmarks, no part of the repository; skips where it is missing."""
    folder = Path(os.environ.get("COUNTERPOINT_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no real traces here: name their folder by COUNTERPOINT_DATA")
    return folder


TakesAtMost = Callable[..., bool]


@pytest.fixture(scope="session")
def takes_at_most() -> TakesAtMost:
    """``takes_at_most(seconds, work)``: whether a piece of work keeps its bound, however slow the machine is.

    Processor time of the calling thread counts (or ``clock``), the best of three, and bounds are those of a
    machine that takes `_YARDSTICK_S` for the yardstick: one that takes longer has as much more time.
    """

    def kept(
        seconds: float, work: Callable[[], object], clock: Callable[[], float] = time.thread_time
    ) -> bool:
        for _ in range(3):
            slow = _slowness()
            begun = clock()
            work()
            took = clock() - begun
            if took <= seconds * max(1.0, slow, _slowness()):
                return True
        return False

    return kept


_YARDSTICK_S = 0.02


def _slowness() -> float:
    """How many times longer than it should a fixed piece of work takes, at best of three."""
    took = []
    for _ in range(3):
        begun = time.thread_time()
        {number % 1000: str(number) for number in range(200_000)}
        took.append(time.thread_time() - begun)
    return min(took) / _YARDSTICK_S


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C works here and in children, also where the tests run in the background with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
