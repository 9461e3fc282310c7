"""Dictionaries and canonical order: what Python's own would be."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crowdveil.answers.blocks import sort_by_counting, sort_canonically
from crowdveil.answers.ingest import dictionary_encoding
from crowdveil.answers.ingest.dictionary_encoding import encode_batches, encode_sorted

TEXT = st.one_of(st.text("ab\0é", max_size=18), st.text(st.characters(exclude_categories=["Cs"]), max_size=16))


@pytest.mark.parametrize("dictionaries", [False, True])
@settings(max_examples=100)
@given(cells=st.lists(TEXT, min_size=1), half=st.integers(0, 9))
@example(cells=["a\0", "a", "a\0\0"], half=1)
def test_identifiers_are_sorted_by_code_point(dictionaries: bool, cells: list[str], half: int) -> None:
    """Distinct cells, trailing zero bytes included, are sorted as Python does; so are dictionaries that differ."""
    chunks = [pa.array(["before", *part], pa.string()).slice(1) for part in (cells[:half], cells[half:])]
    if dictionaries:
        chunks = [chunk.dictionary_encode() for chunk in chunks]
    coded = encode_sorted(pa.chunked_array(chunks))

    assert sorted(set(cells)) == coded.names.tolist()
    assert cells == coded.names[coded.codes].tolist()


GROUPS: dict[str, list[list[str | None]]] = {
    "numbered": [[f"id-{k * k % 37}" for k in range(at, at + 30)] for at in range(0, 200, 30)],
    "any": [["a", "bc"], ["", "a"]],
    "missing": [["a", "b"], [None, "a"], ["b"]],
    "long": [["a", "b"], ["c" * 65, "a"], ["b", "a"]],
    "none": [],
}


@pytest.mark.parametrize("at_once", [1, 2])
@pytest.mark.parametrize("group_bytes", [1, 200, 1 << 20])
@pytest.mark.parametrize("name", GROUPS)
def test_groups_make_no_difference(monkeypatch, name: str, group_bytes: int, at_once: int) -> None:
    """Text in many groups comes back as it was, however often their dictionaries are merged."""
    monkeypatch.setattr(dictionary_encoding, "GROUP_BYTES", group_bytes)
    monkeypatch.setattr(dictionary_encoding, "GROUPS_AT_ONCE", at_once)
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

    found = encode_sorted(pa.chunked_array([pa.array(numbers[:5]), pa.array(numbers[5:])]))

    names, codes = np.unique(numbers, return_inverse=True)
    assert found.names.dtype == names.dtype
    np.testing.assert_array_equal(found.names, names)
    np.testing.assert_array_equal(found.codes, codes)


def test_missing_and_sparse_numbers_are_coded() -> None:
    """Numbers far apart are names as they are; null is missing, and no rows have no names."""
    coded = encode_sorted(pa.chunked_array([pa.array([2**63 - 1, None, -(2**63)])]))

    assert ([-(2**63), 2**63 - 1], [1, -1, 0]) == (coded.names.tolist(), coded.codes.tolist())
    assert 0 == len(encode_sorted(pa.chunked_array([pa.array([], pa.int64())])).names)


ROWS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 2)), max_size=40)


def columns(rows, dtype=np.int16):
    """Task, worker and value columns of some rows."""
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return table[:, 0].astype(np.int32), table[:, 1].astype(np.int32), table[:, 2].astype(dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.int16, np.float64])
@settings(max_examples=100)
@given(rows=ROWS)
def test_counted_rows_are_sorted_like_others(dtype, rows) -> None:
    """Both sorts give Python's order; repeated pairs are noticed, and numbers on them are left to the general sort."""
    task, worker, value = columns(rows, dtype)
    repeats = len({row[:2] for row in rows}) < len(rows)

    counted = sort_by_counting(task, worker, value, (6, 4, 3))

    assert sorted(rows) == list(
        zip(*(column.tolist() for column in sort_canonically(task, worker, value)), strict=True)
    )
    if repeats and dtype is np.float64:
        assert counted is None
    else:
        assert counted is not None
        assert sorted(rows) == list(zip(*(column.tolist() for column in counted[:3]), strict=True))
        assert repeats == counted.repeats
        assert [np.int32, np.int32, dtype] == [column.dtype for column in counted[:3]]


def test_few_rows_on_many_tasks_are_left_to_the_general_sort() -> None:
    """No counters are kept of tasks that are far more than the rows."""
    task, worker, value = columns([(1, 1, 1), (0, 0, 0)])

    assert sort_by_counting(task, worker, value, (2**31, 2, 2)) is None


INTEGERS: dict[str, Any] = {
    "in a row": np.array([3, 1, 2, 1], np.int64),
    "with gaps": np.array([-4, 2, 0, 2, -4], np.int32),
    "a byte's range": np.array([*range(-128, 128)], np.int8),
    "wide": np.array([10**12, -(10**12), 7], np.int64),
    "beyond 64 signed bits": np.array([2**63 + 2, 2**63, 2**63 + 1], np.uint64),
    "up to 64 signed bits": np.array([2**63 - 1, 2**63 - 3], np.uint64),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_of_any_range_are_coded_in_their_order(name: str) -> None:
    """Distinct integers ascend in their own type, whether their range is coded by a table or they are hashed."""
    numbers = INTEGERS[name]

    coded = encode_sorted(pa.chunked_array([numbers[:1], numbers[1:]]))

    assert np.unique(numbers).tolist() == coded.names.tolist()
    assert (numbers.dtype, np.int32) == (coded.names.dtype, coded.codes.dtype)
    assert numbers.tolist() == coded.names[coded.codes].tolist()
