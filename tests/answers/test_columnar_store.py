"""Encoded blocks and lazy names: the same reports come back, and damage is named."""

import json
import os
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.answers import columnar_store
from crowdveil.answers import identifiers as names_module
from crowdveil.answers.columnar_store import STORE_FILES, ReportChunk, write_encoded
from crowdveil.answers.identifiers import LazyIdentifiers, index_of, read_identifiers
from crowdveil.answers.reports import Reports
from crowdveil.answers.store_manifest import MANIFEST_FILE
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.errors import ReportsError
from crowdveil.estimators import DawidSkene
from crowdveil.files.output_record import RECORD_FILE
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd
from crowdveil.standalone.checks import digest
from tests.answers.test_reports import cells
from tests.storage.test_files import assert_same
from tests.strategies import small_numeric_reports, small_reports

CODES = ("pointers.i64", "worker.i32", "value.bin")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return one folder for a whole property test: every example overwrites the last."""
    return tmp_path_factory.mktemp("blocks")


@pytest.fixture
def saved(tmp_path, monkeypatch) -> Path:
    """Return a folder with 900 reports, some kilobytes in pieces of 64 bytes."""
    monkeypatch.setattr(columnar_store, "PIECE_BYTES", 64)
    labels = Categories(("no", "yes", "maybe"))
    categorical_crowd(workers=30, tasks=30, labels=labels, sparsity=0.0, source=seeded(1)).answers.save(tmp_path / "b")
    return tmp_path / "b"


@pytest.mark.slow
@given(st.one_of(small_reports(min_reports=0), small_numeric_reports(min_reports=0)))
def test_reports_survive_the_folder(folder, reports: Reports) -> None:
    """Saved and opened, reports, the silent and the alphabet are the same, block by block and column by column."""
    reports.save(folder)
    opened = Reports.open(folder)

    assert_same(reports, opened)
    assert reports.task.tolist() == opened.task.tolist()
    assert reports.per_task.tolist() == opened.per_task.tolist()
    assert reports.per_worker.tolist() == opened.per_worker.tolist()
    for mine, theirs in zip(reports.blocks(3), Reports.open(folder).blocks(3), strict=True):
        assert (mine.first, mine.stop, mine.pointers.tolist()) == (theirs.first, theirs.stop, theirs.pointers.tolist())
        assert (mine.worker.tolist(), mine.value.tolist()) == (theirs.worker.tolist(), theirs.value.tolist())


@pytest.mark.parametrize("names", [np.array([7, 3]), np.array(["é", 'a,"b"']), np.array(["x", "y"], dtype=object)])
def test_names_survive(tmp_path, names) -> None:
    """Whole numbers stay numbers, text stays text, in code order."""
    Reports.from_arrays(names, names, [0.5, 1.5], numeric=True, tasks=names, workers=names).save(tmp_path)

    assert names.tolist() == Reports.open(tmp_path).tasks.tolist() == Reports.open(tmp_path).workers.tolist()


def test_numbers_on_a_scale_survive(tmp_path) -> None:
    """The grid comes back with the codes."""
    Reports.from_arrays(["a", "b"], [1, 1], [0.1, 0.3], alphabet=Scale(0, 1, 0.1)).save(tmp_path)

    assert Scale(0, 1, 0.1) == Reports.open(tmp_path).alphabet
    assert [0.1, 0.3] == pytest.approx(Reports.open(tmp_path).numbers)


def test_columns_are_mapped_and_read_only(saved) -> None:
    """Codes are not copied into memory, and cannot be written through."""
    opened = Reports.open(saved)

    assert isinstance(opened.worker.base.base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        opened.worker[0] = 1


def flip(path: Path, at: int) -> None:
    """Change one bit of a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("name", STORE_FILES)
@pytest.mark.parametrize("at", [0, 50, -1])
def test_one_changed_bit_is_found(saved, name, at) -> None:
    """Whichever file and byte is damaged, reading everything is refused, and the error names file and way out."""
    flip(saved / name, at)

    with pytest.raises(ReportsError, match="crowdveil data encode") as caught:
        cells(Reports.open(saved))
    assert caught.value.source in (str(saved), str(saved / name))


def test_codes_are_checked_where_they_are_used(saved) -> None:
    """Opening reads no codes; a damaged piece is refused when its tasks are used, the others stay usable."""
    flip(saved / "worker.i32", -1)
    opened = Reports.open(saved)
    blocks = opened.blocks(30)

    assert [0] * 29 == [next(blocks).pointers[0] for _ in range(29)]
    with pytest.raises(ReportsError, match=r"worker.i32: .*piece 57 of 57 has another checksum"):
        next(blocks)
    with pytest.raises(ReportsError, match="another checksum"):
        opened.worker  # noqa: B018
    with pytest.raises(ReportsError, match="another checksum"):
        DawidSkene().fit(opened)


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("change", [lambda data: data[:-4], lambda data: data + b"\0" * 8, None])
def test_absent_cut_and_long_files_are_found_on_opening(saved, name, change) -> None:
    """A file of the wrong size, or none, is refused before anything is read from it."""
    if change is None:
        os.remove(saved / name)
    else:
        (saved / name).write_bytes(change((saved / name).read_bytes()))

    with pytest.raises(ReportsError, match=rf"{name}.*(no such file|bytes, \d+ expected)"):
        Reports.open(saved)


def reseal(folder: Path, **changes: object) -> None:
    """Change the manifest and seal it again."""
    manifest = json.loads((folder / MANIFEST_FILE).read_bytes()) | changes
    (folder / MANIFEST_FILE).write_text(json.dumps({**manifest, "sha256": digest(manifest)}))


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"format": "crowdveil-blocks/9"}, "format 'crowdveil-blocks/1'.*with this version"),
        ({"extra": 1}, "changed or cut"),
        ({"reports": 899}, "3600 bytes for 899 rows|bytes for"),
        ({"tasks": 29}, "bytes for 30 rows"),
        ({"workers": 29}, "29 names|30 names, 29 expected"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(saved, changes, rule) -> None:
    """Another version, another field, or sizes that are not those of the files are refused though the seal fits."""
    reseal(saved, **changes)

    with pytest.raises(ReportsError, match=rule):
        Reports.open(saved)


@pytest.mark.parametrize(
    ("alphabet", "worker", "value"),
    [
        (None, 0, np.nan),
        (None, 0, 1e101),
        (None, 0, -1e-101),
        (Categories(("x", "y")), 0, 2),
        (None, 2, 0.5),
        (None, -1, 0.5),
    ],
)
def test_codes_out_of_range_are_refused(tmp_path, alphabet, worker, value) -> None:
    """What is no code or no finite number never reaches an estimator, even under a fitting checksum."""
    part = ReportChunk(np.array([0]), np.array([worker]), np.array([value]))
    write_encoded(tmp_path, [part], np.arange(2), np.arange(2), alphabet)

    with pytest.raises(ReportsError, match="a value out of range"):
        cells(Reports.open(tmp_path))


def test_pointers_must_ascend(tmp_path) -> None:
    """An index that does not count the reports is refused on opening."""
    write_encoded(
        tmp_path, [ReportChunk(np.array([0]), np.array([0]), np.array([0.5]))], np.arange(1), np.arange(1), None
    )
    (tmp_path / "pointers.i64").write_bytes(data := np.array([1, 1], dtype="<i8").tobytes())
    files = json.loads((tmp_path / MANIFEST_FILE).read_bytes())["files"]
    reseal(tmp_path, files={**files, "pointers.i64": {"bytes": 16, "crc32": [zlib.crc32(data)]}})

    with pytest.raises(ReportsError, match="pointers that do not ascend"):
        Reports.open(tmp_path)


@pytest.mark.parametrize("text", [None, "", "[1]", "{}", '{"format": 1, "format": 1}', '{"tasks": NaN}', "[" * 100_000])
def test_what_holds_no_blocks_is_refused(tmp_path, text) -> None:
    """A folder without a manifest, or with something else under its name, is a clear error."""
    if text is not None:
        (tmp_path / MANIFEST_FILE).write_text(text)

    with pytest.raises(ReportsError, match="encoded blocks must have"):
        Reports.open(tmp_path)


def test_a_failure_leaves_what_was_there(saved, monkeypatch) -> None:
    """If writing fails halfway, the old blocks stay whole and nothing new appears; a new folder goes again."""
    before = cells(Reports.open(saved))
    codes, names = np.arange(2), np.array(["a", "\ud800"])
    reports = Reports(codes, codes, codes, names, codes, Categories(("x", "y")))

    for folder in (saved, saved.parent / "new"):
        with pytest.raises(ReportsError, match="names must be whole numbers or text"):
            reports.save(folder)
    assert before == cells(Reports.open(saved))
    assert sorted([RECORD_FILE, *STORE_FILES]) == sorted(os.listdir(saved))
    assert not (saved.parent / "new").exists()


def test_parts_may_end_anywhere(tmp_path, monkeypatch) -> None:
    """Parts, empty ones too, and pieces that end inside a part give the same folder as one part."""
    monkeypatch.setattr(columnar_store, "PIECE_BYTES", 8)
    names, value = np.arange(3), np.array([0, 1, 1, 0, 1])
    task, worker = np.array([0, 0, 2, 2, 2]), np.array([0, 2, 0, 1, 2])
    for name, ends in {"one": [0, 5], "many": [0, 2, 2, 5]}.items():
        (tmp_path / name).mkdir()
        parts = [ReportChunk(task[a:b], worker[a:b], value[a:b]) for a, b in pairwise(ends)]
        write_encoded(tmp_path / name, parts, names, names, Categories(("x", "y")))

    for file in STORE_FILES:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "many" / file).read_bytes()


@pytest.mark.parametrize(("worker", "repeats"), [([0, 1, 2, 3], False), ([0, 1, 1, 2], True), ([1, 2, 0, 3], None)])
def test_repeated_pairs_are_stated_and_unsorted_workers_refused(tmp_path, monkeypatch, worker, repeats) -> None:
    """The manifest says whether a worker has several rows on a task; rows out of order are not read.

    The order breaks between two pieces of the file.
    """
    monkeypatch.setattr(columnar_store, "PIECE_BYTES", 8)
    part = ReportChunk(np.zeros(4, dtype=int), np.array(worker), np.full(4, 0.5))
    write_encoded(tmp_path, [part], np.arange(1), np.arange(4), None)
    opened = Reports.open(tmp_path)
    rows: Any = opened.rows

    assert bool(repeats) == columnar_store.has_repeated_pairs(tmp_path) == rows.repeats
    if repeats is None:
        with pytest.raises(ReportsError, match="workers on a task do not ascend, or one repeats"):
            cells(opened)
    else:
        assert worker == opened.worker.tolist()


LISTED = [f"tâche-{number:03d}" for number in range(95, 102)]


@pytest.fixture(params=["text", "numbers"])
def both(request, monkeypatch) -> tuple[LazyIdentifiers, list[object]]:
    """Return lazy names in pieces of two, and the equal list."""
    monkeypatch.setattr(names_module, "IDENTIFIERS_PER_BATCH", 2)
    held = LISTED if request.param == "text" else [7, 3, 9, 1, 0, 4, 5]
    return LazyIdentifiers(pa.chunked_array([held[:3], held[3:]])), list(held)


def test_lazy_names_are_an_array(both) -> None:
    """Length, list, array, iteration, membership, codes from either end, slices, steps, masks and arrays of codes."""
    lazy, held = both
    array, mask = np.asarray(lazy), np.array([True, False, False, True, True, False, True])

    assert (len(held), held, held, held) == (len(lazy), lazy.tolist(), array.tolist(), list(lazy))
    assert held[3] in lazy
    assert "unknown" not in lazy
    assert (held[2], held[-1], held[0]) == (lazy[2], lazy[-1], lazy[np.int64(0)])
    assert (held[2:5], held[4:2], held[::3]) == (lazy[2:5].tolist(), lazy[4:2].tolist(), lazy[::3].tolist())
    assert isinstance(lazy[2:5], LazyIdentifiers)
    assert array[mask].tolist() == lazy[mask].tolist()
    assert [held[5], held[0], held[-2]] == lazy[np.array([5, 0, -2])].tolist()


@pytest.mark.parametrize("code", [7, -8, np.array([0, 7])])
def test_codes_beyond_the_names_are_refused(both, code) -> None:
    """As in an array, a code without a name is an IndexError."""
    with pytest.raises(IndexError, match="must be in -7"):
        both[0][code]


def test_places_are_found(both) -> None:
    """Each wanted name that is there has its code, in lazy names and in arrays, read as text."""
    lazy, held = both
    wanted = [held[6], held[1], "unknown", "tâche-094", "tâche-102", "tâche-0095", "tâche-09x"]
    expected = {str(held[6]): 6, str(held[1]): 1}

    assert expected == index_of(lazy, wanted) == index_of(np.array(held), wanted)
    assert {} == index_of(lazy, [])


def test_other_files_hold_no_names(tmp_path) -> None:
    """Other columns, or what is no Arrow file at all, is refused by the file's name."""
    table = pa.table({"another": ["x"]})
    with pa.ipc.new_file(str(tmp_path / "1.arrow"), table.schema) as writer:
        writer.write_table(table)
    (tmp_path / "2.arrow").write_bytes(b"nothing")

    for name in ("1.arrow", "2.arrow"):
        with pytest.raises(ReportsError, match=f"{name}: a file of names must hold distinct names"):
            read_identifiers(tmp_path / name)
