"""The options by which commands read traces and judge them, declared once for all commands."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, get_type_hints

import typer

from counterpoint.cli import options

if TYPE_CHECKING:
    from counterpoint.adapters import Reading

__all__ = ["ALL", "HOW", "READING", "TraceOptions", "open_readings", "renames", "takes_trace_options"]


@dataclass(frozen=True)
class TraceOptions:
    """How the user wants traces read and judged; the order is that of ``--help``."""

    gold: options.Gold = None
    format_from: options.From = "auto"
    profile: options.Profile = "strict"
    evidence: options.EvidenceLevel = "broadcast"
    system: options.System = None
    exclude_agent: options.ExcludeAgent = None
    rename_agent: options.RenameAgent = None
    embedder: options.EmbedderName = "default"
    answers: options.Answers = None
    answer_pattern: options.AnswerPattern = None
    regrade: options.Regrade = False
    name_key: options.NameKey = "name"
    role_key: options.RoleKey = "role"
    group_by: options.GroupBy = None
    max_bytes: options.MaxBytes = 256 * 2**20
    said: Collection[str] = ()
    """Names of the options that the user gave, not left at their defaults."""

    def open(self, paths: Sequence[str]) -> list[Reading]:
        """One reading a path; faulty records are kept aside and told at the end."""
        return open_readings(
            paths,
            format=self.format_from,
            system=self.system,
            exclude_agents=self.exclude_agent or (),
            rename_agents=renames(self.rename_agent),
            name_key=self.name_key,
            role_key=self.role_key,
            group_by=self.group_by,
            max_bytes=self.max_bytes,
        )

    @property
    def judging(self) -> dict[str, Any]:
        """What `evaluate` is told; a profile only where the user named one, for metrics may name theirs."""
        return {
            "profile": self.profile if "profile" in self.said else None,
            "evidence": self.evidence,
            "gold": self.gold,
            "answers": self.answers,
            "answer_pattern": self.answer_pattern,
            "regrade": self.regrade,
            "embedder": self.embedder,
        }


HOW = TraceOptions()
ALL = frozenset(field.name for field in fields(TraceOptions)) - {"said"}
READING = frozenset(
    (
        "format_from",
        "system",
        "exclude_agent",
        "rename_agent",
        "name_key",
        "role_key",
        "group_by",
        "max_bytes",
    )
)
"""Those that `TraceOptions.open` goes by."""

Command = Callable[..., None]


def takes_trace_options(
    only: Collection[str] = ALL, before: Mapping[str, Sequence[str]] | None = None
) -> Callable[[Command], Command]:
    """Gives a command trace options, put together as its parameter ``how``, in whose place they stand.

    Parameters
    ----------
    only: the options that the command has.
    before: parameter of the command to the options that stand before it, and not in the place of ``how``.
    """
    moved = {name for names in (before or {}).values() for name in names}

    def decorate(command: Command) -> Command:
        hints = get_type_hints(TraceOptions, include_extras=True)
        shared = {
            field.name: inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=hints[field.name],
            )
            for field in fields(TraceOptions)
            if field.name in only
        }
        parameters: list[inspect.Parameter] = [
            inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        ]
        for own in inspect.signature(command, eval_str=True).parameters.values():
            parameters += [shared[name] for name in (before or {}).get(own.name, ())]
            if own.name == "how":
                parameters += [parameter for name, parameter in shared.items() if name not in moved]
            else:
                parameters.append(own.replace(kind=inspect.Parameter.KEYWORD_ONLY))

        @functools.wraps(command)
        def run(context: typer.Context, **given: Any) -> None:
            said = {name for name in shared if _was_given(context, name)}
            how = TraceOptions(**{name: given.pop(name) for name in shared}, said=said)
            command(how=how, **given)

        # What typer makes the command line of.
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _was_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")


def renames(pairs: list[str] | None) -> dict[str, str]:
    """``A=B`` options to {A: B}."""
    from counterpoint.errors import UsageError

    found = {}
    for pair in pairs or ():
        old, equals, new = pair.partition("=")
        if not equals or not old or not new:
            raise UsageError(f"--rename-agent {pair!r} is not of the form A=B")
        found[old] = new
    return found


def open_readings(paths: Sequence[str], **how: Any) -> list[Reading]:
    """One reading a path; faulty records are kept aside and told at the end."""
    from counterpoint.adapters import read

    return [read(path, on_error=lambda error: None, **how) for path in paths]
