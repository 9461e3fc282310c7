"""Loopy belief propagation between workers and tasks with cavity messages.

Report y of worker i on task j sends to the task m(mu) = sum_c q_ij(c) R_c[mu, y] and to the worker
L(c) = sum_mu gamma_ij(mu) R_c[mu, y]. The cavity distributions leave the report itself out: q_ij = q_i / L and
gamma_ij = gamma_j / m up to normalization, so no message is stored between EM steps. The posteriors are exact if the
graph of reports has no loops (Pearl 1988); with many weak reports the error from loops vanishes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from crowdveil.answers.reports import Block
from crowdveil.em.observation_model import ObservationModel
from crowdveil.estimators.gaussian.discretization import ErrorClasses, point_masses

if TYPE_CHECKING:
    from crowdveil.em.kernels.numba_messages import NumbaWorkerLikelihood

CHUNK_REPORTS = 4096
PASSES = 2
"""Message passes within one EM step."""
DAMPING = 0.25
"""Share of the previous scores that a pass keeps; without damping they oscillate around the fixed point."""
MIN_PROBABILITY, FACTORS_PER_LOG = 1e-35, 8
"""Floor of a report's probability, and number of probabilities multiplied before a logarithm is computed."""
MIN_CAVITY_LIKELIHOOD = 1e-9
"""Floor of the likelihood that a cavity divides by: beliefs before convergence may not contain the report."""
NEGLIGIBLE_PROBABILITY = 1e-13
"""Truths whose posterior is below this in all tasks of a chunk are left out."""


class Priors(NamedTuple):
    """A mixture of priors of truths: probabilities, indexed [prior, truth], and the weight of each, shape (priors,)."""

    family: NDArray[np.float64]
    weights: NDArray[np.float64]

    def posterior_from_log_likelihoods(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return posteriors from log-likelihoods, both indexed [task, truth]."""
        likelihood = np.exp(scores - scores.max(axis=1, keepdims=True))
        evidence = np.maximum(likelihood @ self.family.T, np.finfo(float).tiny)
        posterior = likelihood * ((self.weights / evidence) @ self.family)
        return np.asarray(posterior / posterior.sum(axis=1, keepdims=True))


class Beliefs(NamedTuple):
    """Posteriors of tasks, [task, truth], and log-likelihoods of all reports of each worker, [worker, class]."""

    posterior: NDArray[np.float64]
    worker_scores: NDArray[np.float64]


def propagate(
    part: Block,
    gold: NDArray[np.float64],
    q: NDArray[np.float64],
    classes: ErrorClasses,
    priors: Priors,
    *,
    learned: bool = True,
    compiled: bool = False,
) -> Beliefs:
    """Return the beliefs after message passing over a block's reports.

    Args:
        part: reports.
        gold: known truths, shape (tasks,); nan where unknown.
        q: posterior over error classes of each worker, indexed [worker, class]; rows sum to 1.
        classes: P(report | truth) of every error class.
        priors: mixture of priors of truths.
        learned: True if `q` was learned from these reports; cavities then exclude each report's own contribution.
        compiled: from `use_compiled`.
    """
    passes = PASSES if learned else 0
    null_scores, sigma = _implicit_null_log_likelihood(part, q, classes), _sigma_shares_and_participation(q, classes)
    workers = _worker_likelihood(sigma, classes, compiled=compiled)
    posterior = np.concatenate(
        [
            _propagate_chunk(
                part.slice_tasks(tasks), gold[tasks], null_scores[tasks], classes.points, priors, passes, workers
            )
            for tasks in _task_chunks(part.pointers)
        ]
    )
    return Beliefs(posterior, workers.scores() + _null_worker_scores(part, posterior, len(q), classes))


def _task_chunks(pointers: NDArray[np.int64]) -> Iterator[slice]:
    """Yield ranges of tasks with about CHUNK_REPORTS reports each."""
    first = 0
    while first < len(pointers) - 1:
        last = int(np.searchsorted(pointers, pointers[first] + CHUNK_REPORTS, side="right")) - 1
        stop = min(max(first + 1, last), first + CHUNK_REPORTS)
        yield slice(first, stop)
        first = stop


def _implicit_null_log_likelihood(part: Block, q: NDArray[np.float64], classes: ErrorClasses) -> NDArray[np.float64]:
    """Return the log-likelihood of the implicit NULL reports of each task, indexed [task, truth]."""
    model, scores = classes.model, np.zeros((part.tasks, len(classes.points)))
    of_task = model.task_group[part.first : part.stop]
    for channel, table in enumerate(classes.implicit_null):
        if np.ptp(table, axis=1).max() > NEGLIGIBLE_PROBABILITY:
            logs = np.log(np.maximum(q @ table, MIN_PROBABILITY))
            group_scores = [
                model.implicit_null_of_worker(group)[:, channel] @ logs for group in range(model.task_groups)
            ]
            scores += (
                np.array(group_scores)[of_task] - _listed_in_place_of_null_matrix(part, model, channel, len(q)) @ logs
            )
    return scores


def _null_worker_scores(
    part: Block, posterior: NDArray[np.float64], workers: int, classes: ErrorClasses
) -> NDArray[np.float64]:
    """Return the log-likelihood of the implicit NULL reports of each worker, indexed [worker, class]."""
    model, scores = classes.model, np.zeros((workers, len(classes.mixing)))
    of_group = _row_summation_matrix(model.task_group[part.first : part.stop], model.task_groups)
    for channel, table in enumerate(classes.implicit_null):
        logs = np.log(np.maximum(posterior @ table.T, MIN_PROBABILITY))
        sums = np.equal(model.choice, channel).astype(float) @ (of_group @ logs)
        scores += sums[model.worker_group] - _listed_in_place_of_null_matrix(part, model, channel, workers).T @ logs
    return scores


def _listed_in_place_of_null_matrix(part: Block, model: ObservationModel, channel: int, workers: int) -> Any:
    """Return the sparse 0/1 matrix, [task, worker], of listed reports that replace a channel's implicit NULL."""
    listed = model.implicit_null_of[part.value] == channel
    pairs = (part.task[listed], part.worker[listed])
    return csr_array((np.ones(int(listed.sum())), pairs), shape=(part.tasks, workers))


class _SortedReports:
    """Reports of a chunk of tasks sorted by symbol and task, so that each symbol is one matrix product."""

    def __init__(self, part: Block, workers: int, symbols: int) -> None:
        order = np.lexsort((part.task, part.value))
        self.task, self.worker, value = part.task[order], part.worker[order], part.value[order]
        bounds = np.searchsorted(value, np.arange(symbols + 1))
        self.by_symbol = [(y, slice(*bounds[y : y + 2])) for y in range(symbols) if bounds[y] < bounds[y + 1]]
        index, key = np.arange(len(order)), value.astype(np.int64) * part.tasks + self.task
        run_starts = np.flatnonzero(np.diff(key, prepend=-1))
        self.factor_starts = np.flatnonzero(
            (index - np.repeat(run_starts, np.diff(run_starts, append=len(order)))) % FACTORS_PER_LOG == 0
        )
        self.task_sums = _row_summation_matrix(self.task[self.factor_starts], part.tasks)
        self.worker_sums = _row_summation_matrix(self.worker, workers)

    def probabilities_by_truth(
        self, weights: NDArray[np.float64], components: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return sum_k weights[report, k] components[y, k, mu], indexed [report, truth]."""
        out = np.empty((len(self.task), components.shape[2]))
        for y, rows in self.by_symbol:
            np.matmul(weights[rows], components[y], out=out[rows])
        return np.maximum(out, MIN_PROBABILITY, out=out)

    def component_probabilities(
        self, weights: NDArray[np.float64], components: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return sum_mu weights[report, mu] components[y, k, mu], indexed [report, component]."""
        out = np.empty((len(self.task), components.shape[1]))
        for y, rows in self.by_symbol:
            np.matmul(weights[rows], components[y].T, out=out[rows])
        return np.maximum(out, MIN_PROBABILITY, out=out)

    def log_message_product(self, messages: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-product of each task's messages, indexed [task, truth]."""
        if not len(self.factor_starts):
            return np.zeros((self.task_sums.shape[0], messages.shape[1]))
        return np.asarray(self.task_sums @ np.log(np.multiply.reduceat(messages, self.factor_starts, axis=0)))


def _row_summation_matrix(row: NDArray[Any], rows: int) -> Any:
    """Return the sparse matrix that adds entry k of a table to row `row[k]`."""
    return csr_array((np.ones(len(row)), (row, np.arange(len(row)))), shape=(rows, len(row)))


class _SigmaPosterior(NamedTuple):
    """Posterior of each worker's sigma (`shares`) and participation given sigma; indexed [worker, sigma]."""

    shares: NDArray[np.float64]
    participation: NDArray[np.float64]

    def of_workers(self, workers: NDArray[Any]) -> _SigmaPosterior:
        return _SigmaPosterior(self.shares[workers], self.participation[workers])

    def cavity_component_weights(self, likelihoods: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return component weights, [report, component], of the cavity distribution.

        `likelihoods`: of each report by component, indexed [report, component].
        """
        likelihood = (1 - self.participation) * likelihoods[:, :1] + self.participation * likelihoods[:, 1:]
        others = self.shares / np.maximum(likelihood, MIN_CAVITY_LIKELIHOOD)
        others = others / others.sum(axis=1, keepdims=True)
        answered = others * self.participation
        return np.column_stack((1 - answered.sum(axis=1), answered))


def _sigma_shares_and_participation(q: NDArray[np.float64], classes: ErrorClasses) -> _SigmaPosterior:
    split = classes.by_sigma_and_participation(q)
    shares = split.sum(axis=2)
    return _SigmaPosterior(shares, split @ classes.participations / np.maximum(shares, np.finfo(float).tiny))


class _NumpyWorkerLikelihood:
    """Accumulated log-likelihoods `total` of the workers' error classes, [worker, class], by numpy and scipy."""

    def __init__(self, sigma: _SigmaPosterior, classes: ErrorClasses) -> None:
        self.sigma, self.classes = sigma, classes
        self.total = np.zeros((len(sigma.shares), len(classes.mixing)))

    def messages_of_task_chunk(self, part: Block, known: NDArray[np.bool_]) -> _NumpyMessages:
        """Return the messages of a chunk of tasks; `known` marks gold tasks, shape (tasks,)."""
        return _NumpyMessages(part, known, self)

    def scores(self) -> NDArray[np.float64]:
        """Return log-likelihoods, indexed [worker, class]."""
        return self.total


class _NumpyMessages:
    """Messages of a chunk of tasks by numpy and scipy.

    Attributes:
        reports: of the chunk, sorted.
        sigma: posterior of the reports' workers, indexed [report, sigma].
        known: whether a task's truth is gold, shape (tasks,).
        components: P(symbol | component, truth), indexed [symbol, component, truth].
        messages: to tasks, indexed [report, truth].
    """

    def __init__(self, part: Block, known: NDArray[np.bool_], workers: _NumpyWorkerLikelihood) -> None:
        self.workers, self.known, self.components = workers, known, workers.classes.components
        self.reports = _SortedReports(part, len(workers.total), len(self.components))
        self.sigma = workers.sigma.of_workers(self.reports.worker)
        nothing = np.ones((len(self.reports.task), self.components.shape[1]))
        self.messages = self.reports.probabilities_by_truth(
            self.sigma.cavity_component_weights(nothing), self.components
        )

    def restrict_grid(self, kept: NDArray[np.int64]) -> None:
        """Restrict the grid to the truths with indices `kept`."""
        self.components, self.messages = np.ascontiguousarray(self.components[:, :, kept]), self.messages[:, kept]

    def first_log_product(self) -> NDArray[np.float64]:
        """Return the log-product of the first messages to tasks, indexed [task, truth]."""
        return self.reports.log_message_product(self.messages)

    def pass_messages(self, belief: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-product of messages to each task, given its posterior in the last pass; both [task, truth]."""
        self.messages = self.reports.probabilities_by_truth(
            self.sigma.cavity_component_weights(self._cavity_report_likelihoods(belief)), self.components
        )
        return self.reports.log_message_product(self.messages)

    def update_workers(self, belief: NDArray[np.float64]) -> None:
        """Add the cavity log-likelihoods of the chunk's reports, given posteriors [task, truth], to the workers'."""
        self.workers.total += self.reports.worker_sums @ np.log(
            self._cavity_report_likelihoods(belief) @ self.workers.classes.mixing.T
        )

    def _cavity_report_likelihoods(self, belief: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.reports.component_probabilities(
            _cavity_distribution(belief, self.messages, self.reports.task, self.known), self.components
        )


def _worker_likelihood(
    sigma: _SigmaPosterior, classes: ErrorClasses, *, compiled: bool
) -> _NumpyWorkerLikelihood | NumbaWorkerLikelihood:
    if not compiled:
        return _NumpyWorkerLikelihood(sigma, classes)
    from crowdveil.em.kernels.numba_messages import NumbaWorkerLikelihood

    return NumbaWorkerLikelihood(
        sigma, classes.components, classes.mixing, (MIN_PROBABILITY, MIN_CAVITY_LIKELIHOOD, FACTORS_PER_LOG)
    )


def _propagate_chunk(
    part: Block,
    gold: NDArray[np.float64],
    null_scores: NDArray[np.float64],
    points: NDArray[np.float64],
    priors: Priors,
    passes: int,
    workers: _NumpyWorkerLikelihood | NumbaWorkerLikelihood,
) -> NDArray[np.float64]:
    """Return posteriors of a chunk of tasks, [task, truth], and add its reports to the workers' likelihoods."""
    known = ~np.isnan(gold)
    masses = point_masses(points, gold[known])
    messages = workers.messages_of_task_chunk(part, known)
    scores = null_scores + messages.first_log_product()
    posterior = priors.posterior_from_log_likelihoods(scores)
    posterior[known] = masses
    kept = np.flatnonzero(posterior.max(axis=0) > NEGLIGIBLE_PROBABILITY)
    messages.restrict_grid(kept)
    restricted = Priors(priors.family[:, kept], priors.weights)
    belief, scores, null_scores = posterior[:, kept], scores[:, kept], null_scores[:, kept]
    for _ in range(passes):
        scores = DAMPING * scores + (1 - DAMPING) * (null_scores + messages.pass_messages(belief))
        belief = restricted.posterior_from_log_likelihoods(scores)
        belief[known] = masses[:, kept]
    messages.update_workers(belief)
    posterior = np.zeros_like(posterior)
    posterior[:, kept] = belief
    return posterior


def _cavity_distribution(
    belief: NDArray[np.float64], messages: NDArray[np.float64], task: NDArray[np.int64], known: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return each report's cavity distribution of its task, [report, truth]; gold tasks keep theirs."""
    divided = belief[task] / messages
    divided[known[task]] = belief[task[known[task]]]
    return np.asarray(divided)
