"""Ids of one width, hashed as numbers: what Arrow's own encoding of the text gives, or nothing."""

import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil import Reports
from crowdveil.data.ingest import fixed_width
from crowdveil.data.ingest.fixed_width import MOST_WORDS, WORD, encode_fixed_width


@settings(max_examples=60, derandomize=True, deadline=None)
@given(width=st.integers(WORD, MOST_WORDS * WORD), data=st.data())
def test_it_is_arrows_own_encoding(width: int, data: st.DataObject) -> None:
    """Rows, in chunks that are slices of longer ones, decode to themselves; dictionaries are in order of first rows."""
    names = data.draw(st.lists(st.text("abé\0", min_size=1).map(lambda text: _of_width(text, width)), min_size=1))
    cut = data.draw(st.integers(0, len(names)))
    before = pa.array(["before", *names[:cut]]).slice(1)
    behind = pa.array([*names[cut:], "behind"]).slice(0, len(names) - cut)
    coded = encode_fixed_width(pa.chunked_array([before, behind]))

    assert names == coded.to_pylist()
    assert list(dict.fromkeys(names)) == coded.dictionary.to_pylist()


def _of_width(text: str, width: int) -> str:
    """Cut or fill a text to so many bytes."""
    held = text.encode()[:width].decode("utf-8", errors="ignore")
    return held + "z" * (width - len(held.encode()))


@pytest.mark.parametrize(
    "rows",
    [[], ["a" * 8, None], ["a" * 8, "a" * 9], ["a" * 7], ["a" * (MOST_WORDS * WORD + 1)], ["a" * 8, "a" * 8 + "\0"]],
)
def test_other_columns_are_left_to_others(rows: list[str | None]) -> None:
    """Nothing comes of empty columns, missing cells, several widths, and ids that are too short or too long."""
    assert encode_fixed_width(pa.chunked_array([pa.array(rows, pa.string())])) is None
    assert encode_fixed_width(pa.chunked_array([pa.array([12345678, 12345678])])) is None


def test_ids_that_mix_alike_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where different ids share their number, the column is left to others, and reports are read as ever."""
    names = [f"id-{number:03}-of-a-crowd" for number in range(9)]
    monkeypatch.setattr(fixed_width, "ODD", np.uint64(0))

    assert encode_fixed_width(pa.chunked_array([pa.array(names[::-1])])) is None
    table = pa.table({"task": names, "worker": names, "label": ["a", "b", "a"] * 3})
    assert names == Reports.from_frame(table).tasks.tolist()


def test_random_ids_of_a_file_are_read_as_they_are(tmp_path: Path) -> None:
    """A file of UUIDs without hyphens gives the sorted names and the right rows."""
    generator = np.random.default_rng(1)
    tasks = [uuid.UUID(bytes=generator.bytes(16)).hex for _ in range(20)]
    rows = [(tasks[number % 20], tasks[number // 20], "yn"[number % 2]) for number in generator.permutation(400)]
    path = tmp_path / "answers.csv"
    path.write_text("task,worker,label\n" + "".join(f"{','.join(row)}\n" for row in rows), encoding="utf-8")
    reports = Reports.from_csv(path)
    read = zip(reports.tasks[reports.task], reports.workers[reports.worker], reports.value, strict=True)

    assert sorted(tasks) == reports.tasks.tolist()
    assert sorted(rows) == [(task, worker, reports.alphabet.names[label]) for task, worker, label in read]
