"""One trial of the demo: perturb a crowd with one mechanism, infer with every method that fits, score each."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.accounting import account
from crowdveil.channel import Channel
from crowdveil.demo.scenes import Scene
from crowdveil.design import design, normal_answers
from crowdveil.errors import SettingsError
from crowdveil.estimate import Estimate
from crowdveil.estimators import (
    DawidSkene,
    Estimator,
    MajorityVote,
    OneCoin,
    PrivateDawidSkene,
    WeightedMean,
    WeightedVote,
)
from crowdveil.estimators.profile_sum import ProfileSum
from crowdveil.labels import Alphabet, Categories, Scale
from crowdveil.mechanisms import (
    Designed,
    Laplace,
    MatrixFactorization,
    MatrixFactorizationPublished,
    Mechanism,
    OneLayer,
    QuantizedResponse,
    Question,
    RandomizedResponse,
    TwoLayer,
)
from crowdveil.metrics import score
from crowdveil.randomness import seeded
from crowdveil.reports import Reports
from crowdveil.simulate import perturb

EPSILONS = (1.0, 2.0, 3.0, 4.0, 5.0)
TABLE_EPSILONS = (1.0, 3.0, 5.0)
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
MEAN = WeightedMean(max_steps=100, tolerance=ROUGH)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the demo's table; every epsilon is per cell unless it says worker.

    Attributes:
        scene: name of the crowd.
        mechanism: its name; "unprotected" where nothing was perturbed.
        asked, claimed, exact, exact_worker: epsilon asked for, claimed by its source, true per cell, true per worker.
        unit: what `asked`, `claimed` and `exact` speak of: one cell.
        participation: "protected", "public", or "-" where nothing is protected.
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
    """A crowd and what is done to it; `mechanism` None leaves the answers as they are."""

    scene: Scene
    mechanism: Mechanism | None
    seed: int

    @property
    def title(self) -> str:
        """Say what is going on, for a progress bar."""
        done = "unprotected" if self.mechanism is None else f"{self.mechanism.name}, epsilon {self.mechanism.epsilon:g}"
        return f"{self.scene.name}: {done}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """Rows of one trial, and the worker qualities found by each method, by method name."""

    trial: Trial
    rows: tuple[Row, ...]
    qualities: dict[str, NDArray[np.float64]]


def mechanisms_for(scene: Scene) -> list[Mechanism]:
    """Return what the scene's answers are perturbed with: every mechanism that fits, each at several epsilons."""
    alphabet = scene.answers.alphabet
    assert alphabet is not None
    found: list[Mechanism] = [RandomizedResponse(alphabet=alphabet, epsilon=epsilon) for epsilon in EPSILONS]
    for epsilon in TABLE_EPSILONS:
        if isinstance(alphabet, Scale):
            found += _numeric_mechanisms(alphabet, epsilon, len(scene.answers.tasks))
        else:
            found += _label_mechanisms(alphabet, epsilon, len(scene.answers.tasks), int(scene.answers.per_worker.max()))
    kinds = list(dict.fromkeys((mechanism.name, mechanism.participation) for mechanism in found))
    return sorted(found, key=lambda mechanism: kinds.index((mechanism.name, mechanism.participation)))


def _label_mechanisms(alphabet: Categories, epsilon: float, tasks: int, busiest: int) -> list[Mechanism]:
    """Return the mechanisms of Li et al., participation public as there, and two-layer with NULL as in Sun et al."""
    one_layer = OneLayer(alphabet=alphabet, epsilon=epsilon, participation="public")
    published = _published_two_layer(alphabet, epsilon, "public", busiest)
    return [one_layer, *published, *_published_two_layer(alphabet, epsilon, "protected", tasks)]


def _published_two_layer(alphabet: Alphabet, epsilon: float, participation: Any, answers: int) -> list[Mechanism]:
    try:
        return [TwoLayer.published(alphabet=alphabet, epsilon=epsilon, participation=participation, answers=answers)]
    except SettingsError:  # Theorem 6.3 has no b <= 1 for so small an epsilon and so many labels.
        return []


def _numeric_mechanisms(scale: Scale, epsilon: float, tasks: int) -> list[Mechanism]:
    question = _expected(scale)
    return [
        Laplace(alphabet=scale, epsilon=epsilon),
        MatrixFactorizationPublished(alphabet=scale, epsilon=epsilon, tasks=tasks, dimensions=5, ridge=0.1),
        MatrixFactorization(alphabet=scale, epsilon=epsilon),
        QuantizedResponse.for_question(question, epsilon),
        Designed.from_channel(design(question, epsilon, null_apart=True)),
    ]


def _expected(scale: Scale) -> Question:
    """Return a public guess of what numbers are like: each half as often as the one below it, a tenth answered.

    Half the workers have a standard deviation of one step, half of five. Nothing is taken from the answers.
    """
    prior = 0.5 ** np.arange(1.0, scale.size + 1)
    answers = normal_answers(scale, (scale.step, 5 * scale.step))
    return Question(alphabet=scale, prior=prior / prior.sum(), answers=answers, participation_rate=0.1)


def run(trial: Trial) -> Result:
    """Perturb, infer with every method that fits, and score."""
    scene, mechanism = trial.scene, trial.mechanism
    if isinstance(mechanism, MatrixFactorization):
        estimates, reports = (
            {"profile-sum": _profile_sum(scene.answers, mechanism, trial.seed)},
            len(scene.answers.workers),
        )
    else:
        received = scene.answers if mechanism is None else _received(scene.answers, mechanism, trial.seed)
        channel = None if mechanism is None else mechanism.channel()
        estimates, reports = _infer(received, channel, numeric=scene.error == "mae"), len(received)
    return Result(
        trial=trial,
        rows=tuple(_row(trial, method, estimate, reports) for method, estimate in estimates.items()),
        qualities={method: estimate.workers.quality for method, estimate in estimates.items()},
    )


def _received(answers: Reports, mechanism: Mechanism, seed: int) -> Reports:
    """Return what a curator gets in a simulation of all devices."""
    source = seeded(seed)
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
    return ProfileSum().fit(totals, tasks=answers.tasks, workers=answers.workers)


def _infer(reports: Reports, channel: Channel | None, *, numeric: bool) -> dict[str, Estimate]:
    """Fit every method that suits the scene; with a channel also those that put it into the likelihood."""
    found: dict[str, Estimate] = {}
    if channel is not None and channel.report_alphabet != channel.alphabet:
        return {MODELS[-1].name + THROUGH: MODELS[-1].fit(reports, channel=channel)}  # Blocks are nobody's answers.
    if numeric:
        found[MEAN.name] = MEAN.fit(reports)
    else:
        found |= {method.name: method.fit(reports) for method in VOTES}
    if reports.alphabet is None:
        return found
    if channel is None:
        models = (MODELS[-1],) if numeric else MODELS[1:]
        return found | {method.name: method.fit(reports) for method in models}
    models = (MODELS[-1],) if numeric else MODELS
    return found | {method.name + THROUGH: method.fit(reports, channel=channel) for method in models}


def _row(trial: Trial, method: str, estimate: Estimate, reports: int) -> Row:
    scored = score(estimate, trial.scene.gold, error=trial.scene.error)
    mechanism = trial.mechanism
    cell = worker = None
    if mechanism is not None:
        answers = trial.scene.answers
        cells = len(answers.tasks) if mechanism.participation == "protected" else int(answers.per_worker.max())
        cell, worker = account(mechanism, tasks=cells)
    return Row(
        scene=trial.scene.name,
        mechanism="unprotected" if mechanism is None else mechanism.name,
        asked=None if mechanism is None else mechanism.epsilon,
        claimed=None if cell is None else cell.claimed,
        exact=None if cell is None else cell.exact,
        exact_worker=None if worker is None else worker.exact,
        unit="cell",
        participation="-" if mechanism is None else mechanism.participation,
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


def beside_unprotected(results: list[Result]) -> tuple[Result, ...]:
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
    shown = well_known(result.trial.scene.answers, clean, result.qualities[row.method])
    workers = pearson(clean[shown], result.qualities[row.method][shown]) if shown.any() else None
    return replace(row, unprotected=error, workers=workers)


def well_known(answers: Reports, *qualities: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which workers have answers enough for their quality to be more than a guess, and a quality at all."""
    return (answers.per_worker >= FEWEST_REPORTS) & np.all([np.isfinite(quality) for quality in qualities], axis=0)


def pearson(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the correlation, 0 where either side is constant."""
    return float(np.corrcoef(a, b)[0, 1]) if len(a) > 1 and a.std() > 0 and b.std() > 0 else 0.0


def _plain(method: str) -> str:
    """Return the method that would be used on unprotected answers; sums of profiles estimate means."""
    return MEAN.name if method == ProfileSum.name else method.removesuffix(THROUGH)
