"""Workbooks that are written: text cells for names, number cells for numbers, and the same table when read back."""

import io
import sys
from pathlib import Path

import openpyxl
import pyarrow as pa
import pytest

from crowdveil.answers.spreadsheets import write
from crowdveil.answers.spreadsheets.write import write_workbook
from crowdveil.cli import main
from crowdveil.errors import SettingsError
from crowdveil.storage.given_files import read_history, read_known_truths
from crowdveil.storage.results.result_files import read_results

NAMES = ["=1+1", "+q", "-1", "@a", "\tt", "007", "http://example.org", "a\nb", "é", ""]


def written(table: pa.Table) -> bytes:
    """Return a table as the bytes of a workbook."""
    stream = io.BytesIO()
    write_workbook(stream, table.schema.names, [table])
    return stream.getvalue()


def test_names_are_text_and_numbers_are_numbers() -> None:
    """No name becomes a formula, link or number, and one that begins like a formula is marked as text for editing."""
    numbers = [0.5, 1.0, float("nan"), None, 2.0**60, *[3.0] * 5]
    table = pa.table({"task": NAMES, "x": numbers, "gold": [True] * len(NAMES)})

    sheet = openpyxl.load_workbook(io.BytesIO(written(table))).active
    rows = list(sheet.iter_rows(min_row=2))

    assert ["task", "x", "gold"] == [cell.value for cell in sheet[1]]
    assert NAMES[:-1] == [row[0].value for row in rows[:-1]]
    assert {"s"} == {row[0].data_type for row in rows[:-1]}
    assert [name.startswith(("=", "+", "-", "@", "\t")) for name in NAMES[:-1]] == [
        row[0].quotePrefix for row in rows[:-1]
    ]
    assert ([0.5, 1, None, None, str(2.0**60)], True) == ([row[1].value for row in rows[:5]], rows[0][2].value)


def test_equal_tables_are_equal_files() -> None:
    """A workbook holds no time at which it was written."""
    assert written(pa.table({"a": ["x"]})) == written(pa.table({"a": ["x"]}))


def test_what_a_sheet_cannot_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many rows, too long a text, and a missing writer are named."""
    with pytest.raises(SettingsError, match="at most 32,767 characters"):
        written(pa.table({"a": ["x" * 40_000]}))
    monkeypatch.setattr(write, "MAX_ROWS", 3)
    with pytest.raises(SettingsError, match="at most 3 rows"):
        written(pa.table({"a": ["x"] * 3}))
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(SettingsError, match=r"pip install 'crowdveil\[spreadsheets\]'"):
        written(pa.table({"a": ["x"]}))


def run(*words: object) -> None:
    """Run a command that succeeds."""
    with pytest.raises(SystemExit) as end:
        main(list(map(str, words)))
    assert not end.value.code


def test_results_as_a_workbook_are_those_of_csv(tmp_path: Path) -> None:
    """`infer --format xlsx` writes what CSV has; it is read back as results, history and known truths."""
    names = ["=1+1", "+q", "007"]
    answers = tmp_path / "a.csv"
    rows = [f"{task},{worker},{label}" for task, pair in zip(names, ("xx", "xy", "yy"), strict=True)
            for worker, label in zip("ab", pair, strict=True)]  # fmt: skip
    answers.write_text("\n".join(["task,worker,label", *rows]) + "\n", "utf-8")

    for form in ("csv", "xlsx"):
        run("infer", answers, "--format", form, "--out", tmp_path / form)
    run("review", answers, "--out", tmp_path / "review.xlsx")

    found, csv = (read_results(tmp_path / form).estimate for form in ("xlsx", "csv"))
    assert (csv.tasks.tolist(), csv.posterior.tolist()) == (found.tasks.tolist(), found.posterior.tolist())
    assert csv.workers.quality.tolist() == found.workers.quality.tolist()
    assert read_history(tmp_path / "xlsx").workers.workers == ("a", "b")
    assert read_known_truths(str(tmp_path / "xlsx" / "truths.xlsx"), "categorical").truths["007"] == "y"
    assert "worker" == openpyxl.load_workbook(tmp_path / "review.xlsx").active["A1"].value
