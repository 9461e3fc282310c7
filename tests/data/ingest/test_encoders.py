"""Text columns by the fastest way that fits: whichever it is, rows are what they were."""

import subprocess
import sys

import pyarrow as pa
import pytest

from crowdveil.data.ingest import encoders
from crowdveil.data.ingest.encoders import ColumnEncoder, compiled_from, encoder_of
from crowdveil.data.ingest.hash_table import MOST_WORDS, WORD
from crowdveil.jit import KERNELS_VARIABLE

GROUPS = {
    "numbered": [["id-01", "id-02"], ["id-02", "id-03"]],
    "one width": [["a" * 8, "b" * 8], ["b" * 8]],
    "any": [["a", "bc"], ["", "a"]],
    "missing": [["a", "b"], [None, "a"], ["b"]],
    "too long": [["a", "b"], ["c" * (MOST_WORDS * WORD + 1), "a"], ["b", "a"]],
    "too long at once": [["c" * (MOST_WORDS * WORD + 1)], ["b"]],
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", GROUPS)
def test_groups_come_back_as_they_were(name: str, compiled: bool) -> None:
    """Also where some group does not fit the table that the groups before it are in."""
    encoder = ColumnEncoder(compiled=compiled)
    for cells in GROUPS[name]:
        encoder.add(pa.chunked_array([pa.array(cells)]))

    assert [cell for cells in GROUPS[name] for cell in cells] == encoder.finish().to_pylist()


@pytest.mark.parametrize("kernels", ["plain", "compiled"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_every_kind_of_text_is_encoded(monkeypatch: pytest.MonkeyPatch, kind: pa.DataType, kernels: str) -> None:
    """Text with short and long offsets and views of text, with missing cells, and without any cell."""
    monkeypatch.setenv(KERNELS_VARIABLE, kernels)
    columns: list[list[str | None]] = [["a", "b", "a"], ["a", None], []]

    assert columns == [encoder_of(pa.chunked_array([pa.array(cells, kind)])).finish().to_pylist() for cells in columns]


def test_a_group_that_fits_costs_one_dictionary() -> None:
    """However many groups there are, compiled code gives one chunk."""
    encoder = ColumnEncoder(compiled=True)
    for cells in GROUPS["any"]:
        encoder.add(pa.chunked_array([pa.array(cells)]))

    assert 1 == encoder.finish().num_chunks


def test_loading_compiled_code_must_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less text is enough where numba is loaded already."""
    monkeypatch.setitem(sys.modules, "numba", sys)
    assert compiled_from() == encoders.COMPILED_FROM
    monkeypatch.delitem(sys.modules, "numba")
    assert compiled_from() == encoders.LOADED_FROM > encoders.COMPILED_FROM


def test_a_small_file_loads_no_compiled_code() -> None:
    """A fresh interpreter that encodes little text has not imported numba."""
    program = (
        "import sys, pyarrow\n"
        "from crowdveil.data.ingest.encoders import encoder_of\n"
        "encoder_of(pyarrow.chunked_array([pyarrow.array(['a', 'b'])]))\n"
        "print('numba' in sys.modules)"
    )

    assert "False" == subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip()
