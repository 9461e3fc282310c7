"""Programs of the exhibits of Wang and Xu: Algorithm 1, the exact error of the vote, and the proved bound."""

import math
from itertools import product

import numpy as np
import pytest
from experiments.papers.wang2018.dense_crowd import (
    ITERATIONS,
    as_reports,
    channel_projection,
    draw_crowd,
    log_odds_of,
    majority_vote,
    private_dawid_skene,
    private_mechanism,
    unbiased_abilities,
)
from experiments.papers.wang2018.lemmas import measure, two_tails
from experiments.papers.wang2018.start import spectral_start
from experiments.papers.wang2018.theorem4 import distance_to_normal, vote_error

from crowdveil.published import PrivateDawidSkene


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_dense_algorithm_is_the_library_s(epsilon: float) -> None:
    """Algorithm 1 on a dense crowd gives the truths and abilities of `private-dawid-skene` after as many steps."""
    crowd = draw_crowd(np.linspace(0.5, 1, 40), 200, epsilon, np.random.default_rng(5))
    start = majority_vote(crowd.reports) / 40

    log_odds, right = private_dawid_skene(crowd.reports, start, channel_projection(epsilon))
    library = PrivateDawidSkene(max_steps=ITERATIONS + 1, tolerance=0).fit(
        as_reports(crowd.reports), channel=private_mechanism(epsilon).channel()
    )

    np.testing.assert_allclose(np.clip(log_odds, -50, 50), log_odds_of(library), atol=1e-3)
    abilities = np.clip(unbiased_abilities(right, epsilon), 0, 1)
    np.testing.assert_allclose(abilities, library.workers.quality, atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_one_step_from_the_truths_repeats_the_vote(seed: int) -> None:
    """With log-odds between low and high, (n - 1) high < (n + 1) low, Algorithm 1 and the vote have the same truths."""
    crowd = draw_crowd(np.ones(5), 20_000, 1.0, np.random.default_rng(seed))
    log_odds, right = private_dawid_skene(crowd.reports, crowd.truth, 1 / 8, 1)
    low, high = np.log(right / (1 - right))[[right.argmin(), right.argmax()]]

    assert 4 * high < 6 * low
    assert (np.sign(log_odds) == np.sign(majority_vote(crowd.reports))).all()


def test_tails_are_sums_of_binomial_probabilities() -> None:
    """P(|X - np| > t) of Lemmas 1 and 2 is the sum over all outcomes further than t."""
    for right, distance in product((0.5, 0.731), (0.0, 1.3, 2.5, 9.0)):
        far = [k for k in range(11) if abs(k - 10 * right) > distance]
        expected = sum(math.comb(10, k) * right**k * (1 - right) ** (10 - k) for k in far)

        assert float(two_tails(10, right, distance)) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize(("workers", "experts"), [(4, 1), (5, 2), (6, 6)])
def test_vote_error_is_that_of_all_outcomes(workers: int, experts: int) -> None:
    """The exact error of the vote is the sum over all patterns of right reports; a tie is wrong half the time."""
    kept, total = 0.8, 0.0
    for right in product((0, 1), repeat=workers):
        probability = float(np.prod([(kept if r else 1 - kept) if i < experts else 0.5 for i, r in enumerate(right)]))
        total += probability * (1.0 if sum(right) < workers / 2 else 0.5 * (sum(right) == workers / 2))

    assert vote_error(workers, experts, kept) == pytest.approx(total, abs=1e-14)


def test_printed_distance_to_the_normal_is_too_small() -> None:
    """Inequality (36) fails: the step of the distribution function at the middle alone is more than its bound."""
    assert distance_to_normal(1) == pytest.approx(0.3413, abs=1e-4)
    assert all(distance_to_normal(count) > 6 * count**-0.5 / 16 for count in (10, 1001))


@pytest.mark.parametrize("spread", [0.1, 1.0, 5.0])
def test_the_printed_lemma_4_depends_on_the_scale(spread: float) -> None:
    """For one number +-spread the distance to the normal is Phi(1) - 1/2; (35) is c spread^2, with sigma cubed c."""
    (printed,), (cubed,) = (
        measure({"claim": claim, "spread": spread, "workers": 1}) for claim in ("Lemma 4", "Lemma 4 with sigma cubed")
    )

    assert printed["found"] == cubed["found"] == pytest.approx(math.erf(math.sqrt(0.5)) / 2)
    assert (printed["claimed"], cubed["claimed"]) == pytest.approx((0.4748 * spread**2, 0.4748))


@pytest.mark.parametrize("workers", [1, 30])
def test_equation_36_does_not_follow_from_35(workers: int) -> None:
    """With sigma 1/2 and third moment 1/8 the right side of (35) is c / (4 sqrt(n)), that of (36) 1 / (16 sqrt(n))."""
    (row,) = measure({"claim": "step from (35) to (36)", "spread": 0.5, "workers": workers})

    assert row["found"] == pytest.approx(0.4748 / 4 / math.sqrt(workers))
    assert row["claimed"] == pytest.approx(1 / 16 / math.sqrt(workers))
    assert row["found"] > row["claimed"]


@pytest.mark.parametrize("seed", range(3))
def test_spectral_start_is_the_first_singular_vector(seed: int) -> None:
    """The start has the signs of the right singular vector of a full decomposition, turned to agree with the vote."""
    crowd = draw_crowd(np.linspace(0.5, 1, 30), 80, 2.0, np.random.default_rng(seed))
    vector = np.linalg.svd(crowd.reports)[2][0]
    vector *= np.sign(vector @ majority_vote(crowd.reports))

    assert np.where(vector >= 0, 1, -1).tolist() == spectral_start(crowd.reports).tolist()
