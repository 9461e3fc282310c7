"""Laplace perturbation: the folded geometric table for devices, real-valued noise for simulations."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crowdveil.channels.alphabet import NULL, Categories, Scale
from crowdveil.mechanisms import Laplace
from crowdveil.mechanisms.laplace import clipped_geometric_channel
from tests.mechanisms.test_mechanism_contract import below_exp

DIGITS = Scale(0, 9)


@pytest.mark.parametrize(("scale", "epsilon"), [(DIGITS, 1.0), (Scale(-1, 1, 0.25), 4.0), (Scale(0, 100, 100), 0.3)])
def test_table_is_geometric_noise_clipped_into_the_domain(scale, epsilon):
    """P(report) is two-sided geometric with decay exp(-epsilon step / range), clipped to the scale."""
    decay = math.exp(-epsilon * scale.step / scale.range)
    expected = np.zeros((scale.size, scale.size))
    for x in range(scale.size):
        for z in range(-2000, 2001):
            y = min(max(x + z, 0), scale.size - 1)
            expected[x, y] += (1 - decay) / (1 + decay) * decay ** abs(z)

    np.testing.assert_allclose(clipped_geometric_channel(scale.size, epsilon), expected, rtol=0, atol=1e-12)
    table = Laplace(alphabet=scale, epsilon=epsilon, participation="public").channel().probabilities
    np.testing.assert_allclose(table, expected, rtol=0, atol=1e-12)


@pytest.mark.slow
@given(
    st.integers(2, 40), st.floats(1e-6, 20), st.sampled_from(["protected", "public"]), st.sampled_from(["uniform", 0.0])
)
@example(2, 20.0, "protected", "uniform")
@example(40, 1e-6, "public", 0.0)
def test_ratio_never_exceeds_the_claim(size, epsilon, participation, null_value):
    """The worst column ratio of the integer table is at most e^epsilon, exactly, for any domain and any NULL value."""
    mechanism = Laplace(
        alphabet=Scale(0, size - 1), epsilon=epsilon, participation=participation, null_value=null_value
    )

    assert mechanism.channel().ratio <= below_exp(epsilon)


def test_rounding_costs_little():
    """The integer table gives away three units of 2^-48 of its rarest entry at most, 1e-8 at epsilon 14."""
    for epsilon in (0.1, 1.0, 5.0, 14.0):
        lost = epsilon - Laplace(alphabet=DIGITS, epsilon=epsilon).guarantee.epsilon

        assert 0 <= lost < 3 * (1 + math.exp(epsilon)) / 2**48 + 3e-14


def test_null_becomes_a_public_constant():
    """With a constant, NULL's row is that value's row."""
    channel = Laplace(alphabet=Scale(0, 1, 0.1), epsilon=1.0, null_value=0.3).channel()

    assert channel.rows[3] == channel.rows[-1]
    assert NULL == channel.inputs[-1]


def test_null_becomes_a_uniform_draw():
    """With "uniform", NULL's row is the average of all rows, to a unit of the integer table."""
    channel = Laplace(alphabet=DIGITS, epsilon=1.0).channel()
    for column in zip(*channel.rows, strict=True):
        assert abs(column[-1] - Fraction(sum(column[:-1]), 10)) <= 2


def test_ordered_labels_are_numbers_by_position():
    """Ordered labels get the table of the scale 0, 1, ..., and a NULL value is a position."""
    ratings = Categories(("G", "P", "R", "X"), ordered=True)
    by_label = Laplace(alphabet=ratings, epsilon=1.0, null_value=1.0).channel()
    by_number = Laplace(alphabet=Scale(0, 3), epsilon=1.0, null_value=1.0).channel()

    assert by_number.rows == by_label.rows
    assert ratings.names == by_label.outputs
