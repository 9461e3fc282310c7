"""Errors name the file and the row within it, in every form of answers."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from crowdveil import Categories, Reports
from crowdveil.answers.ingest.gold_files import load_gold_and_seed
from crowdveil.errors import ReportsError

GOOD = "task,worker,label\nq1,a,x\nq2,a,y\n"
LABEL_STUDIO = [
    {"id": 1, "data": {}, "annotations": [{"completed_by": 1, "result": [{"from_name": "q", "type": "choices",
     "value": {"choices": ["x"]}}]}]},
    {"id": 2, "data": {}, "annotations": [{"completed_by": None, "result": []}]},
]  # fmt: skip


def write(folder: Path, files: dict[str, str]) -> list[Path]:
    """Write files into a folder, in this order."""
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    return [folder / name for name in files]


@pytest.mark.parametrize(
    ("second", "text", "place"),
    [
        ("b.csv", "task,worker,label\nq1,b,x\n\nq2,b,\n", "b.csv, line 4: labels must not be empty"),
        ("b.tsv", "task\tworker\tlabel\nq1\tb\tx\n\tb\tx\n", "b.tsv, line 3: every row needs a task"),
        ("b.csv", "task,worker,label\nq1,b,x\nq1,b,x\n", "b.csv, line 3: a worker answers a task once"),
        ("b.csv", "task,worker,label\n'q1','b','x\ny'\n".replace("'", '"') + "q2,,x\n", "b.csv, line 4: every row"),
        ("b.jsonl", '{"task":"q1","worker":"b","label":"x"}\n{"task":"q2","worker":"b"}\n', "b.jsonl, row 2: labels"),
        ("b.csv", 'task,worker,label\nq1,b,x\nq2,b,"{""a"": 1}"\n', "b.csv, line 3: a label must be a text"),
    ],
)
def test_errors_in_several_files_name_the_file_and_its_line(tmp_path: Path, second: str, text: str, place: str) -> None:
    """A defect in the second file is at its own line, whatever the first file has."""
    files = write(tmp_path, {"a.csv": GOOD, second: text})

    with pytest.raises(ReportsError) as refused:
        Reports.from_source(*files)

    assert str(refused.value).startswith(str(tmp_path / place))


def test_defects_of_several_files_are_named_with_each_file(tmp_path: Path) -> None:
    """One rule that rows of two files break names both files, and another rule its own place."""
    files = write(tmp_path, {"a.csv": GOOD + "q3,a,\n", "b.csv": "task,worker,label\nq1,b,\n,b,x\n"})

    with pytest.raises(ReportsError) as refused:
        Reports.from_source(*files)

    assert f"Also: {tmp_path / 'a.csv'}, line 4; {tmp_path / 'b.csv'}, line 2: labels" in str(refused.value)
    assert str(refused.value).startswith(f"{tmp_path / 'b.csv'}, line 3: every row needs a task")


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("ls.json", json.dumps(LABEL_STUDIO), "ls.json, submission 2: every submission needs a worker"),
        (
            "toloka.tsv",
            "ASSIGNMENT:task_id\tASSIGNMENT:worker_id\tOUTPUT:q\nt1\ta\tx\n\nt2\t\ty\n",
            "toloka.tsv, line 4: every submission needs a worker",
        ),
        ("mturk.csv", "HITId,WorkerId,Answer.q\nh,a,x\nh,,y\n", "mturk.csv, line 3: every submission needs"),
    ],
)
def test_errors_in_exports_name_the_file_and_its_submission(tmp_path: Path, name: str, text: str, place: str) -> None:
    """Exports with one submission a row have lines, others numbers of submissions in the file."""
    first = text.splitlines()[0] + "\n" + text.splitlines()[1] if name != "ls.json" else json.dumps(LABEL_STUDIO[:1])
    files = write(tmp_path, {f"first-{name}": first.replace("h,a", "g,a").replace("t1", "t0"), name: text})

    with pytest.raises(ReportsError) as refused:
        Reports.from_source(*files, question="q")

    assert str(refused.value).startswith(str(tmp_path / place))


@pytest.mark.parametrize(
    ("text", "read", "place"),
    [
        (
            "task,worker,label,question\nq1,a,x,A\nq1,a,x,B\nq2,a,,A\n",
            lambda path: Reports.from_source(path, question="A"),
            "line 4: labels must not be empty",
        ),
        (
            "task,worker,label\nq1,a,NULL\nq2,a,x\nq3,a,z\n",
            lambda path: Reports.from_source(path, alphabet=Categories(("x", "y"))),
            "line 4: every label must be one of x, y",
        ),
        (
            'task,worker,label\nq1,a,"[""x"", ""y""]"\nq2,,"[""x""]"\n',
            lambda path: Reports.from_source(path),
            "line 3: every row needs a worker",
        ),
        (
            'task,worker,label\nq1,a,"[""x"", ""y""]"\n,b,"[""x""]"\n',
            lambda path: Reports.from_source(path),
            "line 3: every row needs a task",
        ),
        (
            "task,truth,seed\nq1,,7\nq2,x,7\nq2,y,7\n",
            lambda path: load_gold_and_seed(path),
            "line 4: a gold task has one truth",
        ),
    ],
)
def test_rows_that_are_kept_have_the_lines_of_the_file(
    tmp_path: Path, text: str, read: Callable[[Path], object], place: str
) -> None:
    """Rows of one question, with answers, of each choice, or with a truth are named by the line where they stand."""
    (path,) = write(tmp_path, {"table.csv": text})

    with pytest.raises(ReportsError) as refused:
        read(path)

    assert str(refused.value).startswith(f"{path}, {place}")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_repeated_columns_are_named_in_full(tmp_path: Path, suffix: str) -> None:
    """Columns that stand twice are listed by their whole names, even beyond the columns that a message shows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"c{number}" for number in range(30)] + ["task", "worker", "Label", "LABEL"]
    path = tmp_path / f"t.{suffix}"
    if suffix == "csv":
        path.write_text(",".join(names) + "\n" + ",".join("x" * len(names)) + "\n", "utf-8")
    else:
        pq.write_table(pa.table([pa.array(["x"])] * len(names), names), path)

    with pytest.raises(ReportsError, match="Found: the columns 'Label', 'LABEL'"):
        Reports.from_source(path)
