"""Hierarchical Dawid-Skene: its equations as loops, the discount, labels without a vote, and the join at no noise."""

from dataclasses import replace

import numpy as np
import pytest

from crowdveil import Categories, HierarchicalDawidSkene, MajorityVote, RandomizedResponse, Reports
from crowdveil.em.estimator import validated_input
from crowdveil.estimators.hierarchical_dawid_skene import (
    blend_with_votes,
    cap_unvoted_labels,
    effective_answers_per_report,
    expected_class_shares,
)
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd, perturb_reports
from tests.estimators.slow_hierarchical_fit import slow_fit

LABELS = Categories(("a", "b", "c"))
YES_NO = Categories(("no", "yes"))


def crowd(tasks: int = 30, workers: int = 8, sparsity: float = 0.6) -> Reports:
    """Return a sparse crowd of three labels."""
    return categorical_crowd(workers=workers, tasks=tasks, labels=LABELS, sparsity=sparsity, source=seeded(3)).answers


def reports_of(rows: list[tuple[str, str, str]]) -> Reports:
    """Return reports of two labels from (task, worker, label) rows."""
    task, worker, label = zip(*rows, strict=True)
    return Reports.from_arrays(task, worker, label, alphabet=YES_NO)


def crowd_with_repeaters() -> Reports:
    """Return the sparse crowd, in which the last three workers always say the first label."""
    reports = crowd(40, 9, 0.4)
    value = np.where(reports.worker >= 6, 0, reports.value).astype(reports.value.dtype)
    return Reports(reports.task, reports.worker, value, reports.tasks, reports.workers, LABELS)


def with_pseudo_tasks(posterior: np.ndarray) -> np.ndarray:
    """Return posteriors that are mixed with those of two tasks without information."""
    tasks, labels = posterior.shape
    return (tasks * posterior + 2 / labels) / (tasks + 2)


@pytest.mark.parametrize("reports", [crowd(), crowd_with_repeaters()], ids=["honest", "repeaters"])
@pytest.mark.parametrize("steps", [2, 5, 6])
def test_steps_are_the_equations(steps: int, reports: Reports) -> None:
    """Without discount, the compact steps equal the equations as loops, and the fit stops after them.

    Below seven steps no starts are compared.
    """
    own = HierarchicalDawidSkene(max_steps=steps, error_correlation=0.0, vote_share=0.0)
    slow = slow_fit(reports, steps, own)
    voted = np.zeros_like(slow.posterior)
    voted[reports.task, reports.value] = 1
    expected = with_pseudo_tasks(cap_unvoted_labels(slow.posterior, voted))

    estimate = own.fit(reports)

    np.testing.assert_allclose(estimate.posterior, expected, atol=1e-9)
    assert estimate.workers.independent is not None
    np.testing.assert_allclose(validated_input(own, reports).summary.independent, slow.first, atol=1e-9)
    np.testing.assert_allclose(estimate.workers.independent, slow.independent, atol=1e-9)
    assert (steps, True, ()) == (estimate.steps, estimate.converged, estimate.log_likelihoods)


@pytest.mark.parametrize("seed", range(3))
def test_a_rare_truth_is_not_found_in_the_mistakes_of_others(seed: int) -> None:
    """Where 5 % of 800 tasks are positive, most votes for it are mistakes: the fit errs less often than the vote, and
    finds at most 12 % of the tasks positive (28 % if it starts from the vote shares)."""
    source = np.random.default_rng(seed)
    truth = (source.random(800) < 0.05).astype(int)
    task, worker = np.repeat(np.arange(800), 5), source.integers(60, size=4000)
    right = source.random(4000) < source.uniform(0.65, 0.95, 60)[worker]
    answers = np.array(YES_NO.names)[np.where(right, truth[task], 1 - truth[task])]
    reports = Reports.from_arrays(task, worker, answers, alphabet=YES_NO, duplicates="first")

    fits = [method.fit(reports) for method in (HierarchicalDawidSkene(), MajorityVote())]

    own, vote = (np.mean(fit.posterior.argmax(axis=1) == truth) for fit in fits)
    assert own > vote
    assert fits[0].posterior[:, 1].mean() < 0.12


def test_confidence_is_discounted_after_the_fit() -> None:
    """The log posterior of a task with n answers is divided by 1 + (n - 1) rho, with less rho as far as one ability
    fits all rows; truths do not change."""
    reports = crowd()
    plain = HierarchicalDawidSkene(error_correlation=0.0, vote_share=0.0).fit(reports)
    slow = slow_fit(reports, 10, HierarchicalDawidSkene())
    power = 1 / (1 + 0.25 * (1 - slow.weight) * np.maximum(reports.per_task - 1, 0))
    voted = np.zeros_like(plain.posterior)
    voted[reports.task, reports.value] = 1
    raised = slow.posterior ** power[:, None]

    estimate = HierarchicalDawidSkene(vote_share=0.0).fit(reports)

    expected = cap_unvoted_labels(raised / raised.sum(axis=1, keepdims=True), voted)
    np.testing.assert_allclose(estimate.posterior, with_pseudo_tasks(expected), atol=1e-9)
    np.testing.assert_array_equal(estimate.truth, plain.truth)


def test_confidence_is_mixed_with_the_smoothed_votes() -> None:
    """A fifth of each probability is the share of votes, weighted by workers, with half a pseudo-vote; a task without
    votes keeps its own."""
    posterior, votes = np.array([[0.9, 0.1], [0.9, 0.1]]), np.array([[1.0, 1.0], [0.0, 0.0]])
    reports = crowd()
    counts = np.zeros((len(reports.tasks), 3))
    plain = HierarchicalDawidSkene(vote_share=0.0).fit(reports)
    assert plain.workers.independent is not None
    np.add.at(counts, (reports.task, reports.value), 1 - plain.workers.independent[reports.worker])
    tasks = len(counts)
    own = ((tasks + 2) * plain.posterior - 2 / 3) / tasks

    np.testing.assert_allclose(blend_with_votes(posterior, votes, 0.2), [[0.82, 0.18], [0.9, 0.1]])
    np.testing.assert_allclose(
        HierarchicalDawidSkene().fit(reports).posterior,
        with_pseudo_tasks(blend_with_votes(own, counts, 0.2)),
    )


def test_ability_is_the_mean_posterior_of_the_own_answers() -> None:
    """The ability is the posterior of a worker's answers with one answer of the crowd's ability, mixed with that of the
    confusion matrix as far as one ability fits all rows, and has an interval.

    Half of the interval is 1.645 times the root of the binomial variance and of (0.5 times the mean doubt)^2.
    """
    reports = crowd()
    estimate = HierarchicalDawidSkene().fit(reports)
    right, doubt, total = np.zeros((3, len(reports.workers)))
    for task, worker, label in zip(reports.task, reports.worker, reports.value, strict=True):
        right[worker] += estimate.posterior[task, label]
        doubt[worker] += 1 - estimate.posterior[task].max()
        total[worker] += 1
    slow = slow_fit(reports, 10, HierarchicalDawidSkene())
    ability = (right + (right.sum() + 1) / (total.sum() + 3)) / (total + 1)
    ability += slow.weight * (slow.ability - ability)
    half = 1.6449 * np.sqrt(ability * (1 - ability) / (total + 1) + (0.5 * doubt / total) ** 2)

    np.testing.assert_allclose(estimate.workers.quality, ability)
    np.testing.assert_allclose(estimate.workers.ability_low, np.maximum(ability - half, 0))
    np.testing.assert_allclose(estimate.workers.ability_high, np.minimum(ability + half, 1))


@pytest.mark.parametrize("tasks", [9, 40, 300])
def test_symmetric_reports_stay_tied(tasks: int) -> None:
    """Two groups of workers of equal size who always contradict each other leave every task tied."""
    truth = np.random.default_rng(0).random(tasks) < 0.5
    rows = [(f"t{k}", f"w{i}", "yes" if truth[k] == (i < 5) else "no") for k in range(tasks) for i in range(10)]

    np.testing.assert_allclose(HierarchicalDawidSkene().fit(reports_of(rows)).posterior, 0.5, atol=1e-9)


def test_labels_without_a_vote_are_no_truths() -> None:
    """An unvoted label keeps at most half the best vote's probability; behind noise the bound fades."""
    posterior = np.array([[0.2, 0.7, 0.1], [0.2, 0.7, 0.1], [0.2, 0.7, 0.1]])
    votes = np.array([[2.0, 0.0, 1.0], [2.0, 0.05, 1.0], [0.0, 0.0, 0.0]])

    capped = cap_unvoted_labels(posterior, votes)

    np.testing.assert_allclose(capped[0], np.array([0.2, 0.1, 0.1]) / 0.4)
    np.testing.assert_allclose(capped[1:], posterior[1:])


def test_a_report_of_known_participants_is_worth_more() -> None:
    """A public report is worth (1 - noise)^2 answers; a protected one more, if it is known who answers."""
    labels = Categories(("a", "b"))
    rows = [(task, worker, task % 2) for task in range(60) for worker in range(20)]
    task, worker, value = np.array(rows).T
    answers = Reports(task, worker, value, np.arange(60), np.arange(60), labels)
    public, protected = (
        RandomizedResponse(alphabet=labels, epsilon=3.0, participation=kind) for kind in ("public", "protected")
    )

    def worth(mechanism: RandomizedResponse) -> tuple[float, float]:
        reports, channel = perturb_reports(answers, mechanism, seeded(1)), mechanism.channel()
        data, own = validated_input(HierarchicalDawidSkene(), reports, channel), HierarchicalDawidSkene()
        initial = own.initialize(data.summary)
        participation = np.repeat([1.0, 0.01], [20, 40]) if initial.pool.protected else initial.participation
        found = effective_answers_per_report(replace(initial, participation=participation))
        return found, (1 - initial.pool.noise) ** 2

    one, noise = worth(public)
    assert pytest.approx(noise) == one
    one, noise = worth(protected)
    assert 1.1 * noise < one < 1


def test_a_resumed_fit_learns_from_new_gold() -> None:
    """Gold that was not known before changes the abilities as in a fit from scratch."""
    reports = categorical_crowd(workers=8, tasks=100, labels=YES_NO, sparsity=0.2, source=seeded(3)).answers
    own = HierarchicalDawidSkene(vote_share=0.0)
    before = own.fit(reports)
    gold = {
        task: "no" if truth == "yes" else "yes"
        for task, truth in zip(before.tasks[:80], before.truth[:80], strict=True)
    }
    fresh = own.fit(reports, gold=gold)

    resumed = own.fit(reports, gold=gold, warm_start=before.state)

    assert fresh.workers.quality.mean() < 0.4 < 0.6 < before.workers.quality.mean()
    np.testing.assert_allclose(resumed.workers.quality, fresh.workers.quality, atol=0.05)


@pytest.mark.parametrize(
    ("frequencies", "expected"),
    [
        ([0.4, 0.35, 0.25], [1 / 3] * 3),
        ([0.45, 0.3, 0.25], [(0.45 + 1 / 3) / 2, (0.3 + 1 / 3) / 2, (0.25 + 1 / 3) / 2]),
        ([0.5, 0.3, 0.2], [0.5, 0.3, 0.2]),
        ([0.8, 0.2], [0.8, 0.2]),
    ],
)
def test_frequencies_of_many_labels_without_a_majority_say_nothing(
    frequencies: list[float], expected: list[float]
) -> None:
    """Behind noise truths are expected to be as frequent as answers where a label has half of them, and else evenly."""
    np.testing.assert_allclose(expected_class_shares(np.array(frequencies)), expected)
