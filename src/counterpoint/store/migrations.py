"""How the tables came to be: a list of small functions, each run once on a database and remembered in it.

Conventions
-----------
* A released function is never changed: what it made stands in databases of users. A change is a new one.
* All that are missing run in one transaction: a database is of one version or of the next, never between.
* ``application_id`` tells a database of ours from one of another program.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable

from counterpoint.errors import UsageError
from counterpoint.store.log import begin_count

__all__ = ["APPLICATION_ID", "FOREIGN", "MIGRATIONS", "foreign", "migrate", "version"]

APPLICATION_ID = 0x43505354
"""``CPST`` in ASCII."""
FOREIGN = "is a database of another program: give another file with --store"


def _create_tables(database: sqlite3.Connection) -> None:
    """Runs with their spans as received, and what was made of them: traces, scores, claims."""
    for statement in (
        """CREATE TABLE runs (
            key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, origin TEXT NOT NULL, name TEXT, digest BLOB,
            system TEXT NOT NULL DEFAULT '', task TEXT NOT NULL DEFAULT '', agents TEXT NOT NULL DEFAULT '[]',
            answer TEXT, correct INTEGER, started_at REAL, ended_at REAL, received_at REAL NOT NULL,
            updated_at REAL NOT NULL, spans INTEGER NOT NULL DEFAULT 0, steps INTEGER NOT NULL DEFAULT 0,
            traces INTEGER NOT NULL DEFAULT 0, revision INTEGER NOT NULL DEFAULT 0,
            scored_revision INTEGER NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT '')""",
        "CREATE UNIQUE INDEX runs_by_file ON runs(origin, name) WHERE name IS NOT NULL",
        "CREATE INDEX runs_by_content ON runs(digest) WHERE digest IS NOT NULL",
        "CREATE INDEX runs_by_arrival ON runs(received_at)",
        "CREATE INDEX runs_by_system ON runs(system)",
        "CREATE INDEX runs_due ON runs(updated_at) WHERE revision > scored_revision",
        """CREATE TABLE trace_ids (
            key INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, run INTEGER NOT NULL, seen INTEGER NOT NULL)""",
        "CREATE INDEX trace_ids_by_run ON trace_ids(run)",
        """CREATE TABLE envelopes (
            key INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, content BLOB NOT NULL)""",
        """CREATE TABLE spans (
            key INTEGER PRIMARY KEY, trace INTEGER NOT NULL, id BLOB NOT NULL, envelope INTEGER NOT NULL,
            name TEXT NOT NULL, start_ns INTEGER NOT NULL, payload BLOB NOT NULL)""",
        "CREATE UNIQUE INDEX spans_by_id ON spans(trace, id)",
        "CREATE INDEX spans_by_envelope ON spans(envelope)",
        """CREATE TABLE traces (
            key INTEGER PRIMARY KEY, run INTEGER NOT NULL, id TEXT NOT NULL, content BLOB NOT NULL)""",
        "CREATE INDEX traces_by_run ON traces(run)",
        """CREATE TABLE scores (
            key INTEGER PRIMARY KEY, run INTEGER NOT NULL, trace TEXT NOT NULL, metric TEXT NOT NULL,
            value REAL, content BLOB NOT NULL)""",
        "CREATE INDEX scores_by_run ON scores(run)",
        "CREATE INDEX scores_by_metric ON scores(metric, run, value)",
        "CREATE TABLE claims (key INTEGER PRIMARY KEY, run INTEGER NOT NULL, content BLOB NOT NULL)",
        "CREATE INDEX claims_by_run ON claims(run)",
    ):
        database.execute(statement)


def _index_texts(database: sqlite3.Connection) -> None:
    """What a search looks through, and in which of it three characters stand in a row."""
    database.execute("ALTER TABLE runs ADD COLUMN head TEXT NOT NULL DEFAULT ''")
    database.execute("CREATE TABLE texts (run INTEGER PRIMARY KEY, content TEXT NOT NULL)")
    database.execute(
        "CREATE VIRTUAL TABLE search USING fts5(grams, content='', tokenize='ascii', detail=none)"
    )


MIGRATIONS: list[Callable[[sqlite3.Connection], None]] = [_create_tables, _index_texts]
"""Every change of the tables, oldest first; the number of one is its place in the list, from 1."""


def migrate(database: sqlite3.Connection, path: str) -> None:
    """Bring the database to the newest version; a UsageError where it is foreign, or newer than this code.

    The first look takes no lock, so that a store in daily use is opened beside busy writers.
    """
    if version(database, path) == len(MIGRATIONS):
        return
    database.execute("BEGIN IMMEDIATE")
    try:
        done = version(database, path)
        if not done:
            database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            begin_count(database)
            database.execute(
                "CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, at REAL NOT NULL)"
            )
        for number, step in enumerate(MIGRATIONS[done:], done + 1):
            step(database)
            name = step.__name__.strip("_")
            database.execute("INSERT INTO migrations VALUES (?, ?, ?)", (number, name, time.time()))
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def foreign(database: sqlite3.Connection) -> bool:
    """Is it a database of another program? An empty one is nobody's."""
    application = _application(database)
    if application:
        return application != APPLICATION_ID
    (tables,) = database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    return bool(tables) and _application(database) != APPLICATION_ID  # which may have come with the tables


def _application(database: sqlite3.Connection) -> int:
    (application,) = database.execute("PRAGMA application_id").fetchone()
    return int(application)


def version(database: sqlite3.Connection, path: str) -> int:
    """How many migrations were done, 0 of an empty database; UsageError of a foreign or a newer one."""
    if foreign(database):
        raise UsageError(f"{path}: {FOREIGN}")
    if not _application(database):
        return 0
    (done,) = database.execute("SELECT MAX(number) FROM migrations").fetchone()
    if done > len(MIGRATIONS):
        raise UsageError(
            f"{path}: was written by a newer counterpoint (its tables are version {done}, this one knows "
            f"{len(MIGRATIONS)}): upgrade counterpoint, or give another file with --store"
        )
    return int(done)
