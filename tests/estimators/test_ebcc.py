"""EBCC: a step of variational Bayes as loops over reports, gold included, and workers who err together."""

import numpy as np
import pytest

from crowdveil import Categories, Reports
from crowdveil.errors import SettingsError
from crowdveil.estimators import Ebcc
from crowdveil.estimators.ebcc import EbccParameters
from tests.estimators.dense import LABELS, one_block, random_reports, share, summary_of

KINDS = 2


def test_a_step_equals_loops_over_reports() -> None:
    """Counts and posterior follow from the equations of Li et al., gold tasks with their label only,
    and tasks without reports take no part in the sums."""
    reports = random_reports(np.random.default_rng(3), LABELS, tasks=9, workers=5, share=0.6)
    rows = list(zip(reports.task.tolist(), reports.worker.tolist(), reports.value.tolist(), strict=True))
    gold, model = np.array([-1, 2, *[-1] * 7]), Ebcc(subtypes=KINDS)
    block, initial = one_block(reports, gold), model.initialize(summary_of(reports, None))
    first = model.e_step(block, initial)
    pairs = first.statistics.by_truth[0].reshape(3, KINDS)
    tables = np.ones((5, 3, KINDS, 3)) + 3 * np.eye(3)[:, None, :]
    tables += first.statistics.by_report.reshape(5, 3, KINDS, 3)
    expected = np.empty((9, 3, KINDS))
    expected[:] = share(1 + pairs.sum(axis=1))[:, None] * share(0.1 / KINDS + pairs)
    for j, i, y in rows:
        expected[j] *= share(tables[i])[:, :, y]
    expected[1, :2] = 0
    evidence = expected.sum(axis=(1, 2), keepdims=True)
    asked = sorted({row[0] for row in rows})

    parameters = model.m_step(first.statistics, initial)
    step = model.e_step(block, parameters)

    assert isinstance(parameters, EbccParameters)
    np.testing.assert_allclose(parameters.tables, tables.reshape(5, -1, 3), rtol=0, atol=1e-12)
    np.testing.assert_allclose(step.posterior, (expected / evidence).sum(axis=2), rtol=0, atol=1e-9)
    assert pytest.approx(np.log(evidence[asked]).sum(), abs=1e-8) == step.statistics.log_likelihood
    assert pytest.approx(float((expected / evidence)[asked, 1].sum()), abs=1e-8) == float(
        step.statistics.by_truth[0].reshape(3, KINDS)[1].sum()
    )


def test_order_of_workers_and_labels_does_not_matter() -> None:
    """Workers in reverse order and labels with exchanged codes have the same posterior, with exchanged columns."""
    reports = random_reports(np.random.default_rng(3), LABELS, tasks=30, workers=9, share=0.6)
    turned = Reports(
        reports.task, 8 - reports.worker, 2 - reports.value, reports.tasks, reports.workers[::-1], reports.alphabet
    )

    posterior = Ebcc(max_steps=30).fit(reports).posterior

    np.testing.assert_allclose(Ebcc(max_steps=30).fit(turned).posterior[:, ::-1], posterior, atol=1e-8)


def test_subtypes_explain_errors_that_workers_share() -> None:
    """Of 300 tasks with 9 workers (seed 0), every tenth misleads six of them: two of three such truths are found."""
    rng = np.random.default_rng(0)
    truth, task, worker = rng.integers(0, 3, 300), *np.divmod(np.arange(2700), 9)
    misled = (task % 10 == 0) & (worker < 6)
    answer = np.where(misled, (truth[task] + 1) % 3, truth[task])
    answer = np.where(rng.random(2700) < 0.1, rng.integers(0, 3, 2700), answer)
    names = np.array(LABELS.names)
    reports = Reports.from_arrays(task, worker, names[answer], alphabet=LABELS, tasks=range(300))
    gold = {int(at): names[truth[at]] for at in range(150)}

    found = Ebcc().fit(reports, gold=gold).truth[150::10] == names[truth[150::10]]

    assert 0.66 < found.mean()


def test_tables_that_do_not_fit_into_memory_are_refused() -> None:
    """A thousand workers and 200 labels would have 400 million Dirichlet parameters for each array of the fit."""
    answers = [*range(200)] * 5
    reports = Reports.from_arrays(answers, range(1000), answers, alphabet=Categories(tuple(map(str, range(200)))))

    with pytest.raises(SettingsError, match=r"at most 25,000,000, got '?1,000 x 200 x 10 x 200'?\. Use hierarchical"):
        Ebcc().fit(reports)


def test_the_start_is_the_vote_spread_over_subtypes() -> None:
    """Summed over subtypes, the first posterior is the share of votes; tasks with other reports have other subtypes."""
    reports = random_reports(np.random.default_rng(3), LABELS, tasks=9, workers=5, share=0.6)
    votes = np.zeros((9, 3))
    np.add.at(votes, (reports.task, reports.value), 1.0)
    votes[8] = 1

    posterior = Ebcc(max_steps=1).fit(reports).posterior

    np.testing.assert_allclose(posterior, votes / votes.sum(axis=1, keepdims=True), atol=1e-12)


@pytest.mark.slow
def test_more_starts_never_lower_the_bound() -> None:
    """The start with the highest lower bound is returned."""
    reports = random_reports(np.random.default_rng(4), LABELS, tasks=30, workers=8, share=0.6)

    assert Ebcc().fit(reports).log_likelihoods[-1] <= Ebcc(starts=3).fit(reports).log_likelihoods[-1]
