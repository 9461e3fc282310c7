"""Cells behind noise that are out of reach: the oracle against loops, and complete results."""

from typing import Any

import numpy as np
import pytest
from experiments.methods import against_constants
from experiments.methods.against_constants import VOTE_MARGIN
from experiments.methods.out_of_reach import RESULTS, Oracle, Row
from experiments.rows import read_rows

from crowdveil import RandomizedResponse
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd, perturb_reports
from tests.estimators.dense import LABELS


@pytest.mark.parametrize("participation", ["public", "protected"])
def test_the_likelihood_is_the_product_over_reports(participation: Any) -> None:
    """Per task and truth it is the product of each worker's P(report | truth), NULL reports included if protected."""
    crowd = categorical_crowd(workers=5, tasks=12, labels=LABELS, sparsity=0.4, source=seeded(0))
    mechanism = RandomizedResponse(alphabet=LABELS, epsilon=1.0, participation=participation)
    oracle = Oracle.of(crowd.answers, {str(task): truth for task, truth in crowd.gold.items()}, mechanism)
    reports = perturb_reports(crowd.answers, mechanism, seeded(1))
    sent = {
        (task, worker): value for task, worker, value in zip(reports.task, reports.worker, reports.value, strict=True)
    }

    likelihood = np.ones((12, LABELS.size))
    for task in range(12):
        for worker in range(5):
            if (task, worker) in sent:
                likelihood[task] *= oracle.reported[worker, :, sent[task, worker]]
            elif participation == "protected":
                likelihood[task] *= oracle.silent[worker]

    np.testing.assert_allclose(np.exp(oracle.log_likelihood(reports)), likelihood, rtol=1e-9)
    if participation == "protected":
        np.testing.assert_allclose(oracle.reported.sum(axis=2) + oracle.silent, 1.0)


def test_every_low_cell_has_a_row() -> None:
    """All cells below the best constant or the vote are measured again with other seeds."""
    low = [
        (row.set, row.participation, row.epsilon)
        for row in read_rows(against_constants.RESULTS, against_constants.Row)
        if row.below("default") or row.below("default", "vote", VOTE_MARGIN)
    ]

    assert low == [(row.set, row.participation, row.epsilon) for row in read_rows(RESULTS, Row)]
