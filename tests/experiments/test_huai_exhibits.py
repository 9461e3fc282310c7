"""Judge of synthetic claims and counts of candidates in the exhibits of Huai et al."""

import numpy as np
import pytest
from experiments.papers.huai2019 import equation5, theorem2
from experiments.papers.huai2019.algorithm1.candidates import PrivacyTest
from experiments.papers.huai2019.algorithm1.kernel_density import EpanechnikovKernel
from experiments.papers.huai2019.crowds import FLOORPLAN, TEST, crowd, lengths, published
from experiments.papers.huai2019.figure3 import density_mean, true_curve
from experiments.papers.huai2019.judge import Judge
from experiments.papers.huai2019.theorem1 import expected_distance

from tests.experiments.huai2019.exact_attempt import attempt


@pytest.fixture(scope="module")
def judge() -> Judge:
    """Judge of about ten tasks of the simulated crowd."""
    return Judge(crowd(FLOORPLAN, 1), published("combined"), published("uniform"), most=10)


def test_originals_are_their_own_density(judge: Judge) -> None:
    """Released unchanged, the claims have error 0 by equal weights and more by combined ones."""
    assert judge.errors(judge.original, "uniform").mean < 1e-20
    assert judge.errors(judge.original, "combined").mean > 1e-4
    assert judge.truth_gap(judge.original).mean_absolute == 0


def test_judged_tasks_have_enough_claims(judge: Judge) -> None:
    """Judged tasks are spread over all that have k claims."""
    assert 10 <= len(judge.tasks) <= 20
    assert (judge.claims.per_task[judge.tasks] >= TEST.k).all()


def test_true_density_is_that_of_reliable_claims() -> None:
    """The density of reliable claims has the true length as mean, and lengths do not depend on the claims."""
    assert np.isclose(density_mean(true_curve(7.0)), 7.0)
    assert lengths(1).tolist() == lengths(1).tolist()
    assert (lengths(1) != lengths(2)).all()


def test_the_square_root_of_the_product_minimises_equation_4() -> None:
    """At the normalised root equation 4 is -2 ln of the sum of the roots, at any other weights 2 KL more."""
    local, share, other = np.array([0.7, 0.3]), np.array([0.2, 0.8]), np.array([0.4, 0.6])
    roots = np.sqrt(local * -np.log(share))
    least, root = -2 * np.log(roots.sum()), roots / roots.sum()

    assert np.isclose(least, equation5.objective(root, local, share))
    assert np.isclose(least + 2 * (other * np.log(other / root)).sum(), equation5.objective(other, local, share))


def test_the_distance_of_theorem_1_is_that_of_drawn_samples() -> None:
    """The left side for 2 claims and 3 samples is the mean over 4,000 draws (seed 5), within 4 standard errors."""
    width, grid = 1.0, np.linspace(-3, 23, 1301)
    kernel = EpanechnikovKernel()
    random = np.random.default_rng(5)

    def density(points: np.ndarray) -> np.ndarray:
        return np.exp(kernel.log_density((grid - points[:, None]) / width)).mean(axis=0) / width

    original = density(np.array([0.0, 20.0]))
    drawn = random.choice([0.0, 20.0], (4000, 3)) + kernel.quantile(random.random((4000, 3)))
    found = [((density(one) - original) ** 2).sum() * (grid[1] - grid[0]) for one in drawn]

    assert abs(np.mean(found) - expected_distance(5**0.5 * width, 2, 3)) < 4 * np.std(found) / 4000**0.5


@pytest.mark.parametrize("places", [(3, 1, 1), (2, 2, 1), (5,)])
def test_the_probabilities_of_theorem_2_are_those_of_the_definition(places: tuple[int, ...]) -> None:
    """One candidate of claims that coincide or lie apart, by quadrature of Algorithm 1, lands and passes as stated."""
    test = PrivacyTest(k=3, gamma=4.0, epsilon0=0.7)
    values, step = np.repeat(10.0 * np.arange(len(places)), places), 10.0 * len(places) / 30_000
    one = attempt(values, np.full(5, 0.2), 0.5, test, (-5.0, 10.0 * len(places) - 5), "epanechnikov")
    masses = one.density.reshape(len(places), -1).sum(axis=1) * step
    law = theorem2.laws_of(places, test.pass_probability(np.arange(6)), theorem2.SEEN)

    assert np.allclose([*masses, one.failure], law, rtol=1e-4)


def test_neighbours_of_theorem_2_are_all_moves_of_one_claim() -> None:
    """Of three claims: every partition and every move between places, those that are alike once."""
    found = {tuple(sorted(filter(None, one), reverse=True)) for pair in theorem2.neighbours(3) for one in pair}
    pairs = {tuple(map(theorem2.shown, pair)) for pair in theorem2.neighbours(3)}

    assert {(3,), (2, 1), (1, 1, 1)} == found
    assert {("3", "2 + 1"), ("2 + 1", "1 + 2"), ("2 + 1", "3"), ("2 + 1", "3 x 1"), ("3 x 1", "1 + 2")} <= pairs
