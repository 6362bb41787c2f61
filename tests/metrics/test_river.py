"""Claim dynamics on arrays: every worked number, and what must hold of any claims."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.errors import UsageError
from counterpoint.metrics import river


def symmetric(n, **pairs):
    """An (n, n) match: m(i, i) = 1, and m of each pair ``ij=value``."""
    match = np.eye(n)
    for name, value in pairs.items():
        i, j = map(int, name[1:])
        match[i, j] = match[j, i] = value
    return match


# --- unity -----------------------------------------------------------------------------------------

A_A_B = symmetric(3, p02=0.9)
ONE_CLAIM = np.full((3, 3), 0.95)


@pytest.mark.parametrize(
    ("owners", "stances", "match", "how", "expected"),
    [
        ("AAB", [1, 1, 0.6], A_A_B, {}, 0.45),
        ("AAB", [1, 1, 0.6], A_A_B, {"kind": "soft"}, 0.405),
        ("ABC", [1, 0.5, 0], ONE_CLAIM, {}, 1 / 3),
        ("AB", [1, 1], symmetric(2, p01=0.75), {}, 1),
        ("AB", [1, 1], symmetric(2, p01=0.7499), {}, 0),
        ("AB", [1, 0], symmetric(2, p01=1), {}, 0),
        ("A", [1], symmetric(1), {"agents": ["A", "B"]}, 0),
        ("AB", [1, 1], symmetric(2, p01=1), {"agents": ["A", "B", "C"]}, (1 + 0 + 1 + 0) / 4),
        # Both claims of A are B's one claim: coverage counts it twice, an assignment once.
        ("AAB", [1, 1, 1], symmetric(3, p02=1, p12=1), {}, 1),
        ("AAB", [1, 1, 1], symmetric(3, p02=1, p12=1), {"kind": "one_to_one"}, (1 / 2 + 1) / 2),
        # The product is maximized, not m first: y1 matches better, y2 agrees better.
        ("ABB", [1, 0, 1], symmetric(3, p01=1, p02=0.8), {}, (1 + 1 / 2) / 2),
    ],
)
def test_unity_is_the_worked_number(owners, stances, match, how, expected):
    assert river.informational_unity(list(owners), stances, match, **how).value == pytest.approx(expected)


def test_unity_of_votes_counts_a_pass_as_no_claim():
    # (agree, agree, agree) and (agree, disagree, pass) on three statements
    match = np.eye(5)
    match[0, 3] = match[3, 0] = match[1, 4] = match[4, 1] = 1
    score = river.informational_unity(list("AAABB"), [1, 1, 1, 1, 0], match)
    assert score.value == pytest.approx(5 / 12)


def test_unity_of_one_shared_statement_is_mean_pairwise_agreement():
    stances = [0.1, 0.8, 0.4, 1.0]
    score = river.informational_unity([0, 1, 2, 3], stances, np.ones((4, 4)))
    pairs = [1 - abs(a - b) for a, b in itertools.combinations(stances, 2)]
    assert score.value == pytest.approx(sum(pairs) / len(pairs))


@pytest.mark.parametrize(
    ("owners", "agents", "reason"),
    [("", None, "fewer than two"), ("", "AB", "nobody"), ("AA", None, "fewer")],
)
def test_unity_without_a_pair_is_undefined(owners, agents, reason):
    n = len(owners)
    score = river.informational_unity(list(owners), [1] * n, np.eye(n), agents=agents and list(agents))
    assert score.value is None
    assert reason in score.reason


@pytest.mark.parametrize(
    ("stances", "match", "how", "message"),
    [
        ([1, 1], np.eye(3), {}, "match has shape"),
        ([1, 1], [[1, 2], [2, 1]], {}, "outside"),
        ([1, 1], [[1, np.nan], [np.nan, 1]], {}, "NaN"),
        ([1, 1], [[1, 0.9], [0.1, 1]], {}, "not symmetric"),
        ([1], np.eye(2), {}, "stances has shape"),
        ([1, 2], np.eye(2), {}, "stances holds"),
        ([1, 1], np.eye(2), {"kind": "sof"}, "did you mean 'soft'"),
        ([1, 1], np.eye(2), {"agents": ["A"]}, "'B' owns a claim"),
    ],
)
def test_what_unity_cannot_use_is_named(stances, match, how, message):
    with pytest.raises(UsageError, match=message):
        river.informational_unity(["A", "B"], stances, match, **how)


# --- clusters --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("owners", "match", "clusters"),
    [
        ("abca", symmetric(4, p01=0.9, p02=0.9, p12=0.9, p31=0.8), [[0, 1, 2], [3]]),
        ("abc", symmetric(3, p01=0.8, p12=0.9, p02=0.3), [[0], [1, 2]]),
        ("aa", symmetric(2, p01=1), [[0], [1]]),
        ("", np.zeros((0, 0)), []),
        ("ab", symmetric(2, p01=0.75), [[0, 1]]),
        # c corresponds to {a0, b} and to {a1}: the larger cluster takes it.
        ("abac", symmetric(4, p01=0.8, p03=0.8, p13=0.8, p23=1), [[0, 1, 3], [2]]),
        # c corresponds to a0 and a1 equally often: the higher m takes it.
        ("aac", symmetric(3, p02=0.8, p12=0.9), [[0], [1, 2]]),
        # ... and equally well: the older.
        ("aac", symmetric(3, p02=0.8, p12=0.8), [[0, 2], [1]]),
    ],
)
def test_claims_are_clustered_as_worked(owners, match, clusters):
    assert river.cluster_claims(list(owners), match) == clusters


def naive_clusters(owners, match, threshold=0.75):
    """Appendix B.2, word by word."""
    n = len(owners)
    related = [[match[x][y] >= threshold and owners[x] != owners[y] for y in range(n)] for x in range(n)]

    def priority(x):
        scores = [match[x][y] for y in range(n) if related[x][y]]
        mean = round(sum(scores) / len(scores), 12) if scores else 0
        return (-len(scores), -mean, owners[x], x)

    clusters = []
    for x in sorted(range(n), key=priority):
        eligible = []
        for age, cluster in enumerate(clusters):
            if owners[x] not in {owners[y] for y in cluster} and all(related[x][y] for y in cluster):
                scores = [match[x][y] for y in cluster]
                eligible.append((len(cluster), min(scores), round(sum(scores) / len(scores), 12), -age))
        if eligible:
            clusters[-max(eligible)[3]].append(x)
        else:
            clusters.append([x])
    return sorted(sorted(cluster) for cluster in clusters)


@st.composite
def claims(draw, levels=(0.0, 0.3, 0.75, 0.8, 0.9, 1.0)):
    """Owners, stances and a match of up to nine claims, with ties."""
    owners = draw(st.lists(st.sampled_from("ABCD"), max_size=9))
    n = len(owners)
    match = np.eye(n)
    for i, j in itertools.combinations(range(n), 2):
        match[i, j] = match[j, i] = draw(st.sampled_from(levels))
    stances = draw(st.lists(st.sampled_from([0, 0.25, 0.5, 1]), min_size=n, max_size=n))
    return owners, stances, match


@given(claims())
def test_clusters_are_those_of_the_definition(drawn):
    owners, _, match = drawn
    assert river.cluster_claims(owners, match) == naive_clusters(owners, match)


@given(claims())
def test_a_kind_has_at_least_as_many_clusters_as_its_busiest_agent_claims(drawn):
    owners, _, match = drawn
    clusters = river.cluster_claims(owners, match)
    assert sorted(itertools.chain.from_iterable(clusters)) == list(range(len(owners)))
    busiest = max((owners.count(owner) for owner in owners), default=0)
    assert busiest <= len(clusters) <= len(owners)


@given(claims(), st.permutations(list("ABCD")))
def test_unity_and_clusters_do_not_depend_on_the_order_of_agents(drawn, agents):
    owners, stances, match = drawn
    order = sorted(range(len(owners)), key=lambda index: (agents.index(owners[index]), index))
    moved = [owners[index] for index in order]
    rearranged = match[np.ix_(order, order)]
    everyone = sorted(agents)
    before = river.informational_unity(owners, stances, match, agents=everyone)
    after = river.informational_unity(moved, [stances[index] for index in order], rearranged, agents=agents)
    assert before.value == after.value
    assert len(river.cluster_claims(owners, match)) == len(river.cluster_claims(moved, rearranged))


@given(claims())
def test_unity_is_one_iff_all_agents_match_every_claim_with_the_same_stance(drawn):
    owners, stances, match = drawn
    score = river.informational_unity(owners, stances, match)
    if score.value is None:
        return
    matched = all(
        any(
            owners[y] == agent and match[x, y] >= 0.75 and stances[x] == stances[y]
            for y in range(len(owners))
        )
        for x in range(len(owners))
        for agent in set(owners) - {owners[x]}
    )
    assert (score.value == 1) == matched
    assert 0 <= score.value <= 1


def test_claims_are_counted_by_kind_and_repetitions_can_be_dropped():
    match = symmetric(4, p01=0.9, p23=0.9, p02=0.9)
    score = river.unique_claims(list("ABAB"), match, [False, False, True, True])
    assert (score.value, score.parts) == (2, {"source": 1, "extension": 1, "claims": 4})
    assert river.deduplicate_claims(list("ABAB"), match) == [0, 1, 3]
    assert river.unique_claims([], np.zeros((0, 0)), []).value == 0
    with pytest.raises(UsageError, match="is_extension has shape"):
        river.unique_claims(["A"], [[1]], [])


@pytest.mark.parametrize(("source", "extension", "rate"), [(2, 3, 0.6), (0, 4, 1), (3, 0, 0), (0, 0, None)])
def test_extension_rate_is_the_share_of_extension_clusters(source, extension, rate):
    assert river.extension_rate(source, extension).value == rate


def test_a_cluster_never_mixes_topics():
    rng = np.random.default_rng(0)
    n = 1000  # perf/clusters.py times 5,000
    topic = rng.integers(0, n // 10, n)
    match = np.where(topic[:, None] == topic[None, :], 0.9, 0.1)
    clusters = river.cluster_claims(rng.integers(0, 20, n).tolist(), match)
    assert {len(set(topic[cluster])) for cluster in clusters} == {1}


# --- retention -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("owners", "preservation", "mean", "union"),
    [
        ("AAB", [[0.9, 0, 0], [0, 0.8, 0.75], [0, 0.74, 0]], 0.5, 2 / 3),
        ("B", [[1], [0]], 0.25, 0.5),
        ("", np.zeros((2, 0)), 0, 0),
    ],
)
def test_source_retention_is_the_worked_number(owners, preservation, mean, union):
    score = river.source_retention(list(owners), preservation, ["A", "B"])
    assert (score.value, score.parts["union"]) == pytest.approx((mean, union))
    assert score.parts["agent_mean"] == score.value


def test_source_retention_without_facts_is_undefined():
    assert river.source_retention(["A"], np.zeros((0, 1)), ["A"]).value is None
    assert river.source_retention([], [], []).value is None


@given(claims(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_agents_together_retain_at_least_what_one_does(drawn, facts, random):
    owners = drawn[0]
    preservation = [[random.choice([0, 0.7, 0.75, 1]) for _ in owners] for _ in range(facts)]
    score = river.source_retention(owners, np.reshape(preservation, (facts, len(owners))), list("ABCD"))
    assert score.parts["union"] >= score.value


# --- survival --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "micro", "agent_mean"),
    [
        ([[True, False], [], [True]], 2 / 3, 0.75),
        ([[False], [True, True, True]], 0.75, 0.5),
    ],
)
def test_survival_rate_is_the_worked_number(groups, micro, agent_mean):
    score = river.survival_rate(groups)
    assert (score.value, score.parts["agent_mean"]) == pytest.approx((micro, agent_mean))


def test_survival_of_nothing_is_undefined():
    assert river.survival_rate([[], []]).value is None
    assert river.survival_length([], [], 3).value is None
    assert river.weakened_rate([]).value is None


def test_survival_length_is_the_worked_number():
    # x, y at 1 with x' at 2; z at 2 with z' at 3; w at 3
    score = river.survival_length([1, 1, 2, 2, 3, 3], [(0, 1), (0, 2), (3, 4)], 3)
    parts = {
        "mean": 5 / 3,
        "normalized": 5 / 9,
        "opportunity": 8 / 9,
        "lineages": 3,
        "P1": 1,
        "P2": 2 / 3,
        "P3": 0,
    }
    assert score.value == pytest.approx(5 / 9)
    assert dict(score.parts) == pytest.approx(parts)


MERGED = ([1, 1, 2, 2], [(0, 2), (1, 3), (2, 3)], 2)  # q keeps x, r keeps y, and q corresponds to r


def test_merging_makes_one_lineage_and_inheriting_two():
    assert river.survival_length(*MERGED).parts["mean"] == 2
    greedy = river.survival_length(*MERGED, method="greedy")
    assert greedy.parts["mean"] == 1.5
    assert river.lineages(*MERGED, method="greedy") == [[0, 2, 3], [1]]


@pytest.mark.parametrize(
    ("instances", "links", "scores", "expected"),
    [
        ([1, 1, 2], [(0, 2), (1, 2)], [0.8, 0.9], [[0], [1, 2]]),  # the higher score
        ([1, 1, 2, 2], [(0, 2), (1, 2), (1, 3), (2, 3)], None, [[0], [1, 2, 3]]),  # more links
        ([2, 1, 2, 3], [(0, 3), (2, 3), (1, 2)], None, [[0], [1, 2, 3]]),  # the older lineage
        ([1, 2, 2], [(0, 1), (0, 2)], None, [[0, 1, 2]]),  # two heirs of one
    ],
)
def test_a_group_inherits_one_lineage(instances, links, scores, expected):
    assert river.lineages(instances, links, 3, method="greedy", scores=scores) == expected


@st.composite
def linked(draw):
    positions = draw(st.integers(1, 5))
    instances = draw(st.lists(st.integers(1, positions), min_size=1, max_size=10))
    pairs = [
        (first, second)
        for first, second in itertools.combinations(range(len(instances)), 2)
        if abs(instances[first] - instances[second]) <= 1
    ]
    return instances, draw(st.lists(st.sampled_from(pairs), max_size=12)) if pairs else [], positions


@given(linked())
def test_the_tail_sums_to_the_mean_length(drawn):
    score = river.survival_length(*drawn)
    tail = [score.parts[f"P{d}"] for d in range(1, drawn[2] + 1)]
    assert sum(tail) == pytest.approx(score.parts["mean"])
    assert tail == sorted(tail, reverse=True)
    assert score.parts["opportunity"] >= score.value - 1e-12


@given(linked())
def test_inheriting_never_makes_fewer_lineages_than_merging(drawn):
    merged = river.survival_length(*drawn)
    greedy = river.survival_length(*drawn, method="greedy")
    assert greedy.parts["lineages"] >= merged.parts["lineages"]


@pytest.mark.parametrize(
    ("arguments", "how", "message"),
    [
        (([0], [], 2), {}, "positions are 1 to 2, found 0"),
        (([1], [(0, 1)], 2), {}, "names an instance"),
        (([1], [(-1, 0)], 2), {}, "names an instance"),
        (([3, 2, 1], [(0, 1), (0, 2)], 3), {}, r"link \(0, 2\) goes from position 1 to 3"),
        (([1], [], 2), {"method": "greedi"}, "did you mean 'greedy'"),
        (([1, 1], [(0, 1)], 2), {"scores": []}, "0 scores for 1 links"),
    ],
)
def test_what_survival_length_cannot_use_is_named(arguments, how, message):
    with pytest.raises(UsageError, match=message):
        river.survival_length(*arguments, **how)


def test_a_claim_is_preserved_weakened_or_lost():
    ends = river.fates([[0.9, 0.1], [0.2, 0.1], [0.1, 0.74]], [[0, 0], [0, 0.8], [0, 0]])
    assert ends == ["preserved", "weakened", "lost"]
    assert river.fates(np.zeros((2, 0)), np.zeros((2, 0))) == ["lost", "lost"]
    assert river.weakened_rate(ends).value == pytest.approx(1 / 3)


# --- folding ---------------------------------------------------------------------------------------


def test_the_case_is_the_unit_of_a_mean():
    score = river.fold_cases([[0.2, None, 0.4], [0.5], [None]])
    assert score.value == pytest.approx(0.4)
    assert score.parts == {"cases": 2, "undefined": 1}
    assert river.fold_cases([[None]]).value is None


def test_a_fall_is_a_share_of_the_first_stage():
    assert river.falls([20, 17.3, 15.1, 13.0]) == pytest.approx([0.135, 0.11, 0.105])


def case(**series):
    return {name: list(values) for name, values in series.items()}


def test_correlations_are_computed_by_condition_and_then_averaged():
    conditions = {
        "up": [case(U=[1, 2, 3], CC=[1, 2, 3])],
        "down": [case(U=[1, 2, 3], CC=[3, 2, 1])],
        "flat": [case(U=[1, 2, 3], CC=[2, 2, 2])],
    }
    score = river.correlate(conditions, "U", "CC")
    assert score.value == pytest.approx(0)
    assert score.parts == {"conditions": 2, "undefined": 1, "points": 6}


def test_a_correlation_by_position_is_that_of_means_over_cases():
    cases = [case(U=[1, 9, 3], CC=[1, 2, 3]), case(U=[1, None, 3], CC=[1, 16, 3])]
    assert river.correlate({"one": cases}, "U", "CC").value == pytest.approx(1)


def test_survival_rate_correlates_with_what_stands_where_the_transition_ends():
    cases = [case(U=[9, 1, 2, 5, 3], SR=[1, 2, 3])]
    targets = [1, 2, 4]
    assert river.correlate({"one": cases}, "SR", "U", targets=targets).value == pytest.approx(1)
    assert river.correlate({"one": cases}, "U", "SR", targets=targets).value == pytest.approx(1)
    with pytest.raises(UsageError, match="need targets"):
        river.correlate({"one": cases}, "SR", "U")


def test_survival_length_correlates_over_cases():
    cases = [case(U=[0, 0.2], SL=[0.1]), case(U=[0.5], SL=[0.5]), case(U=[None], SL=[0.9])]
    score = river.correlate({"one": cases}, "U", "SL")
    assert score.value == pytest.approx(1)
    assert score.parts["points"] == 2


@settings(max_examples=20)
@given(st.permutations(range(5)))
def test_correlation_is_that_of_numpy(order):
    x, y = np.arange(5.0), np.array(order, dtype=float)
    score = river.correlate({"one": [case(U=x, CC=y)]}, "U", "CC")
    assert score.value == pytest.approx(np.corrcoef(x, y)[0, 1])
