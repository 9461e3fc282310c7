"""Streams: near the fit of all reports while they come in, at it once settled, and no add costs more for its past."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from crowdveil.channels.alphabet import Categories
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.data.reports import Reports
from crowdveil.em.estimate import Estimate
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators import DawidSkene, HierarchicalDawidSkene, MajorityVote, OneCoin
from crowdveil.estimators.confusion.model import ConfusionEstimator
from crowdveil.incremental.online_em import OnlineCrowd
from crowdveil.incremental.stream import REVISITED_REPORTS, Stream
from crowdveil.mechanisms.quantized_response import QuantizedResponse
from crowdveil.mechanisms.randomized_response import RandomizedResponse
from crowdveil.randomness import seeded
from tests.crowds_that_grow import LABELS, crowd, part, through
from tests.real_data import load_or_skip
from tests.strategies import small_reports

both = pytest.mark.parametrize("estimator", [DawidSkene(), OneCoin()], ids=lambda e: e.name)


def batches(reports: Reports, place: NDArray[np.integer]) -> Iterator[Reports]:
    """Yield the reports in parts; `place` is the part of each report."""
    return (part(reports, place == one) for one in np.unique(place))


def by_task(reports: Reports, number: int, seed: int = 0) -> NDArray[np.integer]:
    """Deal whole tasks to a number of parts."""
    tasks = len(reports.tasks)
    return (np.random.default_rng(seed).permutation(tasks) * number // tasks)[reports.task]


def by_row(reports: Reports, number: int, seed: int = 0) -> NDArray[np.integer]:
    """Deal single reports to a number of parts."""
    return np.random.default_rng(seed).permutation(len(reports)) * number // len(reports)


def in_order(estimate: Estimate, reports: Reports) -> NDArray[np.float64]:
    """Return the estimate's posteriors in the order of the reports' tasks."""
    place = {name: code for code, name in enumerate(estimate.tasks)}
    return estimate.posterior[[place[str(name)] for name in reports.tasks]]


def distances(stream: Stream, whole: Estimate, reports: Reports) -> tuple[float, float]:
    """Return the share of truths that differ from the whole fit's, and the largest difference of a posterior."""
    posterior = in_order(stream.estimate(), reports)
    differ = posterior.argmax(axis=1) != whole.posterior.argmax(axis=1)
    return float(differ.mean()), float(np.abs(posterior - whole.posterior).max())


def streamed(
    estimator: ConfusionEstimator, parts: Iterator[Reports], alphabet: Categories = LABELS, **more: Any
) -> Stream:
    """Return a stream that took some parts in."""
    stream = Stream(estimator, None if "channel" in more else alphabet, **more)
    for one in parts:
        stream.add(one)
    return stream


@both
@pytest.mark.parametrize(("order", "number"), [(by_task, 50), (by_row, 5)])
def test_made_up_crowds_are_near_the_whole_fit(estimator: ConfusionEstimator, order: Any, number: int) -> None:
    """Of 600 tasks, in 50 parts of whole tasks or 5 of single reports, at most 2 % of truths differ from the whole
    fit's; once settled none does, and posteriors and abilities are within 2e-5."""
    reports = crowd(seed=5, tasks=600, workers=20, per_task=8)
    whole = estimator.fit(reports)

    stream = streamed(estimator, batches(reports, order(reports, number)))

    assert distances(stream, whole, reports)[0] <= 0.02
    stream.settle()
    differ, furthest = distances(stream, whole, reports)
    assert differ == 0
    assert furthest <= 2e-5
    np.testing.assert_allclose(np.sort(stream.estimate().workers.quality), np.sort(whole.workers.quality), atol=2e-5)


@pytest.mark.parametrize(
    ("estimator", "name"),
    [(OneCoin(), "duchenne"), (OneCoin(), "snow_rte"), (DawidSkene(), "snow_rte")],
    ids=["duchenne by one-coin", "rte by one-coin", "rte by dawid-skene"],
)
def test_real_crowds_are_near_the_whole_fit(estimator: ConfusionEstimator, name: str) -> None:
    """Of 20 parts of whole tasks at most 3 % of truths differ from the whole fit's; once settled none does (RTE)."""
    data = load_or_skip(name)
    assert isinstance(data.answers.alphabet, Categories)
    whole = estimator.fit(data.answers)

    stream = streamed(estimator, batches(data.answers, by_task(data.answers, 20)), data.answers.alphabet)

    assert distances(stream, whole, data.answers)[0] <= 0.03
    if name == "snow_rte":
        stream.settle()
        assert distances(stream, whole, data.answers)[1] <= 2e-5


@both
@pytest.mark.parametrize("participation", ["public", "protected"])
def test_channels_are_read(estimator: ConfusionEstimator, participation: Any) -> None:
    """Through randomized response of epsilon 3, 20 parts of complete tasks: at most 3 % of truths differ from the
    whole fit's through the channel; once settled posteriors are within 2e-5, and so is participation."""
    channel = RandomizedResponse(alphabet=LABELS, epsilon=3.0, participation=participation).channel()
    answers = crowd(seed=1, tasks=300, workers=20, per_task=8)
    if participation == "protected":
        reports, everyone = through(answers, channel, seed=2), {"workers": [str(name) for name in answers.workers]}
    else:
        value = channel.sample(answers.value, seeded(2))
        reports = Reports(answers.task, answers.worker, value, answers.tasks, answers.workers, LABELS)
        everyone = {}
    whole = estimator.fit(reports, channel=channel)

    stream = streamed(estimator, batches(reports, by_task(reports, 20)), channel=channel, **everyone)

    assert distances(stream, whole, reports)[0] <= 0.03
    stream.settle()
    assert distances(stream, whole, reports)[1] <= 2e-5
    if participation == "protected":
        found = stream.estimate().workers.participation
        assert found is not None
        np.testing.assert_allclose(found, whole.workers.participation, atol=2e-5)


def test_blocks_of_labels_are_read() -> None:
    """Reports that name blocks of labels give truths in the labels themselves, settled within 2e-5 of the whole fit."""
    channel = QuantizedResponse(alphabet=LABELS, epsilon=4.0, participation="public", cuts=(2,)).channel()
    answers = crowd(seed=2, tasks=200, workers=15, per_task=8)
    value = channel.sample(answers.value, seeded(3))
    sent = channel.report_alphabet
    reports = Reports(answers.task, answers.worker, value, answers.tasks, answers.workers, sent)
    whole = OneCoin().fit(reports, channel=channel)

    stream = streamed(OneCoin(), batches(reports, by_row(reports, 10)), channel=channel)
    stream.settle()

    assert (2, 3) == (sent.size, stream.posterior(str(reports.tasks[0])).size)
    assert distances(stream, whole, reports)[1] <= 2e-5


def test_a_stream_does_not_begin_upside_down() -> None:
    """Fed ten tasks at a time, where the first tables would say anything, one-coin is right about nearly all tasks:
    ten crowds of fixed seeds, none of which ends with labels exchanged."""
    for seed in range(10):
        labels = Categories(("no", "yes"))
        reports = crowd(seed=seed, tasks=150, workers=12, per_task=8, alphabet=labels)
        stream = streamed(OneCoin(), batches(reports, by_task(reports, 15, seed)), labels)

        assert distances(stream, OneCoin().fit(reports), reports)[0] < 0.1


@settings(max_examples=25)
@given(small_reports(min_reports=1), st.integers(1, 4), st.integers(0, 12))
def test_sums_are_those_of_the_posteriors(reports: Reports, number: int, kept: int) -> None:
    """However parts and closing fall, what the crowd holds is what the tasks last said: of open tasks, their posterior
    by worker and symbol; counts are those of all reports."""
    alphabet = reports.alphabet
    assert isinstance(alphabet, Categories)
    stream = streamed(DawidSkene(), batches(reports, by_row(reports, number)), alphabet, kept_reports=kept)
    crowd_known = stream._crowd

    if stream.kept == len(reports):
        expected = np.zeros((crowd_known.workers, alphabet.size, alphabet.size))
        for task, sent in stream._open.items():
            np.add.at(expected, (sent.worker, sent.symbol), stream._posterior[task])
        held = crowd_known.sums[: crowd_known.workers * alphabet.size].reshape(expected.shape)
        np.testing.assert_allclose(held, expected, atol=1e-9)
    assert stream.kept <= max(kept, 0)
    assert crowd_known.counts.sum() == len(reports)
    np.testing.assert_allclose(crowd_known.by_truth.sum(), np.unique(reports.task).size, atol=1e-9)
    np.testing.assert_allclose(stream.estimate().posterior.sum(axis=1), 1.0, atol=1e-9)


def test_an_add_never_costs_its_past() -> None:
    """The reports that an add looks at are at most those of the tasks it touches, and four more for each new report
    and the last task's: the fiftieth part costs no more than that, and tables only of workers whom it touches."""
    reports = crowd(tasks=1000, workers=60, per_task=5)
    looked: list[int] = []
    true_infer = OnlineCrowd.infer

    def counted(self: OnlineCrowd, rows: Any, gold: Any) -> Any:
        looked.append(len(rows.worker))
        return true_infer(self, rows, gold)

    stream = Stream(OneCoin(), LABELS)
    with patch.object(OnlineCrowd, "infer", counted):
        for one in batches(reports, by_task(reports, 50)):
            looked.clear()
            stream.add(one)
            assert sum(looked) <= (1 + REVISITED_REPORTS) * len(one) + 5
    assert stream.kept == len(reports)


def test_memory_follows_workers_tasks_and_what_is_kept() -> None:
    """No more reports are kept than asked for, and what was dropped still counts for its worker."""
    reports = crowd(tasks=400, workers=20, per_task=5)
    stream = streamed(OneCoin(), batches(reports, by_task(reports, 20)), kept_reports=300)

    assert stream.kept <= 300
    assert sum(len(sent.worker) for sent in stream._open.values()) == stream.kept
    assert stream.estimate().reports_per_worker.sum() == len(reports)
    assert distances(stream, OneCoin().fit(reports), reports)[0] <= 0.05


def test_late_reports_on_closed_tasks_are_read() -> None:
    """Without a single kept report, a task's truth still follows all reports on it, and gold stays what it is."""
    labels = Categories(("no", "yes"))
    reports = crowd(seed=5, tasks=100, workers=10, per_task=8, alphabet=labels)
    first = [part(reports, by_task(reports, 2) == 0)]
    stream = streamed(DawidSkene(), iter(first), labels, gold={"new": "no", "never": "yes"}, kept_reports=0)
    good = stream.estimate().worker_names[np.argsort(-stream.estimate().workers.quality)[:3]]

    beliefs = []
    for name in good:
        one = Reports.from_arrays(["late", "new"], [name, name], ["yes", "yes"], alphabet=labels)
        stream.add(one)
        beliefs.append(stream.posterior("late")[1])

    assert beliefs == sorted(beliefs)
    assert beliefs[-1] > 0.9
    assert (stream.truth("late"), stream.truth("new")) == ("yes", "no")
    assert (1, 1) == (stream.estimate().gold_used, stream.estimate().gold_unknown)
    assert stream.kept == 0


def test_gold_guides_a_stream() -> None:
    """A known truth is certain, in the truths and in the estimate."""
    reports = crowd(tasks=30)
    name = str(reports.tasks[4])
    stream = streamed(OneCoin(), batches(reports, by_row(reports, 3)), gold={name: "maybe"})

    assert stream.truth(name) == "maybe"
    assert in_order(stream.estimate(), reports)[4].tolist() == [0, 0, 1]


def protected(epsilon: float = 3.0) -> Channel:
    """Return a channel that protects participation."""
    return RandomizedResponse(alphabet=LABELS, epsilon=epsilon, participation="protected").channel()


def test_complete_tasks_stay_complete() -> None:
    """Where participation is protected a second report on a task, or a stranger's, is refused and changes nothing."""
    everyone = ["u", "v", "w"]
    stream = Stream(OneCoin(), channel=protected(), workers=everyone)
    stream.add(Reports.from_arrays(["a", "b"], ["u", "v"], ["no", "yes"], alphabet=LABELS))
    before = stream.posterior("a")

    with pytest.raises(ReportsError, match=r"must be added together.*Found: b.*when it is complete"):
        stream.add(Reports.from_arrays(["b", "c"], ["w", "w"], ["no", "yes"], alphabet=LABELS))
    with pytest.raises(ReportsError, match=r"named when the stream starts.*Found: x"):
        stream.add(Reports.from_arrays(["c"], ["x"], ["no"], alphabet=LABELS))
    with pytest.raises(ReportsError, match="only tasks that were added"):
        stream.truth("c")
    np.testing.assert_array_equal(before, stream.posterior("a"))
    assert stream.estimate().worker_names.tolist() == everyone


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Stream(MajorityVote(), LABELS),  # type: ignore[arg-type]
        lambda: Stream(HierarchicalDawidSkene(), LABELS),
        lambda: Stream(OneCoin()),
        lambda: Stream(OneCoin(), LABELS, workers=["u"]),
        lambda: Stream(OneCoin(), channel=protected()),
        lambda: Stream(OneCoin(), LABELS, kept_reports=-1),
        lambda: Stream(OneCoin(), channel=ChannelTable(channels=(protected(),), choice=((0,),))),  # type: ignore[arg-type]
        lambda: Stream(OneCoin(), LABELS, gold={"a": "perhaps"}),
        lambda: Stream(OneCoin(), LABELS).add(
            Reports.from_arrays(["a"], ["u"], ["x"], alphabet=Categories(("x", "y")))
        ),
    ],
)
def test_what_cannot_be_streamed_is_refused(wrong: Any) -> None:
    """Other methods, no labels, workers in the wrong place, negative capacity and unknown labels raise an error."""
    with pytest.raises((SettingsError, ReportsError)):
        wrong()
