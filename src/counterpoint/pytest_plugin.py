"""pytest plugin: check what a test recorded against gates on how the team worked.

    def test_the_team_wastes_little(counterpoint):
        counterpoint.check("runs/", require="upr<=0.4, ids>=0.3")

    @pytest.mark.counterpoint(embedder="hashing", evidence="nesting")    # defaults for the test's checks
    def test_with_defaults(counterpoint): ...

``--counterpoint-report FILE`` writes every check of the session as JSON. Nothing is imported or printed where
the fixture is not used; results of xdist workers come together in one file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from counterpoint.check import CheckResult

__all__ = ["Checker"]

PROPERTY = "counterpoint"


class Checker:
    """What the fixture gives: `check`, with the marker's options as defaults."""

    def __init__(self, node: pytest.Item, defaults: dict[str, Any]) -> None:
        self._node = node
        self._defaults = defaults

    def check(self, traces: Any, require: str | None = None, **options: Any) -> CheckResult:
        """Check ``traces`` as `counterpoint.check` does, and fail the test unless every gate passed.

        The assertion shows each gate's value, its interval and the three worst traces. A gate that cannot be
        evaluated fails the test as well, and says why.
        """
        __tracebackhide__ = True
        from counterpoint.check import check
        from counterpoint.view.ci import as_json

        chosen = {**self._defaults, **options}
        require = chosen.pop("require", None) if require is None else require
        result = check(traces, require, **chosen)
        self._node.user_properties.append((PROPERTY, as_json(result)))
        if not result.passed:
            pytest.fail(f"counterpoint:\n{result}", pytrace=False)
        return result


@pytest.fixture
def counterpoint(request: pytest.FixtureRequest) -> Checker:
    """Gates on how a team worked: ``counterpoint.check(traces, require="upr<=0.4")``."""
    marker = request.node.get_closest_marker("counterpoint")
    return Checker(request.node, dict(marker.kwargs) if marker else {})


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --counterpoint-report."""
    group = parser.getgroup("counterpoint")
    group.addoption("--counterpoint-report", metavar="FILE", help="write every counterpoint check as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and the report where it was asked for."""
    config.addinivalue_line(
        "markers", "counterpoint(**options): defaults of the counterpoint fixture's checks"
    )
    path = config.getoption("--counterpoint-report")
    if path and not Path(path).absolute().parent.is_dir():
        raise pytest.UsageError(f"--counterpoint-report {path}: there is no such folder")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Report(Path(path)))


class _Report:
    """Collects the checks from test reports, which travel from xdist workers too."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checks: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.checks.extend(_checks(report))

    def pytest_sessionfinish(self) -> None:
        ordered = sorted(self.checks, key=lambda entry: entry["test"])
        self.path.write_text(json.dumps({"checks": ordered}, indent=2) + "\n", encoding="utf-8")


def _checks(report: pytest.TestReport) -> Iterator[dict[str, Any]]:
    for name, value in report.user_properties:
        if name == PROPERTY:
            yield {"test": report.nodeid, "outcome": report.outcome, **json.loads(str(value))}
