"""One rule for missing answers: NULL is no answer; an empty one is refused, or no answer if the user says so."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import crowdveil as cv
from crowdveil.data.reports import Reports
from crowdveil.errors import ReportsError, SettingsError

COLUMNS = {"task": [*"aaabbb"], "worker": [*"vwxvwx"]}
ANSWERS: dict[str, list[Any]] = {
    "label": ["yes", "yes", "", "no", "NULL", "no"],
    "value": ["1", "2.5", "", "3", "NULL", "nan"],
}
LEFT = {"label": 4, "value": 3}


def from_csv(name: str, folder: Path, **options: Any) -> Reports:
    """Read a file."""
    pd.DataFrame({**COLUMNS, name: ANSWERS[name]}).to_csv(folder / "answers.csv", index=False)
    return Reports.from_csv(folder / "answers.csv", **options)


def from_frame(name: str, folder: Path, **options: Any) -> Reports:
    """Read a frame, whose empty cells are None."""
    return Reports.from_frame({**COLUMNS, name: [one or None for one in ANSWERS[name]]}, **options)


def from_parquet(name: str, folder: Path, **options: Any) -> Reports:
    """Read a Parquet file, whose empty cells are null."""
    frame = pd.DataFrame({**COLUMNS, name: [one or None for one in ANSWERS[name]]})
    frame.to_parquet(folder / "answers.parquet")
    return Reports.from_parquet(folder / "answers.parquet", **options)


READERS = (from_csv, from_frame, from_parquet)


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("read", READERS)
def test_readers_skip_null_and_what_they_are_told(read: Callable[..., Reports], name: str, tmp_path: Path) -> None:
    """NULL and skipped answers are cells without a report; their tasks and workers stay listed."""
    reports = read(name, tmp_path, missing="skip")

    assert LEFT[name] == len(reports)
    assert ([*"ab"], [*"vwx"]) == (reports.tasks.tolist(), reports.workers.tolist())


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("read", READERS)
def test_readers_refuse_empty_answers_by_default(read: Callable[..., Reports], name: str, tmp_path: Path) -> None:
    """The refusal names the row of the file, counted with those of NULL, and the option."""
    with pytest.raises(ReportsError, match=r"(row 3|lines? 4)\b.*missing='skip'"):
        read(name, tmp_path)


def test_aggregate_skips_null_and_what_it_is_told() -> None:
    """The truth of a task is that of its answers."""
    answers = pd.DataFrame({**COLUMNS, "label": ["yes", "yes", None, "no", "NULL", "no"]})
    found = cv.aggregate(answers, "majority-vote", missing="skip")

    assert {"a": "yes", "b": "no"} == dict(zip(found["task"], found["truth"], strict=True))


def test_a_policy_has_two_names() -> None:
    """Another one is refused."""
    with pytest.raises(SettingsError, match="missing must be 'error' or 'skip'"):
        cv.aggregate({**COLUMNS, "label": ANSWERS["label"]}, missing="drop")


def test_a_label_named_nan_is_not_skipped() -> None:
    """A label of the alphabet is an answer, whatever it is called."""
    reports = Reports.from_frame(
        {**COLUMNS, "label": [*"xx", "nan", *"xx", ""]}, alphabet=cv.Categories(("nan", "x")), missing="skip"
    )
    assert (5, 1) == (len(reports), int((reports.value == 0).sum()))
