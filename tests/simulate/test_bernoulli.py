"""Coin flips by geometric gaps: which numbers come up, and how often."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from crowdveil.randomness import seeded
from crowdveil.simulate import bernoulli

FALSE_ALARM = 1e-4


@settings(max_examples=50)
@given(st.integers(0, 10**13), st.integers(0, 2**32), st.floats(0.01, 200))
def test_hits_ascend_within_bounds(cells, seed, wanted):
    """Numbers that come up are distinct, ascending and below the number of coins, however many coins there are."""
    found = (
        bernoulli.bernoulli_indices(seeded(seed).generator, cells, min(1.0, wanted / max(cells, 1)))
        if cells
        else np.arange(0)
    )

    assert (np.diff(found) > 0).all()
    assert not len(found) or (found[0] >= 0 and found[-1] < cells)


@pytest.mark.parametrize("cells", [1, 7])
def test_a_certain_coin_always_comes_up(cells):
    """With probability 1 every number comes up."""
    assert list(range(cells)) == bernoulli.bernoulli_indices(seeded(1).generator, cells, 1.0).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("probability", [0.05, 0.3, 0.7])
def test_patterns_are_those_of_independent_coins(probability, monkeypatch):
    """All 16 patterns of 4 coins, in two chunks, have their product probabilities: 20,000 draws, false alarm 1e-4.

    Steps are drawn few at a time, so that walks go on from where they stopped.
    """
    monkeypatch.setattr(bernoulli, "MAX_CELLS_PER_CHUNK", 3)
    monkeypatch.setattr(bernoulli, "SPARE_GAPS", 1)
    generator = seeded(7).generator
    counts = np.zeros(16)
    for _ in range(20_000):
        counts[(1 << bernoulli.bernoulli_indices(generator, 4, probability)).sum()] += 1
    ones = np.array([pattern.bit_count() for pattern in range(16)])
    expected = 20_000 * probability**ones * (1 - probability) ** (4 - ones)
    rare = expected < 5
    pooled = [np.append(side[~rare], side[rare].sum()) for side in (counts, expected)]
    keep = pooled[1] > 0

    assert chisquare(pooled[0][keep], pooled[1][keep]).pvalue > FALSE_ALARM


def test_chunks_cover_all_coins_once(monkeypatch):
    """Chunks end where the next begins, the last at the number of coins, and hold their own numbers only."""
    monkeypatch.setattr(bernoulli, "SUCCESSES_PER_CHUNK", 10)
    first, ends = 0, []
    for stop, found in bernoulli.bernoulli_chunks(seeded(3).generator, 1000, 0.1):
        assert ((found >= first) & (found < stop)).all()
        ends.append(first := stop)

    assert [101 * k for k in range(1, 10)] + [1000] == ends


def test_a_few_hits_in_very_many_coins_are_found_at_once():
    """Ten expected hits among 10**13 coins: their number is Poisson, within 10 +- 15 (false alarm 2e-5)."""
    found = bernoulli.bernoulli_indices(seeded(5).generator, 10**13, 1e-12)

    assert 0 <= len(found) <= 25
