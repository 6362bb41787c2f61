"""A chat model whose replies are kept on disk: a request that was answered once is not paid for again.

    model = Cached(ChatHTTP("m", base_url=...), "run/replies.sqlite")

Conventions
-----------
* The key is a hash of the whole request: the model's settings and every message. A model says its settings
  by an attribute ``settings`` (plain JSON); one without it is given them here.
* Where the settings have temperature 0 equal requests are one: they share a reply, and of several at the same
  moment one asks and the others wait. Otherwise the n-th asking of a request has the n-th reply: samples
  stay distinct, and a run that is started again gets the same ones.
* Replies are kept as they are, tokens included, so that a trace is the same from the cache; lone surrogates
  become U+FFFD, for no file holds them. The file is readable by its owner only: texts stand in it as the
  model gave them.
* Threads and processes may share a file. Failures are not kept.

Source: ours.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from counterpoint.contracts import ChatModel, Reply
from counterpoint.errors import ModelError, UsageError
from counterpoint.models._encodable import encodable

__all__ = ["Cached", "request_key"]

_PATIENCE_S = 60.0
"""How long a process waits for another one's write."""
_TABLE = "CREATE TABLE IF NOT EXISTS reply (key TEXT PRIMARY KEY, reply BLOB NOT NULL) WITHOUT ROWID"


class Cached:
    """A chat model that asks another one only for what it does not know yet. To be closed."""

    def __init__(
        self, model: ChatModel, path: str | Path, *, settings: Mapping[str, Any] | None = None
    ) -> None:
        known = getattr(model, "settings", None) if settings is None else settings
        if known is None:
            raise UsageError(
                f"a cache needs to know the settings of {type(model).__name__}: Cached(..., settings={{...}})"
            )
        self.model, self.path, self.settings = model, Path(path), dict(known)
        self.hits = 0
        """Replies that came from the cache."""
        self.misses = 0
        """Replies that were asked for."""
        self._greedy = self.settings.get("temperature") == 0
        self._counts: Counter[str] = Counter()
        self._asking: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._file = self._open()

    def __call__(self, messages: Sequence[Mapping[str, Any]], /) -> Reply:
        """The reply that is kept for this request, else that of the model, which is kept from now on."""
        with self._lock:
            key = self._next_key(messages)
            asking = self._asking.setdefault(key, threading.Lock()) if self._greedy else nullcontext()
        with asking:
            reply = self._kept(key)
            if reply is None:
                reply = _encodable(self.model(messages))
                self._keep(key, reply)
        return reply

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()

    def _next_key(self, messages: Sequence[Mapping[str, Any]]) -> str:
        key = request_key(self.settings, messages)
        if self._greedy:
            return key
        self._counts[key] += 1
        return f"{key}:{self._counts[key]}"

    def _kept(self, key: str) -> Reply | None:
        with self._lock, self._named_errors():
            row = self._file.execute("SELECT reply FROM reply WHERE key = ?", (key,)).fetchone()
            if row is None:
                return None
            self.hits += 1
            return msgspec.json.decode(row[0], type=Reply)

    def _keep(self, key: str, reply: Reply) -> None:
        with self._lock, self._named_errors():
            self.misses += 1
            plain = {name: getattr(reply, name) for name in Reply.__dataclass_fields__}
            content = msgspec.json.encode(plain)
            with self._file:
                self._file.execute("INSERT OR IGNORE INTO reply VALUES (?, ?)", (key, content))

    def _open(self) -> sqlite3.Connection:
        with self._named_errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch(mode=0o600)
            file = sqlite3.connect(self.path, timeout=_PATIENCE_S, check_same_thread=False)
            try:
                self._keep_log(file)
                file.execute(_TABLE)
            except sqlite3.Error:
                file.close()
                raise
        return file

    def _keep_log(self, file: sqlite3.Connection) -> None:
        """Write-ahead logging: alone among statements, this one does not wait while others make the file."""
        until = time.monotonic() + _PATIENCE_S
        while True:
            try:
                file.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
            time.sleep(0.01)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, msgspec.DecodeError) as error:
            raise ModelError(f"the cache of replies {self.path} cannot be used: {error}") from None


def _encodable(reply: Reply) -> Reply:
    """The reply with what no file can hold replaced, so that it is the same from the model and the file."""
    texts = {name: encodable(getattr(reply, name)) for name in ("text", "model", "finish_reason")}
    return replace(reply, **texts)


def request_key(settings: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> str:
    """A hash of all that a reply depends on; the order of keys does not count.

    >>> request_key({"model": "m", "seed": 1}, []) == request_key({"seed": 1, "model": "m"}, [])
    True
    """
    request = msgspec.json.encode(encodable([settings, list(messages)]), order="sorted")
    return hashlib.sha256(request).hexdigest()
