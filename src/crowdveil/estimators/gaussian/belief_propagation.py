"""Messages between workers and tasks: what a report says of its task, and of its worker, when it is not counted twice.

Belief propagation on the graph of reports. Report y of worker i on task j tells the task
m(mu) = sum_c q_ij(c) R_c[mu, y], q_ij being what all other tasks say of the worker, and tells the worker
L(c) = sum_mu gamma_ij(mu) R_c[mu, y], gamma_ij being what all other workers say of the task. Either is the belief with
the opposite message taken out, q_ij = q_i / L and gamma_ij = gamma_j / m, so no message is stored between steps. Exact
where the graph has no loops; with many weak reports what loops add vanishes.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from crowdveil.data.reports import Block
from crowdveil.em.observation_model import ObservationModel
from crowdveil.estimators.gaussian import discretization as grid
from crowdveil.estimators.gaussian.error_classes import Classes

CHUNK_REPORTS = 4096
PASSES = 2
"""How often messages are exchanged within one step."""
DAMPING = 0.25
"""Share of the scores before an exchange that is kept: without it they swing around where they settle."""
FLOOR, RUN = 1e-35, 8
"""Least probability of a report, and how many are multiplied before a logarithm is taken."""
LEAST = 1e-9
"""By how much one report may speak against a kind of worker when it is taken out: beliefs that have not settled yet may
not hold it."""
NEGLIGIBLE = 1e-13
"""Truths that no task of a part believes in by more than this are left out."""


class Priors(NamedTuple):
    """A mixture of priors of truths: probabilities, indexed [prior, truth], and the weight of each, shape (priors,)."""

    family: NDArray[np.float64]
    weights: NDArray[np.float64]

    def beliefs(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return posteriors from log-likelihoods, both indexed [task, truth]."""
        likelihood = np.exp(scores - scores.max(axis=1, keepdims=True))
        evidence = np.maximum(likelihood @ self.family.T, np.finfo(float).tiny)
        posterior = likelihood * ((self.weights / evidence) @ self.family)
        return np.asarray(posterior / posterior.sum(axis=1, keepdims=True))


class Beliefs(NamedTuple):
    """What tasks and workers were told.

    `posterior`, indexed [task, truth]. `worker_scores`, indexed [worker, class]: log-likelihood of all of a worker's
    cells.
    """

    posterior: NDArray[np.float64]
    worker_scores: NDArray[np.float64]


def tell(
    part: Block,
    gold: NDArray[np.float64],
    q: NDArray[np.float64],
    classes: Classes,
    priors: Priors,
    *,
    learned: bool = True,
    compiled: bool = False,
) -> Beliefs:
    """Let workers and tasks of a part of the campaign tell each other what they know.

    Args:
        part: reports.
        gold: known truths, shape (tasks,); nan where unknown.
        q: what is believed of each worker, indexed [worker, class]; rows sum to 1.
        classes: P(report | truth) for every kind of worker.
        priors: what is believed of truths at large.
        learned: whether `q` was learned from these reports, so that each must be taken out of its own message.
        compiled: from `use_compiled`.
    """
    passes = PASSES if learned else 0
    silent, views = _silence(part, q, classes), _views(q, classes)
    hearing = _hearing(views, classes, compiled=compiled)
    posterior = np.concatenate(
        [
            _tell(part.part(tasks), gold[tasks], silent[tasks], classes.points, priors, passes, hearing)
            for tasks in _pieces(part.pointers)
        ]
    )
    return Beliefs(posterior, hearing.scores() + _silent_scores(part, posterior, len(q), classes))


def _pieces(pointers: NDArray[np.int64]) -> Iterator[slice]:
    """Cut tasks into runs of some thousand reports."""
    first = 0
    while first < len(pointers) - 1:
        last = int(np.searchsorted(pointers, pointers[first] + CHUNK_REPORTS, side="right")) - 1
        stop = min(max(first + 1, last), first + CHUNK_REPORTS)
        yield slice(first, stop)
        first = stop


def _silence(part: Block, q: NDArray[np.float64], classes: Classes) -> NDArray[np.float64]:
    """Return what cells that send a silent NULL tell about the truth, indexed [task, truth]."""
    model, told = classes.model, np.zeros((part.tasks, len(classes.points)))
    of_task = model.task_group[part.first : part.stop]
    for silent, table in enumerate(classes.silence):
        if np.ptp(table, axis=1).max() > NEGLIGIBLE:
            logs = np.log(np.maximum(q @ table, FLOOR))
            whole = [model.silent_workers(group)[:, silent] @ logs for group in range(model.task_groups)]
            told += np.array(whole)[of_task] - _standing_in(part, model, silent, len(q)) @ logs
    return told


def _silent_scores(part: Block, posterior: NDArray[np.float64], workers: int, classes: Classes) -> NDArray[np.float64]:
    """Return what cells that send a silent NULL tell about their workers, indexed [worker, class]."""
    model, told = classes.model, np.zeros((workers, len(classes.mixing)))
    of_group = _adding(model.task_group[part.first : part.stop], model.task_groups)
    for silent, table in enumerate(classes.silence):
        logs = np.log(np.maximum(posterior @ table.T, FLOOR))
        asked = np.equal(model.choice, silent).astype(float) @ (of_group @ logs)
        told += asked[model.worker_group] - _standing_in(part, model, silent, workers).T @ logs
    return told


def _standing_in(part: Block, model: ObservationModel, silent: int, workers: int) -> Any:
    """Return 1 where a listed report stands in place of a channel's silent NULL, sparse, indexed [task, worker]."""
    held = model.silent_of[part.value] == silent
    cells = (part.task[held], part.worker[held])
    return csr_array((np.ones(int(held.sum())), cells), shape=(part.tasks, workers))


class _Cells:
    """Reports of a few tasks, sorted by symbol and task, so that equal symbols are one product of matrices."""

    def __init__(self, part: Block, workers: int, symbols: int) -> None:
        order = np.lexsort((part.task, part.value))
        self.task, self.worker, value = part.task[order], part.worker[order], part.value[order]
        bounds = np.searchsorted(value, np.arange(symbols + 1))
        self.by_symbol = [(y, slice(*bounds[y : y + 2])) for y in range(symbols) if bounds[y] < bounds[y + 1]]
        place, key = np.arange(len(order)), value.astype(np.int64) * part.tasks + self.task
        fresh = np.flatnonzero(np.diff(key, prepend=-1))
        self.runs = np.flatnonzero((place - np.repeat(fresh, np.diff(fresh, append=len(order)))) % RUN == 0)
        self.to_task = _adding(self.task[self.runs], part.tasks)
        self.to_worker = _adding(self.worker, workers)

    def of_truth(self, weights: NDArray[np.float64], parts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sum_k weights[report, k] parts[y, k, mu], indexed [report, truth]."""
        found = np.empty((len(self.task), parts.shape[2]))
        for y, held in self.by_symbol:
            np.matmul(weights[held], parts[y], out=found[held])
        return np.maximum(found, FLOOR, out=found)

    def of_worker(self, weights: NDArray[np.float64], parts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sum_mu weights[report, mu] parts[y, k, mu], indexed [report, part]."""
        found = np.empty((len(self.task), parts.shape[1]))
        for y, held in self.by_symbol:
            np.matmul(weights[held], parts[y].T, out=found[held])
        return np.maximum(found, FLOOR, out=found)

    def scores(self, messages: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of the logarithms of each task's messages, indexed [task, truth]."""
        if not len(self.runs):
            return np.zeros((self.to_task.shape[0], messages.shape[1]))
        return np.asarray(self.to_task @ np.log(np.multiply.reduceat(messages, self.runs, axis=0)))


def _adding(row: NDArray[Any], rows: int) -> Any:
    """Return the matrix that adds entry k of a table to row `row[k]`."""
    return csr_array((np.ones(len(row)), (row, np.arange(len(row)))), shape=(rows, len(row)))


class _Views(NamedTuple):
    """What is believed of workers, class by sigma: shares, and participation given sigma; indexed [worker, sigma]."""

    shares: NDArray[np.float64]
    participation: NDArray[np.float64]

    def of(self, workers: NDArray[Any]) -> "_Views":
        return _Views(self.shares[workers], self.participation[workers])

    def without(self, told: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weights of the parts, [report, part], when what a report told (by part) is not counted."""
        likelihood = (1 - self.participation) * told[:, :1] + self.participation * told[:, 1:]
        others = self.shares / np.maximum(likelihood, LEAST)
        others = others / others.sum(axis=1, keepdims=True)
        answered = others * self.participation
        return np.column_stack((1 - answered.sum(axis=1), answered))


def _views(q: NDArray[np.float64], classes: Classes) -> _Views:
    split = classes.split(q)
    shares = split.sum(axis=2)
    return _Views(shares, split @ classes.participations / np.maximum(shares, np.finfo(float).tiny))


class _Talk(Protocol):
    """Reports of a few tasks and what passes between them and their workers."""

    def restrict(self, kept: NDArray[np.int64]) -> None:
        """Go on with some truths only."""

    def first(self) -> NDArray[np.float64]:
        """Return the logarithms of what workers say of tasks before they hear of any, indexed [task, truth]."""

    def pass_messages(self, belief: NDArray[np.float64]) -> NDArray[np.float64]:
        """Tell workers what is believed of tasks, [task, truth]; return the logarithms of what they then say."""

    def update_workers(self, belief: NDArray[np.float64]) -> None:
        """Add what is believed of tasks, [task, truth], to what kinds of workers heard."""


class _Hearing(Protocol):
    """What reports have said of their workers so far."""

    def message_state(self, part: Block, known: NDArray[np.bool_]) -> _Talk:
        """Return the messages about a few tasks; `known` says whose truth is, shape (tasks,)."""

    def scores(self) -> NDArray[np.float64]:
        """Return log-likelihoods, indexed [worker, class]."""


class _PlainHearing:
    """By numpy and scipy; `total` holds log-likelihoods, indexed [worker, class]."""

    def __init__(self, views: _Views, classes: Classes) -> None:
        self.views, self.classes = views, classes
        self.total = np.zeros((len(views.shares), len(classes.mixing)))

    def message_state(self, part: Block, known: NDArray[np.bool_]) -> "_PlainTalk":
        return _PlainTalk(part, known, self)

    def scores(self) -> NDArray[np.float64]:
        return self.total


class _PlainTalk:
    """By numpy and scipy.

    Attributes:
        cells: the reports.
        views: what is believed of their workers, indexed [report, sigma].
        known: whether a task's truth is, shape (tasks,).
        parts: P(symbol) by part, indexed [symbol, part, truth].
        messages: to tasks, indexed [report, truth].
    """

    def __init__(self, part: Block, known: NDArray[np.bool_], hearing: _PlainHearing) -> None:
        self.hearing, self.known, self.parts = hearing, known, hearing.classes.parts
        self.cells = _Cells(part, len(hearing.total), len(self.parts))
        self.views = hearing.views.of(self.cells.worker)
        nothing = np.ones((len(self.cells.task), self.parts.shape[1]))
        self.messages = self.cells.of_truth(self.views.without(nothing), self.parts)

    def restrict(self, kept: NDArray[np.int64]) -> None:
        self.parts, self.messages = np.ascontiguousarray(self.parts[:, :, kept]), self.messages[:, kept]

    def first(self) -> NDArray[np.float64]:
        return self.cells.scores(self.messages)

    def pass_messages(self, belief: NDArray[np.float64]) -> NDArray[np.float64]:
        self.messages = self.cells.of_truth(self.views.without(self._told(belief)), self.parts)
        return self.cells.scores(self.messages)

    def update_workers(self, belief: NDArray[np.float64]) -> None:
        self.hearing.total += self.cells.to_worker @ np.log(self._told(belief) @ self.hearing.classes.mixing.T)

    def _told(self, belief: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.cells.of_worker(_without(belief, self.messages, self.cells.task, self.known), self.parts)


def _hearing(views: _Views, classes: Classes, *, compiled: bool) -> _Hearing:
    if not compiled:
        return _PlainHearing(views, classes)
    from crowdveil.em.kernels.numba_messages import NumbaWorkerLikelihood

    return NumbaWorkerLikelihood(views, classes.parts, classes.mixing, (FLOOR, LEAST, RUN))


def _tell(
    part: Block,
    gold: NDArray[np.float64],
    silent: NDArray[np.float64],
    points: NDArray[np.float64],
    priors: Priors,
    passes: int,
    hearing: _Hearing,
) -> NDArray[np.float64]:
    """Exchange messages about a few tasks; return posteriors, [task, truth], and add to what workers heard."""
    known = ~np.isnan(gold)
    masses = grid.point_masses(points, gold[known])
    messages = hearing.message_state(part, known)
    scores = silent + messages.first()
    posterior = priors.beliefs(scores)
    posterior[known] = masses
    kept = np.flatnonzero(posterior.max(axis=0) > NEGLIGIBLE)
    messages.restrict(kept)
    few = Priors(priors.family[:, kept], priors.weights)
    belief, scores, silent = posterior[:, kept], scores[:, kept], silent[:, kept]
    for _ in range(passes):
        scores = DAMPING * scores + (1 - DAMPING) * (silent + messages.pass_messages(belief))
        belief = few.beliefs(scores)
        belief[known] = masses[:, kept]
    messages.update_workers(belief)
    posterior = np.zeros_like(posterior)
    posterior[:, kept] = belief
    return posterior


def _without(
    belief: NDArray[np.float64], messages: NDArray[np.float64], task: NDArray[np.int64], known: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return what each report's task is believed to be but for that report; known truths need no report."""
    divided = belief[task] / messages
    divided[known[task]] = belief[task[known[task]]]
    return np.asarray(divided)
