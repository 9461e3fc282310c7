"""Agreement, review and next answers of a frame: the same kind of frame, and the numbers of the commands."""

from collections.abc import Callable
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import crowdveil
from crowdveil import Categories, RandomizedResponse, Reports
from crowdveil.errors import SettingsError

ROWS = {"task": [1, 1, 1, 2, 2, 2, 3], "worker": [*"abcabc", "a"], "label": ["y", "y", "n", "n", "n", "n", "y"]}
CONNECTION = duckdb.connect()
"""Connection of all relations; with early versions they end with it."""
MAKERS = {
    "dict": lambda rows: rows,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "polars lazy": pl.LazyFrame,
    "arrow": pa.table,
    "duckdb": lambda rows: CONNECTION.from_arrow(pa.table(rows)),
}
CALLS: dict[str, Callable[..., Any]] = {
    "agreement": crowdveil.agreement,
    "review": crowdveil.review,
    "next_answers": lambda rows: crowdveil.next_answers(rows, budget=2),
}


def columns(frame: object) -> dict[str, list[Any]]:
    """Return a frame as lists by column."""
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, duckdb.DuckDBPyRelation):
        frame = frame.to_arrow_table()
    if isinstance(frame, pd.DataFrame):
        return {name: [None if one != one else one for one in frame[name].tolist()] for name in frame}
    if isinstance(frame, pl.DataFrame):
        return frame.to_dict(as_series=False)
    return frame.to_pydict() if isinstance(frame, pa.Table) else dict(frame)  # type: ignore[call-overload]


@pytest.mark.filterwarnings("ignore:Too few tasks")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", MAKERS)
def test_results_are_frames_of_the_same_kind(kind: str, call: str) -> None:
    """Each kind of frame gives its own kind, with equal numbers, and tasks as the integers that they were."""
    answers = MAKERS[kind](ROWS)
    found = CALLS[call](answers)

    assert type(answers) is type(found)
    assert columns(CALLS[call](ROWS)) == columns(found)
    assert all(isinstance(task, int) for task in columns(found).get("task", []))


@pytest.mark.filterwarnings("ignore:Too few tasks")
def test_columns_keep_the_names_of_the_answers() -> None:
    """Tasks and workers are under the names that the caller gave them."""
    answers = pd.DataFrame(ROWS).rename(columns={"task": "item", "worker": "annotator"})

    assert ["item", "annotator"] == list(crowdveil.next_answers(answers, budget=1).columns[:2])
    assert "annotator" == crowdveil.review(answers).columns[0]
    assert "annotator" == crowdveil.agreement(answers, with_workers=True)[1].columns[0]


def test_reports_through_a_channel_are_corrected_for_it() -> None:
    """With a channel the agreement of reports is that of the answers, and workers cannot be compared."""
    mechanism = RandomizedResponse(alphabet=Categories(("n", "y")), epsilon=20.0, participation="public")
    answers = Reports.from_frame(ROWS, alphabet=mechanism.alphabet)
    found = columns(crowdveil.agreement(answers, channel=mechanism.channel()))

    without = columns(crowdveil.agreement(ROWS))
    assert ["alpha, nominal", "kappa, Fleiss", "agreement"] == without["measure"]
    assert without["value"][::2] == pytest.approx(found["value"], abs=1e-4)
    with pytest.raises(SettingsError, match="workers cannot be compared"):
        crowdveil.agreement(answers, channel=mechanism.channel(), with_workers=True)


def test_new_workers_can_be_candidates() -> None:
    """A worker without an answer counts as an average one, and may be asked about any task."""
    found = columns(crowdveil.next_answers(ROWS, budget=3, candidates=["zoe"], per_worker=3))

    assert {"zoe"} == set(found["worker"])
    assert sorted(ROWS["task"][::3]) == sorted(found["task"])
    named = pd.DataFrame(ROWS).astype({"worker": "category"})
    assert {"zoe"} == set(crowdveil.next_answers(named, budget=3, candidates=["zoe"])["worker"])
    with pytest.raises(SettingsError, match="at least one worker"):
        crowdveil.next_answers(ROWS, budget=3, candidates=[])


def test_a_bound_that_is_no_ability_is_refused() -> None:
    """The bound of a review lies between 0 and 1."""
    with pytest.raises(SettingsError, match="between 0 and 1"):
        crowdveil.review(ROWS, below=1.5)


@pytest.mark.parametrize(("call", "name"), [("review", "ability"), ("agreement", "agreement")])
def test_a_column_of_the_answers_with_the_name_of_a_figure_changes_no_figure(call: str, name: str) -> None:
    """Integer workers in a column that is called as a figure of the result leave the figure as it is."""
    answers = {"task": [place // 2 for place in range(60)], "who": [10, 11] * 30, "label": list("ynnynyyynn") * 6}
    calls = {
        "review": lambda rows, worker: crowdveil.review(rows, worker=worker, below=0.99),
        "agreement": lambda rows, worker: crowdveil.agreement(rows, worker=worker, with_workers=True)[1],
    }
    usual = calls[call](pd.DataFrame(answers), "who")
    other = calls[call](pd.DataFrame(answers).rename(columns={"who": name}), name)

    assert usual[name].tolist() == other[name].tolist()
    assert len(usual) == 2


@pytest.mark.parametrize("kind", ["int8", "category"])
def test_names_beyond_the_type_of_the_answers_are_kept(kind: str) -> None:
    """A listed task that the column's type cannot hold is no other task, and none is lost."""
    frame = pd.DataFrame({"task": [1, 2], "worker": ["v", "w"], "label": ["n", "y"]}).astype({"task": kind})

    assert ["1", "2", "300"] == [str(task) for task in crowdveil.aggregate(frame, tasks=[1, 2, 300])["task"]]


def test_names_beyond_an_enumeration_are_kept() -> None:
    """The same for enumerations of Polars, and for DuckDB's."""
    rows = {"task": ["a", "b"], "worker": ["v", "w"], "label": ["n", "y"]}
    frame = pl.DataFrame(rows).with_columns(task=pl.col("task").cast(pl.Enum(["a", "b"])))
    relation = CONNECTION.sql(
        "SELECT task::ENUM('a', 'b') AS task, 'v' AS worker, label FROM (VALUES ('a', 'n'), ('b', 'y')) t(task, label)"
    )

    assert ["a", "b", "c"] == columns(crowdveil.aggregate(frame, tasks=["a", "b", "c"]))["task"]
    assert ["a", "b", "c"] == columns(crowdveil.aggregate(relation, tasks=["a", "b", "c"]))["task"]


def test_an_empty_list_of_answers_says_why() -> None:
    """Where every worker has answered every task, nothing is left to ask, and a warning says so."""
    votes = {"task": [1, 1, 2, 2], "worker": [*"vwvw"], "label": ["no", "no", "yes", "no"]}
    with pytest.warns(UserWarning, match="0 of 1,000: every worker who can be asked has answered every task"):
        found = crowdveil.next_answers(votes, budget=1000)

    assert [] == list(found["task"])


@pytest.mark.parametrize("kind", ["dict", "pandas", "polars", "arrow"])
def test_answers_of_one_label_agree(kind: str) -> None:
    """One label in all answers is no error: nothing is compared with chance, and workers agree fully."""
    cells = {"task": ["a", "a", "b", "b"], "worker": [*"vwvw"], "label": ["yes", "yes", "Yes ", "yes"]}
    frames = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table, "dict": dict}
    found, workers = crowdveil.agreement(frames[kind](cells), with_workers=True, merge_labels=True)

    assert 1.0 == columns(found)["value"][-1]
    assert all(value is None or value != value for value in columns(found)["value"][:-1])
    assert [1.0, 1.0] == list(columns(workers)["agreement"])


def test_level_of_agreement_is_checked() -> None:
    """A level is a number between 0 and 1; another one is refused."""
    many = {"task": [*range(12)] * 2, "worker": ["v"] * 12 + ["w"] * 12, "label": [*"abbabbabbabb", *"abababababab"]}
    wide, usual = (columns(crowdveil.agreement(many, level=level)) for level in (0.99, 0.9))

    assert wide["low"][0] < usual["low"][0]
    levels: tuple[Any, ...] = (0, 1, 95, "0.95")
    for level in levels:
        with pytest.raises(SettingsError, match="level"):
            crowdveil.agreement(ROWS, level=level)


def test_alpha_of_one_task_is_explained() -> None:
    """A warning says why alpha is 0."""
    with pytest.warns(UserWarning, match="Alpha of one task is 0 whenever its answers differ"):
        crowdveil.agreement({"task": [1, 1], "worker": [1, 2], "label": ["a", "b"]})
