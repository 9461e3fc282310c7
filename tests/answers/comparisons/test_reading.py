"""Comparisons of frames, tables and exports, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from crowdveil.answers.comparisons.columns import ComparisonNames
from crowdveil.answers.comparisons.reading import comparisons_of_frame, comparisons_of_source
from crowdveil.answers.comparisons.values import Comparisons
from crowdveil.answers.sources.answer_source import open_source
from crowdveil.errors import ReportsError

COLUMNS = {
    "left": ["a", "b", "c", "a"],
    "right": ["b", "c", "a", "c"],
    "worker": ["ann", "bob", "ann", "bob"],
    "label": ["left", "c", "tie", "Right"],
}
CODES = [0, 2, 1, 2]


def from_text(folder: Path, text: str, names: ComparisonNames | None = None) -> Comparisons:
    """Return the comparisons of a CSV file with this text."""
    path = folder / "comparisons.csv"
    path.write_text(text, "utf-8")
    with open_source([str(path)]) as source:
        return comparisons_of_source(source, names or ComparisonNames())[0]


def refusal(folder: Path, text: str) -> str:
    """Return the message by which a CSV file with this text is refused."""
    with pytest.raises(ReportsError) as error:
        from_text(folder, text)
    return str(error.value)


@pytest.mark.parametrize("kind", [dict, pa.table, pd.DataFrame, pl.DataFrame])
def test_frames(kind: Any) -> None:
    """Frames of every kind give the same codes; an answer is a side, a tie, or the name of an item."""
    found, notes = comparisons_of_frame(kind(COLUMNS))

    assert (found.answer.tolist(), notes) == (CODES, ())
    assert found.items.tolist() == ["a", "b", "c"]
    assert found.workers.tolist() == ["ann", "bob"]
    assert found.left.tolist() == [0, 1, 2, 0]


def test_keys_of_folders_are_columns(tmp_path: Path) -> None:
    """Comparisons in folders by worker are those of one table; a key that is not read is named."""
    for worker in ("ann", "bob"):
        rows = [",".join(row) for row in zip(*COLUMNS.values(), strict=True) if row[2] == worker]
        folder = tmp_path / "day=1" / f"worker={worker}"
        folder.mkdir(parents=True)
        (folder / "1.csv").write_text("\n".join(["left,right,label", *(row.replace(f",{worker}", "") for row in rows)]))
    with open_source([str(tmp_path)]) as source:
        found, notes = comparisons_of_source(source)

    assert sorted(CODES) == sorted(found.answer.tolist())
    assert ["ann", "bob"] == found.workers.tolist()
    assert ("Not read: 'day', in the names of folders.",) == notes


def test_identifiers_keep_their_type() -> None:
    """Items that are whole numbers stay numbers; of mixed columns they become text."""
    rows = {"left": [1, 2], "right": [2, 3], "worker": [1, 1], "label": ["left", "3"]}

    assert comparisons_of_frame(rows)[0].items.tolist() == [1, 2, 3]
    assert comparisons_of_frame(rows | {"left": ["1", "2"]})[0].items.tolist() == ["1", "2", "3"]


def test_names_of_models() -> None:
    """Columns model_a, model_b, judge and winner are read, whose answers may be the names of the columns."""
    rows = {"model_a": ["x", "y"], "model_b": ["y", "z"], "judge": ["j", "j"], "winner": ["model_b", "tie (bothbad)"]}

    assert comparisons_of_frame(rows)[0].answer.tolist() == [2, 1]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json", "jsonl"])
def test_files(tmp_path: Path, suffix: str) -> None:
    """Text, Parquet and JSON give the same comparisons."""
    frame, path = pd.DataFrame(COLUMNS), tmp_path / f"comparisons.{suffix}"
    match suffix:
        case "csv":
            frame.to_csv(path, index=False, sep=";")
        case "parquet":
            frame.to_parquet(path)
        case _:
            frame.to_json(path, orient="records", lines=suffix == "jsonl")
    with open_source([str(path)]) as source:
        found = comparisons_of_source(source)[0]

    assert found.answer.tolist() == CODES
    assert found.items.tolist() == ["a", "b", "c"]


def test_several_files(tmp_path: Path) -> None:
    """Rows of several files are read one after the other, and errors name the file and its row."""
    for name, answers in (("one", COLUMNS["label"]), ("two", ["left", "d", "tie", "tie"])):
        pd.DataFrame(COLUMNS | {"label": answers}).to_csv(tmp_path / f"{name}.csv", index=False)
    with open_source([str(tmp_path / "one.csv"), str(tmp_path / "one.csv")]) as source:
        assert comparisons_of_source(source)[0].answer.tolist() == CODES * 2
    with (
        open_source([str(tmp_path / "one.csv"), str(tmp_path / "two.csv")]) as source,
        pytest.raises(ReportsError, match=r"two\.csv, line 3"),
    ):
        comparisons_of_source(source)


def test_lists(tmp_path: Path) -> None:
    """Items of one name in two lists are two items."""
    found = from_text(tmp_path, "list,left,right,worker,label\nq,a,b,w,left\np,a,b,w,right\nq,b,c,w,tie\n")

    assert (found.lists, found.items.tolist()) == (("p", "q"), ["a", "b", "a", "b", "c"])
    assert found.list_of_item.tolist() == [0, 0, 1, 1, 1]
    assert found.notes() == ()


def test_null_is_no_answer(tmp_path: Path) -> None:
    """Rows with NULL are left out, and a note counts them."""
    rows = {name: [*column, column[0]] for name, column in COLUMNS.items()}
    found, notes = comparisons_of_frame(rows | {"label": [*COLUMNS["label"], "NULL"]})

    assert found.answer.tolist() == CODES
    assert notes == ("No answer (NULL): 1 comparison.",)


def test_stated_columns(tmp_path: Path) -> None:
    """Columns of any name are read if they are stated."""
    names = ComparisonNames(left="first", right="second", worker="who", label="said")

    assert len(from_text(tmp_path, "first,second,who,said\na,b,w,a\n", names)) == 1


def test_label_studio(tmp_path: Path) -> None:
    """Pairwise answers of Label Studio have the items of the data of their task."""
    records = [
        {
            "id": task,
            "data": {"left": f"text {task}", "right": "text 9", "prompt": "p"},
            "annotations": [
                {"id": worker, "completed_by": worker,
                 "result": [{"type": "pairwise", "from_name": "better", "to_name": "t", "value": {"selected": side}}]}
                for worker, side in ((1, "left"), (2, "right"))
            ],
        }
        for task in (1, 2)
    ]  # fmt: skip
    path = tmp_path / "export.json"
    path.write_text(json.dumps(records), "utf-8")
    with open_source([str(path)]) as source:
        found, notes = comparisons_of_source(source)

    assert (found.answer.tolist(), found.items.tolist()) == ([0, 2, 0, 2], ["text 1", "text 2", "text 9"])
    assert "Label Studio" in notes[0]


def test_mechanical_turk(tmp_path: Path) -> None:
    """A batch of Mechanical Turk has the items among the inputs of its HITs; rejected answers are left out."""
    text = (
        "HITId,WorkerId,AssignmentStatus,Input.left,Input.right,Answer.better\n"
        "h1,w1,Approved,x,y,x\nh1,w2,Approved,x,y,right\nh2,w1,Rejected,x,z,x\nh2,w2,Approved,x,z,tie\n"
    )

    assert from_text(tmp_path, text).answer.tolist() == [0, 2, 1]


def test_reports_of_a_channel() -> None:
    """Reports are codes of the outputs of the channel, NULL among them."""
    found, _ = comparisons_of_frame(
        COLUMNS | {"label": ["right", "NULL", "left", "left"]}, outputs=("left", "right", "NULL")
    )

    assert found.answer.tolist() == [1, 2, 0, 0]


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        ("a,a,w,left\n", "line 2: an item cannot be compared with itself. Found: 'a'"),
        ("a,b,w,left\na,b,w,c\n", "line 3: the answer to a comparison must be left, tie or right"),
        ("a,b,w,1\n", "the name of one of its two items. Found: '1'"),
        ("left,right,w,left\nright,left,w,left\n", "line 3: an answer must not be both a side and the name"),
        ("", "a ranking needs at least one comparison"),
        ("a,,w,left\n", "every row needs a right item"),
        ("a,b,,left\n", "every row needs a worker"),
        ("a,b,w,A\n", "Spell it as the item 'a'"),
        ("a,b,w,equally good\n", "Write in the first of these rows left, tie, right, 'a' or 'b'"),
    ],
)
def test_refused_rows(tmp_path: Path, rows: str, rule: str) -> None:
    """An item against itself, an unknown winner, an ambiguous or missing cell and no row are refused."""
    assert rule in refusal(tmp_path, "left,right,worker,label\n" + rows)


def test_missing_columns_are_all_named(tmp_path: Path) -> None:
    """The refusal of a table names every role without a column."""
    message = refusal(tmp_path, "task,worker,label\n1,w,yes\n")

    assert "found none for the left, none for the right" in message


def test_groups_name_what_would_connect_them() -> None:
    """Items that no comparison connects are named, with a comparison that would connect them."""
    rows = {"left": ["a", "c"], "right": ["b", "d"], "worker": ["w", "w"], "label": ["left", "left"]}
    found = comparisons_of_frame(rows)[0]

    np.testing.assert_array_equal(found.group_of_item, [0, 0, 1, 1])
    assert "2 groups of items: 'a', 'b'; 'c', 'd'" in found.notes()[0]
    assert "compare 'a' with 'c'" in found.notes()[0]
