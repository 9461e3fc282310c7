"""Krippendorff's alpha and pairwise agreement of answers, in time linear in the number of answers.

Alpha (Krippendorff 2004, Content Analysis, chapter 11) is 1 - D_o / D_e. Let task u have m_u >= 2 answers, n answers in
all such tasks, N_c of them with label c, and let d be a distance of answers:
    D_o = 1/n sum_u q_u,  q_u = 1 / (m_u - 1) sum_{i != j on u} d(v_i, v_j)^2,
    D_e = E / (n (n - 1)),  E = sum_{i != j} d(v_i, v_j)^2 over all n answers.
Sums over pairs follow from counts and moments:
    nominal, d = [v_i != v_j]: m^2 - sum_c n_c^2;
    interval, d = v_i - v_j: 2 m sum_i (v_i - mean)^2;
    ordinal, d = r_c - r_k: as interval, with midranks r_c = sum_{k < c} N_k + N_c / 2.

Intervals: infinitesimal jackknife over tasks (Efron 1982, chapter 6). By the weight of task u alpha has the derivative
    -(n - 1) q_u / E + sum_{i on u} h(v_i);
`_influence_of_each_answer` has h. Its centred sum of squares is the variance; the ends are those of a normal
distribution.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from crowdveil.answers.identifiers import Identifiers
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Alphabet, Categories
from crowdveil.errors import ReportsError
from crowdveil.hints import advice

Metric = Literal["nominal", "ordinal", "interval"]
Pairwise = Literal["agreement", "difference"]

NORMAL_QUANTILE = 1.6448536269514722
"""The 95 % quantile of the standard normal distribution: intervals hold 90 %."""
LEVEL = 0.9
"""Default level of intervals."""
ROUNDING = 1e-12
"""Largest coefficient, with any sign, that is 0 but for rounding."""
MIN_TASKS = 10
"""Tasks with two answers from which intervals are stated."""
DENSE_CELLS = 4
"""Cells (task, label) per answer up to which a table of counts is faster than sorting."""


class Interval(NamedTuple):
    """A value with its interval; nan where unknown."""

    value: float
    low: float
    high: float


NOT_KNOWN = Interval(np.nan, np.nan, np.nan)


@dataclass(frozen=True, kw_only=True, eq=False)
class WorkerAgreement:
    """Agreement of each worker with the other workers on the same tasks, in worker order.

    Attributes:
        names: worker names.
        pairwise: share of equal answers, or root mean squared difference; nan without a pair; shape (workers,).
        pairs: number of compared pairs of answers, shape (workers,).
    """

    names: Identifiers
    pairwise: NDArray[np.float64]
    pairs: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Agreement:
    """Agreement of the answers of a crowd.

    Attributes:
        alphas: Krippendorff's alpha by metric; a value is nan if all compared answers are equal.
        kappas: Cohen's kappa of two workers, by weights, or Fleiss' of more; empty if it was not asked for, for numbers
            on no grid, and through a channel.
        pairwise: over all pairs of answers to the same task: the share of equal labels, or the root mean squared
            difference of numbers.
        pairwise_name: "agreement" for labels, "difference" for numbers.
        level: level of all intervals.
        tasks, answers: tasks with two or more answers, and their answers. With protected participation: all tasks, and
            the estimated number of answers.
        single: answers to tasks without another answer, which cannot be compared.
        channel_used: whether reports were corrected for the noise of their channel.
        workers: agreement of each worker; None through a channel, which does not support it.
    """

    alphas: dict[Metric, Interval]
    pairwise: Interval
    pairwise_name: Pairwise
    tasks: int
    answers: int
    single: int
    channel_used: bool
    workers: WorkerAgreement | None
    kappas: dict[str, Interval] = field(default_factory=dict)
    level: float = LEVEL

    @property
    def all_agree(self) -> bool:
        """Whether all compared answers are equal, so that there is no disagreement to compare with chance."""
        return not self.channel_used and all(np.isnan(alpha.value) for alpha in self.alphas.values())


def metrics_of(alphabet: Alphabet | None) -> tuple[Metric, ...]:
    """Return the metrics that answers support: nominal for labels, with ordinal in order; both others for a scale."""
    if alphabet is None:
        return ("interval",)
    if isinstance(alphabet, Categories):
        return ("nominal", "ordinal") if alphabet.ordered else ("nominal",)
    return ("nominal", "ordinal", "interval")


def mean_label_ranks(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean rank of the answers of each label, shape (labels,)."""
    return np.asarray(np.cumsum(counts) - counts / 2)


def measure_agreement(reports: Reports, level: float = LEVEL) -> Agreement:
    """Return the agreement of answers, without kappas; reports of a channel go to `agreement_through_channel`.

    Args:
        reports: the answers.
        level: level of all intervals.

    Raises:
        ReportsError: no task has two answers, or a worker answers a task twice.
    """
    refuse_repeats(reports)
    totals = _totals_of_comparable_answers(reports)
    name: Pairwise = "agreement" if isinstance(reports.alphabet, Categories) else "difference"
    scores = None if name == "agreement" else _label_scores_and_mean_of_metric(reports, "interval", totals)
    overall, workers = _pairwise_agreement(reports, scores, level)
    return Agreement(
        alphas={metric: _alpha(reports, metric, totals, level) for metric in metrics_of(reports.alphabet)},
        pairwise=overall,
        pairwise_name=name,
        tasks=totals.tasks,
        answers=totals.answers,
        single=len(reports) - totals.answers,
        channel_used=False,
        workers=workers,
        level=level,
    )


@dataclass(frozen=True, slots=True)
class ComparedAnswers:
    """Answers of a block to tasks with two or more answers.

    Attributes:
        starts: first answer of each such task, shape (tasks,).
        sizes: number of answers m of each task, shape (tasks,).
        worker, value: shape (answers,).
    """

    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    worker: NDArray[np.int32]
    value: NDArray[Any]

    def repeated_for_each_answer(self, by_task: NDArray[Any]) -> NDArray[Any]:
        """Return a value of each task for each of its answers, shape (answers,)."""
        return np.repeat(by_task, self.sizes)

    def sums_by_task(self, by_answer: NDArray[Any]) -> NDArray[Any]:
        """Return the sum over each task's answers, shape (tasks,)."""
        return np.add.reduceat(by_answer, self.starts) if len(self.starts) else np.zeros(0, by_answer.dtype)


class _Totals(NamedTuple):
    """Tasks with two or more answers, their answers, counts by label (empty for numbers), and the mean number."""

    tasks: int
    answers: int
    counts: NDArray[np.float64]
    mean: float


def comparable_answers(reports: Reports) -> Iterator[ComparedAnswers]:
    """Yield the answers to tasks with two or more, block by block."""
    for block in reports.blocks():
        sizes = np.diff(block.pointers)
        several = sizes >= 2
        if several.all():
            yield ComparedAnswers(block.pointers[:-1], sizes, block.worker, block.value)
            continue
        kept, used = np.repeat(several, sizes), sizes[several]
        yield ComparedAnswers(np.cumsum(used) - used, used, block.worker[kept], block.value[kept])


def refuse_repeats(reports: Reports) -> None:
    """Refuse reports in which a worker answers a task twice.

    Raises:
        ReportsError: there is one.
    """
    for block in reports.blocks():
        same = block.worker[1:] == block.worker[:-1]
        if not same.any():
            continue
        repeats = np.flatnonzero(same & (np.diff(block.task) == 0))
        if not len(repeats):
            continue
        task = reports.tasks[block.first + int(block.task[repeats[0]])]
        raise ReportsError(
            "a worker answers a task once: answers of different workers are compared or counted",
            source="reports",
            examples=f"task {task}, worker {reports.workers[int(block.worker[repeats[0]])]}",
            hint=advice("Keep one of them: {duplicates}.", "Keep one of them.", duplicates="first"),
        )


def _totals_of_comparable_answers(reports: Reports) -> _Totals:
    """Return the totals of answers that can be compared.

    Raises:
        ReportsError: there are none.
    """
    tasks = answers = 0
    counts, total = np.zeros(reports.labels), 0.0
    for part in comparable_answers(reports):
        tasks, answers = tasks + len(part.starts), answers + len(part.value)
        if reports.labels:
            counts += np.bincount(part.value, minlength=reports.labels)
        else:
            total += float(part.value.sum())
    if not tasks:
        raise ReportsError("a task must have answers of two workers", source="reports", hint="Collect more answers.")
    if reports.alphabet is not None:
        total = float(counts @ reports.alphabet.values)
    return _Totals(tasks, answers, counts, total / answers)


class _Scores(NamedTuple):
    """Values of labels (None: the answers are numbers) and their mean."""

    of_label: NDArray[np.float64] | None
    mean: float

    def __call__(self, value: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray((value if self.of_label is None else self.of_label[value]) - self.mean)


def _label_scores_and_mean_of_metric(reports: Reports, metric: Metric, totals: _Totals) -> _Scores | None:
    if metric == "nominal":
        return None
    if metric == "ordinal":
        return _Scores(mean_label_ranks(totals.counts), totals.answers / 2)
    return _Scores(None if reports.alphabet is None else reports.alphabet.values, totals.mean)


def equal_answers_within_tasks(part: ComparedAnswers, labels: int) -> NDArray[np.int64]:
    """Return how many answers to the same task have the same label, itself included; shape (answers,)."""
    key = part.repeated_for_each_answer(np.arange(len(part.sizes))) * labels + part.value
    if len(part.sizes) * labels <= DENSE_CELLS * len(key):
        return np.bincount(key, minlength=1)[key]
    _, place, counts = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(counts[place])


def _deviations_from_task_mean(part: ComparedAnswers, scores: _Scores) -> NDArray[np.float64]:
    """Return the deviation of each answer from the mean of its task, shape (answers,)."""
    values = scores(part.value)
    return np.asarray(values - part.repeated_for_each_answer(part.sums_by_task(values) / part.sizes))


def _pairwise_squared_distances(part: ComparedAnswers, labels: int, scores: _Scores | None) -> NDArray[np.float64]:
    """Return the sum of squared distances over ordered pairs of answers to each task, shape (tasks,)."""
    if scores is None:
        return np.asarray(part.sizes**2 - part.sums_by_task(equal_answers_within_tasks(part, labels)), dtype=float)
    return np.asarray(2 * part.sizes * part.sums_by_task(_deviations_from_task_mean(part, scores) ** 2))


def _alpha(reports: Reports, metric: Metric, totals: _Totals, level: float) -> Interval:
    scores, n, labels = _label_scores_and_mean_of_metric(reports, metric, totals), totals.answers, reports.labels
    observed, squares, slopes = 0.0, 0.0, np.zeros(labels)
    for part in comparable_answers(reports):
        observed += float((_pairwise_squared_distances(part, labels, scores) / (part.sizes - 1)).sum())
        squares += 0.0 if scores is None else float((scores(part.value) ** 2).sum())
        if scores is not None and metric == "ordinal":
            weights = _deviations_from_task_mean(part, scores) * part.repeated_for_each_answer(
                4 * part.sizes / (part.sizes - 1)
            )
            slopes += np.bincount(part.value, weights, minlength=labels)
    expected = float(n**2 - totals.counts @ totals.counts) if scores is None else 2 * n * squares
    if not expected > 0:
        return NOT_KNOWN
    ratio = (n - 1) * observed / expected
    if totals.tasks < MIN_TASKS:
        return Interval(without_rounding(1 - ratio), np.nan, np.nan)
    found = _Disagreement(
        n, observed, expected, squares, totals.counts, scores, slopes if metric == "ordinal" else None
    )
    moments = np.zeros(2)
    for part in comparable_answers(reports):
        q = _pairwise_squared_distances(part, labels, scores) / (part.sizes - 1)
        slope = part.sums_by_task(_influence_of_each_answer(part.value, found)) - (n - 1) / expected * q
        moments += (slope.sum(), slope @ slope)
    return interval_from_slope_moments(1 - ratio, moments, totals.tasks, level)


class _Disagreement(NamedTuple):
    """Sums of `_alpha`: n, sum of q_u, E, sum of squared scores, label counts, scores, and d(sum of q_u) / d r."""

    answers: int
    observed: float
    expected: float
    squares: float
    counts: NDArray[np.float64]
    scores: _Scores | None
    rank_slopes: NDArray[np.float64] | None


def _influence_of_each_answer(value: NDArray[Any], found: _Disagreement) -> NDArray[np.float64]:
    """Return h of each answer, shape (answers,).

    With A = sum of q_u: h(v) = -A / E + (n - 1) A e(v) / E^2 - (n - 1) a(v) / E, where e and a are the derivatives of
    E and A by the number of answers v. For nominal e = 2 (n - N_v), for numbers e = 2 (n v^2 + sum of squares), v
    centred, and a = 0. Ranks move with the counts: the derivatives by ranks are carried back by
    `_derivatives_by_label_count`.
    """
    n, share = found.answers, found.observed / found.expected
    own: NDArray[Any]
    if found.scores is None:
        own = 2 * (n - found.counts)[value]
    else:
        centred = found.scores(value)
        own = 2 * (n * centred**2 + found.squares)
    moved: NDArray[Any] | float = 0.0
    if found.rank_slopes is not None and found.scores is not None:
        ranks = found.scores(np.arange(len(found.counts)))
        own = own + _derivatives_by_label_count(4 * n * found.counts * ranks)[value]
        moved = _derivatives_by_label_count(found.rank_slopes)[value]
    return np.asarray(-share + (n - 1) * (share * own - moved) / found.expected)


def _derivatives_by_label_count(by_midrank: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return derivatives by label counts from those by midranks: sum_{c > k} x_c + x_k / 2."""
    return np.asarray(np.cumsum(by_midrank[::-1])[::-1] - by_midrank / 2)


def without_rounding(value: float) -> float:
    """Return a coefficient, with 0 in place of what is 0 but for rounding."""
    return 0.0 if abs(value) < ROUNDING else value


def normal_quantile(level: float) -> float:
    """Return half the width of an interval with this level, in standard deviations of a normal distribution."""
    return float(ndtri((1 + level) / 2))


def interval_from_slope_moments(
    value: float, moments: NDArray[np.float64], tasks: int, level: float, *, most: float = 1.0
) -> Interval:
    """Return a value with its interval, from the sum and the sum of squares of the slopes of tasks."""
    variance = (moments[1] - moments[0] ** 2 / tasks) * tasks / (tasks - 1)
    half = normal_quantile(level) * float(np.sqrt(max(variance, 0.0)))
    return Interval(*map(without_rounding, (value, value - half, min(value + half, most))))


def _pairwise_agreement(reports: Reports, scores: _Scores | None, level: float) -> tuple[Interval, WorkerAgreement]:
    """Return agreement (without scores) or difference over all pairs, and that of each worker."""
    workers = len(reports.workers)
    found, pairs = np.zeros(workers), np.zeros(workers)
    crossed, tasks = np.zeros(3), 0
    for part in comparable_answers(reports):
        others = part.repeated_for_each_answer(part.sizes - 1).astype(float)
        if scores is None:
            own = equal_answers_within_tasks(part, reports.labels) - 1.0
        else:
            squared = _deviations_from_task_mean(part, scores) ** 2
            own = part.repeated_for_each_answer(part.sizes) * squared + part.repeated_for_each_answer(
                part.sums_by_task(squared)
            )
        found += np.bincount(part.worker, own, minlength=workers)
        pairs += np.bincount(part.worker, others, minlength=workers)
        table = np.stack((part.sums_by_task(own), part.sums_by_task(others)))
        crossed += (table[0] @ table[0], table[0] @ table[1], table[1] @ table[1])
        tasks += table.shape[1]
    total = pairs.sum()
    mean = float(found.sum() / total)
    # The slopes of a ratio sum to 0.
    slopes = np.array([0.0, (crossed[0] - 2 * mean * crossed[1] + mean**2 * crossed[2]) / total**2])
    bounded = (
        interval_from_slope_moments(mean, slopes, tasks, level, most=1.0 if scores is None else np.inf)
        if tasks >= MIN_TASKS
        else None
    )
    overall = Interval(mean, np.nan, np.nan) if bounded is None else bounded._replace(low=max(bounded.low, 0.0))
    each = np.divide(found, pairs, out=np.full(workers, np.nan), where=pairs > 0)
    if scores is not None:
        overall, each = Interval(*np.sqrt(overall).tolist()), np.sqrt(each)
    return overall, WorkerAgreement(names=reports.workers, pairwise=each, pairs=pairs.astype(np.int64))
