"""Claims of real programs and usual mistakes that an audit refutes, each by the stated event.

A true claim would be refuted with probability at most 0.001; seeds are fixed.
"""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from experiments.audit import broken

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.mechanisms import MatrixFactorizationPublished, TwoLayer
from crowdveil.privacy.audit.black_box import BlackBoxAudit, Pair, audit_black_box
from crowdveil.privacy.audit.stated_claims import audit_mechanism
from crowdveil.randomness import seeded


def audit(function, first, second, *, epsilon: float, delta: float = 0.0, draws: int) -> BlackBoxAudit:
    """Return the audit of a function on two inputs."""
    pair = Pair.of_function(function, first, second)
    return audit_black_box([pair], epsilon=epsilon, delta=delta, draws=draws)


@pytest.mark.slow
def test_published_matrix_factorization_reveals_participation():
    """Eight tasks, three dimensions, participation neighbours: the size of the entries shows who answered."""
    mechanism = MatrixFactorizationPublished(alphabet=Scale(0, 9), epsilon=1.0, tasks=8, dimensions=3, ridge=1e-6)

    result = audit_mechanism(mechanism, "participation", tasks=8, draws=1000, source=seeded(1))

    assert result.refuted
    assert result.bound > 3


@pytest.mark.slow
def test_published_matrix_factorization_protects_values_of_known_tasks():
    """With value neighbours alone the claim is not refuted: there Theorem 4 is right."""
    mechanism = MatrixFactorizationPublished(alphabet=Scale(0, 9), epsilon=1.0, tasks=8, dimensions=3, ridge=1e-6)

    result = audit_mechanism(mechanism, "value", tasks=8, draws=1500, source=seeded(1))

    assert result.bound <= 0.9
    assert (None, False) == (result.exact, result.refuted)


@pytest.mark.slow
def test_two_layer_with_fifty_answers():
    """Theorem 6.3 claims 1 for each of 50 answers with one flip probability; the exact loss is 3.91."""
    mechanism = TwoLayer.as_published(
        alphabet=Categories(("no", "yes")), epsilon=1.0, participation="public", answers=50
    )

    result = audit_mechanism(mechanism, tasks=50, draws=6000, source=seeded(2))

    assert result.claimed_epsilon == pytest.approx(1.0)
    assert result.refuted
    assert 1.5 < result.bound <= result.exact


def test_unary_encoding_with_a_missing_line():
    """The exact loss is ln(0.765 * 0.622 / (0.378 * 0.235)) = 1.68, not 1."""
    result = audit(broken.unary_encoding(seeded(3), labels=4, epsilon=1.0), 0, 1, epsilon=1.0, draws=8000)

    assert 1.0 < result.finding.epsilon <= 1.68


def test_floating_point_laplace():
    """The last bits of a double tell answer 0 from answer 9."""
    result = audit(broken.floating_point_laplace(seeded(4), high=9, epsilon=1.0), 0.0, 9.0, epsilon=1.0, draws=4000)

    assert result.refuted
    assert "lowest bit" in result.finding.event


def test_length_leak():
    """A report as long as the input."""
    result = audit(broken.length_leak(seeded(5), epsilon=1.0), [0, 1], [0, 1, 0], epsilon=1.0, draws=400)

    assert result.refuted
    assert "the length" in result.finding.event


def test_randomized_response_with_a_wrong_denominator():
    """With four labels the loss is ln(3e / 2) = 1.41."""
    result = audit(broken.wrong_denominator(seeded(6), labels=4, epsilon=1.0), 0, 1, epsilon=1.0, draws=8000)

    assert 1.0 < result.finding.epsilon <= 1.41


def test_repeated_randomized_response_of_an_accountant():
    """dp_accounting gives 50 uses of one event the epsilon of a single use; the audit refutes it."""
    epsilon = 1.7918
    event = dp_accounting.RandomizedResponseDpEvent(noise_parameter=2 / (1 + math.exp(epsilon)), num_buckets=2)
    claims = []
    for uses in (1, 50):
        accountant = PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
        accountant.compose(event, uses)
        claims.append(accountant.get_epsilon(1e-6))
    box = broken.repeated_response(seeded(7), uses=50, epsilon=epsilon)

    once = audit(broken.repeated_response(seeded(7), uses=1, epsilon=epsilon), 0, 1, epsilon=claims[0], draws=4000)
    often = audit(box, 0, 1, epsilon=claims[1], delta=1e-6, draws=400)

    assert claims[0] == pytest.approx(claims[1])
    assert (False, True) == (once.refuted, often.refuted)
    assert often.finding.delta > 0.5


@pytest.mark.slow
def test_synthetic_release_with_visible_failures():
    """Theorem 2 of Huai et al. claims (2.61, 0.11) for any number of records; how many passed shows one claim."""
    epsilon, delta = 1 + math.log1p(4), 6 * math.exp(-4)

    result = audit(broken.visible_failures(seeded(8), claims=6), 10.0, 90.0, epsilon=epsilon, delta=delta, draws=600)

    assert result.refuted
    assert "the length" in result.finding.event


@pytest.mark.slow
def test_a_task_list_taken_from_the_claims():
    """A task is listed only if somebody made a claim on it."""
    result = audit(broken.task_list_from_claims(seeded(9), epsilon=1.0), ["b"], [], epsilon=1.0, draws=100)

    assert result.refuted


@pytest.mark.slow
def test_candidates_of_full_precision():
    """On the real numbers the ratio of densities is at most 1.8; the last bits show the claim behind a candidate."""
    epsilon = math.log(1 + 200 * 0.5 / (50 * math.sqrt(2 * math.pi)))
    box = broken.full_precision_candidates(seeded(10), bandwidth=50)

    result = audit(box, 0.0, 64.0, epsilon=epsilon, draws=40_000)

    assert result.refuted
    assert "lowest bit" in result.finding.event


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ValueError, TypeError, KeyError, AssertionError])
def test_an_exception_is_an_output(kind):
    """A function that fails for one input only is refuted by its failure."""

    def box(value: int) -> int:
        if value:
            raise kind("no report")
        return 0

    result = audit(box, 0, 1, epsilon=1.0, draws=200)

    assert result.refuted


def test_an_output_of_another_type_is_an_event():
    """Equal numbers as list and as array differ in nothing but type."""
    result = audit(lambda value: [1.0, 2.0] if value else np.array([1, 2]), 0, 1, epsilon=1.0, draws=200)

    assert result.refuted
