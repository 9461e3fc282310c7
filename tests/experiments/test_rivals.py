"""Guarantee of a shared noise variance against independent computations, and rivals of inference on simple crowds."""

import math

import numpy as np
import pytest
from experiments.rivals import inferences, numeric_discovery, shared_variance
from experiments.rows import four_digits, read_rows

DELTAS = {
    0.5: (0.048, 0.078, 0.095, 0.0984),
    1.0: (0.082, 0.141, 0.179, 0.1871),
    2.0: (0.131, 0.240, 0.320, 0.3391),
    4.0: (0.194, 0.369, 0.523, 0.5633),
}
"""Of 2, 5, 30 and infinitely many answers, computed by others to about .002."""
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
