"""Grades: points of the scale, rounded to the nearest, with intervals rounded outwards."""

import pytest

from crowdveil.channels.alphabet import Scale
from crowdveil.pages.grades import END, NEAREST, START, point_of_scale


@pytest.mark.parametrize(
    ("number", "points"),
    [
        (6.5, ("6", "7", "7")),
        (7.5, ("7", "8", "8")),
        (6.49, ("6", "6", "7")),
        (7.0, ("7", "7", "7")),
        (7 - 1e-13, ("7", "7", "7")),
        (7 + 1e-13, ("7", "7", "7")),
        (-1.0, ("0", "0", "0")),
        (11.0, ("10", "10", "10")),
        (float("nan"), ("", "", "")),
    ],
)
def test_a_number_is_a_point_of_the_scale(number: float, points: tuple[str, str, str]) -> None:
    """The start of an interval is rounded down, a grade to the nearest point with halves up, the end up."""
    assert points == tuple(point_of_scale(Scale(0, 10), number, up) for up in (START, NEAREST, END))


def test_steps_are_exact_decimals() -> None:
    """A point is written as the scale writes it, although its step is no binary fraction."""
    assert ["0.3", "0.7"] == [point_of_scale(Scale(0, 1, 0.1), number, NEAREST) for number in (0.1 + 0.2, 0.7)]
