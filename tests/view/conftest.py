"""A real browser for the tests of pages: Debian's Chromium, driven by playwright."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --force-color-profile=srgb --disable-lcd-text"
)


UNIT = f"<table>{'<tr><td>one</td><td>two <b>three</b></td></tr>' * 5000}</table>"
UNIT_S = 0.25
"""Seconds of the processor that `UNIT` takes where the bounds of tests are meant as they stand, or faster."""

HANGS_MS = 300_000
"""So long a test waits for what has to come, however slow or busy the machine is."""


@pytest.fixture(scope="module")
def launch() -> Iterator[Callable[..., Any]]:
    """Starts browsers, each with flags of its own besides; skips where there is none."""
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("no chromium here: install it to open the page")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="no playwright here: pip install playwright"
    )
    with playwright.sync_playwright() as driver, ExitStack() as stack:

        def start(*flags: str) -> Any:
            args = [*FLAGS.split(), *flags]
            started = driver.chromium.launch(executable_path=found, args=args, timeout=HANGS_MS)
            stack.callback(started.close)
            return started

        yield start


@pytest.fixture(scope="module")
def browser(launch: Callable[..., Any]) -> Any:
    """The browser."""
    return launch()


@pytest.fixture
def work_s() -> Callable[..., float]:
    """Seconds of the processor that a page takes to load, in its own process: ``work_s(page, page.reload)``.

    Other work on the machine does not count, and neither does a slow processor: where the page `UNIT` takes
    longer than `UNIT_S`, the seconds are so many times shorter.
    """

    def measure(page: Any, load: Callable[[], Any]) -> float:
        other = page.context.new_page()
        unit = min(_taken(other, lambda: other.set_content(UNIT)) for _ in range(3))
        other.close()
        return _taken(page, load) / max(1.0, unit / UNIT_S)

    return measure


def _taken(page: Any, load: Callable[[], Any]) -> float:
    """Seconds of the processor until the page is loaded and painted."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def spent() -> float:
        found = session.send("Performance.getMetrics")["metrics"]
        return next(float(one["value"]) for one in found if one["name"] == "ProcessTime")

    before = spent()
    load()
    page.wait_for_function("() => performance.getEntriesByType('paint').length > 0")
    found = spent() - before
    session.detach()
    return found


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens pages, each in a window of its own: ``visit(url, color_scheme="dark")``.

    At the end nothing may have gone wrong in any: no error or refusal in the console, no dialog, no request
    to another host, and no `window.pwned`, which hostile texts set where they run. ``page.expected`` takes
    words of those problems that a test means to have, whenever they come.
    """
    with ExitStack() as stack:
        pages = []

        def start(url: str, **options: Any) -> Any:
            context = browser.new_context(**{"viewport": {"width": 1200, "height": 800}, **options})
            stack.callback(context.close)
            context.set_default_timeout(HANGS_MS)
            page = context.new_page()
            page.problems, page.expected = _watch(page, url), []
            pages.append(page)
            page.goto(url)
            return page

        yield start
        for page in pages:
            if not page.is_closed():
                assert page.evaluate("() => window.pwned") is None
                meant = page.expected
                assert [one for one in page.problems if not any(word in one for word in meant)] == []


def _watch(page: Any, url: str) -> list[str]:
    problems: list[str] = []
    home = "/".join(url.split("/")[:3])

    def console(message: Any) -> None:
        if message.type in ("error", "warning"):
            problems.append(f"console: {message.text}")

    def request(one: Any) -> None:
        if not one.url.startswith((home, "data:", "blob:")):
            problems.append(f"request: {one.url}")

    def dialog(one: Any) -> None:
        problems.append(f"dialog: {one.message}")
        one.dismiss()

    page.on("console", console)
    page.on("request", request)
    page.on("dialog", dialog)
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    return problems
