"""Numbered ids: coded by number where all are alike, left alone where one is not."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.data.ingest import numbered
from crowdveil.data.ingest.numbered import encode_numbered, whole_numbers


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), st.integers(1, 4), st.data())
def test_numbered_ids_come_back(beginning, digits, data) -> None:
    """Any beginning and width, zeros in front included: the ids come back, their dictionary in order."""
    numbers = data.draw(st.lists(st.integers(0, 10**digits - 1), min_size=1, max_size=20))
    cells = [f"{beginning}{number:0{digits}d}" for number in numbers]
    column = pa.chunked_array([pa.array(part, pa.string()) for part in (cells[:3], cells[3:])])

    coded = encode_numbered(column.slice(1) if len(cells) > 1 else column)

    assert coded.to_pylist() == (cells[1:] or cells)
    assert sorted(set(cells[1:] or cells)) == coded.dictionary.to_pylist()


@pytest.mark.parametrize(
    "cells",
    [
        ["t1", "t10"],
        ["t1", "u1"],
        ["t1", "t"],
        ["t1", "tx"],
        ["t1", "t/"],
        ["t1", "t:"],
        ["t1", None],
        ["t", "t1"],
        [None, "t1"],
        ["1٣", "1٤"],
        ["t123456789", "t123456789"],
        [],
    ],
)
def test_other_ids_are_left_alone(cells) -> None:
    """Another width or beginning, no digit, a missing cell, or more digits than a table holds: no numbers."""
    assert encode_numbered(pa.chunked_array([pa.array(cells, pa.string())])) is None


def test_sparse_numbers_are_left_alone(monkeypatch) -> None:
    """Few rows with long numbers are not worth a table of all numbers."""
    monkeypatch.setattr(numbered, "SMALL_TABLE", 10)

    assert encode_numbered(pa.chunked_array([pa.array(["t01", "t02"])])) is None
    assert encode_numbered(pa.chunked_array([pa.array([f"t{k:02}" for k in range(20)])])) is not None


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
@settings(max_examples=20)
@given(steps=st.lists(st.integers(0, 90), min_size=1, max_size=30), high=st.booleans())
def test_whole_numbers_are_coded_as_a_dictionary_is(kind: str, steps: list[int], high: bool) -> None:
    """Names are the sorted numbers, in their own type, codes their positions, ends of the type's range included."""
    ends = np.iinfo(kind)
    numbers = np.array([ends.max - step if high else ends.min + step for step in steps], dtype=kind)

    found = whole_numbers(pa.chunked_array([pa.array(numbers[:5]), pa.array(numbers[5:])]))

    assert found is not None
    names, codes = np.unique(numbers, return_inverse=True)
    assert found[0].dtype == names.dtype
    np.testing.assert_array_equal(found[0], names)
    np.testing.assert_array_equal(found[1], codes)


def test_missing_and_sparse_numbers_are_left_to_hashing() -> None:
    """A table of all numbers is made only where none is missing and they lie close together."""
    assert whole_numbers(pa.chunked_array([pa.array([1, None, 3])])) is None
    assert whole_numbers(pa.chunked_array([pa.array([-(2**63), 2**63 - 1])])) is None
    assert whole_numbers(pa.chunked_array([pa.array([], pa.int64())])) is None
