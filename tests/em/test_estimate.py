"""What inference returns: truths, ties, confidence, tables, plots, and the constant that must be beaten."""

import sys
from dataclasses import replace
from typing import Any

import matplotlib
import numpy as np
import pyarrow as pa
import pytest
from matplotlib.figure import Figure

from crowdveil import Categories, Scale
from crowdveil.em.estimate import Estimate, WorkerTable, numeric_baseline
from crowdveil.errors import SettingsError
from crowdveil.estimators import DawidSkene, MajorityVote, StudentT, WeightedVote
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd, numeric_crowd

LABELS = Categories(("low", "mid", "high"), ordered=True)


def estimate_of(posterior: object, alphabet: Categories | Scale | None = LABELS) -> Estimate:
    """Return an estimate with this posterior, of two workers."""
    table = np.array(posterior, dtype=float)
    return Estimate(
        method="test",
        alphabet=alphabet,
        tasks=np.array([f"t{k}" for k in range(len(table))]),
        posterior=table,
        reports_per_task=np.arange(len(table)),
        worker_names=np.array(["ann", "bob"]),
        workers=WorkerTable(quality=np.array([0.9, np.nan]), quality_name="ability"),
        reports_per_worker=np.array([3, 0]),
        log_likelihoods=(-5.0, -4.0),
        steps=3,
    )


LABELLED = estimate_of([[0.1, 0.2, 0.7], [0.4, 0.4, 0.2], [0.6, 0.3, 0.1]])
NUMERIC = estimate_of([1.0, 3.0, np.nan, 2.0], None)


def test_truth_is_the_likeliest_label() -> None:
    """The truth has the highest posterior; of tied labels the first in the alphabet stands, and the tie is seen."""
    assert ["high", "low", "low"] == LABELLED.truth.tolist()
    assert [[False, False, True], [True, True, False], [True, False, False]] == LABELLED.winners.tolist()
    assert LABELLED.categorical


def test_rounding_does_not_break_a_tie() -> None:
    """Posteriors closer than 1e-9 are tied."""
    close = estimate_of([[0.4, 0.4 + 1e-12, 0.2], [0.4, 0.4 + 1e-6, 0.2]])

    assert [[True, True, False], [False, True, False]] == close.winners.tolist()
    assert ["low", "mid"] == close.truth.tolist()


def test_the_constant_of_labels() -> None:
    """The constant is the label of the highest mean posterior; errors are its and the truths' expected shares wrong."""
    baseline = LABELLED.baseline

    assert ("low", 1) == (baseline.constant, baseline.moved)
    assert pytest.approx(1 - 1.1 / 3) == baseline.expected_error
    assert pytest.approx(1 - 1.7 / 3) == baseline.estimate_error
    assert "Always answering low: expected 63.3 % wrong; this estimate: 43.3 %. 1 truth differs." == str(baseline)


def test_truths_that_equal_the_constant_are_reported_with_their_ties() -> None:
    """Where no truth differs from the constant, the text counts tied tasks and claims nothing about information."""
    untied, tie = [0.5, 0.3, 0.2], [0.4, 0.4, 0.2]
    texts = {count: str(estimate_of([untied, *[tie] * count]).baseline) for count in range(3)}

    assert (0, 2) == (estimate_of([untied, tie, tie]).baseline.moved, estimate_of([untied, tie, tie]).baseline.tied)
    assert "No truth differs from the constant low." == texts[0]
    assert "No truth clearly differs from the constant low (1 task tied)." == texts[1]
    assert "No truth clearly differs from the constant low (2 tasks tied)." == texts[2]


def test_the_constant_of_numbers() -> None:
    """The constant of numbers is the median of the known truths, its error their mean distance from it."""
    baseline = NUMERIC.baseline

    assert ("2", 2, None) == (baseline.constant, baseline.moved, baseline.estimate_error)
    assert pytest.approx(2 / 3) == baseline.expected_error
    assert "Always answering 2: expected mean error 0.667. 2 truths differ." == str(baseline)


def test_intervals_of_numbers_give_their_expected_error() -> None:
    """A 90 % interval counts as that of a normal posterior; the constant's error has its width as well."""
    half = np.full(2, 1.6449)
    alike, apart = (numeric_baseline(np.array(truths), truths - half, truths + half) for truths in ([5.0, 5], [1.0, 9]))

    assert pytest.approx([0.7979, 0.7979], abs=1e-4) == [alike.expected_error, alike.estimate_error]
    assert pytest.approx([4.0, 0.7979], abs=1e-4) == [apart.expected_error, apart.estimate_error]


def test_nothing_known_has_a_constant_too() -> None:
    """Where no number is known the constant is 0, with error 0 and nothing moved."""
    baseline = estimate_of([np.nan, np.nan], None).baseline

    assert ("0", 0.0, 0) == (baseline.constant, baseline.expected_error, baseline.moved)


def test_columns_of_tasks() -> None:
    """Tables have one row per task; labels bring confidence, a probability each and the number of tied labels."""
    columns = LABELLED.tasks_columns()

    assert [
        "task",
        "truth",
        "confidence",
        "probability_low",
        "probability_mid",
        "probability_high",
        "n_tied_labels",
        "reports",
    ] == list(columns)
    assert [1, 2, 1] == columns["n_tied_labels"].tolist()
    np.testing.assert_allclose(columns["probability_mid"], [0.2, 0.4, 0.3])
    assert ["task", "truth", "reports"] == list(NUMERIC.tasks_columns())


def test_frames_hold_null_for_what_is_unknown() -> None:
    """Arrow tables have the same columns, and null instead of nan."""
    tasks, workers = NUMERIC.tasks_frame(), LABELLED.workers_frame()

    assert [1.0, 3.0, None, 2.0] == tasks["truth"].to_pylist()
    assert [0.9, None] == workers["ability"].to_pylist()
    assert pa.types.is_string(workers["worker"].type)
    assert 3 == LABELLED.tasks_frame().num_rows


def test_gold_is_not_counted_as_right() -> None:
    """Expected errors are those of the other tasks: the means (0.5, 0.3, 0.2) here, and 1 - (0.6 + 0.4) / 2."""
    certain = [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    some = replace(estimate_of([[0.6, 0.3, 0.1], *certain, [0.4, 0.3, 0.3]]), gold=np.array([False, True, True, False]))
    found = some.baseline

    assert ("low", 0, 2, 2) == (found.constant, found.moved, found.gold, some.gold_used)
    assert pytest.approx((0.5, 0.5)) == (found.expected_error, found.estimate_error)
    assert "No truth differs from the constant low. 2 gold tasks are left out." == str(found)
    assert some.without_gold.tasks.tolist() == ["t0", "t3"]
    assert [False, True, True, False] == some.tasks_columns()["gold"].tolist()
    assert str(found) in str(some)


def test_where_every_truth_is_known_nothing_is_expected() -> None:
    """With gold of all tasks the constant has its share of wrong answers, and the estimate no error of its own."""
    found = replace(estimate_of([[1, 0, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0]]), gold=np.ones(4, dtype=bool)).baseline

    assert ("low", 0.25, None) == (found.constant, found.expected_error, found.estimate_error)


@pytest.mark.parametrize("whole", [LABELLED, NUMERIC], ids=["labels", "numbers"])
def test_parts_make_up_the_whole(whole, monkeypatch) -> None:
    """Parts of two tasks have the whole's columns, piece by piece; sums over parts change no number of the whole."""
    expected, baseline, best = whole.tasks_frame(), whole.baseline, whole.truth.tolist()
    monkeypatch.setattr("crowdveil.em.estimate.CHUNK_TASKS", 2)
    monkeypatch.setattr("crowdveil.em.estimate.WRITTEN_TASKS", 2)
    again = replace(whole)

    assert pa.concat_tables([part.tasks_frame() for part in again.parts()]).equals(expected)
    np.testing.assert_array_equal(best, again.truth.tolist())
    assert (baseline.constant, baseline.moved) == (again.baseline.constant, again.baseline.moved)
    assert pytest.approx(baseline.expected_error, abs=1e-15) == again.baseline.expected_error
    assert whole.part(1, 3).tasks.tolist() == whole.tasks[1:3].tolist()


matplotlib.use("agg")
VIEWS_LABELS = Categories(("no", "yes"))
CROWD = categorical_crowd(workers=50, tasks=30, labels=VIEWS_LABELS, sparsity=0.5, source=seeded(1)).answers
NUMBERS = numeric_crowd(workers=20, tasks=60, sparsity=0.5, source=seeded(1)).answers


@pytest.fixture(scope="module")
def estimate() -> Estimate:
    """Return truths, workers and confusion matrices of a simulated crowd."""
    return DawidSkene().fit(CROWD)


def test_plots_draw_on_the_given_axes(estimate: Estimate) -> None:
    """Every plot returns the axes that it was given, and draws on no other."""
    axes = Figure().subplots(2, 2).ravel()
    calls = [estimate.plot, estimate.plot_truths, estimate.plot_workers]

    assert list(axes) == [
        *(call(ax) for call, ax in zip(calls, axes, strict=False)),
        estimate.plot_confusion(1, axes[3]),
    ]
    assert all(ax.has_data() for ax in axes)


def test_truths_are_counted_by_label(estimate: Estimate) -> None:
    """Bars have the numbers of tasks by label; methods without probabilities show them as their plot."""
    votes = WeightedVote().fit(CROWD)

    pictures: tuple[Any, ...] = (
        (estimate, estimate.plot_truths(Figure().subplots())),
        (votes, votes.plot(Figure().subplots())),
    )
    for found, ax in pictures:
        expected = [int((found.truth == label).sum()) for label in VIEWS_LABELS.names]
        assert expected == [bar.get_width() for bar in ax.patches]


def test_numbers_and_workers_are_chosen_evenly(estimate: Estimate) -> None:
    """At most 40 tasks or workers are drawn, in ascending order, the smallest and the largest among them."""
    numbers = StudentT().fit(NUMBERS)
    pictures: tuple[Any, ...] = (
        (numbers.posterior, numbers.plot(Figure().subplots())),
        (estimate.workers.quality, estimate.plot_workers(Figure().subplots())),
    )
    for values, ax in pictures:
        drawn = [line.get_xdata()[0] for line in ax.lines[1::2]]

        assert 40 == len(drawn)
        assert sorted(drawn) == drawn
        assert [values.min(), values.max()] == [drawn[0], drawn[-1]]


def test_a_confusion_matrix_is_that_of_its_worker(estimate: Estimate) -> None:
    """Cells carry P(answer | truth) of the named worker."""
    confusion = estimate.workers.confusion
    assert confusion is not None

    texts = [text.get_text() for text in estimate.plot_confusion(7, Figure().subplots()).texts]

    assert [f"{share:.2f}" for share in confusion[estimate.worker_names.tolist().index(7)].ravel()] == texts


def test_plots_that_do_not_exist_are_refused(estimate: Estimate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of numbers, unknown workers, missing matrices and a missing matplotlib are refused."""
    with pytest.raises(SettingsError, match="needs an estimate of labels"):
        StudentT().fit(NUMBERS).plot_truths()
    with pytest.raises(SettingsError, match="there must be such a worker, got 'nobody'"):
        estimate.plot_confusion("nobody")
    with pytest.raises(SettingsError, match="majority-vote estimates no confusion matrices"):
        MajorityVote().fit(CROWD).plot_confusion(1)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SettingsError, match=r"pip install 'crowdveil\[plots\]'"):
        estimate.plot()


def test_truths_of_a_small_unit_differ_from_the_constant() -> None:
    """Whether numbers differ from the best constant does not depend on their unit."""
    numbers = np.array([1.0, 2.0, 4.0])

    assert {2} == {numeric_baseline(numbers * unit, None, None).moved for unit in (1e-90, 1e-12, 1.0, 1e90)}
