"""Starts of a fit that are compared by their evidence: usual, by abilities, and balanced.

Most votes for a rare label are mistakes, and EM may keep them as truths. In the start by abilities, rows are those of
`own_ability` for `OWN_STEPS` steps: m[i, z] = a_i e_z + (1 - a_i) (p without z). The balanced start is the posterior
under one ability, with all labels as probable. With expected answers N[i, z, x], truths n_z, and rho and pi of
`independent_workers`, the evidence of the posteriors, tables and class prior integrated out, is about exp of
    L = H + D(n; 1) + max over a of sum_i ln((1 - pi) exp(a_i) + pi exp(E1_i)),
    H = sum_t ln Z_t - sum_i (1 - rho_i) sum N_i ln C_i - sum_z n_z ln pi_z,
with D of `dirichlet_multinomial`, Z_t the normalizers of the posteriors, and a_i sum_z D(N[i, z]; prior of row z), with
the fitted prior, or with its mean and strength s of `ROW_STRENGTHS`; or coin_i(s), s of `COIN_STRENGTHS`.
"""

from dataclasses import replace
from typing import Any, cast

import numpy as np

from crowdveil.answers.reports import Reports
from crowdveil.em.estimator import Estimator, coded_and_summarized
from crowdveil.em.gold import Gold
from crowdveil.em.kernels.reductions import floored_log
from crowdveil.em.loop import run_em
from crowdveil.em.model import FitInput, FitResult
from crowdveil.estimators.confusion.dirichlet_multinomial import log_dirichlet_multinomial, log_evidence_of_rows
from crowdveil.estimators.confusion.independent_workers import log_evidence_of_coins
from crowdveil.estimators.confusion.measured_crowd import PARTS, evenly_spaced_task_blocks, with_copies_and_independence
from crowdveil.estimators.confusion.model import CrowdStatistics
from crowdveil.estimators.confusion.parameters import TINY, CrowdParameters

OWN_STEPS, COMPARED_STEPS = 4, 7
"""Steps with rows of abilities alone, and steps after which the starts are compared."""
FREQUENT = 1.3
"""Share of the most frequent answer, relative to an even one, from which the starts are compared."""
MIN_GAIN, BALANCED = 3.0, 2
"""Least gain of the log evidence over the usual start, and the place of the balanced start, which needs none: where
one label is said often, whatever is true, its truths are better than its evidence."""
ROW_STRENGTHS, COIN_STRENGTHS = (10.0, 30.0, 100.0, 300.0), (2.0, 5.0, 20.0, 100.0)
"""Candidates of the pseudo-answers s in the prior of rows, and of abilities."""
MAX_ANSWERS = 20_000
"""Number of answers that the starts are compared on."""
MAX_CELLS = 20_000
"""Cells of their confusion matrices: fewer answers are compared where each could be of another worker."""


def start_with_largest_evidence(
    model: Estimator[CrowdParameters, CrowdStatistics], usual: CrowdParameters, data: FitInput
) -> CrowdParameters:
    """Return the initial parameters of a fit to these answers, which went through no channel.

    Args:
        model: whose steps follow `CrowdParameters.own_steps` and `balanced_start`.
        usual: initial parameters of all answers.
        data: the answers.
    """
    frequencies = data.summary.counted_symbols.sum(axis=0)
    even = frequencies.max() * len(frequencies) <= FREQUENT * frequencies.sum()
    if even or model.max_steps < COMPARED_STEPS:
        return usual
    sample, fitted = comparison_sample(model, data), cast(Any, model)
    short, first = replace(fitted, max_steps=COMPARED_STEPS), model.initialize(sample.summary)
    fits = [run_em(short, start, sample, intervals=False) for start in compared_starts(first)]
    if fits[0].parameters.is_initial:  # of one worker, whose answers are the truths
        return usual
    evidence = [log_evidence(fit) for fit in fits]
    best = int(np.argmax(evidence))
    gains = best == BALANCED or evidence[best] > evidence[0] + MIN_GAIN
    return compared_starts(usual)[best if gains else 0]


def compared_starts(usual: CrowdParameters) -> tuple[CrowdParameters, ...]:
    """Return the usual start, that by abilities, and the balanced one."""
    return usual, replace(usual, own_steps=OWN_STEPS), replace(usual, balanced_start=True)


def comparison_sample(model: Estimator[Any, Any], data: FitInput) -> FitInput:
    """Return the answers that starts are compared on; tasks and workers with answers are numbered anew."""
    dense = data.summary.workers * data.summary.labels**2 <= MAX_CELLS
    most = MAX_ANSWERS if dense else min(MAX_ANSWERS, MAX_CELLS // data.summary.labels**2)
    blocks = [*evenly_spaced_task_blocks(data.reports, max(most, PARTS))]
    task = np.concatenate([block.task + block.first for block in blocks])
    worker = np.concatenate([block.worker for block in blocks])
    value = np.concatenate([block.value for block in blocks])
    tasks, task = np.unique(task, return_inverse=True)
    workers, worker = np.unique(worker, return_inverse=True)
    codes = task.astype(np.int32), worker.astype(np.int32), value
    names = np.arange(len(tasks)), np.arange(len(workers))
    reports, summary = coded_and_summarized(model, Reports(*codes, *names, data.reports.alphabet), None, None, None)
    summary = with_copies_and_independence(reports, summary, data.summary, workers)
    place = np.minimum(np.searchsorted(tasks, data.gold.tasks), len(tasks) - 1)
    known = tasks[place] == data.gold.tasks
    gold = Gold(place[known], data.gold.truths[known], 0)
    return FitInput(reports, replace(summary, prior=data.summary.prior), gold)


def log_evidence(result: FitResult[CrowdParameters, CrowdStatistics]) -> float:
    """Return the evidence L of the last posteriors."""
    statistics, parameters = result.statistics, result.parameters
    answers, truths = statistics.by_report, statistics.by_truth.sum(axis=0)
    independence, own = parameters.independence, parameters.own_prior
    assert independence is not None
    assert own is not None
    expected = independence.weights @ np.einsum("wzx,wzx->w", answers, floored_log(parameters.confusion, TINY))
    logs, prior = floored_log(parameters.class_prior, TINY), parameters.summary.prior
    entropy = statistics.log_likelihood - float(expected) - truths @ logs
    classes = log_dirichlet_multinomial(truths, np.ones(len(truths))) if prior is None else truths @ logs
    mean = parameters.dirichlet_prior / parameters.dirichlet_prior.sum(axis=1, keepdims=True)
    priors = parameters.dirichlet_prior, *(strength * mean for strength in ROW_STRENGTHS)
    informed = [log_evidence_of_rows(answers, one) for one in priors]
    informed += [*log_evidence_of_coins(answers, own, COIN_STRENGTHS)]
    share = independence.share
    known = [
        np.logaddexp(np.log1p(-share) + one, np.log(share) + independence.label_evidence).sum() for one in informed
    ]
    return float(entropy + classes + max(known))
