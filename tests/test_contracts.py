"""What every member of a kind must hold, tested once for all of them.

Adapters: ``tests/golden/NAME/`` holds small files of our own writing in the format NAME, and beside each
``FILE.golden.jsonl``, the traces in it. A new fixture needs no new test::

    counterpoint convert tests/golden/NAME/FILE -o tests/golden/NAME/FILE.golden.jsonl
"""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

from counterpoint import adapters
from counterpoint.contracts import Source
from counterpoint.errors import TraceError
from counterpoint.registry import lookup
from counterpoint.trace import encode

GOLDEN = Path(__file__).parent / "golden"
FIXTURES = sorted(
    file
    for name in adapters.TABLE
    for file in (GOLDEN / name).glob("*")
    if not file.name.endswith(".golden.jsonl")
)

each_fixture = pytest.mark.parametrize("file", FIXTURES, ids=lambda file: f"{file.parent.name}/{file.name}")
each_adapter = pytest.mark.parametrize("name", adapters.TABLE)


def errors_of(file: Path, format: str) -> list[TraceError]:
    reading = adapters.read(file, format=format, on_error=lambda error: None)
    for _ in reading:
        pass
    return reading.errors


@each_adapter
def test_an_adapter_has_a_fixture_and_a_sample_in_its_docstring(name: str) -> None:
    assert any(file.parent.name == name for file in FIXTURES)
    assert "::\n" in (lookup("adapter", name).__doc__ or "")


@each_adapter
def test_an_adapter_has_a_line_in_the_page_of_formats(name: str) -> None:
    assert f"\n| `{name}` |" in (GOLDEN.parents[1] / "docs" / "formats.md").read_text("utf-8")


@each_fixture
def test_a_fixture_gives_its_golden_traces(file: Path) -> None:
    traces = adapters.read(file, on_error="raise")
    golden = file.with_name(f"{file.name}.golden.jsonl").read_bytes().splitlines()
    assert [json.loads(encode(trace)) for trace in traces] == [json.loads(line) for line in golden]


@each_fixture
def test_no_other_adapter_claims_a_fixture(file: Path) -> None:
    source = adapters.source(file)
    assert [name for name in adapters.TABLE if lookup("adapter", name).sniff(source)] == [file.parent.name]


@each_fixture
def test_a_cut_off_file_is_an_error_that_names_file_and_record(file: Path, tmp_path: Path) -> None:
    content = file.read_bytes().rstrip()
    last = content.splitlines()[-1]
    cut = tmp_path / file.name
    cut.write_bytes(content[: -max(2, len(last) // 2)])
    errors = errors_of(cut, file.parent.name)
    assert errors
    assert all(file.name in str(error) for error in errors)
    assert all(error.record is not None for error in errors) or b"\0" in content


@each_adapter
@hypothesis.settings(max_examples=50)
@hypothesis.given(content=strategies.binary(max_size=200))
def test_arbitrary_bytes_never_crash_an_adapter(
    name: str, content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / "bytes"
    file.write_bytes(content)
    source = Source("bytes", content, content, lambda: io.BytesIO(content))
    assert lookup("adapter", name).sniff(source) in (True, False)
    errors_of(file, name)


KEYS = [
    "content",
    "data",
    "events",
    "history",
    "id",
    "messages",
    "name",
    "resourceSpans",
    "role",
    "source",
    "spans",
    "steps",
    "type",
]
JSON = strategies.recursive(
    strategies.none() | strategies.integers() | strategies.sampled_from(KEYS),
    lambda part: strategies.lists(part) | strategies.dictionaries(strategies.sampled_from(KEYS), part),
    max_leaves=10,
)


@hypothesis.given(document=JSON)
def test_arbitrary_json_never_crashes_a_sniff(document: Any) -> None:
    content = json.dumps(document).encode()
    source = Source("json", content, content, lambda: io.BytesIO(content))
    for name in adapters.TABLE:
        assert lookup("adapter", name).sniff(source) in (True, False)


@each_fixture
def test_values_of_other_types_never_crash_an_adapter(file: Path, tmp_path: Path) -> None:
    try:
        documents = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    except ValueError:
        try:
            documents = [json.loads(file.read_text("utf-8"))]
        except ValueError:
            pytest.skip("not JSON")
    rng = random.Random(0)
    for _ in range(60):
        changed = tmp_path / file.name
        changed.write_text("\n".join(json.dumps(mutated(document, rng)) for document in documents), "utf-8")
        source = adapters.source(changed)
        assert lookup("adapter", file.parent.name).sniff(source) in (True, False)
        for error in errors_of(changed, file.parent.name):
            # The net that catches what an adapter did not foresee is for users, not for its author.
            assert error.__cause__ is None, error


def mutated(value: Any, rng: random.Random) -> Any:
    """``value`` with one part in it, at any depth, replaced by something of another type."""
    if isinstance(value, dict | list) and value and rng.random() < 0.9:
        copy = value.copy()
        key = rng.choice(list(copy)) if isinstance(copy, dict) else rng.randrange(len(copy))
        copy[key] = mutated(copy[key], rng)
        return copy
    return rng.choice([None, 0, -1.5, True, "", "x", [], {}, [None], {"a": 1}])
