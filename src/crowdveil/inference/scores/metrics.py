"""Scores of estimates against gold, always with the error of the best constant.

Gold maps task names to truths: label names, or numbers. If t labels share the highest posterior, each counts as the
answer with weight 1 / t, so the order of labels has no effect.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.display.counts import number_of
from crowdveil.em.estimate import Estimate, error_text
from crowdveil.errors import SettingsError
from crowdveil.inference.scores.gold_errors import (
    AlignedGold,
    align_gold,
    comparable_gold,
    count_outside_scale,
    count_without_reports,
    default_error,
    gold_codes,
    mean_error,
    mean_log_loss,
    pearson_correlation,
    tied_label_weights,
)
from crowdveil.inference.scores.gold_errors import ErrorName as ErrorName

BINS = 10
"""Bins of equal width of the confidence, in the expected calibration error (Guo et al., ICML 2017)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Score of an estimate against gold, with the best constant's error and the correlation for comparison.

    Attributes:
        error: error of the estimate over the scored tasks.
        error_name: "error_rate" (share of wrong labels), "mae" or "rmse" (in units of the answers, or label positions).
        baseline: error of the best constant, chosen with knowledge of gold.
        constant: the best constant.
        correlation: Pearson correlation of predictions and gold, as numbers or label positions; 0 if one is constant.
        log_loss: mean negative log posterior of gold, in nats; None unless the error is the error rate and the method
            has probabilities.
        calibration_error: expected calibration error of the confidence, in ten bins; None where `log_loss` is.
        scored: gold tasks among the estimate's tasks.
        missing: scored tasks without a report; numeric estimates use their own constant there.
        unknown: gold tasks outside the estimate's tasks, not scored.
        outside: scored tasks whose truth is outside the scale; 0 without a scale.
    """

    error: float
    error_name: ErrorName
    baseline: float
    constant: str
    correlation: float
    log_loss: float | None
    calibration_error: float | None
    scored: int
    missing: int
    unknown: int
    outside: int

    @property
    def gain_over_constant(self) -> float:
        """Error of the best constant minus error of the estimate."""
        return self.baseline - self.error

    def __str__(self) -> str:
        left_out = f", {self.unknown} unknown left out" if self.unknown else ""
        own, best = error_text(self.error, 4), error_text(self.baseline, 4)
        confidence = "" if self.log_loss is None else f", log-loss {self.log_loss:.3f}"
        if self.calibration_error is not None:
            confidence += f", calibration error {self.calibration_error:.3f}"
        return (
            f"{self.error_name} {own} (constant {self.constant}: {best}), correlation {self.correlation:.3f}, "
            f"{number_of(self.scored, 'gold task')}, {self.missing} without reports{left_out}{confidence}"
        )


class BestConstant(NamedTuple):
    """Constant answer with the smallest error, and that error."""

    constant: str
    error: float


def score(estimate: Estimate, gold: Any, *, error: ErrorName | None = None) -> Score:
    """Return the score of an estimate against gold.

    Args:
        estimate: labels or numbers.
        gold: truth by task name, or a frame with the columns task and truth.
        error: by default the error rate for categories, the mean absolute error for numbers and scales.

    Raises:
        SettingsError: an error that is undefined for the estimate.
        ReportsError: no gold task is among the tasks, a gold label is not in the alphabet, or a gold number is not one.
    """
    name = error or default_error(estimate)
    aligned = align_gold(estimate, gold)
    own = mean_error(aligned, name)
    best = best_constant(comparable_gold(aligned, name), name)
    has_confidence = name == "error_rate" and estimate.probabilistic
    return Score(
        error=own,
        error_name=name,
        baseline=best.error,
        constant=best.constant,
        correlation=pearson_correlation(aligned),
        log_loss=mean_log_loss(aligned) if has_confidence else None,
        calibration_error=calibration_error(calibration_bins(aligned), len(aligned.at)) if has_confidence else None,
        scored=len(aligned.at),
        missing=count_without_reports(aligned),
        unknown=aligned.unknown,
        outside=count_outside_scale(aligned),
    )


def accuracy(estimate: Estimate, gold: Any) -> float:
    """Return the mean over gold tasks of 1 / (number of tied labels) if gold is among them, else 0."""
    return 1 - error_rate(estimate, gold)


def error_rate(estimate: Estimate, gold: Any) -> float:
    """Return one minus `accuracy`; raises as `score` does."""
    return mean_error(align_gold(estimate, gold), "error_rate")


def best_constant(truths: Sequence[Any] | NDArray[Any], error: ErrorName) -> BestConstant:
    """Return the best constant for these truths: majority label, lower median or mean.

    Raises:
        SettingsError: no truth, or labels for an error of numbers.
    """
    if len(truths) == 0:
        raise SettingsError("the best constant needs at least one truth", value=truths)
    if error == "error_rate":
        names, counts = np.unique(np.asarray(truths).astype(str), return_counts=True)
        return BestConstant(str(names[counts.argmax()]), 1 - float(counts.max()) / len(truths))
    try:
        numbers = np.asarray(truths, dtype=float)
    except ValueError as wrong:
        raise SettingsError(f"{error} needs numbers", value=str(wrong), hint="Use error_rate for labels.") from wrong
    if error == "mae":
        middle = float(np.sort(numbers)[(len(numbers) - 1) // 2])
        return BestConstant(f"{middle:g}", float(np.abs(numbers - middle).mean()))
    return BestConstant(f"{numbers.mean():g}", float(numbers.std()))


def calibration_bins(aligned: AlignedGold) -> NDArray[np.float64]:
    """Return sums of confidences and of right answers (ties split) by bin of confidence; [bin, (confidence, right)]."""
    posterior, places = aligned.estimate.posterior[aligned.at], np.arange(len(aligned.at))
    confidence, right = posterior.max(axis=1), tied_label_weights(aligned)[places, gold_codes(aligned)]
    code = np.minimum((confidence * BINS).astype(int), BINS - 1)
    sums = [np.bincount(code, weights=column, minlength=BINS) for column in (confidence, right)]
    return np.stack(sums, axis=1).astype(float)


def calibration_error(bins: NDArray[np.float64], scored: int) -> float:
    """Return the expected calibration error: the mean over tasks of |accuracy - mean confidence| of their bin."""
    return float(np.abs(bins[:, 0] - bins[:, 1]).sum()) / scored
