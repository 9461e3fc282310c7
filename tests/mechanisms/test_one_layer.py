"""Li et al.'s one-layer mechanism is randomized response with another parameter."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import OneLayer, RandomizedResponse

YES_NO = Categories(("no", "yes"))


@given(st.integers(2, 9), st.floats(1e-6, 20), st.sampled_from(["protected", "public"]))
def test_it_is_randomized_response(size, epsilon, participation):
    """At the same epsilon the integer table is that of randomized response, under its own name."""
    settings = {"alphabet": Scale(1, size), "epsilon": epsilon, "participation": participation}
    one_layer, response = OneLayer(**settings).channel(), RandomizedResponse(**settings).channel()

    assert (response.rows, response.outputs) == (one_layer.rows, one_layer.outputs)
    assert ("one-layer", "randomized-response") == (one_layer.mechanism, response.mechanism)


@pytest.mark.parametrize(("flip", "size"), [(0.4, 2), (0.1, 2), (0.7, 5)])
def test_epsilon_is_theorem_6_2(flip, size):
    """epsilon = ln((1 - p_f)(s - 1) / p_f), and the exact figure agrees to 1e-12."""
    mechanism = OneLayer.from_flip_probability(alphabet=Scale(1, size), flip_probability=flip, participation="public")
    expected = math.log((1 - flip) * (size - 1) / flip)

    assert flip == pytest.approx(mechanism.flip_probability, abs=1e-15)
    assert expected == pytest.approx(mechanism.epsilon, abs=1e-14)
    assert expected == pytest.approx(mechanism.guarantee.epsilon, abs=1e-12)


@pytest.mark.parametrize("flip", [0.0, -0.1, 2 / 3, 0.9, 1.0, math.nan])
def test_flip_probability_must_favour_the_answer(flip):
    """Flips of 0 (no privacy) and of (s - 1) / s or more (no information, or lies) are refused."""
    with pytest.raises(SettingsError, match="flip_probability must be in"):
        OneLayer.from_flip_probability(alphabet=YES_NO, flip_probability=flip)


def test_flip_probability_of_too_much_epsilon_is_refused():
    """A flip probability so small that epsilon exceeds 20 is refused like that epsilon."""
    with pytest.raises(SettingsError, match="epsilon must be in"):
        OneLayer.from_flip_probability(alphabet=YES_NO, flip_probability=1e-12)
