"""Coverage of joint tables of two sensitive questions: `python -m experiments.shares.joint_tables`.

Two questions of epsilon each, or one combined question of twice that epsilon with four labels; each person answers
each question independently with probability `response` (both of them the combined one). For each of two seeds 1,000
samples of the exact channel, or channels; the share of each cell has the clipped score interval of `crowdveil share`,
the odds ratio the profile likelihood interval, and independence the likelihood ratio test at a level of 5 %.
Some minutes on one core. Writes `results/joint.csv` and prints the extremes of each design.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from experiments.rows import four_digits, read_rows, write_rows
from numpy.typing import NDArray

from crowdveil import Categories, RandomizedResponse
from crowdveil.quality.shares.joint import OddsLikelihood, plackett_table
from crowdveil.quality.shares.score import ScoreTest, normal_quantile

RESULTS = Path(__file__).parent / "results" / "joint.csv"
DRAWS, SEEDS = 1000, (1, 2)
CRITICAL = 3.841458820694124
"""The 95 % quantile of chi-squared with one degree of freedom."""
RATIOS, MARGINS = (1.0, 4.0), (0.2, 0.3)
"""Odds ratios, and shares of those who say yes to the first and to the second question."""
SETTINGS = (
    ("combined", 800, 1.0),
    ("combined", 800, 1.5),
    ("combined", 2000, 1.0),
    ("two", 800, 3.0),
    ("two", 3000, 2.0),
)
"""Design, people, and epsilon of each question."""


@dataclass(frozen=True, slots=True)
class Row:
    """Coverage of one cell of the grid.

    Attributes:
        design: "combined" or "two".
        epsilon: of each question; a combined one has twice that.
        rows, columns: shares of those who say yes to the first, and to the second question.
        ratio: odds ratio.
        cells: smallest coverage of the shares of the four cells of the table.
        odds: coverage of the odds ratio.
        rejected: how often the test rejects independence.
    """

    design: str
    people: int
    epsilon: float
    rows: float
    columns: float
    ratio: float
    response: float
    seed: int
    cells: float
    odds: float
    rejected: float


def channel(labels: int, epsilon: float) -> NDArray[np.float64]:
    """Return P(report | answer) of randomized response that protects participation."""
    names = Categories(tuple(map(str, range(labels))))
    return RandomizedResponse(alphabet=names, epsilon=epsilon).channel().probabilities


def table_and_shares(
    design: str, epsilon: float, table: NDArray[np.float64], response: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return P(report | input) with the four cells first, and the shares of all inputs."""
    if design == "combined":
        both = response**2
        return channel(4, 2 * epsilon), np.append(both * table, 1 - both)
    one, inputs = channel(2, epsilon), [(a, b) for a in range(3) for b in range(3)]
    inputs.sort(key=lambda pair: (2 in pair, pair))
    answered, rows, columns = (response, 1 - response), table[:2].sum(), table[[0, 2]].sum()
    margins = ((rows, 1 - rows), (columns, 1 - columns))
    shares = [
        response**2 * table[2 * a + b]
        if a < 2 and b < 2
        else (margins[0][a] * response if a < 2 else answered[1]) * (margins[1][b] * response if b < 2 else answered[1])
        for a, b in inputs
    ]
    return np.stack([np.outer(one[a], one[b]).ravel() for a, b in inputs]), np.array(shares)


def row(design: str, people: int, epsilon: float, margins: tuple[float, float], ratio: float, seed: int) -> Row:
    """Return one row; the seed is that of its settings."""
    response, cells = 0.8, plackett_table(*margins, ratio)
    table, shares = table_and_shares(design, epsilon, cells, response)
    rng = np.random.default_rng(zlib.crc32(repr((design, people, epsilon, margins, ratio, seed)).encode()))
    draws = rng.multinomial(people, shares @ table, DRAWS).astype(float)
    covered = [
        ScoreTest(draws, table, 4, cell).holding(normal_quantile(0.95))(np.full(DRAWS, cells[cell])).mean()
        for cell in range(4)
    ]
    held = rejected = 0
    for counts in draws:
        likelihood = OddsLikelihood(counts, table)
        independent = likelihood.value(0.0)
        true = independent if ratio == 1 else likelihood.value(float(np.log(ratio)))
        held += 2 * (likelihood.best - true) <= CRITICAL
        rejected += 2 * (likelihood.best - independent) > CRITICAL
    return Row(
        *(design, people, epsilon, *margins, ratio, response, seed),
        *(float(min(covered)), held / DRAWS, rejected / DRAWS),
    )


def rows() -> Iterator[Row]:
    """Yield all rows."""
    for seed, ratio, (design, people, epsilon) in product(SEEDS, RATIOS, SETTINGS):
        yield row(design, people, epsilon, MARGINS, ratio, seed)


if __name__ == "__main__":
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        write_rows(stream, Row, rows(), four_digits)
    every: list[Row] = read_rows(RESULTS, Row)
    for design in ("combined", "two"):
        own = [one for one in every if one.design == design]
        tested = [one.rejected for one in own if one.ratio == 1]
        print(
            f"{design}: {len(own)} rows, cells from {min(one.cells for one in own)}, odds ratio"
            f" {min(one.odds for one in own)} to {max(one.odds for one in own)}, level up to {max(tested)}"
        )
