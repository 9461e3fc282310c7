"""Lazy names: like an array of the same names, whether they are read from a file or follow from a rule."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.channels.alphabet import Categories
from crowdveil.data import identifiers as names_module
from crowdveil.data.identifiers import (
    ArrowIdentifiers,
    LazyIdentifiers,
    NumberedIdentifiers,
    index_of,
    read_identifiers,
    write_identifiers,
)
from crowdveil.data.reports import Reports
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators import MajorityVote
from tests.folder.test_files import assert_same

RULE = NumberedIdentifiers(prefix="tâche-", digits=3, count=7, first=95)
LISTED = [f"tâche-{number:03d}" for number in range(95, 102)]


@pytest.fixture(params=["rule", "text", "numbers"])
def both(request, monkeypatch) -> tuple[LazyIdentifiers, list[object]]:
    """Return lazy names in pieces of two, and the equal list."""
    monkeypatch.setattr(names_module, "IDENTIFIERS_PER_BATCH", 2)
    if request.param == "rule":
        return RULE, list(LISTED)
    held = LISTED if request.param == "text" else [7, 3, 9, 1, 0, 4, 5]
    return ArrowIdentifiers(pa.chunked_array([held[:3], held[3:]])), list(held)


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


@given(st.text(max_size=5, alphabet=st.characters(codec="utf-8")), st.integers(1, 18), st.data())
def test_every_numbered_name_has_its_place(beginning: str, digits: int, data) -> None:
    """A rule's names are beginning and zero-padded number, all found again, also in the middle of the numbers."""
    first = data.draw(st.integers(0, 10**digits - 1))
    count = data.draw(st.integers(0, min(20, 10**digits - first)))
    rule = NumberedIdentifiers(prefix=beginning, digits=digits, count=count, first=first)
    held = [f"{beginning}{number:0{digits}d}" for number in range(first, first + count)]

    assert held == rule.tolist()
    assert {name: code for code, name in enumerate(held)} == index_of(rule, held)


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"digits": 0}, "1 to 18 digits"),
        ({"digits": 19}, "1 to 18 digits"),
        ({"first": -1}, "non-negative"),
        ({"count": 906}, "must fit into 3 digits"),
        ({"prefix": "\ud800"}, "UTF-8"),
    ],
)
def test_impossible_rules_are_refused(settings, rule) -> None:
    """Numbers must fit, and names must be text."""
    with pytest.raises(SettingsError, match=rule):
        NumberedIdentifiers(**({"prefix": "t", "digits": 3, "count": 7, "first": 95} | settings))


def test_names_of_a_count_need_no_more_digits() -> None:
    """Ten names have one digit, eleven two, one or none have one too."""
    assert ["t0", "t9", "t00", "t10"] == [NumberedIdentifiers.from_count("t", n)[i] for n in (10, 11) for i in (0, -1)]
    assert (["w0"], []) == (
        NumberedIdentifiers.from_count("w", 1).tolist(),
        NumberedIdentifiers.from_count("w", 0).tolist(),
    )


def test_names_survive_their_file(both, tmp_path) -> None:
    """Written and mapped, names are the same, and a rule is still a rule."""
    lazy, held = both
    write_identifiers(tmp_path / "names", lazy)

    assert held == read_identifiers(tmp_path / "names").tolist()
    assert type(lazy) is type(read_identifiers(tmp_path / "names"))


def test_reports_with_numbered_names_survive_the_folder(tmp_path) -> None:
    """A folder with a rule for names gives the same reports and truths as listed names."""
    task, worker, value = np.arange(7), np.zeros(7, int), np.arange(7) % 2
    labels = Categories(("x", "y"))
    listed = Reports(task, worker, value, np.array(LISTED), np.array(["w0"]), labels)
    ruled = Reports(task, worker, value, RULE, NumberedIdentifiers.from_count("w", 1), labels)
    ruled.save(tmp_path)
    opened = Reports.open(tmp_path)

    assert isinstance(opened.tasks, NumberedIdentifiers)
    assert_same(listed, opened)
    truths = MajorityVote().fit(opened, gold={"tâche-096": "x", "unknown": "y"}).tasks_frame()
    assert MajorityVote().fit(listed, gold={"tâche-096": "x", "unknown": "y"}).tasks_frame().to_pydict() == (
        truths.to_pydict()
    )


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"another": ["x"]}),
        pa.table({"prefix": ["t"], "digits": [3], "count": [7], "first": [95]}),
        pa.table(
            [pa.array(["t"], pa.large_string()), *(pa.array([number]) for number in (0, 7, 95))],
            names=["beginning", "digits", "count", "first"],
        ),
        None,
    ],
)
def test_other_files_hold_no_names(tmp_path, table) -> None:
    """Other columns, an impossible rule, or what is no Arrow file at all is refused by the file's name."""
    path = tmp_path / "names.arrow"
    path.write_bytes(b"nothing")
    if table is not None:
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)

    with pytest.raises(ReportsError, match=r"names\.arrow: a file of names must hold distinct names"):
        read_identifiers(path)
