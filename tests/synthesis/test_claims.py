"""Claims: every policy for bad input, and that whatever is left out or moved is counted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.data.reports import Reports
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.synthesis.claims import Claims
from tests.real_data import load_or_skip
from tests.strategies import small_numeric_reports

ROWS = (["a", "a", "b", "b"], ["v", "w", "v", "w"])


@pytest.mark.slow
@given(small_numeric_reports())
def test_claims_hold_every_report_in_order(reports: Reports) -> None:
    """The claims of a task are its reports, and derived bounds are the smallest and the largest of them."""
    claims = Claims.from_reports(reports)

    assert claims.value.tolist() == reports.value.tolist()
    assert claims.task.tolist() == reports.task.tolist()
    assert claims.worker.tolist() == reports.worker.tolist()
    assert claims.per_worker.tolist() == reports.per_worker.tolist()
    for task in range(len(reports.tasks)):
        mine = reports.value[reports.task == task].tolist()
        assert mine == claims.of_task(task).tolist()
        bounds = claims.low[task], claims.high[task]
        assert bounds == (min(mine), max(mine)) if mine else np.isnan(bounds).all()


@settings(max_examples=60)
@given(st.lists(st.integers(-30, 30).map(lambda number: number / 10), min_size=1, max_size=8), st.booleans())
def test_every_row_is_kept_or_counted(values: list[float], clip: bool) -> None:
    """Rows in = claims out + dropped, and all claims lie within the bounds."""
    rows = range(len(values))
    claims = Claims.from_arrays(
        rows, rows, values, bounds=(-1, 1), outside="clip" if clip else "drop", tasks=list(rows)
    )
    numbers = np.array(values)

    assert len(values) == len(claims) + claims.dropped
    assert int((np.abs(numbers) > 1).sum()) == (claims.clipped if clip else claims.dropped)
    assert np.all(np.abs(claims.value) <= 1)
    assert len(claims.tasks) == len(values)


def test_outside_given_bounds_is_refused_by_default() -> None:
    """A claim outside the user's bounds is an error by default."""
    with pytest.raises(ReportsError, match=r"within the bounds.*11.*1 in all.*'clip' or 'drop'"):
        Claims.from_arrays(*ROWS, [1, 2, 11, 3], bounds=(0, 10))


def test_bounds_may_differ_by_task() -> None:
    """Arrays of bounds are read in the order of the tasks."""
    claims = Claims.from_arrays(*ROWS, [1, 9, 1, 9], bounds=([0, 5], [5, 10]), outside="clip")

    assert claims.value.tolist() == [1, 5, 5, 9]
    assert (claims.clipped, claims.public_bounds) == (2, True)


@pytest.mark.parametrize("bounds", [(1, 1), (2, 1), (0, np.inf), (np.nan, 1), ([0], [1]), (0, 2e100)])
def test_bad_bounds_are_refused(bounds: tuple[object, object]) -> None:
    """Bounds are finite, in order, and one pair for all tasks or one for each."""
    with pytest.raises(SettingsError, match="bounds must be"):
        Claims.from_arrays(*ROWS, [1, 2, 3, 4], bounds=bounds)


def test_unknown_policies_are_refused() -> None:
    """A misspelt policy does not fall back to another one."""
    with pytest.raises(SettingsError, match="outside must be"):
        Claims.from_arrays(*ROWS, [1, 2, 3, 4], bounds=(0, 9), outside="clp")  # type: ignore[arg-type]


def test_columns_of_unequal_length_are_refused() -> None:
    """Three columns, one length."""
    with pytest.raises(ReportsError, match="equal lengths"):
        Claims.from_arrays(*ROWS, [1, 2, 3])


def test_a_scale_is_a_public_bound() -> None:
    """Answers on a scale bring its ends as bounds, known without looking at the claims."""
    reports = Reports.from_arrays(*ROWS, [1, 2, 3, 4], alphabet=Scale(0, 9))
    claims = Claims.from_reports(reports)

    assert claims.public_bounds
    assert (claims.low.tolist(), claims.high.tolist()) == ([0, 0], [9, 9])


def test_labels_are_no_claims() -> None:
    """Labels without numbers are refused."""
    with pytest.raises(SettingsError, match="claims must be numbers"):
        Claims.from_reports(Reports.from_arrays(*ROWS, ["x", "y", "x", "y"], alphabet=Categories(("x", "y"))))


def test_repeated_pairs_are_refused_by_default() -> None:
    """Two claims of one worker on one task need a policy."""
    thrice = Claims.from_arrays(["a", "a", "b", "a"], ["v", "v", "v", "v"], [1, 2, 3, 4], duplicates="all")

    assert thrice.per_task.tolist() == [3, 1]
    with pytest.raises(ReportsError, match="repeat"):
        Claims.from_arrays(["a", "a"], ["v", "v"], [1, 2])


def test_no_claims_at_all() -> None:
    """Lists of tasks and workers without a claim make an empty table, not an error."""
    claims = Claims.from_arrays([], [], [], tasks=["a"], workers=["v"])

    assert (len(claims), claims.per_task.tolist()) == (0, [0])


def test_columns_are_read_only() -> None:
    """Nothing can change a claim in place."""
    claims = Claims.from_arrays(*ROWS, [1, 2, 3, 4])

    with pytest.raises(ValueError, match="read-only"):
        claims.value[0] = 5


def test_absurd_outliers_stay_what_they_are() -> None:
    """A claim of 6.6e18 is kept exactly, or clipped and counted."""
    values = [6.6e18, 5, 5, 6]
    free = Claims.from_arrays(*ROWS, values)
    clipped = Claims.from_arrays(*ROWS, values, bounds=(0, 10), outside="clip")

    assert free.value.tolist() == values
    assert (clipped.value.tolist(), clipped.clipped) == ([10, 5, 5, 6], 1)


def test_real_outliers_survive_or_are_counted() -> None:
    """Population claims of up to 1e11 are kept without bounds, and counted when clipped to the user's bounds."""
    answers = load_or_skip("population_cut").answers
    free, clipped = Claims.from_reports(answers), Claims.from_reports(answers, bounds=(0, 4e7), outside="clip")

    assert free.value.max() > 1e11
    assert clipped.clipped == int((free.value > 4e7).sum()) > 0
    assert len(free) == len(clipped) == len(answers)
