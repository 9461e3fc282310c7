r"""Bayes errors of a campaign from multinomial report counts, for any number of workers.

Given truth t, reports of workers of class c are independent draws from R_c(y | t) = s \sum_x P_c(x | t) Q(y | x) +
(1 - s) Q(y | NULL), with answer rate s and channel Q. Two posteriors are evaluated: with every worker's class known, a
lower bound on the mean error of any inference, and with only the shares of the classes known.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.reports import Reports
from crowdveil.channels.channel import Channel
from crowdveil.planning.campaign import PlannedCampaign
from crowdveil.planning.population import AssumedCrowd, NumberCrowd
from crowdveil.randomness import seeded

TINY = 1e-300
"""Lower limit of a probability before its logarithm."""
CROWDS, MAX_NUMBER_CROWDS, TASKS_PER_CROWD = 64, 32, 48
"""Crowds drawn, at most for numbers (their classes have fixed sizes), and tasks of each."""
SEARCH_CROWDS = 16
"""Crowds drawn when many crowd sizes are compared."""


def report_given_answer(labels: int, channel: Channel | None) -> NDArray[np.float64]:
    """Return P(report | answer), shape (labels + 1, symbols + 1): the last row is NULL, the last column no report.

    Symbols are those of `channel.report_alphabet`; without a channel, reports are the answers.
    """
    if channel is None:
        return np.eye(labels + 1)
    listed = channel.probabilities[:, [channel.outputs.index(name) for name in channel.report_alphabet.names]]
    if channel.participation == "public":
        listed = np.vstack((listed, np.zeros(listed.shape[1])))
    return np.column_stack((listed, np.maximum(1 - listed.sum(axis=1), 0.0)))


def report_given_truth(answers: NDArray[np.float64], rate: float, channel: Channel | None) -> NDArray[np.float64]:
    """Return P(report | truth), indexed [class, truth, symbol]; the last symbol is no report.

    Args:
        answers: P(answer | truth), indexed [class, truth, label].
        rate: share of cells that are answered.
        channel: P(report | answer); None if reports are the answers.
    """
    return _report_probabilities_by_truth(answers, rate, report_given_answer(answers.shape[2], channel))


def _report_probabilities_by_truth(
    answers: NDArray[np.float64], rate: float, by_answer: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return P(report | truth) from P(answer | truth) and P(report | answer or NULL)."""
    whole = rate * (answers @ by_answer[:-1]) + (1 - rate) * by_answer[-1]
    return np.asarray(whole / whole.sum(axis=2, keepdims=True))


def log_report_tables(
    crowd: AssumedCrowd, rate: float, channel: Channel | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log P(report | truth) for each class, and averaged over classes; indexed [class, truth, symbol]."""
    table = report_given_truth(crowd.answer_probabilities(), rate, channel)
    average = np.tensordot(crowd.worker_shares, table, axes=1)[None]
    return np.log(np.maximum(table, TINY)), np.log(np.maximum(average, TINY))


def count_log_likelihood(counts: NDArray[np.int64], log_table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log-likelihoods, indexed [task, truth].

    Args:
        counts: of reports, indexed [class, task, symbol].
        log_table: log P(report | truth), indexed [class, truth, symbol].
    """
    flat = counts.transpose(1, 0, 2).reshape(counts.shape[1], -1).astype(float)
    return np.asarray(flat @ log_table.transpose(0, 2, 1).reshape(flat.shape[1], -1))


def known_classes_error(
    campaign: PlannedCampaign,
    channel: Channel | None,
    reports: Reports,
    worker_class: NDArray[np.int64],
    truths: NDArray[Any],
    assignment: Assignment | None = None,
) -> float:
    """Return the mean loss of the posterior on given reports with every worker's class known.

    Args:
        campaign, channel: origin of the reports; no channel if reports are the answers.
        reports: those that are not NULL.
        worker_class: of each worker, shape (workers,).
        truths: of each task, shape (tasks,).
        assignment: cells that report; None for all.
    """
    crowd, tasks = campaign.crowd, len(reports.tasks)
    log_table, _ = log_report_tables(crowd, campaign.answered_cell_share, channel)
    shape = len(log_table), tasks, log_table.shape[2] - 1
    rows = worker_class[reports.worker] * tasks + reports.task
    listed = np.bincount(rows * shape[2] + reports.value, minlength=math.prod(shape)).reshape(shape)
    if assignment is None:
        cells = np.repeat(np.bincount(worker_class, minlength=shape[0])[:, None], tasks, axis=1)
    else:
        pairs = worker_class[assignment.worker] * tasks + assignment.task
        cells = np.bincount(pairs, minlength=shape[0] * tasks).reshape(shape[:2])
    counts = np.concatenate((listed, cells[:, :, None] - listed.sum(axis=2, keepdims=True)), axis=2)
    return float(crowd.losses(crowd.log_truth_prior + count_log_likelihood(counts, log_table), truths).mean())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BayesErrors:
    """Expected errors of exact posteriors.

    Attributes:
        known_classes: every worker's class known; a lower bound on the mean error of any inference.
        unknown_classes: only the shares of the classes known, and reports not linked to workers.
        crowd_variance: variance of the former between crowds.
        sampling_variance: variance of `known_classes` from the finite number of drawn tasks.
        losses: of the drawn tasks, with known classes.
    """

    known_classes: float
    unknown_classes: float
    crowd_variance: float
    sampling_variance: float
    losses: NDArray[np.float64]


def bayes_errors(campaign: PlannedCampaign, channel: Channel | None, *, crowds: int = CROWDS) -> BayesErrors:
    """Return the Bayes errors of a campaign, by Monte Carlo.

    Args:
        campaign: planned campaign.
        channel: P(report | answer); None if reports are the answers.
        crowds: number of drawn crowds, fewer for numbers, with `TASKS_PER_CROWD` tasks each.
    """
    crowd, generator = campaign.crowd, seeded(1).generator
    by_answer = report_given_answer(crowd.alphabet.size, channel)
    by_class, average = log_report_tables(crowd, campaign.answered_cell_share, channel)
    crowds = min(crowds, MAX_NUMBER_CROWDS) if isinstance(crowd, NumberCrowd) else crowds
    truths, scores = [], []
    for _ in range(crowds):
        truths.append(crowd.draw_truths(generator, TASKS_PER_CROWD))
        class_sizes = crowd.workers_in_each_class(generator, campaign.reporters_per_task)
        table = _report_probabilities_by_truth(
            crowd.answer_probabilities(truths[-1]), campaign.answered_cell_share, by_answer
        )
        counts = generator.multinomial(class_sizes[:, None], table)
        linked = count_log_likelihood(counts, by_class)
        unlinked = count_log_likelihood(counts.sum(axis=0, keepdims=True), average)
        scores.append((linked + crowd.log_truth_prior, unlinked + crowd.log_truth_prior))
    every = np.concatenate(truths)
    known, unknown = (
        crowd.posterior_expected_losses(np.concatenate(part), every).reshape(crowds, TASKS_PER_CROWD)
        for part in zip(*scores, strict=True)
    )
    noise = float(known.var() / known.size)
    return BayesErrors(
        known_classes=float(known.mean()),
        unknown_classes=max(float(unknown.mean()), float(known.mean())),
        crowd_variance=max(0.0, float(known.mean(axis=1).var(ddof=1)) - noise * crowds),
        sampling_variance=noise,
        losses=known.ravel(),
    )
