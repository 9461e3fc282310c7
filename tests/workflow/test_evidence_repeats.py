"""Repeated (task, worker) pairs are refused before a large file is read, and rows are those of the file."""

import gzip
from pathlib import Path

import pytest

from crowdveil.errors import ReportsError
from crowdveil.workflow.evidence import Reading, read_evidence
from crowdveil.workflow.io import read_answers

LINES = ["task,worker,label", *(f"t{task},w{task % 7},{'yes' if task % 2 else 'no'}" for task in range(300))]
EARLY, LATE = 20, 290
"""Lines of the file after which a row is repeated; the first lies in the first part of the file."""


@pytest.fixture
def small_head(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count files from 1,000 bytes as large."""
    monkeypatch.setattr("crowdveil.data.ingest.csv_files.HEAD_BYTES", 1000)


def write(path: Path, after: int, *, earlier: str = "") -> Path:
    """Write a file in which the row after a line repeats that line."""
    lines = [*LINES[:1], *([earlier] if earlier else []), *LINES[1:after], LINES[after - 1], *LINES[after:]]
    text = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.mark.usefixtures("small_head")
@pytest.mark.parametrize("name", ["answers.csv", "answers.csv.gz"])
@pytest.mark.parametrize("read", [read_evidence, read_answers])
def test_an_early_repeat_is_refused_before_the_file_is_read(tmp_path: Path, name: str, read) -> None:
    """The error names file and row, and no part was read for the columns; a late repeat has the same error."""
    calls: list[int] = []
    path = write(tmp_path / name, EARLY)
    with pytest.raises(ReportsError, match=rf"{name}, row {EARLY}: a worker answers a task once"):
        read(path, progress=lambda done, _: calls.append(done))
    assert [] == calls

    write(path, LATE)
    with pytest.raises(ReportsError, match=rf"{name}, row {LATE}: a worker answers a task once"):
        read(path, progress=lambda done, _: calls.append(done))
    assert calls


@pytest.mark.usefixtures("small_head")
@pytest.mark.parametrize("after", [EARLY, LATE])
def test_rows_without_an_answer_are_counted(tmp_path: Path, after: int) -> None:
    """A row with NULL before the repeated one does not shift its number, and repeats no answer."""
    path = write(tmp_path / "answers.csv", after, earlier="t0,w0,NULL")

    with pytest.raises(ReportsError, match=rf"row {after + 1}: a worker answers a task once, but 1 rows"):
        read_evidence(path)


@pytest.mark.usefixtures("small_head")
@pytest.mark.parametrize("policy", ["first", "last", "all"])
def test_other_policies_read_the_file(tmp_path: Path, policy) -> None:
    """Repeats that a policy resolves are no error."""
    reports = read_evidence(write(tmp_path / "answers.csv", EARLY), Reading(duplicates=policy)).reports

    assert len(LINES) - 1 + (policy == "all") == len(reports)
