"""Real exporters, floods and bombs: nothing that was acknowledged is lost, and memory has a bound."""

from __future__ import annotations

import gzip
import http.client
import os
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")
pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExportResult

from counterpoint.store import Store
from counterpoint.view.server.limits import Limits

pytestmark = pytest.mark.slow

EXPORTERS, SPANS = 8, 300


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
    exporter = Counting(f"{url}/v1/traces", compression=compression, timeout=20)
    provider = TracerProvider(resource=Resource({"service.name": f"program {number}"}))
    processor = BatchSpanProcessor(exporter, max_export_batch_size=batch, schedule_delay_millis=50)
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("tests")
    with tracer.start_as_current_span("run"):
        for step in range(spans - 1):
            with tracer.start_as_current_span(f"step {step}") as one:
                one.set_attribute("text", f"program {number} says {step} " * 10)
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


def test_exporters_that_are_sent_away_come_back_and_lose_nothing(serving, tmp_path: Path, caplog: Any):
    store = Store(tmp_path / "s.db")
    refused: list[str] = []
    both = threading.Event()  # somebody was sent away here, and one of the exporters too

    class Busy:
        """A store that takes nothing before both were sent away, with one request at a time before it."""

        def add_spans(self, spans: Any, *, wait_s: float) -> None:
            assert both.wait(60)
            store.add_spans(spans)

        def version(self) -> int:
            return store.version()

    server = serving(Busy(), limits=Limits(requests=1, queue=3, wait_s=0.1))

    def press() -> None:
        """Somebody else who presses, and does not come back."""
        while not both.wait(0.01):
            answer = server.ask("POST", "/v1/traces", b"", content_type="application/x-protobuf")
            if answer.status == 429:
                refused.append(answer.headers["retry-after"])
            if refused and "Too Many Requests" in caplog.text:  # the exporters say so before they wait
                both.set()

    other = threading.Thread(target=press)
    other.start()
    failed = together(server.url)
    both.set()
    other.join()
    assert "Too Many Requests" in caplog.text
    assert set(refused) == {"1"}
    assert failed == [0] * EXPORTERS
    assert [run.spans for run in store.runs().rows] == [SPANS] * EXPORTERS
    store.close()


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


class Child:
    """`counterpoint serve` as a process, and the most memory that it ever had."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = int(one.getsockname()[1])
        command = ["-m", "counterpoint", "serve", "--port", str(self.port), "--store", str(folder / "s.db")]
        self.process = subprocess.Popen(
            [sys.executable, *command, "--quiet", "--quiet-after", "3600"],
            env={name: value for name, value in os.environ.items() if name != "COUNTERPOINT_TOKEN"},
        )
        until = time.monotonic() + 60
        while self.post(b"").status != 200:
            assert time.monotonic() < until
            time.sleep(0.05)

    def post(self, body: bytes, **headers: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
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
    one.process.wait()


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

    def press() -> None:
        for _ in range(2):
            answers.append(child.post(body).status)

    threads = [threading.Thread(target=press) for _ in range(12)]
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
        one = socket.create_connection(("127.0.0.1", child.port), timeout=10)
        one.sendall(
            b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            + (b"Content-Length: 9\r\n\r\n{" if number % 4 == 0 else b"X")
        )
        begun.append(one)
    assert child.post(b"").status == 200
    for one in begun:
        one.close()
