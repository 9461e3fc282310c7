"""Worker history: conversion to earlier answers, their effect on every method that reads them, refusals."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, chi2

from crowdveil import Categories, RandomizedResponse, Reports, Scale, aggregate
from crowdveil.em.estimate import Estimate
from crowdveil.em.history import WorkerHistory, answers_of_ability_interval, answers_of_sigma_interval
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators import ESTIMATORS
from crowdveil.randomness import seeded
from crowdveil.registry import estimators_with
from crowdveil.simulate import categorical_crowd
from tests.crowds_that_grow import through

LABELS = Categories(("a", "b", "c"), ordered=True)
READERS = estimators_with(kind="categorical", uses_history=True)
every_reader = pytest.mark.parametrize("name", READERS)
CROWD = categorical_crowd(workers=8, tasks=60, labels=LABELS, sparsity=0.5, source=seeded(3))
ANSWERS = CROWD.answers
GOLD = {str(task): str(truth) for task, truth in zip(ANSWERS.tasks, CROWD.truth, strict=True)}
NUMBERS = Reports.from_arrays(
    [task for task in "uvwxyz" for _ in range(4)],
    ["1", "2", "3", "4"] * 6,
    [2, 3, 2, 5, 7, 7, 6, 3, 4, 4, 4, 8, 1, 1, 2, 3, 8, 8, 7, 4, 5, 5, 6, 2],
    alphabet=Scale(0, 9),
)
FIRST = str(ANSWERS.workers[0])


def counted(name: str, ability: float, answers: float) -> WorkerHistory:
    """Return the history of one worker."""
    return WorkerHistory.from_counts([name], [ability * answers], [answers], max_answers=1e3)


def ability_of(estimate: Estimate, name: str) -> float:
    """Return the ability of one worker."""
    return float(estimate.workers.quality[[str(worker) for worker in estimate.worker_names.tolist()].index(name)])


NOBODY = WorkerHistory.from_counts([], [], [])


@pytest.mark.slow
@every_reader
@pytest.mark.parametrize("history", [counted(FIRST, 0.9, 0), counted("a stranger", 0.9, 10), NOBODY])
def test_a_history_of_zero_weight_or_of_strangers_changes_nothing(name: str, history: WorkerHistory) -> None:
    """Truths, workers, intervals and trace are equal to the last bit."""
    plain, with_history = (ESTIMATORS[name]().fit(ANSWERS, history=given) for given in (None, history))

    np.testing.assert_array_equal(plain.posterior, with_history.posterior)
    np.testing.assert_array_equal(plain.workers.quality, with_history.workers.quality)
    np.testing.assert_array_equal(plain.workers.ability_low, with_history.workers.ability_low)
    assert plain.log_likelihoods == with_history.log_likelihoods


@every_reader
@pytest.mark.parametrize(("ability", "epsilon"), [(0.1, None), (0.95, None), (0.3, 3.0), (0.9, 3.0)])
def test_more_history_moves_the_ability_towards_it(name: str, ability: float, epsilon: float | None) -> None:
    """With known truths the ability moves monotonically to that of the history, also behind a channel."""
    channel = None if epsilon is None else RandomizedResponse(alphabet=LABELS, epsilon=epsilon).channel()
    reports = ANSWERS if channel is None else through(ANSWERS, channel, 5)
    fits = [
        ESTIMATORS[name]().fit(reports, channel=channel, gold=GOLD, history=counted(FIRST, ability, answers))
        for answers in (0, 2, 30, 1000)
    ]

    abilities = [ability_of(one, FIRST) for one in fits]
    steps = np.diff(abilities) * np.sign(abilities[-1] - abilities[0])

    assert (steps >= -1e-6).all(), abilities
    assert abs(abilities[-1] - ability) <= abs(abilities[0] - ability) + 1e-6


@every_reader
def test_the_traced_objective_never_falls_with_a_history(name: str) -> None:
    """The M-step maximizes likelihood and history together."""
    history = WorkerHistory.from_counts(ANSWERS.workers[:4], [1, 9, 5, 2], [10, 10, 10, 10])

    trace = np.array(ESTIMATORS[name]().fit(ANSWERS, history=history).log_likelihoods)

    assert (np.diff(trace) >= -1e-9 * np.abs(trace[1:])).all()


@pytest.mark.slow
@every_reader
def test_behind_a_channel_the_ability_of_the_history_is_that_of_the_answers(name: str) -> None:
    """A worker with a long history keeps its ability behind strong noise, where agreement is near chance."""
    channel = RandomizedResponse(alphabet=LABELS, epsilon=0.5).channel()
    sent = through(ANSWERS, channel, 5)

    estimate = ESTIMATORS[name]().fit(sent, channel=channel, history=counted(FIRST, 0.9, 1000))

    assert pytest.approx(0.9, abs=0.1) == ability_of(estimate, FIRST)


@pytest.mark.parametrize("name", [name for name in READERS if name != "lfc"])
def test_the_interval_narrows_and_holds_the_ability(name: str) -> None:
    """Earlier answers count in the interval as answers do."""
    plain, known = (
        ESTIMATORS[name]().fit(ANSWERS, history=history).workers for history in (None, counted(FIRST, 0.8, 200))
    )

    for table in (plain, known):
        assert table.ability_low is not None
        assert table.ability_high is not None
    assert known.ability_high[0] - known.ability_low[0] < 0.6 * (plain.ability_high[0] - plain.ability_low[0])
    assert known.ability_low[0] <= known.quality[0] <= known.ability_high[0]


def test_earlier_answers_of_numbers_move_sigma() -> None:
    """A worker known for large errors gets a larger sigma and less weight, a worker known for small ones more."""
    worker = "4"

    def fitted(sigma: float) -> Estimate:
        history = WorkerHistory(
            workers=(worker,), answers=np.array([40.0]), quality=np.array([sigma]), quality_name="sigma"
        )
        return ESTIMATORS["gaussian"](points_per_step=1).fit(NUMBERS, history=history)

    small, large = (fitted(sigma).workers for sigma in (0.3, 6.0))

    place = NUMBERS.workers.tolist().index(worker)
    assert small.sigma is not None
    assert large.sigma is not None
    assert small.sigma[place] < large.sigma[place]
    assert small.quality[place] > large.quality[place]


@pytest.mark.parametrize(("right", "wrong"), [(30, 10), (9, 3), (50, 50), (80, 2)])
def test_the_interval_of_a_beta_distribution_gives_its_answers(right: float, wrong: float) -> None:
    """Moments recover the concentration within a fifth, also of skewed distributions."""
    mean, low, high = right / (right + wrong), *beta.ppf([0.05, 0.95], right, wrong)

    found = answers_of_ability_interval(np.array([mean]), np.array([low]), np.array([high]))

    assert pytest.approx(right + wrong, rel=0.2) == found[0]


@pytest.mark.parametrize("answers", [10, 100])
def test_the_interval_of_sigma_gives_its_answers(answers: int) -> None:
    """The interval of the standard deviation of n normal errors is worth about n errors."""
    low, high = np.sqrt(answers / chi2.ppf([0.95, 0.05], answers))

    assert pytest.approx(answers, rel=0.1) == answers_of_sigma_interval(np.array([low]), np.array([high]))[0]


def test_an_unknown_quality_or_interval_is_no_history() -> None:
    """A worker without reports has empty cells in workers.csv."""
    frame = {"worker": ["1", "2"], "ability": ["0.9", ""], "ability_low": ["0.8", ""], "ability_high": ["0.95", ""]}

    assert [True, False] == (WorkerHistory.from_frame(frame).answers > 0).tolist()


def test_the_bound_caps_the_answers_but_not_the_share() -> None:
    """A thousand gold tasks count as twenty with the same share of right answers."""
    history = WorkerHistory.from_frame(pd.DataFrame({"worker": [1], "correct": [700], "answers": [1000]}))

    assert (20.0, 0.7) == (history.answers[0], history.quality[0])


def test_an_earlier_estimate_and_its_frame_are_histories() -> None:
    """`aggregate` and `fit` accept an estimate, or the frame of workers."""
    earlier = ESTIMATORS["hierarchical-dawid-skene"]().fit(ANSWERS)
    plain, by_estimate, by_frame = (
        aggregate(ANSWERS, history=history).to_pydict() for history in (None, earlier, earlier.workers_frame())
    )

    assert by_frame == by_estimate
    assert plain != by_frame


@pytest.mark.parametrize(
    ("history", "problem"),
    [
        ({"worker": ["1"], "weight": [2.0]}, "needs an ability, or a sigma"),
        ({"worker": ["1"], "ability": [2.0], "ability_low": [2.0], "ability_high": [2.1]}, "must be in"),
        ({"worker": ["1"], "ability": [0.5], "ability_low": [0.6], "ability_high": [0.7]}, "inside its interval"),
        ({"worker": ["1", "1"], "correct": [1, 1], "answers": [2, 2]}, "one row for each worker"),
        ({"worker": ["1"], "correct": [3], "answers": [2]}, "at most all answers"),
        ({"worker": ["1"], "correct": [np.inf], "answers": [np.inf]}, "must be finite"),
        ({"worker": ["1"], "correct": ["1e400"], "answers": ["1e400"]}, "must be finite"),
        ({"worker": ["1"], "correct": ["many"], "answers": [2]}, "must be numbers"),
        ([1, 2], "must be a pandas"),
    ],
)
def test_damaged_histories_are_refused(history: Any, problem: str) -> None:
    """The error names the rule and what to give."""
    with pytest.raises(ReportsError, match=problem):
        ESTIMATORS["one-coin"]().fit(ANSWERS, history=history)


def test_a_history_of_other_labels_or_of_numbers_is_refused() -> None:
    """An ability depends on the labels, and is no precision of numbers."""
    other = ESTIMATORS["one-coin"]().fit(
        Reports.from_arrays(["1"], [FIRST], ["yes"], alphabet=Categories(("no", "yes")))
    )
    number = WorkerHistory(workers=(FIRST,), answers=np.ones(1), quality=np.ones(1), quality_name="sigma")

    with pytest.raises(SettingsError, match="of the same labels"):
        ESTIMATORS["one-coin"]().fit(ANSWERS, history=other)
    with pytest.raises(SettingsError, match="needs a history of ability"):
        ESTIMATORS["one-coin"]().fit(ANSWERS, history=number)


def test_a_warm_start_has_its_workers_already() -> None:
    """A history would count twice."""
    earlier = ESTIMATORS["one-coin"]().fit(ANSWERS)

    with pytest.raises(SettingsError, match="from a state or with a history"):
        ESTIMATORS["one-coin"]().fit(ANSWERS, warm_start=earlier.state, history=earlier)


def test_aggregate_warns_if_no_worker_has_a_history() -> None:
    """A history of other names changes nothing, which must not be silent."""
    with pytest.warns(UserWarning, match="No worker has a history"):
        aggregate(ANSWERS, history=counted("a stranger", 0.9, 10))
