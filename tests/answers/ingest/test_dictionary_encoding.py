"""Dictionaries, the compiled table of names, and canonical order: what Python's own would be."""

import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crowdveil.answers import blocks
from crowdveil.answers.blocks import sort_by_task_worker_value, sort_packed
from crowdveil.answers.ingest import dictionary_encoding
from crowdveil.answers.ingest.dictionary_encoding import (
    encode_batches,
    encode_integers,
    encode_sorted,
    encode_text,
    least_bytes_for_compiled_code,
)
from crowdveil.answers.ingest.hash_table import HASH_MULTIPLIER, MAX_WORDS, TextTable
from crowdveil.em.kernels.jit import KERNELS_VARIABLE

LONGEST = 8 * MAX_WORDS
"""Bytes of the longest name of the compiled table."""
SALT = 0x1F2E3D4C5B6A7988
TEXT = st.one_of(
    st.text("ab\0é", max_size=18), st.text(st.characters(exclude_categories=["Cs"]), max_size=LONGEST // 4)
)


@pytest.mark.parametrize("dictionaries", [False, True])
@settings(max_examples=100)
@given(cells=st.lists(TEXT, min_size=1), half=st.integers(0, 9))
@example(cells=["a\0", "a", "a\0\0"], half=1)
def test_identifiers_are_sorted_by_code_point(dictionaries: bool, cells: list[str], half: int) -> None:
    """Distinct cells, trailing zero bytes included, are sorted as Python does; so are dictionaries that differ."""
    chunks = [pa.array(["before", *part], pa.string()).slice(1) for part in (cells[:half], cells[half:])]
    coded = (
        encode_sorted(pa.chunked_array([chunk.dictionary_encode() for chunk in chunks]))
        if dictionaries
        else encode_text(pa.chunked_array(chunks))
    )

    assert sorted(set(cells)) == coded.names.tolist()
    assert cells == coded.names[coded.codes].tolist()


GROUPS: dict[str, list[list[str | None]]] = {
    "numbered": [[f"id-{k * k % 37}" for k in range(at, at + 30)] for at in range(0, 200, 30)],
    "any": [["a", "bc"], ["", "a"]],
    "missing": [["a", "b"], [None, "a"], ["b"]],
    "too long": [["a", "b"], ["c" * (LONGEST + 1), "a"], ["b", "a"]],
    "too long at once": [["c" * (LONGEST + 1)], ["b"]],
    "none": [],
}


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["plain", "compiled"])
@pytest.mark.parametrize("group_bytes", [1, 200, 1 << 20])
@pytest.mark.parametrize("name", GROUPS)
def test_groups_make_no_difference(monkeypatch, name: str, group_bytes: int, kernels: str) -> None:
    """Text in many groups comes back as it was, also where one does not fit the table that those before it are in."""
    monkeypatch.setenv(KERNELS_VARIABLE, kernels)
    monkeypatch.setattr(dictionary_encoding, "COMPILED_FROM", group_bytes)
    cells = [cell for group in GROUPS[name] for cell in group]
    batches = [pa.record_batch({"task": pa.array(group, pa.string())}) for group in GROUPS[name]]

    coded = encode_batches(batches, ["task"])["task"]

    assert cells == np.append(coded.names, None)[coded.codes].tolist()
    assert sorted({cell for cell in cells if cell is not None}) == coded.names.tolist()


def test_entries_of_other_chunks_that_never_occur_are_no_names() -> None:
    """Of dictionaries that differ, only what some row of their own chunk holds becomes a name; null is missing."""
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array([1, None]), pa.array(["unused", "b"])),
        pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array(["a", "unused too"])),
    ]

    coded = encode_sorted(pa.chunked_array(chunks))

    assert (["a", "b"], [1, -1, 0, 0]) == (coded.names.tolist(), coded.codes.tolist())


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


def test_loading_compiled_code_must_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less text is enough where numba is loaded already."""
    monkeypatch.setitem(sys.modules, "numba", sys)
    assert least_bytes_for_compiled_code() == dictionary_encoding.COMPILED_FROM
    monkeypatch.delitem(sys.modules, "numba")
    assert least_bytes_for_compiled_code() == dictionary_encoding.LOADED_FROM > dictionary_encoding.COMPILED_FROM


def in_python(cells: list[str]) -> tuple[list[str], list[int]]:
    """Distinct names in the order of their first rows, and each row's position."""
    places = {name: code for code, name in enumerate(dict.fromkeys(cells))}
    return list(places), [places[cell] for cell in cells]


@pytest.mark.slow
@settings(max_examples=150, derandomize=True, deadline=None)
@given(parts=st.lists(st.lists(TEXT, max_size=20), min_size=1, max_size=4), large=st.booleans())
def test_it_is_pythons_dictionary(parts: list[list[str]], large: bool) -> None:
    """Names of any length up to the longest, in chunks that are slices of longer ones, with zero bytes and without."""
    kind = pa.large_string() if large else pa.string()
    chunks = [pa.array(["before", *part, "behind"], kind).slice(1, len(part)) for part in parts]
    table = TextTable()
    codes = [table.code_of_each_row_or_none(pa.chunked_array([chunk], kind)) for chunk in chunks]
    names, expected = in_python([cell for part in parts for cell in part])

    assert names == table.dictionary().to_pylist()
    assert expected == [int(code) for part in codes if part is not None for code in part]
    table.dictionary().validate(full=True)


@pytest.mark.slow
def test_many_names_outgrow_the_first_slots() -> None:
    """A table that grows several times gives the codes of Arrow's own."""
    generator = np.random.default_rng(1)
    cells = pa.chunked_array([pa.array([f"id-{n}" for n in generator.integers(0, 20_000, 30_000)])])
    table = TextTable()
    codes = table.code_of_each_row_or_none(cells)
    arrow = cells.dictionary_encode().chunk(0)

    assert codes is not None
    assert arrow.indices.to_pylist() == codes.tolist()
    assert arrow.dictionary.to_pylist() == table.dictionary().to_pylist()


def test_names_with_equal_hashes_are_distinct() -> None:
    """Names made so that all share their first slot and the part of the hash that slots hold are as good as others."""
    inverse = pow(int(HASH_MULTIPLIER), -1, 2**64)
    mixed = [0x155 << 39 | number << 20 | 5 for number in range(300)]
    words = [_unmixed(_unmixed(number, inverse), inverse) ^ 8 ^ SALT for number in mixed]
    buffers = [pa.py_buffer(np.arange(0, 4808, 8, dtype="<i4")), pa.py_buffer(np.array(words * 2, dtype="<u8"))]
    table = TextTable(salt=SALT)
    codes = table.code_of_each_row_or_none(pa.chunked_array([pa.StringArray.from_buffers(600, *buffers)]))
    taken = table.slots[5:305]

    assert [*range(300)] * 2 == ([] if codes is None else codes.tolist())
    assert words == np.frombuffer(table.dictionary().buffers()[2], dtype="<u8").tolist()
    assert {0x155} == {int(slot) >> 39 for slot in taken}


def test_the_slots_of_names_cannot_be_known_beforehand() -> None:
    """Two tables of the same names have other slots, and the same codes."""
    cells = pa.chunked_array([pa.array([f"id-{n}" for n in range(50)])])
    tables = TextTable(), TextTable()
    codes = [table.code_of_each_row_or_none(cells) for table in tables]

    assert np.flatnonzero(tables[0].slots).tolist() != np.flatnonzero(tables[1].slots).tolist()
    assert [*range(50)] == [int(code) for code in codes[0]] == [int(code) for code in codes[1]]


def _unmixed(number: int, inverse: int) -> int:
    """Undo a product and what follows it."""
    return (number ^ number >> 32) * inverse % 2**64


def test_what_does_not_fit_is_left_to_others() -> None:
    """Missing cells, other types, and names that are too long are refused."""
    rows = [[None, "a"], [1, 2], ["a" * (LONGEST + 1)], ["é" * (LONGEST // 2) + "x"]]

    assert [None] * 4 == [TextTable().code_of_each_row_or_none(pa.chunked_array([pa.array(cells)])) for cells in rows]


ROWS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 2)), max_size=40)


def columns(rows, dtype=np.int16):
    """Task, worker and value columns of some rows."""
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return table[:, 0].astype(np.int32), table[:, 1].astype(np.int32), table[:, 2].astype(dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.int16, np.float64])
@settings(max_examples=100)
@given(rows=ROWS)
def test_packed_rows_are_sorted_like_others(dtype, rows) -> None:
    """Both sorts give Python's order; repeated pairs are noticed, and numbers on them are left to the general sort."""
    task, worker, value = columns(rows, dtype)
    repeats = len({row[:2] for row in rows}) < len(rows)

    packed = sort_packed(task, worker, value, (6, 4, 3))

    assert sorted(rows) == list(
        zip(*(column.tolist() for column in sort_by_task_worker_value(task, worker, value)), strict=True)
    )
    if repeats and dtype is np.float64:
        assert packed is None
    else:
        assert packed is not None
        assert sorted(rows) == list(zip(*(column.tolist() for column in packed[:3]), strict=True))
        assert repeats == packed.repeats


def test_rows_in_many_parts_are_sorted_as_in_one(monkeypatch) -> None:
    """Packing and unpacking part by part changes nothing, and a repeat across the border of two parts is seen."""
    monkeypatch.setattr(blocks, "ROWS_AT_ONCE", 2)
    task, worker, value = columns([(0, 0, 0), (2, 1, 1), (1, 0, 2), (1, 0, 1), (3, 3, 0)])

    packed = sort_packed(task, worker, value, (4, 4, 3))

    assert ([0, 1, 1, 2, 3], [0, 1, 2, 1, 0], True) == (packed.task.tolist(), packed.value.tolist(), packed.repeats)


def test_what_does_not_fit_is_left_to_the_general_sort() -> None:
    """Codes that need more than 64 bits together are not packed; those that need just 64 are."""
    task, worker, value = columns([(1, 1, 1), (0, 0, 0)])

    assert sort_packed(task, worker, value, (2**31, 2**31, 8)) is None
    packed = sort_packed(task + (2**31 - 2), worker + (2**31 - 2), value, (2**31, 2**31, 4))
    assert ([2**31 - 2, 2**31 - 1], [0, 1]) == (packed.worker.tolist(), packed.value.tolist())
