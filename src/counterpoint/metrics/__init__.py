"""Metrics: one paper or idea a file. ``metric("upr(threshold=0.6)")`` is the way from text to one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterpoint.errors import UsageError
from counterpoint.registry import lookup, parse_call

if TYPE_CHECKING:
    from counterpoint.contracts import Metric

__all__ = ["DEFAULT", "SETS", "TABLE", "metric", "metrics_of"]

TABLE: dict[str, str] = {
    "accuracy": "counterpoint.metrics.outcome:ACCURACY",
    "ids": "counterpoint.metrics.gemmas:IDS",
    "upr": "counterpoint.metrics.gemmas:UPR",
    "upr_residual": "counterpoint.metrics.gemmas:UPR_RESIDUAL",
    "tokens_in": "counterpoint.metrics.outcome:TOKENS_IN",
    "tokens_out": "counterpoint.metrics.outcome:TOKENS_OUT",
    "cost_usd": "counterpoint.metrics.outcome:COST_USD",
    "steps": "counterpoint.metrics.outcome:STEPS",
    "agents": "counterpoint.metrics.outcome:AGENTS",
    "rounds": "counterpoint.metrics.outcome:ROUNDS",
    "depth": "counterpoint.metrics.outcome:DEPTH",
    "parallelism": "counterpoint.metrics.outcome:PARALLELISM",
    "wall_time_s": "counterpoint.metrics.outcome:WALL_TIME_S",
    "unparsed": "counterpoint.metrics.outcome:UNPARSED",
    "forest_match": "counterpoint.metrics.forest_match:FOREST_MATCH",
    "best_similarity": "counterpoint.metrics.forest_match:BEST_SIMILARITY",
    "mean_uptake": "counterpoint.metrics.panel:MEAN_UPTAKE",
    "node_validity": "counterpoint.metrics.panel:NODE_VALIDITY",
    "content_redundancy": "counterpoint.metrics.panel:CONTENT_REDUNDANCY",
    "near_redundancy": "counterpoint.metrics.panel:NEAR_REDUNDANCY",
    "efficiency": "counterpoint.metrics.panel:EFFICIENCY",
    "memory_redundancy": "counterpoint.metrics.layers:MEMORY_REDUNDANCY",
    "reasoning_redundancy": "counterpoint.metrics.layers:REASONING_REDUNDANCY",
    "task_redundancy": "counterpoint.metrics.layers:TASK_REDUNDANCY",
    "knowledge_duplication": "counterpoint.metrics.layers:KNOWLEDGE_DUPLICATION",
    "duplicate_work": "counterpoint.metrics.repetition:DUPLICATE_WORK",
    "duplicated_tokens": "counterpoint.metrics.repetition:DUPLICATED_TOKENS",
    "loops": "counterpoint.metrics.loops:LOOPS",
    "communication_tax": "counterpoint.metrics.teamwork:COMMUNICATION_TAX",
    "effective_channels": "counterpoint.metrics.teamwork:EFFECTIVE_CHANNELS",
    "participation_gini": "counterpoint.metrics.teamwork:PARTICIPATION_GINI",
    "overhead": "counterpoint.metrics.teamwork:OVERHEAD",
    "error_amplification": "counterpoint.metrics.teamwork:ERROR_AMPLIFICATION",
    "message_density": "counterpoint.metrics.teamwork:MESSAGE_DENSITY",
    "flip_gain": "counterpoint.metrics.flips:FLIP_GAIN",
    "information_survival": "counterpoint.metrics.planted:INFORMATION_SURVIVAL",
    "mast_modes": "counterpoint.metrics.mast:MAST_MODES",
    "upr_uptake": "counterpoint.metrics.uptake:UPR_UPTAKE",
    "blame": "counterpoint.metrics.blame:BLAME",
    "unity": "counterpoint.metrics.claim_metrics:UNITY",
    "unique_claims": "counterpoint.metrics.claim_metrics:UNIQUE_CLAIMS",
    "extension_rate": "counterpoint.metrics.claim_metrics:EXTENSION_RATE",
    "source_retention": "counterpoint.metrics.claim_metrics:SOURCE_RETENTION",
    "survival_rate": "counterpoint.metrics.claim_metrics:SURVIVAL_RATE",
    "survival_length": "counterpoint.metrics.claim_metrics:SURVIVAL_LENGTH",
}

DEFAULT: tuple[str, ...] = tuple(TABLE)[:14]
"""What ``score`` computes when nothing is asked for."""

SETS: dict[str, tuple[str, ...]] = {
    "river": (
        "unity",
        "unique_claims",
        "extension_rate",
        "source_retention",
        "survival_rate",
        "survival_length",
    ),
}
"""Names that stand for several metrics: ``river(judge=llm)`` is each of them with that judge."""


def metric(text: str | Metric) -> Metric:
    """The metric that ``text`` names, parameters bound: ``upr``, ``upr(threshold=0.6, paths=maximal)``."""
    if not isinstance(text, str):
        return text
    name, given = parse_call(text, "metric")
    found: Metric = lookup("metric", name)
    return found.bind(**given) if given else found


def metrics_of(text: str | Metric) -> list[Metric]:
    """The metrics that ``text`` names: those of a set, each with the parameters that it has, or the one."""
    if not isinstance(text, str):
        return [text]
    set_name, given = parse_call(text, "metric")
    if set_name not in SETS:
        return [metric(text)]
    members: list[Metric] = [lookup("metric", name) for name in SETS[set_name]]
    for name in given:
        if name != "profile" and not any(name in member.parameters for member in members):
            raise UsageError(f"no metric of the set {set_name!r} has a parameter {name!r}")
    return [
        member.bind(**{name: given[name] for name in given if name == "profile" or name in member.parameters})
        for member in members
    ]
