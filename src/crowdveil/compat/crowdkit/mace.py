"""MACE (Hovy et al., NAACL 2013) with the interface and the start of crowd-kit.

P(answer y of worker i | truth z) = s_i theta_i(y) + (1 - s_i) [y = z] with a probability s_i of spamming.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from rich.progress import track
from scipy.special import digamma

from crowdveil.compat.crowdkit.answer_table import COLUMNS, AnswerTable, FitsAndPredicts, read_answers
from crowdveil.em.kernels.interface import ScoreTables
from crowdveil.errors import SettingsError

if TYPE_CHECKING:
    import pandas as pd

STRATEGY_PRIOR = 10.0
"""Dirichlet parameter of each label in a spamming distribution, under "vb"."""


class MaceStep(NamedTuple):
    """Posterior [task, label]; expected spammed and known answers [worker, 2], spammed labels [worker, label]."""

    log_likelihood: float
    posterior: NDArray[np.float64]
    knowing: NDArray[np.float64]
    strategy: NDArray[np.float64]


@dataclass(eq=False)
class MACE(FitsAndPredicts):
    """The best of several runs of (variational) EM by marginal likelihood; each run has a start of its own.

    Attributes:
        n_restarts: number of runs.
        n_iter: iterations of each run.
        method: "vb" (variational) or "em".
        smoothing: not used, as in crowd-kit; `smoothing_`, 0.01 / labels, is.
        default_noise: the start is uniform on [1, 2 + default_noise], normalized.
        alpha, beta: parameters of the Beta prior of spamming and knowing.
        random_state: seed of the first run; run r has the seed random_state + r.
        verbose: 0 shows no progress.
        labels_, probas_: label and posterior by task.
        spamming_: weights of spamming and knowing, [worker, 2], workers sorted.
        thetas_: spamming distributions, [worker, label], both sorted.
        theta_priors_, strategy_priors_: prior parameters under "vb".
    """

    n_restarts: int = 10
    n_iter: int = 50
    method: str = "vb"
    smoothing: float = 0.1
    default_noise: float = 0.5
    alpha: float = 0.5
    beta: float = 0.5
    random_state: int = 0
    verbose: int = 0
    labels_: "pd.Series" = field(init=False, repr=False)
    probas_: "pd.DataFrame" = field(init=False, repr=False)
    spamming_: NDArray[np.float64] = field(init=False, repr=False)
    thetas_: NDArray[np.float64] = field(init=False, repr=False)
    theta_priors_: NDArray[np.float64] = field(init=False, repr=False)
    strategy_priors_: NDArray[np.float64] = field(init=False, repr=False)
    smoothing_: float = field(init=False, repr=False)

    def fit(self, data: "pd.DataFrame") -> Self:
        """Fit to answers (columns task, worker, label).

        Raises:
            KeyError: a column is missing.
            ReportsError: a value is missing.
            SettingsError: no run, or another method.
        """
        if self.method not in ("vb", "em") or self.n_restarts < 1:
            raise SettingsError('method must be "vb" or "em" and n_restarts at least 1', value=self.method)
        table, best = read_answers(data[COLUMNS]), -np.inf
        workers, labels = len(table.workers), len(table.labels)
        self.smoothing_ = 0.01 / labels
        self.theta_priors_ = np.tile([self.alpha, self.beta], (workers, 1)).astype(float)
        self.strategy_priors_ = np.full((workers, labels), STRATEGY_PRIOR)
        for run in track(range(self.n_restarts), "Restarts", disable=not self.verbose):
            spamming, thetas = self._start(workers, labels, self.random_state + run)
            step = e_step(table, spamming, thetas)
            for _ in range(self.n_iter):
                spamming = self._normalized(step.knowing, self.theta_priors_)
                thetas = self._normalized(step.strategy, self.strategy_priors_)
                step = e_step(table, spamming, thetas)
            if step.log_likelihood > best:
                best, posterior = step.log_likelihood, step.posterior
                self.spamming_, self.thetas_ = spamming, thetas
        self.probas_, self.labels_ = table.by_task_and_label(posterior), table.label_series(posterior)
        return self

    def _start(self, workers: int, labels: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return random weights of spamming and knowing, and spamming distributions."""
        draws = [np.random.RandomState(seed).uniform(size=(workers, columns)) for columns in (2, labels)]
        spamming, thetas = (1 + (1 + self.default_noise) * draw for draw in draws)
        return spamming / spamming.sum(axis=1, keepdims=True), thetas / thetas.sum(axis=1, keepdims=True)

    def _normalized(self, counts: NDArray[np.float64], prior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each row's shares of expected counts; under "vb" exp(E log) of a Dirichlet distribution."""
        if self.method == "em":
            smooth = counts + self.smoothing_
            return np.asarray(smooth / smooth.sum(axis=1, keepdims=True))
        total = counts + prior
        return np.exp(digamma(total) - digamma(total.sum(axis=1, keepdims=True)))


def e_step(table: AnswerTable, spamming: NDArray[np.float64], thetas: NDArray[np.float64]) -> MaceStep:
    """Return the posterior under a uniform class prior, and expected counts."""
    workers, labels = thetas.shape
    spam, known = spamming[:, :1] * thetas, spamming[:, 1, None] * np.ones(labels)
    chance = np.repeat(spam[:, :, None], labels, axis=2)
    chance[:, np.arange(labels), np.arange(labels)] += known
    scores = np.log(np.maximum(chance, np.finfo(float).tiny)).reshape(-1, labels)
    tables = ScoreTables(scores, np.full((1, labels), -np.log(labels)))
    tasks = len(table.tasks)
    step = table.coded.confusion_step(tables, np.zeros(tasks, np.int64), np.full(tasks, -1, np.int64))
    sums = step.by_row.reshape(workers, labels, labels)
    right = np.einsum("wyy->wy", sums)
    knew = right * known / np.maximum(spam + known, np.finfo(float).tiny)
    strategy = sums.sum(axis=2) - knew
    return MaceStep(
        step.log_likelihood, step.posterior, np.stack((strategy.sum(axis=1), knew.sum(axis=1)), axis=1), strategy
    )
