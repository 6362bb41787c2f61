"""Spans a second from a socket to the disk: `counterpoint serve` beside Arize Phoenix.

    python perf/receiver.py [--spans 50000] [--peer-spans 6000] [--python PATH]

Both are real servers on loopback with a new store, SQLite in WAL mode, and get the same requests of OTLP
protobuf: batches of 512 spans of 1.5 KB, from 1 and from 8 exporters of one client process, which has
serialized them before. Counted is the time until every span is durable: our 200 says so; Phoenix answers
before, so its database is asked until all spans are there. Then the same without masking, as gzip and as JSON
(ours only), and the time from the start of the process to the first 200.

Phoenix is run by ``--python``, an interpreter that has ``arize-phoenix``; where none has, it is left out.
Exits with 1 where fewer than 5,000 spans a second are durable, or the start takes over 2 seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import http.client
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

BATCH = 512
SPAN_BYTES = 1500
AIM, AIM_START_S = 5000, 2.0
WORDS = "the agent said that we should first consider every option and then compare what each of them costs"


class Server(NamedTuple):
    name: str
    command: list[str]
    """With ``{port}`` and ``{folder}`` to fill in."""
    environment: dict[str, str]
    health: str
    count: str
    """A query for the number of spans, and the file that is asked."""
    file: str


OURS = Server(
    "counterpoint serve",
    [sys.executable, "-m", "counterpoint", "serve", "-q", "--port", "{port}", "--store", "{folder}/store.db"],
    {},
    "/healthz",
    "SELECT count(*) FROM spans",
    "store.db",
)


def phoenix(python: str) -> Server:
    return Server(
        "arize-phoenix",
        [python, "-m", "phoenix.server.main", "serve"],
        {
            "PHOENIX_PORT": "{port}", "PHOENIX_GRPC_PORT": "{other}", "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_WORKING_DIR": "{folder}", "PHOENIX_TELEMETRY_ENABLED": "false",
        },
        "/healthz",
        "SELECT count(*) FROM spans",
        "phoenix.db",
    )  # fmt: skip


def bodies(spans: int) -> list[bytes]:
    """Requests of OTLP: model calls in traces of 100 spans, each of about 1.5 KB."""
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    made: list[bytes] = []
    for start in range(0, spans, BATCH):
        data = TracesData()
        group = data.resource_spans.add()
        group.resource.attributes.add(key="service.name").value.string_value = "perf"
        scope = group.scope_spans.add()
        scope.scope.name = "openinference.instrumentation.perf"
        for number in range(start, min(start + BATCH, spans)):
            fill(scope.spans.add(), number)
        made.append(data.SerializeToString())
    return made


def fill(span: Any, number: int) -> None:
    now = time.time_ns()
    span.trace_id = (number // 100 + 1).to_bytes(16, "big")
    span.span_id = (number + 1).to_bytes(8, "big")
    span.name, span.kind = "ChatCompletion", 3
    span.start_time_unix_nano, span.end_time_unix_nano = now, now + 1_000_000
    for key, value in {
        "openinference.span.kind": "LLM", "llm.model_name": "model-1", "session.id": f"s{number // 1000}",
        "metadata": '{"langgraph_node": "planner", "langgraph_step": 3}', "graph.node.id": "planner",
    }.items():  # fmt: skip
        span.attributes.add(key=key).value.string_value = value
    for key, count in {"llm.token_count.prompt": 300, "llm.token_count.completion": 40}.items():
        span.attributes.add(key=key).value.int_value = count + number % 7
    left = max(SPAN_BYTES - span.ByteSize() - 130, 100)
    text = f"{number}: " + (WORDS + ". ") * (left // len(WORDS) + 1)
    span.attributes.add(key="input.value").value.string_value = text[: left // 2]
    span.attributes.add(key="output.value").value.string_value = text[: left - left // 2]


def as_json(body: bytes) -> bytes:
    """The request as an exporter in JavaScript writes it: ids in hex."""
    import base64
    import json

    from google.protobuf.json_format import MessageToDict
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    document = MessageToDict(TracesData.FromString(body), use_integers_for_enums=True)
    for group in document["resourceSpans"]:
        for part in group["scopeSpans"]:
            for span in part["spans"]:
                for key in ("traceId", "spanId"):
                    span[key] = base64.b64decode(span[key]).hex()
    return json.dumps(document).encode()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Up(NamedTuple):
    port: int
    folder: Path
    started: float
    process: subprocess.Popen[bytes]

    def most_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status")
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024 if status.exists() else 0.0

    def cpu_s(self) -> float:
        stat = Path(f"/proc/{self.process.pid}/stat")
        if not stat.exists():
            return float("nan")
        fields = stat.read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def up(server: Server, *options: str) -> Iterator[Up]:
    with tempfile.TemporaryDirectory() as folder:
        names = {"port": str(free_port()), "other": str(free_port()), "folder": folder}
        environment = {key: value.format(**names) for key, value in server.environment.items()}
        start = time.perf_counter()
        process = subprocess.Popen(
            [part.format(**names) for part in (*server.command, *options)],
            env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            while not healthy(int(names["port"]), server.health):
                if process.poll() is not None or time.perf_counter() - start > 120:
                    raise SystemExit(f"{server.name} did not start")
                time.sleep(0.005)
            yield Up(int(names["port"]), Path(folder), time.perf_counter() - start, process)
        finally:
            process.terminate()
            process.wait()


def healthy(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def send(port: int, requests: Sequence[bytes], exporters: int, headers: dict[str, str]) -> int:
    """Every request once, over a connection for each exporter; how many had to be sent again."""
    again = 0

    def export(number: int) -> None:
        nonlocal again
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        for body in requests[number::exporters]:
            while True:
                connection.request("POST", "/v1/traces", body, headers)
                answer = connection.getresponse()
                answer.read()
                if answer.status == 200:
                    break
                if answer.status not in (429, 503):
                    raise SystemExit(f"answered {answer.status}")
                again += 1
                time.sleep(0.2)
        connection.close()

    threads = [threading.Thread(target=export, args=(number,)) for number in range(exporters)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return again


class Measured(NamedTuple):
    durable: float
    """Spans a second until all are on the disk."""
    answered: float
    """Spans a second until all are answered."""
    cpu_us: float
    """Of the server's processor time, microseconds a span: what other work on the machine does not change."""
    memory_mib: float
    start_s: float

    def __str__(self) -> str:
        return (
            f"{self.durable:9,.0f} spans/s durable {self.answered:9,.0f} answered {self.cpu_us:6,.0f} us CPU"
            f" {self.memory_mib:5.0f} MiB   up in {self.start_s:.2f} s"
        )


def measure(
    server: Server, requests: Sequence[bytes], spans: int, exporters: int, *options: str, **headers: str
) -> Measured:
    """The requests, to a server of their own."""
    sent = {"content-type": "application/x-protobuf", **{k.replace("_", "-"): v for k, v in headers.items()}}
    with up(server, *options) as running:
        cpu, start = running.cpu_s(), time.perf_counter()
        send(running.port, requests, exporters, sent)
        answered = time.perf_counter() - start
        wait_for(spans, lambda: count(running.folder / server.file, server.count))
        durable = time.perf_counter() - start
        used = (running.cpu_s() - cpu) / spans * 1e6
        return Measured(spans / durable, spans / answered, used, running.most_mib(), running.started)


def count(file: Path, query: str) -> int:
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=30)) as database:
        return int(database.execute(query).fetchone()[0])


def wait_for(spans: int, found: Callable[[], int]) -> None:
    until = time.perf_counter() + 600
    while (now := found()) < spans:
        if time.perf_counter() > until:
            raise SystemExit(f"only {now} of {spans} spans were kept")
        time.sleep(0.05)


def main() -> int:
    parser = argparse.ArgumentParser(description="Spans a second, durable.")
    parser.add_argument("--spans", type=int, default=50_000)
    parser.add_argument("--peer-spans", type=int, default=6_000)
    parser.add_argument("--python", default=sys.executable)
    asked = parser.parse_args()
    plain = bodies(asked.spans)
    print(f"{asked.spans:,} spans of {sum(map(len, plain)) / asked.spans:,.0f} bytes, {BATCH} a request")
    packed = [gzip.compress(body, 6) for body in plain]
    text = [as_json(body) for body in plain]
    slowest, start = float("inf"), float("inf")
    for what, requests, exporters, options, headers in (
        ("1 exporter", plain, 1, (), {}),
        ("8 exporters", plain, 8, (), {}),
        ("8, --keep-secrets", plain, 8, ("--keep-secrets",), {}),
        ("8, gzip", packed, 8, (), {"content_encoding": "gzip"}),
        ("8, JSON", text, 8, (), {"content_type": "application/json"}),
    ):
        found = measure(OURS, requests, asked.spans, exporters, *options, **headers)
        slowest = min(slowest, found.durable) if requests is plain else slowest
        start = min(start, found.start_s)
        print(f"{OURS.name:20} {what:18} {found}", flush=True)
    ran = subprocess.run([asked.python, "-c", "import phoenix.server"], capture_output=True, check=False)
    if ran.returncode:
        print("arize-phoenix is not installed: left out")
    else:
        few = bodies(asked.peer_spans)
        for what, exporters in (("1 exporter", 1), ("8 exporters", 8)):
            found = measure(phoenix(asked.python), few, asked.peer_spans, exporters)
            print(f"{'arize-phoenix':20} {what:18} {found}", flush=True)
    return int(slowest < AIM or start > AIM_START_S)


if __name__ == "__main__":
    sys.exit(main())
