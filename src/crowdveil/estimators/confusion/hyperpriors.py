"""How far workers differ in how much they answer: learned from the numbers of their reports, truths unread.

Behind noise a worker's own participation is known badly, and a wrong one makes all his reports too loud or too quiet.
Where everybody answers about as much, the crowd's rate is the better guess; where they differ, reports say so.

The crowd's usual ability, learned with the workers' own: the centre that each of them is shrunk to.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from crowdveil.em.deconvolution import AnswerFrequencies
from crowdveil.em.model import Summary
from crowdveil.estimators.confusion.parameters import TINY

SPREAD = 0.1
"""Standard deviation of the crowd's ability around the expected one, before a single report is seen."""
STEPS = 20
LEAST = 1e-12


def candidates(expected: float) -> NDArray[np.float64]:
    """Return the centres to choose from, in [0, 1), the expected one among them; ascending, shape (candidates,)."""
    return np.unique(np.append(np.arange(STEPS) / STEPS, expected))


def log_density(
    centre: NDArray[np.float64] | float,
    expected: float,
    share: NDArray[np.float64],
    right: NDArray[np.float64],
    wrong: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the log-density of a centre and of the workers' shares given it, in log-odds.

    Args:
        centre: the crowd's ability, shape (candidates,) or one number.
        expected: where it is expected.
        share: each worker's probability of being right, shape (workers,).
        right, wrong: pseudo-answers that are right and wrong, indexed [candidate, worker] or broadcast to that.

    Returns:
        Shape (candidates,), up to one constant.
    """
    logs = np.log(np.maximum(share, LEAST)), np.log(np.maximum(1 - share, LEAST))
    workers = right * logs[0] + wrong * logs[1] - betaln(right, wrong)
    return np.sum(workers, axis=-1) - 0.5 * ((np.asarray(centre) - expected) / SPREAD) ** 2


def best_centre(
    expected: float, share: NDArray[np.float64], right: NDArray[np.float64], wrong: NDArray[np.float64]
) -> int:
    """Return the index of the likeliest of the candidates for `expected`; the arguments are those of `log_density`."""
    return int(log_density(candidates(expected), expected, share, right, wrong).argmax())


STRENGTHS = np.geomspace(1.0, 1e5, 26)
"""Candidates for the strength of the Beta law of participations, in cells; the last one says that all are alike."""


def participation_cells(reports: NDArray[np.float64], pool: AnswerFrequencies, least: float) -> float:
    """Return the pseudo-cells, at the pool's rate, that draw each worker's participation to it; `least` or more.

    That of the likeliest Beta law of participations, in proportion to the pool's noise. Each worker's log-likelihood is
    taken to be a parabola around the pool's rate, of slope g and curvature I, so that a law of variance v has the
    evidence prod_i (1 + v I_i)^(-1/2) exp(v g_i^2 / (2 + 2 v I_i)).

    Args:
        reports: of each worker, those that are only counted too, in the order of `everything`; [worker, report].
        pool: what they say of the whole crowd.
        least: pseudo-cells whatever is learned; with 0, as without noise, nothing is.
    """
    if not (pool.protected and least):
        return least
    everything, rate = pool.model.everything, pool.participation
    answered, silent = pool.label_shares @ everything[: pool.labels], everything[pool.labels]
    slope = (answered - silent) / np.maximum(rate * answered + (1 - rate) * silent, TINY)
    rises, curvature = (reports @ slope)[:, None], (reports @ slope**2)[:, None]
    variance = rate * (1 - rate) / STRENGTHS
    wider = 1 + variance * curvature
    evidence = 0.5 * (variance * rises**2 / wider - np.log(wider)).sum(axis=0)
    return max(least, pool.noise * float(STRENGTHS[evidence.argmax()]))


def crowd_cells(summary: Summary, pool: AnswerFrequencies, least: float) -> float:
    """Return the pseudo-cells of a campaign's counts; nothing is counted where nothing is learned."""
    return participation_cells(all_counts(summary), pool, least) if pool.protected and least else least


def all_counts(summary: Summary) -> NDArray[np.float64]:
    """Return each worker's reports in the order of `everything`, those counted only included; [worker, report]."""
    model, listed = summary.model, summary.symbol_counts
    unlisted = -listed @ model.replaces()
    for group, tasks in enumerate(np.bincount(model.task_group, minlength=model.task_groups)):
        unlisted = unlisted + tasks * model.silent_workers(group)
    return np.concatenate((listed, np.maximum(unlisted, 0.0)), axis=1)
