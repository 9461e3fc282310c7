"""Majority vote against counting."""

import numpy as np
import pytest

from crowdveil import MajorityVote
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
