"""GLAD (Whitehill et al., NIPS 2009) with the interface of crowd-kit: conjugate gradients in every M-step.

P(y_ij = z_j) = sigma(alpha_i exp(beta_j)), wrong labels uniform; alpha_i and beta_j have normal priors with variance 1.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from rich.progress import track
from scipy.optimize import minimize
from scipy.special import expit

from crowdveil.compat.crowdkit.answer_table import (
    COLUMNS,
    AnswerTable,
    FitsAndPredicts,
    load_pandas,
    read_answers,
    winners,
)
from crowdveil.em.kernels.numpy_backend import softmax
from crowdveil.errors import ReportsError, SettingsError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class GladProblem:
    """Answers and priors; `label` has the codes of `labels`, `names` are those labels.

    Points hold the abilities of all workers, then the log-easiness of all tasks.
    """

    table: AnswerTable
    names: "pd.Index"
    label: NDArray[np.int64]
    prior: NDArray[np.float64]
    centre: NDArray[np.float64]

    def log_rates(self, point: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the log-probabilities of the right and of one wrong label, shape (answers,) each."""
        product = self._alpha(point) * self._ease(point)
        return -np.logaddexp(0, -product), -np.logaddexp(0, product) - np.log(max(len(self.names) - 1, 1))

    def posterior(self, point: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the posterior, [task, label]."""
        right, wrong = self.log_rates(point)
        tasks, labels = len(self.table.tasks), len(self.names)
        scores = np.bincount(self.table.task * labels + self.label, right - wrong, tasks * labels).astype(float)
        with np.errstate(divide="ignore"):
            return softmax(scores.reshape(tasks, labels) + np.log(self.prior))[0]

    def expectation(self, point: NDArray[np.float64], share: NDArray[np.float64]) -> float:
        """Return Q, the expected log-likelihood plus log-prior; `share` is the posterior of each answer."""
        right, wrong = self.log_rates(point)
        away = point - self.centre
        log_prior = -0.5 * float(away @ away) - 0.5 * len(point) * np.log(2 * np.pi)
        return float((share * right + (1 - share) * wrong).sum()) + log_prior

    def gradient(self, point: NDArray[np.float64], share: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the gradient of `expectation` by the point."""
        alpha, ease = self._alpha(point), self._ease(point)
        slope = (share - expit(alpha * ease)) * ease
        by_worker = np.bincount(self.table.worker, slope, len(self.table.workers))
        by_task = np.bincount(self.table.task, slope * alpha, len(self.table.tasks))
        return np.concatenate((by_worker, by_task)) - (point - self.centre)

    def _alpha(self, point: NDArray[np.float64]) -> NDArray[np.float64]:
        return point[self.table.worker]

    def _ease(self, point: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.exp(point[len(self.table.workers) + self.table.task])


class Fitted(NamedTuple):
    """Last point, and the posterior [task, label] of the E-step before it."""

    point: NDArray[np.float64]
    posterior: NDArray[np.float64]


@dataclass(eq=False)
class GLAD(FitsAndPredicts):
    """Ability of each worker and easiness of each task.

    Attributes:
        n_iter: largest number of EM iterations.
        tol: stop when the loss rises by less than this.
        silent: show no progress.
        labels_priors: class prior by label; uniform over the labels of the data by default.
        alphas_priors_mean, betas_priors_mean: prior means by worker and by task, 1 by default.
        m_step_max_iter, m_step_tol: limits of the conjugate gradients.
        labels_, probas_: label and posterior by task.
        alphas_, betas_: ability by worker; logarithm of the easiness by task.
        loss_history_: Q / (answers times labels) after each iteration.
    """

    n_iter: int = 100
    tol: float = 1e-5
    silent: bool = True
    labels_priors: "pd.Series | None" = None
    alphas_priors_mean: "pd.Series | None" = None
    betas_priors_mean: "pd.Series | None" = None
    m_step_max_iter: int = 25
    m_step_tol: float = 1e-2
    labels_: "pd.Series" = field(init=False, repr=False)
    probas_: "pd.DataFrame" = field(init=False, repr=False)
    alphas_: "pd.Series" = field(init=False, repr=False)
    betas_: "pd.Series" = field(init=False, repr=False)
    loss_history_: list[float] = field(init=False, repr=False)

    def fit(self, data: "pd.DataFrame") -> Self:
        """Fit to answers (columns task, worker, label).

        Raises:
            KeyError: a column is missing.
            ReportsError: a value is missing, or a label has no prior.
            SettingsError: a worker or a task has no prior mean.
        """
        problem = self._problem(read_answers(data[COLUMNS]))
        point, posterior = self._run(problem)
        pandas, table, workers = load_pandas(), problem.table, len(problem.table.workers)
        self.probas_ = pandas.DataFrame(posterior, table.tasks.rename("task"), problem.names)
        best = problem.names.take(winners(posterior))
        self.labels_ = pandas.Series(best, table.tasks.rename("task"), name="agg_label")
        self.alphas_ = table.by_worker(point[:workers], "alpha")
        self.betas_ = pandas.Series(point[workers:], table.tasks.rename("task"), name="beta")
        return self

    def _run(self, problem: GladProblem) -> Fitted:
        """Alternate E-steps and M-steps."""
        table, point = problem.table, np.ones(len(problem.centre))
        posterior, loss = problem.posterior(point), -np.inf
        self.loss_history_ = []
        for _ in track(range(self.n_iter), "Iterations", disable=self.silent):
            posterior = problem.posterior(point)
            share = posterior[table.task, problem.label]
            point = minimize(
                lambda at, share=share: -problem.expectation(at, share),
                point,
                method="CG",
                jac=lambda at, share=share: -problem.gradient(at, share),
                tol=self.m_step_tol,
                options={"maxiter": self.m_step_max_iter},
            ).x
            before, loss = loss, problem.expectation(point, share) / (len(table) * len(problem.names))
            self.loss_history_.append(loss)
            if loss - before < self.tol:
                break
        return Fitted(point, posterior)

    def _problem(self, table: AnswerTable) -> GladProblem:
        """Return the answers with the priors."""
        names, label = table.labels.rename("label"), table.label.astype(np.int64)
        prior = np.full(len(names), 1 / len(names))
        if self.labels_priors is not None:
            names, prior = self.labels_priors.index.rename("label"), self.labels_priors.to_numpy(dtype=float)
            label = names.get_indexer(table.labels)[label]
            if (label < 0).any():
                raise ReportsError("a label is not in labels_priors", source="data")
        means = []
        for given, index in ((self.alphas_priors_mean, table.workers), (self.betas_priors_mean, table.tasks)):
            means.append(np.ones(len(index)) if given is None else given.reindex(index).to_numpy(dtype=float))
        centre = np.concatenate(means)
        if np.isnan(centre).any():
            raise SettingsError("every worker and task needs a prior mean, missing", value=int(np.isnan(centre).sum()))
        return GladProblem(table, names, label, prior, centre)
