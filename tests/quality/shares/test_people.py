"""Public columns of workers: spellings, missing values, whole numbers and large weights, in files and frames."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import crowdveil
from crowdveil.errors import SettingsError
from crowdveil.storage.given_files import read_totals, read_worker_table

WORKERS = [f"p{number}" for number in range(100)]
ANSWERS = {"task": ["q"] * 100, "worker": WORKERS, "label": ["yes"] * 30 + ["no"] * 70}


def shares_by(cells: list[Any], **options: Any) -> crowdveil.Shares:
    """Return shares by one column of groups."""
    return crowdveil.share(ANSWERS, by={"worker": WORKERS, "sex": cells}, **options)


@pytest.mark.parametrize(
    "other", ["f ", "F", " f", "\u200bf", "f\u00a0"], ids=["end", "case", "start", "invisible", "fixed"]
)
def test_groups_that_look_alike_are_named(other: str) -> None:
    """Groups that differ in spaces, case or invisible signs stay apart, and a note has their numbers of workers."""
    found = shares_by(["f"] * 40 + [other] * 20 + ["m"] * 40)
    (note,) = found.notes

    assert 4 == len(found.groups)
    assert note.startswith("sex: these are read as different groups: ")
    assert "'f' (40 workers)" in note
    assert f"{other!r} (20 workers)" in note


def test_groups_in_two_unicode_forms_are_named() -> None:
    """A composed and a decomposed name of a place look the same, and a note says that they are two."""
    found = shares_by(["M\u00fcnchen"] * 50 + ["Mu\u0308nchen"] * 50)

    assert "Use one spelling for each group." in found.notes[0]


def test_texts_for_no_value_are_named_and_empty_ones_are_no_group() -> None:
    """ "NA" is a group with a note; empty cells, and those that a program wrote as nan, are in no group."""
    found = shares_by(["f"] * 40 + ["NA"] * 40 + ["", "nan", None, " "] * 5)

    assert ["", "NA", "f"] == [group.name for group in found.groups]
    assert (
        "sex: read as a group: 'NA'. If this stands for no value, leave the cells empty.",
        "sex: 20 workers without a group are in none.",
    ) == found.notes


def table_with_gaps() -> dict[str, list[Any]]:
    """Return whole numbers as groups, with empty cells among them."""
    return {"worker": WORKERS, "district": [None if number < 5 else number % 2 for number in range(100)]}


def written(form: str, path: Path) -> Path:
    """Write the table as a file of a form."""
    frame = pd.DataFrame(table_with_gaps())
    file = path / f"groups.{form}"
    if form == "csv":
        frame.to_csv(file, index=False)
    elif form == "parquet":
        frame.to_parquet(file)
    elif form == "xlsx":
        frame.to_excel(file, index=False)
    elif form == "json":
        file.write_text(json.dumps(frame.astype(object).where(frame.notna(), None).to_dict("records")))
    else:
        frame.to_feather(file)
    return file


@pytest.mark.parametrize("form", ["parquet", "xlsx", "json", "arrow"])
def test_whole_numbers_are_groups_without_decimals(form: str, tmp_path: Path) -> None:
    """A district 1 is "1" in a file of any form, although an empty cell made its column one of decimals."""
    found = crowdveil.share(ANSWERS, by=read_worker_table(written(form, tmp_path)))

    assert ["", "0", "1"] == [group.name for group in found.groups]


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame])
def test_whole_numbers_in_frames_are_groups_without_decimals(kind: Any) -> None:
    """The same in frames, and totals may name such a group by its number."""
    found = crowdveil.share(ANSWERS, by=kind(table_with_gaps()))
    complete = {"worker": WORKERS, "district": [float(number % 2) for number in range(100)]}
    weighted = crowdveil.share(ANSWERS, by=kind(complete), totals={0: 300, 1.0: 700})

    assert ["", "0", "1"] == [group.name for group in found.groups]
    assert weighted.weighted


@pytest.mark.parametrize("scale", [1e308, 1e-300, 3.7])
def test_weights_are_relative(scale: float) -> None:
    """Weights of any size give the same result: no sum and no square is infinite or zero."""
    plain = {worker: 1.0 + place % 3 for place, worker in enumerate(WORKERS)}
    found = [
        crowdveil.share(ANSWERS, weights={worker: weight * factor for worker, weight in plain.items()})
        for factor in (1.0, scale / 3)
    ]

    assert found[0].columns()["low"].tolist() == pytest.approx(found[1].columns()["low"].tolist(), abs=2e-6)
    assert found[0].columns()["lowest"].tolist() == pytest.approx(found[1].columns()["lowest"].tolist(), nan_ok=True)


def test_equal_weights_are_not_called_unequal() -> None:
    """A weight of .1 for everyone changes no share, and brings no note on people who are left effective."""
    found = crowdveil.share(ANSWERS, weights=dict.fromkeys(WORKERS, 0.1))

    assert () == found.notes
    assert 0.3 == found["q", "yes"].share


@pytest.mark.parametrize("cell", [float("inf"), float("nan"), -1, "1_000", "many", None])
def test_weights_are_positive_numbers(cell: Any) -> None:
    """Each other cell is refused with its worker."""
    weights = dict.fromkeys(WORKERS, 1.0) | {"p7": cell}

    with pytest.raises(crowdveil.errors.SettingsError, match=r"weights must be positive numbers.* of worker p7"):
        crowdveil.share(ANSWERS, weights=weights)


def test_a_column_of_groups_has_a_name() -> None:
    """A column without a name would be taken for everyone: it is refused."""
    with pytest.raises(crowdveil.errors.SettingsError, match="each column of groups must have a name"):
        crowdveil.share(ANSWERS, by={"worker": WORKERS, " ": ["f"] * 100})


@pytest.mark.parametrize("form", ["csv", "parquet", "xlsx"])
def test_totals_are_read_from_files_of_every_form(form: str, tmp_path: Path) -> None:
    """The totals of whole numbers as groups are found by their text."""
    path = tmp_path / f"totals.{form}"
    table = pd.DataFrame({"group": [0, 1], "total": [300, 700]})
    {"csv": table.to_csv, "parquet": table.to_parquet, "xlsx": table.to_excel}[form](path, index=False)

    assert {"0": "300", "1": "700"} == read_totals(path)


def test_two_columns_of_one_name_are_refused() -> None:
    """A frame in which a name stands twice does not say which column is meant."""
    people = [f"p{k}" for k in range(20)]
    answers = {"task": ["q"] * 20, "worker": people, "label": ["yes", "no"] * 10}
    frame = pd.DataFrame([[name, "f", "m"] for name in people], columns=["worker", "sex", "sex"])

    with pytest.raises(SettingsError, match="groups must have one column of each name, got 'sex'"):
        crowdveil.share(answers, by=frame)
