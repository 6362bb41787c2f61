"""The log beside the file, ``-wal``: whether it is of the file that stands there now, and whose it is.

Conventions
-----------
* SQLite plays any log into the file beside it, also into a copy that was put there meanwhile: the two are
  then mixed, page by page. So both are looked at before, without SQLite's log functions, which write.
* Each commit of ours counts one up in the first page of the file (`count_commit`). As it stands in the file,
  that page is one of those in the log, or what it was right before the first of them; else the file is
  another one than the log is of.
* SQLite counts changes of the tables there too: what it copies (``VACUUM INTO``, ``.backup``) has counted
  otherwise than what was copied. ``.restore`` into an open file counts one, and takes over all else.

Source: https://www.sqlite.org/fileformat2.html, sections 1.3 (the first page) and 4 (the log).
"""

from __future__ import annotations

import random
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import closing
from io import SEEK_CUR, FileIO
from typing import NamedTuple

__all__ = ["FirstPage", "begin_count", "belongs", "count_commit", "first_pages"]

MOST = 2**31 - 1
"""After it the count goes on with 0."""
_HEAD, _FRAME = 32, 24
"""Bytes of the head of the log, and of the head of a page in it."""
_COUNTS = ("schema_version", "user_version", "application_id")


class FirstPage(NamedTuple):
    """What the first page of a database says of it."""

    changes: int
    """Of the tables; SQLite's ``schema_version``."""
    commits: int
    """As `count_commit` counts; SQLite's ``user_version``, of which it makes no use."""
    application: int


def begin_count(database: sqlite3.Connection) -> None:
    """Begin anywhere, so that two stores do not count the same."""
    database.execute(f"PRAGMA user_version = {random.getrandbits(31)}")


def count_commit(database: sqlite3.Connection) -> None:
    """Count one up, in the transaction that is to be committed."""
    (count,) = database.execute("PRAGMA user_version").fetchone()
    database.execute(f"PRAGMA user_version = {count + 1 & MOST}")


def belongs(log: str, connect: Callable[[], sqlite3.Connection]) -> bool | None:
    """Is the log of the file that ``connect`` opens, without its log?

    Others may write meanwhile: where they begin the log anew, all is looked at again. None where the file
    cannot be read just now, for its first page is written before the pages that it counts.
    """
    while head := _head(log):
        try:
            with closing(connect()) as database:
                file = FirstPage(*(_pragma(database, name) for name in _COUNTS))
        except sqlite3.DatabaseError:
            return None
        pages = first_pages(log)
        if _head(log) == head:
            return not pages or file in pages or _follows(file, pages[0])
    return True


def _pragma(database: sqlite3.Connection, name: str) -> int:
    (value,) = database.execute(f"PRAGMA {name}").fetchone()
    return int(value)


def _follows(before: FirstPage, after: FirstPage) -> bool:
    """Can it be the next state of the page?"""
    if not before.application or after.changes == before.changes + 1:  # the first tables; VACUUM, .restore
        return True
    return after.changes >= before.changes and (after.commits - before.commits) & MOST <= 1


def _head(log: str) -> bytes:
    """What the log begins with, which is other bytes each time that it is begun anew; empty of no log."""
    try:
        with open(log, "rb", buffering=0) as file:
            return file.read(_HEAD)
    except OSError:
        return b""


def first_pages(log: str) -> list[FirstPage]:
    """Each state of the first page that stands in the log, oldest first; empty where there is no log."""
    try:
        with open(log, "rb", buffering=0) as file:
            head = file.read(_HEAD)
            return list(_pages(file, head)) if len(head) == _HEAD else []
    except OSError:
        return []


def _pages(file: FileIO, head: bytes) -> Iterator[FirstPage]:
    """The first pages; whether they are complete is seen from the checksum of the first of them.

    Of the later ones it does not matter: one more than there are makes no log a wrong one.
    """
    (size,), salts, checksum = struct.unpack(">I", head[8:12]), head[16:24], head[24:]
    first = True
    while (frame := file.read(_FRAME))[8:16] == salts:
        if frame[:4] != b"\0\0\0\1":
            file.seek(size, SEEK_CUR)
        else:
            page = file.read(size)
            if len(page) < size or (first and _checksum(checksum, frame[:8] + page, head) != frame[16:]):
                return
            first = False
            yield FirstPage(*struct.unpack_from(">i16xi4xi", page, 40))
        checksum = frame[16:]


def _checksum(before: bytes, content: bytes, head: bytes) -> bytes:
    """Of the content, going on from that of what stands before it; the head tells the order of bytes."""
    one, two = struct.unpack(">II", before)
    words = struct.iter_unpack(">II" if head[3] & 1 else "<II", content)
    for left, right in words:
        one = (one + left + two) & 0xFFFFFFFF
        two = (two + right + one) & 0xFFFFFFFF
    return struct.pack(">II", one, two)
