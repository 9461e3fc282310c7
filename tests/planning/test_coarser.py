"""Behaviour of `crowdveil.planning.population`."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.channels.alphabet import Scale
from crowdveil.planning import coarser, merged


@pytest.mark.parametrize(
    ("scale", "sigma", "planned_on"),
    [
        (Scale(0, 9), 1.0, Scale(0, 9)),
        (Scale(0, 20), 2.0, Scale(0, 20)),
        (Scale(0, 100), 10.0, Scale(0, 100, 5)),
        (Scale(0, 41), 4.0, Scale(0, 41, 2.05)),
        (Scale(0, 30), 3.0, Scale(0, 30, 2)),
        (Scale(0, 100), 1.0, Scale(0, 100, 2)),
        (Scale(0, 100), 0.1, Scale(0, 100)),
        (Scale(-1, 1, 0.01), 0.2, Scale(-1, 1, 0.1)),
    ],
)
def test_long_scales_are_planned_on_at_most_21_labels(scale: Scale, sigma: float, planned_on: Scale) -> None:
    """Ends stay, steps are whole ones where they can be, and workers who err by little get a finer scale."""
    assert coarser(scale, sigma) == planned_on


@settings(max_examples=60, derandomize=True)
@given(steps=st.integers(21, 200), low=st.integers(-9, 9), step=st.sampled_from([0.1, 0.25, 1.0, 3.0]))
def test_every_scale_has_a_coarser_one(steps: int, low: int, step: float) -> None:
    """No length of a scale is refused."""
    scale = Scale(low, round(low + steps * step, 6), step)
    found = coarser(scale, scale.range / 10)
    assert 11 <= found.size <= 21
    assert (found.low, found.high) == (scale.low, scale.high)


def test_a_prior_is_merged_by_what_rounds_to_a_label() -> None:
    """Each coarser label gets the share of every label's numbers that round to it, as loops over a fine grid say."""
    scale, onto = Scale(0, 40), Scale(0, 40, 2)
    prior = np.random.default_rng(5).dirichlet(np.ones(41))
    expected = np.zeros(21)
    for label, share in enumerate(prior):
        for place in range(100):
            number = scale.values[label] + (place + 0.5) / 100 - 0.5
            expected[int(np.argmin(np.abs(onto.values - number)))] += share / 100
    np.testing.assert_allclose(merged(prior, scale, onto), expected, atol=1e-12)
