"""The web view in a real browser: it works by mouse, by keyboard, and without script."""

from __future__ import annotations

import time

import msgspec
import pytest
from pages_world import EVIL, claim, evil, put, score, scored, three_runs, trace

from counterpoint.trace import decode
from counterpoint.view.server.layout import key_of

pytestmark = pytest.mark.slow

FOCUSABLE = "a[href], button, input:not([type=hidden]), select, summary, [tabindex='0']"
REACHABLE = f"""() => {{
    const seen = [...document.querySelectorAll({FOCUSABLE!r})].filter(
        (one) => one.tabIndex >= 0 && one.checkVisibility());
    const groups = new Set();
    return seen.filter((one) => {{
        if (one.type !== "radio") return true;
        if (groups.has(one.name)) return false;
        groups.add(one.name);
        return true;
    }}).length;
}}"""
FOCUSED = """() => {
    const one = document.activeElement;
    if (!one || one === document.body) return null;
    one.dataset.reached = "yes";
    const style = getComputedStyle(one);
    const box = one.getBoundingClientRect();
    return {
        name: one.nodeName, seen: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0,
        inside: box.right > 0 && box.bottom > 0 && box.left < innerWidth && box.top < innerHeight,
        label: one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.[0]?.textContent || "",
    };
}"""
CONTRAST = """() => {
    const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = (rgb) => {
        const [r, g, b] = rgb.slice(0, 3).map((one) => one / 255)
            .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (one) => {
        for (let at = one; at; at = at.parentElement) {
            const rgb = numbers(getComputedStyle(at).backgroundColor);
            if (rgb.length < 4 || rgb[3] === 1) return rgb;
        }
        return matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255];
    };
    const faint = [];
    for (const one of document.querySelectorAll("body *")) {
        const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.nodeValue.trim());
        const hidden = ["TITLE", "DESC", "OPTION"].includes(one.nodeName.toUpperCase());
        if (!own || hidden || !one.checkVisibility()) continue;
        const style = getComputedStyle(one);
        const [a, b] = [light(numbers(one.closest("svg") ? style.fill : style.color)), light(behind(one))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) faint.push(`${one.nodeName} ${ratio.toFixed(2)}: ${one.textContent.slice(0, 40)}`);
    }
    return faint;
}"""


def tasks(page):
    return page.locator("tbody th").all_inner_texts()


def follow(page, selector):
    """Click on what leads to another page, and wait for that."""
    with page.expect_navigation():
        page.click(selector)


def resize(page, width):
    """Give the window another width, and wait until the page has it."""
    page.set_viewport_size({"width": width, "height": 800})
    page.wait_for_function("(width) => innerWidth === width", arg=width)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_loads_without_an_error_and_can_be_read(serving, visit, scheme):
    served = three_runs(serving)
    for path in ("/", "/?q=nothing", "/?a=a", "/runs/a", "/runs/c", "/compare?a=a&b=b"):
        page = visit(served.url + path, color_scheme=scheme)
        page.wait_for_function("() => document.documentElement.dataset.live === 'on'")
        for closed in page.locator("details:not([open]) > summary").all():
            closed.click()
        assert page.evaluate(CONTRAST) == []
        for width in (1200, 390):
            resize(page, width)
            assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        dark = sum(
            map(int, page.evaluate("() => getComputedStyle(document.body).backgroundColor.match(/\\d+/g)"))
        )
        assert (dark < 150) == (scheme == "dark")


def test_an_empty_store_and_a_page_that_is_not_there_load_too(serving, visit):
    served = serving()
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in visit(served.url).inner_text("main")
    page = visit(served.url + "/runs/nobody")
    assert "There is no run nobody" in page.inner_text("main")
    page.expected.append("404")


def test_the_pictures_show_their_marks(serving, visit):
    served = three_runs(serving)
    page = visit(served.url + "/runs/a")
    lanes, team, cost = page.locator("svg.cp").all()
    assert lanes.locator("a path.right").count() == 6
    assert team.locator("circle.n").count() == 3
    assert cost.locator("path.b").count() == 3
    assert "agent 1" in lanes.inner_html()
    lanes.locator("a path.right").first.click()
    page.wait_for_url("**#t1-s1")
    page = visit(served.url + "/compare?a=a&b=b")
    assert page.locator("#side-a svg.cp").count() == page.locator("#side-b svg.cp").count() == 3
    assert page.locator("#side-b path.wrong").count() >= 4


@pytest.mark.parametrize("script", [True, False])
def test_search_filter_and_compare_work_by_mouse_with_and_without_script(serving, visit, script):
    served = three_runs(serving)
    page = visit(served.url, java_script_enabled=script)
    assert tasks(page) == ["And pears?", "How many marbles?", "3+4?"]
    page.fill("#q", "marbles")
    follow(page, "#show")
    assert tasks(page) == ["How many marbles?"]
    follow(page, "#clear")
    page.select_option("#correct", "right")
    follow(page, "#show")
    assert tasks(page) == ["3+4?"]
    follow(page, "#clear")
    page.fill("#where", "accuracy>")
    follow(page, "#show")
    assert "expected a number" in page.inner_text("#where-fault")
    page.fill("#where", "accuracy<1")
    follow(page, "#show")
    assert tasks(page) == ["How many marbles?"]
    follow(page, "#clear")
    page.check("#a-a")
    page.check("#b-b")
    follow(page, "#compare")
    assert "Two single runs carry no interval" in page.inner_text("main")
    assert "accuracy ↑\t1.000\t0.000\t−1.000\tA" in page.inner_text("main")
    follow(page, "#open-b")
    assert page.inner_text("h1") == "How many marbles?"
    follow(page, "#compare")
    page.check("#b-a")
    follow(page, "#compare")
    assert page.url == f"{served.url}/compare?a=b&b=a"
    page.expected.append("400")
    if not script:
        page.context.close()


def test_the_report_is_downloaded_and_opens_as_a_file(serving, visit, tmp_path):
    served = three_runs(serving)
    page = visit(served.url + "/runs/a")
    with page.expect_download() as told:
        page.click("#report")
    file = tmp_path / "report.html"
    told.value.save_as(file)
    assert told.value.suggested_filename == "counterpoint-a.html"
    assert visit(file.as_uri()).locator("svg.cp").count() >= 3


@pytest.mark.parametrize("path", ["/", "/runs/a", "/compare?a=a&b=b"])
def test_the_keyboard_reaches_everything_and_shows_where_it_is(serving, visit, path):
    served = three_runs(serving)
    page = visit(served.url + path)
    page.wait_for_selector("#live-pause")
    expected = page.evaluate(REACHABLE)
    for place in range(expected):
        page.keyboard.press("Tab")
        found = page.evaluate(FOCUSED)
        assert found is not None, place
        assert all((found["seen"], found["inside"], found["label"])), (place, found)
    assert page.locator("[data-reached]").count() == expected


def test_the_keyboard_alone_searches_opens_and_compares(serving, visit):
    served = three_runs(serving)
    page = visit(served.url)
    press = page.keyboard.press
    press("Tab")
    assert page.evaluate("() => document.activeElement.className") == "skip"
    press("Enter")
    page.wait_for_function("() => document.activeElement.id === 'main'")
    press("Tab")
    page.keyboard.type("marbles")
    press("Enter")
    page.wait_for_url("**/?q=marbles*")
    assert tasks(page) == ["How many marbles?"]
    page.locator("#clear").press("Enter")
    page.wait_for_url(served.url + "/")
    page.locator("#a-c").press("Space")
    press("ArrowDown")
    assert page.locator("#a-b").is_checked()
    page.locator("#b-c").press("Space")
    press("ArrowUp")
    assert page.locator("#b-a").is_checked()
    page.locator("#compare").press("Enter")
    page.wait_for_url("**/compare?*")
    assert page.url.endswith("/compare?a=b&b=a")
    page.locator("#open-a").press("Enter")
    page.wait_for_url("**/runs/b")
    details = page.locator("details#t1")
    assert details.get_attribute("open") is not None
    for key, opened in (("Enter", False), ("Space", True)):
        details.locator("summary").first.press(key)
        assert (details.get_attribute("open") is not None) == opened
    page.locator("#live-pause").press("Space")
    assert page.inner_text("#live-state") == "Paused"


def test_nothing_of_a_hostile_run_runs(serving, visit):
    served = serving()
    (first,) = put(served.store, evil(EVIL))
    score(served.store, first, evil("again"), claims=[claim(1, EVIL, EVIL, 0, EVIL)], error=EVIL)
    key = key_of(first)
    for path in (
        "/",
        f"/?q={'%22%3E%3Cimg src=x onerror=window.pwned=1%3E'}",
        f"/runs/{key}",
        f"/compare?a={key}&b={key}",
    ):
        page = visit(served.url + path)
        if "q=" not in path:
            assert "<img src=x onerror=window.pwned=1>" in page.inner_text("main")
        assert page.locator("img, main script, iframe, [onerror], [onfocus]").count() == 0
        page.wait_for_function("() => document.documentElement.dataset.live === 'on'")
    page = visit(served.url)
    put(served.store, evil("late" + EVIL))  # comes in by the script
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 2")
    assert page.locator("img, main script, iframe, [onerror], [onfocus]").count() == 0


def test_a_page_on_paper_leaves_out_what_is_for_the_screen(serving, visit):
    served = three_runs(serving)
    page = visit(served.url)
    page.emulate_media(media="print")
    for one in ("header.top", "#filters", "#compare", "footer"):
        assert not page.locator(one).is_visible()
    assert page.locator("table.runs").is_visible()


HEIGHTS = "(rows) => Math.max(...rows.map((row) => row.getBoundingClientRect().height))"
INSIDE = """(cells) => cells.every((cell) => {
    const box = cell.getBoundingClientRect();
    return box.width > 0 && box.right <= innerWidth;
})"""


def test_the_list_has_room_in_a_window_and_shows_numbers_on_a_phone(serving, visit):
    served = serving()
    given = msgspec.to_builtins(trace("a", steps=6, task="How many marbles are in the bag, in the end?"))
    given["steps"] = [step | {"agent": f"{step['agent']} of a long name"} for step in given["steps"]]
    given["system"] = "opentelemetry.instrumentation.openai"
    scored(served.store, decode(given), trace("b"))
    page = visit(served.url)
    resize(page, 1300)
    assert page.evaluate("() => list.scrollWidth <= list.clientWidth")
    assert page.locator("tbody tr").evaluate_all(HEIGHTS) <= 75
    resize(page, 390)
    assert page.locator("tbody tr > :nth-child(-n+4)").evaluate_all(INSIDE)  # up to a metric
    page = visit(served.url + "/compare?a=a&b=b")
    resize(page, 390)
    assert page.locator("#metrics-h + .scroll th, #metrics-h + .scroll td").evaluate_all(INSIDE)


def test_a_very_long_word_widens_no_page(serving, visit, tmp_path):
    served, word = serving(), "w" * 3000
    given = msgspec.to_builtins(trace("a", task=word, text=word, gold=word, answer=word, system=word))
    given["steps"] = [step | {"agent": word[:-1] + step["agent"][-1]} for step in given["steps"]]
    scored(served.store, decode(given), trace("b", system=word + "b"))
    score(served.store, "a", decode(given | {"id": word}), error=word)
    file = tmp_path / "report.html"
    file.write_bytes(served.ask("GET", "/runs/a/report").body)
    pages = ("/", f"/?q={word[:900]}&state={word}", "/?a=a", "/runs/a", f"/runs/{word}", "/compare?a=a&b=b")
    for url in (file.as_uri(), *(served.url + path for path in pages)):
        page = visit(url)
        page.evaluate("() => document.querySelectorAll('details').forEach((one) => one.open = true)")
        for width in (1300, 400):
            resize(page, width)
            assert page.evaluate("() => document.documentElement.scrollWidth") <= width, (url[:60], width)
        page.expected.append("404")


def test_the_page_of_very_many_agents_and_steps_is_not_endless(serving, visit):
    served = serving()
    steps = [{"id": f"s{n}", "agent": f"agent number {n}", "text": "7"} for n in range(1000)]
    put(served.store, decode({"id": "a", "steps": steps}))
    page = visit(served.url + "/runs/a")
    resize(page, 1300)
    assert page.evaluate("() => document.documentElement.scrollHeight") <= 8000
    page.goto(served.url + "/runs/a#t1-s1000")
    page.wait_for_function(
        """() => {
            const { y } = document.getElementById("t1-s1000").getBoundingClientRect();
            return y >= 0 && y <= 800;
        }"""
    )


def test_a_very_long_run_is_open_at_once(serving, visit, work_s):
    served = serving()
    long = trace("long", steps=33_000, text="The answer is 7, said at some length by the one who was asked.")
    put(served.store, long)
    score(served.store, "long", metrics=["steps"])
    served.ask("GET", "/runs/long")
    page = visit(served.url)
    start = time.process_time()
    taken = work_s(page, lambda: page.goto(served.url + "/runs/long"))
    assert taken + time.process_time() - start <= 2
    assert page.locator("svg.cp").count() == 3
