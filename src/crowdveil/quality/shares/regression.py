"""Logistic regression of an answer on public covariates through a channel, with the response modelled too.

Person i with covariates x_i answers with probability s = sigma(x' gamma), and then says yes with pi = sigma(x' beta):

    p_i = s (pi Q_yes + (1 - pi) Q_no) + (1 - s) Q_NULL

Q are the rows of the person's channel. Maximum likelihood by Fisher scoring with the expected information
sum_i sum_y dp dp' / p and step halving (McCullagh and Nelder 1989; for randomized response Scheers and Dayton 1988).
With weights the likelihood is weighted, and standard errors are those of the sandwich A^-1 B A^-1 (White 1982). A
response rate that is held constant while it follows a covariate biases beta. The test of a coefficient of the answer is
the likelihood ratio test; that of the response stays free.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import chi2

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.frame_answers import ColumnKeywords
from crowdveil.answers.frames import ArrowRows
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.errors import SettingsError
from crowdveil.hints import advising_own_arguments
from crowdveil.quality.shares.people import columns_of_workers, read_weights
from crowdveil.quality.shares.score import TINY, normal_quantile
from crowdveil.quality.shares.share_function import LEVEL, cells_of_evidence, require_level, share_evidence
from crowdveil.quality.shares.symbols import place_of_task, symbol_of_workers

STEPS, HALVINGS = 200, 40
MIN_DECREMENT = 1e-14
"""Expected gain of log-likelihood below which the search ends."""
LARGEST_LOG_ODDS = 15.0
"""Log-odds of an answer from which a fit counts as without a maximum: at 15 one person in 3 million says otherwise."""
INTERCEPT = "(intercept)"
MAX_CATEGORIES = 20
"""Largest number of values of a covariate of text."""


class Coefficient(NamedTuple):
    """One coefficient, on the scale of log-odds.

    Attributes:
        model: "answer" (beta) or "response" (gamma).
        name: covariate; "(intercept)"; of a text "column: value", against its first value.
        estimate, standard_error, low, high: with the interval of a normal distribution.
        statistic, p_value: likelihood ratio test that the coefficient of the answer is 0; nan for the response, and
            with weights.
    """

    model: str
    name: str
    estimate: float
    standard_error: float
    low: float
    high: float
    statistic: float
    p_value: float


@dataclass(frozen=True, kw_only=True, eq=False)
class ShareRegression(ArrowRows):
    """Logistic regression of an answer on covariates.

    Attributes:
        task, label: the answer whose log-odds are modelled, against the other label.
        coefficients: of the answer, then of the response where participation is protected.
        log_likelihood: of the fit.
        people: number of people in the fit.
        left_out: number of people without a covariate, or without an answer where that is visible.
        level: level of the intervals.
    """

    task: str
    label: str
    coefficients: tuple[Coefficient, ...]
    log_likelihood: float
    people: int
    left_out: int
    level: float

    def to_arrow(self) -> pa.Table:
        """Return the coefficients as an Arrow table."""
        return pa.Table.from_pylist([one._asdict() for one in self.coefficients])

    def to_json(self) -> dict[str, Any]:
        """Return the regression as JSON values; nan is None."""
        rows = [
            {name: None if value != value else value for name, value in one._asdict().items()}
            for one in self.coefficients
        ]
        return {
            **{name: getattr(self, name) for name in ("task", "label", "people", "left_out", "log_likelihood")},
            "coefficients": rows,
        }

    def __str__(self) -> str:
        """Return the coefficients as lines of text."""
        return "\n".join(
            f"{one.model} {one.name}: {one.estimate:+.3f} ({one.low:+.3f} to {one.high:+.3f})"
            for one in self.coefficients
        )


@advising_own_arguments
def share_regression(
    answers: Any,
    covariates: Any,
    outcome: str,
    *,
    question: Any = None,
    weights: Any = None,
    channel: Channel | ChannelTable | None = None,
    assignment: Assignment | None = None,
    level: float = LEVEL,
    **options: Unpack[ColumnKeywords],
) -> ShareRegression:
    """Return the logistic regression of an answer on public covariates, through the channel of the reports.

    Args:
        answers, channel, assignment, weights, level, options: as in `share`.
        covariates: a frame with the column "worker" and covariates: numbers, or texts, of which the first value is the
            reference.
        outcome: the label whose log-odds are modelled; the question has two labels.
        question: name of the task; needed if there are several.

    Raises:
        ReportsError: as `share`.
        SettingsError: another label, more labels than two, covariates that break a rule, or separate the answers.

    >>> import crowdveil as cv
    >>> labels = ["yes", "no", "no", "no"] * 25 + ["yes", "no"] * 50
    >>> answers = {"task": ["q"] * 200, "worker": [*range(200)], "label": labels}
    >>> age = {"worker": [*range(200)], "age": [0] * 100 + [1] * 100}
    >>> [round(one.estimate, 3) for one in cv.share_regression(answers, age, "yes").coefficients]
    [-1.099, 1.099]
    """
    require_level(level)
    cells = cells_of_evidence(share_evidence(answers, channel, assignment, options))
    names = cells.symbols[: cells.model.labels]
    if outcome not in names or len(names) != 2:
        rule = "a regression is of one of two labels"
        raise SettingsError(rule, value=f"{outcome} of {', '.join(names)}", hint="Map the other labels to one.")
    task = place_of_task(cells, question, "question")
    design, columns, complete = _design_matrix(covariates, cells.reports.workers)
    symbol = symbol_of_workers(cells, task)
    kept = complete & (symbol >= 0)
    weight = np.ones(len(kept)) if weights is None else read_weights(weights, cells.reports.workers)
    order = [names.index(outcome), 1 - names.index(outcome), *range(2, len(cells.symbols))]
    scaled, back = _standardized(design[kept], protected=len(order) > 2)
    data = _Data(scaled, symbol[kept], cells.model.full_table[order], cells.model.channel, weight[kept])
    fitted = _fit(data)
    covariance = back @ _covariance(data, fitted, robust=weights is not None) @ back.T
    found = _coefficients(data, fitted, back @ fitted.beta, covariance, columns, level, tests=weights is None)
    return ShareRegression(
        task=str(cells.reports.tasks[task]), label=outcome, coefficients=tuple(found),
        log_likelihood=fitted.log_likelihood, people=int(kept.sum()), left_out=int((~kept).sum()), level=level,
    )  # fmt: skip


def _design_matrix(covariates: Any, workers: Any) -> tuple[NDArray[np.float64], list[str], NDArray[np.bool_]]:
    """Return the matrix of covariates with a first column of ones, the names, and who has all of them."""
    columns, names = [np.ones(len(workers))], [INTERCEPT]
    complete = np.ones(len(workers), dtype=bool)
    for name, cells in columns_of_workers(covariates, "covariates", workers).items():
        given = np.array([cell is not None for cell in cells])
        complete &= given
        numbers = _numbers_or_none(cells)
        if numbers is not None:
            if not np.isfinite(numbers).all():
                wrong = str(cells[int(np.flatnonzero(~np.isfinite(numbers))[0])])
                hint = "Leave the cell of an unknown value empty."
                raise SettingsError("covariates must be finite numbers", value=f"{wrong} in {name}", hint=hint)
            columns.append(numbers)
            names.append(name)
            continue
        values = sorted({str(cell) for cell in cells if cell is not None})
        if len(values) > MAX_CATEGORIES:
            rule = f"a covariate of text has at most {MAX_CATEGORIES} values"
            raise SettingsError(rule, value=f"{len(values)} in {name}", hint="Join values, or give numbers.")
        for value in values[1:]:
            columns.append(np.array([float(str(cell) == value) for cell in cells]))
            names.append(f"{name}: {value}")
    matrix = np.stack(columns, axis=1)
    if np.linalg.matrix_rank(matrix[complete]) < len(names):
        rule = "no covariate may follow from the others"
        raise SettingsError(rule, value=", ".join(names[1:]), hint="Leave a constant or repeated column out.")
    return matrix, names, complete


def _standardized(design: NDArray[np.float64], *, protected: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return covariates with mean 0 and standard deviation 1, and the matrix that takes coefficients back.

    Without this the unit of a covariate, such as an income in millions, decides what the fit takes for rounding.
    """
    if not len(design):
        return design, np.eye(design.shape[1] * (2 if protected else 1))
    mean, scale = design.mean(axis=0), design.std(axis=0)
    mean[0], scale[0] = 0.0, 1.0
    scale[scale == 0] = 1.0
    back = np.diag(1 / scale)
    back[0, 1:] = -mean[1:] / scale[1:]
    standardized: NDArray[np.float64] = (design - mean) / scale
    return standardized, np.kron(np.eye(2 if protected else 1), back).astype(np.float64)


def _numbers_or_none(cells: list[Any]) -> NDArray[np.float64] | None:
    """Return cells as numbers, 0 where there is none; None if one is a text."""
    try:
        return np.array([0.0 if cell is None else float(cell) for cell in cells])
    except (TypeError, ValueError):
        return None


class _Data(NamedTuple):
    """Covariates x [person, column], symbols of reports, P(symbol | yes, no, NULL), channels of symbols, weights."""

    x: NDArray[np.float64]
    symbol: NDArray[np.int64]
    table: NDArray[np.float64]
    channel: NDArray[np.int64]
    weight: NDArray[np.float64]

    @property
    def protected(self) -> bool:
        """Whether NULL is an input."""
        return len(self.table) > 2


class _Fitted(NamedTuple):
    """Coefficients of the answer, then of the response; and the log-likelihood."""

    beta: NDArray[np.float64]
    log_likelihood: float


def _probabilities(data: _Data, beta: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return P(symbol) of each person, and its derivatives by all coefficients, [person, symbol, coefficient]."""
    width = data.x.shape[1]
    own = data.channel[data.symbol][:, None] == data.channel
    yes, no = data.table[0] * own, data.table[1] * own
    share = expit(data.x @ beta[:width])[:, None]
    answered = expit(data.x @ beta[width:])[:, None] if data.protected else np.ones_like(share)
    said = share * yes + (1 - share) * no
    slope = answered * share * (1 - share) * (yes - no)
    derivatives = [slope[:, :, None] * data.x[:, None]]
    found = said
    if data.protected:
        none = data.table[2] * own
        found = answered * said + (1 - answered) * none
        derivatives.append((answered * (1 - answered) * (said - none))[:, :, None] * data.x[:, None])
    return found, np.concatenate(derivatives, axis=2)


def _log_likelihood(data: _Data, found: NDArray[np.float64]) -> float:
    own = found[np.arange(len(data.symbol)), data.symbol]
    return float(data.weight @ np.log(np.maximum(own, TINY)))


def _information(data: _Data, found: NDArray[np.float64], slopes: NDArray[np.float64]) -> NDArray[np.float64]:
    scaled = slopes * np.sqrt(data.weight[:, None, None] / np.maximum(found, TINY)[:, :, None])
    flat = scaled.reshape(-1, slopes.shape[2])
    return np.asarray(flat.T @ flat)


def _person_scores(data: _Data, found: NDArray[np.float64], slopes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the derivative of each person's log-likelihood, indexed [person, coefficient]."""
    person = np.arange(len(data.symbol))
    return np.asarray(slopes[person, data.symbol] / np.maximum(found[person, data.symbol], TINY)[:, None])


def _fit(data: _Data, held: int | None = None) -> _Fitted:
    """Return the maximum of the likelihood; one coefficient may be held at 0.

    Raises:
        SettingsError: it has none: a covariate separates the answers, or noise leaves too little information.
    """
    beta = np.zeros(data.x.shape[1] * (2 if data.protected else 1))
    free = np.arange(len(beta)) != held
    for _ in range(STEPS):
        found, slopes = _probabilities(data, beta)
        value = _log_likelihood(data, found)
        score = data.weight @ _person_scores(data, found, slopes)
        information = _information(data, found, slopes)[np.ix_(free, free)]
        step = np.zeros(len(beta))
        step[free] = np.linalg.lstsq(information, score[free], rcond=None)[0]
        decrement = float(step @ score)
        if decrement < MIN_DECREMENT:
            break
        size = 1.0
        for _ in range(HALVINGS):
            moved = beta + size * step
            if _log_likelihood(data, _probabilities(data, moved)[0]) >= value:
                break
            size /= 2
        else:
            break
        beta = beta + size * step
    if np.abs(data.x @ beta[: data.x.shape[1]]).max(initial=0.0) > LARGEST_LOG_ODDS:
        raise SettingsError(
            "the likelihood must have a maximum: a covariate separates the answers, or noise leaves no information",
            value=f"{len(data.symbol)} people",
            hint="Leave covariates out, or ask more people.",
        )
    return _Fitted(beta, value)


def _covariance(data: _Data, fitted: _Fitted, *, robust: bool) -> NDArray[np.float64]:
    """Return the inverse of the information; with weights the sandwich."""
    found, slopes = _probabilities(data, fitted.beta)
    inverse: NDArray[np.float64] = np.asarray(np.linalg.pinv(_information(data, found, slopes), rcond=1e-30))
    if not robust:
        return inverse
    scores = _person_scores(data, found, slopes) * data.weight[:, None]
    return np.asarray(inverse @ scores.T @ scores @ inverse)


def _coefficients(
    data: _Data, fitted: _Fitted, estimates: NDArray[np.float64], covariance: NDArray[np.float64], names: list[str],
    level: float, *, tests: bool,
) -> list[Coefficient]:  # fmt: skip
    """Return the coefficients in the units of the covariates; `fitted` is of standardized ones, as are the tests."""
    quantile, found = normal_quantile(level), list[Coefficient]()
    for place, estimate in enumerate(estimates):
        model, error = ("answer", "response")[place // len(names)], float(np.sqrt(covariance[place, place]))
        statistic = float("nan")
        if tests and 0 < place < len(names):
            statistic = max(2 * (fitted.log_likelihood - _fit(data, held=place).log_likelihood), 0.0)
        found.append(
            Coefficient(
                *(model, names[place % len(names)], float(estimate), error),
                *(float(estimate) - quantile * error, float(estimate) + quantile * error),
                *(statistic, float(chi2.sf(statistic, 1))),
            )
        )
    return found
