"""Model error of plans: intervals widened by how far real sets departed from plans made in the same way.

A made-up crowd has no tasks that are hard for everyone and no mistakes that workers share, and without a prior it takes
every label as equally likely. What that costs is measured, not derived: each public set in `DEPARTURES` was planned
from its labels, its sizes and its share of answered cells, and then perturbed and inferred from
(`experiments/utility/real_sets.py`). The largest departure of n sets holds one more set, if sets are exchangeable, with
probability n / (n + 1) on either side (split conformal prediction, Vovk et al. 2005).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One set under one condition; errors are shares of wrong labels, or mean absolute errors.

    Attributes:
        planned, low, high: predicted error, and its interval for a crowd as assumed.
        constant: error of the best public constant, as planned.
        measured: error of reports through the channel, on the tasks with known truth.
    """

    planned: float
    low: float
    high: float
    constant: float
    measured: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """How far the errors of one real set lie outside the intervals planned for it, at most over its cases.

    Attributes:
        name: of the set.
        below: (low - measured) / low, a share of the lower end; 0 where no error lies below.
        above: (measured - high) / (constant - high), a share of the way from the upper end to the error of the best
            public constant; 0 where no error lies above.
        cases: conditions under which it was planned.
        larger: of these, how many had a larger error than predicted.
    """

    name: str
    below: float
    above: float
    cases: int
    larger: int


DEPARTURES = (
    Departure(name="adult2", below=0.274, above=0.318, cases=5, larger=3),
    Departure(name="bluebird", below=0.0, above=0.24, cases=5, larger=5),
    Departure(name="d_possent", below=0.0, above=0.064, cases=5, larger=5),
    Departure(name="d_product", below=0.688, above=0.0, cases=5, larger=0),
    Departure(name="dog", below=0.014, above=0.183, cases=5, larger=4),
    Departure(name="duchenne", below=0.0, above=0.488, cases=5, larger=5),
    Departure(name="s_rel", below=0.0, above=0.481, cases=5, larger=5),
    Departure(name="snow_rte", below=0.0, above=0.021, cases=5, larger=4),
    Departure(name="snow_wsd", below=0.855, above=0.0, cases=5, larger=0),
    Departure(name="web_zhou", below=0.122, above=0.246, cases=5, larger=3),
    Departure(name="n_emotion", below=0.579, above=0.181, cases=5, larger=2),
    Departure(name="snow_valence", below=0.038, above=0.598, cases=5, larger=3),
    Departure(name="weather_temperature", below=0.841, above=0.0, cases=5, larger=0),
)
"""Public sets with a hundred known truths or more, planned from default guesses; rounded up to thousandths.

A test computes them from `experiments/utility/results/real_sets.csv`.
"""


def departure(name: str, cases: Sequence[Case]) -> Departure:
    """Return the departure of a set from its plans."""
    below = [(case.low - case.measured) / case.low for case in cases if case.low > 0]
    above = [(case.measured - case.high) / (case.constant - case.high) for case in cases if case.high < case.constant]
    return Departure(
        name=name,
        below=max([0.0, *below]),
        above=max([0.0, *above]),
        cases=len(cases),
        larger=sum(case.measured > case.planned for case in cases),
    )


def widened(
    low: float, high: float, constant: float, departures: Iterable[Departure] = DEPARTURES
) -> tuple[float, float]:
    """Return an interval widened on either side by the largest departure of the real sets.

    Args:
        low, high: interval for a crowd as assumed.
        constant: error of the best public constant, as planned.
        departures: of the sets that count.
    """
    sets = tuple(departures)
    below, above = (max((getattr(one, side) for one in sets), default=0.0) for side in ("below", "above"))
    return low * (1 - below), high + above * max(0.0, constant - high)


def experience(departures: Iterable[Departure] = DEPARTURES) -> str:
    """Return in a sentence how predictions fared on the real sets."""
    sets = tuple(departures)
    hopeful = sum(2 * one.larger > one.cases for one in sets)
    above = max(one.above for one in sets)
    return (
        f"Such predictions were too hopeful: {hopeful} of {len(sets)} public sets, planned from default guesses, had "
        f"larger errors than predicted, by up to {100 * above:.0f} % of the way to the error of the best constant. "
        "Intervals for real crowds are widened by what was found there."
    )
