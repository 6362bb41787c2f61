"""A file of JSON lines to which threads append; a line that `append` has returned from survives a crash.

Conventions
-----------
* `append` returns once the line is on the disk (fsync). Threads that append at the same time share one fsync.
* A last line that a crash cut in two is dropped when the file is opened again. Every other line that is no
  JSON object is an error, for somebody edited the file.
* Once a line could not be written (a full disk) nothing more is: what is torn stays the last line.
* One process at a time: the file is locked while it is open, where the platform has such locks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from counterpoint.errors import UsageError

__all__ = ["Journal"]

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]


class Journal:
    """An append-only file of JSON objects, one a line."""

    def __init__(self, path: Path, *, remedy: str = "") -> None:
        """Open or create the file; raises UsageError where that cannot be, or another process has it.

        ``remedy``: what to do about a line that is none of ours.
        """
        self.path, self.remedy = path, remedy
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise UsageError(f"{path}: could not be opened: {error.strerror or error}") from None
        self._lock_file()
        self._drop_torn_line()
        self._turn = threading.Condition()
        self._pending: list[bytes] = []
        self._asked = 0
        self._durable = 0
        self._writing = False
        self._broken: OSError | None = None

    def _lock_file(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise UsageError(f"{self.path.parent}: another process is running in this folder") from None
        except OSError:
            return  # a file system without locks

    def _drop_torn_line(self) -> None:
        size = os.fstat(self._file).st_size
        tail = b""
        while size and b"\n" not in tail:
            step = min(size, 1 << 16)
            size -= step
            tail = os.pread(self._file, step, size) + tail
        end = tail.rfind(b"\n") + 1
        if end < len(tail):
            os.ftruncate(self._file, size + end)

    def read(self) -> Iterator[dict[str, Any]]:
        """Every object in the file, in order."""
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    record = msgspec.json.decode(line)
                except (msgspec.DecodeError, RecursionError):
                    record = None
                if not isinstance(record, dict):
                    raise self.foreign(number, "is no JSON object")
                yield record

    def foreign(self, number: int, what: str) -> UsageError:
        """The error of a line that no `append` wrote."""
        told = f"{self.path}: line {number} {what}: the file was changed from outside"
        return UsageError(f"{told}: {self.remedy}" if self.remedy else told)

    def append(self, line: bytes) -> None:
        """Write one line (without its newline) and wait until it is on the disk."""
        with self._turn:
            self._pending.append(line + b"\n")
            self._asked += 1
            mine = self._asked
            while self._durable < mine and self._broken is None:
                if self._writing:
                    self._turn.wait()
                else:
                    self._flush()
            if self._broken is not None:
                raise UsageError(f"{self.path}: could not be written: {self._broken}") from None

    def _flush(self) -> None:
        """Write what is pending for all who wait; called with the lock held, which it leaves meanwhile."""
        lines, upto = self._pending, self._asked
        self._pending, self._writing = [], True
        self._turn.release()
        broken, written = None, False
        try:
            _write_all(self._file, b"".join(lines))
            os.fsync(self._file)
            written = True
        except OSError as error:
            broken = error
        finally:
            self._turn.acquire()
            self._writing, self._broken = False, self._broken or broken
            if written:
                self._durable = upto
            else:  # Ctrl-C: whoever waits writes these lines; twice at worst
                self._pending = lines + self._pending
            self._turn.notify_all()

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
