"""Known truths (gold) aligned with the tasks of an estimate, and the errors computed from them."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.identifiers import index_of, no_common_task_error
from crowdveil.channels.alphabet import MAGNITUDE_HINT, MAGNITUDE_RULE, Scale, squares_safely
from crowdveil.em.estimate import Estimate, winners
from crowdveil.em.gold import as_gold
from crowdveil.errors import ReportsError, SettingsError, numpy_scalars_to_python

ErrorName = Literal["error_rate", "mae", "rmse"]

SMALLEST_PROBABILITY = 1e-12
"""Lower bound on posteriors in the log loss; a certain mistake costs 27.6 nats instead of infinity."""
FLAT = 1e-12
"""Relative spread below which numbers count as constant, up to rounding."""


def default_error(estimate: Estimate) -> ErrorName:
    """Return the error rate for categories, the mean absolute error for numbers and scales."""
    return "error_rate" if estimate.categorical and not isinstance(estimate.alphabet, Scale) else "mae"


@dataclass(frozen=True, slots=True, eq=False)
class AlignedGold:
    """Gold of an estimate's tasks: task codes `at`, their truths, and the number of gold tasks it does not know."""

    estimate: Estimate
    at: NDArray[np.int64]
    truths: list[Any]
    unknown: int


def align_gold(estimate: Estimate, gold: Any) -> AlignedGold:
    """Return gold, a mapping or a frame, aligned with an estimate's tasks.

    Raises:
        ReportsError: no gold task is among the tasks.
    """
    gold = as_gold(gold)
    place = index_of(estimate.tasks, gold)
    known = [(place[str(task)], truth) for task, truth in gold.items() if str(task) in place]
    if not known:
        raise no_common_task_error(gold, estimate.tasks, "gold")
    return AlignedGold(
        estimate, np.array([at for at, _ in known]), [truth for _, truth in known], len(gold) - len(known)
    )


def mean_error(aligned: AlignedGold, name: ErrorName) -> float:
    """Return the error over the scored tasks; tied labels are averaged."""
    if name == "error_rate":
        require_estimate_of_labels(aligned)
        return 1 - float(tied_label_weights(aligned)[np.arange(len(aligned.at)), gold_codes(aligned)].mean())
    numbers, shares = weighted_predictions(aligned)
    away = np.abs(numbers - comparable_gold(aligned, name)[:, None])
    return float(
        (shares * away).sum(axis=1).mean() if name == "mae" else np.sqrt((shares * away**2).sum(axis=1).mean())
    )


def count_without_reports(aligned: AlignedGold) -> int:
    """Return the number of scored tasks without a report."""
    estimate, at = aligned.estimate, aligned.at
    unreported = (
        np.isnan(estimate.posterior[at]) if estimate.posterior.ndim == 1 else estimate.reports_per_task[at] == 0
    )
    return int(unreported.sum())


def count_outside_scale(aligned: AlignedGold) -> int:
    """Return the number of scored truths outside the estimate's scale; 0 without a scale."""
    scale = aligned.estimate.alphabet
    if not isinstance(scale, Scale):
        return 0
    numbers = gold_positions(aligned)
    return int(((numbers < scale.low) | (numbers > scale.high)).sum())


def require_estimate_of_labels(aligned: AlignedGold) -> None:
    """Check that the estimate has labels.

    Raises:
        SettingsError: an estimate of numbers.
    """
    if not aligned.estimate.categorical:
        raise SettingsError(
            "an error rate or log loss needs an estimate of labels",
            value=aligned.estimate.method,
            hint="Use mae or rmse for numbers.",
        )


def comparable_gold(aligned: AlignedGold, name: ErrorName) -> NDArray[Any]:
    """Return gold as an error compares it, label names or numbers, shape (scored tasks,)."""
    alphabet = aligned.estimate.alphabet
    if name == "error_rate" and alphabet is not None:
        return np.array(alphabet.names)[gold_codes(aligned)]
    if alphabet is not None and not alphabet.ordered:
        raise SettingsError(f"{name} needs numbers or ordered labels", value=alphabet.names, hint="Use error_rate.")
    return gold_positions(aligned)


def gold_codes(aligned: AlignedGold) -> NDArray[np.int64]:
    """Return the label code of every scored truth, shape (scored tasks,)."""
    alphabet = aligned.estimate.alphabet
    assert alphabet is not None
    if isinstance(alphabet, Scale):
        numbers = gold_positions(aligned)
        codes = alphabet.encode(numbers)
        wrong = np.flatnonzero(np.abs(alphabet.values[codes] - numbers) > FLAT * alphabet.range)
    else:
        code_of = {name: code for code, name in enumerate(alphabet.names)}
        codes = np.array([code_of.get(str(truth), -1) for truth in aligned.truths])
        wrong = np.flatnonzero(codes < 0)
    if len(wrong):
        truth = numpy_scalars_to_python(aligned.truths[wrong[0]])
        task = numpy_scalars_to_python(aligned.estimate.tasks[aligned.at[wrong[0]]])
        raise ReportsError(
            f"gold label {truth!r} of task {task!r} is not among {alphabet.names}",
            source="gold",
            hint="Write it as in the answers, or leave the task out.",
        )
    return codes


def gold_positions(aligned: AlignedGold) -> NDArray[np.float64]:
    """Return every scored truth as a number, or its label's position, shape (scored tasks,)."""
    alphabet = aligned.estimate.alphabet
    if alphabet is None or isinstance(alphabet, Scale):
        try:
            numbers = np.array([float(truth) for truth in aligned.truths])
        except (TypeError, ValueError) as error:
            raise ReportsError("gold truths must be numbers", source="gold", examples=str(error)) from error
        if not np.isfinite(numbers).all():
            raise ReportsError("gold truths must be finite numbers", source="gold", hint="Leave unknown ones out.")
        if not squares_safely(numbers).all():
            found = f"{numbers[~squares_safely(numbers)][0]:g}"
            raise ReportsError(f"gold truths {MAGNITUDE_RULE}", source="gold", examples=found, hint=MAGNITUDE_HINT)
        return numbers
    return gold_codes(aligned).astype(float)


def tied_label_weights(aligned: AlignedGold) -> NDArray[np.float64]:
    """Return weights 1 / t on t tied labels with the highest posterior, indexed [scored task, label]."""
    best = winners(aligned.estimate.posterior[aligned.at])
    return best / best.sum(axis=1, keepdims=True)


def weighted_predictions(aligned: AlignedGold) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return predicted numbers and their weights, both broadcastable to [scored task, choice]."""
    estimate = aligned.estimate
    if estimate.categorical and estimate.alphabet is not None:
        return estimate.alphabet.values[None, :], tied_label_weights(aligned)
    truth = estimate.posterior[aligned.at]
    filled = np.where(np.isnan(truth), float(estimate.baseline.constant), truth)
    return filled[:, None], np.ones((1, 1))


def pearson_correlation(aligned: AlignedGold) -> float:
    """Return the Pearson correlation of predictions and gold; 0 if either is constant."""
    numbers, shares = weighted_predictions(aligned)
    guessed, known = (numbers * shares).sum(axis=1), gold_positions(aligned)
    if any(np.ptp(side) <= FLAT * np.abs(side).max() for side in (guessed, known)):
        return 0.0
    return float(np.corrcoef(guessed, known)[0, 1])


def mean_log_loss(aligned: AlignedGold) -> float:
    """Return the mean negative log posterior of gold, in nats; of labels with probabilities."""
    given = aligned.estimate.posterior[aligned.at, gold_codes(aligned)]
    return 0.0 - float(np.log(np.maximum(given, SMALLEST_PROBABILITY)).mean())  # 0 where all are certain, not -0
