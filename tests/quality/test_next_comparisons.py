"""Next comparisons: the greedy choice against loops, lists, groups, channels and refusals."""

from math import log

import numpy as np
import pytest

import crowdveil as cv
from crowdveil.errors import SettingsError
from crowdveil.estimators.ranking.likelihood import Floats
from crowdveil.inference.ranking.rank import rank_comparisons
from tests.estimators.ranking.loops import row
from tests.estimators.ranking.test_fit import RESPONSE, drawn

IDENTITY = np.eye(3)


def information_of(ranking: cv.Ranking, first: int, second: int, table: Floats) -> float:
    """Return the expected information of an answer on the difference, in both orders, as loops."""
    fitted = ranking.scored.fitted
    assert fitted is not None
    slope, side, tie = fitted.point.workers.mean(axis=0)
    both = []
    for one, other in ((first, second), (second, first)):
        difference = ranking.scored.scores[one] - ranking.scored.scores[other]
        both.append(slope**2 / 4 * row((slope * difference + side) / 2, tie, 0, table).eta_eta)
    return float(np.mean(both))


@pytest.mark.parametrize("table", [None, RESPONSE], ids=["answers", "reports"])
def test_choice_equals_loops(table: Floats | None) -> None:
    """Each choice has the largest gain, and changes the covariance as an answer would; to 1e-9."""
    rows = drawn(11)
    ranking = rank_comparisons(rows)
    if table is not None:
        ranking = cv.Ranking(comparisons=rows, method=ranking.method, scored=ranking.scored, table=table)
    found = cv.next_comparisons(ranking, 6)
    covariance = ranking.scored.posterior.covariance
    assert covariance is not None
    covariance, items = covariance.copy(), len(rows.items)
    for place in range(6):
        best = (-1.0, 0, 0)
        for one in range(items):
            for other in range(one + 1, items):
                spread = covariance[one, one] + covariance[other, other] - 2 * covariance[one, other]
                gain = information_of(ranking, one, other, IDENTITY if table is None else table) * spread
                best = max(best, (gain, one, other))
        gain, one, other = best
        assert {found.left[place], found.right[place]} == {one, other}
        assert found.information[place] == pytest.approx(log(1 + gain) / 2, abs=1e-9)
        factor = information_of(ranking, one, other, IDENTITY if table is None else table) / (1 + gain)
        column = covariance[:, one] - covariance[:, other]
        for first in range(items):
            for second in range(items):
                covariance[first, second] -= factor * column[first] * column[second]


def test_lists_and_groups() -> None:
    """Items of two lists are never compared, and groups that no comparison connects are compared."""
    frame = {
        "list": [*"xxxxxxyy"] * 4, "left": [*"aabcddab"] * 4, "right": [*"bccdeebc"] * 4,
        "worker": [*range(8)] * 4, "label": ["left", "right", "left", "left", "tie", "left", "left", "left"] * 4,
    }  # fmt: skip
    keep = [place for place, pair in enumerate(zip(frame["left"], frame["right"], strict=True)) if pair != ("c", "d")]
    with pytest.warns(UserWarning, match="No comparison connects 2 groups of items of the list 'x'"):
        ranking = cv.rank({name: [column[place] for place in keep] for name, column in frame.items()})
    found = cv.next_comparisons(ranking, 8)
    rows = ranking.comparisons

    assert (rows.list_of_item[found.left] == rows.list_of_item[found.right]).all()
    between = rows.group_of_item[found.left] != rows.group_of_item[found.right]
    assert between.any()
    assert [*found.columns()] == ["list", "left", "right", "information", "comparisons"]
    assert (found.columns()["comparisons"][between] == 0).all()
    assert found.to_arrow().num_rows == 8


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting has no information, many items have no covariance, and a budget is at least one."""
    rows = drawn(12)

    with pytest.raises(SettingsError, match="no information of answers"):
        cv.next_comparisons(rank_comparisons(rows, "counting"), 3)
    with pytest.raises(SettingsError, match="budget must be at least 1"):
        cv.next_comparisons(rank_comparisons(rows), 0)
    monkeypatch.setattr("crowdveil.estimators.ranking.posterior.EXACT", 4)
    with pytest.raises(SettingsError, match="at most 1,500 items"):
        cv.next_comparisons(rank_comparisons(rows, "davidson"), 3)
