"""Files of encoded blocks: what makes two inputs the same, and answers that do not belong together."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from crowdveil.answers.ingest.column_readers import ColumnNames
from crowdveil.answers.reports import Reports
from crowdveil.answers.sources.answer_source import open_source
from crowdveil.answers.sources.location import Layout
from crowdveil.answers.store_manifest import MANIFEST_FILE
from crowdveil.channels.alphabet import Categories
from crowdveil.errors import ReportsError
from crowdveil.standalone.checks import digest
from crowdveil.storage.encoded.append import Appended, append
from crowdveil.storage.encoding import encode
from crowdveil.storage.evidence import EvidenceOptions
from tests.answers.test_reports import cells

ALL = EvidenceOptions(duplicates="all")
TWO_QUESTIONS = "task,worker,question,label\na,u,spam,no\nb,u,spam,yes\nc,u,rude,no\nd,v,rude,yes\n"


def start(folder: Path, source: Path | str, **layout: Any) -> None:
    """Encode a source as `blocks` in a folder."""
    with open_source([str(source)], Layout(**layout)) as opened:
        encode(opened, folder / "blocks", EvidenceOptions(alphabet=Categories(("no", "yes"))))


def add(folder: Path, *sources: Path | str, **layout: Any) -> Appended:
    """Append sources to the blocks in a folder, whatever is repeated."""
    with open_source([*map(str, sources)], Layout(**layout)) as opened:
        return append(opened, folder / "blocks", ALL)


def write(path: Path, text: str) -> Path:
    """Write a file and its folders; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def book(path: Path, sheets: Sequence[str], rows: Sequence[Sequence[str]]) -> Path:
    """Write a workbook, of which each sheet has the same rows after a worker of its name."""
    workbook = Workbook()
    workbook.remove(workbook.active)
    for name in sheets:
        sheet = workbook.create_sheet(name)
        sheet.append(["task", "worker", "label"])
        for task, label in rows:
            sheet.append([task, name, label])
    workbook.save(path)
    return path


def test_folders_of_workers_with_the_same_answers_are_two_inputs(tmp_path: Path) -> None:
    """Two files of one content below two keys that are read are both encoded, and each of them once."""
    for worker in ("ann", "bob"):
        write(tmp_path / "votes" / f"worker={worker}" / "1.csv", "task,label\na,yes\nb,no\n")
    start(tmp_path, tmp_path / "votes" / "*=ann" / "*.csv")
    done = add(tmp_path, tmp_path / "votes" / "*=bob" / "*.csv")

    assert [(task, worker) for task in "ab" for worker in ("ann", "bob")] == [row[:2] for row in cells(done.reports)]
    for worker in ("ann", "bob"):
        with pytest.raises(ReportsError, match=rf"as \.\./votes/worker={worker}/1\.csv\. Leave it out"):
            add(tmp_path, tmp_path / "votes" / f"*={worker}" / "*.csv")


def test_each_sheet_of_a_workbook_is_an_input(tmp_path: Path) -> None:
    """Two sheets of one workbook are two inputs; the same sheet is refused."""
    path = book(tmp_path / "book.xlsx", ["Mon", "Tue"], [("a", "yes"), ("b", "no")])
    start(tmp_path, f"{path}?Mon")
    assert 4 == len(add(tmp_path, f"{path}?Tue").reports)
    with pytest.raises(ReportsError, match="a file is encoded once"):
        add(tmp_path, f"{path}?Tue")


def test_other_columns_of_a_file_are_another_input(tmp_path: Path) -> None:
    """The same file with another column of workers has other answers; only the same columns are the same input."""
    path = write(tmp_path / "a.csv", "task,first,second,label\na,ann,bob,yes\n")
    start(tmp_path, path, names=ColumnNames(worker="first"))
    assert 2 == len(add(tmp_path, path, names=ColumnNames(worker="second")).reports)
    with pytest.raises(ReportsError, match="a file is encoded once"):
        add(tmp_path, path, names=ColumnNames(worker="first"))


def test_answers_to_another_question_are_refused_by_name(tmp_path: Path) -> None:
    """Blocks of one question take no answers to another: neither stated, nor of a column or a folder."""
    path = write(tmp_path / "a.csv", TWO_QUESTIONS)
    start(tmp_path, path, question="spam")
    rude = write(tmp_path / "rude.csv", "task,worker,question,label\nc,u,rude,no\n")
    folder = write(tmp_path / "votes" / "question=rude" / "1.csv", "task,worker,label\nc,u,no\n").parents[1]
    for source, question, found in ((path, "rude", "'rude'"), (path, None, "several"), (rude, None, "'rude'")):
        with pytest.raises(ReportsError, match=rf"question of the blocks, 'spam'.*{found}"):
            add(tmp_path, source, question=question)
    with pytest.raises(ReportsError, match="question of the blocks, 'spam'"):
        add(tmp_path, folder)

    more = write(tmp_path / "more.csv", "task,worker,question,label\ne,u,spam,no\nf,u,rude,no\n")
    assert ["a", "b", "e"] == add(tmp_path, more, question="spam").reports.tasks.tolist()


def test_another_column_of_answers_is_refused_by_name(tmp_path: Path) -> None:
    """Blocks of one column take no answers of another; usual names of it are the same if a file has only one."""
    path = write(tmp_path / "a.csv", "task,worker,label,second\na,u,yes,no\n")
    start(tmp_path, path)
    with pytest.raises(ReportsError, match=r"column of those of the blocks, 'label'.*'second'"):
        add(tmp_path, path, names=ColumnNames(label="second"))
    both = write(tmp_path / "b.csv", "task,worker,label,answer\na,v,yes,no\n")
    with pytest.raises(ReportsError, match=r"column of those of the blocks, 'label'.*'answer'"):
        add(tmp_path, both, names=ColumnNames(label="answer"))

    assert 2 == len(add(tmp_path, write(tmp_path / "c.csv", "task,worker,Answer\na,v,yes\n")).reports)


def test_what_old_blocks_do_not_record_is_a_warning(tmp_path: Path) -> None:
    """Blocks whose manifest has no readings take a question, a column and the same content, each with a warning."""
    path = write(tmp_path / "a.csv", TWO_QUESTIONS)
    start(tmp_path, path, question="spam")
    manifest = tmp_path / "blocks" / MANIFEST_FILE
    data = json.loads(manifest.read_bytes())
    del data["sha256"], data["inputs"][0]["reading"]
    manifest.write_text(json.dumps({**data, "sha256": digest(data)}))
    notes = add(tmp_path, path, question="rude", names=ColumnNames(label="label")).notes

    assert any("as ../a.csv; which answers of it is not recorded" in note for note in notes)
    assert any("To which question" in note for note in notes)
    assert any("From which column" in note for note in notes)
    assert 4 == len(Reports.open(tmp_path / "blocks"))


@pytest.mark.parametrize("reading", [{}, {"sheet": 1}, {"keys": {"a": 1}}, {"columns": {"task": None}}, "a"])
def test_a_damaged_reading_is_refused(tmp_path: Path, reading: Any) -> None:
    """A manifest whose reading of a file has another form is damage."""
    start(tmp_path, write(tmp_path / "a.csv", "task,worker,label\na,u,yes\n"))
    manifest = tmp_path / "blocks" / MANIFEST_FILE
    data = json.loads(manifest.read_bytes())
    whole = data["inputs"][0]["reading"]
    data["inputs"][0]["reading"] = {**whole, **reading} if reading and isinstance(reading, dict) else reading
    del data["sha256"]
    manifest.write_text(json.dumps({**data, "sha256": digest(data)}))

    with pytest.raises(ReportsError, match="undamaged"):
        Reports.open(tmp_path / "blocks")
