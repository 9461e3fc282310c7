"""Comma-separated files of strangers: what is accepted, and how damage is named."""

import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crowdveil.answers.ingest import csv_files, dictionary_encoding
from crowdveil.answers.ingest.arrow_columns import encode_arrow_column, read_parquet_columns
from crowdveil.answers.ingest.column_readers import ColumnNames, load_prior, read_columns
from crowdveil.answers.ingest.gold_files import load_gold_and_seed
from crowdveil.answers.read_options import ReadOptions
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.errors import ReportsError, SettingsError
from tests.answers.test_reports import cells

HEAD = b"task,worker,label\n"
PLAIN = HEAD + b"a,v,x\nb,w,y\n"
UTF16 = PLAIN.decode().encode("utf-16")
ROWS = [("a", "v", "x"), ("b", "w", "y")]
YES_NO = Categories(("no", "yes"))


@pytest.fixture
def write(tmp_path):
    """Return a function that writes bytes to a file and returns its path."""

    def write_bytes(data: bytes, name: str = "answers.csv"):
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    return write_bytes


ACCEPTED = {
    "plain": PLAIN,
    "byte-order mark": b"\xef\xbb\xbf" + PLAIN,
    "byte-order mark and quotes": b'\xef\xbb\xbf"task","worker","label"\n"a",v,x\nb,"w",y\n',
    "CRLF": PLAIN.replace(b"\n", b"\r\n"),
    "CR": PLAIN.replace(b"\n", b"\r"),
    "no last line end": PLAIN.rstrip(),
    "blank rows": b"\n" + PLAIN.replace(b"b,", b"\n\nb,"),
    "rows of delimiters": b",,\n" + PLAIN.replace(b"b,", b",,\n\nb,") + b",,",
    "blank rows, CR": PLAIN.replace(b"\n", b"\r\r"),
    "gzip": gzip.compress(PLAIN),
    "UTF-16": UTF16,
    "UTF-16, big-endian, gzip": gzip.compress(b"\xfe\xff" + PLAIN.decode().encode("utf-16-be")),
    "UTF-16, tabs, CRLF": PLAIN.decode().replace(",", "\t").replace("\n", "\r\n").encode("utf-16"),
    "other columns and order": b"label,ip,worker,task\nx,10.0.0.1,v,a\ny,,w,b\n",
    "crowd-kit's old names": b"task,performer,label\na,v,x\nb,w,y\n",
    "other names": b"item,annotator,answer\na,v,x\nb,w,y\n",
    "accents in the header": "task,worker,prénom,label\na,v,é,x\nb,w,ü,y\n".encode(),
    "a long name of a column": b"task,worker,label," + b"n" * 140_000 + b"\na,v,x,\nb,w,y,\n",
    "semicolons": b'task;worker;label\n"a";v;x\nb;w;"y"\n',
    "tabs, other names and case": b"Task_ID\tWorker ID\tLabel\na\tv\tx\nb\tw\ty\n",
    "vertical bars": b"item|user|Response\na|v|x\nb|w|y\n",
    "the plain name before others": b"task_id,task,worker,user_id,label,response\n1,a,v,2,x,3\n1,b,w,2,y,3\n",
    "stray quotes": b'task,worker,label,note\na,v,x,5" disc\nb,w,y,\n',
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_dialects_are_read_alike(write, name) -> None:
    """Line ends, marks, compression, column order and accepted names make no difference."""
    assert ROWS == cells(Reports.from_csv(write(ACCEPTED[name])))


def test_cells_may_hold_commas_quotes_and_line_ends(write) -> None:
    """Quoted cells come through as they are; ids stay text."""
    path = write('task,worker,label\r\n"1,""é""\r\n",007,"x, y"\r\n2,1e3,z\r\n'.encode())

    assert [('1,"é"\r\n', "007", "x, y"), ("2", "1e3", "z")] == cells(Reports.from_csv(path))


def test_blocks_and_groups_are_joined(write, monkeypatch) -> None:
    """A file read in many blocks and groups gives the same reports as in one."""
    path = write(HEAD + b"".join(b"t%d,w%d,%d\n" % (k * 7 % 50, k % 9, k % 3) for k in range(300)))
    whole = cells(Reports.from_csv(path, duplicates="all"))
    monkeypatch.setattr(csv_files, "BLOCK_BYTES", 64)
    monkeypatch.setattr(dictionary_encoding, "GROUP_BYTES", 500)
    monkeypatch.setattr(dictionary_encoding, "GROUPS_AT_ONCE", 3)

    assert whole == cells(Reports.from_csv(path, duplicates="all"))
    assert 300 == len(whole)


LATIN = "task,worker,label\né,v,x\n".encode() + "b,w,é\n".encode("latin-1")
DAMAGED = {
    "empty": (b"", "the file is empty"),
    "blank": (b"\n\n\n", "the file is empty"),
    "header only": (HEAD, "at least one answer"),
    "blank rows only": (HEAD + b",,\n\n", "at least one answer"),
    "header without line end": (HEAD.rstrip(), "at least one answer"),
    "no task": (b"a,worker,label\n1,2,3\n", "column for the task is needed, 0 were found.*'a', 'worker'.*task or item"),
    "two workers": (b"task,worker,performer,label\n1,2,2,3\n", "column for the worker is needed, 2 were found"),
    "twice a column": (b"task,task,worker,label\n1,2,2,3\n", "column for the task is needed, 2 were found"),
    "text after a quote, behind a mark": (
        b'\xef\xbb\xbf"task"x,worker,label\na,v,x\n',
        "quotes must be closed, and only a comma",
    ),
    "text after a quote, semicolons": (
        b'task;worker;label\na;v;"x",1\n',
        "line 2: quotes .*only a semicolon",
    ),
    "ragged, tabs": (b"task\tworker\tlabel\na\tv,x\n", "line 2: every row must have as many cells as the header, 3"),
    "two ids": (b"task_id,item_id,worker,label\na,b,v,x\n", "column for the task is needed, 2 were found"),
    "ragged": (
        HEAD + b'"q\nq",w,x\n\na,v\nb,w,y,z\n',
        "lines 5, 6: every row must have as many .* 3.*2 cells, 4",
    ),
    "empty cells, ragged": (HEAD + b"a,v,x\n,\nb,w,y\n", "line 3: every row must have as many .* 3.*2 cells"),
    "Latin-1": (LATIN, "line 3: the file must be text in UTF-8.*iconv"),
    "Latin-1 header": ("täsk,worker,label\n".encode("latin-1"), "its header is not"),
    "UTF-16 without mark": (UTF16[2:], "without NUL bytes .its header.*byte 0x00.*write the text in UTF-8"),
    "a NUL byte": (
        HEAD + b"a,v,x\nb\0,w,y\n",
        "line 3: the file must be text without NUL bytes. Found: byte 0x00. Remove it",
    ),
    "a NUL byte behind others": (
        b"task,worker,label\na\xfc,v,x\nb,w\nb\0,w,y\n",
        "line 2: the file must be text in UTF-8.*line 4: .*without NUL.*line 3: every row must have as many cells",
    ),
    "UTF-16, cut": (UTF16[:-1], "must be text in utf-16"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0", "must be text in UTF-8"),
    "open quote": (HEAD + b'a,v,x\nb,w,"y\nc,w,x\n', "line 3: quotes must be closed"),
    "open quote in an unread column": (
        b'task,worker,label,n\na,v,x,\nb,w,y,"n\nc,w,x,\n',
        "line 3: quotes must be closed",
    ),
    "open quote, ragged before": (HEAD + b'a,v\nb,w,"y\nc,w,x\n', "line 2: every row must have as many cells"),
    "text after a quote": (
        HEAD + b'a,v,x\nb,w,"a"4\nc,w,x\n',
        "line 3: quotes must be closed, and only a comma or the end",
    ),
    "text after a quote in the header": (b'task,worker,label,"n"1\na,v,x,\n', "only a comma or the end of the row"),
    "text after a quote in an unread column": (
        b'task,worker,label,n\na,v,x,\nb,w,y,"n" \n',
        "line 3: quotes must be closed, and only a comma",
    ),
    "cut gzip": (gzip.compress(PLAIN)[:-9], "file compressed by gzip must be complete"),
    "empty id": (HEAD + b"a,v,x\n,w,y\n", "line 3: every row needs a task"),
    "empty label": (HEAD + b"a,v,x\nb,w,\n", "line 3: labels must not be empty"),
    "NaN value": (b"task,worker,value\na,v,1\nb,w,nan\n", "line 3: values must be finite"),
    "a huge value": (
        b"task,worker,value\na,v,1\nb,w,-2e160\n",
        "line 3: values must be 0, or .*'-2e160'.*unit",
    ),
    "a tiny value": (b"task,worker,value\na,v,0\nb,w,1e-170\n", "line 3: values must be 0, or between .*as 0"),
    "all at once": (
        b"task,worker,value\na,,1\n,w,one\n",
        "line 3: every row needs a task.*line 2: every row needs a worker.*line 3: values must be finite",
    ),
    "decimal comma": (b'task,worker,value\na,v,1\nb,w,"3,5"\n', "line 3: values must be finite.*with a point"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_named(write, name) -> None:
    """Every damaged file is refused with its name, the row and the way out."""
    data, message = DAMAGED[name]
    path = write(data)

    with pytest.raises(ReportsError, match=message) as caught:
        Reports.from_csv(path)
    assert str(path) == caught.value.source
    assert caught.value.hint


def test_many_ragged_rows_are_not_all_listed(write) -> None:
    """Of many ragged rows the first five are named."""
    with pytest.raises(ReportsError) as caught:
        Reports.from_csv(write(HEAD + b"a,v\n" * 9))
    assert (1, 2, 3, 4, 5) == caught.value.rows


@pytest.mark.parametrize("cell", [b"y" * 500, b'"' + b"y\n" * 250 + b'"', b'"' + b'\n","' * 200 + b'"'])
def test_an_overlong_row_is_refused(write, monkeypatch, cell) -> None:
    """A row of more bytes than are read at a time is refused by its number, on one line or on many."""
    path = write(HEAD + b"a,v,x\nb,w," + cell + b"\nc,w,x\n")
    monkeypatch.setattr(csv_files, "BLOCK_BYTES", 100)

    with pytest.raises(ReportsError, match="line 3: a row must have at most 100 bytes"):
        Reports.from_csv(path)


@pytest.mark.slow
def test_a_row_is_not_inflated_beyond_the_limit(write) -> None:
    """Of a small gzipped file that holds one row of 200 MB, a process of 300 MB more than it starts with reads enough.

    Before, a row was inflated whole for the message: more than twice its size.
    """
    path = write(gzip.compress(HEAD + b"a,v," + b"x" * 200_000_000 + b"\n", compresslevel=1))
    program = (
        "import sys, resource; from crowdveil import Reports; from crowdveil.errors import ReportsError\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: Reports.from_csv(sys.argv[1])\n"
        "except ReportsError as error: print(error)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    message, megabytes = done.stdout.splitlines()

    assert "line 2: a row must have at most 4,194,304 bytes" in message
    assert int(megabytes) < 100


@pytest.mark.parametrize("read", [Reports.from_csv, Reports.from_parquet, load_gold_and_seed, load_prior])
def test_a_missing_file_is_named(tmp_path, read) -> None:
    """A file that is not there is a clear error."""
    with pytest.raises(ReportsError, match="nowhere"):
        read(tmp_path / "nowhere")


def test_value_column_and_scale_mean_numbers(write) -> None:
    """A column named value is numeric by default; a Scale makes any column numeric."""
    value = write(b"task,worker,value\na,v,+1.5\nb,w, 2e0 \n", "value.csv")
    label = write(b"task,worker,label\na,v,1\nb,w,7\n", "label.csv")

    assert [1.5, 2.0] == Reports.from_csv(value).value.tolist()
    assert (" 2e0 ", "+1.5") == Reports.from_csv(value, kind="categorical").alphabet.names[::-1]
    assert [1.0, 3.0] == Reports.from_csv(label, alphabet=Scale(0, 3)).numbers.tolist()
    assert [1.0, 7.0] == Reports.from_csv(label, kind="numeric").numbers.tolist()


def test_reports_on_a_scale_can_be_held_to_it(write) -> None:
    """grid="exact" refuses what no mechanism on the scale can have sent; the points themselves pass."""
    path = write(b"task,worker,value\na,v,0.3\nb,w,0.7\n")

    assert [0.3, 0.7] == pytest.approx(Reports.from_csv(path, alphabet=Scale(0, 1, 0.1), grid="exact").numbers)
    with pytest.raises(ReportsError, match=r"lines 2, 3: every value must be a point of the scale 0 to 1.*0.3, 0.7"):
        Reports.from_csv(path, alphabet=Scale(0, 1, 0.5), grid="exact")


@pytest.mark.parametrize("options", [{"kind": "ordinal"}, {"kind": "numeric", "alphabet": YES_NO}])
def test_contradicting_kinds_are_refused(write, options) -> None:
    """A kind that does not exist, or that the alphabet contradicts, is refused."""
    with pytest.raises(SettingsError):
        Reports.from_csv(write(PLAIN), **options)


def test_gold_is_read(write) -> None:
    """Gold is a label's text, or a number where asked for or under the header value; repeated equal rows are one."""
    labels = write(b"task,truth\nb,1\na,2\nb,1\n", "gold.csv")
    values = write(b"item,value\nb,1\n", "values.csv")

    assert {"a": "2", "b": "1"} == load_gold_and_seed(labels).truths
    assert {"a": 2.0, "b": 1.0} == load_gold_and_seed(labels, kind="numeric").truths
    assert {"b": 1.0} == load_gold_and_seed(values).truths
    assert {"b": "1"} == load_gold_and_seed(values, kind="categorical").truths


BAD_GOLD = {
    "two truths": (b"task,truth\na,1\nb,2\na,2\n", "line 4: a gold task has one truth.*'a'"),
    "no truth": (b"task,truth\na,1\nb,\n", "line 3: every gold task needs a truth"),
    "no number": (b"task,value\na,x\n", "line 2: values must be finite numbers"),
    "no column": (b"task,gold\na,x\n", "column for the truth is needed"),
}


@pytest.mark.parametrize("name", BAD_GOLD)
def test_bad_gold_is_refused(write, name) -> None:
    """Contradicting, missing and non-numeric truths are named by row."""
    data, message = BAD_GOLD[name]

    with pytest.raises(ReportsError, match=message):
        load_gold_and_seed(write(data))


@pytest.mark.parametrize(
    ("cell", "advice"),
    [("n/a", "write NULL or leave the row out"), ('"1,5"', "decimal=','"), ("nan", "missing='skip'")],
)
def test_advice_on_cells_that_are_no_numbers_follows_from_them(write, cell, advice) -> None:
    """A decimal comma, an absent answer and a text each have the advice that helps, and only that."""
    with pytest.raises(ReportsError) as caught:
        load_gold_and_seed(write(f"task,value\na,1\nb,{cell}\n".encode()))

    every = ("write NULL or leave the row out", "decimal=','", "missing='skip'")
    assert [advice] == [one for one in every if one in str(caught.value)]


def test_the_first_of_contradicting_truths_can_be_taken(write) -> None:
    """Under conflicts="first" the first truth in file order counts."""
    assert {"a": "2", "b": "2"} == load_gold_and_seed(write(b"task,truth\na,2\nb,2\na,1\n"), conflicts="first").truths


def test_a_prior_is_read(write) -> None:
    """A prior is label -> probability, in file order."""
    prior = load_prior(write(b"label,probability\ny,.25\nx,.75\n"))

    assert [("y", 0.25), ("x", 0.75)] == list(prior.probabilities.items())
    assert [("prior", True)] == [(one.role, one.public) for one in prior.inputs]


BAD_PRIORS = {
    "sum": (b"label,probability\nx,.5\ny,.6\n", "sum to 1.*1.1"),
    "zero": (b"label,probability\nx,1\ny,0\n", "line 3: .* must be positive.*'y' has 0.*such as 1e-6"),
    "text": (b"label,probability\nx,half\ny,.5\n", "line 2: values must be finite"),
    "repeated": (b"label,probability\nx,.5\nx,.5\n", "one row per label"),
    "nothing": (b"label,probability\n", "one row per label"),
}


@pytest.mark.parametrize("name", BAD_PRIORS)
def test_bad_priors_are_refused(write, name) -> None:
    """A prior that is no distribution over distinct labels is refused."""
    data, message = BAD_PRIORS[name]

    with pytest.raises(ReportsError, match=message):
        load_prior(write(data))


def test_whole_number_ids_stay_numbers() -> None:
    """Integer ids of frames are kept as integers; booleans are the labels False and True."""
    frame = pd.DataFrame({"task": [10, 9], "worker": [1.0, 2.0], "label": [True, False]})

    assert [(9, 2, "False"), (10, 1, "True")] == cells(Reports.from_frame(frame))


def test_decimals_are_numbers() -> None:
    """Decimal columns are read as numbers."""
    values = pa.array(["1.5", "2"]).cast(pa.decimal128(5, 2))

    assert [1.5, 2.0] == Reports.from_frame(
        pa.table({"task": [1, 2], "worker": [1, 2], "value": values})
    ).value.tolist()


BAD_FRAMES = {
    "a list": ([{"task": 1}], "a frame must have named columns"),
    "unequal columns": ({"task": [1, 2], "worker": [1], "label": ["x"]}, "a dict of columns"),
    "no columns": (pd.DataFrame(), "column for the task is needed"),
    "mixed": (pd.DataFrame({"task": ["a", 1], "worker": [1, 2], "label": ["x", "y"]}), "turn mixed columns into text"),
    "two labels": (pd.DataFrame([["a", "v", "x"]], columns=["task", "label", "label"]), "2 columns 'label'"),
    "lists": (pa.table({"task": [[1]], "worker": [1], "label": ["x"]}), "text or numbers.*list"),
    "null label": (
        pl.DataFrame({"task": ["b", "a"], "worker": ["w", "v"], "label": [None, "x"]}),
        "row 1: labels must not be empty",
    ),
    "all null": (pa.table({"task": [None], "worker": [1], "label": ["x"]}), "row 1: every row needs a task"),
    "NaN value": (
        pd.DataFrame({"task": [1, 2], "worker": [1, 2], "value": [1, np.nan]}),
        "row 2: values must be finite",
    ),
}


@pytest.mark.parametrize("name", BAD_FRAMES)
def test_bad_frames_are_refused(name) -> None:
    """What is no table, or holds no ids or values, is refused by name."""
    frame, message = BAD_FRAMES[name]

    with pytest.raises(ReportsError, match=message):
        Reports.from_frame(frame)


def test_untidy_dictionaries_are_tidied() -> None:
    """Entries that repeat, are null or never occur do not become names."""
    dictionary = pa.array(["q", "p", "q", None, "unused"])
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, None]), dictionary)

    coded = encode_arrow_column(pa.chunked_array([column]), "test")

    assert (["p", "q"], [1, 0, 1, -1, -1]) == (coded.names.tolist(), coded.codes.tolist())


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_text_in_parquet_is_read_by_groups_of_rows(tmp_path, kind) -> None:
    """Text, however it is kept, gives the same reports in many row groups as from memory."""
    rows = [(f"t{k * 7 % 50}", f"w{k % 9}", f"{k % 3}") for k in range(100)]
    columns = zip(("task", "worker", "label"), zip(*rows, strict=True), strict=True)
    table = pa.table({name: pa.array(cells).cast(kind) for name, cells in columns})
    pq.write_table(table, tmp_path / "reports.parquet", row_group_size=30)

    assert sorted(rows) == cells(Reports.from_parquet(tmp_path / "reports.parquet"))


def test_a_missing_cell_of_parquet_is_named(tmp_path) -> None:
    """A row without a worker is refused by its number, also in a group that comes after others."""
    table = pa.table({"task": list("abcde"), "worker": ["v", "v", "w", "w", None], "label": list("xyxyx")})
    pq.write_table(table, tmp_path / "reports.parquet", row_group_size=2)

    with pytest.raises(ReportsError, match="row 5: every row needs a worker"):
        Reports.from_parquet(tmp_path / "reports.parquet")


TEXT_KINDS = ["string", "large_string", "string_view", "binary", "large_binary", "binary_view"]


@pytest.mark.parametrize("kind", TEXT_KINDS)
@pytest.mark.parametrize("coded", [False, True])
def test_text_is_read_in_every_form_that_arrow_has(tmp_path, kind, coded) -> None:
    """Views, long text and bytes in UTF-8, plain or in a dictionary, give the same reports from frame and Parquet."""
    columns = {}
    for name, cells_of in zip(("task", "worker", "label"), (["a", "b"], ["v", "wü"], ["x", "y"]), strict=True):
        text = pa.array(cells_of).cast(getattr(pa, kind)())
        columns[name] = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), text) if coded else text
    table = pa.table(columns)

    assert [("a", "v", "x"), ("b", "wü", "y")] == cells(Reports.from_frame(table))
    if not (coded and "view" in kind):  # which Parquet cannot hold
        pq.write_table(table, tmp_path / "reports.parquet")
        assert [("a", "v", "x"), ("b", "wü", "y")] == cells(Reports.from_parquet(tmp_path / "reports.parquet"))


@pytest.mark.parametrize(("old", "new"), [(b"other", b"oth\xffr"), (b"task", b"t\xffsk"), (b"wname", b"wn\xffme")])
def test_parquet_that_is_not_utf8_is_refused(tmp_path, old, new) -> None:
    """A column's name or a cell that is not UTF-8 is a clear error."""
    table = pa.table({"task": ["a", "b"], "worker": ["wname", "v"], "label": ["x", "y"], "other": [1, 2]})
    pq.write_table(table, tmp_path / "plain.parquet", store_schema=False, compression="none")
    (tmp_path / "bad.parquet").write_bytes((tmp_path / "plain.parquet").read_bytes().replace(old, new))

    with pytest.raises(ReportsError, match=r"bad\.parquet.*UTF-8.*Write the file again") as caught:
        Reports.from_parquet(tmp_path / "bad.parquet")
    assert caught.value.source == str(tmp_path / "bad.parquet")


def test_bytes_that_are_not_utf8_are_refused() -> None:
    """A frame with bytes that are no text is a clear error."""
    frame = pa.table({"task": [b"a\xff"], "worker": ["v"], "label": ["x"]})

    with pytest.raises(ReportsError, match="text must be UTF-8"):
        Reports.from_frame(frame)


HALF = "a\ud800"


@pytest.mark.parametrize("column", ["task", "worker", "label"])
def test_half_a_surrogate_pair_is_refused(column) -> None:
    """A name that no file can hold is refused by its row, from arrays, lists and frames."""
    columns = {"task": ["a", "b"], "worker": ["v", "w"], "label": ["x", "y"]}
    columns[column] = ["x", HALF]

    with pytest.raises(ReportsError, match="row 2: names must be text that can be written in UTF-8"):
        Reports.from_arrays(columns["task"], columns["worker"], columns["label"])
    with pytest.raises(ReportsError, match="UTF-8"):
        Reports.from_frame(pd.DataFrame(columns, dtype=object))


@pytest.mark.parametrize("what", ["task", "worker"])
def test_half_a_surrogate_pair_is_refused_in_lists(what) -> None:
    """A list of tasks or workers with a name that no file can hold is refused."""
    listed: dict[str, Any] = {f"{what}s": ["a", "b", HALF]}

    with pytest.raises(ReportsError, match=f"the list of {what}s must hold text that can be written in UTF-8"):
        Reports.from_arrays(["a", "b"], ["a", "b"], ["x", "y"], **listed)


def test_what_is_no_parquet_is_refused(tmp_path) -> None:
    """Another file under a Parquet name is a clear error."""
    (tmp_path / "reports.parquet").write_bytes(PLAIN)

    with pytest.raises(ReportsError, match="must be readable Parquet"):
        Reports.from_parquet(tmp_path / "reports.parquet")


def test_columns_and_delimiter_can_be_stated(write) -> None:
    """Stated columns are read whatever else the header names, and a column of numbers is read as numbers."""
    path = write(b"task@who@score@label\na@v@1.5@x\nb@w@2@y\n")
    names = ColumnNames(worker="who", value="score")

    columns = read_columns(path, names, "@")

    assert "value" == columns.value_name
    assert [("a", "v", 1.5), ("b", "w", 2.0)] == cells(Reports.from_columns(columns, ReadOptions()))


def test_progress_ends_at_the_size_of_the_file(write) -> None:
    """The last call of progress has the size of the file as both numbers, gzipped or not."""
    for data in (PLAIN, gzip.compress(PLAIN)):
        calls: list[tuple[int, int]] = []

        read_columns(write(data), progress=lambda *call: calls.append(call))  # noqa: B023

        assert (len(data), len(data)) == calls[-1]


def test_progress_of_parquet_moves_with_its_rows(tmp_path: Path) -> None:
    """Groups of rows are counted, up to the size of the file."""
    path, calls = tmp_path / "answers.parquet", list[tuple[int, int]]()
    column = pa.array(range(150_000))
    pq.write_table(pa.table({"task": column, "worker": column, "label": column}), path, row_group_size=50_000)
    size = path.stat().st_size

    columns = read_parquet_columns(path, progress=lambda *call: calls.append(call))

    assert 150_000 == len(columns)
    assert 3 == len(set(calls))
    assert sorted(calls) == calls
    assert (size, size) == calls[-1]
