"""Private worker weights: bounded sums, equal weights under much noise, and larger weights for reliable workers."""

import itertools

import numpy as np
import pytest

from crowdveil.errors import SettingsError
from crowdveil.randomness import seeded
from crowdveil.synthesis.claims import Claims, ScaledClaims
from crowdveil.synthesis.discrete_noise import floor_epsilon
from crowdveil.synthesis.private.histogram import Histogram
from crowdveil.synthesis.private.worker_weights import DISTANCE_STEPS, distances, learn_weights


def crowd() -> Claims:
    """60 tasks with 100 claims each; every second of 100 workers scatters four times as far."""
    generator = np.random.default_rng(1)
    truth = generator.uniform(8, 32, 60)
    task, worker = np.repeat(np.arange(60), 100), np.tile(np.arange(100), 60)
    value = truth[task] + generator.normal(size=6000) * np.where(worker % 2 == 0, 1.0, 4.0)
    return Claims.from_arrays(task, worker, value, bounds=(0, 40), outside="clip")


def test_a_claim_moves_its_workers_sum_by_no_more_than_the_steps() -> None:
    """For every claim and location the distance is within 0 .. DISTANCE_STEPS, and both ends occur."""
    places = np.linspace(0, 1, 9)
    found = [
        int(
            distances(ScaledClaims(1, np.zeros(1, dtype=int), np.array([a]), np.ones(1, dtype=int)), np.array([b]), s)[
                0
            ]
        )
        for a, b, s in itertools.product(places, places, (np.array([0.01]), np.array([0.5]), np.ones(1)))
    ]

    assert (min(found), max(found)) == (0, DISTANCE_STEPS)


def test_reliable_workers_have_larger_weights() -> None:
    """With a budget of 5 the reliable half weighs more than the other by half or more, on average."""
    claims = crowd()
    weight = learn_weights(claims, np.ones(len(claims), dtype=bool), floor_epsilon(5.0), seeded(1))

    assert ((weight > 0) & (weight <= 1)).all()
    assert weight[::2].mean() > 1.5 * weight[1::2].mean()


def test_weights_are_nearly_equal_under_much_noise() -> None:
    """With a budget of 0.01 weights are nearly equal."""
    claims = crowd()
    weight = learn_weights(claims, np.ones(len(claims), dtype=bool), floor_epsilon(0.01), seeded(1))

    assert weight.min() > 0.5 * weight.max()


def test_learning_costs_a_part_of_the_same_epsilon() -> None:
    """The guarantee is the same with and without learning."""
    for learn in (False, True):
        made = Histogram(epsilon=4.0, records=2, learn_weights=learn).release(crowd(), seeded(1))
        assert [guarantee.epsilon for guarantee in made.guarantees()] == [4.0, 240.0]


def test_learning_needs_public_participation_and_no_given_weights() -> None:
    """Protected participation and given weights exclude learning."""
    with pytest.raises(SettingsError, match="public participation"):
        Histogram(epsilon=1.0, learn_weights=True, participation="protected", expected_claims=5)
    with pytest.raises(SettingsError, match="either given or learned"):
        Histogram(epsilon=1.0, learn_weights=True, weights={"a": 0.5})


def test_a_crowd_without_claims_has_weights() -> None:
    """Without any claim every worker has a weight."""
    none = Claims.from_arrays([], [], [], bounds=(0, 1), workers=["a", "b"])

    assert learn_weights(none, np.zeros(0, dtype=bool), floor_epsilon(1.0), seeded(1)).shape == (2,)
