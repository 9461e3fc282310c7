"""Answers of a small crowd in every form that `perturb` reads: from nobody, from one worker, from all.

Each form is a writer of cells, label by (task, worker).
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
NOBODY: Cells = {}
ONE: Cells = {("t1", "w1"): "yes"}
EVERYBODY: Cells = {(task, worker): "yes" for task in TASKS for worker in WORKERS}
INPUTS: dict[str, Cells] = {
    "nobody": NOBODY,
    "one": ONE,
    "all": EVERYBODY,
    "all but one": {cell: label for cell, label in EVERYBODY.items() if cell not in ONE},
    "another": {**EVERYBODY, **dict.fromkeys(ONE, "no")},
}
COLUMNS = ("task", "worker", "label")


class Form(NamedTuple):
    """One form of answers: its writer, the end of its path, and the end of its source."""

    write: Write
    suffix: str
    source: str = ""


def _rows(cells: Cells) -> list[dict[str, Any]]:
    return [dict(zip(COLUMNS, (*cell, label), strict=True)) for cell, label in cells.items()]


def _delimited(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]], delimiter: str = ",") -> None:
    with open(path, "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, delimiter=delimiter).writerows([columns, *rows])


def _plain(path: Path, cells: Cells) -> None:
    _delimited(path, COLUMNS, [list(row.values()) for row in _rows(cells)], "\t" if path.suffix == ".tsv" else ",")


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


def _json(path: Path, cells: Cells) -> None:
    lines = map(json.dumps, _rows(cells))
    path.write_text("".join(f"{line}\n" for line in lines) if path.suffix == ".jsonl" else f"[{', '.join(lines)}]")


def _duckdb(path: Path, cells: Cells) -> None:
    with duckdb.connect(str(path)) as database:
        database.execute("CREATE TABLE answers (task TEXT, worker TEXT, label TEXT)")
        for row in _rows(cells):
            database.execute("INSERT INTO answers VALUES (?, ?, ?)", list(row.values()))


def _wide(path: Path, cells: Cells) -> None:
    rows = [[task, *(cells.get((task, worker), "") for worker in WORKERS)] for task in TASKS]
    _delimited(path, ("task", *WORKERS), rows)


FORMS = {
    "CSV": Form(_plain, ".csv"),
    "CSV with NULL": Form(_with_null, ".csv"),
    "gzipped CSV": Form(_zipped, ".csv.gz"),
    "TSV": Form(_plain, ".tsv"),
    "folder of CSV": Form(_folder, ""),
    "Parquet": Form(_parquet, ".parquet"),
    "Arrow": Form(_arrow, ".arrow"),
    "DuckDB": Form(_duckdb, ".duckdb", source="?answers"),
}
"""Every form of private answers by name."""
REFUSED = {
    "JSON": Form(_json, ".json"),
    "JSON lines": Form(_json, ".jsonl"),
    "CSV with a question": Form(_with_question, ".csv"),
    "wide table": Form(_wide, ".csv"),
}
"""Forms that must be imported first."""


def command(form: Form, options: str, given: str = "{input}") -> str:
    """Return the command line of `perturb` on a source in this form."""
    return f"crowdveil perturb {given}{form.source} --tasks tasks.csv --workers workers.csv {options}"


LISTS = {
    "tasks.csv": "task\n" + "".join(f"{task}\n" for task in TASKS),
    "workers.csv": "worker\n" + "".join(f"{worker}\n" for worker in WORKERS),
}
"""Public lists by the name of their file."""
