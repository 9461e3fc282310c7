"""Algorithm 2 as published: its equations, and why it is not private."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

from crowdveil.channels.alphabet import Scale
from crowdveil.errors import NoMinimiserError, SettingsError
from crowdveil.published.matrix_factorization import MatrixFactorizationPublished
from crowdveil.randomness import seeded

SCALE = Scale(0, 9)
NULL = SCALE.size


def make(**settings) -> MatrixFactorizationPublished:
    """Return the mechanism on 0..9 with 12 tasks and 3 dimensions by default."""
    default: dict[str, Any] = {"alphabet": SCALE, "epsilon": 1.0, "tasks": 12, "dimensions": 3}
    return MatrixFactorizationPublished(**(default | settings))


def crowd_answers(workers: int, tasks: int, answered: int, seed: int) -> np.ndarray:
    """Return codes indexed [worker, task], each worker answering `answered` random tasks."""
    generator = np.random.default_rng(seed)
    codes = np.full((workers, tasks), NULL)
    for row in codes:
        chosen = generator.choice(tasks, size=answered, replace=False)
        row[chosen] = generator.integers(0, NULL, size=answered)
    return codes


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("profiles", ["gaussian", "uniform"])
def test_gradient_of_the_papers_loss_is_zero(profiles, ridge):
    """The gradient of equation (9) (plus ridge), written as loops, vanishes at the returned profile."""
    mechanism = make(profiles=profiles, ridge=ridge)
    answers = crowd_answers(1, 12, 8, seed=1)[0]
    eta, table = mechanism.noise(seeded(5)), mechanism.profile_table

    u = mechanism.noisy_worker_profile(answers, seeded(5))

    for k in range(3):
        gradient = 2 * eta[k] + 2 * ridge * u[k]
        for task, code in enumerate(answers):
            if code != NULL:
                predicted = sum(u[i] * table[i, task] for i in range(3))
                gradient -= 2 * table[k, task] * (code - predicted)
        assert abs(gradient) < 1e-8


def test_a_report_is_a_made_up_number_for_every_task():
    """What is sent is u V, one number per task, answered or not."""
    mechanism = make()
    answers = crowd_answers(1, 12, 8, seed=3)[0]

    report = mechanism.perturb(answers, seeded(7))

    np.testing.assert_allclose(report, mechanism.noisy_worker_profile(answers, seeded(7)) @ mechanism.profile_table)
    assert (12,) == report.shape


def test_noise_is_laplace_with_the_papers_scale():
    """Mean absolute noise is |Gamma| / epsilon = 10 / 0.5, its median ln 2 of that; n = 60,000, six deviations."""
    noise = np.abs(make(epsilon=0.5, dimensions=60_000, tasks=1).noise(seeded(8)))

    assert abs(noise.mean() - 20) < 6 * 20 / math.sqrt(60_000)
    assert abs(np.mean(noise < 20 * math.log(2)) - 0.5) < 6 * 0.5 / math.sqrt(60_000)


@pytest.mark.parametrize("profiles", ["gaussian", "uniform"])
def test_public_profiles_have_norm_one_and_follow_from_their_seed(profiles):
    """Columns have L1 norm 1, as the paper asks; equal seeds give equal profiles, other seeds others."""
    first, again, other = (make(profiles=profiles, profile_seed=seed).profile_table for seed in (1, 1, 2))

    np.testing.assert_allclose(np.abs(first).sum(axis=0), 1)
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


@pytest.mark.parametrize("answered", [0, 1, 2])
def test_fewer_answers_than_dimensions_have_no_minimiser(answered):
    """Without ridge the loss is unbounded below: the error says how many answers there were and how many are needed."""
    with pytest.raises(NoMinimiserError) as refused:
        make().perturb(crowd_answers(1, 12, answered, seed=4)[0], seeded(9))

    assert (answered, 3) == (refused.value.answers, refused.value.dimensions)


def test_as_many_answers_as_dimensions_have_a_minimiser():
    """With d answers in general position the minimiser exists; a ridge gives one to everybody."""
    assert make().perturb(crowd_answers(1, 12, 3, seed=4)[0], seeded(9)).shape == (12,)
    assert make(ridge=1e-6).perturb(np.full(12, NULL), seeded(9)).shape == (12,)


def test_guarantee_says_claimed_and_exact():
    """Claimed epsilon, exact infinity, the reason, and 0.9 epsilon for values alone on 0..9."""
    mechanism = make(epsilon=2.0)
    promise = mechanism.guarantee

    assert (math.inf, 2.0, "cell", "protected") == (
        promise.epsilon,
        promise.claimed,
        promise.unit,
        promise.participation,
    )
    assert "participation attack" in promise.reason
    assert "1.8" in promise.reason
    assert 1.8 == mechanism.value_epsilon
    assert mechanism.channel() is None


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0])
def test_one_dimension_needs_delta(epsilon):
    """Counterexample to Theorem 4: by quadrature the smallest delta at the claimed epsilon is exp(-epsilon) / 4, not 0.

    d = 1, v_1 = v_2 = 1. The worker answers task 2 with 0; or tasks 1 and 2, both with 0. Then u = -eta, or -eta / 2.
    """
    scale = 10 / epsilon

    def excess(u: float) -> float:
        one, both = math.exp(-abs(u) / scale) / (2 * scale), math.exp(-2 * abs(u) / scale) / scale
        return max(one - math.exp(epsilon) * both, 0.0)

    kink = scale * (math.log(2) + epsilon)
    delta = 2 * (quad(excess, 0, kink)[0] + quad(excess, kink, math.inf)[0])

    assert pytest.approx(math.exp(-epsilon) / 4, rel=1e-7) == delta


@pytest.mark.slow
def test_the_mechanism_itself_shows_the_counterexample():
    """The event |u| > B (ln 2 + 1), 4,000 runs each, epsilon 1: P - e P' is exp(-1) / 4 = 0.092 to 0.045 (5 s.e.)."""
    mechanism = make(tasks=2, dimensions=1)
    source, kink = seeded(10), 10 * (math.log(2) + 1)

    def share(answers: list[int]) -> float:
        codes = np.array(answers)
        return float(np.mean([abs(mechanism.noisy_worker_profile(codes, source)[0]) > kink for _ in range(4000)]))

    delta = share([NULL, 0]) - math.e * share([0, 0])

    assert 1.0 == abs(mechanism.profile_table).min()
    assert abs(delta - math.exp(-1) / 4) < 0.045


def participation_auc(mechanism: MatrixFactorizationPublished, codes: np.ndarray, seed: int) -> float:
    """Return how well |u v_j|, which the curator sees, ranks NULL cells above answered ones (1 is perfectly)."""
    source, wins, pairs = seeded(seed), 0.0, 0
    for row in codes:
        size = np.abs(mechanism.perturb(row, source))
        absent, answered = size[row == NULL], size[row != NULL]
        wins += float((absent[:, None] > answered).sum())
        pairs += absent.size * answered.size
    return wins / pairs


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_participation_attack_reads_off_who_answered_what(epsilon):
    """The curator distinguishes answered from NULL cells with AUC above 0.999 (tiny ridge).

    A mechanism with epsilon-LDP for participation allows at most e^epsilon / (1 + e^epsilon): 0.525 at 0.1, 0.731 at 1.
    """
    mechanism = make(epsilon=epsilon, tasks=100, dimensions=25, ridge=1e-8)

    assert participation_auc(mechanism, crowd_answers(30, 100, 10, seed=5), seed=11) > 0.999


def test_answers_must_cover_all_tasks():
    """A row of another length is refused."""
    with pytest.raises(SettingsError, match="12 tasks"):
        make().perturb(np.zeros(11, dtype=int), seeded(0))
