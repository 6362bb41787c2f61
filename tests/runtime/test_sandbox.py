"""Programs of models: what they give, what they cannot do, and what is told of their errors."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from counterpoint.answers import read_answer
from counterpoint.errors import MissingExtra
from counterpoint.runtime.sandbox import Sandbox, program

pytest.importorskip("pydantic_monty", reason="needs the extra run")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Programs that end have all the time that a slow machine may need."""
    with Sandbox(time_s=120, memory_mb=32) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def hasty() -> Iterator[Sandbox]:
    with Sandbox(time_s=0.5, memory_mb=32) as sandbox:
        yield sandbox


def fenced(code: str) -> str:
    return f"Let me compute.\n```python\n{code}\n```\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```python\nanswer = 7\n```", "answer = 7\n"),
        ("```py\nfirst\n```\nthen\n```Python3\nsecond\n```", "second\n"),
        ("```python\nanswer = 7\n```\nIt prints\n```\n7\n```", "answer = 7\n"),
        ("```\nanswer = 7\n```", "answer = 7\n"),
        ("~~~python\nanswer = 7\n~~~", "answer = 7\n"),
        ("````python\ns = '```'\n````", "s = '```'\n"),
        ("  ```python\n  answer = 7\n  ```", "  answer = 7\n"),
        ("```python\nanswer = 7", "answer = 7"),
        ("```python\ntype(python)\n```", "type(python)\n"),
        ("```json\n{}\n```", None),
        ("```python\n\n```", None),
        ("answer = 7", None),
        ("", None),
    ],
)
def test_the_program_of_a_text_is_its_last_python_block(text, code):
    assert program(text) == code


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("answer = 3 + 4", "7"),
        ("def solve():\n    return 3 + 4\nanswer = solve()", "7"),
        ("def f(n):\n    return 1 if n < 2 else n * f(n - 1)\nanswer = f(5)", "120"),
        ("import math\nanswer = math.sqrt(16)", "4.0"),
        ("answer = None\nprint('first')\nprint(7)\n", "7"),
        ("def answer():\n    return 8\nprint(7)", "7"),
        ("3 + 4", "7"),
        ("answer = 'B'\nprint('C')", "B"),
        ("from decimal import Decimal\nanswer = Decimal('0.1') + Decimal('0.2')", "0.3"),
        ("print('x' * 100_000)\nprint(7)", "7"),
        ("import random\na = random.random()\nimport time\ntime.sleep(1000)\nanswer = 7", "7"),
    ],
)
def test_the_result_is_what_is_left_in_answer_or_printed_last(sandbox, code, result):
    ran = sandbox.run(fenced(code))
    assert (ran.error, ran.result) == (None, result)
    assert ran.code.strip() == code.strip()


def test_a_text_without_a_program_runs_nothing(sandbox):
    assert sandbox.run("The answer is 7.") is None


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("x = 3", "the program gave no result: assign it to the variable answer"),
        ("answer = ''", "the program gave no result"),
        ("answer = 1 / 0", "ZeroDivisionError"),
        ("x = [1, 2\nanswer = 3", "SyntaxError"),
        ("answer = 10 ** 10000", "limit"),
        ("#" * 30_000, "longer than 20000 letters"),
        ("def f(n):\n    return f(n + 1)\nf(0)", "RecursionError"),
        ("class A:\n    def __str__(self):\n        return 1\nanswer = A()", "TypeError"),
    ],
)
def test_a_program_that_gives_nothing_has_an_error_and_no_result(sandbox, code, told):
    ran = sandbox.run(fenced(code))
    assert ran.result is None
    assert told in ran.error
    assert len(ran.error) < 600


def test_an_error_is_never_an_answer(sandbox):
    ran = sandbox.run(fenced("x = 1\ny = 2\nanswer = 3 3"))
    assert "line 3" in ran.error
    assert read_answer(ran.error, kind="number", fallback=True) is None


def test_a_program_cannot_read_or_write_a_file(sandbox, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    attempts = [
        f"answer = open({str(secret)!r}).read()",
        f"from pathlib import Path\nanswer = Path({str(secret)!r}).read_text()",
        f"import os\nanswer = os.listdir({str(tmp_path)!r})",
        f"open({str(tmp_path / 'made')!r}, 'w').write('x')",
        f"import io\nanswer = io.open({str(secret)!r}).read()",
        f"import sys\nanswer = sys.modules['os'].popen('cat {secret}').read()",
        f"answer = __import__('subprocess').getoutput('cat {secret}')",
        "answer = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == 'Popen'][0]",
    ]
    for code in attempts:
        ran = sandbox.run(fenced(code))
        assert ran.result is None, code
        assert ran.error, code
        assert "hunter2" not in ran.error
    assert os.listdir(tmp_path) == ["secret"]


def test_a_program_cannot_open_a_socket(sandbox):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        for code in (
            f"import socket\nsocket.create_connection(('127.0.0.1', {port}))",
            f"import urllib.request\nurllib.request.urlopen('http://127.0.0.1:{port}')",
            f"import asyncio\nasyncio.run(asyncio.open_connection('127.0.0.1', {port}))",
        ):
            assert sandbox.run(fenced(code)).error, code
        with pytest.raises(TimeoutError):
            server.accept()


def test_a_program_cannot_see_the_environment(sandbox, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "hunter2")
    for code in ("import os\nanswer = os.environ", "import os\nanswer = os.getenv('OPENAI_API_KEY')"):
        ran = sandbox.run(fenced(code))
        assert "hunter2" not in f"{ran.result} {ran.error}"


@pytest.mark.parametrize(
    "code",
    [
        "while True:\n    pass",
        "answer = sum(range(10 ** 12))",
        "while True:\n    try:\n        while 1:\n            pass\n    except BaseException:\n        pass",
        "while True:\n    print('x' * 1000)",
        "class A:\n    def __str__(self):\n        while True:\n            pass\nanswer = A()",
    ],
)
def test_a_program_that_loops_for_ever_is_stopped(hasty, code):
    begun = time.monotonic()
    ran = hasty.run(fenced(code))
    assert ran.result is None
    assert ran.error
    assert time.monotonic() - begun < 60


@pytest.mark.parametrize(
    "code",
    [
        "x = 'a'\nwhile True:\n    x += x",
        "answer = [0] * 10 ** 10",
        "answer = 9 ** 9 ** 9",
        "x = []\nwhile 1:\n    x.append('a' * 1000)",
    ],
)
def test_a_program_that_takes_all_memory_is_stopped(sandbox, code):
    ran = sandbox.run(fenced(code))
    assert ran.result is None
    assert "MemoryError" in ran.error


def test_the_same_program_gives_the_same_result_and_leaves_nothing_behind(sandbox):
    draw = fenced("import random, datetime\nanswer = f'{random.random()} {datetime.datetime.now()}'")
    assert sandbox.run(draw) == sandbox.run(draw)
    sandbox.run(fenced("left = 7\nanswer = 1"))
    assert "NameError" in sandbox.run(fenced("answer = left")).error


def test_programs_run_from_many_threads(sandbox):
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: sandbox.run(fenced(f"answer = {n} * 2")).result, range(64)))
    assert results == [str(2 * n) for n in range(64)]


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    with Sandbox() as sandbox, pytest.raises(MissingExtra, match=r"counterpoint\[run\]"):
        sandbox.run(fenced("answer = 7"))
