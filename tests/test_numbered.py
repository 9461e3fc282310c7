"""Numbered ids: coded by number where all are alike, left alone where one is not."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil import numbered
from crowdveil.numbered import encode_numbered


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
