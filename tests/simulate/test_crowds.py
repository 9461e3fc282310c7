"""Simulated crowds: sizes, truths, worker quality and answers, in memory and in folders."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.errors import SettingsError
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd, numeric_crowd

LABELS = Categories(("G", "P", "R", "X"), ordered=True)


def constant(number):
    """A draw that is always the same number."""
    return lambda generator, count: np.full(count, number)


def test_numeric_answers_follow_the_recipe():
    """Answers are truth plus noise, rounded and clipped: shares within 5 standard errors (2e-5 in all).

    40,000 expected answers; every truth is 2, half the workers have sigma 1 and half sigma 5.
    """
    crowd = numeric_crowd(workers=2000, tasks=200, sparsity=0.9, truth=constant(2.0), source=seeded(11))
    edges = np.array([-np.inf, *np.arange(0.5, 9), np.inf])
    for sigma in (1.0, 5.0):
        mine = crowd.answers.value[crowd.quality[crowd.answers.worker] == sigma]
        expected = np.diff(norm.cdf((edges - 2.0) / sigma))
        error = np.sqrt(expected * (1 - expected) / len(mine))

        assert (np.abs(np.bincount(mine, minlength=10) / len(mine) - expected) <= 5 * error + 1e-12).all()


def test_half_of_the_workers_are_good():
    """Exactly half of the workers have each standard deviation, not the first half."""
    crowd = numeric_crowd(workers=1000, tasks=3, sparsity=0.5, source=seeded(1))

    assert {1.0: 500, 5.0: 500} == dict(zip(*np.unique(crowd.quality, return_counts=True), strict=True))
    assert 0 < (crowd.quality[:500] == 1.0).sum() < 500


def test_numeric_truth_is_clipped_normal():
    """Truths are standard normal clipped to the scale: their mean is 1 / sqrt(2 pi) within 5 standard errors (6e-7)."""
    crowd = numeric_crowd(workers=1, tasks=100_000, sparsity=0.99, source=seeded(2))

    assert crowd.truth.min() == 0.0
    assert abs(crowd.truth.mean() - 1 / math.sqrt(2 * math.pi)) < 5 * crowd.truth.std() / math.sqrt(100_000)
    assert crowd.gold[1] == crowd.truth[0]


def test_sparsity_is_the_share_of_null_cells():
    """Cells are answered with probability 1 - sparsity, within 5 standard errors (6e-7); all names are listed."""
    crowd = numeric_crowd(workers=3000, tasks=500, sparsity=0.98, source=seeded(3))

    assert abs(len(crowd.answers) - 30_000) < 5 * math.sqrt(1_500_000 * 0.02 * 0.98)
    assert (500, 3000) == (len(crowd.answers.tasks), len(crowd.answers.workers))
    assert np.array_equal(np.arange(1, 501), crowd.answers.tasks)


def test_without_sparsity_everybody_answers_everything():
    """Sparsity 0 fills every cell once."""
    crowd = categorical_crowd(workers=7, tasks=5, labels=LABELS, sparsity=0.0, source=seeded(4))

    assert [5] * 7 == crowd.answers.per_worker.tolist()


def test_able_workers_answer_the_truth_and_others_any_other_label():
    """Ability 1 repeats the truth; ability 0 spreads evenly over the other labels (5 standard errors, 6e-7 each)."""
    able = categorical_crowd(workers=3, tasks=50, labels=LABELS, sparsity=0.0, ability=constant(1.0), source=seeded(5))
    unable = categorical_crowd(
        workers=300, tasks=100, labels=LABELS, sparsity=0.0, ability=constant(0.0), source=seeded(6)
    )
    codes = [LABELS.names.index(name) for name in unable.truth]
    shift = (unable.answers.value - np.array(codes)[unable.answers.task]) % 4

    assert np.array_equal(able.truth[able.answers.task], np.array(LABELS.names)[able.answers.value])
    assert (np.abs(np.bincount(shift, minlength=4) / 30_000 - [0, 1 / 3, 1 / 3, 1 / 3]) < 5 * 0.0028).all()
    assert (np.bincount(shift, minlength=4)[0], unable.quality_name) == (0, "ability")


def test_the_prior_gives_the_truths():
    """Labels are truths as often as the prior says: within 5 standard errors (6e-7 each)."""
    prior = (0.7, 0.2, 0.1, 0.0)
    crowd = categorical_crowd(workers=1, tasks=50_000, labels=LABELS, sparsity=0.999, prior=prior, source=seeded(8))
    shares = np.array([(crowd.truth == name).mean() for name in LABELS.names])

    assert (np.abs(shares - prior) <= 5 * np.sqrt(np.array(prior) * (1 - np.array(prior)) / 50_000)).all()


def test_answers_per_worker_are_kept():
    """A number holds for every worker, a draw for each its own, clipped to the number of tasks; no task twice."""
    same = categorical_crowd(workers=40, tasks=30, labels=LABELS, answers_per_worker=6, source=seeded(9))
    own = categorical_crowd(
        workers=4,
        tasks=30,
        labels=LABELS,
        answers_per_worker=lambda generator, count: np.array([0.0, 2.4, 30.0, 999.0]),
        source=seeded(9),
    )

    assert [6] * 40 == same.answers.per_worker.tolist()
    assert [0, 2, 30, 30] == own.answers.per_worker.tolist()
    for crowd in (same, own):
        pairs = list(zip(crowd.answers.task.tolist(), crowd.answers.worker.tolist(), strict=True))

        assert len(pairs) == len(set(pairs))


def test_chosen_tasks_are_uniform():
    """With 3 of 30 tasks per worker, a tenth of 20,000 workers choose each task (5 standard errors, 2e-5 in all)."""
    crowd = categorical_crowd(workers=20_000, tasks=30, labels=LABELS, answers_per_worker=3, source=seeded(10))

    assert (np.abs(crowd.answers.per_task - 2000) < 5 * math.sqrt(20_000 * 0.09)).all()


def test_a_seed_makes_the_same_crowd_again():
    """One seed gives one crowd, another seed another."""
    crowds = [numeric_crowd(workers=50, tasks=40, sparsity=0.5, source=seeded(seed)) for seed in (1, 1, 2)]

    assert np.array_equal(crowds[0].answers.value, crowds[1].answers.value)
    assert not np.array_equal(crowds[0].truth, crowds[2].truth)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"workers": 0}, "at least one worker"),
        ({"tasks": 0}, "at least one worker"),
        ({"sparsity": 1.0}, "sparsity must be in"),
        ({"sparsity": math.nan}, "sparsity must be in"),
        ({"sigmas": ()}, "standard deviations"),
        ({"sigmas": (1.0, -1.0)}, "standard deviations"),
    ],
)
def test_impossible_numeric_crowds_are_refused(change, rule):
    """Sizes, sparsity and deviations out of range are refused by name."""
    with pytest.raises(SettingsError, match=rule):
        numeric_crowd(**{"workers": 2, "tasks": 2, "sparsity": 0.5, "scale": Scale(0, 9), "source": seeded(1)} | change)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({}, "either sparsity or answers_per_worker"),
        ({"sparsity": 0.5, "answers_per_worker": 1}, "either sparsity or answers_per_worker"),
        ({"sparsity": 0.5, "prior": (0.5, 0.5)}, "4 probabilities"),
        ({"sparsity": 0.5, "prior": (0.5, 0.5, 0.5, -0.5)}, "4 probabilities"),
        ({"sparsity": 0.5, "prior": (0.5, 0.5, 0.5, 0.5)}, "4 probabilities"),
        ({"sparsity": -0.1}, "sparsity must be in"),
    ],
)
def test_impossible_categorical_crowds_are_refused(change, rule):
    """A wrong prior, sparsity, or not exactly one rule of participation is refused by name."""
    with pytest.raises(SettingsError, match=rule):
        categorical_crowd(**{"workers": 2, "tasks": 2, "labels": LABELS, "source": seeded(1)} | change)
