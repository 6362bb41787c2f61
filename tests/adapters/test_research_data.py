"""Every real file of the research data sets is claimed by its own adapter alone, and read without a fault."""

from __future__ import annotations

import pytest
import wiring

FORMATS = {
    "agentrx/magentic_failure_labels": "",
    "agentrx/magentic": "agentrx",
    "agentrx/tau": "tau_bench",
    "chatdev/": "chatdev",
    "dylan/": "dylan",
    "mad_debate/": "mad",
    "marble/": "marble",
    "puppeteer/": "puppeteer",
    "swe_agent/": "swe_agent",
    "tau2_bench/": "tau2_bench",
    "tau_bench/": "tau_bench",
    "who_and_when/": "who_and_when",
}
"""Beginning of the file's path to its adapter, the longer one first; empty: it holds no run."""

FILES = sorted(
    path.relative_to(wiring.TRACES).as_posix()
    for folder in {prefix.partition("/")[0] for prefix in FORMATS}
    for path in (wiring.TRACES / folder).glob("*")
)

pytestmark = pytest.mark.skipif(not FILES, reason="no real traces here: set COUNTERPOINT_DATA")


@pytest.mark.parametrize("file", FILES)
def test_a_file_is_claimed_by_its_own_adapter_and_read(file: str) -> None:
    adapter = next(name for prefix, name in FORMATS.items() if file.startswith(prefix))
    path = wiring.TRACES / file
    assert wiring.claimants(path) == ([adapter] if adapter else [])
    if not adapter:
        return
    traces = wiring.read(path)
    assert traces
    for trace in traces:
        assert trace.steps
        assert trace.labels["format"] == adapter
        assert not [warning for warning in trace.warnings if "no text" not in warning]
