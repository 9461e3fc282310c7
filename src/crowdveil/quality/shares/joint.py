"""Joint table of two sensitive yes-or-no questions: shares of its four cells, and their odds ratio.

Two questions: a person's reports are draws of the product of both channels, Q1 x Q2, whose inputs are pairs of answers;
five of the nine hold no answer to one or both. One combined question with four labels has one channel. Either way the
first four inputs are the cells of the table, f^ = H' N / n their unclipped shares (see `score`), and
    ln OR = ln f11 - ln f12 - ln f21 + ln f22,  with variance d' J^-1 d / n,  d = (1, -1, -1, 1) / f on the cells.
The interval of the odds ratio holds the values whose profile likelihood loses at most z^2 / 2: with the odds ratio held
the table follows from its margins (Plackett 1965), which are free, as are the inputs beside it.
The privacy loss of a person is the sum of both epsilons, or the one of the combined question; a change of one of its
two answers has this loss, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from scipy.stats import chi2

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.frame_answers import ColumnKeywords
from crowdveil.answers.frames import ArrowRows
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.errors import SettingsError
from crowdveil.hints import advice, advising_own_arguments, command_advice
from crowdveil.quality.shares.counts import Cells
from crowdveil.quality.shares.mixture import fit
from crowdveil.quality.shares.score import TINY, ShareEstimates, normal_quantile, right_inverse, score_estimates
from crowdveil.quality.shares.share_function import LEVEL, cells_of_evidence, require_level, share_evidence
from crowdveil.quality.shares.symbols import NO_REPORT, place_of_task, symbol_of_workers, two_labels_hint

SIGNS = np.array([1.0, -1.0, -1.0, 1.0])
"""Signs of the logarithms of the cells in that of the odds ratio: both, first only, second only, neither."""
FARTHEST, BISECTIONS = 12.0, 24
"""Largest logarithm of an odds ratio that is searched, and steps of the search."""
STEP = 1e-7
"""Difference of margins by which the table is differentiated."""
DIGITS = 6
"""Decimals of shares."""


@dataclass(frozen=True, kw_only=True, eq=False)
class JointShares(ArrowRows):
    """Joint shares of two questions among those who answered both; arrays are indexed [first label, second label].

    Attributes:
        questions: names of the two questions, or of the combined one twice.
        labels: labels of the first and of the second question.
        combined: whether it is one question with four labels.
        cells: its labels: both, the first only, the second only, neither; empty for two questions.
        share, unclipped, low, high, standard_error: of the cells, as in `Share`.
        odds_ratio: of the unclipped shares; nan if one is not positive.
        log_standard_error: of the logarithm of the odds ratio.
        odds_low, odds_high: interval of the odds ratio; 0 or infinite without an end.
        p_value: likelihood ratio test of independent answers.
        people: number of people with a report, or asked, on both questions.
        level: level of the intervals.
    """

    questions: tuple[str, str]
    labels: tuple[tuple[str, str], tuple[str, str]]
    combined: bool
    cells: tuple[str, ...]
    share: NDArray[np.float64]
    unclipped: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    odds_ratio: float
    log_standard_error: float
    odds_low: float
    odds_high: float
    p_value: float
    people: int
    level: float

    def to_arrow(self) -> pa.Table:
        """Return the cells as an Arrow table: first, second, share, unclipped, low, high, standard_error.

        Of a combined question `label` is the label of the cell; else it is empty.
        """
        values = ("share", "unclipped", "low", "high", "standard_error")
        return pa.Table.from_pylist(
            [
                {
                    "first": first,
                    "second": second,
                    "label": self.cells[2 * row + column] if self.combined else "",
                    **{name: float(getattr(self, name)[row, column]) for name in values},
                }
                for row, first in enumerate(self.labels[0])
                for column, second in enumerate(self.labels[1])
            ]
        )

    def to_json(self) -> dict[str, Any]:
        """Return the table as JSON values; what is unknown or infinite is None."""
        names = ("odds_ratio", "log_standard_error", "odds_low", "odds_high", "p_value")
        numbers = {name: float(getattr(self, name)) for name in names}
        cells = [
            {name: None if value != value else value for name, value in row.items()}
            for row in self.to_arrow().to_pylist()
        ]
        return {
            "questions": list(self.questions),
            "combined": self.combined,
            "people": self.people,
            "cells": cells,
            **{name: value if np.isfinite(value) else None for name, value in numbers.items()},
        }

    def __str__(self) -> str:
        """Return the cells and the odds ratio as lines of text."""
        cells = [
            f"{first}, {second}{f' ({self.cells[2 * row + column]})' if self.combined else ''}:"
            f" {100 * self.share[row, column]:.1f} %"
            f" ({100 * self.low[row, column]:.1f} to {100 * self.high[row, column]:.1f})"
            for row, first in enumerate(self.labels[0])
            for column, second in enumerate(self.labels[1])
        ]
        odds = f"odds ratio {self.odds_ratio:.3g} ({self.odds_low:.3g} to {self.odds_high:.3g}), p = {self.p_value:.3f}"
        return "\n".join([*cells, odds])


@advising_own_arguments
def joint_share(
    answers: Any,
    first: Any = None,
    second: Any = None,
    *,
    cells: Sequence[str] | None = None,
    channel: Channel | ChannelTable | None = None,
    assignment: Assignment | None = None,
    level: float = LEVEL,
    **options: Unpack[ColumnKeywords],
) -> JointShares:
    """Return the joint table of two questions with two labels each, and their odds ratio.

    Args:
        answers, channel, assignment, level, options: as in `share`; all reports through one channel.
        first, second: names of two tasks. Without `second`, `first` is a combined question with four labels.
        cells: labels of the combined question, in this order: both, the first only, the second only, neither.

    Raises:
        ReportsError: as `share`.
        SettingsError: other numbers of labels, reports of several channels, or channels that leave the table unknown.

    >>> import crowdveil as cv
    >>> answers = {"task": [*"ab"] * 100, "worker": [n for n in range(100) for _ in "ab"]}
    >>> pairs = [("yes", "yes")] * 30 + [("yes", "no")] * 10 + [("no", "yes")] * 20 + [("no", "no")] * 40
    >>> found = cv.joint_share(answers | {"label": [label for pair in pairs for label in pair]}, "a", "b")
    >>> found.share.tolist(), round(found.odds_ratio, 6)
    ([[0.4, 0.2], [0.1, 0.3]], 6.0)
    """
    require_level(level)
    evidence = share_evidence(answers, channel, assignment, options)
    asked = cells_of_evidence(evidence)
    if len(asked.model.channel) and asked.model.channel.max() > 0:
        rule = "a joint table needs reports of one channel"
        raise SettingsError(rule, value=f"{asked.model.channel.max() + 1} channels", hint="Take one level at a time.")
    rule, hint = "a joint table is of tasks of the answers", _naming_hint(asked)
    place = place_of_task(asked, first, rule, hint)
    if cells is not None and second is not None:
        named = advice("Leave {second} or {cells} out.")
        raise SettingsError("cells are labels of one combined question", value="two questions", hint=named)
    if second is None:
        order = _require_cells(asked, cells)
        counts, table, labels = _combined(asked, place, order)
        questions = (str(asked.reports.tasks[place]),) * 2
    else:
        order, other = (), place_of_task(asked, second, rule, hint)
        counts, table, labels = _crossed(asked, place, other)
        questions = (str(asked.reports.tasks[place]), str(asked.reports.tasks[other]))
    if np.linalg.matrix_rank(table) < len(table):
        hint = "Ask through another channel, or one combined question."
        raise SettingsError(
            "reports must determine the joint table", value="a channel that cannot be inverted", hint=hint
        )
    return _joint_shares(counts, table, labels, questions, order, level)


def _naming_hint(cells: Cells) -> str:
    """Return how to name two tasks, or a combined question."""
    one, *others = map(str, np.asarray(cells.reports.tasks[:2]))
    if not others:
        return "Ask both as one question whose four labels are the pairs of answers."
    example = advice("{first}, {second}", first=one, second=others[0])
    two = command_advice("{joint}", example, joint=[one, *others])
    return f"Name two, or one with four labels: {two}."


def _require_cells(cells: Cells, order: Sequence[str] | None) -> tuple[str, ...]:
    """Return the labels of a combined question in the order of the cells.

    Raises:
        SettingsError: the question has another number of labels, or no order of them is given: it says what each means.
    """
    names = cells.symbols[: cells.model.labels]
    chosen = () if order is None else tuple(map(str, order))
    if len(names) == 4 and sorted(chosen) == sorted(names):
        return chosen
    rule = "a combined question has four labels: both, the first only, the second only, neither"
    if len(names) != 4:
        raise SettingsError(rule, value=", ".join(names), hint=_naming_hint(cells))
    hint = f"Its labels are {', '.join(names)}; name each once, in this order: {advice('{cells}')}."
    raise SettingsError(rule, value=", ".join(chosen) or "no order of its labels", hint=hint)


def _combined(
    cells: Cells, task: int, order: tuple[str, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[tuple[str, str], tuple[str, str]]]:
    """Return counts, table with the four cells first, and labels, of a question with four labels."""
    names = cells.symbols[: cells.model.labels]
    inputs = [*map(names.index, order), *range(4, len(cells.symbols))]
    symbol = symbol_of_workers(cells, task)
    counts = np.bincount(symbol[symbol != NO_REPORT], minlength=len(cells.model.channel)).astype(float)
    return counts, cells.model.full_table[inputs], (("yes", "no"), ("yes", "no"))


def _crossed(
    cells: Cells, first: int, second: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[tuple[str, str], tuple[str, str]]]:
    """Return counts of pairs of reports, the product of the channels with the four cells first, and labels."""
    names = cells.symbols[: cells.model.labels]
    if len(names) != 2 or first == second:
        rule = "a joint table is of two questions with the same two labels"
        twice = first == second
        value = "one question twice" if twice else f"labels {', '.join(names)}"
        raise SettingsError(rule, value=value, hint="Name another question." if twice else two_labels_hint(cells))
    one, other = (symbol_of_workers(cells, task) for task in (first, second))
    both, width = (one != NO_REPORT) & (other != NO_REPORT), len(cells.model.channel)
    counts = np.bincount(one[both] * width + other[both], minlength=width**2).astype(float)
    table, inputs = cells.model.full_table, len(cells.symbols)
    pairs = [(a, b) for a in range(inputs) for b in range(inputs)]
    ordered = sorted(pairs, key=lambda pair: (pair[0] > 1 or pair[1] > 1, pair))
    crossed = np.stack([np.outer(table[a], table[b]).ravel() for a, b in ordered])
    return counts, crossed, ((names[0], names[1]), (names[0], names[1]))


def _joint_shares(
    counts: NDArray[np.float64], table: NDArray[np.float64], labels: tuple[tuple[str, str], tuple[str, str]],
    questions: tuple[str, str], order: tuple[str, ...], level: float,
) -> JointShares:  # fmt: skip
    found = score_estimates(counts[None], table, 4, np.full(len(table), level))
    cells = ShareEstimates(*(np.round(values[0, :4].reshape(2, 2), DIGITS) for values in found))
    ratio, error = odds_ratio(counts, table)
    likelihood = OddsLikelihood(counts, table)
    low, high = likelihood.interval(level)
    return JointShares(
        questions=questions, labels=labels, combined=bool(order), cells=order, share=cells.share,
        unclipped=cells.unclipped, low=cells.low, high=cells.high,
        standard_error=cells.standard_error, odds_ratio=ratio,
        log_standard_error=error, odds_low=low, odds_high=high,
        p_value=float(chi2.sf(max(2 * (likelihood.best - likelihood.value(0.0)), 0.0), 1)),
        people=int(counts.sum()), level=level,
    )  # fmt: skip


def odds_ratio(counts: NDArray[np.float64], table: NDArray[np.float64]) -> tuple[float, float]:
    """Return the odds ratio of the unclipped cells and the standard error of its logarithm; nan if one is not positive.

    Args:
        counts: reports, shape (reports,).
        table: P(report | input), indexed [input, report]; the first four inputs are the cells.
    """
    n = max(counts.sum(), 1.0)
    inverse = right_inverse(table, fit(counts[None], table).reports)[0]
    shares = counts / n @ inverse
    if (shares[:4] <= 0).any():
        return float("nan"), float("nan")
    slope = inverse[:, :4] @ (SIGNS / shares[:4])
    return float(np.exp(SIGNS @ np.log(shares[:4]))), float(np.sqrt(counts @ slope**2) / n)


class OddsLikelihood:
    """Profile likelihood of the logarithm of the odds ratio."""

    def __init__(self, counts: NDArray[np.float64], table: NDArray[np.float64]) -> None:
        self.counts, self.table = counts, table
        best = fit(counts[None], table)
        self.best = float(best.log_likelihood[0])
        shares = np.maximum(best.shares[0], 1e-6)
        four = shares[:4] / shares[:4].sum()
        self.log_odds = float(np.clip(SIGNS @ np.log(four), -FARTHEST, FARTHEST))
        weights = np.log(np.append(shares[:4].sum(), shares[4:]))
        self.start = np.concatenate(([_logit(four[0] + four[1]), _logit(four[0] + four[2])], weights[1:] - weights[0]))

    def value(self, log_odds: float) -> float:
        """Return the largest log-likelihood with this logarithm of the odds ratio."""
        found = minimize(self._loss_and_slope, self.start, args=(float(np.exp(log_odds)),), jac=True, method="BFGS")
        return -float(found.fun)

    def _loss_and_slope(self, free: NDArray[np.float64], ratio: float) -> tuple[float, NDArray[np.float64]]:
        """Return minus the log-likelihood and its derivatives by the margins and the weights of the inputs."""
        margins = expit(free[:2])
        weights = np.append(0.0, free[2:])
        weights = np.exp(weights - logsumexp(weights))
        cells = plackett_table(margins[0], margins[1], ratio)
        reports = np.maximum(np.concatenate((weights[0] * cells, weights[1:])) @ self.table, TINY)
        gain = self.table @ (self.counts / reports)
        by_weight = np.append(gain[:4] @ cells, gain[4:])
        of_weights = weights * (by_weight - by_weight @ weights)
        of_margins = np.zeros(2)
        for place, step in enumerate(STEP * np.eye(2)):
            above, below = (
                plackett_table(float(one[0]), float(one[1]), ratio) for one in (margins + step, margins - step)
            )
            of_margins[place] = weights[0] * gain[:4] @ (above - below) / (2 * STEP)
        of_margins *= margins * (1 - margins)
        slope = np.concatenate((of_margins, of_weights[1:]))
        return -float(self.counts @ np.log(reports)), -slope

    def interval(self, level: float) -> tuple[float, float]:
        """Return the ends of the interval of the odds ratio; 0 or infinite beyond the largest that is searched."""
        bound = normal_quantile(level) ** 2 / 2
        ends = []
        for outer in (-FARTHEST, FARTHEST):
            inner, end = self.log_odds, outer
            if self.best - self.value(outer) <= bound:
                ends.append(0.0 if outer < 0 else float("inf"))
                continue
            for _ in range(BISECTIONS):
                middle = (inner + end) / 2
                inner, end = (middle, end) if self.best - self.value(middle) <= bound else (inner, middle)
            ends.append(float(np.exp(end)))
        return ends[0], ends[1]


def _logit(share: float) -> float:
    held = min(max(float(share), 1e-6), 1 - 1e-6)
    return float(np.log(held / (1 - held)))


def plackett_table(rows: float, columns: float, ratio: float) -> NDArray[np.float64]:
    """Return the cells of the table with the margins of its first row and column and an odds ratio (Plackett 1965)."""
    if abs(ratio - 1) < 1e-9:
        both = rows * columns
    else:
        total = 1 + (rows + columns) * (ratio - 1)
        root = np.sqrt(max(total**2 - 4 * ratio * (ratio - 1) * rows * columns, 0.0))
        # The two forms are equal; each is stable on its side.
        both = (total - root) / (2 * (ratio - 1)) if total < 0 else 2 * ratio * rows * columns / (total + root)
    cells = np.array([both, rows - both, columns - both, 1 - rows - columns + both])
    return np.maximum(cells, 0.0)
