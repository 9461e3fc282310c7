"""Table 3: error rate change on Duchenne smiles by claimed epsilon, and at the exact epsilon of two-layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.papers.exhibit import Exhibit, OpenParameter, Row, Verdict
from experiments.papers.li2018 import comparison
from experiments.papers.li2018.comparison import ONE, ONE_PER_ANSWER, TRUTH, TWO, claims, value
from experiments.papers.li2018.crowds import DUCHENNE
from experiments.papers.li2018.truth_discovery import WEIGHT_FUNCTIONS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRINTED = (
    (0.1228, 0.0735, 0.1240, 0.0560), (0.1296, 0.0870, 0.1337, 0.0629), (0.1438, 0.1104, 0.1447, 0.0709),
    (0.1459, 0.1157, 0.1564, 0.0821), (0.1699, 0.1321, 0.1701, 0.0906), (0.1784, 0.1562, 0.1738, 0.0962),
    (0.1917, 0.1769, 0.1903, 0.1081), (0.2126, 0.1930, 0.2133, 0.1271), (0.2218, 0.2016, 0.2160, 0.1379),
    (0.2335, 0.2086, 0.2248, 0.1511), (0.2406, 0.2150, 0.2362, 0.1742), (0.2414, 0.2178, 0.2426, 0.1774),
    (0.2516, 0.2277, 0.2447, 0.1793),
)  # fmt: skip
PAPER = comparison.printed_rows(PRINTED)


def verdict(rows: list[Row]) -> Verdict:
    """Return that the advantage depends on the weights, and vanishes at the exact epsilon."""
    one, two = (value(rows, "change", arm, TRUTH, 0.5) for arm in (ONE, TWO))
    linear = [value(rows, "change", arm, TRUTH, 0.5, "p") for arm in (ONE, TWO)]
    noise = value(rows, "standard_error", TWO, TRUTH, 0.5, "p")
    exact = [value(rows, "exact_epsilon", TWO, TRUTH, claimed) for claimed in claims(rows)]
    matched = max(value(rows, "change", ONE_PER_ANSWER, TRUTH, claimed) for claimed in claims(rows))
    best = min(value(rows, "change", TWO, TRUTH, claimed) for claimed in claims(rows))
    sentence = (
        f"at equal claimed epsilon .5 two-layer changes the error of truth discovery less than one-layer with log-odds "
        f"weights ({two:.3f} against {one:.3f}; printed .096 and .156), not with g(p) = p ({linear[1]:.3f} against "
        f"{linear[0]:.3f}). But a claim of 0 to 1 is an exact epsilon of {max(exact):.2f} for an answer of the busiest "
        f"worker; at each worker's exact epsilon one-layer changes the error by at most {matched:.3f}, two-layer by "
        f"at least {best:.3f}."
    )
    holds = two < one and linear[1] > linear[0] - 2 * noise and min(exact) > 7 and matched < best
    return Verdict("reproduced in part", sentence, holds)


def draw(rows: list[Row]) -> Figure:
    """Draw ours against the printed numbers, and the comparison at the exact epsilon."""
    return comparison.draw_table(rows, DUCHENNE)


EXHIBIT = Exhibit(
    name="li2018/table3",
    title="Error rate change on Duchenne smiles",
    source="Li et al. 2018, Table 3",
    columns=comparison.COLUMNS,
    configurations=comparison.configurations(DUCHENNE, (ONE, TWO, ONE_PER_ANSWER), tuple(WEIGHT_FUNCTIONS)),
    measure=lambda configuration: comparison.measure(configuration, PAPER),
    paper=PAPER,
    draw=draw,
    verdict=verdict,
    open_parameters=(
        OpenParameter(
            name="weight function g of truth discovery",
            used="ln(p / (1 - p)), p kept in [.01, .99]: the choice of section 6.2",
            swept="ln(p / (1 - p)), p, -ln(1 - p)",
            effect="Only log-odds, which turn the votes of workers below 1/2, give two-layer an advantage; the other "
            "two are the more accurate ones without protection.",
        ),
        OpenParameter(
            name="interval of the hyper-distribution",
            used="U(0, b), the case that the paper analyses",
            swept="see li2018/hyper_distributions",
            effect="The smaller a, the larger the exact epsilon of an answer.",
        ),
        OpenParameter(
            name="tied votes", used="half an error", swept="none", effect="The expected value of a fair coin."
        ),
    ),
    notes=comparison.NOTES,
    data=("duchenne",),
)
