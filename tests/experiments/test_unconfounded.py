"""Mechanisms read by every inference: committed results are complete, computed again, and those of the page."""

import math

import pytest
from experiments.figure_files import has_matplotlib
from experiments.rivals import unconfounded, unconfounded_pages
from experiments.rows import read_rows

ROWS = read_rows(unconfounded.RESULTS, unconfounded.Row)
HALVES = read_rows(unconfounded.HALVES, unconfounded.Half)
SETS = (*unconfounded.LABELS, *unconfounded.NUMBERS)


@pytest.mark.parametrize("data", SETS)
def test_every_mechanism_has_every_inference(data: str) -> None:
    """At each main epsilon every mechanism of a set has 50 draws of every inference that reads its reports."""
    labels = data in unconfounded.LABELS
    mechanisms = unconfounded.LABEL_MECHANISMS if labels else unconfounded.NUMBER_MECHANISMS
    inferences = set(unconfounded.LABEL_INFERENCES if labels else unconfounded.NUMBER_INFERENCES[:-1])
    inferences -= {unconfounded.PRIVATE, "dawid-skene", "one-coin"}  # read some tables only
    for epsilon in unconfounded.EPSILONS:
        found = [row for row in ROWS if (row.data, row.epsilon) == (data, epsilon)]
        assert {row.draws for row in found} == {unconfounded.DRAWS}
        for mechanism in mechanisms:
            assert inferences <= {row.inference for row in found if row.mechanism == mechanism}


def test_no_mechanism_has_more_than_the_epsilon_asked_for() -> None:
    """The exact epsilon of every row is at most the one asked for, and not less by more than 1e-3."""
    for row in ROWS:
        if row.epsilon is not None:
            assert row.exact is not None
            assert row.epsilon - 1e-3 <= row.exact <= row.epsilon


@pytest.mark.parametrize(
    ("data", "mechanism", "inference"), [("peer", "ogpm", "CRH"), ("ten labels", "subset-selection", "majority-vote")]
)
def test_a_committed_row_is_computed_again(data: str, mechanism: str, inference: str) -> None:
    """Fifty draws of a crowd at epsilon 1 have the committed error, interval and constant."""
    (row,), _ = unconfounded.measured(data, 1.0, {}, {mechanism: (inference,)})
    (committed,) = (
        one
        for one in ROWS
        if (one.data, one.epsilon, one.mechanism, one.inference) == (data, 1.0, mechanism, inference)
    )

    for name in ("error", "low", "high", "constant", "gain_low", "gain_high"):
        assert math.isclose(getattr(row, name), getattr(committed, name), rel_tol=1e-3, abs_tol=1e-4)


def test_halves_are_differences_of_errors() -> None:
    """What the halves take off adds up to the whole fall of the error, and the errors are those of the rows."""
    errors = {(row.data, row.epsilon, row.mechanism, row.inference): row.error for row in ROWS}
    for half in HALVES:
        papers, ours = unconfounded.PAIRS["labels" if half.data in unconfounded.LABELS else "numbers"]
        assert half.papers == errors[half.data, half.epsilon, *papers]
        assert half.both == errors[half.data, half.epsilon, *ours]
        assert half.by_inference + half.by_mechanism == pytest.approx(half.papers - half.both, abs=2e-3 * half.papers)
    assert [(half.data, half.epsilon) for half in HALVES] == [(one, at) for one in SETS for at in unconfounded.EPSILONS]


@pytest.mark.parametrize("mechanism", ["laplace", "randomized-response", "piecewise", "staircase", "square-wave"])
def test_reports_read_as_numbers_have_the_answer_as_mean(mechanism: str) -> None:
    """Numbers of the symbols have the answers as means; those of randomized response are its inversion."""
    scale = unconfounded.KINDS["peer, 5"].scale
    channel = unconfounded.channels(unconfounded.case_of("peer", 0), 1.0)[mechanism]
    number, _ = unconfounded.read_as_numbers(scale, channel)

    assert channel.probabilities @ number == pytest.approx(scale.values, abs=1e-6)
    if mechanism == "randomized-response":
        kept, other = channel.probabilities[:2, 0]
        assert number == pytest.approx((scale.values - other * scale.values.sum()) / (kept - other))


def test_page_and_picture_are_those_of_the_results() -> None:
    """Tables, sentence and picture are those that the committed results give."""
    text = unconfounded_pages.PAGE.read_text("utf-8")

    assert unconfounded_pages.page(text, ROWS, HALVES) == text
    if has_matplotlib():
        assert unconfounded_pages.picture(ROWS) == unconfounded_pages.PICTURE.read_bytes()


def test_names_of_lines_do_not_overlap() -> None:
    """Names at the same height are moved apart, within the limits, in the order of their lines."""
    found = unconfounded_pages.spread([0.5, 0.5, 0.9, 3.0], [0.2] * 4, 0.0, 1.0)

    assert found == pytest.approx([0.5 - 0.2, 0.5, 0.7, 0.9])
