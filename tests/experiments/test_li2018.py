"""Exhibits of Li et al. 2018: the vectorised formulas equal the paper's equations written as loops."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from experiments.papers.li2018.comparison import crowdveil_default, measure, opposite_uniforms
from experiments.papers.li2018.comparison import most_informative_count as most_informative
from experiments.papers.li2018.crowds import EACH, GROUPS, STUDENTS, as_reports, peer_grading
from experiments.papers.li2018.figure1 import product_density, product_distribution
from experiments.papers.li2018.hyper_distribution import matching_flip, published, scaled_beta, two_points, uniform
from experiments.papers.li2018.section62 import (
    discovered_error,
    exact_error,
    importance,
    perturbed_wrong,
    printed_change,
)
from experiments.papers.li2018.seeds import holds_for_every_seed, pooled
from experiments.papers.li2018.truth_discovery import CLAMP, Crowd, majority_vote, perturbed, truth_discovery
from experiments.papers.run import load_exhibit
from experiments.theory.published_bounds import beta_flip_epsilon
from scipy.integrate import quad

from crowdveil import Categories, MajorityVote, TwoLayer
from crowdveil.estimators import WeightedVote


def answers_of(crowd: Crowd, reports: np.ndarray) -> list[tuple[int, int, int]]:
    """Return (question, user, label) of every report."""
    return list(zip(crowd.task.tolist(), crowd.worker.tolist(), reports.astype(int).tolist(), strict=True))


def vote(reports: list[tuple[int, int, int]], questions: int, weight: list[float]) -> list[int]:
    """Return the labels of equations 1 and 2: the label with most weight, 0 for a tie."""
    labels = []
    for question in range(questions):
        score = {x: sum(weight[u] for q, u, y in reports if q == question and y == x) for x in (-1, 1)}
        labels.append(0 if math.isclose(score[1], score[-1], abs_tol=1e-9) else max(score, key=score.__getitem__))
    return labels


def discovered(reports: list[tuple[int, int, int]], questions: int, users: int) -> tuple[list[int], list[float]]:
    """Return labels and weights of equations 2 and 3, with g(p) = ln(p / (1 - p)) and ties split."""
    weight = [1.0] * users
    labels = vote(reports, questions, weight)
    while True:
        for user in range(users):
            own = [(q, y) for q, u, y in reports if u == user]
            right = sum(1.0 if y == labels[q] else 0.5 if labels[q] == 0 else 0.0 for q, y in own)
            share = min(max(right / len(own) if own else 0.5, CLAMP), 1 - CLAMP)
            weight[user] = math.log(share / (1 - share))
        found = vote(reports, questions, weight)
        if found == labels:
            return labels, weight
        labels = found


@pytest.mark.parametrize("seed", range(5))
def test_votes_equal_the_equations_written_as_loops(seed: int) -> None:
    """Majority vote and truth discovery give the labels and weights of equations 1 to 3, also on noisy reports."""
    crowd = peer_grading(seed)
    reports = perturbed(crowd, np.full(crowd.workers, 0.2), np.random.default_rng(seed).random(len(crowd.task)))
    rows = answers_of(crowd, reports)
    labels, weights = truth_discovery(crowd, reports)
    by_loops = discovered(rows, crowd.tasks, crowd.workers)

    assert vote(rows, crowd.tasks, [1.0] * crowd.workers) == majority_vote(crowd, reports).tolist()
    assert by_loops[0] == labels.tolist()
    assert pytest.approx(by_loops[1]) == weights.tolist()


def test_votes_equal_those_of_the_library() -> None:
    """The labels are those of `MajorityVote` and `WeightedVote`, ties shared."""
    crowd = peer_grading(3)
    reports = as_reports(crowd, crowd.answer)
    names = [int(name) for name in reports.tasks]
    for method, labels in (
        (MajorityVote(), majority_vote(crowd, crowd.answer)),
        (WeightedVote(clamp=CLAMP), truth_discovery(crowd, crowd.answer)[0]),
    ):
        posterior = method.fit(reports).posterior
        assert np.sign(np.round(posterior[:, 1] - posterior[:, 0], 9)).tolist() == labels[names].tolist()


def test_perturbation_equals_definition_5_1() -> None:
    """An answer is replaced by the other label with its user's probability, and kept otherwise."""
    crowd = peer_grading(0)
    flip = np.linspace(0, 1, crowd.workers)
    numbers = np.random.default_rng(4).random(len(crowd.task))
    expected = [
        -x if number < flip[user] else x
        for x, user, number in zip(crowd.answer.tolist(), crowd.worker.tolist(), numbers.tolist(), strict=True)
    ]

    assert expected == perturbed(crowd, flip, numbers).tolist()


@pytest.mark.parametrize("method", [majority_vote, lambda *given: truth_discovery(*given)[0]])
def test_opposite_draws_at_claim_0_give_complements(method) -> None:
    """At claim 0 the reports of a pair are complements under both mechanisms, so that their mean error is 1/2."""
    crowd, hyper = peer_grading(4), published(0.0)
    draws = opposite_uniforms(crowd, np.random.default_rng(5))
    for quantile in (hyper.quantile, lambda numbers: np.full(len(numbers), 0.5)):
        first, second = (perturbed(crowd, quantile(by_worker), by_answer) for by_worker, by_answer in draws)

        assert (-first).tolist() == second.tolist()
        assert crowd.error_rate(method(crowd, first)) + crowd.error_rate(method(crowd, second)) == pytest.approx(1)


def test_claims_and_seeds_have_draws_of_their_own() -> None:
    """Two claims so close that equal draws would flip the same answers have other errors, as have two seeds."""
    (step, *_) = load_exhibit("li2018/figure3").configurations("quick")
    step |= {"arms": "one-layer/claimed", "weights": "p", "trials": 20}
    changes = [
        measure(step | {"claimed_epsilon": claimed, "seed": seed})[0]["error"]
        for claimed, seed in ((0.5, 18), (0.500001, 18), (0.5, 19))
    ]

    assert 3 == len(set(changes))


def test_rows_of_two_seeds_are_pooled() -> None:
    """Means are over all trials, the standard error is that of the mean of both seeds, repeats are added."""
    shared = {"crowd": "a", "equal": "claimed", "unprotected": 0.2, "exact_epsilon": 1.0}
    one = shared | {"seed": 1, "change": 0.1, "standard_error": 0.03, "deviation": 0.3, "repeats": 300}
    other = shared | {"seed": 2, "change": 0.2, "standard_error": 0.04, "deviation": 0.5, "repeats": 100}
    (found,) = pooled([one, other])

    assert (pytest.approx(0.125), pytest.approx(math.hypot(0.75 * 0.03, 0.25 * 0.04)), 400) == (
        found["change"], found["standard_error"], found["repeats"]
    )  # fmt: skip
    assert pytest.approx(math.sqrt(0.75 * 0.09 + 0.25 * 0.25)) == found["deviation"]
    assert not holds_for_every_seed([one, other], lambda rows: rows[0]["change"] < 0.15)
    assert holds_for_every_seed([one, other], lambda rows: rows[0]["change"] < 0.25)


def test_truth_discovery_does_not_take_users_p_and_1_minus_p_for_equivalent() -> None:
    """The exact error by loops over the answers of one task, whose labels are those of the vote: section 6.2.1."""
    for mirrored in (0, 1, 2, 3):
        right = [0.1] * mirrored + [0.9] * (3 - mirrored)
        error = sum(
            math.prod(p if answer else 1 - p for answer, p in zip(answers, right, strict=True))
            for answers in product((True, False), repeat=3)
            if sum(answers) < 2
        )

        assert pytest.approx(error) == discovered_error(1 - np.array(right))
        assert pytest.approx(0.028) == float(exact_error(1 - np.array(right)))


def test_peer_grading_has_the_sizes_of_table_1() -> None:
    """72 students give five grades each, 360 in all, on distinct presentations; 26 truths are known."""
    crowd = peer_grading(1)

    assert (GROUPS, STUDENTS, STUDENTS * EACH, GROUPS) == (crowd.tasks, crowd.workers, len(crowd.task), len(crowd.gold))
    assert {EACH} == set(crowd.per_worker.tolist())
    assert len(crowd.task) == len(set(zip(crowd.task.tolist(), crowd.worker.tolist(), strict=True)))


@pytest.mark.parametrize(("low", "high", "cells"), [(0.0, 0.538, 5), (0.0, 1.0, 40), (0.1, 0.4, 300), (0.0, 0.7, 1834)])
def test_losses_equal_those_of_the_mechanism(low: float, high: float, cells: int) -> None:
    """The exact losses of U(a, b) are those of `TwoLayer`, up to the rounding of its device."""
    mechanism = TwoLayer(alphabet=Categories(("no", "yes")), low=low, high=high, answers=cells, participation="public")
    mine = uniform(low, high)

    assert pytest.approx(mechanism.guarantee.epsilon, abs=1e-8) == mine.cell_loss(cells)
    assert pytest.approx(
        mechanism.distribution_of_shared_flips(cells).worker_privacy_loss(), abs=1e-6
    ) == mine.worker_loss(cells)


def test_losses_of_other_distributions_equal_enumeration() -> None:
    """Two points by all outcomes of four cells; Beta(2, 2) by its closed form; one-layer by Theorem 6.2."""
    own = two_points(0.1, 0.6, share=0.3)
    chance = [0.3 * 0.1**h * 0.9 ** (4 - h) + 0.7 * 0.6**h * 0.4 ** (4 - h) for h in range(5)]
    ratios = [abs(math.log(one / other)) for one, other in pairwise(chance)]

    assert pytest.approx(max(ratios)) == own.cell_loss(4)
    assert pytest.approx(math.log(max(chance) / min(chance))) == own.worker_loss(4)
    assert pytest.approx(beta_flip_epsilon(2, answers=100)) == scaled_beta(2, 2, 1.0).cell_loss(100)
    assert pytest.approx(0.7) == uniform(*[float(matching_flip(0.7))] * 2).cell_loss(50)
    assert pytest.approx(float(matching_flip(0.3))) == published(0.3).mean


def test_density_of_the_product_is_the_convolution() -> None:
    """For two users the density is the integral over one of them; the distribution function is its integral."""
    high, at = 0.8, 0.3
    by_hand, _ = quad(lambda p: 1 / high / high / p, at / high, high)
    below, _ = quad(lambda x: float(product_density(np.array(x), 3, high)), 0, 0.2)

    assert pytest.approx(by_hand) == float(product_density(np.array(at), 2, high))
    assert pytest.approx(below, abs=1e-6) == float(product_distribution(np.array([0.2]), 3, high)[0])


def test_section_62_equals_its_equations_written_as_loops() -> None:
    """Equations 8, 10 and 11 and Im(u) by loops; the exact error by enumeration of the votes."""
    wrong, flip = [0.1, 0.3, 0.45], [0.2, 0.05, 0.4]
    after = [p * (1 - f) + (1 - p) * f for p, f in zip(wrong, flip, strict=True)]
    change = math.prod(2 * p for p in after) - math.prod(2 * p for p in wrong)
    error = 0.0
    for votes in product((True, False), repeat=3):
        chance = math.prod(1 - p if right else p for right, p in zip(votes, after, strict=True))
        score = sum((1 if right else -1) * math.log((1 - p) / p) for right, p in zip(votes, after, strict=True))
        error += chance * (0.5 if abs(score) < 1e-9 else float(score < 0))

    assert pytest.approx(after) == perturbed_wrong(np.array(wrong), np.array(flip)).tolist()
    assert pytest.approx(change) == float(printed_change(np.array(wrong), np.array(flip)))
    assert pytest.approx(error) == float(exact_error(np.array(after)))
    factors = [(p / math.e + (1 - p) * math.e) ** math.log(p / (1 - p)) for p in wrong]
    assert pytest.approx([1 / factor for factor in factors]) == importance(np.array(wrong)).tolist()


def test_default_method_reads_one_channel_per_worker() -> None:
    """With almost no noise the labels are those of unprotected answers."""
    crowd = peer_grading(2, ability=0.9)
    plain = crowdveil_default(crowd, crowd.answer, None)

    assert (
        plain.tolist() == crowdveil_default(crowd, crowd.answer, np.linspace(12, 15, crowd.workers).round(1)).tolist()
    )
    assert crowd.error_rate(plain) < 0.1


def test_fewer_answers_keep_the_loss_of_a_worker() -> None:
    """The part has the most information by a loop over sizes; its answers share the loss of two-layer's worker."""
    for total, answers in ((3.71, 5), (2.3, 5), (60.0, 100), (40.0, 3)):
        information = {m: m * math.tanh(total / m / 2) ** 2 for m in range(1, answers + 1)}
        assert max(information, key=information.__getitem__) == most_informative(total, answers)
    (step, *_) = load_exhibit("li2018/figure3").configurations("quick")
    step |= {"arms": "one-layer/exact, worker, fewer answers", "weights": "p"}
    row = measure(step | {"trials": 3})[0]

    loss = published(1.0).worker_loss(EACH)
    assert pytest.approx(loss) == row["exact_worker_epsilon"]
    assert pytest.approx(loss / most_informative(loss, EACH)) == row["exact_epsilon"]
