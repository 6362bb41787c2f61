"""What every test stands on: no network but loopback, no cache but its own, the same examples every time.

Tests are functions, named as sentences, in a world small enough to compute in one's head.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator
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
