"""Delimiters, encodings and blank rows of every text table: recognised, or all defects named at once."""

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pytest

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.importers import export_file
from crowdveil.answers.ingest import column_readers
from crowdveil.answers.ingest.column_readers import ColumnNames, load_prior
from crowdveil.answers.ingest.csv_files import content_digest
from crowdveil.answers.ingest.gold_files import load_gold_and_seed
from crowdveil.answers.reports import Reports
from crowdveil.answers.sources.answer_source import open_source
from crowdveil.answers.sources.location import Layout
from crowdveil.channels.alphabet import Categories
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.storage.answers import read_name_column
from crowdveil.storage.given_files import read_costs, read_history
from crowdveil.storage.perturbed_collection import read_channel_rows
from tests.answers.test_reports import cells

ROWS = [("a", "wör", "ja"), ("b", "v", "nein")]
UNKNOWN = "frage;person;wert\n" + "".join(";".join(row) + "\n" for row in ROWS)
NAMES = ColumnNames(task="frage", worker="person", label="wert")
Write = Callable[[str, str], Path]


def zstd(content: bytes) -> bytes:
    """Return a content compressed by zstd."""
    return pa.compress(content, codec="zstd", asbytes=True)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Function that writes text in an encoding to a file, and returns its path."""

    def written(text: str, encoding: str) -> Path:
        path = tmp_path / "table.csv"
        path.write_bytes(text.encode(encoding))
        return path

    return written


def test_all_defects_of_a_table_are_named_at_once(write: Write) -> None:
    """Columns as split by the delimiter, encoding, lengths of rows and decimal commas: each with the way out."""
    text = UNKNOWN + "a;x;2,5\nb;x;3,5;\n"
    with pytest.raises(ReportsError) as caught:
        Reports.from_source(write(text, "cp1252"))
    message = str(caught.value)

    for part in (
        "column for the task is needed, 0 were found; for the worker, 0; for the value, 0",
        "the columns 'frage', 'person', 'wert', with the delimiter ';'",
        "or state them: names=ColumnNames(...)",
        "Also, line 2: the file must be text in UTF-8. Found: byte 0xf6.",
        "such as encoding='cp1252'",
        "Also, line 5: every row must have as many cells as the header, 3",
        "Answers: some numbers have a comma, state it (decimal=',').",
    ):
        assert part in message


@pytest.mark.parametrize("text", [UNKNOWN.replace("frage", "für"), "für,person,wert\n" + ",".join(ROWS[0]) + "\n"])
def test_a_header_in_another_encoding_is_shown_with_its_columns(write: Write, text: str) -> None:
    """The encoding comes first, and the columns can be copied into the options."""
    with pytest.raises(ReportsError, match=r"UTF-8 \(its header is not\).*byte 0xfc.*Also: .*'für', 'person', 'wert'"):
        Reports.from_csv(write(text, "cp1252"))


def test_only_the_first_rows_of_a_file_of_unknown_columns_are_looked_at(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large file is not read to its end to say that its columns are unknown."""
    monkeypatch.setattr(column_readers, "ROWS_CHECKED", 3)
    with pytest.raises(ReportsError) as caught:
        Reports.from_csv(write(UNKNOWN + "a;b\n", "utf-8"))

    assert "every row must have" not in str(caught.value)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-8", "utf-8-sig", "utf-16-le", "utf-16-be"])
def test_a_stated_encoding_is_read_and_a_mark_goes_before_it(write: Write, encoding: str) -> None:
    """Text is decoded as stated, and by its byte-order mark whatever is stated, in one file and in several."""
    stated = "cp1252" if encoding in ("utf-16", "utf-8-sig") else encoding
    path = write(UNKNOWN, encoding)
    other = path.rename(path.with_name("first.csv"))
    path = write(UNKNOWN.replace("a;", "c;").replace("b;", "d;"), encoding)
    one = Reports.from_source(other, names=NAMES, encoding=stated)
    both = Reports.from_source(other, path, names=NAMES, encoding=stated)

    assert ROWS == cells(one)
    assert [*ROWS, *((task, *rest) for task, (_, *rest) in zip("cd", ROWS, strict=True))] == cells(both)


def test_an_encoding_is_one_of_a_few(write: Write) -> None:
    """An unknown encoding is refused with the list, and a byte that the stated one lacks is named."""
    with pytest.raises(
        SettingsError, match="'utf-8', 'cp1250', 'cp1251', 'cp1252', 'utf-16-le' or 'utf-16-be', got 'rot13'"
    ):
        Layout(encoding="rot13")
    path = write(UNKNOWN, "utf-8")
    path.write_bytes(path.read_bytes().replace(b"nein", b"\x81"))

    with pytest.raises(ReportsError, match=r"text in cp1252\. Found: byte 0x81"):
        Reports.from_source(path, names=NAMES, encoding="cp1252")


@pytest.mark.parametrize("files", [1, 2])
def test_blank_rows_are_skipped(write: Write, files: int) -> None:
    """Empty rows, and rows of delimiters only, are no rows, above and below the header."""
    paths = []
    for number in range(files):
        text = f";;\n\ntask;worker;label;note\n{number}a;v;x;\n;;;\n\n{number}b;w;y;n\n"
        path = write(text, "utf-8")
        paths.append(str(path.rename(path.with_name(f"{number}.csv"))))
    with open_source(paths) as source:
        assert 2 * files == len(source.read_columns_and_notes()[0])


@pytest.mark.parametrize(
    ("row", "rule"),
    [(";;;note", "every row needs a task"), (";;", "as many cells"), (";v;x;", "every row needs a task")],
)
def test_a_row_with_any_content_is_not_blank(write: Write, row: str, rule: str) -> None:
    """A row without identifiers but with another cell is refused; its line counts blank rows."""
    text = f"task;worker;label;note\na;v;x;\n\n;;;\n{row}{'' if rule[0] == 'e' else 'n'}\nb;w;y;\n"
    with pytest.raises(ReportsError, match=f"line 5: .*{rule}"):
        Reports.from_csv(write(text, "utf-8"))


def test_a_name_that_is_missing_in_a_list_is_refused(write: Write) -> None:
    """In a list of one column an empty line is no name, and an empty cell is a missing one."""
    assert ["a", "b"] == read_name_column(write("task\n\na\n\nb\n", "utf-8"), "task")
    with pytest.raises(ReportsError, match="line 3: every row needs a task"):
        read_name_column(write('task\na\n""\nb\n', "utf-8"), "task")
    with pytest.raises(ReportsError, match="line 3: every row needs a task"):
        read_name_column(write("task;text\na;x\n;y\n;\n", "utf-8"), "task")


TABLES: dict[str, tuple[str, Callable[[Path], object], object]] = {
    "tasks": ("text;task\nx;ä\n;\ny;b\n", lambda path: read_name_column(path, "task"), ["ä", "b"]),
    "gold": ("task;truth\nä;x\n;\nb;y\n", lambda path: load_gold_and_seed(path).truths, {"ä": "x", "b": "y"}),
    "prior": (
        "label;probability\nä;0.25\n;\nb;0.75\n",
        lambda path: load_prior(path).probabilities,
        {"ä": 0.25, "b": 0.75},
    ),
    "assignment": (
        "worker;task\nw;ä\n;\nv;b\n",
        lambda path: Assignment.from_csv(path).to_csv(),
        Assignment.from_arrays(["ä", "b"], ["w", "v"]).to_csv(),
    ),
    "costs": (
        "truth;decision;cost\nä;b;2\n;;\nb;ä;3\n",
        lambda path: read_costs(path, Categories(("ä", "b"))).table.tolist(),
        [[0, 2], [3, 0]],
    ),
    "history": (
        "Worker;Correct;Answers\nä;3;4\n;;\nb;1;2\n",
        lambda path: list(read_history(path).workers.workers),
        ["ä", "b"],
    ),
    "channels": ("task;epsilon\nä;1\n", lambda path: read_channel_rows(path).rows, {"ä": ("1",)}),
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("kind", TABLES)
def test_other_tables_are_read_by_the_same_rules(write: Write, kind: str, encoding: str) -> None:
    """Lists, truths, priors, costs and histories may have semicolons, blank rows and a mark of UTF-16."""
    text, read, expected = TABLES[kind]

    assert expected == read(write(text, encoding))


@pytest.mark.parametrize("kind", [kind for kind in TABLES if kind != "channels"])
def test_other_tables_in_another_encoding_are_refused_with_byte_and_row(write: Write, kind: str) -> None:
    """Without an option for their encoding, the way out is a command that converts the file."""
    text, read, _ = TABLES[kind]

    with pytest.raises(ReportsError, match=r"line 2: .* text in UTF-8\. Found: byte 0xe4.*iconv -f cp1252"):
        read(write(text, "cp1252"))


def test_exports_have_the_encodings_of_tables(tmp_path: Path) -> None:
    """JSON in UTF-16 with a mark, and a table in a stated encoding, are read like UTF-8."""
    record = {"_task_hash": 1, "answer": "accept", "_annotator_id": "wör", "accept": ["jä"]}
    (tmp_path / "a.jsonl").write_bytes(json.dumps(record, ensure_ascii=False).encode("utf-16"))
    (tmp_path / "b.csv").write_bytes("HITId;WorkerId;Answer.q\n1;wör;jä\n".encode("cp1252"))

    for name, encoding in (("a.jsonl", None), ("b.csv", "cp1252")):
        with open_source([str(tmp_path / name)], Layout(encoding=encoding)) as source:
            assert [["1"], ["wör"], ["jä"]] == [column.to_pylist() for column in source.answers_of_tool_export().table]


@pytest.mark.parametrize("header", ["task;worker;value", "item;rater;value"])
def test_a_stated_decimal_comma_is_read(write: Write, header: str) -> None:
    """Numbers with a comma, whole ones and fractions without a digit before it are those with a point."""
    path = write(f"{header}\na;v;1,5\nb;v;-,25\nb;w;3\n", "utf-8")

    assert [("a", "v", 1.5), ("b", "v", -0.25), ("b", "w", 3.0)] == cells(Reports.from_source(path, decimal=","))
    with pytest.raises(ReportsError, match=r"lines 2, 3: values must be finite.*state the comma \(decimal=','\)"):
        Reports.from_source(path)


def test_a_point_beside_a_stated_decimal_comma_is_refused(write: Write) -> None:
    """1.500 may be 1,500 or 1.5: none of them is taken."""
    path = write("task;worker;value\na;v;\na;w;1.500\nb;v;2,5\n", "utf-8")

    with pytest.raises(ReportsError, match=r"line 3: numbers with a decimal comma must have no point\. Found: '1.500'"):
        Reports.from_source(path, decimal=",")
    with pytest.raises(SettingsError, match=r"'\.' or ',', got ';'"):
        Layout(decimal=";")


def test_a_header_below_other_lines_is_found(write: Write) -> None:
    """Lines of a comment are named as what is to be removed."""
    for above in ("# export of 3 May\n\n", '"by me, and you"\nagain\n'):
        with pytest.raises(ReportsError, match=r"Line 3 has such names: remove the lines above it\."):
            Reports.from_source(write(f'{above}"task";worker;label\na;v;x\n', "utf-8"))


@pytest.mark.parametrize("delimiter", [";", "\t", ","])
def test_a_first_line_that_names_the_delimiter_is_skipped(write: Write, delimiter: str) -> None:
    """The line sep= of a spreadsheet is no header; defects keep the lines of the file."""
    table = "Task;Worker;Label\na;v;yes\nb;v;no\n".replace(";", delimiter)
    reports = Reports.from_source(write(f"sep={delimiter}\n{table}", "utf-8"))

    assert {("a", "v", "yes"), ("b", "v", "no")} == {cell[:3] for cell in cells(reports)}
    with pytest.raises(ReportsError, match="line 5: every row must have as many cells"):
        Reports.from_source(write(f"sep={delimiter}\n{table}c{delimiter}v\n", "utf-8"))


def test_a_table_without_a_header_is_told_by_its_first_row(write: Write) -> None:
    """A cell of the first row that stands in its column again is no name of a column."""
    with pytest.raises(ReportsError, match=r"The first row looks like an answer: add a row"):
        Reports.from_source(write("t0,w0,yes\nt0,w1,no\nt1,w0,no\n", "utf-8"))


def test_spaces_after_commas_are_no_part_of_names(write: Write) -> None:
    """Where the header has them, too, cells have none; elsewhere a space is a part of a label."""
    text = "task{0}worker{0}label\na{0}v{0}yes\nb{0}w{0}no\n"

    assert [("a", "v", "yes"), ("b", "w", "no")] == cells(Reports.from_source(write(text.format(", "), "utf-8")))
    assert [("a", " v", "yes")] == cells(Reports.from_source(write("task,worker,label\na, v,yes\nb,w,no\n", "utf-8")))[
        :1
    ]


def test_cells_without_a_known_delimiter_are_refused_with_its_argument(write: Write) -> None:
    """A header that is one column has the option that splits it."""
    with pytest.raises(ReportsError, match=r"the columns 'task worker label'.* \(delimiter\)\."):
        Reports.from_source(write("task worker label\na v x\n", "utf-8"))


def test_letters_in_utf8_are_not_read_as_others(write: Write) -> None:
    """A stated encoding that would turn each letter into two is refused; text in ASCII has any encoding."""
    text = "task,worker,label\na,v,{}\nb,v,n\n"
    with pytest.raises(ReportsError, match=r"a text in UTF-8 must not be read as cp1252\. Leave encoding out"):
        Reports.from_source(write(text.format("schön"), "utf-8"), encoding="cp1252")

    assert 2 == len(Reports.from_source(write(text.format("schoen"), "utf-8"), encoding="cp1252"))


def test_few_numbers_with_a_decimal_comma_are_no_labels_either(write: Write) -> None:
    """Two numbers with a comma are refused until their kind is stated; texts with a comma are labels."""
    text = "task;worker;label\na;v;{}\nb;v;2\n"
    with pytest.raises(
        ReportsError, match=r"a decimal comma must be stated. Found: 2 different numbers from 1\.5 to 2"
    ):
        Reports.from_csv(write(text.format("1,5"), "utf-8"))

    assert 2 == len(Reports.from_csv(write(text.format("yes, no"), "utf-8")))
    assert 2 == len(Reports.from_csv(write(text.format("1,5"), "utf-8"), kind="categorical"))


def test_a_row_that_is_not_utf8_and_too_long_prints_nothing(write: Write, capfd: pytest.CaptureFixture[str]) -> None:
    """Both defects are in the message, and no traceback is on stderr."""
    with pytest.raises(ReportsError, match=r"byte 0xf6.*Also, line 2: every row must have as many cells"):
        Reports.from_source(write("task,worker,label\na,wör,x,y\nb,v,x\n", "cp1252"))

    assert ("", "") == capfd.readouterr()


def test_json_in_another_encoding_has_its_option_in_the_refusal(write: Write) -> None:
    """JSON is read by a stated encoding, too, and the refusal names it."""
    path = write(
        '[{"task": "a", "worker": "v", "label": "schön"}, {"task": "b", "worker": "v", "label": "n"}]', "cp1252"
    )
    with pytest.raises(ReportsError, match=r"must be JSON in UTF-8.*encoding='cp1252'"):
        Reports.from_source(path)

    assert {"schön", "n"} == {label for _, _, label in cells(Reports.from_source(path, encoding="cp1252"))}


def test_empty_labels_and_repeats_are_named_in_one_refusal(write: Write) -> None:
    """A file with both needs one refusal, with both ways out."""
    text = "task,worker,label\na,v,yes\na,w,\nb,v,no\nb,v,yes\n"
    with pytest.raises(ReportsError, match=r"missing='skip'.*Also, line 5: a worker answers a task once.*duplicates='"):
        Reports.from_csv(write(text, "utf-8"))


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, zstd])
def test_compressed_tables_are_read_by_their_content(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    """Answers, known truths and JSON lines are read from each compression, also in parts; a cut one is named."""
    answers, name = "task,worker,label\na,v,x\na,w,y\n", tmp_path / "table"
    half = len(answers) // 2

    name.write_bytes(compress(answers[:half].encode()) + compress(answers[half:].encode()))
    assert (2, sha256(answers.encode()).hexdigest()) == (len(Reports.from_source(name)), content_digest(name))
    name.write_bytes(compress(b"task,truth\na,x\n"))
    assert {"a": "x"} == load_gold_and_seed(name).truths
    lines = b'{"task": "a", "worker": "v", "label": "x"}\n{"task": "a", "worker": "w", "label": "y"}\n'
    name.write_bytes(compress(lines))
    assert 2 == len(Reports.from_source(name))
    name.write_bytes(compress(answers.encode() * 50)[:-9])
    with pytest.raises(ReportsError, match=r"a file compressed by .* must be complete and undamaged"):
        Reports.from_source(name)


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (b"%PDF-1.7 text", "a PDF"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "older form, such as .xls"),
        (b"SQLite format 3\0" + b"\0" * 100, "an SQLite database"),
        (b"\x80\x04\x95\0\0", "a pickle"),
        (b"answers.csv" + b"\0" * 246 + b"ustar\0", "a tar archive"),
        (gzip.compress(b"answers.csv" + b"\0" * 246 + b"ustar\0", mtime=0), "a tar archive"),
        (
            gzip.compress(gzip.compress(b"task,worker,label\n" * 9, mtime=0), mtime=0),
            "a file compressed by gzip inside",
        ),
        (gzip.compress(bz2.compress(b"task,worker,label\n" * 9), mtime=0), "a file compressed by bzip2 inside"),
        (b"7z\xbc\xaf\x27\x1c\0", "a 7z archive"),
    ],
)
def test_other_forms_are_named(tmp_path: Path, content: bytes, form: str) -> None:
    """Databases, archives, pickles and documents are named, as answers and as known truths, not taken for text."""
    path = tmp_path / "file"
    path.write_bytes(content)

    for read in (Reports.from_source, load_gold_and_seed):
        with pytest.raises(ReportsError, match=form):
            read(path)


JSON_TABLES = {
    "columns": {"task": {"0": "a", "1": "a"}, "worker": {"0": "v", "1": "w"}, "label": {"0": "x", "1": "y"}},
    "lists": {"task": ["a", "a"], "worker": ["v", "w"], "label": ["x", "y"]},
    "index": {"0": {"task": "a", "worker": "v", "label": "x"}, "1": {"task": "a", "worker": "w", "label": "y"}},
    "split": {"columns": ["task", "worker", "label"], "index": [0, 1], "data": [["a", "v", "x"], ["a", "w", "y"]]},
    "table": {
        "schema": {"fields": []},
        "data": [{"task": "a", "worker": "v", "label": "x"}, {"task": "a", "worker": "w", "label": "y"}],
    },
}


@pytest.mark.parametrize("form", JSON_TABLES)
def test_tables_in_json_are_read_in_every_orientation(tmp_path: Path, form: str) -> None:
    """JSON by columns, by rows, with split rows, or with a schema gives the same answers as records."""
    path = tmp_path / "table.json"
    path.write_text(json.dumps(JSON_TABLES[form]), "utf-8")

    assert [("a", "v", "x"), ("a", "w", "y")] == sorted(cells(Reports.from_source(path)))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([["task", "worker", "label"], ["a", "v", "x"]], "records only"),
        ({"columns": ["task", "worker"], "data": [["a", "v", "x"]]}, "column for the task is needed"),
        ({"task": {"0": "a"}, "worker": {"0": "v", "1": "w"}, "label": {"0": "x"}}, "a task must be a text"),
        ({"columns": ["task", "task", "label"], "data": [["a", "v", "x"]]}, "column for the task is needed"),
    ],
)
def test_other_objects_in_json_are_refused(tmp_path: Path, content: object, words: str) -> None:
    """Rows without names, and columns of different rows, are no table."""
    path = tmp_path / "table.json"
    path.write_text(json.dumps(content), "utf-8")

    with pytest.raises(ReportsError, match=words):
        Reports.from_source(path)


def test_json_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON is parsed as a whole: one that unpacks to more than the limit is refused before that."""
    path = tmp_path / "table.json.bz2"
    path.write_bytes(bz2.compress(b"[" + b" " * 5_000))
    monkeypatch.setattr(export_file, "MAX_JSON_BYTES", 1_000)

    with pytest.raises(ReportsError, match="at most 1,000 bytes"):
        Reports.from_source(path)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, zstd])
def test_the_progress_of_compressed_tables_ends_at_their_size(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    """Progress is counted in bytes of the file, whatever its compression."""
    path, seen = tmp_path / "table", list[tuple[int, int]]()
    path.write_bytes(compress(b"task,worker,label\n" + b"".join(b"%d,v,x\n" % task for task in range(5_000))))

    with open_source([str(path)]) as source:
        source.read_columns_and_notes(lambda done, size: seen.append((done, size)))

    size = path.stat().st_size
    assert (size, size) == seen[-1]
    assert all(done <= whole == size for done, whole in seen)
