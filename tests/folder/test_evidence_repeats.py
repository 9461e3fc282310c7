"""Repeated (task, worker) pairs are refused by the rows of the file, unless a policy resolves them."""

import gzip
from pathlib import Path

import pytest

from crowdveil.errors import ReportsError
from crowdveil.folder.answers import read_answers
from crowdveil.folder.evidence import Reading, read_evidence

LINES = ["task,worker,label", *(f"t{task},w{task % 7},{'yes' if task % 2 else 'no'}" for task in range(30))]
AFTER = 20
"""Line of the file after which a row is repeated."""


def write(path: Path, *, earlier: str = "") -> Path:
    """Write a file in which the row after a line repeats that line."""
    lines = [*LINES[:1], *([earlier] if earlier else []), *LINES[1:AFTER], LINES[AFTER - 1], *LINES[AFTER:]]
    text = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.mark.parametrize("read", [read_evidence, read_answers])
@pytest.mark.parametrize("name", ["answers.csv", "answers.csv.gz"])
@pytest.mark.parametrize(("earlier", "line"), [("", AFTER + 1), ("t0,w0,NULL", AFTER + 2)])
def test_a_repeat_is_refused_by_its_line(tmp_path: Path, read, name: str, earlier: str, line: int) -> None:
    """The error names file and line; a row with NULL before it does not shift its number, and repeats no answer."""
    with pytest.raises(ReportsError, match=rf"{name}, line {line}: a worker answers a task once, but 1 rows"):
        read(write(tmp_path / name, earlier=earlier))


@pytest.mark.parametrize("policy", ["first", "last", "all"])
def test_other_policies_read_the_file(tmp_path: Path, policy) -> None:
    """Repeats that a policy resolves are no error."""
    reports = read_evidence(write(tmp_path / "answers.csv"), Reading(duplicates=policy)).reports

    assert len(LINES) - 1 + (policy == "all") == len(reports)
