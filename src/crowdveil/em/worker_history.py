"""Worker history: the earlier quality of workers as prior of a new fit.

Earlier answers have a likelihood. For labels, n answers of which r were right: prod_z C[z, z]^(r p_z) (1 -
C[z, z])^((n - r) p_z), with p_z the share of label z among the answers: conjugate, and silent about which errors occur.
For numbers, n answers with root mean square error s: sigma^(-n) exp(-n s^2 / (2 sigma^2)).

An interval becomes a number of answers by moments: of a Beta distribution, n = m (1 - m) / v - 1; for the logarithm of
sigma, n = 1 / (2 v). Abilities are of answers, not of reports behind a channel.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from crowdveil.answers.frames import as_table
from crowdveil.answers.identifiers import Identifiers
from crowdveil.channels.alphabet import Alphabet, Categories
from crowdveil.em.estimate import Estimate
from crowdveil.errors import ReportsError, SettingsError

MAX_ANSWERS = 20.0
"""Default upper bound of the earlier answers of a worker: people change, and so do tasks."""
HALF_WIDTH = 1.6448536269514722
"""Half the width of a 90 % interval, in standard deviations of a normal distribution."""
MIN_SHARE_INSIDE = 0.25
"""Least distance of a mean from the ends of its interval, as a share of the width."""
COLUMNS = (
    "worker, correct, answers; worker, ability, ability_low, ability_high; or worker, sigma, sigma_low, sigma_high"
)
HINT = f"Give workers.csv of an earlier infer, or a table with the columns {COLUMNS}."


@dataclass(frozen=True, eq=False)
class EarlierAnswers:
    """Earlier answers of the workers of a fit, in their order.

    Attributes:
        number: shape (workers,); 0 for a worker without history.
        quality: share of right answers, or root mean square error; shape (workers,).
    """

    number: NDArray[np.float64]
    quality: NDArray[np.float64]

    @property
    def right(self) -> NDArray[np.float64]:
        """Number of right answers, shape (workers,)."""
        return self.number * self.quality

    @property
    def wrong(self) -> NDArray[np.float64]:
        """Number of wrong answers, shape (workers,)."""
        return self.number * (1 - self.quality)


@dataclass(frozen=True, eq=False, kw_only=True)
class WorkerHistory:
    """Earlier quality of workers.

    Attributes:
        workers: names as text.
        answers: number of earlier answers that the quality is worth, shape (workers,); 0 for none.
        quality: share of right answers, or standard deviation of errors; shape (workers,).
        quality_name: "ability" or "sigma".
        labels: labels of the earlier answers; None if unknown.
    """

    qualities: ClassVar[tuple[str, ...]] = ("ability", "sigma")
    workers: tuple[str, ...]
    answers: NDArray[np.float64]
    quality: NDArray[np.float64]
    quality_name: Literal["ability", "sigma"]
    labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if len(set(self.workers)) != len(self.workers):
            twice = next(name for name in self.workers if self.workers.count(name) > 1)
            raise ReportsError("a history has one row for each worker", examples=twice, hint=HINT)
        highest = 1.0 if self.quality_name == "ability" else np.inf
        if not (np.isfinite(self.answers).all() and (self.answers >= 0).all()):
            raise ReportsError("numbers of earlier answers must be finite and not negative", hint=HINT)
        if not (np.isfinite(self.quality).all() and (self.quality >= 0).all() and (self.quality <= highest).all()):
            rule = "in [0, 1]" if highest == 1 else "finite and not negative"
            raise ReportsError(f"{self.quality_name} of a history must be {rule}", hint=HINT)

    @classmethod
    def from_counts(cls, workers: ArrayLike, correct: ArrayLike, answers: ArrayLike, **given: Any) -> Self:
        """Return the history of known numbers of answers, of which `correct` were right; shapes (workers,).

        Args:
            workers, correct, answers: as above.
            given: `max_answers` and `labels`, as in `from_frame`.

        Raises:
            ReportsError: fewer than 0 or more than all answers are right, or a worker has two rows.
        """
        right, number = np.asarray(correct, dtype=float), np.asarray(answers, dtype=float)
        if not ((right >= 0) & (right <= number) & np.isfinite(number)).all():
            raise ReportsError("correct answers must be finite, at least 0 and at most all answers", hint=HINT)
        share = np.divide(right, number, out=np.full(len(number), 0.5), where=number > 0)
        return cls._with_bounded_answers(workers, number, share, "ability", **given)

    @classmethod
    def from_estimate(cls, estimate: Estimate, **given: Any) -> Self:
        """Return the history of the workers of an earlier estimate; arguments and errors as `from_frame`."""
        labels = estimate.alphabet.names if isinstance(estimate.alphabet, Categories) else None
        return cls.from_frame(estimate.workers_frame(), **{"labels": labels} | given)

    @classmethod
    def from_frame(cls, frame: Any, *, max_answers: float = MAX_ANSWERS, labels: tuple[str, ...] | None = None) -> Self:
        """Return the history in a frame: gold counts (`correct`, `answers`), or a quality with its 90 % interval.

        A worker without a quality has no history.

        Args:
            frame: pandas, Polars or Arrow table, or dict, with the columns worker, correct, answers; or worker,
                ability, ability_low, ability_high; or worker, sigma, sigma_low, sigma_high.
            max_answers: upper bound of the earlier answers of a worker; more count as this number.
            labels: labels of the earlier answers, which a fit compares with its own.

        Raises:
            ReportsError: other columns, or numbers out of range.
            SettingsError: a negative or infinite bound.
        """
        table = as_table(frame, source="history")
        present = set(table.column_names)
        given: dict[str, Any] = {"max_answers": max_answers, "labels": labels}
        if {"worker", "correct", "answers"} <= present:
            correct, answers = (
                np.where(np.isnan(one), 0, one) for one in _number_columns(table, ("correct", "answers"))
            )
            return cls.from_counts(_worker_names(table), correct, answers, **given)
        for name in cls.qualities:
            columns = (name, f"{name}_low", f"{name}_high")
            if {"worker", *columns} <= present:
                quality, low, high = _number_columns(table, columns)
                if ((low > quality) | (high < quality)).any():
                    raise ReportsError(f"{name} of a history must be inside its interval", hint=HINT)
                number = (
                    answers_of_ability_interval(quality, low, high)
                    if name == "ability"
                    else answers_of_sigma_interval(low, high)
                )
                return cls._with_bounded_answers(_worker_names(table), number, np.nan_to_num(quality), name, **given)
        found = ", ".join(table.column_names)
        raise ReportsError(
            "a worker history needs an ability, or a sigma, with its interval, or gold counts",
            examples=found,
            hint=HINT,
        )

    @classmethod
    def _with_bounded_answers(
        cls,
        workers: ArrayLike,
        number: NDArray[np.float64],
        quality: NDArray[np.float64],
        name: Any,
        *,
        max_answers: float = MAX_ANSWERS,
        labels: tuple[str, ...] | None = None,
    ) -> Self:
        if not 0 <= max_answers < np.inf:
            raise SettingsError("max_answers must be finite and not negative", value=max_answers)
        names = tuple(str(worker) for worker in np.asarray(workers, dtype=object).tolist())
        bounded = np.minimum(number, max_answers)
        return cls(workers=names, answers=bounded, quality=quality, quality_name=name, labels=labels)

    def aligned_answers(self, workers: Identifiers) -> EarlierAnswers | None:
        """Return the earlier answers in the order of other workers; None if there are none."""
        if not self.workers:
            return None
        row = {name: place for place, name in enumerate(self.workers)}
        found = np.array([row.get(str(name), -1) for name in workers.tolist()], dtype=np.int64)
        number = np.where(found >= 0, self.answers[found], 0.0)
        quality = np.where(number > 0, self.quality[found], 0.5)
        return EarlierAnswers(number, quality) if number.any() else None

    def require_compatible_history(
        self, kind: Literal["categorical", "numeric"], alphabet: Alphabet | None, method: str
    ) -> None:
        """Refuse the history of other labels or of another kind of quality.

        Raises:
            SettingsError: the history does not go with this method or alphabet.
        """
        needed = "ability" if kind == "categorical" else "sigma"
        if self.quality_name != needed:
            raise SettingsError(
                f"{method} needs a history of {needed}",
                value=self.quality_name,
                hint="Give the workers.csv of a method of the same kind.",
            )
        if self.labels is not None and alphabet is not None and set(self.labels) != set(alphabet.names):
            raise SettingsError(
                f"the history must be of the same labels, {alphabet.names}",
                value=self.labels,
                hint="An ability depends on the labels: give the history of the same question.",
            )


def as_history(history: Any) -> WorkerHistory:
    """Return a history as it is, or that of an earlier estimate or frame; errors as `WorkerHistory.from_frame`."""
    if isinstance(history, WorkerHistory):
        return history
    if isinstance(history, Mapping) and "worker" not in history:
        raise ReportsError(
            "a history must be an estimate, or a frame with the columns worker, correct, answers",
            source="history",
            examples=", ".join(map(repr, list(history)[:3])),
            hint=HINT,
        )
    is_estimate = isinstance(history, Estimate)
    return WorkerHistory.from_estimate(history) if is_estimate else WorkerHistory.from_frame(history)


def answers_of_ability_interval(
    mean: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the concentration of Beta distributions with these means and 90 % intervals; 0 where one is nan.

    Means at an end of their interval are moved inside: a Beta distribution has its mean between its quantiles.
    """
    width = high - low
    inside = np.clip(mean, low + MIN_SHARE_INSIDE * width, high - MIN_SHARE_INSIDE * width)
    with np.errstate(divide="ignore", invalid="ignore"):
        number = inside * (1 - inside) / (width / (2 * HALF_WIDTH)) ** 2 - 1
    return np.nan_to_num(np.maximum(number, 0.0), nan=0.0, posinf=np.finfo(float).max)


def answers_of_sigma_interval(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the number of normal errors whose standard deviation is known to these 90 % intervals; 0 where nan."""
    with np.errstate(divide="ignore", invalid="ignore"):
        number = 0.5 * (2 * HALF_WIDTH / np.log(high / low)) ** 2
    return np.nan_to_num(number, nan=0.0, posinf=np.finfo(float).max)


def _worker_names(table: pa.Table) -> list[str]:
    return [str(name) for name in table["worker"].to_pylist()]


def _number_columns(table: pa.Table, names: tuple[str, ...]) -> list[NDArray[np.float64]]:
    """Return columns as numbers, nan where empty."""
    try:
        return [_numbers_with_nan_if_empty(table[name]) for name in names]
    except (pa.ArrowException, ValueError) as error:
        raise ReportsError(f"{', '.join(names)} of a history must be numbers", examples=str(error)[:200]) from error


def _numbers_with_nan_if_empty(column: Any) -> NDArray[np.float64]:
    cells: list[Any] = column.to_pylist()
    return np.array([np.nan if cell in (None, "") else float(cell) for cell in cells])
