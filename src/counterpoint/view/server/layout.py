"""The frame of every page of the web view: landmarks, navigation, what the script needs; and addresses.

Conventions
-----------
* No page holds script or style: both are files of our own under ``/static``, which a strict policy allows.
* What comes from the store or from a request passes `counterpoint.view.visible` before it stands in a page.
* The id of a run may be any text. In an address it is itself where it is plain, else ``~`` and base64.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from urllib.parse import urlencode

from counterpoint.score import Row
from counterpoint.scores import Scores, TraceInfo
from counterpoint.trace import Trace, seed, task_id
from counterpoint.view.report import STYLE
from counterpoint.view.visible import shortened

__all__ = [
    "STATIC",
    "day",
    "document",
    "key_of",
    "link_to",
    "moment",
    "run_of",
    "scores_of",
    "short",
    "static_file",
    "static_url",
]

FOLDER = Path(__file__).parent / "static"
STATIC: dict[str, str] = {
    "live.js": "text/javascript; charset=utf-8",
    "pages.css": "text/css; charset=utf-8",
}
"""The files that are served, and as what: nothing else of the disk is."""
MOST_READ = 20_000
"""Characters of a text that are looked at for a line of it."""

_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")


@cache
def static_file(name: str) -> bytes:
    """The content of a file in `STATIC`."""
    content = (FOLDER / name).read_bytes()
    return STYLE.encode() + b"\n" + content if name == "pages.css" else content


@cache
def static_url(name: str) -> str:
    """Its address, which changes with its content, so that browsers may keep it."""
    return f"/static/{name}?v={hashlib.sha256(static_file(name)).hexdigest()[:12]}"


def document(
    title: str,
    main: str,
    *,
    here: str = "",
    events: str = "",
    told: str = "",
    again_s: float = 0.0,
) -> str:
    """A whole page.

    Parameters
    ----------
    title: escaped, of the window.
    main: HTML, from the heading on.
    here: address of the navigation's link that is this page.
    events: address of the stream that tells when this page is out of date; empty: it never is.
    told: escaped; what a screen reader hears when it changed while the page was open.
    again_s: seconds after which the page is to be fetched again though nothing changes; 0: it is not.
    """
    current = ' aria-current="page"' if here == "/" else ""
    links = f'<li><strong>Counterpoint</strong></li><li><a href="/"{current}>Runs</a></li>'
    live = f' data-events="{events}" data-told="{told}"' if events else ""
    live += f' data-again="{math.ceil(1000 * again_s)}"' if again_s else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title} – Counterpoint</title>\n"
        f'<link rel="icon" href="data:,">\n<link rel="stylesheet" href="{static_url("pages.css")}">\n'
        f'<script src="{static_url("live.js")}" defer></script>\n</head>\n<body>\n'
        '<a class="skip" href="#main">Skip to the content</a>\n'
        f'<header class="top"><nav aria-label="Pages"><ul>{links}</ul></nav>'
        '<div class="live" id="live"><span id="live-state"></span>'
        '<span id="live-told" role="status"></span></div></header>\n'
        f'<main id="main" tabindex="-1"{live}>\n{main}\n</main>\n'
        "<footer><p>Counterpoint. Nothing on this page comes from elsewhere.</p></footer>\n</body>\n</html>\n"
    )


# --- addresses and texts -------------------------------------------------------------------------


def key_of(run_id: str) -> str:
    """The id of a run as it stands in an address.

    >>> key_of("5b8aa5a2d2c872e8321cf37308d69df2"), key_of("../a b")
    ('5b8aa5a2d2c872e8321cf37308d69df2', '~Li4vYSBi')
    """
    if _PLAIN.fullmatch(run_id):
        return run_id
    return "~" + base64.urlsafe_b64encode(run_id.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def run_of(key: str) -> str:
    """The id that `key_of` made the key of; a key that it cannot have made is an id itself.

    >>> run_of("~Li4vYSBi"), run_of("q1")
    ('../a b', 'q1')
    """
    if key.startswith("~"):
        try:
            padded = key[1:] + "=" * (-(len(key) - 1) % 4)
            return base64.urlsafe_b64decode(padded.encode("ascii")).decode("utf-8", "surrogatepass")
        except (ValueError, binascii.Error):
            return key
    return key


def link_to(path: str, parameters: Mapping[str, str] | Sequence[tuple[str, str]] = ()) -> str:
    """An address of ours, fit for an attribute; parameters without a value are left out."""
    pairs = parameters.items() if isinstance(parameters, Mapping) else parameters
    query = urlencode([pair for pair in pairs if pair[1]], errors="replace")
    return (f"{path}?{query}" if query else path).replace("&", "&amp;")


def short(text: str, most: int) -> str:
    """`shortened`, of a text of any length: its beginning is looked at."""
    return shortened(text[:MOST_READ], most)


def moment(at: float | None) -> str:
    """A time to the second, UTC; empty where it is not known or no time."""
    told = _utc(at)
    return "" if told is None else _time(told, f"{told:%Y-%m-%d %H:%M:%S} UTC")


def day(at: float | None) -> str:
    """A time as a list has room for it: day and minute, of another year its date; the rest in a title."""
    told = _utc(at)
    if told is None:
        return ""
    this_year = told.year == datetime.now(UTC).year
    short = f"{told:%m-%d %H:%M}" if this_year else f"{told:%Y-%m-%d}"
    return _time(told, short, f' title="{told:%Y-%m-%d %H:%M:%S} UTC"')


def _utc(at: float | None) -> datetime | None:
    try:
        return None if at is None else datetime.fromtimestamp(at, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def _time(at: datetime, told: str, more: str = "") -> str:
    return f'<time datetime="{at:%Y-%m-%dT%H:%M:%SZ}"{more}>{told}</time>'


def scores_of(rows: Sequence[Row], traces: Sequence[Trace]) -> Scores:
    """What the store keeps of a run, as an evaluation."""
    runs = {row.trace: row.run for row in rows}
    infos = [
        TraceInfo(runs.get(trace.id, ""), trace.id, trace.system, task_id(trace), seed(trace))
        for trace in traces
    ]
    return Scores(list(rows), infos)
