"""The HTML that pages are made of: a line and a block of a user's text, a table, a picture.

User text passes `counterpoint.view.visible`: masked, escaped, apart from the direction of the page.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from counterpoint.view.visible import shortened, visible

__all__ = ["block", "html_table", "inline", "named", "picture", "values_table"]

MOST_TEXT = 4000


def inline(text: str, most: int = 200) -> str:
    """One line of a user's text, set apart from the direction of what stands around it."""
    return f"<bdi>{shortened(text, most)}</bdi>"


def block(text: str, most: int = MOST_TEXT) -> str:
    """A user's text as it is, its end cut where it is long."""
    clean = visible(text)
    told = f'<p class="more">… and {len(clean) - most:,} more characters.</p>' if len(clean) > most else ""
    return f'<pre dir="auto">{html.escape(clean[:most])}</pre>{told}'


def named(system: str | None) -> str:
    """The name of a system as a cell or heading; None: all of them."""
    return "all" if system is None else inline(system, 60) if system.strip() else "(no name)"


def html_table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that scrolls, by keyboard too; caption and cells are HTML, the first of a row its heading."""
    top = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    lines = [
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    ]
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{caption}"><table><caption>{caption}'
        f"</caption><thead><tr>{top}</tr></thead><tbody>\n" + "\n".join(lines) + "\n</tbody></table></div>"
    )


def values_table(caption: str, rows: Sequence[tuple[str, str, str]]) -> str:
    """Metric, value and why there is none; without the last column where each has a value."""
    if any(why for _, _, why in rows):
        return html_table(caption, ["metric", "value", "why undefined"], rows)
    return html_table(caption, ["metric", "value"], [row[:2] for row in rows])


def picture(svg: str, label: str, told: str = "") -> str:
    """A picture that scrolls, by keyboard too; ``label`` is no user's text, ``told`` is HTML below it."""
    below = f'<p class="note">{told}</p>' if told else ""
    return f'<figure tabindex="0" role="group" aria-label="{label}">{svg}{below}</figure>'
