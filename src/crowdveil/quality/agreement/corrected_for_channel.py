"""Krippendorff's alpha and pairwise agreement of answers, estimated from their reports through a channel.

Noise of different workers is independent given their answers. Let P be the table P(report | answer), G its right
inverse (P G = I), and x_u the counts of reports on task u. The counts of ordered pairs of reports and of answers,
    M = sum_u w_u (x_u x_u' - diag x_u)  and  C,    obey  E M = P' C P,
so G' M G is an unbiased estimate of C, indexed [label, label]. Counts of pairs over all tasks, N N' - diag N with N =
sum_u x_u, give those of chance. Then D_o and D_e are the mean squared distances of the two tables, and alpha is
1 - D_o / D_e, as in `measure_agreement`. The share of equal answers is the trace of C over its sum, with w_u = 1.

With public participation w_u = 1 / (m_u - 1), Krippendorff's weight. With protected participation m_u, the number of
answers, is not visible: NULL is one more answer, w_u = 1, and only pairs of answers count, each with the same weight.

Intervals: jackknife over groups of tasks (Efron 1982, chapter 3).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Alphabet, Categories
from crowdveil.channels.channel import Channel
from crowdveil.em.estimator import require_null_reports_countable
from crowdveil.em.observation_model import ObservationModel, observation_model
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.quality.agreement.alpha import (
    LEVEL,
    MIN_TASKS,
    Agreement,
    Interval,
    Metric,
    mean_label_ranks,
    metrics_of,
    normal_quantile,
    refuse_repeats,
    without_rounding,
)

GROUPS = 50
"""Groups of tasks of the jackknife."""
TABLE_NUMBERS = 1 << 23
"""Numbers in the tables of all groups, and in the counts of tasks that are held together."""
SMALLEST_DISTANCE = 1e-12
"""Expected disagreement up to which alpha is unknown."""
MAX_CONDITION = 1e6
"""Condition number of a channel from which it cannot be inverted."""


def agreement_through_channel(
    reports: Reports, channel: Channel, *, assignment: Assignment | None = None, level: float = LEVEL
) -> Agreement:
    """Return the agreement of the answers behind reports; values that are too noisy are nan.

    Args:
        reports: non-NULL reports over all tasks and workers.
        channel: channel of every report.
        assignment: the cells that report; None if every worker reports on every task.
        level: level of all intervals.

    Raises:
        ReportsError: reports that the channel cannot send, a worker with two reports on a task, or no task with two
            answers.
        SettingsError: different answers have the same reports, so that nothing can be corrected.
    """
    refuse_repeats(reports)
    if channel.null_output is not None:
        require_null_reports_countable(reports, channel, assignment)
    coded, model = observation_model(channel, reports, assignment)
    estimates = _Estimates(_right_inverse(model, channel), model.labels, channel.alphabet)
    tasks, pairs = _pair_sums_by_task_group(coded, model)
    alphas, pairwise = estimates.intervals(pairs, tasks, level)
    answers = round(float(estimates.estimated_answers_by_label(pairs).sum()))
    return Agreement(
        alphas=alphas,
        pairwise=pairwise,
        pairwise_name="agreement" if isinstance(channel.alphabet, Categories) else "difference",
        tasks=tasks,
        answers=answers,
        single=0 if model.protected else len(reports) - answers,
        channel_used=True,
        workers=None,
        level=level,
    )


class _Pairs(NamedTuple):
    """Sums over tasks; of all tasks, or with a first axis of groups of tasks.

    Attributes:
        weighted, plain: pairs of reports with weights w_u and 1, indexed [report, report].
        single: reports, shape (reports,).
    """

    weighted: NDArray[np.float64]
    plain: NDArray[np.float64]
    single: NDArray[np.float64]


class _Estimates(NamedTuple):
    """Estimates from pairs of reports: G, indexed [report, input], the number of labels, and the alphabet."""

    inverse: NDArray[np.float64]
    labels: int
    alphabet: Alphabet

    def intervals(self, pairs: _Pairs, tasks: int, level: float) -> tuple[dict[Metric, Interval], Interval]:
        """Return alpha by metric, and the agreement or difference of pairs, from the sums of each group."""
        total, groups = _Pairs(*(part.sum(axis=0) for part in pairs)), len(pairs.single)
        left_out = np.array(
            [self.agreement_coefficients(_sums_without_group(pairs, total, group)) for group in range(groups)]
        )
        variance = (groups - 1) / groups * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0)
        half = normal_quantile(level) * np.sqrt(variance) if tasks >= MIN_TASKS else np.full(len(variance), np.nan)
        values = self.agreement_coefficients(total)
        table = np.stack((values, values - half, values + half), axis=1)
        # Noise may leave less than nothing: a value out of range, or an interval over all of it, is no estimate.
        table[:-1][(values[:-1] < -1) | (half[:-1] >= 1)] = np.nan
        table[:-1] = np.clip(table[:-1], -1.0, 1.0)
        by_label = isinstance(self.alphabet, Categories)
        if values[-1] < 0:
            table[-1] = np.nan
        table[-1] = np.clip(table[-1], 0.0, 1.0) if by_label else np.sqrt(np.maximum(table[-1], 0.0))
        *alphas, pairwise = (Interval(*map(without_rounding, row)) for row in table.tolist())
        return dict(zip(metrics_of(self.alphabet), alphas, strict=True)), pairwise

    def agreement_coefficients(self, pairs: _Pairs) -> NDArray[np.float64]:
        """Return alpha by metric, then the share of equal answers or the mean squared difference; nan if unknown."""
        chance = np.outer(pairs.single, pairs.single) - np.diag(pairs.single)
        found = []
        for metric in metrics_of(self.alphabet):
            expected = self.mean_squared_distance(chance, metric, pairs)
            observed = self.mean_squared_distance(pairs.weighted, metric, pairs)
            found.append(1 - observed / expected if expected > SMALLEST_DISTANCE else np.nan)
        if isinstance(self.alphabet, Categories):
            return np.array([*found, 1 - self.mean_squared_distance(pairs.plain, "nominal", pairs)])
        return np.array([*found, self.mean_squared_distance(pairs.plain, "interval", pairs)])

    def mean_squared_distance(self, table: NDArray[np.float64], metric: Metric, pairs: _Pairs) -> float:
        """Return the mean squared distance of the pairs of answers behind a table of pairs of reports.

        It is nan if the number of pairs is estimated as 0 or less.
        """
        of_labels = self.inverse[:, : self.labels]
        answers = of_labels.T @ table @ of_labels
        total = float(answers.sum())
        if metric == "nominal":
            apart = total - float(np.trace(answers))
        else:
            scores = (
                mean_label_ranks(self.estimated_answers_by_label(pairs))
                if metric == "ordinal"
                else self.alphabet.values
            )
            apart = float((answers * (scores[:, None] - scores) ** 2).sum())
        return apart / total if total > 0 else np.nan

    def estimated_answers_by_label(self, pairs: _Pairs) -> NDArray[np.float64]:
        """Return the estimated number of answers by label, shape (labels,)."""
        single = pairs.single if pairs.single.ndim == 1 else pairs.single.sum(axis=0)
        return np.asarray(single @ self.inverse[:, : self.labels])


def _sums_without_group(pairs: _Pairs, total: _Pairs, group: int) -> _Pairs:
    """Return the sums over all tasks but those of a group."""
    return _Pairs(*(all_of - part[group] for all_of, part in zip(total, pairs, strict=True)))


def _right_inverse(model: ObservationModel, channel: Channel) -> NDArray[np.float64]:
    """Return the right inverse of the table with the smallest norm, indexed [report, input].

    Raises:
        SettingsError: the table has none.
    """
    if np.linalg.cond(model.full_table) > MAX_CONDITION:
        raise SettingsError(
            "agreement through a channel needs reports that distinguish all answers",
            value=channel.mechanism,
            hint="Fit the reports with `crowdveil infer`, and compare workers by its intervals.",
        )
    return np.asarray(np.linalg.pinv(model.full_table))


def _pair_sums_by_task_group(coded: Reports, model: ObservationModel) -> tuple[int, _Pairs]:
    """Return the number of tasks with two or more reports, and the sums over each group of tasks.

    Raises:
        ReportsError: there is no such task.
    """
    reports = model.full_table.shape[1]
    groups = max(2, min(GROUPS, len(coded.tasks), TABLE_NUMBERS // reports**2))
    weighted, plain = np.zeros((2, groups, reports, reports))
    single, tasks = np.zeros((groups, reports)), 0
    for first, counts in symbol_counts_by_range(coded, model):
        sizes = counts.sum(axis=1)
        counts[sizes < 2] = 0.0
        tasks += int((sizes >= 2).sum())
        weights = 1 / np.maximum(sizes - 1, 1) if not model.protected else np.ones(len(sizes))
        for group in range(min(groups, len(counts))):
            part = slice((group - first) % groups, None, groups)
            x, w = counts[part], weights[part]
            weighted[group] += (x * w[:, None]).T @ x - np.diag(w @ x)
            plain[group] += x.T @ x - np.diag(x.sum(axis=0))
            single[group] += x.sum(axis=0)
    if not tasks:
        raise ReportsError("a task must have reports of two workers", source="reports", hint="Collect more answers.")
    return tasks, _Pairs(weighted, plain, single)


def symbol_counts_by_range(coded: Reports, model: ObservationModel) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield the first task of a range and its reports by symbol, then implicit NULL; indexed [task, report]."""
    step = max(1, TABLE_NUMBERS // model.full_table.shape[1])
    for block in coded.blocks():
        for start in range(0, block.tasks, step):
            part = block.slice_tasks(slice(start, start + step))
            key = part.task * model.listed_symbol_count + part.value
            listed = np.bincount(key, minlength=part.tasks * model.listed_symbol_count).reshape(
                part.tasks, model.listed_symbol_count
            )
            group = model.task_group[part.first : part.stop]
            yield (
                part.first,
                np.concatenate((listed, model.implicit_null_counts(listed.astype(float), group)), axis=1),
            )
