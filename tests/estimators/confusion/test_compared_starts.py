"""Compared starts: where which is taken, the equations of their evidence, and the answers they are compared on."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from crowdveil import Categories, HierarchicalDawidSkene, RandomizedResponse, Reports
from crowdveil.em.estimator import validated_input
from crowdveil.em.loop import run_em
from crowdveil.em.model import FitInput
from crowdveil.estimators.confusion.compared_starts import (
    COIN_STRENGTHS,
    MAX_ANSWERS,
    OWN_STEPS,
    ROW_STRENGTHS,
    compared_starts,
    comparison_sample,
    log_evidence,
)
from crowdveil.estimators.confusion.measured_crowd import PARTS, evenly_spaced_task_blocks
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_reports
from tests.estimators.slow_hierarchical_fit import dirichlet_multinomial

YES_NO = Categories(("no", "yes"))
DEFAULT = HierarchicalDawidSkene()


def crowd(right: tuple[float, float], share: float, tasks: int = 800) -> tuple[Reports, np.ndarray]:
    """Return five answers a task of 40 workers, and truths, a share of them "yes"; `right` by truth, .15 around it."""
    rng = np.random.default_rng(0)
    truth = (rng.random(tasks) < share).astype(int)
    ability = np.clip(np.array(right) + rng.uniform(-0.15, 0.15, (40, 1)), 0, 1)
    worker = np.argsort(rng.random((tasks, 40)), axis=1)[:, :5].ravel()
    task = np.repeat(np.arange(tasks), 5)
    answer = np.where(rng.random(len(task)) < ability[worker, truth[task]], truth[task], 1 - truth[task])
    codes = task.astype(np.int32), worker.astype(np.int32), answer.astype(np.int16)
    return Reports(*codes, np.arange(tasks), np.arange(40), YES_NO), truth


def own_steps(data: FitInput) -> int:
    """Return the steps by abilities alone that a fit begins with."""
    return DEFAULT.initializations(data)[0].own_steps


def test_mistakes_are_no_truths_of_a_rare_label() -> None:
    """Where 1 % of the tasks are positive and 22 % of the answers, at most 3 % of the truths are wrong."""
    reports, truth = crowd((0.78, 0.78), 0.01)

    wrong = DEFAULT.fit(reports).posterior.argmax(axis=1) != truth

    assert own_steps(validated_input(DEFAULT, reports)) == OWN_STEPS
    assert wrong.mean() <= 0.03


@pytest.mark.parametrize(("right", "share"), [((0.95, 0.55), 0.4), ((0.78, 0.78), 0.5)])
def test_the_usual_start_is_kept(right: tuple[float, float], share: float) -> None:
    """Where rows differ, or labels are as frequent, a fit starts as usual."""
    reports, _ = crowd(right, share)

    assert own_steps(validated_input(DEFAULT, reports)) == 0


def test_noise_keeps_the_usual_start() -> None:
    """Reports behind a channel start as usual, whatever is rare."""
    mechanism = RandomizedResponse(alphabet=YES_NO, epsilon=3.0)
    reports = perturb_reports(crowd((0.78, 0.78), 0.01)[0], mechanism, seeded(1))

    assert own_steps(validated_input(DEFAULT, reports, channel=mechanism.channel())) == 0


@pytest.mark.parametrize("start", range(3))
def test_evidence_is_the_equations(start: int) -> None:
    """The log evidence is entropy, classes and the best model of the workers, in loops from the last posteriors."""
    reports, _ = crowd((0.9, 0.7), 0.3, tasks=60)
    data = validated_input(DEFAULT, reports)
    found = run_em(DEFAULT, compared_starts(DEFAULT.initialize(data.summary))[start], data)

    parameters, independence = found.parameters, found.parameters.independence
    assert independence is not None
    assert parameters.own_prior is not None
    prior, scores = parameters.dirichlet_prior, np.tile(np.log(parameters.class_prior), (60, 1))
    for task, worker, answer in zip(reports.task, reports.worker, reports.value, strict=True):
        scores[task] += independence.weights[worker] * np.log(parameters.confusion[worker, :, answer])
    posterior, counts = softmax(scores, axis=1), np.zeros((40, 2, 2))
    for task, worker, answer in zip(reports.task, reports.worker, reports.value, strict=True):
        counts[worker, :, answer] += posterior[task]
    mean, ability = prior / prior.sum(axis=1, keepdims=True), parameters.own_prior.ability
    strengths = [prior, *(strength * mean for strength in ROW_STRENGTHS)]
    models = [
        [dirichlet_multinomial(one[0], p[0]) + dirichlet_multinomial(one[1], p[1]) for one in counts] for p in strengths
    ]
    right = counts[:, 0, 0] + counts[:, 1, 1]
    pairs = np.stack((right, counts.sum(axis=(1, 2)) - right), axis=1)
    for strength in COIN_STRENGTHS:
        models.append([dirichlet_multinomial(pair, strength * np.array([ability, 1 - ability])) for pair in pairs])
    share, frequency = independence.share, (np.bincount(reports.value) + 1) / (len(reports) + 2)
    alone = [
        dirichlet_multinomial(np.bincount(reports.value[reports.worker == w], minlength=2), 2 * frequency)
        for w in range(40)
    ]
    best = max(
        sum(np.log((1 - share) * np.exp(one) + share * np.exp(other)) for one, other in zip(model, alone, strict=True))
        for model in models
    )
    entropy = -float((posterior * np.log(posterior)).sum())
    classes = dirichlet_multinomial(posterior.sum(axis=0), np.ones(2))

    assert log_evidence(found) == pytest.approx(entropy + classes + best, rel=1e-9)


def test_many_answers_are_compared_on_a_sample() -> None:
    """Of 50,000 answers about 20,000 are compared, of tasks from everywhere, with their known truths."""
    reports, truth = crowd((0.78, 0.78), 0.5, tasks=10_000)
    gold = {str(task): YES_NO.names[truth[task]] for task in range(0, 10_000, 3)}

    sample = comparison_sample(DEFAULT, validated_input(DEFAULT, reports, gold=gold))

    assert len(sample.reports) == pytest.approx(MAX_ANSWERS, rel=0.01)
    assert sample.gold.number_of_known_truths == pytest.approx(MAX_ANSWERS / 5 / 3, rel=0.05)
    assert own_steps(validated_input(DEFAULT, reports, gold=gold)) == 0


@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=30), large=st.integers(0, 29), most=st.integers(PARTS, 300)
)
def test_ranges_are_tasks_in_turn(sizes: list[int], large: int, most: int) -> None:
    """Whatever the answers of a task, ranges of tasks follow one another, and hold answers."""
    sizes[large % len(sizes)] = 600
    task = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    worker = np.concatenate([np.arange(size, dtype=np.int32) for size in sizes])
    reports = Reports(task, worker, np.zeros(len(task), np.int16), np.arange(len(sizes)), np.arange(600), YES_NO)

    places = [(block.first, block.stop) for block in evenly_spaced_task_blocks(reports, most)]

    assert all(first < stop <= len(sizes) for first, stop in places)
    assert all(before[1] <= after[0] for before, after in pairwise(places))
    assert sum(sum(sizes[first:stop]) for first, stop in places) > 0


@pytest.mark.parametrize("last", [10, 600])
def test_few_tasks_or_a_long_one_are_fitted(last: int) -> None:
    """Forty tasks with 600 answers each, or a last task with 600, are sampled as others are."""
    sizes = [600] * 40 if last == 10 else [10] * 2_500 + [last]
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    worker = np.concatenate([rng.permutation(600)[:size].astype(np.int32) for size in sizes])
    answer = (rng.random(len(task)) < 0.2).astype(np.int16)
    reports = Reports(task, worker, answer, np.arange(len(sizes)), np.arange(600), YES_NO)

    assert DEFAULT.fit(reports).posterior.argmax(axis=1).mean() < 0.05
