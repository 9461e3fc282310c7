"""k-ary randomized response: Sun et al.'s equation 8 with NULL, Wang & Xu's equation 9 without."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crowdveil.channels.alphabet import NULL, Categories
from crowdveil.channels.channel import DENOMINATOR
from crowdveil.mechanisms import RandomizedResponse
from tests.mechanisms.test_mechanism_contract import below_exp

PARTICIPATIONS = st.sampled_from(["protected", "public"])


def labels(size):
    """An alphabet of `size` labels."""
    return Categories(tuple(f"label {k}" for k in range(size)))


@pytest.mark.parametrize("size", [2, 4, 10])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_table_is_equation_8_over_labels_and_null(size, epsilon):
    """A symbol is kept with e^eps / (|Gamma| + e^eps) and becomes any other, NULL too, with 1 / (|Gamma| + e^eps)."""
    channel = RandomizedResponse(alphabet=labels(size), epsilon=epsilon).channel()
    expected = np.empty((size + 1, size + 1))
    for x in range(size + 1):
        for y in range(size + 1):
            expected[x, y] = (math.exp(epsilon) if y == x else 1) / (size + math.exp(epsilon))

    np.testing.assert_allclose(channel.probabilities, expected, rtol=0, atol=1e-13)
    assert channel.inputs == channel.outputs
    assert NULL == channel.outputs[-1]


def test_public_binary_table_is_wang_and_xu_equation_9():
    """Two labels, participation public: keep with e^eps / (e^eps + 1), flip with 1 / (e^eps + 1)."""
    channel = RandomizedResponse(alphabet=labels(2), epsilon=0.7, participation="public").channel()
    keep = math.exp(0.7) / (math.exp(0.7) + 1)

    np.testing.assert_allclose(channel.probabilities, [[keep, 1 - keep], [1 - keep, keep]], rtol=0, atol=1e-13)
    assert channel.null_output is None


@pytest.mark.slow
@given(st.integers(2, 12), st.floats(1e-6, 20), PARTICIPATIONS)
@example(2, 20.0, "protected")
@example(12, 1e-6, "public")
@example(1024, 1e-6, "protected")
def test_ratio_never_exceeds_the_claim_and_wastes_little(size, epsilon, participation):
    """The integer ratio stays below e^epsilon, and falls short by less than one part in 2^48 of a symbol's share."""
    channel = RandomizedResponse(alphabet=labels(size), epsilon=epsilon, participation=participation).channel()
    symbols = len(channel.inputs)

    assert channel.ratio <= below_exp(epsilon)
    assert epsilon - channel.epsilon <= (symbols + math.exp(epsilon)) ** 2 / DENOMINATOR + 1e-15


def test_equal_mechanisms_share_one_table():
    """The table of equal settings is built once: a device perturbs many answers with it."""
    first, second = (RandomizedResponse(alphabet=labels(3), epsilon=1.0) for _ in range(2))

    assert first.channel() is second.channel()
