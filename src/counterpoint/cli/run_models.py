"""Which model ``counterpoint run`` asks: one at an endpoint, or one of those in this process."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from counterpoint.errors import UsageError

if TYPE_CHECKING:
    from counterpoint.engine.jobs import Plan
    from counterpoint.engine.local import Models
    from counterpoint.models.chat_http import ChatHTTP
    from counterpoint.models.chat_local import ChatLocal

__all__ = ["choose_models", "in_process"]

IN_PROCESS = ("simulated", "chat_local")
"""What ``--model`` may name besides a model at an endpoint; with parameters in parentheses."""
OPTIONS = {"seed": "--seeds", "temperature": "--temperature", "max_tokens": "--max-tokens"}
"""Parameters of models that are not set in parentheses."""
_CALL = re.compile(r"[\w-]+\s*\(.*", re.DOTALL)


def in_process(name: str) -> bool:
    """Does ``--model`` name a model in this process, well or badly?"""
    return name in IN_PROCESS or bool(_CALL.fullmatch(name))


def choose_models(plan: Plan, *, base_url: str, api_key_env: str, timeout_s: float) -> Models:
    """The model under each seed, checked as far as that goes without asking it."""
    from counterpoint.models._keys import named_key

    named_key(api_key_env)  # also where no key is needed: the command line is written into the run folder
    text = str(plan.model["model"])
    if not in_process(text):
        return _http(plan, base_url, api_key_env, timeout_s)
    name, given = _parsed(text)
    if "top_p" in plan.model:
        raise UsageError("--top-p: no model in this process has it")
    if name == "chat_local":
        return _local(plan, given)
    from counterpoint.models.simulated import Simulated

    Simulated(plan.examples, **given)
    return lambda seed, wait: Simulated(plan.examples, **given, seed=seed)


def _parsed(text: str) -> tuple[str, dict[str, Any]]:
    """The name of a model in this process and its parameters; a UsageError names what it does not have."""
    from counterpoint.registry import lookup, parse_call, suggest

    name, given = parse_call(text, "--model")
    if name not in IN_PROCESS:
        raise UsageError(
            f"--model {text!r}: no model {name!r} in this process{suggest(name, IN_PROCESS)}; "
            f"there are: {', '.join(IN_PROCESS)}"
        )
    parameters = inspect.signature(lookup("model", name)).parameters.values()
    known = [one.name for one in parameters if one.default is not one.empty and one.name not in OPTIONS]
    for key in given:
        if key in OPTIONS:
            raise UsageError(f"--model {text!r}: {key} is an option of its own, {OPTIONS[key]}")
        if key not in known:
            raise UsageError(
                f"--model {text!r}: {name} has no parameter {key!r}{suggest(key, known)}; "
                f"it has: {', '.join(known)}"
            )
    return name, given


def _local(plan: Plan, given: dict[str, Any]) -> Models:
    """One model in this process for all seeds: it is large, and they are sent with each call."""
    from counterpoint.models.chat_local import ChatLocal

    set_up = {name: plan.model[name] for name in ("temperature", "max_tokens") if name in plan.model}
    first = ChatLocal(**given, **set_up)

    def model(seed: int, wait: Callable[[float], object]) -> ChatLocal:
        one = copy.copy(first)
        one.settings = {**first.settings, "seed": seed}
        return one

    return model


def _http(plan: Plan, base_url: str, api_key_env: str, timeout_s: float) -> Models:
    """The endpoint's model under each seed; all of them share its connections."""
    from counterpoint.models.chat_http import ChatHTTP

    first = ChatHTTP(
        str(plan.model["model"]),
        base_url=base_url,
        api_key_env=api_key_env,
        temperature=plan.model.get("temperature"),
        max_tokens=plan.model.get("max_tokens"),
        extra={name: plan.model[name] for name in ("top_p",) if name in plan.model},
        timeout_s=timeout_s,
    )

    def model(seed: int, wait: Callable[[float], object]) -> ChatHTTP:
        one = copy.copy(first)
        one.seed, one.wait = seed, wait
        return one

    return model
