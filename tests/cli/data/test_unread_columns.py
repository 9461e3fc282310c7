"""Columns beside the answers that would change them if they were read, and are not: they are named."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import crowdveil as cv
from tests.cli.conftest import RunJson

CELLS = [(1, "a", "y"), (1, "b", "y"), (2, "a", "n"), (2, "b", "n")]
ROWS = [{"task": task, "worker": worker, "label": label, "Confidence": 0.9} for task, worker, label in CELLS]
SURE = "Not read: 'Confidence'. All answers count the same, however sure the workers were."
WRITERS: dict[str, Callable[[Path], Any]] = {
    "answers.csv": lambda path: pd.DataFrame(ROWS).to_csv(path, index=False),
    "answers.tsv": lambda path: pd.DataFrame(ROWS).to_csv(path, index=False, sep="\t"),
    "answers.csv.gz": lambda path: path.write_bytes(gzip.compress(pd.DataFrame(ROWS).to_csv(index=False).encode())),
    "answers.json": lambda path: path.write_text(json.dumps(ROWS)),
    "answers.jsonl": lambda path: path.write_text("\n".join(map(json.dumps, ROWS))),
    "answers.parquet": lambda path: pd.DataFrame(ROWS).to_parquet(path),
    "answers.arrow": lambda path: _write_arrow(path),
}
MAKERS: dict[str, Any] = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table, "dict": dict}


def _write_arrow(path: Path) -> None:
    table = pa.Table.from_pylist(ROWS)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", WRITERS)
def test_confidence_of_answers_is_named_in_each_form(name: str, run_json: RunJson) -> None:
    """A column of confidences is not read, and named: by `infer`, `agreement` and `perturb`, of any form of file."""
    WRITERS[name](Path(name))
    response = ("--mechanism", "randomized-response", "--epsilon", 2, "--seed", 4)

    assert f"{SURE} --weight Confidence uses it if it helps." in run_json("infer", name, "--out", "found")["warnings"]
    assert SURE in run_json("agreement", name)["warnings"]
    if "json" not in name:
        assert SURE in run_json("perturb", name, *response, "--out", "sent")["warnings"]


@pytest.mark.usefixtures("folder")
def test_confidence_is_named_in_several_files_once(run_json: RunJson) -> None:
    """Of several files each has such a column, or one of them: it is named once, and so are weights."""
    pd.DataFrame(ROWS[:2]).rename(columns={"Confidence": "certainty"}).to_csv("a.csv", index=False)
    pd.DataFrame(ROWS[2:]).rename(columns={"Confidence": "votes"}).assign(certainty=1).to_csv("b.csv", index=False)
    data = run_json("infer", "a.csv", "b.csv", "--out", "found")

    assert data["warnings"][-2:] == [
        "Not read: 'votes'. Each row counts as one answer of one worker.",
        "Not read: 'certainty'. All answers count the same, however sure the workers were. --weight "
        "certainty uses it if it helps.",
    ]


@pytest.mark.parametrize("kind", MAKERS)
def test_confidence_is_named_in_frames(kind: str) -> None:
    """A frame with a column of confidences has the same note."""
    columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    with pytest.warns(UserWarning, match="Not read: 'Confidence'"):
        cv.aggregate(MAKERS[kind](columns), "majority-vote")
