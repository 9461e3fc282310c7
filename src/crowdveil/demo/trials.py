"""Trial of the demo: perturb a crowd with one mechanism, infer with every applicable method, and score."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.channel import Channel
from crowdveil.data.assignment import Assignment
from crowdveil.data.reports import Reports
from crowdveil.demo.crowds import DemoCrowd, demo_assignment, demo_mechanisms
from crowdveil.em.estimate import Estimate
from crowdveil.estimators import (
    DawidSkene,
    Estimator,
    Gaussian,
    MajorityVote,
    OneCoin,
    OrdinalDawidSkene,
    PrivateDawidSkene,
    WeightedMean,
    WeightedVote,
)
from crowdveil.estimators.factorization_mean import FactorizationMean
from crowdveil.evaluation.metrics import score
from crowdveil.mechanisms import (
    Laplace,
    MatrixFactorization,
    MatrixFactorizationPublished,
    Mechanism,
    RandomizedResponse,
)
from crowdveil.privacy.accounting import account
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb, perturb_cells

QUALITY_EPSILON = 3.0
MIN_ANSWERS = 20
CHANNEL_SUFFIX = " + channel"
"""Suffix of a method with the channel in its likelihood."""
TOLERANCE = 1e-3
"""Convergence tolerance; it halves the run time of the default."""
POINTS_PER_STEP = 4
"""Grid points of truth per step of a scale; half of the default gives the same errors in half the time."""

VOTES: tuple[Estimator[Any, Any], ...] = (MajorityVote(), WeightedVote(max_steps=50, tolerance=TOLERANCE))
MODELS: tuple[Estimator[Any, Any], ...] = (
    MajorityVote(),
    PrivateDawidSkene(max_steps=50, tolerance=TOLERANCE),
    OneCoin(max_steps=200, tolerance=TOLERANCE),
    DawidSkene(max_steps=200, tolerance=TOLERANCE),
)
ORDERED = OrdinalDawidSkene(max_steps=200, tolerance=TOLERANCE)
MEAN = WeightedMean(max_steps=100, tolerance=TOLERANCE)

PROTECTED, ASSIGNED = "protected", "assigned"
"""Participation protected on every cell, or on the assigned cells only."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """Row of the table; every epsilon is per cell unless it is named worker.

    Attributes:
        crowd: name of the crowd.
        mechanism: its name; "unprotected" for unperturbed answers.
        requested: epsilon in the settings.
        claimed: epsilon by the mechanism's source.
        exact, exact_worker: exact epsilon per cell and per worker.
        unit: unit of `requested`, `claimed` and `exact`: cell.
        participation: "protected", "assigned" (protected on the assigned cells only), "public", or "-" for
            unperturbed answers.
        reason: reason for an exact epsilon above the claimed one.
        method: estimator, with `CHANNEL_SUFFIX` if the channel is in its likelihood.
        channel_used: whether the channel is in the likelihood.
        error, error_name: error of the inferred truths, and its measure.
        unprotected: error of the same method on unprotected answers.
        constant, constant_error: best constant for the gold truths, and its error.
        correlation: correlation of inferred truths and gold.
        workers: correlation of worker qualities from reports and from unprotected answers, over workers with at least
            `MIN_ANSWERS` answers; None without worker qualities.
        scored: number of scored gold tasks.
        reports: number of reports other than NULL.
        steps, converged: steps of the fit, and whether it converged.
    """

    crowd: str
    mechanism: str
    requested: float | None
    claimed: float | None
    exact: float | None
    exact_worker: float | None
    unit: str
    participation: str
    reason: str
    method: str
    channel_used: bool
    error: float
    error_name: str
    unprotected: float
    constant: str
    constant_error: float
    correlation: float
    workers: float | None
    scored: int
    reports: int
    steps: int
    converged: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """Crowd with a mechanism (None: unprotected answers), a public assignment (None: every cell reports) and models
    (None: those of the demo)."""

    crowd: DemoCrowd
    mechanism: Mechanism | None
    seed: int
    assignment: Assignment | None = None
    models: tuple[Estimator[Any, Any], ...] | None = None

    @property
    def title(self) -> str:
        """Title in the progress bar."""
        done = "unprotected" if self.mechanism is None else f"{self.mechanism.name}, epsilon {self.mechanism.epsilon:g}"
        return f"{self.crowd.name}: {done}"

    @property
    def participation(self) -> str:
        """Participation, as in `Row`."""
        if self.mechanism is None:
            return "-"
        return self.mechanism.participation if self.assignment is None else ASSIGNED

    @property
    def cells(self) -> int:
        """Largest number of reported cells of a worker."""
        answers = self.crowd.answers
        if self.assignment is not None:
            return int(self.assignment.per_worker.max())
        return len(answers.tasks) if self.participation == PROTECTED else int(answers.per_worker.max())


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """Rows of one trial, and worker qualities by method."""

    trial: Trial
    rows: tuple[Row, ...]
    qualities: dict[str, NDArray[np.float64]]


def trials_for(crowd: DemoCrowd, seed: int) -> list[Trial]:
    """Return a trial for every mechanism; randomized response also on assigned cells."""
    response: list[Trial] = []
    others: list[Trial] = []
    for mechanism in demo_mechanisms(crowd):
        trial = Trial(crowd=crowd, mechanism=mechanism, seed=seed)
        (response if isinstance(mechanism, RandomizedResponse) else others).append(trial)
    assignment = demo_assignment(crowd)
    assigned = [] if assignment is None else [replace(trial, assignment=assignment) for trial in response]
    return response + assigned + others


def run(trial: Trial) -> Result:
    """Perturb, infer with every applicable method, and score."""
    crowd, mechanism = trial.crowd, trial.mechanism
    if isinstance(mechanism, MatrixFactorization):
        estimates, reports = (
            {"factorization-mean": _factorization_mean(crowd.answers, mechanism, trial.seed)},
            len(crowd.answers.workers),
        )
    else:
        received = crowd.answers if mechanism is None else _received(trial, mechanism)
        estimates, reports = _estimates(received, trial), len(received)
    return Result(
        trial=trial,
        rows=tuple(_row(trial, method, estimate, reports) for method, estimate in estimates.items()),
        qualities={method: estimate.workers.quality for method, estimate in estimates.items()},
    )


def _received(trial: Trial, mechanism: Mechanism) -> Reports:
    """Return the simulated reports of all devices."""
    answers, source = trial.crowd.answers, seeded(trial.seed)
    channel = mechanism.channel()
    if trial.assignment is not None and channel is not None:
        return perturb_cells(answers, channel, source, assignment=trial.assignment)
    if not isinstance(mechanism, MatrixFactorizationPublished):
        return perturb(answers, mechanism, source)
    tasks, workers = len(answers.tasks), len(answers.workers)
    dense = np.full((workers, tasks), mechanism.alphabet.size)
    dense[answers.worker, answers.task] = answers.value
    drawn_reports = np.array([mechanism.perturb(row, source) for row in dense])
    task, worker = np.divmod(np.arange(tasks * workers), workers)
    return Reports(task, worker, drawn_reports.T.ravel(), answers.tasks, answers.workers)


def _factorization_mean(answers: Reports, mechanism: MatrixFactorization, seed: int) -> Estimate:
    tasks, workers = len(answers.tasks), len(answers.workers)
    summed = mechanism.simulate_sum(answers.task, answers.value, tasks, workers, seeded(seed))
    totals = mechanism.totals(summed, tasks=tasks, workers=workers)
    return FactorizationMean().fit(totals, tasks=answers.tasks, workers=answers.workers)


def _estimates(reports: Reports, trial: Trial) -> dict[str, Estimate]:
    """Return the estimate of every applicable method, without and with the channel in the likelihood.

    Blocks of labels and assigned cells need the channel: they are not read without it.
    """
    numeric = trial.crowd.error == "mae"
    channel: Channel | None = None if trial.mechanism is None else trial.mechanism.channel()
    blocks = channel is not None and channel.report_alphabet != channel.alphabet
    plain, models = _methods(trial, numeric=numeric)
    found = {} if blocks or trial.assignment is not None else {method.name: method.fit(reports) for method in plain}
    if reports.alphabet is None:
        return found
    if channel is None:
        return found | {method.name: method.fit(reports) for method in models if method.name not in found}
    if isinstance(trial.mechanism, Laplace) and numeric and trial.models is None:
        models = models[:1]  # Every cell has a report: gaussian would need most of the run time.
    readers = [method for method in models if method.capabilities.reads_label_blocks or not blocks]
    readers = [method for method in readers if method.capabilities.reads_channel_tables or trial.assignment is None]
    return found | {
        method.name + CHANNEL_SUFFIX: method.fit(reports, channel=channel, assignment=trial.assignment)
        for method in readers
    }


def _methods(trial: Trial, *, numeric: bool) -> tuple[tuple[Estimator[Any, Any], ...], tuple[Estimator[Any, Any], ...]]:
    """Return the methods that read reports as answers, and those that read them through the channel."""
    if trial.models is None:
        return (MEAN,) if numeric else VOTES, _models(trial.crowd)
    readers = tuple(method for method in trial.models if method.capabilities.reads_channel)
    return tuple(method for method in trial.models if method not in readers), readers


def _models(crowd: DemoCrowd) -> tuple[Estimator[Any, Any], ...]:
    """Return the channel-aware methods for the answers of a crowd, with the public prior of numbers."""
    alphabet = crowd.answers.alphabet
    if crowd.error != "mae":
        return (*MODELS, ORDERED) if alphabet is not None and alphabet.ordered else MODELS
    mean, deviation = crowd.prior or (None, None)
    tolerance = TOLERANCE if alphabet is None else TOLERANCE * float(np.ptp(alphabet.values))
    gaussian = Gaussian(
        prior_mean=mean,
        prior_deviation=deviation,
        max_steps=100,
        tolerance=tolerance,
        points_per_step=POINTS_PER_STEP,
    )
    return MODELS[-1], gaussian


def _row(trial: Trial, method: str, estimate: Estimate, reports: int) -> Row:
    scored = score(estimate, trial.crowd.gold, error=trial.crowd.error)
    mechanism = trial.mechanism
    cell = worker = None
    if mechanism is not None:
        cell, worker = account(mechanism, tasks=trial.cells)
    return Row(
        crowd=trial.crowd.name,
        mechanism="unprotected" if mechanism is None else mechanism.name,
        requested=None if mechanism is None else mechanism.epsilon,
        claimed=None if cell is None else cell.claimed,
        exact=None if cell is None else cell.exact,
        exact_worker=None if worker is None else worker.exact,
        unit="cell",
        participation=trial.participation,
        reason="" if cell is None else cell.reason,
        method=method,
        channel_used=estimate.channel_used,
        error=scored.error,
        error_name=scored.error_name,
        unprotected=scored.error,
        constant=scored.constant,
        constant_error=scored.baseline,
        correlation=scored.correlation,
        workers=None,
        scored=scored.scored,
        reports=reports,
        steps=estimate.steps,
        converged=estimate.converged,
    )


def compare_with_unprotected(results: list[Result]) -> tuple[Result, ...]:
    """Return the results with errors and worker qualities of the same method on unprotected answers."""
    plain = {
        (result.trial.crowd.name, row.method): (row.error, result.qualities[row.method])
        for result in results
        if result.trial.mechanism is None
        for row in result.rows
    }
    return tuple(
        replace(result, rows=tuple(_with_unprotected(result, row, plain) for row in result.rows)) for result in results
    )


def _with_unprotected(result: Result, row: Row, plain: dict[tuple[str, str], tuple[float, NDArray[np.float64]]]) -> Row:
    error, clean = plain[row.crowd, _unprotected_method(row.method)]
    shown = has_enough_answers(result.trial.crowd.answers, clean, result.qualities[row.method])
    workers = pearson(clean[shown], result.qualities[row.method][shown]) if shown.any() else None
    return replace(row, unprotected=error, workers=workers)


def has_enough_answers(answers: Reports, *qualities: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return a mask of the workers with at least `MIN_ANSWERS` answers and finite qualities, shape (workers,)."""
    return (answers.per_worker >= MIN_ANSWERS) & np.all([np.isfinite(quality) for quality in qualities], axis=0)


def pearson(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the correlation; 0 if either side is constant."""
    return float(np.corrcoef(a, b)[0, 1]) if len(a) > 1 and a.std() > 0 and b.std() > 0 else 0.0


def _unprotected_method(method: str) -> str:
    """Return the method for unprotected answers; the weighted mean for sums."""
    return MEAN.name if method == FactorizationMean.name else method.removesuffix(CHANNEL_SUFFIX)
