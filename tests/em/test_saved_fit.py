"""Fits that continue: saved, read back, and started from a state."""

import hashlib
import io
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

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Scale
from crowdveil.em.estimate import Estimate
from crowdveil.em.estimator import Estimator
from crowdveil.em.saved_fit import MANIFEST, SavedFit
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators import ESTIMATORS, DawidSkene, OneCoin, WeightedMean
from crowdveil.files.atomic_write import write_outputs
from crowdveil.mechanisms.randomized_response import RandomizedResponse
from crowdveil.published import PrivateDawidSkene
from crowdveil.randomness import seeded
from crowdveil.standalone.checks import digest
from crowdveil.storage.given_files import read_saved_fit, saved_fit_outputs
from tests.crowds_that_grow import LABELS, crowd, part


def some_fit(method: str = "one-coin") -> SavedFit:
    """Return the saved fit of a small crowd."""
    kind = ESTIMATORS[method]
    numbers = Scale(0, 9) if kind.capabilities.needs_alphabet else None
    alphabet = LABELS if kind.capabilities.kind == "categorical" else numbers
    reports = crowd(tasks=40, workers=8, per_task=3, alphabet=alphabet)
    return SavedFit.of_estimate(kind(), reports, kind().fit(reports))


@pytest.fixture(scope="module")
def whole() -> bytes:
    """Return the bytes of a saved fit."""
    return some_fit().to_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("method", ESTIMATORS)
def test_every_method_survives_its_bytes(method: str) -> None:
    """Names, identity and all numbers are the same after writing and reading, for every estimator."""
    saved = some_fit(method)

    opened = SavedFit.from_bytes(saved.to_bytes())

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


def test_the_same_fit_gives_the_same_bytes(whole: bytes) -> None:
    """The bytes hold no time of writing."""
    assert whole == some_fit().to_bytes()


def test_the_bytes_of_a_fit_are_written_and_read_as_they_are(whole: bytes, tmp_path: Path) -> None:
    """The file of a fit holds its bytes; reading it again names them by their digest."""
    write_outputs(saved_fit_outputs(tmp_path / "fit"), {"fit": some_fit().to_bytes()})

    start = read_saved_fit(tmp_path / "fit")

    assert whole == (tmp_path / "fit").read_bytes() == start.fit.to_bytes()
    assert [hashlib.sha256(whole).hexdigest()] == [one.sha256 for one in start.inputs]


@pytest.mark.slow
@given(st.data())
def test_a_changed_byte_is_never_taken_for_a_fit(whole: bytes, data: st.DataObject) -> None:
    """A file with one changed byte is refused, or says exactly what it said before."""
    place = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[place] ^= data.draw(st.integers(1, 255))

    try:
        opened = SavedFit.from_bytes(bytes(damaged))
    except ReportsError:
        return
    assert some_fit().identity == opened.identity
    np.testing.assert_array_equal(opened.state.by_worker["ability"], some_fit().state.by_worker["ability"])


@pytest.mark.parametrize("length", [0, 10, 500, -1])
def test_a_cut_file_is_refused(whole: bytes, length: int) -> None:
    """Contents that end too early are damaged, and the way out is named."""
    with pytest.raises(ReportsError, match=r"cut.fit: a saved fit must be whole.*Fit from the start"):
        SavedFit.from_bytes(whole[:length], source="cut.fit")


def rewritten(whole: bytes, compressed: bool = False, **changes: object) -> bytes:
    """Return the fit with other fields in its manifest, sealed again."""
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members[MANIFEST]) | changes
    members[MANIFEST] = json.dumps({**manifest, "sha256": digest(manifest)}).encode()
    kind = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    changed = io.BytesIO()
    with zipfile.ZipFile(changed, "w", kind) as archive:
        for name, contents in members.items():
            archive.writestr(name, contents)
    return changed.getvalue()


def test_other_formats_and_parts_that_do_not_belong_together_are_refused(whole: bytes) -> None:
    """Another format, another identity, a missing or unknown field, an unnamed member and compression are."""
    SavedFit.from_bytes(rewritten(whole))
    with pytest.raises(ReportsError, match=r"must have format 'crowdveil-fit/1'.*crowdveil-fit/9"):
        SavedFit.from_bytes(rewritten(whole, format="crowdveil-fit/9"))
    damage: tuple[dict[str, Any], ...] = (
        {"other": 1},
        {"identity": {}},
        {"members": {}},
        {"compressed": True},
        {"identity": 3},
    )
    for changes in damage:
        with pytest.raises(ReportsError, match="must be whole"):
            SavedFit.from_bytes(rewritten(whole, **changes))


def test_pickles_are_refused(tmp_path: Path) -> None:
    """An archive of numpy's own that holds a pickled object is no saved fit, and is not unpickled."""
    np.savez(tmp_path / "fit.npz", ends=np.array([print], dtype=object), allow_pickle=True)

    with pytest.raises(ReportsError):
        SavedFit.from_bytes((tmp_path / "fit.npz").read_bytes())


def test_no_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    """A file that is not there, and a folder, are refused with their name."""
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(ReportsError, match=str(path)):
            read_saved_fit(path)


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
        ("crh", "by_worker", "weight", put(np.nan), FINITE),
        ("crh", "by_worker", "weight", put(-np.inf), FINITE),
        ("one-coin", "by_worker", "ability", put(np.inf), FINITE),
        ("one-coin", "by_worker", "ability", put(-0.5), SHARE),
        ("one-coin", "by_worker", "ability", put(1.5), SHARE),
        ("dawid-skene", "by_worker", "confusion", put(-0.5), SHARE),
        ("dawid-skene", "by_worker", "confusion", lambda array: array * 0.5, WHOLE),
        ("dawid-skene", "shared", "class_prior", lambda array: array * 0.0, WHOLE),
    ],
)
def test_numbers_out_of_the_range_of_their_field_are_refused(
    method: str, group: str, name: str, change: Callable[[Any], Any], rule: str
) -> None:
    """Numbers that are not finite, that are no probabilities, or do not sum to 1 are refused under good seals."""
    data = changed(some_fit(method), group, name, change).to_bytes()

    with pytest.raises(ReportsError, match=f"'{name}' must hold {rule}"):
        SavedFit.from_bytes(data)


def test_unknown_arrays_and_missing_workers_are_refused() -> None:
    """An array that the method does not have, and one without a row for every worker, are refused."""
    saved = some_fit()
    strange = replace(saved, state=replace(saved.state, shared={"other": np.zeros(1)}))
    cases = {
        "'other' must hold an array of one-coin": strange,
        "a row for every worker": changed(saved, "by_worker", "ability", lambda array: array[:1]),
    }
    for rule, fit in cases.items():
        with pytest.raises(ReportsError, match=rule):
            SavedFit.from_bytes(fit.to_bytes())


def test_a_probability_that_rounding_took_above_one_is_read() -> None:
    """Shares of answered tasks are quotients of sums: 1 can be 1.0000000000000002, and such a fit is resumed."""
    saved = some_fit("dawid-skene")
    data = changed(saved, "by_worker", "participation", put(1.0000000000000002)).to_bytes()

    assert 1.0000000000000002 == SavedFit.from_bytes(data).state.by_worker["participation"].max()


AnyEstimator = Estimator[Any, Any]
CLIMBERS = (DawidSkene, OneCoin, ESTIMATORS["ordinal-dawid-skene"], PrivateDawidSkene)
TOLERANCE = 2e-5
"""Of posteriors, at the estimators' own tolerance of 1e-6: what is left to go is a few times the last step."""


def saved_fit(estimator: AnyEstimator, reports: Reports, **known: Any) -> SavedFit:
    """Return the saved fit of reports."""
    return SavedFit.of_estimate(estimator, reports, estimator.fit(reports, **known), **known)


def resumed(estimator: AnyEstimator, reports: Reports, saved: SavedFit, **known: Any) -> Estimate:
    """Return the estimate of a fit that resumes a saved one."""
    return estimator.fit(reports, warm_start=saved.state_for(estimator, reports, **known), **known)


def reports_for(estimator: AnyEstimator, **shape: Any) -> Reports:
    """Return a crowd of the kind that the estimator reads."""
    if estimator.capabilities.kind == "categorical":
        return crowd(**shape)
    return crowd(**shape, alphabet=Scale(0, 9) if estimator.capabilities.needs_alphabet else None)


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_going_on_with_nothing_new_changes_nothing(name: str) -> None:
    """Every registered estimator, gone on with the same reports, stays where it was, in three steps at most."""
    estimator = ESTIMATORS[name]()
    reports = reports_for(estimator, tasks=60)
    before = estimator.fit(reports)

    after = resumed(estimator, reports, SavedFit.of_estimate(estimator, reports, before))

    assert after.steps <= 3
    np.testing.assert_allclose(after.posterior, before.posterior, atol=5 * estimator.tolerance)


@pytest.mark.parametrize("estimator", [*(kind() for kind in CLIMBERS), WeightedMean()], ids=lambda e: e.name)
def test_grown_fit_equals_the_fit_from_the_start(estimator: AnyEstimator) -> None:
    """With 5 % new tasks and a new worker, posteriors are those of the whole fit within 2e-5 (so are numbers), the
    objective is no lower, and it takes fewer steps; 320 reports a worker leave one optimum."""
    reports = reports_for(estimator, tasks=800, workers=20, per_task=8)
    whole = estimator.fit(reports)
    worker_late = reports.workers[reports.worker] == reports.workers[-1]
    early = (reports.task < 0.95 * len(reports.tasks)) & ~worker_late
    old = saved_fit(estimator, part(reports, early))

    fit = resumed(estimator, reports, old)

    np.testing.assert_allclose(fit.posterior, whole.posterior, atol=TOLERANCE)
    np.testing.assert_allclose(fit.workers.quality, whole.workers.quality, atol=TOLERANCE)
    assert fit.steps < whole.steps
    if whole.log_likelihoods:
        assert fit.log_likelihoods[-1] >= whole.log_likelihoods[-1] - 1e-6


def test_assigned_campaigns_go_on_and_may_not_change_their_kind() -> None:
    """With listed NULL reports of assigned cells, new tasks end where the whole fit does; without the assignment the
    saved fit is refused."""
    channel = RandomizedResponse(alphabet=LABELS, epsilon=4.0, participation="protected").channel()
    asked = crowd(tasks=200, workers=12, per_task=8)
    answer = np.where(np.random.default_rng(0).random(len(asked)) < 0.8, asked.value, LABELS.size)
    sent = channel.sample(answer, seeded(1))

    def known(tasks: int) -> tuple[Reports, Assignment]:
        cells, said = asked.task < tasks, (asked.task < tasks) & (sent < LABELS.size)
        names = np.asarray(asked.tasks)[:tasks], np.asarray(asked.workers)
        reports = Reports(asked.task[said], asked.worker[said], sent[said], names[0], names[1], LABELS)
        task, worker = asked.task[cells].astype(np.int64), asked.worker[cells].astype(np.int64)
        return reports, Assignment(names[0], names[1], task, worker)

    (early, some), (reports, every) = known(190), known(200)
    saved = saved_fit(OneCoin(), early, channel=channel, assignment=some)
    whole = OneCoin().fit(reports, channel=channel, assignment=every)

    fit = resumed(OneCoin(), reports, saved, channel=channel, assignment=every)

    np.testing.assert_allclose(fit.posterior, whole.posterior, atol=TOLERANCE)
    with pytest.raises(SettingsError, match="whether tasks are assigned"):
        resumed(OneCoin(), reports, saved, channel=channel)


def test_what_must_be_the_same_is() -> None:
    """Another method, setting, channel, prior or alphabet is refused; when to stop may differ."""
    reports = crowd(tasks=30)
    channel, other = (
        RandomizedResponse(alphabet=LABELS, epsilon=epsilon, participation="public").channel() for epsilon in (2.0, 3.0)
    )
    prior = {"no": 0.2, "yes": 0.3, "maybe": 0.5}
    saved = saved_fit(DawidSkene(max_steps=5), reports, channel=channel)

    resumed(DawidSkene(max_steps=3, tolerance=0.1), reports, saved, channel=channel)
    with pytest.raises(SettingsError, match="method"):
        resumed(OneCoin(), reports, saved, channel=channel)
    with pytest.raises(SettingsError, match="settings"):
        resumed(DawidSkene(smoothing=1.0), reports, saved, channel=channel)
    for wrong in (other, None):
        with pytest.raises(SettingsError, match=r"channel.*fit from the start"):
            resumed(DawidSkene(), reports, saved, channel=wrong)
    with pytest.raises(SettingsError, match="prior"):
        resumed(DawidSkene(), reports, saved, channel=channel, prior=prior)


def test_missing_tasks_and_workers_are_named() -> None:
    """Reports that lack a task or a worker of the saved fit are refused, and the first missing name is shown."""
    reports = crowd(tasks=30)
    saved = saved_fit(OneCoin(), reports)

    for what, gone in (("task", reports.task == 3), ("worker", reports.worker == 3)):
        name = (reports.tasks if what == "task" else reports.workers)[3]
        with pytest.raises(ReportsError, match=f"1 of its {what}s are missing. Found: {name}"):
            resumed(OneCoin(), part(reports, ~gone), saved)


def test_a_fit_that_learned_nothing_can_be_gone_on_from() -> None:
    """A single step leaves votes only: going on from it is a fit from the start."""
    reports = crowd(tasks=60)

    for kind in (DawidSkene, OneCoin, PrivateDawidSkene):
        saved = saved_fit(kind(max_steps=1), reports)
        fit = resumed(kind(), reports, saved)

        np.testing.assert_allclose(fit.posterior, kind().fit(reports).posterior, atol=1e-12)
