"""Answers appended to encoded blocks: the same as all encoded at once, by name; interrupted, nothing is lost."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.answers import columnar_store
from crowdveil.answers.columnar_store import open_encoded
from crowdveil.answers.ingest.column_checks import Duplicates
from crowdveil.answers.reports import Reports
from crowdveil.answers.sources.answer_source import local_source
from crowdveil.answers.store_manifest import MANIFEST_FILE, read_manifest
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.errors import CertificateError, ReportsError, SettingsError
from crowdveil.files.atomic_write import write_files
from crowdveil.files.filesystem import folder_lock
from crowdveil.files.output_record import RECORD_FILE
from crowdveil.standalone.checks import digest
from crowdveil.storage.encoded import append as append_module
from crowdveil.storage.encoded.append import Appended, append
from crowdveil.storage.encoded.merge import merge_names
from crowdveil.storage.encoding import encode
from crowdveil.storage.evidence import NO_OPTIONS, EvidenceOptions
from tests.answers.test_reports import cells

Rows = list[tuple[str, str, str]]
LABELS = Categories(("no", "yes"))
MONDAY: Rows = [("b", "u", "no"), ("b", "v", "yes"), ("d", "u", "yes"), ("d", "w", "no")]
TUESDAY: Rows = [("d", "v", "no"), ("a", "w", "yes"), ("e", "u", "yes"), ("b", "t", "no"), ("c", "x", "no")]


def table(path: Path, rows: Rows, header: str = "task,worker,label") -> Path:
    """Write rows as CSV; return the path."""
    path.write_text("\n".join([header, *map(",".join, rows)]) + "\n")
    return path


def options(duplicates: Duplicates | None = None, alphabet: Any = None, **others: Any) -> EvidenceOptions:
    """Return options of reading."""
    return EvidenceOptions(duplicates=duplicates, alphabet=alphabet, **others)


def add(path: Path, folder: Path, reading: EvidenceOptions = NO_OPTIONS) -> Appended:
    """Append a file to blocks."""
    return append(local_source(path), folder, reading)


@pytest.fixture
def blocks(tmp_path: Path) -> Path:
    """Return the blocks of Monday."""
    encode(table(tmp_path / "monday.csv", MONDAY), tmp_path / "blocks")
    return tmp_path / "blocks"


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder with their bytes."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_old_codes_stay_and_new_names_come_after_them(blocks: Path, tmp_path: Path) -> None:
    """Tasks and workers keep their codes, new ones are added in their order, and the rows are those of all files."""
    done = add(table(tmp_path / "tuesday.csv", TUESDAY), blocks)

    assert ["b", "d", "a", "c", "e"] == done.reports.tasks.tolist()
    assert ["u", "v", "w", "t", "x"] == done.reports.workers.tolist()
    assert sorted(MONDAY + TUESDAY) == sorted(cells(Reports.open(blocks)))
    assert {"reports": 5, "tasks": 3, "workers": 2} == done.added


def test_names_that_come_later_give_the_same_bytes(blocks: Path, tmp_path: Path) -> None:
    """If new tasks and workers come after the old ones, the columns have the bytes of all rows encoded at once."""
    later = [("d", "v", "no"), ("e", "x", "yes"), ("b", "x", "no")]
    add(table(tmp_path / "later.csv", later), blocks)
    encode(table(tmp_path / "all.csv", MONDAY + later), tmp_path / "once")

    for name in ("pointers.i64", "worker.i32", "value.bin"):
        assert (tmp_path / "once" / name).read_bytes() == (blocks / name.replace(".", "-1.")).read_bytes()
    assert Reports.open(tmp_path / "once").sha256 == Reports.open(blocks).sha256


@pytest.mark.parametrize("duplicates", ["first", "last", "all"])
@given(st.data())
def test_a_policy_holds_across_old_and_new_answers(tmp_path_factory, duplicates: Duplicates, data) -> None:
    """Any split of rows with repeated pairs gives the reports of all rows in one file, in blocks of any size."""
    folder = tmp_path_factory.mktemp("split")
    row = st.tuples(st.sampled_from("abcde"), st.sampled_from("uvw"), st.sampled_from(["no", "yes"]))
    parts = data.draw(st.lists(st.lists(row, min_size=1, max_size=9), min_size=2, max_size=3, unique_by=str))
    size = data.draw(st.integers(1, 5))
    reading = options(duplicates, LABELS)
    encode(table(folder / "all.csv", [row for part in parts for row in part]), folder / "once", reading)
    encode(table(folder / "0.csv", parts[0]), folder / "blocks", reading)
    with pytest.MonkeyPatch.context() as patch:
        blocks_of = Reports.blocks
        patch.setattr(Reports, "blocks", lambda self, _=0: blocks_of(self, size))
        for number, part in enumerate(parts[1:], 1):
            kept_repeats = json.loads((folder / "blocks" / MANIFEST_FILE).read_bytes())["repeats"]
            assert not kept_repeats or duplicates == "all"
            add(table(folder / f"{number}.csv", part), folder / "blocks", reading)

    once, grown = Reports.open(folder / "once"), Reports.open(folder / "blocks")
    assert sorted(cells(once)) == sorted(cells(grown))
    assert grown.per_task.sum() == len(grown) == len(once)


def test_a_repeated_pair_is_refused_by_its_row(blocks: Path, tmp_path: Path) -> None:
    """By default a worker answers a task once, on whichever day: file, line and pair are named, and nothing changes."""
    before = contents(blocks)
    with pytest.raises(
        ReportsError, match=r"t\.csv, lines 3, 4: .* 2 new answers repeat.*\(b, v\), \(d, u\)"
    ) as caught:
        add(table(tmp_path / "t.csv", [("a", "v", "no"), ("b", "v", "yes"), ("d", "u", "yes")]), blocks)

    assert "'first'" in caught.value.hint
    assert before == contents(blocks)


def test_blocks_that_keep_repeats_keep_those_of_new_files(tmp_path: Path) -> None:
    """A folder in which a worker has several answers to a task is not read by another policy from then on."""
    encode(table(tmp_path / "a.csv", [*MONDAY, MONDAY[0]]), tmp_path / "blocks", options("all"))
    tuesday = table(tmp_path / "b.csv", TUESDAY)

    with pytest.raises(SettingsError, match=r"must keep those that are appended.*duplicates='all'"):
        add(tuesday, tmp_path / "blocks", options("first"))
    assert 10 == len(add(tuesday, tmp_path / "blocks", options("all")).reports)


@pytest.mark.parametrize(("duplicates", "notes"), [("first", 1), ("last", 2)])
def test_replaced_answers_ask_for_a_fit_from_scratch(
    blocks: Path, tmp_path: Path, duplicates: Duplicates, notes: int
) -> None:
    """New answers in place of old ones are no more reports, by which a saved fit would see them: a warning says so."""
    path = table(tmp_path / "t.csv", [("b", "u", "yes"), ("d", "w", "yes"), ("z", "u", "no")])
    found = add(path, blocks, options(duplicates)).notes

    assert notes == len(found)
    assert ("Infer from scratch: 2 old answers may have changed" in found[-1]) == (duplicates == "last")


def test_a_new_label_is_refused_by_name_unless_it_is_stated_last(blocks: Path, tmp_path: Path) -> None:
    """The labels of the first files hold; others are named, and are added by stating them after the old ones."""
    path = table(tmp_path / "t.csv", [("a", "u", "maybe"), ("a", "v", "no")])
    with pytest.raises(
        ReportsError, match=r"t\.csv, line 2: every label must be one of no, yes. Found: 'maybe'"
    ) as caught:
        add(path, blocks)
    assert "name them after these" in caught.value.hint
    with pytest.raises(SettingsError, match=r"must be those of the blocks, \('no', 'yes'\); new labels come after"):
        add(path, blocks, options(alphabet=Categories(("maybe", "no", "yes"))))

    done = add(path, blocks, options(alphabet=Categories(("no", "yes", "maybe"))))
    assert ("no", "yes", "maybe") == done.reports.alphabet.names
    assert sorted([*MONDAY, ("a", "u", "maybe"), ("a", "v", "no")]) == sorted(cells(done.reports))


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    """Blocks of free numbers take numbers from any column, and no scale or labels; blocks of a scale round to it."""
    first = table(tmp_path / "a.csv", [("a", "u", "1.5")], "task,worker,value")
    more = table(tmp_path / "b.csv", [("a", "v", "2.26"), ("b", "u", "-1")], "task,worker,label")
    encode(first, tmp_path / "free")
    encode(first, tmp_path / "scaled", options(alphabet=Scale(0, 2, 0.5)))
    for wrong in (options(alphabet=Scale(0, 9)), options(kind="categorical")):
        with pytest.raises(SettingsError, match=r"must be th(ose|at) of the blocks"):
            add(more, tmp_path / "free", wrong)

    assert [1.5, 2.26, -1.0] == add(more, tmp_path / "free").reports.numbers.tolist()
    assert [1.5, 2.0, 0.0] == add(more, tmp_path / "scaled").reports.numbers.tolist()


def test_numbers_and_texts_as_names_are_the_same_name(tmp_path: Path) -> None:
    """Task 7 of Parquet is task 7 of CSV, as in every list of names; whole numbers alone stay numbers."""
    Reports.from_arrays([7, 3], [1, 1], ["no", "yes"]).save(tmp_path / "text")
    Reports.from_arrays([7, 3], [1, 1], ["no", "yes"]).save(tmp_path / "whole")
    done = add(table(tmp_path / "t.csv", [("7", "2", "no"), ("x", "1", "yes")]), tmp_path / "text")

    assert ["3", "7", "x"] == done.reports.tasks.tolist()
    assert ["1", "2"] == done.reports.workers.tolist()
    pq.write_table(pa.table({"task": [7, 9], "worker": [2, 2], "label": ["no", "yes"]}), tmp_path / "t.parquet")
    assert [3, 7, 9] == add(tmp_path / "t.parquet", tmp_path / "whole").reports.tasks.tolist()


def test_added_names_are_compared_with_old_ones(tmp_path: Path) -> None:
    """A new name that is a spelling of an old one is added and named in a note, as within one file; others are not."""
    path = table(tmp_path / "a.csv", [("caf\u00e9", "ann", "no"), ("tea", "bob", "yes")])
    encode(path, tmp_path / "blocks")
    rows = [("cafe\u0301", "Ann", "no"), ("cafe\u0301", "bob", "no"), ("milk", "eve", "yes")]
    done = add(table(tmp_path / "b.csv", rows), tmp_path / "blocks")

    assert {"reports": 3, "tasks": 2, "workers": 2} == done.added
    assert (
        "These are read as different tasks: 'caf\u00e9' (1 answer), 'cafe\u0301' (2 answers). "
        "Use one spelling for each task.",
        "These are read as different workers: 'ann' (1 answer), 'Ann' (1 answer). Use one spelling for each worker.",
    ) == done.notes
    assert () == add(table(tmp_path / "c.csv", [("water", "eve", "no")]), tmp_path / "blocks").notes


def test_the_manifest_lists_every_file_and_takes_none_twice(blocks: Path, tmp_path: Path) -> None:
    """Name, size and digest of each file are recorded, the first ones included; the same content is refused."""
    tuesday = table(tmp_path / "tuesday.csv", TUESDAY)
    add(tuesday, blocks)
    listed = json.loads((blocks / MANIFEST_FILE).read_bytes())["inputs"]

    assert ["../monday.csv", "../tuesday.csv"] == [one["name"] for one in listed]
    assert [path.stat().st_size for path in (tmp_path / "monday.csv", tuesday)] == [one["bytes"] for one in listed]
    for path in (tuesday, tmp_path / "monday.csv"):
        copy = tmp_path / "copy.csv"
        copy.write_bytes(path.read_bytes())
        with pytest.raises(ReportsError, match=rf"copy\.csv: a file is encoded once.*as \.\./{path.name}"):
            add(copy, blocks, options("all"))


def test_reports_of_a_collection_are_never_mixed(blocks: Path, tmp_path: Path) -> None:
    """Beside a certificate or crowd.json, on either side, nothing is appended: a statement covers one collection."""
    (tmp_path / "sent").mkdir()
    sent = table(tmp_path / "sent" / "reports.csv", TUESDAY)
    (tmp_path / "sent" / "certificate.json").write_text("{}")
    with pytest.raises(ReportsError, match=r"sent/certificate\.json: only plain answers can be appended.*one epsilon"):
        add(sent, blocks)
    (blocks / "crowd.json").write_text("{}")
    with pytest.raises(ReportsError, match=r"blocks/crowd\.json: only plain answers"):
        add(table(tmp_path / "tuesday.csv", TUESDAY), blocks)


def test_a_collection_stays_one_without_its_other_files(tmp_path: Path) -> None:
    """Where the record of a folder lists files of a collection, nothing is appended on either side without them."""
    files = dict.fromkeys(("certificate.json", "crowd.json", "assignment.csv"), b"{}")
    encode(table(tmp_path / "monday.csv", MONDAY), tmp_path / "plain")
    tuesday = table(tmp_path / "tuesday.csv", TUESDAY)
    for name in files:
        folder = tmp_path / name
        encode(tmp_path / "monday.csv", folder / "blocks")
        (folder / "sent").mkdir()
        sent = table(folder / "sent" / "reports.csv", TUESDAY)
        for place, source, blocks in (
            (folder / "blocks", tuesday, folder / "blocks"),
            (folder / "sent", sent, tmp_path / "plain"),
        ):
            write_files(place, {name: files[name]}, kind="collection")
            (place / name).unlink()
            with pytest.raises(ReportsError, match=rf"{place.name}/{name}: only plain answers"):
                add(source, blocks)


def test_links_to_reports_are_reports_of_their_collection(blocks: Path, tmp_path: Path) -> None:
    """Through a link, or a link to one, reports are neither appended nor read as plain answers."""
    for folder in ("sent", "links"):
        (tmp_path / folder).mkdir()
    table(tmp_path / "sent" / "reports.csv", TUESDAY)
    (tmp_path / "sent" / "certificate.json").write_text("{}")
    first, second = tmp_path / "links" / "1.csv", tmp_path / "links" / "2.csv"
    first.symlink_to("../sent/reports.csv")
    second.symlink_to("1.csv")
    for link in (first, second):
        with pytest.raises(ReportsError, match=r"certificate\.json: only plain answers can be appended"):
            add(link, blocks)
        with pytest.raises(CertificateError):
            encode(link, tmp_path / "other")
    with pytest.raises(ReportsError, match=r"with a certificate\.json are read one by one"):
        add(tmp_path / "links", blocks)


def test_only_files_are_appended_and_only_to_blocks(blocks: Path, tmp_path: Path) -> None:
    """Other blocks are refused, and so is a folder that is none yet."""
    encode(table(tmp_path / "tuesday.csv", TUESDAY), tmp_path / "other")
    with pytest.raises(ReportsError, match="only files of answers can be appended"):
        add(tmp_path / "other", blocks)
    with pytest.raises(ReportsError, match="are appended to a folder of encoded blocks"):
        add(tmp_path / "tuesday.csv", tmp_path / "absent")


class Stopped(BaseException):
    """What ends a process in the middle."""


def stop_at(number: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, which ends the process before its call of this number."""
    calls = iter(range(number))

    def stopping(*arguments: Any) -> Any:
        if next(calls, None) is None:
            raise Stopped
        return function(*arguments)

    return stopping


@pytest.mark.parametrize("number", range(9))
def test_an_interrupted_append_leaves_the_old_blocks_or_the_new(
    blocks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Whichever renaming is the last, the folder opens as before or as after, and the next append is as any other."""
    tuesday = table(tmp_path / "tuesday.csv", TUESDAY)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", stop_at(number, os.replace))
        with pytest.raises(Stopped) if number < 8 else nullcontext():
            add(tuesday, blocks)
    done = number > 6

    assert sorted(MONDAY + TUESDAY if done else MONDAY) == sorted(cells(Reports.open(blocks)))
    files = {path.name for path in blocks.iterdir()}
    assert done or files == {RECORD_FILE, MANIFEST_FILE, *(path.name for path in open_files(blocks))}
    add(table(tmp_path / "again.csv", [("z", "u", "no")]), blocks)
    assert {path.name for path in blocks.iterdir()} == {
        RECORD_FILE,
        MANIFEST_FILE,
        *(path.name for path in open_files(blocks)),
    }


KILLED = """
import os, sys
from pathlib import Path
from crowdveil.answers.sources.answer_source import local_source
from crowdveil.storage.encoded.append import append

replace, calls = os.replace, iter(range(int(sys.argv[1])))
os.replace = lambda *paths: replace(*paths) if next(calls, None) is not None else os._exit(9)
append(local_source(Path("tuesday.csv")), Path("blocks"))
"""
"""An append that ends without any clean-up before a renaming, as a killed process does."""


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1, 4, 6, 7])
def test_a_killed_append_is_cleaned_up_by_the_next(blocks: Path, tmp_path: Path, number: int) -> None:
    """Whatever a killed process left is no part of the blocks, and is gone after the next append."""
    table(tmp_path / "tuesday.csv", TUESDAY)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(number)], cwd=tmp_path, check=False)

    assert 9 == killed.returncode
    assert sorted(MONDAY + TUESDAY if number > 6 else MONDAY) == sorted(cells(Reports.open(blocks)))
    add(table(tmp_path / "again.csv", [("z", "u", "no")]), blocks)
    assert {RECORD_FILE, MANIFEST_FILE, *(path.name for path in open_files(blocks))} == {*os.listdir(blocks)}


def open_files(folder: Path) -> list[Path]:
    """Return the columns that the manifest of a folder names."""
    rows = open_encoded(folder).rows
    number = rows.index.path.stem.partition("-")[2]
    names = [f"{stem}-{number}.arrow" if number else f"{stem}.arrow" for stem in ("tasks", "workers")]
    return [rows.index.path, rows.workers.path, rows.values.path, *(folder / name for name in names)]


@pytest.mark.parametrize("stop", [None, 4])
def test_files_that_others_wrote_stay(
    blocks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int | None
) -> None:
    """A file of a user that has the name of a column is neither replaced nor removed, also if an append fails."""
    mine = blocks / "worker-1.i32"
    mine.write_text("mine")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", os.replace if stop is None else stop_at(stop, os.replace))
        with nullcontext() if stop is None else pytest.raises(Stopped):
            add(table(tmp_path / "tuesday.csv", TUESDAY), blocks)
    if stop is not None:
        (blocks / "value-2.bin").write_text("mine")  # which the failed append had recorded
        add(tmp_path / "tuesday.csv", blocks)

    assert sorted(MONDAY + TUESDAY) == sorted(cells(Reports.open(blocks)))
    assert "mine" == mine.read_text()
    assert stop is None or "mine" == (blocks / "value-2.bin").read_text()


def test_a_name_that_is_taken_meanwhile_ends_the_append(
    blocks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that appears under the name of a column while an append writes is kept, and the blocks stay."""
    monkeypatch.setattr(append_module, "_free_number", lambda folder, appends: appends + 1)
    mine = blocks / "worker-1.i32"
    mine.write_text("mine")
    before = contents(blocks)
    with pytest.raises(SettingsError, match="File exists"):
        add(table(tmp_path / "tuesday.csv", TUESDAY), blocks)

    assert before.keys() == contents(blocks).keys()
    assert "mine" == mine.read_text()
    assert sorted(MONDAY) == sorted(cells(Reports.open(blocks)))


def test_a_full_disk_leaves_the_blocks_as_they_were(
    blocks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An append that cannot write ends with the old blocks, byte for byte, and no other file."""
    before = contents(blocks)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(columnar_store, "write_manifest", full)
    with pytest.raises(SettingsError, match="No space left"):
        add(table(tmp_path / "tuesday.csv", TUESDAY), blocks)
    assert before == contents(blocks)


def test_a_second_append_at_the_same_time_is_refused_for_now(blocks: Path, tmp_path: Path) -> None:
    """While another process appends, an append fails with an error that asks for another try."""
    tuesday = table(tmp_path / "tuesday.csv", TUESDAY)
    with folder_lock(blocks), pytest.raises(SettingsError, match="one process at a time") as caught:
        add(tuesday, blocks)

    assert caught.value.temporary
    assert 9 == len(add(tuesday, blocks).reports)


def test_blocks_that_were_opened_before_stay_readable(blocks: Path, tmp_path: Path) -> None:
    """A fit that reads the blocks while others append goes on with what it opened."""
    opened = Reports.open(blocks)
    add(table(tmp_path / "tuesday.csv", TUESDAY), blocks)

    assert sorted(MONDAY) == sorted(cells(opened))


def test_opening_while_columns_are_replaced_takes_the_new_ones(
    blocks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an append ends between the reading of the manifest and of the columns, the new blocks are opened."""
    tuesday = table(tmp_path / "tuesday.csv", TUESDAY)

    def read_then_append(path: Path) -> Any:
        monkeypatch.undo()
        found = read_manifest(path)
        add(tuesday, blocks)
        return found

    monkeypatch.setattr(columnar_store, "read_manifest", read_then_append)
    assert 9 == len(Reports.open(blocks))


@pytest.mark.parametrize(
    "changes",
    [{"appends": -1}, {"appends": True}, {"inputs": [{"name": "a"}]}, {"inputs": "a"}, {"appends": 3}],
)
def test_a_damaged_list_of_files_is_refused(blocks: Path, changes: dict[str, Any]) -> None:
    """A manifest whose number of appends or list of files is none is damage, as is one that names no such columns."""
    data = json.loads((blocks / MANIFEST_FILE).read_bytes()) | changes
    data.pop("sha256")
    (blocks / MANIFEST_FILE).write_text(json.dumps({**data, "sha256": digest(data)}))

    with pytest.raises(ReportsError, match="crowdveil data encode"):
        Reports.open(blocks)


def test_large_tables_of_names_are_merged_in_order() -> None:
    """Known names get their codes and new ones the next, among thousands, whatever their order."""
    old, given = np.arange(5000)[::-1].astype(str), np.array([f"{number}" for number in range(4990, 5010)])
    merged = merge_names(old, given)

    assert 10 == merged.added
    assert given.tolist() == [merged.names[code] for code in merged.codes]
    assert old.tolist() == merged.names[:5000].tolist()
