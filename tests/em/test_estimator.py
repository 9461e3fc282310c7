"""The loop of inference and what it accepts: counts, gold, priors, channels, stopping, and earlier answers."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, chi2

from crowdveil import (
    Categories,
    DawidSkene,
    MajorityVote,
    OneCoin,
    RandomizedResponse,
    Reports,
    Scale,
    WeightedMean,
    aggregate,
)
from crowdveil.channels.channel import Channel
from crowdveil.em.estimate import Estimate
from crowdveil.em.gold import NO_GOLD, align_gold, one_hot_gold
from crowdveil.em.worker_history import WorkerHistory, answers_of_ability_interval, answers_of_sigma_interval
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators import ESTIMATORS
from crowdveil.published import PrivateDawidSkene
from crowdveil.randomness import seeded
from crowdveil.registry import estimators_with
from crowdveil.simulate import categorical_crowd
from tests.crowds_that_grow import through
from tests.estimators.dense import LABELS, blocks_channel, channels, random_reports, sent_alphabet

REPORTS = random_reports(np.random.default_rng(0), LABELS, tasks=12, workers=6, share=0.6)
NUMBERS = Reports.from_arrays([1, 2], ["a", "a"], [0.5, 1.5], numeric=True)


@pytest.mark.parametrize(
    "prior",
    [
        {"a": 0.5, "b": 0.5},
        {"a": 0.5, "b": 0.2, "c": 0.2, "d": 0.1},
        {"a": 0.5, "b": 0.5, "c": 0.0},
        {"a": 0.5, "b": 0.4, "c": 0.2},
        {"a": 0.5, "b": 0.7, "c": -0.2},
        {"a": 0.5, "b": 0.5, "c": float("nan")},
        {"a": float("inf"), "b": 0.5, "c": 0.5},
        {},
    ],
)
def test_malformed_priors_are_refused(prior: dict[str, float]) -> None:
    """A prior gives a positive finite probability to exactly the labels, and they sum to 1."""
    with pytest.raises(SettingsError, match="prior"):
        DawidSkene().fit(REPORTS, prior=prior)


def test_gold_of_labels_is_aligned() -> None:
    """Gold comes out as label codes in task order, NO_GOLD elsewhere; tasks that are not there are counted."""
    gold = align_gold(REPORTS, {3: "c", "5": "a", 77: "b", "task": "b"}, LABELS, numeric=False)

    assert {3: 2, 5: 0} == {task: code for task, code in enumerate(gold.truths_of_tasks(0, 12)) if code != NO_GOLD}
    assert (2, 2) == (gold.number_of_known_truths, gold.unknown)
    assert [NO_GOLD, 0, NO_GOLD] == gold.truths_of_tasks(4, 7).tolist()
    assert align_gold(REPORTS, None, LABELS, numeric=False).truths_of_tasks(0, 12).tolist() == [NO_GOLD] * 12


def test_gold_on_a_scale_is_read_as_people_write_it() -> None:
    """Points of a grid are known as numbers or text, though 0.1 * 3 is not 0.3 in binary."""
    tenths = Scale(0.0, 1.0, 0.1)
    reports = Reports.from_arrays(["t"] * 2, ["a", "b"], [0.3, 0.4], alphabet=tenths)

    for written in (0.3, "0.3", "0.30"):
        assert [3] == align_gold(reports, {"t": written}, tenths, numeric=False).truths_of_tasks(0, 1).tolist()
    for written in (0.35, 2, "x", None):
        with pytest.raises(ReportsError, match=r"gold of task 't' must be among"):
            align_gold(reports, {"t": written}, tenths, numeric=False)
    assert [0.35] == align_gold(reports, {"t": 0.35}, tenths, numeric=True).truths_of_tasks(0, 1).tolist()


def test_gold_of_numbers_is_aligned() -> None:
    """Numeric estimators get numbers with nan where unknown; ordered labels count by their position."""
    gold = align_gold(NUMBERS, {2: "3.5", 9: 1}, None, numeric=True)

    np.testing.assert_array_equal(gold.truths_of_tasks(0, 2), [np.nan, 3.5])
    assert (1, 1) == (gold.number_of_known_truths, gold.unknown)
    assert [1.0] == align_gold(REPORTS, {0: "b"}, LABELS, numeric=True).truths_of_tasks(0, 1).tolist()


def test_gold_that_is_no_number_is_named() -> None:
    """A gold truth of free numbers must be a number."""
    with pytest.raises(ReportsError, match=r"gold of task 1 must be a number\. Found: 'high'"):
        WeightedMean().fit(NUMBERS, gold={1: "high"})


def test_no_task_is_refused() -> None:
    """Without tasks there is nothing to infer, and no answer would be an answer."""
    nothing = Reports.from_arrays([], [], [], alphabet=LABELS, tasks=[], workers=["a"])

    with pytest.raises(ReportsError, match="at least one task"):
        MajorityVote().fit(nothing)


def test_reports_in_blocks_need_an_estimator_that_reads_them() -> None:
    """Where reports are blocks of labels, only estimators that can read them accept; the others name one that does."""
    channel = blocks_channel()
    reports = random_reports(np.random.default_rng(1), sent_alphabet(channel), tasks=9, workers=5, share=0.6)

    assert (9, 3) == DawidSkene().fit(reports, channel=channel).posterior.shape
    with pytest.raises(SettingsError, match="dawid-skene"):
        PrivateDawidSkene().fit(reports, channel=channel)


def test_repeated_cells_have_no_null_reports() -> None:
    """Where NULL reports are counted, a cell that reports twice would make their number wrong: it is refused."""
    twice = Reports(np.array([0, 0, 1]), np.array([0, 0, 0]), np.array([0, 1, 0]), np.arange(2), np.arange(1), LABELS)
    protected, public = (channels()[f"randomized response, {word}"] for word in ("protected", "public"))

    with pytest.raises(ReportsError, match="but 1 report repeats a"):
        DawidSkene().fit(twice, channel=protected)
    assert DawidSkene().fit(twice, channel=public).converged
    assert DawidSkene().fit(twice).converged


def test_public_nulls_cannot_be_counted() -> None:
    """A channel that sends NULL for answers while blank cells are left out would leave their number unknown."""
    rows = np.array([[0.6, 0.1, 0.1, 0.2], [0.1, 0.6, 0.1, 0.2], [0.1, 0.1, 0.6, 0.2]])
    channel = Channel.from_probabilities(LABELS, "public", (*LABELS.names, "NULL"), rows, None, "forgetful")

    with pytest.raises(SettingsError, match="must protect participation"):
        OneCoin().fit(REPORTS, channel=channel)


def test_progress_sees_every_step() -> None:
    """The callback gets number and largest change of each step; the first is infinite, the last small."""
    seen: list[tuple[int, float]] = []

    estimate = DawidSkene().fit(REPORTS, progress=lambda step, moved: seen.append((step, moved)))

    assert list(range(1, estimate.steps + 1)) == [step for step, _ in seen]
    assert np.inf == seen[0][1]
    assert seen[-1][1] <= DawidSkene().tolerance < seen[-2][1]
    assert estimate.converged


@pytest.mark.parametrize(
    ("alphabet", "truth", "rule"),
    [
        (None, 1e308, "between 1e-100 and 1e.100 in size.*1e.308 of task 'a'"),
        (None, np.inf, "between 1e-100 and 1e.100 in size"),
        (Scale(0, 9), -1e308, "between 1e-100 and 1e.100 in size"),
        (
            Scale(0, 9),
            9.5,
            "1 gold truths: each must be on the scale from 0 to 9.*9.5 of task 'a'.*leave",
        ),
        (Scale(0, 9), -0.5, "must be on the scale"),
    ],
)
def test_gold_that_no_task_can_have_does_not_guide(alphabet: Scale | None, truth: float, rule: str) -> None:
    """Numbers that cannot be computed with, or lie outside the scale, are refused by task before the fit."""
    reports = Reports.from_arrays(["a", "b"], ["u", "u"], [1, 2], alphabet=alphabet, numeric=True)

    with pytest.raises(ReportsError, match=rule):
        align_gold(reports, {"a": truth, "b": 2}, alphabet, numeric=True)


@pytest.mark.filterwarnings("error")
def test_a_prior_above_one_is_refused_without_a_warning_of_numpy() -> None:
    """Probabilities of more than 1, of any size, are refused by label before they are summed."""
    reports = Reports.from_arrays(["a", "b"], ["u", "u"], ["x", "y"])

    with pytest.raises(SettingsError, match=r"at most 1.*'x': 1e\+308, 'y': 1e\+308"):
        MajorityVote().fit(reports, prior={"x": 1e308, "y": 1e308})


HISTORY_LABELS = Categories(("a", "b", "c"), ordered=True)
READERS = estimators_with(kind="categorical", uses_history=True)
every_reader = pytest.mark.parametrize("name", READERS)
CROWD = categorical_crowd(workers=8, tasks=60, labels=HISTORY_LABELS, sparsity=0.5, source=seeded(3))
ANSWERS = CROWD.answers
GOLD = {str(task): str(truth) for task, truth in zip(ANSWERS.tasks, CROWD.truth, strict=True)}
HISTORY_NUMBERS = Reports.from_arrays(
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
    channel = None if epsilon is None else RandomizedResponse(alphabet=HISTORY_LABELS, epsilon=epsilon).channel()
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


def test_earlier_answers_of_numbers_move_sigma() -> None:
    """A worker known for large errors gets a larger sigma and less weight, a worker known for small ones more."""
    worker = "4"

    def fitted(sigma: float) -> Estimate:
        history = WorkerHistory(
            workers=(worker,), answers=np.array([40.0]), quality=np.array([sigma]), quality_name="sigma"
        )
        return ESTIMATORS["gaussian"](points_per_step=1).fit(HISTORY_NUMBERS, history=history)

    small, large = (fitted(sigma).workers for sigma in (0.3, 6.0))

    place = HISTORY_NUMBERS.workers.tolist().index(worker)
    assert small.sigma is not None
    assert large.sigma is not None
    assert small.sigma[place] < large.sigma[place]
    assert small.quality[place] > large.quality[place]


@pytest.mark.parametrize(("right", "wrong"), [(30, 10), (9, 3), (50, 50), (80, 2)])
def test_the_interval_of_a_beta_distribution_gives_its_answers(right: float, wrong: float) -> None:
    """Moments recover the concentration within a fifth, also of skewed distributions."""
    mean = right / (right + wrong)
    low, high = beta.ppf([0.05, 0.95], right, wrong)

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
        ([1, 2], "must have named columns"),
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


def test_aggregate_refuses_a_history_of_other_workers() -> None:
    """A history of other names would change nothing, which must not be silent."""
    with pytest.raises(ReportsError, match="no worker of the reports has a history"):
        aggregate(ANSWERS, history=counted("a stranger", 0.9, 10))


def test_one_hot_gold_leaves_the_posterior_it_was_given() -> None:
    """Known tasks become certain in a copy; the others keep their rows."""
    posterior = np.full((3, 2), 0.5)

    fixed = one_hot_gold(posterior, np.array([NO_GOLD, 1, 0]))

    np.testing.assert_array_equal(fixed, [[0.5, 0.5], [0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_array_equal(posterior, np.full((3, 2), 0.5))
