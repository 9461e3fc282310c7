"""Agreement of workers: its definitions, and what a channel leaves of it."""

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.channels.guarantee import Participation
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.quality.agreement.alpha import Interval, Metric, measure_agreement
from crowdveil.quality.agreement.corrected_for_channel import agreement_through_channel
from crowdveil.randomness import seeded
from crowdveil.simulate.perturbation import perturb_reports

NO = None
CANONICAL = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, NO, NO, NO),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NO, 3),
    (NO, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NO),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NO),
)
"""Four observers and twelve units (Krippendorff 2011, Computing Krippendorff's Alpha-Reliability, section C)."""
Table = Sequence[Sequence[int | None]]


def reports_of(table: Table, alphabet: Alphabet | None) -> Reports:
    """Answers of a table indexed [worker, task]."""
    cells = [
        (task, worker, value) for worker, row in enumerate(table) for task, value in enumerate(row) if value is not None
    ]
    task, worker, value = zip(*cells, strict=True)
    if isinstance(alphabet, Categories):
        value = tuple(alphabet.names[code] for code in value)
    return Reports.from_arrays(task, worker, value, alphabet=alphabet, numeric=alphabet is None)


def textbook_alpha(table: Table, metric: Metric) -> float:
    """Alpha by loops over all ordered pairs of answers."""
    units = [[value for value in column if value is not None] for column in zip(*table, strict=True)]
    units = [unit for unit in units if len(unit) >= 2]
    values = [value for unit in units for value in unit]

    def distance(a: int, b: int) -> float:
        if metric == "nominal":
            return float(a != b)
        if metric == "interval":
            return float((a - b) ** 2)
        low, high = min(a, b), max(a, b)
        between = sum(low <= value <= high for value in values)
        return (between - (values.count(a) + values.count(b)) / 2) ** 2

    observed = sum(distance(a, b) / (len(unit) - 1) for unit in units for a, b in permutations(unit, 2))
    expected = sum(distance(a, b) for a, b in permutations(values, 2))
    return 1 - (len(values) - 1) * observed / expected if expected else float("nan")


def test_the_canonical_example_has_its_published_values() -> None:
    """Krippendorff's own example gives .743, .815 and .849."""
    found = measure_agreement(reports_of(CANONICAL, Scale(1, 5)))

    assert {"nominal": 0.743, "ordinal": 0.815, "interval": 0.849} == {
        metric: round(alpha.value, 3) for metric, alpha in found.alphas.items()
    }
    assert (11, 40, 1) == (found.tasks, found.answers, found.single)


cells = st.one_of(st.none(), st.integers(0, 3))


@pytest.mark.slow
@given(
    table=st.integers(1, 6).flatmap(
        lambda tasks: st.lists(st.lists(cells, min_size=tasks, max_size=tasks), min_size=2, max_size=5)
    )
)
def test_alpha_is_that_of_loops_over_pairs(table: list[list[int | None]]) -> None:
    """On any small table alpha and the agreement of workers equal their definitions."""
    if all(sum(value is not None for value in column) < 2 for column in zip(*table, strict=True)):
        return
    by_label = measure_agreement(reports_of(table, Categories(("a", "b", "c", "d"), ordered=True)))
    by_number = measure_agreement(reports_of(table, None))

    for metric, found in (*by_label.alphas.items(), *by_number.alphas.items()):
        assert textbook_alpha(table, metric) == pytest.approx(found.value, abs=1e-9, nan_ok=True)
    assert by_label.workers is not None
    for name, share in zip(by_label.workers.names.tolist(), by_label.workers.pairwise.tolist(), strict=True):
        own = table[int(name)]
        others = [row for at, row in enumerate(table) if at != int(name)]
        equal = [a == b for row in others for a, b in zip(own, row, strict=True) if None not in (a, b)]
        assert (np.mean(equal) if equal else np.nan) == pytest.approx(share, nan_ok=True)


def test_many_labels_and_few_answers_are_counted_by_sorting() -> None:
    """A table of counts would be large: the same values follow from sorted answers."""
    source = np.random.default_rng(3)
    table = np.where(source.random((3, 40)) < 0.7, source.integers(0, 200, (3, 40)) // 40 * 40, -1)
    rows = [[None if value < 0 else int(value) for value in row] for row in table]
    found = measure_agreement(reports_of(rows, Scale(0, 199)))

    assert textbook_alpha(rows, "nominal") == pytest.approx(found.alphas["nominal"].value)
    assert textbook_alpha(rows, "ordinal") == pytest.approx(found.alphas["ordinal"].value)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["nominal", "ordinal", "interval"])
def test_intervals_hold_the_alpha_of_the_population(metric: Metric) -> None:
    """Of 200 crowds with 60 tasks, about 90 % of the intervals hold alpha of a crowd with 60,000 tasks."""
    source = np.random.default_rng(5)

    def crowd(tasks: int) -> Reports:
        truth = source.choice(4, tasks, p=(0.5, 0.25, 0.15, 0.1))
        noisy = np.clip(truth + np.rint(source.normal(0, 0.8, (5, tasks))), 0, 3).astype(np.int16)
        answered = np.nonzero(source.random((5, tasks)) < 0.7)
        names = np.arange(tasks), np.arange(5)
        return Reports(answered[1].astype(np.int32), answered[0].astype(np.int32), noisy[answered], *names, Scale(0, 3))

    value = measure_agreement(crowd(60_000)).alphas[metric].value
    held = [
        found.low <= value <= found.high for found in (measure_agreement(crowd(60)).alphas[metric] for _ in range(200))
    ]

    assert 0.85 <= np.mean(held) <= 0.95


def test_numbers_have_a_difference() -> None:
    """Free numbers give the root mean squared difference, for all pairs and each worker."""
    table = ((1, 5, NO), (3, NO, 2), (4, 5, NO))
    found = measure_agreement(reports_of(table, None))
    squares = [4, 9, 1, 0]

    assert "difference" == found.pairwise_name
    assert np.sqrt(np.mean(squares)) == pytest.approx(found.pairwise.value)
    assert found.workers is not None
    assert np.sqrt((4 + 9 + 0) / 3) == pytest.approx(found.workers.pairwise[0])
    assert [3, 2, 3] == found.workers.pairs.tolist()


def test_equal_answers_have_no_alpha_and_few_tasks_no_interval() -> None:
    """Without any difference alpha is not defined; below ten tasks no interval is stated."""
    found = measure_agreement(reports_of(((0, 0), (0, 0)), Categories(("a", "b"))))

    assert (True, True) == (np.isnan(found.alphas["nominal"].value), np.isnan(found.pairwise.low))
    assert 1.0 == found.pairwise.value


def test_what_cannot_be_compared_is_refused() -> None:
    """Tasks with one answer each, and a worker who answers a task twice, are refused."""
    with pytest.raises(ReportsError, match="two workers"):
        measure_agreement(reports_of(((0, NO), (NO, 1)), Categories(("a", "b"))))
    twice = Reports.from_arrays([1, 1], ["x", "x"], ["a", "b"], duplicates="all")
    with pytest.raises(ReportsError, match="once"):
        measure_agreement(twice)


COLOURS, POINTS = Categories(("red", "green", "blue")), Scale(0, 3)


@pytest.fixture(params=[COLOURS, POINTS], ids=["labels", "scale"])
def crowd(request: pytest.FixtureRequest) -> Reports:
    """300 tasks, 12 workers, half of the cells answered, errors that grow with the worker."""
    alphabet: Alphabet = request.param
    source = np.random.default_rng(11)
    truth = source.integers(0, alphabet.size, 300)
    wrong = source.random((12, 300)) < np.linspace(0.1, 0.6, 12)[:, None]
    value = np.where(wrong, source.integers(0, alphabet.size, (12, 300)), truth)
    worker, task = np.nonzero(source.random((12, 300)) < 0.5)
    names = np.arange(300).astype(str), np.arange(12).astype(str)
    return Reports(
        task.astype(np.int32), worker.astype(np.int32), value[worker, task].astype(np.int16), *names, alphabet
    )


def test_without_noise_it_is_the_agreement_of_the_answers(crowd: Reports) -> None:
    """The identity channel gives the values of `measure_agreement`, with intervals of about the same width."""
    assert crowd.alphabet is not None
    found = agreement_through_channel(crowd, Channel.identity(crowd.alphabet, "public"))
    plain = measure_agreement(crowd)

    assert (plain.tasks, plain.answers, plain.single) == (found.tasks, found.answers, found.single)
    assert plain.pairwise.value == pytest.approx(found.pairwise.value)
    for metric, alpha in plain.alphas.items():
        assert alpha.value == pytest.approx(found.alphas[metric].value)
        assert alpha.high - alpha.low == pytest.approx(found.alphas[metric].high - found.alphas[metric].low, rel=0.25)
    assert found.workers is None


@pytest.mark.slow
@pytest.mark.parametrize("participation", ["public", "protected"])
def test_noise_is_corrected(crowd: Reports, participation: Participation) -> None:
    """Over 40 collections the mean of alpha is that of the answers, which raw reports miss by far."""
    assert crowd.alphabet is not None
    mechanism = RandomizedResponse(alphabet=crowd.alphabet, epsilon=2.5, participation=participation)
    channel, sent = mechanism.channel(), [perturb_reports(crowd, mechanism, seeded(seed)) for seed in range(40)]
    found = [agreement_through_channel(reports, channel) for reports in sent]
    # With protected participation every pair has the same weight, as with this identity channel.
    plain = agreement_through_channel(crowd, Channel.identity(crowd.alphabet, participation))
    metric = next(iter(plain.alphas))
    values = np.array([one.alphas[metric].value for one in found])
    shares = np.array([one.pairwise.value for one in found])
    raw = measure_agreement(sent[0]).alphas[metric].value

    assert plain.alphas[metric].value == pytest.approx(values.mean(), abs=4 * values.std() / np.sqrt(40))
    assert plain.pairwise.value == pytest.approx(shares.mean(), abs=4 * shares.std() / np.sqrt(40))
    assert abs(raw - plain.alphas[metric].value) > 4 * values.std() / np.sqrt(40)
    held = [one.alphas[metric].low <= plain.alphas[metric].value <= one.alphas[metric].high for one in found]
    assert np.mean(held) >= 0.85


def test_assigned_cells_count_only(crowd: Reports) -> None:
    """With an assignment of the answered cells, protected participation without noise gives the same agreement."""
    assert crowd.alphabet is not None
    names = crowd.tasks[crowd.task], crowd.workers[crowd.worker]
    assigned = Assignment.from_arrays(*names, tasks=np.asarray(crowd.tasks), workers=np.asarray(crowd.workers))
    channel = Channel.identity(crowd.alphabet, "protected")

    everyone = agreement_through_channel(crowd, channel).alphas["nominal"]
    asked = agreement_through_channel(crowd, channel, assignment=assigned).alphas["nominal"]

    assert tuple(everyone) == pytest.approx(tuple(asked))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.02, 0.1])
def test_noise_that_leaves_nothing_gives_no_value(crowd: Reports, epsilon: float) -> None:
    """A coefficient is in its range, or not known: over 20 collections with much noise neither is left out."""
    assert crowd.alphabet is not None
    mechanism = RandomizedResponse(alphabet=crowd.alphabet, epsilon=epsilon, participation="public")
    sent = [perturb_reports(crowd, mechanism, seeded(seed)) for seed in range(20)]
    found = [agreement_through_channel(reports, mechanism.channel()) for reports in sent]
    alphas = np.array([alpha for one in found for alpha in one.alphas.values()])

    assert np.isnan(alphas[:, 0]).mean() > 0.5
    assert (np.isnan(alphas) | (np.abs(alphas) <= 1)).all()


def test_what_cannot_be_corrected_is_refused(crowd: Reports) -> None:
    """Two answers with the same reports, and tasks with one report, are refused."""
    assert crowd.alphabet is not None
    labels = crowd.alphabet.size
    rows = ((1, 1),) * labels
    blind = Channel(crowd.alphabet, "public", crowd.alphabet.names[:2], rows)
    sent = Reports(
        crowd.task, crowd.worker, np.minimum(crowd.value, 1), crowd.tasks, crowd.workers, blind.report_alphabet
    )
    with pytest.raises(SettingsError, match="distinguish"):
        agreement_through_channel(sent, blind)
    single = Reports(crowd.task[:1], crowd.worker[:1], crowd.value[:1], crowd.tasks, crowd.workers, crowd.alphabet)
    with pytest.raises(ReportsError, match="two workers"):
        agreement_through_channel(single, Channel.identity(crowd.alphabet, "public"))


@pytest.mark.parametrize("alphabet", [Categories(("0", "1", "2"), ordered=True), Scale(0, 2)], ids=["labels", "scale"])
def test_intervals_are_those_of_the_leave_one_task_out_jackknife(alphabet: Categories | Scale) -> None:
    """On 100 tasks every interval is within 5 % as wide as that of a jackknife by definition."""
    source = np.random.default_rng(8)
    table = np.minimum(source.choice(3, 100, p=[0.7, 0.2, 0.1]) + (source.random((4, 100)) < 0.3), 2)

    def measures(tasks: np.ndarray) -> list[Interval]:
        found = measure_agreement(reports_of(table[:, tasks].tolist(), alphabet))
        return [*found.alphas.values(), found.pairwise]

    left_out = np.array([[one.value for one in measures(np.delete(np.arange(100), task))] for task in range(100)])
    half = 1.6448536 * np.sqrt(99 / 100 * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0))

    assert half == pytest.approx([(one.high - one.low) / 2 for one in measures(np.arange(100))], rel=0.05)
