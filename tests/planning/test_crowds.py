"""What the planner takes a crowd to be."""

import numpy as np
import pytest

from crowdveil.errors import SettingsError
from crowdveil.planning import beta_abilities
from crowdveil.planning.population import NumberCrowd
from crowdveil.randomness import seeded
from tests.planning.campaigns import SCALE, of_labels, of_numbers


@pytest.mark.parametrize("mean", [0.55, 0.75, 0.9])
def test_abilities_have_the_mean_and_the_spread_of_their_beta_distribution(mean: float) -> None:
    """The mean is the one asked for, the deviation that of Beta with concentration 10 less what seven points lose."""
    found = np.array(beta_abilities(mean))

    assert found.mean() == pytest.approx(mean, abs=1e-3)
    assert 0.85 < found.std() / np.sqrt(mean * (1 - mean) / 11) < 1


def test_an_ability_is_a_probability() -> None:
    """Certainty is one kind; numbers outside 0 to 1 are refused."""
    assert beta_abilities(1) == (1.0,)
    with pytest.raises(SettingsError, match=r"must be in \[0, 1\], got 1.2"):
        beta_abilities(1.2)


@pytest.mark.parametrize("workers", [1, 5, 7, 100])
def test_numbers_of_each_kind_are_those_of_a_made_up_crowd(workers: int) -> None:
    """Members by kind equal what `numeric_crowd` deals out, with repeated standard deviations too."""
    crowd = of_numbers(sigmas=(2.0, 0.5, 2.0)).crowd
    made = crowd.make(workers=workers, tasks=2, rate=0.5, source=seeded(1))

    expected = [(made.quality == kind).sum() for kind in crowd.kinds]

    assert expected == crowd.members(seeded(2).generator, workers).tolist()


def test_the_grid_of_truths_carries_the_prior() -> None:
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


def test_the_constant_is_the_best_of_all() -> None:
    """No constant has a smaller error over the prior than the one that is stated."""
    labels, numbers = of_labels(prior=(0.2, 0.7, 0.1)).crowd, of_numbers().crowd
    assert isinstance(numbers, NumberCrowd)
    inside = np.clip(numbers.points, 0, 4)
    errors = [float(numbers.weights @ np.abs(inside - constant)) for constant in np.linspace(0, 4, 401)]

    assert labels.constant_error == pytest.approx(0.3)
    assert numbers.constant_error == pytest.approx(min(errors), abs=0.01)


def test_losses_are_mistakes_and_distances() -> None:
    """A certain posterior on the truth costs nothing, one elsewhere costs one mistake or the distance."""
    labels, numbers = of_labels().crowd, of_numbers().crowd
    assert isinstance(numbers, NumberCrowd)
    certain = np.where(np.eye(3, dtype=bool), 0.0, -1e3)
    at = np.where(np.eye(len(numbers.points), dtype=bool), 0.0, -1e3)
    truths = np.clip(numbers.points, 0, 4)

    assert labels.losses(certain, np.array([0, 1, 1])).tolist() == [0, 0, 1]
    assert labels.risks(certain, np.array([0, 1, 1])).tolist() == [0, 0, 0]
    np.testing.assert_allclose(numbers.losses(at, np.full(len(at), 1.0)), np.abs(truths - 1.0), atol=1e-9)


def test_ordered_labels_are_mistaken_for_near_ones() -> None:
    """Every ability is on the diagonal, and each label farther off is half as likely: by loops, and in 40,000 answers.

    Shares within 5 standard errors (false alarm below 1e-4).
    """
    crowd = of_labels(labels=4, ordered=True, abilities=(0.7,), tasks=200, workers=200, rate=1.0).crowd
    expected = np.zeros((4, 4))
    for truth in range(4):
        mistakes = {answer: 0.5 ** abs(answer - truth) for answer in range(4) if answer != truth}
        for answer, weight in mistakes.items():
            expected[truth, answer] = 0.3 * weight / sum(mistakes.values())
        expected[truth, truth] = 0.7
    made = crowd.make(workers=200, tasks=200, rate=1.0, source=seeded(4))
    counts = np.zeros((4, 4))
    np.add.at(counts, (crowd.truths_of(made)[made.answers.task], made.answers.value), 1)
    sizes = counts.sum(axis=1, keepdims=True)

    np.testing.assert_allclose(crowd.tables()[0], expected, atol=1e-12)
    assert (np.abs(counts / sizes - expected) < 5 * np.sqrt(expected / sizes)).all()


def test_two_labels_have_no_order_to_speak_of() -> None:
    """Ordered or not, two labels are answered alike."""
    plain, ordered = (of_labels(labels=2, ordered=order).crowd for order in (False, True))

    np.testing.assert_array_equal(plain.tables(), ordered.tables())
