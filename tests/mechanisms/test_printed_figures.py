"""Figures on the proof pages are rounded up from what the mechanisms state."""

from decimal import ROUND_CEILING, Decimal
from pathlib import Path

import pytest

from crowdveil.channels.alphabet import Categories
from crowdveil.mechanisms import OneLayer, SunTwoLayer, TwoLayer

PAGES = Path(__file__).parent.parent.parent / "docs" / "explanation" / "mechanisms"
TWO_LABELS = {"alphabet": Categories(("no", "yes")), "epsilon": 1.0, "participation": "public"}
FIVE = Categories(tuple("abcde"))


def table(page: str, head: str) -> dict[int, list[str]]:
    """Return the rows of a table by their first number, from its head on."""
    lines = (PAGES / page).read_text("utf-8").split(head, 1)[1].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[: lines.index("")]]
    return {int(row[0].replace(",", "")): row[1:] for row in rows}


def rounded_up(mechanism, cells: int) -> str:
    """Return the figures of a cell and of a worker with three digits and one after the point, rounded up."""
    found = zip(mechanism.guarantees(cells), (3, 1), strict=True)
    cell, worker = (
        Decimal(one.epsilon).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_CEILING) for one, digits in found
    )
    return f"{cell} ({worker})"


@pytest.mark.parametrize("cells", [1, 10, 100, 277])
def test_the_table_of_two_layer_is_rounded_up(cells):
    """Four settings at claimed epsilon 1, two labels: no figure is below the exact one."""
    settings = (
        OneLayer(**TWO_LABELS),
        TwoLayer.as_published(**TWO_LABELS, answers=cells),
        TwoLayer.calibrated(**TWO_LABELS, answers=cells),
        TwoLayer.with_bounded_loss(**TWO_LABELS),
    )

    assert [rounded_up(one, cells) for one in settings] == table("two-layer.md", "| answers | one-layer |")[cells]


@pytest.mark.parametrize("cells", [1, 2, 10, 177, 11_040])
def test_the_table_of_sun_two_layer_is_rounded_up(cells):
    """Four claims, five labels and NULL: no figure is below the exact one."""
    settings = [SunTwoLayer(alphabet=FIVE, epsilon=epsilon) for epsilon in (0.5, 1.0, 3.0, 5.0)]

    assert [rounded_up(one, cells) for one in settings] == table("sun-two-layer.md", "| cells | claimed 0.5 |")[cells]
