"""Share of each label among the answers to a task, estimated from reports, with profile likelihood intervals.

Reports y on a task are draws from sum_x f(x) Q[x, y], where Q is the channel and f the shares of the cells asked, "no
answer" (NULL) included where it is protected. Estimated are g = f(l) / (1 - f(NULL)), the share of label l among the
answers, and f(NULL), the share of no answer among the cells asked, by maximum likelihood over the simplex. With g
fixed the model is again a mixture, with the rows Q[NULL] and g Q[l] + (1 - g) Q[x] for every other label x, so one
solver gives the maximum and the profile. The interval holds the values g whose doubled loss of log-likelihood is at
most the 90 % quantile of chi-squared with 1 degree of freedom, the square of `NORMAL_QUANTILE`. That is too short for
rare labels, so each end is computed with one more report, the one that moves it outwards most (as Clopper and Pearson
1934 do for binomials).
Coverage: tests/statistical/test_share_coverage.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.identifiers import Identifiers
from crowdveil.answers.reports import Reports
from crowdveil.arguments import require_instance
from crowdveil.channels.alphabet import NULL
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.em.deconvolution import estimate_frequencies
from crowdveil.em.estimator import require_null_reports_countable
from crowdveil.em.observation_model import observation_model
from crowdveil.errors import ReportsError
from crowdveil.hints import advice
from crowdveil.quality.agreement.alpha import NORMAL_QUANTILE, refuse_repeats
from crowdveil.quality.agreement.corrected_for_channel import symbol_counts_by_range

PSEUDO_COUNT = 1e-6
"""Pseudo-reports of each input symbol, with which the solver stays inside the simplex."""
EDGE, BISECTIONS = 1e-9, 18
"""Distance from 0 and 1 at which the search of an end begins, and its steps: an end is at most 4e-6 too far out."""
RANGE_ERROR = 1e-6
"""Relative size of a singular value, and of a distance from the table's range, that counts as 0."""
BATCH_NUMBERS = 1 << 20
"""Numbers in the tables of the tasks that are computed together."""
DIGITS = 6
"""Decimals of a share, which the pseudo-reports leave exact."""
MIN_ANSWERS = 0.5
"""Estimated number of answers below which there is no share among them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Shares:
    """Shares of labels, and their 90 % intervals, indexed [task, symbol].

    Attributes:
        tasks: task names.
        symbols: labels; then NULL if participation is protected.
        share: of a label: among the answers; of NULL: among the cells asked. It is nan if reports do not determine it.
        low, high: ends of the interval, each of which holds alone.
        reports: answers to each task; with protected participation the cells asked; shape (tasks,).
    """

    tasks: Identifiers
    symbols: tuple[str, ...]
    share: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    reports: NDArray[np.int64]

    def columns(self, tasks: int | None = None) -> dict[str, NDArray[Any]]:
        """Return the columns of a table with a row for each symbol of the first (or all) tasks.

        `of` is "answers", or "asked" in the rows of no answer, whose label is empty.
        """
        names, width = np.asarray(self.tasks[:tasks]), len(self.symbols)
        of = ["asked" if symbol == NULL else "answers" for symbol in self.symbols]
        return {
            "task": np.repeat(names, width),
            "label": np.tile(["" if symbol == NULL else symbol for symbol in self.symbols], len(names)),
            "of": np.tile(of, len(names)),
            **{name: getattr(self, name)[:tasks].ravel() for name in ("share", "low", "high")},
            "reports": np.repeat(self.reports[:tasks], width),
        }


def label_shares(
    reports: Reports,
    channel: Channel | ChannelTable | None = None,
    *,
    assignment: Assignment | None = None,
    progress: Callable[[float, float | None], None] | None = None,
) -> Shares:
    """Return the share of every label among the answers to each task.

    Args:
        reports: non-NULL reports over all tasks and workers, or answers.
        channel: channel of the reports; None if they are answers.
        assignment: the cells that report; None if every worker reports on every task.
        progress: called with the finished and the expected number of tasks; equal tasks are computed once.

    Raises:
        SettingsError: a frame in place of reports.
        ReportsError: numbers without an alphabet, reports that the channel cannot send, or a worker with two reports on
            a task.
    """
    require_instance("reports", reports, Reports, what="Reports", hint="Such as Reports.from_frame(answers).")
    if reports.alphabet is None:
        raise ReportsError(
            "shares are of labels, or of the values of a scale",
            source="reports",
            examples="numbers without a scale",
            hint=advice("Give the scale of the numbers, or their labels: {alphabet}."),
        )
    refuse_repeats(reports)
    for one in channel.channels if isinstance(channel, ChannelTable) else () if channel is None else (channel,):
        if one.null_output is not None:
            require_null_reports_countable(reports, one, assignment)
    used = channel or Channel.identity(reports.alphabet, "public")
    coded, model = observation_model(used, reports, assignment)
    counts = np.concatenate([part for _, part in symbol_counts_by_range(coded, model)])
    distinct, places = np.unique(counts, axis=0, return_inverse=True)
    table, found = model.full_table, []
    step = max(1, BATCH_NUMBERS // table.size)
    for first in range(0, len(distinct), step):
        found.append(shares_and_interval_ends(distinct[first : first + step], table, model.labels))
        if progress is not None:
            progress(min(first + step, len(distinct)), len(distinct))
    share, low, high = np.concatenate(found, axis=1)[:, places.ravel()]
    return Shares(
        tasks=reports.tasks,
        symbols=used.alphabet.names + ((NULL,) if model.protected else ()),
        share=share,
        low=low,
        high=high,
        reports=counts.sum(axis=1).astype(np.int64),
    )


def shares_and_interval_ends(
    counts: NDArray[np.float64], table: NDArray[np.float64], labels: int
) -> NDArray[np.float64]:
    """Return the shares and the low and high ends of their intervals, indexed [share or end, task, input].

    Args:
        counts: reports by symbol, indexed [task, report].
        table: P(report | input), indexed [input, report].
        labels: number of labels, the first inputs; NULL may be one more.
    """
    fitted = _fit_mixture_shares(counts, table)[1]
    answered = counts.sum(axis=1) * fitted[:, :labels].sum(axis=1) >= MIN_ANSWERS
    known = _share_is_determined_by_reports(table, labels) & (answered[:, None] | (np.arange(len(table)) >= labels))
    inputs = range(len(table))
    shares = np.stack([_share_among_answers(fitted, target, labels) for target in inputs], axis=1)
    ends = [
        np.stack([_interval_ends(counts, table, labels, target, outer) for target in inputs], axis=1)
        for outer in (EDGE, 1 - EDGE)
    ]
    return np.round([np.where(known, shares, np.nan), *ends], DIGITS)


def _fit_mixture_shares(
    counts: NDArray[np.float64], table: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the largest log-likelihood of mixtures of the rows of tables, and the shares of the rows, by task."""
    shares = estimate_frequencies(counts / PSEUDO_COUNT, table, np.ones(table.shape[-2]))
    return (counts * np.log((shares[:, None] @ table)[:, 0])).sum(axis=1), shares


def _share_among_answers(fitted: NDArray[np.float64], target: int, labels: int) -> NDArray[np.float64]:
    return fitted[:, target] / (fitted[:, :labels].sum(axis=1) if target < labels else 1.0)


def _share_is_determined_by_reports(table: NDArray[np.float64], labels: int) -> NDArray[np.bool_]:
    """Return whether the distribution of reports determines each share: its unit vector lies in the table's range."""
    off = table @ np.linalg.pinv(table, rcond=RANGE_ERROR) - np.eye(len(table))
    inside = np.abs(off).max(axis=0) < RANGE_ERROR
    return np.asarray(inside & inside[labels:].all())


def shift_shares(
    counts: NDArray[np.float64], table: NDArray[np.float64], labels: int, target: int, high: bool
) -> tuple[NDArray[np.float64], Callable[[NDArray[np.float64]], NDArray[np.bool_]]]:
    """Return an input's shares after one more report towards an end, and which shares the interval holds on that side.

    The second is a function of one share of each task, shape (tasks,).
    """
    fitted = _fit_mixture_shares(counts, table)[1]
    others = np.where(np.arange(len(table)) < labels, fitted, 0.0)
    others[:, target] = 0.0
    gain = (table[target] - others @ table / others.sum(axis=1, keepdims=True)) / (fitted @ table)
    moved = counts + np.eye(counts.shape[1])[(gain if high else -gain).argmax(axis=1)]
    best, fitted = _fit_mixture_shares(moved, table)

    def holds(share: NDArray[np.float64]) -> NDArray[np.bool_]:
        fixed = _fit_mixture_shares(moved, _mixtures_with_share_of_input(table, labels, target, share))[0]
        return np.asarray(2 * (best - fixed) <= NORMAL_QUANTILE**2)

    return _share_among_answers(fitted, target, labels), holds


def _interval_ends(
    counts: NDArray[np.float64], table: NDArray[np.float64], labels: int, target: int, outer: float
) -> NDArray[np.float64]:
    """Return the end of the intervals of an input's share towards `outer`, by bisection; shape (tasks,)."""
    inner, holds = shift_shares(counts, table, labels, target, outer > 0.5)
    ends = np.full(len(counts), outer)
    for _ in range(BISECTIONS):
        middle = (inner + ends) / 2
        held = holds(middle)
        inner, ends = np.where(held, middle, inner), np.where(held, ends, middle)
    return ends


def _mixtures_with_share_of_input(
    table: NDArray[np.float64], labels: int, target: int, share: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the rows of the mixtures in which the share of an input is fixed, indexed [task, row, report]."""
    others = np.delete(table[:labels], target, axis=0) if target < labels else table[:labels]
    mixed = share[:, None, None] * table[target] + (1 - share)[:, None, None] * others
    if target >= labels:
        return mixed
    free = np.broadcast_to(table[labels:], (len(share), len(table) - labels, table.shape[1]))
    return np.concatenate((mixed, free), axis=1)
