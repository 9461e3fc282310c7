"""Warnings of `infer`, `data encode` and `perturb` about changed numbers and unread columns."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crowdveil.data.reports import Reports
from tests.cli.conftest import Run, RunJson

NUMBERS = "task,worker,value\na,u,7\na,v,-3\nb,u,2.5\nb,v,3\n"
CHANGES = (
    "2 answers outside the scale were clipped, such as task a, worker u, value 7.",
    "1 answer was rounded to the scale's grid.",
)


@pytest.mark.parametrize("words", [("infer",), ("data", "encode"), ("infer", "--kind", "numeric")])
def test_clipped_and_rounded_numbers_are_counted(words: tuple[str, ...], run: Run, run_json: RunJson) -> None:
    """Without a certificate numbers are put on the scale, and two warnings count those that were changed."""
    Path("far.csv").write_text(NUMBERS)

    data = run_json(*words, "far.csv", "--scale", "0:5", "--out", "found")
    table = " ".join(run(*words, "far.csv", "--scale", "0:5", "--out", "again").stdout.split())

    assert set(CHANGES) <= set(data["warnings"])
    assert all(change in table for change in CHANGES)
    if words == ("data", "encode"):
        assert [0, 5, 2, 3] == sorted(Reports.open("found").value.tolist(), key=[0, 5, 2, 3].index)


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("name", ["count", "Votes", "weight", "n"])
def test_a_column_of_repeated_votes_is_named(form: str, name: str, run_json: RunJson) -> None:
    """A column that may hold weights or repeated votes is not read, and a warning of one sentence names it."""
    table = pa.table({"task": ["a", "a", "b"], "worker": ["u", "v", "u"], "label": ["x", "y", "x"], name: [3, 1, 1]})
    if form == "parquet":
        pq.write_table(table, "counted.parquet")
    else:
        with open("counted.csv", "w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([table.column_names, *(row.values() for row in table.to_pylist())])

    warnings = run_json("infer", f"counted.{form}", "--out", "found")["warnings"]

    assert 1 == len([text for text in warnings if text.startswith(f"Not read: '{name}'.")])


def test_other_columns_are_left_unread_without_a_word(run_json: RunJson) -> None:
    """Times, and columns whose names only contain such a word, are no weights."""
    Path("timed.csv").write_text("task,worker,label,time,country\na,u,x,3,n\na,v,y,1,n\n")

    assert [] == [text for text in run_json("infer", "timed.csv", "--out", "f")["warnings"] if "Not read" in text]


def test_truths_outside_the_scale_guide_no_fit_and_are_counted_in_scores(
    run_json: RunJson, refusal: Callable[..., str]
) -> None:
    """Gold outside of the scale is refused; a score on it counts it."""
    rng = np.random.default_rng(1)
    rows = "".join(f"t{task},w{worker},{rng.integers(0, 10)}\n" for task in range(4) for worker in range(5))
    Path("grid.csv").write_text("task,worker,value\n" + rows)
    Path("far.csv").write_text("task,truth\nt0,50\nt1,3.5\nt2,-1\n")
    words = ("infer", "grid.csv", "--scale", "0:9")

    data = run_json(*words, "--score", "far.csv", "--out", "found")
    message = refusal(*words, "--gold", "far.csv", "--out", "other")

    assert 2 == data["score"]["outside"]
    assert "2 of 3 scored truths are outside the scale 0 to 9, which no estimate reaches." in data["warnings"]
    assert "2 gold truths: each must be on the scale from 0 to 9 to guide a fit" in message
    assert "50 of task 't0', -1 of task 't2'" in message
    assert not Path("other").exists()
