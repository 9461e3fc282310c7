"""Canonical order: one sort of packed numbers and the general sort are the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.data.ingest import canonical_order
from crowdveil.data.ingest.canonical_order import sort_columns, sort_packed

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

    assert sorted(rows) == list(zip(*(column.tolist() for column in sort_columns(task, worker, value)), strict=True))
    if repeats and dtype is np.float64:
        assert packed is None
    else:
        assert packed is not None
        assert sorted(rows) == list(zip(*(column.tolist() for column in packed[:3]), strict=True))
        assert repeats == packed.repeats


def test_rows_in_many_parts_are_sorted_as_in_one(monkeypatch) -> None:
    """Packing and unpacking part by part changes nothing, and a repeat across the border of two parts is seen."""
    monkeypatch.setattr(canonical_order, "ROWS_AT_ONCE", 2)
    task, worker, value = columns([(0, 0, 0), (2, 1, 1), (1, 0, 2), (1, 0, 1), (3, 3, 0)])

    packed = sort_packed(task, worker, value, (4, 4, 3))

    assert ([0, 1, 1, 2, 3], [0, 1, 2, 1, 0], True) == (packed.task.tolist(), packed.value.tolist(), packed.repeats)


def test_what_does_not_fit_is_left_to_the_general_sort() -> None:
    """Codes that need more than 64 bits together are not packed; those that need just 64 are."""
    task, worker, value = columns([(1, 1, 1), (0, 0, 0)])

    assert sort_packed(task, worker, value, (2**31, 2**31, 8)) is None
    packed = sort_packed(task + (2**31 - 2), worker + (2**31 - 2), value, (2**31, 2**31, 4))
    assert ([2**31 - 2, 2**31 - 1], [0, 1]) == (packed.worker.tolist(), packed.value.tolist())
