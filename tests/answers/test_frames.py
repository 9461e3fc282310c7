"""Frames of the caller: columns by name, results in kind, and labels in their original type."""

import warnings
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from crowdveil.answers.facts.asked import UNKNOWN
from crowdveil.answers.reports import Reports
from crowdveil.em.estimate import Estimate
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators import MajorityVote, OrdinalDawidSkene, StudentT

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # of the lowest version, without a query planner
    import dask.dataframe as dd

ROWS: dict[str, list[Any]] = {
    "question": [7, 7, 7, 9, 9, 9],
    "who": list("uvwuvw"),
    "ok": [True, True, False, False, False, True],
}
NAMES = {"task": "question", "worker": "who", "label": "ok"}


CONNECTION = duckdb.connect()


def relation(columns: dict[str, list[Any]]) -> Any:
    """Return a DuckDB relation of these columns."""
    return CONNECTION.from_arrow(pa.table(columns))


def read_back(frame: Any) -> dict[str, list[Any]]:
    """Return the columns of any frame as lists."""
    if isinstance(frame, dict):
        return {name: list(column) for name, column in frame.items()}
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, dd.DataFrame):
        frame = frame.compute()
    if isinstance(frame, duckdb.DuckDBPyRelation):
        frame = frame.to_arrow_table()
    if isinstance(frame, pa.Table):
        return frame.to_pydict()
    return {name: frame[name].to_list() for name in frame.columns}


KINDS: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "polars lazy": pl.LazyFrame,
    "arrow": pa.table,
    "dask": lambda columns: dd.from_pandas(pd.DataFrame(columns), npartitions=2),
    "duckdb": relation,
    "lists": dict,
    "arrays": lambda columns: {name: np.array(column) for name, column in columns.items()},
}


def fitted(frame: Any, **options: Any) -> Estimate:
    """Return the majority vote of a frame."""
    return MajorityVote().fit(Reports.from_frame(frame, **options))


@pytest.mark.parametrize("kind", KINDS)
def test_results_are_of_the_kind_of_the_answers(kind: str) -> None:
    """Tasks and workers come back as the caller's kind of frame, with the caller's names and types."""
    frame = KINDS[kind](ROWS)
    estimate = fitted(frame, **NAMES)

    tasks, workers = estimate.to_frame(frame), estimate.to_frame(frame, "workers")

    assert type(frame) is type(tasks) is type(workers)
    found = read_back(tasks)
    assert ["question", "truth", "confidence"] == list(found)[:3]
    assert ([7, 9], [True, False]) == (found["question"], found["truth"])
    assert all(isinstance(truth, bool | np.bool_) for truth in found["truth"])
    assert ["u", "v", "w"] == read_back(workers)["who"]


COLUMNS = {
    "int8": pd.array([3, 3, 1], dtype="int8"),
    "nullable integers": pd.array([3, 3, 1], dtype="Int64"),
    "truth values": pd.array([True, True, False]),
    "objects": pd.array([True, True, False], dtype=object),
    "categories": pd.Categorical(["b", "b", "a"], ["c", "b", "a"], ordered=True),
    "categories of numbers": pd.Categorical([3, 3, 1], [3, 2, 1]),
    "text": pd.array(["b", "b", "a"], dtype="string"),
    "fractions": np.array([1.5, 1.5, 2.0]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_pandas_labels_keep_their_type(name: str) -> None:
    """Truths have the type of the column of labels, the categories of a categorical one included."""
    frame = pd.DataFrame({"task": [1, 2, 3], "worker": ["u", "u", "u"], "label": COLUMNS[name]})

    found = fitted(frame).to_frame(frame)

    assert frame["label"].dtype == found["truth"].dtype
    assert frame["label"].tolist() == found["truth"].tolist()


@pytest.mark.parametrize(
    "kind", [pl.Int16, pl.Boolean, pl.String, pl.Categorical, pl.Enum(["2", "1", "0"]), pl.Float32], ids=str
)
def test_polars_labels_keep_their_type(kind: Any) -> None:
    """Truths have the type of the column of labels, and tasks that of the column of tasks, so that frames join."""
    label = pl.Series([0, 1, 1]).cast(pl.String if kind in (pl.String, pl.Categorical, pl.Enum) else kind).cast(kind)
    frame = pl.DataFrame({"task": pl.Series([1, 2, 3], dtype=pl.UInt8), "worker": ["u", "u", "u"], "label": label})

    found = fitted(frame).to_frame(frame)

    assert frame.schema["label"] == found.schema["truth"]
    assert frame["label"].to_list() == found["truth"].to_list()
    assert 3 == len(frame.join(found, on="task"))


def test_estimates_convert_between_kinds() -> None:
    """An estimate from one kind of frame converts to the others, with typed labels; other rows are refused."""
    frame = pl.DataFrame({"task": [1, 2], "worker": ["u", "u"], "label": pl.Series(["y", "x"], dtype=pl.Categorical)})
    estimate = fitted(frame)

    assert ["y", "x"] == estimate.to_pandas()["truth"].tolist()
    assert "category" == estimate.to_pandas()["truth"].dtype
    assert pl.Categorical == estimate.to_polars().schema["truth"]
    assert ["worker", "ability", "reports"] == estimate.to_arrow("workers").column_names
    with pytest.raises(SettingsError, match="rows must be 'tasks' or 'workers'"):
        estimate.to_arrow("truths")  # type: ignore[arg-type]


def test_reports_without_a_frame_give_text() -> None:
    """Reports of arrays and files have labels as text, and the usual names."""
    estimate = MajorityVote().fit(Reports.from_arrays([1, 2], ["u", "u"], [True, False]))

    assert estimate.tasks_frame() == estimate.to_arrow() == estimate.to_frame(pa.table({}))


def test_a_task_column_named_as_a_result_is_called_task() -> None:
    """Results keep their names where the caller's column of tasks has one of them."""
    frame = pd.DataFrame({"confidence": [1, 2], "worker": [1, 1], "label": ["x", "y"]})

    assert ["task", "truth", "confidence"] == list(fitted(frame, task="confidence").to_frame(frame).columns)[:3]


def test_ordered_categories_are_the_alphabet() -> None:
    """An ordered column gives ordered labels, unused ones included; they are not a public list."""
    labels = pd.Categorical(["low", "high"], ["low", "middle", "high"], ordered=True)
    frame = pd.DataFrame({"task": [1, 2], "worker": [1, 1], "label": labels})

    reports = Reports.from_frame(frame)

    assert (("low", "middle", "high"), True) == (reports.alphabet.names, reports.alphabet.ordered)
    assert UNKNOWN == reports.asked
    assert ["low", "high"] == OrdinalDawidSkene().fit_predict(frame)["truth"].tolist()


def test_merged_labels_outside_the_original_categories_are_text() -> None:
    """Labels that the original type cannot hold are text, not missing."""
    frame = pd.DataFrame({"task": [1, 2], "worker": [1, 1], "label": pd.Categorical([" Yes", "no"])})

    assert ["Yes", "no"] == fitted(frame, merge_labels=True).to_frame(frame)["truth"].tolist()


def test_numbers_are_read_by_the_name_of_their_column() -> None:
    """`value=` reads numbers, `label=` labels, whatever the column is called."""
    frame = {"task": [1, 1], "worker": [1, 2], "score": [1, 2]}

    assert [1.5] == list(StudentT().fit(Reports.from_frame(frame, value="score")).truth)
    assert ("1", "2") == Reports.from_frame(frame, label="score").alphabet.names
    with pytest.raises(SettingsError, match="give label= for labels or value= for numbers"):
        Reports.from_frame(frame, label="score", value="score")


def test_a_named_column_must_exist() -> None:
    """A misspelt name is refused with the columns that there are; lists and names are not confused."""
    with pytest.raises(ReportsError, match=r"there is no column 'quest'.*'question', 'who', 'ok'"):
        Reports.from_frame(ROWS, task="quest")
    with pytest.raises(SettingsError, match="three columns"):
        Reports.from_frame(ROWS, task="who", worker="who", label="ok")
    with pytest.raises(SettingsError, match="names of columns must be text"):
        Reports.from_frame(pd.DataFrame([[1, 2, 3]]), task=0, worker=1, label=2)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=r"tasks must be the list of all tasks.*given as task="):
        Reports.from_frame(ROWS, tasks="question", worker="who", label="ok")


def test_a_relation_keeps_its_connection() -> None:
    """The result joins with tables of the same connection, enumerations keep their type, and no table is added; old
    versions of DuckDB keep a temporary view."""
    with duckdb.connect() as connection:
        connection.sql("CREATE TABLE answers (task INTEGER, worker VARCHAR, label ENUM ('no', 'yes'))")
        connection.sql("INSERT INTO answers VALUES (1, 'u', 'yes'), (2, 'u', 'no')")
        answers = connection.table("answers")
        found = fitted(answers).to_frame(answers)

        assert answers.types[::2] == found.types[:2]
        assert [(1, "yes"), (2, "no")] == sorted(found.join(answers, "task").project("task, truth").fetchall())
        names = {name for (name,) in connection.sql("SELECT table_name FROM information_schema.tables").fetchall()}
        assert {"answers"} == names - {"crowdveil_answers"}
