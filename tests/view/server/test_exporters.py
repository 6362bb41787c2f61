"""Real exporters, floods and bombs: nothing that was acknowledged is lost, and memory has a bound."""

from __future__ import annotations

import gzip
import http.client
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")
pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, TracesData
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExportResult

from counterpoint.store import Store
from counterpoint.view.server.limits import Limits

pytestmark = pytest.mark.slow

EXPORTERS, SPANS = 8, 300
HANGS_S = 300.0
"""So long a test waits for what has to come, however slow or busy the machine is."""


class Counting(OTLPSpanExporter):
    """The real exporter, which notes what it could not send."""

    failed = 0

    def export(self, spans: Any) -> SpanExportResult:
        found = super().export(spans)
        self.failed += found is not SpanExportResult.SUCCESS
        return found


def export(url: str, number: int, *, spans: int = SPANS, batch: int = 20) -> int:
    """Spans of one program through the SDK; how many batches its exporter could not send."""
    compression = Compression.Gzip if number % 2 else Compression.NoCompression
    exporter = Counting(f"{url}/v1/traces", compression=compression, timeout=HANGS_S)
    provider = TracerProvider(resource=Resource({"service.name": f"program {number}"}))
    processor = BatchSpanProcessor(exporter, max_export_batch_size=batch, schedule_delay_millis=50)
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("tests")
    with tracer.start_as_current_span("run"):
        for step in range(spans - 1):
            with tracer.start_as_current_span(f"step {step}") as one:
                one.set_attribute("text", f"program {number} says {step} " * 10)
    provider.force_flush()  # however long it takes: the end of a provider waits for 30 seconds
    provider.shutdown()
    return exporter.failed


def together(url: str) -> list[int]:
    """All exporters at one time; the failed batches of each."""
    failed = [0] * EXPORTERS

    def one(number: int) -> None:
        failed[number] = export(url, number)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(EXPORTERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failed


def names(store: Store, run_id: str) -> list[str]:
    data = TracesData.FromString(store.otlp(run_id))
    return [span.name for group in data.resource_spans for part in group.scope_spans for span in part.spans]


def test_eight_exporters_at_one_time_lose_nothing(serving):
    server = serving()
    assert together(server.url) == [0] * EXPORTERS
    runs = server.store.runs().rows
    assert [run.spans for run in runs] == [SPANS] * EXPORTERS
    for run in runs:
        assert sorted(names(server.store, run.id)) == sorted(
            ["run", *(f"step {n}" for n in range(SPANS - 1))]
        )


class Sees(logging.Handler):
    """Sets an event as soon as words are logged, before whoever logs them goes on."""

    def __init__(self, words: str, seen: threading.Event) -> None:
        super().__init__()
        self.words, self.seen = words, seen

    def emit(self, record: logging.LogRecord) -> None:
        if self.words in record.getMessage():
            self.seen.set()


def test_exporters_that_are_sent_away_come_back_and_lose_nothing(serving, tmp_path: Path, caplog: Any):
    """As many as there is room for fill the server; it goes on when an exporter too was sent away."""
    store = Store(tmp_path / "s.db")
    sent_away, others_sent_away = threading.Event(), threading.Event()

    class Busy:
        """A store that takes nothing before an exporter was sent away."""

        def add_spans(self, spans: Any, *, wait_s: float) -> None:
            assert sent_away.wait(HANGS_S)
            store.add_spans(spans)

        def version(self) -> int:
            return store.version()

    server = serving(Busy(), limits=Limits(requests=1, queue=EXPORTERS - 1, wait_s=HANGS_S))
    refused: list[str] = []

    def press() -> None:
        """Somebody else, who does not come back."""
        answer = server.ask("POST", "/v1/traces", one_span(), content_type="application/x-protobuf")
        if answer.status == 429:
            refused.append(answer.headers["retry-after"])
            others_sent_away.set()

    others = [threading.Thread(target=press) for _ in range(EXPORTERS + 1)]
    for other in others:
        other.start()
    assert others_sent_away.wait(HANGS_S)  # the server is full
    handler = Sees("Too Many Requests", sent_away)
    logging.getLogger("opentelemetry").addHandler(handler)
    try:
        failed = together(server.url)
    finally:
        sent_away.set()
        logging.getLogger("opentelemetry").removeHandler(handler)
        for other in others:
            other.join()
    assert "Too Many Requests" in caplog.text
    assert refused == ["1"]
    assert failed == [0] * EXPORTERS
    assert sorted(run.spans for run in store.runs().rows) == [1] + [SPANS] * EXPORTERS
    store.close()


def one_span() -> bytes:
    data = TracesData(resource_spans=[ResourceSpans()])
    data.resource_spans[0].scope_spans.add().spans.add(trace_id=b"o" * 16, span_id=b"o" * 8)
    return data.SerializeToString()


def test_a_program_that_exports_each_span_at_once_is_taken(serving):
    server = serving()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{server.url}/v1/traces")))
    with provider.get_tracer("t").start_as_current_span("a"):
        provider.get_tracer("t").start_span("b").end()
    provider.shutdown()
    (run,) = server.store.runs().rows
    assert run.spans == 2


# --- memory ----------------------------------------------------------------------------------------


SERVE = f"""if True:
    from counterpoint.view.server import app, limits, responses
    app.Limits = lambda: limits.Limits(body_s={HANGS_S}, wait_s={HANGS_S})
    responses.LINGER_S = {HANGS_S}
    from counterpoint.cli import main
    main()
"""
"""The command, with more patience: the machine may be slow."""


class Child:
    """`counterpoint serve` as a process, and the most memory that it ever had."""

    def __init__(self, folder: Path) -> None:
        command = ["serve", "--port", "0", "--store", str(folder / "s.db"), "--quiet-after", "3600"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVE, *command],
            env={name: value for name, value in os.environ.items() if name != "COUNTERPOINT_TOKEN"},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        told = (re.search(r"ENDPOINT=http://localhost:(\d+)", line) for line in self.process.stderr)
        self.port = int(next(found[1] for found in told if found))
        assert self.post(b"").status == 200

    def post(self, body: bytes | Iterator[bytes], **headers: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANGS_S)
        try:
            sent = {"content-type": "application/x-protobuf", **headers}
            connection.request("POST", "/v1/traces", body, sent)
            answer = connection.getresponse()
            answer.read()
        except OSError:
            answer = type("Gone", (), {"status": 0})()
        finally:
            connection.close()
        return answer

    def most_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    pytest.importorskip("fastapi")
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc, which tells the memory of a process")
    one = Child(tmp_path)
    yield one
    one.process.kill()
    one.process.communicate()


def zeros(count: int) -> bytes:
    """So many bytes of zeros, gzipped a piece at a time."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    piece = bytes(2**20)
    return b"".join([packer.compress(piece) for _ in range(count // 2**20)]) + packer.flush()


def test_a_gigabyte_in_a_megabyte_is_413_and_takes_little_memory(child: Child):
    bomb = zeros(2**30)
    assert len(bomb) < 2 * 2**20
    before = child.most_mib()
    answers = []

    def drop(content_type: str) -> None:
        answer = child.post(bomb, **{"content-encoding": "gzip", "content-type": content_type})
        answers.append(answer.status)

    for content_type in ("application/x-protobuf", "application/json"):
        drop(content_type)
    threads = [threading.Thread(target=drop, args=("application/json",)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(answers) <= {413, 429}
    assert answers[:2] == [413, 413]
    assert child.most_mib() - before < 320
    assert child.post(b"").status == 200


def test_a_flood_is_answered_and_not_swallowed(child: Child):
    data = TracesData()
    scope = data.resource_spans.add().scope_spans.add()
    for number in range(20_000):
        span = scope.spans.add(trace_id=b"t" * 16, span_id=(number + 1).to_bytes(8, "big"), name="x")
        span.attributes.add(key="text").value.string_value = "word " * 300
    body = data.SerializeToString()
    assert len(body) > 30_000_000
    before = child.most_mib()
    answers: list[int] = []

    begun = threading.Barrier(12)

    def pieces() -> Iterator[bytes]:
        """All but the end, which comes when all senders are so far: together they have more than fits."""
        yield body[:-1]
        begun.wait(HANGS_S)
        yield body[-1:]

    def press() -> None:
        answers.append(child.post(pieces()).status)
        answers.append(child.post(body).status)

    threads = [threading.Thread(target=press) for _ in range(begun.parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(answers) == {200, 429}
    assert child.most_mib() - before < 900
    assert child.post(gzip.compress(b""), **{"content-encoding": "gzip"}).status == 200


def test_many_who_begin_and_do_not_go_on_do_not_keep_others_out(child: Child):
    begun = []
    for number in range(200):
        one = socket.create_connection(("127.0.0.1", child.port), timeout=HANGS_S)
        one.sendall(
            b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            + (b"Content-Length: 9\r\n\r\n{" if number % 4 == 0 else b"X")
        )
        begun.append(one)
    assert child.post(b"").status == 200
    for one in begun:
        one.close()
