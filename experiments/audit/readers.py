"""Answers of a small crowd in every form that `perturb` reads: from nobody, from one worker, from all.

Each form is a writer of cells, label by (task, worker), and the options that its reader needs with public lists.
"""

import csv
import gzip
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

Cells = Mapping[tuple[str, str], str]
Write = Callable[[Path, Cells], None]
TASKS, WORKERS, LABELS = ("t1", "t2"), ("w1", "w2"), ("no", "yes")
CHOICES = {"no": ["a"], "yes": ["a", "b"]}
"""Several choices in place of a label."""
NOBODY: Cells = {}
ONE: Cells = {("t1", "w1"): "yes"}
EVERYBODY: Cells = {(task, worker): "yes" for task in TASKS for worker in WORKERS}
INPUTS: dict[str, Cells] = {
    "nobody": NOBODY,
    "one": ONE,
    "all": EVERYBODY,
    "all but one": {cell: label for cell, label in EVERYBODY.items() if cell not in ONE},
    "another": EVERYBODY | dict.fromkeys(ONE, "no"),
}
COLUMNS = ("task", "worker", "label")
STATED = "--task-column task --worker-column worker --label-column label"
STATED_VALUES = STATED.replace("label", "value")


class Form(NamedTuple):
    """One form of answers: its writer, the end of its path, options of its reader, and the end of its source."""

    write: Write
    suffix: str
    options: str = ""
    source: str = ""
    tasks: Sequence[str] = TASKS


def _rows(cells: Cells) -> list[dict[str, Any]]:
    return [dict(zip(COLUMNS, (*cell, label), strict=True)) for cell, label in cells.items()]


def _delimited(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]], delimiter: str = ",") -> None:
    with open(path, "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, delimiter=delimiter).writerows([columns, *rows])


def _plain(path: Path, cells: Cells) -> None:
    _delimited(path, COLUMNS, [row.values() for row in _rows(cells)], "\t" if path.suffix == ".tsv" else ",")  # type: ignore[misc]


def _with_null(path: Path, cells: Cells) -> None:
    every = [(task, worker, cells.get((task, worker), "NULL")) for task in TASKS for worker in WORKERS]
    _delimited(path, COLUMNS, every)


def _with_question(path: Path, cells: Cells) -> None:
    _delimited(path, ("question", *COLUMNS), [("q", *row.values()) for row in _rows(cells)])


def _zipped(path: Path, cells: Cells) -> None:
    _plain(path, cells)
    path.write_bytes(gzip.compress(path.read_bytes(), mtime=0))


def _folder(path: Path, cells: Cells) -> None:
    path.mkdir()
    for worker in WORKERS:
        _plain(path / f"{worker}.csv", {cell: label for cell, label in cells.items() if cell[1] == worker})


def _table(cells: Cells) -> pa.Table:
    return pa.table({name: [row[name] for row in _rows(cells)] for name in COLUMNS})


def _parquet(path: Path, cells: Cells) -> None:
    pq.write_table(_table(cells), path)


def _arrow(path: Path, cells: Cells) -> None:
    table = _table(cells)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write records as JSON, or as JSON lines by the end of the name."""
    lines = map(json.dumps, records)
    path.write_text("".join(f"{line}\n" for line in lines) if path.suffix == ".jsonl" else f"[{', '.join(lines)}]")


def _json(path: Path, cells: Cells) -> None:
    _records(path, _rows(cells))


def _duckdb(path: Path, cells: Cells) -> None:
    with duckdb.connect(str(path)) as database:
        database.execute("CREATE TABLE answers (task TEXT, worker TEXT, label TEXT)")
        for row in _rows(cells):
            database.execute("INSERT INTO answers VALUES (?, ?, ?)", list(row.values()))


def _label_studio(content: Callable[[str], list[str]]) -> Write:
    def write(path: Path, cells: Cells) -> None:
        found = {task: [(own, label) for (one, own), label in cells.items() if one == task] for task in TASKS}
        result = {"from_name": "q", "type": "choices"}
        _records(
            path,
            [
                {
                    "id": task,
                    "data": {"text": task},
                    "annotations": [
                        {"completed_by": worker, "result": [result | {"value": {"choices": content(label)}}]}
                        for worker, label in given
                    ],
                }
                for task, given in found.items()
            ],
        )

    return write


def _label_studio_flat(path: Path, cells: Cells) -> None:
    _delimited(
        path,
        ("annotation_id", "annotator", "id", "q", "text"),
        [(f"{task}{worker}", worker, task, label, "seen") for (task, worker), label in cells.items()],
    )


def _argilla(path: Path, cells: Cells) -> None:
    given = {task: [(own, label) for (one, own), label in cells.items() if one == task] for task in TASKS}
    _records(
        path,
        [
            {
                "id": task,
                "fields": {"text": task},
                "responses": {"q": [{"value": label, "user_id": own} for own, label in own]} if own else {},
            }
            for task, own in given.items()
        ],
    )


def _argilla_flat(path: Path, cells: Cells) -> None:
    given = {task: [(own, label) for (one, own), label in cells.items() if one == task] for task in TASKS}
    _records(
        path,
        [
            {"id": task, "text": task}
            | ({"q.responses": [label for _, label in own], "q.responses.users": [w for w, _ in own]} if own else {})
            for task, own in given.items()
        ],
    )


def _toloka(path: Path, cells: Cells) -> None:
    names = ("INPUT:x", "OUTPUT:q", "ASSIGNMENT:task_id", "ASSIGNMENT:worker_id", "ASSIGNMENT:status")
    rows = [("x", label, task, worker, "APPROVED") for (task, worker), label in cells.items()]
    _delimited(path, names, rows, "\t")


def _mturk(path: Path, cells: Cells) -> None:
    """Write a batch with a text in `category.q`, a name that could also be the option `q` of a question `category`."""
    every = [(task, worker, "Approved", cells.get((task, worker), "")) for task in TASKS for worker in WORKERS]
    _delimited(path, ("HITId", "WorkerId", "AssignmentStatus", "Answer.category.q"), every)


def _mturk_boxes(path: Path, cells: Cells) -> None:
    every = [(task, worker, CHOICES.get(cells.get((task, worker), ""), [])) for task in TASKS for worker in WORKERS]
    rows = [(task, worker, "Approved", "|".join(ticked)) for task, worker, ticked in every]
    _delimited(path, ("HITId", "WorkerId", "AssignmentStatus", "Answer.q"), rows)


def _pybossa(path: Path, cells: Cells) -> None:
    _records(path, [{"task_id": task, "user_id": own, "info": {"q": label}} for (task, own), label in cells.items()])


def _pybossa_table(path: Path, cells: Cells) -> None:
    names = ("taskrun__task_id", "taskrun__user_id", "taskrun__user_ip", "taskrun__info__q")
    _delimited(path, names, [(task, worker, "192.0.2.7", label) for (task, worker), label in cells.items()])


def _prodigy(path: Path, cells: Cells) -> None:
    rows = [
        {"_task_hash": task, "_annotator_id": worker, "options": [], "accept": [label], "answer": "accept"}
        for (task, worker), label in cells.items()
    ]
    _records(path, rows)


def _doccano(path: Path, cells: Cells) -> None:
    path.mkdir()
    for worker in WORKERS:
        labels = {task: [cells[task, worker]] if (task, worker) in cells else [] for task in TASKS}
        rows = [{"id": task, "text": task, "label": own} for task, own in labels.items()]
        _records(path / f"{worker}.jsonl", rows)


def _wide(path: Path, cells: Cells) -> None:
    rows = [[task, *(cells.get((task, worker), "") for worker in WORKERS)] for task in TASKS]
    _delimited(path, ("task", *WORKERS), rows)


_ASKED = "--question q"
_SEVERAL = tuple(f"{task}|{choice}" for task in TASKS for choice in "ab")
FORMS = {
    "CSV": Form(_plain, ".csv"),
    "CSV with NULL": Form(_with_null, ".csv"),
    "CSV with a question": Form(_with_question, ".csv", _ASKED),
    "gzipped CSV": Form(_zipped, ".csv.gz"),
    "TSV": Form(_plain, ".tsv"),
    "folder of CSV": Form(_folder, ""),
    "Parquet": Form(_parquet, ".parquet"),
    "Arrow": Form(_arrow, ".arrow"),
    "JSON": Form(_json, ".json", STATED),
    "JSON lines": Form(_json, ".jsonl", STATED),
    "DuckDB": Form(_duckdb, ".duckdb", source="?answers"),
    "Label Studio": Form(_label_studio(lambda label: [label]), ".json", _ASKED),
    "Label Studio, several choices": Form(_label_studio(CHOICES.__getitem__), ".json", _ASKED, tasks=_SEVERAL),
    "Label Studio, CSV": Form(_label_studio_flat, ".csv", _ASKED),
    "Argilla": Form(_argilla, ".json", _ASKED),
    "Argilla, flat": Form(_argilla_flat, ".json", _ASKED),
    "Toloka": Form(_toloka, ".tsv", _ASKED),
    "Mechanical Turk": Form(_mturk, ".csv", "--question category.q"),
    "Mechanical Turk, boxes": Form(_mturk_boxes, ".csv", _ASKED, tasks=_SEVERAL),
    "PyBossa": Form(_pybossa, ".json", _ASKED),
    "PyBossa, CSV": Form(_pybossa_table, ".csv", _ASKED),
    "Prodigy": Form(_prodigy, ".jsonl", "--question choice"),
    "doccano": Form(_doccano, "", "--question label"),
    "wide table": Form(_wide, ".csv"),
}
"""Every form by name."""


def command(form: Form, options: str, given: str = "{input}") -> str:
    """Return the command line of `perturb` on a source in this form."""
    lists = "--tasks choices.csv" if form.tasks is _SEVERAL else "--tasks tasks.csv"
    return f"crowdveil perturb {given}{form.source} {lists} --workers workers.csv {options} {form.options}"


LISTS = {
    "tasks.csv": "task\n" + "".join(f"{task}\n" for task in TASKS),
    "choices.csv": "task\n" + "".join(f"{task}\n" for task in _SEVERAL),
    "workers.csv": "worker\n" + "".join(f"{worker}\n" for worker in WORKERS),
}
"""Public lists by the name of their file."""
