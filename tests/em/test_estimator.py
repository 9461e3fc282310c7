"""The loop of inference and what it accepts: counts, gold, priors, channels, stopping."""

import numpy as np
import pytest

from crowdveil import DawidSkene, MajorityVote, OneCoin, Reports, Scale, WeightedMean
from crowdveil.channels.channel import Channel
from crowdveil.em.estimator import coded_and_summarized
from crowdveil.em.gold import NO_GOLD, align_gold
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators import PrivateDawidSkene
from tests.estimators.dense import LABELS, blocks_channel, channels, random_reports, sent_alphabet

REPORTS = random_reports(np.random.default_rng(0), LABELS, tasks=12, workers=6, share=0.6)
NUMBERS = Reports.from_arrays([1, 2], ["a", "a"], [0.5, 1.5], numeric=True)


def test_summary_counts_reports() -> None:
    """A summary has the reports of each worker by symbol, in whole numbers, and the size of the crowd."""
    counts = np.zeros((6, 3))
    for worker, value in zip(REPORTS.worker, REPORTS.value, strict=True):
        counts[worker, value] += 1

    summary = coded_and_summarized(DawidSkene(), REPORTS, None, None, {"a": 0.5, "b": 0.25, "c": 0.25})[1]

    np.testing.assert_array_equal(summary.symbol_counts, counts)
    np.testing.assert_array_equal(summary.per_worker, counts.sum(axis=1))
    assert (12, 6, 3, 3) == (summary.tasks, summary.workers, summary.labels, summary.symbols)
    assert [0.5, 0.25, 0.25] == list(summary.prior if summary.prior is not None else [])
    assert 0 == coded_and_summarized(WeightedMean(), NUMBERS, None, None, None)[1].labels


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

    assert {3: 2, 5: 0} == {task: code for task, code in enumerate(gold.of(0, 12)) if code != NO_GOLD}
    assert (2, 2) == (gold.used, gold.unknown)
    assert [NO_GOLD, 0, NO_GOLD] == gold.of(4, 7).tolist()
    assert align_gold(REPORTS, None, LABELS, numeric=False).of(0, 12).tolist() == [NO_GOLD] * 12


def test_gold_on_a_scale_is_read_as_people_write_it() -> None:
    """Points of a grid are known as numbers or text, though 0.1 * 3 is not 0.3 in binary."""
    tenths = Scale(0.0, 1.0, 0.1)
    reports = Reports.from_arrays(["t"] * 2, ["a", "b"], [0.3, 0.4], alphabet=tenths)

    for written in (0.3, "0.3", "0.30"):
        assert [3] == align_gold(reports, {"t": written}, tenths, numeric=False).of(0, 1).tolist()
    for written in (0.35, 2, "x", None):
        with pytest.raises(ReportsError, match=r"gold of task 't' must be among"):
            align_gold(reports, {"t": written}, tenths, numeric=False)
    assert [0.35] == align_gold(reports, {"t": 0.35}, tenths, numeric=True).of(0, 1).tolist()


def test_gold_of_numbers_is_aligned() -> None:
    """Numeric estimators get numbers with nan where unknown; ordered labels count by their position."""
    gold = align_gold(NUMBERS, {2: "3.5", 9: 1}, None, numeric=True)

    np.testing.assert_array_equal(gold.of(0, 2), [np.nan, 3.5])
    assert (1, 1) == (gold.used, gold.unknown)
    assert [1.0] == align_gold(REPORTS, {0: "b"}, LABELS, numeric=True).of(0, 1).tolist()


def test_gold_that_is_no_number_is_named() -> None:
    """A gold truth of free numbers must be a number."""
    with pytest.raises(ReportsError, match=r"gold of task 1 must be a number\. Found: 'high'"):
        WeightedMean().fit(NUMBERS, gold={1: "high"})


def test_no_task_is_refused() -> None:
    """Without tasks there is nothing to infer, and no answer would be an answer."""
    nothing = Reports.from_arrays([], [], [], alphabet=LABELS, tasks=[], workers=["a"])

    with pytest.raises(ReportsError, match="there is no task"):
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

    with pytest.raises(ReportsError, match="1 reports repeat a"):
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
            "1 gold truths: each must be on the scale from 0 to 9.*9.5 of task 'a'.*score",
        ),
        (Scale(0, 9), -0.5, "must be on the scale"),
    ],
)
def test_gold_that_no_task_can_have_does_not_guide(alphabet: Scale | None, truth: float, rule: str) -> None:
    """Numbers that cannot be computed with, or lie outside the scale, are refused by task before the fit."""
    reports = Reports.from_arrays(["a", "b"], ["u", "u"], [1, 2], alphabet=alphabet, numeric=True)

    with pytest.raises(ReportsError, match=rule):
        align_gold(reports, {"a": truth, "b": 2}, alphabet, numeric=True)


def test_gold_within_a_scale_may_lie_between_its_points() -> None:
    """Truths between grid points, and those at both ends, guide a fit of numbers."""
    reports = Reports.from_arrays(["a", "b", "c"], ["u"] * 3, [1, 2, 3], alphabet=Scale(0, 9), numeric=True)

    gold = align_gold(reports, {"a": 0, "b": 3.7, "c": 9}, Scale(0, 9), numeric=True)

    assert [0, 3.7, 9] == gold.truths.tolist()


@pytest.mark.filterwarnings("error")
def test_a_prior_above_one_is_refused_without_a_warning_of_numpy() -> None:
    """Probabilities of more than 1, of any size, are refused by label before they are summed."""
    reports = Reports.from_arrays(["a", "b"], ["u", "u"], ["x", "y"])

    with pytest.raises(SettingsError, match=r"at most 1.*'x': 1e\+308, 'y': 1e\+308"):
        MajorityVote().fit(reports, prior={"x": 1e308, "y": 1e308})
