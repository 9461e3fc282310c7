"""Workers who repeat a number, copy numbers or answer at random are listed; honest work of every kind is not."""

from typing import Any

import numpy as np
import pytest

import crowdveil as cv
from crowdveil.answers.reports import Reports
from crowdveil.quality.review.number_patterns import CLOSE, NumberPatterns, medians_of_others, most_frequent_numbers
from crowdveil.quality.review.workers import Review, review_workers

TASKS, WORKERS = 200, 20
BAD = 6
"""Number of bad workers, the first ones."""


def crowd_of(
    kind: str = "", seed: int = 0, *, answers: int = 5, sigma: tuple[float, float] = (0.5, 6), step: float = 0.0
) -> Reports:
    """Return numbers of workers with errors in a range, the first six of whom are bad.

    Kinds: `uniform` over 0 to 100, `constant` 50, `copies` of the last worker in nine of ten answers, `inches` for
    centimetres, `difficult` tasks, `biases`, `typos` in a twentieth of all answers, `zeros` in four of five; none for
    honest work.
    """
    rng = np.random.default_rng(seed)
    truth, spread = rng.normal(50, 10, TASKS), rng.uniform(*sigma, WORKERS)
    worker = np.argsort(rng.random((TASKS, WORKERS)), axis=1)[:, :answers].ravel()
    task = np.repeat(np.arange(TASKS), answers)
    hard = rng.uniform(0.2, 3, TASKS)[task] if kind == "difficult" else 1.0
    value = truth[task] + spread[worker] * hard * rng.normal(size=len(task))
    value += rng.normal(0, 6, WORKERS)[worker] if kind == "biases" else 0.0
    bad = worker < BAD
    if kind == "uniform":
        value[bad] = rng.uniform(0, 100, bad.sum())
    elif kind == "constant":
        value[bad] = 50
    elif kind == "inches":
        value[bad] *= 2.54
    elif kind == "typos":
        value[rng.random(len(value)) < 0.05] *= 1000
    elif kind == "copies":
        source = {int(t): float(v) for t, w, v in zip(task, worker, value, strict=True) if w == WORKERS - 1}
        copied = np.array([w < BAD and int(t) in source for t, w in zip(task, worker, strict=True)])
        copied &= rng.random(len(task)) < 0.9
        value[copied] = [source[int(t)] for t in task[copied]]
    value = np.where(rng.random(len(value)) < 0.8, 0.0, value) if kind == "zeros" else value
    value = np.round(value / step) * step if step else value
    order = np.lexsort((worker, task))
    columns = task[order].astype(np.int32), worker[order].astype(np.int32), value[order]
    return Reports(*columns, np.arange(TASKS), np.arange(WORKERS))


def review_of(reports: Reports) -> Review:
    """Return the review of numbers by the default."""
    return review_workers(cv.infer(reports))


@pytest.mark.parametrize(
    ("kind", "found", "least"),
    [("constant", "repeats", BAD), ("uniform", "chance", 5), ("copies", "copies", BAD + 1), ("inches", "far", 3)],
)
def test_bad_workers_are_listed_by_their_numbers(kind: str, found: str, least: int) -> None:
    """Six workers who say 50, who say anything, who copy, or who use another unit are listed; no honest one is."""
    answers, sigma = (WORKERS, (0.5, 6)) if kind == "copies" else (10, (0.1, 0.5) if kind == "inches" else (0.5, 6))
    review = review_of(crowd_of(kind, answers=answers, sigma=sigma))
    bad = {*map(str, range(BAD)), *([str(WORKERS - 1)] if kind == "copies" else [])}

    assert {found} == {one.kind for one in review.found}
    assert {one.worker for one in review.found} <= bad
    assert len(review.found) >= least


HONEST: dict[str, dict[str, Any]] = {
    "usual": {},
    "equal": {"sigma": (3, 3)},
    "noisy": {"sigma": (10, 30), "answers": 10},
    "grades": {"sigma": (0.3, 1), "step": 1.0},
    "all precise": {"sigma": (0.1, 0.4), "step": 1.0, "answers": WORKERS},
    "difficult": {"kind": "difficult", "answers": 10},
    "biases": {"kind": "biases"},
    "two answers": {"answers": 2},
    "zeros": {"kind": "zeros", "answers": WORKERS},
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_numbers_are_not_listed(name: str) -> None:
    """Workers of any precision, with biases, hard tasks or whole numbers are not listed, in three crowds each."""
    assert [()] * 3 == [review_of(crowd_of(seed=seed, **HONEST[name])).found for seed in range(3)]


def test_majorities_are_seen() -> None:
    """Sixty per cent who say 50, and sixty per cent who say anything, are listed, and no other worker."""
    rng = np.random.default_rng(1)
    for name in ("repeats", "chance"):
        honest = crowd_of(seed=1, answers=10)
        bad = honest.worker < 12
        value = honest.value.copy()
        value[bad] = 50 if name == "repeats" else rng.uniform(0, 100, bad.sum())
        review = review_of(Reports(honest.task, honest.worker, value, honest.tasks, honest.workers))

        assert set(map(str, range(12))) == {one.worker for one in review.found}
        assert {name} == {one.kind for one in review.found}


def test_answers_far_away_are_counted() -> None:
    """One answer in twenty times a thousand is named in a note."""
    assert any("far from the others to their task" in note for note in review_of(crowd_of("typos")).notes)


def test_medians_leave_the_own_unit_out() -> None:
    """The median of others, as in loops: one answer of each unit, none of units below 0, nan with fewer than two."""
    rng = np.random.default_rng(0)
    task = np.sort(rng.integers(0, 30, 150))
    unit, value = rng.integers(-1, 5, 150), rng.integers(0, 9, 150).astype(float)
    expected = np.full(150, np.nan)
    for row in range(150):
        first: dict[int, float] = {}
        for other in np.flatnonzero(task == task[row]).tolist():
            if unit[other] >= 0 and (unit[other] != unit[row] or unit[row] < 0):
                first.setdefault(int(unit[other]), float(value[other]))
        if len(first) >= 2:
            expected[row] = np.median(list(first.values()))

    np.testing.assert_allclose(medians_of_others(task, unit, value, 30), expected)


def test_the_most_frequent_number_of_each_worker() -> None:
    """Of several numbers that are as frequent the smallest one is named; who has no answer has none."""
    found = most_frequent_numbers(np.array([0, 0, 0, 1, 1, 3]), np.array([2.0, 5.0, 5.0, 7.0, 3.0, 1.0]), 4)

    np.testing.assert_array_equal(found.value, [5, 3, np.nan, 1])
    assert [2, 1, 0, 1] == found.times.tolist()


def test_chance_of_close_answers_is_that_of_all_pairs_of_residuals() -> None:
    """The expected share of close answers of two workers is that over all pairs of tasks, as in loops."""
    patterns = NumberPatterns.of_reports(crowd_of(answers=WORKERS))
    pairs = patterns._close_pairs()
    assert pairs is not None
    worker, width = patterns.reports.worker, CLOSE * patterns.usual
    one, other = (patterns.residual[worker == side[0]] for side in (pairs.first, pairs.second))

    assert patterns._chance_of(pairs, patterns.residual)[0] == pytest.approx(
        (np.abs(one[:, None] - other) <= width).mean()
    )


def test_perturbed_numbers_are_not_reviewed() -> None:
    """Numbers through a channel are refused."""
    mechanism = cv.Laplace(alphabet=cv.Scale(0, 100, 5), epsilon=2.0, participation="public")
    honest = crowd_of()
    codes = np.clip(np.round(honest.value / 5), 0, 20).astype(np.int16)
    answers = Reports(honest.task, honest.worker, codes, honest.tasks, honest.workers, cv.Scale(0, 100, 5))
    sent = cv.perturb(answers, mechanism, cv.seeded(1))

    with pytest.raises(cv.errors.SettingsError, match="not perturbed"):
        cv.review(sent, channel=mechanism.channel())
