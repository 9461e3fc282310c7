"""Promises that every registered estimator keeps; a new one is tested here without being asked."""

import dataclasses
import inspect
import pydoc
from operator import attrgetter
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.em.estimate import Estimate
from crowdveil.em.model import Model
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators import ESTIMATORS, DawidSkene, Estimator
from crowdveil.mechanisms.randomized_response import RandomizedResponse
from crowdveil.randomness import seeded
from tests import strategies
from tests.estimators.dense import assert_never_falls

AnyEstimator = Estimator[Any, Any]
AnyClass = type[AnyEstimator]
CLASSES = list(ESTIMATORS.values())
LABELS = Categories(("G", "P", "R"), ordered=True)
every = pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.name)
every_categorical = pytest.mark.parametrize(
    "cls", [c for c in CLASSES if c.capabilities.kind == "categorical"], ids=lambda c: c.name
)
every_numeric = pytest.mark.parametrize(
    "cls", [c for c in CLASSES if c.capabilities.kind == "numeric"], ids=lambda c: c.name
)
every_reader = pytest.mark.parametrize(
    "cls", [c for c in CLASSES if c.capabilities.reads_channel], ids=lambda c: c.name
)
every_blind = pytest.mark.parametrize(
    "cls", [c for c in CLASSES if not c.capabilities.reads_channel], ids=lambda c: c.name
)


def crowd(seed: int = 0, tasks: int = 40, workers: int = 12, share: float = 0.4) -> Reports:
    """Make sparse reports of workers who are right with probability 0.75, with one empty task and one idle worker."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, tasks)
    task, worker = np.nonzero(rng.random((tasks, workers)) < share)
    answer = np.where(rng.random(len(task)) < 0.75, truth[task], rng.integers(0, 3, len(task)))
    names = [f"task {k}" for k in range(tasks + 1)], [f"worker {k}" for k in range(workers + 1)]
    return Reports(task, worker, answer, np.array(names[0]), np.array(names[1]), LABELS)


def through_null(reports: Reports, channel: Channel, seed: int) -> Reports:
    """Send every cell, blank or not, through a channel with protected participation."""
    table = np.full((len(reports.workers), len(reports.tasks)), LABELS.size)
    table[reports.worker, reports.task] = reports.value
    sent = channel.sample(table.ravel(), seeded(seed)).reshape(table.shape)
    worker, task = np.nonzero(sent < LABELS.size)
    return Reports(task, worker, sent[worker, task], reports.tasks, reports.workers, LABELS)


def any_reports(cls: AnyClass) -> st.SearchStrategy[Reports]:
    """Draw small reports of a kind that the estimator reads; numeric estimators read ordered labels too."""
    ordered = cls.capabilities.needs_ordered_labels or cls.capabilities.kind == "numeric"
    labels = strategies.small_reports(ordered=ordered)
    free = cls.capabilities.kind == "numeric" and not cls.capabilities.needs_alphabet
    return st.one_of(labels, strategies.small_numeric_reports()) if free else labels


def numbers_or_labels(cls: AnyClass, rows: list[tuple[object, object, int]], **lists: Any) -> Reports:
    """Make reports from (task, worker, label code) rows: labels for categorical estimators, else the codes."""
    task, worker, code = zip(*rows, strict=True)
    if cls.capabilities.kind == "numeric":
        # The codes are the middle of the scale, far from its ends.
        shape: dict[str, Any] = {"alphabet": Scale(-10, 11)} if cls.capabilities.needs_alphabet else {"numeric": True}
        return Reports.from_arrays(task, worker, code, **shape, **lists)
    return Reports.from_arrays(task, worker, [LABELS.names[k] for k in code], alphabet=LABELS, **lists)


def check_truths(cls: AnyClass, reports: Reports, estimate: Estimate) -> None:
    """Assert that truths have the promised shape and range."""
    tasks = len(reports.tasks)
    if cls.capabilities.kind == "numeric":
        assert estimate.posterior.shape == (tasks,)
        np.testing.assert_array_equal(np.isnan(estimate.posterior), reports.per_task == 0)
        return
    assert estimate.posterior.shape == (tasks, reports.labels)
    assert np.isfinite(estimate.posterior).all()
    assert (estimate.posterior >= 0).all()
    np.testing.assert_allclose(estimate.posterior.sum(axis=1), 1.0, atol=1e-9)


def assert_same(left: Estimate, right: Estimate, tolerance: float = 0.0) -> None:
    """Assert that two estimates agree in truths, workers and trace."""
    np.testing.assert_allclose(left.posterior, right.posterior, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(left.workers.quality, right.workers.quality, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(left.log_likelihoods, right.log_likelihoods, rtol=tolerance, atol=tolerance)
    assert left.steps == right.steps


@every
def test_default_construction_gives_a_frozen_keyword_only_value(cls: AnyClass) -> None:
    """An estimator is a frozen value of settings: all have defaults, all are keyword-only, none can be changed."""
    estimator = cls()

    assert dataclasses.is_dataclass(estimator)
    assert all(field.kw_only for field in dataclasses.fields(estimator))
    assert estimator == cls()
    with pytest.raises(dataclasses.FrozenInstanceError):
        estimator.max_steps = 7


@pytest.mark.slow
@every
@given(data=st.data())
def test_truths_are_proper_whatever_the_reports(cls: AnyClass, data: st.DataObject) -> None:
    """Posterior rows are finite and sum to 1, numbers nan only where no report is; the likelihood never falls."""
    reports = data.draw(any_reports(cls))

    estimate = cls().fit(reports)

    check_truths(cls, reports, estimate)
    assert_never_falls(estimate)
    assert estimate.method == cls.name
    assert 1 <= estimate.steps <= cls().max_steps
    assert len(estimate.truth) == len(reports.tasks)
    assert len(estimate.workers.quality) == len(reports.workers)


@pytest.mark.slow
@every
@given(data=st.data())
def test_report_order_never_changes_an_estimate(cls: AnyClass, data: st.DataObject) -> None:
    """The same reports in any order give the same estimate, bit by bit."""
    reports = data.draw(any_reports(cls))
    order = np.array(data.draw(st.permutations(range(len(reports)))), dtype=int)
    value = reports.value if reports.alphabet is None else np.array(reports.alphabet.names)[reports.value]

    shuffled = Reports.from_arrays(
        reports.tasks[reports.task][order],
        reports.workers[reports.worker][order],
        value[order],
        alphabet=reports.alphabet,
        numeric=reports.alphabet is None,
        tasks=reports.tasks,
        workers=reports.workers,
    )

    assert_same(cls().fit(shuffled), cls().fit(reports))


@pytest.mark.slow
@every
@pytest.mark.parametrize("size", [1, 7, 50])
def test_blocks_do_not_change_the_numbers(cls: AnyClass, size: int) -> None:
    """One block or many give the same estimate."""
    estimator, whole = cls(), Reports.blocks

    expected = estimator.fit(crowd(), gold={"task 3": "P"})
    with patch.object(Reports, "blocks", lambda self, n=0: whole(self, size)):
        assert len(list(crowd().blocks())) > 1
        actual = estimator.fit(crowd(), gold={"task 3": "P"})

    assert_same(actual, expected, 1e-7)


@pytest.mark.slow
@every_categorical
def test_gold_tasks_keep_their_truth(cls: AnyClass) -> None:
    """A gold task has its gold label with certainty, whatever the crowd says; unknown gold tasks are counted."""
    gold = {f"task {k}": LABELS.names[k % 3] for k in range(20)} | {"task 40": "R", "nowhere": "P"}

    estimate = cls().fit(crowd(), gold=gold)

    np.testing.assert_array_equal(estimate.posterior[:20], np.eye(3)[np.arange(20) % 3])
    np.testing.assert_array_equal(estimate.posterior[40], [0.0, 0.0, 1.0])
    assert (estimate.gold_used, estimate.gold_unknown) == (21, 1)
    assert_never_falls(estimate)


@every_numeric
def test_gold_numbers_are_kept(cls: AnyClass) -> None:
    """A gold task has exactly its gold number, with or without reports; unknown gold tasks are counted."""
    reports = numbers_or_labels(cls, [(1, "a", 0), (1, "b", 2), (2, "a", 1), (3, "b", 2)], tasks=[1, 2, 3, 4])

    estimate = cls().fit(reports, gold={1: 1.75, 4: -3.0, 9: 0.0})

    assert [1.75, -3.0] == list(estimate.posterior[[0, 3]])
    assert (estimate.gold_used, estimate.gold_unknown) == (2, 1)


@pytest.mark.slow
@every
def test_tied_votes_are_split(cls: AnyClass) -> None:
    """Reports that contradict each other share the task equally (ordered ones: the ends); a number lies half way."""
    other = 2 if cls.capabilities.needs_ordered_labels else 1
    reports = numbers_or_labels(cls, [("t", "a", 0), ("t", "b", other)])

    estimate = cls().fit(reports)

    if cls.capabilities.kind == "numeric":
        assert pytest.approx(0.5, abs=1e-6) == estimate.posterior[0]
    else:
        assert pytest.approx(estimate.posterior[0, other], abs=1e-12) == estimate.posterior[0, 0]
        assert list(estimate.winners[0]) == [k in (0, other) for k in range(3)]


@every
def test_one_report_is_believed(cls: AnyClass) -> None:
    """A single report of a single worker on a single task is all there is to say."""
    reports = numbers_or_labels(cls, [("t", "a", 1)])

    estimate = cls().fit(reports)

    check_truths(cls, reports, estimate)
    assert list(estimate.truth) == (
        ["P"]
        if cls.capabilities.kind == "categorical"
        else [pytest.approx(1.0, abs=0.1 * cls.capabilities.needs_alphabet)]
    )


@every
def test_no_report_at_all_teaches_nothing(cls: AnyClass) -> None:
    """A crowd that is listed but silent (all of its reports are NULL) is no error: labels all alike, numbers nan."""
    shape: dict[str, Any] = {"numeric": True}
    shape = {"alphabet": LABELS} if cls.capabilities.kind == "categorical" or cls.capabilities.needs_alphabet else shape
    reports = Reports.from_arrays([], [], [], tasks=["s", "t"], workers=["a", "b"], **shape)

    expected = [np.nan] * 2 if cls.capabilities.kind == "numeric" else [[1 / 3] * 3] * 2
    np.testing.assert_allclose(cls().fit(reports).posterior, expected, atol=1e-12)


@pytest.mark.slow
@every
def test_tasks_and_workers_without_reports_are_listed(cls: AnyClass) -> None:
    """Listed tasks and workers without reports are in every table."""
    estimate = cls().fit(crowd())

    assert "task 40" == estimate.tasks_columns()["task"][40]
    assert "worker 12" == estimate.workers_columns()["worker"][12]
    assert estimate.reports_per_worker[12] == estimate.reports_per_task[40] == 0
    assert np.isfinite(estimate.workers.quality[:12]).all()
    if cls.capabilities.kind == "categorical":
        assert estimate.posterior[40].max() < 0.9


@pytest.mark.parametrize(
    "cls",
    [
        pytest.param(c, marks=pytest.mark.slow if c.name in ("glad", "ordinal-dawid-skene") else ())
        for c in CLASSES
        if c.capabilities.kind == "categorical"
    ],
    ids=lambda c: c.name,
)
def test_tasks_without_reports_change_nothing(cls: AnyClass) -> None:
    """Four hundred listed tasks without answers move no posterior of the others by more than the tolerance of a fit;
    that of the default method, whose number of steps is fixed, by rounding only."""
    reports = crowd()
    tasks = np.array([*np.asarray(reports.tasks), *(f"unasked {number}" for number in range(400))])
    longer = Reports(reports.task, reports.worker, reports.value, tasks, reports.workers, reports.alphabet)

    found = cls().fit(longer).posterior[: len(reports.tasks)]

    asked = np.asarray(reports.per_task) > 0
    within = 1e-9 if cls.name == "hierarchical-dawid-skene" else 3e-3
    assert np.allclose(found[asked], cls().fit(reports).posterior[asked], atol=within)


@every_categorical
@pytest.mark.parametrize("labels", [2, 3])
def test_a_single_worker_is_not_overruled(cls: AnyClass, labels: int) -> None:
    """The answers of the only worker are the truths, whatever their shares (four crowds of 30 tasks)."""
    names = ("G", "P", "R")[:labels]
    for seed in range(4):
        answers = np.random.default_rng(seed).choice(names, 30, p=[0.8, 0.2] if labels == 2 else [0.7, 0.2, 0.1])
        alphabet = Categories(names, ordered=True)
        reports = Reports.from_arrays(range(30), ["only"] * 30, answers, alphabet=alphabet)

        estimate = cls().fit(reports)

        assert dict(enumerate(answers.tolist())) == {
            int(task): str(truth) for task, truth in zip(estimate.tasks, estimate.truth, strict=True)
        }


@pytest.mark.slow
@every
def test_good_workers_are_found(cls: AnyClass) -> None:
    """On 200 tasks (seed 0) the worker who is always right has a higher quality than the one who guesses."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 200)
    rows: list[tuple[object, object, int]] = [
        (t, f"w{k}", int(truth[t]) if rng.random() < 0.8 else int(rng.integers(3)))
        for t in range(200)
        for k in range(6)
    ]
    rows += [(t, "best", int(truth[t])) for t in range(200)] + [(t, "coin", int(rng.integers(3))) for t in range(200)]

    estimate = cls().fit(numbers_or_labels(cls, rows))

    quality = dict(zip(estimate.worker_names, estimate.workers.quality, strict=True))
    assert quality["best"] == max(quality.values())
    assert quality["coin"] == min(quality.values())


@pytest.mark.slow
@every_reader
@pytest.mark.parametrize("participation", ["public", "protected"])
def test_the_identity_channel_equals_no_channel(cls: AnyClass, participation: Any) -> None:
    """At epsilon infinity the channel-aware fit equals the plain fit to 1e-9, intervals and sigmas to 1e-6."""
    plain = cls().fit(crowd())
    through = cls().fit(crowd(), channel=Channel.identity(LABELS, participation))

    np.testing.assert_allclose(through.posterior, plain.posterior, atol=1e-9)
    np.testing.assert_allclose(through.workers.quality[:12], plain.workers.quality[:12], atol=1e-9)
    for name in ("low", "high", "workers.ability_low", "workers.ability_high", "workers.sigma"):
        found, alone = attrgetter(name)(through), attrgetter(name)(plain)
        assert (found is None) == (alone is None)
        if alone is not None:
            np.testing.assert_allclose(found, alone, atol=1e-6)
    assert through.channel_used
    assert not plain.channel_used


@pytest.mark.slow
@every_reader
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("participation", ["public", "protected"])
def test_truths_are_proper_through_a_channel(cls: AnyClass, participation: Any, epsilon: float) -> None:
    """Through randomized response posteriors are proper, participation is a share, and the likelihood never falls."""
    channel = RandomizedResponse(alphabet=LABELS, epsilon=epsilon, participation=participation).channel()
    answers = crowd(3)
    if participation == "protected":
        reports = through_null(answers, channel, 3)
    else:
        sent = channel.sample(answers.value, seeded(3))
        reports = Reports(answers.task, answers.worker, sent, answers.tasks, answers.workers, LABELS)

    estimate = cls().fit(reports, channel=channel, gold={"task 1": "R"})

    check_truths(cls, reports, estimate)
    assert_never_falls(estimate)
    share = estimate.workers.participation
    assert share is None or ((share >= 0) & (share <= 1)).all()


@pytest.mark.slow
@every_reader
def test_the_channel_is_read(cls: AnyClass) -> None:
    """Who says that it reads a channel makes use of it: truths or qualities differ from those of a naive reading."""
    channel = RandomizedResponse(alphabet=LABELS, epsilon=1.0).channel()
    reports = through_null(crowd(4), channel, 4)

    naive, aware = cls().fit(reports), cls().fit(reports, channel=channel)

    moved = [naive.posterior - aware.posterior, (naive.workers.quality - aware.workers.quality)[:, None]]
    assert max(np.nanmax(np.abs(part)) for part in moved) > 0.01


@every_reader
def test_a_strong_signal_survives_its_channel(cls: AnyClass) -> None:
    """At epsilon 4 with 60 workers (seed 5) nearly all truths that the unprotected answers give are found again."""
    channel = RandomizedResponse(alphabet=LABELS, epsilon=4.0).channel()
    answers = crowd(5, tasks=60, workers=60, share=0.5)

    truth = cls().fit(through_null(answers, channel, 5), channel=channel).truth

    plain = cls().fit(answers).truth
    same = truth == plain if cls.capabilities.kind == "categorical" else np.abs(truth - plain) < 0.5
    assert same[:60].mean() >= 0.95


@every_reader
def test_a_certificate_of_other_labels_is_refused(cls: AnyClass) -> None:
    """A channel over other labels than the reports' does not belong to them."""
    with pytest.raises(ReportsError, match="certificate"):
        cls().fit(crowd(), channel=Channel.identity(Categories(("no", "yes")), "public"))


@every_blind
def test_estimators_without_a_channel_refuse_one(cls: AnyClass) -> None:
    """An estimator that reads reports as answers says so when it is given a channel."""
    with pytest.raises(
        SettingsError, match="channel.*one-coin" if cls.capabilities.kind == "categorical" else "channel"
    ):
        cls().fit(crowd(), channel=Channel.identity(LABELS, "public"))


def frame_for(cls: AnyClass) -> pa.Table:
    """Return answers as an Arrow table that the estimator reads: ordered labels, or numbers."""
    reports = crowd()
    task, worker = pa.array(reports.task), pa.array(reports.worker)
    if cls.capabilities.kind == "numeric":
        return pa.table({"task": task, "worker": worker, "value": pa.array(reports.value.astype(float))})
    labels = pa.DictionaryArray.from_arrays(pa.array(reports.value), pa.array(LABELS.names), ordered=True)
    return pa.table({"task": task, "worker": worker, "label": labels})


every_of_frames = pytest.mark.parametrize(
    "cls", [c for c in CLASSES if not c.capabilities.needs_alphabet], ids=lambda c: c.name
)


@pytest.mark.slow
@every_of_frames
def test_a_frame_is_fitted_and_predicted(cls: AnyClass) -> None:
    """`fit` reads a frame; `fit_predict` and `fit_predict_proba` return its truths and posterior as such a frame."""
    frame, estimator = frame_for(cls), cls()
    estimate = estimator.fit(frame)

    truths = estimator.fit_predict(frame)

    assert ["task", "truth"] == truths.column_names
    assert estimate.truth.tolist() == truths["truth"].to_pylist()
    assert estimate.tasks.tolist() == truths["task"].to_pylist()
    if cls.capabilities.kind == "categorical" and cls.capabilities.probabilistic:
        assert frame["label"].type == truths["truth"].type
        posterior = estimator.fit_predict_proba(frame)
        np.testing.assert_array_equal(estimate.posterior, np.transpose(posterior.columns[1:]))
    else:
        with pytest.raises(SettingsError, match=r"has no probabilities of labels.*Use .*dawid-skene"):
            estimator.fit_predict_proba(frame)


def test_numbers_without_a_scale_are_refused_from_a_frame_too() -> None:
    """An estimator on a scale says how a frame is read with one."""
    with pytest.raises(ReportsError, match=r"needs numbers on a scale.*alphabet=Scale"):
        ESTIMATORS["gaussian"]().fit(pa.table({"task": [1, 2], "worker": [1, 1], "value": [1.0, 2.0]}))


@every
def test_settings_are_read_and_set_as_in_scikit_learn(cls: AnyClass) -> None:
    """`get_params` has the arguments of the class; `set_params` returns another value and refuses unknown names."""
    estimator = cls()
    settings = estimator.get_params(deep=False)

    assert set(inspect.signature(cls).parameters) == set(settings)
    assert estimator == cls(**settings)
    changed = estimator.set_params(tolerance=0.5)
    assert (0.5, cls()) == (changed.tolerance, estimator)
    with pytest.raises(SettingsError, match=r"has no argument 'steps'. Did you mean 'max_steps'"):
        estimator.set_params(steps=3)


def test_scikit_learn_clones_every_estimator() -> None:
    """`sklearn.base.clone` returns an equal estimator, where scikit-learn is installed."""
    base = pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")

    assert [cls() for cls in CLASSES] == [base.clone(cls()) for cls in CLASSES]


@every
def test_help_documents_every_setting(cls: AnyClass) -> None:
    """The docstring of the class names every setting."""
    assert [] == [one.name for one in dataclasses.fields(cast(Any, cls)) if one.name not in (cls.__doc__ or "")]


def test_help_and_completion_leave_out_the_em_loop() -> None:
    """The help of Dawid-Skene has at most 100 lines; names for users are settings and `fit`, also of a value."""
    steps = {name for name in vars(Model) if inspect.isfunction(getattr(Model, name))}

    assert pydoc.render_doc(DawidSkene).count("\n") <= 100
    assert not steps & {name for cls in CLASSES for name in (*dir(cls), *dir(cls()))}
    assert {"fit", "fit_predict", "set_params", "smoothing"} < set(dir(DawidSkene()))
    assert steps < set(dir(Estimator))
