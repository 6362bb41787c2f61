"""The page: one file, no script, everything of the user's as text, small however long the traces are."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from counterpoint.evaluate import evaluate
from counterpoint.metrics.forests import build_forest
from counterpoint.trace import decode
from counterpoint.view.report import report_html
from counterpoint.view.report_claims import read_claims
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


def test_the_claims_of_a_trace_are_told_and_marked_as_a_heuristic():
    said = [
        "The dam failed in 2019.",
        "The dam failed in 2019.",
        "Rain was heavy there.",
        "Nothing else is known.",
    ]
    steps = [
        {
            "id": f"s{n}",
            "agent": "AB"[n % 2],
            "text": text,
            "round": n // 2,
            "heard": [f"s{n - 1}"] if n else [],
        }
        for n, text in enumerate(said)
    ]
    text = page(decode({"id": "t", "task": "Why?", "steps": steps}), metrics=["steps"])
    assert (
        '<bdi>The dam failed in 2019.</bdi></th><td><a href="#t1-s1">born</a> by <bdi>A</bdi> in round 0 → '
        in text
    )
    assert '<a href="#t1-s2">adopted</a> by <bdi>B</bdi> in round 0 → lost in round 1' in text
    assert "a heuristic, blind to paraphrase" in text
    assert "Claims over positions" in text


@pytest.mark.parametrize(
    ("trace_", "reason"),
    [
        (trace(steps=401), "the trace is too long to look for claims here"),
        (trace(steps=2, text="word " * 20_000), "the trace is too long to look for claims here"),
        (trace(steps=3, text="Why?"), "nobody makes a claim in it"),
        (
            trace(steps=30, text=" ".join(f"Dam number {n} failed." for n in range(10))),
            "it makes 300 claims, more than are compared here",
        ),
    ],
)
def test_where_claims_are_not_told_the_page_says_why(trace_, reason):
    text = page(trace_, metrics=["steps"])
    assert f"No claims are told here: <bdi>{reason}</bdi>. <code>counterpoint claims</code>" in text


def test_after_enough_claims_the_other_traces_are_counted_only():
    seen = evaluate(
        [trace("a"), trace("b")], ["steps"], observe=lambda one: read_claims(one, left=0)
    ).observed
    assert {one.reason for one in seen} == {"the traces before it had claims enough"}


def test_damage_curves_are_drawn_where_a_forest_was_named(tmp_path):
    forest = tmp_path / "forest.jsonl"
    runs = [trace(f"t{n}", steps=3 + n, system=f"s{n}", correct=True) for n in range(3)]
    forest.write_text(build_forest(runs).to_jsonl())
    text = page(*runs, metrics=["steps", f"forest_match(forest={forest})"])
    assert "Damage by perturbation" in text
    assert "delete nodes: roles 0." in text
    assert "Tried on 3 traces, 20 times each." in text
    assert "Damage by perturbation" not in page(*runs)


def test_sections_made_by_two_processes_have_ids_of_their_own():
    halves = [evaluate([trace(name)], ["steps"], run="run", observe=Pages()) for name in ("a", "b")]
    both = halves[0] + halves[1]
    found = Page(report_html(both, both.observed))
    assert {"t1", "t2", "t2-s1"} <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))
    texts = report_html(both, both.observed)
    assert set(re.findall(r'href="#([^"]+)"', texts)) <= set(found.ids)


def test_a_page_of_many_processes_holds_no_more_than_one_of_one(monkeypatch):
    monkeypatch.setattr("counterpoint.view.report.MOST_BYTES", 20_000)
    parts = [evaluate([trace(name)], ["steps"], run="run", observe=Pages()) for name in "abcdef"]
    scores = sum(parts[1:], parts[0])
    text = report_html(scores, scores.observed)
    assert re.search(r"[1-4] of 6 traces have a section", text)
    assert len(text) < 60_000
