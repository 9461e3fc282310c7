"""Comparison of mechanisms on one crowd by simulation: errors beside the best constant and the unprotected answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Unpack

import pyarrow as pa

from crowdveil.answers.evidence import Evidence
from crowdveil.answers.frame_answers import ColumnKeywords, read_frame_answers
from crowdveil.answers.frames import ArrowRows
from crowdveil.answers.reports import Reports
from crowdveil.arguments import require_instance, require_list, require_whole_number
from crowdveil.channels.alphabet import Scale, abbreviate_names
from crowdveil.channels.channel import Channel
from crowdveil.channels.guarantee import Participation
from crowdveil.channels.rounding import format_bound
from crowdveil.design.mechanism_from_settings import MechanismSettings, build_mechanism
from crowdveil.display.html import notebook_card, table
from crowdveil.display.progress import ProgressDisplay
from crowdveil.display.svg_pictures import line_chart
from crowdveil.em.estimate import Estimate
from crowdveil.em.estimator import Estimator
from crowdveil.em.gold import as_gold
from crowdveil.em.plots import line_plot
from crowdveil.errors import SettingsError
from crowdveil.estimators.factorization_mean import FactorizationMean
from crowdveil.estimators.weighted_mean import WeightedMean
from crowdveil.hints import advising_own_arguments
from crowdveil.inference.methods import AnyEstimator, Method, choose_estimator
from crowdveil.inference.scores.metrics import ErrorName, score
from crowdveil.mechanisms import MatrixFactorization, Mechanism
from crowdveil.privacy.accounting import account
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_reports
from crowdveil.simulate.perturbation import dense_reports

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CHANNEL_SUFFIX = " + channel"
"""Suffix of a method with the channel in its likelihood."""
UNPROTECTED = "unprotected"
"""In place of the name of a mechanism: unperturbed answers."""


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
    def estimator(self) -> str:
        """Name of the estimator, whether the channel is used or not."""
        return self.method.removesuffix(CHANNEL_SUFFIX) if self.channel_used else self.method


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """Crowd with a mechanism, and the methods that infer its truths.

    Attributes:
        crowd: answers and gold.
        mechanism: of the devices; None for unprotected answers.
        seed: of the devices.
        plain: methods that read reports as answers.
        models: methods that read them through the channel, if there is one.
    """

    crowd: GoldCrowd
    mechanism: Mechanism | None
    seed: int
    plain: tuple[Estimator[Any, Any], ...]
    models: tuple[Estimator[Any, Any], ...]

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
    """Return the estimate of every applicable method, without and with the channel in the likelihood.

    Blocks of labels are not read without the channel.
    """
    channel = None if trial.mechanism is None else trial.mechanism.channel()
    blocks = channel is not None and channel.report_alphabet != channel.alphabet
    plain = () if blocks else trial.plain
    if channel is None and reports.alphabet is not None:
        plain = (*plain, *(method for method in trial.models if method.name not in {one.name for one in plain}))
    found = {method.name: method.fit(reports) for method in plain}
    if channel is None or reports.alphabet is None:
        return found
    readers = [method for method in trial.models if method.capabilities.reads_label_blocks or not blocks]
    return found | {method.name + CHANNEL_SUFFIX: method.fit(reports, channel=channel) for method in readers}


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


MEAN = WeightedMean(max_steps=100, tolerance=1e-3)
"""Beside the default method for numbers."""
EPSILONS = (1.0, 2.0, 4.0)
"""Default epsilons, in nats per cell."""
MAX_LINES, MAX_ROWS = 6, 40
"""Lines in a picture, and rows in a table, of a notebook."""
SIMULATION = (
    "Simulation only, no privacy: the reports follow from the seed. Epsilons are per cell: one answer of a worker to "
    "one task."
)
MechanismChoice = Mechanism | str | Callable[[float], Mechanism]


class CrowdWithGold(Protocol):
    """Answers with known truths: a simulated crowd, a data set, or any object with these attributes."""

    @property
    def answers(self) -> Reports:
        """Unprotected answers on labels or a scale."""
        ...

    @property
    def gold(self) -> Mapping[Any, Any]:
        """Known truth by task name."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison(ArrowRows):
    """Errors of mechanisms and methods on one crowd.

    Attributes:
        rows: unprotected answers first, then every mechanism in the given order, each with every method.
    """

    rows: tuple[Row, ...]

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table, with the columns of `Row` without the crowd."""
        columns = [{name: value for name, value in asdict(row).items() if name != "crowd"} for row in self.rows]
        return pa.Table.from_pylist(columns)

    def __repr__(self) -> str:
        """Return the number of rows, and the mechanisms."""
        mechanisms = dict.fromkeys(row.mechanism for row in self.rows)
        return f"<Comparison: {len(self.rows):,} rows; {abbreviate_names(mechanisms)}>"

    def __str__(self) -> str:
        """Return the facts and one line per row."""
        cells = [_HEADER, *map(_row_texts, self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        text = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
        return "\n".join([*self._facts(), "", *text])

    def _repr_html_(self) -> str:
        """Return the rows for a notebook, and errors against epsilon."""
        series = self._series()
        picture = (
            line_chart(_error_axis(self.rows[0]), "epsilon", series[:MAX_LINES], self._limits()) if series else None
        )
        return notebook_card(
            "Comparison of mechanisms", self._facts(), table(_HEADER, [_row_texts(row) for row in self.rows]), picture
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw errors against epsilon with the constant and the unprotected answers, and return the axes.

        Args:
            ax: matplotlib axes to draw on; None for those of a new figure.

        Raises:
            SettingsError: matplotlib is not installed.
        """
        return line_plot(ax, self._series(), self._limits(), ("epsilon per cell", _error_axis(self.rows[0])))

    def _facts(self) -> list[str]:
        first = self.rows[0]
        constant = f"Best constant {first.constant}: error {first.constant_error:.3g} on {first.scored:,} gold tasks."
        return [SIMULATION, constant + sampling_error_sentence(first)]

    def _series(self) -> list[tuple[str, list[tuple[float, float]]]]:
        """Return the points (epsilon, error) of each mechanism and method; mechanisms without a finite claim are left
        out."""
        methods = {row.method for row in self.rows if row.requested is not None}
        found: dict[str, list[tuple[float, float]]] = {}
        for row in self.rows:
            if row.requested is not None and math.isfinite(row.requested):
                name = row.mechanism if len(methods) == 1 else f"{row.mechanism}, {row.method}"
                found.setdefault(name, []).append((row.requested, row.error))
        return list(found.items())

    def _limits(self) -> list[tuple[str, float]]:
        plain = [(f"{row.method}, unprotected", row.error) for row in self.rows if row.requested is None]
        named = plain if len(plain) > 1 else [("unprotected", plain[0][1])]
        return [("best constant", self.rows[0].constant_error), *named]


@advising_own_arguments
def compare(
    mechanisms: Sequence[MechanismChoice],
    crowd: CrowdWithGold | Any,
    *,
    gold: Any = None,
    epsilons: Sequence[float] = EPSILONS,
    methods: Sequence[str | AnyEstimator] = (),
    participation: Participation = "protected",
    seed: int = 1,
    progress: bool = False,
    **options: Unpack[ColumnKeywords],
) -> Comparison:
    """Return the errors of truths inferred from simulated reports of each mechanism, and of unprotected answers.

    Simulation only: the reports follow from `seed` and carry no privacy. Differences within two standard errors of the
    number of gold tasks mean nothing; other seeds show the spread.

    Args:
        mechanisms: mechanisms as they are; or names or functions of epsilon, which are built at every epsilon.
        crowd: answers and gold, such as a simulated `Crowd` or a data set; or a frame of answers, as in `aggregate`.
        gold: known truth by task, or a frame of them, for a frame of answers.
        epsilons: in nats per cell.
        methods: names or estimators; by default that of `crowdveil infer` for such reports, and for a scale the
            weighted mean.
        participation: of mechanisms that are given by name.
        seed: seed of the simulated devices.
        progress: show the number of finished simulations, in notebooks and on terminals.
        options: for a frame, names of columns and options of reading, as in `aggregate`.

    Raises:
        SettingsError: no mechanism, one that refuses the answers, an unknown name, or a crowd without gold.
        ReportsError: answers without labels or scale, or no gold task among the tasks.

    >>> import crowdveil as cv
    >>> votes = {"task": [1, 1, 2, 2], "worker": [*"vwvw"], "label": ["no", "no", "yes", "no"]}
    >>> found = cv.compare(["randomized-response"], votes, gold={1: "no", 2: "yes"}, epsilons=[1.0])
    >>> len(found.rows)
    2
    """
    require_whole_number("seed", seed, least=0)
    answers, known = _answers_and_gold(crowd, gold, options)
    error: ErrorName = "mae" if isinstance(answers.alphabet, Scale) else "error_rate"
    described = GoldCrowd(name="crowd", answers=answers, gold=known, error=error)
    chosen = _mechanisms_at_epsilons(mechanisms, answers, epsilons, participation)
    models = _estimators(methods, answers)
    readers = tuple(one for one in models if one.capabilities.reads_channel)
    plain = tuple(one for one in models if one not in readers)
    trials = [Trial(crowd=described, mechanism=one, seed=seed, plain=plain, models=readers) for one in (None, *chosen)]
    rows: list[Row] = []
    with ProgressDisplay("compare", len(trials)) as display:
        for number, trial in enumerate(trials, start=1):
            rows += run_trial(trial)
            if progress:
                display(number, 0.0)
    return Comparison(rows=compare_with_unprotected(rows))


def _answers_and_gold(crowd: Any, gold: Any, options: ColumnKeywords) -> tuple[Reports, Mapping[Any, Any]]:
    """Return the answers, on labels or a scale, and gold of a crowd, or of a frame with its gold."""
    truths = as_gold(gold)
    if hasattr(crowd, "answers") and hasattr(crowd, "gold"):
        answers, known = crowd.answers, crowd.gold if gold is None else truths
    elif gold is not None:
        answers = crowd if isinstance(crowd, Reports) else read_frame_answers(crowd, options)
        known = {str(task): truth for task, truth in truths.items()}
        if len(known) < len(truths):
            raise SettingsError(
                "gold names a task once", value=len(truths) - len(known), hint="1 and '1' are one task."
            )
    else:
        hint = "Give gold= with a frame; or give a simulated Crowd, or a data set (crowdveil.answers.datasets.load)."
        raise SettingsError("a crowd must have answers and gold", value=type(crowd).__name__, hint=hint)
    if answers.alphabet is None:
        hint = "Read them with alphabet=Scale(low, high, step)."
        raise SettingsError("mechanisms need labels or numbers on a scale", value="free numbers", hint=hint)
    return answers, known


def _mechanisms_at_epsilons(
    choices: Sequence[MechanismChoice], answers: Reports, epsilons: Sequence[float], participation: Participation
) -> list[Mechanism]:
    """Return the mechanisms; names and functions at every epsilon."""
    alphabet = answers.alphabet
    assert alphabet is not None
    choices = [choices] if isinstance(choices, str | Mechanism) else choices
    require_list("mechanisms", choices, example="['laplace']")
    require_list("epsilons", epsilons, example="[1.0, 2.0]")
    found: list[Mechanism] = []
    for choice in choices:
        if isinstance(choice, Mechanism):
            found.append(choice)
        elif isinstance(choice, str):
            asked = [MechanismSettings(name=choice, epsilon=one, participation=participation) for one in epsilons]
            found += [build_mechanism(one, alphabet, tasks=len(answers.tasks)) for one in asked]
        elif callable(choice) and not isinstance(choice, type):
            found += [choice(epsilon) for epsilon in epsilons]
        else:
            found.append(choice)  # type: ignore[arg-type]
    for one in found:
        hint = "Give names, mechanisms, or functions of epsilon that return one."
        require_instance("a mechanism", one, Mechanism, what="a name, a mechanism or a function of epsilon", hint=hint)
    if not found:
        name, given = ("epsilons", epsilons) if choices else ("mechanisms", choices)
        hint = "Such as compare(['laplace'], ..., epsilons=[1.0, 2.0])."
        raise SettingsError(f"a comparison needs a mechanism and an epsilon, {name} is empty", value=given, hint=hint)
    return found


def _estimators(methods: Sequence[str | AnyEstimator], answers: Reports) -> tuple[AnyEstimator, ...]:
    """Return the estimators; by default that of reports through a channel, and for a scale the weighted mean."""
    alphabet = answers.alphabet
    assert alphabet is not None
    evidence = Evidence(observed=answers, channel=Channel.identity(alphabet, "public"))
    methods = [methods] if isinstance(methods, str | Estimator) else methods or ()
    require_list("methods", methods, example="['dawid-skene']")
    for one in methods:
        hint = "Such as 'dawid-skene', or DawidSkene()."
        require_instance("a method", one, (str, Estimator), what="a name or an estimator", hint=hint)
    found = [one if not isinstance(one, str) else choose_estimator(Method(name=one), evidence) for one in methods]
    found = found or [choose_estimator(Method(), evidence)]
    mean = [] if not isinstance(alphabet, Scale) or MEAN.name in {one.name for one in found} else [MEAN]
    return (*found, *mean)


_HEADER = ("mechanism", "epsilon", "exact epsilon", "participation", "method", "error", "unprotected")


def _row_texts(row: Row) -> tuple[str, ...]:
    """Return a row as text; epsilons are rounded up."""
    epsilons = ("" if value is None else format_bound(value, 4) for value in (row.requested, row.exact))
    ending = "" if row.converged else ", NOT CONVERGED"
    errors = f"{row.error:.3g}", f"{row.unprotected:.3g}"
    return row.mechanism, *epsilons, row.participation, row.method + ending, *errors


def _error_axis(row: Row) -> str:
    return "Share of wrong truths" if row.error_name == "error_rate" else "Mean absolute error"
