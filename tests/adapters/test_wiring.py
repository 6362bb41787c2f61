"""Real traces are read to the agents, steps and transfers that they hold."""

from __future__ import annotations

import pytest
import wiring

ENTRIES = wiring.expectations()

pytestmark = pytest.mark.skipif(not ENTRIES, reason="no real traces here: set COUNTERPOINT_DATA")


@pytest.mark.parametrize("file", ENTRIES)
def test_a_real_trace_is_read_as_a_perfect_reader_would(file: str) -> None:
    path = wiring.TRACES / file
    assert len(wiring.claimants(path)) == 1
    assert wiring.judge(wiring.read(path), ENTRIES[file]).problems == []
