"""Saved fits: every method's comes back as it was, the same bytes for the same fit, and damage is named."""

import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.channels.alphabet import Scale
from crowdveil.em.saved_fit import MANIFEST, SavedFit
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators import ESTIMATORS
from crowdveil.standalone.checks import digest
from tests.crowds_that_grow import LABELS, crowd


def some_fit(method: str = "one-coin") -> SavedFit:
    """Return the saved fit of a small crowd."""
    kind = ESTIMATORS[method]
    numbers = Scale(0, 9) if kind.capabilities.needs_alphabet else None
    alphabet = LABELS if kind.capabilities.kind == "categorical" else numbers
    reports = crowd(tasks=40, workers=8, per_task=3, alphabet=alphabet)
    return SavedFit.of(kind(), reports, kind().fit(reports))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the bytes of a saved fit."""
    path = tmp_path_factory.mktemp("fits") / "fit.npz"
    some_fit().save(path)
    return path.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("method", ESTIMATORS)
def test_every_method_survives_the_file(method: str, tmp_path: Path) -> None:
    """Names, identity and all numbers are the same after saving and opening, for every estimator."""
    saved = some_fit(method)
    saved.save(tmp_path / "fit")

    opened = SavedFit.open(tmp_path / "fit")

    assert (saved.version, saved.identity, saved.state.method) == (
        opened.version,
        opened.identity,
        opened.state.method,
    )
    assert [*map(str, saved.tasks)] == list(opened.tasks)
    assert [*map(str, saved.state.workers)] == list(opened.state.workers)
    for mine, theirs in ((saved.state.by_worker, opened.state.by_worker), (saved.state.shared, opened.state.shared)):
        assert sorted(mine) == sorted(theirs)
        for name, array in mine.items():
            np.testing.assert_array_equal(array, theirs[name])


def test_the_same_fit_gives_the_same_bytes(whole: bytes, tmp_path: Path) -> None:
    """The file has no time of writing."""
    some_fit().save(tmp_path / "again")

    assert whole == (tmp_path / "again").read_bytes()


@pytest.mark.slow
@given(st.data())
def test_a_changed_byte_is_never_taken_for_a_fit(
    whole: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """A file with one changed byte is refused, or says exactly what it said before."""
    place = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[place] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    path.write_bytes(damaged)

    try:
        opened = SavedFit.open(path)
    except ReportsError:
        return
    assert some_fit().identity == opened.identity
    np.testing.assert_array_equal(opened.state.by_worker["ability"], some_fit().state.by_worker["ability"])


@pytest.mark.parametrize("length", [0, 10, 500, -1])
def test_a_cut_file_is_refused(whole: bytes, tmp_path: Path, length: int) -> None:
    """A file that ends too early is damaged, and the way out is named."""
    (tmp_path / "cut").write_bytes(whole[:length])

    with pytest.raises(ReportsError, match=r"a saved fit must be whole.*Fit from the start"):
        SavedFit.open(tmp_path / "cut")


def rewritten(whole: bytes, tmp_path: Path, compressed: bool = False, **changes: object) -> Path:
    """Write the fit with other fields in its manifest, sealed again."""
    (tmp_path / "whole").write_bytes(whole)
    with zipfile.ZipFile(tmp_path / "whole") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members[MANIFEST]) | changes
    members[MANIFEST] = json.dumps({**manifest, "sha256": digest(manifest)}).encode()
    kind = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(tmp_path / "changed", "w", kind) as archive:
        for name, contents in members.items():
            archive.writestr(name, contents)
    return tmp_path / "changed"


def test_other_formats_and_parts_that_do_not_belong_together_are_refused(whole: bytes, tmp_path: Path) -> None:
    """Another format, another identity, a missing or unknown field, an unnamed member and compression are."""
    SavedFit.open(rewritten(whole, tmp_path))
    with pytest.raises(ReportsError, match=r"must have format 'crowdveil-fit/1'.*crowdveil-fit/9"):
        SavedFit.open(rewritten(whole, tmp_path, format="crowdveil-fit/9"))
    for changes in ({"other": 1}, {"identity": {}}, {"members": {}}, {"compressed": True}, {"identity": 3}):
        with pytest.raises(ReportsError, match="must be whole"):
            SavedFit.open(rewritten(whole, tmp_path, **changes))


def test_pickles_are_refused(tmp_path: Path) -> None:
    """An archive of numpy's own that holds a pickled object is no saved fit, and is not unpickled."""
    np.savez(tmp_path / "fit.npz", ends=np.array([print], dtype=object), allow_pickle=True)

    with pytest.raises(ReportsError):
        SavedFit.open(tmp_path / "fit.npz")


def test_no_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    """A file that is not there, and a folder, are refused with their name."""
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(ReportsError, match=str(path)):
            SavedFit.open(path)


def test_a_state_of_another_method_is_refused() -> None:
    """Arrays with other names or shapes than the method's raise SettingsError, whatever name the state bears."""
    for mine, other in (("one-coin", "dawid-skene"), ("dawid-skene", "one-coin"), ("dawid-skene", "weighted-vote")):
        for name in (mine, other):
            state = replace(some_fit(other).state, method=name)
            with pytest.raises(SettingsError, match=f"state of a fit by {mine}"):
                ESTIMATORS[mine]().fit(crowd(tasks=10), warm_start=state)


def changed(saved: SavedFit, group: str, name: str, change: Callable[[Any], Any]) -> SavedFit:
    """Return the fit with one array changed."""
    arrays = getattr(saved.state, group)
    state: Any = replace(saved.state, **{group: arrays | {name: change(arrays[name])}})
    return replace(saved, state=state)


def put(number: float) -> Callable[[Any], Any]:
    """Return a change of the first number of an array."""

    def change(array: Any) -> Any:
        numbers = np.array(array)
        numbers.flat[0] = number
        return numbers

    return change


FINITE, WHOLE, SHARE = "finite numbers", "probabilities that sum to 1", "probabilities"


@pytest.mark.parametrize(
    ("method", "group", "name", "change", "rule"),
    [
        ("gtm", "by_worker", "weight", put(np.nan), FINITE),
        ("gtm", "by_worker", "weight", put(-np.inf), FINITE),
        ("one-coin", "by_worker", "ability", put(np.inf), FINITE),
        ("one-coin", "by_worker", "ability", put(-0.5), SHARE),
        ("one-coin", "by_worker", "ability", put(1.5), SHARE),
        ("dawid-skene", "by_worker", "confusion", put(-0.5), SHARE),
        ("dawid-skene", "by_worker", "confusion", lambda array: array * 0.5, WHOLE),
        ("dawid-skene", "shared", "class_prior", lambda array: array * 0.0, WHOLE),
    ],
)
def test_numbers_out_of_the_range_of_their_field_are_refused(
    method: str, group: str, name: str, change: Callable[[Any], Any], rule: str, tmp_path: Path
) -> None:
    """Numbers that are not finite, that are no probabilities, or do not sum to 1 are refused under good seals."""
    changed(some_fit(method), group, name, change).save(tmp_path / "fit")

    with pytest.raises(ReportsError, match=f"'{name}' must hold {rule}"):
        SavedFit.open(tmp_path / "fit")


def test_unknown_arrays_and_missing_workers_are_refused(tmp_path: Path) -> None:
    """An array that the method does not have, and one without a row for every worker, are refused."""
    saved = some_fit()
    strange = replace(saved, state=replace(saved.state, shared={"other": np.zeros(1)}))
    cases = {
        "'other' must hold an array of one-coin": strange,
        "a row for every worker": changed(saved, "by_worker", "ability", lambda array: array[:1]),
    }
    for rule, fit in cases.items():
        fit.save(tmp_path / "fit")
        with pytest.raises(ReportsError, match=rule):
            SavedFit.open(tmp_path / "fit")


def test_a_probability_that_rounding_took_above_one_is_read(tmp_path: Path) -> None:
    """Shares of answered tasks are quotients of sums: 1 can be 1.0000000000000002, and such a fit is resumed."""
    saved = some_fit("dawid-skene")
    changed(saved, "by_worker", "participation", put(1.0000000000000002)).save(tmp_path / "fit")

    assert 1.0000000000000002 == SavedFit.open(tmp_path / "fit").state.by_worker["participation"].max()
