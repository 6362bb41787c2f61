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


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The browser; skips where there is none."""
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("no chromium here: install it to open the page")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="no playwright here: pip install playwright"
    )
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=found, args=FLAGS.split())
        yield started
        started.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens pages, each in a window of its own: ``visit(url, color_scheme="dark")``.

    At the end nothing may have gone wrong in any: no error or refusal in the console, no dialog, no request
    to another host, and no `window.pwned`, which hostile texts set where they run. What a test expects it
    takes from ``page.problems``.
    """
    with ExitStack() as stack:
        pages = []

        def start(url: str, **options: Any) -> Any:
            context = browser.new_context(**{"viewport": {"width": 1200, "height": 800}, **options})
            stack.callback(context.close)
            page = context.new_page()
            page.problems = _watch(page, url)
            pages.append(page)
            page.goto(url)
            return page

        yield start
        for page in pages:
            if not page.is_closed():
                assert page.problems == []
                assert page.evaluate("() => window.pwned") is None


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
