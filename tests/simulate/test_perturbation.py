"""Answers through mechanisms: by devices and at once, by cell, in gaps, and by channels of workers."""

import math
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable, table_by_task
from crowdveil.design.mechanism_from_settings import MechanismSettings
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.mechanisms.laplace import Laplace
from crowdveil.mechanisms.matrix_factorization import MatrixFactorization
from crowdveil.mechanisms.randomized_response import RandomizedResponse
from crowdveil.mechanisms.two_layer import TwoLayer
from crowdveil.privacy.accounting import account_channel_table
from crowdveil.randomness import secure, seeded
from crowdveil.simulate import (
    bernoulli,
    categorical_crowd,
    expected_reports_of_answers,
    numeric_crowd,
    perturb_reports,
    perturbation,
)
from crowdveil.simulate.channel_assignment import channel_table_of_settings
from crowdveil.storage.perturbed_collection import read_channel_rows
from tests.mechanisms.examples import FACTORS

LABELS = Categories(("G", "P", "R", "X"), ordered=True)
DIGITS = Scale(0, 9)
FIVE = Categories(tuple("01234"), ordered=True)
YES_NO = Categories(("no", "yes"))


def crowd_answers(seed=1, labels=LABELS, **sizes):
    """Answers of a small simulated crowd."""
    return categorical_crowd(
        **{"workers": 30, "tasks": 20, "sparsity": 0.7} | sizes, labels=labels, source=seeded(seed)
    ).answers


def exactly(answers, workers, tasks, alphabet):
    """A crowd in which the first `answers` cells are answered."""
    task, worker = np.divmod(np.arange(answers), workers)
    return Reports(task, worker, np.arange(answers) % alphabet.size, np.arange(tasks), np.arange(workers), alphabet)


def cells(reports):
    """The (task, worker) pairs of the reports."""
    return list(zip(reports.task.tolist(), reports.worker.tolist(), strict=True))


EXPECTED = [
    (40_000, 2000, 200, DIGITS, 1.0, 319_912),
    (4_000, 2000, 200, DIGITS, 5.0, 28_973),
    (89_796, 825, 11_040, FIVE, 1.0, 5_920_268),
    (17_729, 64, 2_134, YES_NO, 1.0, 64_349),
]
"""Answers, workers, tasks, labels, epsilon, and the reports that k-ary randomized response with NULL makes of them."""


@pytest.mark.parametrize(("answers", "workers", "tasks", "alphabet", "epsilon", "reports"), EXPECTED)
def test_the_number_of_reports_is_as_derived(answers, workers, tasks, alphabet, epsilon, reports):
    """Reports of NULL outnumber answers as derived, and a draw is within 5 standard deviations (6e-7) of it."""
    given = exactly(answers, workers, tasks, alphabet)
    mechanism = RandomizedResponse(alphabet=alphabet, epsilon=epsilon)
    symbols = alphabet.size + math.exp(epsilon)
    made_up, kept = alphabet.size / symbols, 1 - 1 / symbols
    empty = workers * tasks - answers
    deviation = math.sqrt(empty * made_up * (1 - made_up) + answers * kept * (1 - kept))

    assert pytest.approx(answers * kept + empty * made_up, rel=1e-9) == expected_reports_of_answers(
        given, mechanism.channel()
    )
    assert reports == round(expected_reports_of_answers(given, mechanism.channel()))
    assert abs(len(perturb_reports(given, mechanism, seeded(12))) - reports) < 5 * deviation


@pytest.mark.parametrize("source", [seeded(3), secure()], ids=["seeded", "secure"])
@pytest.mark.parametrize("participation", ["protected", "public"])
def test_reports_speak_of_the_same_crowd(source, participation):
    """Every cell sends at most one report, in the alphabet, over the same lists of tasks and workers."""
    answers = crowd_answers()
    mechanism = RandomizedResponse(alphabet=LABELS, epsilon=1.0, participation=participation)

    reports = perturb_reports(answers, mechanism, source)

    assert len(set(cells(reports))) == len(reports)
    assert (LABELS, True, True) == (
        reports.alphabet,
        np.array_equal(answers.tasks, reports.tasks),
        np.array_equal(answers.workers, reports.workers),
    )
    assert (cells(answers) == cells(reports)) == (participation == "public")


def test_laplace_reports_every_cell():
    """A mechanism that never sends NULL fills the table; with public participation only answered cells report."""
    answers = numeric_crowd(workers=20, tasks=10, sparsity=0.8, source=seeded(1)).answers
    protected = Laplace(alphabet=DIGITS, epsilon=1.0)
    public = Laplace(alphabet=DIGITS, epsilon=1.0, participation="public")

    assert (
        200
        == expected_reports_of_answers(answers, protected.channel())
        == len(perturb_reports(answers, protected, seeded(2)))
    )
    assert 200 == len(perturb_reports(answers, protected, secure()))
    assert (
        cells(answers)
        == cells(perturb_reports(answers, public, seeded(2)))
        == cells(perturb_reports(answers, public, secure()))
    )
    assert len(answers) == expected_reports_of_answers(answers, public.channel())


@pytest.mark.parametrize("participation", ["protected", "public"])
@pytest.mark.parametrize("source", [seeded(3), secure()], ids=["seeded", "secure"])
def test_two_layer_runs_on_the_devices(participation, source):
    """A mechanism whose cells share a random number goes worker by worker, whatever the source."""
    answers = crowd_answers(labels=YES_NO)
    mechanism = TwoLayer.widest_for_cell_epsilon(alphabet=YES_NO, epsilon=2.0, participation=participation)
    calls = []

    reports = perturb_reports(answers, mechanism, source, progress=lambda done, total: calls.append((done, total)))

    assert [(k, 30) for k in range(1, 31)] == calls
    assert len(set(cells(reports))) == len(reports)
    assert (cells(answers) == cells(reports)) == (participation == "public")


def test_a_seed_makes_the_same_reports_again():
    """One seed gives one set of reports, another seed another; secure reports never repeat."""
    answers, mechanism = crowd_answers(), RandomizedResponse(alphabet=LABELS, epsilon=1.0)
    runs = [
        perturb_reports(answers, mechanism, source) for source in (seeded(1), seeded(1), seeded(2), secure(), secure())
    ]

    same = [cells(run) == cells(runs[0]) and np.array_equal(run.value, runs[0].value) for run in runs]

    assert [True, True, False, False, False] == same
    assert cells(runs[3]) != cells(runs[4])


def test_an_empty_crowd_still_sends_made_up_reports():
    """Workers who answered nothing are protected too: their NULL cells turn into labels."""
    empty = exactly(0, 300, 100, LABELS)
    mechanism = RandomizedResponse(alphabet=LABELS, epsilon=1.0)
    public = RandomizedResponse(alphabet=LABELS, epsilon=1.0, participation="public")

    assert len(perturb_reports(empty, mechanism, seeded(1))) > 10_000
    assert [0, 0] == [len(perturb_reports(empty, public, source)) for source in (seeded(1), secure())]


def test_memory_follows_the_reports_and_not_the_cells():
    """A million workers on ten thousand tasks (10**10 cells, 307,000 reports expected) stay below 100 MB."""
    answers = numeric_crowd(workers=1_000_000, tasks=10_000, sparsity=1 - 2e-6, source=seeded(1)).answers
    mechanism = RandomizedResponse(alphabet=DIGITS, epsilon=12.7)
    tracemalloc.start()
    reports = perturb_reports(answers, mechanism, seeded(2))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert abs(len(reports) - expected_reports_of_answers(answers, mechanism.channel())) < 5 * math.sqrt(len(reports))
    assert peak < 100e6


@pytest.mark.parametrize(
    "mechanism", [MatrixFactorization(alphabet=DIGITS, epsilon=1.0, dimensions=5), FACTORS], ids=lambda one: one.name
)
def test_mechanisms_that_send_sums_make_no_table(mechanism):
    """Matrix factorization sends numbers about all tasks at once: refused, even if they are as many as the tasks."""
    answers = numeric_crowd(workers=3, tasks=10, sparsity=0.5, source=seeded(1)).answers

    with pytest.raises(SettingsError, match="one symbol per task"):
        perturb_reports(answers, mechanism, seeded(1))


def test_repeated_answers_are_refused():
    """Two answers of one worker to one task cannot be perturbed as one cell; the message says what to do."""
    answers = Reports(np.array([0, 0]), np.array([0, 0]), np.array([0, 1]), np.arange(2), np.arange(2), YES_NO)

    with pytest.raises(ReportsError, match="duplicates='first'"):
        perturb_reports(answers, RandomizedResponse(alphabet=YES_NO, epsilon=1.0), seeded(1))


@pytest.mark.parametrize("alphabet", [None, FIVE])
def test_answers_in_another_alphabet_are_refused(alphabet):
    """Free numbers, or labels the mechanism does not know, are refused with the way out."""
    answers = Reports(np.array([0]), np.array([0]), np.array([0]), np.arange(2), np.arange(2), alphabet)

    with pytest.raises(ReportsError, match=r"alphabet=mechanism\.alphabet"):
        perturb_reports(answers, RandomizedResponse(alphabet=YES_NO, epsilon=1.0), seeded(1))


def test_more_reports_than_fit_are_refused_before_they_are_drawn():
    """A request for billions of reports is refused with their expected number."""
    answers = exactly(1, 1_000_000, 10_000, YES_NO)

    with pytest.raises(SettingsError, match="423"):
        perturb_reports(answers, RandomizedResponse(alphabet=YES_NO, epsilon=1.0), seeded(1))


@pytest.mark.parametrize("limit", [200, 300])
def test_a_refusal_for_size_follows_from_the_lists(monkeypatch, limit):
    """With protected participation, no answer and an answer in every cell are refused alike, or let through alike."""
    monkeypatch.setattr(perturbation, "MAX_REPORTS", limit)
    mechanism = RandomizedResponse(alphabet=YES_NO, epsilon=2.0)
    errors = set()
    for answered in (0, 1, 1200):
        crowd = exactly(answered, 30, 40, YES_NO)
        try:
            perturb_reports(crowd, mechanism, seeded(1))
            errors.add("")
        except SettingsError as error:
            errors.add(str(error))

    assert 1 == len(errors)
    assert (limit == 200) == ("got 256" in errors.pop())


FALSE_ALARM = 1e-4


@settings(max_examples=50)
@given(st.integers(1, 10**13), st.integers(0, 2**32), st.floats(0.01, 200))
def test_hits_ascend_within_bounds(cells, seed, wanted):
    """Numbers that come up are distinct, ascending and below the number of coins, however many coins there are."""
    found = bernoulli.bernoulli_indices(seeded(seed).generator, cells, min(1.0, wanted / cells))

    assert (np.diff(found) > 0).all()
    assert ((found >= 0) & (found < cells)).all()
    assert len(found) == cells or wanted < cells


@pytest.mark.slow
@pytest.mark.parametrize("probability", [0.05, 0.3, 0.7])
def test_patterns_are_those_of_independent_coins(probability, monkeypatch):
    """All 16 patterns of 4 coins, in two chunks, have their product probabilities: 20,000 draws, false alarm 1e-4.

    Steps are drawn few at a time, so that walks go on from where they stopped.
    """
    monkeypatch.setattr(bernoulli, "MAX_CELLS_PER_CHUNK", 3)
    monkeypatch.setattr(bernoulli, "SPARE_GAPS", 1)
    generator = seeded(7).generator
    counts = np.zeros(16)
    for _ in range(20_000):
        counts[(1 << bernoulli.bernoulli_indices(generator, 4, probability)).sum()] += 1
    ones = np.array([pattern.bit_count() for pattern in range(16)])
    expected = 20_000 * probability**ones * (1 - probability) ** (4 - ones)
    rare = expected < 5
    pooled = [np.append(side[~rare], side[rare].sum()) for side in (counts, expected)]
    keep = pooled[1] > 0

    assert chisquare(pooled[0][keep], pooled[1][keep]).pvalue > FALSE_ALARM


def test_chunks_cover_all_coins_once(monkeypatch):
    """Chunks end where the next begins, the last at the number of coins, and hold their own numbers only."""
    monkeypatch.setattr(bernoulli, "SUCCESSES_PER_CHUNK", 10)
    first, ends = 0, []
    for stop, found in bernoulli.successful_cells_by_chunk(seeded(3).generator, 1000, 0.1):
        assert ((found >= first) & (found < stop)).all()
        ends.append(first := stop)

    assert [101 * k for k in range(1, 10)] + [1000] == ends


SCALE = Scale(0, 4)
WANTED = MechanismSettings(name="quantized-response", epsilon=2.0, cuts=("1",))


def test_equal_rows_share_a_channel(tmp_path: Path) -> None:
    """Four workers with two distinct pairs of settings make two channels; what is empty is the command's own."""
    path = tmp_path / "channels.csv"
    path.write_text("worker,epsilon,cuts\na,1,\nb,,2|4\nc,1,\nd,,2|4\n", encoding="utf-8")

    table = channel_table_of_settings(read_channel_rows(path), WANTED, SCALE, tasks=3)

    assert {"a": 0, "b": 1, "c": 0, "d": 1} == table.workers
    assert [("0", "1..4", "NULL"), ("0..1", "2..3", "4", "NULL")] == [one.outputs for one in table.channels]
    assert [1.0, 2.0] == [round(one.epsilon, 6) for one in table.channels]


def test_a_table_is_accounted_for_by_cells() -> None:
    """A worker's loss is the sum over the worker's own cells; the worst worker is shown, assigned cells only count."""
    half, two = (RandomizedResponse(alphabet=SCALE, epsilon=epsilon).channel() for epsilon in (0.5, 2.0))
    table = ChannelTable(
        channels=(half, two), choice=((0, 1), (1, 1)), workers={"a": 0, "b": 1}, tasks={"t": 0, "u": 1, "v": 0}
    )
    names: dict[str, Any] = {"tasks": np.array(["t", "u", "v"]), "workers": np.array(["a", "b"])}
    few = Assignment.from_arrays(["t", "u", "t"], ["a", "a", "b"])

    everything = account_channel_table(table, **names)
    assigned = account_channel_table(table, **names, assignment=few)

    assert [two.epsilon, 3 * two.epsilon] == [row.exact for row in everything]
    assert [1, 3] == [row.cells for row in everything]
    assert [two.epsilon, half.epsilon + two.epsilon, 2] == [*(row.exact for row in assigned), assigned[1].cells]


def test_unprotected_cells_cost_everything_to_those_who_have_them() -> None:
    """One unprotected cell makes its worker's loss infinite, and no other's."""
    open_task = table_by_task(
        [RandomizedResponse(alphabet=SCALE, epsilon=1.0).channel(), Channel.identity(SCALE, "public")],
        {"t": 0, "u": 1},
    )
    names: dict[str, Any] = {"tasks": np.array(["t", "u"]), "workers": np.array(["a"])}

    assert np.inf == account_channel_table(open_task, **names)[1].exact
    protected = account_channel_table(open_task, **names, assignment=Assignment.from_arrays(["t"], ["a"]))[1]
    assert np.isclose(1.0, protected.exact, atol=1e-6)
