"""Dictionaries: names in order, rows coded, however the text came in chunks."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.data.ingest.arrow_strings import name_order
from crowdveil.data.ingest.dictionary_encoding import code_batches, encode_batches, sorted_codes
from crowdveil.jit import KERNELS_VARIABLE

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBERED = st.integers(0, 10**6).map("task-{}".format)


@settings(max_examples=100)
@given(st.one_of(st.lists(TEXT, unique=True), st.lists(NUMBERED, unique=True)))
def test_names_are_put_in_order_of_code_points(names) -> None:
    """Names of any length, script and common beginning are sorted as Python sorts them."""
    array = pa.array(names, pa.string())

    assert sorted(names) == array.take(pa.array(name_order(array), pa.int64())).to_pylist()


@given(st.lists(st.text("ab", min_size=9, max_size=14), unique=True), TEXT)
def test_names_that_differ_late_are_put_in_order(names, beginning) -> None:
    """Names that more bytes tell apart than fit into one number are sorted all the same."""
    array = pa.array([beginning + name for name in names], pa.string())

    assert sorted(array.to_pylist()) == array.take(pa.array(name_order(array), pa.int64())).to_pylist()


def test_a_part_of_an_array_is_put_in_order() -> None:
    """A slice, whose text begins in the middle of a buffer, is sorted by its own names."""
    array = pa.array(["x", "id-3", "id-10", "id-2", "y"]).slice(1, 3)

    assert [1, 2, 0] == name_order(array).tolist()


def test_names_that_end_in_zero_bytes_are_told_apart() -> None:
    """A zero byte at the end of a name counts."""
    array = pa.array(["a\0", "a", "a\0\0"])

    assert [1, 0, 2] == name_order(array).tolist()


@pytest.mark.parametrize("kernels", ["plain", "compiled"])
@pytest.mark.parametrize("group_bytes", [1, 200, 1 << 20])
def test_groups_make_no_difference(monkeypatch, group_bytes, kernels) -> None:
    """Text that is encoded in many groups, or in one, comes back as it was, with names in order."""
    monkeypatch.setenv(KERNELS_VARIABLE, kernels)
    cells = [f"id-{k * k % 37}" for k in range(200)]
    batches = [pa.record_batch({"task": pa.array(cells[at : at + 30])}) for at in range(0, 200, 30)]

    coded = code_batches(batches, ["task"], group_bytes)["task"]

    assert cells == encode_batches(batches, ["task"], group_bytes)["task"].to_pylist()
    assert cells == coded.names[coded.codes].tolist()
    assert sorted(set(cells)) == coded.names.tolist()


def test_entries_of_other_chunks_that_never_occur_are_no_names() -> None:
    """Of dictionaries that differ, only what some row of their own chunk holds becomes a name; null is missing."""
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array([1, None]), pa.array(["unused", "b"])),
        pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array(["a", "unused too"])),
    ]

    coded = sorted_codes(pa.chunked_array(chunks))

    assert (["a", "b"], [1, -1, 0, 0]) == (coded.names.tolist(), coded.codes.tolist())


@given(st.lists(st.text("ab\0é", max_size=3), min_size=1, max_size=30))
def test_coding_is_what_python_would_do(cells) -> None:
    """Codes and names are those of sorted(set(cells))."""
    half = len(cells) // 2
    column = pa.chunked_array(
        [pa.array(part, pa.string()).dictionary_encode() for part in (cells[:half], cells[half:]) if part]
    )
    coded = sorted_codes(column)

    assert sorted(set(cells)) == coded.names.tolist()
    assert [sorted(set(cells)).index(cell) for cell in cells] == coded.codes.tolist()
