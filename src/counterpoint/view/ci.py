"""A check's result for machines and reviewers: JUnit XML, SARIF 2.1.0, Markdown for a pull request.

User text (system names, trace ids, reasons) is data: the XML and JSON writers escape it, Markdown is escaped
here, secrets are masked everywhere.
"""

from __future__ import annotations

import json
import re
from typing import Any

from counterpoint.check import CheckResult, GateResult
from counterpoint.scores import plain
from counterpoint.secrets import mask
from counterpoint.view.tabular import escape_markdown

__all__ = ["as_json", "junit", "markdown", "sarif"]

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
LEVELS = {"failed": "error", "not evaluable": "warning", "passed": "note"}


def junit(result: CheckResult) -> str:
    """One test case a gate: failed is a failure, not evaluable an error (never a pass)."""
    from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite

    suite = TestSuite("counterpoint check")
    for gate in result.gates:
        case = TestCase(_xml(gate.gate), classname="counterpoint")
        if gate.state == "failed":
            case.result = [Failure(_xml(str(gate)), gate.metric)]
        elif gate.state == "not evaluable":
            case.result = [Error(_xml(str(gate)), gate.metric)]
        suite.add_testcase(case)
    document = JUnitXml()
    document.add_testsuite(suite)
    text: bytes = document.tostring()  # type: ignore[no-untyped-call]
    return text.decode()


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", mask(text))


def sarif(result: CheckResult, path: str) -> str:
    """SARIF 2.1.0: a rule a metric, a result a gate; ``path`` is what was checked."""
    from counterpoint import __version__

    rules = sorted({gate.metric for gate in result.gates})
    run = {
        "tool": {
            "driver": {
                "name": "counterpoint",
                "version": __version__,
                "rules": [{"id": rule, "shortDescription": {"text": f"gate on {rule}"}} for rule in rules],
            }
        },
        "results": [_sarif_result(gate, mask(path)) for gate in result.gates],
    }
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }
    return json.dumps(document, indent=2) + "\n"


def _sarif_result(gate: GateResult, path: str) -> dict[str, Any]:
    return {
        "ruleId": gate.metric,
        "level": LEVELS[gate.state],
        "kind": {"failed": "fail", "not evaluable": "open", "passed": "pass"}[gate.state],
        "message": {"text": mask(str(gate))},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": path.replace("\\", "/")}}}],
    }


def as_json(result: CheckResult) -> str:
    """The result as JSON: exit code and gates."""
    gates = [plain(gate) for gate in result.gates]
    return json.dumps({"exit_code": result.exit_code, "gates": gates}, indent=2, ensure_ascii=False) + "\n"


def markdown(result: CheckResult) -> str:
    """A summary fit for a pull-request comment."""
    verdict = {0: "✅ all gates passed", 1: "❌ a gate failed", 3: "⚠️ could not be evaluated"}
    lines = [
        f"### Counterpoint: {verdict[result.exit_code]}",
        "",
        "| gate | state | observed | 95 % interval | n | undefined |",
        "| --- | --- | ---: | :---: | ---: | ---: |",
    ]
    for gate in result.gates:
        observed = "–" if gate.observed is None else f"{gate.observed:.4g}"
        bounds = "" if gate.ci_low is None else f"{gate.ci_low:.4g} to {gate.ci_high:.4g}"
        cells = [
            escape_markdown(mask(gate.gate)),
            gate.state,
            observed,
            bounds,
            str(gate.n),
            str(gate.undefined),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    for gate in result.gates:
        if gate.state == "failed" and gate.worst:
            named = ", ".join(f"{escape_markdown(mask(name))} ({value:.4g})" for name, value in gate.worst)
            lines += ["", f"Worst for {escape_markdown(mask(gate.gate))}: {named}"]
        elif gate.state == "not evaluable":
            lines += ["", f"{escape_markdown(mask(gate.gate))}: {escape_markdown(mask(gate.reason))}"]
    return "\n".join(lines) + "\n"
