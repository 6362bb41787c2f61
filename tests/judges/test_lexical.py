"""The heuristic judge: what it can tell, and that it says what it is."""

import numpy as np
import pytest

from counterpoint.errors import ModelError
from counterpoint.judges.lexical import Lexical
from counterpoint.judges.nli import Entailment

DAM = "The dam of Aldea failed in 2019 after heavy rain."


@pytest.mark.parametrize(
    ("text", "claim", "holds"),
    [
        (DAM, DAM, True),
        (DAM, "The dam failed in 2019.", True),
        ("The dam failed in 2019.", DAM, False),  # a cause and a place more
        (DAM, "The dam failed in 2018.", False),
        (DAM, "The dam did not fail in 2019.", False),
        (DAM, "the DAM failed, after heavy rains!", True),
        ("They met in Rome.", "They met in Paris.", False),
        ("It costs $1,200.50 in all.", "It costs 1200.5", True),
        ("大坝在2019年失事了。", "大坝没有失事。", False),
        ("anything", "", False),
    ],
)
def test_a_text_preserves_a_claim_iff_it_holds_its_words(text, claim, holds):
    (verdict,) = Lexical()("preservation", [(text, claim)])
    assert (verdict.score >= 0.75) == holds
    assert not verdict.reason


def test_an_embedder_scales_what_words_say():
    judge = Lexical(lambda texts: np.eye(len(texts)))
    same, other = judge("preservation", [("a cat", "a cat"), ("the cat sat", "a cat")])
    assert (same.score, other.score) == (1, 0.8)


def test_support_is_by_a_sentence_of_the_source_or_two():
    source = "The dam failed. Nobody was hurt. Rain had fallen for 9 days."
    claims = ["The dam failed", "Rain fell for 9 days and nobody was hurt", "The mayor resigned"]
    scores = [verdict.score for verdict in Lexical()("support", [(source, claim) for claim in claims])]
    assert scores[0] == 1
    assert scores[2] == 0
    assert [verdict.score for verdict in Lexical()("support", [("", "The dam failed")])] == [0]


@pytest.mark.parametrize(
    ("text", "claim", "score"),
    [
        ("The dam is not safe", "The dam is safe", 1),
        ("The dam is safe", "The dam is safe", 0),
        ("7 died", "9 died", 1),
    ],
)
def test_contradiction_is_the_same_words_with_a_denial_or_another_number(text, claim, score):
    (verdict,) = Lexical()("contradiction", [(text, claim)])
    assert verdict.score == score


@pytest.mark.parametrize(
    ("text", "stance"),
    [
        ("The dam is safe.", 1),
        ("Perhaps the dam is safe.", 0.5),
        ("According to the mayor the dam is safe.", 0.5),
        ("Ana claims that the dam is safe.", 0.5),
        ("I disagree that the dam is safe.", 0),
        ("I don't believe that the dam is safe.", 0),
    ],
)
def test_a_stance_is_read_off_its_cues(text, stance):
    (verdict,) = Lexical()("stance", [(text, "the dam is safe")])
    assert verdict.score == stance


def test_the_heuristic_is_called_one():
    assert "heuristic" in Lexical().id
    assert "heuristic" in Lexical.VERSION


def test_an_entailment_model_answers_all_questions():
    judge = Entailment(predict=lambda pairs: [[0.1, 0.7, 0.2]] * len(pairs))
    scores = {
        question: judge(question, [("text", "claim")])[0].score
        for question in ("preservation", "support", "contradiction", "stance")
    }
    assert scores == pytest.approx({"preservation": 0.7, "support": 0.7, "contradiction": 0.1, "stance": 0.8})
    assert judge("support", []) == []


def test_an_entailment_model_that_is_none_is_named():
    with pytest.raises(ModelError, match="not an entailment model"):
        Entailment("m", predict=lambda pairs: [[1.0]], labels={0: "LABEL_0"})("support", [("a", "b")])
    with pytest.raises(ModelError, match="shape"):
        Entailment("m", predict=lambda pairs: [1.0])("support", [("a", "b")])
    (verdict,) = Entailment("m", predict=lambda pairs: [[0, np.nan, 0]])("support", [("a", "b")])
    assert verdict.score is None
    assert verdict.reason
