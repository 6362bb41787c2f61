"""IDS against hand-made vectors and against scikit-learn; tokens, missing texts, bad vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import coo_array
from sklearn.feature_extraction.text import TfidfVectorizer

from counterpoint.errors import CounterpointError, GraphError, ModelError, UsageError
from counterpoint.metrics import similarity
from counterpoint.metrics.gemmas import diversity_curve, information_diversity
from counterpoint.metrics.similarity import sklearn_words, words

Embed = Callable[[list[str]], NDArray[np.floating]]
PAIR = (2, [(0, 1)])
NONE = (2, [])


def fixed(*vectors: list[float]) -> Embed:
    """An embedder that gives these vectors, whatever the texts."""
    return lambda texts: np.array(vectors, dtype=float).reshape(len(vectors), -1)


def letters(texts: list[str]) -> NDArray[np.floating]:
    """An embedder that counts letters, with a sign by the text's length: some cosines are negative."""
    rows = [[text.count(chr(97 + code)) * (-1) ** len(text) for code in range(26)] for text in texts]
    return np.array(rows, dtype=float).reshape(-1, 26) + 1e-3


def unlike(*vectors: list[float], **options: Any) -> float:
    """IDS of two connected texts that share no word."""
    score = information_diversity(["aa", "bb"], PAIR, NONE, embed=fixed(*vectors), **options)
    assert score.value is not None
    return score.value


# --- worked by hand ------------------------------------------------------------------------------


def test_two_texts_that_share_one_word_of_two():
    score = information_diversity(
        ["alpha beta", "alpha gamma"], [[0, 1], [0, 0]], np.zeros((2, 2)), embed=fixed([1, 0], [0.8, 0.6])
    )
    cosine = 1 / (1 + (math.log(3 / 2) + 1) ** 2)
    assert score.value == pytest.approx(0.431952, abs=5e-7)
    assert score.parts["syntactic"] == pytest.approx(1 - cosine, abs=1e-12)
    assert score.parts["semantic"] == pytest.approx(0.2, abs=1e-12)
    counts = {"pairs": 1, "weight": 1, "clipped": 0, "missing": 0}
    assert {name: score.parts[name] for name in counts} == counts


def test_pairs_in_both_s_and_t_weigh_double():
    """Similarities .9, .5, .1 with weights 2, 1, 1: (.2 + .5 + .9) / 4."""
    gram = np.array([[1, 0.9, 0.5], [0.9, 1, 0.1], [0.5, 0.1, 1]])
    vectors = np.linalg.cholesky(gram).tolist()
    spatial, temporal = (3, [(0, 1), (1, 2)]), (3, [(0, 1), (0, 2)])
    score = information_diversity(["aa", "bb", "cc"], spatial, temporal, embed=fixed(*vectors), lam=0)
    assert score.value == pytest.approx(0.4, abs=1e-12)
    assert (score.parts["pairs"], score.parts["weight"]) == (3, 4)


@pytest.mark.parametrize(
    ("texts", "n", "reason"),
    [
        (["aa", "bb"], 2, "no two texts are connected: S and T are empty"),
        (["aa"], 1, "fewer than two texts"),
        ([], 0, "fewer than two texts"),
    ],
)
def test_without_a_connected_pair_it_is_undefined(texts: list[str], n: int, reason: str):
    score = information_diversity(texts, np.zeros((n, n)), np.zeros((n, n)), embed=letters)
    assert score.value is None
    assert reason in score.reason


def test_equal_texts_are_not_diverse_whatever_their_vectors():
    same = information_diversity(["So 7.", "so 7. "], PAIR, PAIR, embed=fixed([1, 0], [0, 1]))
    assert same.value == 0
    assert same.parts["weight"] == 2
    for texts in (["7", "7"], ["!!!", "!!!"], ["①", "1"], ["a", "A"]):
        for tokenizer in ("words", "sklearn"):
            score = information_diversity(texts, PAIR, NONE, embed=fixed([0], [0]), tokenizer=tokenizer)
            assert score.value == 0


@pytest.mark.parametrize("texts", [["!!!", "???"], ["a", "I"], ["…", "—"]])
def test_texts_without_a_token_are_unlike_any_other(texts: list[str]):
    score = information_diversity(texts, PAIR, NONE, embed=letters, tokenizer="sklearn")
    assert score.parts["syntactic"] == 1


def test_words_tells_answers_apart_that_sklearn_does_not():
    answers = ["The answer is 7", "The answer is 8"]
    by = {
        tokenizer: information_diversity(answers, PAIR, NONE, embed=letters, tokenizer=tokenizer)
        for tokenizer in ("words", "sklearn")
    }
    assert by["sklearn"].parts["syntactic"] == pytest.approx(0, abs=1e-12)
    assert by["words"].parts["syntactic"] > 0.2


def test_a_dropped_agents_literal_none_raises_diversity():
    """Seen in the wild: "None." stands for an agent that said nothing."""
    triangle = 3, [(0, 1), (0, 2), (1, 2)]
    honest = information_diversity(["It is 7.", "I get 7.", None], triangle, (3, []), embed=letters)
    faked = information_diversity(["It is 7.", "I get 7.", "None."], triangle, (3, []), embed=letters)
    assert honest.value is not None
    assert faked.value is not None
    assert faked.value > honest.value + 0.1
    assert (honest.parts["missing"], faked.parts["missing"]) == (1, 0)


# --- missing texts -------------------------------------------------------------------------------


@pytest.mark.parametrize("absent", [None, "", " \n\t", "\u3000"])
def test_a_missing_text_takes_its_pairs_with_it_and_is_not_embedded(absent: str | None):
    embedded: list[str] = []

    def embed(texts: list[str]) -> NDArray[np.floating]:
        embedded.extend(texts)
        return letters(texts)

    chain = 4, [(0, 1), (1, 2), (2, 3)]
    score = information_diversity(["aa", absent, "bb cc", "bb dd"], chain, (4, []), embed=embed)
    alone = information_diversity(["aa", "bb cc", "bb dd"], (3, [(1, 2)]), (3, []), embed=letters)
    assert embedded == ["bb cc", "bb dd"]  # "aa" is in no pair any more
    assert score.value == alone.value
    assert (score.parts["pairs"], score.parts["missing"]) == (1, 1)


def test_missing_texts_that_leave_no_pair_are_named():
    score = information_diversity(["aa", ""], PAIR, NONE, embed=letters)
    assert score.value is None
    assert score.reason == "no two texts that are there are connected (missing: 1)"


# --- vectors -------------------------------------------------------------------------------------


def test_a_negative_cosine_is_clipped_and_counted():
    score = information_diversity(["aa", "bb"], PAIR, NONE, embed=fixed([1, 0], [-1, 0]), lam=0)
    assert (score.value, score.parts["clipped"]) == (1, 1)
    score = information_diversity(["aa", "bb"], PAIR, NONE, embed=fixed([1, 0], [-1e-12, 1]), lam=0)
    assert (score.value, score.parts["clipped"]) == (1, 0)


@pytest.mark.parametrize("bad", [[0, 0], [math.nan, 1], [math.inf, 1], [-math.inf, math.inf]])
def test_a_vector_without_a_direction_is_unlike_any_other_and_counted(bad: list[float]):
    score = information_diversity(["aa", "bb"], PAIR, NONE, embed=fixed([1, 0], bad), lam=0)
    assert (score.value, score.parts["invalid"]) == (1, 1)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 3.0, 1e160, 1e300])
def test_the_length_of_a_vector_does_not_matter(scale: float):
    assert unlike([1, 0], [0.8 * scale, 0.6 * scale], lam=0) == pytest.approx(0.2, abs=1e-12)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (np.ones(2), r"shape \(2,\) for 2 texts"),
        (np.ones((3, 4)), r"shape \(3, 4\) for 2 texts: it has to give \(2, d\)"),
        (None, r"shape \(\) for 2 texts"),
        (["one", "two"], "list, not an"),
        ([[1.0], [1.0, 2.0]], "list, not an"),
    ],
)
def test_an_embedder_of_another_shape_is_a_model_error(found: Any, message: str):
    with pytest.raises(ModelError, match=message):
        information_diversity(["aa", "bb"], PAIR, NONE, embed=lambda texts: found)


def test_without_an_embedder_the_syntactic_half_is_still_there():
    score = information_diversity(["aa", "bb"], PAIR, NONE, embed=None)
    assert score.value is None
    assert score.parts == {"syntactic": 1, "pairs": 1, "weight": 1, "missing": 0}


# --- against scikit-learn ------------------------------------------------------------------------

TEXT = st.text(st.sampled_from("ab cd7.é-_ß\nİ漢"), max_size=12)


def plain(
    texts: list[str], spatial: Any, temporal: Any, lam: float, tokens: Callable[[str], list[str]] | None
) -> float:
    """IDS by scikit-learn and numpy, as the formula says."""
    options = {} if tokens is None else {"analyzer": tokens}
    try:
        tfidf = TfidfVectorizer(**options).fit_transform(texts)
        syntactic = (tfidf @ tfidf.T).toarray()
    except ValueError:  # scikit-learn refuses an empty vocabulary
        syntactic = np.zeros((len(texts), len(texts)))
    vectors = letters(texts)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    semantic = np.clip(vectors @ vectors.T, 0, 1)
    weights = np.maximum(spatial, spatial.T) + np.maximum(temporal, temporal.T)
    similar = lam * syntactic + (1 - lam) * semantic
    for i, one in enumerate(texts):
        for j, other in enumerate(texts):
            if one.strip().casefold() == other.strip().casefold():
                similar[i, j] = 1
    upper = np.triu_indices(len(texts), 1)
    return float((weights * (1 - similar))[upper].sum() / weights[upper].sum())


@st.composite
def teams(draw: Callable[..., Any]) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Two to five texts and two graphs with an edge at least; diagonals may be set."""
    n = draw(st.integers(2, 5))
    texts = draw(st.lists(TEXT.filter(str.strip), min_size=n, max_size=n))
    bits = st.lists(st.integers(0, 1), min_size=n * n, max_size=n * n)
    spatial, temporal = (np.array(draw(bits)).reshape(n, n) for _ in range(2))
    spatial[0, 1] = 1
    return texts, spatial, temporal


@given(teams(), st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.sampled_from(["sklearn", "words"]))
def test_it_equals_scikit_learn_and_numpy(team: Any, lam: float, tokenizer: str):
    texts, spatial, temporal = team
    score = information_diversity(texts, spatial, temporal, embed=letters, lam=lam, tokenizer=tokenizer)
    tokens = None if tokenizer == "sklearn" else words
    np.fill_diagonal(spatial, 0)
    assert score.value == pytest.approx(plain(texts, spatial, temporal, lam, tokens), abs=1e-9)


@given(teams())
def test_every_way_to_compute_it_gives_the_same(team: Any):
    """Dense and sparse, arrays and edge lists, S and its transpose."""
    texts, spatial, temporal = team
    for array in (spatial, temporal):
        np.fill_diagonal(array, 0)
    expected = information_diversity(texts, spatial, temporal, embed=letters).value
    n = len(texts)
    listed = [(n, list(zip(*array.nonzero(), strict=True))) for array in (spatial, temporal)]
    ways = [
        (spatial.T, temporal), (spatial.tolist(), temporal.tolist()), tuple(listed),
        (coo_array(spatial), coo_array(temporal)),
    ]  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        for attribute in ("", "FEW", "DENSE", "CHUNK"):
            if attribute:
                patch.setattr(similarity, attribute, 0)
            for way in ways:
                found = information_diversity(texts, *way, embed=letters).value
                assert found == pytest.approx(expected, abs=1e-12)


def test_many_nodes_and_few_edges_are_compared_pair_by_pair():
    n = 2000
    texts = [f"word{node % 7} word{node % 11} {node}" for node in range(n)]
    near = np.array([(node, node + 1) for node in range(n - 1)])
    vectors = np.random.default_rng(0).normal(size=(n, 8))
    score = information_diversity(texts, (n, near), (n, near[:50]), embed=lambda _: vectors)
    tfidf = TfidfVectorizer(analyzer=words).fit_transform(texts)
    weight = np.where(np.arange(n - 1) < 50, 2, 1)
    cosines = np.asarray(tfidf[:-1].multiply(tfidf[1:]).sum(axis=1)).ravel()
    assert score.parts["syntactic"] == pytest.approx(float(weight @ (1 - cosines) / weight.sum()), abs=1e-12)
    assert (score.parts["pairs"], score.parts["weight"]) == (n - 1, n + 49)


@given(teams(), st.data())
def test_renaming_nodes_changes_nothing(team: Any, data: st.DataObject):
    texts, spatial, temporal = team
    order = data.draw(st.permutations(range(len(texts))))
    moved = [texts[node] for node in order]
    renamed = information_diversity(
        moved, spatial[np.ix_(order, order)], temporal[np.ix_(order, order)], embed=letters
    )
    score = information_diversity(texts, spatial, temporal, embed=letters)
    assert renamed.value == pytest.approx(score.value, abs=1e-12)


def test_a_text_in_no_pair_is_not_embedded():
    embedded: list[str] = []

    def embed(texts: list[str]) -> NDArray[np.floating]:
        embedded.extend(texts)
        return np.array([[1.0, 0.0], [0.8, 0.6]])

    score = information_diversity(["cc", "bb", "aa"], (3, [(0, 2)]), (3, []), embed=embed)
    assert embedded == ["cc", "aa"]
    assert score.parts["semantic"] == pytest.approx(0.2)


# --- the curve -----------------------------------------------------------------------------------


@given(teams())
def test_the_curve_is_a_straight_line_through_every_score(team: Any):
    texts, spatial, temporal = team
    score = information_diversity(texts, spatial, temporal, embed=letters)
    lams = [0.0, 0.25, 0.5, 1.0]
    each = [information_diversity(texts, spatial, temporal, embed=letters, lam=lam).value for lam in lams]
    assert diversity_curve(score, lams).tolist() == each
    assert diversity_curve(score).shape == (11,)


def test_an_undefined_score_has_no_curve():
    with pytest.raises(UsageError, match="has no curve: fewer than two"):
        diversity_curve(information_diversity(["aa"], (1, []), (1, []), embed=letters))


# --- tokens --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The answer is 7.", "the answer is 7"),
        ("1,234 and 1,2345 and 12,345,678.90", "1234 and 1 2345 and 12345678.90"),
        ("3. Then .5, 2.5.1", "3 then 5 2.5.1"),
        ("x² = -4", "x 2 = - 4"),
        ("5 − 3, a − b, 3–5, so – no", "5 - 3 a - b 3 - 5 so no"),
        ("a == b != c --- ***", "a = b = c - *"),
        ("$5 €5 £5 ¥5 50%", "$ 5 € 5 £ 5 ¥ 5 50 %"),
        ("2×3÷√4 ≤ ≥ ≠ <>", "2 × 3 ÷ √ 4 ≤ ≥ ≠ < >"),
        ("ＡＢＣ １２", "abc 12"),
        ("STRASSE Straße", "strasse strasse"),
        ("don't_stop x2 2nd", "don t stop x 2 2 nd"),
        ("漢字ab々", "漢 字 ab 々"),
        ("コーヒー", "コ ー ヒ ー"),
        ("ﾊﾟ", "パ"),
        ("ที่นี่", "ที่ นี่"),
        ("ລາວ ខ្មែរ မြန်မာ", "ລ າ ວ ខ្ មែ រ မြ န် မာ"),
        ("हिन्दी", "हिन्दी"),
        ("한국어", "한국어"),
        ("٣ ३", "٣ ३"),
        ("!!! … “” ()", ""),
        ("ok \ud83d", "ok"),
    ],
)  # fmt: skip
def test_words(text: str, tokens: str):
    assert words(text) == tokens.split()


@given(st.text(st.characters(max_codepoint=127)))
def test_the_shortcut_for_ascii_gives_the_same_words(text: str):
    assert words(text) == words(f"{text} é")[:-1]


@given(st.text(max_size=40) | TEXT)
def test_sklearn_words_are_those_of_a_default_vectorizer(text: str):
    assert sklearn_words(text) == TfidfVectorizer().build_analyzer()(text)


# --- what a user can get wrong -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spatial", "options", "error", "message"),
    [
        (PAIR, {"lam": 1.1}, UsageError, "lam 1.1 is no number in"),
        (PAIR, {"lam": "half"}, UsageError, "lam 'half'"),
        (PAIR, {"lam": math.nan}, UsageError, "lam nan"),
        (PAIR, {"tokenizer": "word"}, UsageError, "did you mean 'words'"),
        ((3, [(0, 1)]), {}, GraphError, "about the 2 texts, found a graph of 3 nodes"),
        (np.zeros((3, 3)), {}, GraphError, "found a graph of 3 nodes"),
        (np.zeros(2), {}, GraphError, "found shape"),
        ([[0, 1], [0]], {}, GraphError, "rows of different lengths"),
    ],
)
def test_bad_arguments_are_named(
    spatial: Any, options: dict[str, Any], error: type[CounterpointError], message: str
):
    with pytest.raises(error, match=message):
        information_diversity(["aa", "bb"], spatial, NONE, embed=letters, **options)
