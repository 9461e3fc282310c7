"""Majority vote against counting."""

import numpy as np
import pytest

from crowdveil import MajorityVote, RandomizedResponse, Scale
from crowdveil.answers.reports import Reports
from crowdveil.em.deconvolution import frequencies_of_reports
from crowdveil.estimators.majority_vote import accuracy_of_agreeing_votes
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_reports
from tests.estimators.dense import LABELS, random_reports, summary_of

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


def draw_reports(epsilon: float, first: float, seed: int = 4) -> tuple[Reports, RandomizedResponse]:
    """Return reports on 400 tasks, eight each, of answers that are "a" with probability `first`, else "b" or "c"."""
    rng = np.random.default_rng(seed)
    task, worker = (cell.astype(np.int32) for cell in np.nonzero(rng.random((400, 20)) < 0.4))
    value = np.where(rng.random(len(task)) < first, 0, rng.integers(1, 3, len(task))).astype(np.int16)
    answers = Reports(task, worker, value, np.arange(400), np.arange(20), LABELS)
    mechanism = RandomizedResponse(alphabet=LABELS, epsilon=epsilon, participation="public")
    return perturb_reports(answers, mechanism, seeded(seed)), mechanism


def test_behind_much_noise_a_majority_of_answers_decides() -> None:
    """Behind epsilon 0.25, where nine of ten answers are "a", nearly all tasks are."""
    reports, mechanism = draw_reports(0.25, 0.9)

    found = MajorityVote().fit(reports, channel=mechanism.channel()).posterior.argmax(axis=1)

    assert (found == 0).mean() > 0.95


@pytest.mark.parametrize("epsilon", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("first", [0.34, 0.45])
def test_behind_much_noise_no_minority_of_answers_decides(epsilon: float, first: float) -> None:
    """Where no label has most of the answers, the best labels are those of the votes, however much noise there is."""
    reports, mechanism = draw_reports(epsilon, first)

    told = MajorityVote().fit(reports, channel=mechanism.channel()).posterior
    votes = MajorityVote().fit(reports).posterior

    best = [posterior >= posterior.max(axis=1, keepdims=True) - 1e-9 for posterior in (told, votes)]
    np.testing.assert_array_equal(*best)


@pytest.mark.parametrize(("epsilon", "labels"), [(0.5, 2), (1.0, 3), (2.0, 5)])
def test_accuracy_of_agreeing_votes_is_that_of_draws(epsilon: float, labels: int) -> None:
    """With ten equal answers to a task the approximation is that of 20,000 drawn tasks, within .03."""
    alphabet = Scale(1, labels)
    channel = RandomizedResponse(alphabet=alphabet, epsilon=epsilon, participation="public").channel()
    rng = np.random.default_rng(5)
    truth = np.repeat(rng.integers(0, labels, 20_000), 10)
    sent = (channel.probabilities.cumsum(axis=1)[truth] < rng.random(len(truth))[:, None]).sum(axis=1)
    cells = (np.repeat(np.arange(20_000), 10), np.tile(np.arange(10), 20_000), sent)
    task, worker, value = (cell.astype(np.int32) for cell in cells)
    reports = Reports(task, worker, value, np.arange(20_000), np.arange(10), alphabet)
    summary = summary_of(reports, channel)

    votes = MajorityVote().fit(reports).posterior
    best = votes >= votes.max(axis=1, keepdims=True) - 1e-9
    right = (best[np.arange(20_000), truth[::10]] / best.sum(axis=1)).mean()

    assert pytest.approx(right, abs=0.03) == accuracy_of_agreeing_votes(summary, frequencies_of_reports(summary))
