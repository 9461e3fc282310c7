"""Assumed crowds, and coarser scales."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.channels.alphabet import Scale
from crowdveil.errors import SettingsError
from crowdveil.planning import beta_abilities, coarsen_prior, coarsen_scale
from crowdveil.planning.population import NumberCrowd
from crowdveil.randomness import seeded
from tests.planning.campaigns import SCALE, of_labels, of_numbers


@pytest.mark.parametrize("mean", [0.55, 0.75, 0.9])
def test_abilities_have_the_mean_and_the_spread_of_their_beta_distribution(mean: float) -> None:
    """The mean is the given one; the deviation is that of Beta(concentration 10), less the loss by seven classes."""
    found = np.array(beta_abilities(mean))

    assert found.mean() == pytest.approx(mean, abs=1e-3)
    assert 0.85 < found.std() / np.sqrt(mean * (1 - mean) / 11) < 1


def test_an_ability_is_a_probability() -> None:
    """Ability 1 is a single class; numbers outside 0 to 1 are refused."""
    assert beta_abilities(1) == (1.0,)
    with pytest.raises(SettingsError, match=r"must be in \[0, 1\], got 1.2"):
        beta_abilities(1.2)


@pytest.mark.parametrize("workers", [1, 5, 7, 100])
def test_class_sizes_are_those_of_a_simulated_crowd(workers: int) -> None:
    """Class sizes equal those of `numeric_crowd`, also with repeated standard deviations."""
    crowd = of_numbers(sigmas=(2.0, 0.5, 2.0)).crowd
    made = crowd.simulate(workers=workers, tasks=2, rate=0.5, source=seeded(1))

    expected = [(made.quality == kind).sum() for kind in crowd.qualities]

    assert expected == crowd.draw_class_sizes(seeded(2).generator, workers).tolist()


def test_the_grid_of_truths_has_the_prior() -> None:
    """Weights of the points that round to a label sum to its probability, and drawn truths follow them.

    40,000 truths: shares within 5 standard errors (false alarm below 1e-5).
    """
    crowd = of_numbers().crowd
    assert isinstance(crowd, NumberCrowd)
    by_label = np.bincount(SCALE.encode(crowd.points), weights=crowd.weights)
    drawn = np.bincount(SCALE.encode(crowd.draw_truths(seeded(3).generator, 40_000))) / 40_000

    np.testing.assert_allclose(by_label, crowd.prior, atol=1e-12)
    assert (np.abs(drawn - crowd.prior) < 5 * np.sqrt(crowd.prior / 40_000)).all()
    assert crowd.points[0] > SCALE.low - 1.5 * SCALE.step
    assert crowd.points[-1] < SCALE.high + 1.5 * SCALE.step


def test_the_constant_is_optimal() -> None:
    """No constant has a smaller expected error than `constant_error`."""
    labels, numbers = of_labels(prior=(0.2, 0.7, 0.1)).crowd, of_numbers().crowd
    assert isinstance(numbers, NumberCrowd)
    inside = np.clip(numbers.points, 0, 4)
    errors = [float(numbers.weights @ np.abs(inside - constant)) for constant in np.linspace(0, 4, 401)]

    assert labels.constant_error == pytest.approx(0.3)
    assert numbers.constant_error == pytest.approx(min(errors), abs=0.01)


def test_losses_are_mistakes_and_distances() -> None:
    """A certain posterior on the truth has no loss; elsewhere the loss is one mistake, or the distance."""
    labels, numbers = of_labels().crowd, of_numbers().crowd
    assert isinstance(numbers, NumberCrowd)
    certain = np.where(np.eye(3, dtype=bool), 0.0, -1e3)
    at = np.where(np.eye(len(numbers.points), dtype=bool), 0.0, -1e3)
    truths = np.clip(numbers.points, 0, 4)

    assert labels.losses(certain, np.array([0, 1, 1])).tolist() == [0, 0, 1]
    assert labels.risks(certain, np.array([0, 1, 1])).tolist() == [0, 0, 0]
    np.testing.assert_allclose(numbers.losses(at, np.full(len(at), 1.0)), np.abs(truths - 1.0), atol=1e-9)


def test_mistakes_of_ordered_labels_are_near() -> None:
    """Abilities are on the diagonal, and each label farther off is half as likely: by loops, and in 40,000 answers.

    Shares within 5 standard errors (false alarm below 1e-4).
    """
    crowd = of_labels(labels=4, ordered=True, abilities=(0.7,), tasks=200, workers=200, rate=1.0).crowd
    expected = np.zeros((4, 4))
    for truth in range(4):
        mistakes = {answer: 0.5 ** abs(answer - truth) for answer in range(4) if answer != truth}
        for answer, weight in mistakes.items():
            expected[truth, answer] = 0.3 * weight / sum(mistakes.values())
        expected[truth, truth] = 0.7
    made = crowd.simulate(workers=200, tasks=200, rate=1.0, source=seeded(4))
    counts = np.zeros((4, 4))
    np.add.at(counts, (crowd.truths_of(made)[made.answers.task], made.answers.value), 1)
    sizes = counts.sum(axis=1, keepdims=True)

    np.testing.assert_allclose(crowd.answer_probabilities()[0], expected, atol=1e-12)
    assert (np.abs(counts / sizes - expected) < 5 * np.sqrt(expected / sizes)).all()


def test_order_of_two_labels_has_no_effect() -> None:
    """Two labels have the same answers, ordered or not."""
    plain, ordered = (of_labels(labels=2, ordered=order).crowd for order in (False, True))

    np.testing.assert_array_equal(plain.answer_probabilities(), ordered.answer_probabilities())


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
    """Ends stay, steps are multiples if possible, and precise workers get a finer scale."""
    assert coarsen_scale(scale, sigma) == planned_on


@settings(max_examples=60, derandomize=True)
@given(steps=st.integers(21, 200), low=st.integers(-9, 9), step=st.sampled_from([0.1, 0.25, 1.0, 3.0]))
def test_every_long_scale_has_a_coarser_one(steps: int, low: int, step: float) -> None:
    """Scales of any length have a coarser scale with the same ends."""
    scale = Scale(low, round(low + steps * step, 6), step)
    found = coarsen_scale(scale, scale.range / 10)
    assert 11 <= found.size <= 21
    assert (found.low, found.high) == (scale.low, scale.high)


def test_a_coarser_prior_sums_what_rounds_to_a_label() -> None:
    """A coarser label gets the probability of all numbers that round to it, computed by loops over a fine grid."""
    scale, coarse = Scale(0, 40), Scale(0, 40, 2)
    prior = np.random.default_rng(5).dirichlet(np.ones(41))
    expected = np.zeros(21)
    for label, share in enumerate(prior):
        for place in range(100):
            number = scale.values[label] + (place + 0.5) / 100 - 0.5
            expected[int(np.argmin(np.abs(coarse.values - number)))] += share / 100
    np.testing.assert_allclose(coarsen_prior(prior, scale, coarse), expected, atol=1e-12)
