"""How participation follows a worker's ability: a few more answers, each less good, make the same reports.

Behind a channel that hides who answered, neither is known for sure. Along the path on which participation stays as
likely as it can be, the curvature of the log-likelihood is what is left of the ability's own when participation is
integrated out (to second order): the Schur complement.

How far a worker's ability is known: from the observed information of the reports, not of the answers behind them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, gammaln

from crowdveil.em.estimate import WorkerTable
from crowdveil.em.kernels import Slopes, for_row_ranges, log_gamma_sums, squared_slopes, use_compiled
from crowdveil.em.model import GoldBlock, Summary
from crowdveil.estimators.confusion.parameters import TINY, CrowdParameters

TASKS_AT_ONCE = 1 << 20
"""Tasks whose posteriors are copied together."""
CHUNK_REPORTS = 1 << 18
WORKERS_AT_MOST = 2000
"""Workers that the crowd's prior is learned from, evenly taken from all of them."""
WORKERS_FOR_A_THREAD = 1 << 12
"""Workers whose quantiles are worth a thread."""
LOW, HIGH = 0.05, 0.95
FIRMEST = 3.0
"""Strength of the crowd's law in intervals, at most; more of it covered too little in simulations."""
CENTRES = np.linspace(0.02, 0.98, 49)
STRENGTHS = np.geomspace(1 / 16, 1.0, 9)
"""Candidates for the crowd's Beta law of abilities: means, and strengths in units of the firmest."""
USUAL_STRENGTH = 8.0
"""That of abilities uniform between one half and one; expected within a factor e."""
WIDEST = 12.0
"""Curvature of what is known of a law's centre beforehand: that of a number between 0 and 1."""
LEAST_ANSWERS = 0.5
"""What an average law is worth at least: fewer, and it would have two humps, at 0 and at 1."""


@dataclass(frozen=True, eq=False)
class CompleteDataSummary:
    """What an estimator says of abilities before the information in single reports is known.

    Attributes:
        ability: under a proper prior, shape (workers,).
        strength: how many answers a unit of information along the path is worth, shape (workers,).
        excess: answers, beyond those that the ability itself explains, by which reports pull it upwards; (workers,).
        firmest: the largest strength, in answers, that the crowd's law may have. Where information is scarce all look
            alike, because all are shrunk: that must not pass for knowledge.
        averaged: whether laws are averaged by their evidence; else the likeliest is taken.
        told: whether the mean of the law that intervals are of is told as the ability.
        beside: information about the ability that is not in the reports, shape (workers,), or 0.
    """

    ability: NDArray[np.float64]
    strength: NDArray[np.float64]
    excess: NDArray[np.float64]
    firmest: float
    averaged: bool = False
    told: bool = False
    beside: NDArray[np.float64] | float = 0.0


@dataclass(frozen=True, eq=False)
class Path:
    """Confusion tables, and how they change with the ability.

    Attributes:
        right: P(right answer | truth) of a worker with the spread's ability, indexed [worker, truth].
        direction: change of that when the ability changes by one, indexed alike; wrong answers fall in proportion.
        tables: all of his table, indexed [worker, truth, label]; None where reports are answers: of these, one that is
            wrong is like any other.
        participation: change of P(answered) when the ability changes by one, shape (workers,); None for none.
    """

    right: NDArray[np.float64]
    direction: NDArray[np.float64]
    tables: NDArray[np.float64] | None
    participation: NDArray[np.float64] | None = None


def with_intervals(
    table: WorkerTable, spread: CompleteDataSummary, information: NDArray[np.float64], reports: NDArray[np.int64]
) -> WorkerTable:
    """Return the table with the 5 % and 95 % quantiles of abilities.

    The reports of a worker are worth as many answers as their information is; these are binomial, and abilities are
    drawn from a Beta law that is learned from all workers. The estimate itself is always inside.

    Args:
        information: about each worker's ability, shape (workers,).
        reports: of each worker, shape (workers,).
    """
    worth = (information + spread.beside) * spread.strength
    right = np.maximum(worth * spread.ability + spread.excess, 0.0)
    wrong = np.maximum(worth * (1 - spread.ability) - spread.excess, 0.0)
    known = np.flatnonzero(reports)
    some = known[:: max(1, len(known) // WORKERS_AT_MOST)]
    compiled = use_compiled(int(reports.sum()))
    if spread.averaged:
        laws = fit_beta_priors(right[some], wrong[some], spread.firmest, compiled=compiled)
        hits, misses = average_priors(right, wrong, laws)
    else:
        usual = fit_beta_prior(right[some], wrong[some], spread.firmest, compiled=compiled)
        hits, misses = right + usual[0], wrong + usual[1]
    low, high = np.empty((2, len(hits)))

    def quantiles(some: slice) -> None:
        for level, ends in ((LOW, low), (HIGH, high)):
            betaincinv(hits[some], misses[some], level, out=ends[some])

    for_row_ranges(quantiles, len(hits), WORKERS_FOR_A_THREAD)
    ability = hits / (hits + misses) if spread.told else table.quality
    return replace(table, quality=ability, ability_low=np.minimum(low, ability), ability_high=np.maximum(high, ability))


def fit_beta_prior(
    right: NDArray[np.float64], wrong: NDArray[np.float64], firmest: float, *, compiled: bool = False
) -> tuple[float, float]:
    """Return the Beta law, as pseudo-answers right and wrong, that makes the workers' answers likeliest.

    Args:
        right, wrong: answers of each worker, shape (workers,); need not be whole.
        firmest: largest strength, in answers.
        compiled: from `use_compiled`.
    """
    strength = firmest * STRENGTHS
    place, evidence = _best_centres(right, wrong, strength, compiled=compiled)
    best = int(evidence.argmax())
    return float(CENTRES[place[best]] * strength[best]), float((1 - CENTRES[place[best]]) * strength[best])


class CrowdLaws(NamedTuple):
    """Beta laws that a crowd may have, of one strength each; all of shape (laws,).

    `centre` and its `variance`: which means that strength goes with; `strength`, in answers; `weight` sums to 1.
    """

    centre: NDArray[np.float64]
    variance: NDArray[np.float64]
    strength: NDArray[np.float64]
    weight: NDArray[np.float64]


def fit_beta_priors(
    right: NDArray[np.float64], wrong: NDArray[np.float64], firmest: float, *, compiled: bool = False
) -> CrowdLaws:
    """Return Beta laws of abilities, weighed by their evidence; arguments as in `fit_beta_prior`.

    At one strength the evidence is taken to be normal around the best centre (Laplace).
    """
    strength = firmest * STRENGTHS
    place, evidence = _best_centres(right, wrong, strength, compiled=compiled)
    evidence_at = partial(_evidence, right, wrong, compiled=compiled)
    inner = np.clip(place, 1, len(CENTRES) - 2)
    below, at, above = (evidence_at(CENTRES[inner + move], strength) for move in (-1, 0, 1))
    bend = np.maximum(2 * at - below - above, 0.0) / (CENTRES[1] - CENTRES[0]) ** 2
    variance = 1 / (bend + WIDEST)
    scores = evidence + 0.5 * np.log(variance)
    weight = np.exp(scores - scores.max())
    return CrowdLaws(CENTRES[place], variance, strength, weight / weight.sum())


def average_priors(
    right: NDArray[np.float64], wrong: NDArray[np.float64], laws: CrowdLaws
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the answers, right and wrong, of the Beta law with the mean and variance of each worker's average law."""
    first, second = np.zeros(len(right)), np.zeros(len(right))
    for centre, variance, strength, weight in zip(*laws, strict=True):
        number = right + wrong + strength
        mean = (right + centre * strength) / number
        first += weight * mean
        second += weight * (mean**2 + mean * (1 - mean) / (number + 1) + (strength / number) ** 2 * variance)
    number = np.maximum(first * (1 - first) / np.maximum(second - first**2, TINY) - 1, LEAST_ANSWERS)
    return first * number, (1 - first) * number


def _best_centres(
    right: NDArray[np.float64], wrong: NDArray[np.float64], strength: NDArray[np.float64], *, compiled: bool
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the place among `CENTRES` of each strength's likeliest, and the evidence of both; shapes (laws,)."""
    evidence_at = partial(_evidence, right, wrong, compiled=compiled)
    # At one strength the evidence is concave in the centre, for the slope of log-gamma's slope falls: so halve.
    low, high = np.zeros(len(strength), dtype=np.int64), np.full(len(strength), len(CENTRES) - 1)
    while (low < high).any():
        middle = (low + high) // 2
        after = np.minimum(middle + 1, high)
        rises = evidence_at(CENTRES[after], strength) > evidence_at(CENTRES[middle], strength)
        low, high = np.where(rises, after, low), np.where(rises, high, middle)
    whole = len(right) * gammaln(strength) - log_gamma_sums(right + wrong, strength, compiled=compiled)
    evidence = evidence_at(CENTRES[low], strength) + whole
    return low, evidence - 0.5 * np.log(strength / USUAL_STRENGTH) ** 2


def _evidence(
    right: NDArray[np.float64],
    wrong: NDArray[np.float64],
    centre: NDArray[np.float64],
    strength: NDArray[np.float64],
    *,
    compiled: bool,
) -> NDArray[np.float64]:
    """Return the log-evidence of Beta laws, less what depends on their strength alone; shape (laws,)."""
    total = np.zeros(len(centre))
    for answers, pseudo in ((right, centre * strength), (wrong, (1 - centre) * strength)):
        total += log_gamma_sums(answers, pseudo, compiled=compiled) - len(answers) * gammaln(pseudo)
    return total


def observed_information(
    path: Path, parameters: CrowdParameters, blocks: Iterable[GoldBlock], posterior: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the observed information of all reports, NULL included, about each worker's ability; shape (workers,)."""
    model, workers = parameters.pool.model, parameters.summary.workers
    if path.tables is None:
        return information_of_answers(path, parameters.summary, blocks, posterior)
    slopes = slope_tables(path.tables, path.direction, parameters, path.participation)
    listed = np.ascontiguousarray(slopes[:, :, : model.symbols].transpose(0, 2, 1)).reshape(-1, model.labels)
    null = slopes[:, :, model.symbols :].transpose(0, 2, 1)
    total = np.zeros(workers)
    for block in blocks:
        if not model.silent:
            total += block.coded.squared_scores(listed, posterior[block.block.first : block.block.stop])
            continue
        task = block.block.task + block.block.first
        for first in range(0, len(task), CHUNK_REPORTS):
            part = slice(first, first + CHUNK_REPORTS)
            worker, symbol, truths = block.block.worker[part], block.block.value[part], posterior[task[part]]
            place = worker.astype(np.int64) * model.symbols + symbol
            squares = np.einsum("rz,rz->r", listed[place], truths) ** 2
            instead = model.silent_of[symbol]
            silent = np.flatnonzero(instead >= 0)
            unsent = np.einsum("rz,rz->r", null[worker[silent], instead[silent]], truths[silent]) ** 2
            total += np.bincount(worker, squares, workers) - np.bincount(worker[silent], unsent, workers)
    for group in range(model.task_groups if model.silent else 0):
        pairs = np.zeros((posterior.shape[1], posterior.shape[1]))
        for first in range(0, len(posterior), TASKS_AT_ONCE):
            part = slice(first, first + TASKS_AT_ONCE)
            truths = posterior[part][model.task_group[part] == group]
            pairs += truths.T @ truths
        everywhere = np.einsum("wsz,zv,wsv->ws", null, pairs, null)
        total += (model.silent_workers(group) * everywhere).sum(axis=1)
    return np.maximum(total, 0.0)


def information_of_answers(
    path: Path, summary: Summary, blocks: Iterable[GoldBlock], posterior: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the observed information about each worker's ability where reports are answers, shape (workers,)."""
    right, direction = path.right, path.direction
    slopes = Slopes(direction / np.maximum(right, TINY), direction / np.maximum(1 - right, TINY))
    compiled, total = use_compiled(int(summary.per_worker.sum())), np.zeros(len(right))
    for block in blocks:
        own = posterior[block.block.first : block.block.stop]
        total += squared_slopes(block.block, own, slopes, compiled=compiled)
    return total


def slope_tables(
    tables: NDArray[np.float64],
    direction: NDArray[np.float64],
    parameters: CrowdParameters,
    participation: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the slope of R[z, y] along the path, relative to R[z, y] itself; indexed [worker, truth, report].

    Where P(right) rises, wrong answers fall in proportion. Arguments as in `Path`.
    """
    right = np.einsum("wzz->wz", tables)
    wrong = np.maximum(1 - right, TINY)
    change = -tables / wrong[:, :, None]
    np.einsum("wzz->wz", change)[...] = 1.0
    change = change * direction[:, :, None]
    model = parameters.pool.model
    at = replace(parameters, confusion=tables).inputs() @ model.everything
    moved = parameters.participation[:, None, None] * (change @ model.everything[: model.labels])
    if participation is not None:
        more = tables @ model.everything[: model.labels] - model.everything[model.labels]
        moved = moved + participation[:, None, None] * more
    return np.asarray(moved / np.maximum(at, TINY))


NEVER = 1e-6
"""Participation is taken to be so far from 0 and 1 at least: its Beta law has no slope there."""


def marginalize_participation(
    spread: CompleteDataSummary, path: Path, parameters: CrowdParameters, reports: NDArray[np.float64]
) -> tuple[CompleteDataSummary, Path]:
    """Return the path on which participation changes with the ability, and what its law then tells of the ability.

    How far it follows is read off complete truths; any other distance would only overstate what is known.

    Args:
        spread, path: with participation as it is.
        parameters: of the fit's end; participation is protected.
        reports: posterior sums over all reports, indexed [worker, truth, report].
    """
    assert path.tables is not None
    pool, cells, still = parameters.pool, parameters.pseudo_cells, np.zeros_like(path.direction)
    of_share = slope_tables(path.tables, still, parameters, np.ones(len(still)))
    of_ability = slope_tables(path.tables, path.direction, parameters)
    share = np.clip(parameters.participation, NEVER, 1 - NEVER)
    answered, silent = pool.participation / share, (1 - pool.participation) / (1 - share)
    bend = cells * (answered / share + silent / (1 - share))
    uphill = (reports * of_share).sum(axis=(1, 2)) + cells * (answered - silent)
    together = (reports * of_ability * of_share).sum(axis=(1, 2))
    follows = -together / ((reports * of_share**2).sum(axis=(1, 2)) + bend)
    excess = spread.excess + spread.ability * (1 - spread.ability) * follows * uphill
    return replace(spread, excess=excess, beside=follows**2 * bend), replace(path, participation=follows)
