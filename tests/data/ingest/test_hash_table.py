"""The compiled table of names: what Python's own dictionary gives, whatever the names and chunks."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.data.ingest import arrow_strings, hash_table
from crowdveil.data.ingest.arrow_strings import text_array
from crowdveil.data.ingest.hash_table import MAX_WORDS, WORD, TextTable
from crowdveil.data.ingest.hash_table_numba import HASH_MULTIPLIER

LONGEST = MAX_WORDS * WORD
SALT = 0x1F2E3D4C5B6A7988
TEXT = st.one_of(st.text("ab\0é", max_size=18), st.text(max_size=LONGEST // 4))


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
    codes = [table.codes(pa.chunked_array([chunk], kind)) for chunk in chunks]
    names, expected = in_python([cell for part in parts for cell in part])

    assert names == table.dictionary().to_pylist()
    assert expected == [int(code) for part in codes if part is not None for code in part]
    table.dictionary().validate(full=True)


@pytest.mark.slow
@pytest.mark.parametrize("lengths", [(1, 8, 9, 16, 17, 33, LONGEST), (LONGEST, 1), (0, 64, 0)])
def test_names_get_more_words_where_longer_ones_come(lengths: tuple[int, ...]) -> None:
    """Names that came before a longer one keep their codes, and are found again."""
    cells = ["x" * length for length in lengths]
    table = TextTable()
    first = [table.codes(pa.chunked_array([pa.array([cell])])) for cell in cells]
    again = table.codes(pa.chunked_array([pa.array(cells)]))
    names, expected = in_python(cells)

    assert again is not None
    assert expected == np.concatenate([codes for codes in first if codes is not None]).tolist() == again.tolist()
    assert names == table.dictionary().to_pylist()


@pytest.mark.slow
def test_many_names_outgrow_the_first_slots() -> None:
    """A table that grows several times gives the codes of Arrow's own."""
    generator = np.random.default_rng(1)
    cells = pa.chunked_array([pa.array([f"id-{n}" for n in generator.integers(0, 20_000, 30_000)])])
    table = TextTable()
    codes = table.codes(cells)
    arrow = cells.dictionary_encode().chunk(0)

    assert codes is not None
    assert arrow.indices.to_pylist() == codes.tolist()
    assert arrow.dictionary.to_pylist() == table.dictionary().to_pylist()


def test_names_with_equal_hashes_are_distinct() -> None:
    """Names made so that all share their first slot and the part of the hash that slots hold are as good as others."""
    inverse = pow(int(HASH_MULTIPLIER), -1, 2**64)
    mixed = [0x155 << 39 | number << 20 | 5 for number in range(300)]
    words = [_unmixed(_unmixed(number, inverse), inverse) ^ WORD ^ SALT for number in mixed]
    text = np.array(words * 2, dtype="<u8").view(np.uint8)
    table = TextTable(salt=SALT)
    codes = table.codes(pa.chunked_array([text_array(text, WORD * np.arange(601))]))
    taken = table.slots[5:305]

    assert [*range(300)] * 2 == ([] if codes is None else codes.tolist())
    assert words == np.frombuffer(table.dictionary().buffers()[2], dtype="<u8").tolist()
    assert {0x155} == {int(slot) >> 39 for slot in taken}


def test_the_slots_of_names_cannot_be_known_beforehand() -> None:
    """Two tables of the same names have other slots, and the same codes."""
    cells = pa.chunked_array([pa.array([f"id-{n}" for n in range(50)])])
    tables = TextTable(), TextTable()
    codes = [table.codes(cells) for table in tables]

    assert np.flatnonzero(tables[0].slots).tolist() != np.flatnonzero(tables[1].slots).tolist()
    assert [*range(50)] == [int(code) for code in codes[0]] == [int(code) for code in codes[1]]


def _unmixed(number: int, inverse: int) -> int:
    """Undo a product and what follows it."""
    return (number ^ number >> 32) * inverse % 2**64


def test_what_does_not_fit_is_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing cells, other types, names that are too long, and more names than codes are refused."""
    rows = [[None, "a"], [1, 2], ["a" * (LONGEST + 1)], ["é" * (LONGEST // 2) + "x"]]
    assert [None] * 4 == [TextTable().codes(pa.chunked_array([pa.array(cells)])) for cells in rows]
    monkeypatch.setattr(hash_table, "MAX_SLOTS", hash_table.FIRST_SLOTS)

    assert TextTable().codes(pa.chunked_array([pa.array([str(n) for n in range(hash_table.FIRST_SLOTS)])])) is None


def test_text_beyond_two_gigabytes_gets_wide_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that 32 bits cannot count become a large text array."""
    text, ends = np.frombuffer(b"abc", dtype=np.uint8), np.array([0, 1, 3])

    assert (pa.string(), ["a", "bc"]) == (text_array(text, ends).type, text_array(text, ends).to_pylist())
    monkeypatch.setattr(arrow_strings, "MOST_BYTES", 2)
    assert (pa.large_string(), ["a", "bc"]) == (text_array(text, ends).type, text_array(text, ends).to_pylist())
