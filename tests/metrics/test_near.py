"""The search for near duplicates: as by comparing all pairs, and in bounded work beyond the window."""

from __future__ import annotations

import numpy as np
import pytest

from counterpoint.errors import ModelError, UsageError
from counterpoint.metrics import near
from counterpoint.metrics.near import clusters, codes, nearest_earlier, unit_rows


def rows(n: int, seed: int) -> np.ndarray:
    return unit_rows(np.random.default_rng(seed).normal(0.5, 1, (n, 3)), n)


def by_all_pairs(vectors, threshold, groups, texts, window):
    index, near_pairs, pairs = [], 0, 0
    for later in range(len(vectors)):
        best = equal = -1
        for earlier in range(later):
            if groups is not None and groups[later] == groups[earlier]:
                continue
            if texts is not None and texts[later] == texts[earlier]:
                equal = earlier
            if later - earlier <= window:
                pairs += 1
                if vectors[later] @ vectors[earlier] > threshold:
                    near_pairs += 1
                    best = earlier
        index.append(best if best >= 0 else equal)
    return index, near_pairs, pairs


@pytest.mark.parametrize("window", [1, 5, 8, 100])
@pytest.mark.parametrize("seed", range(8))
def test_blocks_find_what_comparing_all_pairs_finds(monkeypatch, seed, window):
    monkeypatch.setattr(near, "_BLOCK", 7)
    random, n = np.random.default_rng(seed), 40
    vectors, groups, texts = rows(n, seed), random.integers(0, 3, n), random.integers(0, n, n)
    for some in (None, groups):
        for same in (None, texts):
            found = nearest_earlier(vectors, 0.85, groups=some, texts=same, window=window)
            expected = by_all_pairs(vectors, 0.85, some, same, window)
            assert (found.index.tolist(), found.near, found.pairs) == expected
            assert found.windowed == (n > window + 1)


def test_a_cosine_at_the_threshold_is_decided_in_double_precision():
    at = np.array([[1.0, 0.0], [0.6, 0.8]])
    assert nearest_earlier(at, 0.6).near == 0
    assert nearest_earlier(at, np.nextafter(0.6, 0)).near == 1


def test_equal_texts_are_found_at_any_distance_and_near_ones_within_the_window():
    vectors = np.eye(4)[[0, 1, 2, 3, 0]]
    texts = np.array([0, 1, 2, 3, 0])
    assert nearest_earlier(vectors, 0.9, window=2).index[4] == -1
    assert nearest_earlier(vectors, 0.9, window=2, texts=texts).index[4] == 0
    assert nearest_earlier(vectors, 0.9, window=4).index[4] == 0


def test_clusters_chain_near_rows_across_blocks(monkeypatch):
    monkeypatch.setattr(near, "_BLOCK", 2)
    steps = np.deg2rad([0, 90, 20, 40, 60])  # 0-20-40-60 by twenties, 60-90 too far
    vectors = np.column_stack([np.cos(steps), np.sin(steps)])
    assert clusters(vectors, 0.9).tolist() == [0, 1, 0, 0, 0]
    assert clusters(np.empty((0, 2)), 0.9).tolist() == []


def test_a_row_without_direction_is_near_nothing():
    vectors = unit_rows([[0, 0], [np.nan, 1], [3, 4], [3, 4]], 4)
    assert vectors[2].tolist() == [0.6, 0.8]
    assert nearest_earlier(vectors, 0.5).index.tolist() == [-1, -1, -1, 2]
    with pytest.raises(ModelError, match=r"\(3, d\)"):
        unit_rows([1.0, 2.0], 3)


def test_a_window_of_nothing_is_refused():
    with pytest.raises(UsageError, match="window"):
        nearest_earlier(np.eye(2), 0.5, window=0)


def test_codes_number_labels_by_first_appearance():
    assert codes(["b", None, "b", "a"]).tolist() == [0, 1, 0, 2]
