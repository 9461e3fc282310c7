"""Sheets of workbooks that other programs wrote are read as the same table as CSV, or refused with the cell."""

import io
import re
import sys
import zipfile
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from odf.opendocument import OpenDocumentSpreadsheet
from odf.table import CoveredTableCell, Table, TableCell, TableRow
from odf.text import P
from openpyxl import Workbook

from crowdveil import Reports
from crowdveil.answers.assignment import Assignment
from crowdveil.answers.ingest.column_readers import load_prior
from crowdveil.answers.ingest.csv_files import content_digest
from crowdveil.answers.ingest.gold_files import load_gold_and_seed
from crowdveil.answers.sources.answer_source import open_source
from crowdveil.answers.spreadsheets import parts, sheets
from crowdveil.answers.spreadsheets.parts import column_letters
from crowdveil.answers.spreadsheets.sheets import sheet_or_file_text
from crowdveil.campaign.settings.settings_file import read_settings
from crowdveil.errors import ReportsError
from crowdveil.storage.answers import read_name_column
from crowdveil.storage.given_files import read_costs, read_history
from crowdveil.storage.results.task_names import read_names_of_tasks

NAMES = tuple(f"person {number}" for number in range(8))
SAMPLES = Path(__file__).parents[3] / "docs" / "samples"
ANSWERS = [["task", "worker", "label"], ["q1", "ann", "x"], ["q1", "bob", "y"], ["q2", "ann", "x"]]


Tables = dict[str, Sequence[Sequence[Any]]]
"""Rows of every sheet by its name."""


def write_xlsx(path: Path, tables: Tables, hidden: Sequence[str] = ()) -> Path:
    """Write a workbook by openpyxl, whose sheets have these rows."""
    book = Workbook()
    book.remove(book.active)
    for name, rows in tables.items():
        sheet = book.create_sheet(name)
        sheet.sheet_state = "hidden" if name in hidden else "visible"
        for row in rows:
            sheet.append(list(row))
    book.save(path)
    return path


def ods_cell(value: Any) -> TableCell:
    """Return a cell of an .ods file, by the type of the value."""
    if value is None:
        return TableCell()
    if isinstance(value, bool):
        return TableCell(valuetype="boolean", booleanvalue=str(value).lower())
    if isinstance(value, int | float):
        return TableCell(valuetype="float", value=str(value))
    if isinstance(value, date):
        return TableCell(valuetype="date", datevalue=value.isoformat())
    cell = TableCell(valuetype="string")
    cell.addElement(P(text=value))
    return cell


def write_ods(path: Path, tables: Tables) -> Path:
    """Write a workbook by odfpy, whose sheets have these rows; a cell may be an element."""
    book = OpenDocumentSpreadsheet()
    for name, rows in tables.items():
        table = Table(name=name)
        for row in rows:
            line: Any = TableRow() if isinstance(row, list) else row
            for value in row if isinstance(row, list) else ():
                line.addElement(value if hasattr(value, "qname") else ods_cell(value))
            table.addElement(line)
        book.spreadsheet.addElement(table)
    book.save(path)
    return path


WRITERS: dict[str, Callable[[Path, Tables], Path]] = {"xlsx": write_xlsx, "ods": write_ods}


def rows_of(path: Path | str) -> list[tuple[str, str, str]]:
    """Return the answers of a source as text, in the order of tasks and workers."""
    found = Reports.from_source(path)
    codes = zip(found.task, found.worker, found.value, strict=True)
    return sorted((str(found.tasks[t]), str(found.workers[w]), found.alphabet.names[v]) for t, w, v in codes)


@pytest.mark.parametrize("form", WRITERS)
def test_a_sheet_is_read_as_its_csv(tmp_path: Path, form: str) -> None:
    """Text, whole and broken numbers, truth values and blank rows give the names that they have as CSV."""
    rows: list[list[Any]] = [
        ["task", "worker", "label"],
        [1, "ann", True],
        [1, "bob", False],
        [None, None, None],
        [2.5, 7.0, True],
    ]

    path = WRITERS[form](tmp_path / f"book.{form}", {"S": rows})

    assert [("1", "ann", "True"), ("1", "bob", "False"), ("2.5", "7", "True")] == rows_of(path)


@pytest.mark.parametrize("form", WRITERS)
def test_one_sheet_is_chosen_by_name(tmp_path: Path, form: str) -> None:
    """Of several sheets with a content one must be named, in the path or as an argument; empty ones do not count."""
    gold = [["task", "truth"], ["q1", "x"]]
    path = WRITERS[form](tmp_path / f"book.{form}", {"Answers": ANSWERS, "Gold": gold, "Empty": [[None]]})

    assert rows_of(f"{path}?Answers") == sorted(map(tuple, ANSWERS[1:]))
    assert 3 == len(Reports.from_source(path, sheet="Answers"))
    assert {"q1": "x"} == load_gold_and_seed(f"{path}?Gold").truths
    with pytest.raises(ReportsError, match=r"the sheets 'Answers', 'Gold'\. State the sheet: sheet='Answers'"):
        Reports.from_source(path)
    with pytest.raises(ReportsError, match=r"no sheet 'Golden'. Found: the sheets 'Answers', 'Gold', 'Empty'"):
        Reports.from_source(path, sheet="Golden")


@pytest.mark.parametrize("form", WRITERS)
def test_progress_over_a_named_sheet_ends_with_its_file(tmp_path: Path, form: str) -> None:
    """A sheet that is named is read with progress, as commands do, in bytes of the file."""
    path, seen = WRITERS[form](tmp_path / f"book.{form}", {"Mon": ANSWERS, "Tue": ANSWERS}), list[tuple[float, Any]]()
    with open_source([f"{path}?Mon"]) as source:
        source.read_columns_and_notes(lambda done, total: seen.append((done, total)))

    assert seen[-1] == (path.stat().st_size,) * 2


def test_hidden_sheets_are_read_if_they_are_named(tmp_path: Path) -> None:
    """A hidden sheet does not count beside a visible one; alone, it must be named."""
    path = write_xlsx(tmp_path / "a.xlsx", {"Answers": ANSWERS, "Old": ANSWERS[:3]}, hidden=["Old"])
    empty = write_xlsx(tmp_path / "b.xlsx", {"Shown": [], "Old": ANSWERS}, hidden=["Old"])

    assert (3, 2) == (len(Reports.from_source(path)), len(Reports.from_source(f"{path}?Old")))
    with pytest.raises(ReportsError, match="a visible sheet with a content"):
        Reports.from_source(empty)
    with open_source([str(path)]) as source:
        assert "Read: the sheet 'Answers', not 'Old'." in source.read_columns_and_notes()[1]


def test_dates_are_read_as_text_and_named(tmp_path: Path) -> None:
    """Dates and times are written as in ISO 8601, and a note says that labels may have become dates."""
    labels = [date(2026, 4, 3), datetime(2026, 4, 3, 10), time(1, 2), timedelta(hours=30)]
    rows: list[list[Any]] = [
        ["task", "worker", "label"],
        *(["q", f"w{place}", label] for place, label in enumerate(labels)),
    ]
    path = write_xlsx(tmp_path / "a.xlsx", {"S": rows})

    assert ["2026-04-03", "2026-04-03 10:00:00", "01:02:00", "30:00:00"] == [label for _, _, label in rows_of(path)]
    with open_source([str(path)]) as source:
        notes = source.read_columns_and_notes()[1]
    assert any("such as 2026-04-03 (C2) in the column 'label'" in note for note in notes)


def faulty(path: Path, change: Callable[[Any], None]) -> Path:
    """Write the answers, changed by a function of the sheet, and an unread column with each fault."""
    book = Workbook()
    for row in [[*ANSWERS[0], "comment"], *([*row, "=1/0"] for row in ANSWERS[1:])]:
        book.active.append(row)
    book.active["D3"] = 12345678901234567
    book.active.merge_cells("D4:D5")
    change(book.active)
    book.save(path)
    return path


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda sheet: sheet.__setitem__("C3", "=A1"), r"value of a formula must be stored.*'label': C3"),
        (lambda sheet: sheet.__setitem__("C3", "#N/A"), r"not an error.*'label': C3 #N/A"),
        (lambda sheet: sheet.__setitem__("B3", 12345678901234567), r"below 2\*\*53.*'worker': B3 1\.23"),
        (lambda sheet: sheet.merge_cells("A2:A3"), r"must not be merged.*'task': A2, A3"),
    ],
)
def test_cells_that_cannot_be_read_are_refused_by_their_names(
    tmp_path: Path, change: Callable[[Any], None], words: str
) -> None:
    """Errors, formulas without a value, rounded numbers and merged cells stop a read column, and no other column."""
    assert 3 == len(Reports.from_source(faulty(tmp_path / "good.xlsx", lambda sheet: None)))

    with pytest.raises(ReportsError, match=words):
        Reports.from_source(faulty(tmp_path / "bad.xlsx", change))


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([TableCell(formula="of:=1+1")], "value of a formula must be stored.*C3"),
        ([TableCell(valuetype="float", value="12345678901234567")], "below.*C3 12345678901234567"),
        ([TableCell(numberrowsspanned="2"), CoveredTableCell()], "must not be merged.*C3"),
    ],
)
def test_cells_of_ods_are_refused_likewise(tmp_path: Path, cells: list[Any], words: str) -> None:
    """The same faults in an .ods file are found."""
    path = write_ods(tmp_path / "a.ods", {"S": [*ANSWERS[:2], ["q1", "bob", *cells]]})

    with pytest.raises(ReportsError, match=words):
        Reports.from_source(path)


def test_stored_values_of_formulas_are_read(tmp_path: Path) -> None:
    """A formula that a program has computed is its value, also an empty text."""
    import xlsxwriter

    path = tmp_path / "a.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        for row, cells in enumerate([*ANSWERS, ["q2", "bob", "?"]]):
            sheet.write_row(row, 0, cells)
        sheet.write_formula(4, 2, "=C2", None, "y")

    assert ("q2", "bob", "y") in rows_of(path)


@pytest.mark.parametrize("form", WRITERS)
def test_errors_name_the_row_of_the_sheet(tmp_path: Path, form: str) -> None:
    """Blank rows and cells of several lines count as one row each, as a spreadsheet program shows them."""
    rows: list[list[Any]] = [
        ["task", "worker", "label"],
        ["q1", "ann", "x"],
        [None] * 3,
        ["q2", "ann", "y"],
        ["q3", "ann", None],
    ]
    path = WRITERS[form](tmp_path / f"book.{form}", {"Answers": rows, "More": [[None]]})

    with pytest.raises(ReportsError) as refused:
        Reports.from_source(path)

    assert str(refused.value).startswith(f"{path}, sheet 'Answers', row 5: labels must not be empty")


def test_every_table_of_people_may_be_a_sheet(tmp_path: Path) -> None:
    """Known truths, lists, assignments, priors, costs, histories and wide tables are read from one workbook."""
    path = write_xlsx(
        tmp_path / "book.xlsx",
        {
            "gold": [["task", "truth"], [1, "x"]],
            "tasks": [["task"], [1], [None], [2]],
            "asked": [["task", "worker"], [1, "ann"]],
            "prior": [["label", "probability"], ["x", 0.25], ["y", 0.75]],
            "costs": [["truth", "decision", "cost"], ["x", "y", 2], ["y", "x", 1]],
            "history": [["worker", "correct", "answers"], ["ann", 9, 10], ["bob", 8, 10]],
            "wide": [["task", "ann", "bob"], [1, "x", "y"], [2, "x", "x"]],
        },
    )
    labels = Reports.from_source(f"{path}?wide", tool="wide").alphabet

    assert {"1": "x"} == load_gold_and_seed(f"{path}?gold").truths
    assert ["1", "2"] == read_name_column(Path(f"{path}?tasks"), "task")
    assert 1 == len(Assignment.from_csv(f"{path}?asked").task)
    assert {"x": 0.25, "y": 0.75} == load_prior(f"{path}?prior").probabilities
    assert labels is not None
    assert 1 == read_costs(Path(f"{path}?costs"), labels).table[1, 0]
    assert ("ann", "bob") == read_history(Path(f"{path}?history")).workers.workers


def test_the_digest_is_of_the_file(tmp_path: Path) -> None:
    """The digest of a sheet is that of its workbook, which `sha256sum` shows."""
    path = write_xlsx(tmp_path / "book.xlsx", {"S": ANSWERS})

    assert content_digest(path) == content_digest(Path(f"{path}?S")) == sha256(path.read_bytes()).hexdigest()


def rewritten(path: Path, change: Callable[[str, bytes], bytes]) -> Path:
    """Write a workbook again, with its parts changed by a function of name and content."""
    source = zipfile.ZipFile(io.BytesIO(path.read_bytes()))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in source.namelist():
            archive.writestr(name, change(name, source.read(name)))
    return path


def test_workbooks_that_would_fill_memory_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell at the far end, many repeated cells, and parts that unpack to more than the limit are refused at once."""
    far = write_xlsx(tmp_path / "far.xlsx", {"S": ANSWERS})
    rewritten(far, lambda name, part: part.replace(b'r="C4"', b'r="XFD1048576"') if "sheet1" in name else part)
    row = TableRow(numberrowsrepeated="1000000")
    row.addElement(TableCell(valuetype="float", value="1", numbercolumnsrepeated="16384"))
    repeated = write_ods(tmp_path / "rows.ods", {"S": [*ANSWERS, row]})

    for path in (far, repeated):
        with pytest.raises(ReportsError, match="at most 10,000,000 cells"):
            Reports.from_source(path)
    monkeypatch.setattr(parts, "MAX_BYTES", 100_000)
    large = rewritten(
        write_xlsx(tmp_path / "large.xlsx", {"S": ANSWERS}),
        lambda name, part: part + b" " * 200_000 if "styles" in name else part,
    )
    with pytest.raises(ReportsError, match="unpack to at most 100,000 bytes"):
        Reports.from_source(large)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda name, part: part[:-40] if "sheet1" in name else part, "undamaged"),
        (lambda name, part: b"<!DOCTYPE x>" + part if "sheet1" in name else part, "document type"),
        (lambda name, part: b"" if name == "xl/workbook.xml" else part, "undamaged"),
    ],
)
def test_damaged_workbooks_are_refused(tmp_path: Path, change: Callable[[str, bytes], bytes], words: str) -> None:
    """A cut part, a document type, and a missing part are named."""
    path = rewritten(write_xlsx(tmp_path / "a.xlsx", {"S": ANSWERS}), change)

    with pytest.raises(ReportsError, match=words):
        Reports.from_source(path)


def test_other_archives_and_a_missing_reader_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A zip archive is no workbook; without its package a workbook names the extra to install."""
    archive, book = tmp_path / "a.zip", write_xlsx(tmp_path / "a.xlsx", {"S": ANSWERS})
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("a.csv", "task,worker,label\n")

    with pytest.raises(ReportsError, match="not a zip archive"):
        Reports.from_source(archive)
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    sheets._kept_sheet.cache_clear()
    with pytest.raises(ReportsError, match=r"pip install 'crowdveil\[spreadsheets\]'"):
        Reports.from_source(book)


def test_columns_have_letters() -> None:
    """Columns are A to Z, AA to ZZ, AAA and on."""
    assert ["A", "Z", "AA", "ZZ", "AAA"] == [column_letters(number) for number in (1, 26, 27, 702, 703)]


def test_a_campaign_reads_its_tasks_and_workers_from_a_workbook(tmp_path: Path) -> None:
    """The settings name sheets of a workbook as they name files of tasks and workers."""
    book: Tables = {
        "tasks": [["id", "text"], [1, "One?"], [2, "Two?"]],
        "staff": [["name"], *([name] for name in NAMES)],
    }
    write_xlsx(tmp_path / "book.xlsx", book)
    text = (SAMPLES / "campaign.toml").read_text("utf-8")
    text = re.sub(r'file = "[^"]*"', 'file = "book.xlsx?tasks"', text)
    text = re.sub(r"(?m)^workers = .*$", 'workers = { names = "book.xlsx?staff" }', text)
    path = tmp_path / "campaign.toml"
    path.write_text(re.sub(r"per_worker = \d+", "per_worker = 2", text), "utf-8")

    source = read_settings(path, sheet_or_file_text)

    assert (["1", "2"], NAMES) == ([row.task.id for row in source.rows], source.names)
    with pytest.raises(ReportsError, match="the file must be readable"):
        read_settings(path)


def test_names_of_tasks_are_read_from_a_workbook(tmp_path: Path) -> None:
    """Whose each task is may stand in a sheet, which is named where there are several."""
    book: Tables = {"Names": [["id", "text", "name"], [1, "One?", "Ann"], [2, "Two?", "Bo"]], "More": [["x"]]}
    path = write_xlsx(tmp_path / "book.xlsx", book)

    assert {"1": "Ann", "2": "Bo"} == read_names_of_tasks(Path(f"{path}?Names"))
    with pytest.raises(ReportsError, match="one sheet of a workbook is read"):
        read_names_of_tasks(path)


def test_a_workbook_without_its_suffix_is_known_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy without a suffix, such as standard input, is read alike; only a workbook has sheets."""
    path = write_xlsx(tmp_path / "a.xlsx", {"Answers": ANSWERS, "More": ANSWERS}).rename(tmp_path / "copy")
    monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": io.BytesIO(path.read_bytes())}))

    assert 3 == len(Reports.from_source(path, sheet="Answers")) == len(Reports.from_source(f"{path}?More"))
    assert 3 == len(Reports.from_source("-", sheet="Answers"))
    table = tmp_path / "a.csv"
    table.write_text("task,worker,label\nq,a,x\n", "utf-8")
    with pytest.raises(ReportsError, match="only a workbook has sheets"):
        Reports.from_source(table, sheet="Answers")


def test_a_folder_of_workbooks_has_one_sheet_each(tmp_path: Path) -> None:
    """Files of a folder or pattern are read with the same sheet, and errors name the file and the row."""
    write_xlsx(tmp_path / "a.xlsx", {"S": ANSWERS, "T": [["x"]]})
    write_xlsx(tmp_path / "b.xlsx", {"S": [*ANSWERS[:1], ["q3", "ann", "x"], ["q4", None, "y"]], "T": [["x"]]})

    with pytest.raises(ReportsError, match=r"b\.xlsx, sheet 'S', row 3: every row needs a worker"):
        Reports.from_source(tmp_path, sheet="S")


@pytest.mark.parametrize("name", ["answers.xls", "answers.ods", "answers.csv", "answers"])
def test_a_workbook_is_read_whatever_its_name(tmp_path: Path, name: str) -> None:
    """A workbook that was renamed, also to another form of workbooks, is read by its content."""
    path = write_xlsx(tmp_path / "book.xlsx", {"answers": ANSWERS}).rename(tmp_path / name)

    assert 3 == len(Reports.from_source(path))


def test_a_carriage_return_in_a_cell_is_part_of_it(tmp_path: Path) -> None:
    """A cell of an old line end is one cell, and its row one row."""
    cell = "two\rlines"
    path = write_xlsx(tmp_path / "book.xlsx", {"answers": [*ANSWERS, ["q2", "bob", cell.replace("\r", "_x000D_")]]})

    assert cell in Reports.from_source(path).alphabet.names
