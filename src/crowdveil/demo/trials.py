"""One trial of the demo: perturb a crowd with one mechanism, infer with every method that fits, score each."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.accounting import account
from crowdveil.channels.channel import Channel
from crowdveil.data.assignment import Assignment
from crowdveil.data.reports import Reports
from crowdveil.demo.devices import assignment_for, mechanisms_for
from crowdveil.demo.scenes import Scene
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
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb, perturb_cells

QUALITY_EPSILON = 3.0
FEWEST_REPORTS = 20
THROUGH = " + channel"
"""What is added to a method's name where the channel is in its likelihood."""
ROUGH = 1e-3
"""Posteriors are settled to a thousandth: enough for a table, and twice as quick as the default."""

VOTES: tuple[Estimator[Any, Any], ...] = (MajorityVote(), WeightedVote(max_steps=50, tolerance=ROUGH))
MODELS: tuple[Estimator[Any, Any], ...] = (
    MajorityVote(),
    PrivateDawidSkene(max_steps=50, tolerance=ROUGH),
    OneCoin(max_steps=200, tolerance=ROUGH),
    DawidSkene(max_steps=200, tolerance=ROUGH),
)
ORDERED = OrdinalDawidSkene(max_steps=200, tolerance=ROUGH)
MEAN = WeightedMean(max_steps=100, tolerance=ROUGH)

PROTECTED, ASSIGNED = "protected", "assigned"
"""Participation is hidden on every cell of the campaign, or among the assigned cells only: two different promises."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the demo's table; every epsilon is per cell unless it says worker.

    Attributes:
        scene: name of the crowd.
        mechanism: its name; "unprotected" where nothing was perturbed.
        asked, claimed, exact, exact_worker: epsilon asked for, claimed by its source, true per cell, true per worker.
        unit: what `asked`, `claimed` and `exact` speak of: one cell.
        participation: "protected", "assigned" (protected among the assigned cells only), "public", or "-" where nothing
            is protected.
        reason: why the exact epsilon is not the claimed one.
        method: the estimator, and whether the channel was in its likelihood.
        through_channel: whether it was.
        error, error_name: of the inferred truths against gold.
        unprotected: error of the same method on unprotected answers.
        constant, constant_error: the best public constant, chosen knowing gold, and its error.
        correlation: of inferred truths with gold.
        workers: correlation of worker qualities with those the same method finds in unprotected answers, over workers
            with at least FEWEST_REPORTS answers; None where a method tells nothing about workers.
        scored: gold tasks that were scored.
        reports: non-NULL reports received.
        steps, converged: how the fit ended.
    """

    scene: str
    mechanism: str
    asked: float | None
    claimed: float | None
    exact: float | None
    exact_worker: float | None
    unit: str
    participation: str
    reason: str
    method: str
    through_channel: bool
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
    """A crowd and what is done to it; `mechanism` None leaves the answers as they are.

    With an `assignment` only these cells report.
    """

    scene: Scene
    mechanism: Mechanism | None
    seed: int
    assignment: Assignment | None = None

    @property
    def title(self) -> str:
        """Say what is going on, for a progress bar."""
        done = "unprotected" if self.mechanism is None else f"{self.mechanism.name}, epsilon {self.mechanism.epsilon:g}"
        return f"{self.scene.name}: {done}"

    @property
    def participation(self) -> str:
        """What is hidden of who answered what, as `Row` says it."""
        if self.mechanism is None:
            return "-"
        return self.mechanism.participation if self.assignment is None else ASSIGNED

    @property
    def cells(self) -> int:
        """Cells that the busiest worker reports on."""
        answers = self.scene.answers
        if self.assignment is not None:
            return int(self.assignment.per_worker.max())
        return len(answers.tasks) if self.participation == PROTECTED else int(answers.per_worker.max())


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """Rows of one trial, and the worker qualities found by each method, by method name."""

    trial: Trial
    rows: tuple[Row, ...]
    qualities: dict[str, NDArray[np.float64]]


def trials_for(scene: Scene, seed: int) -> list[Trial]:
    """Return what is done to a crowd: every mechanism, and randomized response on assigned cells after the first."""
    response: list[Trial] = []
    others: list[Trial] = []
    for mechanism in mechanisms_for(scene):
        trial = Trial(scene=scene, mechanism=mechanism, seed=seed)
        (response if isinstance(mechanism, RandomizedResponse) else others).append(trial)
    assignment = assignment_for(scene)
    assigned = [] if assignment is None else [replace(trial, assignment=assignment) for trial in response]
    return response + assigned + others


def run(trial: Trial) -> Result:
    """Perturb, infer with every method that fits, and score."""
    scene, mechanism = trial.scene, trial.mechanism
    if isinstance(mechanism, MatrixFactorization):
        estimates, reports = (
            {"profile-sum": _profile_sum(scene.answers, mechanism, trial.seed)},
            len(scene.answers.workers),
        )
    else:
        received = scene.answers if mechanism is None else _received(trial, mechanism)
        estimates, reports = _infer(received, trial), len(received)
    return Result(
        trial=trial,
        rows=tuple(_row(trial, method, estimate, reports) for method, estimate in estimates.items()),
        qualities={method: estimate.workers.quality for method, estimate in estimates.items()},
    )


def _received(trial: Trial, mechanism: Mechanism) -> Reports:
    """Return what a curator gets in a simulation of all devices."""
    answers, source = trial.scene.answers, seeded(trial.seed)
    channel = mechanism.channel()
    if trial.assignment is not None and channel is not None:
        return perturb_cells(answers, channel, source, assignment=trial.assignment)
    if not isinstance(mechanism, MatrixFactorizationPublished):
        return perturb(answers, mechanism, source)
    tasks, workers = len(answers.tasks), len(answers.workers)
    dense = np.full((workers, tasks), mechanism.alphabet.size)
    dense[answers.worker, answers.task] = answers.value
    made_up = np.array([mechanism.perturb(row, source) for row in dense])
    task, worker = np.divmod(np.arange(tasks * workers), workers)
    return Reports(task, worker, made_up.T.ravel(), answers.tasks, answers.workers)


def _profile_sum(answers: Reports, mechanism: MatrixFactorization, seed: int) -> Estimate:
    tasks, workers = len(answers.tasks), len(answers.workers)
    summed = mechanism.simulate_sum(answers.task, answers.value, tasks, workers, seeded(seed))
    totals = mechanism.totals(summed, tasks=tasks, workers=workers)
    return FactorizationMean().fit(totals, tasks=answers.tasks, workers=answers.workers)


def _infer(reports: Reports, trial: Trial) -> dict[str, Estimate]:
    """Fit every method that suits the scene; with a channel those that put it into the likelihood as well.

    Blocks are nobody's answers, and assigned cells are told from others by the model only: both are read through the
    channel alone.
    """
    numeric = trial.scene.error == "mae"
    channel: Channel | None = None if trial.mechanism is None else trial.mechanism.channel()
    blocks = channel is not None and channel.report_alphabet != channel.alphabet
    plain: tuple[Estimator[Any, Any], ...] = (MEAN,) if numeric else VOTES
    found = {} if blocks or trial.assignment is not None else {method.name: method.fit(reports) for method in plain}
    if reports.alphabet is None:
        return found
    models = _models(trial.scene)
    if channel is None:
        return found | {method.name: method.fit(reports) for method in models if method.name not in found}
    if isinstance(trial.mechanism, Laplace) and numeric:
        models = models[:1]  # Every cell is a report here: gaussian would take longer than all the rest of the demo.
    readers = [method for method in models if method.capabilities.reads_label_blocks or not blocks]
    readers = [method for method in readers if method.capabilities.reads_channel_tables or trial.assignment is None]
    return found | {
        method.name + THROUGH: method.fit(reports, channel=channel, assignment=trial.assignment) for method in readers
    }


def _models(scene: Scene) -> tuple[Estimator[Any, Any], ...]:
    """Return the methods that read channels and suit the scene; numbers come with their public prior."""
    alphabet = scene.answers.alphabet
    if scene.error != "mae":
        return (*MODELS, ORDERED) if alphabet is not None and alphabet.ordered else MODELS
    mean, deviation = scene.prior or (None, None)
    settled = ROUGH if alphabet is None else ROUGH * float(np.ptp(alphabet.values))
    return MODELS[-1], Gaussian(prior_mean=mean, prior_deviation=deviation, max_steps=100, tolerance=settled)


def _row(trial: Trial, method: str, estimate: Estimate, reports: int) -> Row:
    scored = score(estimate, trial.scene.gold, error=trial.scene.error)
    mechanism = trial.mechanism
    cell = worker = None
    if mechanism is not None:
        cell, worker = account(mechanism, tasks=trial.cells)
    return Row(
        scene=trial.scene.name,
        mechanism="unprotected" if mechanism is None else mechanism.name,
        asked=None if mechanism is None else mechanism.epsilon,
        claimed=None if cell is None else cell.claimed,
        exact=None if cell is None else cell.exact,
        exact_worker=None if worker is None else worker.exact,
        unit="cell",
        participation=trial.participation,
        reason="" if cell is None else cell.reason,
        method=method,
        through_channel=estimate.channel_used,
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
    """Put beside every error the error of the same method on the unprotected answers, and compare worker qualities."""
    plain = {
        (result.trial.scene.name, row.method): (row.error, result.qualities[row.method])
        for result in results
        if result.trial.mechanism is None
        for row in result.rows
    }
    return tuple(replace(result, rows=tuple(_beside(result, row, plain) for row in result.rows)) for result in results)


def _beside(result: Result, row: Row, plain: dict[tuple[str, str], tuple[float, NDArray[np.float64]]]) -> Row:
    error, clean = plain[row.scene, _plain(row.method)]
    shown = has_enough_answers(result.trial.scene.answers, clean, result.qualities[row.method])
    workers = pearson(clean[shown], result.qualities[row.method][shown]) if shown.any() else None
    return replace(row, unprotected=error, workers=workers)


def has_enough_answers(answers: Reports, *qualities: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which workers have answers enough for their quality to be more than a guess, and a quality at all."""
    return (answers.per_worker >= FEWEST_REPORTS) & np.all([np.isfinite(quality) for quality in qualities], axis=0)


def pearson(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the correlation, 0 where either side is constant."""
    return float(np.corrcoef(a, b)[0, 1]) if len(a) > 1 and a.std() > 0 and b.std() > 0 else 0.0


def _plain(method: str) -> str:
    """Return the method that would be used on unprotected answers; sums of profiles estimate means."""
    return MEAN.name if method == FactorizationMean.name else method.removesuffix(THROUGH)
