"""Trials: one crowd, a mechanism, and methods that infer the truths; a scored row for each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from crowdveil.answers.reports import Reports
from crowdveil.em.estimate import Estimate
from crowdveil.em.estimator import Estimator
from crowdveil.estimators.factorization_mean import FactorizationMean
from crowdveil.estimators.weighted_mean import WeightedMean
from crowdveil.inference.scores.metrics import ErrorName, score
from crowdveil.mechanisms import MatrixFactorization, Mechanism
from crowdveil.privacy.accounting import account
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_reports
from crowdveil.simulate.perturbation import dense_reports

CHANNEL_SUFFIX = " + channel"
"""Suffix of a method with the channel in its likelihood."""
Methods = tuple[Estimator[Any, Any], ...]
UNPROTECTED = "unprotected"
"""In place of the name of a mechanism: unperturbed answers."""


def rounded_epsilon(requested: float | None) -> float | None:
    """Return an epsilon to six digits; None for None."""
    return None if requested is None else float(f"{requested:.6g}")


@dataclass(frozen=True, kw_only=True, eq=False)
class GoldCrowd:
    """Answers of a crowd with known truths.

    Attributes:
        name: unique short name.
        answers: unprotected answers.
        gold: known truth by task name.
        error: measure of error.
    """

    name: str
    answers: Reports
    gold: Mapping[Any, Any]
    error: ErrorName


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
        participation: "protected", "public", or "-" for unperturbed answers.
        reason: reason for an exact epsilon above the claimed one.
        method: estimator, with `CHANNEL_SUFFIX` if the channel is in its likelihood.
        channel_used: whether the channel is in the likelihood.
        error, error_name: error of the inferred truths, and its measure.
        unprotected: error of the same method on unprotected answers.
        constant, constant_error: best constant for the gold truths, and its error.
        correlation: correlation of inferred truths and gold.
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
    scored: int
    reports: int
    steps: int
    converged: bool

    @property
    def epsilon(self) -> float | None:
        """Requested epsilon to six digits: mechanisms with one request have the same, whatever they round."""
        return rounded_epsilon(self.requested)

    @property
    def estimator(self) -> str:
        """Name of the estimator, whether the channel is used or not."""
        return self.method.removesuffix(CHANNEL_SUFFIX) if self.channel_used else self.method


@dataclass(frozen=True, kw_only=True)
class NotRun:
    """Mechanism and method of which a comparison has no row.

    Attributes:
        crowd, mechanism, requested, method: as in `Row`; the method without `CHANNEL_SUFFIX`. Or "every ...", which has
            no requested epsilon.
        reason: why it was not run.
    """

    crowd: str
    mechanism: str
    requested: float | None
    method: str
    reason: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """Crowd with a mechanism, and the methods that infer its truths.

    Attributes:
        crowd: answers and gold.
        mechanism: of the devices; None for unprotected answers.
        seed: of the devices.
        plain: methods that read reports as answers.
        models: methods that read them through the channel, if there is one.
        left_out: reason for each method that is not run though it can be, by name.
    """

    crowd: GoldCrowd
    mechanism: Mechanism | None
    seed: int
    plain: Methods
    models: Methods
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def methods(self) -> Methods:
        """All methods; one that reads channels is listed once."""
        return (*self.models, *(one for one in self.plain if one.name not in {other.name for other in self.models}))

    @property
    def title(self) -> str:
        """Title in the progress bar."""
        done = UNPROTECTED if self.mechanism is None else f"{self.mechanism.name}, epsilon {self.mechanism.epsilon:g}"
        return f"{self.crowd.name}: {done}"

    @property
    def participation(self) -> str:
        """Participation, as in `Row`."""
        return "-" if self.mechanism is None else self.mechanism.participation

    @property
    def cells(self) -> int:
        """Largest number of reported cells of a worker."""
        answers = self.crowd.answers
        return len(answers.tasks) if self.participation == "protected" else int(answers.per_worker.max())


def run_trial(trial: Trial) -> list[Row]:
    """Perturb, infer with every applicable method, and score; `unprotected` is that of the reports."""
    answers, mechanism = trial.crowd.answers, trial.mechanism
    if isinstance(mechanism, MatrixFactorization):
        estimates = {FactorizationMean.name: _mean_of_sums(answers, mechanism, trial.seed)}
        count = len(answers.workers)
    else:
        reports = answers if mechanism is None else _simulated_reports(trial, mechanism)
        estimates, count = _estimates(reports, trial), len(reports)
    return [_scored_row(trial, method, estimate, count) for method, estimate in estimates.items()]


def _simulated_reports(trial: Trial, mechanism: Mechanism) -> Reports:
    """Return the simulated reports of all devices."""
    answers, source = trial.crowd.answers, seeded(trial.seed)
    if mechanism.sends == "numbers":
        return dense_reports(answers, mechanism, source)
    return perturb_reports(answers, mechanism, source)


def _mean_of_sums(answers: Reports, mechanism: MatrixFactorization, seed: int) -> Estimate:
    tasks, workers = len(answers.tasks), len(answers.workers)
    summed = mechanism.simulate_sum_of_reports(answers.task, answers.value, tasks, workers, seeded(seed))
    totals = mechanism.totals_in_answer_units(summed, tasks=tasks, workers=workers)
    return FactorizationMean().fit(totals, tasks=answers.tasks, workers=answers.workers)


def _estimates(reports: Reports, trial: Trial) -> dict[str, Estimate]:
    """Return the estimate of every method that is run, without and with the channel in the likelihood."""
    plain, models = _methods_that_run(trial)
    channel = None if trial.mechanism is None else trial.mechanism.channel()
    found = {method.name: method.fit(reports) for method in plain}
    return found | {method.name + CHANNEL_SUFFIX: method.fit(reports, channel=channel) for method in models}


def _methods_that_run(trial: Trial) -> tuple[Methods, Methods]:
    """Return the methods that read reports as answers, and those that read them through the channel."""
    left = {pair.method for pair in pairs_not_run(trial)}
    plain, models = (tuple(one for one in methods if one.name not in left) for methods in (trial.plain, trial.models))
    if trial.mechanism is not None and trial.mechanism.channel() is not None:
        return () if _sends_other_symbols(trial.mechanism) else plain, models
    return (*plain, *(one for one in models if one.name not in {other.name for other in plain})), ()


def pairs_not_run(trial: Trial) -> list[NotRun]:
    """Return the methods that a trial does not run, with the reasons; the mean of sums replaces all of them."""
    mechanism = trial.mechanism
    if mechanism is None:
        return []
    reasons = {one.name: trial.left_out[one.name] for one in trial.methods if one.name in trial.left_out}
    for method in trial.methods:
        reason = _reason_not_run(mechanism, method, through=method in trial.models)
        reasons |= {method.name: reason} if reason else {}
    return [
        NotRun(
            crowd=trial.crowd.name,
            mechanism=mechanism.name,
            requested=mechanism.epsilon,
            method=method,
            reason=reason,
        )
        for method, reason in reasons.items()
    ]


def _reason_not_run(mechanism: Mechanism, method: Estimator[Any, Any], *, through: bool) -> str:
    """Return why a method cannot read the reports of a mechanism, with the channel or without; empty if it can."""
    can = method.capabilities
    if mechanism.sends == "sum":
        return f"reports are summed, and {FactorizationMean.name} reads the sums"
    if mechanism.sends == "numbers" and (can.kind == "categorical" or can.needs_alphabet):
        return "reports are real numbers, and labels or a scale are needed"
    if not _sends_other_symbols(mechanism):
        return ""
    if not through:
        return "reports are sets or intervals, and would be read as answers"
    return "" if can.reads_label_blocks else "reports are sets or intervals, and not read as such"


def _sends_other_symbols(mechanism: Mechanism) -> bool:
    """Return whether reports are other symbols than answers, such as sets of labels."""
    channel = mechanism.channel()
    return channel is not None and channel.report_alphabet != channel.alphabet


def _scored_row(trial: Trial, method: str, estimate: Estimate, reports: int) -> Row:
    scored = score(estimate, trial.crowd.gold, error=trial.crowd.error)
    mechanism = trial.mechanism
    cell = worker = None
    if mechanism is not None:
        cell, worker = account(mechanism, tasks=trial.cells)
    return Row(
        crowd=trial.crowd.name,
        mechanism=UNPROTECTED if mechanism is None else mechanism.name,
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
        scored=scored.scored,
        reports=reports,
        steps=estimate.steps,
        converged=estimate.converged,
    )


def compare_with_unprotected(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return the rows with the error of the same method on unprotected answers; that of the mean for sums."""
    plain = {(row.crowd, row.method): row.error for row in rows if row.requested is None}

    def method_of(row: Row) -> str:
        return WeightedMean.name if row.method == FactorizationMean.name else row.estimator

    return tuple(replace(row, unprotected=plain[row.crowd, method_of(row)]) for row in rows)


def sampling_error_sentence(row: Row) -> str:
    """Return a sentence with two standard errors of the constant's error rate; empty for numbers, and without any."""
    if row.error_name != "error_rate" or not 0 < row.constant_error < 1:
        return ""
    two_errors = 2 * math.sqrt(row.constant_error * (1 - row.constant_error) / max(row.scored, 1))
    return f" With {row.scored:,} gold tasks, differences below about {two_errors:.2f} are within two standard errors."


def name_mechanisms(rows: Iterable[Row]) -> list[tuple[str, Row]]:
    """Return the rows other than unprotected ones, each after a name of its mechanism that tells it from others.

    A mechanism has its participation after its name if there are two. A further one of the same name and requested
    epsilon has its number there.
    """
    private = [row for row in rows if row.requested is not None]
    kinds = Counter(name for name, _ in {(row.mechanism, row.participation) for row in private})
    seen, found = Counter[object](), list[tuple[str, Row]]()
    for row in private:
        mechanism = f"{row.mechanism}, {row.participation}" if kinds[row.mechanism] > 1 else row.mechanism
        seen[mechanism, row.method, row.epsilon] += 1
        number = seen[mechanism, row.method, row.epsilon]
        found.append((mechanism if number == 1 else f"{mechanism} ({number})", row))
    return found


def sentences_not_run(pairs: Iterable[NotRun], rows: Iterable[Row]) -> list[str]:
    """Return a sentence for each reason and mechanisms, with the methods.

    The epsilons are named if a row has the same mechanism and method at another one.
    """
    run = {(row.crowd, row.mechanism, row.estimator) for row in rows}
    mechanisms = dict[tuple[str, str], dict[str, list[str]]]()
    for pair in pairs:
        epsilons = mechanisms.setdefault((pair.method, pair.reason), {}).setdefault(pair.mechanism, [])
        if (pair.crowd, pair.mechanism, pair.method) in run:
            epsilons.append(f"{pair.requested:g}")
    methods = dict[tuple[str, str], list[str]]()
    for (method, reason), found in mechanisms.items():
        named = (name + (f" at epsilon {' and '.join(some)}" if some else "") for name, some in found.items())
        methods.setdefault((", ".join(named), reason), []).append(method)
    return [f"Not run: {', '.join(found)} with {names}: {reason}." for (names, reason), found in methods.items()]
