"""Table 2: error rate change on simulated peer grading by claimed epsilon, and at the exact epsilon of two-layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.papers.exhibit import Configuration, Exhibit, OpenParameter, Row, Size, Verdict
from experiments.papers.li2018 import comparison
from experiments.papers.li2018.comparison import ONE, ONE_PER_ANSWER, TRUTH, TWO, claims, value, votes_apart
from experiments.papers.li2018.crowds import PEER, UNEQUAL
from experiments.papers.li2018.truth_discovery import WEIGHT_FUNCTIONS

from crowdveil.channels.rounding import format_bound

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRINTED = (
    (0.1019, 0.0850, 0.0885, 0.0619), (0.1135, 0.0954, 0.1112, 0.0800), (0.1300, 0.1127, 0.1212, 0.0827),
    (0.1404, 0.1135, 0.1265, 0.0923), (0.1615, 0.1408, 0.1554, 0.1138), (0.1669, 0.1546, 0.1631, 0.1262),
    (0.1788, 0.1604, 0.1696, 0.1354), (0.1842, 0.1658, 0.1785, 0.1415), (0.2042, 0.1823, 0.1938, 0.1581),
    (0.2269, 0.2088, 0.2165, 0.1723), (0.2373, 0.2135, 0.2327, 0.1865), (0.2485, 0.2196, 0.2377, 0.1958),
    (0.2504, 0.2212, 0.2419, 0.1992),
)  # fmt: skip
PAPER = comparison.printed_rows(PRINTED)


def configurations(size: Size) -> list[Configuration]:
    """Return one step per claimed epsilon, and the sweep of the worker model at few of them."""
    main = comparison.configurations(PEER, (ONE, TWO, ONE_PER_ANSWER), tuple(WEIGHT_FUNCTIONS))(size)
    sweep = comparison.configurations(UNEQUAL, (ONE, TWO, ONE_PER_ANSWER), (comparison.MAIN_WEIGHT,))(size)
    return [*main, *(step for step in sweep if step["claimed_epsilon"] in comparison.FEW)]


def measure(configuration: Configuration) -> list[Row]:
    """Return the rows of a step; printed numbers stand beside the main crowd only."""
    return comparison.measure(configuration, PAPER if configuration["crowd"] == PEER else ())


def verdict(rows: list[Row]) -> Verdict:
    """Return that the table cannot be judged, and that two-layer has no advantage on two simulated crowds."""
    main, other = ([row for row in rows if row["crowd"] == name] for name in (PEER, UNEQUAL))
    gains, noise = _gains(main)
    unequal, spread = _gains(other)
    exact = [value(main, "exact_epsilon", TWO, TRUTH, claimed) for claimed in claims(main)]
    least, most = (format_bound(one, 3) for one in (min(exact), max(exact)))
    matched = [value(main, "change", ONE_PER_ANSWER, TRUTH, claimed) for claimed in claims(main)]
    changes = [value(main, "change", TWO, TRUTH, claimed) for claimed in claims(main)]
    worse = all(own > one for own, one in zip(changes, matched, strict=True))
    sentence = (
        f"the data are private, so the table cannot be judged. On simulated peer grading, five answers of a student, "
        f"two-layer has no measurable advantage at equal claimed epsilon in the two worker models that were tried: "
        f"truth discovery's change is smaller by at most {max(gains):.3f} (standard error of a change up to "
        f"{noise:.3f}; printed: by .015 to .037), with very unequal students by at most {max(unequal):.3f}. The "
        f"changes of the majority vote differ by at most {votes_apart(main):.3f} between the mechanisms; their "
        f"expectations are equal. A claim of 0 to 1 is an exact epsilon of an answer of {least} to {most}, where "
        f"one-layer changes the error by at most {max(matched):.3f}, less than two-layer at every claim."
    )
    costs = [value(main, "exact_epsilon", ONE_PER_ANSWER, TRUTH, claimed) for claimed in claims(main)]
    worse &= all(cost <= own * (1 + 1e-4) for cost, own in zip(costs, exact, strict=True))
    none = max(gains) < 2 * noise and max(unequal) < 2 * spread
    return Verdict("cannot be judged", sentence, none and min(exact) > 1.6 and worse)


def _gains(rows: list[Row]) -> tuple[list[float], float]:
    """Return one-layer's minus two-layer's change by claim, and the largest standard error of a change."""
    changes = [[value(rows, "change", arm, TRUTH, claimed) for claimed in claims(rows)] for arm in (ONE, TWO)]
    errors = [value(rows, "standard_error", TWO, TRUTH, claimed) for claimed in claims(rows)]
    return [one - two for one, two in zip(*changes, strict=True)], max(errors)


def draw(rows: list[Row]) -> Figure:
    """Draw ours against the printed numbers, and the comparison at the exact epsilon."""
    return comparison.draw_table([row for row in rows if row["crowd"] == PEER], "peer grading")


EXHIBIT = Exhibit(
    name="li2018/table2",
    title="Error rate change on peer grading (simulated)",
    source="Li et al. 2018, Table 2",
    columns=comparison.COLUMNS,
    configurations=configurations,
    measure=measure,
    paper=PAPER,
    draw=draw,
    verdict=verdict,
    open_parameters=(
        OpenParameter(
            name="worker model",
            used="see li2018/table1: mean ability .58, concentration 10, 72 x 26 x 360, a new crowd in every trial",
            swept="concentration 1 (very unequal students) here; accuracies of nine models in li2018/table1",
            effect="With concentration 1 the changes are larger; two-layer has no measurable advantage either.",
        ),
        OpenParameter(
            name="weight function g of truth discovery",
            used="ln(p / (1 - p)), p kept in [.01, .99]",
            swept="ln(p / (1 - p)), p, -ln(1 - p)",
            effect="On the first crowd two-layer has no measurable advantage under any of the three.",
        ),
    ),
    notes=comparison.NOTES,
)
