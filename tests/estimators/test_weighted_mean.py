"""Weighted mean (Sun et al. 2018, Algorithm 1) against its equations written as loops."""

import math

import numpy as np
import pytest

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import MAX_MAGNITUDE, MIN_MAGNITUDE, Categories, Scale
from crowdveil.em.estimator import coded_and_summarized
from crowdveil.estimators.weighted_mean import MeanStatistics, WeightedMean


def random_reports(seed: int, tasks: int = 7, workers: int = 5, share: float = 1.0, factor: float = 1.0) -> Reports:
    """Make normal reports with deviations 1, 2, ..., `workers` around truths 0, 10, 20, ...; values times `factor`."""
    rng = np.random.default_rng(seed)
    task, worker = np.nonzero(rng.random((tasks, workers)) < share)
    value = factor * (10.0 * task + rng.normal(size=len(task)) * (worker + 1))
    return Reports.from_arrays(task, worker, value, numeric=True, tasks=np.arange(tasks), workers=np.arange(workers))


def cells(reports: Reports) -> list[tuple[int, int, float]]:
    """List the reports as (task, worker, number)."""
    return list(zip(reports.task.tolist(), reports.worker.tolist(), reports.numbers.tolist(), strict=True))


def mean_step(reports: Reports, quality: list[float]) -> list[float]:
    """Equation (1) for every task; nan without reports."""
    truth = []
    for j in range(len(reports.tasks)):
        mine = [(quality[w], a) for t, w, a in cells(reports) if t == j]
        truth.append(sum(q * a for q, a in mine) / sum(q for q, _ in mine) if mine else math.nan)
    return truth


def deviations(reports: Reports, truth: list[float]) -> list[float]:
    """The sigma of equation (2) for every worker; nan without reports."""
    sigma = []
    for i in range(len(reports.workers)):
        squares = [(a - truth[t]) ** 2 for t, w, a in cells(reports) if w == i]
        sigma.append(math.sqrt(sum(squares) / len(squares)) if squares else math.nan)
    return sigma


def qualities(sigma: list[float], floor: float) -> list[float]:
    """Equation (2) with the floor, scaled to sum 1; 0 without reports."""
    raw = [0.0 if math.isnan(s) else 1 / max(s, floor) for s in sigma]
    return [q / sum(raw) for q in raw]


@pytest.mark.parametrize("steps", [1, 2, 3, 6])
@pytest.mark.parametrize("share", [1.0, 0.4])
def test_steps_equal_algorithm_1(share: float, steps: int) -> None:
    """Each step equals equations (1) and (2) written as loops, on dense and sparse tables."""
    for seed in range(4):
        reports = random_reports(seed, share=share)
        estimate = WeightedMean(max_steps=steps, tolerance=0.0).fit(reports)

        quality, floor = [1 / 5] * 5, math.inf
        for _ in range(steps):
            truth = mean_step(reports, quality)
            sigma = deviations(reports, truth)
            floor = min(floor, 0.01 * float(np.median([s for s in sigma if s > 1e-12])))
            quality = qualities(sigma, floor)

        np.testing.assert_allclose(estimate.posterior, truth, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(estimate.workers.quality, quality, rtol=1e-7)


def smooth(sigma: float, floor: float) -> float:
    """Return sigma, replaced below the floor by the parabola that touches it there."""
    return sigma if sigma >= floor else (sigma**2 / floor + floor) / 2


def test_the_objective_never_rises() -> None:
    """Algorithm 1 lowers the sum over workers of |T_i| sigma_i (a parabola below the floor) at every step."""
    for seed in range(4):
        reports, floor, objective = random_reports(seed, share=0.5), math.inf, []
        for steps in range(1, 15):
            truth = WeightedMean(max_steps=steps, tolerance=0.0).fit(reports).posterior
            sigma = [s for s in deviations(reports, list(truth)) if not math.isnan(s)]
            floor = min(floor, 0.01 * float(np.median([s for s in sigma if s > 1e-12])))
            counts = reports.per_worker[reports.per_worker > 0]
            objective.append(sum(n * smooth(s, floor) for n, s in zip(counts, sigma, strict=True)))

        assert max(np.diff(objective)) <= 1e-9
        assert objective[-1] < objective[0]


def test_rounding_is_perfect_agreement() -> None:
    """Where all reports on a task are the same decimal, weights do not depend on how its mean is rounded."""
    rows = [(t, w, 0.1) for t in range(9) for w in range(t + 1)]

    quality = WeightedMean().fit(Reports.from_arrays(*zip(*rows, strict=True), numeric=True)).workers.quality

    np.testing.assert_allclose(quality, 1 / 9, rtol=1e-12)


def test_the_floor_never_grows() -> None:
    """The floor is a share of the smallest median of sigmas so far: the objective that falls needs that."""
    estimator, reports = WeightedMean(floor=0.1), random_reports(0)
    parameters = estimator.initialize(coded_and_summarized(estimator, reports, None, None, None)[1])
    floors = []
    for sigma in (3.0, 1.0, 2.0):
        parameters = estimator.m_step(MeanStatistics(reports.per_worker.astype(float) * sigma**2), parameters)
        floors.append(parameters.floor)

    assert floors == pytest.approx([0.3, 0.1, 0.1])


def test_labels_count_by_position_and_grids_by_value() -> None:
    """Ordered labels are read as 0, 1, 2, ..., a scale's codes as its grid points."""
    letters = Reports.from_arrays([1, 1], [1, 2], ["G", "X"], alphabet=Categories(("G", "P", "R", "X"), ordered=True))
    halves = Reports.from_arrays([1, 1], [1, 2], [-1.0, 0.5], alphabet=Scale(-1, 1, 0.5))

    assert list(WeightedMean().fit(letters).truth) == [1.5]
    assert list(WeightedMean().fit(halves).truth) == [-0.25]


@pytest.mark.parametrize("unit", [MAX_MAGNITUDE / 4, MIN_MAGNITUDE])
def test_numbers_at_the_ends_of_the_range_are_computed_with(unit) -> None:
    """In the largest and the smallest unit, no sum overflows or vanishes: truths are finite, and workers differ."""
    value = unit * np.array([4, 3, -4, 2, -2, 4, 1, -4, 4])
    reports = Reports.from_arrays(np.repeat([0, 1, 2], 3), np.tile([0, 1, 2], 3), value, numeric=True)
    estimate = WeightedMean(max_steps=20).fit(reports)

    assert np.isfinite(estimate.truth).all()
    assert np.isfinite(estimate.workers.quality).all()
    assert len(set(estimate.workers.quality.tolist())) == 3
