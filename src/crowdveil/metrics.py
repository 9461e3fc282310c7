"""How good an estimate is against gold, always beside the best constant; how well workers agree, and can be told apart.

Gold maps task names to truths: label names, or numbers. Ties share their credit: where t labels share the highest
posterior, each counts as the answer with weight 1 / t, so that no order of labels helps anyone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimate import Estimate, winners
from crowdveil.labels import Scale
from crowdveil.reports import Reports
from crowdveil.storage.names import places

ErrorName = Literal["error_rate", "mae", "rmse"]
Level = Literal["nominal", "interval"]

SMALLEST_PROBABILITY = 1e-12
"""Posteriors are raised to this before the logarithm, so that one certain mistake costs 27.6 nats and not infinity."""
FLAT = 1e-12
"""Numbers whose spread is below this share of their size are constant; what remains is rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """An estimate against gold: its error never stands without the constant's error and the correlation.

    Attributes:
        error: of the estimate, over the scored tasks.
        error_name: "error_rate" (share of wrong labels), "mae" or "rmse" (in units of the answers, or label positions).
        baseline: the same error of the best constant, chosen with knowledge of gold: a constant at its most favourable.
        constant: that constant.
        correlation: Pearson correlation of truths and gold, as numbers or label positions; 0 where either is constant.
        log_loss: mean negative logarithm of the posterior of gold, in nats; None unless the error is the error rate.
        scored: gold tasks among the estimate's tasks.
        missing: scored tasks without a single report; for numbers the estimate's own constant stands in for them.
        unknown: gold tasks that the estimate does not know; they are left out.
    """

    error: float
    error_name: ErrorName
    baseline: float
    constant: str
    correlation: float
    log_loss: float | None
    scored: int
    missing: int
    unknown: int

    @property
    def gain(self) -> float:
        """How much better than the best constant; negative where the constant would have served better."""
        return self.baseline - self.error

    def __str__(self) -> str:
        left_out = f", {self.unknown} unknown left out" if self.unknown else ""
        return (
            f"{self.error_name} {self.error:.4f} (constant {self.constant}: {self.baseline:.4f}), "
            f"correlation {self.correlation:.3f}, {self.scored} gold tasks, {self.missing} without reports{left_out}"
        )


class BestConstant(NamedTuple):
    """The one answer that would serve best for all tasks, and its error."""

    constant: str
    error: float


def score(estimate: Estimate, gold: Mapping[Any, Any], *, error: ErrorName | None = None) -> Score:
    """Score an estimate against gold.

    Args:
        estimate: labels or numbers.
        gold: truth by task name.
        error: by default the error rate for categories, the mean absolute error for numbers and scales.

    Raises:
        SettingsError: an error that the estimate has no meaning for.
        ReportsError: no gold task is among the tasks, a gold label is not in the alphabet, or a gold number is not one.
    """
    named = estimate.categorical and not isinstance(estimate.alphabet, Scale)
    name: ErrorName = error or ("error_rate" if named else "mae")
    aligned = _align(estimate, gold)
    own = _error(aligned, name)
    best = best_constant(_targets(aligned, name), name)
    silent = np.isnan(estimate.posterior) if estimate.posterior.ndim == 1 else estimate.reports_per_task == 0
    return Score(
        error=own,
        error_name=name,
        baseline=best.error,
        constant=best.constant,
        correlation=_correlation(aligned),
        log_loss=_log_loss(aligned) if name == "error_rate" else None,
        scored=len(aligned.at),
        missing=int(silent[aligned.at].sum()),
        unknown=aligned.unknown,
    )


def accuracy(estimate: Estimate, gold: Mapping[Any, Any]) -> float:
    """Return the mean credit over gold tasks: 1 / (number of tied labels) where gold is one of them, else 0."""
    return 1 - error_rate(estimate, gold)


def error_rate(estimate: Estimate, gold: Mapping[Any, Any]) -> float:
    """Return one minus `accuracy`; raises as `score` does."""
    return _error(_align(estimate, gold), "error_rate")


def mae(estimate: Estimate, gold: Mapping[Any, Any]) -> float:
    """Return the mean absolute error, tied labels averaged; raises as `score` does."""
    return _error(_align(estimate, gold), "mae")


def rmse(estimate: Estimate, gold: Mapping[Any, Any]) -> float:
    """Return the root of the mean squared error, tied labels averaged; raises as `score` does."""
    return _error(_align(estimate, gold), "rmse")


def log_loss(estimate: Estimate, gold: Mapping[Any, Any]) -> float:
    """Return the mean negative logarithm of gold's posterior, in nats, each at least `SMALLEST_PROBABILITY`."""
    return _log_loss(_align(estimate, gold))


def correlation(estimate: Estimate, gold: Mapping[Any, Any]) -> float:
    """Return the Pearson correlation of truths and gold; 0 where either side is constant.

    Labels count by their position in the alphabet (grid points by their value) and tied ones by the mean of theirs. For
    more than two unordered labels that order is arbitrary: only 0 and 1 can be read there.
    """
    return _correlation(_align(estimate, gold))


def best_constant(truths: Sequence[Any] | NDArray[Any], error: ErrorName) -> BestConstant:
    """Return the best constant for these truths: majority label, median (the lower of two) or mean.

    Raises:
        SettingsError: no truth, or labels where numbers are needed.
    """
    if len(truths) == 0:
        raise SettingsError("the best constant needs at least one truth", value=truths)
    if error == "error_rate":
        names, counts = np.unique(np.asarray(truths).astype(str), return_counts=True)
        return BestConstant(str(names[counts.argmax()]), 1 - float(counts.max()) / len(truths))
    try:
        numbers = np.asarray(truths, dtype=float)
    except ValueError as wrong:
        raise SettingsError(f"{error} needs numbers", value=str(wrong), way_out="Use error_rate for labels.") from wrong
    if error == "mae":
        middle = float(np.sort(numbers)[(len(numbers) - 1) // 2])
        return BestConstant(f"{middle:g}", float(np.abs(numbers - middle).mean()))
    return BestConstant(f"{numbers.mean():g}", float(numbers.std()))


def best_constant_error(gold: Mapping[Any, Any], error: ErrorName) -> float:
    """Return the error of the best constant on gold: the bar that no result may be shown without."""
    return best_constant(list(gold.values()), error).error


def alpha(reports: Reports, level: Level = "nominal") -> float:
    """Return Krippendorff's alpha: 1 - observed / expected disagreement; 1 is full agreement, 0 is chance.

    Computed from the counts of values per task and over all tasks, or from their moments, never from pairs of reports
    (Krippendorff 2011, "Computing Krippendorff's alpha-reliability"). Tasks with one report count for nothing.

    Args:
        reports: answers of a crowd; repeated (task, worker) pairs count as different coders.
        level: "nominal": values agree or differ; "interval": the squared difference of `reports.numbers`.

    Returns:
        nan where no task has two reports, or all reports are alike: nothing can be said.
    """
    pairable = reports.per_task[reports.task] >= 2
    task = reports.task[pairable]
    values = (reports.value if level == "nominal" else reports.numbers)[pairable]
    if not len(values) or np.ptp(values) == 0:
        return float("nan")
    pairs = _nominal_pairs if level == "nominal" else _interval_pairs
    within, overall = pairs(task, values, reports.per_task)
    return 1 - within * (len(values) - 1) / overall


def quality_auc(quality: ArrayLike, good: ArrayLike) -> float:
    """Return the probability that a good worker has a higher quality than another one; ties count one half.

    Args:
        quality: estimated ability or weight, shape (workers,).
        good: which workers are known to be good, shape (workers,).

    Raises:
        SettingsError: shapes differ, or all workers are of one kind.
    """
    values, known = np.asarray(quality, dtype=float), np.asarray(good, dtype=bool)
    if values.shape != known.shape or values.ndim != 1:
        raise SettingsError("one quality and one verdict per worker are needed", value=(values.shape, known.shape))
    if known.all() or not known.any():
        raise SettingsError("both good and other workers are needed", value=f"{int(known.sum())} good of {known.size}")
    others = np.sort(values[~known])
    below = np.searchsorted(others, values[known], side="left")
    up_to = np.searchsorted(others, values[known], side="right")
    return float((below + up_to).mean()) / 2 / len(others)


@dataclass(frozen=True, slots=True, eq=False)
class _Aligned:
    """Gold beside the estimate: task codes `at` and their truths, and the number of gold tasks without a place."""

    estimate: Estimate
    at: NDArray[np.int64]
    truths: list[Any]
    unknown: int


def _align(estimate: Estimate, gold: Mapping[Any, Any]) -> _Aligned:
    place = places(estimate.tasks, gold)
    known = [(place[str(task)], truth) for task, truth in gold.items() if str(task) in place]
    if not known:
        raise ReportsError(
            f"none of the {len(gold)} gold tasks is among the {len(estimate.tasks)} tasks of the estimate",
            source="gold",
            way_out="Check that both use the same task names.",
        )
    return _Aligned(estimate, np.array([at for at, _ in known]), [truth for _, truth in known], len(gold) - len(known))


def _error(aligned: _Aligned, name: ErrorName) -> float:
    if name == "error_rate":
        _require_labels(aligned)
        return 1 - float(_shares(aligned)[np.arange(len(aligned.at)), _gold_codes(aligned)].mean())
    numbers, shares = _guesses(aligned)
    away = np.abs(numbers - _targets(aligned, name)[:, None])
    return float(
        (shares * away).sum(axis=1).mean() if name == "mae" else np.sqrt((shares * away**2).sum(axis=1).mean())
    )


def _require_labels(aligned: _Aligned) -> None:
    if not aligned.estimate.categorical:
        raise SettingsError(
            "an error rate or log loss needs an estimate of labels",
            value=aligned.estimate.method,
            way_out="Use mae or rmse for numbers.",
        )


def _targets(aligned: _Aligned, name: ErrorName) -> NDArray[Any]:
    """Return gold in the form that an error compares: label names, or numbers."""
    alphabet = aligned.estimate.alphabet
    if name == "error_rate" and alphabet is not None:
        return np.array(alphabet.names)[_gold_codes(aligned)]
    if alphabet is not None and not alphabet.ordered:
        raise SettingsError(f"{name} needs numbers or ordered labels", value=alphabet.names, way_out="Use error_rate.")
    return _gold_numbers(aligned)


def _gold_codes(aligned: _Aligned) -> NDArray[np.int64]:
    """Return the label code of every scored truth."""
    alphabet = aligned.estimate.alphabet
    assert alphabet is not None
    if isinstance(alphabet, Scale):
        numbers = _gold_numbers(aligned)
        codes = alphabet.encode(numbers)
        wrong = np.flatnonzero(np.abs(alphabet.values[codes] - numbers) > FLAT * alphabet.range)
    else:
        code_of = {name: code for code, name in enumerate(alphabet.names)}
        codes = np.array([code_of.get(str(truth), -1) for truth in aligned.truths])
        wrong = np.flatnonzero(codes < 0)
    if len(wrong):
        truth, task = aligned.truths[wrong[0]], aligned.estimate.tasks[aligned.at[wrong[0]]]
        raise ReportsError(f"gold label {truth!r} of task {task!r} is not among {alphabet.names}", source="gold")
    return codes


def _gold_numbers(aligned: _Aligned) -> NDArray[np.float64]:
    """Return every scored truth as a number: itself, or the label's position."""
    alphabet = aligned.estimate.alphabet
    if alphabet is None or isinstance(alphabet, Scale):
        try:
            numbers = np.array([float(truth) for truth in aligned.truths])
        except (TypeError, ValueError) as error:
            raise ReportsError("gold truths must be numbers", source="gold", examples=str(error)) from error
        if not np.isfinite(numbers).all():
            raise ReportsError("gold truths must be finite numbers", source="gold", way_out="Leave unknown ones out.")
        return numbers
    return _gold_codes(aligned).astype(float)


def _shares(aligned: _Aligned) -> NDArray[np.float64]:
    """Return how a categorical estimate spreads its answer over tied labels, indexed [scored task, label]."""
    best = winners(aligned.estimate.posterior[aligned.at])
    return best / best.sum(axis=1, keepdims=True)


def _guesses(aligned: _Aligned) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the numbers that the estimate answers and their shares, both broadcastable to [scored task, choice]."""
    estimate = aligned.estimate
    if estimate.categorical and estimate.alphabet is not None:
        return estimate.alphabet.values[None, :], _shares(aligned)
    truth = estimate.posterior[aligned.at]
    filled = np.where(np.isnan(truth), float(estimate.baseline.constant), truth)
    return filled[:, None], np.ones((1, 1))


def _correlation(aligned: _Aligned) -> float:
    numbers, shares = _guesses(aligned)
    guessed, known = (numbers * shares).sum(axis=1), _gold_numbers(aligned)
    if any(np.ptp(side) <= FLAT * np.abs(side).max() for side in (guessed, known)):
        return 0.0
    return float(np.corrcoef(guessed, known)[0, 1])


def _log_loss(aligned: _Aligned) -> float:
    _require_labels(aligned)
    codes = _gold_codes(aligned)
    given = aligned.estimate.posterior[aligned.at, codes]
    return float(-np.log(np.maximum(given, SMALLEST_PROBABILITY)).mean())


def _nominal_pairs(task: NDArray[np.int32], value: NDArray[Any], per_task: NDArray[np.integer]) -> tuple[float, float]:
    """Return the disagreement of ordered pairs: within tasks (each task's over its size - 1), and over all reports."""
    names, codes = np.unique(value, return_inverse=True)
    group, count = np.unique(task.astype(np.int64) * len(names) + codes, return_counts=True)
    size = per_task[group // len(names)]
    total = np.bincount(codes)
    return float((count * (size - count) / (size - 1)).sum()), float((total * (len(value) - total)).sum())


def _interval_pairs(
    task: NDArray[np.int32], numbers: NDArray[np.float64], per_task: NDArray[np.integer]
) -> tuple[float, float]:
    """Return the same two sums for squared differences, from squares about means."""
    mean = np.bincount(task, weights=numbers, minlength=len(per_task)) / np.maximum(per_task, 1)
    size = per_task[task]
    within = (2 * size / (size - 1) * (numbers - mean[task]) ** 2).sum()
    return float(within), float(2 * len(numbers) * ((numbers - numbers.mean()) ** 2).sum())
