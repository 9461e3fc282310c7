"""Plots of an estimate: axes in, axes out, with the estimate's numbers on them."""

import sys

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

from crowdveil.channels.alphabet import Categories
from crowdveil.em.estimate import Estimate
from crowdveil.errors import SettingsError
from crowdveil.estimators import DawidSkene, MajorityVote, StudentT, WeightedVote
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd, numeric_crowd

matplotlib.use("agg")
LABELS = Categories(("no", "yes"))
CROWD = categorical_crowd(workers=50, tasks=30, labels=LABELS, sparsity=0.5, source=seeded(1)).answers
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


def test_a_plot_without_axes_has_a_figure_of_its_own(estimate: Estimate) -> None:
    """A new figure is made, as notebooks show it."""
    ax = estimate.plot()

    assert [ax] == ax.figure.axes
    pyplot.close(ax.figure)


def test_confidence_is_counted_in_ten_classes(estimate: Estimate) -> None:
    """Bars have the numbers of tasks by confidence."""
    expected = np.histogram(estimate.confidence, bins=10, range=(0, 1))[0]

    assert expected.tolist() == [bar.get_height() for bar in estimate.plot(Figure().subplots()).patches]


def test_truths_are_counted_by_label(estimate: Estimate) -> None:
    """Bars have the numbers of tasks by label; methods without probabilities show them as their plot."""
    votes = WeightedVote().fit(CROWD)

    for found, ax in ((estimate, estimate.plot_truths(Figure().subplots())), (votes, votes.plot(Figure().subplots()))):
        expected = [int((found.truth == label).sum()) for label in LABELS.names]
        assert expected == [bar.get_width() for bar in ax.patches]


def test_numbers_and_workers_are_chosen_evenly(estimate: Estimate) -> None:
    """At most 40 tasks or workers are drawn, in ascending order, the smallest and the largest among them."""
    numbers = StudentT().fit(NUMBERS)
    for values, ax in (
        (numbers.posterior, numbers.plot(Figure().subplots())),
        (estimate.workers.quality, estimate.plot_workers(Figure().subplots())),
    ):
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
