"""Where spans and runs are kept: one SQLite file, written durably, by several processes at once.

>>> import tempfile
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "runs.db") as store:
...     store.add_spans([Span("a" * 32, "b" * 16, envelope=b"", payload=b"")])
...     store.runs().rows[0].state
'receiving'
"""

from __future__ import annotations

from counterpoint.store.database import StoreFault, default_path
from counterpoint.store.keeping import Added
from counterpoint.store.pruning import Pruned
from counterpoint.store.records import Run, Runs, Span
from counterpoint.store.store import Store
from counterpoint.store.writer import StoreFull

__all__ = ["Added", "Pruned", "Run", "Runs", "Span", "Store", "StoreFault", "StoreFull", "default_path"]
