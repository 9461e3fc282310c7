"""Known truths, earlier workers and lists of names in every form that crowdveil writes."""

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from crowdveil.answers.write_reports import TABLE_FORMS
from tests.cli.conftest import Refusal, RunJson, rows, write

VOTE = ("--method", "majority-vote", "--out", "found")
OTHER_FORMS = ("gz", "arrow", "pandas", "polars")


def written_by_others(form: str, cells: dict[str, list[Any]]) -> str:
    """Write a table in a form that crowdveil reads and does not write; return its name."""
    frame = pd.DataFrame(cells)
    match form:
        case "gz":
            Path("other.jsonl.gz").write_bytes(gzip.compress(frame.to_json(orient="records", lines=True).encode()))
            return "other.jsonl.gz"
        case "arrow":
            table = pa.table(cells)
            with pa.OSFile("other.arrow", "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
            return "other.arrow"
        case "pandas":
            frame.astype(dict.fromkeys(cells, "category")).to_parquet("other.parquet")
            return "other.parquet"
    pl.DataFrame(cells).write_parquet("pl.parquet")
    return "pl.parquet"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("crowd", "methods"), [("labels", ()), ("numbers", ("--method", "student-t"))])
def test_written_truths_are_known_truths_in_each_form(crowd: str, methods: tuple[str, ...], run_json: RunJson) -> None:
    """Truths that infer wrote guide and score a fit alike, whatever their form."""
    found = {}
    for form in TABLE_FORMS:
        run_json("infer", f"{crowd}.csv", *methods, "--out", form, "--format", form)
        words = ("infer", f"{crowd}.csv", *methods, "--out", "found")
        scored = run_json(*words, "--score", f"{form}/truths.{form}")["score"]
        guided = run_json(*words, "--gold", f"{form}/truths.{form}")["gold_used"]
        found[form] = guided, scored["scored"], scored["error"]

    assert (20, 20, pytest.approx(0, abs=1e-9)) == found["csv"]
    assert dict.fromkeys(TABLE_FORMS, found["csv"]) == found


@pytest.mark.usefixtures("folder")
def test_written_workers_are_a_history_in_each_form(run_json: RunJson) -> None:
    """A folder or file of workers is a history alike in every form, with the labels of the truths beside it."""
    found: dict[str, Any] = {}
    for form in TABLE_FORMS:
        run_json("infer", "labels.csv", "--out", form, "--format", form)
        for history in (form, f"{form}/workers.{form}"):
            run_json("infer", "labels.csv", "--history", history, "--out", "found")
            found[history] = rows("found/workers.csv")
    run_json("infer", "labels.csv", "--out", "found")

    assert rows("found/workers.csv") != found["csv"]
    assert [found["csv"]] * len(found) == list(found.values())


@pytest.mark.usefixtures("folder")
def test_history_of_other_labels_is_refused_in_each_form(run_json: RunJson, refusal: Refusal) -> None:
    """The labels beside the workers are compared with those of the answers, whatever the form."""
    write("few.csv", "task,worker,label", *(f"{task},{worker},{task % 2}" for task in range(9) for worker in (1, 2, 3)))
    for form in TABLE_FORMS:
        run_json("infer", "few.csv", "--out", form, "--format", form)

        assert "the history must be of the same labels" in refusal("infer", "labels.csv", "--history", form, *VOTE[2:])


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("form", OTHER_FORMS)
def test_known_truths_of_other_programs_are_read(form: str, run_json: RunJson) -> None:
    """Tables of data frames, Arrow files and gzipped JSON lines are known truths, with whole numbers as tasks."""
    write("few.csv", "task,worker,label", *(f"{task},{worker},{task % 2}" for task in range(9) for worker in "abc"))
    gold = written_by_others(form, {"task": [1, 2, 3], "truth": [1, 0, 0]})

    assert 3 == run_json("infer", "few.csv", "--gold", gold, *VOTE[2:])["gold_used"]
    assert pytest.approx(1 / 3) == run_json("infer", "few.csv", "--score", gold, *VOTE)["score"]["error"]


@pytest.mark.usefixtures("folder")
def test_damaged_known_truths_name_file_and_row(refusal: Refusal) -> None:
    """An empty truth, a list as a truth, two truths of a task and a missing column are refused with the file."""
    record = {"task": "1", "truth": "yes"}
    for text, said in (
        ([record, {"task": "2", "truth": None}], "gold.json, row 2: every gold task needs a truth. Found: nothing"),
        ([record, {"task": "2", "truth": ["a"]}], "gold.json, row 2: a truth must be a text or a number"),
        ([record, record | {"truth": "no"}], "gold.json, row 2: a gold task has one truth"),
        ([{"name": "1"}], "gold.json: exactly one column for the task is needed, 0 were found"),
        ([1], "gold.json: the file must hold at least one record"),
    ):
        Path("gold.json").write_text(json.dumps(text))
        for option in ("--gold", "--score"):
            assert said in refusal("infer", "labels.csv", option, "gold.json", "--out", "none")

    assert not Path("none").exists()


@pytest.mark.usefixtures("folder")
def test_lists_of_tasks_and_workers_are_read_in_each_form(run_json: RunJson) -> None:
    """Lists of tasks and workers may be Parquet or JSON, such as the truths and workers that infer wrote."""
    found = []
    for form in TABLE_FORMS:
        run_json("infer", "labels.csv", "--out", form, "--format", form)
        lists = ("--tasks", f"{form}/truths.{form}", "--workers", f"{form}/workers.{form}")
        drawn = ("data", "assign", *lists, "--per-task", 2, "--out", f"{form}.csv")
        found.append(run_json(*drawn)["cells"])

    assert [40] * len(TABLE_FORMS) == found
