"""Answers of a pandas frame as codes."""

import sys

import numpy as np
import pytest

from crowdveil.compat.crowdkit import GLAD
from crowdveil.compat.crowdkit.answer_table import load_pandas, read_answers, winners
from crowdveil.errors import ReportsError
from tests.compat.crowdkit.answers import THREE


def test_codes_are_sorted_and_rows_keep_their_order() -> None:
    """Identifiers are sorted, codes follow the rows of the frame."""
    table = read_answers(THREE[::-1])

    assert [["a", "b", "c"], ["u", "v", "w"], ["x", "y"]] == [
        list(names) for names in (table.tasks, table.workers, table.labels)
    ]
    assert [2, 1, 0, 2, 1, 0, 2, 1, 0] == table.task.tolist()
    assert [[2, 1], [1, 2], [1, 2]] == table.votes().tolist()


def test_the_first_of_tied_columns_wins() -> None:
    """Values that differ by rounding are tied."""
    assert [1, 0, 1] == winners(np.array([[0.0, 2.0], [0.3, 0.1 + 0.2], [-2.0, -1.0]])).tolist()


def test_a_method_without_empty_result_refuses_no_answers() -> None:
    """GLAD of no answers is refused with a rule."""
    with pytest.raises(ReportsError, match="at least one answer"):
        GLAD().fit(THREE[:0])


def test_without_pandas_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the command that installs pandas."""
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(ImportError, match=r"crowdveil\[pandas\]"):
        load_pandas()
