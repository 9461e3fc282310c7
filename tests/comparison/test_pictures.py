"""Pictures of comparisons: sizes of axes and legends, and what is drawn."""

from itertools import combinations
from typing import Any

import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from crowdveil.comparison.compare import Comparison
from crowdveil.comparison.pictures import error_plot, points_by_line
from crowdveil.comparison.trials import UNPROTECTED
from tests.comparison.rows import made_row, made_rows

MIN_SHARE, MIN_INCHES = 0.5, 2.0
"""Least share of the figure's height that axes with lines take, and their least width and height."""


def figure_of(ax: Axes) -> Any:
    """Return the figure, laid out."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    return figure


def legend_of(ax: Axes) -> Any:
    """Return the legend of the axes, or that of the figure."""
    return ax.get_legend() or figure_of(ax).legends[0]


@pytest.mark.parametrize("methods", [1, 3, 6, 12])
@pytest.mark.parametrize("mechanisms", [1, 3])
@pytest.mark.parametrize("epsilons", [(2.0,), (1.0, 2.0, 4.0)], ids=["one", "many"])
def test_axes_keep_their_size(methods: int, mechanisms: int, epsilons: tuple[float, ...]) -> None:
    """Axes take most of the figure, and legend, axes and names overlap nowhere and are within the figure."""
    ax = error_plot(None, made_rows(methods, mechanisms, epsilons), "Share of wrong truths")
    figure = figure_of(ax)
    legend, boxes = legend_of(ax).get_window_extent(), [one.get_window_extent() for one in figure.axes]

    for box in boxes:
        assert box.width >= MIN_INCHES * figure.dpi
        if len(epsilons) > 1:
            assert box.height >= max(MIN_SHARE * figure.bbox.height, MIN_INCHES * figure.dpi)
        assert not legend.overlaps(box)
    drawn = [one.get_tightbbox(bbox_extra_artists=[]) for one in figure.axes]
    assert all(isinstance(box, Bbox) for box in drawn)
    texts = [*(one.xaxis.label.get_window_extent() for one in figure.axes), legend]
    assert not any(one.overlaps(legend) for one in texts[:-1])
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    for box in texts:
        assert box.x0 >= 0
        assert box.y0 >= -1
        assert box.x1 <= figure.bbox.width
    pyplot.close(figure)


@pytest.mark.parametrize("layout", [None, "constrained"])
def test_given_axes_keep_their_size(layout: Any) -> None:
    """The figure of given axes grows by the legend; axes beside others leave their figure as it is."""
    _, ax = pyplot.subplots(layout=layout)
    figure = figure_of(ax)
    before, size = ax.get_window_extent().height, figure.get_size_inches()[1]
    rows = made_rows(12, 3, (1.0, 2.0))
    assert error_plot(ax, rows, "error") is ax
    grown = figure_of(ax).get_size_inches()[1]

    assert ax.get_window_extent().height == pytest.approx(before, abs=0.3 * figure.dpi)
    assert grown == pytest.approx(size + legend_of(ax).get_window_extent().height / figure.dpi, abs=0.1)
    assert legend_of(ax).get_window_extent().y0 >= -1
    _, (left, _) = pyplot.subplots(1, 2, layout="constrained", figsize=(8, 6))
    error_plot(left, rows, "error")
    box = left.get_window_extent()
    assert (8, 6) == tuple(figure_of(left).get_size_inches())
    assert not legend_of(left).get_window_extent().overlaps(box)
    assert box.width >= MIN_INCHES * figure_of(left).dpi
    pyplot.close("all")


def test_every_pair_has_its_line() -> None:
    """Each mechanism has a panel with a line for each method; methods, constant and unprotected are in the legend."""
    rows = made_rows(3, 2, (1.0, 2.0))
    ax = error_plot(None, rows, "error")
    panels = figure_of(ax).axes

    assert ["randomized-response", "matrix-factorization-published"] == [one.get_title() for one in panels]
    drawn = [list(line.get_ydata()) for panel in panels for line in panel.lines if line.get_marker() != "None"]
    assert [[error for _, error in points] for points in points_by_line(rows).values()] == drawn
    assert [
        *("majority-vote", "dawid-skene", "hierarchical-dawid-skene"),
        *("best constant", "unprotected, same method"),
    ] == [text.get_text() for text in legend_of(ax).get_texts()]
    pyplot.close("all")


def test_equal_lines_are_both_seen() -> None:
    """Of two lines through the same points, the first one is wider than the second one, which is on it."""
    rows = [made_row(UNPROTECTED, None, name, 0.1) for name in ("dawid-skene", "mace")]
    rows += [
        made_row("laplace", epsilon, name, 0.3 / epsilon) for epsilon in (1.0, 2.0) for name in ("dawid-skene", "mace")
    ]
    lines: Any = error_plot(None, rows, "error").lines
    first, second = lines[:2]

    assert list(first.get_ydata()) == list(second.get_ydata())
    assert first.get_linewidth() > second.get_linewidth()
    assert first.get_markersize() > second.get_markersize()
    pyplot.close("all")


def test_the_exact_epsilon_is_drawn() -> None:
    """Lines have exact epsilons; a mechanism without a finite one is named, and at one epsilon it has its mark."""
    plain = made_row(UNPROTECTED, None, "mace", 0.1)
    finite = [made_row("two-layer", one, "mace", 0.2, exact=1.5 * one) for one in (1.0, 2.0)]
    infinite = [made_row("staircase", one, "mace", 0.3, exact=float("inf")) for one in (1.0, 2.0)]
    ax: Any = error_plot(None, [plain, *finite, *infinite], "error")

    assert [1.5, 3.0] == list(ax.lines[0].get_xdata())
    assert "not drawn, exact epsilon is infinite: staircase" in {text.get_text() for text in legend_of(ax).get_texts()}
    one = error_plot(None, [plain, finite[0], infinite[0]], "error")
    assert ["unprotected", "two-layer, exact 1.5", "staircase, exact inf"] == [
        text.get_text() for text in one.get_yticklabels()
    ]
    pyplot.close("all")


def test_mechanisms_of_one_name_have_their_own_lines() -> None:
    """Two mechanisms of one name at the same epsilons are two lines, the second one with its number."""
    rows = [made_row("two-layer", epsilon, "mace", error) for error in (0.2, 0.3) for epsilon in (1.0, 2.0)]

    assert {("two-layer", "mace"): [(1.0, 0.2), (2.0, 0.2)], ("two-layer (2)", "mace"): [(1.0, 0.3), (2.0, 0.3)]} == (
        points_by_line(rows)
    )


def test_cards_say_which_lines_are_left_out() -> None:
    """A notebook has a picture for each mechanism with the best lines, and says how many lines are left out."""
    shown = Comparison(rows=made_rows(12, 2, (1.0, 2.0)))._repr_html_()

    assert 2 == shown.count("<svg")
    assert 1 == shown.count(">Share of wrong truths, randomized-response</p>")
    assert "Not in a picture: 16 of 24 lines" in shown
    assert "Not in a picture" not in Comparison(rows=made_rows(3, 2, (1.0, 2.0)))._repr_html_()


def test_many_methods_have_their_own_marks() -> None:
    """Of thirty methods, no two have the same color and marker."""
    names = [f"method-{number}" for number in range(30)]
    rows = [made_row(UNPROTECTED, None, name, 0.1) for name in names]
    rows += [made_row("laplace", epsilon, name, 0.3 / epsilon) for epsilon in (1.0, 2.0) for name in names]
    lines = [line for line in error_plot(None, rows, "error").lines if line.get_marker() != "None"]

    assert 30 == len({(line.get_color(), line.get_marker()) for line in lines})
    pyplot.close("all")
