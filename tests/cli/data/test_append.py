"""Daily arrivals: `data encode --append`, what `infer` makes of it, and fits that go on."""

import csv
import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from crowdveil.files.filesystem import folder_lock
from tests.cli.conftest import Refusal, Run, RunJson

SCHEMA = Path(__file__).parents[3] / "docs" / "reference" / "schemas" / "crowdveil-json-1.json"


def rows_of(path: str) -> dict[str, list[str]]:
    """Return the rows of a table of results by the name in their first column."""
    with open(path, newline="") as stream:
        return {row[0]: row[1:] for row in list(csv.reader(stream))[1:]}


def split(kept: range) -> None:
    """Write the answers to some tasks as `old.csv`, and the others as `new.csv`."""
    header, *rows = Path("labels.csv").read_text().splitlines()
    parts: dict[str, list[str]] = {"old": [], "new": []}
    for row in rows:
        parts["old" if int(row.split(",")[0]) in kept else "new"].append(row)
    for name, lines in parts.items():
        Path(f"{name}.csv").write_text("\n".join([header, *lines]) + "\n")


def append_days(run: Run, kept: range) -> None:
    """Encode the two parts one after the other as `blocks`, and both at once as `once`."""
    split(kept)
    run("data", "encode", "old.csv", "--out", "blocks")
    run("data", "encode", "new.csv", "--append", "--out", "blocks")
    run("data", "encode", "old.csv", "new.csv", "--out", "once")


def assert_close(first: str, second: str) -> None:
    """Hold two tables of results to each other by name, up to rounding in the last digits."""
    one, other = rows_of(first), rows_of(second)
    assert one.keys() == other.keys()
    for name, cells in one.items():
        numbers = [[float(cell) for cell in row if cell.replace(".", "", 1).isdigit()] for row in (cells, other[name])]
        assert numbers[1] == pytest.approx(numbers[0], abs=1e-9)
        assert cells[0] == other[name][0] or numbers[0]


@pytest.mark.parametrize("method", ["hierarchical-dawid-skene", "dawid-skene", "majority-vote"])
def test_results_are_those_of_all_files_at_once(run: Run, method: str) -> None:
    """Truths and workers of blocks that grew are, by name, those of all rows, whatever day they came."""
    append_days(run, range(7, 15))
    for folder in ("blocks", "once"):
        run("infer", folder, "--method", method, "--out", f"of-{folder}")

    for table in ("truths.csv", "workers.csv"):
        assert_close(f"of-blocks/{table}", f"of-once/{table}")


def test_results_in_the_same_order_have_the_same_bytes(run: Run) -> None:
    """If the first files name all workers and the first tasks, the files of results are equal to the last byte."""
    header, *rows = (row.split(",", 2) for row in Path("labels.csv").read_text().splitlines())
    padded = [f"{int(task):03},{int(worker):03},{label}" for task, worker, label in rows]
    Path("labels.csv").write_text("\n".join([",".join(header), *padded]) + "\n")
    append_days(run, range(1, 13))
    for folder in ("blocks", "once"):
        run("infer", folder, "--out", f"of-{folder}")

    for table in ("truths.csv", "workers.csv"):
        assert Path("of-once", table).read_bytes() == Path("of-blocks", table).read_bytes()


@pytest.mark.parametrize("method", ["hierarchical-dawid-skene", "dawid-skene", "one-coin"])
def test_fits_go_on_after_an_append(run: Run, run_json: RunJson, method: str) -> None:
    """A fit saved before new tasks and workers arrived starts the next one: old ones by name, new ones as ever."""
    split(range(1, 17))
    words = ("infer", "blocks", "--method", method, "--out")
    run("data", "encode", "old.csv", "--out", "blocks")
    run(*words, "monday", "--save-fit", "crowd.fit")
    extra = "".join(f"{task},new-{task % 2},no\n" for task in range(17, 20))
    Path("new.csv").write_text(Path("new.csv").read_text() + extra)
    run("data", "encode", "new.csv", "--append", "--out", "blocks")
    scratch = run_json(*words, "scratch")
    resumed = run_json(*words, "resumed", "--start-from", "crowd.fit", "--save-fit", "crowd.fit")

    assert resumed["steps"] < scratch["steps"]
    truths = [{name: row[0] for name, row in rows_of(f"{name}/truths.csv").items()} for name in ("scratch", "resumed")]
    assert truths[0] == truths[1]
    assert {"new-0", "new-1"} <= rows_of("resumed/workers.csv").keys()


def test_the_output_says_what_was_added(run: Run, run_json: RunJson) -> None:
    """Output and JSON count what the blocks have more than before; the JSON follows its schema."""
    split(range(1, 17))
    run("data", "encode", "old.csv", "--out", "blocks")
    document = run_json("data", "encode", "new.csv", "--append", "--out", "blocks")
    schema = json.loads(SCHEMA.read_text("utf-8"))
    Draft202012Validator({"$ref": "#/$defs/data-encode", "$defs": schema["$defs"]}).validate(document)

    assert 4 == document["added"]["tasks"]
    assert 0 == document["added"]["workers"]
    assert all(Path(path).is_file() for path in document["files"])
    Path("late.csv").write_text("task,worker,label\n77,new,no\n")
    assert (
        "added    1 report, 1 task, 1 worker" in run("data", "encode", "late.csv", "--append", "--out", "blocks").stdout
    )


def test_an_append_that_waits_for_another_ends_with_75(run: Run) -> None:
    """A scheduler reads from the exit code that another append runs; the next try succeeds."""
    split(range(1, 17))
    run("data", "encode", "old.csv", "--out", "blocks")
    words = ("data", "encode", "new.csv", "--append", "--out", "blocks")
    with folder_lock(Path("blocks")):
        run(*words, code=75)

    run(*words)


def test_refusals_name_the_option_that_helps(run: Run, refusal: Refusal) -> None:
    """A repeated answer, a new label and an absent folder are refused with a way out in words of the command line."""
    split(range(1, 17))
    append = ("--append", "--out", "blocks")
    assert "Encode the first files without --append" in refusal("data", "encode", "new.csv", *append)
    run("data", "encode", "old.csv", "--out", "blocks")
    Path("t.csv").write_text("task,worker,label\n" + Path("old.csv").read_text().splitlines()[1] + "\n")
    assert "--duplicates last" in refusal("data", "encode", "t.csv", *append)
    Path("t.csv").write_text("task,worker,label\n1,new,perhaps\n")
    assert "The labels of the blocks are --labels" in refusal("data", "encode", "t.csv", *append)
    run("data", "encode", "t.csv", *append, "--replace", code=2)


def test_blocks_that_grew_can_be_replaced(run: Run, run_json: RunJson) -> None:
    """After appends, --replace removes all columns of the folder and writes new ones under their first names."""
    append_days(run, range(1, 17))
    data = run_json("data", "encode", "old.csv", "--out", "blocks", "--replace")

    assert "blocks/worker-1.i32" in data["replaced"]
    assert {Path(path).name for path in data["files"]} == {path.name for path in Path("blocks").glob("[!.]*")}
