"""Options that several commands share, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Paths = Annotated[list[str], typer.Argument(metavar="PATH...", help="Files, folders, globs, or - for stdin.")]
From = Annotated[
    str, typer.Option("--from", metavar="FORMAT", help="Trace format; see: counterpoint list adapters.")
]
System = Annotated[
    str | None, typer.Option("--system", metavar="NAME", help="Name of the system for all traces.")
]
ExcludeAgent = Annotated[
    list[str] | None,
    typer.Option("--exclude-agent", metavar="NAME", help="Leave this agent's steps out. Repeatable."),
]
RenameAgent = Annotated[
    list[str] | None,
    typer.Option("--rename-agent", metavar="A=B", help="Call agent A by the name B. Repeatable."),
]
NameKey = Annotated[
    str, typer.Option("--name-key", metavar="KEY", help="Chat lists: key of the speaker's name.")
]
RoleKey = Annotated[
    str, typer.Option("--role-key", metavar="KEY", help="Chat lists: key of the message's role.")
]
GroupBy = Annotated[
    str | None,
    typer.Option("--group-by", metavar="LABEL", help="Join traces that share this label: session.id."),
]
MaxBytes = Annotated[
    int, typer.Option("--max-bytes", metavar="N", min=1, help="Refuse a single JSON document that is larger.")
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "-m", "--metric", metavar="METRIC", help="ids, 'upr(threshold=0.6)', ... Repeatable; default: a set."
    ),
]
Gold = Annotated[
    Path | None,
    typer.Option(
        "--gold", metavar="FILE", help="Gold answers: JSONL or CSV with `trace` or `task`, and `gold`."
    ),
]
Profile = Annotated[
    str, typer.Option("--profile", metavar="strict|paper", help="One profile for all metrics.")
]
EvidenceLevel = Annotated[
    str,
    typer.Option(
        "--evidence",
        metavar="LEVEL",
        help="Weakest evidence that counts: explicit, call, context, broadcast, nesting, sequence.",
    ),
]
Answers = Annotated[
    str | None,
    typer.Option("--answers", metavar="number|choice|text", help="Kind of answer; default: from the gold."),
]
AnswerPattern = Annotated[
    str | None,
    typer.Option("--answer-pattern", metavar="REGEX", help="Your own form of answer, with one group."),
]
Regrade = Annotated[bool, typer.Option("--regrade", help="Grade from the texts, not as recorded.")]
EmbedderName = Annotated[
    str,
    typer.Option("--embedder", metavar="NAME|PATH", help="default, a folder, or a hub model."),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Keep no vectors on disk.")]
Workers = Annotated[int | None, typer.Option("--workers", metavar="N", min=1, help="Processes.")]
Engine = Annotated[str, typer.Option("--engine", metavar="local", help="Where the work runs.")]
Roles = Annotated[
    str, typer.Option("--roles", metavar="FILE", help="Your own table of names and roles, looked up first.")
]
KeepSecrets = Annotated[bool, typer.Option("--keep-secrets", help="Do not mask values that look like keys.")]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write there, not to stdout.")
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress and no warnings on stderr.")]
