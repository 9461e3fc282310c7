"""Exhibit: a table, figure or theorem of a paper as configurations, measured rows, a picture and a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Size = Literal["quick", "default", "full"]
"""quick: seconds, in the test suite; default: minutes; full: the paper's own grid and repeats."""
Configuration = dict[str, str | int | float | bool | None]
"""Everything that one step depends on, seed included: the key of the cache."""
Row = dict[str, str | int | float | None]
"""One line of the tidy CSV file."""
Outcome = Literal["reproduced", "reproduced but trivial", "reproduced in part", "not reproduced", "cannot be judged"]


@dataclass(frozen=True, slots=True)
class OpenParameter:
    """Parameter that the paper does not give.

    Attributes:
        name: name of the parameter.
        used: value of the main rows.
        swept: values that were tried.
        effect: what the choice changed, one sentence.
    """

    name: str
    used: str
    swept: str
    effect: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Comparison of the paper's numbers with ours.

    Attributes:
        outcome: whether the exhibit was reproduced.
        sentence: the comparison in one sentence.
        inequality: the inequality that the sentence depends on, evaluated on the given rows.
    """

    outcome: Outcome
    sentence: str
    inequality: bool


@dataclass(frozen=True, slots=True)
class Exhibit:
    """Table, figure or theorem of a paper.

    Attributes:
        name: "paper/exhibit", such as "sun2018/figure2".
        title: what is shown.
        source: place in the paper, such as "Sun et al. 2018, Figure 2".
        columns: names of the columns of every row, in order.
        configurations: steps of a size.
        measure: rows of one step; deterministic.
        paper: numbers printed in the paper; a column says which were read off a figure.
        draw: picture of all rows in the form of the paper.
        verdict: verdict on all rows.
        open_parameters: parameters that the paper does not give.
        notes: sentences for the page: unit of epsilon, participation, what is compared.
        data: data sets that are read; without them the exhibit cannot run.
    """

    name: str
    title: str
    source: str
    columns: tuple[str, ...]
    configurations: Callable[[Size], list[Configuration]]
    measure: Callable[[Configuration], list[Row]]
    paper: tuple[Row, ...]
    draw: Callable[[list[Row]], Figure]
    verdict: Callable[[list[Row]], Verdict]
    open_parameters: tuple[OpenParameter, ...]
    notes: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
