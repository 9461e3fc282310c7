"""Reports: what goes in, what is refused, and that the order of rows never shows."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.errors import ReportsError, SettingsError
from tests.strategies import small_numeric_reports, small_reports

YES_NO = Categories(("no", "yes"))


def cells(reports: Reports) -> list[tuple[object, object, object]]:
    """List (task name, worker name, label or number) of every report, in stored order."""
    names = reports.value if reports.alphabet is None else np.array(reports.alphabet.names)[reports.value]
    return list(
        zip(reports.tasks[reports.task].tolist(), reports.workers[reports.worker].tolist(), names.tolist(), strict=True)
    )


@pytest.mark.slow
@given(small_reports(), st.randoms())
def test_row_order_does_not_show(reports: Reports, random) -> None:
    """The same rows in any order make the same reports."""
    rows = cells(reports)
    random.shuffle(rows)

    again = Reports.from_arrays(
        *zip(*rows, strict=True), alphabet=reports.alphabet, tasks=reports.tasks, workers=reports.workers
    )

    assert cells(reports) == cells(again)
    assert reports.task.tolist() == again.task.tolist()


@given(small_numeric_reports())
def test_counts_and_blocks_cover_every_report_once(reports: Reports) -> None:
    """Blocks of any size hold every task once and every report once, in order."""
    blocks = list(reports.blocks(reports=2))

    assert list(range(len(reports.tasks))) == [t for b in blocks for t in range(b.first, b.stop)]
    assert reports.task.tolist() == [int(t) + b.first for b in blocks for t in b.task]
    assert reports.value.tolist() == [v for b in blocks for v in b.value.tolist()]
    assert (len(reports), len(reports)) == (reports.per_task.sum(), reports.per_worker.sum())


def test_columns_are_read_only() -> None:
    """No column can be changed in place, and the caller's arrays stay writeable."""
    task = np.array([0, 1], dtype=np.int32)
    reports = Reports(task, task, task.astype(np.int16), np.array(["a", "b"]), np.array(["v", "w"]), YES_NO)

    with pytest.raises(ValueError, match="read-only"):
        reports.task[0] = 1
    assert task.flags.writeable


def test_default_alphabet_sorts_numbers_by_size() -> None:
    """Labels that are numbers are ordered as numbers, others as text."""
    assert ("2", "10") == Reports.from_arrays([1, 2], [1, 2], ["10", "2"]).alphabet.names
    assert ("10", "2", "b") == Reports.from_arrays([1, 2, 3], [1, 2, 3], ["10", "2", "b"]).alphabet.names


def test_listed_names_keep_their_order_and_the_silent() -> None:
    """Given lists fix the codes and name tasks and workers without a report, compared as text."""
    reports = Reports.from_arrays(["7"], [3], ["yes"], alphabet=YES_NO, tasks=[9, 7], workers=["5", "3"])

    assert [(7, "3", "yes")] == cells(reports)
    assert ([0, 1], [0, 1]) == (reports.per_task.tolist(), reports.per_worker.tolist())


def test_floats_that_are_whole_are_whole() -> None:
    """1.0 and 2.0, which pandas makes of integers with a NaN, are the ids 1, 2 and the labels "1", "2"."""
    reports = Reports.from_arrays([1.0, 2.0], ["v", "w"], [1.0, 2.0])

    assert [(1, "v", "1"), (2, "w", "2")] == cells(reports)


def test_scale_clips_and_rounds_answers() -> None:
    """Answers on a scale are clipped into it and rounded to its points."""
    reports = Reports.from_arrays(["a", "b", "c"], [1, 1, 1], [-5, 0.9, 99], alphabet=Scale(0, 2, 0.5))

    assert [0.0, 1.0, 2.0] == reports.numbers.tolist()


POLICIES = {"first": ["x", "y"], "last": ["y", "y"], "all": ["x", "y", "y"]}


@pytest.mark.parametrize("policy", POLICIES)
def test_duplicates_follow_the_policy(policy) -> None:
    """Of repeated (task, worker) pairs the first or last row counts, or all do."""
    reports = Reports.from_arrays(["a", "b", "a"], ["w", "w", "w"], ["x", "y", "y"], duplicates=policy)

    assert POLICIES[policy] == [label for _, _, label in cells(reports)]


def test_duplicates_are_refused_by_default() -> None:
    """A repeated pair is named by row, with the pair and the ways out."""
    with pytest.raises(ReportsError, match=r"row 3, 4: .*2 rows repeat.*\(a, w\).*duplicates='first'") as caught:
        Reports.from_arrays(["a", "b", "a", "a"], ["w", "w", "w", "w"], ["x", "y", "y", "x"])
    assert (3, 4) == caught.value.rows
    with pytest.raises(ReportsError, match="but 1 row repeats a"):
        Reports.from_arrays(["a", "a"], ["w", "w"], ["x", "y"])


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "lengths": (([1], [1, 2], ["x"]), {}, "equal lengths"),
    "nothing": (([], [], []), {}, "at least one answer"),
    "shape": (([["a"]], ["w"], ["x"]), {}, r"one-dimensional.*\(1, 1\)"),
    "mixed ids": ((np.array(["a", 1], dtype=object), [1, 2], ["x", "y"]), {}, "only text or only numbers"),
    "no task": (([1.0, np.nan], [1, 2], ["x", "y"]), {}, "row 2: every row needs a task"),
    "None worker": ((["a", "b"], ["w", None], ["x", "y"]), {}, "row 2: every row needs a worker"),
    "empty worker": ((["a", "b"], ["w", ""], ["x", "y"]), {}, "row 2: every row needs a worker"),
    "fraction": (([1.5, 2], [1, 2], ["x", "y"]), {}, "row 1: task ids must be text or whole numbers"),
    "NaN label": (([1, 2], [1, 2], [1.0, np.nan]), {}, "row 2: labels must not be empty"),
    "empty label": (([1, 2, 3], [1, 2, 3], ["x", "y", ""]), {}, "row 3: labels must not be empty.*missing='skip'"),
    "empty after NULL": (([1, 2, 3], [1, 2, 3], ["x", "NULL", ""]), {}, "row 3: labels must not be empty"),
    "one label": (([1, 2], [1, 2], ["x", "x"]), {}, "2 to 1024 different labels.*1 label"),
    "many labels": ((range(1025), range(1025), range(1025)), {}, "1025 different labels.*numeric=True"),
    "unknown label": (([1, 2], [1, 2], ["no", "No"]), {"alphabet": YES_NO}, "row 2: every label .* no, yes.*'No'"),
    "not a number": (([1, 2], [1, 2], ["1", "1_0"]), {"numeric": True}, "row 2: values must be finite.*'1_0'"),
    "infinite": (([1, 2], [1, 2], [np.inf, 1.0]), {"numeric": True}, "row 1: values must be finite"),
    "unlisted": (([1, 2], [1, 2], ["x", "y"]), {"tasks": [2, 3]}, "row 1: every task must be in the given list"),
    "listed twice": (([1, 2], [1, 2], ["x", "y"]), {"workers": [1, 2, 2]}, "must not repeat"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_rows_are_refused_by_name(name) -> None:
    """Every broken rule is named with its rows, counted from 1."""
    arrays, options, message = REFUSED[name]

    with pytest.raises(ReportsError, match=message):
        Reports.from_arrays(*arrays, **options)


def test_only_the_first_offenders_are_shown() -> None:
    """A file with thousands of bad rows names five of them, and five distinct values with their counts."""
    with pytest.raises(ReportsError, match=r"row 1, 2, 3, 4, 5: .* Found: '\?' in 7 rows\. "):
        Reports.from_arrays(range(7), range(7), ["?"] * 7, alphabet=YES_NO)
    with pytest.raises(ReportsError, match=r"Found: 'b' in 2 rows, 'a', 'c', 'd', 'e' and 1 other value\."):
        Reports.from_arrays(range(7), range(7), [*"bacdebf"], alphabet=YES_NO)


def test_an_unknown_policy_is_refused() -> None:
    """A misspelt duplicates policy is refused even if nothing is repeated."""
    with pytest.raises(SettingsError, match="'error', 'first', 'last' or 'all'"):
        Reports.from_arrays([1, 2], [1, 2], ["x", "y"], duplicates="keep")  # type: ignore[arg-type]
