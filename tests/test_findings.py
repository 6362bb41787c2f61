"""Findings: what they say, that they agree with the table, and that they are silent where nothing is."""

from __future__ import annotations

import re

import pytest

import counterpoint as cp
from counterpoint.contracts import Context
from counterpoint.findings import Finding, findings, observe
from counterpoint.view import table

CRITICISM = "Every sum was looked at twice and nothing was found that is amiss in it."


def step(name: str, agent: str, text: str, *heard: str, tokens: int = 100, **fields) -> cp.Step:
    usage = cp.Usage(tokens_in=tokens, tokens_out=40, cost_usd=tokens / 1000, model="gpt-4o-mini")
    transfers = tuple(cp.Transfer(source) for source in heard)
    return cp.Step(name, agent, text, heard=transfers, usage=usage, **fields)


def run(number: int, *, right: bool = True, system: str = "") -> cp.Trace:
    """Solver answers; Critic says the same thing after each of its turns; Solver answers again."""
    answer = 48 if right else 14
    steps = (
        step("s1", "Solver", f"Six eights. The answer is {answer}."),
        step("c1", "Critic", CRITICISM, "s1"),
        step("s2", "Solver", f"As before. The answer is {answer}.", "c1"),
        step("c2", "Critic", CRITICISM, "s2"),
        step("s3", "Solver", f"So be it. The answer is {answer}.", "c2"),
    )
    return cp.Trace(f"q{number}", steps, gold="48", system=system, labels={"task_id": number})


def found_in(traces: list[cp.Trace], most: int = 99) -> list[Finding]:
    contexts = [Context(trace=graph.trace, graph=graph) for graph in map(cp.graph, traces)]
    return findings(map(observe, contexts), most=most)


def one(kind: str, traces: list[cp.Trace]) -> Finding:
    (finding,) = [finding for finding in found_in(traces) if finding.kind == kind]
    return finding


def test_an_agent_that_adds_nothing_is_named_with_its_size_a_count_and_an_interval():
    finding = one("agent", [run(number) for number in range(40)])
    assert finding.text.startswith("Without Critic: 8.")
    assert "of 20.00 USD less" in finding.text
    assert "dropping this changed no recorded answer in 40 of 40 runs" in finding.text
    assert "(95 % CI of the accuracy change: −9 to +9 points)" in finding.text
    assert finding.share == pytest.approx(0.42, abs=0.03)
    assert finding.steps[0] == ("q0", "c1")


def test_the_edges_of_an_agent_that_can_go_are_no_findings_of_their_own():
    assert {finding.kind for finding in found_in([run(0), run(1)])} <= {
        "agent",
        "rounds",
        "together",
        "unused",
    }


def test_an_edge_is_named_with_the_share_of_it_that_is_repeated():
    def relay(number: int) -> cp.Trace:
        gold = ("48", "7")[number % 2]  # now one of them is right, now the other
        steps = (
            step("a1", "A", CRITICISM * 9 + " The answer is 48.", tokens=10),
            step("b1", "B", "Mine too: the answer is 7.", "a1", tokens=900),
            step("a2", "A", CRITICISM * 9 + " The answer is 48.", tokens=10),
            step("b2", "B", "No, it is not that. The answer is 7.", "a2", tokens=900),
            step("end", "J", f"The answer is {gold}.", "a2", "b2", kind="decision", tokens=300),
        )
        return cp.Trace(f"q{number}", steps, gold=gold, labels={"task_id": number})

    finding = one("edge", [relay(number) for number in range(12)])
    assert re.match(
        r"A → B carries \d\d% repeated text: [\d.]+ of [\d.]+ USD; dropping this changed no", finding.text
    )
    assert finding.steps[0][1] in ("b1", "b2")


def test_rounds_after_which_nothing_changes_are_named():
    finding = one("rounds", [run(number) for number in range(12)])
    assert finding.text.startswith("Without all after round 0: ")
    assert finding.steps[0][1] in ("c1", "c2", "s2", "s3")


def test_what_the_answer_hangs_on_is_never_named():
    texts = [finding.text for finding in found_in([run(number) for number in range(12)])]
    assert texts
    assert not any("Without Solver" in text for text in texts)


def test_a_right_answer_that_was_lost_is_named_with_the_step_that_had_it():
    steps = (
        step("a", "A", "The answer is 48."),
        step("b", "B", "The answer is 14.", "a"),
        step("end", "J", "The answer is 14.", "a", "b", kind="decision"),
    )
    lost = cp.Trace("lost", steps, gold="48")
    finding = one("lost", [lost, *(run(number) for number in range(9))])
    assert finding.text == "The right answer was there and was lost in 1 of 10 runs (95 % CI 2% to 40%)"
    assert finding.steps == (("lost", "a"),)


def test_an_agent_whose_text_the_right_answer_rests_on_is_not_advised_to_go():
    def talk(number: int) -> cp.Trace:
        fact = "According to the archive the old tower of the town has exactly 137 stairs."
        steps = (
            step("a", "Researcher", fact),
            step("b", "Solver", f"{fact} So the answer is 137.", "a"),
        )
        return cp.Trace(f"q{number}", steps, task=f"{number}?", gold="137")

    assert not [finding for finding in found_in([talk(n) for n in range(12)]) if finding.is_estimate]


def test_wrong_runs_never_advise_to_drop_the_whole_team():
    def talk(number: int) -> cp.Trace:
        steps = (step("a", "A", "The answer is 5."), step("b", "B", "I say 6. The answer is 6.", "a"))
        return cp.Trace(f"q{number}", steps, task=f"{number}?", gold="7")

    told = [str(finding) for finding in found_in([talk(n) for n in range(5)])]
    assert not [text for text in told if "without A, B" in text or "Without B" in text]


def test_turns_that_leave_no_mark_on_the_answer_are_named():
    def talk(number: int) -> cp.Trace:
        steps = (
            step("a", "A", "Nice weather for ducks."),
            step("b", "B", "Seven, I should think. The answer is 7.", "a"),
            step("a2", "A", "By adding I get another one: the answer is 48.", "b"),
        )
        return cp.Trace(f"q{number}", steps, gold="48")

    finding = one("unused", [talk(number) for number in range(6)])
    assert finding.text.startswith("A: 6 of its 12 turns left no mark on the final answer")
    assert {name for _, name in finding.steps} == {"a"}


def test_turns_that_go_round_in_loops_are_named():
    assert re.match(r"12 turns in 3 of 3 runs only go round again \(longest: .*, 3 times\)", one(
        "loops", [looping(number) for number in range(3)]
    ).text)  # fmt: skip


def looping(number: int) -> cp.Trace:
    steps = [step("s0", "Solver", "I make it 48. The answer is 48.")]
    for turn in range(3):
        before = steps[-1].id
        steps.append(step(f"a{turn}", "A", "Over to you, please go ahead.", before))
        steps.append(step(f"b{turn}", "B", "Sorry, over to you again now.", steps[-1].id))
    return cp.Trace(f"q{number}", tuple(steps), gold="48")


def test_at_most_five_the_largest_saving_first():
    found = found_in([run(number, system=name) for name in "abc" for number in range(12)], most=5)
    assert len(found) == 5
    assert [finding.share for finding in found] == sorted((one.share for one in found), reverse=True)


@pytest.mark.parametrize(
    "trace",
    [
        cp.Trace("t", ()),
        cp.Trace("t", (cp.Step("a", "A", "The answer is 7."),), gold="7"),
        cp.Trace("t", (cp.Step("a", "A", "hm"), cp.Step("b", "B", "so"))),
    ],
)
def test_there_is_no_finding_when_there_is_nothing_to_say(trace):
    assert found_in([trace]) == []


def test_without_usage_the_size_is_that_of_the_texts_and_without_gold_the_interval_is_of_changed_answers():
    bare = []
    for number in range(20):
        trace = run(number)
        steps = tuple(cp.Step(s.id, s.agent, s.text, heard=s.heard) for s in trace.steps)
        bare.append(cp.Trace(trace.id, steps))
    finding = one("agent", bare)
    assert "tokens of text less" in finding.text
    assert re.search(r"\(95 % CI of the share that changes: 0 to 16 %\)$", finding.text)


def test_findings_say_the_same_as_the_table_above_them():
    traces = [run(number, right=number % 4 > 0) for number in range(12)]
    scores = cp.evaluate(traces, ["accuracy", "cost_usd"], observe=observe)
    means = {entry.metric: entry.mean for entry in scores.summary() if entry.system is None}
    finding = next(finding for finding in findings(scores.observed) if finding.kind == "agent")
    assert finding.whole == pytest.approx(means["cost_usd"] * 12)
    assert "0 points" not in finding.text
    shown = table.text(scores)
    assert shown.index("accuracy") < shown.index("what to change") < shown.index("Without Critic")
    assert "estimate from the recording" in shown


def test_every_finding_has_a_count_or_an_interval_and_links_to_steps():
    traces = [run(number, right=number % 3 > 0) for number in range(9)] + [
        looping(number) for number in range(3)
    ]
    found = found_in(traces)
    assert found
    for finding in found:
        assert re.search(r"\d+ of \d+|\d+ turns in \d+|95 % CI", finding.text), finding.text
        assert finding.steps
        assert str(finding).endswith(")")


def test_names_of_agents_are_text_and_secrets_in_them_are_masked():
    key = "sk-" + "proj-" + "a1B2" * 12
    traces = []
    for number in range(3):
        trace = run(number)
        names = {"Critic": f"[red]\x1b[31m {key}", "Solver": "Solver"}
        traces.append(cp.Trace(trace.id, tuple(
            cp.Step(s.id, names[s.agent], s.text, heard=s.heard, usage=s.usage) for s in trace.steps
        ), gold="48"))  # fmt: skip
    shown = table.text(cp.evaluate(traces, ["steps"], observe=observe))
    assert "Without [red]" in shown
    assert key not in shown
    assert "\x1b" not in shown


def test_a_trace_that_cannot_be_looked_at_costs_no_score():
    def broken(context):
        raise ValueError("no such thing")

    scores = cp.evaluate([run(0)], ["steps"], observe=broken)
    assert scores.rows[0].value == 5
    assert any("no such thing" in warning for warning in scores.warnings)


def test_json_holds_nothing_of_it():
    scores = cp.evaluate([run(0), run(1)], ["steps"], observe=observe)
    assert "Critic" not in scores.to_json()
    assert len((scores + scores).observed) == 4


def test_observations_come_back_from_worker_processes():
    traces = [run(number) for number in range(3)]
    apart = cp.evaluate(traces, ["steps"], observe=observe, workers=2).observed
    here = cp.evaluate(traces, ["steps"], observe=observe).observed
    assert findings(apart) == findings(here)
