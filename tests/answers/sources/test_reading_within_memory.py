"""Reading within a limit of memory: the same reports, notes and errors as reading at once, and files removed."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from crowdveil.answers.evidence import Evidence
from crowdveil.answers.ingest import mapped_codes
from crowdveil.answers.ingest.column_readers import ColumnNames
from crowdveil.answers.ingest.mapped_codes import ReadingLimit
from crowdveil.answers.read_options import Kind
from crowdveil.answers.sources import reading_memory, sorted_parts, spilled_columns
from crowdveil.answers.sources.answer_source import AnswerSource, open_source
from crowdveil.answers.sources.location import Layout
from crowdveil.answers.sources.reading_memory import read_within_memory
from crowdveil.channels.alphabet import Categories
from crowdveil.errors import CrowdveilError, ReportsError, SettingsError
from crowdveil.storage.evidence import EvidenceOptions, read_evidence

ENOUGH = 100_000_000
HEADER = "task,worker,label\n"


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read few rows at a time, so that small files have many batches and parts."""
    monkeypatch.setattr(mapped_codes, "ROWS_AT_ONCE", 7)
    monkeypatch.setattr(spilled_columns, "GROUPS_IN_LIMIT", ENOUGH // 100)
    monkeypatch.setattr(spilled_columns, "BLOCKS_IN_LIMIT", ENOUGH // 400)
    monkeypatch.setattr(sorted_parts, "BYTES_PER_ROW", ENOUGH // 160)


def rows(count: int = 300, labels: tuple[str, ...] = ("no", "yes", "NULL")) -> str:
    """Return rows of random labels in random order, of 40 tasks and 12 workers, with repeated pairs from 240 on."""
    random = np.random.default_rng(3)
    pairs = np.concatenate([random.permutation(480)[:240], random.integers(0, 480, size=count)])[:count]
    drawn = random.integers(0, len(labels), size=count)
    return "".join(f"t{pair // 12},w{pair % 12},{labels[one]}\n" for pair, one in zip(pairs, drawn, strict=True))


def evidence(source: AnswerSource, options: EvidenceOptions) -> Evidence | str:
    """Return what is read of a source, or the error."""
    try:
        return read_evidence(source, options)
    except CrowdveilError as error:
        return f"{type(error).__name__} {getattr(error, 'rows', ())} {error}"


def read_both_ways(paths: list[Path], folder: Path, layout: Layout, options: EvidenceOptions) -> list[Any]:
    """Return what is read of files at once, and in batches."""
    folder.mkdir()
    with open_source(list(map(str, paths)), layout) as source:
        assert source.is_readable_in_batches
        limited = replace(source, limit=ReadingLimit(folder, ENOUGH))
        return [evidence(source, options), evidence(limited, options)]


def assert_same(found: list[Any]) -> None:
    """Refuse two readings that differ in a bit, a name, a note or the text of an error."""
    whole, parts = found
    assert not isinstance(whole, str), whole
    assert not isinstance(parts, str), parts
    one, other = whole.observed, parts.observed
    for name in ("task", "worker", "value"):
        assert getattr(one, name).dtype == getattr(other, name).dtype
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()
    assert np.asarray(one.tasks).tolist() == np.asarray(other.tasks).tolist()
    assert np.asarray(one.workers).tolist() == np.asarray(other.workers).tolist()
    assert (one.alphabet, one.asked, one.sha256) == (other.alphabet, other.asked, other.sha256)
    assert whole.notes == parts.notes
    assert (whole.skipped is None) == (parts.skipped is None)
    if whole.skipped is not None:
        assert whole.skipped.task.cells.tolist() == parts.skipped.task.cells.tolist()


PLAIN = Layout()
TEXTS: dict[str, tuple[str, Layout, EvidenceOptions]] = {
    "labels": (HEADER + rows(240), PLAIN, EvidenceOptions()),
    "semicolons": ((HEADER + rows(240)).replace(",", ";"), PLAIN, EvidenceOptions()),
    "first": (HEADER + rows(), PLAIN, EvidenceOptions(duplicates="first")),
    "last": (HEADER + rows(), PLAIN, EvidenceOptions(duplicates="last")),
    "all": (HEADER + rows(), PLAIN, EvidenceOptions(duplicates="all")),
    "spellings": (
        HEADER + rows(240, ("no", "No ", "NO", "yes", "Yes", "")),
        Layout(missing="skip"),
        EvidenceOptions(merge_labels=True),
    ),
    "stated labels": (
        HEADER + rows(240),
        PLAIN,
        EvidenceOptions(alphabet=Categories(("yes", "maybe", "no"), ordered=True)),
    ),
    "map": (HEADER + rows(240), Layout(label_map=(("no", "n"), ("yes", "y"))), EvidenceOptions()),
    "similar names": (HEADER + rows(240) + "T1,W1,no\nt1 ,w1,no\nT2,w99,yes\n", PLAIN, EvidenceOptions()),
    "names with spaces": ("task, worker, label\n" + rows(240).replace(",", ", "), PLAIN, EvidenceOptions()),
    "numbers": (
        "task,worker,value\n" + rows(240, ("1.5", "-0.0", "0", "2e3", "NULL")),
        PLAIN,
        EvidenceOptions(),
    ),
    "repeated numbers": (
        "task,worker,value\n" + rows(300, ("1.5", "3", "2")),
        PLAIN,
        EvidenceOptions(duplicates="all"),
    ),
    "decimal commas": (
        "task;worker;value\n" + rows(240, ("1;5", "2;25", "3")).replace(",", "|").replace(";", ",").replace("|", ";"),
        Layout(decimal=","),
        EvidenceOptions(),
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_are_read_as_at_once(name: str, tmp_path: Path) -> None:
    """Text in batches gives the bits, names and notes of text at once, under every policy and option."""
    text, layout, options = TEXTS[name]
    path = tmp_path / "answers.csv"
    path.write_text(text, "utf-8")

    assert_same(read_both_ways([path], tmp_path / "limited", layout, options))


def test_stated_lists_and_columns(tmp_path: Path) -> None:
    """Names that were asked for, and columns that are stated, count as at once."""
    path = tmp_path / "answers.csv"
    path.write_text("a,b,c\n" + rows(240), "utf-8")
    for kind, count in (("task", 45), ("worker", 12)):
        names = "".join(f"{kind[0]}{number}\n" for number in range(count))
        (tmp_path / f"{kind}s.csv").write_text(f"{kind}\n{names}", "utf-8")
    options = EvidenceOptions(tasks=tmp_path / "tasks.csv", workers=tmp_path / "workers.csv")
    layout = Layout(names=ColumnNames(task="a", worker="b", label="c"))

    assert_same(read_both_ways([path], tmp_path / "limited", layout, options))


def columns(types: dict[str, pa.DataType]) -> pa.Table:
    """Return a table of 240 answers with columns of these types; whole numbers and fractions in place of names."""
    parts = [line.split(",") for line in rows(240, ("1", "2", "3")).splitlines()]
    task, worker, label = ([one[place].lstrip("tw") for one in parts] for place in range(3))
    table = pa.table({"task": task, "worker": worker, "label": label})
    return pa.table(
        {
            name: table[name].dictionary_encode() if pa.types.is_dictionary(kind) else table[name].cast(kind)
            for name, kind in types.items()
        }
    )


TYPES: dict[str, dict[str, pa.DataType]] = {
    "integers": {"task": pa.int64(), "worker": pa.int32(), "label": pa.string()},
    "floats": {"task": pa.float64(), "worker": pa.int64(), "label": pa.float32()},
    "dictionaries": {name: pa.dictionary(pa.int32(), pa.string()) for name in ("task", "worker", "label")},
    "other texts": {"task": pa.large_string(), "worker": pa.binary(), "label": pa.string()},
}


@pytest.mark.parametrize("end", ["parquet", "arrow"])
@pytest.mark.parametrize("name", TYPES)
def test_typed_columns_are_read_as_at_once(name: str, end: str, tmp_path: Path) -> None:
    """Integers, floats and dictionaries of Parquet and Arrow give the same names, codes and order."""
    table, path = columns(TYPES[name]), tmp_path / f"answers.{end}"
    if end == "parquet":
        pq.write_table(table, path, row_group_size=50)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=50)

    assert_same(read_both_ways([path], tmp_path / "limited", Layout(), EvidenceOptions()))


@pytest.mark.parametrize("kind", ["categorical", "numeric"])
def test_missing_and_negative_numbers(kind: Kind, tmp_path: Path) -> None:
    """Empty cells of floats are skipped as at once, and a zero keeps its sign."""
    table = columns({"task": pa.int64(), "worker": pa.int64()})
    values = [None, -0.0, 0.0, 1.0, float("nan"), 2.0] * 40
    path = tmp_path / "answers.parquet"
    pq.write_table(table.append_column("value", pa.array(values, pa.float64())), path)

    assert_same(read_both_ways([path], tmp_path / "limited", Layout(missing="skip"), EvidenceOptions(kind=kind)))


def test_a_folder_of_several_types(tmp_path: Path) -> None:
    """A hive folder of which one file has whole numbers, and another the same as text, is read as text."""
    for day, name in enumerate(("integers", "other texts", "integers")):
        folder = tmp_path / "parts" / f"day={day}"
        folder.mkdir(parents=True)
        pq.write_table(columns(TYPES[name]).slice(80 * day, 80), folder / "part.parquet")

    assert_same(read_both_ways([tmp_path / "parts"], tmp_path / "limited", Layout(), EvidenceOptions()))


@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_keys_of_folders_are_columns(end: str, tmp_path: Path) -> None:
    """Workers that only the names of folders tell, and a key that is also a column, are read as at once."""
    table = columns({name: pa.string() for name in ("task", "worker", "label")})
    for number in range(12):
        part = table.filter(pc.equal(table["worker"], str(number))).drop_columns(["worker"])
        path = tmp_path / "parts" / f"worker=ann {number}" / "day=1" / f"part.{end}"
        path.parent.mkdir(parents=True)
        days = part.append_column("day", pa.array([1] * len(part)))
        pq.write_table(days, path) if end == "parquet" else pyarrow.csv.write_csv(days, path)

    assert_same(read_both_ways([tmp_path / "parts"], tmp_path / "limited", Layout(), EvidenceOptions()))
    path.parent.rename(path.parents[1] / "day=2")

    whole, parts = read_both_ways([tmp_path / "parts"], tmp_path / "again", Layout(), EvidenceOptions())
    assert "a column must have the value of the folder's key of its name" in whole
    assert whole == parts


def test_a_compressed_file_and_a_folder_of_texts(tmp_path: Path) -> None:
    """Gzipped text and several text files are read as at once."""
    lines = rows(240).splitlines(keepends=True)
    (tmp_path / "parts").mkdir()
    for part in range(3):
        text = HEADER + "".join(lines[80 * part : 80 * part + 80])
        (tmp_path / "parts" / f"{part}.csv").write_text(text, "utf-8")
    with pa.output_stream(str(tmp_path / "answers.csv.gz")) as stream:
        stream.write((HEADER + rows(240)).encode())

    for number, path in enumerate(("parts", "answers.csv.gz")):
        assert_same(read_both_ways([tmp_path / path], tmp_path / f"limited{number}", Layout(), EvidenceOptions()))


BAD: dict[str, tuple[str, EvidenceOptions]] = {
    "empty label": (rows(230) + "t99,w1,\n" + rows(240)[-20:], EvidenceOptions()),
    "repeated pairs": (rows(300), EvidenceOptions()),
    "no worker": (rows(200) + "t99,,yes\nt98,,no\n", EvidenceOptions()),
    "two faults": (rows(200) + "t99,,yes\n,w1,no\n", EvidenceOptions()),
    "other label": (rows(220) + "t99,w1,perhaps\n", EvidenceOptions(alphabet=Categories(("no", "yes")))),
    "one label": (rows(240, ("yes",)), EvidenceOptions()),
    "many numbers": (rows(240, tuple(map(str, range(30)))), EvidenceOptions()),
    "no number": (rows(230, ("1", "2")) + "t99,w1,two\n", EvidenceOptions(kind="numeric")),
    "ragged row": (rows(200) + "t99,w1\n", EvidenceOptions()),
    "no row": ("", EvidenceOptions()),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_are_those_of_reading_at_once(name: str, tmp_path: Path) -> None:
    """A fault is refused with the rule, rows, lines and values that reading at once names."""
    text, options = BAD[name]
    path = tmp_path / "answers.csv"
    path.write_text(HEADER + text, "utf-8")

    whole, parts = read_both_ways([path], tmp_path / "limited", Layout(), options)

    assert isinstance(whole, str)
    assert whole == parts


def test_a_fault_is_found_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are checked again in parts for the place of a fault, which counts from the start of the file."""
    monkeypatch.setattr(sorted_parts, "CHECKED_BYTES_PER_ROW", ENOUGH // 10)
    path = tmp_path / "answers.csv"
    path.write_text(HEADER + rows(205) + "t99,,yes\n", "utf-8")

    whole, parts = read_both_ways([path], tmp_path / "limited", Layout(), EvidenceOptions())

    assert "(206,)" in whole
    assert whole == parts


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Return a file of 400,000 answers to 80,000 tasks, which reading at once needs 70 MB for."""
    row = np.arange(400_000)
    table = pa.table({"task": row // 5, "worker": row % 5, "label": (row // 7) % 2})
    pa.csv.write_csv(table, tmp_path / "answers.csv")
    return tmp_path / "answers.csv"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder of temporary files, which must be empty at the end."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(reading_memory, "gettempdir", lambda: str(folder))
    yield folder
    assert not list(folder.iterdir())


def test_names_beyond_the_limit_are_refused(many: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are held in memory: reading stops as soon as they exceed the limit, and leaves no file."""
    monkeypatch.setattr(spilled_columns, "GROUPS_IN_LIMIT", 100)
    with (
        open_source([str(many)]) as opened,
        read_within_memory(opened, 51_000_000) as source,
        pytest.raises(SettingsError, match=r"memory must be more than 5\d\.?\d? MB for the names in the first"),
    ):
        read_evidence(source)


def test_a_task_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All answers to a task are sorted at once; if they do not fit, the error names the least limit."""
    monkeypatch.setattr(sorted_parts, "BYTES_PER_ROW", ENOUGH // 8)
    path = tmp_path / "answers.csv"
    path.write_text(HEADER + rows(240), "utf-8")

    _, found = read_both_ways([path], tmp_path / "limited", Layout(), EvidenceOptions())

    assert "answers to one task, got 100 MB" in found


def test_choices_are_refused_with_a_limit(tmp_path: Path) -> None:
    """Answers that are lists make more rows, and are not read in batches."""
    path = tmp_path / "answers.csv"
    path.write_text(HEADER + rows(200) + 't99,w1,"[""no"", ""yes""]"\n', "utf-8")

    _, found = read_both_ways([path], tmp_path / "limited", Layout(), EvidenceOptions())

    assert "with a limit of memory, a large file must have one choice in each answer" in found


def test_small_files_and_other_forms_are_read_at_once(many: Path, temporary: Path, tmp_path: Path) -> None:
    """A file that fits is read at once; a large one of another form is refused before it is read."""
    with open_source([str(many)]) as opened, read_within_memory(opened, 10**9) as source:
        assert source.limit is None
    with open_source([str(many)]) as opened, read_within_memory(opened, 60_000_000) as source:
        assert source.limit is not None
        assert [source.limit.folder] == list(temporary.iterdir())
    with (
        open_source([str(many)], Layout(multiple=";")) as opened,
        pytest.raises(SettingsError, match=r"memory must be about .* MB or more to read these files, got 60 MB"),
        read_within_memory(opened, 60_000_000),
    ):
        pass
    with open_source([str(many)]) as opened, pytest.raises(SettingsError, match="about 50 MB or more"):
        read_within_memory(opened, 1000).__enter__()


@pytest.mark.parametrize("step", ["_divide_rows_by_task", "write_encoded"])
def test_files_are_removed_after_an_error(
    step: str, many: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error while rows are divided or blocks are written leaves no temporary file."""

    def broken(*_: object) -> None:
        raise ReportsError("broken")

    monkeypatch.setattr(sorted_parts, step, broken)
    monkeypatch.setattr(sorted_parts, "BYTES_PER_ROW", 100)
    monkeypatch.setattr(mapped_codes, "ROWS_AT_ONCE", 1 << 18)
    with (
        open_source([str(many)]) as opened,
        read_within_memory(opened, 60_000_000) as source,
        pytest.raises(ReportsError, match="broken"),
    ):
        read_evidence(source)
