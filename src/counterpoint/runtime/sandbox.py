"""Programs that models write, run in an interpreter without files, network, environment or clock.

Needs the extra ``run``::

    with Sandbox(time_s=5.0, memory_mb=64) as sandbox:
        ran = sandbox.run("So:\\n```python\\nanswer = 3 + 4\\n```")      # Ran(code, result="7", error=None)

Conventions
-----------
* The program of a text is its last block fenced as Python, else its last fenced block without a language.
* Its result is what it left in ``answer``, else the last line that it printed, else the value of its last
  line. A program without any of these failed.
* Same program, same result: random numbers start from seed 0, the clock stands still, sleeping takes no time.

What counts
-----------
An error is for the agent that wrote the program, never for a reader of answers: the 3 in "line 3" is no
answer. Programs run in processes of their own (pydantic-monty, a Python in Rust), which may know less of
the standard library than CPython.

Source: ours, after published runtimes that use ``exec`` in their own process, without limits.
"""

from __future__ import annotations

import datetime
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any

from counterpoint.answers.programs import FENCE
from counterpoint.errors import MissingExtra
from counterpoint.runtime.play import Ran

if TYPE_CHECKING:
    from pydantic_monty import Monty, MontySession

__all__ = ["Sandbox", "program"]

_PYTHON = frozenset({"python", "python3", "py", "py3", "python-repl"})
_LONGEST_PROGRAM = 20_000
_LONGEST_RESULT = 400
_LONGEST_ERROR = 500
_ANSWER = (
    "None if answer is None or type(answer).__name__ == 'function' "  # it may be what solve() was called
    f"else str(answer)[:{_LONGEST_RESULT}]"
)
_EPOCH = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)


class Sandbox:
    """Runs programs within limits of time and memory; any number of threads may use it. To be closed."""

    def __init__(self, *, time_s: float = 5.0, memory_mb: int = 64) -> None:
        self.time_s, self.memory_mb = time_s, memory_mb
        self._lock = threading.Lock()
        self._pool: Monty | None = None

    def run(self, text: str) -> Ran | None:
        """What became of the program in ``text``; None where there is no program in it."""
        code = program(text)
        if code is None:
            return None
        if len(code) > _LONGEST_PROGRAM:
            return Ran(
                code[:_LONGEST_PROGRAM], error=f"the program is longer than {_LONGEST_PROGRAM} letters"
            )
        pool = self._started()
        from pydantic_monty import MontyError

        try:
            result = self._run(code, pool)
        except (
            MontyError,
            ValueError,
            TypeError,
        ) as error:  # the latter two: values beyond what crosses over
            return Ran(code, error=_told(error))
        if result is None:
            return Ran(code, error="the program gave no result: assign it to the variable answer")
        return Ran(code, result=result)

    def close(self) -> None:
        """End the processes; the next `run` would start new ones."""
        with self._lock:
            if self._pool is not None:
                self._pool.__exit__(None, None, None)
                self._pool = None

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self, code: str, pool: Monty) -> str | None:
        printed = _Tail()
        with self._session(pool) as session:
            value = session.feed_run(code, print_callback=printed)
            found = _left_in_answer(session)
        if found is None:
            found = printed.last_line()
        if found is None and value is not None:
            found = str(value)
        return found[:_LONGEST_RESULT].strip() if found and found.strip() else None

    def _session(self, pool: Monty) -> MontySession:
        return pool.checkout(
            limits={
                "max_feed_duration_secs": self.time_s,
                "max_memory": self.memory_mb * 1_000_000,
                "max_recursion_depth": 500,
                "max_suspensions": 100,
                "max_total_sleep_secs": 0.0,
            },
            os_policy={"datetime": _EPOCH, "sleep": "zero", "random_start": {"seed": 0}},
        )

    def _started(self) -> Monty:
        with self._lock:
            if self._pool is None:
                try:
                    from pydantic_monty import Monty
                except ImportError:
                    raise MissingExtra("running the programs of agents", "run") from None
                self._pool = Monty(min_processes=0).__enter__()
            return self._pool


class _Tail:
    """Keeps the end of what a program prints, however much that is."""

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, stream: str, text: str) -> None:
        if stream == "stdout":
            self.text = (self.text + text)[-2 * _LONGEST_RESULT :]

    def last_line(self) -> str | None:
        return next((line for line in reversed(self.text.splitlines()) if line.strip()), None)


def program(text: str) -> str | None:
    """The program in ``text``: its last block fenced as Python, else its last fenced block of no language.

    >>> program("Count:\\n```python\\nanswer = 3 + 4\\n```\\nDone."), program("The answer is 7.")
    ('answer = 3 + 4\\n', None)
    """
    blocks = [(found["language"].lower(), found["code"]) for found in FENCE.finditer(text)]
    python = [code for language, code in blocks if language in _PYTHON]
    plain = [code for language, code in blocks if not language]
    chosen = next(iter([*python[-1:], *plain[-1:]]), "")
    return chosen if chosen.strip() else None


def _left_in_answer(session: MontySession) -> str | None:
    from pydantic_monty import MontyRuntimeError

    try:
        value: Any = session.feed_run(_ANSWER)
    except MontyRuntimeError as error:
        if str(error.exception()) == "name 'answer' is not defined":
            return None
        raise
    return value if isinstance(value, str) else None


def _told(error: Exception) -> str:
    """The error as the agent is told it, on one line: what, and where; without the source, which may say
    ``answer = 3``."""
    display, frames = getattr(error, "display", None), getattr(error, "traceback", None)
    what = display("type-msg") if display else f"{type(error).__name__}: {error}"
    where = [f" (line {frame.line})" for frame in (frames() if frames else [])[-1:]]
    return f"{' '.join(str(what).split())[:_LONGEST_ERROR]}{''.join(where)}"
