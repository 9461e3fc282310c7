"""Guarantee of a shared noise variance against independent computations, and rivals of inference on simple crowds."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from experiments.rivals import inferences, numeric_discovery, personal_budgets, shared_variance, worker_budgets
from experiments.rows import four_digits, read_rows

from crowdveil import Categories, Reports
from crowdveil.privacy.shuffling import shuffled_worker_guarantee
from tests.real_data import load_or_skip

DELTAS = {
    0.5: (0.048, 0.078, 0.095, 0.0984),
    1.0: (0.082, 0.141, 0.179, 0.1871),
    2.0: (0.131, 0.240, 0.320, 0.3391),
    4.0: (0.194, 0.369, 0.523, 0.5633),
}
"""Of 2, 5, 30 and infinitely many answers, computed by others to about .002."""
BUDGETS = read_rows(worker_budgets.RESULTS, worker_budgets.Row)
ROWS = read_rows(numeric_discovery.RESULTS, numeric_discovery.Row)


@pytest.mark.parametrize("epsilon", shared_variance.EPSILONS)
def test_deltas_are_those_of_another_quadrature(epsilon: float) -> None:
    """Deltas of 2, 5, 30 and infinitely many answers are within .002 of the known ones."""
    found = [shared_variance.exact_delta(epsilon, answers) for answers in (2, 5, 30, None)]

    assert found == pytest.approx(DELTAS[epsilon], abs=0.002)


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_one_answer_has_laplace_noise(epsilon: float) -> None:
    """The density of one answer's noise is that of Laplace noise of scale 1 / epsilon, and its delta is 0."""
    far = np.array([1e-3, 0.1, 1.0, 7.0])

    assert np.exp(shared_variance.log_density(far, 1, epsilon)) == pytest.approx(
        epsilon / 2 * np.exp(-epsilon * far), rel=1e-9
    )
    assert shared_variance.exact_delta(epsilon, 1) == 0.0


@pytest.mark.parametrize("answers", [2, 3, 8])
def test_no_epsilon_covers_two_answers(answers: int) -> None:
    """The log-density of several answers grows without bound towards 0, and is finite at the distance of the range."""
    near = shared_variance.log_density(10.0 ** -np.array([2.0, 4.0, 8.0, 16.0, 32.0, 64.0]), answers, 1.0)

    assert (np.diff(near) > 0.5).all()
    assert math.isfinite(shared_variance.log_density(np.array([1.0]), answers, 1.0)[0])


def test_a_delta_by_simulation() -> None:
    """Delta of five answers at epsilon 2 is the mean excess of 200,000 draws, within four standard errors."""
    rng, epsilon, answers, draws = np.random.default_rng(0), 2.0, 5, 200_000
    variance = rng.exponential(2 / epsilon**2, draws)
    first, others = rng.standard_normal(draws) * np.sqrt(variance), rng.chisquare(answers - 1, draws) * variance
    here = shared_variance.log_density(np.sqrt(first**2 + others), answers, epsilon)
    moved = shared_variance.log_density(np.sqrt((first - 1) ** 2 + others), answers, epsilon)
    excess = np.maximum(1 - np.exp(np.minimum(epsilon + moved - here, 0)), 0)

    assert shared_variance.exact_delta(epsilon, answers) == pytest.approx(
        excess.mean(), abs=4 * excess.std() / math.sqrt(draws)
    )


def test_committed_deltas_are_computed_again() -> None:
    """Every committed delta is the computed one."""
    committed = read_rows(shared_variance.RESULTS, shared_variance.Row)

    assert [four_digits(row.delta) for row in committed] == [four_digits(row.delta) for row in shared_variance.rows()]


def test_mixture_density_is_a_convolution() -> None:
    """The density of a normal error and Laplace noise is their convolution, near and far from the truth."""
    steps = np.linspace(-60, 60, 240_001)
    for deviation, scale in ((0.3, 2.0), (2.0, 0.5), (1.0, 1.0)):
        normal = np.exp(-((steps / deviation) ** 2) / 2) / (deviation * math.sqrt(2 * math.pi))
        for far in (-8.0, -0.4, 0.0, 3.0):
            expected = (normal * np.exp(-np.abs(far - steps) / scale) / (2 * scale)).sum() * (steps[1] - steps[0])
            found = inferences.log_mixture_density(np.array([far]), deviation, scale)[0]

            assert math.exp(found) == pytest.approx(expected, rel=1e-4)


def test_rivals_leave_out_a_worker_who_is_far_from_all() -> None:
    """Beside a worker who is far from all others, every weighting errs less than the mean."""
    task, worker = np.divmod(np.arange(60), 6)
    truth = np.linspace(1, 9, 10)
    value = truth[task] + np.where(worker == 5, 4.0, 0.05 * (-1.0) ** (worker + task))
    sent = inferences.Sent(task, worker, value, 10, 6, 0.0, 20.0)
    plain = np.abs(inferences.mean(sent) - truth).mean()

    for found in (
        inferences.crh(sent),
        inferences.noise_aware_weights(sent, np.zeros(6)),
        inferences.mixture_posterior_medians(sent, 0.1),
    ):
        assert np.abs(found - truth).mean() < plain / 2


def test_bounds_move_numbers_into_the_scale() -> None:
    """CRH of bounded numbers is CRH of the numbers moved to the ends of the scale."""
    sent = inferences.Sent(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([-3.0, 4.0, 15.0]), 2, 2, 0.0, 10.0)

    assert inferences.bounded_crh(sent)[1] == 10.0
    assert inferences.bounded_crh(sent).tolist() == inferences.crh(sent.clipped()).tolist()


def test_every_way_has_its_rows_at_every_epsilon() -> None:
    """Each rival has two sets of draws at each epsilon on both crowds, and a row of a rival is measured again."""
    rivals = {(row.sent, row.inference) for row in ROWS if row.inference != "gaussian" and row.epsilon is not None}
    counted = [row for row in ROWS if (row.sent, row.inference) in rivals and row.epsilon is not None]
    crowd = numeric_discovery.drawn_crowd("sparse", 0)
    found = {(sent, inference) for sent, inference, _ in numeric_discovery.by_rivals(crowd, 1.0, 0)}

    assert rivals == found
    assert len(counted) == len(rivals) * 2 * len(numeric_discovery.EPSILONS) * 2


def test_a_row_of_a_rival_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rivals' errors on the sparse crowd at epsilon 2 are the committed ones."""
    monkeypatch.setattr(numeric_discovery, "by_ours", lambda *_: iter(()))
    seeds = numeric_discovery.SEED_SETS["sparse"][0]
    found = {(row.sent, row.inference): row.error for row in numeric_discovery.measured("sparse", 2.0, seeds)}
    committed = {
        (row.sent, row.inference): row.error
        for row in ROWS
        if (row.crowd, row.epsilon, row.seeds) == ("sparse", 2.0, 0) and (row.sent, row.inference) in found
    }

    assert committed == pytest.approx(found, rel=1e-3)


def test_the_page_has_the_committed_tables() -> None:
    """The tables of related work are those of the committed results."""
    page = numeric_discovery.PAGE.read_text("utf-8")

    assert numeric_discovery.table_of_page(ROWS) in page
    assert shared_variance.table_of_page(read_rows(shared_variance.RESULTS, shared_variance.Row)) in page
    assert worker_budgets.table_of_page(BUDGETS) in page


@pytest.mark.parametrize(("labels", "cells"), [(2, 2), (3, 2), (2, 3)])
def test_a_hidden_cell_protects_a_person_as_one_open_cell(labels: int, cells: int) -> None:
    """By enumeration of all reports: e^epsilon if all answers change, (e^epsilon + cells - 1) / cells if one does."""
    epsilon = 1.3
    names = Categories(tuple(map(str, range(labels))))
    table = worker_budgets.response(names, epsilon).probabilities
    answers = list(product(range(labels), repeat=cells))
    chance = labels ** (1.0 - cells) / cells
    sent = {
        one: np.array([chance * sum(table[x, y] for x, y in zip(one, seen, strict=True)) for seen in answers])
        for one in answers
    }
    losses: dict[int, float] = {}
    for one, other in product(answers, repeat=2):
        changed = sum(x != y for x, y in zip(one, other, strict=True))
        losses[changed] = max(losses.get(changed, 0.0), float(np.log(sent[one] / sent[other]).max()))

    assert all(probabilities.sum() == pytest.approx(1) for probabilities in sent.values())
    assert losses[cells] == pytest.approx(epsilon, abs=1e-6)
    assert losses[1] == pytest.approx(worker_budgets.hidden_cell_epsilon(epsilon, cells), abs=1e-6)


def test_the_report_of_one_cell_alone_hides_more() -> None:
    """The table of one of ten cells keeps an answer in a tenth of the cases; read alone, it loses less than all ten."""
    names = Categories(("a", "b", "c", "d"))
    channel, kept = worker_budgets.hidden_channel(names, 4.0, 10), worker_budgets.response(names, 4.0)

    assert channel.probabilities == pytest.approx(kept.probabilities / 10 + 0.9 / 4, abs=1e-9)
    assert channel.epsilon < worker_budgets.hidden_cell_epsilon(4.0, 10)


def test_cells_are_sampled_without_the_answers() -> None:
    """Each worker keeps as many answers as asked for, or all, and the same ones whatever the answers are."""
    answers = load_or_skip("bluebird").answers
    other = replace(answers, value=1 - answers.value)
    parts = [worker_budgets.sampled(one, 7, np.random.default_rng(3)) for one in (answers, other)]

    assert np.minimum(answers.per_worker, 7).tolist() == parts[0].per_worker.tolist()
    assert parts[0].task.tolist() == parts[1].task.tolist()
    assert parts[0].worker.tolist() == parts[1].worker.tolist()


def test_no_way_spends_more_than_the_budget() -> None:
    """In every committed row at delta 0, but for hidden cells, those of a worker have at most the budget together."""
    pure = [row for row in BUDGETS if row.delta == 0 and not row.spent.startswith("hidden")]

    budgets = sum(len(one) for one in worker_budgets.BUDGETS.values())

    assert len(pure) == 2 * budgets * (len(worker_budgets.CELLS) + 2)
    assert all(row.cells * row.epsilon <= row.budget * 1.001 for row in pure)


@pytest.mark.slow
def test_the_shuffled_way_is_within_the_budget() -> None:
    """The committed epsilon of 345 cells, each shuffled among ten reports, is within the worker's budget at delta."""
    (row, _) = [row for row in BUDGETS if row.spent.startswith("shuffled") and (row.data, row.budget) == ("dog", 16.0)]
    channel = worker_budgets.response(Categories(("0", "1", "2", "3")), row.epsilon * 0.999)
    loss = shuffled_worker_guarantee(channel, reports=10, cells=row.cells, delta=row.delta).epsilon

    assert row.budget * 0.9 < loss <= row.budget


def test_a_row_of_a_budget_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten sampled cells on dog at a budget of 16 have the committed error."""
    names = load_or_skip("dog").answers.alphabet
    ten = worker_budgets.Spending("sampled, 10", 0.0, 10, worker_budgets.response(names, 1.6))
    monkeypatch.setattr(worker_budgets, "spendings", lambda *_: iter((ten,)))
    (found,) = worker_budgets.measured("dog", 16.0, worker_budgets.SEED_SETS[1])
    setting = ("dog", 16.0, "sampled, 10", 100)
    committed = [row for row in BUDGETS if (row.data, row.budget, row.spent, row.seeds) == setting]

    assert [four_digits(row.error) for row in committed] == [four_digits(found.error)]


def test_reports_are_summed_with_the_epsilon_of_their_worker() -> None:
    """Two reports of one task count with the epsilons of their workers, as they are or inverted."""
    names = Categories(("a", "b"))
    reports = Reports([0, 0], [0, 1], [0, 1], np.array(["t"]), np.array(["v", "w"]), names)
    group = np.array([0, 2])
    inverse = [np.linalg.inv(worker_budgets.response(names, one).probabilities) for one in (0.5, 4.0)]

    assert personal_budgets.weighted_counts(reports, group, inverted=False).tolist() == [[0.5, 4.0]]
    assert personal_budgets.weighted_counts(reports, group, inverted=True)[0] == pytest.approx(
        0.5 * inverse[0][0] + 4.0 * inverse[1][1]
    )


def test_the_channel_of_each_worker_is_the_best_way_with_several_epsilons() -> None:
    """In both sets of draws the default through the channel of each worker has more right labels than the rivals."""
    rows = read_rows(personal_budgets.RESULTS, personal_budgets.Row)
    for seeds in personal_budgets.SEED_SETS:
        own = {row.way: row.accuracy for row in rows if row.seeds == seeds[0]}

        assert max(own, key=own.__getitem__) == f"channel of each worker, {personal_budgets.METHODS[0]}"
