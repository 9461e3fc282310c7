"""Cohen's and Fleiss' kappa: their definitions, and the values of other packages on public data sets."""

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.quality.agreement.alpha import measure_agreement
from crowdveil.quality.agreement.kappa import kappas
from tests.quality.agreement.test_agreement import reports_of
from tests.real_data import load_or_skip

WEIGHTS = {
    "Cohen": lambda a, b: float(a != b),
    "Cohen, linear": lambda a, b: float(abs(a - b)),
    "Cohen, quadratic": lambda a, b: float((a - b) ** 2),
}
FIVE = Categories(("a", "b", "c", "d", "e"), ordered=True)


def pair_of_raters(tasks: int, seed: int, labels: int = 5) -> list[list[int]]:
    """Return answers of two raters of different habits, indexed [worker, task]."""
    source = np.random.default_rng(seed)
    truth = source.integers(0, labels, tasks)
    return [
        np.clip(truth + source.integers(-1, 2, tasks), 0, labels - 1).tolist(),
        np.where(source.random(tasks) < 0.3, 1, truth).tolist(),
    ]


def textbook_cohen(table: Sequence[Sequence[int]], name: str) -> float:
    """Cohen's kappa by loops over the tasks, and over all pairs of tasks."""
    distance, pairs = WEIGHTS[name], list(zip(*table, strict=True))
    observed = sum(distance(a, b) for a, b in pairs) / len(pairs)
    expected = sum(distance(a, b) for a, _ in pairs for _, b in pairs) / len(pairs) ** 2
    return 1 - observed / expected


def textbook_fleiss(table: Sequence[Sequence[int | None]]) -> float:
    """Fleiss' kappa by loops over tasks and labels."""
    units = [[one for one in column if one is not None] for column in zip(*table, strict=True)]
    units = [unit for unit in units if len(unit) > 1]
    shares = [np.mean([a == b for a, b in permutations(unit, 2)]) for unit in units]
    every = [one for unit in units for one in unit]
    chance = sum((every.count(label) / len(every)) ** 2 for label in set(every))
    return float((np.mean(shares) - chance) / (1 - chance))


def rater_matrix(reports: Reports) -> Any:
    """Return the numbers of all answers, nan where there is none, indexed [worker, task]."""
    matrix = np.full((len(reports.workers), len(reports.tasks)), np.nan)
    matrix[reports.worker, reports.task] = reports.numbers
    return matrix


def tasks_with(reports: Reports, size: int) -> Reports:
    """Return the reports on the tasks with a number of reports."""
    kept = (reports.per_task == size)[reports.task]
    columns = reports.task[kept], reports.worker[kept], reports.value[kept]
    return Reports(*columns, reports.tasks, reports.workers, reports.alphabet)


def test_kappa_is_that_of_loops() -> None:
    """Cohen's kappa with every weight, and Fleiss' with different numbers of answers, equal their definitions."""
    table = pair_of_raters(40, 1)
    found = kappas(reports_of(table, FIVE))
    source = np.random.default_rng(2)
    many = [[None if source.random() < 0.3 else int(source.integers(0, 3)) for _ in range(30)] for _ in range(6)]

    assert list(WEIGHTS) == list(found)
    for name, kappa in found.items():
        assert textbook_cohen(table, name) == pytest.approx(kappa.value)
        assert kappa.low < kappa.value < kappa.high
    assert textbook_fleiss(many) == pytest.approx(kappas(reports_of(many, FIVE))["Fleiss"].value)


@pytest.mark.parametrize(
    ("alphabet", "names"),
    [
        (Categories(("a", "b", "c", "d", "e")), ["Cohen"]),
        (FIVE, list(WEIGHTS)),
        (Scale(0, 4), list(WEIGHTS)),
        (None, []),
    ],
)
def test_weights_need_an_order(alphabet: Alphabet | None, names: list[str]) -> None:
    """Weighted kappas are stated of ordered labels and grids, and none of free numbers."""
    assert names == list(kappas(reports_of(pair_of_raters(20, 3), alphabet)))


def test_two_workers_are_those_who_can_be_compared() -> None:
    """A third worker whose tasks nobody shares changes nothing; one who shares a task makes it Fleiss' kappa."""
    first, second = pair_of_raters(12, 4)
    nobody = [None] * 12
    alone = [[*first, None], [*second, None], [*nobody, 1]]
    shared = [[*first, None], [*second, 2], [*nobody, 1]]

    assert kappas(reports_of([first, second], FIVE)) == kappas(reports_of(alone, FIVE))
    assert ["Fleiss"] == list(kappas(reports_of(shared, FIVE)))


def test_coefficients_of_chance_are_zero_without_rounding() -> None:
    """One task has an alpha of 0, and so has a balanced table: without -2e-16, in a value or an end of an interval."""
    for votes in range(1, 12):
        one = [[label] for label in [0] * votes + [1] * (13 - votes) + [2] * 3]

        assert "0.0" == str(measure_agreement(reports_of(one, FIVE)).alphas["nominal"].value)
        assert "0.0" == str(measure_agreement(reports_of(one, FIVE)).alphas["ordinal"].value)
    table = [[0, 0, 1, 1] * 5, [0, 1, 0, 1] * 5]
    assert "0.0" == str(kappas(reports_of(table, FIVE))["Cohen"].value)


def test_equal_answers_have_no_kappa() -> None:
    """If all compared answers are one label, alpha and kappa are nan, and the agreement says so."""
    for workers in (2, 3):
        reports = reports_of([[1, 1, 1]] * workers, FIVE)

        assert all(np.isnan(kappa.value) for kappa in kappas(reports).values())
        assert measure_agreement(reports).all_agree
    assert not measure_agreement(reports_of([[1, 0], [1, 0]], FIVE)).all_agree


def test_levels_widen_intervals_in_proportion_to_the_normal_quantile() -> None:
    """An interval of 95 % is 1.959964 / 1.644854 as wide as one of 90 %, for every coefficient."""
    reports = reports_of([*pair_of_raters(40, 5), *pair_of_raters(40, 6)], FIVE)
    for level, wide in ((0.95, 1.959964), (0.9, 1.644854), (0.5, 0.674490)):
        found = measure_agreement(reports, level), kappas(reports, level)
        usual = measure_agreement(reports), kappas(reports)

        for one, other in zip((*found[0].alphas.values(), found[1]["Fleiss"]),
                              (*usual[0].alphas.values(), usual[1]["Fleiss"]), strict=True):  # fmt: skip
            assert one.value == other.value
            assert wide / 1.644854 == pytest.approx((one.value - one.low) / (other.value - other.low), rel=1e-6)


@pytest.mark.slow
def test_intervals_of_fleiss_kappa_hold_that_of_the_population() -> None:
    """Of 200 crowds with 60 tasks, about 90 % of the intervals hold the kappa of a crowd with 60,000 tasks.

    With 200 crowds a true coverage of 90 % leaves fewer than 84 % or more than 96 % once in 200 runs.
    """
    source = np.random.default_rng(8)

    def crowd(tasks: int) -> Reports:
        truth = source.choice(3, tasks, p=(0.6, 0.3, 0.1))
        table = np.where(source.random((4, tasks)) < 0.7, truth, source.integers(0, 3, (4, tasks)))
        return reports_of(table.tolist(), FIVE)

    population = kappas(crowd(60_000))["Fleiss"].value
    found = [kappas(crowd(60))["Fleiss"] for _ in range(200)]
    assert 0.84 < np.mean([one.low <= population <= one.high for one in found]) < 0.96


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_cohens_kappa_is_that_of_statsmodels(seed: int) -> None:
    """Values and 95 % intervals equal those of statsmodels; its variance lacks the factor tasks / (tasks - 1)."""
    rates = pytest.importorskip("statsmodels.stats.inter_rater")
    table = pair_of_raters(80, seed)
    counts = np.zeros((5, 5))
    np.add.at(counts, tuple(table), 1)
    found = kappas(reports_of(table, FIVE), 0.95)
    for name, weights in (("Cohen", None), ("Cohen, linear", "linear"), ("Cohen, quadratic", "quadratic")):
        theirs = rates.cohens_kappa(counts, wt=weights)

        assert theirs.kappa == pytest.approx(found[name].value)
        half = (found[name].value - found[name].low) / np.sqrt(80 / 79)
        assert theirs.kappa_low == pytest.approx(found[name].value - half)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bluebird", "dog", "duchenne", "snow_rte", "web_zhou", "s_rel", "adult2"])
def test_kappa_of_public_sets_is_that_of_statsmodels(name: str) -> None:
    """Fleiss' kappa of the tasks with the most frequent number of answers, Cohen's of the two busiest workers."""
    rates = pytest.importorskip("statsmodels.stats.inter_rater")
    every = load_or_skip(name).answers
    reports = tasks_with(every, int(np.bincount(every.per_task)[2:].argmax()) + 2)
    counts = np.zeros((len(reports.tasks), reports.labels))
    np.add.at(counts, (reports.task, reports.value), 1)
    counts = counts[counts.sum(axis=1) > 0]
    busiest = np.argsort(every.per_worker)[-2:]
    matrix = rater_matrix(every)[busiest]
    both = matrix[:, ~np.isnan(matrix).any(axis=0)].astype(int)

    assert rates.fleiss_kappa(counts) == pytest.approx(kappas(reports)["Fleiss"].value)
    if both.shape[1]:
        table = np.zeros((every.labels, every.labels))
        np.add.at(table, tuple(both), 1)
        ours = kappas(reports_of(both.tolist(), every.alphabet))["Cohen"].value
        assert rates.cohens_kappa(table, return_results=False) == pytest.approx(ours, nan_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bluebird", "dog", "duchenne", "snow_rte", "adult2", "n_emotion", "snow_valence"])
def test_alpha_of_public_sets_is_that_of_krippendorff(name: str) -> None:
    """Every metric that the answers support has the value of the package krippendorff."""
    other = pytest.importorskip("krippendorff")
    reports = load_or_skip(name).answers
    for metric, alpha in measure_agreement(reports).alphas.items():
        theirs = other.alpha(reliability_data=rater_matrix(reports), level_of_measurement=metric)

        assert theirs == pytest.approx(alpha.value), metric
