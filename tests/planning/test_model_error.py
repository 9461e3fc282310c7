"""Model error of plans: departures of real sets, and intervals that would have covered them."""

import csv
import math
from dataclasses import astuple, replace
from pathlib import Path

import pytest

from crowdveil.planning.model_error import DEPARTURES, Case, Departure, departure, experience, widened

ROOT = Path(__file__).parent.parent.parent
MEASURED = ROOT / "experiments" / "utility" / "results" / "real_sets.csv"
PAGE = (ROOT / "experiments" / "utility" / "README.md").read_text("utf-8")

COLUMNS = {name: name for name in ("planned", "low", "high", "measured")} | {"constant": "planned_constant"}


def cases(source: str) -> dict[str, list[Case]]:
    """Return what was planned and measured for each real set."""
    found: dict[str, list[Case]] = {}
    with MEASURED.open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            if row["source"] == source:
                names = ("planned", "low", "high", "planned_constant", "measured")
                found.setdefault(row["set"], []).append(
                    Case(**{name.removeprefix("planned_"): float(row[name]) for name in names})
                )
    return found


def without(name: str) -> list[Departure]:
    """Return the departures of all other sets."""
    return [one for one in DEPARTURES if one.name != name]


def covered(case: Case, departures: list[Departure]) -> bool:
    """Return whether the measured error lies in the widened interval."""
    low, high = widened(case.low, case.high, case.constant, departures)
    return low <= case.measured <= high


def rounded_up(one: Departure) -> Departure:
    """Return a departure in thousandths, rounded up."""
    up = {side: math.ceil(getattr(one, side) * 1000 - 1e-9) / 1000 for side in ("below", "above")}
    return replace(one, **up)


def test_departures_are_those_of_the_experiment() -> None:
    """The table in the code follows from what was measured, set by set."""
    assert list(DEPARTURES) == [rounded_up(departure(name, found)) for name, found in cases("default").items()]


def test_widened_intervals_cover_the_real_sets() -> None:
    """All 65 measured errors lie in the intervals widened by all sets; eight do in those for a crowd as assumed."""
    every = [case for found in cases("default").values() for case in found]

    assert 65 == len(every)
    assert 8 == sum(case.low <= case.measured <= case.high for case in every)
    assert 65 == sum(covered(case, list(DEPARTURES)) for case in every)


def test_coverage_of_a_set_that_was_left_out_is_what_the_page_says() -> None:
    """Widened by the other sets only, intervals cover 61 of 65 errors, and all five of 11 of 13 sets."""
    inside = {name: [covered(case, without(name)) for case in found] for name, found in cases("default").items()}
    whole, every = sum(map(all, inside.values())), sum(sum(one) for one in inside.values())

    assert (11, 61) == (whole, every)
    assert f"{every} of 65 measured errors, and all five of {whole} of 13 sets" in PAGE


def test_coverage_from_pilots_is_what_the_page_says() -> None:
    """Planned from pilots and widened by the other sets, 40 of 50 errors lie inside; all of eight sets, none of two."""
    inside = {name: sum(covered(case, without(name)) for case in found) for name, found in cases("pilot").items()}

    assert [0, 0, *[5] * 8] == sorted(inside.values())
    assert ["adult2", "d_product"] == [name for name, count in inside.items() if not count]
    assert "40 of 50" in PAGE


def test_pilots_bring_predictions_closer() -> None:
    """The mean distance of measured from predicted error rates falls from 0.118 to 0.069, as the page says."""
    pilots = cases("pilot")
    found = {
        source: [abs(case.measured - case.planned) for name in pilots for case in cases(source)[name]]
        for source in ("default", "pilot")
    }
    means = [sum(one) / len(one) for one in found.values()]

    assert ["0.118", "0.069"] == [f"{mean:.3f}" for mean in means]
    assert "from 0.118 to 0.069" in PAGE
    assert 8 == sum(2 * departure(name, found).larger > 5 for name, found in pilots.items())
    assert "in 8 of 10 sets" in PAGE


def test_a_departure_is_the_largest_on_either_side() -> None:
    """Shares of the lower end, and of the way from the upper end to the constant; what lies inside counts as 0."""
    inside = Case(planned=0.2, low=0.1, high=0.3, constant=0.5, measured=0.25)
    found = departure("a", [inside, replace(inside, measured=0.35), replace(inside, measured=0.08)])

    assert ("a", pytest.approx(0.2), pytest.approx(0.25), 3, 2) == astuple(found)
    assert ("b", 0.0, 0.0, 1, 1) == astuple(departure("b", [inside]))


def test_ends_without_room_do_not_count() -> None:
    """A lower end of 0 has nothing below it, and an upper end at the constant's error nothing above."""
    case = Case(planned=0.4, low=0.0, high=0.5, constant=0.5, measured=0.6)

    assert (0.0, 0.0) == (departure("a", [case]).below, departure("a", [case]).above)


def test_an_interval_is_widened_by_the_largest_departures() -> None:
    """By hand: 0.1 to 0.3 with a constant of 0.5, half of the low end and a quarter of the way up; never narrower."""
    sets = [
        Departure(name="a", below=0.5, above=0.0, cases=1, larger=0),
        Departure(name="b", below=0.1, above=0.25, cases=1, larger=1),
    ]

    assert (pytest.approx(0.05), pytest.approx(0.35)) == widened(0.1, 0.3, 0.5, sets)
    assert (0.1, 0.3) == widened(0.1, 0.3, 0.5, [])
    assert (pytest.approx(0.3), 0.7) == widened(0.6, 0.7, 0.5, sets)


def test_experience_is_counted() -> None:
    """The sentence counts the sets that erred more than predicted in most cases, and the largest departure."""
    hopeful = sum(2 * sum(case.measured > case.planned for case in found) > 5 for found in cases("default").values())

    assert f"{hopeful} of 13 public sets" in experience()
    assert "by up to 60 % of the way" in experience()


@pytest.mark.parametrize("name", [one.name for one in DEPARTURES])
def test_the_page_has_a_row_for_each_set(name: str) -> None:
    """The guide's table shows predicted and measured error without protection and at epsilon 4, and the departures."""
    found, one = cases("default")[name], next(one for one in DEPARTURES if one.name == name)
    figures = [f"{case.planned:.3g} | {case.measured:.3g}" for case in (found[1], found[4])]
    inside = sum(covered(case, without(name)) for case in found)

    assert f"| {name} | {' | '.join(figures)} | {one.below:.2f} | {one.above:.2f} | {inside} |" in PAGE
