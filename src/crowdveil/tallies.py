"""Scores against so many known truths that they are looked at in parts, by error rate or mean absolute error."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.aligned_gold import (
    FLAT,
    Aligned,
    ErrorName,
    error_of,
    gold_numbers,
    guesses,
    log_loss_of,
    missing_of,
    outside_of,
    targets,
    usual_error,
)
from crowdveil.estimate import Estimate
from crowdveil.metrics import Score


@dataclass(frozen=True, eq=False, kw_only=True)
class Tally:
    """What some gold tasks say of an estimate, where all of them are too many at once; `+` adds those of others.

    Attributes:
        error, loss: sums of absolute errors (or wrong labels) and of logarithmic losses (nan where there are none).
        scored, missing, outside: gold tasks, those without a report, and those whose truth is outside the scale.
        targets, counts: different truths, and how often each occurs.
        means, moments: of guesses and of truths as numbers, shape (2,), and sums of products of what is beside them.
        largest: of both, without sign, shape (2,).
    """

    error: float
    loss: float
    scored: int
    missing: int
    outside: int
    targets: NDArray[Any]
    counts: NDArray[np.int64]
    means: NDArray[np.float64]
    moments: NDArray[np.float64]
    largest: NDArray[np.float64]

    @classmethod
    def of(cls, estimate: Estimate, at: NDArray[np.int64], truths: list[Any]) -> "Tally":
        """Count some tasks: their codes, and their truths as in gold."""
        aligned, name = Aligned(estimate, at, truths, 0), usual_error(estimate)
        numbers, shares = guesses(aligned)
        pairs = np.array([(numbers * shares).sum(axis=1), gold_numbers(aligned)])
        truths_found, counts = np.unique(targets(aligned, name), return_counts=True)
        means = pairs.mean(axis=1)
        beside = pairs - means[:, None]
        return cls(
            error=error_of(aligned, name) * len(at),
            loss=log_loss_of(aligned) * len(at) if name == "error_rate" and estimate.probabilistic else math.nan,
            scored=len(at),
            missing=missing_of(aligned),
            outside=outside_of(aligned),
            targets=truths_found,
            counts=counts,
            means=means,
            moments=beside @ beside.T,
            largest=np.abs(pairs).max(axis=1),
        )

    def __add__(self, other: "Tally") -> "Tally":
        """Add other tasks (moments: Chan, Golub and LeVeque 1979)."""
        scored, apart = self.scored + other.scored, other.means - self.means
        targets, place = np.unique(np.concatenate((self.targets, other.targets)), return_inverse=True)
        counts = np.bincount(place, np.concatenate((self.counts, other.counts)))
        return Tally(
            error=self.error + other.error,
            loss=self.loss + other.loss,
            scored=scored,
            missing=self.missing + other.missing,
            outside=self.outside + other.outside,
            targets=targets,
            counts=counts.astype(np.int64),
            means=self.means + apart * other.scored / scored,
            moments=self.moments + other.moments + np.outer(apart, apart) * (self.scored * other.scored / scored),
            largest=np.maximum(self.largest, other.largest),
        )

    def score(self, error_name: ErrorName, unknown: int) -> Score:
        """Return what `metrics.score` says of all these tasks; `unknown` gold tasks were left out."""
        constant, baseline = _best_constant(self.targets, self.counts)
        spread = np.sqrt(np.diag(self.moments) / self.scored)
        flat = (spread <= FLAT * self.largest).any()
        return Score(
            error=self.error / self.scored,
            error_name=error_name,
            baseline=baseline,
            constant=constant,
            correlation=0.0 if flat else float(self.moments[0, 1] / spread.prod() / self.scored),
            log_loss=None if math.isnan(self.loss) else self.loss / self.scored,
            scored=self.scored,
            missing=self.missing,
            unknown=unknown,
            outside=self.outside,
        )


def _best_constant(targets: NDArray[Any], counts: NDArray[np.int64]) -> tuple[str, float]:
    """Return the best constant and its error, as `metrics.best_constant` does, where truths occur several times."""
    if targets.dtype.kind == "U":
        return str(targets[counts.argmax()]), 1 - float(counts.max()) / float(counts.sum())
    middle = float(targets[np.searchsorted(np.cumsum(counts), (counts.sum() - 1) // 2, side="right")])
    return f"{middle:g}", float(np.abs(targets - middle) @ counts) / float(counts.sum())
