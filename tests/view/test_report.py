"""The page: one file, no script, everything of the user's as text, small however long the traces are."""

import base64
import hashlib
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from counterpoint.evaluate import evaluate
from counterpoint.trace import decode
from counterpoint.view.report import report_html
from counterpoint.view.report_trace import Pages

EVIL = (
    '</script><script>document.title="hit"</script>"><img src=x onerror=alert(1)> \u202eright\u202c \u0007 '
    "\ud800 <!-- ]]> javascript:alert(1) sk-proj-abcdefghij0123456789abcdefghij"
)
VOID = {"meta", "link", "img", "br"}
TAGS = {
    "html", "head", "meta", "title", "style", "body", "a", "header", "h1", "h2", "h3", "h4", "h5", "p", "nav",
    "ul", "ol", "li", "main", "section", "footer", "table", "caption", "thead", "tbody", "tr", "th", "td",
    "small", "details", "summary", "div", "figure", "svg", "desc", "g", "path", "text", "circle", "pre",
    "code", "bdi", "strong",
}  # fmt: skip


class Page(HTMLParser):
    """The tags, attributes and texts of a page; fails where tags do not nest."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.ids, self.texts, self.open = [], set(), [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.update(name for name, _ in attrs)
        self.ids += [value for name, value in attrs if name == "id"]
        assert all(
            not (value or "").startswith(("javascript:", "http")) or tag == "svg" for _, value in attrs
        )
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def trace(name="t", *, steps=6, system="s", text="The answer is 7.", **fields):
    turns = [
        {"id": f"s{n}", "agent": f"agent {n % 3}", "text": text, "heard": [f"s{n - 1}"] if n else []}
        for n in range(steps)
    ]
    return decode({"id": name, "task": "3+4?", "gold": "7", "system": system, "steps": turns, **fields})


def page(*traces, metrics=("accuracy", "upr"), most_bytes=3_000_000):
    scores = evaluate(traces, list(metrics), run="run", observe=Pages(most_bytes))
    return report_html(scores, scores.observed)


def evil():
    step = {"agent": EVIL, "answer": EVIL, "error": EVIL}
    call = {"id": "c", "tool": EVIL, "arguments": EVIL, "result": EVIL}
    steps = [
        {**step, "id": EVIL, "text": EVIL + " word" * 200_000, "calls": [call]},
        {**step, "id": EVIL + "2", "agent": "B" + EVIL, "text": EVIL, "heard": [EVIL]},
    ]
    other = trace("other", system=EVIL + "2")
    return decode(
        {"id": EVIL, "task": EVIL, "gold": EVIL, "answer": EVIL, "system": EVIL, "steps": steps}
    ), other


def test_the_page_has_its_sections_pictures_and_landmarks():
    text = page(trace("t1"), trace("t2", system="other", text="The answer is 8."), trace("t3", gold=None))
    found = Page(text)
    assert {"summary", "charts", "tasks", "traces", "undefined", "signatures", "main"} <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))
    assert found.tags.count("svg") == 3 * 3 + 2  # three a trace, claims, the comparison
    assert {"header", "nav", "main", "footer"} <= set(found.tags)
    assert found.tags.count("h1") == 1
    goals = re.findall(r'href="#([^"]+)"', text)
    assert set(goals) <= set(found.ids)
    assert "taken up" in text
    assert "no gold answer: record one with the trace" in text


def test_equal_input_gives_equal_bytes():
    assert page(trace("t1"), trace("t2")) == page(trace("t1"), trace("t2"))


def test_what_users_wrote_is_text_and_nothing_of_it_runs():
    text = page(*evil())
    found = Page(text)
    assert set(found.tags) <= TAGS
    assert not [name for name in found.attributes if name.startswith("on") or name == "style"]
    assert any("<img src=x onerror=alert(1)>" in one for one in found.texts)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\ud800-\udfff\x00-\x08]", text)
    assert "[U+202E]" in text
    assert "abcdefghij0123456789" not in text
    assert len(text) < 200_000
    assert re.search(r"… and 99\d,\d\d\d more characters", text)


def test_the_policy_forbids_scripts_and_knows_the_only_style_by_its_hash():
    text = page(trace())
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in text
    assert "<script" not in text


def test_long_traces_are_cut_and_what_is_left_out_is_counted():
    text = page(trace(steps=3000, text="word " * 800), metrics=["steps"])
    assert len(text.encode()) < 2_000_000
    assert "The first 100 and the last 100 of 3,000 steps; 2,800 between them" in text
    assert "3,000 steps are too many to draw each" in text


def test_traces_beyond_the_size_of_a_page_are_in_the_list_only():
    text = page(*(trace(f"t{n}") for n in range(20)), most_bytes=50_000)
    assert re.search(r"\d of 20 traces have a section", text)
    assert text.count('class="trace"') < 10
    assert "t19" in text


def test_no_trace_makes_a_page_too():
    Page(page())


@pytest.mark.slow
def test_nothing_runs_and_nothing_is_refused_in_a_browser(tmp_path):
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("no chromium here: install it to open the page")
    file = tmp_path / "report.html"
    file.write_text(page(*evil()))
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    )
    flags += "--disable-component-update --disable-sync --enable-logging=stderr --v=0 --dump-dom"
    command = [browser, *flags.split(), f"--user-data-dir={tmp_path / 'profile'}", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "<title>run – Counterpoint</title>" in done.stdout
    assert "CONSOLE" not in done.stderr
