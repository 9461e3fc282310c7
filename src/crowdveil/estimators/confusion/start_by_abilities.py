"""Start of a fit by abilities alone, taken where its truths have a larger evidence than those of the usual start.

Most votes for a rare label are mistakes, and EM may keep them as truths. In the start by abilities, rows are those of
`own_ability` for `OWN_STEPS` steps: m[i, z] = a_i e_z + (1 - a_i) (p without z). With expected answers N[i, z, x] and
truths n_z, the evidence of the posteriors, tables and class prior integrated out, is at least exp of
    L = H + D(n; 1) + max(sum_iz D(N[i, z]; prior of row z), coin),   H = entropy of the posteriors,
    coin = max_s sum_i D((right_i, wrong_i); s (A, 1 - A)) + sum of N[i, z, x] log(p without z)[x] over x other than z,
D(n; a) = log of Gamma(sum a) / Gamma(sum (a + n)) prod Gamma(a + n) / Gamma(a), the Dirichlet-multinomial probability.
"""

from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from crowdveil.data.reports import Block, Reports
from crowdveil.em.estimator import Estimator, coded_and_summarized
from crowdveil.em.gold import Gold
from crowdveil.em.kernels.table_and_report_reductions import floored_log
from crowdveil.em.loop import run_em
from crowdveil.em.model import FitInput, FitResult
from crowdveil.estimators.confusion.model import CrowdStatistics
from crowdveil.estimators.confusion.parameters import TINY, CrowdParameters

OWN_STEPS, COMPARED_STEPS = 4, 7
"""Steps with rows of abilities alone, and steps after which the starts are compared."""
FREQUENT = 1.3
"""Share of the most frequent answer, relative to an even one, from which the starts are compared."""
MIN_GAIN = 10.0
"""Least gain of the log evidence: the answers must be 20,000 times as probable."""
CONCENTRATIONS = np.array([2.0, 5.0, 20.0, 100.0])
"""Candidates of the pseudo-answers s in the prior of abilities."""
MAX_ANSWERS, PARTS = 20_000, 50
"""Number of answers, of evenly spaced ranges of tasks, that the starts are compared on, and number of ranges."""
MAX_CELLS = 50_000
"""Cells of their confusion matrices: fewer answers are compared where each could be of another worker."""


def starts_by_abilities_for_evidence(model: Estimator[CrowdParameters, CrowdStatistics], data: FitInput) -> bool:
    """Return whether a fit to these answers, which went through no channel, starts by abilities.

    Args:
        model: whose M-step follows `CrowdParameters.own_steps`.
        data: the answers.
    """
    frequencies = data.summary.symbol_counts.sum(axis=0)
    even = frequencies.max() * len(frequencies) <= FREQUENT * frequencies.sum()
    if even or model.max_steps < COMPARED_STEPS:
        return False
    sample, fitted = sample_to_compare_starts_on(model, data), cast(Any, model)
    short, usual = replace(fitted, max_steps=COMPARED_STEPS), model.initialize(sample.summary)
    starts = usual, replace(usual, own_steps=OWN_STEPS)
    fits = [run_em(short, start, sample, intervals=False) for start in starts]
    if fits[0].parameters.is_initial:  # of one worker, whose answers are the truths
        return False
    return log_evidence(fits[1]) > log_evidence(fits[0]) + MIN_GAIN


def sample_to_compare_starts_on(model: Estimator[Any, Any], data: FitInput) -> FitInput:
    """Return the answers that starts are compared on; tasks and workers with answers are numbered anew."""
    dense = data.summary.workers * data.summary.labels**2 <= MAX_CELLS
    most = MAX_ANSWERS if dense else min(MAX_ANSWERS, MAX_CELLS // data.summary.labels**2)
    blocks = _evenly_spaced_task_blocks(data.reports, max(most, PARTS))
    task = np.concatenate([block.task + block.first for block in blocks])
    worker = np.concatenate([block.worker for block in blocks])
    value = np.concatenate([block.value for block in blocks])
    tasks, task = np.unique(task, return_inverse=True)
    workers, worker = np.unique(worker, return_inverse=True)
    codes = task.astype(np.int32), worker.astype(np.int32), value
    names = np.arange(len(tasks)), np.arange(len(workers))
    reports, summary = coded_and_summarized(model, Reports(*codes, *names, data.reports.alphabet), None, None, None)
    place = np.minimum(np.searchsorted(tasks, data.gold.tasks), len(tasks) - 1)
    known = tasks[place] == data.gold.tasks
    gold = Gold(place[known], data.gold.truths[known], 0)
    return FitInput(reports, replace(summary, prior=data.summary.prior), gold)


def _evenly_spaced_task_blocks(reports: Reports, most_answers: int) -> list[Block]:
    """Return evenly spaced ranges of tasks with about `most_answers` answers; all tasks if there are not more."""
    ends, blocks, stop, tasks = reports.rows.pointers, list[Block](), 0, len(reports.tasks)
    parts = PARTS if len(reports) > most_answers else 1
    for answer in np.arange(parts) * (len(reports) / parts):
        following, holding = np.searchsorted(ends, answer), np.searchsorted(ends, answer, side="right") - 1
        first = max(stop, int(following if following < tasks else holding))
        if first >= tasks:
            break
        stop = max(first + 1, int(np.searchsorted(ends, ends[first] + most_answers // parts, side="right")) - 1)
        blocks.append(reports.rows.block(first, stop))
    return blocks


def log_evidence(result: FitResult[CrowdParameters, CrowdStatistics]) -> float:
    """Return the lower bound L of the log evidence of the last posteriors."""
    statistics, parameters = result.statistics, result.parameters
    answers, truths = statistics.by_report, statistics.by_truth.sum(axis=0)
    rows = _log_dirichlet_multinomial(answers, parameters.dirichlet_prior).sum()
    expected = (answers * floored_log(parameters.confusion, TINY)).sum()
    logs, prior = floored_log(parameters.class_prior, TINY), parameters.summary.prior
    entropy = statistics.log_likelihood - expected - truths @ logs
    classes = _log_dirichlet_multinomial(truths, np.ones(len(truths))) if prior is None else truths @ logs
    return float(entropy + classes + max(rows, _log_evidence_of_own_abilities(answers, parameters)))


def _log_evidence_of_own_abilities(answers: NDArray[np.float64], parameters: CrowdParameters) -> float:
    own = parameters.own_prior
    assert own is not None
    right = np.einsum("wzz->w", answers)
    counts = np.stack((right, np.einsum("wzx->w", answers) - right), axis=1)
    pseudo_counts = CONCENTRATIONS[:, None] * np.array([own.ability, 1 - own.ability])
    abilities = max(_log_dirichlet_multinomial(counts, one).sum() for one in pseudo_counts)
    wrong = answers.sum(axis=0) * (1 - np.eye(answers.shape[1]))
    return float(abilities + (wrong * floored_log(own.errors, TINY)).sum())


def _log_dirichlet_multinomial(counts: NDArray[np.float64], pseudo_counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log-probabilities of sequences with these counts, over the last axis."""
    cells = (gammaln(counts + pseudo_counts) - gammaln(pseudo_counts)).sum(axis=-1)
    total = pseudo_counts.sum(axis=-1)
    return np.asarray(cells + gammaln(total) - gammaln(counts.sum(axis=-1) + total))
