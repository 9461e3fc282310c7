"""Exact guarantee of numeric truth discovery with drawn noise variances (Li et al., arXiv 1810.04760).

A worker draws a variance V from an exponential distribution of rate r, and adds N(0, V) noise to every answer. Answers
lie in a range of width 1, and neighbours differ in one answer.

One answer for each V: the noise is Laplace noise of scale 1 / sqrt(2 r), so epsilon = sqrt(2 r), exactly.
k >= 2 answers for one V: the joint noise has the density
    f(z) = 2 r (2 pi)^(-k/2) (|z|^2 / (2 r))^((1 - k/2) / 2) K_|1 - k/2|(|z| sqrt(2 r)),
which is unbounded at 0: no pure epsilon is finite. Delta at the epsilon of one answer is an integral over |z| and the
angle to the answer that differs. With many answers V is known, and delta is a mean of that of Gaussian noise.

`python -m experiments.rivals.shared_variance` writes `results/shared_variance.csv` and the table of
docs/explanation/related-work.md, within seconds.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from experiments.rows import four_digits, read_rows, write_rows
from numpy.typing import NDArray
from scipy.special import gammaln, kve, ndtr

RESULTS = Path(__file__).parent / "results" / "shared_variance.csv"
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "related-work.md"
TABLE = re.compile(r"^\| epsilon of one answer \|.*?(?=^[^|])", re.DOTALL | re.MULTILINE)
EPSILONS = (0.5, 1.0, 2.0, 4.0)
ANSWERS = (1, 2, 5, 30, None)
"""Answers for one variance; None: infinitely many."""
RADII, ANGLES = 400, 100
FARTHEST = 60.0
"""Largest |z| in units of the scale of one answer's noise; beyond it the density is below e^-60 of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Delta at the epsilon of one answer.

    Attributes:
        epsilon: of one answer for each variance, sqrt(2 rate).
        answers: for one variance; None: infinitely many.
        delta: at this epsilon, for one answer that differs.
    """

    epsilon: float
    answers: int | None
    delta: float


def log_density(radius: NDArray[np.float64], answers: int, epsilon: float) -> NDArray[np.float64]:
    """Return ln f at a distance from 0, of the noise of `answers` answers with the rate epsilon^2 / 2."""
    rate, order = epsilon**2 / 2, 1 - answers / 2
    front = math.log(2 * rate) - answers / 2 * math.log(2 * math.pi)
    bessel = np.log(kve(abs(order), radius * epsilon)) - radius * epsilon
    return np.asarray(front + order / 2 * np.log(radius**2 / (2 * rate)) + bessel)


def exact_delta(epsilon: float, answers: int | None) -> float:
    """Return delta at `epsilon`, which is exact for one answer, of several answers for one variance."""
    if answers is None:
        return delta_of_known_variance(epsilon)
    if answers == 1:
        return 0.0
    return _delta_by_quadrature(epsilon, answers)


def delta_of_known_variance(epsilon: float) -> float:
    """Return the mean delta of Gaussian noise whose variance is drawn and then known."""
    nodes, parts = np.polynomial.legendre.leggauss(2000)
    share = (nodes + 1) / 2
    deviation = np.sqrt(-np.log(share) / (epsilon**2 / 2))
    inner = ndtr(1 / (2 * deviation) - epsilon * deviation)
    outer = math.exp(epsilon) * ndtr(-1 / (2 * deviation) - epsilon * deviation)
    return float(parts @ np.maximum(inner - outer, 0) / 2)


def _delta_by_quadrature(epsilon: float, answers: int) -> float:
    """Return the integral of (f(z) - e^epsilon f(z - e1))+ in |z| and the angle between z and e1."""
    # Radii are dense near 0, where the density of two and more answers is unbounded.
    steps = (np.arange(RADII) + 0.5) / RADII
    radius, width = FARTHEST / epsilon * steps**3, FARTHEST / epsilon * 3 * steps**2 / RADII
    angle = (np.arange(ANGLES) + 0.5) / ANGLES * math.pi
    sphere = math.log(2) + (answers - 1) / 2 * math.log(math.pi) - gammaln((answers - 1) / 2)
    volume = sphere + (answers - 1) * np.log(radius) + np.log(width)
    here = log_density(radius, answers, epsilon)
    total = 0.0
    for theta in angle:
        moved = np.sqrt(np.maximum((radius - 1) ** 2 + 2 * radius * (1 - math.cos(theta)), 1e-300))
        excess = -np.expm1(np.minimum(epsilon + log_density(moved, answers, epsilon) - here, 0.0))
        total += float((np.exp(volume + here) * excess).sum()) * math.sin(theta) ** (answers - 2)
    return total * math.pi / ANGLES


def rows() -> Iterator[Row]:
    """Yield all rows."""
    for epsilon, answers in product(EPSILONS, ANSWERS):
        yield Row(epsilon=epsilon, answers=answers, delta=exact_delta(epsilon, answers))


def table_of_page(found: list[Row]) -> str:
    """Return delta by epsilon and number of answers."""
    delta = {(row.epsilon, row.answers): row.delta for row in found}
    numbers = [f"{number} answer{'s' * (number > 1)}" if number else "infinitely many" for number in ANSWERS]
    lines = [("epsilon of one answer", *numbers), ("---",) * (len(ANSWERS) + 1)]
    lines += [(f"{one:g}", *(f"{delta[one, number]:.3g}" for number in ANSWERS)) for one in EPSILONS]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        write_rows(stream, Row, rows(), four_digits)
    made = table_of_page(read_rows(RESULTS, Row))
    PAGE.write_text(TABLE.sub(lambda _: made, PAGE.read_text("utf-8"), count=1), encoding="utf-8")
