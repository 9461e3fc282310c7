"""Frames and Parquet files of strangers: what is accepted, and how damage is named."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crowdveil.data.ingest import readers
from crowdveil.data.ingest.readers import code_column
from crowdveil.data.reports import Reports
from crowdveil.errors import ReportsError
from crowdveil.jit import KERNELS_VARIABLE
from tests.data.ingest.test_readers import PLAIN, ROWS
from tests.data.test_reports import cells

FRAMES = {
    "pandas": pd.DataFrame({"task": ["b", "a"], "worker": ["w", "v"], "label": ["y", "x"]}),
    "pandas categorical": pd.DataFrame(
        {"task": ["b", "a"], "worker": ["w", "v"], "label": ["y", "x"]}, dtype="category"
    ),
    "polars": pl.DataFrame({"item": ["b", "a"], "annotator": ["w", "v"], "answer": ["y", "x"]}),
    "polars enum": pl.DataFrame({"task": ["b", "a"], "worker": ["w", "v"], "label": ["y", "x"]}).cast(
        {"task": pl.Categorical, "label": pl.Enum(["unused", "y", "x"])}
    ),
    "arrow": pa.table({"task": ["b", "a"], "worker": ["w", "v"], "label": ["y", "x"]}),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames_are_read_alike(name) -> None:
    """pandas, Polars and Arrow, plain or dictionary-encoded, give the same reports."""
    assert ROWS == cells(Reports.from_frame(FRAMES[name]))


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
    "a dict": ({"task": [1]}, "pandas, Polars or Arrow"),
    "lazy": (FRAMES["polars"].lazy(), "Collect a lazy frame"),
    "no columns": (pd.DataFrame(), "column for the task is needed"),
    "mixed": (pd.DataFrame({"task": ["a", 1], "worker": [1, 2], "label": ["x", "y"]}), "turn mixed columns into text"),
    "two labels": (pd.DataFrame([["a", "v", "x", "y"]], columns=["task", "worker", "label", "label"]), "unique column"),
    "lists": (pa.table({"task": [[1]], "worker": [1], "label": ["x"]}), "text or numbers.*list"),
    "null label": (FRAMES["polars"].with_columns(answer=pl.Series([None, "x"])), "row 1: labels must not be empty"),
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


DICTIONARIES = {
    "chunks that differ": [["b", "a"], ["a", "c"]],
    "chunks that agree": [["b", "a"], ["b", "a"]],
}


@pytest.mark.parametrize("name", DICTIONARIES)
def test_dictionary_chunks_are_joined(name) -> None:
    """A dictionary-encoded column of several chunks is coded like the plain one."""
    chunks = [pa.array(chunk).dictionary_encode() for chunk in DICTIONARIES[name]]

    coded = code_column(pa.chunked_array(chunks), "test")

    assert [cell for chunk in DICTIONARIES[name] for cell in chunk] == coded.names[coded.codes].tolist()
    assert sorted(set(coded.names)) == coded.names.tolist()


def test_untidy_dictionaries_are_tidied() -> None:
    """Entries that repeat, are null or never occur do not become names."""
    dictionary = pa.array(["q", "p", "q", None, "unused"])
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, None]), dictionary)

    coded = code_column(pa.chunked_array([column]), "test")

    assert (["p", "q"], [1, 0, 1, -1, -1]) == (coded.names.tolist(), coded.codes.tolist())


def test_parquet_is_read(tmp_path) -> None:
    """Parquet gives the same reports as the frame it was written from; numbers stay numbers."""
    table = pa.table({"task": [2, 1], "performer": ["w", "v"], "label": pa.array(["y", "x"]).dictionary_encode()})
    pq.write_table(table, tmp_path / "reports.parquet")

    assert [(1, "v", "x"), (2, "w", "y")] == cells(Reports.from_parquet(tmp_path / "reports.parquet"))


@pytest.mark.parametrize("kernels", ["plain", "compiled"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_text_in_parquet_is_read_in_parts(tmp_path, monkeypatch, kernels, kind) -> None:
    """Text, however it is kept, gives the same reports in many parts and row groups as from memory."""
    monkeypatch.setenv(KERNELS_VARIABLE, kernels)
    monkeypatch.setattr(readers, "ROWS_AT_ONCE", 7)
    monkeypatch.setattr(readers, "GROUP_BYTES", 200)
    rows = [(f"t{k * 7 % 50}", f"w{k % 9}", f"{k % 3}") for k in range(100)]
    columns = zip(("task", "worker", "label"), zip(*rows, strict=True), strict=True)
    table = pa.table({name: pa.array(cells).cast(kind) for name, cells in columns})
    pq.write_table(table, tmp_path / "reports.parquet", row_group_size=30)

    assert sorted(rows) == cells(Reports.from_parquet(tmp_path / "reports.parquet"))


@pytest.mark.parametrize("kernels", ["plain", "compiled"])
def test_a_missing_cell_of_parquet_is_named(tmp_path, monkeypatch, kernels) -> None:
    """A row without a worker is refused by its number, also in a part that comes after others."""
    monkeypatch.setenv(KERNELS_VARIABLE, kernels)
    monkeypatch.setattr(readers, "ROWS_AT_ONCE", 2)
    monkeypatch.setattr(readers, "GROUP_BYTES", 1)
    table = pa.table({"task": list("abcde"), "worker": ["v", "v", "w", "w", None], "label": list("xyxyx")})
    pq.write_table(table, tmp_path / "reports.parquet")

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

    with pytest.raises(ReportsError, match="text in UTF-8"):
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
    with pytest.raises(ReportsError, match=f"the list of {what}s must hold text that can be written in UTF-8"):
        Reports.from_arrays(["a", "b"], ["a", "b"], ["x", "y"], **{f"{what}s": ["a", "b", HALF]})


def test_what_is_no_parquet_is_refused(tmp_path) -> None:
    """Another file under a Parquet name is a clear error."""
    (tmp_path / "reports.parquet").write_bytes(PLAIN)

    with pytest.raises(ReportsError, match="must be readable Parquet"):
        Reports.from_parquet(tmp_path / "reports.parquet")
