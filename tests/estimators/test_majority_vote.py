"""Majority vote against counting."""

import numpy as np
import pytest

from crowdveil import MajorityVote, RandomizedResponse
from crowdveil.data.reports import Reports
from tests.estimators.dense import LABELS, random_reports

REPORTS = random_reports(np.random.default_rng(0), LABELS, tasks=9, workers=6, share=0.6)


def test_posterior_and_abilities_are_counts() -> None:
    """Posterior is the share of votes (Li et al., equation 1), ability the mean posterior of what a worker said."""
    cells = list(zip(REPORTS.task, REPORTS.worker, REPORTS.value, strict=True))
    shares = np.full((9, 3), 1 / 3)
    for i in range(9):
        own = [value for task, _, value in cells if task == i]
        if own:
            shares[i] = [own.count(k) / len(own) for k in range(3)]
    abilities = []
    for k in range(6):
        said = [shares[task, value] for task, worker, value in cells if worker == k]
        abilities.append(np.mean(said) if said else np.nan)

    estimate = MajorityVote().fit(REPORTS)

    np.testing.assert_allclose(estimate.posterior, shares, atol=1e-12)
    np.testing.assert_allclose(estimate.workers.quality, abilities, atol=1e-12)
    assert "ability" == estimate.workers.quality_name


@pytest.mark.parametrize("prior", [None, {"a": 0.5, "b": 0.3, "c": 0.2}])
def test_a_prior_speaks_only_where_nobody_votes(prior: dict[str, float] | None) -> None:
    """Without a channel a public prior is the posterior of empty tasks, and changes no other."""
    estimate = MajorityVote().fit(REPORTS, prior=prior)

    np.testing.assert_allclose(estimate.posterior[:-1], MajorityVote().fit(REPORTS).posterior[:-1], atol=1e-12)
    np.testing.assert_allclose(estimate.posterior[-1], list(prior.values()) if prior else [1 / 3] * 3)


def test_gold_shows_in_abilities() -> None:
    """Known truths replace votes: ability is then the share of reports that equal them."""
    full_table = dict.fromkeys(range(9), LABELS.names[0])

    estimate = MajorityVote().fit(REPORTS, gold=full_table)
    said_first = [np.mean(REPORTS.value[REPORTS.worker == k] == 0) for k in range(5)]

    np.testing.assert_allclose(estimate.workers.quality[:5], said_first)
    assert 9 == estimate.gold_used


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
def test_the_best_labels_behind_a_channel_are_those_of_the_votes(epsilon: float) -> None:
    """Where one label is frequent, another one with more votes is still the best, and tied ones have equal shares."""
    rng = np.random.default_rng(3)
    task, worker = (cell.astype(np.int32) for cell in np.nonzero(rng.random((400, 20)) < 0.4))
    value = np.where(rng.random(len(task)) < 0.7, 0, rng.integers(0, 3, len(task))).astype(np.int16)
    reports = Reports(task, worker, value, np.arange(400), np.arange(20), LABELS)
    channel = RandomizedResponse(alphabet=LABELS, epsilon=epsilon, participation="public").channel()

    told = MajorityVote().fit(reports, channel=channel).posterior
    votes = MajorityVote().fit(reports).posterior

    best = [posterior >= posterior.max(axis=1, keepdims=True) - 1e-9 for posterior in (told, votes)]
    np.testing.assert_array_equal(*best)
    assert (best[0].sum(axis=1) > 1).any()


def test_without_information_the_frequencies_decide() -> None:
    """Behind epsilon 0.05 nearly all tasks have the label that most reports name."""
    rng = np.random.default_rng(4)
    task, worker = (cell.astype(np.int32) for cell in np.nonzero(rng.random((400, 20)) < 0.4))
    value = np.where(rng.random(len(task)) < 0.05, 0, rng.integers(0, 3, len(task))).astype(np.int16)
    reports = Reports(task, worker, value, np.arange(400), np.arange(20), LABELS)
    channel = RandomizedResponse(alphabet=LABELS, epsilon=0.05).channel()

    found = MajorityVote().fit(reports, channel=channel).posterior.argmax(axis=1)

    assert (found == np.bincount(value).argmax()).mean() > 0.95
