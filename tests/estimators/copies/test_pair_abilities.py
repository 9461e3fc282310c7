"""Abilities of pairs: agreement and trimmed means as loops, and skills that are found again, those of liars, too."""

import numpy as np
import pytest

from crowdveil.answers.reports import Reports
from crowdveil.estimators.copies.pair_abilities import (
    AnswerNumbers,
    WorkerPairs,
    abilities_from_pair_agreements,
    chance_corrected_agreements,
    trimmed_means,
)
from tests.estimators.dense import LABELS, one_block, random_reports


def test_agreement_equals_loops_over_pairs() -> None:
    """C_ij is (K a - 1) / (K - 1) with the share a of equal answers on common tasks, in both directions."""
    reports = random_reports(np.random.default_rng(8), LABELS, tasks=9, workers=5, share=0.6)
    answer = {(j, i): y for j, i, y in zip(reports.task, reports.worker, reports.value, strict=True)}
    expected = []
    for i, k in np.ndindex(5, 5):
        both = [j for j in range(9) if (j, i) in answer and (j, k) in answer]
        if i != k and both:
            same = np.mean([answer[j, i] == answer[j, k] for j in both])
            expected.append((i, k, (3 * same - 1) / 2))

    entries = chance_corrected_agreements(WorkerPairs.of_blocks([one_block(reports).block], 5), 5, 3)

    np.testing.assert_allclose(np.stack(entries, axis=1), expected, atol=1e-12)


@pytest.mark.parametrize("trimmed", [0, 1, 2])
def test_trimmed_means_equal_loops(trimmed: int) -> None:
    """Up to F ratios above a worker's own value and up to F below are left out, the most extreme ones."""
    rng = np.random.default_rng(9)
    row, ratio, own = np.sort(rng.integers(0, 6, 40)), rng.random(40), rng.random(7)
    expected = own.copy()
    for i in range(7):
        values = sorted(ratio[row == i])
        low, high = (min(trimmed, sum(v < own[i] for v in values)), min(trimmed, sum(v > own[i] for v in values)))
        left = values[low : len(values) - high]
        if left:
            expected[i] = np.mean(left)

    np.testing.assert_allclose(trimmed_means(row, ratio, own, trimmed), expected, atol=1e-12)


def test_skills_are_found_again_and_liars_have_negative_ones() -> None:
    """With 3,000 tasks and 12 workers, two of whom lie (seed 0), abilities are within 0.05."""
    rng = np.random.default_rng(0)
    abilities = np.array([0.05, 0.1, *np.linspace(0.4, 0.9, 10)])
    truth, (task, worker) = rng.integers(0, 3, 3000), np.nonzero(rng.random((3000, 12)) < 0.5)
    wrong = (truth[task] + rng.integers(1, 3, len(task))) % 3
    answer = np.where(rng.random(len(task)) < abilities[worker], truth[task], wrong)
    reports = Reports(task, worker, answer, np.arange(3000), np.arange(12), LABELS)

    pairs = WorkerPairs.of_blocks([one_block(reports).block], 12)
    numbers = AnswerNumbers(3, 3000, int((reports.per_task > 0).sum()), np.asarray(reports.per_worker))

    np.testing.assert_allclose(abilities_from_pair_agreements(pairs, numbers), abilities, atol=0.05)
