"""Claim dynamics of traces: positions, paths, what is missing, who judges; and the life of a claim."""

import json
from typing import Any

import numpy as np
import pytest

import counterpoint as cp
from counterpoint.contracts import Verdict
from counterpoint.errors import UsageError
from counterpoint.metrics import metrics_of
from counterpoint.metrics.claim_ledger import ledger
from counterpoint.metrics.claim_metrics import OPTIONS
from counterpoint.trace import Step, Trace

TASK = "The dam of Aldea failed. Nine people died."


def trace(*turns, task=TASK, labels=None):
    """A trace of turns ``(round, agent, text)``."""
    steps = tuple(Step(f"s{n}", agent, text, round=at) for n, (at, agent, text) in enumerate(turns))
    return Trace("t", steps, task=task, labels=labels or {})


def scored(one, *metrics, **how):
    scores = cp.evaluate([one], list(metrics), embedder=how.pop("embedder", "hashing"), **how)
    return scores.rows[0] if len(scores.rows) == 1 else scores.rows


def events_of(one, **options):
    found = cp.evaluate(
        [one], ["unity"], embedder="hashing", observe=lambda context: ledger(context, {**OPTIONS, **options})
    )
    return [
        [(event.event, event.agent, event.round) for event in found.observed[0] if event.life == life]
        for life in sorted({event.life for event in found.observed[0]})
    ]


TWO = trace(
    (0, "Ana", "The dam of Aldea failed. Rain caused it on Monday."),
    (0, "Ben", "The dam of Aldea failed. The mayor resigned today."),
    (1, "Ana", "Rain caused it on Monday."),
    (1, "Ben", "Rain caused it on Monday. The mayor resigned today."),
)


def test_all_six_metrics_of_a_trace_can_be_worked_by_hand():
    rows = {row.metric: row for row in scored(TWO, "river")}
    # Round 0: one of two claims is shared, each way. Round 1: all of Ana's, and half of Ben's.
    assert rows["unity"].value == pytest.approx((0.5 + 0.75) / 2)
    assert rows["unique_claims"].parts["at_1"] == 3
    assert rows["unique_claims"].parts["at_2"] == 2
    assert rows["extension_rate"].value == pytest.approx((2 / 3 + 1) / 2)
    assert rows["source_retention"].value == pytest.approx((0.5 + 0) / 2)
    assert rows["survival_rate"].value == 1
    assert rows["survival_length"].value == 1  # both lineages cover both positions
    assert rows["survival_length"].parts["lineages"] == 2


def test_a_heuristic_says_so_in_the_signature():
    row = scored(TWO, "unity")
    assert "heuristic" in row.signature["judge_version"]
    assert "heuristic" in row.signature["decomposer_version"]
    assert "heuristic" in row.detail["judge"]


def test_renaming_agents_changes_nothing():
    names = {"Ana": "Zoe", "Ben": "Abe"}
    renamed = cp.Trace(
        "t", tuple(Step(s.id, names[s.agent], s.text, round=s.round) for s in TWO.steps), task=TASK
    )
    before, after = scored(TWO, "river"), scored(renamed, "river")
    assert [row.value for row in before] == [row.value for row in after]


def test_the_set_hands_each_metric_the_parameters_that_it_has():
    names = [str(one) for one in metrics_of("river(kind=soft, threshold=0.8)")]
    assert names[0] == "unity(kind=soft, threshold=0.8)"
    assert names[1] == "unique_claims(threshold=0.8)"
    assert len(names) == 6
    with pytest.raises(UsageError, match="has a parameter"):
        metrics_of("river(kimd=soft)")


@pytest.mark.parametrize(
    ("one", "name", "reason"),
    [
        (trace(), "unity", "no agent makes a claim"),
        (trace((0, "Ana", " ")), "unique_claims", "no agent makes a claim"),
        (trace((0, "Ana", "The dam failed.")), "unity", "fewer than two agents"),
        (trace((0, "Ana", "The dam failed.")), "survival_rate", "one position"),
        (trace((0, "Ana", "The dam failed."), task=""), "extension_rate", "no task text"),
        (trace((0, "Ana", "The dam failed."), task=""), "source_retention", "no task text"),
        (trace((0, "Ana", "The dam failed."), task="Why?"), "source_retention", "states no fact"),
    ],
)
def test_what_a_trace_lacks_is_told(one, name, reason):
    row = scored(one, name)
    assert row.value is None
    assert reason in row.reason


def test_a_silent_agent_is_not_held_against_those_who_speak():
    one = trace((0, "Ana", "Dams fail."), (0, "Ben", "Dams fail."), (1, "Cem", "Rain fell."))
    assert scored(one, "unity").parts["at_1"] == 1


def test_a_position_of_too_many_claims_to_compare_is_undefined_and_says_so():
    flood = " ".join(f"Dam {number} fell today." for number in range(2_001))
    one = trace((0, "Ana", flood), (0, "Ben", "Dam 1 fell today."), (1, "Ana", "Rain fell today."))
    rows = {row.metric: row for row in scored(one, "river")}
    for name in ("survival_rate", "survival_length"):
        assert rows[name].value is None
    assert "position 1 has 2,002 claims" in rows["survival_rate"].reason
    assert "set cap=N" in rows["survival_length"].reason
    assert rows["unique_claims"].value == 1  # of the other position
    assert scored(one, "unique_claims(cap=5)").parts["at_1"] == 5
    assert events_of(one) == [[("born", "Ana", 1)]]


def test_nothing_is_called_lost_before_a_position_of_too_many_claims():
    flood = " ".join(f"Dam {number} fell today." for number in range(2_001))
    assert events_of(trace((0, "Ana", "Rain fell today."), (1, "Ana", flood))) == [[("born", "Ana", 0)]]


@pytest.mark.parametrize("name", ["extension_rate", "source_retention", "survival_rate"])
def test_a_source_of_a_book_is_not_held_against_claims(name):
    one = trace((0, "Ana", "Rain fell."), (1, "Ana", "Rain fell."), task="Rain fell today. " * 6_000)
    row = scored(one, name)
    assert row.value is None
    assert "more than 100,000 characters" in row.reason


# --- positions and paths ---------------------------------------------------------------------------


RELAY = trace(
    (0, "Ana", "The mayor resigned today."),
    (0, "Ben", "Rain caused it on Monday."),
    (1, "Ana", "Rain caused it on Monday."),
    (1, "Ben", "The mayor resigned today."),
)


@pytest.mark.parametrize(
    ("paths", "rate"),
    [("agent", 0), ("relay", 1), ([["Ana", "Ben"]], 1), ([["Ana", "Ana"], ["Ben", "Ana"]], 0.5)],
)
def test_claims_survive_along_the_paths_that_the_trace_names(paths, rate):
    one = Trace("t", RELAY.steps, task=TASK, labels={"discussion": {"paths": paths}})
    assert scored(one, "survival_rate").value == rate


def four(labels, *words):
    return trace(*((at, "Ana", f"{word} fell today.") for at, word in enumerate(words)), labels=labels)


def test_nothing_survives_from_one_cycle_to_the_next():
    words = ("Rain", "Rain", "Hail", "Hail")
    whole = scored(four({}, *words), "survival_rate")
    cycles = scored(four({"discussion": {"stages": 2}}, *words), "survival_rate")
    assert (whole.value, whole.parts["positions"]) == (pytest.approx(2 / 3), 3)
    assert (cycles.value, cycles.parts["positions"]) == (1, 2)


def test_every_cycle_ends_at_the_private_position():
    labels = {"discussion": {"stages": 2, "private": True, "paths": "relay"}}
    one = four(labels, "Rain", "Rain", "Hail", "Hail", "Rain")
    row = scored(one, "survival_rate")
    assert row.parts["positions"] == 4  # 1-2, 2-5, 3-4, 4-5
    assert row.value == 0.75
    length = scored(one, "survival_length")
    assert length.parts["positions"] == 3
    assert length.parts["lineages"] == 3  # rain in all three; hail in two; and rain, new to the second cycle
    assert length.parts["mean"] == 2


@pytest.mark.parametrize(
    "label", [7, {"stages": 0}, {"stages": "x"}, {"paths": 3}, {"paths": [["Nobody"]]}, {"paths": "ring"}]
)
def test_a_label_that_cannot_be_used_is_told_and_left(label):
    row = scored(four({"discussion": label}, "Rain", "Rain"), "survival_rate")
    assert row.value == 1
    assert "labels.discussion" in row.detail["positions"]


# --- judges ----------------------------------------------------------------------------------------


class Table:
    """A judge that knows some pairs (text, claim), and answers 0 to all others."""

    id = "table"

    def __init__(self, known: dict[Any, Any]) -> None:
        self.known = known
        self.asked: list[Any] = []

    def __call__(self, question, pairs):
        self.asked += [(question, pair) for pair in pairs]
        default = 1.0 if question == "stance" else 0.0
        scores = [self.known.get((question, pair), self.known.get(question, default)) for pair in pairs]
        return [Verdict(score, "" if score is not None else "out of order") for score in scores]


def test_a_judge_of_your_own_will_do():
    known = {
        ("preservation", ("A dog ran.", "A cat sat.")): 0.9,
        ("preservation", ("A cat sat.", "A dog ran.")): 0.8,
    }
    one = trace((0, "Ana", "A cat sat."), (0, "Ben", "A dog ran."))
    (chosen,) = metrics_of("unity")
    row = scored(one, chosen.bind(judge=Table(known), kind="soft"))
    assert row.value == pytest.approx(0.8)  # the lower of both directions


def test_a_missing_judgment_matters_only_where_it_could_change_the_value():
    one = trace((0, "Ana", "A cat sat."), (0, "Ben", "A dog ran. A cow ate."))
    cat_dog = ("preservation", ("A dog ran.", "A cat sat."))
    dog_cat = ("preservation", ("A cat sat.", "A dog ran."))
    cat_cow = ("preservation", ("A cow ate.", "A cat sat."))
    cow_cat = ("preservation", ("A cat sat.", "A cow ate."))
    unknown = {cat_cow: None, cow_cat: None}
    (chosen,) = metrics_of("unity")
    row = scored(one, chosen.bind(judge=Table(unknown)))
    assert row.value is None
    assert "out of order" in row.reason
    assert row.parts["undefined_judgments"] == 2
    settled = {
        cat_dog: 1,
        dog_cat: 1,
        cat_cow: None,
        cow_cat: 0,
    }  # one fails: no matter
    assert scored(one, chosen.bind(judge=Table(settled))).value == pytest.approx(0.75)


@pytest.mark.parametrize("name", ["unique_claims", "extension_rate", "survival_rate", "survival_length"])
def test_a_claim_of_unknown_kind_is_neither_source_nor_extension(name):
    (chosen,) = metrics_of(name)
    row = scored(TWO, chosen.bind(judge=Table({"support": None})))
    assert row.value is None
    assert "out of order" in row.reason


def test_far_pairs_are_not_judged_and_what_that_costs_is_told():
    rng = np.random.default_rng(0)

    def embed(texts):
        vectors = rng.normal(size=(len(texts), 8))
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    text = {agent: " ".join(f"Item {n} of {agent} broke." for n in range(60)) for agent in ("Ana", "Ben")}
    one = trace(*((0, agent, said) for agent, said in text.items()))
    (chosen,) = metrics_of("unity(candidates=5)")
    few, all_ = Table({}), Table({})
    row = scored(one, chosen.bind(judge=few), embedder=embed)
    scored(one, chosen.bind(judge=all_, candidates=None), embedder=embed)
    assert len(few.asked) < len(all_.asked) / 4
    assert row.parts["filtered_pairs"] > 2000
    assert "filter_recall" not in row.parts  # nothing was related, so there is nothing to recall
    related = scored(one, chosen.bind(judge=Table({"preservation": 1.0})), embedder=embed)
    assert 0 < related.parts["filter_recall"] < 0.3  # a filter by chance, where all pairs are related


def answer(messages):
    """A chat model that finds two texts related iff they are equal."""
    entries = []
    for item in json.JSONDecoder().raw_decode(messages[-1]["content"])[0]["items"]:
        same = item["claim"] in item["text"]
        verdict = {"verdict": "pass" if same else "fail", "score": 1 if same else 0, "stance": 1}
        entries.append({"key": item["key"], **verdict})
    return json.dumps({"answers": entries})


def test_a_chat_model_judges_over_http_and_a_second_run_asks_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("COUNTERPOINT_CACHE", str(tmp_path))
    with cp.scripted_server(answer) as server:
        text = f"river(judge=llm, model=m, base_url={server.base_url})"
        rows = scored(TWO, text)
        assert rows[0].value == pytest.approx((0.5 + 0.75) / 2)
        assert rows[4].value == 1
        asked = len(server.requests)
        assert asked > 0
        again = scored(TWO, text)
        assert [row.value for row in again] == [row.value for row in rows]
        assert len(server.requests) == asked


def test_a_spent_budget_leaves_metrics_undefined(tmp_path, monkeypatch):
    monkeypatch.setenv("COUNTERPOINT_CACHE", str(tmp_path))
    with cp.scripted_server(answer) as server:
        row = scored(TWO, f"unity(judge=llm, model=m, base_url={server.base_url}, max_calls=1)")
    assert row.value is None
    assert "budget of 1 calls" in row.reason
    with pytest.raises(UsageError, match="workers=1"):
        scored(TWO, "unity(judge=llm, model=m, max_calls=1)", workers=2)


def test_a_judge_without_a_model_is_bad_usage():
    with pytest.raises(UsageError, match="judge=llm needs"):
        scored(TWO, "unity(judge=llm)")


# --- the ledger --------------------------------------------------------------------------------------


def test_the_life_of_a_claim_is_told():
    one = trace(
        (0, "Ana", "Heavy rain broke the old dam."),
        (0, "Ben", "Birds sing."),
        (1, "Ben", "Heavy rain broke the old dam."),
        (1, "Ana", "Heavy rain broke the old dam."),
        (2, "Ana", "Rain broke the dam."),
        (2, "Ben", "Heavy rain never broke the old dam."),
        (3, "Ana", "Fish swim."),
    )
    lives = events_of(one)
    assert lives[0] == [
        ("born", "Ana", 0),
        ("adopted", "Ben", 1),
        ("kept", "Ana", 1),
        ("weakened", "Ana", 2),
        ("contradicted", "Ben", 2),
        ("lost", "", 2),
    ]
    assert lives[1] == [("born", "Ben", 0), ("lost", "", 1)]
    assert lives[-1] == [("born", "Ana", 3)]


def test_the_private_position_is_told_once():
    labels = {"discussion": {"stages": 1, "private": True}}
    lives = events_of(four(labels, "Rain", "Hail", "Rain"))
    assert lives == [
        [("born", "Ana", 0)],
        [("born", "Ana", 1), ("lost", "", 2)],
        [("born", "Ana", 2)],
    ]


def test_a_claim_in_the_ledger_stands_where_it_says():
    found = cp.evaluate(
        [TWO], ["unity"], embedder="hashing", observe=lambda context: ledger(context, OPTIONS)
    )
    texts = {step.id: step.text for step in TWO.steps}
    for event in found.observed[0]:
        if event.step:
            assert texts[event.step][event.start : event.end] == event.text
            assert event.stance == 1
            assert event.extension == (event.text != "The dam of Aldea failed.")
