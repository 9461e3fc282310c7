"""Encoded blocks with valid checksums and invalid contents: refused."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from crowdveil.answers.identifiers import read_identifiers
from crowdveil.answers.reports import Reports
from crowdveil.answers.store_manifest import DATA_FILES, INDEX_FILE, MANIFEST_FILE, MAX_PIECE_BYTES, WORKER_FILE
from crowdveil.errors import ReportsError
from tests.files.mutations import reseal, write_sealed

ROOT = Path(__file__).parent.parent.parent
TASKS = [f"t{number}" for number in range(50)]
MUTATIONS = 300


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of 50 reports on as many tasks by 7 workers."""
    workers = [f"w{number % 7}" for number in range(50)]
    Reports.from_arrays(TASKS, workers, ["x", "y"] * 25).save(tmp_path / "blocks")
    return tmp_path / "blocks"


def manifest_of(folder: Path) -> dict:
    """Return the fields of `blocks.json`."""
    return json.loads((folder / MANIFEST_FILE).read_bytes())


@pytest.mark.slow
def test_no_change_of_a_folder_ends_in_a_crash(folder) -> None:
    """Of 300 folders changed at random under fitting checksums, each is read or refused by a ReportsError."""
    command = [sys.executable, "-m", "tests.files.mutations", str(folder), str(MUTATIONS)]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stderr)
    found = json.loads(done.stdout)
    assert found["refused"] + found["read"] == MUTATIONS
    assert min(found.values()) >= 10


@pytest.mark.slow
@pytest.mark.parametrize("offset", [10**12, -8, 0, 2**63 - 1])
def test_an_offset_that_leaves_the_names_is_refused_by_the_command(folder, offset) -> None:
    """An offset of a name that is too large, negative or decreasing ends in one line and exit code 1."""
    offsets = np.cumsum([0, *(len(name) for name in sorted(TASKS))]).astype("<i8")
    changed = offsets.copy()
    changed[20] = offset
    data = (folder / "tasks.arrow").read_bytes()
    assert data.count(offsets.tobytes()) == 1
    (folder / "tasks.arrow").write_bytes(data.replace(offsets.tobytes(), changed.tobytes()))
    reseal(folder, manifest_of(folder))

    done = subprocess.run(
        [sys.executable, "-m", "crowdveil", "infer", str(folder)], capture_output=True, text=True, check=False
    )

    assert (1, "") == (done.returncode, done.stdout)
    assert "tasks.arrow: a file of names must hold distinct names" in done.stderr
    assert "Offset invariant failure" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (folder / "truths.csv").exists()


def entries(size: object, checksums: list) -> dict:
    """Return one and the same entry for every file of a folder."""
    return {name: {"bytes": size, "crc32": checksums} for name in DATA_FILES}


ODD_FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "files is a list": ({"files": list(DATA_FILES)}, "'files' must hold exactly"),
    "files names another file": ({"files": {"../x": {"bytes": 0, "crc32": []}}}, "'files' must hold exactly"),
    "an entry is a number": ({"files": dict.fromkeys(DATA_FILES, 3)}, "must hold bytes and a list crc32"),
    "a size is true": ({"files": entries(True, [])}, "whole number.*True"),
    "a size is negative": ({"files": entries(-1, [])}, "whole number.*-1"),
    "a size is huge": ({"files": entries(2**70, [])}, "whole number"),
    "too many checksums": ({"files": entries(8, [1, 2])}, "a checksum for every"),
    "a checksum is text": ({"files": entries(8, ["1"])}, "whole number"),
    "reports is text": ({"reports": "50"}, "'reports' must be a whole number"),
    "tasks is null": ({"tasks": None}, "'tasks' must be a whole number"),
    "workers beyond codes": ({"workers": 2**31}, "'workers' must be a whole number"),
    "pieces of nothing": ({"piece_bytes": 0}, "'piece_bytes' must be a multiple of 8"),
    "pieces of half a number": ({"piece_bytes": 12}, "'piece_bytes' must be a multiple of 8"),
    "pieces beyond memory": ({"piece_bytes": 2**60}, "'piece_bytes' must be a whole number from 0 to"),
    "repeats is a number": ({"repeats": 1}, "'repeats' must be true or false"),
    "half a surrogate pair": (
        {"alphabet": {"kind": "categories", "names": ["x", "\ud800"], "ordered": False}},
        "written in UTF-8",
    ),
    "an alphabet of one": (
        {"alphabet": {"kind": "categories", "names": ["x"], "ordered": False}},
        "2 to 1024 labels",
    ),
    "an alphabet is text": ({"alphabet": "xy"}, "described as a scale or as categories"),
}


@pytest.mark.parametrize("name", ODD_FIELDS)
def test_odd_fields_of_a_manifest_are_refused(folder, name) -> None:
    """A field of the wrong type or out of range is refused with its name though the seal fits."""
    changes, rule = ODD_FIELDS[name]
    write_sealed(folder, manifest_of(folder) | changes)

    with pytest.raises(ReportsError, match=rule) as caught:
        Reports.open(folder)
    assert caught.value.source == str(folder / MANIFEST_FILE)
    assert "crowdveil data encode" in caught.value.hint


def test_memory_follows_the_file_and_not_the_manifest(folder) -> None:
    """Names in one piece of the largest size are read where no memory of that size is left."""
    reseal(folder, manifest_of(folder) | {"piece_bytes": MAX_PIECE_BYTES})
    program = f"""
import tracemalloc
from crowdveil.answers.reports import Reports
tracemalloc.start()
assert len(Reports.open({str(folder)!r}).worker) == 50
print(tracemalloc.get_traced_memory()[1] < {MAX_PIECE_BYTES} // 8)
"""

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert ("", "True\n") == (done.stderr, done.stdout)


def write_column_of(folder: Path, name: str, numbers: list[int], dtype: str) -> None:
    """Write other numbers into a file of the folder, under fitting checksums."""
    (folder / name).write_bytes(np.array(numbers, dtype=dtype).tobytes())
    reseal(folder, manifest_of(folder))


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return a folder of 2 reports on each of 3 tasks by 4 workers."""
    task, worker = ["a", "a", "b", "b", "c", "c"], ["u", "v", "v", "w", "w", "x"]
    Reports.from_arrays(task, worker, ["x", "y"] * 3).save(tmp_path / "small")
    return tmp_path / "small"


ODD_ROWS = {
    "a worker twice on a task": (WORKER_FILE, [0, 0, 1, 2, 2, 3], "<i4"),
    "workers that descend": (WORKER_FILE, [1, 0, 1, 2, 2, 3], "<i4"),
    "pointers that move rows to another task": (INDEX_FILE, [0, 3, 4, 6], "<i8"),
    "all rows on the last task": (INDEX_FILE, [0, 0, 0, 6], "<i8"),
}


@pytest.mark.parametrize("use", ["blocks", "worker"])
@pytest.mark.parametrize("name", ODD_ROWS)
def test_rows_that_repeat_a_pair_or_are_unsorted_are_refused(small, name, use) -> None:
    """A worker has one report on a task, and workers ascend, also under fitting checksums, whatever uses the rows."""
    write_column_of(small, *ODD_ROWS[name])

    with pytest.raises(ReportsError, match=r"worker\.i32.*do not ascend, or one repeats"):
        {
            "blocks": lambda: list(Reports.open(small).blocks(2)),
            "worker": lambda: Reports.open(small).worker,
        }[use]()


def test_order_is_checked_across_pieces(small) -> None:
    """Rows of a task that lie in two pieces are compared, and those before a task that begins a piece are not."""
    reseal(small, manifest_of(small) | {"piece_bytes": 8})
    write_column_of(small, WORKER_FILE, [2, 3, 1, 2, 0, 1], "<i4")
    assert [2, 3, 1, 2, 0, 1] == Reports.open(small).worker.tolist()
    write_column_of(small, INDEX_FILE, [0, 1, 4, 6], "<i8")

    with pytest.raises(ReportsError, match="piece 2: the workers on a task do not ascend"):
        list(Reports.open(small).blocks())


def test_repeated_pairs_that_were_kept_are_read(tmp_path) -> None:
    """Blocks of reports that keep repeated pairs are read; still, workers must ascend in them."""
    every = Reports.from_arrays(["a"] * 3, ["u", "u", "v"], ["x", "y", "x"], duplicates="all")
    every.save(tmp_path / "every")

    assert [0, 0, 1] == Reports.open(tmp_path / "every").worker.tolist()
    write_column_of(tmp_path / "every", WORKER_FILE, [0, 1, 0], "<i4")
    with pytest.raises(ReportsError, match=r"do not ascend\b"):
        list(Reports.open(tmp_path / "every").blocks())


def not_utf8() -> pa.Array:
    """Return text whose bytes are not UTF-8."""
    offsets = pa.py_buffer(np.array([0, 1, 2], dtype="<i8").tobytes())
    return pa.LargeStringArray.from_buffers(2, offsets, pa.py_buffer(b"a\xff"))


BAD_NAMES = {
    "missing": (pa.array(["a", None], pa.large_string()), "1 missing names"),
    "empty": (pa.array(["", "a"], pa.large_string()), "an empty name"),
    "repeated": (pa.array(["b", "a", "b"], pa.large_string()), "1 repeated names"),
    "repeated numbers": (pa.array([2, 1, 1, 1]), "2 repeated names"),
    "repeated side by side": (pa.array([1, 1]), "1 repeated names"),
    "not UTF-8": (not_utf8(), "Invalid UTF8"),
    "fractions": (pa.array([0.5]), "columns .*of double"),
    "coded": (pa.array(["a", "b"]).dictionary_encode(), "columns .*of dictionary"),
}


def write_column(path: Path, *columns: pa.Array) -> None:
    """Write an Arrow file of names, one batch for each column."""
    with pa.ipc.new_file(str(path), pa.schema([("name", columns[0].type)])) as writer:
        for column in columns:
            writer.write_batch(pa.record_batch([column], names=["name"]))


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_are_none_are_refused(tmp_path, name) -> None:
    """Names must be there, distinct, not empty, and text or whole numbers."""
    column, rule = BAD_NAMES[name]
    write_column(tmp_path / "names.arrow", column)

    with pytest.raises(ReportsError, match=rf"names\.arrow: .*{rule}"):
        read_identifiers(tmp_path / "names.arrow")


def test_a_name_may_not_come_again_in_a_later_batch(tmp_path) -> None:
    """Names of several batches are compared with one another, sorted or not."""
    for columns in (pa.array(["a", "b"]), pa.array(["b", "c"])), (pa.array(["b", "a"]), pa.array(["b", "c"])):
        write_column(tmp_path / "names.arrow", *columns)
        with pytest.raises(ReportsError, match="1 repeated names"):
            read_identifiers(tmp_path / "names.arrow")
