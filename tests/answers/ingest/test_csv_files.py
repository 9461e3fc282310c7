"""Quotes in comma-separated text: the reader agrees with the csv module's strict one, wherever the bytes are cut."""

import csv
import io
from contextlib import nullcontext
from pathlib import Path
from threading import Event, Thread
from typing import BinaryIO, cast

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.ingest.csv_files import read_csv_table
from crowdveil.answers.ingest.csv_quotes import QuoteStream
from crowdveil.answers.ingest.labels import RESERVED_LABELS
from crowdveil.answers.reports import Reports
from crowdveil.cli.options import parse_words
from crowdveil.errors import ReportsError
from crowdveil.files.csv_rows import csv_row
from crowdveil.storage.write_collection import write_report_files
from tests.answers.test_reports import cells

PIECES = ['"', '""', ",", "\n", "\r\n", "a", "b", '"a"', '"a""b",', '5" disc']
AWKWARD = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


class InParts(io.RawIOBase):
    """Bytes that come in parts of given sizes, again and again."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self.stream, self.sizes, self.turn = io.BytesIO(data), sizes, 0

    def read(self, size: int = -1) -> bytes:
        """Return the next part."""
        self.turn += 1
        return self.stream.read(self.sizes[self.turn % len(self.sizes)])


def doubtful(data: bytes, sizes: list[int]) -> bool:
    """Return whether the quotes in these bytes, read in parts, are noted as doubtful."""
    stream = QuoteStream(cast(BinaryIO, InParts(data, sizes)))
    while stream.read(1 << 20):
        pass
    return stream.has_doubtful_quotes


def strictly_read(text: str) -> bool:
    """Return whether the csv module reads a text without a complaint about its quotes."""
    try:
        list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        return False
    return True


@given(AWKWARD, st.lists(st.integers(1, 7), min_size=1, max_size=5))
@example('"a"4', [1])
@example('a"",b\n"c"', [2])
@example('a,""\n', [3])
@example('"""",b', [3, 1])
@example('"""', [2])
@example('"x,"y","z,"w"', [2])
def test_no_refused_quote_is_without_doubt(text: str, sizes: list[int]) -> None:
    """Text after a closing quote, and a quote that is never closed, are noted wherever the bytes are cut."""
    assert strictly_read(text) or doubtful(text.encode(), sizes)


@given(st.lists(st.text('",\r\nab ', max_size=5), min_size=1, max_size=9), st.integers(1, 7))
def test_quotes_of_a_writer_are_without_doubt(row: list[str], size: int) -> None:
    """What the csv module writes, with any cell quoted, need not be read twice."""
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL):
        csv.writer(written := io.StringIO(newline=""), quoting=quoting).writerows([row, row])

        assert not doubtful(written.getvalue().encode(), [size])


@pytest.mark.slow
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@given(text=AWKWARD)
@example(text='"a"4')
@example(text='a"",b\n"c"')
@example(text='"""')
@example(text='"a"x')
@example(text='"a')
def test_quotes_are_checked_like_a_strict_reader_does(folder: Path, text: str, mark: bytes) -> None:
    """A file is refused for its quotes if, and only if, the csv module refuses it; a byte-order mark is no text."""
    text, path, refusal = '"task",worker\n' + text, folder / "quotes.csv", ""
    path.write_bytes(mark + text.encode())
    try:
        read_csv_table(path, ["task"])
    except ReportsError as error:
        refusal = str(error)

    assert strictly_read(text) == ("quotes must be closed" not in refusal)


class Waiting(io.BytesIO):
    """Bytes that come only once they may; `order` notes what has happened."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.asked, self.may = Event(), Event()
        self.order: list[str] = []

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes, later."""
        self.asked.set()
        assert self.may.wait(60)
        self.order.append("read")
        return super().read(size)


def test_closing_waits_for_a_read_and_ends_all_later_ones() -> None:
    """A thread that reads ahead has its bytes before `close` returns, and reads nothing after it."""
    raw = Waiting(b"task,worker\n")
    checked = QuoteStream(raw)
    reading = Thread(target=checked.read, args=(4,))
    closing = Thread(target=lambda: (checked.close(), raw.order.append("closed")))
    reading.start()
    assert raw.asked.wait(60)
    closing.start()
    closing.join(0.05)
    assert (True, []) == (closing.is_alive(), raw.order)
    raw.may.set()
    for thread in (reading, closing):
        thread.join(60)

    assert ["read", "closed"] == raw.order
    assert (True, b"") == (checked.closed, checked.read(4))


SIGNS = [*"\"',;\r\n\t \\ab01.-#=é本😀\ufeff\u2028\x0b\x85\x1c"]
NAMES = st.text(st.sampled_from(SIGNS), min_size=1, max_size=6)
LABELS = NAMES.filter(lambda name: name.strip() not in RESERVED_LABELS)


def two(names: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    """Draw two different names."""
    return st.lists(names, min_size=2, max_size=2, unique=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return one folder for all examples of a property."""
    return tmp_path_factory.mktemp("written")


@given(st.lists(st.one_of(NAMES, st.just("")), min_size=1, max_size=4))
@example(["a\rb", " a", "a ", '"', ""])
@example([""])
def test_a_line_is_read_back_by_any_reader(row: list[str]) -> None:
    """A strict reader, also one that skips spaces after commas, gets the same cells."""
    for skip in (False, True):
        read = csv.reader(io.StringIO(csv_row(row) + "\n", newline=""), strict=True, skipinitialspace=skip)
        assert [row] == list(read)


@pytest.mark.slow
@given(two(NAMES), two(NAMES), two(LABELS))
@example(["a\rb", "c"], ["v", "w"], ["x\ry", "z"])
def test_reports_come_back(folder, tasks: list[str], workers: list[str], labels: list[str]) -> None:
    """Tasks, workers and labels of any text are the same after reports.csv was written and read."""
    reports = Reports.from_arrays(tasks, workers, labels)
    write_report_files(folder, reports, "csv")
    read = Reports.from_csv(folder / "reports.csv")

    assert cells(reports) == cells(read)
    assert reports.alphabet == read.alphabet


@given(two(NAMES), two(NAMES))
@example(["a\rb", "c"], [" v", "w"])
def test_assignments_come_back(folder, tasks: list[str], workers: list[str]) -> None:
    """assignment.csv holds the names as they are."""
    (folder / "assignment.csv").write_bytes(Assignment.from_arrays(tasks, workers).to_csv().encode())
    again = Assignment.from_csv(folder / "assignment.csv")

    assert {*zip(tasks, workers, strict=True)} == {
        *zip(again.tasks[again.task], again.workers[again.worker], strict=True)
    }


@given(two(LABELS))
@example([" yes", "a\rb"])
def test_labels_listed_for_a_command_are_read_back(labels: list[str]) -> None:
    """`--labels` reads the list that `plan` prints."""
    assert tuple(labels) == parse_words(csv_row(labels))


@given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=5))
def test_numbers_come_back_to_the_bit(folder, numbers: list[float]) -> None:
    """Values of reports.csv are written with enough digits to be distinct."""
    assume(all(number == 0 or abs(number) >= 1e-100 for number in numbers))
    names = np.arange(len(numbers))
    write_report_files(folder, Reports.from_arrays(names, names, numbers, numeric=True), "csv")

    assert numbers == Reports.from_csv(folder / "reports.csv").value.tolist()


def test_closing_waits_until_no_bytes_are_held() -> None:
    """A thread that still holds bytes of the file ends `close` when it drops them, and not before."""
    checked, order = QuoteStream(io.BytesIO(b"task,worker\n")), list[str]()
    held = [checked.read()]
    closing = Thread(target=lambda: (checked.close(), order.append("closed")))
    closing.start()
    closing.join(0.05)
    assert (True, []) == (closing.is_alive(), order)
    order.append("dropped")
    held.clear()
    closing.join(60)

    assert ["dropped", "closed"] == order


def test_a_file_that_is_replaced_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of two versions of a file are not read as one table; one that takes its place is no fault."""
    path, text = tmp_path / "labels.csv", "task,worker,label\n" + "a,v,yes\n" * 1000

    def rewritten(done: int, size: int) -> None:
        path.write_text(text.replace("yes", "no"))

    def renamed(done: int, size: int) -> None:
        (tmp_path / "new.csv").write_text(text.replace("yes", "no"))
        (tmp_path / "new.csv").replace(path)

    for change, fails in ((rewritten, True), (renamed, False)):
        path.write_text(text)
        with pytest.raises(ReportsError, match="must not change while it is read") if fails else nullcontext():
            read_csv_table(path, ("task", "worker", "label"), progress=change)
