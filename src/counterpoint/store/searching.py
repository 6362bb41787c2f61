"""Finding the runs in which a text stands, without looking through all of them.

Conventions
-----------
* Texts and what is searched for are compared in lower case.
* The index knows which three characters in a row (grams) a text has anywhere. What has all grams of a search
  is then looked through in full, so that only what stands there is found.
* A gram is indexed as a number, each once a text, so that a text of a megabyte costs what its different grams
  cost. Two grams of one number make a text be looked through in vain, no more.
"""

from __future__ import annotations

import sqlite3

__all__ = ["LEAST", "drop_text", "match", "put_text"]

LEAST = 3
"""Characters that a search needs for the index to help."""
MOST = 32
"""Grams of a search that the index is asked for."""
NUMBERS = 2**20
_FACTORS = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)  # odd and far apart: they spread neighbors over all numbers


def put_text(database: sqlite3.Connection, run: int, text: str) -> None:
    """What a search of the run looks through from now on; nothing is done where it already does."""
    if database.execute("SELECT 1 FROM texts WHERE run = ? AND content = ?", (run, text)).fetchone():
        return
    drop_text(database, run)
    database.execute("INSERT INTO texts (run, content) VALUES (?, ?)", (run, text))
    database.execute("INSERT INTO search (rowid, grams) VALUES (?, ?)", (run, " ".join(_grams(text))))


def drop_text(database: sqlite3.Connection, run: int) -> None:
    """Search the run no more."""
    row = database.execute("SELECT content FROM texts WHERE run = ?", (run,)).fetchone()
    if row is not None:
        database.execute(
            "INSERT INTO search (search, rowid, grams) VALUES ('delete', ?, ?)",
            (run, " ".join(_grams(row[0]))),
        )
        database.execute("DELETE FROM texts WHERE run = ?", (run,))


def match(wanted: str) -> str:
    """The question to the index: which texts have the grams of ``wanted``?"""
    return " AND ".join(_grams(wanted)[:MOST])


def _grams(text: str) -> list[str]:
    """The number of each gram of the text, each once."""
    import numpy as np

    signs = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    mixed = signs[:-2] * _FACTORS[0] + signs[1:-1] * _FACTORS[1] + signs[2:] * _FACTORS[2]
    there = np.zeros(NUMBERS, dtype=bool)
    there[(mixed ^ mixed >> 15) % NUMBERS] = True
    return [f"{number:x}" for number in np.flatnonzero(there).tolist()]
