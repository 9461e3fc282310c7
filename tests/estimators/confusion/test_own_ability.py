"""The two-level prior of a worker's rows: its learned strength behind channels, and many labels."""

import numpy as np
import pytest

from crowdveil import Categories, HierarchicalDawidSkene, OneCoin, RandomizedResponse, Reports
from crowdveil.channels.channel import Channel
from crowdveil.em.deconvolution import frequencies_of_reports
from crowdveil.em.estimator import validated_input
from crowdveil.estimators.confusion.own_ability import MAX_STRENGTH, excess_variance, learn_own_prior

LABELS = Categories(("a", "b", "c", "d"))
ERRORS = (1 - np.eye(4)) / 3


def crowd_of_rows(concentration: float, channel: Channel, workers: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Return reports [worker, truth, report], 30 a row, and abilities, around which rows vary as Dirichlet."""
    rng = np.random.default_rng(0)
    ability = rng.uniform(0.3, 0.9, workers)
    means = ability[:, None, None] * np.eye(4) + (1 - ability)[:, None, None] * ERRORS
    rows = rng.standard_gamma(concentration * means)
    rows /= rows.sum(axis=2, keepdims=True)
    return rng.multinomial(30, rows @ channel.probabilities).astype(float), ability


@pytest.mark.parametrize("epsilon", [3.0, np.inf])
def test_the_variance_of_rows_is_estimated_through_the_channel(epsilon: float) -> None:
    """Rows of concentration 4 have r = 1 / 5, without noise and behind it; 1,200 rows tell it to 0.03."""
    identity = Channel.identity(LABELS, "public")
    channel = (
        identity
        if epsilon == np.inf
        else RandomizedResponse(alphabet=LABELS, epsilon=epsilon, participation="public").channel()
    )
    reports, ability = crowd_of_rows(4.0, channel)
    one = Reports(np.array([0]), np.array([0]), np.array([0]), np.array([0]), np.array([0]), LABELS)
    pool = frequencies_of_reports(validated_input(HierarchicalDawidSkene(), one, channel).summary)

    found = excess_variance(reports, ability, np.ones(len(ability)), ERRORS, pool)

    assert pytest.approx(0.2, abs=0.03) == found


def test_rows_of_one_ability_share_it_and_other_rows_do_not() -> None:
    """Rows that all have the own ability get the largest strength; rows of concentration 4 no pseudo-answers."""
    one = Reports(np.arange(4), np.zeros(4, dtype=int), np.arange(4), np.arange(4), np.array([0]), LABELS)
    pool = frequencies_of_reports(validated_input(HierarchicalDawidSkene(), one, None).summary)
    identity = Channel.identity(LABELS, "public")
    alike, differing = (
        learn_own_prior(reports, reports, np.ones(len(reports)), pool)
        for reports in (crowd_of_rows(concentration, identity)[0] for concentration in (1e6, 4.0))
    )

    assert (MAX_STRENGTH, 0.0) == (alike.strength, differing.answers)
    assert pytest.approx(0.9) == alike.weight


def symmetric_crowd(labels: int, seed: int) -> tuple[Reports, np.ndarray, np.ndarray]:
    """Return 5 answers of 12 workers on each of 120 tasks, truths, and abilities, of which two are chance."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, labels, 120)
    ability = np.linspace(0.5, 0.95, 12)
    ability[:2] = 1 / labels
    worker = np.argsort(rng.random((120, 12)), axis=1)[:, :5].ravel()
    task = np.repeat(np.arange(120), 5)
    wrong = (truth[task] + rng.integers(1, labels, len(task))) % labels
    answer = np.where(rng.random(len(task)) < ability[worker], truth[task], wrong)
    alphabet = Categories(tuple(f"label {label:02d}" for label in range(labels)))
    return Reports(task, worker, answer, np.arange(120), np.arange(12), alphabet), truth, ability


@pytest.mark.parametrize("labels", [8, 15, 30])
def test_many_labels_need_one_ability_per_worker(labels: int) -> None:
    """With 8 to 30 labels the default errs at most 0.01 more than one-coin, and abilities are within 0.05 on average,
    those of spammers on average too; no estimate lies on an edge of its interval."""
    errors, distances, spammers = [], [], []
    for seed in range(10):
        reports, truth, ability = symmetric_crowd(labels, seed)
        fits = [method.fit(reports) for method in (HierarchicalDawidSkene(), OneCoin())]
        errors.append([(fit.posterior.argmax(axis=1) != truth).mean() for fit in fits])
        workers = fits[0].workers
        distances.append(np.abs(workers.quality - ability).mean())
        spammers.append((workers.quality - ability)[:2].mean())
        for found in (fit.workers for fit in fits):
            assert (found.ability_low < found.quality).all()
            assert (found.quality < found.ability_high).all()
    own, coin = np.mean(errors, axis=0)

    assert own <= coin + 0.01
    assert max(np.mean(distances), abs(np.mean(spammers))) <= 0.05
