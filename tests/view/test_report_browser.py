"""The report in a real browser: what a screen reader, a keyboard, a printer and a hostile author meet."""

import pytest

from counterpoint.evaluate import evaluate
from counterpoint.trace import decode
from counterpoint.view.report import report_html
from counterpoint.view.report_trace import Pages

pytestmark = pytest.mark.slow

ATTACK = (
    '<script>window.pwned=1</script></script></style></title></pre></svg>">'
    '<img src=x onerror="window.pwned=2">'
    "' onload='window.pwned=3' \u202eright-to-left\u202c \u0007\x1b[31m \ud800 <!-- ]]> --> "
    '<svg onload="window.pwned=4"> [x](javascript:window.pwned=5) &lt;b&gt; '
    '<a href="javascript:pwned=6">x</a>'
)
TEXTS = (
    "The bridge can carry trucks of forty tonnes. The answer is 7.",
    "The bridge cannot carry trucks of forty tonnes. The answer is 8.",
    "I am not sure.",
)
ISSUES = """() => {
  const found = [], named = '[tabindex="0"],section,nav';
  const levels = [...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map(one => +one.tagName[1]);
  levels.forEach((level, i) => {
    if (i && level > levels[i - 1] + 1) found.push(`h${level} after h${levels[i - 1]}`);
  });
  for (const mark of ['header', 'nav', 'main', 'footer', 'h1'])
    if (document.querySelectorAll(mark).length !== 1) found.push(`not one ${mark}`);
  if (!document.documentElement.lang || !document.title) found.push('no language or title');
  for (const one of document.querySelectorAll('svg'))
    if (one.role !== 'img' || !one.querySelector(':scope > title') || !one.querySelector('desc'))
      found.push('a picture without a name');
  for (const one of document.querySelectorAll(named))
    if (!one.getAttribute('aria-label') && !one.getAttribute('aria-labelledby'))
      found.push(`no name: ${one.outerHTML.slice(0, 80)}`);
  for (const one of document.querySelectorAll('th')) if (!one.scope) found.push('a heading of nothing');
  const ids = [...document.querySelectorAll('[id]')].map(one => one.id);
  if (new Set(ids).size !== ids.length) found.push('an id twice');
  for (const one of document.querySelectorAll('a')) {
    const goal = (one.getAttribute('href') || '').slice(1);
    if (!ids.includes(goal)) found.push(`leads nowhere: ${goal}`);
  }
  return found;
}"""
PALE = """() => {
  const numbers = color => color.match(/[\\d.]+/g).map(Number);
  const linear = value => value <= .04045 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4;
  const light = ([r, g, b]) =>
    .2126 * linear(r / 255) + .7152 * linear(g / 255) + .0722 * linear(b / 255);
  const behind = one => {
    for (let at = one; at; at = at.parentElement) {
      const color = numbers(getComputedStyle(at).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18] : [255, 255, 255];
  };
  const found = new Set();
  for (const one of document.querySelectorAll('body *')) {
    const own = [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!own || ['title', 'desc'].includes(one.tagName) || !one.checkVisibility()) continue;
    const style = getComputedStyle(one), text = one.tagName === 'text';
    const [a, b] = [light(numbers(text ? style.fill : style.color)), light(behind(one))];
    if ((Math.max(a, b) + .05) / (Math.min(a, b) + .05) < 4.5)
      found.add(`${one.tagName} ${one.getAttribute('class')} ${text ? style.fill : style.color}`);
  }
  return [...found];
}"""

OUTSIDE = """() => {
  const found = [];
  for (const picture of document.querySelectorAll('svg')) {
    const room = picture.getBoundingClientRect();
    for (const one of picture.querySelectorAll('text')) {
      const box = one.getBoundingClientRect();
      const over = [
        room.left - box.left, box.right - room.right, room.top - box.top, box.bottom - room.bottom,
      ];
      if (box.width && Math.max(...over) > 1) found.push(`${one.textContent}: ${over.map(Math.round)}`);
    }
  }
  return found;
}"""


def team(name, agents, rounds, text=None, system="s", **fields):
    """Each hears the one before it and, from the second round on, two of the round before."""
    steps = []
    for turn in range(rounds):
        for agent in range(agents):
            heard = [f"{turn}.{agent - 1}"] if agent else []
            heard += [f"{turn - 1}.{(agent * step + 1) % agents}" for step in (1, 3) if turn]
            said = text or f"{TEXTS[(agent + turn * 2) % 3]} {agent * turn} tonnes were tried."
            steps.append(
                {
                    "id": f"{turn}.{agent}",
                    "agent": f"agent {agent}",
                    "text": said,
                    "heard": list(dict.fromkeys(heard)),
                    "round": turn,
                }
            )
    return decode({"id": name, "task": "3+4?", "gold": "7", "system": system, "steps": steps, **fields})


@pytest.fixture
def report(tmp_path):
    """Traces to the address of their report; metrics that need no model."""

    def write(*traces, metrics=("accuracy", "upr", "steps", "cost_usd")):
        scores = evaluate(traces, list(metrics), run="run", observe=Pages())
        file = tmp_path / "report.html"
        file.write_text(report_html(scores, scores.observed), encoding="utf-8")
        return file

    return write


def two_systems():
    return [team("a", 3, 3), team("b", 12, 2, system="other"), team("c", 25, 2), team("d", 3, 60)]


def open_all(page):
    page.evaluate("() => document.querySelectorAll('details').forEach(one => one.open = true)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_screen_reader_finds_its_way_and_no_text_is_pale(report, visit, scheme):
    page = visit(report(*two_systems()).as_uri(), color_scheme=scheme)
    open_all(page)
    assert page.evaluate(ISSUES) == []
    assert page.evaluate(PALE) == []


def test_no_text_is_cut_off_by_the_edge_of_its_picture(report, visit):
    teams = [team(f"{size} agents", size, 2) for size in (1, 2, 3, 6, 18, 60)]
    long = team("a name " * 20, 3, 2, system="system " * 20)
    page = visit(report(*teams, *two_systems(), long).as_uri())
    open_all(page)
    assert page.evaluate(OUTSIDE) == []


def test_the_checks_see_what_they_look_for(report, visit):
    page = visit(report(team("a", 3, 2)).as_uri())
    page.evaluate(
        """() => { document.querySelector('h2').style.color = '#aaa';
        document.querySelector('svg text').style.fill = '#bbb';
        document.querySelector('svg text').setAttribute('x', '-5');
        document.querySelector('h4').outerHTML = '<h6 id="main">x</h6><a href="#none">y</a>' }"""
    )
    assert {"h6 after h3", "an id twice", "leads nowhere: none"} <= set(page.evaluate(ISSUES))
    assert len(page.evaluate(PALE)) == 2
    assert len(page.evaluate(OUTSIDE)) == 1


def test_the_keyboard_reaches_all_and_opens_what_is_closed(report, visit):
    page = visit(report(team("a", 3, 2), team("b", 3, 2, system="other")).as_uri())
    wanted = page.evaluate(
        """() => [...document.querySelectorAll('a[href],summary,[tabindex="0"]')]
        .filter(one => one.checkVisibility() && one.tabIndex === 0).length"""
    )
    reached = 0
    for _ in range(wanted + 20):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement === document.body"):
            break
        reached += page.evaluate(
            """() => { const one = document.activeElement, seen = one.seen; one.seen = true;
            return !seen && one.matches('a[href],summary,[tabindex="0"]') ? 1 : 0 }"""
        )
    assert reached == wanted
    page.focus("#t2 > summary")
    page.keyboard.press("Enter")
    assert page.locator("#t2 .steps").is_visible()
    page.focus(".skip")
    page.keyboard.press("Enter")
    page.wait_for_url("**#main")


def test_what_is_closed_on_screen_is_printed(report, visit):
    page = visit(report(team("a", 3, 2), team("b", 3, 2)).as_uri(), color_scheme="dark")
    assert not page.locator("#t2 .steps").is_visible()
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("() => document.querySelector('#t2 .steps').getBoundingClientRect().height") > 100
    assert page.evaluate("() => getComputedStyle(document.body).color") == "rgb(34, 34, 34)"
    assert page.evaluate(PALE) == []
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_hostile_texts_are_shown_as_text_and_nothing_of_them_runs(report, visit):
    step = {"agent": ATTACK, "text": ATTACK + " word" * 200_000, "answer": ATTACK, "error": ATTACK}
    call = {"id": ATTACK, "tool": ATTACK, "arguments": ATTACK, "result": ATTACK, "error": ATTACK}
    steps = [
        {**step, "id": ATTACK, "calls": [call]},
        {**step, "id": ATTACK + "2", "agent": ATTACK + "B", "heard": [ATTACK], "text": ATTACK},
    ]
    hostile = decode(
        {"id": ATTACK, "task": ATTACK, "gold": ATTACK, "answer": ATTACK, "system": ATTACK, "steps": steps}
    )
    page = visit(report(hostile, team("other", 3, 2, system=ATTACK + "2")).as_uri())
    open_all(page)
    assert (
        page.evaluate("() => document.querySelectorAll('script,img,iframe,object,[onerror],[onload]').length")
        == 0
    )
    shown = page.evaluate("() => document.querySelector('.steps pre').textContent")
    assert "<script>window.pwned=1</script>" in shown
    assert "[U+202E]right-to-left" in shown
    assert page.locator(".claims, h4:has-text('Claims')").count() == 2
    assert page.title() == "run – Counterpoint"


@pytest.mark.parametrize(("agents", "rounds"), [(6, 5500), (60, 550)])
def test_a_trace_of_33000_steps_is_small_and_opens_at_once(report, visit, work_s, agents, rounds):
    file = report(team("long", agents, rounds), metrics=["steps"])
    assert file.stat().st_size <= 5_000_000
    page = visit(file.as_uri())
    assert min(work_s(page, page.reload) for _ in range(3)) <= 2
    assert page.locator("svg.cp").count() == 3
    page.set_viewport_size({"width": 1280, "height": 800})
    picture = page.locator("#t1 svg.cp").first
    assert picture.locator("g:has(title) > path.right").count() >= agents * 20
    assert picture.evaluate("one => one.getBoundingClientRect().width <= one.parentElement.clientWidth")
    told = page.locator("#t1").inner_text()
    assert "33,000 steps are too many to draw each" in told
    assert "paths are counted up to 20,000 transfers" in told
    assert "The first 100 and the last 100 of 33,000 steps" in told
    assert "No claims are told here: the trace is too long" in told


def test_a_report_of_two_thousand_traces_is_small_and_opens_at_once(report, visit, work_s):
    traces = [team(f"q{n}", 4, 2, system="AB"[n % 2], labels={"task_id": str(n // 2)}) for n in range(2000)]
    file = report(*traces, metrics=["accuracy", "steps"])
    assert file.stat().st_size <= 5_000_000
    page = visit(file.as_uri())
    assert min(work_s(page, page.reload) for _ in range(3)) <= 2
    told = page.inner_text("main")
    assert "1,000 of 2,000 traces are not listed here" in told
    assert "of 2,000 traces have a section" in told
    assert "traces are not in it: no claims were told of them" in told
