"""Benchmarks: both schema variants of each, splits kept apart, awkward replies read right.

The miniature files are of our own writing, in the schemas of the data sets.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from counterpoint import answers, benchmarks
from counterpoint.benchmarks import gsm8k, mmlu, multiarith, subset, svamp, train_test
from counterpoint.contracts import Example
from counterpoint.errors import MissingExtra, ModelError, UsageError
from counterpoint.registry import lookup

each_benchmark = pytest.mark.parametrize("name", benchmarks.TABLE)

PENS = "Ann has 3 pens and buys 4 more. How many pens has she?"
COINS = "A jar holds 1,200 coins. Ben doubles them. How many are there?"
DEBT = "Cai has 5 dollars and owes 8. How many dollars is Cai worth?"
SPEED = "A train runs 60 km in 2 hours. What is its speed in km/h?"
ROOT = "Which of these is a root of x + 2 = 0?"


def lines(*records: Mapping[str, Any]) -> str:
    return "\n".join(json.dumps(record) for record in records)


VARIANTS: dict[str, dict[str, str]] = {
    "gsm8k": {
        "test.jsonl": lines(
            {"question": PENS, "answer": "She has 3 + 4 = <<3+4=7>>7 pens.\n#### 7"},
            {"question": COINS, "answer": "2 * 1200 = 2400\n#### 2,400"},
            {"question": DEBT, "answer": "5 - 8 = -3\n#### -3"},
        ),
        "gsm8k.json": json.dumps(
            [
                {"question": f" {PENS}", "answer": 7},
                {"question": COINS, "answer": "2400"},
                {"question": DEBT, "answer": "-3"},
            ]
        ),
    },
    "aqua": {
        "test.json": lines(
            {
                "question": SPEED,
                "options": ["A)20", "B)30", "C)60", "D)120", "E)None of these"],
                "rationale": "60 / 2",
                "correct": "B",
            },
            {"question": ROOT, "options": ["A)2", "B)-2", "C)0", "D)1", "E)4"], "correct": "B"},
        ),
        "test.jsonl": json.dumps(
            [
                {"question": SPEED, "options": ["(A)20", "(B)30", "(C)60", "(D)120", "(E)None  of these"],
                 "label": "B"},
                {"question": ROOT, "options": ["2", "-2", "0", "1", "4"], "label": "b"},
            ]
        ),
    },
    "multiarith": {
        "MultiArith.json": json.dumps(
            [
                {"iIndex": n, "sQuestion": f" {PENS} Then {n} more? ", "lSolutions": [7.0 + n]}
                for n in range(10)
            ]
        ),
        "all.jsonl": lines(
            *({"question": f"{PENS} Then {n} more?", "final_ans": str(7 + n)} for n in range(10))
        ),
    },
    "svamp": {
        "SVAMP.json": json.dumps(
            [
                {"ID": f"chal-{n}", "Body": f"Ann has {n} pens", "Question": "How many?", "Answer": float(n)}
                for n in range(10)
            ]
        ),
        "all.jsonl": lines(
            *(
                {"ID": f"chal-{n}", "Body": f"Ann has {n} pens.", "Question": "How many?", "Answer": f"{n}.0"}
                for n in range(10)
            )
        ),
    },
    "mmlu": {
        "elementary_mathematics_test.csv": (
            'question,choice0,choice1,choice2,choice3,answer\n'
            f'"{PENS}",7,8,None,"1,000",0\n"{ROOT}",2,-2,0,1,1\n'
        ),
        "test/elementary_mathematics_test.csv": f'"{PENS}",7,8,None,"1,000",A\n"{ROOT}",2,-2,0,1,B\n',
        "test.jsonl": lines(
            {"question": PENS, "choices": ["7", "8", "None", "1,000"], "answer": 0,
             "subject": "elementary_mathematics"},
            {"question": ROOT, "choices": ["2", "-2", "0", "1"], "answer": "B",
             "subject": "elementary_mathematics"},
            {"question": "Who?", "choices": ["a", "b", "c", "d"], "answer": "B", "subject": "history"},
        ),
    },
}  # fmt: skip


def write(folder: Path, files: Mapping[str, str]) -> str:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, "utf-8")
    return str(folder)


@each_benchmark
def test_every_variant_of_the_files_gives_the_same_examples(name, tmp_path):
    found = [
        lookup("benchmark", name).load(write(tmp_path / str(number), {file: content}), "test")
        for number, (file, content) in enumerate(VARIANTS[name].items())
    ]
    assert found[0]
    assert all(examples == found[0] for examples in found)


@pytest.mark.parametrize(
    ("name", "golds"), [("gsm8k", ["7", "2400", "-3"]), ("aqua", ["B", "B"]), ("mmlu", ["A", "B"])]
)
def test_gold_answers_are_plain(name, golds, tmp_path):
    file, content = next(iter(VARIANTS[name].items()))
    examples = lookup("benchmark", name).load(write(tmp_path, {file: content}), "test")
    assert [example.gold for example in examples] == golds


def test_an_option_called_none_stays_a_text(tmp_path):
    file, content = next(iter(VARIANTS["mmlu"].items()))
    example = mmlu.load(write(tmp_path, {file: content}), "test")[0]
    assert example.options == {"A": "7", "B": "8", "C": "None", "D": "1,000"}
    assert example.task == f"{PENS}\nA) 7\nB) 8\nC) None\nD) 1,000"


def test_labels_that_stand_twice_before_an_option_are_taken_off(tmp_path):
    record = {"question": SPEED, "options": ["A)A)20", "B)B)30"], "correct": "B"}
    path = write(tmp_path, {"test.jsonl": lines(record)})
    assert lookup("benchmark", "aqua").load(path, "test")[0].options == {"A": "20", "B": "30"}


@each_benchmark
def test_train_and_test_share_no_id(name, tmp_path):
    file, content = next(iter(VARIANTS[name].items()))
    files = {file: content, **TRAINING.get(name, {})}
    train, test = train_test(name, write(tmp_path, files))
    assert train
    assert test
    assert not {example.id for example in train} & {example.id for example in test}


TRAINING = {
    "gsm8k": {
        "train_first2.jsonl": lines(
            {"question": SPEED, "answer": "#### 30"}, {"question": PENS, "answer": "#### 7"}
        )
    },
    "aqua": {"dev.json": lines({"question": "1 + 1?", "options": ["A)1", "B)2"], "correct": "B"})},
    "mmlu": {
        "elementary_mathematics_dev.csv": '"1 + 1?",1,2,3,4,B\n',
        "abstract_algebra_test.csv": f'"2 + 2?",1,2,3,4,D\n"{ROOT}",2,-2,0,1,B\n',
    },
}


def test_a_training_question_that_is_tested_is_left_out_of_training(tmp_path):
    path = write(tmp_path, {"test.jsonl": VARIANTS["gsm8k"]["test.jsonl"], **TRAINING["gsm8k"]})
    assert [example.task for example in gsm8k.load(path, "train")] == [SPEED]
    assert len(gsm8k.load(path, "test")) == 3


def test_training_of_mmlu_is_filled_up_from_subjects_that_are_not_tested(tmp_path):
    file, content = next(iter(VARIANTS["mmlu"].items()))
    train = mmlu.load(write(tmp_path, {file: content, **TRAINING["mmlu"]}), "train")
    assert sorted(example.task[:6] for example in train) == ["1 + 1?", "2 + 2?"]


def test_a_train_file_is_preferred_to_dev_and_train_to_first_rows(tmp_path):
    files = {
        "dev.jsonl": lines({"question": "dev?", "answer": "1"}),
        "train.jsonl": lines({"question": "train?", "answer": "1"}),
    }
    assert [example.task for example in gsm8k.load(write(tmp_path, files), "train")] == ["train?"]


def test_a_file_of_everything_is_divided_seven_to_three_by_seed_zero(tmp_path):
    path = write(tmp_path, {"MultiArith.json": VARIANTS["multiarith"]["MultiArith.json"]})
    train, test = train_test("multiarith", path)
    assert (len(train), len(test)) == (7, 3)
    backwards = json.dumps(json.loads(VARIANTS["multiarith"]["MultiArith.json"])[::-1])
    other = write(tmp_path / "backwards", {"MultiArith.json": backwards})
    assert {one.id for one in multiarith.load(other, "test")} == {one.id for one in test}


def test_a_question_that_stands_twice_is_on_one_side(tmp_path):
    rows = [{"sQuestion": f"{n // 2}?", "lSolutions": [n]} for n in range(20)]
    train, test = train_test("multiarith", write(tmp_path, {"MultiArith.json": json.dumps(rows)}))
    assert (len(train), len(test)) == (14, 6)
    assert not {one.task for one in train} & {one.task for one in test}
    assert len({one.id for one in [*train, *test]}) == 20


def test_known_ids_of_the_test_split_divide_a_file(tmp_path):
    files = {"SVAMP.json": VARIANTS["svamp"]["SVAMP.json"], "test2_ids.json": '["chal-8", "chal-3"]'}
    path = write(tmp_path, files)
    assert [example.id for example in svamp.load(path, "test")] == ["chal-3", "chal-8"]
    assert len(svamp.load(path, "train")) == 8


@pytest.mark.parametrize(
    ("files", "split", "told"),
    [
        ({}, "test", "no .json, .jsonl, .csv file"),
        ({"gsm8k.jsonl": '{"question": "?", "answer": "1"}'}, "train", "has no train split"),
        ({"test.jsonl": '{"question": "?", "answer": "1"}'}, "dev", "no split 'dev': it is test or train"),
        ({"a.json": "[]", "b.json": "[]"}, "test", "a.json, b.json): name one"),
        ({"test.jsonl": '{"answer": "1"}'}, "test", "record 1: no field 'question' (found: answer)"),
        (
            {"test.jsonl": '{"question": "a", "answer": null}'},
            "test",
            "record 1: the field 'answer' is empty",
        ),
        ({"test.jsonl": '{"question": "?", "answer": "many"}'}, "test", "'many' is no number"),
        ({"test.jsonl": '{"question": "?", "answer": "1"}\n{"ques'}, "test", "line 2 is no JSON"),
        (
            {"test.jsonl": '{"question": " ", "answer": "1"}'},
            "test",
            "record 1: the field 'question' is empty",
        ),
        ({"test.jsonl": "\n"}, "test", "test.jsonl is empty"),
        ({"test.json": "{"}, "test", "test.json is no JSON"),
        ({"test.json": "[3]"}, "test", "record 1 is no object but int"),
    ],
    ids=str,
)
def test_data_that_cannot_be_used_is_named(files, split, told, tmp_path):
    with pytest.raises(UsageError) as raised:
        gsm8k.load(write(tmp_path, files), split)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("aqua", {"test.json": '{"question": "?", "options": ["A)1", "B)2"], "correct": "E"}'}, "is none of"),
        ("aqua", {"test.json": '{"question": "?", "options": "A)1", "correct": "A"}'}, "no list of 2 to 10"),
        ("mmlu", {"elementary_mathematics_test.csv": "?,1,2,3,4,E\n"}, "no letter A to D"),
        ("mmlu", {"elementary_mathematics_test.csv": "?,1,2,3,A\n"}, "line 1 has 5 columns"),
        ("mmlu", {"history_test.csv": "?,1,2,3,4,A\n"}, "no test questions"),
        ("mmlu", {"elementary_mathematics_test.csv": ""}, "no test questions"),
        ("svamp", {"SVAMP.json": '[{"ID": "1", "Body": "", "Question": "?", "Answer": null}]'}, "'Answer'"),
    ],
)
def test_records_that_cannot_be_used_are_named(name, content, told, tmp_path):
    with pytest.raises(UsageError) as raised:
        lookup("benchmark", name).load(write(tmp_path, content), "test")
    assert told in str(raised.value)


def test_a_path_that_is_not_there_is_named():
    with pytest.raises(UsageError, match="no benchmark data at 'nowhere'"):
        gsm8k.load("nowhere", "test")


def test_a_training_file_is_not_taken_for_test_questions(tmp_path):
    path = write(tmp_path, TRAINING["gsm8k"])
    with pytest.raises(UsageError, match="has no test split"):
        gsm8k.load(f"{path}/train_first2.jsonl", "test")
    assert len(gsm8k.load(f"{path}/train_first2.jsonl", "train")) == 2


def test_splits_that_share_a_question_are_refused(monkeypatch):
    same = [Example("1", "?", "7")]
    monkeypatch.setattr(gsm8k, "load", lambda path, split: same)
    with pytest.raises(UsageError, match="1 training questions are test questions too, '1' for one"):
        train_test("gsm8k", "anywhere")


def test_the_hubs_copy_needs_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"counterpoint\[hub\]"):
        gsm8k.load("hub", "test")


def test_the_hubs_copy_is_read_by_its_splits(monkeypatch):
    rows = {
        "test": [{"question": PENS, "answer": "#### 7"}],
        "validation": [{"question": "?", "answer": "1"}],
    }
    hub = SimpleNamespace(
        get_dataset_split_names=lambda name, configuration: list(rows),
        load_dataset=lambda name, configuration, split: rows[split],
    )
    monkeypatch.setitem(sys.modules, "datasets", hub)
    train, test = train_test("gsm8k", "hub")
    assert ([one.task for one in train], [one.task for one in test]) == (["?"], [PENS])
    hub.get_dataset_split_names = lambda *_: 1 / 0
    with pytest.raises(ModelError, match="openai/gsm8k \\(main\\) of the hub cannot be loaded"):
        gsm8k.load("hub", "test")


NUMBER = Example("n", COINS, "2400", "number")
CHOICE = Example("c", f"{SPEED}\nA) 20\nB) 30\nC) 60", "B", "choice", {"A": "20", "B": "30", "C": "60"})

AWKWARD = [
    (NUMBER, "Twice 1,200 is 2,400.\n\n**The answer is 2,400.**", "2400"),
    (NUMBER, "The answer is $2,400 coins", "2400"),
    (NUMBER, r"So \boxed{2400}", "2400"),
    (NUMBER, "2 * 1200 = 2400", "2400"),
    (NUMBER, "The answer is: 2 × 1200 = 2400.00", "2400"),
    (NUMBER, "THE ANSWER IS 1200\nWait, they were doubled.\nFinal answer: 2400", "2400"),
    (NUMBER, "There are 2400 coins in the jar.", "2400"),
    (NUMBER, "#### 2400", "2400"),
    (NUMBER, '{"reasoning": "2 x 1200", "answer": 2400}', "2400"),
    (NUMBER, "The answer is <number>", None),
    (NUMBER, "I cannot tell.", None),
    (NUMBER, 'File "<string>", line 2400\nSyntaxError: invalid syntax (<string>, line 2400)', None),
    (NUMBER, "", None),
    (CHOICE, "The answer is B", "B"),
    (CHOICE, "The answer is (b).", "B"),
    (CHOICE, "**Answer: B) 30**", "B"),
    (CHOICE, "A train does 60 / 2 = 30, which is option B.", "B"),
    (CHOICE, "The answer is 30", "B"),
    (CHOICE, r"$\boxed{\text{B}}$", "B"),
    (CHOICE, "The answer is A... no. The answer is B) 30 km/h", "B"),
    (CHOICE, "B", "B"),
    (CHOICE, "Answer:\nB", "B"),
    (CHOICE, "The answer is D", None),
    (CHOICE, "The answer is A or B", None),
    (CHOICE, "The answer is not B", None),
    (CHOICE, "A train is fast. I give up.", None),
]


@each_benchmark
@pytest.mark.parametrize(("example", "reply", "answer"), AWKWARD, ids=lambda value: str(value)[:40])
def test_awkward_replies_are_read_right(name, example, reply, answer):
    benchmark = lookup("benchmark", name)
    found = benchmark.read_answer(reply, example)
    assert found == answer or answers.same_answer(found, answer, kind=example.kind)
    assert benchmark.grade(found, example) == (answer is not None)


@each_benchmark
@pytest.mark.parametrize(
    ("answer", "example", "right"),
    [
        ("2400.0", NUMBER, True),
        ("-2400", NUMBER, False),
        ("2400.000001", NUMBER, False),
        ("4800/2", NUMBER, True),
        (None, NUMBER, False),
        ("None", NUMBER, False),
        ("b", CHOICE, True),
        ("C", CHOICE, False),
        (None, CHOICE, False),
    ],
)
def test_numbers_are_graded_exactly_and_nothing_is_wrong(name, answer, example, right):
    assert lookup("benchmark", name).grade(answer, example) is right


@each_benchmark
@pytest.mark.parametrize(
    "example", [NUMBER, CHOICE, Example("t", "Who?", "Ann", "text")], ids=lambda e: e.kind
)
def test_a_prompt_ends_with_the_form_of_the_answer_which_is_no_answer(name, example):
    prompt = lookup("benchmark", name).prompt(example)
    assert prompt.startswith(example.task)
    contract = prompt.rpartition("\n\n")[2]
    assert "The answer is <" in contract
    if example.kind != "text":
        assert answers.read_answer(prompt, kind=example.kind, options=example.options or None) is None


def test_a_limit_takes_the_first_or_draws_by_seed_in_order():
    examples = [Example(str(number), "?", "7") for number in range(100)]
    assert subset(examples, None) == subset(examples, 200) == examples
    assert subset(examples, 5) == examples[:5]
    drawn = subset(examples, 5, seed=1)
    assert drawn == subset(examples, 5, seed=1) != subset(examples, 5, seed=2)
    assert [int(one.id) for one in drawn] == sorted(int(one.id) for one in drawn)
    with pytest.raises(UsageError, match="at least 1 question, not 0"):
        subset(examples, 0)


@pytest.mark.parametrize(
    ("name", "folder", "train", "test"),
    [
        ("gsm8k", "gsm8k", 200, 1319),
        ("aqua", "AQuA", 254, 254),
        ("multiarith", "MultiArith", 420, 180),
        ("svamp", "SVAMP", 700, 300),
        ("mmlu", "MMLU", 40, 748),
    ],
)
def test_the_real_files_have_their_published_sizes(name, folder, train, test, data):
    if not (data / "benchmarks" / folder).is_dir():
        pytest.skip(f"no {folder} among the real data")
    learned, tested = train_test(name, str(data / "benchmarks" / folder))
    assert (len(learned), len(tested)) == (train, test)
    ids = [example.id for example in [*learned, *tested]]
    assert len(set(ids)) == len(ids)
    benchmark = lookup("benchmark", name)
    for example in tested:
        assert benchmark.grade(benchmark.read_answer(f"So.\nThe answer is {example.gold}", example), example)
