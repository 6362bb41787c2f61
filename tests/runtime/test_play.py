"""One question, one small team: who is shown what, and what the trace says of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from counterpoint.benchmarks import gsm8k
from counterpoint.contracts import Context, Example, Reply, Wiring
from counterpoint.errors import GraphError, ModelError, UsageError
from counterpoint.graph import graph
from counterpoint.json_text import parse_json
from counterpoint.metrics.correctness import step_answers
from counterpoint.models.scripted import Scripted
from counterpoint.registry import lookup, names
from counterpoint.runtime.play import Agent, Ran, TimedReply, play
from counterpoint.runtime.protocols import LastWord, MajorityVote, Refer
from counterpoint.runtime.systems import system
from counterpoint.runtime.topologies import topology
from counterpoint.trace import Trace, decode, encode, tidy

QUESTION = Example("q1", "What is 3 + 4?", "7")
TEAM = tuple(Agent(name, "solver", f"You are {name}.") for name in "ABC")
SYSTEMS = [
    *names("system"),
    "vanilla(mirror=true)",
    "layered(layers=3)",
    "debate(agents=5)",
    "chain(rounds=3)",
]


def discussed(
    reply: Any,
    wiring: Wiring,
    protocol: Any = None,
    team: Sequence[Agent] = TEAM,
    example: Example = QUESTION,
) -> Trace:
    ask = reply if isinstance(reply, Scripted) else Scripted(reply)
    return play(example, team, wiring, ask, benchmark=gsm8k, protocol=protocol or LastWord())


def says(**texts: str) -> Any:
    """A reply by the agent that is asked, which its system prompt names."""

    def reply(messages: Sequence[Any]) -> str:
        who = messages[0]["content"].removeprefix("You are ").rstrip(".")
        return texts.get(who, "The answer is 9.")

    return reply


def heard(trace: Trace) -> set[tuple[str, str, str]]:
    return {(step.id, one.source, one.scope) for step in trace.steps for one in step.heard}


def wired(wiring: Wiring, names: Sequence[str]) -> set[tuple[str, str, str]]:
    """The transfers that the wiring asks for."""
    within = {
        (f"{t}.{names[j]}", f"{t}.{names[i]}", "within")
        for t, i, j in np.argwhere(wiring.within)
        if wiring.speaks[t, i] and wiring.speaks[t, j]
    }
    across = {
        (f"{t + 1}.{names[j]}", f"{t}.{names[i]}", "across")
        for t, i, j in np.argwhere(wiring.across)
        if wiring.speaks[t, i] and wiring.speaks[t + 1, j]
    }
    return within | across


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_trace_has_exactly_the_transfers_of_the_wiring(name):
    chosen = system(name)
    team, wiring = chosen.agents("number"), chosen.wiring(3)
    trace = discussed("I say so. The answer is 7.", wiring, chosen.last_word(), team)
    agents = [step for step in trace.steps if step.kind == "agent"]
    only_agents = replace(trace, steps=tuple(agents))
    assert heard(only_agents) == wired(wiring, [agent.name for agent in team])
    assert {one.evidence for step in agents for one in step.heard} <= {"explicit"}
    assert len(agents) == wiring.speaks.sum()
    assert tidy(trace) == trace
    assert decode(parse_json(encode(trace))[0]) == trace


@pytest.mark.parametrize("name", SYSTEMS)
def test_what_a_reader_heard_stands_in_its_prompt_word_for_word_and_nothing_else(name):
    chosen = system(name)
    said = iter(range(1000))
    ask = Scripted(lambda _: f"remark <{next(said)}> The answer is 7.")
    trace = discussed(ask, chosen.wiring(3), chosen.last_word(), chosen.agents("number"))
    texts = {step.id: step.text for step in trace.steps if step.usage is not None}
    for step in trace.steps:
        if step.prompt is not None:
            shown = {name for name, text in texts.items() if text in step.prompt}
            assert shown == {one.source for one in step.heard}


@pytest.mark.parametrize("name", names("protocol"))
@pytest.mark.parametrize("shape", names("topology"))
def test_a_protocol_ends_and_every_answer_was_asked_for(name, shape):
    given = [f"Reply {number}. The answer is 7." for number in range(20)]
    ask = Scripted(given)
    trace = discussed(ask, topology(shape)(3, 2, 0), lookup("protocol", name)())
    asked = [step.text for step in trace.steps if step.usage is not None]
    assert asked == given[: len(ask.requests)]
    assert [step for step in trace.steps if step.usage is None and step.agent != "MajorityVote"] == []
    assert trace.answer == "7"
    assert trace.correct


def test_messages_stand_under_their_speakers_names_and_the_form_of_the_answer_stands_last():
    ask = Scripted(says(A="First A.", B="First B.", C="First C."))
    discussed(ask, topology("vanilla")(3, 2, 0))
    last = ask.requests[-1][-1]["content"]
    assert last.index("in this round") < last.index("[A]\nFirst A.") < last.index("[B]\nFirst B.")
    assert last.count("First A.") == 2
    assert last.rstrip().endswith(gsm8k.prompt(QUESTION).rstrip())
    assert "First C." not in last
    assert "round" not in ask.requests[0][-1]["content"]


def test_a_failed_agent_is_absent_from_its_readers_and_named_in_its_step():
    def reply(messages):
        if messages[0]["content"] == "You are A.":
            raise ModelError("no answer within 60 s")
        return says(B="The answer is 7.", C="The answer is 7.")(messages)

    ask = Scripted(reply)
    trace = discussed(ask, topology("chain")(3, 1, 0))
    assert (trace.steps[0].text, trace.steps[0].error) == ("", "no answer within 60 s")
    assert trace.steps[0].usage is None
    assert trace.steps[1].heard == ()
    assert ask.requests[1][-1]["content"] == gsm8k.prompt(QUESTION)
    assert trace.correct


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_reply_is_a_failure_but_its_tokens_were_used(text):
    trace = discussed(says(A=text, B="The answer is 7."), topology("chain")(2, 1, 0), team=TEAM[:2])
    assert trace.steps[0].error == "the model gave an empty reply"
    assert trace.steps[0].usage is not None
    assert trace.steps[1].heard == ()


def test_a_refusal_is_named_and_shown_to_nobody():
    def reply(messages):
        if messages[0]["content"] == "You are A.":
            return Reply("I cannot help with that.", finish_reason="refusal")
        return "The answer is 7."

    trace = discussed(reply, topology("chain")(2, 1, 0), team=TEAM[:2])
    assert trace.steps[0].error == "the model refused: I cannot help with that."
    assert trace.steps[0].text == ""
    assert trace.steps[1].heard == ()


def test_replies_that_were_cut_at_the_limit_on_tokens_are_named_in_the_trace():
    def reply(messages):
        who = messages[0]["content"]
        return Reply("So 3 + 4 i", finish_reason="stop" if who == "You are B." else "length")

    trace = discussed(reply, topology("chain")(3, 1, 0), Refer())
    told = "replies of 3 steps were cut at the limit on tokens (--max-tokens): 0.A, 0.C, 0.FinalRefer"
    assert trace.warnings == (told,)
    assert decode(parse_json(encode(trace))[0]).warnings == (told,)
    assert discussed(says(), topology("chain")(3, 1, 0)).warnings == ()


def test_a_silent_agent_is_asked_nothing_and_heard_by_nobody():
    wiring = topology("mesh")(3, 2, 0)
    wiring.speaks[1, 0] = False
    trace = discussed(says(), wiring)
    assert [step.id for step in trace.steps] == ["0.A", "0.B", "0.C", "1.B", "1.C"]
    assert ("1.B", "0.A", "across") in heard(trace)
    assert all(one.source != "1.A" for step in trace.steps for one in step.heard)


def test_an_error_that_is_not_the_models_ends_the_play():
    def reply(messages):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        discussed(reply, topology("chain")(3, 1, 0))


def test_steps_commit_to_what_their_text_says_and_only_the_final_answer_may_be_guessed():
    trace = discussed(says(A="I get 5", B="So 3 + 4 makes 7"), topology("chain")(2, 1, 0), team=TEAM[:2])
    assert [step.answer for step in trace.steps] == [None, None]
    assert (trace.answer, trace.correct) == ("7", True)


@pytest.mark.parametrize(
    ("answers", "winner"),
    [
        ("7 8 7", "7"),
        ("8 7.0 7", "7"),
        ("8 7 7 8", "7"),
        ("9 8 7", "9"),
        ("? ? 7", "7"),
        ("? ? ?", None),
    ],
)
def test_the_majority_answers_and_of_equals_the_one_that_got_there_first(answers, winner):
    told = answers.split()
    team = tuple(Agent(str(number), "solver", f"You are {number}.") for number in range(len(told)))
    texts = {str(number): f"The answer is {answer}" for number, answer in enumerate(told)}
    trace = discussed(says(**texts), topology("independent")(len(told), 1, 0), MajorityVote(), team)
    assert trace.answer == winner
    assert trace.steps[-1].kind == "decision"
    assert trace.steps[-1].usage is None


def test_final_refer_reads_the_last_round_only_and_stands_outside_the_team():
    said = iter(range(100))
    ask = Scripted(lambda _: f"remark <{next(said)}> The answer is 7.")
    trace = discussed(ask, topology("debate")(3, 2, 0), Refer())
    decision = trace.steps[-1]
    assert (decision.kind, decision.agent, decision.round) == ("decision", "FinalRefer", 1)
    assert [one.source for one in decision.heard] == ["1.A", "1.B", "1.C"]
    assert "<2>" not in (decision.prompt or "")


@pytest.mark.parametrize("protocol", [Refer(), MajorityVote(), LastWord()])
def test_where_nobody_said_anything_there_is_no_answer_and_nobody_is_asked_for_one(protocol):
    ask = Scripted("")
    trace = discussed(ask, topology("debate")(3, 1, 0), protocol)
    assert (trace.answer, trace.correct) == (None, False)
    assert len(ask.requests) == 3


def test_what_a_program_gives_is_added_to_its_writers_message():
    coder = Agent("A", "code_writer", "You are A.", run=lambda text: Ran("answer = 3 + 4", result="7"))
    trace = discussed("See my program.", topology("chain")(2, 1, 0), team=(coder, TEAM[1]))
    assert trace.steps[0].answer == "7"
    assert trace.steps[0].calls[0].tool == "python"
    assert trace.steps[0].calls[0].result == "7"
    assert "The answer is 7" in (trace.steps[1].prompt or "")


def test_a_programs_error_is_shown_to_its_writer_once_and_to_no_reader_of_answers():
    ran = iter([Ran("x", error="SyntaxError: line 3"), Ran("x", error="SyntaxError: line 4")])
    coder = Agent("A", "code_writer", "You are A.", run=lambda text: next(ran))
    ask = Scripted(["First try.", "Second try.", "The answer is 7."])
    trace = discussed(ask, topology("chain")(2, 1, 0), team=(coder, TEAM[1]))
    step = trace.steps[0]
    assert "line 3" in ask.requests[1][-1]["content"]
    assert (step.text, step.answer) == ("Second try.", None)
    assert [call.error for call in step.calls] == ["SyntaxError: line 3", "SyntaxError: line 4"]
    assert "SyntaxError" not in ask.requests[2][-1]["content"]


CODE = "```python\nanswer = 7{rest}\n```\n"


@pytest.mark.parametrize(
    ("text", "ran", "answer"),
    [
        (CODE.format(rest=" + x"), Ran("x", error="NameError"), None),
        (CODE.format(rest=" # the answer is 7"), Ran("x", error="no numpy"), None),
        (CODE.format(rest="\nanswer = 'none'"), Ran("x", result="none"), None),
        (CODE.format(rest="\nanswer = 8"), Ran("x", result="8"), "8"),
        (CODE.format(rest="\nanswer = 8") + "The answer is 7.", Ran("x", result="8"), "8"),
        (CODE.format(rest=" + x") + "By hand: the answer is 9.", Ran("x", error="NameError"), "9"),
        ("The answer is 9.\n```python\nanswer = 7", Ran("x", result="8"), "8"),
        ("The answer is 9.\n```python\nanswer = 7", Ran("x", error="cut off"), "9"),
        ("~~~\nanswer = 7\n~~~", Ran("x", error="NameError"), None),
        (CODE.format(rest=""), None, "7"),
    ],
)
def test_the_source_of_a_program_that_was_run_is_nobodys_answer(
    text: str, ran: Ran | None, answer: str | None
):
    """Neither of the step, nor of the run, nor when the texts are read again."""
    coder = Agent("A", "code_writer", "You are A.", run=lambda text: ran)
    trace = discussed(text, topology("direct")(1, 1, 0), team=(coder,))
    assert trace.steps[0].answer == answer
    assert trace.steps[0].text.startswith(text)
    if ran is not None and answer is None:
        assert (trace.answer, trace.correct) == (None, False)
    kept = replace(trace, labels={"job": "0", **trace.labels})
    forged = replace(kept, answer="1", steps=tuple(replace(step, answer="1") for step in kept.steps))
    assert answers_of(forged, regrade=True) == [answer]
    bare = replace(kept, steps=tuple(replace(step, answer=None) for step in kept.steps))
    assert answers_of(bare) == [answer]


def answers_of(trace: Trace, *, regrade: bool = False) -> list[str | None]:
    return list(step_answers(Context(trace, graph(trace), regrade=regrade)).values())


def test_a_turn_of_two_calls_counts_both():
    ran = iter([Ran("x", error="NameError"), Ran("x", result="7")])
    coder = Agent("A", "code_writer", "You are A.", run=lambda text: next(ran))
    ask = Scripted([Reply("One.", 10, 2), Reply("Two.", 20, 3)])
    usage = discussed(ask, topology("direct")(1, 1, 0), team=(coder,)).steps[0].usage
    assert usage is not None
    assert (usage.tokens_in, usage.tokens_out) == (30, 5)


@pytest.mark.parametrize(("second", "cost"), [(0.5, 0.75), (None, None)])
def test_what_two_calls_cached_reasoned_and_cost_is_counted_where_both_say_it(second, cost):
    ask = Scripted(
        [Reply("Hm", 10, 3, "m", "stop", 4, 2, 0.25), Reply("7", 20, 2, "m", "stop", 6, 1, second)]
    )
    coder = Agent(
        "coder", "coder", "Write a program.", run=lambda text: Ran("1 / 0", error="division by zero")
    )
    usage = discussed(ask, topology("direct")(1, 1, 0), team=(coder,)).steps[0].usage
    assert usage is not None
    assert (usage.tokens_cached, usage.tokens_reasoning, usage.cost_usd) == (10, 3, cost)


def test_a_reply_that_knows_its_times_gives_them_to_its_step():
    trace = discussed(lambda _: "7", topology("direct")(1, 1, 0), team=TEAM[:1])
    assert (trace.steps[0].started_at or 0) > 1e9
    reply = TimedReply("7", started_at=5.0, ended_at=6.0)
    alone = topology("direct")(1, 1, 0)
    kept = play(QUESTION, TEAM[:1], alone, lambda _: reply, benchmark=gsm8k, protocol=LastWord())
    assert (kept.steps[0].started_at, kept.steps[0].ended_at) == (5.0, 6.0)


def test_a_trace_made_anew_of_kept_replies_is_the_same():
    coder = Agent("A", "code_writer", "You are A.", run=lambda text: Ran("answer = 7", result="7"))
    reply = TimedReply("See my program.", started_at=5.0, ended_at=6.0)
    first, second = (
        play(
            QUESTION,
            [coder],
            topology("direct")(1, 1, 0),
            lambda _: reply,
            benchmark=gsm8k,
            protocol=LastWord(),
        )
        for _ in range(2)
    )
    assert encode(first) == encode(second)
    assert first.steps[0].calls[0].started_at == 6.0


def test_the_adversary_is_marked_in_the_trace():
    chosen = system("vanilla")
    trace = discussed("The answer is 7.", chosen.wiring(), chosen.last_word(), chosen.agents("number"))
    assert trace.labels["adversaries"] == ["adversary"]
    assert {step.role for step in trace.steps} == {
        "analyst",
        "code_writer",
        "math_solver",
        "adversary",
        "decider",
    }


def test_a_team_and_its_wiring_have_to_fit():
    with pytest.raises(GraphError, match="for 2 agents, and the team has 3"):
        discussed("7", topology("chain")(2, 1, 0))
    with pytest.raises(UsageError, match="distinct names"):
        discussed("7", topology("chain")(2, 1, 0), team=(TEAM[0], TEAM[0]))
