from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest

pytest.importorskip("fastapi")

from counterpoint.cli.serve import is_loopback
from counterpoint.store import Store

COLD_START_S = 2.0
WORK_S = 0.25
"""Seconds of the processor that `work` takes where `COLD_START_S` is meant as it stands, or faster."""
HANGS_S = 300.0
"""So long a test waits for what has to come, however slow or busy the machine is."""


class Served:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        self.process = process
        self.told = ""
        """What it says before it serves."""
        line = ""
        while not line.startswith("store: "):  # the last line before it serves
            line = process.stderr.readline()
            assert line, self.told
            self.told += line
        self.port = int(re.findall(r"ENDPOINT=http://localhost:(\d+)", self.told)[0])
        self.url = f"http://127.0.0.1:{self.port}"
        with urlopen(f"{self.url}/healthz", timeout=HANGS_S):
            pass

    def post(self, spans: list[dict[str, str]], **headers: str) -> bytes:
        body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
        sent = Request(f"{self.url}/v1/traces", body, {"content-type": "application/json", **headers})
        with urlopen(sent, timeout=HANGS_S) as answer:
            return answer.read()

    def stop(self, how: int = signal.SIGTERM) -> tuple[int, str]:
        """Its exit code, and all that it said."""
        self.process.send_signal(how)
        _, told = self.process.communicate(timeout=HANGS_S)
        return self.process.returncode, self.told + told


def environment(**more: str) -> dict[str, str]:
    return {**{name: value for name, value in os.environ.items() if name != "COUNTERPOINT_TOKEN"}, **more}


def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "counterpoint", "serve", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=HANGS_S, env=environment(**more)
    )


@contextmanager
def running(folder: Path, *arguments: str, before: str = "", **more: str) -> Iterator[Served]:
    """The command, with a line of Python ``before`` it."""
    code = f"{before}\nfrom counterpoint.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--port", "0", "--store", str(folder / "s.db")]
    process = subprocess.Popen(
        [*command, *arguments], stderr=subprocess.PIPE, text=True, env=environment(**more)
    )
    try:
        yield Served(process)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    with ExitStack() as stack:
        yield lambda *arguments, **more: stack.enter_context(running(tmp_path, *arguments, **more))


def span(number: int, trace: int = 1) -> dict[str, str]:
    return {"traceId": f"{trace:032x}", "spanId": f"{number:016x}", "name": "say"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--host", "0.0.0.0"), "COUNTERPOINT_TOKEN"),
        (("--host", "::"), "COUNTERPOINT_TOKEN"),
        (("--host", "traces.lan"), "COUNTERPOINT_TOKEN"),
        (("--token", " "), "the token is empty"),
        (("-m", "no_such_metric"), "no_such_metric"),
        (("--allow-host", "a b/c"), "--allow-host 'a b/c' is no name of a host"),
        (("--allow-host", "http://box.lan:4318"), "--allow-host 'http://box.lan:4318'"),
        (("--allow-host", ""), "--allow-host ''"),
        (("--host", "203.0.113.7", "--token", "t" * 20), "--host 203.0.113.7"),
        (("--host", "no.such.host.invalid", "--token", "t" * 20), "--host no.such.host.invalid"),
    ],
)
def test_what_cannot_be_served_is_one_line_and_2(arguments: tuple[str, ...], words: str, tmp_path: Path):
    done = run(*arguments, "--store", str(tmp_path / "s.db"))
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert words in done.stderr


def test_a_port_that_was_asked_for_and_is_taken_is_one_line_and_2(tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = run("--port", port, "--store", str(tmp_path / "s.db"))
    assert done.returncode == 2
    assert re.fullmatch(rf"counterpoint: --port {port}: is taken; .*\n", done.stderr)


def test_without_the_extra_one_line_names_it(tmp_path: Path):
    code = "import sys; sys.modules['uvicorn'] = None; from counterpoint.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "serve", "--store", str(tmp_path / "s.db")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "counterpoint[serve]" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_other_commands_import_nothing_of_the_server():
    code = """if True:
        import sys
        import counterpoint.cli.serve, counterpoint.store, counterpoint.view.server.security
        heavy = {"fastapi", "starlette", "uvicorn", "opentelemetry", "google.protobuf"} & set(sys.modules)
        assert not heavy, heavy
    """
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("host", "known"),
    [("127.0.0.1", True), ("127.1.2.3", True), ("localhost", True), ("::1", True), ("0.0.0.0", False),
     ("::", False), ("10.0.0.1", False), ("traces.lan", False), ("localhost.evil.example", False)],
)  # fmt: skip
def test_loopback_is_known_by_its_addresses(host: str, known: bool):
    assert is_loopback(host) == known


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_says_what_to_do_takes_spans_and_stops(serve: Callable[..., Served], tmp_path: Path, how: int):
    server = serve()
    assert server.post([span(1)]) == b"{}"
    code, told = server.stop(how)
    port = server.port
    assert (code, told.splitlines()) == (
        0,
        [
            f"pages: http://localhost:{port}/",
            f"export OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:{port}",
            f"store: {tmp_path / 's.db'}",
            "stopped",
        ],
    )
    with Store(tmp_path / "s.db") as store:
        assert store.runs().total == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "signals", [[signal.SIGTERM], [signal.SIGINT] * 4, [signal.SIGINT, signal.SIGTERM, signal.SIGINT]]
)
@pytest.mark.parametrize("ignored", [False, True])
def test_a_body_that_never_comes_does_not_hold_up_the_stop(
    serve: Callable[..., Served], signals: list[int], ignored: bool
):
    """Also where it was started as shells start what is in the background, with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if ignored else None
    try:
        server = serve()
    finally:
        if ignored:
            signal.signal(signal.SIGINT, before)
    with socket.create_connection(("127.0.0.1", server.port), timeout=HANGS_S) as waiting:
        waiting.sendall(
            b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100\r\nExpect: 100-continue\r\n\r\n"
        )
        assert waiting.recv(100).startswith(b"HTTP/1.1 100 ")  # now it waits for the body
        for one in signals[:-1]:
            server.process.send_signal(one)
            time.sleep(0.05)
        code, told = server.stop(signals[-1])
        assert waiting.recv(100) == b""  # not the 503 of what was held until the stop had to be
    assert code == 0
    assert told.splitlines()[3:] == ["stopped"]


@pytest.mark.slow
def test_the_token_is_wanted_and_never_printed(serve: Callable[..., Served]):
    token = "a-token-of-more-than-16"
    server = serve("--host", "0.0.0.0", COUNTERPOINT_TOKEN=token)
    with pytest.raises(URLError, match="401"):
        server.post([span(1)])
    assert server.post([span(1)], Authorization=f"Bearer {token}") == b"{}"
    code, told = server.stop()
    assert code == 0
    assert token not in told
    assert "OTEL_EXPORTER_OTLP_HEADERS" in told


def test_the_next_free_port_is_taken_where_none_was_asked_for(monkeypatch: pytest.MonkeyPatch):
    from counterpoint.view.server import listening

    with ExitStack() as stack:
        taken = stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
        monkeypatch.setattr(listening, "DEFAULT_PORT", taken)
        found = [stack.enter_context(one) for one in listening.bind("localhost", None)]
        (port,) = {one.getsockname()[1] for one in found}
        assert taken < port < taken + 20


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc, which tells CPU time apart")
def test_a_cold_start_takes_at_most_two_seconds(serve: Callable[..., Served]):
    """Of the processor, since other work on the machine is not ours; perf/receiver.py has the clock's.

    Where the processor is so slow that `work` takes longer than `WORK_S`, the start may take so much longer.
    """

    def start_s() -> float:
        server = serve(before="import counterpoint.cli.serve as serve; serve.SCORE_AFTER_S = 3600")
        fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
        server.process.kill()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    slow = max(1.0, min(work_s() for _ in range(3)) / WORK_S)
    assert min(start_s() for _ in range(3)) < COLD_START_S * slow


def work_s() -> float:
    """Seconds of the processor that a piece of work takes, to know how fast the processor is."""
    begun = time.process_time()
    sum(number * number for number in range(3_000_000))
    return time.process_time() - begun


@pytest.mark.slow
def test_what_was_acknowledged_survives_kill_9(serve: Callable[..., Served], tmp_path: Path):
    server = serve()
    acknowledged: list[int] = []
    lock = threading.Lock()

    def export(exporter: int) -> None:
        for batch in range(10_000):
            numbers = [exporter * 10**6 + batch * 50 + item + 1 for item in range(50)]
            try:
                server.post([span(number, trace=exporter + 1) for number in numbers])
            except (OSError, HTTPException):
                return
            with lock:
                acknowledged.extend(numbers)

    exporters = [threading.Thread(target=export, args=(number,)) for number in range(4)]
    for one in exporters:
        one.start()
    while len(acknowledged) <= 200 and any(one.is_alive() for one in exporters):
        time.sleep(0.01)
    server.process.kill()
    for one in exporters:
        one.join()
    assert len(acknowledged) > 200
    assert set(acknowledged) <= stored(tmp_path / "s.db")


@pytest.mark.slow
def test_a_disk_that_is_full_is_503_with_a_reason_and_what_was_taken_stays(tmp_path: Path):
    pytest.importorskip("resource")
    path = tmp_path / "s.db"
    little = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({2**21}, {2**21}))"
    taken = []
    with running(tmp_path, before=little) as server:

        def fill() -> None:
            for number in range(1, 10_000):
                server.post([{**span(number), "name": "x" * 50_000}])
                taken.append(number)

        with pytest.raises(HTTPError, match="503") as refused:
            fill()
        assert refused.value.headers["retry-after"] == "1"
        assert str(path) in refused.value.read().decode()
        assert len(taken) > 5
        with urlopen(f"{server.url}/healthz", timeout=HANGS_S) as answer:
            assert answer.status == 200
    assert set(taken) <= stored(path)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_copy_that_is_put_in_the_place_of_the_store_is_served_after_a_restart(
    serve: Callable[..., Served], tmp_path: Path, how: int
):
    alone = "import counterpoint.cli.serve as serve; serve.SCORE_AFTER_S = 3600"  # nobody else opens the copy
    server = serve(before=alone)
    server.post([span(1)])
    with closing(sqlite3.connect(tmp_path / "s.db")) as database:
        database.execute(f"VACUUM INTO '{tmp_path / 'copy.db'}'")
    server.post([span(number) for number in range(2, 100)])
    (tmp_path / "copy.db").replace(tmp_path / "s.db")
    with pytest.raises(HTTPError, match="503"):
        server.post([span(100)])
    server.stop(how)
    again = serve()
    again.post([span(101)])
    assert again.stop()[0] == 0
    assert stored(tmp_path / "s.db") == {1, 101}
    with Store(tmp_path / "s.db") as store:
        assert store.verify() == []


def stored(path: Path) -> set[int]:
    """Numbers of all spans of a store."""
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    found = set()
    with Store(path) as store:
        for run in store.runs(limit=1000).rows:
            for group in TracesData.FromString(store.otlp(run.id)).resource_spans:
                for part in group.scope_spans:
                    found |= {int.from_bytes(one.span_id, "big") for one in part.spans}
    return found


def test_loopback_is_both_of_its_addresses():
    from counterpoint.view.server.listening import bind

    with ExitStack() as stack:
        found = [stack.enter_context(one) for one in bind("127.0.0.1", 0)]
        addresses = {one.getsockname()[0] for one in found}
        assert len({one.getsockname()[1] for one in found}) == 1
    assert addresses in ({"127.0.0.1", "::1"}, {"127.0.0.1"})  # the second where there is no IPv6
