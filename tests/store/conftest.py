from collections.abc import Iterator
from pathlib import Path

import pytest

from counterpoint.score import Row
from counterpoint.store import Span, Store
from counterpoint.trace import Step, Trace

ENVELOPE = b"\x0a\x00\x12\x00"
"""A ResourceSpans with an empty resource and an empty ScopeSpans."""


def span(
    trace: int, number: int = 1, *, links: tuple[int, ...] = (), envelope: bytes = ENVELOPE, text: str = ""
) -> Span:
    """Span ``number`` of trace ``trace``, as protobuf: its ids, and a short ``text`` as its name."""
    name = text.encode()
    payload = b"\x0a\x10%b\x12\x08%b" % (trace.to_bytes(16), number.to_bytes(8))
    payload += b"\x2a%c%b" % (len(name), name) if name else b""
    return Span(
        trace_id(trace),
        f"{number:016x}",
        envelope,
        payload,
        tuple(map(trace_id, links)),
        text,
        number * 10**9,
    )


def large(trace: int, number: int, size: int) -> Span:
    """A span with ``size`` bytes more, in a field that OTLP does not know."""
    one = span(trace, number)
    length = bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14])
    return one._replace(payload=one.payload + b"\xf2\x01" + length + bytes(size))


def trace_id(trace: int) -> str:
    return f"{trace:032x}"


def trace(name: str = "q1", *texts: str, **fields: object) -> Trace:
    """A trace of one agent a text."""
    steps = tuple(Step(f"s{at}", f"agent {at}", text, round=0) for at, text in enumerate(texts or ("hello",)))
    return Trace(name, steps, **fields)  # type: ignore[arg-type]


def row(run: str, metric: str, value: float | None, **fields: object) -> Row:
    reason = "" if value is not None else "no paths"
    return Row("r", run, "", metric, value, reason, **fields)  # type: ignore[arg-type]


def keep(store: Store, one: Trace, values: dict[str, float | None] | None = None, **fields: object) -> str:
    """The trace as a run that is scored; the run's id."""
    (run,) = store.add_traces([one], origin="file")
    found = store.run(run)
    assert found is not None
    rows = [row(run, metric, value) for metric, value in (values or {}).items()]
    store.keep(run, found.revision, traces=store.traces(run), rows=rows, **fields)  # type: ignore[arg-type]
    return run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store(path) as opened:
        yield opened
