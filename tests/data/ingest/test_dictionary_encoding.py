"""Dictionaries: names in order, rows coded, however the text came in chunks."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crowdveil.data.ingest import dictionary_encoding
from crowdveil.data.ingest.dictionary_encoding import (
    ColumnEncoder,
    compiled_from,
    dictionary_encode_batches,
    encode_batches,
    encode_integers,
    encode_sorted,
    encode_text,
    encoder_of,
)
from crowdveil.data.ingest.hash_table import MAX_WORDS, WORD
from crowdveil.jit import KERNELS_VARIABLE

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@settings(max_examples=100)
@given(st.lists(TEXT, min_size=1))
@example(["a\0", "a", "a\0\0"])
def test_identifiers_are_sorted_by_code_point(cells) -> None:
    """Distinct cells of any length and script, trailing zero bytes included, are sorted as Python sorts them."""
    coded = encode_text(pa.chunked_array([pa.array(["before", *cells], pa.string()).slice(1)]))

    assert sorted(set(cells)) == coded.names.tolist()
    assert cells == coded.names[coded.codes].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["plain", "compiled"])
@pytest.mark.parametrize("group_bytes", [1, 200, 1 << 20])
def test_groups_make_no_difference(monkeypatch, group_bytes, kernels) -> None:
    """Text that is encoded in many groups, or in one, comes back as it was, with names in order."""
    monkeypatch.setenv(KERNELS_VARIABLE, kernels)
    cells = [f"id-{k * k % 37}" for k in range(200)]
    batches = [pa.record_batch({"task": pa.array(cells[at : at + 30])}) for at in range(0, 200, 30)]

    coded = encode_batches(batches, ["task"], group_bytes)["task"]

    assert cells == dictionary_encode_batches(batches, ["task"], group_bytes)["task"].to_pylist()
    assert cells == coded.names[coded.codes].tolist()
    assert sorted(set(cells)) == coded.names.tolist()


def test_entries_of_other_chunks_that_never_occur_are_no_names() -> None:
    """Of dictionaries that differ, only what some row of their own chunk holds becomes a name; null is missing."""
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array([1, None]), pa.array(["unused", "b"])),
        pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array(["a", "unused too"])),
    ]

    coded = encode_sorted(pa.chunked_array(chunks))

    assert (["a", "b"], [1, -1, 0, 0]) == (coded.names.tolist(), coded.codes.tolist())


@given(st.lists(st.text("ab\0é", max_size=3), min_size=1, max_size=30))
def test_coding_is_what_python_would_do(cells) -> None:
    """Codes and names are those of sorted(set(cells))."""
    half = len(cells) // 2
    column = pa.chunked_array(
        [pa.array(part, pa.string()).dictionary_encode() for part in (cells[:half], cells[half:]) if part]
    )
    coded = encode_sorted(column)

    assert sorted(set(cells)) == coded.names.tolist()
    assert [sorted(set(cells)).index(cell) for cell in cells] == coded.codes.tolist()


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
@settings(max_examples=20)
@example(steps=[*range(90), 3], high=True)
@given(steps=st.lists(st.integers(0, 90), min_size=1, max_size=30), high=st.booleans())
def test_whole_numbers_are_coded_as_a_dictionary_is(kind: str, steps: list[int], high: bool) -> None:
    """Names are the sorted numbers, in their own type, codes their positions, ends of the type's range included."""
    ends = np.iinfo(kind)
    numbers = np.array([ends.max - step if high else ends.min + step for step in steps], dtype=kind)

    found = encode_integers(pa.chunked_array([pa.array(numbers[:5]), pa.array(numbers[5:])]))

    assert found is not None
    names, codes = np.unique(numbers, return_inverse=True)
    assert found[0].dtype == names.dtype
    np.testing.assert_array_equal(found[0], names)
    np.testing.assert_array_equal(found[1], codes)


def test_missing_and_sparse_numbers_are_left_to_hashing() -> None:
    """A table of all numbers is made only where none is missing and they lie close together."""
    assert encode_integers(pa.chunked_array([pa.array([1, None, 3])])) is None
    assert encode_integers(pa.chunked_array([pa.array([-(2**63), 2**63 - 1])])) is None
    assert encode_integers(pa.chunked_array([pa.array([], pa.int64())])) is None


GROUPS = {
    "numbered": [["id-01", "id-02"], ["id-02", "id-03"]],
    "one width": [["a" * 8, "b" * 8], ["b" * 8]],
    "any": [["a", "bc"], ["", "a"]],
    "missing": [["a", "b"], [None, "a"], ["b"]],
    "too long": [["a", "b"], ["c" * (MAX_WORDS * WORD + 1), "a"], ["b", "a"]],
    "too long at once": [["c" * (MAX_WORDS * WORD + 1)], ["b"]],
}


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", GROUPS)
def test_groups_come_back_as_they_were(name: str, compiled: bool) -> None:
    """Also where some group does not fit the table that the groups before it are in."""
    encoder = ColumnEncoder(compiled=compiled)
    for cells in GROUPS[name]:
        encoder.add(pa.chunked_array([pa.array(cells)]))

    assert [cell for cells in GROUPS[name] for cell in cells] == encoder.finish().to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["plain", "compiled"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_every_kind_of_text_is_encoded(monkeypatch: pytest.MonkeyPatch, kind: pa.DataType, kernels: str) -> None:
    """Text with short and long offsets and views of text, with missing cells, and without any cell."""
    monkeypatch.setenv(KERNELS_VARIABLE, kernels)
    columns: list[list[str | None]] = [["a", "b", "a"], ["a", None], []]

    assert columns == [encoder_of(pa.chunked_array([pa.array(cells, kind)])).finish().to_pylist() for cells in columns]


@pytest.mark.slow
def test_a_group_that_fits_costs_one_dictionary() -> None:
    """However many groups there are, compiled code gives one chunk."""
    encoder = ColumnEncoder(compiled=True)
    for cells in GROUPS["any"]:
        encoder.add(pa.chunked_array([pa.array(cells)]))

    assert 1 == encoder.finish().num_chunks


def test_loading_compiled_code_must_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less text is enough where numba is loaded already."""
    monkeypatch.setitem(sys.modules, "numba", sys)
    assert compiled_from() == dictionary_encoding.COMPILED_FROM
    monkeypatch.delitem(sys.modules, "numba")
    assert compiled_from() == dictionary_encoding.LOADED_FROM > dictionary_encoding.COMPILED_FROM


@pytest.mark.slow
def test_a_small_file_loads_no_compiled_code() -> None:
    """A fresh interpreter that encodes little text has not imported numba."""
    program = (
        "import sys, pyarrow\n"
        "from crowdveil.data.ingest.dictionary_encoding import encoder_of\n"
        "encoder_of(pyarrow.chunked_array([pyarrow.array(['a', 'b'])]))\n"
        "print('numba' in sys.modules)"
    )

    assert "False" == subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip()
