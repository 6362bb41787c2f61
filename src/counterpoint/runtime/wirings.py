"""What a wiring has to be, in which order it lets agents speak, and how it stands in a file.

    {"schema": "counterpoint.wiring/1",
     "speaks": [[1, 1]], "within": [[[0, 1], [0, 0]]], "across": []}

Conventions
-----------
* Agents are numbered in the order of the team; rows are sources (see `counterpoint.contracts.Wiring`).
* In a file, entries are 0 and 1 (or false and true). Unknown keys are left alone: who learns a wiring may
  keep notes beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from counterpoint.contracts import Wiring
from counterpoint.errors import GraphError, UsageError
from counterpoint.graph import topological_order

__all__ = ["SCHEMA", "check_wiring", "plain", "read_wiring", "speaking_order", "write_wiring"]

SCHEMA = "counterpoint.wiring/1"


def check_wiring(wiring: Wiring, agents: int | None = None) -> Wiring:
    """The wiring itself; GraphError says what is wrong with its shapes or which round has a cycle."""
    speaks, within, across = wiring.speaks, wiring.within, wiring.across
    if speaks.ndim != 2 or 0 in speaks.shape:
        raise GraphError(f"`speaks` of a wiring is (rounds, agents), found shape {speaks.shape}")
    rounds, n = speaks.shape
    for name, array, shape in (("within", within, (rounds, n, n)), ("across", across, (rounds - 1, n, n))):
        if array.shape != shape:
            raise GraphError(f"`{name}` of this wiring is {shape}, found shape {array.shape}")
    if agents is not None and n != agents:
        raise GraphError(f"the wiring is for {n} agents, and the team has {agents}")
    for number in range(rounds):
        if not speaks[number].any():
            raise GraphError(f"round {number}: nobody speaks: leave the round out")
        if within[number].diagonal().any():
            raise GraphError(f"round {number}: an agent hears itself within it: clear the diagonal")
        speaking_order(wiring, number)
    return wiring


def speaking_order(wiring: Wiring, number: int) -> list[int]:
    """Who speaks in round ``number``, each after all that it hears; otherwise in the order of the team.

    Raises GraphError where the round has a cycle.
    """
    speaks = wiring.speaks[number]
    edges = np.argwhere(wiring.within[number] & speaks[:, None] & speaks[None, :])
    try:
        order = topological_order(len(speaks), edges)
    except GraphError as error:
        raise GraphError(f"round {number} of the wiring: {error}") from None
    return [agent for agent in order if speaks[agent]]


def read_wiring(path: str | Path) -> Wiring:
    """The wiring in a JSON file; a UsageError names the file and what is wrong with it."""
    try:
        document = msgspec.json.decode(Path(path).read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: could not be read: {error.strerror or error}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"{path}: not JSON: {error}") from None
    found = document.get("schema") if isinstance(document, dict) else None
    if found != SCHEMA:
        raise UsageError(f"{path}: a wiring has the schema {SCHEMA!r}, found {found!r}")
    speaks = _array(document, "speaks", path)
    across = _array(document, "across", path)
    if across.size == 0 and speaks.ndim == 2:
        across = np.zeros((0, speaks.shape[1], speaks.shape[1]), dtype=np.bool_)
    try:
        return check_wiring(Wiring(speaks, _array(document, "within", path), across))
    except GraphError as error:
        raise UsageError(f"{path}: {error}") from None


def _array(document: dict[str, Any], name: str, path: str | Path) -> NDArray[np.bool_]:
    try:
        array = np.asarray(document.get(name, []))
    except ValueError:
        array = np.asarray(None)
    if array.size and (array.dtype == object or not np.isin(array, (0, 1)).all()):
        raise UsageError(f'{path}: "{name}" is a list of lists of 0 and 1, of equal lengths')
    return array.astype(np.bool_)


def plain(wiring: Wiring) -> dict[str, Any]:
    """The wiring as JSON-ready objects."""
    return {
        "schema": SCHEMA,
        "speaks": wiring.speaks.astype(int).tolist(),
        "within": wiring.within.astype(int).tolist(),
        "across": wiring.across.astype(int).tolist(),
    }


def write_wiring(wiring: Wiring, path: str | Path) -> None:
    """Write the wiring as a file that `read_wiring` and ``counterpoint run --wiring`` take."""
    data = msgspec.json.format(msgspec.json.encode(plain(check_wiring(wiring))), indent=1)
    try:
        Path(path).write_bytes(data + b"\n")
    except OSError as error:
        raise UsageError(f"{path}: could not be written: {error.strerror or error}") from None
