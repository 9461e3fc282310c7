"""Lazy names: like an array of the same names."""

import numpy as np
import pyarrow as pa
import pytest

from crowdveil.data import identifiers as names_module
from crowdveil.data.identifiers import (
    LazyIdentifiers,
    index_of,
    read_identifiers,
    write_identifiers,
)
from crowdveil.errors import ReportsError

LISTED = [f"tâche-{number:03d}" for number in range(95, 102)]


@pytest.fixture(params=["text", "numbers"])
def both(request, monkeypatch) -> tuple[LazyIdentifiers, list[object]]:
    """Return lazy names in pieces of two, and the equal list."""
    monkeypatch.setattr(names_module, "IDENTIFIERS_PER_BATCH", 2)
    held = LISTED if request.param == "text" else [7, 3, 9, 1, 0, 4, 5]
    return LazyIdentifiers(pa.chunked_array([held[:3], held[3:]])), list(held)


def test_lazy_names_are_an_array(both) -> None:
    """Length, list, array, iteration, membership, codes from either end, slices, steps, masks and arrays of codes."""
    lazy, held = both
    array, mask = np.asarray(lazy), np.array([True, False, False, True, True, False, True])

    assert (len(held), held, held, held) == (len(lazy), lazy.tolist(), array.tolist(), list(lazy))
    assert held[3] in lazy
    assert "unknown" not in lazy
    assert (held[2], held[-1], held[0]) == (lazy[2], lazy[-1], lazy[np.int64(0)])
    assert (held[2:5], held[4:2], held[::3]) == (lazy[2:5].tolist(), lazy[4:2].tolist(), lazy[::3].tolist())
    assert isinstance(lazy[2:5], LazyIdentifiers)
    assert array[mask].tolist() == lazy[mask].tolist()
    assert [held[5], held[0], held[-2]] == lazy[np.array([5, 0, -2])].tolist()


@pytest.mark.parametrize("code", [7, -8, np.array([0, 7])])
def test_codes_beyond_the_names_are_refused(both, code) -> None:
    """As in an array, a code without a name is an IndexError."""
    with pytest.raises(IndexError, match="must be in -7"):
        both[0][code]


def test_places_are_found(both) -> None:
    """Each wanted name that is there has its code, in lazy names and in arrays, read as text."""
    lazy, held = both
    wanted = [held[6], held[1], "unknown", "tâche-094", "tâche-102", "tâche-0095", "tâche-09x"]
    expected = {str(held[6]): 6, str(held[1]): 1}

    assert expected == index_of(lazy, wanted) == index_of(np.array(held), wanted)
    assert {} == index_of(lazy, [])


def test_names_survive_their_file(both, tmp_path) -> None:
    """Written and mapped, names are the same."""
    lazy, held = both
    write_identifiers(tmp_path / "names", lazy)

    assert held == read_identifiers(tmp_path / "names").tolist()


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"another": ["x"]}),
        None,
    ],
)
def test_other_files_hold_no_names(tmp_path, table) -> None:
    """Other columns, or what is no Arrow file at all, is refused by the file's name."""
    path = tmp_path / "names.arrow"
    path.write_bytes(b"nothing")
    if table is not None:
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)

    with pytest.raises(ReportsError, match=r"names\.arrow: a file of names must hold distinct names"):
        read_identifiers(path)
