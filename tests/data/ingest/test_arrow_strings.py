"""Arrow text arrays as bytes and ends."""

import numpy as np
import pyarrow as pa
import pytest

from crowdveil.data.ingest import arrow_strings
from crowdveil.data.ingest.arrow_strings import cell_ends, text_array, text_bytes


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_a_slice_is_its_own_cells(kind: pa.DataType) -> None:
    """Ends are those of the slice, in the bytes of the whole; no cells end at 0."""
    cells = pa.array(["x", "ab", "", "é", "y"], kind).slice(1, 3)

    assert "xabéy" == text_bytes(cells).tobytes().decode()
    assert [1, 3, 3, 5] == cell_ends(cells).tolist()
    assert [0] == cell_ends(pa.array([], kind)).tolist()


def test_text_beyond_two_gigabytes_gets_wide_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that 32 bits cannot count become a large text array."""
    text, ends = np.frombuffer(b"abc", dtype=np.uint8), np.array([0, 1, 3])

    assert (pa.string(), ["a", "bc"]) == (text_array(text, ends).type, text_array(text, ends).to_pylist())
    monkeypatch.setattr(arrow_strings, "MOST_BYTES", 2)
    assert (pa.large_string(), ["a", "bc"]) == (text_array(text, ends).type, text_array(text, ends).to_pylist())
